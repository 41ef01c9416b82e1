"""Exact Jaccard similarity: |A ∩ B| / |A ∪ B| of 64-bit shingle sets, divided once as doubles."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.parallel import run_in_parts
from lshdup.base.ragged import RaggedSets, SetSource, offsets_of
from lshdup.base.run import Run
from lshdup.compare.checkpoint import StageCheckpoint
from lshdup.compare.pairs import RUN, Columns, Scores, pack_pairs, unpack_pairs
from lshdup.kernels import sets as kernels
from lshdup.lsh.candidates import PairArrays

#: The largest size of the shingle sets that are in memory at a time.
SET_BYTES = 512 << 20

#: The size of the sets fetched at a time, unless a cluster is larger: enough documents for all
#: threads. A small block reuses memory, which is faster than new memory.
BLOCK_BYTES = 12 << 20

#: Sets of this size stay in the cache of a processor.
CACHE_BYTES = 1 << 20

#: Verified pairs that wait for their part of a journal at most, before it is due.
_MOST_WAITING = RUN

#: Pairs in one piece of `all_pairs`, 8 bytes each.
PAIRS_AT_ONCE = 1 << 23


def jaccard(
    run: Run,
    sets: RaggedSets,
    left: NDArray[np.integer],
    right: NDArray[np.integer],
    threshold: float = 0.0,
) -> NDArray[np.float64]:
    """Return |A ∩ B| / |A ∪ B| of the sets left[i] and right[i]; 0 below the threshold.

    The similarity of two empty sets is 0.

    left, right : integer arrays of shape (n_pairs,), below 2^32.

    Returns a float64 array of shape (n_pairs,). Cost: about 1 ns an element, less where two sets
    are similar or cannot reach the threshold.

    >>> sets = RaggedSets.from_sets([{1, 2, 3}, {1, 3}, {3}])
    >>> jaccard(Run.quiet(), sets, np.array([0, 0]), np.array([1, 2])).round(4).tolist()
    [0.6667, 0.3333]
    """
    out = np.empty(len(left), np.float64)
    a, b = left.astype(np.uint32, copy=False), right.astype(np.uint32, copy=False)

    def work(part: slice) -> None:
        kernels.pair_jaccard(sets.values, sets.offsets, a[part], b[part], threshold, out[part])

    run_in_parts(len(left), run.jobs, work, least=256)
    return out


def keep_possible(
    left: NDArray[np.uint32], right: NDArray[np.uint32], sizes: NDArray[np.int64], threshold: float
) -> PairArrays:
    """Return the pairs whose sizes allow this similarity, moved to the front of the arrays."""
    n = kernels.possible_pairs(left, right, sizes, threshold)
    return left[:n], right[:n]


def verify(
    run: Run,
    pieces: Iterable[PairArrays],
    sizes: NDArray[np.int64],
    source: SetSource,
    threshold: float,
) -> Iterator[Columns]:
    """Yield the candidate pairs whose exact similarity is at least the threshold, in any order.

    pieces : (left, right), uint32 arrays, which are overwritten.
    sizes : int64 array of shape (n,), size of the set of each document.
    source : called with ascending documents for their sets.

    Yields pieces of (left, right, similarity).

    Memory: at most SET_BYTES of sets, fetched for a block of pairs at a time; a block reuses the
    sets of the one before. A set is fetched once if pairs come cluster by cluster, unless the sets
    of its cluster exceed the limit.
    """

    def score(
        sets: RaggedSets, left: NDArray[np.uint32], right: NDArray[np.uint32]
    ) -> NDArray[np.float64]:
        return jaccard(run, sets, left, right, threshold)

    possible = (keep_possible(*piece, sizes, threshold) for piece in pieces)
    for left, right, similarity in score_pairs(possible, sizes, source, score):
        keep = similarity >= threshold
        yield left[keep], right[keep], similarity[keep]


def score_pairs(
    pieces: Iterable[PairArrays],
    sizes: NDArray[np.int64],
    source: SetSource,
    score: Callable[[RaggedSets, NDArray[np.uint32], NDArray[np.uint32]], Scores],
) -> Iterator[Columns]:
    """Yield pairs with the scores of their sets, in any order. Parameters and cost: as `verify`.

    score : called with sets and the rows of pairs in them; returns their scores.
    """
    fetched = _FetchedSets(len(sizes), source)
    for left, right in pieces:
        start = 0
        while start < len(left):
            seen = np.zeros(len(sizes), np.uint8)
            # Half of the limit: at the change of blocks the sets of both are in memory.
            most = SET_BYTES // 16
            end = kernels.block_end(
                left, right, start, sizes, min(BLOCK_BYTES // 8, most), most, seen
            )
            # Not the documents of a later block: sets that are kept for the next one are copied.
            seen[:] = 0
            seen[left[start:end]] = seen[right[start:end]] = 1
            sets, row_of = fetched.sets_of(np.flatnonzero(seen))
            a, b = _tiled(row_of[left[start:end]], row_of[right[start:end]], sets)
            yield fetched.documents[a], fetched.documents[b], score(sets, a, b)
            del sets  # Its memory serves the next block.
            start = end


class ResumedPairs:
    """Verified pairs of candidates, of which an interrupted run has verified the first ones.

    checkpoint : keeps verified pairs; a step is a candidate pair.
    n : number of documents.
    """

    def __init__(self, checkpoint: StageCheckpoint, n: int) -> None:
        columns = {"left": np.uint32, "right": np.uint32, "similarity": np.float64}
        self.done, parts = checkpoint.load_finished(columns, n)
        self._checkpoint, self._columns = checkpoint, tuple(columns)
        self._before = [(part["left"], part["right"], part["similarity"]) for part in parts]
        self._waiting: list[Columns] = []

    def candidates(self, pieces: Iterable[PairArrays]) -> Iterator[PairArrays]:
        """Yield the candidate pairs that are not verified yet.

        A piece is asked for when all before it are verified, and have passed through `verified`.
        """
        seen = 0
        for left, right in pieces:
            waiting = sum(len(part[0]) for part in self._waiting)
            if seen > self.done and (self._checkpoint.is_due() or waiting > _MOST_WAITING):
                joined = map(np.concatenate, zip(*self._waiting, strict=True))
                empty = np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0)
                columns = tuple(joined) or empty
                self._checkpoint.add(seen, dict(zip(self._columns, columns, strict=True)))
                self._waiting.clear()
            start = max(self.done - seen, 0)
            seen += len(left)
            if start < len(left):
                yield left[start:], right[start:]

    def verified(self, parts: Iterable[Columns]) -> Iterator[Columns]:
        """Yield the pairs of the interrupted run, and those that are verified now."""
        yield from self._before
        self._before.clear()
        for part in parts:
            self._waiting.append(part)
            yield part


class _FetchedSets:
    """The sets of one block of pairs."""

    def __init__(self, n: int, source: SetSource) -> None:
        self.documents = np.zeros(0, np.uint32)
        self._sets = RaggedSets.concatenate([])
        self._row_of = np.zeros(n, np.uint32)
        self._is_fetched = np.zeros(n, bool)
        self._source = source

    def sets_of(self, wanted: NDArray[np.int64]) -> tuple[RaggedSets, NDArray[np.uint32]]:
        """Return the sets of at least these ascending documents, and the row of each in them."""
        missing = wanted[~self._is_fetched[wanted]]
        if len(missing):
            known = wanted[self._is_fetched[wanted]]
            # The memory of sets that are no longer wanted is free before new ones come.
            self._sets = self._sets.take(self._row_of[known].astype(np.int64))
            self._sets = RaggedSets.concatenate([self._sets, self._source(missing)])
            self._is_fetched[self.documents] = False
            self.documents = np.concatenate([known, missing]).astype(np.uint32)
            self._is_fetched[self.documents] = True
            self._row_of[self.documents] = np.arange(len(self.documents), dtype=np.uint32)
        return self._sets, self._row_of


def _tiled(
    left: NDArray[np.uint32], right: NDArray[np.uint32], sets: RaggedSets
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the pairs in an order for the cache: sixteen left sets with all their partners.

    Otherwise, where many sets are compared with many others, every set comes from memory again
    for each of its pairs.
    """
    if sets.values.nbytes <= CACHE_BYTES or len(left) < 2 * len(sets):
        return left, right
    # One sort of integers: left without its last four bits, right, then those four bits.
    keys = pack_pairs(left >> np.uint32(4), right)
    keys = keys << np.uint64(4) | (left & np.uint32(15)).astype(np.uint64)
    keys.sort()
    high, right = unpack_pairs(keys >> np.uint64(4))
    return high << np.uint32(4) | (keys & np.uint64(15)).astype(np.uint32), right


