"""Shingles that are removed from every set: those of given templates, and those that too many documents have. Called by collection.py,
pipeline.py and workspace.py.

What stays is a set like any other, and similarity is |A ∩ B| / |A ∪ B| of what stays: so a letter is compared by what was filled in,
and not by the form.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import prefix_join
from lshdup.kernels import shingle_filter as kernels
from lshdup.params import FilterParams
from lshdup.utils.parallel import run_parts
from lshdup.utils.ragged import RaggedSets, distinct

NO_SHINGLES = np.zeros(0, np.uint64)

#: Counters for so many times as many elements as the limit says: then few that are rare share one that reaches it.
_SPARE = 16

#: Fewer counters than this do not save anything.
_FEWEST = 1 << 16

#: Bits for each shingle that is removed: one in so many others is taken for one at first sight.
_BITS = 64

#: Elements that are looked at together.
_AT_ONCE = 1 << 20

#: Where the 16-bit counters stop, and nearly as many as a 32-bit slot can tell apart.
_MANY, _MOST = 0xFFFF, (1 << 32) - 2


@dataclass(frozen=True)
class ShingleFilter:
    """The shingles that are removed, and why.

    params : what was asked. template, common : uint64 arrays, ascending, without repeats: the shingles of the templates, and those that too
    many documents have. counts : uint32 array, how many different documents have each of `common`; None if nobody has counted in this run.
    """

    params: FilterParams
    template: NDArray[np.uint64]
    common: NDArray[np.uint64]
    counts: NDArray[np.uint32] | None = None

    @cached_property
    def shingles(self) -> NDArray[np.uint64]:
        """All of them: uint64 array, ascending, without repeats."""
        return distinct(np.concatenate([self.template, self.common]))[0]

    @cached_property
    def _table(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], np.uint64]:
        """For looking them up: table, marks, and the number that stands on free places: the smallest that is none of them."""
        shingles = self.shingles
        gaps = np.flatnonzero(shingles != np.arange(len(shingles), dtype=np.uint64))
        nothing = np.uint64(gaps[0] if len(gaps) else len(shingles))
        table = np.full(2 * len(shingles) + 1, nothing, np.uint64)
        marks = np.zeros(max(1, min(_MOST, _BITS * len(shingles)) // 64), np.uint64)
        kernels.fill_table(shingles, nothing, table, marks)
        return table, marks, nothing

    def apply(self, sets: RaggedSets, room: NDArray[np.uint64] = NO_SHINGLES) -> RaggedSets:
        """The sets without them. For any thread. Cost: about 2 ns an element.

        room : memory for them, if it is enough; else they are in memory of their own.
        """
        table, marks, nothing = self._table
        total = int(sets.offsets[-1] - sets.offsets[0])
        out = room if len(room) >= total else np.empty(total, np.uint64)
        sizes = np.empty(len(sets), np.int64)
        total = kernels.filter_sets(sets.values, sets.offsets, table, marks, nothing, out, sizes)
        return RaggedSets.from_sizes(out[:total], sizes)

    def explain(self, element: int) -> str:
        """Return why an element of a set is filtered, "template" or "common"; "" if it is not."""
        for name, shingles in (("template", self.template), ("common", self.common)):
            at = int(np.searchsorted(shingles, np.uint64(element)))
            if at < len(shingles) and int(shingles[at]) == element:
                return name
        return ""

    def to_json(self) -> dict[str, Any]:
        """For the header of an artifact: what was asked, and a fingerprint of what is common."""
        return self.params.to_json() | {"common": fingerprint(self.common)}


def fingerprint(shingles: NDArray[np.uint64]) -> str:
    """32 hexadecimal digits that say which shingles; empty for none."""
    return (
        hashlib.blake2b(
            np.ascontiguousarray(shingles).view(np.uint8).data, digest_size=16
        ).hexdigest()
        if len(shingles)
        else ""
    )


def same_filter(one: ShingleFilter | None, other: ShingleFilter | None) -> bool:
    """Whether the same is removed, by the same parameters."""
    return (one and one.to_json()) == (other and other.to_json())


def least_count(limit: float, documents: int) -> int:
    """How many of the documents must have a shingle that is common: more than `limit`, a share of them below 1, and a number from 1 on.

    Two at least: what only one document has is not common, however few documents there are.

    >>> least_count(0.29, 100), least_count(0.295, 100), least_count(40, 100), least_count(0.1, 5)
    (30, 30, 41, 2)
    """
    from fractions import Fraction  # as written: 0.29 times 100 is 29, though not in doubles

    return max(
        2, math.floor(Fraction(repr(limit)) * documents if limit < 1 else Fraction(limit)) + 1
    )


def first_with(sets: RaggedSets, shingles: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The first set that has each of a few shingles: int64 array; -1 where none has. Reads the sets as far as it must."""
    at = np.full(len(shingles), -1, np.int64)
    for start in range(0, len(sets.values), _AT_ONCE):
        values = sets.values[start : start + _AT_ONCE]
        for i in np.flatnonzero(at < 0).tolist():
            found = values == shingles[i]
            if found.any():
                at[i] = start + int(found.argmax())
        if (at >= 0).all():
            break
    return np.where(at < 0, -1, np.searchsorted(sets.offsets, at, side="right") - 1)


def common_shingles(
    sets: RaggedSets, members: NDArray[np.int64], least: int, jobs: int = 1
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Shingles that at least so many of the sets `members` (int64 array) have, ascending, and how many that is: uint64, uint32 arrays.

    Determinism: the same at any number of jobs. Cost: two passes over the sets. Memory: the sets are not copied; 2 bytes an element at
    most, less in proportion when `least` is above 16, and up to 72 for each different shingle that is common.
    """
    total = int(sets.sizes[members].sum())
    if not total or least > len(members):
        return NO_SHINGLES, np.zeros(0, np.uint32)
    bound = min(least, _MANY)
    counters = np.zeros(min(_MOST, total, max(_FEWEST, _SPARE * total // bound)), np.uint16)
    largest = int(sets.sizes[members].max())

    def count(part: int, parts: int) -> None:
        prefix_join.count_elements(
            sets.values, sets.offsets, members, part, parts, np.empty(largest, np.uint32), counters
        )

    run_parts(jobs, count)
    found: list[tuple[NDArray[np.uint64], NDArray[np.uint32]]] = [
        (NO_SHINGLES, np.zeros(0, np.uint32))
    ] * jobs

    def gather(part: int, parts: int) -> None:
        keys, counts = np.zeros(1 << 12, np.uint64), np.zeros(1 << 12, np.uint32)
        state = np.zeros(3, np.int64)
        while True:
            kernels.count_frequent(
                sets.values,
                sets.offsets,
                members,
                part,
                parts,
                counters,
                bound,
                keys,
                counts,
                state,
            )
            if state[0] == len(members):
                break
            more_keys, more_counts = (
                np.zeros(2 * len(keys), np.uint64),
                np.zeros(2 * len(keys), np.uint32),
            )
            kernels.move_counts(keys, counts, more_keys, more_counts)
            keys, counts = more_keys, more_counts
        enough = counts >= least
        found[part] = keys[enough], counts[enough]

    run_parts(jobs, gather)
    shingles, counts = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(shingles)
    return shingles[order], counts[order]
