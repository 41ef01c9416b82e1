"""Shingle sets again, for verification: from memory, from an artifact, or from the documents. Called by workspace.py."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.batches import NO_VALUES, Workers, batches_done
from lshdup.collection.collection import Collection
from lshdup.errors import ArtifactError
from lshdup.params import LONGEST
from lshdup.shingling.shingler import ShingleBatch
from lshdup.skipped import Reason, Skipped
from lshdup.utils.ragged import RaggedSets, SetSource


def set_source(
    collection: Collection, jobs: int, on_skipped: Callable[[Skipped], None]
) -> SetSource:
    """Return a function that gives shingle sets to verify pairs with: the sets that the collection
    holds, or else the sets of the documents, read again.

    A document that cannot be read again, or whose set has changed, is reported once and has an
    empty set: its pairs are missing from the answer, rather than wrong in it.
    """
    shingle_filter = collection.shingle_filter
    if collection.sets is not None:
        return collection.sets.take
    whole = collection.unfiltered_sets
    if whole is not None and shingle_filter is not None:
        return lambda wanted: shingle_filter.apply(whole.take(wanted))
    reported: set[int] = set()
    workers = Workers(collection.shingle, jobs)

    def report(index: int, reason: Reason, detail: str) -> None:
        if index not in reported:
            reported.add(index)
            on_skipped(Skipped(collection.documents.names[index], reason, detail))

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
                return NO_VALUES
            for i in np.flatnonzero(same[at]).tolist():
                sets.values[sets.offsets[at[i]] : sets.offsets[at[i] + 1]] = left[i]
            return NO_VALUES

        for batch in batches_done(
            collection.documents, wanted, workers, None, place, shingle_filter
        ):
            for index, reason, detail in batch.skipped:
                report(index, reason, detail)
            for index in batch.indices[~same[np.searchsorted(wanted, batch.indices)]].tolist():
                report(index, Reason.CHANGED, "it is not what was indexed")
        return (
            sets
            if same.all()
            else RaggedSets.from_sizes(
                sets.take(np.flatnonzero(same)).values, np.where(same, sizes, 0)
            )
        )

    return read_again
