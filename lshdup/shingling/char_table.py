"""The character table: what Unicode says about each code point, as an array for the kernels.

The entry of a code point has its normal form (NFKC, then case folding) and its action on tokens, in
the layout of `kernels/text.py`. The table comes from Python's `unicodedata`, whose version is in
the header of every artifact, and is made when a text needs it, in about 0.05 s.
"""

import functools
import unicodedata
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.kernels import blocks as b
from lshdup.kernels import text as k

#: Blocks of scripts without spaces, in which each letter or number is a token of its own:
#: Thai and Lao, Myanmar, Khmer, CJK radicals and ideographs, Hiragana, Katakana, extensions.
UNSPACED_BLOCKS = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x2FDF), (0x3005, 0x3007),
    (0x3021, 0x3029), (0x3038, 0x303C), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0xF900, 0xFAFF), (0xFF66, 0xFF9F),
    (0x116D0, 0x116FF), (0x1AFF0, 0x1B16F), (0x20000, 0x3FFFF),
)  # fmt: skip

#: Characters that are dropped, because they cannot be seen: soft hyphens, joiners, variation
#: selectors and others with the property Default_Ignorable_Code_Point, which Python does not have.
#: The ranges are those of DerivedCoreProperties.txt of Unicode 14 to 17.
IGNORABLE_RANGES = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip

#: Categories that `--tokens symbols` makes no token of: white space, controls, formats.
_INVISIBLE = frozenset(("Zs", "Zl", "Zp", "Cc", "Cf"))

#: Characters that R1 deletes from its terms.
TERM_DELETIONS = ".,:;'"

#: Ranges whose characters act like the first one and are their own normal form: ideographs, Hangul
#: syllables, surrogates, private use, the unassigned planes.
_UNIFORM = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xD800, 0xDFFF), (0xE000, 0xF8FF),
    (0x20000, 0x2A6DF), (0x34000, 0xDFFFF), (0xE0200, 0xEFFFF), (0xF0000, 0xFFFFD),
    (0x100000, 0x10FFFD),
)  # fmt: skip

#: Characters that are normalised together, to find the few that change.
_AT_ONCE = 128


@dataclass(frozen=True)
class CharTable:
    """The two arrays that `kernels/text.py` reads.

    entries : uint32 array: an entry for each code point, then the normal forms of several
        characters, then `block_entries`.
    classes : uint8 array of shape (2 * 0x110000,), the canonical combining classes of the first and
        the last character of each normal form.
    """

    entries: NDArray[np.uint32]
    classes: NDArray[np.uint8]


#: Arrays for the kernels where no table is needed.
NO_TABLE = CharTable(np.zeros(1, np.uint32), np.zeros(2, np.uint8))


def to_characters(points: NDArray[np.int64] | NDArray[np.uint32]) -> str:
    """Return the characters of code points.

    points : int64 or uint32 array.
    """
    return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _word_actions(characters: str, points: NDArray[np.int64]) -> NDArray[np.uint32]:
    names = "".join(map(unicodedata.category, characters)).encode()
    categories = np.frombuffer(names, np.uint8)[::2]  # The "L" of "Lu".
    actions = np.full(len(points), b.SEPARATE, np.uint32)
    actions[categories == ord("M")] = k.MARK
    joining = (categories == ord("L")) | (categories == ord("N"))
    actions[joining | (points == ord("_"))] = b.JOIN
    for low, high in UNSPACED_BLOCKS:
        actions[joining & (points >= low) & (points <= high)] = b.ALONE
    return actions


def _symbol_actions(characters: str, points: NDArray[np.int64]) -> NDArray[np.uint32]:
    actions = _word_actions(characters, points)
    invisible = [unicodedata.category(each) in _INVISIBLE for each in characters]
    actions[(actions == b.SEPARATE) & ~np.array(invisible)] = b.ALONE
    return actions


def _term_actions(characters: str, points: NDArray[np.int64]) -> NDArray[np.uint32]:
    actions = np.where(_are_spaces(characters), np.uint32(b.SEPARATE), np.uint32(b.JOIN))
    actions[np.isin(points, [ord(character) for character in TERM_DELETIONS])] = k.DROP
    return actions


def _char_actions(characters: str, points: NDArray[np.int64]) -> NDArray[np.uint32]:
    return np.where(_are_spaces(characters), np.uint32(k.BLANK), np.uint32(b.ALONE))


#: Functions that return the action of each character: uint32 array. They take code points too.
_ACTIONS = {
    "word": _word_actions, "terms": _term_actions, "char": _char_actions,
    "symbols": _symbol_actions,
}  # fmt: skip


def _are_spaces(characters: str) -> NDArray[np.bool_]:
    return np.fromiter(map(str.isspace, characters), np.bool_, len(characters))


