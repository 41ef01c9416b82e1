"""The one pass over documents that makes a collection: read, shingle and sketch on all threads.

Unchanged documents are reused from a previous run.
"""

from collections.abc import Callable, Iterable
from dataclasses import field, replace
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import Form
from lshdup.base.frozen import dataclass
from lshdup.base.memory import GrowingArray, is_counting, slices_of
from lshdup.base.params import ShingleParams, SketchParams
from lshdup.base.ragged import RaggedSets, StringTable, gather_sets
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, Skipped, SkippedFile
from lshdup.collection.batches import Workers
from lshdup.collection.collection import (
    COLUMNS,
    WHOLE,
    Collection,
    Columns,
    ReadingNotes,
    current_reader,
)
from lshdup.compare.scored_pairs import contains
from lshdup.errors import ArtifactError
from lshdup.lsh.signatures import Sketcher, make_signatures
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.shingling.shingler import NO_SETS, ShingleBatch
from lshdup.sources.document_list import DocumentList
from lshdup.sources.expansion import expand_records
from lshdup.sources.records import Kind
from lshdup.text.office_types import OFFICE_ENDINGS

#: Bytes of shingle sets that may be kept: all of them, in memory or in a file.
EVERY_SET = 1 << 62

#: Bytes of sets that wait to be kept at most.
_MOST_WAITING = 64 << 20

#: Bytes of what is copied of a document at a time, about: its set, or its signature.
_ROW_BYTES = 512


@dataclass(frozen=True)
class Previous:
    """Results of a previous run that can be reused for these documents.

    Both runs used the same shingle parameters and the same filter.

    collection : the collection of the previous run.
    rows : int64 array over the new documents, the row of each in `collection` if it is unchanged,
        else -1.
    skipped : unchanged files that are no documents, by their index in the new list.
    """

    collection: Collection
    rows: NDArray[np.int64]
    skipped: dict[int, SkippedFile] = field(default_factory=dict)


class Checkpoint(Protocol):
    """A place that keeps finished documents, so that an interrupted run can be resumed."""

    def is_due(self) -> bool:
        """Return whether so much time has gone that what is finished is worth keeping."""

    def add(self, part: Collection) -> None:
        """Keep some documents with everything that was made of them, and skipped files."""


def collect(
    run: Run,
    documents: DocumentList,
    shingle: ShingleParams,
    sketch: SketchParams | None = None,
    *,
    shingle_filter: ShingleFilter | None = None,
    previous: Iterable[Previous] = (),
    keep: "int | SetKeeper" = 0,
    checkpoint: Checkpoint | None = None,
    wanted: NDArray[np.bool_] | None = None,
) -> Collection:
    """Read documents, make their shingle sets and, if `sketch` is given, their signatures.

    previous : results to reuse for unchanged documents, each for other ones.
    keep : which unfiltered sets are kept: all of them if they fit into so many bytes, or EVERY_SET;
        a keeper does what it wants.
    checkpoint : receives finished batches when it is due.
    wanted : bool array over the documents, those that are read; nothing is known of others.

    A file that turns out to be a mailbox becomes its mails, in a second pass over them.

    Determinism: the result is the same at any number of jobs. Memory: the arrays, what `keep` says,
    and two batches a thread or one large document; a document that needs more memory is skipped.
    """
    arrays, previous = run.arrays, iter(previous)
    first = next(previous, None)
    if first is not None:
        unchanged = unchanged_collection(run, documents, sketch, first, keep)
        if unchanged is not None:
            return replace(unchanged, shingle=shingle)
    rows = _Rows(run, documents, shingle, sketch, shingle_filter)
    keeper = keep if isinstance(keep, SetKeeper) else SetKeeper(run, keep)
    for each in chain([first] if first is not None else [], previous):
        keeper.reuse(each.collection.sets, rows.reuse(each), each.rows)
    todo = arrays.where(len(documents), lambda some: rows.is_document[some] & ~rows.known[some])
    todo = todo if wanted is None else todo[wanted[todo]]
    done, mailboxes = 0, list[int]()
    finished, waiting = list[ShingleBatch](), 0
    workers = Workers(run, shingle, in_order=keeper.in_order)
    batches = workers.process(run, documents, todo, keeper.keep_copy, shingle_filter, rows.sketcher)
    for batch in batches:
        rows.fill(batch)
        keeper.add(batch.indices, batch.sets)
        if checkpoint is not None:
            finished.append(replace(batch, columns={}, signatures=None))
            waiting += batch.sets.values.nbytes
            if checkpoint.is_due() or waiting > _MOST_WAITING:
                checkpoint.add(rows.part(finished, kept=keeper.has_all))
                finished, waiting = [], 0
        done += len(batch.indices) + len(batch.skipped)
        mailboxes += batch.mailboxes
        run.progress("documents", done, len(todo))
    collected = rows.finish(keeper.finish(), len(todo))
    if not mailboxes:
        return collected
    names = (documents.names[index] for index in mailboxes)
    files = dict.fromkeys(names, Kind.MBOX)
    expanded, skipped = expand_records(run, documents, files)
    whole = collect(
        run, expanded, shingle, sketch, shingle_filter=shingle_filter,
        previous=[_all_of(run, collected, expanded)], keep=keep, checkpoint=checkpoint,
    )  # fmt: skip
    every = sorted([*whole.skipped, *skipped], key=lambda each: each.place)
    read = (whole.read or 0) + len(todo) - len(mailboxes)
    return replace(whole, skipped=tuple(every), read=read)


