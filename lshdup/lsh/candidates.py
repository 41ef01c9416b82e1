"""Band table -> candidate pairs, each once; or the candidates of one signature.

Exact duplicates share every bucket, so only one document of each shingle set is in the table:
m duplicates would make m (m - 1) / 2 pairs. compare/expand_duplicates.py expands the answer to all.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import rows_of, slices_of
from lshdup.base.ragged import distinct
from lshdup.base.run import Run
from lshdup.base.wording import join_names
from lshdup.errors import ArtifactError, ParameterError
from lshdup.kernels import bands as kernels
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.band_table import BandTable, build_band_table, scratch_bytes, sort_by_key
from lshdup.lsh.buckets import Buckets, Components, SharedBuckets

#: (left, right) of pairs of documents: uint32 arrays of equal length.
PairArrays = tuple[NDArray[np.uint32], NDArray[np.uint32]]

#: Candidate pairs are yielded in pieces of at most this many, 8 bytes each.
PIECE = 1 << 20

#: Documents whose buckets are looked at together, unless a component is larger.
_BLOCK = 1 << 14


@dataclass(frozen=True)
class Candidates:
    """Candidate pairs of a band table, before the first of them is made.

    buckets : the buckets they come from.
    documents : ascending int64 array, the documents that share a bucket.
    pieces : yields the pairs, once.
    """

    buckets: Buckets
    documents: NDArray[np.int64]
    pieces: Iterator[PairArrays]


class CandidateCounter:
    """A count of the candidate pairs that pass through `count`."""

    pairs = 0

    def count(self, pieces: Iterable[PairArrays]) -> Iterator[PairArrays]:
        """Yield the pieces, and add their pairs to the count."""
        for left, right in pieces:
            self.pairs += len(left)
            yield left, right


def find_exact_duplicates(run: Run, fingerprints: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return `duplicate_of`: for each document the first one with the same shingle set.

    That document represents its exact duplicates: duplicate_of[d] == d. So does every document
    with an empty set.

    fingerprints : uint64 array of shape (n,), one number for each shingle set; 0 for empty sets.

    Returns an int64 array of shape (n,).
    """
    n = len(fingerprints)
    order: NDArray[np.uint32] = run.arrays.empty(n, np.uint32)
    duplicate_of: NDArray[np.int64] = run.arrays.empty(n, np.int64)
    for part, keys in sort_by_key(fingerprints, None, order, scratch_bytes(run)):
        # Equal fingerprints are one run, with the smallest document first; empty sets are no run.
        begins = np.flatnonzero((np.diff(keys, prepend=~keys[:1]) != 0) | (keys == 0))
        firsts = order[part][begins]
        duplicate_of[order[part]] = np.repeat(firsts, np.diff(begins, append=len(keys)))
    return duplicate_of


