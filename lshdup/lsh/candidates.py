"""Band table -> candidate pairs, each once; or the candidates of one signature. Called by pipeline.py.

Documents with identical shingle sets share every bucket, so they are collapsed first: only the first of each class is in the
table, and copies.py gives the answer for all of them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.errors import ArtifactError
from lshdup.kernels import banding as kernels
from lshdup.kernels import ordering, union_find
from lshdup.lsh.band_table import BandTable
from lshdup.utils.ragged import distinct

PairArrays = tuple[NDArray[np.uint32], NDArray[np.uint32]]


class CandidateCounter:
    """Counts candidate pairs as they are handed on."""

    def __init__(self) -> None:
        self.pairs = 0

    def count(self, pieces: Iterable[PairArrays]) -> Iterator[PairArrays]:
        """The same pieces."""
        for left, right in pieces:
            self.pairs += len(left)
            yield left, right


#: Candidate pairs are handed on in pieces of this many, 8 bytes each.
PIECE = 1 << 20


@dataclass(frozen=True)
class Buckets:
    """The largest bucket of a band table, and what was left out because of its size.

    largest : documents in the largest bucket. example : the first of them. skipped : buckets above the limit. documents : how many are in
    at least one of those. pairs : how many pairs they hold, a pair once for each of those buckets it is in; other bands may have met it.
    """

    largest: int = 0
    example: int = 0
    skipped: int = 0
    documents: int = 0
    pairs: int = 0


NO_BUCKETS = Buckets()


def find_exact_duplicates(fingerprints: NDArray[np.uint64]) -> NDArray[np.int64]:
    """For each document the first one with the same shingle set: int64 array of shape (n,). Empty sets are their own."""
    n = len(fingerprints)
    fingerprints = np.asarray(fingerprints)
    order = np.empty(n, np.uint32)
    in_order = np.empty(n, np.uint64)
    ordering.order_by_key(
        fingerprints, np.arange(n), np.empty(2 * n + 2, np.uint32), in_order, order
    )
    duplicate_of = np.empty(n, np.int64)
    kernels.first_of_equal(in_order, order, duplicate_of)
    return duplicate_of


def documents_to_compare(
    duplicate_of: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the documents that take part in comparisons: one of all exact duplicates, if it has shingles.

    Parameters
    ----------
    duplicate_of : int64 array of shape (n,), what `find_exact_duplicates` returns.
    sizes : int64 array of shape (n,), shingles of each document.

    Returns an ascending int64 array.

    """
    return np.flatnonzero((duplicate_of == np.arange(len(duplicate_of))) & (sizes > 0))


def candidate_pairs(
    table: BandTable,
    max_bucket: int = 0,
    on_progress: Callable[[int, int], None] = lambda done, n: None,
) -> tuple[Buckets, Iterator[PairArrays]]:
    """Every pair that shares a bucket, once; pieces of (left, right), uint32 arrays, left < right.

    max_bucket : buckets of more documents are left out; 0: none is. on_progress : told with each piece how many documents of how many have
    been looked up.

    Pairs come cluster by cluster, a cluster being what buckets connect, and within one by left document: whoever fetches
    something for each document finds those that belong together close together.

    Cost: one step a pair and common band, plus two a document and band. Memory: one piece, 5 bytes a document of the collection, and 4
    bytes a band for each document that shares a bucket.
    """
    buckets, root = connect_buckets(table, max_bucket)
    return buckets, _pieces(table, max_bucket, root, on_progress)


def cross_pairs(
    table: BandTable,
    split: int,
    max_bucket: int = 0,
    on_progress: Callable[[int, int], None] = lambda done, n: None,
) -> tuple[Buckets, Iterator[PairArrays]]:
    """The same of the pairs of two sides, left < split <= right: those within a side are not even met.

    max_bucket : of the documents of both sides together. Buckets without documents of both sides are not counted.

    Cost: one step a pair and common band, and two a document and band, however many documents of one side are alike.
    """
    buckets, root = connect_buckets(table, max_bucket, split)
    return buckets, _pieces(table, max_bucket, root, on_progress, split)


