"""The tokens of a run in their order, and their anchors, kept while batches finish."""

from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import GrowingArray, slices_of
from lshdup.base.frozen import dataclass
from lshdup.base.ragged import RaggedSets, offsets_of
from lshdup.base.run import Run
from lshdup.base.scratch import Spool
from lshdup.params import PassageParams
from lshdup.passages.anchors import AnchorKeeper, Anchors, select
from lshdup.shingling.shingler import ShingleBatch

_I64 = NDArray[np.int64]


@dataclass(frozen=True)
class _Side:
    """Sequences of one collection: the document of each, -1 for none, and the tokens of each."""

    documents: _I64
    sizes: _I64


class SequenceKeeper:
    """Sequences of tokens of one collection or of several, in temporary files, with their anchors.

    In `collect` it stands in the place of a `SetKeeper`; the collection has no sets then. Sequences
    stay in the order in which documents are read.

    folder : where the tokens are; None: where the system has temporary files.
    expected : as for `AnchorKeeper`.
    """

    def __init__(self, run: Run, params: PassageParams, folder: Path | None, expected: int) -> None:
        self._tokens, self._arrays = Spool(folder), run.arrays
        self._anchors = AnchorKeeper(run, params, expected)
        self._selected: dict[int, tuple[NDArray[np.uint64], _I64]] = {}
        self._total = 0
        self._begin()
        self._sides: list[_Side] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._tokens:
            pass

    def keep_copy(
        self, made: ShingleBatch, _filtered: RaggedSets, _fingerprints: NDArray[np.uint64]
    ) -> RaggedSets:
        """Return a copy of the sequences of a batch, whose anchors are kept. For any thread."""
        copy = made.sets.copy()
        if len(made.indices):
            anchors = select(copy, self._anchors.gram, self._anchors.window)
            self._selected[int(made.indices[0])] = anchors
        return copy

    def add(self, indices: _I64, sets: RaggedSets) -> None:
        """Keep the sequences of some documents, for which `keep_copy` was called."""
        if len(indices):
            hashes, positions = self._selected.pop(int(indices[0]))
            self._anchors.add(hashes, positions + self._total)
            self._tokens.append(sets.values)
            self._total += len(sets.values)
            self._indices.append(indices)
            self._sizes.append(sets.sizes)

    def _begin(self) -> None:
        """Begin with a collection of which no sequence is known."""
        self._indices, self._sizes = (GrowingArray(np.int64, self._arrays) for _ in range(2))

    def finish(self) -> None:
        """Number the documents of a collection, and begin with the next one."""
        arrays, indices, sizes = self._arrays, self._indices.whole(), self._sizes.whole()
        self._begin()
        numbered = arrays.copy(indices)
        numbered.sort()
        without = int(np.searchsorted(numbered, 0))

        def document_of(some: slice) -> _I64:
            place = np.searchsorted(numbered, indices[some]) - without
            return np.where(indices[some] < 0, -1, place)

        documents = arrays.compute(len(indices), np.int64, document_of)
        self._sides.append(_Side(documents, sizes))

    def reuse(self, _sets: object, known: NDArray[np.bool_], rows: _I64) -> None:
        """Go on with the last collection: some of its documents are among those of a new list.

        known : bool array over all documents of the list. rows : int64 array, the document of each.
        """
        side, arrays = self._sides.pop(), self._arrays
        # The last one is no document.
        index_of: _I64 = arrays.full(len(side.documents) + 1, -1, np.int64)
        for some in slices_of(len(rows)):
            indices = np.flatnonzero(known[some]) + some.start
            index_of[rows[indices]] = indices
        self._begin()
        self._indices.append(arrays.take(index_of, side.documents))
        self._sizes.append(side.sizes)

    def first_of(self, collection: int) -> int:
        """Return the first sequence of a collection, by its number."""
        return sum(len(side.sizes) for side in self._sides[:collection])

    def results(self) -> tuple[RaggedSets, Anchors, _I64]:
        """Return all sequences, mapped, their anchors that recur, and the document of each.

        Documents of a collection are behind those of the one before it. Sequences without anchors
        may be of no document; their number is that of all documents.
        """
        arrays = self._arrays
        sizes = arrays.concatenate([side.sizes for side in self._sides])
        ends = np.cumsum([0, *(int((side.documents >= 0).sum()) for side in self._sides)])
        numbered = []
        for each, first in zip(self._sides, ends[:-1], strict=True):
            documents = arrays.copy(each.documents)
            documents += first
            documents[each.documents < 0] = ends[-1]
            numbered.append(documents)
        documents = arrays.concatenate(numbered)
        sequences = RaggedSets(self._tokens.values(), offsets_of(sizes, arrays))
        anchors = self._anchors.recurring()
        if (documents == ends[-1]).any():
            held = np.searchsorted(sequences.offsets, anchors.positions, side="right") - 1
            mine = documents[held] < ends[-1]
            hashes, positions = anchors.hashes[mine], anchors.positions[mine]
            anchors = replace(anchors, hashes=hashes, positions=positions)
        return sequences, anchors, documents
