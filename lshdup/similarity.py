"""Exact Jaccard similarity of pairs, and of all pairs. Called by pipeline.py and accuracy.py.

Exact means |A ∩ B| / |A ∪ B| of the 64-bit shingle sets, divided once in double precision.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import sets as kernels
from lshdup.parallel import in_parts
from lshdup.ragged import RaggedSets, offsets_of

#: Sets for at most this many bytes of shingles are held at a time.
SET_BYTES = 512 << 20

#: Pairs in one piece of all pairs: 8 bytes each.
PAIRS_AT_ONCE = 1 << 23

#: Gives the shingle sets of some documents (ascending int64 array); a document whose set can no longer be had is an empty set.
SetSource = Callable[[NDArray[np.int64]], RaggedSets]


@dataclass(frozen=True)
class Pairs:
    """Pairs of documents with their similarity.

    left, right : int64 arrays of shape (n_pairs,), numbers of documents, left < right. similarity : float64 array of shape (n_pairs,).
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    similarity: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.left)

    def ordered(self) -> "Pairs":
        """By similarity descending, then by left and right ascending: the order of every output."""
        order = np.lexsort((self.right, self.left, -self.similarity))
        return Pairs(self.left[order], self.right[order], self.similarity[order])


def jaccard(sets: RaggedSets, left: NDArray[np.int64], right: NDArray[np.int64], jobs: int = 1) -> NDArray[np.float64]:
    """float64 array: similarity of sets left[i] and right[i]; 0 where both are empty. Cost: about 1 ns an element.

    >>> sets = RaggedSets.from_sets([{1, 2, 3}, {1, 3}, {3}])
    >>> jaccard(sets, np.array([0, 0]), np.array([1, 2])).round(4).tolist()
    [0.6667, 0.3333]
    """
    out = np.empty(len(left), np.float64)
    in_parts(len(left), jobs, lambda part: kernels.pair_jaccard(sets.values, sets.offsets, left[part], right[part], out[part]))
    return out


def verified(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    sizes: NDArray[np.int64],
    source: SetSource,
    threshold: float,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> Pairs:
    """Those candidate pairs whose exact similarity is at least the threshold.

    sizes : int64 array over all documents, elements of each set. Sets are fetched for a block of pairs at a time, pairs ordered by
    document, so that a set is fetched a few times at most and memory stays below about SET_BYTES.
    """
    # Length filter: J <= smaller / larger.
    small, large = np.minimum(sizes[left], sizes[right]), np.maximum(sizes[left], sizes[right])
    possible = small >= threshold * large * (1 - 1e-12)
    left, right = left[possible], right[possible]
    order = np.lexsort((right, left))
    left, right = left[order], right[order]
    parts = []
    for start, end in _blocks(left, right, sizes):
        a, b = left[start:end], right[start:end]
        wanted = np.unique(np.concatenate([a, b]))
        found = jaccard(source(wanted), np.searchsorted(wanted, a), np.searchsorted(wanted, b), jobs)
        keep = found >= threshold
        parts.append(Pairs(a[keep], b[keep], found[keep]))
        progress(end - start)
    return concatenated(parts)


def concatenated(parts: Sequence[Pairs]) -> Pairs:
    """All pairs of all parts, in order."""
    none = np.zeros(0, np.int64)
    return Pairs(
        np.concatenate([none, *(part.left for part in parts)]),
        np.concatenate([none, *(part.right for part in parts)]),
        np.concatenate([np.zeros(0), *(part.similarity for part in parts)]),
    )


def _blocks(left: NDArray[np.int64], right: NDArray[np.int64], sizes: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Cut ordered pairs so that the sets of one block fit into SET_BYTES."""
    start = 0
    while start < len(left):
        end = len(left)
        while end - start > 1:
            wanted = np.unique(np.concatenate([left[start:end], right[start:end]]))
            if 8 * int(sizes[wanted].sum()) <= SET_BYTES:
                break
            end = start + (end - start + 1) // 2
        yield start, end
        start = end


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

        def rows(part: slice, out: NDArray[np.float64] = out, first: int = first, before: int = before) -> None:
            start, end = first + part.start, first + part.stop
            at = (int(row_ends[start - 1]) if start else 0) - before
            common = np.empty(n, np.int32)
            kernels.all_pairs_jaccard(
                numbers, sets.offsets, posting_starts, postings, start, end, common, out[at : int(row_ends[end - 1]) - before]
            )

        in_parts(last - first, jobs, rows, least=16)
        yield first, out
        first = last
