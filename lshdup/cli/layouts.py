"""Listings laid out for people: a table, groups, passages. None is wider than the terminal, and no
number is ever cut.

Where columns have no room side by side, headings and long names are folded; where that is not
enough, rows become columns. A long table is laid out part by part, so that it begins at once.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, zip_longest
from operator import itemgetter
from os.path import commonprefix

from rich.cells import cell_len

#: Blanks between columns: the most that there is room for.
_WIDE, _NARROW, _LEAST_GAP = 3, 2, 1

#: Names of more cells than this may be folded, but not to fewer.
_LEAST = 20

#: Cells before the names of a group: similarity, and what is the same.
_INDENT = 17

#: Rows that are laid out together: columns are as wide as their cells need.
_PART = 1000

Row = Sequence[str]


def table(
    columns: Row,
    rows: Iterable[Row],
    numbers: Sequence[bool],
    width: int | None,
    *,
    color: bool,
    header: bool,
) -> Iterator[str]:
    """Yield the lines of a table.

    columns : headings, ASCII.
    rows : literal text, taken a thousand rows at a time. Columns grow from part to part.
    numbers : which columns hold numbers, and are aligned on the right.
    width : cells of a terminal's line; None for a pipe, whose lines are as long as need be.
    color : whether headings are bold.
    header : whether headings are shown.
    """
    heads = list(columns) if header else [""] * len(columns)
    rows, sizes, first = iter(rows), [0] * len(columns), True
    while part := list(islice(rows, _PART)):
        cells = zip(sizes, zip(*part, strict=True), strict=True)
        sizes = [max(size, *map(_size, column)) for size, column in cells]
        layout = _lay_out(heads if first else [""] * len(heads), sizes, numbers, width)
        if layout is None:
            assert width is not None
            yield from [] if first else [""]
            yield from _rows_as_columns(heads, part, width, color=color)
        else:
            headings, widths, gap = layout
            if first and header:
                for line in _lines(headings, widths, numbers, gap):
                    yield _bold(line) if color else line
                yield "─" * (sum(widths) + gap * (len(widths) - 1))
            for row in part:
                yield from _lines(row, widths, numbers, gap)
            sizes = list(map(max, sizes, widths))
        first = False


def _lay_out(
    heads: Row, sizes: Sequence[int], numbers: Sequence[bool], width: int | None
) -> tuple[Row, list[int], int] | None:
    """Return the headings, the width of each column and the gap; None if there is no room."""
    if width is None:
        return heads, list(map(max, sizes, map(len, heads))), _WIDE
    long = [not number and size > _LEAST for number, size in zip(numbers, sizes, strict=True)]
    least = [_LEAST if each else size for each, size in zip(long, sizes, strict=True)]
    folded = list(map(_fold_heading, heads, sizes))
    most = max(head.count("\n") for head in folded)
    folded = ["\n" * (most - head.count("\n")) + head for head in folded]
    for headings, gap, needed in (
        (heads, _WIDE, sizes),
        (heads, _NARROW, least),
        (folded, _NARROW, least),
        (folded, _LEAST_GAP, least),
    ):
        widths = [
            max(size, *map(len, head.split("\n")))
            for size, head in zip(needed, headings, strict=True)
        ]
        room = width - sum(widths) - gap * (len(widths) - 1)
        if room < 0:
            continue
        for _ in range(room):  # The narrowest of the folded columns gets the next cell.
            narrow = [at for at, size in enumerate(sizes) if widths[at] < size]
            if narrow:
                widths[min(narrow, key=widths.__getitem__)] += 1
        return headings, widths, gap
    return None


def _fold_heading(head: str, size: int) -> str:
    """Fold a heading behind underscores and blanks, in as few lines as its column is wide for."""
    wrapper = textwrap.TextWrapper(break_long_words=False, break_on_hyphens=False)
    wrapper.wordsep_simple_re = re.compile(r"((?<=_)|\s+)")
    wrapper.width = max([size, *map(len, re.findall(r"[^_\s]+_?", head))])
    return "\n".join(wrapper.wrap(head))


def groups(rows: Iterable[Row], width: int | None, color: bool) -> Iterator[str]:
    """Yield the listing of `clusters` as blocks: a group each, its common folder once above.

    rows : cells of the columns of `clusters`, in groups, the kept document first; and of mails
        subject and date, which are shown behind the name.
    width, color : as for `table`.
    """
    for number, group in groupby(rows, itemgetter(0)):
        members = list(group)
        names = [row[2] for row in members]
        folder = common_folder(names)
        head = f"group {number}{': ' if folder else ''}{folder}"
        yield from _head(number, head, width, color)
        for row, name in zip(members, names, strict=True):
            role = row[3] if row[1] == "drop" else row[1]
            name = "  ".join(filter(None, (name.removeprefix(folder), *row[7:])))
            room = width and max(_LEAST, width - _INDENT)
            for at, line in enumerate(fold_cell(name, room)):
                start = f"  {role:<6}  {row[6]:<5}  " if not at else " " * _INDENT
                yield _bold(start + line) if color and row[1] != "drop" else start + line


def passages(rows: Iterable[Row], width: int | None, color: bool) -> Iterator[str]:
    """Yield the listing of `passages` as blocks: a passage each, its first words, its places.

    rows : cells of the columns of `passages`.
    width, color : as for `table`.
    """
    for number, group in groupby(rows, itemgetter(0)):
        places = list(group)
        _, tokens, count, documents, text, *_ = places[0]
        head = f"passage {number}: {tokens} tokens, {count} places in {documents} "
        head += "document" if documents == "1" else "documents"
        yield from _head(number, head, width, color)
        room = width and max(_LEAST, width - 2)
        cells = [text] if text else []
        for *_, name, start, end, _, _, offsets in places:
            of = "" if offsets == "bytes" else f" of the {offsets}"
            cells.append(f"{name}: bytes {start or '?'} to {end or '?'}{of}")
        more = int(count.replace(",", "")) - len(places)
        cells += [f"… and {more:,} more"] if more else []
        yield from (f"  {line}" for cell in cells for line in fold_cell(cell, room))


def _head(number: str, head: str, width: int | None, color: bool) -> Iterator[str]:
    """Yield the lines above a block, with an empty one between blocks."""
    yield from [] if number == "1" else [""]
    yield from map(_bold, fold_cell(head, width)) if color and width else [head]


def common_folder(names: Sequence[str]) -> str:
    """Return the folder that all names are below, with its slash; "" if there is none.

    >>> common_folder(["a/b/c", "a/bd"]), common_folder(["a", "b"])
    ('a/', '')
    """
    folder = commonprefix(names).rpartition("/")[0]  # noqa: RUF071
    return f"{folder}/" if folder else ""


def _lines(row: Row, widths: Sequence[int], numbers: Sequence[bool], gap: int) -> Iterator[str]:
    """Yield a row as lines, in which longer cells are folded."""
    folded = map(fold_cell, row, widths)
    for cells in zip_longest(*folded, fillvalue=""):
        blanks = [" " * (width - _size(cell)) for cell, width in zip(cells, widths, strict=True)]
        aligned = (
            blank + cell if number else cell + blank
            for cell, blank, number in zip(cells, blanks, numbers, strict=True)
        )
        yield (" " * gap).join(aligned).rstrip()


def fold_cell(text: str, width: int | None) -> list[str]:
    """Return text as lines of at most `width` cells, broken between words if that can be.

    width : None for lines as long as need be.

    >>> fold_cell("a name with blanks", 10), fold_cell("folder/name", 6)
    (['a name', 'with', 'blanks'], ['folder', '/name'])
    """
    if "\n" in text or width is None or _size(text) <= width:
        return text.split("\n")
    from rich.console import Console
    from rich.text import Text

    lines = Text(text).wrap(Console(), width, overflow="fold")
    return [line.plain.rstrip() for line in lines]


def _rows_as_columns(heads: Row, rows: Sequence[Row], width: int, *, color: bool) -> Iterator[str]:
    """Yield rows as columns beside each other, as many as there is room for; then the next ones."""
    names = max(map(len, heads))
    start = 0
    while start < len(rows):
        room, end, sizes = width - (names or -_NARROW), start, [names]
        while end < len(rows):
            size = max(map(_size, rows[end]))
            room -= _NARROW + size
            if room < 0 and end > start:
                break
            sizes.append(size + min(room, 0))
            end += 1
        if start:
            yield ""
        first = 0 if names else 1
        numbers = [False] + [end - start > 1] * (end - start)
        for cells in zip(heads, *rows[start:end], strict=True):
            for line in _lines(cells[first:], sizes[first:], numbers[first:], _NARROW):
                name = line[:names].rstrip()
                yield _bold(name) + line[len(name) :] if color else line
        start = end


def _size(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if text else ""
