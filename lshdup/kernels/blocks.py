"""Words and symbols of a text, 64 bytes at a time: without a branch a character, for most texts.

The bytes of a block are compared at once; each verdict is a bit of a word, and shifts of these
words give the edges of tokens. Characters of two and three bytes are looked up one by one, which
sets their bits; `text.tokens_by_table` takes a character that needs more, such as a mark. Its
results are those of this module, one character at a time.
"""

import numpy as np

from lshdup.kernels.helpers import (
    I32,
    U8,
    U32,
    count_ones,
    count_trailing_zeros,
    fold_block,
    inlined,
    within,
)

# The effect of a code point on the open token: three bits of an entry of the character table.
SEPARATE = 0  # ends the token
JOIN = 1  # continues a run, or begins one
ALONE = 2  # is a token of its own, with the marks that follow it

# The end of the character table has an entry for each character of two or three bytes: UTF-8 of its
# normal form (24 bits), and three flags.
TAKEN = 1 << 24  # `take_blocks` can take the character: its normal form has as many bytes
JOINS = 1 << 25
STANDS_ALONE = 1 << 26
BLOCK_OF_2 = 1 << 16  # Entries of three bytes are first, then those of two bytes.
BLOCK_ENTRIES = BLOCK_OF_2 + (1 << 11)

_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_0, _1, _2, _6, _8, _12, _16, _24, _25, _26, _63, _64 = (
    np.uint64(i) for i in (0, 1, 2, 6, 8, 12, 16, 24, 25, 26, 63, 64)
)


@inlined
def take_blocks(
    document: U8,
    entries: U32,
    folded: U8,
    edges: I32,
    keep_case: bool,
    symbols: bool,
    i: np.uint64,
    o: np.uint64,
    n: np.uint64,
    opened: int,
) -> tuple[np.uint64, np.uint64, np.uint64, int]:
    """Fold and tokenise the document from byte i on, as long as each character has an entry.

    entries : the last of the character table.
    o, n, opened : bytes of `folded` and edges that are written, and the action of the open token.
    keep_case : whether ASCII letters stay as they are. symbols : whether visible characters of
        ASCII that are in no word stand alone.

    Returns i, o, n and `opened` of the character that is left to `tokens_by_table`.
    """
    length = np.uint64(len(document))
    # Room for this block, and to load eight bytes from its end on.
    limit = np.uint64(len(folded)) - np.uint64(80)
    shift = 0 if keep_case else 32  # From "A" to "a".
    started = (n + _1) & ~_1
    ended = n | _1
    last_join = np.uint64(opened == JOIN)
    last_in = np.uint64(opened != SEPARATE)
    while i < length and o <= limit:
        used = min(length - i, _64)
        high = within(document, i, 0, 0x80, 0x80)
        joins = (
            within(document, i, 0x20, 97, 26)
            | within(document, i, 0, 48, 10)
            | within(document, i, 0, 95, 1)
        )
        alone = within(document, i, 0, 33, 94) & ~joins if symbols else _0
        first = alone  # The first bytes of characters that stand alone.
        if high:
            tails = within(document, i, 0, 0x80, 0x40)
            # Leading bytes of two and of three; both end within the block.
            leads = (_ONES >> (_64 - used)) >> _2
            twos = within(document, i, 0, 0xC2, 0x1E) & leads
            threes = within(document, i, 0, 0xE0, 0x10) & leads
            wanted = ((twos | threes) << _1) | (threes << _2)
            missing = wanted & ~tails
            taken = (~high | twos | threes | (wanted & tails)) & ~(
                (missing >> _1) | (missing >> _2)
            )
            joining = twos
            while twos:
                at = np.uint64(count_trailing_zeros(twos))
                twos &= twos - _1
                bytes_ = np.uint64(document[i + at]) & np.uint64(0x1F)
                bytes_ = (bytes_ << _6) | np.uint64(document[i + at + _1] & np.uint8(0x3F))
                entry = np.uint64(entries[np.uint64(BLOCK_OF_2) + bytes_])
                folded[o + at] = np.uint8(entry)
                folded[o + at + _1] = np.uint8(entry >> _8)
                if entry >> _24 != np.uint64((TAKEN | JOINS) >> 24):  # Few are no letters.
                    joining ^= _1 << at
                    taken &= ~((~(entry >> _24) & _1) << at)
                    first |= (entry >> _26) << at
                    alone |= ((entry >> _26) * np.uint64(3)) << at
            joins |= joining | (joining << _1)
            joining = _0
            lone = _0
            while threes:
                at = np.uint64(count_trailing_zeros(threes))
                threes &= threes - _1
                bytes_ = np.uint64(document[i + at]) & np.uint64(0xF)
                bytes_ = (bytes_ << _6) | np.uint64(document[i + at + _1] & np.uint8(0x3F))
                bytes_ = (bytes_ << _6) | np.uint64(document[i + at + _2] & np.uint8(0x3F))
                entry = np.uint64(entries[bytes_])
                folded[o + at] = np.uint8(entry)
                folded[o + at + _1] = np.uint8(entry >> _8)
                folded[o + at + _2] = np.uint8(entry >> _16)
                taken &= ~((~(entry >> _24) & _1) << at)
                joining |= ((entry >> _25) & _1) << at
                lone |= (entry >> _26) << at
            joins |= joining | (joining << _1) | (joining << _2)
            first |= lone
            alone |= lone | (lone << _1) | (lone << _2)
            used = min(used, np.uint64(count_trailing_zeros(~taken)))
            if used == _0:
                break
        fold_block(document, i, folded, o, shift)
        block = _ONES >> (_64 - used)
        joins &= block
        inside = joins | (alone & block)
        begins = (first & block) | (joins & ~((joins << _1) | last_join))
        ends = ((inside << _1) | last_in) & (begins | ~inside) & block
        started_next = started + _2 * count_ones(begins)
        ended_next = ended + _2 * count_ones(ends)
        # Twelve are written at a time, real or not: one branch for most blocks, not one for each.
        while started < started_next or ended < ended_next:
            for j in range(12):
                edges[started + _2 * np.uint64(j)] = o + np.uint64(count_trailing_zeros(begins))
                begins &= begins - _1
                edges[ended + _2 * np.uint64(j)] = o + np.uint64(count_trailing_zeros(ends))
                ends &= ends - _1
            started += _24
            ended += _24
        started = started_next
        ended = ended_next
        last_join = (joins >> (used - _1)) & _1
        last_in = (inside >> (used - _1)) & _1
        i += used
        o += used
    opened = JOIN if last_join else (ALONE if last_in else SEPARATE)
    return i, o, (started >> _1) + (ended >> _1), opened
