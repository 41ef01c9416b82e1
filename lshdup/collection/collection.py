"""The collection of a run: documents, shingle sets, signatures, and how they were made."""

import json
import os
import unicodedata
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import Form
from lshdup.base.frozen import dataclass
from lshdup.base.memory import Arrays, slices_of
from lshdup.base.params import ShingleParams, SketchParams
from lshdup.base.ragged import RaggedSets, StringTable, gather_sets
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, Skipped, SkippedFile
from lshdup.base.system import blake2b
from lshdup.compare.sides import Fingerprints
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.shingling.shingler import fingerprint_sets
from lshdup.sources.document_list import DocumentList

_NO_DOCUMENTS = np.zeros(0, np.int64)
_NO_STRINGS = StringTable.from_strings([])

#: Arrays of shape (n,) by name: what is known of each of n documents.
Columns = dict[str, NDArray[Any]]

#: The columns of a collection and their types: what each document was read as (`base.forms.Form`);
#: fingerprints of the bytes and of the sequence of tokens (0 without tokens); size and fingerprint
#: of the shingle set, and of the set before a filter.
COLUMNS = {
    "forms": np.uint8,
    "byte_prints": np.uint64,
    "text_prints": np.uint64,
    "set_sizes": np.int64,
    "fingerprints": np.uint64,
    "whole_sizes": np.int64,
    "whole_fingerprints": np.uint64,
}

#: The columns that describe filtered sets, and those that describe the unfiltered sets.
WHOLE = {"set_sizes": "whole_sizes", "fingerprints": "whole_fingerprints"}


def set_columns(sets: RaggedSets, shingle: ShingleParams) -> Columns:
    """Return the columns of shingle sets."""
    return {"set_sizes": sets.sizes, "fingerprints": fingerprint_sets(sets, shingle)}


@dataclass(frozen=True)
class ReadingNotes:
    """How documents were read whose text depends on more than their bytes.

    reader : the reader of office formats and its version; empty if nothing depends on it.
    guess_documents : int64 array, ascending, the documents whose encoding was detected.
    guesses : the encoding of each of these documents (`Text.encoding`).
    """

    reader: str = ""
    guess_documents: NDArray[np.int64] = field(default_factory=lambda: _NO_DOCUMENTS)
    guesses: StringTable = field(default_factory=lambda: _NO_STRINGS)


