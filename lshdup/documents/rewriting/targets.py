"""The files that are written instead of files of records: their names, and whether they may be
written.
"""

import os
import shutil
from collections import Counter
from pathlib import Path

import numpy as np

from lshdup.documents.document_list import DocumentList
from lshdup.documents.records import ROWS, Kind, classify_file
from lshdup.errors import InputError, ParameterError
from lshdup.utils.compression import PIP, ZSTD, bare_name, can_unpack
from lshdup.utils.messages import count_of

#: Files of rows, and what the names of such files end in.
_FORMATS = {
    Kind.JSON: ("JSON Lines", ".jsonl, .jsonl.gz or .jsonl.zst"),
    Kind.CSV: ("CSV", ".csv, .tsv, .csv.gz or .csv.zst"),
    Kind.PARQUET: ("Parquet", ".parquet"),
}

#: Endings of packed files that are read only: in a folder they are written without.
_UNWRITTEN = (b".xz", b".bz2")


def check_target(
    documents: DocumentList, target: Path | str, *, read: bool = True
) -> tuple[list[tuple[int, bytes]], list[Path]]:
    """Return the files of records, by number and path, and their targets.

    Raises as `write_without` does, as far as that is known before the work. read : whether the
    documents have been read; before that, files among them may turn out to be no documents.
    """
    locations = documents.locations
    rows = np.zeros(len(documents), bool) if locations is None else locations.are_rows()
    met = locations is not None and np.isin(locations.kinds, ROWS).any()
    if locations is None or not (rows.all() if read else met):
        name = os.fsdecode(documents.names[int(np.argmin(rows))]) if len(documents) else ""
        why = f": {name!r} is none" if name else ""
        message = (
            f"not all documents are rows of JSON Lines, CSV or Parquet files{why}, "
            "so no filtered file can be written"
        )
        hint = (
            "name files of rows only; --text-field takes the rows of files in folders too; "
            "--emit drop lists names"
        )
        raise ParameterError(message, hint)
    files = [
        (number, documents.file_path(number))
        for number in np.flatnonzero(np.isin(locations.kinds, ROWS)).tolist()
    ]
    sources = [path for _, path in files]
    targets = _targets(sources, target)
    for (number, path), goal in zip(files, targets, strict=True):
        _check(path, Kind(int(locations.kinds[number])), goal)
    return files, targets


def _targets(paths: list[bytes], target: Path | str) -> list[Path]:
    """Return the file that is written for each of some files.

    In a folder they have their own names; if two have one name, all keep the folders they are in,
    below the one that they share.
    """
    is_folder = os.fspath(target).endswith("/")
    target = Path(target)
    if len(paths) == 1 and not (is_folder or target.is_dir()):
        return [target]
    if target.exists() and not target.is_dir():
        message = (
            f"{target} is no folder, and {count_of(len(paths), 'file')} must be written to one"
        )
        raise ParameterError(message, "name a folder: each file gets its own name in it")
    names = [os.path.basename(path) for path in paths]  # noqa: PTH119 (bytes path)
    if len(set(map(_written_name, names))) < len(names):
        paths = [os.path.abspath(path) for path in paths]  # noqa: PTH100 (bytes path)
        top = os.path.commonpath([os.path.dirname(path) for path in paths])  # noqa: PTH120
        names = [os.path.relpath(path, top) for path in paths]
    names = [_written_name(name) for name in names]
    again = next((name for name, n in Counter(names).items() if n > 1), None)
    if again is not None:
        name = os.fsdecode(again)
        message = f"two of the files are called {name}: they cannot be written to one folder"
        raise ParameterError(message, "write them in two runs, to two folders")
    return [target / os.fsdecode(name) for name in names]


def _written_name(name: bytes) -> bytes:
    return bare_name(name) if name.lower().endswith(_UNWRITTEN) else name


def _check(path: bytes, kind: Kind, target: Path) -> None:
    what, endings = _FORMATS[kind]
    other = classify_file(os.fsencode(target.name), named=True)
    if other != kind and (kind == Kind.PARQUET or other in _FORMATS):
        message = f"{target} does not end like a file of {what}, which {os.fsdecode(path)} is"
        raise ParameterError(message, f"name one that ends in {endings}")
    if os.fsencode(target.name.lower()).endswith(_UNWRITTEN):
        message = f"{target} is to be packed by xz or bzip2, which are read only"
        raise ParameterError(message, f"name one that ends in {endings}")
    if target.name.lower().endswith(".zst") and not can_unpack(ZSTD):
        message = f"{target} is to be packed by zstd, which needs backports.zstd"
        raise InputError(message, PIP)


def check_room(paths: list[bytes], targets: list[Path], share: float) -> None:
    """Raise InputError if the disk has less room than a share of the bytes of some files takes.

    A file that is packed only when it is written may take any room: it is not counted.
    """
    size = 0
    for path, target in zip(paths, targets, strict=True):
        if target.suffix not in (".gz", ".zst") or path.endswith(os.fsencode(target.suffix)):
            size += int(share * os.path.getsize(path))  # noqa: PTH202 (bytes path)
    folder = next(each for each in targets[0].resolve().parents if each.is_dir())
    free = shutil.disk_usage(folder).free
    if size > free and not (targets[0].exists() and not targets[0].is_file()):
        message = (
            f"{targets[0]} is not written: the files take about {size:,} bytes, and its disk has "
            f"{free:,} left"
        )
        raise InputError(message, "name another disk; what was compared is not compared again")
