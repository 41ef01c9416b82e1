"""The shingle sets of a run, kept in document order while batches finish: in memory, or on disk."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import GrowingArray, is_counting, slices_of
from lshdup.base.ragged import RaggedSets, StringTable
from lshdup.base.run import Run
from lshdup.base.scratch import Spool
from lshdup.shingling.shingler import NO_SETS, ShingleBatch
from lshdup.text.file_types import OFFICE_ENDINGS

#: Stored sets that are copied to a spool at a time.
_SETS_AT_ONCE = 4096

#: Returns the sets of a batch once more, from where they are kept.
SetsAgain = Callable[[], RaggedSets]


class SetKeeper:
    """Collect the sets of a run in document order, in a spool or in memory.

    Stops keeping them once they exceed the memory limit.

    keep : a spool, or the limit in bytes.
    """

    def __init__(self, run: Run, keep: Spool | int) -> None:
        self._spool = keep if isinstance(keep, Spool) else None
        self._room = keep if isinstance(keep, int) else 1 << 62
        self._parts: list[RaggedSets] | None = [] if self._room else None
        self._arrays, self._kept_values = run.arrays, 0
        self._indices, self._sizes = (GrowingArray(np.int64, run.arrays) for _ in range(2))

    def keep_copy(
        self, made: ShingleBatch, _filtered: RaggedSets, _fingerprints: NDArray[np.uint64]
    ) -> RaggedSets:
        """Return a sorted copy of the sets, or no sets if it has stopped keeping them.

        For any thread.
        """
        if self._parts is None:
            return NO_SETS
        return made.sets.copy().sort()

    def reuse(
        self, sets: RaggedSets | None, known: NDArray[np.bool_], rows: NDArray[np.int64]
    ) -> None:
        """Add the sets of unchanged documents; stop keeping sets if these cannot be had.

        known : bool array over all documents. rows : int64 array, the row of each in `sets`.
        """
        if self._parts is None or not known.any():
            return
        if sets is not None and self._spool is not None:  # The stored sets may exceed memory.
            for start in range(0, len(rows), _SETS_AT_ONCE):
                indices = np.flatnonzero(known[start : start + _SETS_AT_ONCE]) + start
                self.add(indices, sets.take(rows[indices]))
            return
        indices = np.flatnonzero(known)
        rows = rows[indices]
        if sets is None or 8 * int(sets.sizes[rows].sum()) > self._room:
            self._parts = None
            return
        are_all = len(rows) == len(sets) and is_counting(rows)
        self.add(indices, sets if are_all else sets.take(rows))

    def add(self, indices: NDArray[np.int64], sets: RaggedSets) -> SetsAgain | None:
        """Keep the sets of some documents. Return how to have them once more, if they are kept."""
        if self._parts is None:
            return None
        self._room -= sets.values.nbytes
        if self._room < 0:
            self._parts = None
            return None
        spool, start = self._spool, self._kept_values
        self._indices.append(indices)
        if spool is None:
            self._parts.append(sets)
            return lambda: sets
        spool.append(sets.values)
        self._sizes.append(sets.sizes)
        self._kept_values += len(sets.values)
        offsets, end = sets.offsets, self._kept_values
        return lambda: RaggedSets(spool.values()[start:end], offsets)

    def finish(self) -> RaggedSets | None:
        """Return the sets of all documents that have one, in document order, if they were kept."""
        if self._parts is None:
            return None
        indices, arrays = self._indices.whole(), self._arrays
        order = arrays.order(len(indices), [indices.__getitem__])
        if self._spool is None:
            sets = RaggedSets.concatenate(self._parts)
            return sets if is_counting(order) else sets.take(order)
        sizes = self._sizes.whole()
        if is_counting(order):
            return RaggedSets.from_sizes(self._spool.values(), sizes, arrays)
        return self._spool.in_order(sizes, order, arrays)


def expects_office_documents(names: StringTable) -> bool:
    """Return whether about one name in fifty is that of an office document.

    A reader takes milliseconds for one: more than keeping the sets of fifty documents takes.
    """
    endings, office = np.frombuffer(b"".join(OFFICE_ENDINGS), np.uint32), 0
    for some in slices_of(len(names)):
        ends = names.offsets[some.start + 1 : some.stop + 1]
        ends = ends[ends - names.offsets[some] >= 4]
        last = names.blob[ends[:, np.newaxis] - np.arange(4, 0, -1)] | 0x20  # in lower case
        office += int(np.isin(last.view(np.uint32), endings).sum())
    return 50 * office >= max(len(names), 1)
