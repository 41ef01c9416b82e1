"""What Unicode says: a table of each code point for the kernels, and the normal form of a text
where characters interact.

The entry of a code point has its normal form (NFKC, then case folding) and its action on tokens, in
the layout of `kernels/text.py`. The table comes from Python's `unicodedata`, whose version is in
the header of every artifact, and is made when a text needs it, in about 0.05 s.

The kernels leave a text to `normal_form` if its characters are reordered or composed. Python's
`unicodedata` does the work there, in pieces, because its memory is many times that of the text.
Its time grows with the square of a run of combining marks, so long runs are sorted before.
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import BORDER
from lshdup.base.params import ShingleParams
from lshdup.base.ragged import offsets_of
from lshdup.kernels import text as k
from lshdup.kernels.flags import LEAST_BREAKS, LINES_A_BREAK
from lshdup.text.decoding import code_points, utf8_sizes

#: Blocks of scripts without spaces, in which each letter or number is a token of its own, and how
#: many tokens it counts for in a shingle: itself and the next ones of its run. Han 1, Kana 3; Thai,
#: Lao, Khmer and Myanmar 5. With fewer, texts that have nothing in common share many shingles.
UNSPACED_BLOCKS = (
    (0x0E00, 0x0EFF, 5), (0x1000, 0x109F, 5), (0x1780, 0x17FF, 5), (0x2E80, 0x2FDF, 1),
    (0x3005, 0x3007, 1), (0x3021, 0x3029, 1), (0x3038, 0x303C, 1), (0x3040, 0x30FF, 3),
    (0x31F0, 0x31FF, 3), (0x3400, 0x4DBF, 1), (0x4E00, 0x9FFF, 1), (0xA9E0, 0xA9FF, 5),
    (0xAA60, 0xAA7F, 5), (0xF900, 0xFAFF, 1), (0xFF66, 0xFF9F, 3), (0x116D0, 0x116FF, 5),
    (0x1AFF0, 0x1B16F, 3), (0x20000, 0x3FFFF, 1),
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

#: Marks that `--fold` drops: those of Hebrew and Arabic but for hamza and madda, which make other
#: letters; and accents of Latin, Greek, and Cyrillic.
_MARKS = (
    (0x0591, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2), (0x05C4, 0x05C5), (0x05C7, 0x05C7),
    (0x0610, 0x061A), (0x064B, 0x0652), (0x0656, 0x065F), (0x0670, 0x0670), (0x06D6, 0x06DC),
    (0x06DF, 0x06E4), (0x06E7, 0x06E8), (0x06EA, 0x06ED), (0x0897, 0x089F), (0x08CA, 0x08E1),
    (0x08E3, 0x08FF), (0xFB1E, 0xFB1E), (0x10EFD, 0x10EFF),
)  # fmt: skip
_ACCENTS = ((0x0300, 0x036F),)
DROPPED_RANGES = {
    "none": IGNORABLE_RANGES,
    "marks": (*IGNORABLE_RANGES, *_MARKS),
    "accents": (*IGNORABLE_RANGES, *_MARKS, *_ACCENTS),
}

#: Categories that `--tokens symbols` makes no token of: white space, controls, formats.
_INVISIBLE = frozenset(("Zs", "Zl", "Zp", "Cc", "Cf"))

#: A hyphen between two letters, of which the second begins the next line.
_HYPHEN = r"[-\u2010\u00ad](?<=[^\W\d_].)\r?\n[ \t]*(?=([^\W\d_]))"

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


#: Marks in a row that no language has (the Stream-Safe Text Format of UAX #15 allows 30), and the
#: step at which a text is searched for them.
_FLOOD, _STEP = 64, 8

#: Characters that are normalised together.
_PIECE = 1 << 20

#: A normal form of this length is always accepted, or of twice the length of the text. U+FDFA grows
#: elevenfold, but no text does.
_ALWAYS_FITS = 64 << 20


#: The two arrays that `kernels/text.py` reads: entries, a uint32 array with an entry for each code
#: point, then the normal forms of several characters, then `block_entries`; and classes, a uint8
#: array of shape (2 * 0x110000,), the canonical combining classes of the first and the last
#: character of each normal form.
CharTable = tuple[NDArray[np.uint32], NDArray[np.uint8]]

#: Arrays for the kernels where no table is needed.
NO_TABLE: CharTable = np.zeros(1, np.uint32), np.zeros(2, np.uint8)


def to_characters(points: NDArray[np.int64] | NDArray[np.uint32]) -> str:
    """Return the characters of code points.

    points : int64 or uint32 array.
    """
    return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _word_actions(characters: str, points: NDArray[np.int64]) -> NDArray[np.uint32]:
    names = "".join(map(unicodedata.category, characters)).encode()
    categories = np.frombuffer(names, np.uint8)[::2]  # The "L" of "Lu".
    actions = np.full(len(points), k.SEPARATE, np.uint32)
    actions[categories == ord("M")] = k.MARK
    joining = (categories == ord("L")) | (categories == ord("N"))
    actions[joining | (points == ord("_"))] = k.JOIN
    for low, high, reach in UNSPACED_BLOCKS:
        alone = k.ALONE | reach << k.REACH_SHIFT - k.ACTION_SHIFT
        actions[joining & (points >= low) & (points <= high)] = alone
    return actions


def _symbol_actions(characters: str, points: NDArray[np.int64]) -> NDArray[np.uint32]:
    actions = _word_actions(characters, points)
    invisible = [unicodedata.category(each) in _INVISIBLE for each in characters]
    actions[(actions == k.SEPARATE) & ~np.array(invisible)] = k.ALONE
    return actions


def _term_actions(characters: str, points: NDArray[np.int64]) -> NDArray[np.uint32]:
    actions = np.where(_are_spaces(characters), np.uint32(k.SEPARATE), np.uint32(k.JOIN))
    actions[np.isin(points, [ord(character) for character in TERM_DELETIONS])] = k.DROP
    return actions


def _char_actions(characters: str, points: NDArray[np.int64]) -> NDArray[np.uint32]:
    return np.where(_are_spaces(characters), np.uint32(k.BLANK), np.uint32(k.ALONE))


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
def _bare_letters(fold: str) -> dict[int, str]:
    """Return letters without the accents that `--fold` drops, and "" for accents, by code point."""
    if fold != "accents":
        return {}
    accents = "".join(chr(point) for low, high in _ACCENTS for point in range(low, high + 1))
    bare = {ord(accent): "" for accent in accents}
    characters = to_characters(np.r_[0x00C0:0x3400])
    for i in _find_changed(characters, functools.partial(unicodedata.normalize, "NFD")):
        parts = unicodedata.normalize("NFD", characters[i])
        kept = "".join(part for part in parts if part not in accents)
        if kept != parts:
            bare[ord(characters[i])] = unicodedata.normalize("NFC", kept)
    return bare


@functools.cache
def char_table(tokens: str, normalize: bool, keep_case: bool, fold: str) -> CharTable:
    """Return the table for tokens cut from text, with or without NFKC and case folding, and folded
    as `ShingleParams.fold` says.

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
    for low, high in DROPPED_RANGES[fold]:
        actions[low : high + 1] = k.DROP
    entries |= actions << np.uint32(k.ACTION_SHIFT)
    changed: dict[int, int] = {}
    peculiar = find_peculiar(characters, normalize=normalize, keep_case=keep_case)
    for point in points[peculiar].tolist():
        character = chr(point)
        form = unicodedata.normalize("NFKC", character) if normalize else character
        flags = 0
        if normalize:
            first = unicodedata.normalize("NFKD", character)[0]
            begins, ends = unicodedata.combining(form[0]), unicodedata.combining(form[-1])
            moves = unicodedata.combining(first) and form != character
            if first in composing_characters() or moves:
                flags |= k.COMPLEX
            if begins or ends:
                flags |= k.HAS_CLASS
                classes[2 * point], classes[2 * point + 1] = begins, ends
        form = form if keep_case else form.casefold()
        form = form.translate(_bare_letters(fold)) if normalize else form
        form_entries = [int(entries[ord(c)]) for c in form]
        if len(form_entries) == 1:
            changed[point] = form_entries[0] | flags
        else:
            changed[point] = len(entries) + len(expansions) | k.EXPANDS | flags
            expansions += [len(form_entries), *form_entries]
    if changed:
        entries[list(changed)] = list(changed.values())
    parts = entries, np.array(expansions, np.uint32), block_entries(entries)
    return np.concatenate(parts), classes


