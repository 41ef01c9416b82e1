"""Band table -> its buckets of two documents or more -> candidate pairs, each once; or the
candidates of one signature.

Most documents share no bucket. What comes after the table needs the others only, so the keys of the
table are looked at once, one band after the other.

Exact duplicates share every bucket, so only one document of each shingle set is in the table:
m duplicates would make m (m - 1) / 2 pairs. compare/expand_duplicates.py expands the answer to all.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import Key, rows_of, slices_of
from lshdup.base.ragged import StringTable, cut_offsets, distinct, offsets_of
from lshdup.base.run import Run, run_in_parts
from lshdup.base.wording import join_names
from lshdup.errors import ArtifactError, ParameterError
from lshdup.kernels import bands as kernels
from lshdup.kernels.bands import DIGEST_BYTES
from lshdup.kernels.clusters import find_roots, join_buckets
from lshdup.lsh.band_plan import BandPlan, least_agreement
from lshdup.lsh.band_table import (
    BandTable,
    bands_at_least,
    build_band_table,
    scratch_bytes,
    sort_by_key,
)

#: (left, right) of pairs of documents: uint32 arrays of equal length.
PairArrays = tuple[NDArray[np.uint32], NDArray[np.uint32]]

#: Pieces of pairs, and how far each comes.
_Walk = Iterator[tuple[int, PairArrays]]

#: Candidate pairs are yielded in pieces of at most this many, 8 bytes each.
PIECE = 1 << 20

#: Documents whose buckets are looked at together, unless a component is larger.
_BLOCK = 1 << 14

#: Bands that are walked together, each by itself, where a sieve is; and pairs of their pieces that
#: are yielded together, whose documents are read at once.
_BANDS_AT_ONCE, _TOGETHER = 16, 1 << 12

#: Bands of so few rows make many candidates far below the threshold, which a sieve rejects: by so
#: many rows of signatures, with this chance to reject a pair at the threshold.
_FEW_ROWS, _SIEVE_CHANCE = 4, 1e-6

#: A bucket of more documents, or with more pairs, is said before the work: it may take minutes and
#: gigabytes.
_MANY_DOCUMENTS, _MANY_PAIRS = 1000, 1 << 28


@dataclass(frozen=True)
class Buckets:
    """The largest bucket of a band table, and the buckets skipped for their size.

    largest : number of documents in the largest bucket, the one of the most pairs.
    example : the first of them.
    most : number of its pairs.
    skipped : number of buckets above the limit.
    documents : number of documents in at least one skipped bucket.
    pairs : number of pairs in skipped buckets, once for each bucket; other bands may meet them.
    """

    largest: int = 0
    example: int = 0
    skipped: int = 0
    documents: int = 0
    pairs: int = 0
    most: int = 0


NO_BUCKETS = Buckets()

#: In place of the origin of each document (`kernels.bands.differ`): all are compared.
NO_ORIGINS = np.zeros(0, np.uint32)


def say_large_bucket(
    run: Run, buckets: Buckets, names: StringTable, *, clustering: bool = False
) -> None:
    """Say what the largest bucket means for time and memory, if it has many documents.

    names : of all documents. clustering : whether clusters are made of it, or pairs.
    """
    size, pairs = buckets.largest, buckets.most
    if buckets.skipped or (size <= _MANY_DOCUMENTS and pairs < _MANY_PAIRS):
        return
    means = (
        f"quick to group if they are alike; if not, up to {pairs:,} pairs are compared"
        if clustering
        else f"their {pairs:,} pairs are candidates, 16 bytes each if they are found"
    )
    run.say(
        f"a bucket has {size:,} documents: {means}; one is {os.fsdecode(names[buckets.example])};"
        " --ignore-common X or --template FILE compares without what they share, --max-bucket N"
        " leaves such buckets out"
    )


@dataclass(frozen=True)
class Sieve:
    """What two documents of a bucket must have in common to be a candidate pair: `least` rows.

    signatures : of all documents, one matrix or, of two sides, two; empty: nothing is required.
    """

    signatures: tuple[NDArray[np.uint32], ...] = ()
    least: int = 0

    @classmethod
    def of(
        cls, plan: BandPlan, threshold: float, *signatures: NDArray[np.uint32] | None
    ) -> "Sieve":
        """Return the sieve for pairs of this similarity: an open one where bands have many rows.

        Bands of one shape have one sieve, that of the lowest threshold they serve: so what met at
        one threshold is what meets at a higher one.
        """
        if plan.rows > _FEW_ROWS:
            return cls()
        known = tuple(each[:, :DIGEST_BYTES] for each in signatures if each is not None)
        served = (1 - (1 - plan.recall) ** (1 / plan.bands)) ** (1 / plan.rows)
        lowest = min(served, threshold)
        return cls(known, least_agreement(known[0].shape[1], lowest, _SIEVE_CHANCE))

    def digests(self, run: Run, documents: NDArray[np.uint32]) -> tuple[NDArray[np.uint8], int]:
        """Return a byte of each row of documents, and how many must be equal.

        The first is a uint8 array of shape (m, DIGEST_BYTES), or without columns if none must.
        Columns beyond the rows of short signatures are equal in all.
        """
        if not self.least:
            return np.zeros((len(documents), 0), np.uint8), 0
        width = self.signatures[0].shape[1]
        made: NDArray[np.uint8] = run.arrays.zeros((len(documents), DIGEST_BYTES), np.uint8)
        first = 0
        for each in self.signatures:
            last = first + len(each)
            for some in slices_of(len(documents), 4 * width):
                own = (documents[some] >= first) & (documents[some] < last)
                lowest_bytes = each[documents[some][own] - first].astype(np.uint8)
                made[some, :width][own] = lowest_bytes
            first = last
        return made, self.least + DIGEST_BYTES - width


OPEN_SIEVE = Sieve()


@dataclass(frozen=True)
class SharedBuckets:
    """The buckets of n documents that have pairs.

    counts : the largest bucket, and the skipped ones.
    members, ends : for each band the documents of its buckets, bucket by bucket, and where each
        bucket ends in them: uint32 arrays.
    root : uint32 array of shape (n,), for each document the smallest one that buckets connect it
        with.
    """

    counts: Buckets
    members: list[NDArray[np.uint32]]
    ends: list[NDArray[np.uint32]]
    root: NDArray[np.uint32]

    @classmethod
    def of(
        cls,
        run: Run,
        table: BandTable,
        max_bucket: int = 0,
        origins: NDArray[np.uint32] = NO_ORIGINS,
    ) -> "SharedBuckets":
        """Return the buckets of a table, whose keys are let go of.

        max_bucket : larger buckets are skipped; 0: none.
        origins : of `candidate_pairs`; only buckets of several count.

        Cost: a step a document and band. Memory, of the run: 6 bytes a document of the table
        and thread, and 4 an origin; 4 to 6 bytes a document and shared bucket.
        """
        arrays, (bands, m) = run.arrays, table.order.shape
        members: list[NDArray[np.uint32]] = [np.zeros(0, np.uint32)] * bands
        ends = members.copy()
        tallies = np.zeros((bands, 6), np.int64)
        skipped: NDArray[np.bool_] = arrays.zeros(table.documents if max_bucket else 0, np.bool_)

        def look(part: slice) -> None:
            room, stops = arrays.empty(m, np.uint32), arrays.empty(m // 2, np.uint32)
            counts = arrays.zeros(int(origins.max(initial=0)) + 1, np.uint32)
            for band in range(part.start, part.stop):
                tally = tallies[band]
                n = kernels.shared_buckets(
                    table.keys[band], table.order[band], origins, max_bucket, counts, room, stops,
                    tally,
                )  # fmt: skip
                ends[band] = arrays.copy(stops[:n])
                members[band] = arrays.copy(room[: int(stops[n - 1]) if n else 0])
                skipped[room[m - int(tally[4]) :]] = True

        run_in_parts(bands, run.jobs, look, least=bands_at_least(m))
        table.release()
        largest, example, *_, most = tallies[tallies[:, 5].argmax()].tolist() if bands else [0] * 3
        _, _, buckets, pairs, *_ = tallies.sum(axis=0).tolist()
        root: NDArray[np.uint32] = arrays.compute(table.documents, np.uint32, rows_of)
        for each, stops in zip(members, ends, strict=True):
            join_buckets(each, stops, root)
        find_roots(root)
        counts = Buckets(largest, example, buckets, int(np.count_nonzero(skipped)), pairs, most)
        return cls(counts, members, ends, root)


@dataclass(frozen=True)
class Components:
    """Documents that share a bucket, by *position*: component by component.

    A component is the documents that buckets connect.

    documents : uint32 array of shape (m,), by position.
    origins : uint32 array of shape (m,), of each position; empty: all are compared.
    edges : int64 array of shape (components + 1,), the positions where components begin.
    bucket : uint32 array of shape (m, bands), number of the bucket of each position, or NO_BUCKET.
    count : number of buckets.
    digests, least : a byte of each row that the sieve looks at, uint8 array of shape (m, rows); and
        how many must be equal.
    """

    documents: NDArray[np.uint32]
    origins: NDArray[np.uint32]
    edges: NDArray[np.int64]
    bucket: NDArray[np.uint32]
    count: int
    digests: NDArray[np.uint8]
    least: int

    @classmethod
    def of(
        cls,
        run: Run,
        shared: SharedBuckets,
        ordered: NDArray[np.int64] | None = None,
        origins: NDArray[np.uint32] = NO_ORIGINS,
        sieve: Sieve = OPEN_SIEVE,
    ) -> "Components":
        """Arrange the documents of buckets.

        ordered : int64 array, the documents to arrange, as they come within a component; None: all,
            by origin and number, both descending.
        origins : of `candidate_pairs`.
        """
        arrays, root, n = run.arrays, shared.root, len(shared.root)
        shares: NDArray[np.bool_] = arrays.zeros(n, np.bool_)
        for each in shared.members:
            shares[each] = True
        if ordered is None:
            found = arrays.find(shares)[::-1]
        else:
            there = arrays.where(len(ordered), lambda some: shares[ordered[some]])
            found = arrays.take(ordered, there)
        keys: list[Key] = [lambda at: root[found[at]]]
        if ordered is None and len(origins):
            keys.append(lambda at: -origins[found[at]].astype(np.int64))
        order = arrays.order(len(found), keys)
        documents: NDArray[np.uint32] = arrays.compute(
            len(found), np.uint32, lambda some: found[order[some]]
        )
        edges = np.zeros(1, np.int64)
        if len(documents):
            begins = arrays.full(len(documents) + 1, value=True, dtype=np.bool_)
            for some in slices_of(len(documents) - 1):
                later = slice(some.start + 1, some.stop + 1)
                begins[later] = root[documents[later]] != root[documents[some]]
            edges = arrays.find(begins)
        position = arrays.places(documents, n)
        shape = len(documents), len(shared.members)
        bucket = arrays.full(shape, kernels.NO_BUCKET, np.uint32)
        starts = offsets_of(np.array([len(each) for each in shared.ends], np.int64)).tolist()
        for band, (each, ends) in enumerate(zip(shared.members, shared.ends, strict=True)):
            kernels.number_buckets(each, ends, position, band, starts[band], bucket)
        own: NDArray[np.uint32] = arrays.take(origins, documents) if len(origins) else origins
        digests, least = sieve.digests(run, documents)
        return cls(documents, own, edges, bucket, starts[-1], digests, least)

    def list_documents(self, run: Run) -> NDArray[np.int64]:
        """Return the documents: ascending int64 array."""
        listed: NDArray[np.int64] = run.arrays.empty(len(self.documents), np.int64)
        listed[:] = self.documents
        listed.sort()
        return listed


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
    run: Run,
    table: BandTable,
    max_bucket: int = 0,
    origins: NDArray[np.uint32] = NO_ORIGINS,
    sieve: Sieve = OPEN_SIEVE,
) -> Candidates:
    """Return all pairs that share a bucket and pass the sieve, each once, and their buckets.

    Pairs come component by component, a component being the documents that buckets connect, and
    within one by left document, unless there are more than two origins. A stage that fetches data
    for each document thus finds documents that belong together close together.

    max_bucket : larger buckets are skipped; 0: none.
    origins : uint32 array of shape (n,), numbers from 0: documents of one origin are no pair, which
        costs nothing, and buckets of one origin are not counted. Empty: all are compared.

    The pieces are (left, right), uint32 arrays, left < right.

    Cost: one step a pair and common band, two a document and band. Memory: one piece, 9 bytes a
    document of the collection, and 8 bytes a band for each document that shares a bucket; 192 bytes
    more for each of these with a sieve.
    """
    run.progress("candidates", 0, 0)
    shared = SharedBuckets.of(run, table, max_bucket, origins)
    components = Components.of(run, shared, None, origins, sieve)
    documents = components.list_documents(run)
    return Candidates(shared.counts, documents, _pieces(run, components))


def _pieces(run: Run, components: Components) -> Iterator[PairArrays]:
    total, bands = len(components.documents), components.bucket.shape[1]
    latest, others = (run.arrays.full(components.count, kernels.NO_BUCKET, np.uint32) for _ in "12")

    def walk(block: slice, first: int, last: int) -> _Walk:
        """Yield the pairs of some bands, in pieces, and how far they come."""
        documents = components.documents[block]
        before = run.arrays.empty((len(documents), last - first), np.uint32)
        room = PIECE if last - first == bands else PIECE // _BANDS_AT_ONCE + 1
        left, right = np.empty(room, np.uint32), np.empty(room, np.uint32)
        state = np.array([0, first, kernels.NO_BUCKET, first])
        while state[0] < len(documents):
            n = kernels.bucket_pairs(
                documents, components.origins[block], components.bucket[block],
                components.digests[block], components.least, latest, others, before, state, left,
                right,
            )  # fmt: skip
            yield block.start + int(state[0]), (left[:n].copy(), right[:n].copy())

    def advance(walks: list[_Walk], pieces: list[PairArrays | None], part: slice) -> None:
        for at in range(len(walks))[part]:
            _, pieces[at] = next(walks[at], (0, None))

    for whole in cut_offsets(components.edges, _BLOCK):
        block = slice(int(components.edges[whole.start]), int(components.edges[whole.stop]))
        if not components.least:
            for done, pairs in walk(block, 0, bands):
                run.progress("candidates", done, total)
                yield pairs
            continue
        # Few pairs pass a sieve: a band at a time stays in the cache, and small pieces are yielded
        # together, because the documents of a piece are read at once.
        held, room = list[PairArrays](), _TOGETHER
        for start in range(0, bands, _BANDS_AT_ONCE):
            some = range(bands)[start : start + _BANDS_AT_ONCE]
            walks = [walk(block, band, band + 1) for band in some]
            while walks:
                pieces: list[PairArrays | None] = [None] * len(walks)
                run_in_parts(len(walks), run.jobs, partial(advance, walks, pieces), least=1)
                walks = [each for each, piece in zip(walks, pieces, strict=True) if piece]
                for piece in filter(None, pieces):
                    if held and len(piece[0]) > room:
                        yield _join(held)
                        held, room = [], _TOGETHER
                    held.append(piece)
                    room -= len(piece[0])
            done = block.start + (block.stop - block.start) * start // bands
            run.progress("candidates", done, total)
        if held:
            yield _join(held)
    run.progress("candidates", total, total)


def _join(pieces: list[PairArrays]) -> PairArrays:
    left, right = zip(*pieces, strict=True)
    return np.concatenate(left), np.concatenate(right)


def candidates_of(
    table: BandTable, keys: NDArray[np.uint64], member: int = -1
) -> NDArray[np.int64]:
    """Return the documents that share a bucket with keys, ascending: int64 array.

    keys : uint64 array of shape (bands,).
    member : a member of the table with these keys, if there is one. A query does not check a
        mapped table completely; a member missing in its own bucket reveals that it is damaged.

    Raises ArtifactError if the table is damaged.
    """
    _, near = candidates_of_each(table, np.ascontiguousarray(keys[:, np.newaxis]), member)
    table.release()
    return near


def candidates_of_each(
    table: BandTable, keys: NDArray[np.uint64], member: int = -1, jobs: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the documents that share a bucket with each of q documents.

    keys : uint64 array of shape (bands, q). member : of `candidates_of`, of one document.

    Returns (number among the q, document of the table), int64 arrays: all pairs, each once,
    ascending. Raises ArtifactError if the table is damaged.
    """
    bands, q = keys.shape
    message = "bands.npz is damaged: its buckets are not in order"
    damaged = ArtifactError(message, "run `lshdup index` again")
    try:
        counts, documents = table.find(keys, jobs)
    except IndexError:
        raise damaged from None
    of = np.repeat(np.tile(np.arange(q, dtype=np.uint64), bands), counts.ravel())
    pairs = distinct(of << np.uint64(32) | documents)[0]
    near = pairs.astype(np.uint32).astype(np.int64)
    is_missing = member >= 0 and np.count_nonzero(documents == member) < bands
    if is_missing or (len(near) and near.max() >= table.documents):
        raise damaged
    return (pairs >> np.uint64(32)).astype(np.int64), near


# --- the class interface of R1 ---


def row_of(rows: Mapping[str, int], doc: str | int) -> int:
    """Return the row of a document. rows : by name; of a list, 0 is "0".

    Raise KeyError, which says names that there are, for an unknown one.

    >>> row_of({"0": 0, "1": 1}, 1), row_of({"0": 0, "1": 1}, "1")
    (1, 1)
    """
    row = rows.get(str(doc))
    if row is None:
        raise unknown_name(doc, rows)
    return row


def unknown_name(doc: str | int, names: Iterable[str]) -> KeyError:
    """Return the error for a name that no document has. names : of all documents."""
    some = map(repr, islice(names, 11))
    return KeyError(f"no document is called {doc!r}; names: {join_names(some)}")


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
        near = candidates_of(self._table, self._table.keys_of(row))
        return [self._names[other] for other in near.tolist() if other != row]
