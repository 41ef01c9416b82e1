"""Two sides, new documents and those they are held against, each of one collection or several. Called by crossing.py and against.py.

Documents of the first side are numbered from 0, those of the other after them, so that pairs are what they are elsewhere. Each side has
kinds of its own (documents with identical shingle sets).
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection
from lshdup.lsh import band_table
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.candidates import find_exact_duplicates
from lshdup.utils.ragged import RaggedSets, SetSource, offsets_of


@dataclass(frozen=True)
class Part:
    """One collection with signatures, and where its shingle sets come from; a document whose set cannot be had is an empty set there."""

    collection: Collection
    source: SetSource


class Side:
    """The documents of one or more collections, in the order of one, or in byte order of their names as they are typed from here.

    A file that several collections have is a document of the first of them. sizes : int64 array of shape (n,), shingles of each.
    fingerprints : uint64 array of shape (n,), of the shingle sets.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._starts = offsets_of(
            np.array([len(part.collection.documents) for part in parts], np.int64)
        )
        self._places: NDArray[np.int64] | None = None  # among all documents of all parts
        self.sizes = np.concatenate([part.collection.sizes for part in parts])
        self.fingerprints = np.concatenate([part.collection.fingerprints for part in parts])
        if len(parts) > 1:
            everything = np.arange(len(self.sizes))
            once = {
                name: place for place, name in reversed([*enumerate(self.identities(everything))])
            }
            names = self.names(everything)
            self._places = np.array(sorted(once.values(), key=names.__getitem__), np.int64)
            self.sizes, self.fingerprints = (
                self.sizes[self._places],
                self.fingerprints[self._places],
            )

    def __len__(self) -> int:
        return len(self.sizes)

    def names(self, documents: NDArray[np.int64]) -> list[bytes]:
        """As they would be typed from the current folder."""
        return self._strings(
            documents, lambda collection, rows: collection.documents.typed_names(rows)
        )

    def identities(self, documents: NDArray[np.int64]) -> list[bytes]:
        """The real path of each document; of a line of an id list, with its name."""
        return self._strings(documents, _identities)

    def first_there(self, documents: NDArray[np.int64]) -> int:
        """The first of these documents whose file is still there; -1 if none is."""
        for part, rows, at in self._by_part(documents):
            for row, place in zip(rows.tolist(), at.tolist(), strict=True):
                if os.path.exists(part.collection.documents.path(row)):  # noqa: PTH110 (bytes path)
                    return int(documents[place])
        return -1

    def changed(self, documents: NDArray[np.int64]) -> int:
        """How many have vanished or changed since they were listed."""
        return sum(
            len(part.collection.documents.changed(rows))
            for part, rows, _ in self._by_part(documents)
        )

    def band_keys(self, plan: BandPlan, jobs: int) -> NDArray[np.uint64]:
        """uint64 array of shape (bands, n)."""
        keys = [
            band_table.band_keys(_there(part.collection.signatures), plan, jobs)
            for part in self._parts
        ]
        return keys[0] if self._places is None else np.concatenate(keys, axis=1)[:, self._places]

    def signatures(self, documents: NDArray[np.int64]) -> NDArray[np.uint32]:
        """uint32 array of shape (len(documents), K)."""
        out = np.empty(
            (len(documents), _there(self._parts[0].collection.signatures).shape[1]), np.uint32
        )
        for part, rows, at in self._by_part(documents):
            out[at] = _there(part.collection.signatures)[rows]
        return out

    def sets(self, documents: NDArray[np.int64]) -> RaggedSets:
        """The shingle sets of some documents (ascending int64 array), as a `SetSource` gives them."""
        if self._places is None:
            return self._parts[0].source(documents)
        found, order = [], []
        for part, rows, at in self._by_part(documents):
            ascending = np.argsort(rows)
            found.append(part.source(rows[ascending]))
            order.append(at[ascending])
        return RaggedSets.concatenate(found).take(
            np.argsort(np.concatenate([np.zeros(0, np.int64), *order]))
        )

    def _by_part(
        self, documents: NDArray[np.int64]
    ) -> Iterator[tuple[Part, NDArray[np.int64], NDArray[np.int64]]]:
        """Each part with its rows among these documents, and where in `documents` they stand."""
        places = documents if self._places is None else self._places[documents]
        for part, start, end in zip(self._parts, self._starts[:-1], self._starts[1:], strict=True):
            at = np.flatnonzero((places >= start) & (places < end))
            if len(at):
                yield part, places[at] - start, at

    def _strings(
        self,
        documents: NDArray[np.int64],
        of: Callable[[Collection, NDArray[np.int64]], list[bytes]],
    ) -> list[bytes]:
        out = [b""] * len(documents)
        for part, rows, at in self._by_part(documents):
            for place, string in zip(at.tolist(), of(part.collection, rows), strict=True):
                out[place] = string
        return out


def _there(signatures: NDArray[np.uint32] | None) -> NDArray[np.uint32]:
    assert signatures is not None
    return signatures


def _identities(collection: Collection, rows: NDArray[np.int64]) -> list[bytes]:
    documents = collection.documents
    folders: dict[bytes, bytes] = {}
    found = []
    for row in rows.tolist():
        folder, base = os.path.split(documents.path(row))
        if folder not in folders:
            folders[folder] = os.path.realpath(folder or b".")
        path = os.path.join(folders[folder], base)  # noqa: PTH118 (bytes path)
        if os.path.islink(path):  # noqa: PTH114 (bytes path)
            path = os.path.realpath(path)
        found.append(path if documents.is_file(row) else path + b"\0" + documents.names[row])
    return found


@dataclass(frozen=True)
class Sides:
    """Two sides, and the documents of both under one numbering; the other side's begin at `split`."""

    here: Side
    there: Side

    @property
    def split(self) -> int:
        return len(self.here)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.concatenate([self.here.sizes, self.there.sizes])

    @property
    def fingerprints(self) -> NDArray[np.uint64]:
        return np.concatenate([self.here.fingerprints, self.there.fingerprints])

    def find_exact_duplicates(self) -> NDArray[np.int64]:
        """The first copy of each document on its own side: int64 array."""
        here, there = (
            find_exact_duplicates(self.here.fingerprints),
            find_exact_duplicates(self.there.fingerprints),
        )
        return np.concatenate([here, there + self.split])

    def members(self, duplicate_of: NDArray[np.int64]) -> NDArray[np.int64]:
        """Documents that take part in comparisons: the first of each kind that has tokens; ascending int64 array."""
        return np.flatnonzero((duplicate_of == np.arange(len(duplicate_of))) & (self.sizes > 0))

    def of(self, documents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ascending numbers of documents of both sides -> of the first, and of the other by its own numbering."""
        return documents[documents < self.split], documents[documents >= self.split] - self.split

    def names(self, documents: NDArray[np.int64]) -> list[bytes]:
        """Names of documents of both sides (ascending int64 array)."""
        here, there = self.of(documents)
        return self.here.names(here) + self.there.names(there)

    def sets(self, documents: NDArray[np.int64]) -> RaggedSets:
        """Sets of documents of both sides (ascending int64 array)."""
        here, there = self.of(documents)
        return RaggedSets.concatenate([self.here.sets(here), self.there.sets(there)])
