"""A comparison by lines as lines for a terminal or a pipe: line numbers, hunks, marked words."""

from collections.abc import Iterator
from itertools import groupby, zip_longest

from rich.text import Text

from lshdup.base.frozen import dataclass
from lshdup.base.messages import count_of, printable
from lshdup.views.changes import ADDED, ALIKE, MOVED_AWAY, MOVED_HERE, REMOVED, Change, split_hunks
from lshdup.views.line_diff import Span, find_line_changes, mark_pieces, split_lines
from lshdup.views.terminal import MARKS, STYLES, Layout, fold_line, to_ansi

#: Lines to show around a difference.
LINES = 3

_SIGNS = {ALIKE: " ", REMOVED: "-", ADDED: "+", MOVED_AWAY: "~", MOVED_HERE: "~"}


@dataclass(frozen=True)
class _Line:
    """A line of one of the texts: its number from 1, its kind of change, and its marked text."""

    number: int
    kind: str
    text: Text


def render_lines(text_a: bytes, text_b: bytes, layout: Layout) -> Iterator[str]:
    """Yield the lines in which two texts differ, with `layout.context` lines around them."""
    a, b = split_lines(text_a), split_lines(text_b)
    digits = len(str(max(len(a), len(b))))
    lay_out = _lay_out_beside if layout.side_by_side else _lay_out_below
    for hunk in split_hunks(find_line_changes(a, b), layout.context):
        if isinstance(hunk, int):
            lines = iter([Text(f"… {count_of(hunk, 'line')} alike …", "dim")])
        else:
            lines = lay_out(_pair_lines(a, b, hunk, layout), digits, layout)
        for line in lines:
            line.rstrip()
            yield to_ansi(line) if layout.color else line.plain


def _pair_lines(
    a: list[str], b: list[str], hunk: list[Change], layout: Layout
) -> Iterator[tuple[list[_Line], list[_Line]]]:
    """Yield the lines of both texts, alternately alike and changed."""
    for is_alike, changes in groupby(hunk, lambda change: change.kind == ALIKE):
        kinds_a: dict[int, str] = {}
        kinds_b: dict[int, str] = {}
        for kind, start, end, b_start, b_end in changes:
            kinds_a |= dict.fromkeys(range(start, end), kind)
            kinds_b |= dict.fromkeys(range(b_start, b_end), kind)
        removed = [at for at, kind in kinds_a.items() if kind == REMOVED]
        added = [at for at, kind in kinds_b.items() if kind == ADDED]
        marks_a: dict[int, list[Span]] = {}
        marks_b: dict[int, list[Span]] = {}
        if removed and added and not is_alike:
            spans = mark_pieces([a[at] for at in removed], [b[at] for at in added])
            marks_a, marks_b = (
                dict(zip(removed, spans[0], strict=True)),
                dict(zip(added, spans[1], strict=True)),
            )
        yield (
            [_Line(at + 1, kind, _mark(a[at], kind, marks_a.get(at), layout))
             for at, kind in kinds_a.items()],
            [_Line(at + 1, kind, _mark(b[at], kind, marks_b.get(at), layout))
             for at, kind in kinds_b.items()],
        )  # fmt: skip


def _mark(line: str, kind: str, spans: list[Span] | None, layout: Layout) -> Text:
    """Return a line whose changed words have a mark, or with colours a background."""
    style = STYLES.get(kind, "")
    text = Text(style=style)
    at = 0
    opening, closing = ("", "") if layout.color else MARKS.get(kind, ("", ""))
    for start, end in spans or ():
        text.append(_readable(line[at:start]))
        text.append(f"{opening}{_readable(line[start:end])}{closing}", f"{style} reverse")
        at = end
    return text.append(_readable(line[at:]))


def _readable(text: str) -> str:
    return printable(text.replace("\t", "    "))


def _lay_out_below(
    pairs: Iterator[tuple[list[_Line], list[_Line]]], digits: int, layout: Layout
) -> Iterator[Text]:
    """Yield the lines of A, then those of B; of lines that are alike, those of A."""
    blank = " " * digits
    for of_a, of_b in pairs:
        if of_a and of_a[0].kind == ALIKE:
            rows = [(f"{left.number:>{digits}} {right.number:>{digits}}", left)
                    for left, right in zip(of_a, of_b, strict=True)]  # fmt: skip
        else:
            rows = [(f"{line.number:>{digits}} {blank}", line) for line in of_a]
            rows += [(f"{blank} {line.number:>{digits}}", line) for line in of_b]
        for numbers, line in rows:
            yield from _number(numbers, line, layout.width)


def _lay_out_beside(
    pairs: Iterator[tuple[list[_Line], list[_Line]]], digits: int, layout: Layout
) -> Iterator[Text]:
    """Yield the lines of both texts beside each other."""
    pane = max(digits + 10, ((layout.width or 160) - 3) // 2)
    for rows in pairs:
        for sides in zip_longest(*rows):
            folded = ([] if side is None else _number(f"{side.number:>{digits}}", side, pane)
                      for side in sides)  # fmt: skip
            for left, right in zip_longest(*folded, fillvalue=Text()):
                space = Text(" " * (pane - left.cell_len + 1))
                yield Text.assemble(left, space, ("│", "dim"), " ", right)


def _number(numbers: str, line: _Line, width: int | None) -> Iterator[Text]:
    """Yield a line with its numbers and sign, folded behind them."""
    start = Text.assemble(
        (f"{numbers} ", "dim"), (f"{_SIGNS[line.kind]} ", STYLES.get(line.kind, ""))
    )
    room = max(10, width - start.cell_len) if width else None
    for at, part in enumerate(fold_line(line.text, room)):
        yield Text.assemble(Text(" " * start.cell_len) if at else start, part)