@functools.cache
def composing_characters() -> frozenset[str]:
    """Return the characters that may compose with a character before (NFC_Quick_Check = Maybe)."""
    hangul = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))  # Vowels and trailing consonants.
    seconds = {chr(point) for point in hangul}
    composites = to_characters(np.r_[0x00C0:0x3400, 0xF900:0x20000])
    for i in _find_changed(composites, functools.partial(unicodedata.normalize, "NFD")):
        parts = unicodedata.decomposition(composites[i]).split()
        if len(parts) == 2:
            pair = "".join(chr(int(part, 16)) for part in parts)
            if unicodedata.normalize("NFC", pair) == composites[i]:
                seconds.add(pair[1])
    return frozenset(seconds)


@functools.cache
def char_table(tokens: str, normalize: bool, keep_case: bool) -> CharTable:
    """Return the table for tokens cut from text, with or without NFKC and case folding.

    Determinism: the same for a given `unicodedata.unidata_version`.
    Cost: about 0.05 s and 6.5 MB, once per process and choice.
    """
    entries = np.arange(0x110000, dtype=np.uint32)
    classes = np.zeros(2 * 0x110000, np.uint8)
    expansions: list[int] = []
    is_uniform = np.zeros(0x110000, bool)
    for low, high in _UNIFORM:
        is_uniform[low + 1 : high + 1] = True
    points = np.flatnonzero(~is_uniform)
    characters = to_characters(points)
    actions = np.zeros(0x110000, np.uint32)
    actions[points] = _ACTIONS[tokens](characters, points)
    for low, high in _UNIFORM:
        actions[low + 1 : high + 1] = actions[low]
    for low, high in IGNORABLE_RANGES:
        actions[low : high + 1] = k.DROP
    entries |= actions << np.uint32(k.ACTION_SHIFT)
    changed: dict[int, int] = {}
    for point in points[
        find_peculiar(characters, normalize=normalize, keep_case=keep_case)
    ].tolist():
        character = chr(point)
        form = unicodedata.normalize("NFKC", character) if normalize else character
        flags = 0
        if normalize:
            first = unicodedata.normalize("NFKD", character)[0]
            begins, ends = unicodedata.combining(form[0]), unicodedata.combining(form[-1])
            if first in composing_characters() or (
                unicodedata.combining(first) and form != character
            ):
                flags |= k.COMPLEX
            if begins or ends:
                flags |= k.HAS_CLASS
                classes[2 * point], classes[2 * point + 1] = begins, ends
        form_entries = [int(entries[ord(c)]) for c in (form if keep_case else form.casefold())]
        if len(form_entries) == 1:
            changed[point] = form_entries[0] | flags
        else:
            changed[point] = len(entries) + len(expansions) | k.EXPANDS | flags
            expansions += [len(form_entries), *form_entries]
    if changed:
        entries[list(changed)] = list(changed.values())
    parts = entries, np.array(expansions, np.uint32), block_entries(entries)
    return CharTable(np.concatenate(parts), classes)


def block_entries(entries: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the entries of characters of two or three bytes for `kernels/blocks.py`.

    Only a character that has one entry, without flags, and a normal form of as many bytes gets one.

    entries : uint32 array, the entries of all code points.

    Returns a uint32 array of shape (BLOCK_ENTRIES,).
    """
    found = np.zeros(b.BLOCK_ENTRIES, np.uint32)
    for start, low, high in ((b.BLOCK_OF_2, 0x80, 0x800), (0, 0x800, 0xD800), (0, 0xE000, 0x10000)):
        entry = entries[low:high]
        form, action = entry & np.uint32(k.CODE_POINT_BITS), entry >> np.uint32(k.ACTION_SHIFT)
        if high == 0x800:
            utf8 = 0xC0 | form >> 6 | (form & 0x3F | 0x80) << 8
            fits = (form >= 0x80) & (form < 0x800)
        else:
            utf8 = 0xE0 | form >> 12 | (form >> 6 & 0x3F | 0x80) << 8 | (form & 0x3F | 0x80) << 16
            fits = (form >= 0x800) & (form < 0x10000)
        found[start + low : start + high] = np.select(
            [action == b.SEPARATE, (action == b.JOIN) & fits, (action == b.ALONE) & fits],
            [
                np.full_like(entry, b.TAKEN),
                utf8 | b.TAKEN | b.JOINS,
                utf8 | b.TAKEN | b.STANDS_ALONE,
            ],
        )
    return found


def find_peculiar(characters: str, *, normalize: bool, keep_case: bool) -> list[int]:
    """Return the positions of characters whose entry may be more than themselves and their action.

    NFKD stands for NFKC here: it changes each character that NFKC changes.
    """
    found = set() if keep_case else set(_find_changed(characters, str.casefold))
    if normalize:
        found.update(_find_changed(characters, functools.partial(unicodedata.normalize, "NFKD")))
        found.update(i for i, each in enumerate(characters) if unicodedata.combining(each))
        found.update(i for i in map(characters.find, composing_characters()) if i >= 0)
    return sorted(found)


def _find_changed(characters: str, change: Callable[[str], str]) -> Iterator[int]:
    """Yield the positions of characters that `change` changes; most parts do not change at all."""
    for start in range(0, len(characters), _AT_ONCE):
        part = characters[start : start + _AT_ONCE]
        if change(part) != part:
            yield from (i for i, each in enumerate(part, start) if change(each) != each)
