"""Shingle sets for verification: from memory, from an artifact, or read from documents again."""

import os

import numpy as np
from numpy.typing import NDArray

from lshdup.base.memory import rows_of
from lshdup.base.params import LONGEST
from lshdup.base.ragged import RaggedSets, SetSource, offsets_of
from lshdup.base.run import Run, ignore
from lshdup.base.skipped import Reason, Skipped
from lshdup.base.system import trim_memory
from lshdup.collection.batches import Workers
from lshdup.collection.collection import Collection
from lshdup.compare.sides import Side
from lshdup.compare.verification import BLOCK_BYTES
from lshdup.errors import RERUN, ArtifactError
from lshdup.shingling.shingler import NO_SETS, ShingleBatch, fingerprint_sets, shingle_hash
from lshdup.sources.text_batches import cut_by_size

#: Bytes of sets that are read at a time, of those that are read once.
_BYTES_AT_ONCE = 24 << 20


def set_source(run: Run, collection: Collection, *, stage: str = "") -> SetSource:
    """Return a function that gives shingle sets to verify pairs with: the sets that the collection
    holds, or else the sets of the documents, read again.

    Raise ArtifactError if a set that a store has kept is damaged.

    A document that cannot be read again, or whose set has changed, is reported once and has an
    empty set: its pairs are missing from the answer, rather than wrong in it. Raise ParameterError
    if the sets were made with a key that is missing.

    stage : name under which the progress of reading is told; empty: it is not told.
    """
    # A keyed store needs its key even where no document is read again.
    shingle_hash(collection.shingle)
    sets, shingle_filter = collection.sets, collection.shingle_filter
    if sets is None:
        return SetReader(run, collection, stage)
    prints = collection.before_filter.fingerprints

    def take(wanted: NDArray[np.int64]) -> RaggedSets:
        """Return kept sets; what a store keeps is verified when it is taken, not as a whole."""
        try:
            taken = sets.take(wanted)
            is_damaged = (fingerprint_sets(taken, collection.shingle) != prints[wanted]).any()
        except IndexError:
            is_damaged = True
        if is_damaged:
            message = "shingles.npz is damaged: a set is not what its document had"
            raise ArtifactError(message, RERUN)
        return taken if shingle_filter is None else shingle_filter.apply(taken)

    return take


def side_of(
    run: Run, collection: Collection, sets: RaggedSets | None = None, *, stage: str = ""
) -> Side:
    """Return a collection as a side of a comparison.

    sets : all sets, filtered; None: they are taken from `set_source`. stage : as there.
    """
    source = set_source(run, collection, stage=stage) if sets is None else sets.take

    def find_existing(documents: NDArray[np.int64]) -> int:
        path = collection.documents.path
        return next((row for row in documents.tolist() if os.path.exists(path(row))), -1)  # noqa: PTH110 (bytes path)

    return Side(
        collection.sizes, collection.fingerprints, collection.prints, source, collection.signatures,
        sets, source.expect if isinstance(source, SetReader) else ignore, find_existing,
    )  # fmt: skip


