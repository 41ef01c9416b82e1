"""Band table -> candidate pairs, each once; or the candidates of one signature.

Exact duplicates share every bucket, so only one document of each shingle set is in the table:
m duplicates would make m (m - 1) / 2 pairs. compare/copies.py expands the answer to all.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import IN_MEMORY, Arrays, rows_of, slices_of
from lshdup.base.ragged import distinct
from lshdup.errors import ArtifactError
from lshdup.kernels import bands as kernels
from lshdup.lsh.band_table import BandTable
from lshdup.lsh.buckets import Buckets, Components, SharedBuckets
from lshdup.lsh.key_order import scratch_bytes, sort_by_key

#: (left, right) of pairs of documents: uint32 arrays of equal length.
PairArrays = tuple[NDArray[np.uint32], NDArray[np.uint32]]

#: Candidate pairs are yielded in pieces of at most this many, 8 bytes each.
PIECE = 1 << 20

#: Documents whose buckets are looked at together, unless a component is larger.
_BLOCK = 1 << 14


class CandidateCounter:
    """A count of the candidate pairs that pass through `count`."""

    pairs = 0

    def count(self, pieces: Iterable[PairArrays]) -> Iterator[PairArrays]:
        """Yield the pieces, and add their pairs to the count."""
        for left, right in pieces:
            self.pairs += len(left)
            yield left, right


def find_exact_duplicates(
    fingerprints: NDArray[np.uint64], arrays: Arrays = IN_MEMORY
) -> NDArray[np.int64]:
    """Return `duplicate_of`: for each document the first one with the same shingle set.

    That document represents its exact duplicates: duplicate_of[d] == d. So does every document
    with an empty set.

    fingerprints : uint64 array of shape (n,), one number for each shingle set; 0 for empty sets.
    arrays : makes the result.

    Returns an int64 array of shape (n,).
    """
    fingerprints = np.asarray(fingerprints)  # A kernel takes no array that is verified lazily.
    n = len(fingerprints)
    order: NDArray[np.uint32] = arrays.empty(n, np.uint32)
    duplicate_of: NDArray[np.int64] = arrays.empty(n, np.int64)
    for part, keys in sort_by_key(fingerprints, None, order, scratch_bytes(arrays.limit)):
        # Equal fingerprints are one run, with the smallest document first; empty sets are no run.
        begins = np.flatnonzero((np.diff(keys, prepend=~keys[:1]) != 0) | (keys == 0))
        firsts = order[part][begins]
        duplicate_of[order[part]] = np.repeat(firsts, np.diff(begins, append=len(keys)))
    return duplicate_of


def documents_to_compare(
    duplicate_of: NDArray[np.int64], sizes: NDArray[np.int64], arrays: Arrays = IN_MEMORY
) -> NDArray[np.int64]:
    """Return the documents that are compared: one of all exact duplicates, if it has shingles.

    duplicate_of : int64 array of shape (n,), of `find_exact_duplicates`.
    sizes : int64 array of shape (n,), number of shingles of each document.
    arrays : makes the result.

    Returns an ascending int64 array.
    """

    def is_compared(some: slice) -> NDArray[np.bool_]:
        is_first: NDArray[np.bool_] = duplicate_of[some] == rows_of(some)
        return is_first & (np.asarray(sizes[some]) > 0)

    return arrays.where(len(duplicate_of), is_compared)


def candidate_pairs(
    table: BandTable,
    max_bucket: int = 0,
    on_progress: Callable[[int, int], None] = lambda done, n: None,
    split: int = kernels.NO_SPLIT,
    jobs: int = 1,
    on_documents: Callable[[NDArray[np.int64]], None] = lambda _: None,
    arrays: Arrays = IN_MEMORY,
) -> tuple[Buckets, Iterator[PairArrays]]:
    """Return the buckets, and an iterator over all pairs that share a bucket, each once.

    Pairs come component by component, a component being the documents that buckets connect, and
    within one by left document. A stage that fetches data for each document thus finds documents
    that belong together close together.

    max_bucket : larger buckets are skipped; 0: none.
    on_progress : called with each piece: documents looked up, of how many.
    split : if set, only pairs of two sides: left < split <= right. Buckets of one side are not
        counted, and pairs within a side cost nothing.
    on_documents : called with the documents that share a bucket, ascending, before any pair.
    arrays : makes the arrays of the documents that share a bucket.

    Yields pieces of (left, right), uint32 arrays, left < right.

    Cost: one step a pair and common band, two a document and band. Memory: one piece, 9 bytes a
    document of the collection, and 8 bytes a band for each document that shares a bucket.
    """
    shared = SharedBuckets.of(table, max_bucket, split, jobs, arrays)
    components = Components.of(shared, arrays=arrays)
    on_documents(components.list_documents(arrays))
    return shared.counts, _pieces(components, on_progress, split, arrays)


def _pieces(
    components: Components, on_progress: Callable[[int, int], None], split: int, arrays: Arrays
) -> Iterator[PairArrays]:
    heads = arrays.full(components.count, kernels.NO_BUCKET, np.uint32)
    left, right = np.empty(PIECE, np.uint32), np.empty(PIECE, np.uint32)
    n = 0
    for block in components.blocks(_BLOCK):
        documents, bucket = components.documents[block], components.bucket[block]
        following = arrays.empty(bucket.shape, np.uint32)
        kernels.link_partners(documents, bucket, split, heads, following)
        state = np.zeros(3, np.int64)
        while state[0] < len(documents):
            n += kernels.bucket_pairs(
                documents, bucket, following, split, state, left[n:], right[n:]
            )
            if state[0] < len(documents):
                on_progress(block.start + int(state[0]), len(components.documents))
                yield left[:n].copy(), right[:n].copy()
                n = 0
    on_progress(len(components.documents), len(components.documents))
    if n:
        yield left[:n].copy(), right[:n].copy()


def largest_buckets(table: BandTable, wanted: int) -> list[tuple[int, int]]:
    """Return (size, smallest document) of the `wanted` largest buckets, largest first.

    Buckets with the same smallest document count once. Cost: a pass over the keys of each band.
    """
    size_of: dict[int, int] = {}
    for keys, order in zip(table.keys, table.order, strict=True):
        for size, begin in _largest_runs(keys, order, wanted):
            document = int(order[begin])
            size_of[document] = max(size, size_of.get(document, 0))
    buckets = [(size, document) for document, size in size_of.items()]
    return sorted(buckets, key=lambda bucket: (-bucket[0], bucket[1]))[:wanted]


def _largest_runs(
    keys: NDArray[np.uint64], order: NDArray[np.uint32], wanted: int
) -> list[tuple[int, int]]:
    """Return (size, begin) of the `wanted` largest runs of equal keys, of equal sizes the first."""
    largest: list[tuple[int, int]] = []
    start, before = 0, None
    for some in [*slices_of(len(order)), slice(len(order), len(order))]:
        part = keys[order[some]]
        edges = np.flatnonzero(part[1:] != part[:-1]) + some.start + 1
        if before is None or not len(part) or part[0] != before:
            edges = np.concatenate([[some.start], edges])
        begins = np.concatenate([[start], edges]).astype(np.int64)
        sizes = np.diff(begins)
        top = np.argsort(-sizes, kind="stable")[:wanted]
        largest += zip(sizes[top].tolist(), begins[top].tolist(), strict=True)
        largest = sorted(largest, key=lambda run: (-run[0], run[1]))[:wanted]
        start, before = int(begins[-1]), part[-1] if len(part) else None
    return [run for run in largest if run[0]]


def candidates_of(
    table: BandTable, keys: NDArray[np.uint64], member: int = -1
) -> NDArray[np.int64]:
    """Return the documents that share a bucket with keys, ascending: int64 array.

    keys : uint64 array of shape (bands,).
    member : a member of the table with these keys, if there is one. A query does not check a
        mapped table completely; a member missing in its own bucket reveals that it is damaged.

    Raises ArtifactError if the table is damaged.
    """
    message = "bands.npz is damaged: its buckets are not in order"
    damaged = ArtifactError(message, "run `lshdup index` again")
    try:
        buckets = [table.bucket(band, key).copy() for band, key in enumerate(keys)]
    except IndexError:
        raise damaged from None
    if member >= 0 and not all((bucket == member).any() for bucket in buckets):
        raise damaged
    near = distinct(np.concatenate(buckets))[0].astype(np.int64)
    if len(near) and near[-1] >= table.documents:
        raise damaged
    return near
