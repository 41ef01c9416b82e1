"""Maildirs without some of their mails: new folders, and which files of one are copied."""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lshdup.base.atomic import new_folder
from lshdup.base.mbox import MAILDIR, find_maildir
from lshdup.base.skipped import SkippedFile
from lshdup.base.system import STDOUT
from lshdup.errors import ParameterError
from lshdup.sources.document_list import DocumentList

#: Mails that are copied before it is looked whether they have changed.
_MAILS_AT_ONCE = 1 << 10


def copy_maildir(
    source: bytes,
    mails: Sequence[tuple[bytes, int]],
    skipped: Iterable[bytes],
    target: Path,
    check: Callable[[NDArray[np.int64]], None],
    report: Callable[[int], None],
) -> None:
    """Copy files of a Maildir to a new folder, with their times and permissions.

    Errors: OSError as the file system does, and what `check` raises; no folder is left then.

    Parameters
    ----------
    source : the Maildir.
    mails : files from there, and the document that each is.
    skipped : paths of files that are no documents; those in this Maildir are copied too.
    target : the folder, which must be new or empty.
    check : raises if one of some documents is not what was listed.
    report : notified of the bytes that are copied.

    """
    top, done = os.fsdecode(source), 0
    with new_folder(target) as folder:
        for below in map(os.fsdecode, MAILDIR):
            (folder / below).mkdir(mode=0o700)
        for start in range(0, len(mails), _MAILS_AT_ONCE):
            part = mails[start : start + _MAILS_AT_ONCE]
            documents = np.array([number for _, number in part], np.int64)
            check(documents)
            for name in map(os.fsdecode, dict(part)):
                shutil.copy2(Path(top, name), folder / name)
                done += (folder / name).stat().st_size
            check(documents)
            report(done)
        for there, file in map(find_maildir, skipped):
            if there == source:
                name = os.fsdecode(file)
                shutil.copy2(Path(top, name), folder / name)
        for below in ("", *map(os.fsdecode, MAILDIR)):
            shutil.copymode(Path(top, below), folder / below)


def find_others(source: bytes, known: Iterable[bytes]) -> list[bytes]:
    """Return the mails of a Maildir that are none of the known files, by their names from there."""
    found = set[bytes]()
    for part in MAILDIR[:2]:
        with os.scandir(source + b"/" + part) as entries:
            found.update(part + b"/" + each.name for each in entries)
    return sorted(each for each in found.difference(known) if b"/." not in each)


def find_skipped_mails(documents: DocumentList, skipped: Iterable[SkippedFile]) -> list[bytes]:
    """Return the paths of the skipped files that are in a Maildir."""
    stay = (each.skipped.name for each in skipped if not each.record and each.skipped.reason.stays)
    paths = (os.path.join(documents.home, name) for name in stay)  # noqa: PTH118 (bytes path)
    return [path for path in paths if find_maildir(path)[0]]


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
