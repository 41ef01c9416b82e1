"""What Spark's workers read: files, or pieces of them, and lines that Spark has read -> documents. Called by sparkinput.py.

No Spark here: functions from Arrow record batches to record batches. Files are read as the local engine reads them, so that the same rows
are documents, and what is none is called the same.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np

from lshdup.documents import jsonlines
from lshdup.documents.document_list import DocumentList
from lshdup.documents.parquet import ParquetFile
from lshdup.documents.reading import BATCH_BYTES, BATCH_DOCUMENTS, read_batch
from lshdup.documents.record_files import RecordFiles
from lshdup.documents.records import Kind, RecordError, RecordFields
from lshdup.skipped import Reason, Skipped
from lshdup.spark.worker import Batches
from lshdup.utils.arrow import array_of, as_binary, batch_of
from lshdup.utils.ragged import StringTable

#: Pieces of files. start, stop : bytes at which lines begin, or row groups; stop is -1 for all that is left. bytes : about how many.
PIECES = "path binary, kind int, start bigint, stop bigint, bytes bigint"

#: Documents. plain : what the text is the content of a file, called by its id. reason, detail : why it is none; of one that is, detail is
#: where it is, if its id does not say so.
DOCUMENTS = "id binary, text binary, reason string, detail string, plain boolean"

#: Numbers of rows are counted, where something is wrong with one, behind at most so many bytes.
_COUNTED = 1 << 30

#: A byte as URIs write it.
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")

#: An id, a text, and why it is none, or where it is.
_Row = tuple[bytes, bytes | None, str | None, str | None]

#: An open file, where its piece begins, and the lines of that -> rows.
_Read = Callable[[int, int, Iterator[tuple[int, bytes, int]]], Iterator[_Row]]


def piece_rows(fields: RecordFields, home: bytes, max_bytes: int, pieces: Batches) -> Batches:
    """PIECES -> DOCUMENTS. home : the folder that paths start from."""
    opened = RecordFiles(None, fields, max_bytes)
    for batch in pieces:
        for path, kind, start, stop, size in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            place = os.path.join(home, path)  # noqa: PTH118 (bytes path)
            stop = sys.maxsize if stop < 0 else stop
            if kind == Kind.FILE:
                yield from _batches(_file(path, size, home, max_bytes), plain=True)
            elif kind == Kind.PARQUET:
                yield from _guarded(
                    path, partial(_parquet, path, place, fields, start, stop, max_bytes)
                )
            else:
                read = (
                    partial(_ids, path)
                    if kind == Kind.IDS
                    else partial(_json, path, fields, max_bytes)
                )
                yield from _guarded(
                    path, partial(_lines, opened, place, kind, start, stop, max_bytes, read)
                )


def json_rows(
    fields: RecordFields, max_bytes: int, root: bytes, typed: bytes, rows: Batches
) -> Batches:
    """Lines (value, URI of their file) -> DOCUMENTS, for each that holds anything. root, typed : what the URIs begin with, and what was
    typed for that; or nothing.
    """
    yield from _line_rows(
        root, typed, rows, lambda line, file: _json_row(line, len(line), file, fields, max_bytes)
    )


def id_rows(root: bytes, typed: bytes, rows: Batches) -> Batches:
    """The same of lines of id lists: a name, and what follows it."""
    yield from _line_rows(root, typed, rows, _id_row)


def _line_rows(
    root: bytes, typed: bytes, rows: Batches, row_of: Callable[[bytes, bytes], _Row | None]
) -> Batches:
    for batch in rows:
        lines, uris = (as_binary(batch.column(at)).to_pylist() for at in range(2))
        files = {uri: _typed(uri, root, typed) for uri in set(uris)}
        made = (row_of(line, files[uri]) for line, uri in zip(lines, uris, strict=True))
        yield from _batches(row for row in made if row is not None)


# --- files ------------------------------------------------------------------------------------------------------------------


def _guarded(path: bytes, read: Callable[[], Batches]) -> Batches:
    """What is read of a file; if it cannot be read, why."""
    try:
        yield from read()
    except RecordError as error:
        yield from _batches(iter([(path, None, str(error.reason), error.detail)]))
    except OSError as error:
        missed = Skipped.because(path, error)
        yield from _batches(iter([(path, None, str(missed.reason), missed.detail)]))


def _file(path: bytes, size: int, home: bytes, max_bytes: int) -> Iterator[_Row]:
    one = np.zeros(1, np.int64)
    documents = DocumentList(
        StringTable.from_strings([path]), one + size, one, home=home, max_bytes=max_bytes
    )
    read = read_batch(documents, one)
    for _, reason, detail in read.skipped:
        yield path, None, str(reason), detail
    for start, length in zip(read.starts.tolist(), read.lengths.tolist(), strict=True):
        yield path, read.text[start : start + length].tobytes(), None, None


def _lines(
    opened: RecordFiles,
    place: bytes,
    kind: Kind,
    start: int,
    stop: int,
    max_bytes: int,
    read: _Read,
) -> Batches:
    """What is made of the lines of a piece."""
    if kind == Kind.IDS:  # never packed, and of any length
        with open(place, "rb", buffering=0) as file:  # noqa: PTH123 (bytes path)
            number = file.fileno()
            yield from _batches(
                read(number, start, jsonlines.lines_between(number, start, stop, sys.maxsize - 1))
            )
    else:
        with opened.lines(place) as number:
            yield from _batches(
                read(number, start, jsonlines.lines_between(number, start, stop, max_bytes))
            )


def _ids(
    path: bytes, _file: int, _start: int, lines: Iterator[tuple[int, bytes, int]]
) -> Iterator[_Row]:
    return (row for _, line, _ in lines if (row := _id_row(line, path)) is not None)


def _json(
    path: bytes,
    fields: RecordFields,
    max_bytes: int,
    file: int,
    start: int,
    lines: Iterator[tuple[int, bytes, int]],
) -> Iterator[_Row]:
    before = -1
    for number, (at, line, size) in enumerate(lines, 1):
        row = _json_row(line, size, path, fields, max_bytes)
        if row is None:
            continue
        if row[2] is not None:
            if start and start <= _COUNTED and before < 0:
                before = jsonlines.lines_before(file, at) - number + 1
            name, where = (
                (path, f"; the row at byte {at}")
                if start > _COUNTED
                else (b"%s:%d" % (path, max(before, 0) + number), "")
            )
            row = (name, None, row[2], (row[3] or "") + where)
        yield row


def _parquet(
    path: bytes, place: bytes, fields: RecordFields, start: int, stop: int, max_bytes: int
) -> Batches:
    import pyarrow as pa

    file = ParquetFile(place, fields.text)
    groups = range(start, min(stop, file.groups(fields.id)))
    shown_path = _shown(path)
    for first, ids, texts, error in file.batches(fields.id, groups):
        names, bodies = array_of(*ids), array_of(*texts)
        n = len(names)
        reasons: list[str | None] = [None] * n
        details: list[str | None] = [
            f"row {row} of {shown_path}" for row in range(first + 1, first + n + 1)
        ]
        sizes = np.diff(texts[1])
        unnamed = (np.diff(ids[1]) == 0) | ids[2]
        wrong = np.flatnonzero(unnamed | texts[2] | (sizes > max_bytes)).tolist()
        called: dict[int, bytes] = {}
        for row in wrong:
            where = f"; {details[row]}"
            if unnamed[row]:
                called[row] = b"%s:%d" % (path, first + row + 1)
            if error is not None:
                reasons[row], details[row] = str(error.reason), f"{error.detail}{where}"
            elif unnamed[row]:
                reasons[row], details[row] = (
                    str(Reason.NO_ID),
                    f"{fields.id!r} is {'null' if ids[2][row] else 'an empty string'}",
                )
            elif texts[2][row]:
                reasons[row], details[row] = str(Reason.NO_TEXT), f"{fields.text!r} is null{where}"
            else:
                reasons[row], details[row] = (
                    str(Reason.TOO_LARGE),
                    f"{sizes[row]} bytes, --max-bytes is {max_bytes}{where}",
                )
        if called:
            names = pa.array(
                [called.get(row, name) for row, name in enumerate(names.to_pylist())], pa.binary()
            )
        if wrong:
            bodies = pa.array(
                [
                    None if reason else body
                    for reason, body in zip(reasons, bodies.to_pylist(), strict=True)
                ],
                pa.binary(),
            )
        columns = [
            names,
            bodies,
            pa.array(reasons, pa.string()),
            pa.array(details, pa.string()),
            pa.array(np.zeros(n, bool)),
        ]
        yield from _cut(batch_of(DOCUMENTS, columns))


# --- rows -------------------------------------------------------------------------------------------------------------------


def _json_row(
    line: bytes, size: int, file: bytes, fields: RecordFields, max_bytes: int
) -> _Row | None:
    if size > max_bytes:
        return file, None, str(Reason.TOO_LARGE), f"{size} bytes, --max-bytes is {max_bytes}"
    try:
        row = jsonlines.row_of(line, fields)
    except RecordError as error:
        return file, None, str(error.reason), error.detail
    return None if row is None else (*row, None, _in(file))


def _id_row(line: bytes, file: bytes) -> _Row | None:
    parts = line.split(None, 1)
    return (parts[0], parts[1] if len(parts) > 1 else b"", None, _in(file)) if parts else None


@lru_cache(1)  # it is one file for many rows
def _in(file: bytes) -> str:
    return f"in {_shown(file)}"


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")


def _typed(uri: bytes, root: bytes, typed: bytes) -> bytes:
    """The name of a file, from a URI of it, in which Spark has written some characters as %XX."""
    plain = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), uri)
    for each in (plain, plain.replace(b":///", b":/", 1)):  # an empty host is written or left out
        if root and each.startswith(root):
            return typed + each[len(root) :]
    return plain


# --- Arrow ------------------------------------------------------------------------------------------------------------------


def _batches(rows: Iterator[_Row], *, plain: bool = False) -> Batches:
    """Rows in batches of some, by their number and bytes."""
    some: list[_Row] = []
    size = 0
    for row in rows:
        some.append(row)
        size += len(row[1] or b"")
        if len(some) >= BATCH_DOCUMENTS or size >= BATCH_BYTES:
            yield _batch(some, plain=plain)
            some, size = [], 0
    if some:
        yield _batch(some, plain=plain)


def _batch(rows: list[_Row], *, plain: bool) -> Any:
    import pyarrow as pa

    kinds = (pa.binary(), pa.binary(), pa.string(), pa.string())
    columns = [
        pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    return batch_of(DOCUMENTS, [*columns, pa.array([plain] * len(rows))])


def _cut(batch: Any) -> Batches:
    """A batch in some, each of not too many rows."""
    return (batch.slice(start, BATCH_DOCUMENTS) for start in range(0, len(batch), BATCH_DOCUMENTS))
