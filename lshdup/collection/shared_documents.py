"""Documents that are in two lists of documents, whatever their names: by the real paths."""

import os
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import distinct
from lshdup.sources.document_list import DocumentList

_I64 = NDArray[np.int64]


def find_shared(here: DocumentList, there: DocumentList) -> _I64:
    """Return the documents here that are documents there as well: int64 array."""
    files = resolve_files(here), resolve_files(there)
    paths = {path for path, _ in files[0]} & {path for path, _ in files[1]}
    mine, theirs = (
        np.flatnonzero(np.isin(files_of(each), [at for path, at in found if path in paths]))
        for each, found in zip((here, there), files, strict=True)
    )
    return match_paths(here, there, mine, theirs)[0]


def match_paths(
    here: DocumentList, there: DocumentList, mine: _I64, theirs: _I64
) -> tuple[_I64, _I64]:
    """Return those of these documents that are in both lists, by their numbers in each."""
    by_path = dict(zip(resolve_paths(there, theirs), theirs.tolist(), strict=True))
    both = [
        (row, by_path[path])
        for row, path in zip(mine.tolist(), resolve_paths(here, mine), strict=True)
        if path in by_path
    ]
    left, right = np.array(both, np.int64).reshape(-1, 2).T
    return left, right


def resolve_paths(documents: DocumentList, rows: _I64) -> list[bytes]:
    """Return the real path of each of these documents; of a part of a file, with its name."""
    paths = _resolve(map(documents.path, rows.tolist()))
    return [
        path if documents.is_file(row) else path + b"\0" + documents.names[row]
        for row, path in zip(rows.tolist(), paths, strict=True)
    ]


def files_of(documents: DocumentList) -> _I64:
    """Return the number of the file of each document: int64 array."""
    numbers: _I64 = documents.locations.files_of(np.arange(len(documents)))
    return numbers


def resolve_files(documents: DocumentList) -> list[tuple[bytes, int]]:
    """Return the real path and the number of each file that documents are in."""
    numbers = distinct(files_of(documents))[0].tolist()
    return list(zip(_resolve(map(documents.file_path, numbers)), numbers, strict=True))


def _resolve(paths: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the real path of each path; a folder is looked up once."""
    folders: dict[bytes, bytes] = {}
    for path in paths:
        folder, base = os.path.split(path)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder or b".")
        real = os.path.join(folders[folder], base)  # noqa: PTH118 (bytes path)
        yield os.path.realpath(real) if os.path.islink(real) else real  # noqa: PTH114 (bytes path)
