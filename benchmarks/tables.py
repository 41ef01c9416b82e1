"""Tables of raw numbers; the name of a column says how its numbers are written."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

Cell = str | int | float | None


def _significant(number: float) -> str:
    """Return a number with three digits and no exponent."""
    decimals = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2 if abs(number) >= 1 else 3
    return f"{number:,.{decimals}f}"


def _bytes(number: float) -> str:
    unit, size = next(
        ((name, size) for name, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if number >= size),
        ("B", 1.0),
    )
    return f"{_significant(number / size) if size > 1 else int(number)} {unit}"


_UNITS: list[tuple[tuple[str, ...], Callable[[float], str]]] = [
    (
        ("seconds", "cpu", "again", "query", "exact", "md5sum", "first run", "second run", "more"),
        lambda x: f"{_significant(x)} s",
    ),
    (("ratio", "ratio of again", "lshdup is faster"), lambda x: f"{_significant(x)} ×"),
    (("recall", "precision", "error"), lambda x: f"{x:.4f}"),
    (("memory", "query memory", "mapped", "planned", "store", "disk", "size"), _bytes),
    (("µs a document", "ms a file", "µs a pair", "µs a set", "µs a row", "hours"), _significant),
    (("CPU µs a row",), _significant),
    (
        ("MB/s", "bytes a pair", "bytes a document", "memory a row", "disk a row"),
        lambda x: f"{x:,.0f}",
    ),
]
#: Column -> format of its numbers; other columns hold words or plain counts.
FORMATS = {column: form for columns, form in _UNITS for column in columns}


def shown(column: str, value: Cell) -> str:
    """Return a cell as text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if column in FORMATS:
        return FORMATS[column](value)
    return f"{value:,}"


@dataclass
class Table:
    """Rows of named cells under a sentence that explains them."""

    title: str
    rows: list[dict[str, Cell]] = field(default_factory=list)
    note: str = ""

    def add(self, **cells: Cell) -> None:
        """Add a row; `_` in a name stands for a blank."""
        self.rows.append({name.replace("_", " "): cell for name, cell in cells.items()})

    @property
    def columns(self) -> list[str]:
        """All columns, in order of first appearance; what is aimed at comes last."""
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        return sorted(names, key=("aim", "bar", "dream").__contains__)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def cells(self) -> list[list[str]]:
        """Return the header and the rows as text."""
        return [
            self.columns,
            *([shown(name, row.get(name)) for name in self.columns] for row in self.rows),
        ]

    def _is_number(self, name: str) -> bool:
        return any(isinstance(row.get(name), int | float) for row in self.rows)

    def markdown(self) -> str:
        """Return the table in Markdown."""
        header, *rows = self.cells()
        rule = ["--:" if self._is_number(name) else "---" for name in header]
        lines = [self.title, "", *(f"| {' | '.join(row)} |" for row in (header, rule, *rows))]
        return "\n".join([*lines, "", self.note] if self.note else lines)

    def text(self) -> str:
        """Return the table for a terminal."""
        cells = self.cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        right = [self._is_number(name) for name in self.columns]
        lines = [
            "  ".join(
                cell.rjust(width) if to_right else cell.ljust(width)
                for cell, width, to_right in zip(row, widths, right, strict=True)
            )
            for row in cells
        ]
        return "\n".join(
            [
                self.title,
                "",
                *(f"  {line.rstrip()}" for line in lines),
                *([self.note] if self.note else []),
            ]
        )
