"""Files that are replaced whole or not at all. Called by artifacts.py and output.py."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

#: Names of files that have none, on file systems where they need one for an instant, begin like this.
SCRATCH = ".scratch."

#: What is being written now.
_under_way: set[Path] = set()


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path` that takes its place when the block ends well, after fsync: killed at any instant, the old or the new file is
    there, whole. It keeps the permissions of the old file; a symbolic link stays one; what is no regular file (a pipe, a device) is written
    to as it is. Raises OSError as the file system does; the old file is then untouched.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as direct:
            yield direct
        return
    mode = path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask()
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    _under_way.add(temporary)  # before it is there, so that it is never there unknown
    try:
        with os.fdopen(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(path)
        with contextlib.suppress(OSError):  # some file systems cannot sync a folder
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    finally:
        abandon(temporary)


def abandon(*some: Path) -> None:
    """Remove files that are being written, if they have not taken their place; without arguments all of them, before the process ends."""
    for temporary in some or tuple(_under_way):
        with contextlib.suppress(OSError):
            temporary.unlink()
        _under_way.discard(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
