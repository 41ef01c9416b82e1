"""Documents -> shingle sets -> signatures: one pass over the documents, on all threads, reusing what an earlier run knows."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.batches import Workers, batches_done
from lshdup.collection.collection import Collection, SkippedFile, current_reader
from lshdup.collection.set_keeper import Kept, SetKeeper
from lshdup.documents.document_list import DocumentList
from lshdup.errors import ParameterError
from lshdup.lsh.signatures import Sketcher, linear_signatures
from lshdup.params import ShingleParams, SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter, Unfiltered
from lshdup.skipped import Reason, Skipped
from lshdup.utils.parallel import Progress, no_progress
from lshdup.utils.ragged import RaggedSets, StringTable
from lshdup.utils.scratch import Spool

#: Makes an uninitialised uint32 array of a shape.
Room = Callable[[tuple[int, int]], NDArray[np.uint32]]


def in_memory(shape: tuple[int, int]) -> NDArray[np.uint32]:
    """Room in memory."""
    return np.empty(shape, np.uint32)


def _reader_of(extracted: NDArray[np.int64], skipped: Iterable[SkippedFile]) -> str:
    """The present reader, if anything depends on it."""
    return (
        current_reader()
        if len(extracted) or any(each.skipped.reason.is_of_reader for each in skipped)
        else ""
    )


@dataclass(frozen=True)
class Previous:
    """What an earlier run knows about these documents, by the same definition of their sets: with the same removal, if with any.

    rows : int64 array over the new documents: the row of each in `collection` if it is unchanged, else -1. skipped : names of unchanged
    files that are no documents, and what is known about them.
    """

    collection: Collection
    rows: NDArray[np.int64]
    skipped: dict[bytes, SkippedFile] = field(default_factory=dict)


class Checkpoint(Protocol):
    """Keeps what is finished, so that a run that is interrupted can be resumed."""

    def is_due(self) -> bool:
        """Whether the run has lasted long enough to be worth that."""

    def add(self, part: Collection) -> None:
        """Some documents, with all that was made of them, and files that are none."""


def collect(
    documents: DocumentList,
    shingle: ShingleParams,
    sketch: SketchParams | None = None,
    *,
    shingle_filter: ShingleFilter | None = None,
    jobs: int = 1,
    previous: Previous | None = None,
    keep: Spool | int = 0,
    room: Room = in_memory,
    progress: Progress = no_progress,
    checkpoint: Checkpoint | None = None,
) -> Collection:
    """Read documents, make their shingle sets and, if `sketch` is given, their signatures.

    shingle_filter : shingles to remove from every set; not for the linear scheme. keep : what becomes of the sets, which are kept as
    they were
    before that: a spool keeps all of them on disk; a number keeps them in memory if they fit into so many bytes.
    previous : unchanged documents are taken from there instead of being read. room : makes the array for the signatures. checkpoint : given
    finished batches, when it wants them.

    Determinism: the same at any number of jobs. Memory: signatures, what `keep` says, and, while they are worked on, two batches a thread
    or one large document (see `Shingler`); a document for which the memory is not enough is left out.
    """
    if (
        previous is not None
        and (same := _all_the_same(documents, sketch, previous, keep)) is not None
    ):
        return replace(same, shingle=shingle)
    n = len(documents)
    linear = sketch is not None and sketch.scheme == "linear"
    if linear:  # needs all sets at once
        keep = keep if isinstance(keep, Spool) else 1 << 62
    sketcher = Sketcher(sketch) if sketch is not None and not linear else None
    sizes = np.zeros(n, np.int64)
    prints = np.zeros(n, np.uint64)
    signatures = room((n, sketch.perms)) if sketcher and sketch else None
    unfiltered = (
        Unfiltered(np.zeros(n, np.int64), np.zeros(n, np.uint64))
        if shingle_filter is not None
        else None
    )
    known = np.zeros(n, bool)
    present = np.ones(n, bool)
    skipped: list[SkippedFile] = []
    extracted = np.zeros(n, bool)
    guesses: dict[int, bytes] = {}
    if previous is not None:
        known = _take_over(
            previous, documents, sizes, prints, signatures, sketcher, present, skipped, unfiltered
        )
        extracted[known] = np.isin(previous.rows[known], previous.collection.extracted)
        guesses = _known_guesses(previous, known)
    todo = np.flatnonzero(~known & present)
    keeper = SetKeeper(keep)
    if previous is not None and known.any():
        keeper.reuse(
            previous.collection.unfiltered_sets, np.flatnonzero(known), previous.rows[known]
        )
    finished: list[tuple[NDArray[np.int64], tuple[SkippedFile, ...], Kept | None]] = []
    done = 0
    for batch in batches_done(
        documents, todo, Workers(shingle, jobs), sketcher, keeper.kept, shingle_filter
    ):
        sizes[batch.indices] = batch.sizes
        prints[batch.indices] = batch.fingerprints
        if signatures is not None and batch.signatures is not None:
            signatures[batch.indices] = batch.signatures
        if unfiltered is not None and batch.unfiltered is not None:
            unfiltered.sizes[batch.indices] = batch.unfiltered.sizes
            unfiltered.fingerprints[batch.indices] = batch.unfiltered.fingerprints
        held = keeper.add(batch.indices, batch.sets)
        out = [_skipped_file(documents, *each) for each in batch.skipped]
        present[[index for index, _, _ in batch.skipped]] = False
        skipped += out
        extracted[batch.extracted] = True
        guesses |= {index: encoding.encode() for index, encoding in batch.guessed}
        if checkpoint is not None:
            finished.append((batch.indices, tuple(out), held))
            if checkpoint.is_due():
                for rows, files, again in finished:
                    rest = signatures[rows] if signatures is not None else None
                    sets = again() if again is not None else None
                    part = Collection(
                        documents.take(rows),
                        shingle,
                        sizes[rows],
                        prints[rows],
                        files,
                        sets,
                        sketch,
                        rest,
                    )
                    office = np.flatnonzero(extracted[rows])
                    part = _with_guesses(
                        replace(part, extracted=office, reader=_reader_of(office, files)),
                        guesses,
                        rows,
                    )
                    if unfiltered is not None:
                        part = replace(
                            part,
                            sets=None,
                            shingle_filter=shingle_filter,
                            unfiltered=replace(unfiltered.take(rows), sets=sets),
                        )
                    checkpoint.add(part)
                finished.clear()
        done += len(batch.indices) + len(batch.skipped)
        progress("documents", done, len(todo))
    sets = keeper.finish()
    rows = np.flatnonzero(present)
    if len(rows) < n:
        documents, sizes, prints, extracted = (
            documents.take(rows),
            sizes[rows],
            prints[rows],
            extracted[rows],
        )
        signatures = _moved_up(signatures, rows) if signatures is not None else None
        unfiltered = unfiltered.take(rows) if unfiltered is not None else None
    skipped.sort(key=lambda each: each.skipped.name)
    collection = Collection(
        documents, shingle, sizes, prints, tuple(skipped), sets, sketch, signatures, len(todo)
    )
    office = np.flatnonzero(extracted)
    collection = _with_guesses(
        replace(collection, extracted=office, reader=_reader_of(office, skipped)), guesses, rows
    )
    if unfiltered is not None:
        return replace(
            collection,
            sets=None,
            shingle_filter=shingle_filter,
            unfiltered=replace(unfiltered, sets=sets),
        )
    return sketched(collection, sketch, jobs) if linear and sketch else collection


def _known_guesses(previous: Previous, known: NDArray[np.bool_]) -> dict[int, bytes]:
    """As what those of the known documents were read whose encoding was detected."""
    old = previous.collection
    indices = np.flatnonzero(known & np.isin(previous.rows, old.guessed))
    found = old.guesses.take(np.searchsorted(old.guessed, previous.rows[indices]))
    return dict(zip(indices.tolist(), found, strict=True))


def _with_guesses(
    collection: Collection, guesses: dict[int, bytes], rows: NDArray[np.int64]
) -> Collection:
    """The collection of the documents at `rows`, with what was guessed of these."""
    if not guesses:
        return collection
    guessed = np.flatnonzero(np.isin(rows, np.fromiter(guesses, np.int64, len(guesses))))
    return replace(
        collection,
        guessed=guessed,
        guesses=StringTable.from_strings(guesses[row] for row in rows[guessed].tolist()),
    )


def _skipped_file(documents: DocumentList, index: int, reason: Reason, detail: str) -> SkippedFile:
    out = Skipped(
        documents.names[index], reason, "; ".join(filter(None, (detail, documents.where(index))))
    )
    return SkippedFile(out, int(documents.sizes[index]), int(documents.mtimes[index]))


def _moved_up(signatures: NDArray[np.uint32], rows: NDArray[np.int64]) -> NDArray[np.uint32]:
    """The signatures of `rows` (ascending), in the same memory."""
    for start in range(0, len(rows), 4096):
        part = rows[start : start + 4096]
        signatures[start : start + len(part)] = signatures[part]
    return signatures[: len(rows)]


def sketched(
    collection: Collection, sketch: SketchParams, jobs: int = 1, room: Room = in_memory
) -> Collection:
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
    signatures = room((len(sets), sketch.perms))

    def part(start: int) -> None:
        end = min(start + 4096, len(sets))
        signatures[start:end] = sketcher.sketch(
            RaggedSets(sets.values, sets.offsets[start : end + 1])
        )

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(part, range(0, len(sets), 4096)))
    return replace(collection, sketch=sketch, signatures=signatures)


def _all_the_same(
    documents: DocumentList, sketch: SketchParams | None, previous: Previous, keep: Spool | int
) -> Collection | None:
    """The earlier collection as it is, if nothing was added, changed or removed since: none of its arrays is copied."""
    old = previous.collection
    made = sketch is None or (old.signatures is not None and old.sketch == sketch)
    kept = old.unfiltered_sets is not None or not (isinstance(keep, Spool) and keep.required)
    if not made or not kept:
        return None
    if previous.skipped:
        present = np.flatnonzero([name not in previous.skipped for name in documents.names])
        documents, rows = documents.take(present), previous.rows[present]
    else:
        rows = previous.rows
    if len(rows) != len(old.documents) or not np.array_equal(rows, np.arange(len(rows))):
        return None
    skipped = tuple(previous.skipped[name] for name in sorted(previous.skipped))
    signatures = old.signatures if sketch is not None else None
    same = replace(
        old, documents=documents, skipped=skipped, sketch=sketch, signatures=signatures, read=0
    )
    return replace(same, reader=_reader_of(old.extracted, skipped))


def _take_over(
    previous: Previous,
    documents: DocumentList,
    sizes: NDArray[np.int64],
    prints: NDArray[np.uint64],
    signatures: NDArray[np.uint32] | None,
    sketcher: Sketcher | None,
    present: NDArray[np.bool_],
    skipped: list[SkippedFile],
    unfiltered: Unfiltered | None,
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
    if unfiltered is not None and old.unfiltered is not None:
        unfiltered.sizes[known] = old.unfiltered.sizes[rows]
        unfiltered.fingerprints[known] = old.unfiltered.fingerprints[rows]
    if previous.skipped:
        for index, name in enumerate(documents.names):
            if name in previous.skipped:
                present[index] = False
                skipped.append(previous.skipped[name])
    return known
