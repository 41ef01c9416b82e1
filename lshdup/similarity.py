"""Exact Jaccard similarity of pairs, and of all pairs. Called by pipeline.py and accuracy.py.

Exact means |A ∩ B| / |A ∪ B| of the 64-bit shingle sets, divided once in double precision.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import sets as kernels
from lshdup.ragged import RaggedSets

#: Sets for at most this many bytes of shingles are held at a time.
SET_BYTES = 512 << 20

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
    cuts = np.linspace(0, len(left), jobs * 4 + 1).astype(np.int64) if jobs > 1 and len(left) > 1024 else [0, len(left)]

    def part(start: int, end: int) -> None:
        kernels.pair_jaccard(sets.values, sets.offsets, left[start:end], right[start:end], out[start:end])

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(part, cuts[:-1], cuts[1:]))
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

    Memory: one piece, at most about 8 million pairs (or one row). Rows are in order; pair (i, j), i < j, follows (i, j - 1).
    """
    n = len(sets)
    first = 0
    with ThreadPoolExecutor(jobs) as pool:
        while first < n - 1:
            last, pairs = first, 0
            while last < n - 1 and (last == first or pairs + n - 1 - last <= 1 << 23):
                pairs += n - 1 - last
                last += 1
            rows = np.arange(first, last)
            ends = np.cumsum(n - 1 - rows)
            out = np.empty(pairs, np.float64)

            def part(rows: NDArray[np.int64], out: NDArray[np.float64] = out, base: int = first, ends: NDArray[np.int64] = ends) -> None:
                if len(rows):
                    at, end = int(ends[rows[0] - base]) - (n - 1 - int(rows[0])), int(ends[rows[-1] - base])
                    kernels.all_pairs_jaccard(sets.values, sets.offsets, int(rows[0]), int(rows[-1]) + 1, out[at:end])

            list(pool.map(part, np.array_split(rows, jobs * 8)))
            yield first, out
            first = last
