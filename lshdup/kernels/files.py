"""Sizes, times and bytes of many files, by calls of the C library without a Python object for each.

A file that cannot be read as expected gets -1; the caller reads it again to find out why.
Reference in the tests: `os.stat` and `open`, in tests/documents.
"""

import numpy as np

from lshdup.kernels.helpers import I64, U8, U64, instruction
from lshdup.kernels.jit import kernel

#: Words of 64 bits in a record of statx(2).
RECORD = 32


@instruction
def c_statx(paths: U8, start: int, record: U64) -> int:
    """Call statx(2) for type, size and time of a path, without following a link.

    The path begins at `start` and ends with NUL.
    """
    raise NotImplementedError


@instruction
def c_open(paths: U8, start: int, flags: int) -> int:
    """Call open(2); return a descriptor or -1."""
    raise NotImplementedError


@instruction
def c_read(descriptor: int, buffer: U8, start: int, size: int) -> int:
    """Call read(2) into `buffer` from `start` on; return the number of bytes or -1."""
    raise NotImplementedError


@instruction
def c_close(descriptor: int) -> int:
    """Call close(2)."""
    raise NotImplementedError


@kernel
def stat_files(paths: U8, starts: I64, record: U64, sizes: I64, mtimes: I64) -> None:
    """Write size in bytes and modification time in ns of regular files; size -1 for others."""
    for i in range(len(starts)):
        sizes[i] = -1
        # The record (linux/stat.h) has the mode in bytes 28-29, the size in 40-47, the seconds in
        # 112-119 and the nanoseconds in 120-123.
        if c_statx(paths, starts[i], record) == 0:
            mode = (record[3] >> np.uint64(32)) & np.uint64(0xF000)
            if mode == np.uint64(0x8000):
                nanoseconds = np.int64(record[15] & np.uint64(0xFFFFFFFF))
                sizes[i] = np.int64(record[5])
                mtimes[i] = np.int64(record[14]) * 1_000_000_000 + nanoseconds


@kernel
def read_files(
    paths: U8, path_starts: I64, flags: int, text: U8, starts: I64, sizes: I64, outcomes: I64
) -> None:
    """Read files into `text`, file i from starts[i] on.

    One byte more than expected is requested, to notice a file that grew. The byte may fall on the
    start of the next file, which is read later, or behind the last one, where `text` must have
    room.

    outcomes : 0 if the file has sizes[i] bytes, else -1.
    """
    for i in range(len(path_starts)):
        outcomes[i] = -1
        descriptor = c_open(paths, path_starts[i], flags)
        if descriptor >= 0:
            if c_read(descriptor, text, starts[i], sizes[i] + 1) == sizes[i]:
                outcomes[i] = 0
            c_close(descriptor)
