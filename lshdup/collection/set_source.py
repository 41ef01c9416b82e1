"""Shingle sets for verification: from memory, from an artifact, or read from documents again."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.batches import Workers, process_batches
from lshdup.collection.collection import Collection
from lshdup.collection.set_keeper import SetKeeper
from lshdup.documents.reading import runs
from lshdup.errors import RERUN, ArtifactError
from lshdup.matching.similarity import BLOCK_BYTES
from lshdup.params import LONGEST
from lshdup.shingling.hashing import shingle_hash
from lshdup.shingling.shingler import NO_SETS, ShingleBatch
from lshdup.skipped import Reason, Skipped
from lshdup.utils.parallel import Progress, no_progress
from lshdup.utils.ragged import RaggedSets, SetSource
from lshdup.utils.scratch import open_optional_spool

#: Bytes of sets that are read at a time for a spool.
_BYTES_AT_ONCE = 24 << 20


def set_source(
    collection: Collection,
    jobs: int,
    on_skipped: Callable[[Skipped], None],
    progress: Progress = no_progress,
) -> SetSource:
    """Return a function that gives shingle sets to verify pairs with: the sets that the collection
    holds, or else the sets of the documents, read again.

    A document that cannot be read again, or whose set has changed, is reported once and has an
    empty set: its pairs are missing from the answer, rather than wrong in it. Raise ParameterError
    if the sets were made with a key that is missing.
    """
    shingle_hash(
        collection.shingle
    )  # A keyed store needs its key even where no document is read again.
    shingle_filter = collection.shingle_filter
    if collection.sets is not None:
        return collection.sets.take
    whole = collection.unfiltered_sets
    if whole is not None and shingle_filter is not None:
        return lambda wanted: shingle_filter.apply(whole.take(wanted))
    return _SetReader(collection, jobs, on_skipped, progress)


class _SetReader:
    """Sets of the documents of a collection, read again each time, or once into a spool."""

    def __init__(
        self,
        collection: Collection,
        jobs: int,
        on_skipped: Callable[[Skipped], None],
        progress: Progress,
    ) -> None:
        self._collection, self._on_skipped, self._progress = collection, on_skipped, progress
        self._workers = Workers(collection.shingle, jobs)
        self._lost: dict[int, Skipped] = {}
        self._reported: set[int] = set()
        self._decoded_before = collection.documents.record_files.decoded
        self._spooled: RaggedSets | None = None
        self._has_no_room = False

    def __call__(self, wanted: NDArray[np.int64]) -> RaggedSets:
        documents = self._collection.documents
        decoded = documents.record_files.decoded - self._decoded_before
        if decoded > len(documents) // 2 and self._spooled is None and not self._has_no_room:
            # A record is decoded with all before it. Once half of all were, all are, into a spool.
            self._spooled = _spool_sets(self._collection, self._read)
            self._has_no_room = self._spooled is None
        sets = self._read(wanted) if self._spooled is None else self._spooled.take(wanted)
        for index in sorted(set(wanted.tolist()) & self._lost.keys() - self._reported):
            self._reported.add(index)
            self._on_skipped(self._lost[index])
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
        for batch in process_batches(
            collection.documents, wanted, self._workers, None, place, collection.shingle_filter
        ):
            for index, reason, detail in batch.made.skipped:
                self._lose(index, reason, detail)
            indices = batch.made.indices
            for index in indices[~same[np.searchsorted(wanted, indices)]].tolist():
                self._lose(index, Reason.CHANGED, "it is not what was indexed")
            done += len(indices) + len(batch.made.skipped)
            self._progress("documents", done, len(wanted))
        if same.all():
            return sets
        values = sets.take(np.flatnonzero(same)).values
        return RaggedSets.from_sizes(values, np.where(same, sizes, 0))

    def _lose(self, index: int, reason: Reason, detail: str) -> None:
        self._lost[index] = Skipped(self._collection.documents.names[index], reason, detail)


def _spool_sets(collection: Collection, read: SetSource) -> RaggedSets | None:
    """Return all sets, read in the order of the files, and mapped; None if the disk has no room."""
    locations = collection.documents.locations
    spool = open_optional_spool(collection.documents.record_files.folder)
    if spool is None or locations is None:
        return None
    with spool:
        keeper = SetKeeper(spool)
        for run in locations.reading_order(np.arange(len(collection.documents))):
            for some in runs(8 * collection.sizes[run], len(run), _BYTES_AT_ONCE):
                indices = np.sort(run[some])
                if keeper.add(indices, read(indices)) is None:
                    return None
        return keeper.finish()
