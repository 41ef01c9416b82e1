"""Rows of JSON Lines: where the string of a field is. Called by jsonlines.py.

What is not plainly an object with that field as a string, by RFC 8259 to the letter, is left to Python's parser, which says what is wrong
with it; so is what is right but unusual: keys with escapes, deep nesting, half surrogate pairs. Positions are unsigned: signed ones cost a
test for Python's negative indices at every access.
"""

from typing import Any

import numpy as np

from lshdup.kernels.helpers import I64, U8, count_trailing_zeros, load64
from lshdup.kernels.jit import inlined, kernel
from lshdup.kernels.text import INVALID, decode, encode

_ZERO, _ONE, _TWO, _SIX, _EIGHT = (
    np.uint64(0),
    np.uint64(1),
    np.uint64(2),
    np.uint64(6),
    np.uint64(8),
)
_LOW_BITS, _HIGH_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_SPACES, _QUOTES, _BACKSLASHES = (
    np.uint64(0x2020202020202020),
    np.uint64(0x2222222222222222),
    np.uint64(0x5C5C5C5C5C5C5C5C),
)

#: What a string holds beside ordinary characters.
_ESCAPES, _SURROGATES = 1, 2

#: What may come next.
_KEY_OR_END, _KEY, _VALUE, _VALUE_OR_END, _COMMA_OR_END = 0, 1, 2, 3, 4

#: Objects and lists that may be open; one bit each says which of the two they are.
_DEPTH = 60


@kernel
def find_texts(
    rows: U8, starts: I64, lengths: I64, field: U8, out: U8, found_at: I64, found: I64
) -> None:
    """Where in `rows` the string of the field is, for each row; found is -1 where another has to look.

    Strings with escapes are written to `out`, which has room for all rows, without them: their places are beyond the end of `rows`. There
    must be eight bytes behind each row that may be looked at.
    """
    end = _ZERO
    for d in range(len(starts)):
        n = np.uint64(lengths[d])
        row = rows[starts[d] : starts[d] + lengths[d] + 8]
        at, size, special = _text_in(row, n, field)
        found_at[d] = starts[d] + at
        found[d] = size
        if size >= 0 and special:
            if special >= _SURROGATES and not _whole_pairs(
                row, np.uint64(at), np.uint64(at + size)
            ):
                found[d] = -1
            else:
                found_at[d] = len(rows) + np.int64(end)
                begin = end
                end = _unescaped(row, np.uint64(at), np.uint64(at + size), out, end)
                found[d] = np.int64(end - begin)


@inlined
def _text_in(row: U8, n: np.uint64, field: U8) -> tuple[int, int, int]:
    """Where in one row the last string of that field begins, how long it is, and what is in it; the length is -1 if another has to look."""
    at, size, special = 0, -1, 0
    i = _after_space(row, _ZERO, n)
    if i >= n or row[i] != 0x7B:  # {
        return 0, -1, 0
    i += _ONE
    objects, depth = _ONE, 1
    expected = _KEY_OR_END
    matches = False
    while depth:
        i = _after_space(row, i, n)
        if i >= n:
            return 0, -1, 0
        c = row[i]
        if expected == _COMMA_OR_END:
            i += _ONE
            if c == 0x2C:  # ,
                expected = _KEY if objects & _ONE else _VALUE
            elif c == (0x7D if objects & _ONE else 0x5D):  # } ]
                depth -= 1
                objects >>= _ONE
            else:
                return 0, -1, 0
        elif (expected == _KEY_OR_END and c == 0x7D) or (expected == _VALUE_OR_END and c == 0x5D):
            i += _ONE
            depth -= 1
            objects >>= _ONE
            expected = _COMMA_OR_END
        elif expected <= _KEY:
            if c != 0x22:  # "
                return 0, -1, 0
            end, inside = _string_end(row, i + _ONE, n)
            if end >= n or (depth == 1 and inside):
                return 0, -1, 0
            matches = depth == 1 and _is(row, i + _ONE, end, field)
            i = _after_space(row, end + _ONE, n)
            if i >= n or row[i] != 0x3A:  # :
                return 0, -1, 0
            i += _ONE
            expected = _VALUE
        else:
            expected = _COMMA_OR_END
            if c == 0x22:
                end, inside = _string_end(row, i + _ONE, n)
                if end >= n:
                    return 0, -1, 0
                if matches and depth == 1:
                    at, size, special = np.int64(i + _ONE), np.int64(end - i - _ONE), inside
                i = end + _ONE
            elif matches and depth == 1:
                return 0, -1, 0
            elif c == 0x7B or c == 0x5B:  # { [
                if depth == _DEPTH:
                    return 0, -1, 0
                depth += 1
                objects = (objects << _ONE) | (_ONE if c == 0x7B else _ZERO)
                expected = _KEY_OR_END if c == 0x7B else _VALUE_OR_END
                i += _ONE
            else:
                i = _scalar_end(row, i, n)
                if i > n:
                    return 0, -1, 0
    if _after_space(row, i, n) < n:
        return 0, -1, 0
    return at, size, special


