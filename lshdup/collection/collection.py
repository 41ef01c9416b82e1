"""The collection of a run: documents, shingle sets, signatures, and how they were made."""

import hashlib
import json
import unicodedata
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.document_list import DocumentList
from lshdup.params import ShingleParams, SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.skipped import SkippedFile
from lshdup.utils.ragged import RaggedSets, StringTable

_NO_DOCUMENTS = np.zeros(0, np.int64)
_NO_STRINGS = StringTable.from_strings([])


@dataclass(frozen=True)
class ReadingNotes:
    """How documents were read whose text depends on more than their bytes.

    extracted : int64 array, ascending, the documents whose text a reader of office formats gave.
    reader : that reader and its version; empty if nothing depends on it.
    guessed : int64 array, ascending, the documents whose encoding was detected.
    guesses : the encoding of each guessed document (`Text.encoding`).
    """

    extracted: NDArray[np.int64] = field(default_factory=lambda: _NO_DOCUMENTS)
    reader: str = ""
    guessed: NDArray[np.int64] = field(default_factory=lambda: _NO_DOCUMENTS)
    guesses: StringTable = field(default_factory=lambda: _NO_STRINGS)


@dataclass(frozen=True)
class Unfiltered:
    """The sets of a collection before a filter removed shingles from them.

    shingle_filter : the filter. sizes, fingerprints : int64 and uint64 arrays of shape (n,).
    sets : the unfiltered sets, if they were kept.
    saved_identity : the identity of the unfiltered collection, if an artifact says it.
    """

    shingle_filter: ShingleFilter
    sizes: NDArray[np.int64]
    fingerprints: NDArray[np.uint64]
    sets: RaggedSets | None = None
    saved_identity: str = ""

    def take(self, rows: NDArray[np.int64]) -> "Unfiltered":
        """Return the sizes and fingerprints of some documents, without the sets."""
        return Unfiltered(self.shingle_filter, self.sizes[rows], self.fingerprints[rows])


@dataclass(frozen=True)
class Collection:
    """The documents of a run and everything that was made of them.

    documents : the n documents that could be read, also those without tokens.
    sizes : int64 array of shape (n,), the number of shingles of each document.
    fingerprints : uint64 array of shape (n,), of the shingle sets.
    skipped : files and records that were read and are no documents.
    sets : the shingle sets, if they were kept.
    sketch, signatures : uint32 array of shape (n, K) and how it was made, if it was made.
    read : the number of documents read in this run; None if the collection comes from an artifact.
    unfiltered : the sets before shingles were removed; None if none were. Everything else
        describes the filtered sets.
    notes : how documents were read.
    saved_identity : the identity, if an artifact says it.
    """

    documents: DocumentList
    shingle: ShingleParams
    sizes: NDArray[np.int64]
    fingerprints: NDArray[np.uint64]
    skipped: tuple[SkippedFile, ...] = ()
    sets: RaggedSets | None = None
    sketch: SketchParams | None = None
    signatures: NDArray[np.uint32] | None = None
    read: int | None = None
    unfiltered: Unfiltered | None = None
    notes: ReadingNotes = field(default_factory=ReadingNotes)
    saved_identity: str = ""

    @cached_property
    def identity(self) -> str:
        """32 hexadecimal digits of the names, the sets, and how the sets were made.

        Two collections with the same identity have the same shingle sets.
        """
        if self.saved_identity:
            return self.saved_identity
        digest = hashlib.blake2b(digest_size=16)
        definitions = [self.shingle.to_json(), unicodedata.unidata_version]
        if self.shingle_filter is not None:
            definitions.append(self.shingle_filter.to_json())
        digest.update(json.dumps(definitions, sort_keys=True).encode())
        names = self.documents.names
        for array in (names.offsets, names.blob, self.fingerprints):
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    @property
    def unfiltered_identity(self) -> str:
        """The identity of the collection before shingles were removed: that of shingles.npz."""
        return self.before_filter.identity

    @property
    def shingle_filter(self) -> ShingleFilter | None:
        """The filter that removed shingles from the sets; None if none did."""
        return None if self.unfiltered is None else self.unfiltered.shingle_filter

    @property
    def unfiltered_sets(self) -> RaggedSets | None:
        """The sets before shingles were removed, if they were kept: what shingles.npz holds."""
        return self.sets if self.unfiltered is None else self.unfiltered.sets

    @cached_property
    def before_filter(self) -> "Collection":
        """The collection before shingles were removed, and without signatures."""
        if self.unfiltered is None:
            return replace(self, sketch=None, signatures=None, saved_identity=self.identity)
        return replace(
            self,
            sizes=self.unfiltered.sizes,
            fingerprints=self.unfiltered.fingerprints,
            sets=self.unfiltered.sets,
            sketch=None,
            signatures=None,
            unfiltered=None,
            saved_identity=self.unfiltered.saved_identity,
        )

    def with_unfiltered_sets(self, sets: RaggedSets | None) -> "Collection":
        """Return the collection with these unfiltered sets, or without any."""
        if self.unfiltered is None:
            return replace(self, sets=sets)
        return replace(self, sets=None, unfiltered=replace(self.unfiltered, sets=sets))

    def take(self, rows: NDArray[np.int64]) -> "Collection":
        """Return the documents at ascending `rows` with everything that was made of them."""
        notes, whole, sets = self.notes, self.unfiltered, self.unfiltered_sets
        guessed = np.isin(notes.guessed, rows)
        taken = replace(
            self,
            documents=self.documents.take(rows),
            sizes=self.sizes[rows],
            fingerprints=self.fingerprints[rows],
            sets=None,
            signatures=self.signatures[rows] if self.signatures is not None else None,
            unfiltered=whole.take(rows) if whole is not None else None,
            notes=ReadingNotes(
                np.searchsorted(rows, notes.extracted[np.isin(notes.extracted, rows)]),
                notes.reader,
                np.searchsorted(rows, notes.guessed[guessed]),
                notes.guesses.take(np.flatnonzero(guessed)),
            ),
            saved_identity="",
        )
        return taken if sets is None else taken.with_unfiltered_sets(sets.take(rows))

    def without_other_readers(self) -> "Collection":
        """Return the collection without the results of another reader of office formats."""
        if not self.notes.reader or self.notes.reader == current_reader():
            return self
        sizes = self.documents.sizes.copy()
        sizes[self.notes.extracted] = -1  # No file has this size: the documents have all changed.
        skipped = tuple(each for each in self.skipped if not each.skipped.reason.is_of_reader)
        return replace(self, documents=replace(self.documents, sizes=sizes), skipped=skipped)


def current_reader() -> str:
    """Return the `ReadingNotes.reader` of documents that are read now."""
    from lshdup.text.office_processes import reader_version

    return reader_version()
