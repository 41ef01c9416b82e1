"""A listing as a table for people: as wide as the terminal and no wider, and no number is ever cut. Called by output.py.

What has no room side by side is folded: headings at their joints, names behind a slash. Where that is not enough, long names stand below
the numbers of their row; and where even the numbers are too many, rows become columns.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from lshdup.utils.messages import fitting_start

#: Blanks between columns: as many as there is room for.
_GAPS = (3, 2)
_LEAST_GAP = 1

#: Text of more cells than this may be folded, but not to fewer.
_LEAST = 20

#: Where a heading may be folded: behind these.
_JOINT = re.compile(r"(?<=_)|(?<= )")
#: Behind which characters names and words are folded, if one of them is in the second half of the line; rather the first ones.
_BREAKS = ("/ ", "-_")

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
    """Its lines. numbers : which columns hold numbers, which are right-aligned. width : cells of a line; None: as many as are wanted."""
    from rich.cells import cell_len

    wanted = [max(cell_len(row[at]) for row in rows) for at in range(len(columns))]
    whole = [[name] if header else [] for name in columns]
    folded = [
        _folded_heading(name, size) if header else []
        for name, size in zip(columns, wanted, strict=True)
    ]
    long = [not number and size > _LEAST for number, size in zip(numbers, wanted, strict=True)]
    for heads, gap in (
        *((whole, gap) for gap in _GAPS),
        *((folded, gap) for gap in (_GAPS[-1], _LEAST_GAP)),
    ):
        sizes = [
            max([size, *map(cell_len, head)]) for size, head in zip(wanted, heads, strict=True)
        ]
        fitting = _shared(sizes, long, width, gap)
        if fitting is not None and (gap != _GAPS[0] or fitting == sizes):
            yield from _grid(heads, rows, numbers, fitting, gap, color=color)
            return
    assert width is not None
    if any(long):
        for gap in _GAPS[1:]:
            sizes = [
                max([size, *map(cell_len, head)]) for size, head in zip(wanted, folded, strict=True)
            ]
            short = [at for at, is_long in enumerate(long) if not is_long]
            if short and sum(sizes[at] for at in short) + gap * (len(short) - 1) <= width:
                yield from _hanging(folded, rows, numbers, sizes, long, gap, width, color=color)
                return
    yield from _turned(columns, rows, width, color=color, header=header)


def folded(text: str, width: int) -> list[str]:
    """Text in lines of at most `width` cells, broken behind a slash or the like where there is one.

    >>> folded("corpus/licences/BSD-3-Clause.txt", 20)
    ['corpus/licences/', 'BSD-3-Clause.txt']
    """
    from rich.cells import cell_len

    lines, at = [], 0
    while (
        len(text) - at > 2 * width or cell_len(text[at:]) > width
    ):  # a text may be long: nothing looks at all of it more than once
        start = fitting_start(text[at : at + width], width) or text[at]
        joints = (max(start.rfind(each) for each in some) + 1 for some in _BREAKS)
        cut = next((joint for joint in joints if joint > len(start) // 2), len(start))
        lines.append(start[:cut].rstrip())
        at += cut
    return [*lines, text[at:]]


def _folded_heading(name: str, size: int) -> list[str]:
    """A heading in as few lines as its column is wide for: its parts, together where they fit."""
    parts = [part for part in _JOINT.split(name) if part]
    room = max([size, *(len(part.rstrip()) for part in parts)])
    lines = [""]
    for part in parts:
        if lines[-1] and len((lines[-1] + part).rstrip()) > room:
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]


def _shared(
    sizes: Sequence[int], long: Sequence[bool], width: int | None, gap: int
) -> list[int] | None:
    """Widths that fit: what may be folded shares what the others leave, the smallest served first. None if that is too little."""
    if width is None:
        return list(sizes)
    room = (
        width
        - gap * (len(sizes) - 1)
        - sum(size for size, is_long in zip(sizes, long, strict=True) if not is_long)
    )
    found = list(sizes)
    left = sorted((at for at, is_long in enumerate(long) if is_long), key=lambda at: sizes[at])
    while left:
        at, share = left.pop(0), room // (len(left) + 1)
        found[at] = min(sizes[at], share)
        if found[at] < min(sizes[at], _LEAST):
            return None
        room -= found[at]
    return found if room >= 0 else None


def _grid(
    heads: Sequence[Row],
    rows: Sequence[Row],
    numbers: Sequence[bool],
    sizes: Sequence[int],
    gap: int,
    *,
    color: bool,
) -> Iterator[str]:
    if any(heads):
        yield from _headings(heads, numbers, sizes, gap, color=color)
        yield "─" * (sum(sizes) + gap * (len(sizes) - 1))
    for row in rows:
        yield from _lines(
            [folded(cell, size) for cell, size in zip(row, sizes, strict=True)], numbers, sizes, gap
        )


def _hanging(
    heads: Sequence[Row], rows: Sequence[Row], numbers: Sequence[bool], sizes: Sequence[int], long: Sequence[bool], gap: int, width: int,
    *, color: bool,
) -> Iterator[str]:  # fmt: skip
    """Long cells below the others of their row, each on a line of its own."""
    short = [at for at, is_long in enumerate(long) if not is_long]
    below = [at for at, is_long in enumerate(long) if is_long]
    some_numbers, some_sizes = [numbers[at] for at in short], [sizes[at] for at in short]
    if any(heads):
        yield from _headings(
            [heads[at] for at in short], some_numbers, some_sizes, gap, color=color
        )
        yield from (_bold(f"  {''.join(heads[at])}", color=color) for at in below)
        yield "─" * min(
            width, max(sum(some_sizes) + gap * (len(short) - 1), *(sizes[at] + 2 for at in below))
        )
    for row in rows:
        yield from _lines([[row[at]] for at in short], some_numbers, some_sizes, gap)
        yield from (
            f"  {line}" for at in below if row[at] for line in folded(row[at], max(1, width - 2))
        )


def _turned(
    columns: Row, rows: Sequence[Row], width: int, *, color: bool, header: bool
) -> Iterator[str]:
    """Rows as columns beside each other, as many as there is room for; then the next."""
    from rich.cells import cell_len

    gap = _GAPS[1]
    first = max(map(cell_len, columns)) if header else -gap
    start = 0
    while start < len(rows):
        sizes: list[int] = []
        while start + len(sizes) < len(rows):
            size = max(map(cell_len, rows[start + len(sizes)]))
            if sizes and first + sum(sizes) + size + gap * (len(sizes) + 1) > width:
                break
            sizes.append(max(1, min(size, width - first - gap)))
        if start:
            yield ""
        some = rows[start : start + len(sizes)]
        start += len(sizes)
        for at, name in enumerate(columns):
            cells = [folded(row[at], size) for row, size in zip(some, sizes, strict=True)]
            for number, line in enumerate(_lines(cells, [len(some) > 1] * len(some), sizes, gap)):
                label = _bold(name if not number else "", color=color) + " " * (
                    first - cell_len(name if not number else "") + gap
                )
                yield f"{label}{line}".rstrip() if header else line


def _headings(
    heads: Sequence[Row], numbers: Sequence[bool], sizes: Sequence[int], gap: int, *, color: bool
) -> Iterator[str]:
    """Headings stand on the line below them."""
    most = max(map(len, heads))
    padded = [[*[""] * (most - len(head)), *head] for head in heads]
    yield from (_bold(line, color=color) for line in _lines(padded, numbers, sizes, gap))


def _lines(
    cells: Sequence[Row], numbers: Sequence[bool], sizes: Sequence[int], gap: int
) -> Iterator[str]:
    """The lines of one row, whose cells may have several."""
    from rich.cells import cell_len

    for parts in zip_longest(*cells, fillvalue=""):
        spaces = [" " * (size - cell_len(part)) for part, size in zip(parts, sizes, strict=True)]
        aligned = (
            space + part if number else part + space
            for part, space, number in zip(parts, spaces, numbers, strict=True)
        )
        yield (" " * gap).join(aligned).rstrip()


def _bold(text: str, *, color: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if color and text else text
