"""The normal form of a text: NFKC, then case folding (DESIGN 4), for texts whose form is not that of each character alone.

Python's `unicodedata` does the work, in pieces: its time grows with the square of a run of combining marks, and its memory is many times
that of the text. Called by shingles.py.
"""

import functools
import re
import unicodedata

import numpy as np

from lshdup.params import ShingleParams
from lshdup.shingling.char_table import characters_of, composing, peculiar

#: So many marks in a row come from no language (the Stream-Safe Text Format of UAX #15 allows 30); they are too long for `unicodedata`.
_FLOOD, _STEP = 64, 8

#: Characters that are normalised at a time.
_PIECE = 1 << 20

#: A normal form may be twice as long as the text, or this long: U+FDFA alone grows elevenfold, which no text does.
_ALWAYS_FITS = 64 << 20


def normal_form(text: bytes, params: ShingleParams) -> bytes | None:
    """The normal form of valid UTF-8, as UTF-8; None if it is more than twice as long as the text, and more than 64 MB.

    Cost: linear in the text. Memory: the text as Python has it, 1 to 4 bytes a character, and the normal form.
    """
    most = max(2 * len(text), _ALWAYS_FITS)
    out = bytearray()
    decoded = text.decode("utf-8")
    start = 0
    while start < len(decoded):
        end = _border().search(decoded, start + _PIECE) if start + _PIECE < len(decoded) else None
        piece = decoded[start : end.start() if end else len(decoded)]
        start += len(piece)
        if params.normalize:
            if _flood(_FLOOD // _STEP).search(
                piece[::_STEP]
            ):  # cheaper than all of it, and a flood cannot be missed
                piece = _flood(_FLOOD).sub(_in_order, piece)
            piece = unicodedata.normalize("NFKC", piece)
        out += (piece if params.keep_case else piece.casefold()).encode("utf-8")
        if len(out) > most:
            return None
    return bytes(out)


@functools.cache
def _leaning() -> tuple[list[str], list[str]]:
    """Characters whose form may change with what stands before them: those that become nothing but marks, and the others."""
    marks, others = [], []
    characters = characters_of(np.arange(0x300, 0x20000))
    for place in peculiar(characters, normalize=True, keep_case=True):
        character = characters[place]
        form = unicodedata.normalize("NFKD", character)
        if all(map(unicodedata.combining, form)):
            marks.append(character)
        elif unicodedata.combining(form[0]) or form[0] in composing():
            others.append(character)
    return marks, others


@functools.cache
def _border() -> re.Pattern[str]:
    """A character before which a text may be cut: neither side is changed by the other."""
    marks, others = _leaning()
    return re.compile(f"[^{''.join(map(re.escape, marks + others))}]")


@functools.cache
def _flood(length: int) -> re.Pattern[str]:
    """Runs of so many marks or more."""
    return re.compile(f"[{''.join(map(re.escape, _leaning()[0]))}]{{{length},}}")


def _in_order(run: re.Match[str]) -> str:
    """The marks in canonical order, which is a stable sort by their classes: then there is nothing left to be moved one by one."""
    marks = run.group()
    marks = marks.translate({ord(c): unicodedata.normalize("NFKD", c) for c in set(marks)})
    points = np.frombuffer(marks.encode("utf-32-le"), "<u4")
    classes = np.zeros(int(points.max()) + 1, np.uint8)
    for c in set(marks):
        classes[ord(c)] = unicodedata.combining(c)
    return points[np.argsort(classes[points], kind="stable")].tobytes().decode("utf-32-le")
