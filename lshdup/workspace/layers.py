"""The layers of an index: documents that came together, what is known of them, and their tables.

A layer never changes, but that documents are removed: these are marked. Layers are joined to one
where all documents are compared with each other, and small ones so that a query asks few.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.params import STORED_SCHEMES, BandParams, Params
from lshdup.base.ragged import RaggedSets, StringTable
from lshdup.base.run import Run
from lshdup.collection.collect import sketch_collection
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import filter_collection
from lshdup.collection.from_texts import collect_checked
from lshdup.collection.set_source import side_of
from lshdup.compare.comparing import find_matches, find_neighbours
from lshdup.compare.results import Index, Matches
from lshdup.compare.sides import LEVELS, Fingerprints, Side, Sides
from lshdup.errors import ParameterError
from lshdup.lsh.band_plan import plan_bands
from lshdup.lsh.candidates import documents_to_compare
from lshdup.pipeline import build_index
from lshdup.sources.document_list import DocumentList, split_by_list

#: What the columns of matches say.
SAME = np.array([word or "" for word in LEVELS], object)
VERIFIED = np.array(["exact", "estimate"], object)

#: Documents of a layer that takes further ones.
SMALL = 64


class Layer:
    """Documents of an index.

    run : threads and memory.
    collection : n documents with signatures; with their sets, if they are not read again.
    index : band table of the documents, if there is one already.
    side : with the source of the sets, if it is another one than that of the collection.
    """

    def __init__(
        self, run: Run, collection: Collection, index: Index | None = None, side: Side | None = None
    ) -> None:
        self._run, self.collection = run, collection
        #: bool array of shape (n,), which documents were removed since.
        self.removed = np.zeros(len(collection.documents), bool)
        self._index, self._tables = index, dict[BandParams, Index]()
        if side is not None:
            self.side = side

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in vars(self).items() if name not in ("side", "_sides")}

    def __len__(self) -> int:
        return int(np.count_nonzero(~self.removed))

    @cached_property
    def side(self) -> Side:
        """The documents as a side of a comparison, whose sets any thread may take."""
        run, collection = self._run, self.collection
        if collection.sets is not None and not collection.saved_identity:  # in memory
            return side_of(run, collection, collection.filtered_sets(run.arrays))
        side, reading = side_of(run, collection), threading.Lock()

        def take(rows: NDArray[np.int64]) -> RaggedSets:
            with reading:
                return side.source(rows)

        return replace(side, source=take)

    @cached_property
    def _sides(self) -> Sides:
        return Sides.of(self._run, self.side)

    @cached_property
    def table(self) -> StringTable:
        """The names of all documents."""
        documents = self.collection.documents
        if not documents.home:
            return documents.names
        return StringTable.from_strings(documents.typed_names(np.arange(len(documents))))

    def names(self, rows: NDArray[np.integer]) -> list[str]:
        """Return the names of documents."""
        return list(map(os.fsdecode, self.collection.documents.typed_names(rows.astype(np.int64))))

    def list_names(self) -> list[str]:
        """Return the names of all documents that are not removed."""
        return self.names(np.flatnonzero(~self.removed))

    def find_names(self, names: Iterable[bytes], *, stored: bool = False) -> NDArray[np.int64]:
        """Return the document of each name that is not removed, or -1: int64 array.

        stored : whether names are those of the store, which are the same from any current folder.
        """
        table = self.collection.documents.names if stored else self.table
        rows = table.match(StringTable.from_strings(names))
        there = np.flatnonzero(rows >= 0)
        rows[there[self.removed[rows[there]]]] = -1
        return rows

    def remove(self, names: Iterable[bytes]) -> None:
        """Mark the documents of some names of the store as removed, as far as they are here."""
        rows = self.find_names(names, stored=True)
        self.removed[rows[rows >= 0]] = True

    def whole(self) -> "Layer":
        """Return the documents of which none is removed, as a layer of its own."""
        made = copy(self)
        made.removed = np.zeros_like(self.removed)
        return made

    def index(self, params: BandParams) -> Index:
        """Return the index for a threshold, which is built the first time.

        Raise ParameterError if no plan keeps the promised recall.
        """
        if params not in self._tables:
            assert self.collection.sketch is not None
            plan = plan_bands(self.collection.sketch.perms, params)
            built = (each for each in (self._index, *self._tables.values()) if each is not None)
            same = next((each for each in built if each.plan.has_shape_of(plan)), None)
            self._tables[params] = same or build_index(self._run, self.collection, params)
        return self._tables[params]

    def find(self, left: Side, params: BandParams, measure: str, itself: int = -1) -> Matches:
        """Return the documents that are near documents of another side.

        itself : the one that is looked up, if it is of this layer.
        """
        if measure == "jaccard":
            index = self.index(params)
            found = find_matches(self._run, left, self.side, index, params.threshold)
        else:
            found = self._find_contained(left, params.threshold, measure)
        return found.take(~self.removed[found.documents] & (found.documents != itself))

    def _find_contained(self, left: Side, threshold: float, measure: str) -> Matches:
        sides, run = self._sides, self._run
        met = documents_to_compare(run, sides.duplicate_of, sides.sizes)
        each = np.flatnonzero(left.sizes)
        near = [
            find_neighbours(run, shingles, met, sides, threshold, measure, itself=-1)
            for shingles in map(left.source(each).__getitem__, range(len(each)))
        ]
        counts = np.array([len(one.documents) for one in near], np.int64)
        documents = np.concatenate([met[:0], *(one.documents for one in near)])
        scores = np.concatenate([np.zeros(0), *(one.similarity for one in near)])
        return Matches(np.repeat(each, counts), documents, scores, np.zeros(len(scores), bool))

    def sign(self, texts: Mapping[str, bytes]) -> "Layer":
        """Return new texts as a layer, with sets and signatures as those of this one.

        texts : by name, as `check_text` returns them. Raise ParameterError if its signatures depend
            on all documents.
        """
        like, run = self.collection, self._run
        assert like.sketch is not None
        if like.sketch.scheme not in STORED_SCHEMES:
            message = f"with scheme={like.sketch.scheme!r}, a new text changes every signature"
            raise ParameterError(message, f"use {' or '.join(STORED_SCHEMES)}")
        made = collect_checked(texts, [*texts.values()], like.shingle)
        if like.shingle_filter is not None:
            return Layer(run, filter_collection(run, made, like.shingle_filter, like.sketch))
        return Layer(run, sketch_collection(run, made, like.sketch))

    @classmethod
    def push(
        cls, run: Run, layers: Sequence["Layer"], new: "Layer", first: int = 1
    ) -> tuple["Layer", ...]:
        """Return layers with a further one behind. Small ones before it are joined with it, but the
        first ones: of n documents there are at most about log n layers.

        first : so many stay as they are.
        """
        before = list(layers)
        while len(before) > first and len(before[-1]) <= max(len(new), SMALL):
            new = cls.join(run, [before.pop(), new])
        return *before, new

    def without_removed(self) -> "Layer":
        """Return the documents that are not removed, as a layer."""
        if not self.removed.any():
            return self
        return Layer(self._run, self.collection.take(self._run, np.flatnonzero(~self.removed)))

    @classmethod
    def join(cls, run: Run, layers: Sequence["Layer"]) -> "Layer":
        """Return the documents of layers that are not removed as one layer, in order."""
        parts = [each.without_removed() for each in layers if len(each)] or [*layers[:1]]
        if len(parts) == 1:
            return parts[0].without_removed()
        arrays, collections = run.arrays, [part.collection for part in parts]
        lists, first = [each.documents for each in collections], collections[0]
        names = StringTable.concatenate((part.table for part in parts), arrays)
        sizes = arrays.concatenate([each.sizes for each in lists])
        mtimes = arrays.concatenate([each.mtimes for each in lists])
        sets = [each.sets for each in collections if each.sets is not None]
        signatures = [each.signatures for each in collections if each.signatures is not None]
        made = Collection(
            DocumentList(names, sizes, mtimes, docs=first.documents.docs),
            first.shingle,
            {
                name: arrays.concatenate([each.columns[name] for each in collections])
                for name in first.columns
            },
            sets=RaggedSets.concatenate(sets, arrays) if len(sets) == len(parts) else None,
            sketch=first.sketch,
            signatures=arrays.concatenate(signatures),
            shingle_filter=first.shingle_filter,
        )
        if made.sets is not None:
            return cls(run, made)

        def split(rows: NDArray[np.int64]) -> Iterator[tuple[Side, int, NDArray[np.int64]]]:
            for part, (_, start, own) in zip(parts, split_by_list(lists, rows), strict=True):
                yield part.side, start, own

        def expect(rows: NDArray[np.int64]) -> None:
            for side, _, own in split(rows):
                side.expect(own)

        def find_existing(rows: NDArray[np.int64]) -> int:
            found = ((start, side.find_existing(own)) for side, start, own in split(rows))
            return next((start + at for start, at in found if at >= 0), -1)

        side = Side(
            made.sizes, made.fingerprints, made.prints,
            lambda rows: RaggedSets.concatenate(side.source(own) for side, _, own in split(rows)),
            made.signatures, None, expect, find_existing,
        )  # fmt: skip
        return cls(run, made, side=side)


def find_in_layers(
    layers: Sequence[Layer], left: Side, params: Params, itself: tuple[int, int] = (-1, -1)
) -> list[NDArray[Any]]:
    """Return how many documents are near each document of a side, and of each of these, its name,
    its similarity, whether it is the SAME, and how it is VERIFIED.

    itself : the layer of the only document of the side, and its number there, if it has one.
    """
    parts, first, q = [], 0, len(left.sizes)
    for number, layer in enumerate(layers):
        own = itself[1] if number == itself[0] else -1
        found = layer.find(left, params.bands, params.pairs.measure, own)
        rows, prints = found.documents, layer.side.prints
        assert left.prints is not None
        assert prints is not None
        there = Fingerprints(prints.byte_prints[rows], prints.text_prints[rows])
        both = Fingerprints.concatenate([left.prints, there])
        levels = both.compare(found.left, np.arange(q, q + len(rows)))
        names = np.array(layer.names(rows), object)
        parts.append((found.left, rows + first, names, found.similarity, levels, found.estimated))
        first += len(layer.removed)
    of, rows, *columns = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((rows, -columns[1], of))
    names, similarity, levels, estimated = (column[order] for column in columns)
    verified = VERIFIED[estimated.astype(np.int64)]
    return [np.bincount(of, minlength=q), names, similarity.real, SAME[levels], verified]
