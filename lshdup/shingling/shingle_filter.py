"""The shingle filter: shingles of templates and common shingles, which it removes from every set.

Similarity is |A ∩ B| / |A ∪ B| of the filtered sets, so a letter is compared by what was filled in,
and not by its form.
"""

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import Buffer, slices_of
from lshdup.base.params import FilterParams
from lshdup.base.ragged import RaggedSets, distinct
from lshdup.base.run import Run, run_parts
from lshdup.base.system import blake2b
from lshdup.kernels import sets as kernels

NO_SHINGLES = np.zeros(0, np.uint64)

#: Counters a common shingle: few rare shingles share a counter that reaches the limit then.
_SPARE = 16

#: Fewer counters save nothing.
_FEWEST = 1 << 16

#: Bits of the marks a filtered shingle: one in so many others has its mark by accident.
_BITS = 64

#: Elements that are searched together.
_AT_ONCE = 1 << 20

#: The largest value of a 16-bit counter, and the most counters that a 32-bit slot can number.
_MANY, _MOST = 0xFFFF, (1 << 32) - 2


@dataclass(frozen=True)
class ShingleFilter:
    """The shingles that are removed from every set.

    params : the requested filter.
    template : uint64 array, ascending, without repeats: the shingles of the templates.
    common : uint64 array, ascending, without repeats: the shingles that too many documents have.
    counts : uint32 array, number of different documents with each common shingle; None if they were
        not counted in this run.
    """

    params: FilterParams
    template: NDArray[np.uint64]
    common: NDArray[np.uint64]
    counts: NDArray[np.uint32] | None = None

    @classmethod
    def requested(
        cls, template: NDArray[np.uint64], ignore_common: float, least_shingles: int
    ) -> "ShingleFilter":
        """Return a filter as it is requested, of which no common shingles are known yet."""
        params = FilterParams(ignore_common, fingerprint(template), least_shingles)
        return cls(params, template, NO_SHINGLES)

    @cached_property
    def shingles(self) -> NDArray[np.uint64]:
        """All filtered shingles: uint64 array, ascending, without repeats."""
        return distinct(np.concatenate([self.template, self.common]))[0]

    @cached_property
    def _table(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], np.uint64]:
        """Hash table, marks, and the number in free slots: the smallest that is not filtered."""
        shingles = self.shingles
        gaps = np.flatnonzero(shingles != np.arange(len(shingles), dtype=np.uint64))
        nothing = np.uint64(gaps[0] if len(gaps) else len(shingles))
        table = np.full(2 * len(shingles) + 1, nothing, np.uint64)
        marks = np.zeros(max(1, min(_MOST, _BITS * len(shingles)) // 64), np.uint64)
        kernels.fill_table(shingles, nothing, table)
        kernels.mark_elements(shingles, marks)
        return table, marks, nothing

    def apply(self, sets: RaggedSets, buffer: Buffer | None = None) -> RaggedSets:
        """Return the filtered sets; sets of fewer shingles than the filter asks for are empty.

        For any thread.

        buffer : memory for the elements, of uint64; None: new memory.
        Cost: about 2 ns an element.
        """
        table, marks, nothing = self._table
        total = int(sets.offsets[-1] - sets.offsets[0])
        out = np.empty(total, np.uint64) if buffer is None else buffer.room(total)
        sizes = np.empty(len(sets), np.int64)
        total = kernels.filter_sets(sets.values, sets.offsets, table, marks, nothing, out, sizes)
        left, is_large = out[:total], sizes >= self.params.least_shingles
        if not is_large.all():
            left, sizes = left[np.repeat(is_large, sizes)], sizes * is_large
        return RaggedSets.from_sizes(left, sizes)

    def of_any_size(self) -> "ShingleFilter":
        """Return the filter that keeps small sets, for texts that are named themselves."""
        return replace(self, params=replace(self.params, least_shingles=1))

    def explain(self, element: int) -> str:
        """Return why an element of a set is filtered, "template" or "common"; "" if it is not."""
        for name, shingles in (("template", self.template), ("common", self.common)):
            at = int(np.searchsorted(shingles, np.uint64(element)))
            if at < len(shingles) and int(shingles[at]) == element:
                return name
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return the requested filter and a fingerprint of the common shingles, for a header."""
        return self.params.to_json() | {"common": fingerprint(self.common)}


def fingerprint(shingles: NDArray[np.uint64]) -> str:
    """Return 32 hexadecimal digits that identify shingles; "" for none."""
    if not len(shingles):
        return ""
    data = np.ascontiguousarray(shingles).view(np.uint8).data
    return blake2b(data, digest_size=16).hexdigest()


def are_same_filters(one: ShingleFilter | None, other: ShingleFilter | None) -> bool:
    """Return whether two filters have the same parameters and remove the same shingles."""
    return (one and one.to_json()) == (other and other.to_json())


def find_least_count(limit: float, documents: int) -> int:
    """Return the smallest number of documents a shingle must occur in to count as common.

    A limit below 1 is a share of all documents; otherwise it is a number of documents. A common
    shingle occurs in more than `limit` documents, and in two at least.

    >>> find_least_count(0.29, 100), find_least_count(0.295, 100)
    (30, 30)
    >>> find_least_count(40, 100), find_least_count(0.1, 5)
    (41, 2)
    """
    from fractions import Fraction

    # Exact as typed: 0.29 times 100 is 29, but not in doubles.
    most = Fraction(repr(limit)) * documents if limit < 1 else Fraction(limit)
    return max(2, math.floor(most) + 1)


def find_first_sets(sets: RaggedSets, shingles: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of the first set with each shingle: int64 array; -1 if there is none.

    shingles : uint64 array of a few shingles.
    """
    at = np.full(len(shingles), -1, np.int64)
    for start in range(0, len(sets.values), _AT_ONCE):
        values = sets.values[start : start + _AT_ONCE]
        for i in np.flatnonzero(at < 0).tolist():
            found = values == shingles[i]
            if found.any():
                at[i] = start + int(found.argmax())
    return np.where(at < 0, -1, np.searchsorted(sets.offsets, at, side="right") - 1)


def find_common_shingles(
    run: Run, sets: RaggedSets, members: NDArray[np.int64], least: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Return the common shingles, ascending, and the number of sets with each.

    members : int64 array, the numbers of the sets that count.
    least : the smallest number of sets that a common shingle occurs in.
    Returns a uint64 and a uint32 array.
    Determinism: the same at any number of jobs.
    Cost: two passes over the sets.
    Memory: 2 bytes an element at most, less in proportion if `least` is above 16, and up to 72
    bytes a common shingle; the sets are not copied.
    """
    total = largest = 0
    for some in slices_of(len(members)):
        sizes = sets.offsets[members[some] + 1] - sets.offsets[members[some]]
        total, largest = total + int(sizes.sum()), max(largest, int(sizes.max()))
    if not total or least > len(members):
        return NO_SHINGLES, np.zeros(0, np.uint32)
    bound = min(least, _MANY)
    counters = run.arrays.zeros(min(_MOST, total, max(_FEWEST, _SPARE * total // bound)), np.uint16)

    def count(part: int, parts: int) -> None:
        kernels.count_elements(
            sets.values, sets.offsets, members, part, parts, np.empty(largest, np.uint32), counters
        )

    run_parts(run.jobs, count)
    found = [(NO_SHINGLES, np.zeros(0, np.uint32))] * run.jobs

    def gather(part: int, parts: int) -> None:
        keys, counts = np.zeros(1 << 12, np.uint64), np.zeros(1 << 12, np.uint32)
        state = np.zeros(3, np.int64)
        while True:
            kernels.count_frequent(
                sets.values, sets.offsets, members, part, parts, counters, bound,
                keys, counts, state,
            )  # fmt: skip
            if state[0] == len(members):
                break
            table = np.zeros(2 * len(keys), np.uint64), np.zeros(2 * len(keys), np.uint32)
            kernels.move_counts(keys, counts, *table)
            keys, counts = table
        enough = counts >= least
        found[part] = keys[enough], counts[enough]

    run_parts(run.jobs, gather)
    shingles, counts = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(shingles)
    return shingles[order], counts[order]
