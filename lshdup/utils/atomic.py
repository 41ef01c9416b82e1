"""Files that are replaced whole or not at all. Called by artifacts.py and output.py."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from lshdup.errors import InputError

#: Names of files that have none, on file systems where they need one for an instant, begin like this.
SCRATCH = ".scratch."

#: What is being written now.
_under_way: set[Path] = set()

#: What this process has finished, and journals that the next run goes on from.
_finished: set[Path] = set()
_resumable: set[Path] = set()


@contextlib.contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path` that takes its place when the block ends well, after fsync: killed at any instant, the old or the new file is
    there, whole. It keeps the permissions of the old file; a symbolic link stays one; what is no regular file (a pipe, a device) is written
    to as it is. Raises OSError as the file system does; the old file is then untouched.

    Where the system can do it, the file has no name until it is complete, and a run that is killed leaves nothing behind.
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
        nameless = _nameless(path.parent)
        descriptor = (
            os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            if nameless is None
            else nameless
        )
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
            if nameless is not None:
                _name(nameless, temporary)
        temporary.replace(path)
        finished(path)
        with contextlib.suppress(OSError):  # some file systems cannot sync a folder
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    finally:
        abandon(temporary)


def _nameless(folder: Path) -> int | None:
    """A file without a name in a folder, open for reading and writing; None where the system or the file system has no such thing."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        descriptor = os.open(folder, os.O_RDWR | os.O_TMPFILE, 0o600)
    except OSError:  # if the folder cannot be written, the next attempt will say so
        return None
    if os.path.exists(_place(descriptor)):  # noqa: PTH110 (by which it will get its name)
        return descriptor
    os.close(descriptor)
    return None


def _name(descriptor: int, path: Path) -> None:
    """Give a nameless file a name. (It cannot take the place of another file at once: that is what renaming is for.)"""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.link(_place(descriptor), path.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _place(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def abandon(*some: Path) -> None:
    """Remove files that are being written, if they have not taken their place; without arguments all of them, before the process ends."""
    for temporary in some or tuple(_under_way):
        with contextlib.suppress(OSError):
            temporary.unlink()
        _under_way.discard(temporary)


def resumable(path: Path, *, there: bool) -> None:
    """Remember whether there is a journal that the next run goes on from."""
    (_resumable.add if there else _resumable.discard)(path)


def finished(path: Path) -> None:
    """Remember what was written, whole, by `replace_file` or by something else."""
    _finished.add(path)


def what_is_kept() -> str:
    """Of a run that ends now, before its end."""
    if _resumable:
        return "what is done is kept in a journal, and the same command goes on from there"
    return "what was finished is kept, whole" if _finished else "nothing of this run was kept"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_writable(path: Path) -> None:
    """Before any work starts: that a file can be written there."""
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        message = f"{path} cannot be written"
        raise InputError(message, "name a file in a folder that exists and may be written")