@inlined
def _after_space(row: U8, i: np.uint64, n: np.uint64) -> np.uint64:
    while i < n and (row[i] == 0x20 or row[i] == 0x0A or row[i] == 0x0D or row[i] == 0x09):
        i += _ONE
    return i


@inlined
def _is(row: U8, start: np.uint64, end: np.uint64, field: U8) -> bool:
    if end - start != np.uint64(len(field)):
        return False
    same = True
    for j in range(len(field)):
        same &= row[start + np.uint64(j)] == field[j]
    return same


@inlined
def _string_end(row: U8, i: np.uint64, n: np.uint64) -> tuple[np.uint64, int]:
    """The closing quote of the string that begins with byte i, n if it is no string; and what is in it."""
    inside = 0
    while i < n:
        while i + _EIGHT <= n:
            word: Any = load64(row, i)
            quote, backslash = word ^ _QUOTES, word ^ _BACKSLASHES
            # Each is right about its lowest byte, and so is what is lowest of all.
            special = (quote - _LOW_BITS) & ~quote
            special |= (backslash - _LOW_BITS) & ~backslash
            special |= (word - _SPACES) & ~word
            special = (special | word) & _HIGH_BITS
            if special:
                i += np.uint64(count_trailing_zeros(special)) >> np.uint64(3)
                break
            i += _EIGHT
        if i >= n:
            break
        c = row[i]
        if c == 0x22:
            return i, inside
        if c == 0x5C:
            if i + _ONE >= n:
                return n, 0
            e = row[i + _ONE]
            if e == 0x75:  # u
                if i + _SIX > n:
                    return n, 0
                point = _hex(row, i + _TWO)
                if point < 0:
                    return n, 0
                inside |= _SURROGATES if 0xD800 <= point < 0xE000 else 0
                i += _SIX
            elif (
                e == 0x22
                or e == 0x5C
                or e == 0x2F
                or e == 0x62
                or e == 0x66
                or e == 0x6E
                or e == 0x72
                or e == 0x74
            ):
                i += _TWO
            else:
                return n, 0
            inside |= _ESCAPES
        elif c < 0x20:
            return n, 0
        elif c < 0x80:
            i += _ONE
        else:
            while i < n and row[i] >= 0x80:
                point, size = decode(row, i, n)
                if point == INVALID:
                    return n, 0
                i += size
    return n, 0


@inlined
def _hex(row: U8, i: np.uint64) -> int:
    """The number that four hexadecimal digits are, or -1."""
    number = 0
    for j in range(4):
        c = np.int64(row[i + np.uint64(j)])
        if 0x30 <= c <= 0x39:
            number = number * 16 + c - 0x30
        elif 0x41 <= c <= 0x46 or 0x61 <= c <= 0x66:
            number = number * 16 + (c & 0x0F) + 9
        else:
            return -1
    return number


