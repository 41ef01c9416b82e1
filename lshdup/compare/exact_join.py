"""The exact join: every pair of sets from a similarity or a containment on, none missed.

It answers `--exact` and `--measure containment`, and is the truth that `accuracy` and the tests
measure the bands against. All pairs of n documents would cost n² / 2 comparisons.

A set A must share a least number m of its elements with each larger set that it is compared with:
⌈t·|A|⌉ for containment t, and for similarity t at least ⌈2t / (1 + t)·|A|⌉, what it takes with a
set of its own size. Let all sets be read in one order of elements, rarest first. Then A shares
s + 1 of its |A| - m + s + 1 rarest elements with such a set, for any s: only these prefixes are
indexed (Bayardo, Ma, Srikant, "Scaling up all pairs similarity search", WWW 2007), and each set
looks all its elements up among the prefixes of smaller sets. In natural text, elements of its own
rule most sets out; sets that share a phrase only are ruled out by s, and by similarity sets that
are too small are passed over. Any one order will do: here the rarity of an element is a counter
that other elements may share, so that nothing is sorted: prefixes cost two passes over the sets.

A candidate is verified in a hash table of the larger set, until too many elements are missing: its
cost does not depend on the larger set.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import RaggedSets, offsets_of
from lshdup.base.run import Run, run_in_parts, run_parts
from lshdup.compare.scored_pairs import Columns
from lshdup.kernels import joins as kernels
from lshdup.kernels.joins import Postings, Prefixes
from lshdup.kernels.sets import count_elements, mark_elements
from lshdup.lsh.candidates import NO_ORIGINS

#: The least number of pairs a piece has room for; 24 bytes each.
PIECE = 1 << 18

#: Sets that one thread probes before it takes new work.
_PROBES = 512

#: The largest number of counters or lists that a 32-bit slot can address.
_MOST = (1 << 32) - 2

#: (rank, rank, containment, similarity) of pairs: two uint32 and two float64 arrays.
_Piece = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64], NDArray[np.float64]]


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
    counters = run.arrays.zeros(max(1, min(_MOST, int(sizes.sum()))), np.uint16)

    def count(part: int, parts: int) -> None:
        count_elements(
            sets.values, sets.offsets, order, part, parts, np.empty(largest, np.uint32), counters
        )

    run_parts(run.jobs, count)
    starts, n = offsets_of(sizes - min_shared + 1, run.arrays), len(order)
    elements = run.arrays.empty(int(starts[-1]), np.uint64)
    kept, single = run.arrays.zeros(n, np.int64), run.arrays.zeros(n, np.int64)
    prefixes = Prefixes(sizes, starts[:-1], elements, kept, single)

    def choose(part: slice) -> None:
        rarity, tally = np.empty(largest, np.uint8), np.empty(257, np.int64)
        kernels.rarest_elements(
            sets.values, sets.offsets, order, min_shared, counters, rarity, tally, part.start,
            part.stop, prefixes,
        )  # fmt: skip

    run_in_parts(n, run.jobs, choose, least=64)
    return prefixes


def min_shared_sizes(sizes: NDArray[np.int64], threshold: float, measure: str) -> NDArray[np.int64]:
    """Return the least number of elements that sets of these sizes share with any larger set that
    they reach the threshold with.

    The loop makes the result exact for the rounded division of doubles.

    >>> sizes = np.array([1, 5, 9, 100])
    >>> [min_shared_sizes(sizes, 0.8, measure).tolist() for measure in ("jaccard", "containment")]
    [[1, 5, 8, 89], [1, 4, 8, 80]]
    """
    share = threshold if measure == "containment" else 2.0 * threshold / (1.0 + threshold)
    least: NDArray[np.int64] = np.maximum(np.floor(share * sizes).astype(np.int64) - 1, 0)

    def are_too_few() -> NDArray[np.bool_]:
        together = sizes if measure == "containment" else 2 * sizes - least
        return least / np.maximum(together, 1) < threshold

    while (is_less := are_too_few()).any():
        least += is_less
    return least


def write_postings(run: Run, prefixes: Prefixes) -> Postings:
    """Return the lists of all prefixes."""
    lists = max(1, min(_MOST, int(prefixes.kept.sum())))
    postings = Postings(
        run.arrays.zeros(lists + 2, np.int64), np.empty(0, np.uint64), np.empty(0, np.uint32)
    )

    def write(part: int, parts: int) -> None:
        kernels.write_postings(prefixes, part, parts, postings)

    run_parts(run.jobs, write)
    np.cumsum(postings.starts, out=postings.starts)
    n = int(postings.starts[-1])
    elements, holders = run.arrays.empty(n, np.uint64), run.arrays.empty(n, np.uint32)
    postings = Postings(postings.starts, elements, holders)
    run_parts(run.jobs, write)
    return postings


def choose_turns(origins: NDArray[np.uint32], n: int) -> Iterator[tuple[NDArray[np.bool_], ...]]:
    """Yield which of n sets are indexed, and which probe them, in turn: (indexed, probing).

    Each set is compared with smaller ones of other origins. The largest origin is never held
    against itself: it is held against all others, and these against it and, if they are of several
    origins, against each other.

    origins : uint32 array of shape (n,); empty: all sets are compared.
    """
    everything = np.ones(n, bool)
    if not len(origins):
        yield everything, everything
        return
    largest = origins == np.bincount(origins).argmax()
    others = origins[~largest]
    if len(others):
        yield ~largest, everything if (others != others[0]).any() else largest
        yield largest, ~largest


def run_probes(
    run: Run, n: int, probe: Callable[[NDArray[np.int64], int], _Piece]
) -> Iterator[_Piece]:
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
        under_way: deque[tuple[NDArray[np.int64], int, Future[_Piece]]] = deque()
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


#: Bits that mark the elements of lists, for each element.
_BITS = 16

#: One in so many of the common elements that a set needs makes its prefix longer.
_SLACK = 25


def join_sets(
    run: Run,
    sets: RaggedSets,
    members: NDArray[np.int64],
    threshold: float,
    measure: str,
    origins: NDArray[np.uint32] = NO_ORIGINS,
) -> Iterator[Columns]:
    """Yield all pairs of the sets `members` with |A ∩ B| / |A ∪ B| or, for containment,
    |A ∩ B| / |A| >= threshold, |A| <= |B|.

    Empty sets have no pairs. Of two sets of one size, the one of the lower number is inside.

    members : int64 array of shape (m,), numbers of `sets`.
    threshold : above 0, at most 1; a pair is in if the quotient as a double reaches it.
    measure : one of MEASURES.
    origins : of each set of `sets`; sets of one origin are no pair. Empty: all are compared.

    Yields pieces of (inside, holder, scores), in any order; at most `PIECE` pairs each.

    Determinism: the same pieces at any number of jobs. Cost: three passes over the sets, then a
    step for each rare element of a set that a larger one has; quadratic if all sets share all
    elements. Memory, beside the sets: of the run, 64 bytes a set, and 30 for each element of a
    prefix; 8 bytes a set and three pieces for each thread.
    """
    order = members[sets.sizes[members] > 0]
    order = order[np.lexsort((order, sets.sizes[order]))]
    shared = min_shared_sizes(sets.sizes[order], threshold, measure)
    # Fewer common elements make longer prefixes, which rule more out.
    loosened = np.maximum(shared - np.minimum(shared // _SLACK, shared // 2), 1)
    prefixes = choose_prefixes(run, sets, order, loosened)
    outside = prefixes.sizes - prefixes.single - prefixes.kept
    own = origins[order] if len(origins) else origins
    turns = [
        (prefixes._replace(kept=prefixes.kept * indexed), np.flatnonzero(probing))
        for indexed, probing in choose_turns(own, len(order))
    ]
    before, probes = 0, sum(len(holders) for _, holders in turns)
    for indexed, holders in turns:

        def report(stage: str, done: int, _: int, before: int = before) -> None:
            run.progress(stage, before + done, probes)

        before += len(holders)
        postings = write_postings(run, indexed)
        part = run.but(progress=report)
        found = _probe_holders(
            part, sets, order, own, holders, postings, outside, shared,
            threshold if measure == "jaccard" else 0.0,
        )  # fmt: skip
        for x, y, containment, similarity in found:
            scores = similarity if measure == "jaccard" else containment + 1j * similarity
            yield order[x].astype(np.uint32), order[y].astype(np.uint32), scores


def _probe_holders(
    run: Run,
    sets: RaggedSets,
    order: NDArray[np.int64],
    origins: NDArray[np.uint32],
    holders: NDArray[np.int64],
    postings: Postings,
    outside: NDArray[np.int64],
    min_shared: NDArray[np.int64],
    threshold: float,
) -> Iterator[_Piece]:
    """Yield the sets of lower rank near each of `holders`: (rank, rank, containment, similarity).

    origins : by rank. threshold : of the similarity; 0 for containment.
    """
    n, room, sizes = len(order), PIECE, sets.sizes[order]
    # Rounded down: the kernel rules out a set too many.
    smallest = np.searchsorted(sizes, threshold * sizes * (1 - 1e-12))
    largest = int(sets.sizes[order[-1:]].max(initial=0))
    marks = run.arrays.zeros(len(postings.elements) * _BITS // 64 + 1, np.uint64)
    mark_elements(postings.elements, marks)
    local = threading.local()

    def probe(state: NDArray[np.int64], last: int) -> _Piece:
        if not hasattr(local, "met"):
            local.hits = np.zeros(n, np.uint32)
            local.met = np.empty(n, np.uint32)
            local.own = np.empty(largest, np.uint32)
            local.table = np.empty(1 << (2 * largest).bit_length(), np.uint64)
            local.ranks = np.empty((2, room), np.uint32)
            local.shares = np.empty((2, room), np.float64)
        written = kernels.join_sets(
            sets.values, sets.offsets, order, origins, threshold, min_shared, postings, marks,
            holders, smallest, state, last, outside, local.hits, local.met, local.own, local.table,
            *local.ranks, *local.shares,
        )  # fmt: skip
        x, y = local.ranks[:, :written].copy()
        containment, similarity = local.shares[:, :written].copy()
        return x, y, containment, similarity

    yield from run_probes(run, len(holders), probe)
