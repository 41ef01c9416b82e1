"""The main path: documents -> shingle sets -> signatures -> band table -> candidates -> verified pairs.

Read `collect`, `banded` and `near_duplicates`: they are the table of contents. Knows no terminal and no store; takes what an earlier run
left behind as `Previous`, and a callback for progress.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lshdup import bands, candidates, exactjoin, similarity
from lshdup.artifacts import Spool
from lshdup.bands import BandPlan, BandTable
from lshdup.documents import DocumentList, LeftOut, Reason, batches, read_batch
from lshdup.errors import ParameterError
from lshdup.params import BandParams, ShingleParams, SketchParams
from lshdup.ragged import RaggedSets
from lshdup.shingles import Shingler, fingerprints
from lshdup.signatures import Sketcher, estimate, linear_signatures
from lshdup.similarity import Pairs, SetSource

#: Told (stage, steps done, steps in all) every now and then.
Progress = Callable[[str, int, int], None]


def no_progress(stage: str, done: int, total: int) -> None:
    """For callers that do not want to know."""


@dataclass(frozen=True)
class LeftOutFile:
    """A file that was read and is no document; remembered, so that it is not read again while it is unchanged."""

    left_out: LeftOut
    size: int
    mtime: int


@dataclass(frozen=True)
class Collection:
    """The documents of a run and what was made of them.

    documents : the n documents that could be read, those without tokens too. sizes : int64 array of shape (n,), shingles of each.
    fingerprints : uint64 array of shape (n,), of the shingle sets. left_out : files that were read and are no documents. sets : the
    shingle sets, if they were kept. signatures : uint32 array of shape (n, K), if they were made, by `sketch`. guessed : number and
    encoding of documents whose encoding was detected in this run. read : how many documents were read in this run.
    """

    documents: DocumentList
    shingle: ShingleParams
    sizes: NDArray[np.int64]
    fingerprints: NDArray[np.uint64]
    left_out: tuple[LeftOutFile, ...] = ()
    sets: RaggedSets | None = None
    sketch: SketchParams | None = None
    signatures: NDArray[np.uint32] | None = None
    guessed: tuple[tuple[bytes, str], ...] = ()
    read: int = 0

    @property
    def firsts(self) -> NDArray[np.int64]:
        """For each document the first with the same shingle set: int64 array of shape (n,)."""
        return candidates.first_copies(self.fingerprints)


@dataclass(frozen=True)
class Previous:
    """What an earlier run knows about these documents.

    rows : int64 array over the new documents: the row of each in `collection` if it is unchanged, else -1. left_out : names of unchanged
    files that are no documents, and what is known about them.
    """

    collection: Collection
    rows: NDArray[np.int64]
    left_out: dict[bytes, LeftOutFile] = field(default_factory=dict)


# --- documents -> shingle sets -> signatures ------------------------------------------------------------------------------


@dataclass
class _Done:
    """One finished batch."""

    indices: NDArray[np.int64]
    sets: RaggedSets
    fingerprints: NDArray[np.uint64]
    signatures: NDArray[np.uint32] | None
    left_out: list[tuple[int, Reason, str]]
    guessed: list[tuple[int, str]]


def collect(
    documents: DocumentList,
    shingle: ShingleParams,
    sketch: SketchParams | None = None,
    *,
    jobs: int = 1,
    previous: Previous | None = None,
    keep: Spool | int = 0,
    progress: Progress = no_progress,
) -> Collection:
    """Read documents, make their shingle sets and, if `sketch` is given, their signatures.

    keep : what becomes of the sets: a spool keeps all of them on disk; a number keeps them in memory if they fit into so many bytes.
    previous : unchanged documents are taken from there instead of being read.

    Determinism: the same at any number of jobs. Memory: signatures, two batches a thread, and what `keep` says.
    """
    n = len(documents)
    linear = sketch is not None and sketch.scheme == "linear"
    if linear:  # needs all sets at once
        keep = keep if isinstance(keep, Spool) else 1 << 62
    sketcher = Sketcher(sketch) if sketch is not None and not linear else None
    sizes = np.zeros(n, np.int64)
    prints = np.zeros(n, np.uint64)
    signatures = np.empty((n, sketch.perms), np.uint32) if sketcher and sketch else None
    known = np.zeros(n, bool)
    present = np.ones(n, bool)
    left_out: list[LeftOutFile] = []
    if previous is not None:
        known = _take_over(previous, documents, sizes, prints, signatures, sketcher, present, left_out)
    todo = np.flatnonzero(~known & present)
    keeper = _SetKeeper(keep)
    if previous is not None and known.any():
        keeper.reuse(previous.collection.sets, np.flatnonzero(known), previous.rows[known])
    guessed: list[tuple[bytes, str]] = []
    done = 0
    for batch in _batches_done(documents, todo, shingle, sketcher, jobs):
        sizes[batch.indices] = batch.sets.sizes
        prints[batch.indices] = batch.fingerprints
        if signatures is not None and batch.signatures is not None:
            signatures[batch.indices] = batch.signatures
        keeper.add(batch.indices, batch.sets)
        for index, reason, detail in batch.left_out:
            present[index] = False
            out = LeftOut(documents.names[index], reason, detail)
            left_out.append(LeftOutFile(out, int(documents.sizes[index]), int(documents.mtimes[index])))
        guessed += [(documents.names[index], encoding) for index, encoding in batch.guessed]
        done += len(batch.indices) + len(batch.left_out)
        progress("documents", done, len(todo))
    sets = keeper.finish(present)
    if not present.all():
        rows = np.flatnonzero(present)
        documents, sizes, prints = documents.take(rows), sizes[rows], prints[rows]
        signatures = signatures[rows] if signatures is not None else None
    left_out.sort(key=lambda each: each.left_out.name)
    collection = Collection(
        documents, shingle, sizes, prints, tuple(left_out), sets, sketch, signatures, tuple(sorted(guessed)), len(todo)
    )
    return sketched(collection, sketch, jobs) if linear and sketch else collection


def sketched(collection: Collection, sketch: SketchParams, jobs: int = 1) -> Collection:
    """The collection with signatures made from the sets it holds."""
    sets = collection.sets
    assert sets is not None
    if sketch.scheme == "linear":
        try:
            signatures = linear_signatures(sets, sketch)
        except ValueError as error:
            raise ParameterError(str(error), "use fewer --perms, or another --scheme") from None
        return replace(collection, sketch=sketch, signatures=signatures)
    sketcher = Sketcher(sketch)
    signatures = np.empty((len(sets), sketch.perms), np.uint32)

    def part(start: int) -> None:
        end = min(start + 4096, len(sets))
        signatures[start:end] = sketcher.sketch(RaggedSets(sets.values, sets.offsets[start : end + 1]))

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(part, range(0, len(sets), 4096)))
    return replace(collection, sketch=sketch, signatures=signatures)


def _take_over(
    previous: Previous,
    documents: DocumentList,
    sizes: NDArray[np.int64],
    prints: NDArray[np.uint64],
    signatures: NDArray[np.uint32] | None,
    sketcher: Sketcher | None,
    present: NDArray[np.bool_],
    left_out: list[LeftOutFile],
) -> NDArray[np.bool_]:
    """Fill in what the earlier run knows; returns which documents need not be read."""
    old = previous.collection
    known = previous.rows >= 0
    rows = previous.rows[known]
    if signatures is not None and sketcher is not None and len(rows):
        if old.signatures is not None and old.sketch == sketcher.params:
            signatures[known] = old.signatures[rows]
        elif old.sets is not None:
            signatures[known] = sketcher.sketch(old.sets.take(rows))
        else:
            known[:] = False
            rows = rows[:0]
    sizes[known] = old.sizes[rows]
    prints[known] = old.fingerprints[rows]
    if previous.left_out:
        for index, name in enumerate(documents.names):
            if name in previous.left_out:
                present[index] = False
                left_out.append(previous.left_out[name])
    return known


class _SetKeeper:
    """Keeps the sets of a run, in document order, in a spool or in memory; gives up when they outgrow it."""

    def __init__(self, keep: Spool | int) -> None:
        self._spool = keep if isinstance(keep, Spool) else None
        self._room = keep if isinstance(keep, int) else 1 << 62
        self._parts: list[RaggedSets] | None = [] if self._room else None
        self._indices: list[NDArray[np.int64]] = []

    def reuse(self, sets: RaggedSets | None, indices: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Take the sets of unchanged documents over; without them, not all sets can be had."""
        if sets is None or 8 * int(sets.sizes[rows].sum()) > self._room:
            self._parts = None
        else:
            self.add(indices, sets if np.array_equal(rows, np.arange(len(sets))) else sets.take(rows))

    def add(self, indices: NDArray[np.int64], sets: RaggedSets) -> None:
        if self._parts is None:
            return
        self._room -= sets.values.nbytes
        if self._room < 0:
            self._parts = None
            return
        if self._spool is not None:
            self._spool.append(sets.values)
            sets = RaggedSets(np.zeros(0, np.uint64), sets.offsets)
        self._parts.append(sets)
        self._indices.append(indices)

    def finish(self, present: NDArray[np.bool_]) -> RaggedSets | None:
        """All sets in document order; those of documents that are not present are left out."""
        if self._parts is None:
            return None
        if self._spool is not None:
            sizes = np.concatenate([np.zeros(0, np.int64), *(part.sizes for part in self._parts)])
            sets = RaggedSets.from_sizes(self._spool.values(), sizes)
        else:
            sets = RaggedSets.concatenate(self._parts)
        indices = np.concatenate([np.zeros(0, np.int64), *self._indices])
        order = np.argsort(indices, kind="stable")
        return sets if np.array_equal(order, np.arange(len(order))) else sets.take(order)


