"""Every pair of sets with similarity >= t, no misses: a prefix-filter join. Called by pipeline.py for `--exact`, and by accuracy.py.

Two sets that are t similar must share an element among the first few of each, if both are read in one order of all elements, rarest
first (Bayardo, Ma, Srikant, WWW 2007). So only those first few, the prefixes, are indexed and looked up; lengths and positions rule out
most of what meets there (Xiao, Wang, Lin, Yu, WWW 2008), and the rest is verified over the whole sets.

Any order will do, as long as it is one order. Here an element is as rare as a counter says that it may share with others, so that
nothing is sorted: the prefixes cost two passes over the sets.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import prefix_join
from lshdup.matching.pairs import Columns
from lshdup.utils.parallel import run_in_parts, run_parts
from lshdup.utils.ragged import RaggedSets, offsets_of

#: The least number of pairs a piece has room for; 24 bytes each.
PIECE = 1 << 18

#: Sets that one thread probes before it takes new work.
_PROBES = 512

#: Nearly as many numbers as a 32-bit slot can tell apart.
_MOST = (1 << 32) - 2

#: (rank, rank, similarity) of pairs.
Piece = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def exact_pairs(
    sets: RaggedSets,
    members: NDArray[np.int64],
    threshold: float,
    jobs: int = 1,
    split: int | None = None,
    on_progress: Callable[[int, int], None] = lambda done, n: None,
) -> Iterator[Columns]:
    """Pieces of (left, right, similarity) over the sets `members` (int64 array), left < right, in no order.

    split : only pairs of two sides, left < split <= right; what sets of one side have in common costs nothing then.

    left, right : uint32 arrays of shape (m,), numbers of `sets`. similarity : float64 array of shape (m,), |A ∩ B| / |A ∪ B|. threshold :
    above 0, at most 1. Empty sets are near nothing. on_progress : told how many sets of how many have been compared with those before
    them; of two sides, each set counts twice.

    Determinism: the same pieces at any number of jobs. Memory: the sets are not copied; beside them a quarter of their size while
    elements are counted, then at most 32 bytes for each element of a prefix, which is 1 - t of the elements or less: up to 0.8 times
    the sets at t = 0.8, 4 times near 0. And 12 bytes a set, and three pieces, a thread. Cost: two passes over the sets, then what the
    rarest elements have in common; quadratic if all sets share all of theirs.
    """
    members = members[sets.sizes[members] > 0]
    order = members[np.argsort(sets.sizes[members], kind="stable")]
    prefixes = _prefixes(sets, order, threshold, jobs)
    everything = np.ones(len(order), bool)
    below = everything if split is None else order < split
    # Each set with those before it in the order of sizes; of two sides, those of each with those of the other.
    turns = ((everything, everything),) if split is None else ((below, ~below), (~below, below))
    for turn, (indexed, probing) in enumerate(turns):

        def told(done: int, n: int, before: int = turn) -> None:
            on_progress(before * n + done, len(turns) * n)

        index = _index(prefixes.of(indexed), threshold, jobs)
        for x, y, similarity in _probed(
            sets, order, prefixes.of(probing), index, threshold, jobs, told
        ):
            a, b = order[x], order[y]
            yield np.minimum(a, b).astype(np.uint32), np.maximum(a, b).astype(np.uint32), similarity


@dataclass(frozen=True)
class _Prefixes:
    """The rarest elements of each set, of a rarity that another set may share; sets by rank, which is their place in the order of sizes.

    sizes : int64 array of shape (n,), of the whole sets. starts, kept : int64 arrays of shape (n,); those of set i are
    ``elements[starts[i]:starts[i] + kept[i]]``. single : int64 array of shape (n,), how many come before them that no other set has.
    """

    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    elements: NDArray[np.uint64]
    single: NDArray[np.int64]
    kept: NDArray[np.int64]

    def of(self, some: NDArray[np.bool_]) -> "_Prefixes":
        """Those of some sets; the others have none."""
        return replace(self, kept=np.where(some, self.kept, 0))


@dataclass(frozen=True)
class _Index:
    """Posting lists: that of slot i is ``[starts[i]:starts[i + 1]]`` of elements (uint64) and holders (uint64).

    A holder is rank << 32 | how many elements the set has after this one.
    """

    starts: NDArray[np.int64]
    elements: NDArray[np.uint64]
    holders: NDArray[np.uint64]


def _prefixes(sets: RaggedSets, order: NDArray[np.int64], threshold: float, jobs: int) -> _Prefixes:
    sizes = sets.sizes[order]
    largest = int(sizes.max(initial=0))
    # One for each element. With more, fewer elements look less rare than they are; but more of the counters are not in the cache.
    counters = np.zeros(max(1, min(_MOST, int(sizes.sum()))), np.uint16)

    def count(part: int, parts: int) -> None:
        prefix_join.count_elements(
            sets.values, sets.offsets, order, part, parts, np.empty(largest, np.uint32), counters
        )

    run_parts(jobs, count)
    # Two more than needed at least: rounding must not make the room too small.
    room = np.minimum(sizes, sizes - np.floor(threshold * sizes).astype(np.int64) + 2)
    starts = offsets_of(room)
    made = _Prefixes(
        sizes,
        starts[:-1],
        np.empty(int(starts[-1]), np.uint64),
        np.zeros(len(order), np.int64),
        np.zeros(len(order), np.int64),
    )

    def choose(part: slice) -> None:
        prefix_join.rarest_elements(
            sets.values, sets.offsets, order, threshold, counters, np.empty(largest, np.uint8), np.empty(257, np.int64),
            part.start, part.stop, made.starts, made.elements, made.single, made.kept,
        )  # fmt: skip

    run_in_parts(len(order), jobs, choose, least=64)
    return made


def _index(prefixes: _Prefixes, threshold: float, jobs: int) -> _Index:
    lists = max(1, min(_MOST, int(prefixes.kept.sum())))
    starts = np.zeros(lists + 2, np.int64)
    given = (
        prefixes.sizes,
        threshold,
        prefixes.starts,
        prefixes.elements,
        prefixes.single,
        prefixes.kept,
    )
    run_parts(jobs, lambda part, parts: prefix_join.count_postings(*given, part, parts, starts))
    np.cumsum(starts, out=starts)
    index = _Index(
        starts, np.empty(int(starts[-1]), np.uint64), np.empty(int(starts[-1]), np.uint64)
    )
    run_parts(
        jobs,
        lambda part, parts: prefix_join.fill_postings(
            *given, part, parts, starts, index.elements, index.holders
        ),
    )
    return index


def _probed(
    sets: RaggedSets,
    order: NDArray[np.int64],
    prefixes: _Prefixes,
    index: _Index,
    threshold: float,
    jobs: int,
    on_progress: Callable[[int, int], None],
) -> Iterator[Piece]:
    """Each set with those before it: pieces of (rank, rank, similarity)."""
    n = len(order)
    # The length filter; a set too many is ruled out later, one too few would be missed.
    longest = np.searchsorted(prefixes.sizes, threshold * prefixes.sizes * (1 - 1e-12))
    room = max(PIECE, n)
    local = threading.local()

    def probe(first: int, last: int) -> tuple[int, int, Piece]:
        if not hasattr(local, "missing"):
            local.missing, local.met = (
                np.full(n, prefix_join.UNMET, np.int32),
                np.empty(n, np.int64),
            )
            local.out = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
        state = np.array([first], np.int64)
        written = prefix_join.prefix_join(
            sets.values, sets.offsets, order, prefixes.sizes, threshold, prefixes.starts, prefixes.elements, prefixes.single, prefixes.kept,
            index.starts, index.elements, index.holders, longest, state, last, local.missing, local.met, *local.out,
        )  # fmt: skip
        x, y, similarity = local.out
        return (
            int(state[0]),
            last,
            (x[:written].copy(), y[:written].copy(), similarity[:written].copy()),
        )

    cuts = [*range(0, n, _PROBES), n]
    waiting = deque(pairwise(cuts))
    with ThreadPoolExecutor(jobs) as pool:
        under_way: deque[Future[tuple[int, int, Piece]]] = deque()
        try:
            while waiting or under_way:
                while waiting and len(under_way) < 2 * jobs:
                    under_way.append(pool.submit(probe, *waiting.popleft()))
                at, last, piece = under_way.popleft().result()
                if at < last:  # no room for more: go on where it stopped
                    under_way.appendleft(pool.submit(probe, at, last))
                on_progress(at, n)
                if len(piece[0]):
                    yield piece
        finally:
            for future in under_way:
                future.cancel()
