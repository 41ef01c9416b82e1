"""The origin of each document, for `--across`: documents of one origin are not compared.

An origin is what documents share: a folder, the value of a field, or a part of their names. A
document that has none is an origin of its own, so that it is compared with all others.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.memory import rows_of, slices_of
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.base.wording import count_of, printable, quoted
from lshdup.errors import RERUN, InputError, ParameterError
from lshdup.params import AcrossParams
from lshdup.sources.document_list import DocumentList
from lshdup.sources.files import Buffer
from lshdup.sources.readers import RecordFiles
from lshdup.sources.records import ARCHIVES, ROWS
from lshdup.sources.text_batches import batches, read_batch

#: Why a record that was read has no origin; for other reasons it could not be read.
_WITHOUT = (Reason.NO_TEXT, Reason.NULL_TEXT, Reason.NOT_TEXT, Reason.NO_ID)

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
    tops = [b"" if each == b"." else each.rstrip(b"/") + b"/" for each in documents.docs]
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
    """Yield the values of a field, a text or an integer."""
    files, buffer = documents.record_files, Buffer()
    fields = replace(files.fields, text=across.field, integers=True)
    records = replace(documents, record_files=RecordFiles(files.folder, fields, files.longest))
    rows = run.arrays.where(
        len(documents), lambda some: np.isin(documents.kinds_of(rows_of(some)), ROWS)
    )
    changed, values = documents.changed(rows), 0
    why = "all its values are empty" if len(rows) else "no document is a row with fields"
    lost = [(int(row), Reason.CHANGED, "") for row in changed[:1]]
    for batch in batches(run, records, rows) if not lost else ():
        read = read_batch(records, batch, buffer)
        lost += [each for each in read.skipped if each[1] not in _WITHOUT]
        why = next((detail for _, _, detail in read.skipped), why)
        texts = [read.content(at) for at in range(len(read.indices))]
        values += sum(map(bool, texts))
        yield read.indices, texts
    if lost:
        name = printable(documents.typed_names(np.array([lost[0][0]]))[0])
        message = f"--across {across}: {name} is not what was read: {lost[0][1]}"
        raise InputError(message, RERUN)
    if not values:
        for option in ("--text-field ", "--id-field "):
            why = why.replace(f"{option}names", "--across names").replace(option, "--across field:")
        message = f"--across field:{quoted(across.field)}: {why}"
        raise ParameterError(message, "name a field that records have")
