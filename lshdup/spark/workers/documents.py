"""What Spark's workers read: files, pieces of files, and lines that Spark has read -> documents.

Functions from Arrow record batches to record batches; nothing of Spark. The readers of the local
engine read the files, so the same records are documents and the others are skipped for the same
reasons.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from lshdup.documents.document_list import DocumentList
from lshdup.documents.files import Buffer
from lshdup.documents.readers import jsonlines
from lshdup.documents.readers.lines import count_lines, lines_between
from lshdup.documents.readers.parquet import ParquetFile
from lshdup.documents.reading import BATCH_BYTES, BATCH_DOCUMENTS, batches, read_batch, runs
from lshdup.documents.record_files import RecordFiles
from lshdup.documents.records import Kind, RecordError, RecordFields
from lshdup.skipped import Reason, Skipped
from lshdup.utils.arrow import array_of, as_binary, batch_of, content
from lshdup.utils.ragged import StringTable

#: Arrow's record batches; pyarrow is installed only where Spark is.
Batches = Iterator[Any]

#: Files of this machine: the name, and the size in bytes.
FILES = "id binary, size bigint"

#: Pieces of files of records. start, stop : bytes at which lines begin, or numbers of row groups; a
#: stop of -1 is the end of the file.
PIECES = "path binary, kind int, start bigint, stop bigint"

#: Documents. reason : why a record is skipped. detail : of a skipped record, the details of that;
#: of a document, its location if the id does not tell it. plain : whether the text is the content
#: of a file with the name `id`.
DOCUMENTS = "id binary, text binary, reason string, detail string, plain boolean"

#: Behind so many bytes of a file the lines before a bad record are not counted.
_COUNTED = 1 << 30

#: A byte as URIs write it.
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")

#: The first four columns of DOCUMENTS.
_Row = tuple[bytes, bytes | None, str | None, str | None]


def read_files(home: bytes, max_bytes: int, rows: Batches) -> Batches:
    """Read FILES, and return DOCUMENTS.

    home : the folder that names start from.
    """
    buffer = Buffer()
    for batch in rows:
        names, sizes = StringTable(*content(as_binary(batch.column(0)))), batch.column(1).to_numpy()
        documents = DocumentList(
            names, sizes, np.zeros(len(sizes), np.int64), home=home, max_bytes=max_bytes
        )
        for indices in batches(documents, np.arange(len(documents))):
            read = read_batch(documents, indices, buffer)
            spans = zip(read.starts.tolist(), read.lengths.tolist(), strict=True)
            texts = (read.text[start : start + length].tobytes() for start, length in spans)
            found = zip(read.names, texts, strict=True)
            yield from _batches(((name, text, None, None) for name, text in found), plain=True)
            yield from _batches(
                (names[index], None, str(reason), detail) for index, reason, detail in read.skipped
            )


def read_pieces(fields: RecordFields, home: bytes, max_bytes: int, rows: Batches) -> Batches:
    """Read PIECES, and return DOCUMENTS.

    fields : names of the fields with text and id.
    home : the folder that paths start from.
    """
    files = RecordFiles(None, fields, max_bytes)
    for batch in rows:
        columns = (column.to_pylist() for column in batch.columns)
        for path, kind, start, stop in zip(*columns, strict=True):
            span = start, sys.maxsize if stop < 0 else stop
            location = os.path.join(home, path)  # noqa: PTH118 (bytes path)
            yield from _piece(files, path, location, kind, span, max_bytes)


def read_json_lines(
    fields: RecordFields, max_bytes: int, root: bytes, typed: bytes, rows: Batches
) -> Batches:
    """Return DOCUMENTS of lines of JSON, and of the URIs of their files; blank lines have none.

    root : the beginning of the URIs; empty if they stay as they are.
    typed : what the user typed for `root`.
    """
    return _read_lines(
        root, typed, rows, lambda line, file: _json_row(line, len(line), file, fields, max_bytes)
    )


def read_id_lists(root: bytes, typed: bytes, rows: Batches) -> Batches:
    """Return DOCUMENTS of lines of id lists, and of the URIs of their files (`read_json_lines`)."""
    return _read_lines(root, typed, rows, _id_row)


def _read_lines(
    root: bytes, typed: bytes, rows: Batches, row_of: Callable[[bytes, bytes], _Row | None]
) -> Batches:
    for batch in rows:
        lines, uris = (as_binary(batch.column(at)).to_pylist() for at in range(2))
        files = {uri: _typed(uri, root, typed) for uri in set(uris)}
        found = (row_of(line, files[uri]) for line, uri in zip(lines, uris, strict=True))
        yield from _batches(row for row in found if row is not None)


def _piece(
    files: RecordFiles,
    path: bytes,
    location: bytes,
    kind: int,
    span: tuple[int, int],
    max_bytes: int,
) -> Batches:
    """Return the documents of a piece; an unreadable file is one row with the reason."""
    try:
        if kind == Kind.PARQUET:
            yield from _parquet(path, location, files.fields, span, max_bytes)
        elif kind == Kind.JSON:
            with files.lines(location) as file:
                yield from _batches(_json_rows(path, file, files.fields, span, max_bytes))
        elif kind == Kind.CSV:
            yield from _batches(_csv_rows(files, path, location))
        else:  # id lists are never compressed, and their lines have any length
            with open(location, "rb", buffering=0) as plain:  # noqa: PTH123 (bytes path)
                lines = lines_between(plain.fileno(), *span, sys.maxsize - 1)
                rows = (_id_row(line, path) for _, line, _ in lines)
                yield from _batches(row for row in rows if row is not None)
    except (RecordError, OSError) as error:
        why = error if isinstance(error, RecordError) else Skipped.because(path, error)
        yield from _batches([(path, None, str(why.reason), why.detail)])


def _csv_rows(files: RecordFiles, path: bytes, location: bytes) -> Iterator[_Row]:
    """Yield the documents of a CSV file."""
    listed, buffer = files.list_records(location, Kind.CSV), Buffer()
    assert listed is not None
    for each in listed.skipped:
        yield b"%s:%d" % (path, each.number), None, str(each.reason), each.detail
    assert listed.names is not None
    names, numbers = list(listed.names), listed.numbers.tolist()
    for run in runs(listed.lengths, BATCH_DOCUMENTS, BATCH_BYTES):
        spans = listed.starts[run], listed.lengths[run]
        text, starts, lengths, failed = files.texts(location, Kind.CSV, *spans, buffer)
        for at, (start, size) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            where = f"row {numbers[run.start + at]} of {_shown(path)}"
            if at in failed:
                why = failed[at]
                yield names[run.start + at], None, str(why.reason), f"{why.detail}; {where}"
            else:
                data = text[start : start + size].tobytes()
                yield names[run.start + at], data, None, where


def _json_rows(
    path: bytes, file: int, fields: RecordFields, span: tuple[int, int], max_bytes: int
) -> Iterator[_Row]:
    """Yield documents; bad records are named by their numbers, for which lines are counted once."""
    start, before = span[0], -1
    for number, (at, line, size) in enumerate(lines_between(file, *span, max_bytes), start=1):
        row = _json_row(line, size, path, fields, max_bytes)
        if row is not None and row[2] is not None:
            if start > _COUNTED:
                row = (path, None, row[2], f"{row[3] or ''}; the row at byte {at}")
            else:
                if before < 0:
                    before = count_lines(file, at) - number + 1 if start else 0
                row = (b"%s:%d" % (path, before + number), *row[1:])
        if row is not None:
            yield row


def _parquet(
    path: bytes, location: bytes, fields: RecordFields, span: tuple[int, int], max_bytes: int
) -> Batches:
    """Return documents; a record of a damaged row group is skipped under its own id."""
    file = ParquetFile(location, fields.text)
    groups = range(span[0], min(span[1], file.groups(fields.id)))
    for first, ids, texts, error in file.batches(fields.id, groups):
        names, bodies = array_of(*ids), array_of(*texts)
        numbers = range(first + 1, first + len(names) + 1)
        where = [f"row {number} of {_shown(path)}" for number in numbers]
        sizes, unnamed = np.diff(texts[1]), ids[2] | (np.diff(ids[1]) == 0)
        if error is None and not (unnamed | texts[2] | (sizes > max_bytes)).any():
            n, text = len(names), pa.string()
            columns = [names, bodies, pa.nulls(n, text), pa.array(where, text)]
            batch = batch_of(DOCUMENTS, [*columns, pa.array(np.zeros(n, bool))])
            yield from (batch[at : at + BATCH_DOCUMENTS] for at in range(0, n, BATCH_DOCUMENTS))
            continue
        records = zip(names.to_pylist(), bodies.to_pylist(), where, numbers, strict=True)
        yield from _batches(
            _parquet_row(path, *record, error, fields, max_bytes) for record in records
        )


def _parquet_row(
    path: bytes,
    name: bytes | None,
    text: bytes | None,
    where: str,
    number: int,
    error: RecordError | None,
    fields: RecordFields,
    max_bytes: int,
) -> _Row:
    if error is not None:
        reason, detail = error.reason, f"{error.detail}; {where}"
    elif not name:
        fault = "null" if name is None else "an empty string"
        reason, detail = Reason.NO_ID, f"{fields.id!r} is {fault}"
    elif text is None:
        reason, detail = Reason.NULL_TEXT, f"{fields.text!r} is null; {where}"
    elif len(text) > max_bytes:
        reason = Reason.TOO_LARGE
        detail = f"{len(text)} bytes, --max-bytes is {max_bytes}; {where}"
    else:
        return name, text, None, where
    return name or b"%s:%d" % (path, number), None, str(reason), detail


def _json_row(
    line: bytes, size: int, file: bytes, fields: RecordFields, max_bytes: int
) -> _Row | None:
    if size > max_bytes:
        return file, None, str(Reason.TOO_LARGE), f"{size} bytes, --max-bytes is {max_bytes}"
    try:
        row = jsonlines.parse_record(line, fields)
    except RecordError as error:
        return file, None, str(error.reason), error.detail
    return None if row is None else (*row, None, _location(file))


def _id_row(line: bytes, file: bytes) -> _Row | None:
    parts = line.split(None, 1)
    return (parts[0], b"".join(parts[1:]), None, _location(file)) if parts else None


@lru_cache(1)  # many records are of one file
def _location(file: bytes) -> str:
    return f"in {_shown(file)}"


@lru_cache(1)
def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")


def _typed(uri: bytes, root: bytes, typed: bytes) -> bytes:
    """Return the name of a file from its URI, in which Spark has escaped characters as %XX."""
    plain = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), uri)
    for spelling in (plain, plain.replace(b":///", b":/", 1)):  # an empty host may be skipped
        if root and spelling.startswith(root):
            return typed + spelling[len(root) :]
    return plain


def _batches(rows: Iterable[_Row], *, plain: bool = False) -> Batches:
    """Cut rows into batches of limited number and bytes."""
    batch: list[_Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row[1] or b"")
        if len(batch) >= BATCH_DOCUMENTS or size >= BATCH_BYTES:
            yield _batch(batch, plain=plain)
            batch, size = [], 0
    if batch:
        yield _batch(batch, plain=plain)


def _batch(rows: list[_Row], *, plain: bool) -> Any:
    types = (pa.binary(), pa.binary(), pa.string(), pa.string())
    columns = [
        pa.array(column, each) for column, each in zip(zip(*rows, strict=True), types, strict=True)
    ]
    return batch_of(DOCUMENTS, [*columns, pa.array([plain] * len(rows))])