class SetReader:
    """Sets of the documents of a collection, read again each time, or once if they are known."""

    def __init__(self, run: Run, collection: Collection, stage: str) -> None:
        self._run, self._collection, self._stage = run, collection, stage
        self._workers = Workers(run, collection.shingle)
        self._lost: dict[int, Skipped] = {}
        self._reported: set[int] = set()
        self._expected = np.zeros(0, np.int64)
        self._place = np.zeros(0, np.uint32)
        self._kept: RaggedSets | None = None

    def expect(self, documents: NDArray[np.int64]) -> None:
        """Set which documents will be wanted, if reading them apart would decode rows again.

        A row of Parquet is decoded with all before it, so these rows are read in the order of the
        files, once. documents : ascending.
        """
        if self._collection.documents.has_parquet:
            self._expected, self._kept = documents, None

    def __call__(self, wanted: NDArray[np.int64]) -> RaggedSets:
        sets, expected = None, self._expected
        if len(expected) and self._kept is None:
            self._kept = self._read_once()
            if self._kept is None:  # The disk has no room.
                self._expected = expected = expected[:0]
        if len(expected) and self._kept is not None:
            at = np.minimum(np.searchsorted(expected, wanted), len(expected) - 1)
            if np.array_equal(expected[at], wanted):  # All of them are expected.
                sets = self._kept.take(self._place[at].astype(np.int64))
        if sets is None:
            sets = self._read(wanted)
        for index in sorted(set(wanted.tolist()) & self._lost.keys() - self._reported):
            self._reported.add(index)
            self._run.skipped(self._lost[index])
        return sets

    def _read(self, wanted: NDArray[np.int64]) -> RaggedSets:
        """Return the sets of documents (ascending int64 array), read again."""
        collection = self._collection
        sizes = collection.sizes[wanted]
        if len(wanted) and (sizes.min() < 0 or sizes.max() > LONGEST):
            message = "the store names sets of a size that none can have: it is damaged"
            raise ArtifactError(message, RERUN)
        # Blocks of one size: the C library gives the memory of the last one again, with its pages.
        total = int(sizes.sum())
        room = np.empty(max(total, BLOCK_BYTES // 8), np.uint64)
        sets = RaggedSets.from_sizes(room[:total], sizes)
        same = np.zeros(len(wanted), bool)

        def place(
            made: ShingleBatch, filtered: RaggedSets, prints: NDArray[np.uint64]
        ) -> RaggedSets:
            """Sort the sets of a batch and copy them to their places, on the thread that made
            them.
            """
            filtered.sort()
            at = np.searchsorted(wanted, made.indices)
            same_prints = prints == collection.fingerprints[made.indices]
            same[at] = same_prints & (filtered.sizes == sizes[at])
            if same[at].all() and len(at) and (np.diff(at) == 1).all():  # The usual case.
                sets.values[sets.offsets[at[0]] : sets.offsets[at[-1] + 1]] = filtered.values
                return NO_SETS
            for i in np.flatnonzero(same[at]).tolist():
                sets.values[sets.offsets[at[i]] : sets.offsets[at[i] + 1]] = filtered[i]
            return NO_SETS

        done = 0
        removed = collection.shingle_filter
        for batch in self._workers.process(self._run, collection.documents, wanted, place, removed):
            for index, reason, detail in batch.skipped:
                self._lose(index, reason, detail)
            indices = batch.indices
            for index in indices[~same[np.searchsorted(wanted, indices)]].tolist():
                self._lose(index, Reason.CHANGED, "it is not what was indexed")
            done += len(indices) + len(batch.skipped)
            if self._stage:
                self._run.progress(self._stage, done, len(wanted))
        if same.all():
            return sets
        values = sets.take(np.flatnonzero(same)).values
        return RaggedSets.from_sizes(values, np.where(same, sizes, 0))

    def _read_once(self) -> RaggedSets | None:
        """Return the expected sets in the order of the files; None if the disk has no room."""
        documents = self._expected
        arrays = self._run.arrays
        order = arrays.concatenate(self._collection.documents.reading_order(self._run, documents))
        sizes = arrays.take(self._collection.sizes, order)
        np.maximum(sizes, 0, out=sizes)
        try:
            values = arrays.empty(int(sizes.sum()), np.uint64)
        except ArtifactError:
            return None
        self._place = arrays.empty(len(documents), np.uint32)
        end = 0
        for some in cut_by_size(sizes, len(order), _BYTES_AT_ONCE // 8):
            at = np.sort(np.searchsorted(documents, order[some]))
            sets = self._read(documents[at])
            values[end : end + len(sets.values)] = sets.values
            end += len(sets.values)
            self._place[at] = rows_of(some)
            sizes[some] = sets.sizes
            del sets  # The next ones take its memory.
        trim_memory()
        return RaggedSets(values[:end], offsets_of(sizes, arrays))

    def _lose(self, index: int, reason: Reason, detail: str) -> None:
        self._lost[index] = Skipped(self._collection.documents.names[index], reason, detail)
