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
    there, whole. Its permissions are those of a new file. Raises OSError as the file system does; the old file is then untouched.
    """
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = Path(file.name)
            yield cast(BinaryIO, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
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
