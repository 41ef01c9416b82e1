"""Many things of different length in two arrays: values one after the other, and offsets. In memory and on disk alike."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import copying

T = TypeVar("T", bound="np.generic[Any]")


@dataclass(frozen=True)
class RaggedSets:
    """Sets of uint64, each sorted and without repeats.

    values : uint64 array of shape (total,). offsets : int64 array of shape (n_sets + 1,); set i is
    ``values[offsets[i]:offsets[i + 1]]``.

    >>> sets = RaggedSets.from_sets([{3, 1}, set(), {2}])
    >>> len(sets), sets[0].tolist(), sets.sizes.tolist()
    (3, [1, 3], [2, 0, 1])
    """

    values: NDArray[np.uint64]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.uint64]:
        if not -len(self) <= index < len(self):
            message = f"set {index} of {len(self)}"
            raise IndexError(message)
        index %= len(self)
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64 array of shape (n_sets,): how many elements each set has."""
        return np.diff(self.offsets)

    @classmethod
    def from_sizes(cls, values: NDArray[np.uint64], sizes: NDArray[np.int64]) -> Self:
        """From values one after the other and the size of each set."""
        return cls(values, offsets_of(sizes))

    @classmethod
    def from_sets(cls, sets: Iterable[Iterable[int]]) -> Self:
        """From any iterables of integers from 0 to 2^64 - 1."""
        arrays = [np.array(sorted(set(each)), np.uint64) for each in sets]
        sizes = np.array([len(each) for each in arrays], np.int64)
        return cls.from_sizes(np.concatenate(arrays) if arrays else np.zeros(0, np.uint64), sizes)

    @classmethod
    def concatenate(cls, parts: Iterable["RaggedSets"]) -> Self:
        """The sets of all parts, in order."""
        parts = list(parts)
        if not parts:
            return cls(np.zeros(0, np.uint64), np.zeros(1, np.int64))
        filled = [part.values for part in parts if len(part.values)]
        values = filled[0] if len(filled) == 1 else np.concatenate([parts[0].values[:0], *filled])
        return cls.from_sizes(values, np.concatenate([part.sizes for part in parts]))

    def copy(self) -> "RaggedSets":
        """The same, in memory of their own."""
        return RaggedSets(self.values.copy(), self.offsets)

    def take(self, indices: NDArray[np.int64]) -> "RaggedSets":
        """The sets at `indices` (int64 array), in that order, copied."""
        sizes = self.offsets[indices + 1] - self.offsets[indices]
        return RaggedSets.from_sizes(_runs(self.values, self.offsets[indices], sizes), sizes)


@dataclass(frozen=True)
class StringTable:
    """Byte strings: one blob and offsets. NumPy's own string arrays cost the longest name for each and drop trailing NULs.

    blob : uint8 array. offsets : int64 array of shape (n + 1,).

    >>> names = StringTable.from_strings([b"a.txt", b"b"])
    >>> names[0], len(names), list(names)
    (b'a.txt', 2, [b'a.txt', b'b'])
    """

    blob: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        start, end = self.offsets[index], self.offsets[index + 1]
        return self.blob[start:end].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        blob = self.blob.tobytes()
        offsets = self.offsets.tolist()
        return (blob[start:end] for start, end in itertools.pairwise(offsets))

    @classmethod
    def from_strings(cls, strings: Iterable[bytes]) -> Self:
        strings = list(strings)
        sizes = np.fromiter(map(len, strings), np.int64, len(strings))
        return cls(np.frombuffer(b"".join(strings), np.uint8), offsets_of(sizes))

    def some(self, indices: NDArray[np.int64]) -> list[bytes]:
        """Return the strings at `indices`, as objects."""
        return list(self.take(indices))

    def take(self, indices: NDArray[np.int64]) -> "StringTable":
        """The strings at `indices`, in that order."""
        sizes = self.offsets[indices + 1] - self.offsets[indices]
        return StringTable(_runs(self.blob, self.offsets[indices], sizes), offsets_of(sizes))

    def find(self, string: bytes) -> int | None:
        """Index of `string` in a table in byte order, or None; reads about log2(n) strings."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self[middle] < string:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self[low] == string else None

    def ending_with(self, tail: bytes) -> list[int]:
        """Indices of all strings that end with `tail`; one pass over the blob, without an object per string."""
        found: list[int] = []
        blob, offsets = self.blob.tobytes(), np.asarray(self.offsets)
        at = blob.find(tail)
        while at >= 0:
            end = at + len(tail)
            index = min(int(np.searchsorted(offsets, end)), len(self)) - 1
            if offsets[index + 1] == end and offsets[index] <= at:
                found.append(index)
            at = blob.find(tail, at + 1)
        return found


def offsets_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64 offsets of shape (n + 1,) from n sizes."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _runs(values: Any, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[Any]:
    """values[starts[i]:starts[i] + sizes[i]] for all i, one after the other. Raises IndexError for runs that are not there."""
    if not isinstance(values, np.ndarray):  # an array of the store that verifies what is read
        values = values.verified_runs(starts, sizes)
    n = len(values)
    # Not starts + sizes: damaged offsets may be so large that the sum would wrap.
    if len(starts) and (
        starts.min() < 0 or starts.max() > n or sizes.min() < 0 or (sizes > n - starts).any()
    ):
        message = "a run lies outside the values"
        raise IndexError(message)
    out = np.empty(int(sizes.sum()), values.dtype)
    copying.copy_runs(np.ascontiguousarray(values), starts, sizes, out)
    return out


def distinct(values: NDArray[T]) -> tuple[NDArray[T], NDArray[np.int64]]:
    """The different values of a one-dimensional array, ascending, and how often each is there.

    As `numpy.unique` without its import of masked arrays, which takes longer than most that it is asked here.

    >>> [each.tolist() for each in distinct(np.array([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    values = np.sort(values)
    first = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    places = np.flatnonzero(first)
    return values[places], np.diff(places, append=len(values))


def ranges(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers starts[i] … starts[i] + sizes[i] - 1 for all i, one after the other, as an int64 array.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    offsets = offsets_of(sizes)
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)


#: Gives the shingle sets of some documents (ascending int64 array); a document whose set can no longer be had is an empty set.
SetSource = Callable[[NDArray[np.int64]], RaggedSets]
