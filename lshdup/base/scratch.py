"""Temporary files of values that grow during a run, and of unpacked content."""

import contextlib
import mmap
import tempfile
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import Arrays
from lshdup.base.messages import quoted
from lshdup.base.ragged import RaggedSets, offsets_of
from lshdup.base.system import pwrite, release
from lshdup.base.temporary import MORE_ROOM, explained, temporary_file, usable_folder
from lshdup.errors import InputError

#: Bytes that are written at a time.
CHUNK = 64 << 20


class NoRoomError(InputError):
    """The disk has no room for an unpacked document."""


class Spool:
    """A temporary file of uint64 values that grows during a run, for sets that exceed memory.

    folder : where the file is; None: where the system has temporary files.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        with explained(f"{folder or tempfile.gettempdir()} cannot be written"):
            self._file = temporary_file(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # A failed write was reported when it happened.
            self._file.close()

    def append(self, values: NDArray[np.uint64]) -> None:
        """Write values behind those that are there."""
        with self._reporting():
            self._file.write(np.ascontiguousarray(values).data)

    def values(self) -> NDArray[np.uint64]:
        """Return all values, mapped; valid until the spool is closed and the array is dropped."""
        with self._reporting():
            self._file.flush()
        size = self._file.tell() // 8
        if not size:
            return np.zeros(0, np.uint64)
        return np.memmap(self._file, np.uint64, "r", shape=(size,))

    def restart(self) -> None:
        """Begin anew, in another file. The values that were returned stay valid."""
        with self._file, self._reporting():
            self._file = temporary_file(self._folder)

    def in_order(
        self, sizes: NDArray[np.int64], order: NDArray[np.int64], arrays: Arrays
    ) -> RaggedSets:
        """Rewrite the sets of the spool in another order and return them, mapped.

        sizes : int64 array of shape (n,), of the sets as they were appended.
        order : int64 array of shape (n,), their numbers in the wanted order.
        arrays : makes the offsets.
        """
        sets = RaggedSets.from_sizes(self.values(), sizes, arrays)
        offsets = offsets_of(arrays.take(sizes, order), arrays)
        old, start = self._file, 0
        with self._reporting():
            self._file = temporary_file(self._folder)
        with old:
            while start < len(order):
                most = offsets[start] + CHUNK // 8
                stop = max(int(np.searchsorted(offsets, most, side="right")) - 1, start + 1)
                self.append(sets.take(order[start:stop]).values)
                start = stop
        return RaggedSets(self.values(), offsets)

    def _reporting(self) -> contextlib.AbstractContextManager[None]:
        folder = self._folder or tempfile.gettempdir()
        return explained(f"{folder} has no room for the shingle sets")


def release_pages(values: NDArray[Any]) -> None:
    """Let go of the memory of a mapped array, which is in its file all the same."""
    base: object = values
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap):
        release(base)


def new_scratch(path: bytes, folder: Path | None) -> IO[bytes]:
    """Open a temporary file for the unpacked content of `path`. Raises NoRoomError."""
    with _unpacking(path, folder):
        return temporary_file(usable_folder(folder), buffering=0)


def write_scratch(
    file: IO[bytes], data: memoryview, at: int, path: bytes, folder: Path | None
) -> None:
    """Write unpacked content of `path` to such a file, from byte `at` on. Raises NoRoomError."""
    written = 0
    with _unpacking(path, folder):
        while written < len(data):
            written += pwrite(file.fileno(), data[written:], at + written)


def _unpacking(path: bytes, folder: Path | None) -> contextlib.AbstractContextManager[None]:
    return explained(
        f"{quoted(path)} cannot be unpacked in {folder or tempfile.gettempdir()}",
        MORE_ROOM,
        NoRoomError,
    )
