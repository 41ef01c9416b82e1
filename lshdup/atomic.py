"""Files that are replaced whole or not at all. Called by artifacts.py and output.py."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast


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
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = Path(file.name)
            yield cast(BinaryIO, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(path)
        temporary = None
        with contextlib.suppress(OSError):  # some file systems cannot sync a folder
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
