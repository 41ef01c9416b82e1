"""Temporary files without a name, and arrays in them."""

import contextlib
import math
import mmap
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lshdup.errors import ArtifactError, InputError
from lshdup.utils.atomic import PREFIX, SUFFIX
from lshdup.utils.ragged import RaggedSets
from lshdup.utils.system import allocate, pwrite, release

#: Bytes that are written at a time.
CHUNK = 64 << 20

_OTHER_STORE = "name another store with --store DIR"
_MORE_ROOM = "name a store with more room with --store DIR, or a folder with TMPDIR"


class NoRoomError(InputError):
    """The disk has no room for an unpacked document."""


def temporary_file(folder: Path | None, buffering: int = -1) -> IO[bytes]:
    """Open a temporary file in a folder, or in the system's; it vanishes when it is closed.

    Raises OSError as the file system does.
    """
    return tempfile.TemporaryFile(dir=folder, prefix=PREFIX, suffix=SUFFIX, buffering=buffering)


@contextlib.contextmanager
def _explained(
    message: str, hint: str = _OTHER_STORE, kind: type[ArtifactError | InputError] = ArtifactError
) -> Iterator[None]:
    """Raise an error of `kind` instead of OSError."""
    try:
        yield
    except OSError as error:
        message = f"{message}: {error.strerror}"
        raise kind(message, hint) from None


def mapped_array(folder: Path | None, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros in a temporary file, for what may exceed memory.

    The system writes pages to the file when it needs their memory. Raises ArtifactError if the
    disk has no room.

    folder : where the file is; None, or a folder that cannot be written: the system's.
    """
    size = np.dtype(dtype).itemsize * math.prod(shape)
    folder = _usable(folder)
    message = f"{folder or tempfile.gettempdir()} has no room for {size:,} bytes"
    with _explained(message, _MORE_ROOM), temporary_file(folder) as file:
        # Allocated now: a mapped file that meets a full disk later kills the process.
        allocate(file, size)
        return np.asarray(np.memmap(file, dtype, "r+", shape=shape))


class Spool:
    """A temporary file of uint64 values that grows during a run, for sets that exceed memory.

    folder : where the file is; None: where the system has temporary files.
    required : whether the run cannot go on if the disk has no room.
    """

    def __init__(self, folder: Path | None, *, required: bool = True) -> None:
        self.required = required
        self._folder = folder
        with _explained(f"{folder or tempfile.gettempdir()} cannot be written"):
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

    def in_order(self, sizes: NDArray[np.int64], order: NDArray[np.int64]) -> RaggedSets:
        """Rewrite the sets of the spool in another order and return them, mapped.

        sizes : int64 array of shape (n,), of the sets as they were appended.
        order : int64 array of shape (n,), their numbers in the wanted order.
        """
        sets = RaggedSets.from_sizes(self.values(), sizes)
        old = self._file
        with self._reporting():
            self._file = temporary_file(self._folder)
        with old:
            ends = np.cumsum(sizes[order])
            start = 0
            while start < len(order):
                before = int(ends[start] - sizes[order[start]])
                stop = max(int(np.searchsorted(ends, before + CHUNK // 8, side="right")), start + 1)
                self.append(sets.take(order[start:stop]).values)
                start = stop
        return RaggedSets.from_sizes(self.values(), sizes[order])

    def _reporting(self) -> contextlib.AbstractContextManager[None]:
        folder = self._folder or tempfile.gettempdir()
        return _explained(f"{folder} has no room for the shingle sets")


def release_pages(values: NDArray[Any]) -> None:
    """Let go of the memory of a mapped array, which is in its file all the same."""
    base: object = values
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap):
        release(base)


def open_optional_spool(folder: Path | None) -> Spool | None:
    """Open a spool that the run can do without; return None if there is no room for it.

    A folder that cannot be written is replaced by the system's for temporary files.
    """
    try:
        return Spool(_usable(folder), required=False)
    except ArtifactError:
        return None


def new_scratch(path: bytes, folder: Path | None) -> IO[bytes]:
    """Open a temporary file for the unpacked content of `path`. Raises NoRoomError."""
    with _unpacking(path, folder):
        return temporary_file(_usable(folder), buffering=0)


def write_scratch(
    file: IO[bytes], data: memoryview, at: int, path: bytes, folder: Path | None
) -> None:
    """Write unpacked content of `path` to such a file, from byte `at` on. Raises NoRoomError."""
    written = 0
    with _unpacking(path, folder):
        while written < len(data):
            written += pwrite(file.fileno(), data[written:], at + written)


def _usable(folder: Path | None) -> Path | None:
    """Return a folder if files can be written to it."""
    is_usable = folder is not None and folder.is_dir() and os.access(folder, os.W_OK)
    return folder if is_usable else None


def _unpacking(path: bytes, folder: Path | None) -> contextlib.AbstractContextManager[None]:
    return _explained(
        f"{os.fsdecode(path)!r} cannot be unpacked in {folder or tempfile.gettempdir()}",
        _MORE_ROOM,
        NoRoomError,
    )
