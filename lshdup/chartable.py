"""The character table: what Unicode says about each code point, as one array that kernels index.

Entry of a code point = its normal form (NFKC, then case folding) and what it does to tokens, in the layout of
`kernels/text.py`. Made from the `unicodedata` of the running Python (its version is in every artifact's header), only when
a text needs it: about 0.1 s. Called by `shingles.py`.
"""

import functools
import unicodedata
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


def _is_unspaced(point: int) -> bool:
    return any(low <= point <= high for low, high in UNSPACED_BLOCKS)


def _word_action(character: str) -> int:
    category = unicodedata.category(character)
    if category[0] == "M":
        return k.MARK
    if category[0] in "LN":
        return k.ALONE if _is_unspaced(ord(character)) else k.JOIN
    return k.JOIN if character == "_" else k.SEPARATE


def _term_action(character: str) -> int:
    if character in TERM_DELETIONS:
        return k.DROP
    return k.SEPARATE if character.isspace() else k.JOIN


def _char_action(character: str) -> int:
    return k.BLANK if character.isspace() else k.ALONE


_ACTIONS = {"word": _word_action, "terms": _term_action, "char": _char_action}


@functools.cache
def composing() -> frozenset[str]:
    """Characters that may compose with the one before them (NFC_Quick_Check = Maybe)."""
    seconds = {chr(c) for c in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}  # Hangul vowels and trailing consonants
    for point in (*range(0x00C0, 0x3400), *range(0xF900, 0x20000)):
        parts = unicodedata.decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            pair = "".join(chr(int(part, 16)) for part in parts)
            if unicodedata.normalize("NFC", pair) == chr(point):
                seconds.add(pair[1])
    return frozenset(seconds)


@functools.cache
def char_table(tokens: str, normalize: bool, keep_case: bool) -> CharTable:
    """The table for `--tokens word|char|terms`, with or without NFKC and case folding.

    Deterministic for a given `unicodedata.unidata_version`. Cost: about 0.1 s and 6.5 MB, once per process and choice.
    """
    action_of = _ACTIONS[tokens]
    entries = np.arange(0x110000, dtype=np.uint32)
    classes = np.zeros(2 * 0x110000, np.uint8)
    expansions: list[int] = []
    special = np.ones(0x110000, bool)
    for low, high in _UNIFORM:
        special[low : high + 1] = False
    for low, high in _UNIFORM:
        entries[low : high + 1] |= np.uint32(action_of(chr(low)) << k.ACTION_SHIFT)
    for point in np.flatnonzero(special).tolist():
        character = chr(point)
        form = unicodedata.normalize("NFKC", character) if normalize else character
        folded = form if keep_case else form.casefold()
        flags = 0
        if normalize:
            first = unicodedata.normalize("NFKD", character)[0] if point >= 0x80 else character
            begins, ends = unicodedata.combining(form[0]), unicodedata.combining(form[-1])
            if first in composing() or (unicodedata.combining(first) and form != character):
                flags |= k.COMPLEX
            if begins or ends:
                flags |= k.HAS_CLASS
                classes[2 * point], classes[2 * point + 1] = begins, ends
        if len(folded) == 1:
            entries[point] = ord(folded) | action_of(folded) << k.ACTION_SHIFT | flags
        else:
            entries[point] = len(expansions) | k.EXPANDS | flags
            expansions.append(len(folded))
            expansions.extend(ord(c) | action_of(c) << k.ACTION_SHIFT for c in folded)
    return CharTable(entries, np.array(expansions or [0], np.uint32), classes)
