"""Two sides under one numbering: documents of DOCS from 0 on, documents of OTHER behind them."""

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import RaggedSets, SetSource
from lshdup.base.run import Run
from lshdup.collection.collection import Collection
from lshdup.collection.set_source import expecting
from lshdup.compare.sameness import Prints
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.band_table import band_keys
from lshdup.lsh.candidates import find_exact_duplicates
from lshdup.sources.document_list import DocumentList
from lshdup.workspace.against.shared import find_shared, match_paths, resolve_paths


@dataclass(frozen=True)
class Side:
    """A collection with signatures, and the functions that give shingle sets of documents
    (ascending int64 array), and their samples at a rate if samples may be joined: these are made
    of the sets that another function gives, but for those that are known.

    The set of a document that cannot be read any more is empty.
    """

    collection: Collection
    source: SetSource
    sample: Callable[[NDArray[np.int64], int, SetSource], RaggedSets] | None = None

    @property
    def documents(self) -> DocumentList:
        return self.collection.documents

    @property
    def signatures(self) -> NDArray[np.uint32]:
        """uint32 array of shape (n, K)."""
        assert self.collection.signatures is not None
        return self.collection.signatures

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

    def find_exact_duplicates(self, run: Run) -> NDArray[np.int64]:
        """Return for each document the first one of its side with the same set: int64 array."""
        here = find_exact_duplicates(run, self.here.collection.fingerprints)
        there = find_exact_duplicates(run, self.there.collection.fingerprints)
        there += self.split
        return run.arrays.concatenate([here, there])

    def is_one_document(self) -> bool:
        """Return whether either side has one document with shingles, the same on both."""
        here, there = (np.flatnonzero(side.collection.sizes) for side in (self.here, self.there))
        return (len(here), len(there)) == (1, 1) and resolve_paths(
            self.here.documents, here
        ) == resolve_paths(self.there.documents, there)

    def match_paths(
        self, here: NDArray[np.int64], there: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return those of these documents that are on both sides, by their numbers on each."""
        return match_paths(self.here.documents, self.there.documents, here, there)

    def find_shared(self) -> NDArray[np.int64]:
        """Return the documents of DOCS that are documents of OTHER as well: int64 array."""
        return find_shared(self.here.documents, self.there.documents)

    def build_band_keys(self, run: Run, plan: BandPlan) -> NDArray[np.uint64]:
        """Return the keys of all documents in all bands: uint64 array of shape (bands, n)."""
        split, n = self.split, self.split + len(self.there.documents)
        keys: NDArray[np.uint64] = run.arrays.empty((plan.bands, n), np.uint64)
        keys[:, :split] = band_keys(run, self.here.signatures, plan)
        keys[:, split:] = band_keys(run, self.there.signatures, plan)
        return keys

    def separate(self, documents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Separate ascending numbers into documents here, and there by their own number."""
        return documents[documents < self.split], documents[documents >= self.split] - self.split

    def names(self, documents: NDArray[np.int64]) -> list[bytes]:
        """Return the names of documents (ascending int64 array) as typed from here."""
        here, there = self.separate(documents)
        return self.here.documents.typed_names(here) + self.there.documents.typed_names(there)

    def expect(self, documents: NDArray[np.int64]) -> None:
        """Tell the sources whose sets will be wanted (ascending int64 array), as `expecting`."""
        for side, own in zip((self.here, self.there), self.separate(documents), strict=True):
            expecting(side.source)(own)

    def sets(self, documents: NDArray[np.int64]) -> RaggedSets:
        """Return the shingle sets of documents (ascending int64 array)."""
        here, there = self.separate(documents)
        return RaggedSets.concatenate([self.here.source(here), self.there.source(there)])

    def sample(self, source: SetSource, documents: NDArray[np.int64], rate: int) -> RaggedSets:
        """Return samples of the shingle sets of documents (ascending int64 array).

        source : gives the sets of documents whose samples are not known.
        """
        assert self.here.sample is not None
        assert self.there.sample is not None
        here, there = self.separate(documents)
        of_here = self.here.sample(here, rate, source)
        of_there = self.there.sample(there, rate, lambda some: source(some + self.split))
        return RaggedSets.concatenate([of_here, of_there])