def block_entries(entries: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the entries of characters of two or three bytes for `kernels.text.take_blocks`.

    Only a character that has one entry, without flags, and a normal form of as many bytes gets one.

    entries : uint32 array, the entries of all code points.

    Returns a uint32 array of shape (BLOCK_ENTRIES,).
    """
    found = np.zeros(k.BLOCK_ENTRIES, np.uint32)
    for start, low, high in ((k.BLOCK_OF_2, 0x80, 0x800), (0, 0x800, 0xD800), (0, 0xE000, 0x10000)):
        entry = entries[low:high]
        form = entry & np.uint32(k.CODE_POINT_BITS)
        action = (entry & np.uint32((1 << k.REACH_SHIFT) - 1)) >> np.uint32(k.ACTION_SHIFT)
        if high == 0x800:
            utf8 = 0xC0 | form >> 6 | (form & 0x3F | 0x80) << 8
            fits = (form >= 0x80) & (form < 0x800)
        else:
            utf8 = 0xE0 | form >> 12 | (form >> 6 & 0x3F | 0x80) << 8 | (form & 0x3F | 0x80) << 16
            fits = (form >= 0x800) & (form < 0x10000)
        found[start + low : start + high] = np.select(
            [action == k.SEPARATE, (action == k.JOIN) & fits, (action == k.ALONE) & fits],
            [
                np.full_like(entry, k.TAKEN),
                utf8 | k.TAKEN | k.JOINS,
                utf8 | k.TAKEN | k.STANDS_ALONE,
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


# --- texts ---


def hide_hyphens(text: bytes, params: ShingleParams) -> bytes:
    """Return a text in which the hyphens that break words at the ends of lines are ignorable.

    Ignorable characters, of as many bytes, stand for each hyphen, the end of the line, and the
    indentation of the next one. So the word is one, and everything is where it was.

    text : valid UTF-8, perhaps of several parts.
    """
    if params.tokens in ("terms", "ids") or not re.search(rb"[-\x90\xad]\r?\n", text):
        return text
    pieces = BORDER.split(text)
    parts = [piece.decode("utf-8") for piece in pieces[::2]]
    breaks = [
        [found.span() for found in re.finditer(_HYPHEN, part) if found[1].islower()]
        for part in parts
    ]
    # Not each hyphen at the end of a line breaks a word. A text that breaks words does so often;
    # program text, tables, and prose that breaks none have such a hyphen in one line of 40 at most.
    least = max(LEAST_BREAKS, len(re.findall(rb"\S.*", text)) / LINES_A_BREAK)
    if params.join_hyphens or sum(map(len, breaks)) >= least:
        for at, (part, broken) in enumerate(zip(parts, breaks, strict=True)):
            ends = [0, *chain.from_iterable(broken), len(part)]
            whole = [part[start:end].encode("utf-8") for start, end in pairwise(ends)]
            whole[1::2] = (_ignorable_bytes(len(each)) for each in whole[1::2])
            pieces[2 * at] = b"".join(whole)
    return b"".join(pieces)


def _ignorable_bytes(size: int) -> bytes:
    """Return ignorable characters of two bytes or more in all."""
    return ("\u00ad" * (size // 2 - size % 2) + "\u200b" * (size % 2)).encode("utf-8")


def normal_form(text: bytes, params: ShingleParams) -> bytes | None:
    """Return the normal form of a text, with its borders (`base.forms`); None if it is too long.

    Too long is more than twice the length of a part and more than 64 MB.

    text : valid UTF-8; so is the normal form.
    Cost: linear. Memory: the normal form, and a part as a Python string.
    """
    pieces = BORDER.split(text)
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
        dropped = _are_dropped(params.fold)[points]
        if dropped.any():
            piece = to_characters(points[~dropped])
        if params.normalize:
            # Every _STEP-th character tells cheaply whether there may be a flood.
            if _flood_pattern(_FLOOD // _STEP).search(piece[::_STEP]):
                piece = _flood_pattern(_FLOOD).sub(_sort_marks, piece)
            piece = unicodedata.normalize("NFKC", piece)
        piece = piece if params.keep_case else piece.casefold()
        out += piece.translate(_bare_letters(params.fold)).encode("utf-8")
        if len(out) > most:
            return None
    return bytes(out)


def align_normal_form(
    text: bytes, params: ShingleParams
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return where each segment of a text begins and ends, and where its normal form begins.

    A segment is the least that can be normalised alone: a character with the marks that may compose
    with it; white space has none. It begins and ends with characters that are not dropped.

    text : valid UTF-8.
    Returns int64 arrays of shape (n_segments,), in bytes.
    """
    decoded = text.decode("utf-8")
    every = code_points(decoded)
    visible = np.flatnonzero(~_are_dropped(params.fold)[every])
    points = every[visible]
    leaning = "".join(chain.from_iterable(_leaning_characters())) if params.normalize else ""
    begins = ~np.isin(points, code_points(leaning))
    begins[:1] = True
    # Nothing composes with white space.
    begins[1:] |= np.fromiter(map(str.isspace, to_characters(points[:-1])), bool)
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
def _are_dropped(fold: str) -> NDArray[np.bool_]:
    """Return for each code point whether it is dropped: bool array of shape (0x110000,)."""
    found = np.zeros(0x110000, np.bool_)
    for low, high in DROPPED_RANGES[fold]:
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


def _sort_marks(found: re.Match[str]) -> str:
    """Return a run of marks in canonical order, by a stable sort by their classes."""
    marks = found.group()
    marks = marks.translate({ord(c): unicodedata.normalize("NFKD", c) for c in set(marks)})
    points = np.frombuffer(marks.encode("utf-32-le"), "<u4")
    classes = np.zeros(int(points.max()) + 1, np.uint8)
    for c in set(marks):
        classes[ord(c)] = unicodedata.combining(c)
    return points[np.argsort(classes[points], kind="stable")].tobytes().decode("utf-32-le")