def all_pairs(run: Run, sets: RaggedSets) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield the similarity of every pair, in pieces of whole rows of the upper triangle.

    Yields (first row, float64 array); rows are in order, and pair (i, j), i < j, follows
    (i, j - 1).

    Cost: one step for every element that two sets have in common. Memory: one piece of about 8
    million pairs, or one row, and posting lists as large as the sets.
    """
    n = len(sets)
    _, inverse, frequency = np.unique(sets.values, return_inverse=True, return_counts=True)
    numbers = inverse.astype(np.uint32)
    posting_starts = offsets_of(frequency)
    owners = np.repeat(np.arange(n, dtype=np.uint32), sets.sizes)
    postings = owners[np.argsort(inverse, kind="stable")]
    row_ends = np.cumsum(np.arange(n - 1, 0, -1))  # Pairs up to and including each row.
    first = 0
    while first < n - 1:
        before = int(row_ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(row_ends, before + PAIRS_AT_ONCE, side="right")))
        out = np.empty(int(row_ends[last - 1]) - before, np.float64)

        def rows(
            part: slice, out: NDArray[np.float64] = out, first: int = first, before: int = before
        ) -> None:
            start, end = first + part.start, first + part.stop
            at = (int(row_ends[start - 1]) if start else 0) - before
            common = np.empty(n, np.int32)
            kernels.all_pairs_jaccard(
                numbers,
                sets.offsets,
                posting_starts,
                postings,
                start,
                end,
                common,
                out[at : int(row_ends[end - 1]) - before],
            )

        run_in_parts(last - first, run.jobs, rows, least=16)
        yield first, out
        first = last
