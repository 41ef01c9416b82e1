"""Temporary files without a name, and arrays in them."""

import contextlib
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lshdup.base.atomic import PREFIX, SUFFIX
from lshdup.base.system import allocate
from lshdup.errors import ArtifactError, InputError

#: What helps where a disk is full.
MORE_ROOM = "name a store with more room with --store DIR, or a folder with TMPDIR"


def usable_folder(folder: Path | None) -> Path | None:
    """Return a folder if files can be written to it."""
    is_usable = folder is not None and folder.is_dir() and os.access(folder, os.W_OK)
    return folder if is_usable else None


def temporary_file(folder: Path | None, buffering: int = -1) -> IO[bytes]:
    """Open a temporary file in a folder, or in the system's; it vanishes when it is closed.

    Raises OSError as the file system does.
    """

    def make() -> IO[bytes]:
        return tempfile.TemporaryFile("w+b", buffering, suffix=SUFFIX, prefix=PREFIX, dir=folder)

    # Where no file is made without a name, it has one for a moment, in which another run may take
    # it for a file of a killed run and remove it.
    with contextlib.suppress(FileNotFoundError):
        return make()
    return make()


@contextlib.contextmanager
def explained(
    message: str,
    hint: str = "name another store with --store DIR",
    kind: type[ArtifactError | InputError] = ArtifactError,
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
    folder = usable_folder(folder)
    message = f"{folder or tempfile.gettempdir()} has no room for {size:,} bytes"
    with explained(message, MORE_ROOM), temporary_file(folder) as file:
        # Allocated now: a mapped file that meets a full disk later kills the process.
        allocate(file, size)
        return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
