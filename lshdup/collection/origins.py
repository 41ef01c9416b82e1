"""The origin of each document, for `--across`: documents of one origin are not compared.

An origin is what documents share: a folder, the value of a field, or a part of their names. A
document without value or part is an origin of its own, so that it is compared with all others.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lshdup.base.memory import rows_of, slices_of
from lshdup.base.params import AcrossParams
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.base.wording import count_of, printable
from lshdup.collection.keep_by import read_values
from lshdup.collection.keep_rules import folder_above, list_named
from lshdup.errors import RERUN, InputError, ParameterError
from lshdup.sources.document_list import DocumentList
from lshdup.sources.records import ARCHIVES

#: Documents, and the value of each that has one.
_Values = Iterator[tuple[NDArray[np.int64], Sequence[bytes | None]]]


def find_origins(
    run: Run, documents: DocumentList, across: AcrossParams, arguments: Sequence[bytes] = ()
) -> NDArray[np.uint32]:
    """Return the origin of each document, and say how many there are: uint32 array of shape (n,).

    Documents without one are counted, and one of them is named.

    arguments : folders and files as named; empty if the documents come from a store.

    Errors: ParameterError if no document has one; InputError if the records of the last run cannot
    be read any more. Cost: a look at each name, or a pass over the records.
    """
    numbers: dict[bytes, int] = {}
    n, arrays = len(documents), run.arrays
    origins = arrays.full(n, n, np.int64)
    if across.depth:
        found_values = _folders(documents, across.depth, arguments)
    else:
        found_values = (_fields if across.field else _matches)(run, documents, across)
    for rows, values in found_values:
        found = (numbers.setdefault(each, len(numbers)) if each else n for each in values)
        origins[rows] = np.fromiter(found, np.int64, len(values))
    if n and not numbers:
        message = f"--across {across}: no document has such an origin"
        hint = "write folder[:DEPTH], field:NAME, or a regular expression that matches in names"
        raise ParameterError(message, hint)
    without = arrays.where(n, lambda some: origins[some] == n)
    origins[without] = len(numbers) + np.arange(len(without))
    line = f"--across {across}: {count_of(len(numbers), 'origin')}"
    if len(without):
        what = count_of(len(without), "document has none and is", "documents have none and are")
        name = printable(documents.typed_names(without[:1])[0])
        run.warn(f"{line}; {what} compared with all others, as {name}")
    else:
        run.say(line)
    return arrays.compute(n, np.uint32, lambda some: origins[some])


def _matches(run: Run, documents: DocumentList, across: AcrossParams) -> _Values:
    """Yield what a regular expression matches in names, or its first group."""
    pattern = re.compile(os.fsencode(across.pattern))
    find, group = pattern.search, min(pattern.groups, 1)
    for some in slices_of(len(documents)):
        names = documents.typed_names(rows_of(some))
        yield rows_of(some), [match[group] if (match := find(name)) else None for name in names]


def _folders(documents: DocumentList, depth: int, arguments: Sequence[bytes]) -> _Values:
    """Yield folders: the nearest DOC above and `depth` folders below it, those in archives too; of
    a file that was named itself the folder that it is in.
    """
    named = set(list_named(documents, arguments, "--across folder"))

    @lru_cache(1 << 16)
    def origin_of(folder: bytes) -> bytes:
        way = [folder]
        while way[-1] and way[-1] not in named:
            way.append(folder_above(way[-1]))
        return way[max(0, len(way) - 1 - depth)] if way[-1] else folder

    for some in slices_of(len(documents)):
        rows = rows_of(some)
        paths = list(documents.names.take(rows))
        if documents.parts is not None:  # The name of a record may be its id.
            files = documents.files.strings_at(documents.parts.files_of(rows))
            inside = np.isin(documents.kinds_of(rows), ARCHIVES).tolist()
            each = zip(paths, files, inside, strict=True)
            paths = [name if is_inside else file for name, file, is_inside in each]
        yield rows, [origin_of(folder_above(path)) for path in paths]


def _fields(run: Run, documents: DocumentList, across: AcrossParams) -> _Values:
    """Yield the values of a field, as they are written."""
    for rows, values in read_values(run, documents, across.field, "--across field:"):
        if values is None:
            name = printable(documents.typed_names(rows[:1])[0])
            message = f"--across {across}: {name} is not what was read: {Reason.CHANGED}"
            raise InputError(message, RERUN)
        yield rows, values
