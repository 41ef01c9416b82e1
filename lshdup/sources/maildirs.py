"""Maildirs without some of their mails, in new folders."""

import os
import shutil
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from lshdup.base.atomic import new_folder
from lshdup.base.mbox import find_maildir
from lshdup.base.system import STDOUT
from lshdup.errors import ParameterError


def list_files(source: bytes) -> Iterator[Path]:
    """Yield a folder, and all folders, files and links below it. Raises OSError."""

    def fail(error: OSError) -> None:
        raise error

    for above, folders, names in os.walk(os.fsdecode(source), onerror=fail):
        yield Path(above)
        links = (each for each in folders if Path(above, each).is_symlink())
        yield from (Path(above, each) for each in (*names, *links))


def copy_maildir(
    source: bytes, gone: Collection[bytes], target: Path, report: Callable[[int], None]
) -> int:
    """Copy a Maildir to a new folder, with times and permissions; return the number of files.

    All is copied but the mails that go: also what is no mail, and what was not compared. A link to
    a file becomes the file.

    Errors: OSError as the file system does; no folder is left then.

    Parameters
    ----------
    source : the Maildir.
    gone : files from there that are not copied.
    target : the folder, which must be new or empty.
    report : notified of the bytes that are copied.

    """
    top, folders, files, done = Path(os.fsdecode(source)), list[Path](), 0, 0
    stays_out = {top / os.fsdecode(each) for each in gone}
    with new_folder(target) as made:
        for path in list_files(source):
            copy = made / path.relative_to(top)
            if path.is_file():
                if path not in stays_out:
                    shutil.copy2(path, copy)
                    files, done = files + 1, done + copy.stat().st_size
                    report(done)
            elif path.is_symlink():
                copy.symlink_to(path.readlink())
            elif path.is_dir():
                copy.mkdir(mode=0o700, exist_ok=True)
                folders.append(path)
        for path in reversed(folders):
            shutil.copymode(path, made / path.relative_to(top))
    return files


def find_top(path: bytes, named: Collection[bytes]) -> bytes:
    """Return the outermost Maildir around a file, b"" if there is none. One that was named goes
    before those around it. named : folders.
    """
    tops = list[bytes]()
    while (top := find_maildir(tops[-1] if tops else path)[0]) and top not in tops:
        tops.append(top)
    return ([each for each in tops if each in named] or tops or [b""])[-1]


def check_folder(source: bytes, target: Path) -> None:
    """Raise ParameterError if a Maildir cannot become this folder."""
    message = ""
    if target == STDOUT:
        message = "standard output takes a file, and a Maildir is a folder"
    elif target.exists() and not (target.is_dir() and not any(target.iterdir())):
        message = f"{target} is there already, and mails of a Maildir go to a new folder"
    elif target.resolve().is_relative_to(os.path.realpath(os.fsdecode(source))):
        message = f"{target} is in the Maildir that is read"
    if message:
        raise ParameterError(message, "name a new folder")
