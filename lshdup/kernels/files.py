"""Sizes, times and bytes of many files, by calls of the C library without a Python object for each.

A file that cannot be read as expected gets -1; the caller reads it again to find out why.
Reference in the tests: `os.stat` and `open`, in tests/sources.
"""

import numpy as np

from lshdup.kernels.helpers import I64, U8, U64, c_function, inlined
from lshdup.kernels.jit import kernel

#: Words of 64 bits in a record of statx(2).
RECORD = 32


_statx = c_function("statx", "int32", "int32", "int64", "int32", "int32", "int64")
_open = c_function("open", "int32", "int64", "int32")
_read = c_function("read", "int64", "int32", "int64", "int64")
_close = c_function("close", "int32", "int32")

_CURRENT_FOLDER = -100  # AT_FDCWD
_NO_FOLLOW = 0x100  # AT_SYMLINK_NOFOLLOW
_TYPE_TIME_SIZE = 0x1 | 0x40 | 0x200  # STATX_TYPE, STATX_MTIME, STATX_SIZE


@inlined
def _terminated(paths: U8, start: int, end: int, path: U8) -> int:
    """Copy a path to `path` and end it by NUL, as C wants it; return its address."""
    for i in range(end - start):
        path[i] = paths[start + i]
    path[end - start] = 0
    return path.ctypes.data


@kernel
def stat_files(paths: U8, offsets: I64, path: U8, record: U64, sizes: I64, mtimes: I64) -> None:
    """Write size in bytes and modification time in ns of regular files; size -1 for others.

    paths, offsets : path i is paths[offsets[i]:offsets[i + 1]].
    path, record : scratch, of more bytes than the longest path, and of RECORD words.
    """
    for i in range(len(sizes)):
        sizes[i] = -1
        # The record (linux/stat.h) has the mode in bytes 28-29, the size in 40-47, the seconds in
        # 112-119 and the nanoseconds in 120-123.
        name, out = _terminated(paths, offsets[i], offsets[i + 1], path), record.ctypes.data
        if _statx(_CURRENT_FOLDER, name, _NO_FOLLOW, _TYPE_TIME_SIZE, out) == 0:
            mode = (record[3] >> np.uint64(32)) & np.uint64(0xF000)
            if mode == np.uint64(0x8000):
                nanoseconds = np.int64(record[15] & np.uint64(0xFFFFFFFF))
                sizes[i] = np.int64(record[5])
                mtimes[i] = np.int64(record[14]) * 1_000_000_000 + nanoseconds


@kernel
def read_files(
    paths: U8, offsets: I64, path: U8, flags: int, text: U8, starts: I64, sizes: I64, outcomes: I64
) -> None:
    """Read files into `text`, file i from starts[i] on.

    One byte more than expected is requested, to notice a file that grew. The byte may fall on the
    start of the next file, which is read later, or behind the last one, where `text` must have
    room.

    paths, offsets, path : as of `stat_files`.
    outcomes : 0 if the file has sizes[i] bytes, else -1.
    """
    for i in range(len(sizes)):
        outcomes[i] = -1
        descriptor = _open(_terminated(paths, offsets[i], offsets[i + 1], path), flags)
        if descriptor >= 0:
            if _read(descriptor, text.ctypes.data + starts[i], sizes[i] + 1) == sizes[i]:
                outcomes[i] = 0
            _close(descriptor)
