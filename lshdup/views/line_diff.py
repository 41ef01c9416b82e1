"""Differences of two texts by lines, and of the words and marks inside changed lines.

Lines are those of the texts as they are written: case, punctuation and indentation count.
"""

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lshdup.shingling.inspection import LocatedText
from lshdup.views.changes import ALIKE, Change, find_changes

#: Lines in a passage that holds two texts together, and in a passage that is reported as moved.
_PASSAGE, _MOVED = 3, 4

#: Bytes of the line that a byte is in, on average, up to which a text is read line by line. More
#: has prose with a paragraph a line.
_LINE = 150

#: Words, white space, and all other characters one by one: what is marked in a changed line. A
#: word ends between characters of scripts without spaces.
_PIECES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|"
                     r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+|"
                     r"[^\S\n]+|\n|[^\w\s]")  # fmt: skip

#: A changed line of which less than this share is alike is marked as a whole.
_ALIKE = 0.25

#: Start and end of marked characters in a line.
Span = tuple[int, int]


def split_lines(text: bytes) -> list[str]:
    """Return the lines of a text without their ends, of Windows too; text is valid UTF-8."""
    lines = text.decode("utf-8").replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def find_line_changes(a: list[str], b: list[str]) -> list[Change]:
    """Return how to get the lines b from the lines a, in the order of both.

    Cost: n log n in the number of lines, and one pass over the text.
    """
    known: dict[str, int] = {}
    return find_changes(_number(a, known), _number(b, known), _PASSAGE, _MOVED, least=1)


def mark_pieces(removed: list[str], added: list[str]) -> tuple[list[list[Span]], list[list[Span]]]:
    """Return for each removed line, and for each added line, the spans that differ.

    A line that has little in common with the other side has no spans: all of it differs.
    """
    found = [_PIECES.findall("\n".join(lines)) for lines in (removed, added)]
    known: dict[str, int] = {}
    a, b = (_number(pieces, known) for pieces in found)
    changes = find_changes(a, b, _PASSAGE, len(a) + 1, least=1)
    differs = np.ones(len(a), bool), np.ones(len(b), bool)
    for kind, start, end, b_start, b_end in changes:
        if kind == ALIKE:
            differs[0][start:end] = differs[1][b_start:b_end] = False
    return _find_spans(found[0], differs[0].tolist()), _find_spans(found[1], differs[1].tolist())


def have_same_lines(a: LocatedText, b: LocatedText, changes: list[Change]) -> bool:
    """Return whether two texts are best compared by lines.

    So it is if both have lines of a usual length, and lines mostly end at the same words: program
    text and tables, but not prose that was wrapped anew.

    changes : of the tokens, as of `find_changes`.
    """
    for each in (a, b):
        sizes = np.array([len(line) for line in each.text.rstrip().split(b"\n")])
        if len(sizes) < 2 or (sizes**2).sum() > _LINE * sizes.sum():
            return False
    begins_a, begins_b = _find_beginnings(a), _find_beginnings(b)
    both = either = 0
    for kind, start, end, b_start, b_end in changes:
        if kind == ALIKE:
            left, right = begins_a[start:end], begins_b[b_start:b_end]
            both += int((left & right).sum())
            either += int((left | right).sum())
    return 2 * both >= either


def _find_beginnings(located: LocatedText) -> NDArray[np.bool_]:
    """Return which tokens are the first of a line; the first of the text is not counted."""
    ends = np.flatnonzero(np.frombuffer(located.text, np.uint8) == ord("\n"))
    lines = np.searchsorted(ends, located.starts)
    return np.diff(lines, prepend=lines[:1]) > 0


def _number(pieces: Iterable[str], known: dict[str, int]) -> NDArray[np.uint64]:
    """Return a number for each piece, equal where pieces are."""
    return np.array([known.setdefault(each, len(known)) for each in pieces], np.uint64)


def _find_spans(pieces: list[str], differs: list[bool]) -> list[list[Span]]:
    """Return the spans of each line that differ, joined where they touch."""
    marks: list[list[Span]] = []
    at = alike = total = 0
    spans: list[Span] = []
    for piece, flag in zip([*pieces, "\n"], [*differs, False], strict=True):
        if piece == "\n":
            marks.append(spans if alike >= _ALIKE * total else [])
            at = alike = total = 0
            spans = []
            continue
        size = len(piece)
        if flag and spans and spans[-1][1] == at:
            spans[-1] = spans[-1][0], at + size
        elif flag:
            spans.append((at, at + size))
        at += size
        visible = 0 if piece.isspace() else size
        total += visible
        alike += 0 if flag else visible
    return marks
