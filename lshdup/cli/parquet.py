"""A listing as a Parquet file: columns of the types of `lshdup.cli.columns`, and what made it.

The metadata of the schema has a key ``lshdup``, a JSON object: the version of the program, the
listing and the version of its columns, and the parameters of the command.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import click

from lshdup.base.version import __version__
from lshdup.base.wording import Cell, json_cell, utf8_text
from lshdup.cli.columns import VERSION, Columns
from lshdup.sources.parquet import import_pyarrow

_Piece = Sequence[Sequence[Cell]]

#: A row group is written once it has so many rows, or so many bytes.
_GROUP_ROWS, _GROUP_BYTES = 1 << 17, 1 << 25

#: Fewest rows, but for the last ones, that become arrays together.
_LEAST_ROWS = 1 << 8

#: Headings of options that do not change the rows.
_NO_PARAMETERS = ("Running", "Output")


def write_parquet(stream: BinaryIO, columns: Columns, pieces: Iterable[_Piece]) -> bool:
    """Write rows that come as columns, a row group at a time.

    Returns False if a name is not UTF-8: its other bytes are escapes.
    """
    pa, pq = import_pyarrow()
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    fields = [
        pa.field(name, types[each.cell], each.nullable) for name, each in columns.types.items()
    ]
    schema = pa.schema(fields, {"lshdup": json.dumps(_describe(columns), default=_as_text)})
    waiting: list[Any] = []
    is_clear, rows, size = True, 0, 0
    with pq.ParquetWriter(stream, schema) as writer:
        for piece in _join_small(pieces):
            made = [_array_of(pa, *each) for each in zip(fields, piece, strict=True)]
            is_clear &= all(clear for _, clear in made)
            waiting.append(pa.record_batch([array for array, _ in made], schema=schema))
            rows, size = rows + len(waiting[-1]), size + waiting[-1].nbytes
            if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(waiting, schema))
                waiting, rows, size = [], 0, 0
        writer.write_table(pa.Table.from_batches(waiting, schema))
    return is_clear


def _join_small(pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    """Yield the rows of pieces, those of small ones together: each array of Arrow has a price."""
    joined: _Piece = ()
    for piece in pieces:
        joined = [[*a, *b] for a, b in zip(joined, piece, strict=True)] if joined else piece
        if len(joined[0]) >= _LEAST_ROWS:
            yield joined
            joined = ()
    if joined:
        yield joined


def _array_of(pa: Any, field: Any, cells: Sequence[Cell]) -> tuple[Any, bool]:
    """Return cells as an array of Arrow, and whether all their texts are UTF-8."""
    try:
        # NaN is an empty number.
        return pa.array(cells, field.type, from_pandas=field.nullable), True
    except (UnicodeError, pa.ArrowInvalid, pa.ArrowTypeError):
        if field.type != pa.string():
            raise
        texts = [None if cell is None else str(json_cell(cell)) for cell in cells]
        made = [None if text is None else utf8_text(text) for text in texts]
        return pa.array(made, field.type), made == texts


def _describe(columns: Columns) -> dict[str, object]:
    """Return what made a listing."""
    ctx = click.get_current_context(silent=True)
    parameters = {
        param.name: value
        for param in (ctx.command.params if ctx is not None else ())
        if ctx is not None and (value := ctx.params.get(param.name or "")) not in (None, "", ())
        if getattr(param, "group", "") not in _NO_PARAMETERS
        if getattr(param, "variable", "") != "alone"
    }
    return {
        "lshdup": __version__, "listing": columns.listing, "format": VERSION,
        "command": ctx.info_name if ctx is not None else None, "parameters": parameters,
    }  # fmt: skip


def _as_text(value: object) -> str:
    return os.fsdecode(value) if isinstance(value, bytes | os.PathLike) else str(value)
