"""Sizes, times and bytes of many files at once: by kernels on Linux, else one by one."""

import errno
import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import Buffer
from lshdup.base.ragged import StringTable, offsets_of
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.base.system import NO_FOLLOW, READ, pread_into
from lshdup.kernels import files as kernels
from lshdup.kernels.helpers import PADDING
from lshdup.sources.records import RecordError, Spans

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

#: The kernels know Linux's statx(2) and its record; elsewhere Python reads the same values.
KERNELS_KNOW_THE_SYSTEM = (
    sys.platform == "linux" and sys.byteorder == "little" and sys.maxsize > 1 << 32
)

#: Parts of a file with fewer bytes between them are read at once.
_GAP = 1 << 14

#: Files that are looked up at once.
LOOKED_UP_AT_ONCE = 4096

#: Paths that were looked up together, with sizes and times as of `Stats`.
_Part = tuple[StringTable, NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Stats:
    """Sizes and times of n files.

    sizes, mtimes : int64 arrays of shape (n,), bytes and nanoseconds.
    failed : why a file has neither, by index.
    """

    sizes: NDArray[np.int64]
    mtimes: NDArray[np.int64]
    failed: dict[int, OSError | None]


class Lookup:
    """Sizes and times of files, which other threads look up while more files are found."""

    def __init__(self, run: Run) -> None:
        self._jobs, self._paths, self._begun = run.jobs, list[bytes](), 0
        self._parts: list[Future[_Part]] = []

    def add(self, paths: Iterable[bytes]) -> None:
        """Look up more files."""
        self._paths += paths
        if self._jobs > 1 and len(self._paths) - self._begun >= LOOKED_UP_AT_ONCE:
            self._parts.append(self._pool.submit(_look_up, self._paths[self._begun :]))
            self._begun = len(self._paths)

    @cached_property
    def _pool(self) -> "ThreadPoolExecutor":
        from concurrent.futures import ThreadPoolExecutor  # Imported here to keep `query` fast.

        return ThreadPoolExecutor(self._jobs)

    def finish(self) -> tuple[StringTable, Stats]:
        """Return the paths in byte order, and sizes and times of regular files in this order.

        Links are not followed. Anything but a regular file is in `failed` with None.
        """
        rest = _look_up(self._paths[self._begun :])
        order = np.array(sorted(range(len(self._paths)), key=self._paths.__getitem__), np.int64)
        parts = [*(part.result() for part in self._parts), rest]
        paths = StringTable.concatenate(each[0] for each in parts).take(order)
        sizes, mtimes = (np.concatenate([each[i] for each in parts])[order] for i in (1, 2))
        failed: dict[int, OSError | None] = {}
        for index in np.flatnonzero(sizes < 0).tolist():
            try:
                status = os.lstat(paths[index])
            except OSError as error:
                failed[index] = error
                continue
            if stat.S_ISREG(status.st_mode):
                sizes[index], mtimes[index] = status.st_size, status.st_mtime_ns
            else:
                failed[index] = None
        return paths, Stats(sizes, mtimes, failed)


def _look_up(paths: Sequence[bytes]) -> _Part:
    """Return paths with the sizes and times of regular files; a size of -1 for others."""
    table, n = StringTable.from_strings(paths), len(paths)
    sizes, mtimes = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    if KERNELS_KNOW_THE_SYSTEM and n:
        path = np.empty(int(table.sizes.max()) + 1, np.uint8)  # with the NUL that ends it
        record = np.zeros(kernels.RECORD, np.uint64)
        kernels.stat_files(table.values, table.offsets, path, record, sizes, mtimes)
    return table, sizes, mtimes


class Contents(NamedTuple):
    """The bytes of n files, or of n parts of one, in one array.

    text : uint8 array with room to load past the end: PADDING.
    starts, lengths : int64 arrays of shape (n,), bytes.
    failed : why the others have none, by index.
    """

    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    failed: Mapping[int, OSError | RecordError] = MappingProxyType({})


def read_files(
    paths: StringTable,
    expected: NDArray[np.int64],
    buffer: Buffer | None,
    most: int,
    *,
    links: bool = True,
) -> Contents:
    """Return the bytes of files; one that grew or shrank since it was listed is read as it is now.

    Cost: one open, read and close a file, without the GIL.

    Parameters
    ----------
    paths : n paths.
    expected : int64 array of shape (n,), bytes of each file when it was listed.
    buffer : memory to read into; the contents are valid until it is used again.
    most : a file that has grown beyond so many bytes fails with EFBIG.
    links : whether a file may be a link; else one that has become a link fails with ELOOP.

    """
    n, flags = len(paths), READ if links else READ | NO_FOLLOW
    offsets = offsets_of(expected)
    starts, lengths, outcomes = offsets[:-1], expected.copy(), np.full(n, -1, np.int64)
    text = (buffer or Buffer()).room(int(offsets[-1]) + PADDING)
    if KERNELS_KNOW_THE_SYSTEM and n:
        path = np.empty(int(paths.sizes.max()) + 1, np.uint8)
        kernels.read_files(
            paths.values, paths.offsets, path, flags, text, starts, expected, outcomes
        )
    text[offsets[-1] :] = 0
    failed: dict[int, OSError | RecordError] = {}
    again = np.flatnonzero(outcomes < 0).tolist()
    if again:
        parts, end = [text[: offsets[-1]].tobytes()], int(offsets[-1])
        for index in again:
            data = b""
            try:
                data = _read(paths[index], max(most, int(expected[index])), flags)
            except OSError as error:
                failed[index] = error
            parts.append(data)
            starts[index], lengths[index] = end, len(data)
            end += len(data)
        text = np.frombuffer(bytearray().join([*parts, bytes(PADDING)]), np.uint8)
    return Contents(text, starts, lengths, failed)


def read_spans(file: int, spans: Spans, buffer: Buffer) -> Contents:
    """Return parts of an open file.

    Neighbours are read together. Raises RecordError if the file is shorter, and OSError as the
    system does.

    file : descriptor of the file. buffer : memory to read into.
    """
    starts, lengths = spans
    ends = starts + lengths
    gaps = starts[1:] - ends[:-1]
    cuts = np.flatnonzero((gaps < 0) | (gaps > _GAP)) + 1
    firsts, lasts = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(starts)]]) - 1
    offsets = offsets_of(ends[lasts] - starts[firsts])
    size = int(offsets[-1])
    text = buffer.room(size + PADDING)
    for number, first in enumerate(firsts.tolist()):
        place, start, end = int(starts[first]), int(offsets[number]), int(offsets[number + 1])
        while start < end:
            got = pread_into(file, text[start:end].data, place)
            if not got:
                raise RecordError(Reason.CHANGED, "its file has become shorter")
            place, start = place + got, start + got
    text[size:] = 0
    span = np.searchsorted(firsts, np.arange(len(starts)), side="right") - 1
    return Contents(text, starts - starts[firsts][span] + offsets[:-1][span], lengths)


def _read(path: bytes, most: int, flags: int) -> bytes:
    descriptor = os.open(path, flags)
    try:
        parts, size = [], 0
        while size <= most and (data := os.read(descriptor, 1 << 20)):
            parts.append(data)
            size += len(data)
        if size > most:
            message = f"it grew to more than {most} bytes while it was read"
            raise OSError(errno.EFBIG, message)
        return b"".join(parts)
    finally:
        os.close(descriptor)