@dataclass(frozen=True)
class Collection:
    """The documents of a run and everything that was made of them.

    documents : the n documents that could be read, also those without tokens.
    columns : arrays of shape (n,), as in `COLUMNS`.
    skipped : files and records that were read and are no documents.
    sets : the unfiltered shingle sets, if they were kept.
    sketch, signatures : uint32 array of shape (n, K) and how it was made, if it was made.
    read : the number of documents read in this run; None if the collection comes from an artifact.
    shingle_filter : removes shingles whenever sets are taken; signatures are of filtered sets.
    saved_identity, saved_whole_identity : the identity, and that without the filter, if an artifact
        says them.
    """

    documents: DocumentList
    shingle: ShingleParams
    columns: Columns
    skipped: tuple[SkippedFile, ...] = ()
    sets: RaggedSets | None = None
    sketch: SketchParams | None = None
    signatures: NDArray[np.uint32] | None = None
    read: int | None = None
    shingle_filter: ShingleFilter | None = None
    notes: ReadingNotes = field(default_factory=ReadingNotes)
    saved_identity: str = ""
    saved_whole_identity: str = ""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of shingles of each document: int64 array of shape (n,)."""
        return self.columns["set_sizes"]

    @property
    def fingerprints(self) -> NDArray[np.uint64]:
        """The fingerprints of the shingle sets: uint64 array of shape (n,)."""
        return self.columns["fingerprints"]

    @property
    def prints(self) -> Fingerprints:
        """The fingerprints of the bytes and of the token sequences."""
        return Fingerprints(self.columns["byte_prints"], self.columns["text_prints"])

    @property
    def perms(self) -> int:
        """The rows of a signature; 0 without signatures."""
        return self.sketch.perms if self.sketch is not None else 0

    @property
    def unfiltered_sizes(self) -> NDArray[np.int64]:
        """The number of shingles of each document before shingles were removed."""
        return self.columns.get("whole_sizes", self.sizes)

    def filtered_sets(self, arrays: Arrays) -> RaggedSets:
        """Return all sets without the shingles that the filter removes. arrays : makes a copy."""
        sets, removed = self.sets, self.shingle_filter
        assert sets is not None
        if removed is None:
            return sets
        rows = np.arange(len(sets))
        return gather_sets(lambda some: removed.apply(sets.take(some)), rows, sets.sizes, arrays)

    def list_skipped(self) -> tuple[SkippedFile, ...]:
        """Return the files and records that are no documents, whenever that was seen."""
        return (*self.skipped, *self.documents.skipped)

    def list_skipped_records(self) -> list[SkippedFile]:
        """Return the records that are no documents, as for their text."""
        return [each for each in self.list_skipped() if each.record is not None]

    def count_forms(self) -> dict[int, int]:
        """Return how many documents were read as what (`base.forms.Form`)."""
        forms: NDArray[np.uint8] = self.columns.get("forms", np.zeros(0, np.uint8))
        counts = np.zeros(len(Form), np.int64)
        for some in slices_of(len(forms)):
            counts += np.bincount(forms[some], minlength=len(Form))
        return dict(enumerate(counts.tolist()))

    def has_few_tokens(self) -> NDArray[np.bool_]:
        """Return which documents have tokens, but too few to be compared: shape (n,)."""
        if not self.shingle.min_tokens or "text_prints" not in self.columns:
            return np.zeros(len(self.documents), bool)
        few: NDArray[np.bool_] = (self.unfiltered_sizes == 0) & (self.columns["text_prints"] != 0)
        return few

    @cached_property
    def identity(self) -> str:
        """32 hexadecimal digits of the names, sets and texts, and how the sets were made.

        Two collections with the same identity have the same shingle sets, and documents of the
        same bytes and tokens: a set can stay as it is when its document changes.
        """
        if self.saved_identity:
            return self.saved_identity
        digest = blake2b(digest_size=16)
        definitions = [self.shingle.to_json(), unicodedata.unidata_version]
        if self.shingle_filter is not None:
            definitions.append(self.shingle_filter.to_json())
        digest.update(json.dumps(definitions, sort_keys=True).encode())
        names = self.documents.names
        columns = [self.columns[name] for name in ("fingerprints", "byte_prints", "text_prints")]
        for array in (names.offsets, names.values, *columns):
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    @property
    def unfiltered_identity(self) -> str:
        """The identity of the collection before shingles were removed: that of shingles.npz."""
        return self.before_filter.identity

    @cached_property
    def before_filter(self) -> "Collection":
        """The collection without a filter, and without signatures."""
        bare = replace(self, sketch=None, signatures=None, saved_identity=self.identity)
        if self.shingle_filter is None:
            return bare
        columns = dict(self.columns)
        for name, whole in WHOLE.items():
            columns[name] = columns.pop(whole)
        identity = self.saved_whole_identity
        return replace(bare, columns=columns, shingle_filter=None, saved_identity=identity)

    def take(self, run: Run, rows: NDArray[np.int64]) -> "Collection":
        """Return the documents at ascending `rows` with everything that was made of them."""
        arrays, notes, sets = run.arrays, self.notes, self.sets
        known = np.isin(notes.guess_documents, rows)
        guessed = np.searchsorted(rows, notes.guess_documents[known])
        return replace(
            self,
            documents=self.documents.take(run, rows),
            columns={name: arrays.take(column, rows) for name, column in self.columns.items()},
            sets=None if sets is None else gather_sets(sets.take, rows, sets.sizes, arrays),
            signatures=None if self.signatures is None else arrays.take(self.signatures, rows),
            notes=ReadingNotes(notes.reader, guessed, notes.guesses.take(np.flatnonzero(known))),
            saved_identity="",
            saved_whole_identity="",
        )

    def leave_out_changed(self, run: Run, changed: NDArray[np.int64]) -> "Collection":
        """Return the collection without documents (ascending) that changed since they were read.

        One whose file still exists is a skipped one.
        """
        documents = self.documents
        rest = self.take(run, np.setdiff1d(np.arange(len(documents)), changed))
        skipped = list(rest.skipped)
        for row in changed.tolist():
            if os.path.lexists(documents.path(row)):
                reason = Skipped(documents.names[row], Reason.CHANGED)
                skipped.append(SkippedFile(reason, record=documents.record_location(row)))
        return replace(rest, skipped=tuple(skipped))

    def without_other_readers(self) -> "Collection":
        """Return the collection without the results of another reader of office formats."""
        if not self.notes.reader or self.notes.reader == current_reader():
            return self
        sizes = self.documents.sizes.copy()
        # No file has this size: the documents have all changed.
        sizes[self.columns["forms"] == Form.OFFICE] = -1
        skipped = tuple(each for each in self.skipped if not each.skipped.reason.is_of_reader)
        return replace(self, documents=replace(self.documents, sizes=sizes), skipped=skipped)


def current_reader() -> str:
    """Return the `ReadingNotes.reader` of documents that are read now."""
    from lshdup.text.office_processes import reader_version

    return reader_version()
