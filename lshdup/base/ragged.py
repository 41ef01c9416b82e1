"""Sets and strings of different length in two arrays: values and offsets."""

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from operator import eq
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import (
    IN_MEMORY,
    ROWS_AT_ONCE,
    Arrays,
    GrowingArray,
    are_equal,
    rows_of,
    slices_of,
)
from lshdup.kernels import sets as kernels

T = TypeVar("T", bound="np.generic[Any]")


@dataclass(frozen=True)
class _Runs:
    """Runs of values of different length, one after the other.

    values : array of shape (total,). offsets : int64 array of shape (n + 1,); run i is
    ``values[offsets[i]:offsets[i + 1]]``.
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]

    dtype: ClassVar[type[np.generic]]  #: of the values

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of values of each run: int64 array of shape (n,)."""
        return np.diff(self.offsets)

    @classmethod
    def from_sizes(
        cls, values: NDArray[Any], sizes: NDArray[np.int64], arrays: Arrays = IN_MEMORY
    ) -> Self:
        """Return runs from their values, one run after the other, and their sizes.

        arrays : makes the offsets.
        """
        return cls(values, offsets_of(sizes, arrays))

    @classmethod
    def concatenate(cls, parts: Iterable[Self], arrays: Arrays = IN_MEMORY) -> Self:
        """Return the runs of all parts, in order. arrays : makes the result."""
        parts, at = list(parts), 0
        offsets: NDArray[np.int64] = arrays.zeros(sum(map(len, parts)) + 1, np.int64)
        for part in parts:
            starts = offsets[at : at + len(part) + 1]
            np.add(part.offsets, starts[0] - part.offsets[0], out=starts)
            at += len(part)
        values = [part.values for part in parts] or [np.zeros(0, cls.dtype)]
        return cls(arrays.concatenate(values), offsets)

    @classmethod
    def gather(cls, parts: Iterable[Self], arrays: Arrays = IN_MEMORY) -> Self:
        """Return the runs of parts that are made one after the other. arrays : makes the result."""
        values, sizes = GrowingArray(cls.dtype, arrays), GrowingArray(np.int64, arrays)
        for part in parts:
            values.append(part.values)
            sizes.append(part.sizes)
        return cls.from_sizes(values.whole(), sizes.whole(), arrays)

    def take(self, indices: NDArray[np.int64], arrays: Arrays = IN_MEMORY) -> Self:
        """Return copies of the runs at `indices`, in that order.

        arrays : makes the result of more than ROWS_AT_ONCE; `gather_sets` asks it for any number.
        """
        values, offsets = self.values, self.offsets
        if len(indices) <= ROWS_AT_ONCE:
            starts = offsets[indices]
            sizes = offsets[indices + 1] - starts
            return type(self)(_copy_runs(values, starts, sizes), offsets_of(sizes))
        ends: NDArray[np.int64] = arrays.zeros(len(indices) + 1, np.int64)
        for some in slices_of(len(indices)):
            at = indices[some]
            ends[some.start + 1 : some.stop + 1] = offsets[at + 1] - offsets[at]
        np.cumsum(ends, out=ends)
        taken = arrays.empty(int(ends[-1]), values.dtype)
        for some in slices_of(len(indices)):
            at = indices[some]
            part = taken[ends[some.start] : ends[some.stop]]
            part[:] = _copy_runs(values, offsets[at], offsets[at + 1] - offsets[at])
        return type(self)(taken, ends)


@dataclass(frozen=True)
class RaggedSets(_Runs):
    """Sets of uint64, each without repeats, and sorted unless it says otherwise.

    >>> sets = RaggedSets.from_sets([{3, 1}, set(), {2}])
    >>> len(sets), sets[0].tolist(), sets.sizes.tolist()
    (3, [1, 3], [2, 0, 1])
    """

    values: NDArray[np.uint64]

    dtype = np.uint64

    def __getitem__(self, index: int) -> NDArray[np.uint64]:
        if not -len(self) <= index < len(self):
            message = f"set {index} of {len(self)}"
            raise IndexError(message)
        index %= len(self)
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    @classmethod
    def from_sets(cls, sets: Iterable[Iterable[int]]) -> Self:
        """Return sets from iterables of integers from 0 to 2^64 - 1."""
        arrays = [np.array(sorted(set(each)), np.uint64) for each in sets]
        sizes = np.array([len(each) for each in arrays], np.int64)
        return cls.from_sizes(np.concatenate([np.zeros(0, np.uint64), *arrays]), sizes)

    def copy(self) -> "RaggedSets":
        """Return a copy with its own values."""
        return RaggedSets(self.values.copy(), self.offsets)

    def sort(self) -> Self:
        """Sort the elements of each set in place; return the sets."""
        largest = int(self.sizes.max(initial=0))
        scratch = np.empty(largest, np.uint64), np.empty(2 * largest + 1, np.int32)
        kernels.sort_sets(self.values, self.offsets, *scratch)
        return self


