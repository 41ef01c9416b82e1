"""Documents -> shingle sets -> signatures: one pass over the documents, on all threads, taking over what an earlier run knows.

Called by pipeline.py, fromdocuments.py and fromstore.py. Knows no terminal and no store.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.document_list import DocumentList
from lshdup.params import ShingleParams, SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter, Unfiltered
from lshdup.skipped import Skipped
from lshdup.utils.ragged import RaggedSets, StringTable

_NONE = np.zeros(0, np.int64)
_NO_GUESSES = StringTable.from_strings([])


@dataclass(frozen=True)
class SkippedFile:
    """A file that was read and is no document; remembered, so that it is not read again while it is unchanged."""

    skipped: Skipped
    size: int
    mtime: int


@dataclass(frozen=True)
class Collection:
    """The documents of a run and what was made of them.

    documents : the n documents that could be read, those without tokens too. sizes : int64 array of shape (n,), shingles of each.
    fingerprints : uint64 array of shape (n,), of the shingle sets. skipped : files that were read and are no documents. sets : the
    shingle sets, if they were kept. signatures : uint32 array of shape (n, K), if they were made, by `sketch`. read : how many documents
    were read in this run; None if it continues from an artifact, and nobody has looked at the documents. corpus : what `store.corpus_id`
    says of it; empty if nobody has asked yet.
    shingle_filter, unfiltered : the shingles that were removed from the sets, and what those were before;
    None if none were. All else is of what is left.
    extracted : int64 array, ascending: documents whose text a reader of office formats gave. reader : which one and its version; empty if
    nothing depends on it.
    guessed : int64 array, ascending: documents whose encoding was detected. guesses : as what each of those was read (`Text.encoding`).
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
    corpus: str = ""
    shingle_filter: ShingleFilter | None = None
    unfiltered: Unfiltered | None = None
    extracted: NDArray[np.int64] = field(default_factory=lambda: _NONE)
    reader: str = ""
    guessed: NDArray[np.int64] = field(default_factory=lambda: _NONE)
    guesses: StringTable = field(default_factory=lambda: _NO_GUESSES)

    @property
    def unfiltered_sets(self) -> RaggedSets | None:
        """The sets before anything was removed, if they were kept: what shingles.npz holds."""
        return self.sets if self.unfiltered is None else self.unfiltered.sets

    @property
    def before(self) -> "Collection":
        """The collection before shingles were removed, and without signatures."""
        if self.unfiltered is None:
            return replace(self, sketch=None, signatures=None)
        return replace(
            self,
            sizes=self.unfiltered.sizes,
            fingerprints=self.unfiltered.fingerprints,
            sets=self.unfiltered.sets,
            corpus=self.unfiltered.corpus,
            sketch=None,
            signatures=None,
            shingle_filter=None,
            unfiltered=None,
        )

    def with_unfiltered_sets(self, sets: RaggedSets | None) -> "Collection":
        """The same with these as its whole sets; without them, when the file or the memory that they are in goes."""
        if self.unfiltered is None:
            return replace(self, sets=sets)
        return replace(self, sets=None, unfiltered=replace(self.unfiltered, sets=sets))

    def without_other_readers(self) -> "Collection":
        """The same with nothing known of what another reader of office formats, or another version of this one, made."""
        if not self.reader or self.reader == current_reader():
            return self
        sizes = self.documents.sizes.copy()
        sizes[self.extracted] = -1  # no file has that size: they have all changed
        skipped = tuple(each for each in self.skipped if not each.skipped.reason.is_of_reader)
        return replace(self, documents=replace(self.documents, sizes=sizes), skipped=skipped)


def current_reader() -> str:
    """What `Collection.reader` is of documents that are read now."""
    from lshdup.text.office import reader_version

    return reader_version()
