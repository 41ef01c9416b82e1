"""A listing as a table for people: no wider than the terminal, and no number is ever cut.

Where columns have no room side by side, headings and long names are folded; where that is not
enough, rows become columns.
"""

import io
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

#: Blanks between columns: the most that there is room for.
_WIDE, _NARROW, _LEAST_GAP = 3, 2, 1

#: Names of more cells than this may be folded, but not to fewer.
_LEAST = 20

Row = Sequence[str]


def table(
    columns: Row,
    rows: Sequence[Row],
    numbers: Sequence[bool],
    width: int | None,
    *,
    color: bool,
    header: bool,
) -> Iterator[str]:
    """Yield the lines of a table.

    columns : headings, ASCII.
    rows : literal text.
    numbers : which columns hold numbers, and are aligned on the right.
    width : cells of a terminal's line; None for a pipe, whose lines are as long as need be.
    color : whether headings are bold.
    header : whether headings are shown.
    """
    from rich.cells import cell_len

    heads = list(columns) if header else [""] * len(columns)
    sizes = [max(map(cell_len, cells)) for cells in zip(*rows, strict=True)]
    if width is None:
        yield from _bold_headings(_unfolded(heads, rows, numbers, sizes), color=color and header)
        return
    long = [not number and size > _LEAST for number, size in zip(numbers, sizes, strict=True)]
    least = [_LEAST if each else size for each, size in zip(long, sizes, strict=True)]
    folded = list(map(_fold_heading, heads, sizes))
    for headings, gap, needed in (
        (heads, _WIDE, sizes),
        (heads, _NARROW, least),
        (folded, _NARROW, least),
        (folded, _LEAST_GAP, least),
    ):
        head_sizes = [max(map(len, head.split("\n"))) for head in headings]
        if sum(map(max, needed, head_sizes)) + gap * (len(columns) - 1) <= width:
            lines = _side_by_side(headings, rows, numbers, long, gap, width)
            yield from _bold_headings(lines, color=color and header)
            return
    yield from _rows_as_columns(heads, rows, width, color=color)


def _fold_heading(head: str, size: int) -> str:
    """Fold a heading behind underscores and blanks, in as few lines as its column is wide for."""
    wrapper = textwrap.TextWrapper(break_long_words=False, break_on_hyphens=False)
    wrapper.wordsep_simple_re = re.compile(r"((?<=_)|\s+)")
    wrapper.width = max([size, *map(len, re.findall(r"[^_\s]+_?", head))])
    return "\n".join(wrapper.wrap(head))


def _unfolded(
    heads: Row, rows: Sequence[Row], numbers: Sequence[bool], sizes: Sequence[int]
) -> Iterator[str]:
    """Yield a table for a pipe, without Rich, which is made for terminals."""
    from rich.cells import cell_len

    widths = list(map(max, sizes, map(len, heads)))
    rule = ["─" * (sum(widths) + _WIDE * (len(widths) - 1))]
    for row in chain([heads, rule] if any(heads) else [], rows):
        cells = []
        for cell, width, is_number in zip(row, widths, numbers, strict=False):
            blanks = " " * (width - cell_len(cell))
            cells.append(blanks + cell if is_number else cell + blanks)
        yield (" " * _WIDE).join(cells).rstrip()


def _side_by_side(
    headings: Row,
    rows: Iterable[Row],
    numbers: Sequence[bool],
    long: Sequence[bool],
    gap: int,
    width: int,
) -> Iterator[str]:
    """Yield a table whose long columns share the room beside the others."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    # The box draws a rule below the headings, and one blank between columns.
    padding, shows_heads = (0, gap - 1, 0, 0), any(headings)
    table = Table(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=padding, show_header=shows_heads
    )
    for heading, is_number, is_long in zip(headings, numbers, long, strict=True):
        table.add_column(
            Text(heading),
            justify="right" if is_number else "left",
            no_wrap=not is_long,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(Text, row))
    return _rendered(table, width)


def _bold_headings(lines: Iterator[str], *, color: bool) -> Iterator[str]:
    """Make the lines above the rule bold."""
    for line in lines:
        color &= not line.startswith("─")
        yield _bold(line) if color else line


def _rows_as_columns(heads: Row, rows: Sequence[Row], width: int, *, color: bool) -> Iterator[str]:
    """Yield rows as columns beside each other, as many as there is room for; then the next ones."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    names = max(map(len, heads))
    start = 0
    while start < len(rows):
        room, end = width - (names or -_NARROW), start
        while end < len(rows):
            room -= _NARROW + max(map(cell_len, rows[end]))
            if room < 0 and end > start:
                break
            end += 1
        table = Table.grid(padding=(0, _NARROW, 0, 0))
        if names:
            table.add_column(no_wrap=True)
        for _ in rows[start:end]:
            table.add_column(justify="right" if end - start > 1 else "left", overflow="fold")
        for name, *cells in zip(heads, *rows[start:end], strict=True):
            table.add_row(*map(Text, [name, *cells] if names else cells))
        if start:
            yield ""
        start = end
        for line in _rendered(table, width):
            name = line[:names].rstrip()
            yield _bold(name) + line[len(name) :] if color else line


def _rendered(table: "Table", width: int) -> Iterator[str]:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return map(str.rstrip, capture.get().splitlines())


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if text else ""