def documents_to_compare(
    run: Run, duplicate_of: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the documents that are compared: one of all exact duplicates, if it has shingles.

    duplicate_of : int64 array of shape (n,), of `find_exact_duplicates`.
    sizes : int64 array of shape (n,), number of shingles of each document.

    Returns an ascending int64 array.
    """

    def is_compared(some: slice) -> NDArray[np.bool_]:
        is_first: NDArray[np.bool_] = duplicate_of[some] == rows_of(some)
        return is_first & (np.asarray(sizes[some]) > 0)

    return run.arrays.where(len(duplicate_of), is_compared)


def candidate_pairs(
    run: Run, table: BandTable, max_bucket: int = 0, split: int = kernels.NO_SPLIT
) -> Candidates:
    """Return all pairs that share a bucket, each once, and their buckets.

    Pairs come component by component, a component being the documents that buckets connect, and
    within one by left document. A stage that fetches data for each document thus finds documents
    that belong together close together.

    max_bucket : larger buckets are skipped; 0: none.
    split : if set, only pairs of two sides: left < split <= right. Buckets of one side are not
        counted, and pairs within a side cost nothing.

    The pieces are (left, right), uint32 arrays, left < right.

    Cost: one step a pair and common band, two a document and band. Memory: one piece, 9 bytes a
    document of the collection, and 8 bytes a band for each document that shares a bucket.
    """
    run.progress("candidates", 0, 0)
    shared = SharedBuckets.of(run, table, max_bucket, split)
    components = Components.of(run, shared)
    documents = components.list_documents(run)
    return Candidates(shared.counts, documents, _pieces(run, components, split))


def _pieces(run: Run, components: Components, split: int) -> Iterator[PairArrays]:
    arrays, total = run.arrays, len(components.documents)
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
                run.progress("candidates", block.start + int(state[0]), total)
                yield left[:n].copy(), right[:n].copy()
                n = 0
    run.progress("candidates", total, total)
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
        buckets = [table.bucket(band, key) for band, key in enumerate(keys)]
    except IndexError:
        raise damaged from None
    if member >= 0 and not all((bucket == member).any() for bucket in buckets):
        raise damaged
    near = distinct(np.concatenate(buckets))[0].astype(np.int64)
    if len(near) and near[-1] >= table.documents:
        raise damaged
    return near


# --- the class interface of R1 ---


def row_of(rows: Mapping[str, int], doc: str | int) -> int:
    """Return the row of a document. rows : by name; of a list, 0 is "0".

    Raise KeyError, which says names that there are, for an unknown one.

    >>> row_of({"0": 0, "1": 1}, 1), row_of({"0": 0, "1": 1}, "1")
    (1, 1)
    """
    row = rows.get(str(doc))
    if row is None:
        message = f"no document is called {doc!r}; names: {join_names(map(repr, rows))}"
        raise KeyError(message)
    return row


class LSH:
    """Banded hash tables over a signature matrix.

    Parameters
    ----------
    minhash_matrix : uint32 array of shape (K, n_docs), one signature a column, for instance
        `MinHash.minhash_matrix()`.
    doc_names : n_docs names, in the order of the columns.
    bands : b; each has K // b rows. More bands: more recall, more candidates, larger tables.
    buckets : number of buckets that the 64-bit keys of a band are folded into (R1: the smallest
        prime >= n_docs); 0: whole keys.

    Errors: ParameterError if shapes do not fit or there are more bands than rows.

    >>> matrix = np.array([[1, 1, 7], [2, 2, 8], [3, 9, 9], [4, 9, 9]], np.uint32)
    >>> LSH(matrix, ["a", "b", "c"], bands=2).near_duplicates_of("b")
    ['a', 'c']

    """

    def __init__(
        self,
        minhash_matrix: NDArray[np.uint32],
        doc_names: Iterable[str],
        bands: int,
        *,
        buckets: int = 0,
    ) -> None:
        self._names = list(doc_names)
        self._rows = {name: row for row, name in enumerate(self._names)}
        matrix = np.asarray(minhash_matrix, np.uint32)
        if matrix.ndim != 2 or matrix.shape[1] != len(self._names):
            message = (
                f"a matrix of shape {matrix.shape} does not fit {len(self._names)} names: one"
                " column a document is needed"
            )
            raise ParameterError(message, "give minhash.minhash_matrix() and minhash.all_docs()")
        perms = matrix.shape[0]
        if not 1 <= bands <= perms:
            message = f"{bands} bands of {perms} rows: there must be 1 to {perms}"
            raise ParameterError(message, "use fewer bands or more permutations")
        self.plan = BandPlan(bands, perms // bands, 1.0, 0.0, buckets)
        signatures = np.ascontiguousarray(matrix.T)
        # A column of 2^32 - 1 is a document without tokens: it has no near-duplicates.
        members = np.flatnonzero((signatures != 0xFFFFFFFF).any(axis=1))
        self._table = build_band_table(Run.quiet(), signatures, members, self.plan)
        self._members = members

    def near_duplicates_of(self, doc: str | int) -> list[str]:
        """Return the other documents in the buckets of a document, in the order of the columns."""
        row = row_of(self._rows, doc)
        if row not in self._members:
            return []
        near = candidates_of(self._table, np.ascontiguousarray(self._table.keys[:, row]))
        return [self._names[other] for other in near.tolist() if other != row]
