"""CSV and TSV: where the rows are, and their texts and ids.

The first row names the columns; blank lines are no rows. Python's csv module parses rows; as only
quotes hide the end of a line from it, lines without one are found without parsing. A quote that
never closes costs the line in which it stands, and no other.
"""

import codecs
import csv
import os
import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import PART
from lshdup.base.params import LONGEST
from lshdup.base.skipped import Reason
from lshdup.base.system import pread
from lshdup.base.wording import count_of
from lshdup.sources.lines import Parse, ParsedFile, batches_of_lines, find_lines, read_lines
from lshdup.sources.records import (
    RecordError,
    RecordFields,
    RecordList,
    Rows,
    SkippedRecord,
    Spans,
    Values,
    field_names,
    no_field,
    split_fields,
)

#: The first with which the columns are there is the delimiter.
_DELIMITERS = ",;\t|"

#: Bytes that are read of a file to find its first row: few, and all if they are not enough.
_HEADER_BYTES = 1 << 12, 1 << 20

_QUOTE, _RETURN = ord('"'), ord("\r")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)

csv.field_size_limit(LONGEST)


class _Header(NamedTuple):
    """The first row of a file.

    columns : names of the columns.
    text, id : positions of the columns that are read; id is -1 without an id field.
    end : bytes before the second row.
    """

    delimiter: str
    columns: tuple[str, ...]
    text: tuple[int, ...]
    id: int
    end: int


class DelimitedFile(ParsedFile):
    """A file of CSV or TSV."""

    def list_records(self) -> RecordList:
        """Return the records, numbered from the row behind the names of the columns.

        With an id field, every record is parsed. Memory: 26 bytes a line, and the ids. Raises
        RecordError if the columns are not there.
        """
        if not os.fstat(self.file).st_size:
            none = np.zeros(0, np.int64)
            return RecordList(none, none, none)
        header = _read_header(self.file, self.fields)
        starts, lengths, broken = _find_rows(self.file, header, self.longest)
        skipped = [
            SkippedRecord(row + 1, Reason.BROKEN_ROW, "its quote never closes")
            for row in np.flatnonzero(broken).tolist()
        ]
        return self.with_ids(RecordList.of(starts, lengths, self.longest, ~broken, skipped))

    def list_rows(self) -> Rows:
        header = _read_header(self.file, self.fields)
        starts, lengths, broken = _find_rows(self.file, header, self.longest)
        starts, lengths = np.append(0, starts[~broken]), np.append(header.end - 1, lengths[~broken])
        return Rows(starts, lengths, int(broken.sum()), header.delimiter, header.columns)

    def values(self, spans: Spans, field: str, option: str) -> Values:
        header = _read_header(self.file, self.fields)
        if field not in header.columns:
            message = no_field(field, header.columns, option, "column")
            raise RecordError(Reason.NO_TEXT, message)
        at, lines = header.columns.index(field), read_lines(self.file, spans)
        return [_cells(line, header)[at].encode("latin-1") or None for line in lines]

    def parser(self, *, ids: bool) -> Parse:
        """Return the parser of a row. Raises RecordError if the columns are not there."""
        header = _read_header(self.file, self.fields)
        return _parser(header if ids else header._replace(id=-1))


def _read_header(file: int, fields: RecordFields) -> _Header:
    """Return the names of the columns. Raise RecordError if a column is missing, or there twice."""
    for most in _HEADER_BYTES:
        head = pread(file, most, 0)
        if head.startswith(_UTF16):
            raise RecordError(Reason.UNDECODABLE, "it is UTF-16; `iconv -t UTF-8` converts it")
        bom = len(codecs.BOM_UTF8) * head.startswith(codecs.BOM_UTF8)
        lines = re.findall(r"[^\n]*\n|[^\n]+", head[bom:].decode("latin-1"))
        if b"\r" in head.rstrip() and b"\n" not in head:
            detail = "a carriage return ends its lines; `tr '\\r' '\\n'` converts it"
            raise RecordError(Reason.BROKEN_ROW, detail)
        lacks = "it has no row with the names of its columns"
        if len(head) == most:
            lacks = f"the names of its columns take more than {most:,} bytes"
        error = RecordError(Reason.BROKEN_ROW, lacks)
        for delimiter in _DELIMITERS:
            rows = csv.reader(lines, delimiter=delimiter)
            try:
                row = next(filter(None, rows), [])
            except csv.Error as why:
                error = RecordError(Reason.BROKEN_ROW, str(why).partition(" - ")[0])
                continue
            if rows.line_num == len(lines) and len(head) == most:
                break  # The row may go on behind what was read.
            if not row:
                continue
            try:
                text, id_ = _positions(tuple(row), fields)
            except RecordError as why:
                error = why if delimiter == _DELIMITERS[0] or len(row) > 1 else error
                continue
            end = bom + sum(map(len, lines[: rows.line_num]))
            return _Header(delimiter, tuple(map(_name, row)), text, id_, end)
    raise error


@lru_cache(64)
def _positions(row: tuple[str, ...], fields: RecordFields) -> tuple[tuple[int, ...], int]:
    """Return the positions of the columns that are read, text and id.

    Raises RecordError if one is missing, or there twice.
    """
    columns = [_name(each) for each in row]

    def position(name: str, reason: Reason, option: str) -> int:
        if name not in columns:
            known = field_names((column, "") for column in columns)
            raise RecordError(reason, f"it has {no_field(name, known, option, 'column')}")
        if columns.count(name) > 1:
            raise RecordError(reason, f"two of its columns are called {name!r}")
        return columns.index(name)

    text = [position(each, Reason.NO_TEXT, "--text-field") for each in split_fields(fields.text)]
    return tuple(text), position(fields.id, Reason.NO_ID, "--id-field") if fields.id else -1


