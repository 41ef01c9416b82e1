r"""The only writer of stdout: the rows of a listing as table, tsv, csv, json or jsonl.

tsv prints names byte for byte, without a header line unless LSHDUP_HEADER is set; ``-0`` ends every
field with NUL, which is safe for any name. json and jsonl are ASCII; a byte of a name that is not
UTF-8 is a lone surrogate escape (``\udcff``), as of `os.fsdecode`.
"""

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from lshdup.base.atomic import check_writable, replace_file
from lshdup.base.frozen import dataclass
from lshdup.base.system import is_stdout
from lshdup.base.wording import Cell, decimal, json_line, printable
from lshdup.cli.console import Console, close_stdout, use_color
from lshdup.cli.help import is_typed
from lshdup.errors import InputError, ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.cli.columns import Columns

FORMATS = ("table", "tsv", "csv", "json", "jsonl", "parquet")

#: Formats of annotations of files, which are no listings: `views.annotations` writes them.
ANNOTATIONS = ("github", "sarif")

_ENDINGS = {".tsv": "tsv", ".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl",
            ".parquet": "parquet"}  # fmt: skip
#: Endings that name no format of a listing: what they stand for is said with --format.
_NO_FORMAT = ("", ".txt")

#: Screens that a table on a terminal fills at most, unless LSHDUP_MAX_ROWS says otherwise.
_SCREENS = 10

#: Rows that are made and printed at a time: few enough that they stay in a processor's cache.
PIECE_ROWS = 1 << 13

#: The same of mails, which are read again for their subjects: not many more than a table shows.
PIECE_MAILS = 1 << 9

#: Columns of equal length.
Piece = Sequence[Sequence[Cell]]

#: Makes lines for people of rows, the width of the terminal or None, and whether to use colours.
Layout = Callable[[Iterable[Sequence[str]], int | None, bool], Iterator[str]]


#: Of `lshdup report`.
PAGE_FORMATS = {".html": "html", ".htm": "html"}


def format_of(path: Path, option: str = "-o", formats: Mapping[str, str] = _ENDINGS) -> str:
    """Return the format that a file's ending names, or "" if it names none.

    formats : what the command writes, by ending.

    Errors: ParameterError for another ending: the file would not hold what its name says.

    >>> format_of(Path("p.CSV")), format_of(Path("p.ndjson")), format_of(Path("pairs.2024"))
    ('csv', 'jsonl', '')
    """
    ending = path.suffix.lower()
    if ending not in (*formats, *_NO_FORMAT) and ending[1].isalpha():
        message = f"{option} {path}: {ending} is not written here"
        hint = f"name a file that ends with {', '.join(formats)}"
        if option == "-o" and formats is _ENDINGS:
            hint += ", or say with --format what it is to hold"
        hint += "; `lshdup report` makes a page" * (option == "-o" and ending == ".html")
        raise ParameterError(message, hint)
    return formats.get(ending, "")


