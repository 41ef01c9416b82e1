"""Shingle sets again, for verification: from memory, from an artifact, or from the documents. Called by workspace.py."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.batches import NO_SETS, Workers, process_batches
from lshdup.collection.collection import Collection
from lshdup.collection.set_keeper import SetKeeper
from lshdup.documents.reading import runs
from lshdup.errors import ArtifactError
from lshdup.params import LONGEST
from lshdup.shingling.shingler import ShingleBatch, shingle_hash
from lshdup.skipped import Reason, Skipped
from lshdup.utils.ragged import RaggedSets, SetSource
from lshdup.utils.scratch import open_optional_spool

#: Bytes of sets that are read at a time for a spool.
_BYTES_AT_ONCE = 24 << 20


def set_source(
    collection: Collection, jobs: int, on_skipped: Callable[[Skipped], None]
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
    lost: dict[int, Skipped] = {}
    reported: set[int] = set()
    workers = Workers(collection.shingle, jobs)

    def lose(index: int, reason: Reason, detail: str) -> None:
        lost[index] = Skipped(collection.documents.names[index], reason, detail)

    def read_again(wanted: NDArray[np.int64]) -> RaggedSets:
        sizes = collection.sizes[wanted]
        if len(wanted) and (sizes.min() < 0 or sizes.max() > LONGEST):  # a token is a byte at least
            message = "the store names sets of a size that none can have: it is damaged"
            raise ArtifactError(message, "run the command with DOCS")
        sets = RaggedSets.from_sizes(np.empty(int(sizes.sum()), np.uint64), sizes)
        same = np.zeros(len(wanted), bool)

        def place(made: ShingleBatch, left: RaggedSets, prints: NDArray[np.uint64]) -> RaggedSets:
            """On the thread that made them, straight to where they belong."""
            at = np.searchsorted(wanted, made.indices)
            same[at] = (prints == collection.fingerprints[made.indices]) & (left.sizes == sizes[at])
            if same[at].all() and len(at) and (np.diff(at) == 1).all():  # as nearly always
                sets.values[sets.offsets[at[0]] : sets.offsets[at[-1] + 1]] = left.values
                return NO_SETS
            for i in np.flatnonzero(same[at]).tolist():
                sets.values[sets.offsets[at[i]] : sets.offsets[at[i] + 1]] = left[i]
            return NO_SETS

        for batch in process_batches(
            collection.documents, wanted, workers, None, place, shingle_filter
        ):
            for index, reason, detail in batch.skipped:
                lose(index, reason, detail)
            for index in batch.indices[~same[np.searchsorted(wanted, batch.indices)]].tolist():
                lose(index, Reason.CHANGED, "it is not what was indexed")
        return (
            sets
            if same.all()
            else RaggedSets.from_sizes(
                sets.take(np.flatnonzero(same)).values, np.where(same, sizes, 0)
            )
        )

    files = collection.documents.record_files
    decoded_before = files.decoded
    spooled: RaggedSets | None = None
    no_room = False

    def read_once(wanted: NDArray[np.int64]) -> RaggedSets:
        nonlocal spooled, no_room
        often = files.decoded - decoded_before > len(collection.documents) // 2
        if often and spooled is None and not no_room:
            # A record is decoded with all before it. Once half of all were, all are, into a spool.
            spooled = _spool_sets(collection, read_again)
            no_room = spooled is None
        sets = read_again(wanted) if spooled is None else spooled.take(wanted)
        for index in sorted(set(wanted.tolist()) & lost.keys() - reported):
            reported.add(index)
            on_skipped(lost[index])
        return sets

    return read_once


def _spool_sets(collection: Collection, read: SetSource) -> RaggedSets | None:
    """Return all sets of a collection, read in the order of its files and mapped; None if the disk has no room."""
    locations = collection.documents.locations
    spool = open_optional_spool(collection.documents.record_files.folder)
    if spool is None or locations is None:
        return None
    with spool:
        keeper = SetKeeper(spool)
        for run in locations.reading_order(np.arange(len(collection.documents))):
            for some in runs(8 * collection.sizes[run], len(run), _BYTES_AT_ONCE):
                indices = np.sort(run[some])
                keeper.add(indices, read(indices))
        return keeper.finish()
