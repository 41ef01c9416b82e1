"""What the exact joins share: prefixes of sets, lists of the sets that hold an element, and probes.

Let all sets be read in one order of elements, rarest first. Two sets that share enough elements
share one of their prefixes, the first few elements (Bayardo, Ma, Srikant, "Scaling up all pairs
similarity search", WWW 2007). So only prefixes are indexed.

Any one order will do. Here the rarity of an element is a counter that other elements may share, so
that nothing is sorted: prefixes cost two passes over the sets.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import RaggedSets, offsets_of
from lshdup.base.run import Run, run_in_parts, run_parts
from lshdup.kernels import joins as kernels
from lshdup.kernels.joins import Postings, Prefixes
from lshdup.kernels.sets import count_elements

#: The least number of pairs a piece has room for; 24 bytes each.
PIECE = 1 << 18

#: Sets that one thread probes before it takes new work.
_PROBES = 512

#: The largest number of counters or lists that a 32-bit slot can address.
_MOST = (1 << 32) - 2

#: One column for each property of the pairs.
Piece = TypeVar("Piece", bound=tuple[NDArray[np.generic], ...])


def order_by_size(sets: RaggedSets, members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the members that are not empty by the size of their sets, then by number."""
    members = np.sort(members[sets.sizes[members] > 0])
    return members[np.argsort(sets.sizes[members], kind="stable")]


def choose_prefixes(
    run: Run, sets: RaggedSets, order: NDArray[np.int64], min_shared: NDArray[np.int64]
) -> Prefixes:
    """Return the prefix of each set: as many elements as a similar set must share one of.

    min_shared : int64 array of shape (m,), by rank, the least number of elements that a similar set
        must share, from 1.
    """
    sizes = sets.sizes[order]
    largest = int(sizes.max(initial=0))
    # One counter for each element. With more, fewer elements would look less rare than they are,
    # but more counters would miss the cache.
    counters = np.zeros(max(1, min(_MOST, int(sizes.sum()))), np.uint16)

    def count(part: int, parts: int) -> None:
        count_elements(
            sets.values, sets.offsets, order, part, parts, np.empty(largest, np.uint32), counters
        )

    run_parts(run.jobs, count)
    starts = offsets_of(sizes - min_shared + 1)
    prefixes = Prefixes(
        sizes,
        starts[:-1],
        np.empty(int(starts[-1]), np.uint64),
        np.zeros(len(order), np.int64),
        np.zeros(len(order), np.int64),
    )

    def choose(part: slice) -> None:
        rarity, tally = np.empty(largest, np.uint8), np.empty(257, np.int64)
        kernels.rarest_elements(
            sets.values, sets.offsets, order, min_shared, counters, rarity, tally, part.start,
            part.stop, prefixes,
        )  # fmt: skip

    run_in_parts(len(order), run.jobs, choose, least=64)
    return prefixes


def min_shared_sizes(sizes: NDArray[np.int64], threshold: float) -> NDArray[np.int64]:
    """Return the least share of sets of these sizes, in elements, that reaches the threshold.

    The loop makes the result exact for the rounded division of doubles.

    >>> min_shared_sizes(np.array([1, 5, 9, 100]), 0.8).tolist()
    [1, 4, 8, 80]
    """
    least: NDArray[np.int64] = np.maximum(np.floor(threshold * sizes).astype(np.int64) - 1, 0)
    while (is_less := least / np.maximum(sizes, 1) < threshold).any():
        least += is_less
    return least


def write_postings(run: Run, prefixes: Prefixes, threshold: float) -> Postings:
    """Return the lists of all prefixes, or of their beginnings that sets of the same size need.

    threshold : of the similarity; 0 takes whole prefixes.
    """
    lists = max(1, min(_MOST, int(prefixes.kept.sum())))
    empty = np.empty(0, np.uint64)
    postings = Postings(np.zeros(lists + 2, np.int64), empty, empty)

    def write(part: int, parts: int) -> None:
        kernels.write_postings(prefixes, threshold, part, parts, postings)

    run_parts(run.jobs, write)
    np.cumsum(postings.starts, out=postings.starts)
    n = int(postings.starts[-1])
    if n:
        postings = Postings(postings.starts, np.empty(n, np.uint64), np.empty(n, np.uint64))
        run_parts(run.jobs, write)
    return postings


def sides(order: NDArray[np.int64], split: int | None) -> Iterator[tuple[NDArray[np.bool_], ...]]:
    """Yield which sets are indexed, and which probe them, in turn: (indexed, probing).

    Each set is compared with smaller ones; of two sides, with smaller ones of the other side.

    order : of `order_by_size`. split : the first number of the other side, or None.
    """
    if split is None:
        everything = np.ones(len(order), bool)
        yield everything, everything
    else:
        below = order < split
        yield below, ~below
        yield ~below, below


def run_probes(
    run: Run, n: int, probe: Callable[[NDArray[np.int64], int], Piece]
) -> Iterator[Piece]:
    """Yield what probes find, in order, on several threads.

    n : probes in all.
    probe : called with a state and the end of a share of the probes; state[0] is the first one, and
        must be the end when all are done. A probe whose output is full returns before, and is
        called again with its state, perhaps on another thread.

    Determinism: the same pieces at any number of jobs.
    """
    cuts = [*range(0, n, _PROBES), n]
    waiting = deque((np.array([first, 0]), last) for first, last in pairwise(cuts))
    with ThreadPoolExecutor(run.jobs) as pool:
        under_way: deque[tuple[NDArray[np.int64], int, Future[Piece]]] = deque()
        try:
            while waiting or under_way:
                while waiting and len(under_way) < 2 * run.jobs:
                    state, last = waiting.popleft()
                    under_way.append((state, last, pool.submit(probe, state, last)))
                state, last, future = under_way.popleft()
                piece = future.result()
                run.progress("candidates", int(state[0]), n)
                if state[0] < last:
                    under_way.appendleft((state, last, pool.submit(probe, state, last)))
                if len(piece[0]):
                    yield piece
        finally:
            for *_, future in under_way:
                future.cancel()
