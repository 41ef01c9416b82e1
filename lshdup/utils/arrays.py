"""Arrays of a run that may exceed memory: in memory as far as its limit goes, else in files."""

import math
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lshdup.utils.temporary import mapped_array

#: A larger array is in a file of the store, so that memory is left for all others.
MOST_IN_MEMORY = 256 << 20

#: A smaller array is in memory, even if memory is used up.
_SMALL = 1 << 20

#: An even smaller array is not counted.
_UNCOUNTED = 1 << 14

#: Rows that are copied together.
ROWS_AT_ONCE = 1 << 18


class Arrays:
    """Makes arrays in memory, or in temporary mapped files once memory is used up.

    An array that nothing refers to any more gives its memory back, or its room on the disk.

    limit : bytes that a run plans for (`Request.memory`): half of them are for these arrays.
    folder : returns the folder of the files; None: the system's for temporary files, for arrays
        that exceed the limit only.
    """

    def __init__(self, limit: int, folder: Callable[[], Path | None] = lambda: None) -> None:
        self.limit = limit
        self._folder, self._left = folder, limit // 2

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an uninitialised array. Raises ArtifactError if the disk has no room for it."""
        return self._make(shape, dtype, np.empty)

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of zeros. Raises ArtifactError if the disk has no room for it."""
        return self._make(shape, dtype, np.zeros)

    def concatenate(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return arrays one after the other: of one that is not empty, no copy.

        Raises ArtifactError if the disk has no room.
        """
        filled = [part for part in parts if len(part)]
        if len(filled) == 1:
            return filled[0]
        shape = (sum(map(len, parts)), *parts[0].shape[1:])
        return np.concatenate(parts, out=self.empty(shape, np.result_type(*parts)))

    def take(self, array: NDArray[Any], indices: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows at `indices`. Raises ArtifactError if the disk has no room."""
        out = self.empty((len(indices), *array.shape[1:]), array.dtype)
        for start in range(0, len(indices), ROWS_AT_ONCE):
            out[start : start + ROWS_AT_ONCE] = array[indices[start : start + ROWS_AT_ONCE]]
        return out

    def _make(
        self, shape: int | tuple[int, ...], dtype: DTypeLike, make: Callable[..., NDArray[Any]]
    ) -> NDArray[Any]:
        shape = (shape,) if isinstance(shape, int) else shape
        size, folder = math.prod(shape) * np.dtype(dtype).itemsize, self._folder()
        most = max(self._left, _SMALL)
        if size > (most if folder is None else min(most, MOST_IN_MEMORY)):
            return mapped_array(folder, shape, dtype)
        array = make(shape, dtype)
        if size > _UNCOUNTED:
            self._left -= size
            weakref.finalize(array, self._give_back, size)
        return array

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

    def _give_back(self, size: int) -> None:
        self._left += size


#: Arrays that are in memory, whatever their size.
IN_MEMORY = Arrays(1 << 62)
