"""ASCII text -> tokens: loops without a branch a character, for most texts of most corpora.

Each sorts the bytes of a text in a loop that the compiler vectorises, packs 64 verdicts into one
word, and writes the positions of its bits: one unpredictable branch for 64 bytes. The results are
those of `text.tokens_by_table`.
"""

import numpy as np

from lshdup.kernels.helpers import (
    I32,
    PADDING,
    U8,
    count_ones,
    count_trailing_zeros,
    inlined,
    load64,
)

_LOW_BITS = np.uint64(0x0101010101010101)
#: A factor that moves the lowest bit of each of eight bytes into the highest byte.
_GATHER = np.uint64(0x0102040810204080)
_ONE, _TWO, _56, _63 = (np.uint64(i) for i in (1, 2, 56, 63))


@inlined
def _sort_bytes(document: U8, folded: U8, kinds: U8, keep_case: bool, symbols: bool) -> None:
    """Fold a document into `folded`, and set the kinds of its bytes and 0 behind them.

    A kind is 1 in a word and 0 elsewhere; with `symbols`, 2 for any other visible character.
    """
    shift = np.uint8(0) if keep_case else np.uint8(32)  # From "A" to "a".
    length = len(document)
    inside = kinds[:length]
    out = folded[:length]
    for i in range(length):
        c = document[i]
        letter = np.uint8((c | np.uint8(0x20)) - np.uint8(97)) < np.uint8(26)
        upper = np.uint8(c - np.uint8(65)) < np.uint8(26)
        kind = np.uint8(letter | (np.uint8(c - np.uint8(48)) < np.uint8(10)) | (c == np.uint8(95)))
        if symbols:
            visible = np.uint8(np.uint8(c - np.uint8(33)) < np.uint8(94))
            kind = np.uint8(visible + visible - kind)
        inside[i] = kind
        out[i] = c + np.uint8(upper) * shift
    for i in range(length, length + PADDING):
        kinds[i] = 0


@inlined
def ascii_words(document: U8, folded: U8, edges: I32, work: U8, keep_case: bool) -> int:
    """Fold a document, find its runs of [0-9A-Za-z_]; return how many."""
    _sort_bytes(document, folded, work, keep_case, False)
    n = np.uint64(0)
    carry = np.uint64(0)
    for base in range(0, len(document) + 1, 64):
        words = np.uint64(0)
        for j in range(8):
            words |= ((load64(work, base + 8 * j) * _GATHER) >> _56) << np.uint64(8 * j)
        # A bit that differs from the one before is an edge.
        n = _write_bits(words ^ ((words << _ONE) | carry), base, n, _ONE, edges)
        carry = words >> _63
    return np.int64(n >> _ONE)


@inlined
def ascii_symbols(document: U8, folded: U8, edges: I32, work: U8, keep_case: bool) -> int:
    """Fold a document, find its runs of [0-9A-Za-z_] and all other visible characters.

    A token may begin where another one ends, so starts and ends have bits of their own. Returns the
    number of tokens.
    """
    _sort_bytes(document, folded, work, keep_case, True)
    starts = np.uint64(0)
    ends = np.uint64(1)
    last_word = np.uint64(0)
    last_symbol = np.uint64(0)
    for base in range(0, len(document) + 1, 64):
        words = np.uint64(0)
        symbols = np.uint64(0)
        for j in range(8):
            eight = load64(work, base + 8 * j)
            place = np.uint64(8 * j)
            words |= ((eight & _LOW_BITS) * _GATHER >> _56) << place
            symbols |= (((eight >> _ONE) & _LOW_BITS) * _GATHER >> _56) << place
        before = (words << _ONE) | last_word
        starts = _write_bits(symbols | (words & ~before), base, starts, _TWO, edges)
        closing = (symbols << _ONE) | last_symbol | (before & ~words)
        ends = _write_bits(closing, base, ends, _TWO, edges)
        last_word = words >> _63
        last_symbol = symbols >> _63
    return np.int64(starts >> _ONE)


@inlined
def _write_bits(
    bits: np.uint64, base: int, at: np.uint64, step: np.uint64, edges: I32
) -> np.uint64:
    """Write the positions of the set bits to every `step`-th place; return the next place.

    Eight are written at a time, real or not: one branch for eight, not one for each.
    """
    end: np.uint64 = at + step * count_ones(bits)
    while at < end:
        for j in range(8):
            edges[at + step * np.uint64(j)] = base + count_trailing_zeros(bits)
            bits &= bits - _ONE
        at += step * np.uint64(8)
    return end
