"""Atomic replacement of files, and a record of what an interrupted run leaves."""

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from lshdup.errors import InputError
from lshdup.utils.system import BINARY, set_mode

#: Names of temporary files begin and end like this; between are eight characters.
PREFIX, SUFFIX = ".lshdup-", ".tmp"

#: Outside of a store, which is locked, a temporary file may belong to a live run for this long.
_SECONDS_IN_USE = 86_400.0

#: Temporary files of this process, for `remove_own_temporary_files`.
_temporary: set[Path] = set()

#: For `describe_kept`: what this run has written that survives it.
FILES, JOURNAL = "files", "journal"
_kept: set[str] = set()


@contextlib.contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends without an error.

    The file is synced before it is renamed: a process killed at any instant leaves the old or the
    new file, whole, and at most a temporary file that a later call for the folder removes. The
    permissions of the old file and symbolic links stay. A pipe or a device is written to directly.

    Raises OSError as the file system does; the old file is then untouched.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as direct:
            yield direct
        return
    mode = path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask()
    remove_temporary_files(path.parent, _SECONDS_IN_USE)
    temporary = path.with_name(f"{PREFIX}{os.urandom(4).hex()}{SUFFIX}")
    _temporary.add(temporary)  # Before the file exists, so that an interrupt always finds it.
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | BINARY, 0o600)
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            set_mode(descriptor, mode)
            os.fsync(descriptor)
        temporary.replace(path)
        note_kept(FILES)
        with contextlib.suppress(OSError):  # Some file systems cannot sync a folder.
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    finally:
        _remove(temporary)


def remove_temporary_files(folder: Path, seconds: float = 0.0) -> None:
    """Remove temporary files of killed runs that were not modified for at least `seconds`."""
    with contextlib.suppress(OSError):
        for path in folder.glob(f"{PREFIX}{'?' * 8}{SUFFIX}"):
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime >= seconds:
                    path.unlink()


def remove_own_temporary_files() -> None:
    """Remove the temporary files of this process before an interrupt ends it."""
    for temporary in tuple(_temporary):
        _remove(temporary)


def _remove(temporary: Path) -> None:
    with contextlib.suppress(OSError):
        temporary.unlink()
    _temporary.discard(temporary)


def note_kept(what: str, *, kept: bool = True) -> None:
    """Note that FILES or a JOURNAL of this run survive an interrupt, or no longer do."""
    (_kept.add if kept else _kept.discard)(what)


def describe_kept() -> str:
    """Return what is kept of a run that is interrupted now, for its last message."""
    if JOURNAL in _kept:
        return "what is done is kept in a journal, and the same command goes on from there"
    return "what was finished is kept, whole" if _kept else "nothing of this run was kept"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_writable(path: Path) -> None:
    """Raise InputError if no file can be written at `path`; for a check before the work."""
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        message = f"{path} cannot be written"
        raise InputError(message, "name a file in a folder that exists and may be written")