@dataclass(frozen=True)
class Target:
    """The file or stream of a listing, and its format.

    format : one of FORMATS, or "" for a table on a terminal and tsv elsewhere.
    nul : whether NUL ends every field.
    path : a file instead of stdout, replaced once the listing is complete.
    color : whether text for people has colours; None for on a terminal.
    header : whether the first line names the columns; None for as is usual in the format.
    max_rows : most rows of a table, 0 for all; None for ten screens on a terminal, else all.
    """

    format: str = ""
    nul: bool = False
    path: Path | None = None
    color: bool | None = None
    header: bool | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if self.nul and self.format not in ("", "tsv"):
            message = f"-0 and --format {self.format} exclude each other"
            raise ParameterError(message, "leave one of them out")
        if self.path is None and sys.stdout is None:
            message = "standard output is closed"
            raise InputError(message, "name a file with -o")
        if self.format == "parquet":
            if self.path is None:
                message = "a Parquet file is not written to standard output"
                raise ParameterError(message, "name a file: -o FILE.parquet")
            from lshdup.sources.parquet import import_pyarrow

            import_pyarrow()
        if self.path is not None:
            check_writable(self.path)

    def write_pieces(
        self,
        columns: "Columns",
        pieces: Iterable[Piece],
        total: int | None = None,
        layout: Layout | None = None,
    ) -> bool:
        """Print rows that come as columns, many at a time.

        total : number of all rows, if it is known.
        layout : makes the lines of a table that is no usual one.

        Returns False if tabs or newlines in names make lines ambiguous, or names in Parquet hold
        escapes. A terminal gets control
        characters as escapes, in every format. Rows are made only as long as there is a reader.
        """
        if self._on_terminal():
            pieces = ([list(map(_escape, column)) for column in piece] for piece in pieces)
        is_clear, style, names = True, self.style, tuple(columns)
        with self.stream() as stream:
            if style == "table":
                for line in self._table(names, _join_pieces(pieces), total, layout):
                    stream.write(f"{line}\n".encode("utf-8", "backslashreplace"))
            elif style == "tsv":
                separator, end = (b"\0", b"\0") if self.nul else (b"\t", b"\n")
                head = [[[name] for name in names]] if self.header else []
                for piece in chain(head, pieces):
                    data = _tsv_lines(piece, separator, end)
                    stream.write(data)
                    n = len(piece[0])
                    tabs, ends = data.count(b"\t"), data.count(b"\n")
                    clear = tabs == n * (len(names) - 1) and ends == n and b"\r" not in data
                    is_clear &= self.nul or clear
            elif style == "parquet":
                from lshdup.cli.parquet import write_parquet

                is_clear = write_parquet(stream, columns, pieces)
            else:
                rows = _join_pieces(pieces)
                if style == "csv" and self.header is not False:
                    rows = chain([names], rows)
                for part in _PARTS[style](names, rows):
                    stream.write(part)
        return is_clear

    def write_lines(self, lines: Iterable[str]) -> None:
        """Print lines laid out for people, whose control characters are escaped already."""
        self.write_raw(f"{line}\n".encode("utf-8", "backslashreplace") for line in lines)

    def write_raw(self, parts: Iterable[bytes]) -> None:
        """Print bytes as they are."""
        with self.stream() as stream:
            for part in parts:
                stream.write(part)

    @property
    def style(self) -> str:
        """The format of a listing, which depends on the stream if none was chosen."""
        return self.format or ("table" if self._on_terminal() and not self.nul else "tsv")

    @property
    def is_for_people(self) -> bool:
        """Whether the answer of a command that lists no rows by itself is laid out for people."""
        return self.format in ("", "table") and not self.nul

    @property
    def columns(self) -> int | None:
        """Width of the terminal that is written to; None for a pipe or a file."""
        return shutil.get_terminal_size().columns if self._on_terminal() else None

    @property
    def colored(self) -> bool:
        """Whether text for people may have colours."""
        return use_color(self.color, self._on_terminal())

    def _on_terminal(self) -> bool:
        return self.path is None and sys.stdout.isatty()

    @contextlib.contextmanager
    def stream(self) -> Iterator[BinaryIO]:
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
            except OSError as error:
                error.filename = error.filename or "standard output"
                raise
            return
        with replace_file(self.path) as file:
            yield file

    def _table(
        self,
        columns: Sequence[str],
        rows: Iterator[Sequence[Cell]],
        total: int | None,
        layout: Layout | None,
    ) -> Iterator[str]:
        """Yield the lines of a table, the last of which says how many rows are not shown."""
        from lshdup.cli.layouts import table

        screens = _SCREENS * shutil.get_terminal_size().lines if self._on_terminal() else 0
        limit = screens if self.max_rows is None else self.max_rows
        first = list(islice(rows, limit or PIECE_ROWS))
        rest = () if limit else rows
        shown = (tuple(map(_for_people, row)) for row in chain(first, rest))
        if layout is not None:
            yield from layout(shown, self.columns, self.colored)
        elif first:
            cells = (
                next((cell for cell in column if cell is not None), None)
                for column in zip(*first, strict=True)
            )
            numbers = [
                isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells
            ]
            shows_head = self.header is not False
            yield from table(
                columns, shown, numbers, self.columns, color=self.colored, header=shows_head
            )
        more = sum(1 for _ in rows) if total is None or not limit else total - len(first)
        if more:
            yield f"… {more:,} more; use -o FILE, or --format tsv"


class _Stdout(io.RawIOBase):
    """The descriptor of stdout, unbuffered and never closed. What failed once is not tried again:
    Python would print the error, when it closes the buffer in front of this.
    """

    _has_failed = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self._has_failed:
            return len(data)
        try:
            return os.write(sys.stdout.fileno(), data)
        except OSError:
            self._has_failed = True
            raise


_YES_NO = {True: "yes", False: "no"}


def _escape(cell: Cell) -> Cell:
    return printable(cell) if isinstance(cell, bytes | str) else cell


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


def _join_pieces(pieces: Iterable[Piece]) -> Iterator[Sequence[Cell]]:
    return (row for piece in pieces for row in zip(*piece, strict=True))


def cut_pieces(rows: Iterable[Sequence[Cell]]) -> Iterator[Piece]:
    """Yield rows as columns, some thousand rows at a time."""
    rows = iter(rows)
    while part := list(islice(rows, PIECE_ROWS)):
        yield list(zip(*part, strict=True))


def _tsv_lines(piece: Piece, separator: bytes, end: bytes) -> bytes:
    """Return the rows of a piece as lines, without a step of Python for each row."""
    if not piece[0]:
        return b""
    return end.join(map(separator.join, zip(*map(_texts, piece), strict=True))) + end


