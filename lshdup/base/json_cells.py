"""Cells of a listing, and rows of cells as JSON."""

import json
import os
from collections.abc import Sequence

Cell = bytes | bool | float | int | str | None


def json_cell(cell: Cell) -> object:
    """Return a cell as JSON has it: a name as text, NaN as None."""
    if isinstance(cell, float) and cell != cell:
        return None
    return os.fsdecode(cell) if isinstance(cell, bytes) else cell


def json_line(columns: Sequence[str], row: Sequence[Cell]) -> bytes:
    """Return a row as a line of JSON Lines, in ASCII, without its end."""
    return json.dumps(dict(zip(columns, map(json_cell, row), strict=True))).encode("ascii")
