"""The exact join: every pair of sets with similarity >= t, none missed, by prefix filtering.

It answers `--exact`, and it is the truth that `accuracy` and the tests measure the bands against.
All pairs of n documents would cost n² / 2 comparisons.

Let all sets be read in one order of elements, rarest first. Two sets of similarity t share an
element of their prefixes, the first few elements (Bayardo, Ma, Srikant, "Scaling up all pairs
similarity search", WWW 2007). Only prefixes are indexed and looked up; sizes and positions rule
out most pairs that meet there (Xiao, Wang, Lin, Yu, "Efficient similarity joins for near duplicate
detection", WWW 2008), and the rest is verified over the whole sets.

Any one order will do. Here the rarity of an element is a counter that other elements may share, so
that nothing is sorted: prefixes cost two passes over the sets.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import prefix_join
from lshdup.kernels.prefix_join import Postings, Prefixes
from lshdup.matching.pairs import Columns
from lshdup.utils.parallel import run_in_parts, run_parts
from lshdup.utils.ragged import RaggedSets, offsets_of

#: The least number of pairs a piece has room for; 24 bytes each.
PIECE = 1 << 18

#: Sets that one thread probes before it takes new work.
_PROBES = 512

#: The largest number of counters or lists that a 32-bit slot can address.
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
    """Yield all pairs of the sets `members` with |A ∩ B| / |A ∪ B| >= threshold, in any order.

    Empty sets have no pairs.

    members : int64 array of shape (m,), numbers of `sets`.
    threshold : above 0, at most 1.
    split : if set, only pairs of two sides, left < split <= right; common elements within a side
        then cost nothing.
    on_progress : called with the number of sets compared, and of all; with two sides, each set
        counts twice.

    Yields pieces of (left, right, similarity), left < right.

    Determinism: the same pieces at any number of jobs. Cost: two passes over the sets, then a step
    for each rare element that two sets share; quadratic if all sets share all elements. Memory,
    beside the sets: a quarter of their size while elements are counted, then at most 32 bytes for
    each element of a prefix, which is a share of at most 1 - t of all: 0.8 times the sets at
    t = 0.8, 4 times near 0. And 12 bytes a set, and three pieces, for each thread.
    """
    members = members[sets.sizes[members] > 0]
    order = members[np.argsort(sets.sizes[members], kind="stable")]
    prefixes = _choose_prefixes(sets, order, threshold, jobs)
    everything = np.ones(len(order), bool)
    below = everything if split is None else order < split
    # Each set is compared with smaller ones; of two sides, with smaller ones of the other side.
    turns = ((everything, everything),) if split is None else ((below, ~below), (~below, below))
    for turn, (indexed, probing) in enumerate(turns):

        def report(done: int, n: int, before: int = turn) -> None:
            on_progress(before * n + done, len(turns) * n)

        # The prefixes of other sets are empty.
        postings = _write_postings(prefixes._replace(kept=prefixes.kept * indexed), threshold, jobs)
        probed = prefixes._replace(kept=prefixes.kept * probing)
        for x, y, similarity in _probe(sets, order, probed, postings, threshold, jobs, report):
            a, b = order[x], order[y]
            yield np.minimum(a, b).astype(np.uint32), np.maximum(a, b).astype(np.uint32), similarity


def _choose_prefixes(
    sets: RaggedSets, order: NDArray[np.int64], threshold: float, jobs: int
) -> Prefixes:
    sizes = sets.sizes[order]
    largest = int(sizes.max(initial=0))
    # One counter for each element. With more, fewer elements would look less rare than they are,
    # but more counters would miss the cache.
    counters = np.zeros(max(1, min(_MOST, int(sizes.sum()))), np.uint16)

    def count(part: int, parts: int) -> None:
        prefix_join.count_elements(
            sets.values, sets.offsets, order, part, parts, np.empty(largest, np.uint32), counters
        )

    run_parts(jobs, count)
    # At least two more than needed, because of rounding.
    room = np.minimum(sizes, sizes - np.floor(threshold * sizes).astype(np.int64) + 2)
    starts = offsets_of(room)
    prefixes = Prefixes(
        sizes,
        starts[:-1],
        np.empty(int(starts[-1]), np.uint64),
        np.zeros(len(order), np.int64),
        np.zeros(len(order), np.int64),
    )

    def choose(part: slice) -> None:
        rarity, tally = np.empty(largest, np.uint8), np.empty(257, np.int64)
        prefix_join.rarest_elements(
            sets.values, sets.offsets, order, threshold, counters, rarity, tally, part.start,
            part.stop, prefixes,
        )  # fmt: skip

    run_in_parts(len(order), jobs, choose, least=64)
    return prefixes


def _write_postings(prefixes: Prefixes, threshold: float, jobs: int) -> Postings:
    lists = max(1, min(_MOST, int(prefixes.kept.sum())))
    empty = np.empty(0, np.uint64)
    postings = Postings(np.zeros(lists + 2, np.int64), empty, empty)

    def write(part: int, parts: int) -> None:
        prefix_join.write_postings(prefixes, threshold, part, parts, postings)

    run_parts(jobs, write)
    np.cumsum(postings.starts, out=postings.starts)
    n = int(postings.starts[-1])
    if n:
        postings = Postings(postings.starts, np.empty(n, np.uint64), np.empty(n, np.uint64))
        run_parts(jobs, write)
    return postings


def _probe(
    sets: RaggedSets,
    order: NDArray[np.int64],
    prefixes: Prefixes,
    postings: Postings,
    threshold: float,
    jobs: int,
    on_progress: Callable[[int, int], None],
) -> Iterator[Piece]:
    """Yield the pairs of each set with sets of lower rank: (rank, rank, similarity)."""
    n = len(order)
    # The length filter, rounded down: the kernel rules out a set too many.
    longest = np.searchsorted(prefixes.sizes, threshold * prefixes.sizes * (1 - 1e-12))
    room = max(PIECE, n)
    local = threading.local()

    def probe(first: int, last: int) -> tuple[int, int, Piece]:
        if not hasattr(local, "missing"):
            local.missing = np.full(n, prefix_join.UNMET, np.int32)
            local.met = np.empty(n, np.int64)
            local.out = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
        state = np.array([first], np.int64)
        written = prefix_join.prefix_join(
            sets.values, sets.offsets, order, threshold, prefixes, postings, longest, state, last,
            local.missing, local.met, *local.out,
        )  # fmt: skip
        x, y, similarity = (column[:written].copy() for column in local.out)
        return int(state[0]), last, (x, y, similarity)

    cuts = [*range(0, n, _PROBES), n]
    waiting = deque(pairwise(cuts))
    with ThreadPoolExecutor(jobs) as pool:
        under_way: deque[Future[tuple[int, int, Piece]]] = deque()
        try:
            while waiting or under_way:
                while waiting and len(under_way) < 2 * jobs:
                    under_way.append(pool.submit(probe, *waiting.popleft()))
                at, last, piece = under_way.popleft().result()
                if at < last:  # The output was full: the probe continues where it stopped.
                    under_way.appendleft(pool.submit(probe, at, last))
                on_progress(at, n)
                if len(piece[0]):
                    yield piece
        finally:
            for future in under_way:
                future.cancel()
