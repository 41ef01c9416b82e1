"""Folders with files of lshdup: replaced whole, never followed, and cleared of killed runs; and
temporary files.
"""

import contextlib
import errno
import os
import re
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from lshdup.base.system import BINARY, CAN_MOVE_OPEN_FILES, NO_FOLLOW, READ, hold
from lshdup.errors import ArtifactError, InputError

#: Names of temporary files begin and end like this; between are eight characters.
PREFIX, SUFFIX = ".lshdup-", ".tmp"
_TEMPORARY = re.compile(f"{re.escape(PREFIX)}.{{8}}{re.escape(SUFFIX)}", re.DOTALL)

#: Where there are no locks, a temporary file may belong to a live run for this long.
_SECONDS_IN_USE = 86_400.0

#: Temporary files of this process, for `remove_own_temporary_files`.
_temporary: set[Path] = set()

#: Held while a file is made or renamed; of one thread again, which an interrupt may meet there.
_changing = threading.RLock()

#: For `describe_kept`: what this run has written that survives it.
FILES, PARTS = "files", "parts"
_kept: set[str] = set()


class Folder:
    """A folder in which lshdup has files of its own. Nothing in it is followed.

    A file of lshdup is a regular file with one name: a link, a hard link, a pipe or a device of
    its name is another's, and is not opened.

    Parameters
    ----------
    path : the folder as it was named, which may be a link.
    below : names of folders in it, each in the one before; none may be a link.

    Raises OSError as the file system does, here and in all methods.

    """

    def __init__(self, path: Path, *below: str) -> None:
        self.path = path
        for name in below:
            self.path /= name
            if obstacle := describe_obstacle(self.path.lstat(), folder=True):
                raise NotADirectoryError(errno.ENOTDIR, f"it is {obstacle}")

    def names(self) -> list[str]:
        """Return the names of what is in the folder, in any order."""
        return [each.name for each in self.path.iterdir()]

    def size(self) -> int:
        """Return the bytes of the files in the folder."""
        found = (each.lstat() for each in self.path.iterdir())
        return sum(each.st_size for each in found if stat.S_ISREG(each.st_mode))

    def open(self, name: str) -> BinaryIO:
        """Open a file of lshdup to read it."""
        return os.fdopen(self._open(name, READ), "rb")

    def create(self, name: str) -> BinaryIO:
        """Open a new file to write it. Raises FileExistsError if its name is taken."""
        return os.fdopen(self._open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL), "w+b")

    def open_lock(self, name: str) -> int:
        """Return the descriptor of a file that runs lock, which is made once and never replaced."""
        return self._open(name, os.O_RDWR | os.O_CREAT)

    def move(self, name: str, folder: "Folder", new_name: str) -> None:
        """Move a file of lshdup to another folder, where no file has the new name."""
        self.open(name).close()  # Raises PermissionError if it is another's.
        (self.path / name).rename(folder.path / new_name)

    @contextlib.contextmanager
    def replace(self, name: str) -> Iterator[BinaryIO]:
        """Open a temporary file that replaces what has this name when the block ends without error.

        The file is synced before it is renamed: a process killed at any instant leaves the old or
        the new file, whole, and at most a temporary file that the next call for the folder
        removes. The permissions of the old file stay.
        """
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
        with contextlib.suppress(FileNotFoundError):
            old = (self.path / name).lstat()
            mode = old.st_mode & 0o7777 if stat.S_ISREG(old.st_mode) else mode
        self.remove_temporary_files()
        temporary, descriptor = self._new_temporary()
        try:
            with os.fdopen(descriptor, "w+b") as file:
                yield file
                file.flush()
                temporary.chmod(mode)
                os.fsync(descriptor)
                if not CAN_MOVE_OPEN_FILES:
                    file.close()
                # Renamed while it is locked: it is no killed run's.
                with _changing:
                    temporary.replace(self.path / name)
            note_kept(FILES)
            with contextlib.suppress(OSError):  # Some file systems cannot sync a folder.
                folder = os.open(self.path, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        finally:
            _remove(temporary)

    def remove_temporary_files(self) -> None:
        """Remove the temporary files of killed runs.

        A live run holds a lock on each of its temporary files. Where a file system has no locks, a
        file that was modified within a day stays.
        """
        with contextlib.suppress(OSError):
            for name in filter(_TEMPORARY.fullmatch, self.names()):
                with contextlib.suppress(OSError):
                    self._remove_if_abandoned(name)

    def _remove_if_abandoned(self, name: str) -> None:
        status = (self.path / name).lstat()
        is_old = time.time() - status.st_mtime >= _SECONDS_IN_USE
        if not CAN_MOVE_OPEN_FILES:
            if is_old and stat.S_ISREG(status.st_mode):
                (self.path / name).unlink()
            return
        descriptor = self._open(name, os.O_RDWR)
        try:
            if hold(descriptor) or is_old:
                (self.path / name).unlink()
        finally:
            os.close(descriptor)

    def _new_temporary(self) -> tuple[Path, int]:
        """Make a temporary file and lock it; return its path and its descriptor."""
        while True:
            path = self.path / f"{PREFIX}{os.urandom(4).hex()}{SUFFIX}"
            with _changing:
                _temporary.add(path)  # Before the file exists, for an interrupt.
                descriptor = os.open(
                    path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW | BINARY, 0o600
                )
            with contextlib.suppress(BlockingIOError):
                hold(descriptor)
                if os.fstat(descriptor).st_nlink:
                    return path, descriptor
            os.close(descriptor)  # Before it was locked, another run took it for a killed run's.
            _temporary.discard(path)

    def _open(self, name: str, flags: int) -> int:
        """Open a file and look at it then: nobody can put another one in its place."""
        descriptor = os.open(self.path / name, flags | NO_FOLLOW | BINARY | READ, 0o666)
        if obstacle := describe_obstacle(os.fstat(descriptor)):
            os.close(descriptor)
            raise PermissionError(errno.EPERM, f"it is {obstacle}")
        return descriptor


def describe_obstacle(status: os.stat_result, *, folder: bool = False) -> str:
    """Return what is there instead of a file, or a folder, of lshdup; "" if it is one."""
    if stat.S_ISLNK(status.st_mode):
        return "a link"
    if stat.S_ISDIR(status.st_mode):
        return "" if folder else "a folder"
    if not stat.S_ISREG(status.st_mode):
        return "a device, a pipe, or a socket"
    if folder:
        return "a file"
    return "a hard link of another file" if status.st_nlink > 1 else ""


@contextlib.contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends without an error.

    As `Folder.replace`, but a symbolic link stays, and the file that it names is replaced. A pipe
    or a device is written to directly.

    Raises OSError as the file system does, with the name; the old file is then untouched.
    """
    try:
        if path.exists() and not path.is_file():  # A pipe may have no other name than this one.
            with path.open("wb") as direct:
                yield direct
            return
        real = path.resolve()
        with Folder(real.parent).replace(real.name) as file:
            yield file
    except OSError as error:  # A full disk, for instance, does not say where.
        error.filename = error.filename or str(path)
        raise


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `path` when the block ends without an error.

    Of a killed run the folder stays, under its temporary name. Raises OSError as the file system
    does, and if there are files in `path`.
    """
    real = path.resolve()
    temporary = real.parent / f"{PREFIX}{os.urandom(4).hex()}{SUFFIX}"
    _temporary.add(temporary)  # Before the folder exists, for an interrupt.
    try:
        temporary.mkdir(mode=0o700)
        yield temporary
        os.sync()  # All its files at once: one after the other they would take minutes.
        temporary.replace(real)
        note_kept(FILES)
    finally:
        _remove(temporary)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a new folder, in the system's one for temporary files, that is removed at the end.

    Raises OSError as the file system does.
    """
    import tempfile  # Imported here to keep the start of every command fast.

    folder = Path(tempfile.mkdtemp(SUFFIX, PREFIX))
    _temporary.add(folder)
    try:
        yield folder
    finally:
        _remove(folder)


def remove_own_temporary_files() -> None:
    """Remove the temporary files and folders of this process before an interrupt ends it.

    From then on other threads wait: one whose file is gone would take that for a full disk.
    """
    _changing.acquire(timeout=1)
    for temporary in tuple(_temporary):
        _remove(temporary)


def _remove(temporary: Path) -> None:
    if temporary.is_dir():
        shutil.rmtree(temporary, ignore_errors=True)
    with contextlib.suppress(OSError):
        temporary.unlink()
    _temporary.discard(temporary)


def note_kept(what: str, *, kept: bool = True) -> None:
    """Note that FILES or PARTS of this run survive an interrupt, or no longer do."""
    (_kept.add if kept else _kept.discard)(what)


def describe_kept() -> str:
    """Return what is kept of a run that is interrupted now, for its last message."""
    if PARTS in _kept:
        return "what was read is kept, and the same command goes on from there"
    return "what was finished is kept, whole" if _kept else "nothing of this run was kept"


def check_writable(path: Path, *, folder: bool = False) -> None:
    """Raise InputError if no file can be written at `path`, which is tried, before the work.

    A pipe is not tried: its reader would take that for the whole of what is written.

    folder : whether `path` may be a folder, in which files are written.
    """
    hint = "name a file in a folder that exists and may be written"
    with explained(f"{path} cannot be written", hint, InputError):
        if path.exists() and not path.is_file() and not (folder and path.is_dir()):
            if not path.is_fifo():
                os.close(os.open(path, os.O_WRONLY | BINARY))
            return
        temporary_file(path if path.is_dir() else path.resolve().parent).close()


# --- temporary files without a name ---

#: What helps where a disk is full.
MORE_ROOM = "name a store with more room with --store DIR, or a folder with TMPDIR"


def usable_folder(folder: Path | None) -> Path | None:
    """Return a folder if files can be written to it."""
    is_usable = folder is not None and folder.is_dir() and os.access(folder, os.W_OK)
    return folder if is_usable else None


def temporary_place(folder: Path | None) -> str:
    """Return where `temporary_file` makes its files, for messages."""
    import tempfile  # Imported here to keep the start of every command fast.

    return str(folder or tempfile.gettempdir())


def temporary_file(folder: Path | None, buffering: int = -1) -> IO[bytes]:
    """Open a temporary file in a folder, or in the system's; it vanishes when it is closed.

    Raises OSError as the file system does.
    """
    import tempfile  # Imported here to keep the start of every command fast.

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
    hint: str = "name another store with --store DIR, or use --no-store",
    kind: type[ArtifactError | InputError] = ArtifactError,
) -> Iterator[None]:
    """Raise an error of `kind` instead of OSError."""
    try:
        yield
    except OSError as error:
        message = f"{message}: {error.strerror}"
        raise kind(message, hint) from None