def _batches_done(
    documents: DocumentList,
    todo: NDArray[np.int64],
    shingle: ShingleParams,
    sketcher: Sketcher | None,
    jobs: int,
) -> Iterator[_Done]:
    """Finished batches in order. Each thread reads, shingles and sketches its own batch; two a thread are under way."""
    local = threading.local()

    def work(indices: NDArray[np.int64]) -> _Done:
        if not hasattr(local, "shingler"):
            local.shingler = Shingler(shingle)
        batch = read_batch(documents, indices)
        made = local.shingler.shingle(batch, [documents.names[i] for i in batch.indices.tolist()])
        signatures = sketcher.sketch(made.sets) if sketcher is not None else None
        return _Done(made.indices, made.sets, fingerprints(made.sets), signatures, made.left_out, made.guessed)

    with ThreadPoolExecutor(jobs) as pool:
        under_way: deque[Future[_Done]] = deque()
        try:
            for indices in batches(documents, todo):
                under_way.append(pool.submit(work, indices))
                if len(under_way) > 2 * jobs:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()


# --- shingle sets again, for verification -----------------------------------------------------------------------------------


def set_source(
    collection: Collection, jobs: int, on_left_out: Callable[[LeftOut], None], kept: RaggedSets | None = None
) -> SetSource:
    """Where verification gets shingle sets: from memory or a mapped artifact, else by reading the documents again.

    A document that cannot be read again, or whose set is another one now, is reported once and has an empty set: its pairs are not in
    the answer, rather than wrong in it.
    """
    sets = collection.sets if collection.sets is not None else kept
    if sets is not None:
        return sets.take
    reported: set[int] = set()

    def report(index: int, reason: Reason, detail: str) -> None:
        if index not in reported:
            reported.add(index)
            on_left_out(LeftOut(collection.documents.names[index], reason, detail))

    def read_again(wanted: NDArray[np.int64]) -> RaggedSets:
        parts: list[RaggedSets] = []
        found: list[NDArray[np.int64]] = []
        for batch in _batches_done(collection.documents, wanted, collection.shingle, None, jobs):
            same = batch.fingerprints == collection.fingerprints[batch.indices]
            for index in batch.indices[~same].tolist():
                report(index, Reason.CHANGED, "it is not what was indexed")
            for index, reason, detail in batch.left_out:
                report(index, reason, detail)
            parts.append(batch.sets.take(np.flatnonzero(same)))
            found.append(batch.indices[same])
        sets = RaggedSets.concatenate(parts)
        sizes = np.zeros(len(wanted), np.int64)
        sizes[np.searchsorted(wanted, np.concatenate([np.zeros(0, np.int64), *found]))] = sets.sizes
        return RaggedSets.from_sizes(sets.values, sizes)

    return read_again


