r"""The only writer of stdout: rows of a listing as table, tsv, csv, json or jsonl.

tsv prints names byte for byte, without a header line unless --header is set; ``-0`` ends every
field with NUL, which is safe for any name. json and jsonl are ASCII; a byte of a name that is not
UTF-8 is a lone surrogate escape (``\udcff``), as of `os.fsdecode`.
"""

import contextlib
import csv
import io
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from lshdup.cli.console import close_stdout, use_color
from lshdup.errors import InputError, ParameterError
from lshdup.utils.atomic import check_writable, replace_file
from lshdup.utils.json_cells import Cell, json_cell, json_line
from lshdup.utils.messages import decimal, printable

FORMATS = ("table", "tsv", "csv", "json", "jsonl")
_ENDINGS = {".tsv": "tsv", ".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}
#: Endings of formats that are not written.
_OTHER_ENDINGS = (".parquet", ".xlsx")

#: Most rows of a table on a terminal; a longer listing is printed as tsv.
TABLE_ROWS = 1000

#: Columns of equal length, each of one type.
Piece = Sequence[Sequence[Cell]]


def format_of(path: Path) -> str:
    """Return the format that a file's ending names, or "" if it names none.

    Errors: ParameterError for the ending of a format that is not written.

    >>> format_of(Path("p.CSV")), format_of(Path("p.ndjson")), format_of(Path("pairs"))
    ('csv', 'jsonl', '')
    """
    ending = path.suffix.lower()
    if ending in _OTHER_ENDINGS:
        message = f"-o {path}: {ending} is not written here"
        raise ParameterError(
            message,
            f"name a file that ends with {', '.join(_ENDINGS)}, or say with --format what it is to "
            "hold",
        )
    return _ENDINGS.get(ending, "")


@dataclass(frozen=True)
class Target:
    """The file or stream of a listing, and its format.

    format : one of FORMATS, or "" for a table on a terminal and tsv elsewhere.
    nul : whether NUL ends every field.
    path : a file instead of stdout, replaced once the listing is complete.
    color : whether text for people has colours; None for on a terminal.
    header : whether the first line names the columns; None for as is usual in the format.
    """

    format: str = ""
    nul: bool = False
    path: Path | None = None
    color: bool | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        if self.nul and self.format not in ("", "tsv"):
            message = f"-0 and --format {self.format} exclude each other"
            raise ParameterError(message, "leave one of them out")
        if self.header is not None and self.format in ("json", "jsonl"):
            message = (
                f"--{'' if self.header else 'no-'}header has no meaning with --format "
                f"{self.format}, where each row names its columns"
            )
            raise ParameterError(message, "leave it out")
        if self.path is None and sys.stdout is None:
            message = "standard output is closed"
            raise InputError(message, "name a file with -o")
        if self.path is not None:
            check_writable(self.path)

    def write(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bool:
        """Print all rows; return False if tabs or newlines in names make lines ambiguous.

        A terminal gets control characters as escapes, in every format. Rows are made only as long
        as there is a reader.
        """
        if self._on_terminal():
            rows = (
                tuple(printable(cell) if isinstance(cell, bytes | str) else cell for cell in row)
                for row in rows
            )
        is_clear = True
        with self._stream() as stream:
            style = self._style()
            if style == "table":
                rows = iter(rows)
                start = list(islice(rows, None if self.format else TABLE_ROWS + 1))
                if self.format or len(start) <= TABLE_ROWS:
                    self._table(stream, columns, start)
                    return True
                rows, style = chain(start, rows), "tsv"
            if self.header if self.header is not None else style == "csv":
                rows = chain([columns], rows)
            for part in _PARTS[style](columns, rows) if not self.nul else _nul_parts(rows):
                stream.write(part)
                if style == "tsv" and not self.nul:
                    is_clear &= part.count(b"\t") == len(columns) - 1 and part.count(b"\n") == 1
        return is_clear

    def write_pieces(self, columns: Sequence[str], pieces: Iterable[Piece]) -> bool:
        """Print rows that come as columns, many at a time, which is faster; return as `write`."""
        if self._style() != "tsv" or self._on_terminal():
            return self.write(
                columns, (row for piece in pieces for row in zip(*piece, strict=True))
            )
        separator, end = (b"\0", b"\0") if self.nul else (b"\t", b"\n")
        is_clear = True
        with self._stream() as stream:
            if self.header:
                stream.write(_joined([[name] for name in columns], separator, end))
            for piece in pieces:
                data = _joined(piece, separator, end)
                stream.write(data)
                rows = len(piece[0])
                is_clear &= self.nul or (
                    data.count(b"\t") == rows * (len(columns) - 1) and data.count(b"\n") == rows
                )
        return is_clear

    def write_lines(self, lines: Iterable[str]) -> None:
        """Print lines laid out for people, whose control characters are escaped already."""
        with self._stream() as stream:
            for line in lines:
                stream.write(f"{line}\n".encode("utf-8", "backslashreplace"))

    def write_raw(self, parts: Iterable[bytes]) -> None:
        """Print bytes as they are."""
        with self._stream() as stream:
            for part in parts:
                stream.write(part)

    def write_object(self, values: object) -> None:
        """Print one JSON document."""
        self.write_lines([json.dumps(values, indent=1, default=json_cell)])

    @property
    def columns(self) -> int | None:
        """Width of the terminal that is written to; None for a pipe or a file."""
        return shutil.get_terminal_size().columns if self._on_terminal() else None

    @property
    def colored(self) -> bool:
        """Whether text for people may have colours."""
        return use_color(self.color, self._on_terminal())

    def _style(self) -> str:
        return self.format or ("table" if self._on_terminal() and not self.nul else "tsv")

    def _on_terminal(self) -> bool:
        return self.path is None and sys.stdout.isatty()

    @contextlib.contextmanager
    def _stream(self) -> Iterator[BinaryIO]:
        """Open the stream of a listing; if its reader leaves, end the listing, not the command.

        The summary and the exit code must not depend on how much another program has read.
        """
        if self.path is None:
            buffered = io.BufferedWriter(_Stdout(), 1 << 16)
            try:
                yield buffered
                buffered.flush()
            except BrokenPipeError:
                close_stdout()
            return
        with replace_file(self.path) as file:
            yield file

    def _table(self, stream: BinaryIO, columns: Sequence[str], rows: list[Sequence[Cell]]) -> None:
        from lshdup.cli.tables import table

        if not rows:
            return
        numbers = [
            isinstance(next((row[at] for row in rows if row[at] is not None), None), int | float)
            for at in range(len(columns))
        ]
        texts = [[_for_people(cell) for cell in row] for row in rows]
        width = self.columns if self._on_terminal() else None
        for line in table(
            columns, texts, numbers, width, color=self.colored, header=self.header is not False
        ):
            stream.write(f"{line}\n".encode("utf-8", "backslashreplace"))


class _Stdout(io.RawIOBase):
    """The descriptor of stdout, unbuffered and never closed."""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        return os.write(sys.stdout.fileno(), data)  # type: ignore[arg-type]


_YES_NO = {True: "yes", False: "no"}


def _for_people(cell: Cell) -> str:
    if isinstance(cell, bytes):
        return printable(cell)
    if isinstance(cell, float):
        return decimal(cell)
    if isinstance(cell, bool):
        return _YES_NO[cell]
    return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell


def _exactly(cell: Cell) -> bytes:
    if isinstance(cell, bytes):
        return cell
    if isinstance(cell, str):
        return cell.encode()
    if isinstance(cell, bool):
        return _YES_NO[cell].encode()
    return b"" if cell is None else repr(cell).encode()


def _tsv_parts(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    return (b"\t".join(map(_exactly, row)) + b"\n" for row in rows)


def _nul_parts(rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    return (b"\0".join(map(_exactly, row)) + b"\0" for row in rows)


def _joined(piece: Piece, separator: bytes, end: bytes) -> bytes:
    """Return the rows of a piece as lines of tsv, without a step of Python for each row."""
    return (
        end.join(map(separator.join, zip(*map(_texts, piece), strict=True))) + end
        if piece[0]
        else b""
    )


def _texts(column: Sequence[Cell]) -> Iterable[bytes]:
    if isinstance(column[0], bytes):
        return column  # type: ignore[return-value]
    texts = {cell: _exactly(cell) for cell in set(column)}  # A column has few different values.
    return map(texts.__getitem__, column)


def _csv_parts(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow(
            [os.fsdecode(_exactly(cell)) if not isinstance(cell, str) else cell for cell in row]
        )
        yield os.fsencode(text.getvalue())
        text.seek(0)
        text.truncate()


def _json_parts(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    between = b"["
    for row in rows:
        yield between + b"\n " + json_line(columns, row)
        between = b","
    yield b"[]\n" if between == b"[" else b"\n]\n"


def _jsonl_parts(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    return (json_line(columns, row) + b"\n" for row in rows)


_PARTS = {"tsv": _tsv_parts, "csv": _csv_parts, "json": _json_parts, "jsonl": _jsonl_parts}
