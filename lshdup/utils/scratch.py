"""Temporary files without a name, and arrays that are kept in them."""

import contextlib
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from lshdup.errors import ArtifactError, InputError
from lshdup.utils.atomic import SCRATCH
from lshdup.utils.ragged import RaggedSets


def room_on_disk(folder: Path, shape: tuple[int, int]) -> NDArray[np.uint32]:
    """A uint32 array in a nameless file of `folder`, for signatures that together may exceed memory: the system writes them as they come
    and takes their memory back when it needs it. Raises ArtifactError if the disk has no room.
    """
    size = 4 * math.prod(shape)
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=SCRATCH) as file:
            # All of it now: a mapped file that runs into a full disk later would end the process without a word.
            os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, np.uint32, "r+", shape=shape)
    except OSError as error:
        message = f"{folder} has no room for {size:,} bytes of signatures: {error.strerror}"
        raise ArtifactError(
            message, "name another store with --store DIR, or use fewer --perms"
        ) from None


#: Bytes that are written at a time.
CHUNK = 64 << 20


class Spool:
    """A nameless file of uint64 values that grows while a run goes on, for sets that together exceed memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self._file = tempfile.TemporaryFile(dir=folder, prefix=SCRATCH)  # noqa: SIM115 (closed by __exit__)
        except OSError as error:
            message = f"{folder} cannot be written: {error.strerror}"
            raise ArtifactError(message, "name another store with --store DIR") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(
            OSError
        ):  # what could not be written has been said, and nobody needs it any more
            self._file.close()

    def append(self, values: NDArray[np.uint64]) -> None:
        try:
            self._file.write(values.tobytes())
        except OSError as error:
            raise self._full(error) from None

    def values(self) -> NDArray[np.uint64]:
        """All that was appended, mapped; valid until the spool is closed and the array is dropped."""
        try:
            self._file.flush()
        except OSError as error:
            raise self._full(error) from None
        size = self._file.tell() // 8
        return (
            np.memmap(self._file, np.uint64, "r", shape=(size,)) if size else np.zeros(0, np.uint64)
        )

    def in_order(self, sizes: NDArray[np.int64], order: NDArray[np.int64]) -> RaggedSets:
        """Sets of these sizes (int64 array of shape (n,)) that were appended one after the other, in another order (int64 array of shape
        (n,)); some at a time, because they may exceed memory.
        """
        sets = RaggedSets.from_sizes(self.values(), sizes)
        old = self._file
        try:
            self._file = tempfile.TemporaryFile(dir=self._folder, prefix=SCRATCH)  # noqa: SIM115 (closed by __exit__)
        except OSError as error:
            raise self._full(error) from None
        with old:
            ends = np.cumsum(sizes[order])
            start = 0
            while start < len(order):
                before = int(ends[start] - sizes[order[start]])
                stop = max(int(np.searchsorted(ends, before + CHUNK // 8, side="right")), start + 1)
                self.append(sets.take(order[start:stop]).values)
                start = stop
        return RaggedSets.from_sizes(self.values(), sizes[order])

    def _full(self, error: OSError) -> ArtifactError:
        message = f"{self._folder} has no room for the shingle sets: {error.strerror}"
        return ArtifactError(message, "name another store with --store DIR")


class NoRoomError(InputError):
    """There is no room on the disk for what has to be unpacked."""


def new_scratch(path: bytes, folder: Path | None) -> IO[bytes]:
    """A nameless file for what `path` holds. Raises NoRoomError."""
    with _no_room(path, folder):
        usable = folder is not None and folder.is_dir() and os.access(folder, os.W_OK)
        return tempfile.TemporaryFile(dir=folder if usable else None, prefix=SCRATCH, buffering=0)


def write_scratch(
    file: IO[bytes], data: memoryview, at: int, path: bytes, folder: Path | None
) -> None:
    """Write to such a file, from byte `at` on. Raises NoRoomError."""
    written = 0
    with _no_room(path, folder):
        while written < len(data):
            written += os.pwrite(file.fileno(), data[written:], at + written)


@contextlib.contextmanager
def _no_room(path: bytes, folder: Path | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{os.fsdecode(path)!r} cannot be unpacked in {folder or tempfile.gettempdir()}: {error.strerror}"
        raise NoRoomError(
            message, "name a store with more room with --store DIR, or a folder with TMPDIR"
        ) from None
