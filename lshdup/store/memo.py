"""The memo of a store: what earlier runs have made of documents, found again from whatever DOCS.

A *segment* is an artifact of a collection, or of the documents that a run has finished so far. The
artifacts of the current run are segments too; all others are in the folder `memo` of the store.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lshdup.base.atomic import PARTS, Folder, note_kept
from lshdup.base.memory import rows_of, slices_of
from lshdup.base.params import DocumentParams, ShingleParams, SketchParams
from lshdup.base.run import Run
from lshdup.base.wording import count_of
from lshdup.collection.collect import Previous
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import filter_collection
from lshdup.collection.unchanged import find_known_records, find_still_skipped, find_unchanged
from lshdup.errors import ArtifactError
from lshdup.shingling.shingle_filter import ShingleFilter, are_same_filters
from lshdup.sources.document_list import DocumentList
from lshdup.sources.expansion import KnownRecords
from lshdup.sources.records import RecordFields
from lshdup.store.collection_io import collection_arrays
from lshdup.store.npz import write
from lshdup.store.store import MEMO, Store

#: Seconds after which a run is long, and what is finished by then is written.
PATIENCE = 2.0

#: By how much longer it takes until the next segment: a run of an hour writes about fifty.
_GROWTH = 1.1

#: The artifacts that hold a collection.
_KINDS = ("signatures", "shingles")


class Memo:
    """What is known of documents by one definition, and what a run adds to it as it goes.

    What a run adds is not synced: it survives a killed process. If nothing can be added, that is
    said, and the run goes on without. A torn or damaged segment is removed.

    run, store : of the memo.
    fields : fields of the records that are read.
    is_checked : whether the content of the documents is read, whatever their times are: what
        earlier runs knew of them may be wrong, is not found, and goes.
    shingle, sketch, shingle_filter : the definition of sets and signatures; without `sketch`, it is
        one of unfiltered sets.
    """

    def __init__(
        self,
        run: Run,
        store: Store,
        fields: RecordFields | None,
        is_checked: bool,
        shingle: ShingleParams,
        sketch: SketchParams | None = None,
        shingle_filter: ShingleFilter | None = None,
    ) -> None:
        self._run, self._store, self._is_checked = run, store, is_checked
        header = store.describe(shingle, sketch, fields, b"", shingle_filter)
        self._header = {"corpus": "", **header}
        self._written_at, self._interval = time.monotonic(), PATIENCE
        self._failed = False
        self._shingle, self._sketch, self._filter = shingle, sketch, shingle_filter
        self._kinds = ("bytes",) if shingle.of_bytes else _KINDS
        self._used: list[str] = []  #: segments that this run has taken documents from, or written
        self._sets: dict[str, str] | None = None  #: by identity, the segment that has them
        self._is_reader_said = False

    # --- what is known ----------------------------------------------------------------------------

    def find(self, documents: DocumentList, *, with_sets: bool) -> Iterator[Previous]:
        """Yield what is known of documents, each from the newest segment that has it.

        with_sets : whether their sets are wanted too, where a segment has them.
        """
        if self._is_checked:
            return
        known = self._run.arrays.zeros(len(documents), np.bool_)
        left, resumed, segments = len(documents), 0, self._store.segments()
        first = self._kinds[-1]
        order = ["signatures", *segments, first] if self._sketch else [first, *segments]
        for name in order:
            is_first = name in self._kinds and left == len(documents)
            # A segment that knows nothing new of the documents is not verified as a whole.
            old = self._load(name, verify=is_first)
            if old is None:
                continue
            rows, found = find_unchanged(self._run, old.documents, documents), 0
            for some in slices_of(len(rows)):
                rows[some][known[some]] = -1
                found += int(np.count_nonzero(rows[some] >= 0))
            if not is_first:
                old = self._load(name) if found or not len(rows) else None
            if old is not None:
                old = self._fit(self._with_sets(old) if with_sets else old)
            if old is None:
                continue
            for some in slices_of(len(rows)):
                known[some] |= rows[some] >= 0
            resumed += found if _is_part(old) else 0
            skipped = {}
            # A record that other fields make no document may be one with these fields.
            if old.documents.record_fields in (None, documents.record_fields):
                skipped = {
                    index: each
                    for index, each in find_still_skipped(old, documents).items()
                    if not known[index]
                }
                known[list(skipped)] = True
            left -= found + len(skipped)
            if found or skipped:
                if name not in self._kinds:
                    self._used.append(name)
                if not left:
                    self._say_resumed(resumed)
                yield Previous(old, rows, skipped)
            if not left:
                return
        self._say_resumed(resumed)

    def _say_resumed(self, resumed: int) -> None:
        if resumed:
            what = ("document of an interrupted run is", "documents of an interrupted run are")
            self._run.say(f"resumed: {count_of(resumed, *what)} not read again")

    def _with_sets(self, old: Collection) -> Collection:
        """Return a collection with its sets, if it or another segment has them."""
        if old.sets is not None:
            return old
        if self._sets is None:
            self._sets = {}
            for name in (*self._store.segments(), "shingles"):
                held = self._load_held(name)
                if held is not None and held.sets is not None:
                    self._sets[held.unfiltered_identity] = name
        name = self._sets.get(old.unfiltered_identity, "")
        held = self._load(name) if name else None
        if held is None or held.unfiltered_identity != old.unfiltered_identity:
            return old
        if name not in _KINDS:
            self._used.append(name)
        return replace(old, sets=held.sets)

    def _load(self, name: str, *, verify: bool = True) -> Collection | None:
        """Load a segment with these parameters of shingles; say so if it is damaged, and remove it.

        verify : whether every byte is verified.
        """
        try:
            old = self._store.load_collection(name, here=True, verify=verify)
            if old is None or old.shingle != self._shingle:
                return None
            usable = old.without_other_readers()
        except (ArtifactError, IndexError) as error:
            message = error.message if isinstance(error, ArtifactError) else f"{name} is damaged"
            self._run.say(f"{message}; it is {'rebuilt' if name in self._kinds else 'removed'}")
            if self._store.is_held:
                self._store.drop(name)
            return None
        if usable is not old and not self._is_reader_said:
            self._is_reader_said = True
            self._run.say(
                "the reader of office documents is another one than in the last run: they are read"
                " again"
            )
        return usable

    def _fit(self, old: Collection) -> Collection | None:
        """Return what a collection says by this definition; None if that is nothing."""
        has_signatures = old.signatures is not None and old.sketch == self._sketch
        fits = has_signatures and are_same_filters(old.shingle_filter, self._filter)
        if fits or self._shingle.of_bytes:
            return old
        unfiltered = old.before_filter
        if unfiltered.sets is None:
            return None
        if self._filter is None:
            return unfiltered
        return filter_collection(self._run, unfiltered, self._filter, self._sketch)

    # --- what is added ----------------------------------------------------------------------------

    def is_due(self) -> bool:
        """Return whether enough was done to write it; and always if no segment can be written: what
        waits can be let go then.
        """
        return self._failed or time.monotonic() - self._written_at >= self._interval

    def add(self, part: Collection) -> None:
        """Write documents that are finished as a segment."""
        if self._failed:
            return
        name = self._store.next_segment()
        self._used.append(name)
        try:
            (self._store.folder / MEMO).mkdir(exist_ok=True)
            with Folder(self._store.folder, MEMO).create(self._store.path(name).name) as file:
                write(file, "segment", self._header, collection_arrays(part, "segment"))
            note_kept(PARTS)
        except OSError as error:
            self._failed = True
            self._run.say(
                f"{self._store.folder / MEMO} cannot be written: {error.strerror};"
                " should this run be interrupted, it cannot be resumed"
            )
            self.remove()  # The artifacts need the room.
        self._written_at = time.monotonic()
        self._interval *= _GROWTH

    def remove(self) -> bool:
        """Make room: remove the parts of runs that this run has used or written; if there are none,
        all segments, which are of other runs.
        """
        note_kept(PARTS, kept=False)
        parts = [name for name in self._used if self._is_part(name)]
        removed = parts or self._store.segments()
        self._used = [name for name in self._used if name not in removed]
        for name in removed:
            self._store.drop(name)
        return bool(removed)

    def _is_part(self, name: str) -> bool:
        with contextlib.suppress(ArtifactError, IndexError):
            held = self._store.load_collection(name, verify=False)
            return held is not None and _is_part(held)
        return True

    # --- the end of a run -------------------------------------------------------------------------

    def save(self, collection: Collection, *kinds: str) -> None:
        """Save artifacts of a collection, the last of which is what later commands continue with.

        An artifact that they replace is kept in the memo, if it knows something of documents that
        are still there and that the collection does not know: other documents, another definition
        of them, or their sets. Segments that know nothing more are removed.
        """
        store = self._store
        looked_at = store.segments() if self._is_checked else self._used
        held = {name: self._load_held(name) for name in looked_at}
        more = {name: old for name, old in held.items() if self._is_kept(old, collection)}
        rest = [old for old in more.values() if old is not None]
        for kind in kinds:
            self.save_artifact(collection, kind, *rest)
        store.make_current(kinds[-1], collection)
        for kind in self._kinds:
            if kind in kinds or not store.path(kind).exists():
                continue
            old = self._load_held(kind)
            if old is None or old.unfiltered_identity != collection.unfiltered_identity:
                store.drop(kind, keep=self._is_kept(old, collection, *rest))
        for name in held:
            if name not in more:
                store.drop(name)
        store.forget(list(more))
        note_kept(PARTS, kept=False)

    def save_artifact(self, collection: Collection, kind: str, *others: Collection) -> None:
        """Save an artifact of a collection that is not yet the current one.

        others : what segments hold that stay.

        Makes room if the disk is full. Raises ArtifactError if that does not help.
        """
        keep = self._is_kept(self._load_held(kind), collection, *others)
        for is_last in (False, False, True):
            try:
                self._store.save_collection(kind, collection, keep_old=keep)
                break
            except ArtifactError:
                if is_last or not self.remove():
                    raise

    def _load_held(self, name: str) -> Collection | None:
        """Load what a segment holds; None if it is damaged or missing."""
        with contextlib.suppress(ArtifactError, IndexError):
            return self._store.load_collection(name, verify=False)
        return None

    def _is_kept(self, old: Collection | None, new: Collection, *others: Collection) -> bool:
        """Return whether a segment knows what a later run may want and no other collection does,
        and nothing that may be wrong, as of documents that were checked.
        """
        if old is None:
            return False
        run, arrays = self._run, self._run.arrays
        if self._is_checked and (find_unchanged(run, old.documents, new.documents) >= 0).any():
            return False
        missing = arrays.compute(len(old.documents), np.int64, rows_of)
        for each in (new, *others):
            known = arrays.take(find_unchanged(run, each.documents, old.documents), missing)
            unknown = arrays.find(known < 0)
            if _says_as_much(each, old):
                missing = arrays.take(missing, unknown)
            elif each is new and len(unknown) < len(known):
                return True
        return any(
            len(old.documents.changed(missing[some])) < some.stop - some.start
            for some in slices_of(len(missing))
        )


def _says_as_much(new: Collection, old: Collection) -> bool:
    """Return whether a collection has what another one has of each of its documents, by the same
    definition.
    """
    removed = old.shingle_filter
    # Common shingles depend on all documents: such signatures serve no other collection.
    is_bound = removed is not None and removed.params.ignore_common > 0
    if old.sets is None and is_bound:
        return True
    if new.shingle != old.shingle or (old.sets is not None and new.sets is None):
        return False
    if old.signatures is None or is_bound:
        return True
    are_same = new.sketch == old.sketch and are_same_filters(new.shingle_filter, removed)
    return new.signatures is not None and are_same


def load_known_records(run: Run, store: Store, params: DocumentParams) -> KnownRecords:
    """Return where the records of files are, as earlier runs have listed them whole."""
    known: KnownRecords = {}
    for name in (*_KINDS, "bytes", *store.segments()):
        # A damaged segment is rebuilt, and that is said then.
        with contextlib.suppress(ArtifactError, IndexError):
            held = store.load_collection(name, here=True, verify=False)
            if held is not None and held.documents.parts is not None and not _is_part(held):
                held = store.load_collection(name, here=True)
                known = {**(find_known_records(run, held, params) if held else {}), **known}
    return known


def _is_part(held: Collection) -> bool:
    """Return whether a segment holds what a run had finished, and not a whole collection."""
    return not held.documents.docs
