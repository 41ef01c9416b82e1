"""The character table: what Unicode says about each code point, as one array that kernels index.

Entry of a code point = its normal form (NFKC, then case folding) and what it does to tokens, in the layout of
`kernels/text.py`. Made from the `unicodedata` of the running Python (its version is in every artifact's header), only when
a text needs it: about 0.05 s. Called by `shingles.py` and `normalform.py`.
"""

import functools
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import text as k

#: Blocks of the scripts written without spaces, in which each letter or number is a token of its own:
#: Thai and Lao, Myanmar, Khmer, CJK radicals and ideographs, Hiragana, Katakana and their extensions.
UNSPACED_BLOCKS = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029),
    (0x3038, 0x303C), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F), (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x116D0, 0x116FF), (0x1AFF0, 0x1B16F), (0x20000, 0x3FFFF),
)  # fmt: skip

#: Characters that R1 deletes from its terms.
TERM_DELETIONS = ".,:;'"

#: Ranges whose characters all act like their first one and are their own normal form (ideographs, Hangul syllables, surrogates,
#: private use, the unassigned planes); filled in one stroke.
_UNIFORM = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xD800, 0xDFFF), (0xE000, 0xF8FF), (0x20000, 0x2A6DF),
    (0x34000, 0xDFFFF), (0xE0200, 0xEFFFF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD),
)  # fmt: skip

#: Characters that are looked at in one stroke.
_AT_ONCE = 128


@dataclass(frozen=True)
class CharTable:
    """The three arrays that `kernels/text.py` reads.

    entries: uint32 array of shape (0x110000,); expansions: uint32 array; classes: uint8 array of shape (2 * 0x110000,), the
    canonical combining classes of the first and the last character of each normal form.
    """

    entries: NDArray[np.uint32]
    expansions: NDArray[np.uint32]
    classes: NDArray[np.uint8]


#: For documents that need no table (ids), so that kernels always get arrays.
NO_TABLE = CharTable(np.zeros(1, np.uint32), np.zeros(1, np.uint32), np.zeros(2, np.uint8))


def characters_of(points: NDArray[np.int64]) -> str:
    """The characters of these code points."""
    return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _word_actions(characters: str, points: NDArray[np.int64]) -> NDArray[np.uint32]:
    categories = np.frombuffer("".join(map(unicodedata.category, characters)).encode(), np.uint8)[
        ::2
    ]  # of "Lu" the "L"
    actions = np.full(len(points), k.SEPARATE, np.uint32)
    actions[categories == ord("M")] = k.MARK
    joining = (categories == ord("L")) | (categories == ord("N"))
    actions[joining | (points == ord("_"))] = k.JOIN
    for low, high in UNSPACED_BLOCKS:
        actions[joining & (points >= low) & (points <= high)] = k.ALONE
    return actions


def _term_actions(characters: str, points: NDArray[np.int64]) -> NDArray[np.uint32]:
    actions = np.where(
        _where(map(str.isspace, characters), len(points)), np.uint32(k.SEPARATE), np.uint32(k.JOIN)
    )
    actions[np.isin(points, [ord(character) for character in TERM_DELETIONS])] = k.DROP
    return actions


def _char_actions(characters: str, points: NDArray[np.int64]) -> NDArray[np.uint32]:
    return np.where(
        _where(map(str.isspace, characters), len(points)), np.uint32(k.BLANK), np.uint32(k.ALONE)
    )


#: What characters do to tokens: uint32 array of these characters, which are given as points too.
_ACTIONS = {"word": _word_actions, "terms": _term_actions, "char": _char_actions}


def _where(answers: Iterable[int], count: int) -> NDArray[np.bool_]:
    return np.fromiter(answers, np.bool_, count)


@functools.cache
def composing() -> frozenset[str]:
    """Characters that may compose with the one before them (NFC_Quick_Check = Maybe)."""
    seconds = {
        chr(c) for c in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))
    }  # Hangul vowels and trailing consonants
    whole = characters_of(np.r_[0x00C0:0x3400, 0xF900:0x20000])
    for place in _changed(whole, functools.partial(unicodedata.normalize, "NFD")):
        parts = unicodedata.decomposition(whole[place]).split()
        if len(parts) == 2:
            pair = "".join(chr(int(part, 16)) for part in parts)
            if unicodedata.normalize("NFC", pair) == whole[place]:
                seconds.add(pair[1])
    return frozenset(seconds)


@functools.cache
def char_table(tokens: str, normalize: bool, keep_case: bool) -> CharTable:
    """The table for `--tokens word|char|terms`, with or without NFKC and case folding.

    Deterministic for a given `unicodedata.unidata_version`. Cost: about 0.05 s and 6.5 MB, once per process and choice.
    """
    entries = np.arange(0x110000, dtype=np.uint32)
    classes = np.zeros(2 * 0x110000, np.uint8)
    expansions: list[int] = []
    alike = np.zeros(0x110000, bool)
    for low, high in _UNIFORM:
        alike[low + 1 : high + 1] = True
    points = np.flatnonzero(~alike)
    characters = characters_of(points)
    entries[points] |= _ACTIONS[tokens](characters, points) << np.uint32(k.ACTION_SHIFT)
    for low, high in _UNIFORM:
        entries[low + 1 : high + 1] |= (
            entries[low] >> np.uint32(k.ACTION_SHIFT) << np.uint32(k.ACTION_SHIFT)
        )
    changed: dict[int, int] = {}
    for point in points[peculiar(characters, normalize=normalize, keep_case=keep_case)].tolist():
        character = chr(point)
        form = unicodedata.normalize("NFKC", character) if normalize else character
        folded = form if keep_case else form.casefold()
        flags = 0
        if normalize:
            first = unicodedata.normalize("NFKD", character)[0]
            begins, ends = unicodedata.combining(form[0]), unicodedata.combining(form[-1])
            if first in composing() or (unicodedata.combining(first) and form != character):
                flags |= k.COMPLEX
            if begins or ends:
                flags |= k.HAS_CLASS
                classes[2 * point], classes[2 * point + 1] = begins, ends
        made = [int(entries[ord(c)]) for c in folded]
        if len(made) == 1:
            changed[point] = made[0] | flags
        else:
            changed[point] = len(expansions) | k.EXPANDS | flags
            expansions += [len(made), *made]
    if changed:
        entries[list(changed)] = list(changed.values())
    return CharTable(entries, np.array(expansions or [0], np.uint32), classes)


def peculiar(characters: str, *, normalize: bool, keep_case: bool) -> list[int]:
    """Locations of those whose entry may be more than the character itself and what it does: what NFKC changes, NFKD does too."""
    found = set() if keep_case else set(_changed(characters, str.casefold))
    if normalize:
        found.update(_changed(characters, functools.partial(unicodedata.normalize, "NFKD")))
        found.update(
            np.flatnonzero(_where(map(unicodedata.combining, characters), len(characters))).tolist()
        )
        found.update(place for place in map(characters.find, composing()) if place >= 0)
    return sorted(found)


def _changed(characters: str, change: Callable[[str], str]) -> Iterator[int]:
    """Locations of the characters that this makes others of. It is asked of many at once: most of them stay as they are."""
    for start in range(0, len(characters), _AT_ONCE):
        part = characters[start : start + _AT_ONCE]
        if change(part) != part:
            yield from (
                place
                for place, character in enumerate(part, start)
                if change(character) != character
            )