@dataclass(frozen=True)
class StringTable(_Runs):
    """Byte strings, of uint8 values.

    NumPy's string arrays cost the longest string for each, and drop trailing NULs.

    >>> names = StringTable.from_strings([b"a.txt", b"b"])
    >>> names[0], len(names), list(names)
    (b'a.txt', 2, [b'a.txt', b'b'])
    """

    values: NDArray[np.uint8]

    dtype = np.uint8

    def __getitem__(self, index: int) -> bytes:
        start, end = self.offsets[index], self.offsets[index + 1]
        return self.values[start:end].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        blob = self.values.tobytes()
        offsets = self.offsets.tolist()
        return (blob[start:end] for start, end in itertools.pairwise(offsets))

    @classmethod
    def from_strings(cls, strings: Iterable[bytes]) -> Self:
        strings = list(strings)
        sizes = np.fromiter(map(len, strings), np.int64, len(strings))
        return cls.from_sizes(np.frombuffer(b"".join(strings), np.uint8), sizes)

    def strings_at(self, indices: NDArray[np.int64]) -> list[bytes]:
        """Return the strings at `indices`, as objects."""
        return list(self.take(indices))

    def find(self, string: bytes) -> int | None:
        """Return the index of a string in a table in byte order, by binary search, or None."""
        at = bisect_left(self, string)
        return at if at < len(self) and self[at] == string else None

    def begins(self, start: bytes) -> bool:
        """Return whether a string of a table in byte order begins with these bytes."""
        at = bisect_left(self, start)
        return at < len(self) and self[at].startswith(start)

    def search(self, string: bytes) -> int | None:
        """Return the index of the first string of any table that is equal, or None.

        Cost: one pass over the offsets, and over the strings of the same size; 10 ms a million.
        """
        for some in slices_of(len(self) if string else 0):
            sizes = np.diff(self.offsets[some.start : some.stop + 1])
            rows = np.flatnonzero(sizes == len(string)) + some.start
            # NumPy drops NULs at the end of strings, which are of one size here.
            same = np.flatnonzero(self.take(rows).values.view(f"S{len(string)}") == string)
            if len(same):
                return int(rows[same[0]])
        return None

    def match(self, strings: "StringTable", arrays: Arrays = IN_MEMORY) -> NDArray[np.int64]:
        """Return for each of n strings the last one of this table that is equal, or -1.

        Of a table that is equal as a whole, it is the one in the same place. Returns an int64 array
        of shape (n,). Cost: one sort of this table and the hashes of both, the first time.

        arrays : makes the result, and what is kept for the next time.
        """
        if are_equal(self.offsets, strings.offsets) and are_equal(self.values, strings.values):
            return arrays.compute(len(strings), np.int64, rows_of)
        if not len(self):
            return arrays.full(len(strings), -1, np.int64)
        (hashes, order), wanted = self._ordered(arrays), strings._hashes(arrays)

        def places_of(some: slice) -> NDArray[np.int64]:
            last = np.maximum(np.searchsorted(hashes, wanted[some], side="right") - 1, 0)
            agree = np.flatnonzero(hashes[last] == wanted[some])
            rows = order[last[agree]]
            pairs = map(eq, self.take(rows), strings.take(agree + some.start))
            same = np.fromiter(pairs, np.bool_, len(rows))
            places = np.full(len(last), -1, np.int64)
            places[agree[same]] = rows[same]
            return places

        return arrays.compute(len(strings), np.int64, places_of)

    def repeats(self, arrays: Arrays) -> list[list[int]]:
        """Return the indices of each string that is there more than once, ascending.

        Cost: one sort of the table. arrays : makes the arrays for it.
        """
        hashes, order = self._ordered(arrays)
        agree: NDArray[np.bool_] = arrays.zeros(len(hashes) + 1, np.bool_)
        np.equal(hashes[1:], hashes[:-1], out=agree[1:-1])
        changes = arrays.find(agree[1:] != agree[:-1]).tolist()
        found: dict[bytes, list[int]] = {}
        for start, end in zip(changes[::2], changes[1::2], strict=True):
            rows = np.sort(order[start : end + 1])
            for row, string in zip(rows.tolist(), self.strings_at(rows), strict=True):
                found.setdefault(string, []).append(row)
        return [rows for rows in found.values() if len(rows) > 1]

    def _hashes(self, arrays: Arrays) -> NDArray[np.int64]:
        """Return the hash of each string, which is kept."""
        if "hashes" not in vars(self):
            vars(self)["hashes"] = arrays.compute(
                len(self), np.int64, lambda some: _hash_each(self.take(rows_of(some)))
            )
        hashes: NDArray[np.int64] = vars(self)["hashes"]
        return hashes

    def _ordered(self, arrays: Arrays) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the hashes of the strings, ascending, and the string that each is of: kept too."""
        if "ordered" not in vars(self):
            hashes = self._hashes(arrays)
            order = arrays.order(len(self), [hashes.__getitem__])
            vars(self)["ordered"] = arrays.take(hashes, order), order
        ordered: tuple[NDArray[np.int64], NDArray[np.int64]] = vars(self)["ordered"]
        return ordered

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.values, self.offsets)  # Another process has other hashes.

    def ending_with(self, tail: bytes) -> list[int]:
        """Return the indices of all strings that end with `tail`. Cost: one pass over the blob."""
        found: list[int] = []
        blob, offsets = self.values.tobytes(), self.offsets
        at = blob.find(tail)
        while at >= 0:
            end = at + len(tail)
            index = min(int(np.searchsorted(offsets, end)), len(self)) - 1
            if offsets[index + 1] == end and offsets[index] <= at:
                found.append(index)
            at = blob.find(tail, at + 1)
        return found


def _hash_each(strings: StringTable) -> NDArray[np.int64]:
    return np.fromiter(map(hash, strings), np.int64, len(strings))


def offsets_of(sizes: NDArray[np.int64], arrays: Arrays = IN_MEMORY) -> NDArray[np.int64]:
    """Return the offsets of runs with n sizes: int64 array of shape (n + 1,).

    arrays : makes the result.
    """
    offsets: NDArray[np.int64] = arrays.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _copy_runs(
    values: NDArray[Any], starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[Any]:
    """Return values[starts[i]:starts[i] + sizes[i]] for all i, one after the other.

    Raises IndexError for runs outside the values.
    """
    n = len(values)
    # Not starts + sizes: damaged offsets may be so large that the sum would wrap.
    if len(starts) and (
        starts.min() < 0 or starts.max() > n or sizes.min() < 0 or (sizes > n - starts).any()
    ):
        message = "a run lies outside the values"
        raise IndexError(message)
    out = np.empty(int(sizes.sum()), values.dtype)
    kernels.copy_runs(np.ascontiguousarray(values), starts, sizes, out)
    return out


def distinct(values: NDArray[T]) -> tuple[NDArray[T], NDArray[np.int64]]:
    """Return the different values of a one-dimensional array, ascending, and their counts.

    Does not import masked arrays, as `numpy.unique` does, which would slow `query` down.

    >>> [each.tolist() for each in distinct(np.array([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    values = np.sort(values)
    first = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    places = np.flatnonzero(first)
    return values[places], np.diff(places, append=len(values))


def ranges(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers from starts[i] to starts[i] + sizes[i] - 1 for all i: int64 array.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    offsets = offsets_of(sizes)
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)


def cut_offsets(offsets: NDArray[np.int64], most: int) -> Iterator[slice]:
    """Yield slices of runs that follow each other: of `most` values together, or one larger run.

    offsets : int64 array of shape (n + 1,), of n runs.

    >>> list(cut_offsets(np.array([0, 1, 3, 9, 11]), 3))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    start = 0
    while start < len(offsets) - 1:
        fitting = int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1
        end = max(fitting, start + 1)
        yield slice(start, end)
        start = end


#: Returns the shingle sets of documents (ascending int64 array); an unavailable set is empty.
SetSource = Callable[[NDArray[np.int64]], RaggedSets]


def gather_sets(
    source: SetSource, wanted: NDArray[np.int64], sizes: NDArray[np.int64], arrays: Arrays
) -> RaggedSets:
    """Return the sets of many documents, of which a quarter of the memory is asked for at a time.

    wanted : int64 array, ascending. sizes : int64 array over all documents, of their sets.
    """
    offsets = offsets_of(arrays.take(sizes, wanted), arrays)
    parts = (source(wanted[some]) for some in cut_offsets(offsets, arrays.limit // 32))
    return RaggedSets.gather(parts, arrays)