def _name(cell: str) -> str:
    """Return the name of a column from its bytes."""
    try:
        return cell.encode("latin-1").decode("utf-8").strip()
    except UnicodeDecodeError:
        return cell.encode("latin-1").decode("cp1252", "replace").strip()


def _parser(header: _Header) -> Parse:
    """Return the parser of rows."""

    def parse(line: bytes | memoryview) -> tuple[bytes, bytes]:
        cells = _cells(line, header)
        name = cells[header.id].encode("latin-1") if header.id >= 0 else b""
        if header.id >= 0 and not name:
            raise RecordError(Reason.NO_ID, "its id is an empty string")
        return name, PART.join([cells[at].encode("latin-1") for at in header.text])

    return parse


def _cells(line: bytes | memoryview, header: _Header) -> list[str]:
    """Return the cells of a row. Raise RecordError unless each column has one."""
    cells = split_row(line, header.delimiter)
    if len(cells) != len(header.columns):
        detail = f"{count_of(len(cells), 'cell')} for {count_of(len(header.columns), 'column')}"
        raise RecordError(Reason.BROKEN_ROW, detail)
    return cells


def split_row(line: bytes | memoryview, delimiter: str) -> list[str]:
    """Return the cells of a row, whose characters are bytes. Raise RecordError for a broken row."""
    text = str(line, "latin-1").removesuffix("\r")
    if "\0" in text:
        raise RecordError(Reason.BROKEN_ROW, "a NUL is in it")
    if '"' not in text and "\r" not in text:  # Nothing is left for the csv module to know.
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error as error:
        raise RecordError(Reason.BROKEN_ROW, str(error).partition(" - ")[0]) from None


# --- where rows end -------------------------------------------------------------------------------


def _find_rows(
    file: int, header: _Header, longest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return where rows begin, how long they are, and of which a quote never closes.

    A quote closes in the first line that makes a row of the right number of cells with it. Else the
    row ends with its line: the lines behind it are rows of their own.
    """
    starts, lengths, _ = find_lines(file)
    behind = int(np.searchsorted(starts, header.end))
    starts, lengths = starts[behind:], lengths[behind:]
    ends = starts + lengths
    blank, opens, closes = _inspect_lines(file, starts, lengths, header.delimiter, longest)
    broken, inside = np.zeros(len(starts), bool), np.zeros(len(starts), bool)
    closing = np.flatnonzero(closes)
    budget, behind = 4 * int(lengths.sum()), 0
    for first in np.flatnonzero(opens).tolist():
        at = int(np.searchsorted(closing, first + 1))
        if first < behind:
            continue
        broken[first] = True
        if at == len(closing) or ends[closing[at]] - starts[first] > longest:
            continue
        last = int(closing[at])
        size = int(ends[last] - starts[first])
        try:
            row = pread(file, size, int(starts[first]))
            is_row = len(split_row(row, header.delimiter)) == len(header.columns)
        except RecordError:
            is_row = False
        budget -= 0 if is_row else size
        if is_row or budget < 0:  # Rows that could be read so often are no accident.
            broken[first] = not is_row
            ends[first] = ends[last]
            inside[first + 1 : last + 1] = True
            behind = last + 1
    rows = ~(inside | blank)
    return starts[rows], (ends - starts)[rows], broken[rows]


def _inspect_lines(
    file: int, starts: NDArray[np.int64], lengths: NDArray[np.int64], delimiter: str, longest: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which lines are blank, which end in a quoted cell if a row begins with them, and
    which do not if they begin in one.

    Lines of more than `longest` bytes are rows of their own, whatever is in them.
    """
    blank, opens, closes = lengths == 0, np.zeros(len(starts), bool), np.zeros(len(starts), bool)
    whole, rest = _ends_of_cells(delimiter)
    read = np.flatnonzero(lengths <= longest)
    for first, (text, places, *_) in batches_of_lines(file, (starts[read], lengths[read])):
        rows = read[first : first + len(places)]
        short = lengths[rows] == 1
        blank[rows[short]] = text[places[short]] == _RETURN
        quotes = np.flatnonzero(text == _QUOTE)
        with_quotes = np.unique(np.searchsorted(places, quotes, side="right") - 1)
        for at in with_quotes.tolist():
            row, place = rows[at], int(places[at])
            line = text[place : place + int(lengths[row])].data
            opens[row] = whole.match(line) is None
            closes[row] = rest.match(line) is not None
    return blank, opens, closes


@lru_cache(4)
def _ends_of_cells(delimiter: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return the expressions of a line that ends a row, begun at a cell and within quotes.

    No part is tried twice, so the time is linear. Behind a closing quote a cell may go on.
    """
    mark = re.escape(delimiter).encode()
    quoted = rb'(?>[^"]+|"")*+"[^%s]*+' % mark
    cell = rb'(?>"%s|[^"%s][^%s]*+|(?=%s)|\Z)' % (quoted, mark, mark, mark)
    cells = rb"(?:%s%s)*+\Z" % (mark, cell)
    return re.compile(cell + cells), re.compile(quoted + cells)
