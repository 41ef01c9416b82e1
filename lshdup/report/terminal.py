"""A comparison as lines of text for people: inline or side by side, long stretches that are alike folded, with colours or with marks.

Whatever stands in the documents is shown by `console.shown`, so that it does nothing to a terminal. Called by `lshdup show`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest

from lshdup.report.comparison import Comparison
from lshdup.report.token_diff import ADDED, ALIKE, MOVED_AWAY, MOVED_HERE, REMOVED, Change
from lshdup.shingling.inspection import LocatedText
from lshdup.utils.messages import counted, fitting_start, shown

#: Terminals from this width on have room for two texts side by side.
WIDE = 120

#: How each kind of change is marked, as wdiff does, and its colour.
_MARKS = {
    REMOVED: ("[-", "-]"),
    ADDED: ("{+", "+}"),
    MOVED_AWAY: ("[~", "~]"),
    MOVED_HERE: ("{~", "~}"),
}
_COLORS = {REMOVED: "31", ADDED: "32", MOVED_AWAY: "35", MOVED_HERE: "36"}
_FAINT = "2"

NOUNS = {"word": "word", "char": "character", "terms": "term", "ids": "id"}
CONTEXT = {"word": 12, "char": 60, "terms": 12, "ids": 3}

#: Of what is changed or stays, a run without a blank of more characters is shown by its beginning and its end.
_LONGEST = 2000

_SPACE = re.compile(r"(\s+)")
_BLANKS = re.compile(rb"\s+")
_BLANK, _BREAK = ("", " "), ("", "\n")

#: A run of characters of one kind of change.
Fragment = tuple[str, str]


@dataclass(frozen=True)
class Layout:
    """How to print.

    side_by_side : two columns instead of one text. width : cells of a line; None: lines are not broken. color : instead of marks.
    context : tokens that stay around a change. noun : what a token is called.
    """

    side_by_side: bool = False
    width: int | None = None
    color: bool = False
    context: int = 12
    noun: str = "word"


def summary(comparison: Comparison, noun: str) -> str:
    """How many tokens are alike, removed, added, and moved, in one line."""
    counts = comparison.counts
    moved = counts.get(MOVED_HERE, 0)
    parts = [f"{counted(counts.get(ALIKE, 0), noun)} alike"]
    parts += [f"{counts[kind]:,} {kind}" for kind in (REMOVED, ADDED) if kind in counts]
    return ", ".join(parts + ([f"{moved:,} moved"] if moved else []))


def rendered(comparison: Comparison, layout: Layout) -> Iterator[str]:
    """The lines of the two texts, with what is removed, added and moved."""
    for hunk in hunks(comparison.changes, layout.context):
        if isinstance(hunk, int):
            yield _painted(_FAINT, f"… {counted(hunk, layout.noun)} alike …", layout)
        elif layout.side_by_side:
            yield from _columns(comparison, hunk, layout)
        else:
            flow = chain.from_iterable(_flow(comparison, change, layout) for change in hunk)
            yield from (_line(line, layout) for line in _wrapped(flow, layout.width))


def hunks(changes: list[Change], context: int) -> Iterator[list[Change] | int]:
    """Changes with what stands around them; between them how many tokens were folded."""
    hunk: list[Change] = []
    for i, change in enumerate(changes):
        before = 0 if i == 0 else context
        after = 0 if i == len(changes) - 1 else context
        size = change.tokens
        # To fold a few words would take as much room as they do.
        if change.kind != ALIKE or size <= before + after + context:
            hunk.append(change)
            continue
        if before:
            hunk.append(
                Change(
                    ALIKE,
                    change.a_start,
                    change.a_start + before,
                    change.b_start,
                    change.b_start + before,
                )
            )
        if hunk:
            yield hunk
        yield size - before - after
        hunk = (
            [Change(ALIKE, change.a_end - after, change.a_end, change.b_end - after, change.b_end)]
            if after
            else []
        )
    if hunk:
        yield hunk


def _columns(comparison: Comparison, hunk: list[Change], layout: Layout) -> Iterator[str]:
    """Both texts beside each other; they begin a line together wherever one has got a line ahead of the other."""
    from rich.cells import cell_len

    pane = max(10, ((layout.width or WIDE) - 3) // 2)
    rows: list[tuple[list[Fragment], list[Fragment]]] = [([], [])]
    ahead = 0
    for change in hunk:
        if change.kind == ALIKE and abs(ahead) > pane and any(rows[-1]):
            rows.append(([], []))
            ahead = 0
        left, right = rows[-1]
        if change.kind != ADDED and change.kind != MOVED_HERE:
            new = list(_flow(comparison, change, layout))
            left += new
            ahead += sum(cell_len(text) for _, text in new)
        if change.kind != REMOVED and change.kind != MOVED_AWAY:
            new = list(_flow(comparison, change, layout, of_b=True))
            right += new
            ahead -= sum(cell_len(text) for _, text in new)
    bar = _painted(_FAINT, "│", layout)
    for left, right in rows:
        nothing: list[Fragment] = []
        for one, other in zip_longest(
            _wrapped(iter(left), pane), _wrapped(iter(right), pane), fillvalue=nothing
        ):
            space = " " * (pane - sum(cell_len(text) for _, text in one))
            yield f"{_line(one, layout)}{space} {bar} {_line(other, layout)}".rstrip()


def passage(located: LocatedText, start: int, end: int) -> str:
    """The text of tokens start … end - 1, with what stands around them: opening marks before, closing marks and white space behind."""
    return (
        located.text[_border(located, start) : _border(located, end)].decode("utf-8")
        if start < end
        else ""
    )


def _border(located: LocatedText, token: int) -> int:
    """Where the text of a token begins: behind the first white space between it and the one before."""
    if token == 0:
        return 0
    if token == len(located.starts):
        return len(located.text)
    end, start = int(located.ends[token - 1]), int(located.starts[token])
    space = _BLANKS.search(located.text, end, max(end, start))
    return space.end() if space else max(end, start)


def _flow(
    comparison: Comparison, change: Change, layout: Layout, *, of_b: bool = False
) -> Iterator[Fragment]:
    """The text of a change as fragments without white space, _BLANK and _BREAK (a blank line of the text)."""
    if of_b or change.kind in (ADDED, MOVED_HERE):
        located, start, end = comparison.b, change.b_start, change.b_end
    else:
        located, start, end = comparison.a, change.a_start, change.a_end
    text = passage(located, start, end)
    if end == len(located.starts):
        text += "\n"  # what follows is of the other text
    kind = change.kind
    opening, closing = ("", "") if layout.color else _MARKS.get(kind, ("", ""))
    parts = _SPACE.split(text)  # text, white space, text, …, text
    if not any(parts[::2]):
        if text and kind != ALIKE:
            yield kind, f"{opening}␣{closing}"
        elif text:
            yield _BLANK
        return
    last = max(i for i in range(0, len(parts), 2) if parts[i])
    first = min(i for i in range(0, len(parts), 2) if parts[i])
    for i, part in enumerate(parts):
        if i % 2:
            yield _BREAK if part.count("\n") > 1 else _BLANK
        elif part:
            word = shown(part if len(part) <= _LONGEST else _cut(part))
            yield kind, f"{opening if i == first else ''}{word}{closing if i == last else ''}"


def _cut(part: str) -> str:
    half = _LONGEST // 2
    return f"{part[:half]}…({len(part) - 2 * half:,} characters)…{part[-half:]}"


def _wrapped(flow: Iterator[Fragment], width: int | None) -> Iterator[list[Fragment]]:
    """Lines of at most `width` cells; what is longer without a blank is broken wherever the line ends."""
    from rich.cells import cell_len

    line: list[Fragment] = []
    word: list[Fragment] = []
    used = 0  # cells of the line without the word
    for fragment in chain(flow, [_BREAK]):
        if fragment[0]:
            word.append(fragment)
            continue
        if word:
            size = sum(cell_len(text) for _, text in word)
            if width is not None and used and used + 1 + size > width:
                yield line
                line, used = [], 0
            if used:
                line.append(_BLANK)
                used += 1
            for kind, text in word:
                while width is not None and used + cell_len(text) > width:
                    head = fitting_start(text, width - used)
                    if not head and not line:
                        head = text[0]
                    yield [*line, (kind, head)] if head else line
                    line, used, text = [], 0, text[len(head) :]
                if text:
                    line.append((kind, text))
                    used += cell_len(text)
            word = []
        if fragment == _BREAK and line:
            yield line
            line, used = [], 0


def _line(fragments: list[Fragment], layout: Layout) -> str:
    """A line as it is printed: runs of one kind in one colour, the blanks in them too."""
    if not layout.color:
        return "".join(text for _, text in fragments)
    out: list[str] = []
    i = 0
    while i < len(fragments):
        kind = fragments[i][0]
        j = i + 1
        while j < len(fragments) and (
            fragments[j][0] == kind
            or (fragments[j] == _BLANK and fragments[j + 1 : j + 2] and fragments[j + 1][0] == kind)
        ):
            j += 1
        out.append(
            _painted(_COLORS.get(kind, ""), "".join(text for _, text in fragments[i:j]), layout)
        )
        i = j
    return "".join(out)


def _painted(code: str, text: str, layout: Layout) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if layout.color and code else text
