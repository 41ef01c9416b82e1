"""Arrays of an artifact that are verified block by block as their rows are read.

A lookup of a few rows verifies a few blocks, whatever the size of the file.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, NoReturn, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import distinct, ranges

#: Bytes that share a checksum: few to verify for one row, and so many that checksums stay small.
BLOCK = 16 << 10

Array = NDArray[Any]


def block_checksums(arrays: Mapping[str, Array]) -> NDArray[np.uint32]:
    """Return the CRC-32 of each BLOCK bytes of each (contiguous) array, array after array."""
    sums: list[int] = []
    for array in arrays.values():
        view = array.reshape(-1).view(np.uint8).data
        sums += [zlib.crc32(view[at : at + BLOCK]) for at in range(0, len(view), BLOCK)]
    return np.array(sums, np.uint32)


def block_count(size: int) -> int:
    """Return the number of blocks that hold `size` bytes."""
    return -(-size // BLOCK)


@dataclass(frozen=True)
class Blocks:
    """The bytes of one mapped array, their checksums, and which of the blocks have been verified.

    data : the mapped bytes. checksums : uint32 array of shape (blocks,).
    refuse : raises ArtifactError, with the name of the file.
    release : lets go of the mapped pages: the system maps up to a megabyte around each touch.
    """

    data: memoryview
    checksums: NDArray[np.uint32]
    refuse: Callable[[], NoReturn]
    release: Callable[[], None]
    verified: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "verified", np.zeros(len(self.checksums), bool))

    def verify(self, start: int, stop: int) -> None:
        """Verify the blocks that hold the bytes from `start` to before `stop`.

        No arrays are made, because a binary search verifies hundreds of single rows.
        """
        start, stop = max(start, 0), min(stop, len(self.data))
        blocks = range(start // BLOCK, block_count(stop)) if start < stop else ()
        self._verify_blocks(block for block in blocks if not self.verified[block])

    def verify_runs(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> None:
        """Verify the blocks that hold the bytes of all runs from ``starts[i]`` to ``stops[i]``."""
        stops = np.clip(stops, 0, len(self.data))
        starts = np.clip(starts, 0, stops)
        firsts = starts // BLOCK
        counts = np.where(starts < stops, -(-stops // BLOCK) - firsts, 0)
        blocks = distinct(ranges(firsts, counts))[0]
        self._verify_blocks(blocks[~self.verified[blocks]].tolist())

    def _verify_blocks(self, blocks: Iterable[int]) -> None:
        for block in blocks:
            if zlib.crc32(self.data[block * BLOCK : (block + 1) * BLOCK]) != self.checksums[block]:
                self.refuse()
            self.verified[block] = True


class CheckedArray(NDArrayOperatorsMixin):
    """A mapped array that verifies what is read of it, and stands in for an ndarray.

    Rows that are taken by number, slice or index array are verified alone. Everything else that an
    ndarray can do verifies the whole array first. A row of a two-dimensional array is again a
    CheckedArray, of which nothing has been read.
    """

    def __init__(self, array: Array, blocks: Blocks, start: int = 0) -> None:
        self._array, self._blocks, self._start = array, blocks, start
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self))) if self.ndim > 1 else iter(self.__array__())

    def __getitem__(self, key: Any) -> Any:
        array, width = self._array, self._array.strides[0]
        if isinstance(key, tuple) and len(key) > 1 and isinstance(key[0], int | np.integer):
            return self[key[0]][key[1:] if len(key) > 2 else key[1]]
        if isinstance(key, int | np.integer):
            row = range(len(array))[int(key)]
            if array.ndim > 1:
                return CheckedArray(array[row], self._blocks, self._start + row * width)
            self._blocks.verify(self._start + row * width, self._start + (row + 1) * width)
            taken = array[row]
        elif isinstance(key, slice):
            begin, end, step = key.indices(len(array))
            if step != 1:
                return self.__array__()[key]
            self._blocks.verify(self._start + begin * width, self._start + end * width)
            taken = array[key]
        else:
            rows = np.asarray(key if isinstance(key, list | np.ndarray) else ())
            if rows.dtype.kind not in "iub":
                return self.__array__()[key]
            rows = np.flatnonzero(rows) if rows.dtype == bool else rows.reshape(-1)
            starts = self._start + np.where(rows < 0, rows + len(array), rows) * width
            self._blocks.verify_runs(starts, starts + width)
            taken = array[key]
        self._blocks.release()
        return taken

    def verified_runs(self, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> Array:
        """Return the mapped array, of which these runs of rows have been verified."""
        if (starts < 0).any() or (sizes < 0).any() or (sizes > len(self) - starts).any():
            self._blocks.refuse()
        width = self._array.strides[0]
        begin = self._start + starts * width
        self._blocks.verify_runs(begin, begin + sizes * width)
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        self._blocks.verify(self._start, self._start + self._array.nbytes)
        return np.array(self._array, dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if options.get("out") is not None:
            message = "the arrays of an artifact cannot be written"
            raise TypeError(message)
        plain = (each.__array__() if isinstance(each, CheckedArray) else each for each in inputs)
        return getattr(ufunc, method)(*plain, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__array__(), name)

    def as_array(self) -> Array:
        """Return this array, typed as the ndarray that it stands in for."""
        return cast("Array", self)


def is_lazy(array: Array) -> bool:
    """Return whether an array is a CheckedArray, which should not be read whole without need."""
    return isinstance(array, CheckedArray)
