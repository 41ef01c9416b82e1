"""Two sides under one numbering: documents of DOCS from 0 on, documents of OTHER behind them."""

import os

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection
from lshdup.documents.document_list import DocumentList
from lshdup.frozen import dataclass
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.band_table import band_keys
from lshdup.lsh.candidates import find_exact_duplicates
from lshdup.matching.sameness import Prints
from lshdup.utils.ragged import RaggedSets, SetSource


@dataclass(frozen=True)
class Side:
    """A collection with signatures, and the function that gives its shingle sets.

    The set of a document that cannot be read any more is empty.
    """

    collection: Collection
    source: SetSource

    @property
    def documents(self) -> DocumentList:
        return self.collection.documents

    @property
    def signatures(self) -> NDArray[np.uint32]:
        """uint32 array of shape (n, K)."""
        assert self.collection.signatures is not None
        return self.collection.signatures

    def resolve_paths(self, documents: NDArray[np.int64]) -> list[bytes]:
        """Return the real path of each document; of a line of an id list, with its name."""
        folders: dict[bytes, bytes] = {}
        found = []
        for row in documents.tolist():
            folder, base = os.path.split(self.documents.path(row))
            if folder not in folders:
                folders[folder] = os.path.realpath(folder or b".")
            path = os.path.join(folders[folder], base)  # noqa: PTH118 (bytes path)
            if os.path.islink(path):  # noqa: PTH114 (bytes path)
                path = os.path.realpath(path)
            is_file = self.documents.is_file(row)
            found.append(path if is_file else path + b"\0" + self.documents.names[row])
        return found

    def find_existing(self, documents: NDArray[np.int64]) -> int:
        """Return the first of these documents whose file exists; -1 if none does."""
        for row in documents.tolist():
            if os.path.exists(self.documents.path(row)):  # noqa: PTH110 (bytes path)
                return int(row)
        return -1


@dataclass(frozen=True)
class Sides:
    """Two sides, here (DOCS) and there (OTHER). Each has exact duplicates of its own."""

    here: Side
    there: Side

    @property
    def split(self) -> int:
        """Number of the first document there."""
        return len(self.here.documents)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64 array of shape (n,): shingles of each document."""
        return np.concatenate([self.here.collection.sizes, self.there.collection.sizes])

    @property
    def fingerprints(self) -> NDArray[np.uint64]:
        """uint64 array of shape (n,): fingerprints of the shingle sets."""
        return np.concatenate(
            [self.here.collection.fingerprints, self.there.collection.fingerprints]
        )

    @property
    def prints(self) -> Prints:
        """The fingerprints of the bytes and of the token sequences of all documents."""
        return Prints.concatenate([self.here.collection.prints, self.there.collection.prints])

    def find_exact_duplicates(self) -> NDArray[np.int64]:
        """Return for each document the first one of its side with the same set: int64 array."""
        here = find_exact_duplicates(self.here.collection.fingerprints)
        there = find_exact_duplicates(self.there.collection.fingerprints)
        return np.concatenate([here, there + self.split])

    def is_one_document(self) -> bool:
        """Return whether either side has one document with shingles, the same on both."""
        here, there = (np.flatnonzero(side.collection.sizes) for side in (self.here, self.there))
        return (len(here), len(there)) == (1, 1) and self.here.resolve_paths(
            here
        ) == self.there.resolve_paths(there)

    def build_band_keys(self, plan: BandPlan, jobs: int) -> NDArray[np.uint64]:
        """Return the keys of all documents in all bands: uint64 array of shape (bands, n)."""
        here = band_keys(self.here.signatures, plan, jobs)
        return np.concatenate([here, band_keys(self.there.signatures, plan, jobs)], axis=1)

    def separate(self, documents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Separate ascending numbers into documents here, and there by their own number."""
        return documents[documents < self.split], documents[documents >= self.split] - self.split

    def names(self, documents: NDArray[np.int64]) -> list[bytes]:
        """Return the names of documents (ascending int64 array) as typed from here."""
        here, there = self.separate(documents)
        return self.here.documents.typed_names(here) + self.there.documents.typed_names(there)

    def sets(self, documents: NDArray[np.int64]) -> RaggedSets:
        """Return the shingle sets of documents (ascending int64 array)."""
        here, there = self.separate(documents)
        return RaggedSets.concatenate([self.here.source(here), self.there.source(there)])