def connect_buckets(
    table: BandTable, max_bucket: int = 0, split: int = kernels.NO_SPLIT
) -> tuple[Buckets, NDArray[np.uint32]]:
    """The buckets, and for each document the smallest one that buckets connect it with: uint32 array of shape (n,).

    max_bucket : buckets of more documents are left out; 0: none is. split : only buckets with documents below and from it on count.
    """
    n = table.keys.shape[1]
    parent = np.arange(n, dtype=np.uint32)
    skipped = np.zeros(n, np.uint8)
    tally = np.zeros(4, np.int64)
    for keys, order in zip(table.keys, table.order, strict=True):
        kernels.join_buckets(keys, order, split, max_bucket, parent, skipped, tally)
    union_find.find_roots(parent)
    largest, example, buckets, pairs = tally.tolist()
    return Buckets(largest, example, buckets, int(skipped.sum()), pairs), parent


def _pieces(
    table: BandTable,
    max_bucket: int,
    root: NDArray[np.uint32],
    on_progress: Callable[[int, int], None],
    split: int = kernels.NO_SPLIT,
) -> Iterator[PairArrays]:
    visit = np.flatnonzero(
        np.bincount(root, minlength=len(root))[root[: None if split == kernels.NO_SPLIT else split]]
        > 1
    ).astype(np.uint32)
    visit = visit[np.argsort(root[visit], kind="stable")]
    rows = np.zeros(len(root), np.uint32)
    rows[visit] = np.arange(len(visit), dtype=np.uint32)
    partners_from = np.full((len(visit), len(table.keys)), kernels.NO_PARTNER, np.uint32)
    for band, (keys, order) in enumerate(zip(table.keys, table.order, strict=True)):
        kernels.find_partners(keys, order, split, max_bucket, rows, band, partners_from)
    left, right = np.empty(PIECE, np.uint32), np.empty(PIECE, np.uint32)
    state = np.zeros(3, np.int64)
    while state[0] < len(visit):
        n = kernels.bucket_pairs(table.keys, table.order, visit, partners_from, state, left, right)
        on_progress(int(state[0]), len(visit))
        if n:
            yield left[:n].copy(), right[:n].copy()


def largest_buckets(table: BandTable, wanted: int) -> list[tuple[int, int]]:
    """(documents, the first of them) of the largest buckets of a table, largest first; those with one first document count once.

    Cost: one pass over the keys of each band.
    """
    found: dict[int, int] = {}
    for keys, order in zip(table.keys, table.order, strict=True):
        sizes, smallest = np.zeros(wanted, np.int64), np.zeros(wanted, np.int64)
        kernels.largest_buckets(keys, order, sizes, smallest)
        for size, first in zip(sizes.tolist(), smallest.tolist(), strict=True):
            found[first] = max(size, found.get(first, 0))
    return sorted(
        ((size, first) for first, size in found.items() if size),
        key=lambda each: (-each[0], each[1]),
    )[:wanted]


def candidates_of(
    table: BandTable, keys: NDArray[np.uint64], member: int = -1
) -> NDArray[np.int64]:
    """Documents of the table that share a bucket with keys of shape (bands,): ascending int64 array without repeats.

    member : a document of the table with these keys, if there is one. Of a mapped table nobody has looked at every byte; where a document
    is not found in its own buckets, others would be missed too. Raises ArtifactError then, or if what is found makes no sense.
    """
    buckets = []
    whole = True
    for band, key in enumerate(keys):
        try:
            bucket = table.bucket(band, key).copy()
        except IndexError:
            whole = False
            break
        whole = whole and (member < 0 or bool((bucket == member).any()))
        buckets.append(bucket)
    near = distinct(np.concatenate(buckets))[0].astype(np.int64) if whole else np.zeros(0, np.int64)
    if not whole or (len(near) and near[-1] >= table.keys.shape[1]):
        message = "bands.npz is damaged: its buckets are not in order"
        raise ArtifactError(message, "run `lshdup index` again")
    return near
