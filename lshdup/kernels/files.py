"""Many files at once: their sizes and times, and their bytes, by calls of the C library, no Python object for each. Called by files.py.

What does not go as expected gets -1: the caller looks at it again, file by file, and finds out why.
"""

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.helpers import instruction
from lshdup.kernels.jit import kernel

U8 = NDArray[np.uint8]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

#: Words of 64 bits in a record of statx(2).
RECORD = 32


@instruction
def c_statx(paths: U8, start: int, record: U64) -> int:
    """statx(2) of the path that begins at `start` and ends with NUL, without following a link, for its type, size and time."""
    raise NotImplementedError


@instruction
def c_open(paths: U8, start: int, flags: int) -> int:
    """open(2): a descriptor or -1."""
    raise NotImplementedError


@instruction
def c_read(descriptor: int, buffer: U8, start: int, size: int) -> int:
    """read(2) into `buffer` from `start` on: bytes read or -1."""
    raise NotImplementedError


@instruction
def c_close(descriptor: int) -> int:
    """close(2)."""
    raise NotImplementedError


@kernel
def stat_files(paths: U8, starts: I64, record: U64, sizes: I64, mtimes: I64) -> None:
    """Size in bytes and time of modification in nanoseconds of regular files; size -1 for anything else."""
    for i in range(len(starts)):
        sizes[i] = -1
        # In the record: mode in bytes 28-29, size in 40-47, seconds in 112-119, nanoseconds in 120-123 (linux/stat.h).
        if c_statx(paths, starts[i], record) == 0 and (record[3] >> np.uint64(32)) & np.uint64(
            0xF000
        ) == np.uint64(0x8000):
            sizes[i] = np.int64(record[5])
            mtimes[i] = np.int64(record[14]) * 1_000_000_000 + np.int64(
                record[15] & np.uint64(0xFFFFFFFF)
            )


@kernel
def read_files(
    paths: U8, path_starts: I64, flags: int, text: U8, starts: I64, sizes: I64, outcomes: I64
) -> None:
    """Read files into `text`, each from its place in `starts` on; outcome 0 if it has as many bytes as `sizes` says, else -1.

    One byte more than expected is asked for, so that a file that grew is noticed; it may fall into the place of the next file, which is
    read after it, or behind the last one, where `text` must have room.
    """
    for i in range(len(path_starts)):
        outcomes[i] = -1
        descriptor = c_open(paths, path_starts[i], flags)
        if descriptor >= 0:
            if c_read(descriptor, text, starts[i], sizes[i] + 1) == sizes[i]:
                outcomes[i] = 0
            c_close(descriptor)