def _all_of(run: Run, collected: Collection, documents: DocumentList) -> Previous:
    """Return what a pass has collected, to be reused for a list that has more documents."""
    known = collected.documents.names.match(documents.names, run.arrays)
    if collected.documents.parts is not None:  # a mail may have the id of a row
        are_same = documents.locations.same_as(collected.documents.parts)
        for some in slices_of(len(known)):
            mine = np.flatnonzero(known[some] >= 0) + some.start
            known[mine[~are_same(mine, known[mine])]] = -1
    indices = documents.find_all([each.skipped.name for each in collected.skipped])
    found = zip(indices, collected.skipped, strict=True)
    skipped = {index: each for index, each in found if index >= 0}
    return Previous(collected, known, skipped)


def sketch_collection(run: Run, collection: Collection, sketch: SketchParams) -> Collection:
    """Return the collection with signatures of the sets that it holds, by any scheme."""
    signatures = make_signatures(run, collection.filtered_sets(run.arrays), sketch)
    return replace(collection, sketch=sketch, signatures=signatures)


def unchanged_collection(
    run: Run,
    documents: DocumentList,
    sketch: SketchParams | None,
    previous: Previous,
    keep: "int | SetKeeper",
) -> Collection | None:
    """Return the previous collection if no document was added, changed or removed since, else None.

    None of its arrays is copied.
    """
    arrays = run.arrays
    old = previous.collection
    has_signatures = sketch is None or (old.signatures is not None and old.sketch == sketch)
    has_sets = old.sets is not None or sketch is not None or keep != EVERY_SET
    if not has_signatures or not has_sets:
        return None
    rows = previous.rows
    if previous.skipped:
        stays = arrays.full(len(documents), value=True, dtype=np.bool_)
        stays[list(previous.skipped)] = False
        present = arrays.find(stays)
        documents, rows = documents.take(run, present), arrays.take(rows, present)
    if len(rows) != len(old.documents) or not is_counting(rows):
        return None
    skipped = tuple(previous.skipped[index] for index in sorted(previous.skipped))
    return replace(
        old,
        documents=documents,
        skipped=skipped,
        sketch=sketch,
        signatures=old.signatures if sketch is not None else None,
        read=0,
        notes=replace(old.notes, reader=_reader_of(old.columns["forms"], skipped)),
    )


def _reader_of(forms: NDArray[np.uint8], skipped: tuple[SkippedFile, ...]) -> str:
    """Return the current reader of office formats if a document or a skipped file depends on it."""
    has_office = any((forms[some] == Form.OFFICE).any() for some in slices_of(len(forms)))
    if has_office or any(each.skipped.reason.is_of_reader for each in skipped):
        return current_reader()
    return ""


