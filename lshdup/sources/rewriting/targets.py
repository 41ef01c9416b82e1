"""The files that are written instead of files of records: their names, and whether they may be
written.
"""

import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lshdup.base.compression import PIP, ZSTD, bare_name, can_unpack
from lshdup.base.messages import count_of, join_names, quoted
from lshdup.base.system import STDOUT, is_stdout
from lshdup.errors import InputError, ParameterError
from lshdup.sources.document_list import DocumentList
from lshdup.sources.records import ROWS, Kind, classify_file

#: Files of rows, and what the names of such files end in.
_FORMATS = {
    Kind.JSON: ("JSON Lines", ".jsonl, .jsonl.gz or .jsonl.zst"),
    Kind.CSV: ("CSV", ".csv, .tsv, .csv.gz or .csv.zst"),
    Kind.PARQUET: ("Parquet", ".parquet"),
}

#: Endings of packed files that are read only: in a folder they are written without.
_UNWRITTEN = (b".xz", b".bz2")

#: Files in the way that a message names.
_NAMED = 3


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
        raise _not_all_rows(documents, rows)
    numbers = np.flatnonzero(np.isin(locations.kinds, ROWS))
    files = [(number, documents.file_path(number)) for number in numbers.tolist()]
    targets = _targets(documents.typed_paths(numbers), target)
    for (number, path), goal in zip(files, targets, strict=True):
        if goal != STDOUT:
            _check(path, Kind(int(locations.kinds[number])), goal)
    return files, targets


def _not_all_rows(documents: DocumentList, rows: NDArray[np.bool_]) -> ParameterError:
    """Return the error for documents of which some are no rows of files.

    rows : bool array of shape (n,), the documents that are rows.
    """
    number = int(np.argmin(rows)) if len(documents) else -1
    name = os.fsdecode(documents.names[number]) if number >= 0 else ""
    message = (
        f"not all documents are rows of JSON Lines, CSV or Parquet files"
        f"{f': {quoted(name)} is none' * bool(name)}, so no filtered file can be written"
    )
    if documents.locations is None or not rows.any():
        hint = (
            "name files of rows only; --text-field takes the rows of files in folders too; "
            "--emit drop lists names"
        )
    elif documents.names[number] in documents.docs:
        hint = f"leave {name} out"
    else:
        files = np.flatnonzero(np.isin(documents.locations.kinds, ROWS))
        endings = {_ending(path) for path in documents.locations.paths.strings_at(files)}
        patterns = (shlex.quote(f"*{os.fsdecode(each)}") for each in sorted(endings))
        hint = f"take the files of rows only: {' '.join(f'--include {each}' for each in patterns)}"
    return ParameterError(message, hint)


def _ending(path: bytes) -> bytes:
    """Return the ending of a file of rows: of ``a.jsonl.gz`` both."""
    name = bare_name(path)
    return os.path.splitext(name)[1] + path[len(name) :]  # noqa: PTH122 (bytes path)


def refuse_other_files(folder: Path, targets: Iterable[Path]) -> None:
    """Raise ParameterError if a folder holds files beside these: rows would be there twice.

    Names that begin with a dot do not count.
    """
    top, others = folder.resolve(), list[Path]()
    ours = {each.parent.resolve() / each.name for each in targets}
    for above, folders, names in os.walk(top):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        paths = (Path(above, name) for name in sorted(names) if not name.startswith("."))
        others += [path for path in paths if path not in ours]
    if others:
        names = [str(path.relative_to(top)) for path in others[:_NAMED]]
        more = f" and {len(others) - _NAMED:,} more" * (len(others) > _NAMED)
        message = (
            f"{folder} holds {count_of(len(others), 'file')} that this run does not write: "
            f"{join_names(names)}{more}"
        )
        raise ParameterError(message, "name a new folder")


def _targets(names: list[bytes], target: Path | str) -> list[Path]:
    """Return the file that is written for each of some files, given by their names as typed.

    In a folder they have the same names, as tar gives them: without what leads out of the folder.
    """
    if is_stdout(target):
        if len(names) > 1:
            message = f"standard output takes one file, and {len(names):,} are read"
            raise ParameterError(message, "name one file, or write to a folder: --write DIR/")
        return [STDOUT]
    folder = os.fspath(target).endswith("/")
    target = Path(target)
    if len(names) == 1 and not (folder or target.is_dir()):
        return [target]
    if target.exists() and not target.is_dir():
        message = (
            f"{target} is no folder, and {count_of(len(names), 'file')} must be written to one"
        )
        raise ParameterError(message, "name a folder: each file gets its own name in it")
    names = [_written_name(_name_below(name)) for name in names]
    again = next((name for name, n in Counter(names).items() if n > 1), None)
    if again is not None:
        name = os.fsdecode(again)
        message = f"two of the files are called {name}: they cannot be written to one folder"
        raise ParameterError(message, "write them in two runs, to two folders")
    return [target / os.fsdecode(name) for name in names]


def _name_below(name: bytes) -> bytes:
    """Return the name that a file has below a folder.

    >>> _name_below(b"/data/a.csv"), _name_below(b"../x/../y/a.csv"), _name_below(b"./-a/b.csv")
    (b'data/a.csv', b'y/a.csv', b'-a/b.csv')
    """
    parts = [part for part in name.split(b"/") if part not in (b"", b".")]
    while b".." in parts:
        del parts[: parts.index(b"..") + 1]
    return b"/".join(parts)


def _written_name(name: bytes) -> bytes:
    return bare_name(name) if name.lower().endswith(_UNWRITTEN) else name


def _check(path: bytes, kind: Kind, target: Path) -> None:
    what, endings = _FORMATS[kind]
    other = classify_file(os.fsencode(target.name), named=True, field_given=False, archives=False)
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
