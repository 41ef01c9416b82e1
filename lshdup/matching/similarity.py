"""Exact Jaccard similarity of pairs, and of all pairs. Called by pipeline.py and accuracy.py.

Exact means |A ∩ B| / |A ∪ B| of the 64-bit shingle sets, divided once in double precision.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import sets as kernels
from lshdup.matching.pairs import Columns, pack_pairs, unpack_pairs
from lshdup.utils.parallel import run_in_parts
from lshdup.utils.ragged import RaggedSets, SetSource, offsets_of

#: Sets for at most this many bytes of shingles are held at a time.
SET_BYTES = 512 << 20

#: Sets of so many bytes stay in the cache of a processor.
CACHE_BYTES = 1 << 20

#: Pairs in one piece of all pairs: 8 bytes each.
PAIRS_AT_ONCE = 1 << 23

#: As many as that are fetched at a time, if no cluster is larger: memory that is used again is faster than new memory.
BLOCK_BYTES = 24 << 20


def jaccard(
    sets: RaggedSets,
    left: NDArray[np.integer],
    right: NDArray[np.integer],
    jobs: int = 1,
    threshold: float = 0.0,
) -> NDArray[np.float64]:
    """float64 array: similarity of sets left[i] and right[i]; 0 where it is below the threshold, or where both are empty.

    left, right : integer arrays of numbers below 2^32. Cost: about 1 ns an element, much less where two sets are alike, or below the
    threshold.

    >>> sets = RaggedSets.from_sets([{1, 2, 3}, {1, 3}, {3}])
    >>> jaccard(sets, np.array([0, 0]), np.array([1, 2])).round(4).tolist()
    [0.6667, 0.3333]
    """
    out = np.empty(len(left), np.float64)
    a, b = left.astype(np.uint32, copy=False), right.astype(np.uint32, copy=False)

    def work(part: slice) -> None:
        kernels.pair_jaccard(sets.values, sets.offsets, a[part], b[part], threshold, out[part])

    run_in_parts(len(left), jobs, work)
    return out


def verify(
    pieces: Iterable[tuple[NDArray[np.uint32], NDArray[np.uint32]]],
    sizes: NDArray[np.int64],
    source: SetSource,
    threshold: float,
    jobs: int = 1,
) -> Iterator[Columns]:
    """Those candidate pairs whose exact similarity is at least the threshold, in no order: pieces of (left, right, similarity).

    pieces : uint32 arrays (left, right), which are written to. sizes : int64 array of shape (n,) over all documents, elements of each set.

    Sets are fetched for a block of pairs at a time, only those that the block before did not have, and held for at most SET_BYTES.
    So where pairs come cluster by cluster, a set is fetched once, unless those of its cluster are too many to be held.
    """
    held = _Held(len(sizes), source)
    for left, right in pieces:
        possible = kernels.possible_pairs(left, right, sizes, threshold)
        left, right = left[:possible], right[:possible]
        start = 0
        while start < possible:
            seen = np.zeros(len(sizes), np.uint8)
            # Half the room at most: the sets of two blocks are there while one follows the other.
            most = SET_BYTES // 16
            end = kernels.block_end(
                left, right, start, sizes, min(BLOCK_BYTES // 8, most), most, seen
            )
            sets, place = held.sets_of(np.flatnonzero(seen))
            a, b = _tiled(place[left[start:end]], place[right[start:end]], sets)
            found = jaccard(sets, a, b, jobs, threshold)
            keep = found >= threshold
            yield held.documents[a[keep]], held.documents[b[keep]], found[keep]
            start = end


class _Held:
    """The sets of the block of pairs that is verified, and for each document its place among them."""

    def __init__(self, n: int, source: SetSource) -> None:
        self.documents = np.zeros(0, np.uint32)
        self._sets = RaggedSets.concatenate([])
        self._place = np.zeros(n, np.uint32)
        self._here = np.zeros(n, bool)
        self._source = source

    def sets_of(self, wanted: NDArray[np.int64]) -> tuple[RaggedSets, NDArray[np.uint32]]:
        """Sets of at least these documents (ascending int64 array), and where in them each is."""
        missing = wanted[~self._here[wanted]]
        if len(missing):
            known = wanted[self._here[wanted]]
            self._sets = self._sets.take(
                self._place[known].astype(np.int64)
            )  # the others are free before new ones come
            self._sets = RaggedSets.concatenate([self._sets, self._source(missing)])
            self._here[self.documents] = False
            self.documents = np.concatenate([known, missing]).astype(np.uint32)
            self._here[self.documents] = True
            self._place[self.documents] = np.arange(len(self.documents), dtype=np.uint32)
        return self._sets, self._place


def _tiled(
    left: NDArray[np.uint32], right: NDArray[np.uint32], sets: RaggedSets
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The pairs in an order in which a set that was just compared is compared again soon, sixteen sets by all their partners.

    Otherwise, where many sets are each compared with many, all of them come from memory once for each.
    """
    if sets.values.nbytes <= CACHE_BYTES or len(left) < 2 * len(sets):
        return left, right
    # One sort of whole numbers: left without its last four bits, right, those four bits. Locations are numbered densely from 0.
    keys = pack_pairs(left >> np.uint32(4), right)
    keys = keys << np.uint64(4) | (left & np.uint32(15)).astype(np.uint64)
    keys.sort()
    high, right = unpack_pairs(keys >> np.uint64(4))
    return high << np.uint32(4) | (keys & np.uint64(15)).astype(np.uint32), right


def all_pairs(sets: RaggedSets, jobs: int = 1) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Similarity of every pair, in pieces of whole rows of the upper triangle: (first row, float64 array).

    Rows are in order; pair (i, j), i < j, follows (i, j - 1). Memory: one piece of at most about 8 million pairs (or one row), and posting
    lists as large as the sets. Cost: one step for every element that two sets have in common.
    """
    n = len(sets)
    _, inverse, frequency = np.unique(sets.values, return_inverse=True, return_counts=True)
    numbers = inverse.astype(np.uint32)
    posting_starts = offsets_of(frequency)
    owners = np.repeat(np.arange(n, dtype=np.uint32), sets.sizes)
    postings = owners[np.argsort(inverse, kind="stable")]
    row_ends = np.cumsum(np.arange(n - 1, 0, -1))  # pairs up to and including each row
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

        run_in_parts(last - first, jobs, rows, least=16)
        yield first, out
        first = last
