"""Bytes -> flags: what a document may be, seen in one pass before its text is made.

Reference in the tests: `Texts` of tests/fuzz/texts.py.
"""

import numpy as np

from lshdup.kernels.helpers import I64, PADDING, U8, count_trailing_zeros, inlined, load64, within
from lshdup.kernels.jit import kernel

# Flags of `inspect`.
HAS_NUL = 1
HAS_HIGH = 2
STARTS_MARKUP = 4
STARTS_HEADER = 8
BREAKS_WORD = 16
BREAKS_WORDS = 32
LEAST_BREAKS = 3
LINES_A_BREAK = 20
LONGEST_FIELD_NAME = 76
BINARY_WINDOW = 8192

_1, _2, _62 = (np.uint64(i) for i in (1, 2, 62))
_LOW_BITS = np.uint64(0x0101010101010101)
_HIGH_BITS = np.uint64(0x8080808080808080)
_FIVE_BYTES = np.uint64(0xFFFFFFFFFF)
_FROM_AND_BLANK = np.uint64(0x206D6F7246)


@inlined
def _count_broken_words(document: U8, length: int, has_high: bool) -> int:
    """Return how many lines may end in a broken word, as of `inspect`."""
    breaks = 0
    for i in range(0, length, 62):
        hyphens = within(document, i, 0, 0x2D, 1)
        if has_high:  # The last bytes of U+2010, and of a soft hyphen.
            hyphens |= within(document, i, 0, 0x90, 1) | within(document, i, 0, 0xAD, 1)
        if hyphens:
            ends = within(document, i, 0, 0x0A, 1)
            hyphens &= ((ends >> _1) | (ends >> _2)) & ((_1 << _62) - _1)
        while hyphens:
            at = i + np.int64(count_trailing_zeros(hyphens))
            hyphens &= hyphens - _1
            before = np.int64(document[at - 1]) if at else 0
            if document[at] == 0x2D:
                is_break = before >= 0x80 or 97 <= (before | 0x20) < 123
            elif document[at] == 0xAD:
                is_break = before == 0xC2
            else:
                is_break = before == 0x80 and at > 1 and document[at - 2] == 0xE2
            at += 2 if document[at + 1] == 0x0D else 1
            is_break &= document[at] == 0x0A
            at += 1
            while at < length and (document[at] == 0x20 or document[at] == 0x09):
                at += 1
            is_break &= at < length and (document[at] >= 0x80 or 97 <= document[at] < 123)
            breaks += np.int64(is_break)
    return breaks


@inlined
def _count_lines(document: U8, length: int) -> int:
    """Return how many lines have more than white space of ASCII."""
    lines = 0
    is_blank = True
    for i in range(length):
        c = document[i]
        if c == 0x0A:
            is_blank = True
        elif is_blank and not (c == 0x20 or 0x09 <= c <= 0x0D):
            is_blank = False
            lines += 1
    return lines


@kernel
def inspect(text: U8, starts: I64, lengths: I64, flags: U8) -> None:
    """Set the flags of each document.

    HAS_NUL : a NUL within the first 8 KB.
    HAS_HIGH : a byte >= 0x80.
    STARTS_MARKUP : "<" after white space, and possibly a byte-order mark.
    STARTS_HEADER : the name of a header field (letters, digits, - and _) and its colon, or "From ".
    BREAKS_WORD : a line may end in the hyphen of a broken word: before it is a letter, on the next
        line a small one; no others than of ASCII are told apart.
    BREAKS_WORDS : so may LEAST_BREAKS, and one line in LINES_A_BREAK of those that are not blank.
    """
    for d in range(len(starts)):
        document = text[starts[d] : starts[d] + lengths[d] + PADDING]
        length = lengths[d]
        found = np.uint8(0)
        window = min(length, BINARY_WINDOW)
        high = np.uint64(0)
        for i in range(0, length - 7, 8):
            word: np.uint64 = load64(document, i)
            high |= word
            if i < BINARY_WINDOW and (word - _LOW_BITS) & ~word & _HIGH_BITS:
                found |= np.uint8(HAS_NUL)
        for i in range(length - length % 8, length):
            high |= np.uint64(document[i])
            if document[i] == 0 and i < window:
                found |= np.uint8(HAS_NUL)
        if high & _HIGH_BITS:
            found |= np.uint8(HAS_HIGH)
        i = (
            3
            if length >= 3 and document[0] == 0xEF and document[1] == 0xBB and document[2] == 0xBF
            else 0
        )
        while i < length and (document[i] == 0x20 or 0x09 <= document[i] <= 0x0D):
            i += 1
        if i < length and document[i] == 0x3C:
            found |= np.uint8(STARTS_MARKUP)
        i = 0
        limit = min(length, LONGEST_FIELD_NAME)
        while i < limit:
            c = document[i]
            is_letter = 0x61 <= c | 0x20 <= 0x7A
            if not (is_letter or c == 0x2D or 0x30 <= c <= 0x39 or c == 0x5F):
                break
            i += 1
        if i < limit and (
            (document[i] == 0x3A and i > 0)
            or (i == 4 and load64(document, 0) & _FIVE_BYTES == _FROM_AND_BLANK)
        ):
            found |= np.uint8(STARTS_HEADER)
        breaks = _count_broken_words(document, length, high & _HIGH_BITS != 0)
        if breaks:
            found |= np.uint8(BREAKS_WORD)
        if breaks >= LEAST_BREAKS and breaks * LINES_A_BREAK >= _count_lines(document, length):
            found |= np.uint8(BREAKS_WORDS)
        flags[d] = found
