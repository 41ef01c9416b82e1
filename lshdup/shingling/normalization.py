"""The normal form of a text, where characters interact: ignorable ones are dropped, then NFKC and
case folding.

Python's `unicodedata` does the work, in pieces, because its memory is many times that of the text.
Its time grows with the square of a run of combining marks, so long runs are sorted before.
"""

import functools
import re
import unicodedata
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from lshdup.base.parts import split_borders
from lshdup.base.ragged import offsets_of
from lshdup.params import ShingleParams
from lshdup.shingling.char_table import (
    IGNORABLE_RANGES,
    composing_characters,
    find_peculiar,
    to_characters,
)
from lshdup.text.offsets import code_points, utf8_sizes

#: Marks in a row that no language has (the Stream-Safe Text Format of UAX #15 allows 30), and the
#: step at which a text is searched for them.
_FLOOD, _STEP = 64, 8

#: White space, which nothing composes with.
_SPACES = code_points("".join(filter(str.isspace, map(chr, range(0x3001)))))

#: Characters that are normalised together.
_PIECE = 1 << 20

#: A normal form of this length is always accepted, or of twice the length of the text. U+FDFA grows
#: elevenfold, but no text does.
_ALWAYS_FITS = 64 << 20


def normal_form(text: bytes, params: ShingleParams) -> bytes | None:
    """Return the normal form of a text, with its borders (`base.parts`); None if it is too long.

    Too long is more than twice the length of a part and more than 64 MB.

    text : valid UTF-8; so is the normal form.
    Cost: linear. Memory: the normal form, and a part as a Python string.
    """
    pieces = split_borders(text)
    for at in range(0, len(pieces), 2):
        form = _normal_form_of_part(pieces[at], params)
        if form is None:
            return None
        pieces[at] = form
    return b"".join(pieces)


def _normal_form_of_part(text: bytes, params: ShingleParams) -> bytes | None:
    most = max(2 * len(text), _ALWAYS_FITS)
    out = bytearray()
    decoded = text.decode("utf-8")
    start = 0
    while start < len(decoded):
        border = _border_pattern().search(decoded, start + _PIECE)
        piece = decoded[start : border.start() if border else len(decoded)]
        start += len(piece)
        points = code_points(piece)
        ignorable = _are_ignorable()[points]
        if ignorable.any():
            piece = to_characters(points[~ignorable])
        if params.normalize:
            # Every _STEP-th character tells cheaply whether there may be a flood.
            if _flood_pattern(_FLOOD // _STEP).search(piece[::_STEP]):
                piece = _flood_pattern(_FLOOD).sub(_sort_marks, piece)
            piece = unicodedata.normalize("NFKC", piece)
        out += (piece if params.keep_case else piece.casefold()).encode("utf-8")
        if len(out) > most:
            return None
    return bytes(out)


def align_normal_form(
    text: bytes, params: ShingleParams
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return where each segment of a text begins and ends, and where its normal form begins.

    A segment is the least that can be normalised alone: a character with the marks that may compose
    with it; white space has none. It begins and ends with characters that are not ignorable.

    text : valid UTF-8.
    Returns int64 arrays of shape (n_segments,), in bytes.
    """
    decoded = text.decode("utf-8")
    every = code_points(decoded)
    visible = np.flatnonzero(~_are_ignorable()[every])
    points = every[visible]
    leaning = "".join(chain.from_iterable(_leaning_characters())) if params.normalize else ""
    begins = ~np.isin(points, code_points(leaning))
    begins[:1] = True
    begins[1:] |= np.isin(points[:-1], _SPACES)
    first = np.flatnonzero(begins)
    sizes = np.diff(first, append=len(points))
    last = visible[first + sizes - 1]
    forms = np.empty(len(first), np.int64)
    form = functools.cache(lambda part: len(normal_form(part.encode("utf-8"), params) or b""))
    alone, which = np.unique(points[first[sizes == 1]], return_inverse=True)
    forms[sizes == 1] = np.array([form(chr(each)) for each in alone.tolist()], np.int64)[which]
    for at in np.flatnonzero(sizes > 1).tolist():
        forms[at] = form(decoded[visible[first[at]] : last[at] + 1])
    places = offsets_of(utf8_sizes(every))
    return places[visible[first]], places[last + 1], offsets_of(forms)[:-1]


@functools.cache
def _are_ignorable() -> NDArray[np.bool_]:
    """Return for each code point whether it is ignorable: bool array of shape (0x110000,)."""
    found = np.zeros(0x110000, np.bool_)
    for low, high in IGNORABLE_RANGES:
        found[low : high + 1] = True
    return found


@functools.cache
def _leaning_characters() -> tuple[list[str], list[str]]:
    """Return the characters whose form may depend on the character before.

    Returns the characters whose forms are nothing but marks, and all others.
    """
    marks, others = [], []
    characters = to_characters(np.arange(0x300, 0x20000))
    for i in find_peculiar(characters, normalize=True, keep_case=True):
        character = characters[i]
        form = unicodedata.normalize("NFKD", character)
        if all(map(unicodedata.combining, form)):
            marks.append(character)
        elif unicodedata.combining(form[0]) or form[0] in composing_characters():
            others.append(character)
    return marks, others


@functools.cache
def _border_pattern() -> re.Pattern[str]:
    """Return a pattern of the characters before which a text may be cut."""
    marks, others = _leaning_characters()
    ignorable = "".join(f"{chr(low)}-{chr(high)}" for low, high in IGNORABLE_RANGES)
    return re.compile(f"[^{''.join(map(re.escape, marks + others))}{ignorable}]")


@functools.cache
def _flood_pattern(length: int) -> re.Pattern[str]:
    """Return a pattern of runs of at least so many marks."""
    return re.compile(f"[{''.join(map(re.escape, _leaning_characters()[0]))}]{{{length},}}")


def _sort_marks(run: re.Match[str]) -> str:
    """Return a run of marks in canonical order, by a stable sort by their classes."""
    marks = run.group()
    marks = marks.translate({ord(c): unicodedata.normalize("NFKD", c) for c in set(marks)})
    points = np.frombuffer(marks.encode("utf-32-le"), "<u4")
    classes = np.zeros(int(points.max()) + 1, np.uint8)
    for c in set(marks):
        classes[ord(c)] = unicodedata.combining(c)
    return points[np.argsort(classes[points], kind="stable")].tobytes().decode("utf-32-le")