class SetKeeper:
    """Collect the sets of a run in document order. Stops keeping them once they exceed a limit.

    keep : the limit in bytes, or EVERY_SET.
    """

    in_order = False  #: whether tokens in their order are kept, as of `Shingler`

    def __init__(self, run: Run, keep: int) -> None:
        self._arrays, self._room, self._keeps_every = run.arrays, keep, keep == EVERY_SET
        self.has_all = keep > 0  #: whether all sets are kept so far
        self._indices, self._sizes = (GrowingArray(np.int64, run.arrays) for _ in range(2))
        self._values = GrowingArray(np.uint64, run.arrays)

    def keep_copy(self, made: ShingleBatch, *_: object) -> RaggedSets:
        """Return a sorted copy of the sets, or no sets if it has stopped keeping them. For any
        thread.
        """
        return made.sets.copy().sort() if self.has_all else NO_SETS

    def reuse(
        self, sets: RaggedSets | None, known: NDArray[np.bool_], rows: NDArray[np.int64]
    ) -> None:
        """Add the sets of unchanged documents; stop keeping sets if these cannot be had.

        known : bool array over all documents. rows : int64 array, the row of each in `sets`.
        """
        if sets is None:
            self.has_all = self.has_all and not known.any()
            return
        for some in slices_of(len(rows), _ROW_BYTES):
            if self.has_all:
                indices = np.flatnonzero(known[some]) + some.start
                self.add(indices, sets.take(rows[indices]))

    def add(self, indices: NDArray[np.int64], sets: RaggedSets) -> None:
        """Keep the sets of some documents. Raises ArtifactError if a full disk has no room for
        every set.
        """
        if not self.has_all:
            return
        self._room -= sets.values.nbytes
        try:
            if self._room >= 0:
                self._indices.append(indices)
                self._sizes.append(sets.sizes)
                self._values.append(sets.values)
                return
        except ArtifactError:
            if self._keeps_every:
                raise
        self.has_all, self._values = False, GrowingArray(np.uint64, self._arrays)

    def finish(self) -> RaggedSets | None:
        """Return the sets of all documents that have one, in document order, if they were kept."""
        if not self.has_all:
            return None
        arrays, indices = self._arrays, self._indices.whole()
        order = arrays.order(len(indices), [indices.__getitem__])
        sets = RaggedSets.from_sizes(self._values.whole(), self._sizes.whole(), arrays)
        self._values = GrowingArray(np.uint64, arrays)  # They are there twice at most.
        return sets if is_counting(order) else gather_sets(sets.take, order, sets.sizes, arrays)


def expects_office_documents(names: StringTable) -> bool:
    """Return whether about one name in fifty is that of an office document.

    A reader takes milliseconds for one: more than keeping the sets of fifty documents takes.
    """
    endings, office = np.frombuffer(b"".join(OFFICE_ENDINGS), np.uint32), 0
    for some in slices_of(len(names)):
        ends = names.offsets[some.start + 1 : some.stop + 1]
        ends = ends[ends - names.offsets[some] >= 4]
        last = names.values[ends[:, np.newaxis] - np.arange(4, 0, -1)] | 0x20  # in lower case
        office += sum(int((last.view(np.uint32) == each).sum()) for each in endings)
    return 50 * office >= max(len(names), 1)


