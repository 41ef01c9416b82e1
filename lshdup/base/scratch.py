"""Temporary files of values that grow during a run, and of unpacked content."""

import contextlib
import mmap
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.atomic import MORE_ROOM, explained, temporary_file, usable_folder
from lshdup.base.memory import Arrays, GrowingArray
from lshdup.base.ragged import RaggedSets, offsets_of
from lshdup.base.system import pwrite, release
from lshdup.base.wording import quoted
from lshdup.errors import InputError

#: Bytes that are written at a time.
CHUNK = 64 << 20


class NoRoomError(InputError):
    """The disk has no room for an unpacked document."""


class Spool:
    """A temporary file of sets that grows during a run, for sets that exceed memory.

    The file is there until neither the spool nor a mapped set is referred to.

    arrays : makes the sizes and offsets of the sets; the file is where its files are.
    """

    def __init__(self, arrays: Arrays) -> None:
        self._arrays, self._folder = arrays, usable_folder(arrays.folder())
        self.total = 0  #: elements of all sets
        with explained(f"{self._folder or tempfile.gettempdir()} cannot be written"):
            self._begin()

    def __del__(self) -> None:
        with contextlib.suppress(OSError, AttributeError):  # A failed write was reported before.
            self._file.close()

    def append(self, sets: RaggedSets) -> None:
        """Write sets behind those that are there."""
        with self._reporting():
            self._file.write(np.ascontiguousarray(sets.values).data)
        self._sizes.append(sets.sizes)
        self.total += len(sets.values)

    def values(self) -> NDArray[np.uint64]:
        """Return the elements of all sets, mapped."""
        with self._reporting():
            self._file.flush()
        if not self.total:
            return np.zeros(0, np.uint64)
        return np.memmap(self._file, np.uint64, "r", shape=(self.total,))

    def sets(self) -> RaggedSets:
        """Return all sets, mapped, as `values`."""
        return RaggedSets.from_sizes(self.values(), self._sizes.whole(), self._arrays)

    def restart(self) -> None:
        """Begin anew, in another file. The sets that were returned stay valid."""
        with self._file, self._reporting():
            self._begin()

    def in_order(self, order: NDArray[np.int64]) -> RaggedSets:
        """Rewrite the sets in another order and return them, mapped.

        order : int64 array of shape (n,), the numbers of all sets.
        """
        sets, start = self.sets(), 0
        offsets = offsets_of(self._arrays.take(sets.sizes, order), self._arrays)
        self.restart()
        while start < len(order):
            most = offsets[start] + CHUNK // 8
            stop = max(int(np.searchsorted(offsets, most, side="right")) - 1, start + 1)
            self.append(sets.take(order[start:stop]))
            start = stop
        return self.sets()

    def _begin(self) -> None:
        self._file, self.total = temporary_file(self._folder), 0
        self._sizes = GrowingArray(np.int64, self._arrays)

    def _reporting(self) -> contextlib.AbstractContextManager[None]:
        folder = self._folder or tempfile.gettempdir()
        return explained(f"{folder} has no room for the shingle sets", MORE_ROOM)


def release_pages(values: NDArray[Any]) -> None:
    """Let go of the memory of a mapped array, which is in its file all the same."""
    base: object = values
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
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
