"""Two texts as lines for a terminal or a pipe: by words, in one text or in two beside each other;
or by lines, with their numbers, below or beside each other.

Long stretches that are alike are folded; changes have colours or marks. Where two texts are shown
by what they share, alike passages have the marks, and what is not near them is left out. Characters
of the documents that could do something to a terminal are escaped by `printable`.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, zip_longest

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from lshdup.base.frozen import dataclass
from lshdup.base.wording import count_of, printable
from lshdup.shingling.inspection import LocatedText
from lshdup.views.changes import ADDED, ALIKE, MOVED_AWAY, MOVED_HERE, REMOVED, Change
from lshdup.views.comparison import (
    Alignment,
    SharedTexts,
    Span,
    count_tokens,
    describe_places,
    extract_line,
    extract_passage,
    mark_pieces,
)

#: Terminals from this width on have room for two texts side by side.
WIDE = 120

#: The marks of each kind of change, which are those of wdiff, and its colour.
MARKS = {
    REMOVED: ("[-", "-]"),
    ADDED: ("{+", "+}"),
    MOVED_AWAY: ("[~", "~]"),
    MOVED_HERE: ("{~", "~}"),
}
STYLES = {REMOVED: "red", ADDED: "green", MOVED_AWAY: "magenta", MOVED_HERE: "cyan"}
#: The marks and colours where alike is marked, and what differs is dimmed.
SHARED_MARKS = {ALIKE: ("[=", "=]"), MOVED_AWAY: ("[~", "~]"), MOVED_HERE: ("{~", "~}")}
SHARED_STYLES = STYLES | {ALIKE: "green", REMOVED: "dim", ADDED: "dim"}
_SIGNS = {ALIKE: " ", REMOVED: "-", ADDED: "+", MOVED_AWAY: "~", MOVED_HERE: "~"}

NOUNS = {"word": "word", "symbols": "token", "char": "character", "terms": "term", "ids": "id"}
#: Differences that are in no token, where they are not just those of case and layout.
UNSEEN = {"word": "case, punctuation or layout", "terms": "case, punctuation or layout"}
#: Tokens to show around a difference, and lines.
CONTEXT = {"word": 12, "symbols": 20, "char": 60, "terms": 12, "ids": 3}
LINES = 3

#: A run of more characters without a blank is shown by its beginning and its end.
_LONGEST = 2000

_SPACE = re.compile(r"(\s+)")

#: Text without white space, and the kind of change it belongs to; or one of the two below.
Fragment = tuple[str, str]
_BLANK, _BREAK = ("", " "), ("", "\n")

#: Text.wrap and Text.render take a console, of which they use no property.
_CONSOLE = Console()


@dataclass(frozen=True)
class Layout:
    """The form of the lines.

    side_by_side : two columns instead of one text.
    width : cells of a line; None: lines are not broken.
    color : colours instead of marks.
    context : tokens, or lines, that stay around a change.
    noun : the word for a token, or "line".
    shared : whether the texts are shown by what they share.
    """

    side_by_side: bool = False
    width: int | None = None
    color: bool = False
    context: int = 12
    noun: str = "word"
    shared: bool = False

    @property
    def pane(self) -> int:
        """The cells of a line of one of two columns."""
        return max(10, ((self.width or WIDE) - 3) // 2)

    def marks(self, kind: str) -> tuple[str, str]:
        """Return what opens and what closes a text of a kind of change."""
        every = SHARED_MARKS if self.shared else MARKS
        return ("", "") if self.color else every.get(kind, ("", ""))

    def style(self, kind: str) -> str:
        """Return the colour of a kind of change."""
        return (SHARED_STYLES if self.shared else STYLES).get(kind, "")


@dataclass(frozen=True)
class _Line:
    """A line of one of the texts: its number from 1, its kind of change, and its marked text."""

    number: int
    kind: str
    text: Text


def summarize(texts: Alignment, noun: str) -> str:
    """Return in one line how many tokens are alike, removed, added, and moved; or shared."""
    if isinstance(texts, SharedTexts):
        of_a, of_b = (
            f"{int(shared.sum()):,} of {count_of(len(shared), noun)}"
            for shared in (texts.in_a, texts.in_b)
        )
        return f"{of_a} of A, {of_b} of B are in common passages"
    counts = {kind: count_tokens(texts.changes, kind) for kind in (REMOVED, ADDED, MOVED_HERE)}
    parts = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    alike = f"{count_of(count_tokens(texts.changes), noun)} alike"
    return ", ".join([alike, *parts]).replace(MOVED_HERE, "moved")


def render(texts: Alignment, layout: Layout) -> Iterator[str]:
    """Yield the lines of two texts, with what is removed, added and moved.

    texts : by their lines if that is the noun of the layout, else by their tokens.
    """
    lay_out = _lay_out_lines if layout.noun == "line" else _lay_out_tokens
    for number, hunk in enumerate(texts.hunks(layout.context)):
        if isinstance(hunk, int):
            folded = f"… {count_of(hunk, layout.noun)} alike …"
            style = "dim" if lay_out is _lay_out_tokens else ""
            yield from paint(Text.assemble((folded, style)), layout)
            continue
        if layout.shared:
            places = describe_places(texts, hunk, layout.noun)
            yield from [""] * (number > 0)
            yield from paint(Text(places, "bold"), layout, layout.width)
        for line in lay_out(texts, hunk, layout):
            yield from paint(line, layout)


def paint(line: Text, layout: Layout, width: int | None = None) -> Iterator[str]:
    """Yield a line as it is printed, folded to `width` cells."""
    for part in fold_line(line, width):
        part.rstrip()
        yield to_ansi(part) if layout.color else part.plain


def mark(text: str, kind: str, layout: Layout) -> Text:
    """Return a text of a kind of change, marked; an empty one has marks in colour, too."""
    opening, closing = layout.marks(kind) if text else MARKS[kind]
    return Text(f"{opening}{printable(text)}{closing}", STYLES[kind])


def to_ansi(line: Text) -> str:
    """Return a line with the escapes of its colours."""
    return "".join(
        style.render(text, color_system=ColorSystem.STANDARD) if style else text
        for text, style, _ in Segment.simplify(line.render(_CONSOLE))
    )


def fold_line(line: Text, width: int | None) -> Iterable[Text]:
    """Return a line as lines of at most `width` cells, broken between words if that can be."""
    return line.wrap(_CONSOLE, width, overflow="fold") if width and line else [line]


def _beside(left: Iterable[Text], right: Iterable[Text], pane: int) -> Iterator[Text]:
    """Yield lines beside each other."""
    for one, other in zip_longest(left, right, fillvalue=Text()):
        yield Text.assemble(one, " " * (pane - one.cell_len + 1), ("│", "dim"), " ", other)


# --- by tokens ------------------------------------------------------------------------------------


def _lay_out_tokens(texts: Alignment, hunk: list[Change], layout: Layout) -> Iterator[Text]:
    """Yield the lines of a hunk in one text, or of both texts beside each other.

    Both texts begin a line together wherever one of them has got a line ahead of the other.
    """
    if not layout.side_by_side:
        # What is shared is one text, in the words of A.
        changes = [each for each in hunk if not layout.shared or each.a_start < each.a_end]
        flow = chain.from_iterable(_find_fragments(texts, each, layout) for each in changes)
        yield from _wrap(flow, layout, layout.width)
        return
    pane = layout.pane
    rows: list[tuple[list[Fragment], list[Fragment]]] = [([], [])]
    ahead = 0
    for change in hunk:
        if change.kind == ALIKE and abs(ahead) > pane and any(rows[-1]):
            rows.append(([], []))
            ahead = 0
        for of_b, side, sign in ((False, rows[-1][0], 1), (True, rows[-1][1], -1)):
            if change.kind not in ((REMOVED, MOVED_AWAY) if of_b else (ADDED, MOVED_HERE)):
                fragments = list(_find_fragments(texts, change, layout, of_b=of_b))
                side += fragments
                ahead += sign * sum(cell_len(text) for _, text in fragments)
    for left, right in rows:
        yield from _beside(_wrap(left, layout, pane), _wrap(right, layout, pane), pane)


def _find_fragments(
    texts: Alignment, change: Change, layout: Layout, *, of_b: bool = False
) -> Iterator[Fragment]:
    """Yield the text of a change: words, _BLANK, and _BREAK for a blank line of the text."""
    kind = change.kind
    located, start, end = texts.side(change, of_b=of_b)
    text = extract_passage(located, start, end)
    if end == len(located.starts):
        text += "\n"  # The next change has the text of the other document.
    opening, closing = layout.marks(kind)
    parts = _SPACE.split(text)  # Alternately text and white space, beginning and ending with text.
    words = [i for i in range(0, len(parts), 2) if parts[i]]
    if not words:
        if text and layout.style(kind) not in ("", "dim"):
            yield kind, f"{opening}␣{closing}"
        elif text:
            yield _BLANK
        return
    for i, part in enumerate(parts):
        if i % 2:
            yield _BREAK if part.count("\n") > 1 else _BLANK
        elif part:
            word = printable(part if len(part) <= _LONGEST else _shorten(part))
            before = opening if i == words[0] else ""
            behind = closing if i == words[-1] else ""
            yield kind, f"{before}{word}{behind}"


def _shorten(part: str) -> str:
    half = _LONGEST // 2
    return f"{part[:half]}…({len(part) - 2 * half:,} characters)…{part[-half:]}"


def _wrap(fragments: Iterable[Fragment], layout: Layout, width: int | None) -> Iterator[Text]:
    """Yield lines of at most `width` cells; a longer word is broken wherever the line ends."""
    for paragraph in _join(fragments, layout):
        for line in fold_line(paragraph, width):
            line.rstrip()
            if line:  # The blank behind a broken word may stand on the next line, even alone.
                yield line[1:] if line.plain.startswith(" ") else line


def _join(fragments: Iterable[Fragment], layout: Layout) -> Iterator[Text]:
    """Yield the text of each paragraph, with one blank between words.

    A blank has the style of the words before and behind it if that is the same.
    """
    paragraph, last, blank = Text(), "", False
    for fragment in chain(fragments, [_BREAK]):
        kind, text = fragment
        if kind:
            if blank and paragraph:
                paragraph.append(" ", layout.style(kind) if kind == last else None)
            paragraph.append(text, layout.style(kind))
            last, blank = kind, False
        elif fragment == _BLANK:
            blank = True
        elif paragraph:
            yield paragraph
            paragraph, blank = Text(), False


# --- by lines -------------------------------------------------------------------------------------


def _lay_out_lines(texts: Alignment, hunk: list[Change], layout: Layout) -> Iterator[Text]:
    """Yield the lines of A, then those of B, or both beside each other; of lines that are alike
    below each other, those of A.
    """
    digits = len(str(max(len(texts.a.tokens), len(texts.b.tokens))))
    blank, pane = " " * digits, max(digits + 10, layout.pane)
    for is_alike, changes in groupby(hunk, lambda change: change.kind == ALIKE):
        of_a, of_b = _mark_lines(texts, list(changes), layout)
        if layout.side_by_side:
            for sides in zip_longest(of_a, of_b):
                left, right = (
                    _number(f"{line.number:>{digits}}", line, pane) if line else ()
                    for line in sides
                )
                yield from _beside(left, right, pane)
            continue
        if is_alike:
            both = zip(of_a, of_b, strict=True)
            rows = [(f"{one.number:>{digits}} {two.number:>{digits}}", one) for one, two in both]
        else:
            rows = [(f"{line.number:>{digits}} {blank}", line) for line in of_a]
            rows += [(f"{blank} {line.number:>{digits}}", line) for line in of_b]
        for numbers, line in rows:
            yield from _number(numbers, line, layout.width)


def _mark_lines(
    texts: Alignment, changes: list[Change], layout: Layout
) -> tuple[list[_Line], list[_Line]]:
    """Return the lines of both texts in changes that are all alike, or none."""
    of_a = [(each.kind, at) for each in changes for at in range(each.a_start, each.a_end)]
    of_b = [(each.kind, at) for each in changes for at in range(each.b_start, each.b_end)]
    removed = [extract_line(texts.a, at) for kind, at in of_a if kind == REMOVED]
    added = [extract_line(texts.b, at) for kind, at in of_b if kind == ADDED]
    spans_a, spans_b = mark_pieces(removed, added) if removed and added else ([], [])
    return (
        list(_style_lines(texts.a, of_a, iter(spans_a), layout)),
        list(_style_lines(texts.b, of_b, iter(spans_b), layout)),
    )


def _style_lines(
    text: LocatedText, lines: list[tuple[str, int]], spans: Iterator[list[Span]], layout: Layout
) -> Iterator[_Line]:
    """Yield lines. spans : the marks in each line that was removed or added."""
    for kind, at in lines:
        marks = next(spans, []) if kind in (REMOVED, ADDED) else []
        yield _Line(at + 1, kind, _mark(extract_line(text, at), kind, marks, layout))


def _mark(line: str, kind: str, spans: list[Span], layout: Layout) -> Text:
    """Return a line whose changed words have a mark, or with colours a background."""
    style = STYLES.get(kind, "")
    text = Text(style=style)
    at = 0
    opening, closing = layout.marks(kind)
    for start, end in spans:
        text.append(_readable(line[at:start]))
        text.append(f"{opening}{_readable(line[start:end])}{closing}", f"{style} reverse")
        at = end
    return text.append(_readable(line[at:]))


def _readable(text: str) -> str:
    return printable(text.replace("\t", "    "))


def _number(numbers: str, line: _Line, width: int | None) -> Iterator[Text]:
    """Yield a line with its numbers and sign, folded behind them."""
    start = Text.assemble(
        (f"{numbers} ", "dim"), (f"{_SIGNS[line.kind]} ", STYLES.get(line.kind, ""))
    )
    room = max(10, width - start.cell_len) if width else None
    for at, part in enumerate(fold_line(line.text, room)):
        yield Text.assemble(Text(" " * start.cell_len) if at else start, part)
