"""A comparison as lines of text for a terminal or a pipe: inline, or side by side.

Long stretches that are alike are folded; changes have colours or marks. Characters of the documents
that could do something to a terminal are escaped by `printable`.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from lshdup.base.frozen import dataclass
from lshdup.base.messages import count_of, printable
from lshdup.views.changes import ADDED, ALIKE, MOVED_AWAY, MOVED_HERE, REMOVED, Change, split_hunks
from lshdup.views.comparison import Comparison, extract_passage

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

NOUNS = {"word": "word", "symbols": "token", "char": "character", "terms": "term", "ids": "id"}
#: Differences that are in no token, where they are not just those of case and layout.
UNSEEN = {"word": "case, punctuation or layout", "terms": "case, punctuation or layout"}
CONTEXT = {"word": 12, "symbols": 20, "char": 60, "terms": 12, "ids": 3}

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
    context : tokens that stay around a change.
    noun : the word for a token.
    """

    side_by_side: bool = False
    width: int | None = None
    color: bool = False
    context: int = 12
    noun: str = "word"


def summarize(comparison: Comparison, noun: str) -> str:
    """Return in one line how many tokens are alike, removed, added, and moved."""
    counts = comparison.counts
    moved = counts.get(MOVED_HERE, 0)
    parts = [f"{count_of(counts.get(ALIKE, 0), noun)} alike"]
    parts += [f"{counts[kind]:,} {kind}" for kind in (REMOVED, ADDED) if kind in counts]
    return ", ".join(parts + ([f"{moved:,} moved"] if moved else []))


def render(comparison: Comparison, layout: Layout) -> Iterator[str]:
    """Yield the lines of the two texts, with what is removed, added and moved."""
    for hunk in split_hunks(comparison.changes, layout.context):
        if isinstance(hunk, int):
            folded = (f"… {count_of(hunk, layout.noun)} alike …", "dim")
            lines: Iterable[Text] = [Text.assemble(folded)]
        elif layout.side_by_side:
            lines = _pair_lines(comparison, hunk, layout)
        else:
            flow = chain.from_iterable(_find_fragments(comparison, each, layout) for each in hunk)
            lines = _wrap(flow, layout.width)
        for line in lines:
            yield to_ansi(line) if layout.color else line.plain


def to_ansi(line: Text) -> str:
    """Return a line with the escapes of its colours."""
    return "".join(
        style.render(text, color_system=ColorSystem.STANDARD) if style else text
        for text, style, _ in Segment.simplify(line.render(_CONSOLE))
    )


def _pair_lines(comparison: Comparison, hunk: list[Change], layout: Layout) -> Iterator[Text]:
    """Yield lines with both texts side by side.

    Both begin a line together wherever one text has got a line ahead of the other.
    """
    pane = max(10, ((layout.width or WIDE) - 3) // 2)
    rows: list[tuple[list[Fragment], list[Fragment]]] = [([], [])]
    ahead = 0
    for change in hunk:
        if change.kind == ALIKE and abs(ahead) > pane and any(rows[-1]):
            rows.append(([], []))
            ahead = 0
        for of_b, side, sign in ((False, rows[-1][0], 1), (True, rows[-1][1], -1)):
            if change.kind not in ((REMOVED, MOVED_AWAY) if of_b else (ADDED, MOVED_HERE)):
                fragments = list(_find_fragments(comparison, change, layout, of_b=of_b))
                side += fragments
                ahead += sign * sum(cell_len(text) for _, text in fragments)
    for row in rows:
        for left, right in zip_longest(*(_wrap(side, pane) for side in row), fillvalue=Text()):
            space = Text(" " * (pane - left.cell_len + 1))
            line = Text.assemble(left, space, ("│", "dim"), " ", right)
            line.rstrip()
            yield line


def _find_fragments(
    comparison: Comparison, change: Change, layout: Layout, *, of_b: bool = False
) -> Iterator[Fragment]:
    """Yield the text of a change: words, _BLANK, and _BREAK for a blank line of the text."""
    if of_b or change.kind in (ADDED, MOVED_HERE):
        located, start, end = comparison.b, change.b_start, change.b_end
    else:
        located, start, end = comparison.a, change.a_start, change.a_end
    text = extract_passage(located, start, end)
    if end == len(located.starts):
        text += "\n"  # The next change has the text of the other document.
    kind = change.kind
    opening, closing = ("", "") if layout.color else MARKS.get(kind, ("", ""))
    parts = _SPACE.split(text)  # Alternately text and white space, beginning and ending with text.
    words = [i for i in range(0, len(parts), 2) if parts[i]]
    if not words:
        if text and kind != ALIKE:
            yield kind, f"{opening}␣{closing}"
        elif text:
            yield _BLANK
        return
    for i, part in enumerate(parts):
        if i % 2:
            yield _BREAK if part.count("\n") > 1 else _BLANK
        elif part:
            word = printable(part if len(part) <= _LONGEST else _shorten(part))
            start_mark, end_mark = (
                opening if i == words[0] else "",
                closing if i == words[-1] else "",
            )
            yield kind, f"{start_mark}{word}{end_mark}"


def _shorten(part: str) -> str:
    half = _LONGEST // 2
    return f"{part[:half]}…({len(part) - 2 * half:,} characters)…{part[-half:]}"


def _wrap(fragments: Iterable[Fragment], width: int | None) -> Iterator[Text]:
    """Yield lines of at most `width` cells; a longer word is broken wherever the line ends."""
    for paragraph in _join(fragments):
        for line in fold_line(paragraph, width):
            line.rstrip()
            if line:  # The blank behind a broken word may stand on the next line, even alone.
                yield line[1:] if line.plain.startswith(" ") else line


def fold_line(line: Text, width: int | None) -> Iterable[Text]:
    """Return a line as lines of at most `width` cells, broken between words if that can be."""
    return line.wrap(_CONSOLE, width, overflow="fold") if width and line else [line]


def _join(fragments: Iterable[Fragment]) -> Iterator[Text]:
    """Yield the text of each paragraph, with one blank between words.

    A blank has the style of the words before and behind it if that is the same.
    """
    paragraph, last, blank = Text(), "", False
    for fragment in chain(fragments, [_BREAK]):
        kind, text = fragment
        if kind:
            if blank and paragraph:
                paragraph.append(" ", STYLES.get(kind) if kind == last else None)
            paragraph.append(text, STYLES.get(kind))
            last, blank = kind, False
        elif fragment == _BLANK:
            blank = True
        elif paragraph:
            yield paragraph
            paragraph, blank = Text(), False
