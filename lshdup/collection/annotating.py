"""Files of rows with columns behind those that they have: all else is as it was, in this order."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.skipped import Reason
from lshdup.base.wording import Cell, json_line, quoted
from lshdup.errors import InputError
from lshdup.sources.delimited import split_row
from lshdup.sources.document_list import DocumentList
from lshdup.sources.jsonlines import parse_object
from lshdup.sources.parquet import open_parquet
from lshdup.sources.records import Kind, RecordError, Rows
from lshdup.sources.rewriting import Change

I64 = NDArray[np.int64]

#: Returns the cells of documents (int64 array, -1 for a row that is none), a column each.
Cells = Callable[[I64], Sequence[Sequence[Cell]]]

#: Rows whose cells are made at a time.
_PIECE = 1 << 13

#: In place of a document: the names of the columns.
_HEADER = -2


class Annotating(Change):
    """The change of all rows of files, which get further cells.

    columns : names and types of the cells; bytes for ids, which have the type of the ids of a file.
    cells : makes them.
    id_field : the field of the ids, or "".
    written, broken : rows that have got cells, and broken rows, which have no place for them.

    Raises InputError if a file has one of the columns.
    """

    def __init__(self, columns: Mapping[str, type], cells: Cells, id_field: str) -> None:
        self._columns, self._cells, self._id_field = columns, cells, id_field
        self.written = self.broken = 0
        # Of the file that is written.
        self._path, self._rows = b"", Rows(*np.zeros((2, 0), np.int64))
        self._next: Iterator[Sequence[Cell]] = iter(())
        self._fields: list[Any] = []

    def find(self, documents: DocumentList, number: int, mine: I64) -> tuple[I64, I64, I64]:
        kind, self._path = Kind(int(documents.locations.kinds[number])), documents.file_path(number)
        if kind == Kind.PARQUET:
            with open_parquet(self._path) as (_, _, file):
                starts = np.arange(file.metadata.num_rows)
            self._rows = Rows(starts, starts)
        else:
            with documents.record_files.reader(self._path, kind) as reader:
                self._rows = reader.list_rows()
        starts, lengths = self._rows[:2]
        every = np.full(len(starts), -1, np.int64)
        places = np.searchsorted(starts, documents.locations.starts[mine])
        every[places] = mine
        if self._rows.columns:
            every[0] = _HEADER
            self._refuse(self._rows.columns)
        self.broken += self._rows.broken
        self._next = (row for each in self._pieces(every) for row in zip(*each, strict=True))
        return starts, lengths, every

    def share(self, documents: DocumentList, changed: I64) -> float:
        del documents, changed
        return 1.0

    def _refuse(self, names: Sequence[str]) -> None:
        """Raise InputError if the file has one of the columns."""
        for name in self._columns:
            if name in names:
                message = f"{quoted(self._path)} has a field {quoted(name)} already"
                raise InputError(message, "annotate the file without it, as it was before")

    def _pieces(self, documents: I64) -> Iterator[Sequence[Sequence[Cell]]]:
        for start in range(0, len(documents), _PIECE):
            yield self._cells(documents[start : start + _PIECE])

    def line(self, document: int, line: bytes) -> bytes:
        cells = next(self._next)
        add = self._add_cells if self._rows.delimiter else self._add_members
        try:
            new = add(document, line, cells)
        except RecordError:
            self.broken += bool(line.strip())
            return line
        self.written += document != _HEADER
        return new

    def _add_cells(self, document: int, row: bytes, cells: Sequence[Cell]) -> bytes:
        """Return a row of CSV with further cells. Raises RecordError for a broken one."""
        delimiter, body = self._rows.delimiter, row.rstrip(b"\r\n")
        if document == -1 and len(split_row(body, delimiter)) != len(self._rows.columns):
            raise RecordError(Reason.BROKEN_ROW, "")
        new = self._columns if document == _HEADER else map(_as_text, cells)
        text = io.StringIO(newline="")
        # Quoted are the characters of the line's end.
        csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerow(["", *new])
        return body + text.getvalue()[:-2].encode() + row[len(body) :]

    def _add_members(self, document: int, line: bytes, cells: Sequence[Cell]) -> bytes:
        """Return a line of JSON with further members. Raises RecordError for a broken one."""
        if document < 0 or b'"duplicate_' in line:
            self._refuse(list(parse_object(line)))
        at = line.rindex(b"}")
        comma = b"" if line[:at].rstrip().endswith(b"{") else b", "
        return line[:at] + comma + json_line(tuple(self._columns), cells)[1:-1] + line[at:]

    def schema(self, schema: Any) -> Any:
        import pyarrow as pa

        self._refuse(schema.names)
        kinds = {int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.string()}
        at = schema.get_field_index(self._id_field)
        if at >= 0 and pa.types.is_integer(schema.field(at).type):
            kinds[bytes] = schema.field(at).type
        self._fields = [pa.field(name, kinds[kind]) for name, kind in self._columns.items()]
        for field in self._fields:
            schema = schema.append(field)
        return schema

    def rows(self, table: Any, rows: I64, documents: I64) -> Any:
        import pyarrow as pa

        new: list[list[Any]] = [[] for _ in self._fields]
        for columns in self._pieces(documents):
            for made, field, cells in zip(new, self._fields, columns, strict=True):
                try:
                    made.append(pa.array(map(_as_text, cells), field.type))
                except pa.ArrowException:
                    message = f"{quoted(self._path)} has integers as ids, and others have not"
                    raise InputError(message, "annotate files with ids of one type") from None
        for field, made in zip(self._fields, new, strict=True):
            table = table.append_column(field, pa.chunked_array(made, field.type))
        self.written += len(rows)
        return table


def _as_text(cell: Cell) -> Cell:
    """Return a name as text; bytes that are no UTF-8 as escapes."""
    return cell.decode("utf-8", "backslashreplace") if isinstance(cell, bytes) else cell