@inlined
def _scalar_end(row: U8, i: np.uint64, n: np.uint64) -> np.uint64:
    """Where a number, true, false or null ends that begins with byte i; n + 1 if it is none."""
    c = row[i]
    word = load64(row, i)
    if c == 0x74 or c == 0x6E:  # true, null
        low = word & np.uint64(0xFFFFFFFF)
        return (
            i + np.uint64(4)
            if (low == np.uint64(0x65757274) or low == np.uint64(0x6C6C756E))
            and i + np.uint64(4) <= n
            else n + _ONE
        )
    if c == 0x66:  # false
        low = word & np.uint64(0xFFFFFFFFFF)
        return (
            i + np.uint64(5)
            if low == np.uint64(0x65736C6166) and i + np.uint64(5) <= n
            else n + _ONE
        )
    if c == 0x2D:  # -
        i += _ONE
    if i >= n:
        return n + _ONE
    if row[i] == 0x30:
        i += _ONE
    else:
        first = i
        i = _after_digits(row, i, n)
        if i == first:
            return n + _ONE
    if i < n and row[i] == 0x2E:  # .
        first = i + _ONE
        i = _after_digits(row, first, n)
        if i == first:
            return n + _ONE
    if i < n and (row[i] | 0x20) == 0x65:  # e
        i += _ONE
        if i < n and (row[i] == 0x2B or row[i] == 0x2D):
            i += _ONE
        first = i
        i = _after_digits(row, i, n)
        if i == first:
            return n + _ONE
    return i


@inlined
def _after_digits(row: U8, i: np.uint64, n: np.uint64) -> np.uint64:
    while i < n and 0x30 <= row[i] <= 0x39:
        i += _ONE
    return i


@inlined
def _whole_pairs(row: U8, i: np.uint64, end: np.uint64) -> bool:
    """Whether every surrogate that is written as an escape is one of a pair."""
    while i < end:
        if row[i] != 0x5C:
            i += _ONE
        elif row[i + _ONE] != 0x75:
            i += _TWO
        else:
            point = _hex(row, i + _TWO)
            i += _SIX
            if 0xD800 <= point < 0xDC00:
                if i + _SIX > end or row[i] != 0x5C or row[i + _ONE] != 0x75:
                    return False
                low = _hex(row, i + _TWO)
                if low < 0xDC00 or low >= 0xE000:
                    return False
                i += _SIX
            elif 0xDC00 <= point < 0xE000:
                return False
    return True


@inlined
def _unescaped(row: U8, i: np.uint64, end: np.uint64, out: U8, o: np.uint64) -> np.uint64:
    """Write a string without its escapes, which are right, to `out` from byte o on; returns where it ends."""
    while i < end:
        first = i
        while i < end:
            backslash: Any = load64(row, i) ^ _BACKSLASHES
            backslash = (backslash - _LOW_BITS) & ~backslash & _HIGH_BITS
            i += np.uint64(count_trailing_zeros(backslash)) >> np.uint64(
                3
            )  # eight, if there is none
            if backslash:
                break
        i = min(i, end)
        for j in range(i - first):
            out[o + np.uint64(j)] = row[first + np.uint64(j)]
        o += i - first
        if i >= end:
            break
        e = row[i + _ONE]
        if e == 0x75:
            point = _hex(row, i + _TWO)
            i += _SIX
            if 0xD800 <= point < 0xDC00:
                point = 0x10000 + ((point - 0xD800) << 10) + _hex(row, i + _TWO) - 0xDC00
                i += _SIX
            o = encode(np.uint32(point), out, o)
            continue
        i += _TWO
        c = e  # " \ /
        if e == 0x62:
            c = np.uint8(0x08)
        elif e == 0x66:
            c = np.uint8(0x0C)
        elif e == 0x6E:
            c = np.uint8(0x0A)
        elif e == 0x72:
            c = np.uint8(0x0D)
        elif e == 0x74:
            c = np.uint8(0x09)
        out[o] = c
        o += _ONE
    return o
