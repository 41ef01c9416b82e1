"""Arrays of a run that may exceed memory: in memory as far as its limit goes, else in files."""

import math
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lshdup.utils.scratch import mapped_array

#: A larger array is in a file of the store, so that memory is left for all others.
MOST_IN_MEMORY = 256 << 20

#: A smaller array is in memory, even if memory is used up.
_SMALL = 1 << 20


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
        shape = (shape,) if isinstance(shape, int) else shape
        size, folder = math.prod(shape) * np.dtype(dtype).itemsize, self._folder()
        most = max(self._left, _SMALL)
        if size > (most if folder is None else min(most, MOST_IN_MEMORY)):
            return mapped_array(folder, shape, dtype)
        array = np.empty(shape, dtype)
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
