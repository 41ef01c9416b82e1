"""Arrays of a run that may exceed memory: in memory as far as its limit goes, else in files."""

import math
import mmap
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lshdup.base.atomic import MORE_ROOM, explained, temporary_file, temporary_place, usable_folder
from lshdup.base.system import allocate, machine_memory, release

#: A larger array is in a file of the store, so that memory is left for all others.
MOST_IN_MEMORY = 256 << 20

#: A smaller array is in memory, even if memory is used up.
_SMALL = 1 << 20

#: An even smaller array is not counted.
_UNCOUNTED = 1 << 14

#: Bytes of a part of a growing array at most.
_PART_BYTES = 16 << 20

#: Reused memory of more values than this is given back at once.
MOST_HELD = 16 << 20

#: Rows that are copied together.
ROWS_AT_ONCE = 1 << 18

_LOW_HALF = (1 << 32) - 1

#: Returns the values of rows, by which they are sorted.
Key = Callable[[NDArray[np.int64]], NDArray[Any]]


class Arrays:
    """Makes arrays in memory, or in temporary mapped files once memory is used up.

    An array that nothing refers to any more gives its memory back, or its room on the disk.

    limit : bytes that a run plans for; None: a quarter of the memory. Half of them are for these
        arrays.
    folder : of the files; None, or one that cannot be written: the system's for temporary files,
        for arrays that exceed the limit only.
    """

    def __init__(self, limit: int | None, folder: Path | None = None) -> None:
        self.limit = machine_memory() // 4 if limit is None else limit
        self._folder, self._left = folder, self.limit // 2
        # Of one thread again: an array may be freed, and counted, while another one is.
        self._counting = threading.RLock()

    def __reduce__(self) -> tuple[Callable[[], "Arrays"], tuple[()]]:
        """Pickle as arrays in memory: another process has other files."""
        return _in_memory, ()

    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike,
        make: Callable[..., NDArray[Any]] = np.empty,
    ) -> NDArray[Any]:
        """Return an uninitialised array. Raises ArtifactError if the disk has no room for it.

        make : makes it in memory.
        """
        shape = (shape,) if isinstance(shape, int) else shape
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if not self.has_memory(size):
            # The system writes pages to the file when it needs their memory.
            with self.explained(size), temporary_file(self.folder) as file:
                # Allocated now: a mapped file that meets a full disk later kills the process.
                allocate(file, size)
                return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
        array = make(shape, dtype)
        if size > _UNCOUNTED:
            self._account(-size)
            weakref.finalize(array, self._account, size)
        return array

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of zeros. Raises ArtifactError if the disk has no room for it."""
        return self.empty(shape, dtype, np.zeros)

    def concatenate(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return arrays one after the other: of one that is not empty, no copy.

        Raises ArtifactError if the disk has no room.
        """
        filled = [part for part in parts if len(part)]
        if len(filled) == 1:
            return filled[0]
        shape = (sum(map(len, parts)), *parts[0].shape[1:])
        return np.concatenate(parts, out=self.empty(shape, np.result_type(*parts)))

    def take(self, array: NDArray[Any], indices: NDArray[np.integer]) -> NDArray[Any]:
        """Return the rows at `indices`. Raises ArtifactError if the disk has no room."""
        out = self.empty((len(indices), *array.shape[1:]), array.dtype)
        for some in slices_of(len(indices), out[:1].nbytes):
            out[some] = array[indices[some]]
        return out

    def compute(
        self, n: int, dtype: DTypeLike, values: Callable[[slice], NDArray[Any]]
    ) -> NDArray[Any]:
        """Return the values of n rows, ROWS_AT_ONCE at a time.

        values : returns those of the rows of a slice. Raises ArtifactError if the disk has no room.
        """
        out = self.empty(n, dtype)
        for some in slices_of(n):
            out[some] = values(some)
        return out

    def find(self, is_wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the indices of True, ascending. Raises ArtifactError if the disk has no room."""
        out: NDArray[np.int64] = self.empty(int(np.count_nonzero(is_wanted)), np.int64)
        at = 0
        for some in slices_of(len(is_wanted)):
            found = np.flatnonzero(is_wanted[some])
            out[at : at + len(found)] = found + some.start
            at += len(found)
        return out

    def where(self, n: int, condition: Callable[[slice], NDArray[np.bool_]]) -> NDArray[np.int64]:
        """Return the rows of n, ascending, for which a condition holds.

        condition : returns whether it holds for the rows of a slice, of ROWS_AT_ONCE. Raises
            ArtifactError if the disk has no room.
        """
        return self.find(self.compute(n, np.bool_, condition))

    def order(self, n: int, keys: Sequence[Key]) -> NDArray[np.int64]:
        """Return the order of n rows by keys, the strongest first; equal rows stay in order.

        keys : each returns the whole numbers of rows (int64 array of shape (m,)): integers of at
            most 64 bits, of shape (m,).

        Raises ArtifactError if the disk has no room. Cost: a sort for each key whose values span
        less than 2^32, two for others; none for a constant. Memory: two arrays of the result.
        """
        order, half = self.compute(n, np.int64, rows_of), np.uint64(32)
        for key in reversed(keys):
            ends = [
                (int(each.min()), int(each.max()))
                for each in (key(order[some]) for some in slices_of(n))
            ]
            low, high = min(ends, default=(0, 0))[0], max((end for _, end in ends), default=0)
            least = np.uint64(low % (1 << 64))
            for bits in range(0, (high - low).bit_length(), 32):
                packed: NDArray[np.uint64] = self.empty(n, np.uint64)
                for some in slices_of(n):
                    above = key(order[some]).astype(np.uint64) - least
                    packed[some] = (above >> np.uint64(bits)) << half
                    packed[some] |= rows_of(some).astype(np.uint64)
                packed.sort()  # Places in `order` are all different: no other sort is needed.
                packed &= np.uint64(_LOW_HALF)
                order = self.take(order, packed.view(np.int64))
        return order

    def places(self, order: NDArray[np.integer], n: int) -> NDArray[np.uint32]:
        """Return the place of each of n rows in `order`, in which a row is at most once.

        Returns a uint32 array of shape (n,), 2^32 - 1 for rows that are not there. Raises
        ArtifactError if the disk has no room.
        """
        out = self.full(n, _LOW_HALF, np.uint32)
        for some in slices_of(len(order)):
            out[order[some]] = rows_of(some)
        return out

    def has_memory(self, size: int) -> bool:
        """Return whether an array of so many bytes would be made in memory now."""
        most = max(self._left, _SMALL)
        return size <= (most if usable_folder(self._folder) is None else min(most, MOST_IN_MEMORY))

    @property
    def folder(self) -> Path | None:
        """The folder of files that are made now; None: the system's for temporary files."""
        return usable_folder(self._folder)

    def explained(self, size: int) -> AbstractContextManager[None]:
        """Return a block that raises ArtifactError if the disk has no room for so many bytes."""
        message = f"{temporary_place(self.folder)} has no room for {size:,} bytes"
        return explained(message, MORE_ROOM)

    def full(self, shape: int | tuple[int, ...], value: Any, dtype: DTypeLike) -> NDArray[Any]:
        """Return an array that holds one value everywhere."""
        out = self.empty(shape, dtype)
        out[...] = value
        return out

    def copy(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of an array."""
        out = self.empty(array.shape, array.dtype)
        out[...] = array
        return out

    def _account(self, freed: int) -> None:
        with self._counting:
            self._left += freed


#: Arrays that are in memory, whatever their size.
IN_MEMORY = Arrays(1 << 62)


def _in_memory() -> Arrays:
    return IN_MEMORY


class GrowingArray:
    """An array that is made part by part: in memory as long as the run has memory for it, then in a
    temporary file, which is there until neither this array nor a mapped one is referred to.

    dtype : its type. arrays : of the run.
    """

    def __init__(self, dtype: DTypeLike, arrays: Arrays) -> None:
        self._file: IO[bytes] | None = None
        self._arrays, self._dtype = arrays, np.dtype(dtype)
        self.size = 0  #: number of values
        # Full parts, and one with room behind the values that are used.
        self._parts, self._last, self._used = list[NDArray[Any]](), np.empty(0, self._dtype), 0

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, values: NDArray[Any]) -> None:
        """Add values behind those that are there. Raises ArtifactError if the disk has no room."""
        self.size += len(values)
        size = self.size * self._dtype.itemsize
        if self._file is None and self._arrays.has_memory(size):
            if self._used + len(values) > len(self._last):
                self._parts.append(self._last[: self._used])
                most = _PART_BYTES // self._dtype.itemsize
                room = max(len(values), min(self.size, most))
                self._last, self._used = self._arrays.empty(room, self._dtype), 0
            self._last[self._used : self._used + len(values)] = values
            self._used += len(values)
            return
        with self._arrays.explained(size):
            parts = [values]
            if self._file is None:
                self._file = temporary_file(self._arrays.folder, buffering=0)
                parts = [*self._parts, self._last[: self._used], values]
                self._parts, self._last, self._used = [], self._last[:0].copy(), 0
            for part in parts:
                data = np.ascontiguousarray(part).view(np.uint8).data
                while len(data):
                    data = data[self._file.write(data) :]

    def whole(self) -> NDArray[Any]:
        """Return all values. Raises ArtifactError if the disk has no room."""
        if self._file is None:
            return self._arrays.concatenate([*self._parts, self._last[: self._used]])
        return np.asarray(np.memmap(self._file, self._dtype, "r+", shape=(self.size,)))


def release_pages(values: NDArray[Any]) -> None:
    """Let go of the memory of a mapped array, which is in its file all the same."""
    base: object = values
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    if isinstance(base, mmap.mmap):
        release(base)


def slices_of(n: int, width: int = 8) -> Iterator[slice]:
    """Yield slices of ROWS_AT_ONCE rows, and of the rest of n.

    width : bytes of a row; of wider ones than 8 there are fewer in a slice, for as many bytes.

    >>> list(slices_of(300_000))
    [slice(0, 262144, None), slice(262144, 300000, None)]
    """
    step = max(1, 8 * ROWS_AT_ONCE // max(width, 8))
    return (slice(at, min(at + step, n)) for at in range(0, n, step))


def rows_of(some: slice) -> NDArray[np.int64]:
    """Return the numbers of the rows of a slice of `slices_of`: int64 array."""
    return np.arange(some.start, some.stop)


def is_counting(array: NDArray[np.integer]) -> bool:
    """Return whether an array of shape (n,) holds 0, 1, 2 and so on, in this order."""
    return all(np.array_equal(array[some], rows_of(some)) for some in slices_of(len(array)))


def are_equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether two arrays of one dimension hold the same; ROWS_AT_ONCE are compared at a
    time.
    """
    return len(one) == len(other) and all(
        np.array_equal(one[some], other[some]) for some in slices_of(len(one))
    )


class Buffer:
    """Memory that is reused: new pages for every batch would cost as much as reading into them."""

    def __init__(self, dtype: DTypeLike = np.uint8) -> None:
        self._held = np.empty(0, dtype)

    def room(self, size: int) -> NDArray[Any]:
        """Return an uninitialised array of shape (size,), which replaces the last one unless its
        size is above MOST_HELD.
        """
        if size > MOST_HELD:
            return np.empty(size, self._held.dtype)
        if size > len(self._held):
            self._held = np.empty(size + size // 2, self._held.dtype)
        return self._held[:size]