class _Rows:
    """Everything that is known of the listed documents, a row each, filled batch by batch."""

    def __init__(
        self,
        run: Run,
        documents: DocumentList,
        shingle: ShingleParams,
        sketch: SketchParams | None,
        shingle_filter: ShingleFilter | None,
    ) -> None:
        n, arrays = len(documents), run.arrays
        self._documents, self._shingle, self._sketch = documents, shingle, sketch
        self.sketcher = Sketcher(sketch) if sketch is not None else None
        self.is_document: NDArray[np.bool_] = arrays.full(n, value=True, dtype=np.bool_)
        #: reused: the document need not be read
        self.known: NDArray[np.bool_] = arrays.zeros(n, np.bool_)
        self._filter = shingle_filter
        self._columns: Columns = {
            name: arrays.zeros(n, dtype)
            for name, dtype in COLUMNS.items()
            if shingle_filter is not None or name not in WHOLE.values()
        }
        self._arrays = arrays
        self._signatures = arrays.empty((n, sketch.perms), np.uint32) if sketch else None
        self._skipped: list[SkippedFile] = []
        self._guesses: dict[int, bytes] = {}

    def reuse(self, previous: Previous) -> NDArray[np.bool_]:
        """Copy the rows of unchanged documents from a previous run.

        Returns which documents these are: bool array over all documents.
        """
        known: NDArray[np.bool_] = self._arrays.zeros(len(self.known), np.bool_)
        self.is_document[list(previous.skipped)] = False
        self._skipped += previous.skipped.values()
        old, notes, sketcher = previous.collection, previous.collection.notes, self.sketcher
        stored = old.signatures if old.sketch == self._sketch else None
        for some in slices_of(len(previous.rows), _ROW_BYTES):
            documents = np.flatnonzero(previous.rows[some] >= 0) + some.start
            rows = previous.rows[documents]
            if self._signatures is not None and stored is not None:
                self._signatures[documents] = stored[rows]
            elif sketcher is not None:
                assert self._signatures is not None
                assert old.sets is not None
                self._signatures[documents] = sketcher.sketch(old.sets.take(rows))
            for column_name, column in self._columns.items():
                column[documents] = old.columns[column_name][rows]
            guessed = contains(notes.guess_documents, rows)
            guesses = notes.guesses.take(np.searchsorted(notes.guess_documents, rows[guessed]))
            self._guesses |= zip(documents[guessed].tolist(), guesses, strict=True)
            self.known[documents] = known[documents] = True
        return known

    def fill(self, batch: ShingleBatch) -> None:
        """Fill in the rows of a batch."""
        for name, column in batch.columns.items():
            self._columns[name][batch.indices] = column
        if self._signatures is not None and batch.signatures is not None:
            self._signatures[batch.indices] = batch.signatures
        self.is_document[batch.mailboxes] = False
        self._guesses |= {index: encoding.encode() for index, encoding in batch.guesses}
        self.is_document[[index for index, _, _ in batch.skipped]] = False
        self._skipped += map(self._skipped_file, batch.skipped)

    def part(self, finished: list[ShingleBatch], *, kept: bool) -> Collection:
        """Return the documents of batches that were filled in as a collection.

        kept : whether with their sets.
        """
        rows = np.concatenate([each.indices for each in finished])
        order = np.argsort(rows, kind="stable")
        every = (each.sets for each in finished)
        sets = RaggedSets.concatenate(every).take(order) if kept else None
        skipped = tuple(self._skipped_file(each) for batch in finished for each in batch.skipped)
        return self._collection(rows[order], self._arrays.take, skipped, sets)

    def finish(self, sets: RaggedSets | None, read: int) -> Collection:
        """Return all documents as a collection, in the same arrays.

        sets : their unfiltered sets, if they were kept.
        """
        rows = self._arrays.find(self.is_document)
        skipped = tuple(sorted(self._skipped, key=lambda each: each.place))
        return replace(self._collection(rows, _moved_up, skipped, sets), read=read)

    def _collection(
        self,
        rows: NDArray[np.int64],
        take: Callable[[NDArray[Any], NDArray[np.int64]], NDArray[Any]],
        skipped: tuple[SkippedFile, ...],
        sets: RaggedSets | None,
    ) -> Collection:
        columns = {name: take(column, rows) for name, column in self._columns.items()}
        signatures = take(self._signatures, rows) if self._signatures is not None else None
        all_rows = len(rows) == len(self._documents)
        notes = ReadingNotes(_reader_of(columns["forms"], skipped))
        if self._guesses:
            guessed = np.sort(np.fromiter(self._guesses, np.int64, len(self._guesses)))
            guessed = guessed[contains(rows, guessed)]
            guesses = StringTable.from_strings(self._guesses[row] for row in guessed.tolist())
            notes = ReadingNotes(notes.reader, np.searchsorted(rows, guessed), guesses)
        documents = self._documents if all_rows else self._documents.take(Run(self._arrays), rows)
        return Collection(
            documents, self._shingle, columns, skipped, sets, self._sketch, signatures,
            shingle_filter=self._filter, notes=notes,
        )  # fmt: skip

    def _skipped_file(self, skipped: tuple[int, Reason, str]) -> SkippedFile:
        documents, (index, reason, detail) = self._documents, skipped
        details = "; ".join(filter(None, (detail, documents.where(index))))
        size, mtime = int(documents.sizes[index]), int(documents.mtimes[index])
        named = Skipped(documents.names[index], reason, details)
        return SkippedFile(named, size, mtime, documents.record_location(index))


def _moved_up(array: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return the values of `rows` (ascending), in the same memory."""
    if len(rows) < len(array):
        for some in slices_of(len(rows), _ROW_BYTES):
            array[some] = array[rows[some]]
    return array[: len(rows)]
