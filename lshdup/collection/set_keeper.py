"""The shingle sets of a run, kept in document order as batches are finished: in memory, or on disk. Called by collection.py."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.batches import NO_VALUES
from lshdup.errors import ArtifactError
from lshdup.shingling.shingler import ShingleBatch
from lshdup.utils.ragged import RaggedSets
from lshdup.utils.scratch import Spool

#: Stored sets that are copied to a spool at a time.
_SETS_AT_ONCE = 4096

#: Gives the sets of a batch once more, from where they are kept.
Kept = Callable[[], RaggedSets]


class SetKeeper:
    """Keeps the sets of a run, in document order, in a spool or in memory; gives up when they outgrow it."""

    def __init__(self, keep: Spool | int) -> None:
        self._spool = keep if isinstance(keep, Spool) else None
        self._room = keep if isinstance(keep, int) else 1 << 62
        self._parts: list[RaggedSets] | None = [] if self._room else None
        self._indices: list[NDArray[np.int64]] = []
        self._kept_values = 0

    def kept(self, made: ShingleBatch, _: RaggedSets, __: NDArray[np.uint64]) -> RaggedSets:
        """The sets in memory of their own, unless it has given up. For any thread."""
        return made.sets.copy() if self._parts is not None else NO_VALUES

    def reuse(
        self, sets: RaggedSets | None, indices: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> None:
        """Take the sets of unchanged documents over; without them, not all sets can be had."""
        if sets is None or 8 * int(sets.sizes[rows].sum()) > self._room:
            self._parts = None
        elif self._spool is not None:  # the stored sets may exceed memory
            for start in range(0, len(rows), _SETS_AT_ONCE):
                some = slice(start, start + _SETS_AT_ONCE)
                self.add(indices[some], sets.take(rows[some]))
        else:
            self.add(
                indices, sets if np.array_equal(rows, np.arange(len(sets))) else sets.take(rows)
            )

    def add(self, indices: NDArray[np.int64], sets: RaggedSets) -> Kept | None:
        """Keep the sets of some documents; returns how to have them once more, or None if it has given up."""
        if self._parts is None:
            return None
        self._room -= sets.values.nbytes
        if self._room < 0:
            self._parts = None
            return None
        spool, start = self._spool, self._kept_values
        self._kept_values += len(sets.values)
        self._parts.append(
            sets if spool is None else RaggedSets(np.zeros(0, np.uint64), sets.offsets)
        )
        self._indices.append(indices)
        if spool is None:
            return lambda: sets
        try:
            spool.append(sets.values)
        except ArtifactError:
            if spool.required:
                raise
            self._parts = None
        if not spool.required:  # These sets only spare reading documents again.
            return None
        offsets, end = sets.offsets, self._kept_values
        return lambda: RaggedSets(spool.values()[start:end], offsets)

    def finish(self) -> RaggedSets | None:
        """The sets of all documents that have one, in document order."""
        if self._parts is None:
            return None
        indices = np.concatenate([np.zeros(0, np.int64), *self._indices])
        order = np.argsort(indices, kind="stable")
        in_order = np.array_equal(order, np.arange(len(order)))
        if self._spool is None:
            sets = RaggedSets.concatenate(self._parts)
            return sets if in_order else sets.take(order)
        sizes = np.concatenate([np.zeros(0, np.int64), *(part.sizes for part in self._parts)])
        try:
            if in_order:
                return RaggedSets.from_sizes(self._spool.values(), sizes)
            return self._spool.in_order(sizes, order)
        except ArtifactError:
            if self._spool.required:
                raise
            return None
