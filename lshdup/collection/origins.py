"""The origin of each document, for `--across`: documents of one origin are not compared.

An origin is what documents share: a folder, the value of a field, or a part of their names. A
document that has none is an origin of its own, so that it is compared with all others.
"""

import os
import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lshdup.base.memory import rows_of, slices_of
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.base.wording import count_of, printable
from lshdup.compare.keep_by import read_values
from lshdup.errors import RERUN, InputError, ParameterError
from lshdup.params import AcrossParams
from lshdup.sources.document_list import DocumentList
from lshdup.sources.records import ARCHIVES

#: Documents, and the value of each that has one.
_Values = Iterator[tuple[NDArray[np.int64], Sequence[bytes | None]]]


def find_origins(run: Run, documents: DocumentList, across: AcrossParams) -> NDArray[np.uint32]:
    """Return the origin of each document, and say how many there are: uint32 array of shape (n,).

    Documents without one are counted, and one of them is named.

    Errors: ParameterError if no document has one; InputError if the records of the last run cannot
    be read any more. Cost: a look at each name, or a pass over the records.
    """
    numbers: dict[bytes, int] = {}
    n, arrays = len(documents), run.arrays
    origins = arrays.full(n, n, np.int64)
    ways = ((across.field, _fields), (across.pattern, _matches), (across.depth, _folders))
    values_of = next(values_of for is_typed, values_of in ways if is_typed)
    for rows, values in values_of(run, documents, across):
        found = (numbers.setdefault(each, len(numbers)) if each else n for each in values)
        origins[rows] = np.fromiter(found, np.int64, len(values))
    if n and not numbers:
        message = f"--across {across}: no document has such an origin"
        hint = "folder[:DEPTH] counts folders below a DOC; field:NAME; or a regular expression"
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


def _folders(run: Run, documents: DocumentList, across: AcrossParams) -> _Values:
    """Yield the first folders below DOCS: of a member of an archive, those in it too."""
    if not documents.docs:
        message = "--across folder: the store does not say which folders were named"
        raise ParameterError(message, RERUN)
    docs = (each.rstrip(b"/") for each in documents.docs)
    tops = [b"" if each == b"." else each + b"/" for each in docs]
    tops.sort(key=len, reverse=True)

    def folders_of(path: bytes) -> bytes | None:
        top = next((each for each in tops if path.startswith(each)), path)
        return b"/".join(path[len(top) :].split(b"/")[:-1][: across.depth])

    for some in slices_of(len(documents)):
        rows = rows_of(some)
        paths = list(documents.names.take(rows))
        if documents.parts is not None:  # The name of a record may be its id.
            files = documents.files.strings_at(documents.parts.files_of(rows))
            inside = np.isin(documents.kinds_of(rows), ARCHIVES).tolist()
            each = zip(paths, files, inside, strict=True)
            paths = [name if is_inside else file for name, file, is_inside in each]
        yield rows, list(map(folders_of, paths))


def _fields(run: Run, documents: DocumentList, across: AcrossParams) -> _Values:
    """Yield the values of a field, as they are written."""
    for rows, values in read_values(run, documents, across.field, "--across field:"):
        if values is None:
            name = printable(documents.typed_names(rows[:1])[0])
            message = f"--across {across}: {name} is not what was read: {Reason.CHANGED}"
            raise InputError(message, RERUN)
        yield rows, values
