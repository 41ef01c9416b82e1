"""Band table -> candidate pairs, each once; or the candidates of one signature. Called by pipeline.py.

Documents with identical shingle sets share every bucket, so they are collapsed first: only the first of each class is in the
table, and `expanded` gives the answer for all of them.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.bands import BandTable
from lshdup.kernels import banding as kernels
from lshdup.ragged import offsets_of, ranges

Pair = tuple[NDArray[np.int64], NDArray[np.int64]]

#: Candidate pairs are handed on in pieces of this many, 16 bytes each: large, because verification fetches sets once a piece.
PIECE = 1 << 22


def first_copies(fingerprints: NDArray[np.uint64]) -> NDArray[np.int64]:
    """For each document the first one with the same shingle set: int64 array of shape (n,). Empty sets are their own."""
    n = len(fingerprints)
    _, first, inverse = np.unique(fingerprints, return_index=True, return_inverse=True)
    firsts = first[inverse.reshape(n)].astype(np.int64)
    empty = fingerprints == 0
    firsts[empty] = np.flatnonzero(empty)
    return firsts


def candidate_pairs(table: BandTable) -> Iterator[Pair]:
    """Every pair that shares a bucket, once, at the first band in which it does; pieces of (left, right), left < right.

    Cost: one step a pair and common band, plus one a document and band. Memory: one piece.
    """
    left = np.empty(PIECE, np.int64)
    right = np.empty(PIECE, np.int64)
    n = 0
    for band in range(len(table.keys)):
        state = np.array([0, 0, 1], np.int64)
        while state[0] < table.order.shape[1]:
            n += kernels.bucket_pairs(table.keys, table.order[band], band, state, left[n:], right[n:])
            if n == PIECE:
                yield left.copy(), right.copy()
                n = 0
    if n:
        yield left[:n].copy(), right[:n].copy()


def candidates_of(table: BandTable, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Documents of the table that share a bucket with keys of shape (bands,): ascending int64 array without repeats."""
    buckets = [table.bucket(band, key) for band, key in enumerate(keys)]
    return np.unique(np.concatenate(buckets)).astype(np.int64)


def expanded(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    similarity: NDArray[np.float64],
    firsts: NDArray[np.int64],
    *,
    collapse: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Pairs of first copies -> pairs of all documents.

    collapse : each further copy is paired with the first of its kind only (m - 1 lines for m equal documents), and no pair between two
    kinds is repeated for their copies. Otherwise every pair of documents is there: m (m - 1) / 2 for m equal ones.
    """
    copies = np.flatnonzero(firsts != np.arange(len(firsts)))
    if collapse or not len(copies):
        ones = np.ones(len(copies))
        return (
            np.concatenate([left, firsts[copies]]),
            np.concatenate([right, copies]),
            np.concatenate([similarity, ones]),
        )
    by_class = np.argsort(firsts, kind="stable")  # classes in order of their first copy, members ascending
    sizes = np.bincount(firsts, minlength=len(firsts))
    starts = offsets_of(sizes)[:-1]
    # Between two classes: every member of one with every member of the other.
    across = sizes[left] * sizes[right]
    step = ranges(np.zeros(len(left), np.int64), across)
    of_pair = np.repeat(np.arange(len(left)), across)
    a = by_class[starts[left[of_pair]] + step // sizes[right[of_pair]]]
    b = by_class[starts[right[of_pair]] + step % sizes[right[of_pair]]]
    # Within a class: each member with those after it.
    place = np.arange(len(firsts)) - np.repeat(starts, sizes)
    after = np.repeat(sizes, sizes) - place - 1
    c = np.repeat(by_class, after)
    d = by_class[ranges(np.arange(len(firsts)) + 1, after)]
    low, high = np.concatenate([a, c]), np.concatenate([b, d])
    return (
        np.minimum(low, high),
        np.maximum(low, high),
        np.concatenate([similarity[of_pair], np.ones(len(c))]),
    )