# --- signatures -> band table -> pairs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Banded:
    """A collection's band table over the first copies of its documents, the plan it was made by, and each document's first copy."""

    plan: BandPlan
    table: BandTable
    firsts: NDArray[np.int64]


def members(collection: Collection, firsts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Documents that take part in comparisons: the first of each kind that has tokens; ascending int64 array."""
    return np.flatnonzero((firsts == np.arange(len(firsts))) & (collection.sizes > 0))


def banded(collection: Collection, params: BandParams) -> Banded:
    """Plan the bands and make the table. Raises ParameterError if no plan keeps the promise."""
    assert collection.signatures is not None
    plan = bands.plan_bands(collection.signatures.shape[1], params)
    firsts = collection.firsts
    return Banded(plan, bands.band_table(collection.signatures, members(collection, firsts), plan), firsts)


@dataclass(frozen=True)
class Found:
    """Verified pairs in output order, and how many candidate pairs there were (-1 if all pairs were joined exactly)."""

    pairs: Pairs
    candidates: int


def near_duplicates(
    collection: Collection,
    made: Banded,
    source: SetSource,
    threshold: float,
    *,
    verify: str = "exact",
    collapse: bool = False,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Found:
    """All pairs at or above the threshold among the candidates.

    verify : "exact" prints |A ∩ B| / |A ∪ B|, "estimate" the share of agreeing rows. collapse : each further copy once, beside the
    first of its kind.
    """
    parts: list[Pairs] = []
    met = 0
    for left, right in candidates.candidate_pairs(made.table):
        met += len(left)
        progress("candidates", met, 0)
        if verify == "estimate":
            assert collection.signatures is not None
            found = estimate(collection.signatures, left, right).similarity
            keep = found >= threshold
            parts.append(Pairs(left[keep], right[keep], found[keep]))
        else:
            parts.append(similarity.verified(left, right, collection.sizes, source, threshold, jobs))
    return Found(_all_copies(parts, made.firsts, collapse), met)


def exact_near_duplicates(
    collection: Collection, sets: RaggedSets, threshold: float, *, collapse: bool = False
) -> Found:
    """All pairs at or above the threshold, no misses, by the prefix-filter join over the sets."""
    firsts = collection.firsts
    joined = exactjoin.exact_pairs(sets, members(collection, firsts), threshold)
    return Found(_all_copies([Pairs(*part) for part in joined], firsts, collapse), -1)


def _all_copies(parts: list[Pairs], firsts: NDArray[np.int64], collapse: bool) -> Pairs:
    none = Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    parts = [none, *parts]
    left, right, score = candidates.expanded(
        np.concatenate([part.left for part in parts]),
        np.concatenate([part.right for part in parts]),
        np.concatenate([part.similarity for part in parts]),
        firsts,
        collapse=collapse,
    )
    return Pairs(left, right, score).ordered()


# --- one document against the table -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Neighbours:
    """Near-duplicates of one document, by similarity descending, then name: int64 and float64 arrays of shape (m,)."""

    documents: NDArray[np.int64]
    similarity: NDArray[np.float64]


def neighbours(
    collection: Collection,
    made: Banded,
    source: SetSource,
    threshold: float,
    *,
    keys: NDArray[np.uint64],
    own: NDArray[np.uint64],
    itself: int = -1,
) -> Neighbours:
    """Documents at least `threshold` similar to one.

    keys : uint64 array of shape (bands,), its band keys. own : its shingle set. itself : its number if it is in the collection; then it
    is left out of the answer.
    """
    near = candidates.candidates_of(made.table, keys)
    sets = source(near)
    pool = RaggedSets.concatenate([RaggedSets.from_sizes(own, np.array([len(own)], np.int64)), sets])
    score = similarity.jaccard(pool, np.zeros(len(near), np.int64), np.arange(1, len(near) + 1))
    keep = score >= threshold
    near, score = near[keep], score[keep]
    of_document = np.zeros(len(made.firsts))
    of_document[near] = score
    answer = np.flatnonzero(of_document[made.firsts] > 0)  # every copy of each kind
    answer = answer[answer != itself]
    score = of_document[made.firsts[answer]]
    order = np.lexsort((answer, -score))
    return Neighbours(answer[order], score[order])