def _texts(column: Sequence[Cell]) -> Iterable[bytes]:
    if set(map(type, column)) == {bytes}:
        return column  # type: ignore[return-value]
    texts = {cell: _exactly(cell) for cell in set(column)}  # A column has few different values.
    return map(texts.__getitem__, column)


def _csv_parts(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    import csv  # Imported here to keep the start of every command fast.

    text = io.StringIO(newline="")
    # Quoted are the characters of the line's end, and a carriage return ends a line for readers.
    writer = csv.writer(text, lineterminator="\r\n")
    for row in rows:
        writer.writerow(
            [os.fsdecode(_exactly(cell)) if not isinstance(cell, str) else cell for cell in row]
        )
        yield os.fsencode(text.getvalue()[:-2]) + b"\n"
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


_PARTS = {"csv": _csv_parts, "json": _json_parts, "jsonl": _jsonl_parts}


@dataclass(frozen=True)
class OutputOptions:
    """The options of a listing."""

    format_: str | None
    header: bool | None
    max_rows: int | None
    nul: bool
    output: str | None
    color: bool | None


@dataclass(frozen=True)
class WriteOptions(OutputOptions):
    """The options of a command that writes files, and perhaps a list of what is left out."""

    write: str | None
    removed: Path | None

    @property
    def files(self) -> tuple[str, str | None]:
        """The option that names the files to write, and its value."""
        return "--write", self.write


def make_target(options: OutputOptions) -> Target:
    """Return the file or stream that the output options of a command name, and its format.

    Errors: ParameterError if the options exclude each other, InputError if the file cannot be
    written.
    """
    ctx, output = click.get_current_context(), options.output
    path = None if output is None or is_stdout(output) else Path(output)
    format_ = options.format_ or ""
    if path is not None and not (format_ and is_typed(ctx, "format_")):
        # That of the ending goes before that of the variable.
        kinds = (getattr(each.type, "choices", ()) for each in ctx.command.params)
        is_sarif = path.suffix.lower() == ".sarif" and any("sarif" in each for each in kinds)
        by_name = "sarif" if is_sarif else format_of(path)
        if options.nul and by_name not in ("", "tsv"):
            message = f"-0 and -o {path} exclude each other, as the file is to be {by_name}"
            raise ParameterError(message, "leave -0 out, or say --format tsv")
        format_ = by_name or format_
    target = Target(format_, options.nul, path, options.color, options.header, options.max_rows)
    others = [f"--{name}" for name in ("histogram", "unmatched") if ctx.params.get(name)]
    if target.style in ANNOTATIONS and others:
        message = f"--format {target.style} is of pairs, not of {others[0]}"
        raise ParameterError(message, "choose another format, or leave that out")
    return target


def print_rows(
    console: Console, target: Target, columns: "Columns", rows: Iterable[Sequence[Cell]]
) -> None:
    """Print a listing; warn if names make its lines ambiguous."""
    print_pieces(console, target, columns, cut_pieces(rows))


def print_pieces(
    console: Console,
    target: Target,
    columns: "Columns",
    pieces: Iterable[Piece],
    total: int | None = None,
    layout: Layout | None = None,
) -> None:
    """Print a listing of many rows at a time, as `Target.write_pieces`; warn likewise."""
    if not target.write_pieces(columns, pieces, total, layout):
        where, what = "", "use -0, or --format jsonl"
        if target.path is not None:
            where, what = f" of {target.path}", "name a file that ends with .jsonl"
        if target.style == "parquet":
            console.warn(f"some names are not UTF-8: those{where} hold escapes as \\udcff; {what}")
            return
        console.warn(f"some names hold tabs or newlines: lines{where} are ambiguous; {what}")


#: Names that are kept: more are made again for each piece that they are in.
_MOST_NAMES = 1 << 20


class DocumentNames:
    """Names of n documents, each made once although a name is in many pairs, unless n is large.

    n : number of documents.
    typed : returns the names of an ascending int64 array of documents.
    """

    def __init__(self, n: int, typed: "Callable[[NDArray[np.int64]], list[bytes]]") -> None:
        import numpy as np

        kept = n if n <= _MOST_NAMES else 0
        self._names: NDArray[Any] = np.empty(kept, object)
        self._known = np.zeros(kept, bool)
        self._typed = typed

    def of(self, documents: "NDArray[np.integer]") -> "NDArray[Any]":
        """Return the names of documents as an array of bytes objects."""
        import numpy as np

        from lshdup.base.ragged import distinct

        if not len(self._known):
            every = distinct(documents)[0].astype(np.int64)
            names: NDArray[Any] = np.empty(len(every), object)
            names[:] = self._typed(every)
            return names[np.searchsorted(every, documents)]
        new = distinct(documents[~self._known[documents]])[0].astype(np.int64)
        for document, name in zip(new.tolist(), self._typed(new), strict=True):
            self._names[document] = name
        self._known[new] = True
        named: NDArray[Any] = self._names[documents]
        return named
