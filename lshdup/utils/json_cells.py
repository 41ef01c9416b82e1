"""Cells of a listing as JSON has them."""

import json
import os
from collections.abc import Sequence

Cell = bytes | float | int | str | None


def json_cell(cell: Cell) -> object:
    """Return a cell as a value that `json` can write: names as text, NaN, which JSON does not have, as None."""
    if isinstance(cell, float) and cell != cell:
        return None
    return os.fsdecode(cell) if isinstance(cell, bytes) else cell


def json_line(columns: Sequence[str], row: Sequence[Cell]) -> bytes:
    """Return a row as one line of JSON Lines, in ASCII, without the end of the line."""
    return json.dumps(dict(zip(columns, map(json_cell, row), strict=True))).encode("ascii")
