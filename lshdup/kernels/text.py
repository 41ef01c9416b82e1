"""Bytes -> tokens: the normal form of a document, and the edges of its tokens in it.

`tokens_by_table` writes the normal form to `folded` and the edges of its tokens (start, end, start,
end …) to `edges`. Most texts are taken by `take_blocks`, 64 bytes at a time, without a branch a
character: the bytes of a block are compared at once, each verdict is a bit of a word, and shifts of
these words give the edges of tokens. Positions in inner loops are unsigned: signed ones cost a test
for Python's negative indices at every access. Reference in the tests: `normal_form`, `word_tokens`
and `symbol_tokens` of tests/reference.py.
"""

from typing import NamedTuple

import numpy as np

from lshdup.kernels.helpers import (
    I32,
    U8,
    U32,
    U64,
    count_ones,
    count_trailing_zeros,
    fold_block,
    inlined,
    load64,
    within,
)

# The effect of a code point on the open token: three bits of an entry of the character table.
SEPARATE = 0  # ends the token
JOIN = 1  # continues a run, or begins one
ALONE = 2  # is a token of its own, with the marks that follow it
MARK = 3  # continues the open token, or begins a run
DROP = 4  # is dropped
BLANK = 5  # a run of these becomes one blank between two characters

# The end of the character table has an entry for each character of two or three bytes: UTF-8 of its
# normal form (24 bits), and three flags.
TAKEN = 1 << 24  # `take_blocks` can take the character: its normal form has as many bytes
JOINS = 1 << 25
STANDS_ALONE = 1 << 26
BLOCK_OF_2 = 1 << 16  # Entries of three bytes are first, then those of two bytes.
BLOCK_ENTRIES = BLOCK_OF_2 + (1 << 11)

_0, _1, _2, _3, _4, _6, _8, _12, _16, _24, _25, _26, _62, _63, _64 = (
    np.uint64(i) for i in (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 25, 26, 62, 63, 64)
)

# An entry of the character table: code point to write (21 bits), action (3 bits), and these flags.
ACTION_SHIFT = 21
CODE_POINT_BITS = 0x1FFFFF
EXPANDS = 1 << 24  # the low 21 bits index the table instead: a length, then that many entries
COMPLEX = 1 << 25  # the normal form may depend on the neighbours
HAS_CLASS = 1 << 26  # a canonical combining class is recorded at either end
REACH_SHIFT = 27  # in scripts without spaces: tokens that the character counts for in a shingle

# Token rules that differ by more than the table.
RULE_PLAIN = 0
RULE_TERMS = 1  # drop "the" and tokens shorter than three characters
RULE_IDS = 2  # tokens are decimal integers, and are their own hash
RULE_SYMBOLS = 3  # visible characters of ASCII stand alone
RULE_CHARACTERS = 4  # every character is a token, and so is a run of white space between two

# The outcome of a document.
DONE = 0
NOT_UTF8 = 1
NEEDS_NORMALIZING = 2
NOT_IDS = 3


_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_WORD_THE = np.uint64(0x656874)
INVALID = np.uint32(0xFFFFFFFF)


class Cutting(NamedTuple):
    """How documents are cut into tokens.

    table, classes : the two arrays of the character table.
    in_blocks : whether `take_blocks` may take what it can: the table has its actions only.
    keep_case : whether ASCII letters stay as they are, in blocks.
    rule : the token rule.
    """

    table: U32
    classes: U8
    in_blocks: bool
    keep_case: bool
    rule: int


@inlined
def take_blocks(
    document: U8,
    cutting: Cutting,
    folded: U8,
    edges: I32,
    i: np.uint64,
    o: np.uint64,
    n: np.uint64,
    opened: int,
) -> tuple[np.uint64, np.uint64, np.uint64, int]:
    """Fold and tokenise the document from byte i on, as long as each character has an entry.

    o, n, opened : bytes of `folded` and edges that are written, and the action of the open token.

    Returns i, o, n and `opened` of the character that is left to `tokens_by_table`.
    """
    length = np.uint64(len(document))
    entries = cutting.table[max(len(cutting.table) - BLOCK_ENTRIES, 0) :]
    symbols = cutting.rule == RULE_SYMBOLS
    # Room for this block, and to load eight bytes from its end on.
    limit = np.uint64(len(folded)) - np.uint64(80)
    shift = 0 if cutting.keep_case else 32  # From "A" to "a".
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


@inlined
def take_characters(
    document: U8, keep_case: bool, folded: U8, edges: I32, i: np.uint64, o: np.uint64, n: np.uint64,
    waiting: bool,
) -> tuple[np.uint64, np.uint64, np.uint64, bool]:  # fmt: skip
    """Fold the ASCII characters of the document from byte i on, each of which is a token.

    o, n, waiting : bytes of `folded` and edges that are written, and whether a blank is to be
        written before the next character.

    Returns i, o, n and `waiting` of the character that is left to `tokens_by_table`.
    """
    length = np.uint64(len(document))
    limit = np.uint64(len(folded)) - np.uint64(81)
    shift = 0 if keep_case else 32  # From "A" to "a".
    if i < length and document[i] < 0x80:
        edges[n] = o
        n += n & _1  # The open token ends.
    while i < length and o <= limit:
        size = min(length - i, _64)
        breaks = within(document, i, 0, 9, 5)
        blanks = breaks | within(document, i, 0, 32, 1)
        before = min(size, np.uint64(count_trailing_zeros(~blanks)))
        if before:
            waiting = n > _0
            i += before
            continue
        others = ~(blanks | within(document, i, 0, 33, 94))
        size = min(size, np.uint64(count_trailing_zeros(others | (blanks & (blanks << _1)))))
        if size == _0:
            break
        size -= (blanks >> (size - _1)) & _1  # A blank at the end waits.
        if waiting:
            waiting = False
            folded[o] = 0x20
            edges[n] = o
            o += _1
            edges[n + _1] = o
            n += _2
        fold_block(document, i, folded, o, shift)
        breaks &= _ONES >> (_64 - size)
        while breaks:
            folded[o + np.uint64(count_trailing_zeros(breaks))] = 0x20
            breaks &= breaks - _1
        for edge in range(128):  # Of 64 tokens, real or not.
            edges[n + np.uint64(edge)] = o + np.uint64((edge + 1) >> 1)
        i += size
        o += size
        n += _2 * size
    return i, o, n - np.uint64(n > _0 and n & _1 == _0), waiting


@inlined
def decode(document: U8, i: np.uint64, length: np.uint64) -> tuple[np.uint32, np.uint64]:
    """Return the code point at byte i of strict UTF-8 (RFC 3629), or INVALID, and its bytes."""
    c = np.uint32(document[i])
    if c < 0x80:
        return c, _1
    if c < 0xE0:
        if c < 0xC2 or i + _1 >= length or document[i + _1] & 0xC0 != 0x80:
            return INVALID, _1
        return ((c & np.uint32(0x1F)) << np.uint32(6)) | np.uint32(document[i + _1] & 0x3F), _2
    if c < 0xF0:
        if i + _2 >= length or document[i + _1] & 0xC0 != 0x80 or document[i + _2] & 0xC0 != 0x80:
            return INVALID, _1
        point = (
            ((c & np.uint32(0x0F)) << np.uint32(12))
            | (np.uint32(document[i + _1] & 0x3F) << np.uint32(6))
            | np.uint32(document[i + _2] & 0x3F)
        )
        if point < 0x800 or 0xD800 <= point < 0xE000:
            return INVALID, _1
        return point, _3
    if (
        c > 0xF4
        or i + _3 >= length
        or document[i + _1] & 0xC0 != 0x80
        or document[i + _2] & 0xC0 != 0x80
        or document[i + _3] & 0xC0 != 0x80
    ):
        return INVALID, _1
    point = (
        ((c & np.uint32(0x07)) << np.uint32(18))
        | (np.uint32(document[i + _1] & 0x3F) << np.uint32(12))
        | (np.uint32(document[i + _2] & 0x3F) << np.uint32(6))
        | np.uint32(document[i + _3] & 0x3F)
    )
    if point < 0x10000 or point > 0x10FFFF:
        return INVALID, _1
    return point, _4


@inlined
def encode(point: np.uint32, out: U8, o: np.uint64) -> np.uint64:
    """Write a code point as UTF-8 at out[o]; return the next position."""
    if point < 0x80:
        out[o] = np.uint8(point)
        return o + _1
    if point < 0x800:
        out[o] = np.uint8(0xC0 | (point >> np.uint32(6)))
        out[o + _1] = np.uint8(0x80 | (point & np.uint32(0x3F)))
        return o + _2
    if point < 0x10000:
        out[o] = np.uint8(0xE0 | (point >> np.uint32(12)))
        out[o + _1] = np.uint8(0x80 | ((point >> np.uint32(6)) & np.uint32(0x3F)))
        out[o + _2] = np.uint8(0x80 | (point & np.uint32(0x3F)))
        return o + _3
    out[o] = np.uint8(0xF0 | (point >> np.uint32(18)))
    out[o + _1] = np.uint8(0x80 | ((point >> np.uint32(12)) & np.uint32(0x3F)))
    out[o + _2] = np.uint8(0x80 | ((point >> np.uint32(6)) & np.uint32(0x3F)))
    out[o + _3] = np.uint8(0x80 | (point & np.uint32(0x3F)))
    return o + _4


@inlined
def _keep_terms(folded: U8, edges: I32, tokens: int) -> int:
    """Drop tokens of fewer than three characters, and "the" (R1); return how many remain."""
    kept = 0
    for t in range(tokens):
        start = edges[2 * t]
        end = edges[2 * t + 1]
        characters = 0
        for i in range(start, end):
            characters += np.int64(folded[i] & 0xC0 != 0x80)
        is_the = end - start == 3 and load64(folded, start) & np.uint64(0xFFFFFF) == _WORD_THE
        if characters >= 3 and not is_the:
            edges[2 * kept] = start
            edges[2 * kept + 1] = end
            kept += 1
    return kept


@inlined
def tokens_by_table(
    document: U8, cutting: Cutting, folded: U8, edges: I32, locate: bool, origins: I32
) -> tuple[int, int]:
    """Fold and tokenise UTF-8 by the character table; return number of tokens and outcome.

    locate : whether to set origins[2 * o], origins[2 * o + 1] to start and end of the characters
        of the document that became byte o of `folded`.

    The NFKC form of a text is that of its characters, as long as every character passes the quick
    check of UAX #15 (section 9) after its own mapping: none is COMPLEX, and combining classes are
    in order. Otherwise the outcome is NEEDS_NORMALIZING.
    """
    length = np.uint64(len(document))
    table, classes = cutting.table, cutting.classes
    # Room for the last character, and to load eight bytes from its end on.
    limit = np.uint64(len(folded) - 16)
    o = np.uint64(0)
    n = np.uint64(0)
    opened = SEPARATE  # JOIN while a run is open, ALONE while such a token is.
    blank_pending = False
    blank_start = np.uint64(0)
    blank_end = np.uint64(0)
    last_class = np.uint8(0)
    i = np.uint64(0)
    resume = i  # After a block of little use, a few characters are taken one by one.
    while i < length:
        if cutting.in_blocks and i >= resume:
            begin = i
            i, o, n, opened = take_blocks(document, cutting, folded, edges, i, o, n, opened)
            if i > begin:
                last_class = np.uint8(0)
            if locate:  # Bytes of a block stay where they are.
                for byte in range(i - begin):
                    at = o - (i - begin) + byte
                    origins[_2 * at] = begin + byte
                    origins[_2 * at + _1] = begin + byte + _1
            if i < begin + _8:
                resume = i + _64
            if i >= length:
                break
        if cutting.rule == RULE_CHARACTERS and document[i] < 0x80 and not locate:
            begin = i
            i, o, n, blank_pending = take_characters(
                document, cutting.keep_case, folded, edges, i, o, n, blank_pending
            )
            if i > begin:
                last_class = np.uint8(0)
                opened = ALONE if n > _0 else SEPARATE
            if i >= length:
                break
        point, step = decode(document, i, length)
        if point == INVALID:
            return np.int64(n), NOT_UTF8
        start = i
        i += step
        entry = table[point]
        if (entry >> np.uint32(ACTION_SHIFT)) & np.uint32(7) == DROP:
            continue  # The characters on both sides of it are normalised as neighbours.
        if entry & np.uint32(COMPLEX):
            return np.int64(n), NEEDS_NORMALIZING
        if entry & np.uint32(HAS_CLASS):
            first = classes[np.uint64(2) * np.uint64(point)]
            if first != 0 and first < last_class:
                return np.int64(n), NEEDS_NORMALIZING
            last_class = classes[np.uint64(2) * np.uint64(point) + _1]
        else:
            last_class = np.uint8(0)
        at = np.uint64(0)
        pieces = np.uint32(1)
        if entry & np.uint32(EXPANDS):
            at = np.uint64(entry & np.uint32(CODE_POINT_BITS))
            pieces = table[at]
        for piece in range(pieces):
            if entry & np.uint32(EXPANDS):
                part = table[at + _1 + np.uint64(piece)]
            else:
                part = entry
            action = (part >> np.uint32(ACTION_SHIFT)) & np.uint32(7)
            if action == JOIN:
                if opened != JOIN:
                    if opened == ALONE:
                        edges[n] = o
                        n += _1
                    edges[n] = o
                    n += _1
                    opened = JOIN
            elif action == SEPARATE:
                if opened != SEPARATE:
                    edges[n] = o
                    n += _1
                    opened = SEPARATE
                continue
            elif action == ALONE:
                if opened != SEPARATE:
                    edges[n] = o
                    n += _1
                if blank_pending:
                    blank_pending = False
                    edges[n] = o
                    folded[o] = 0x20
                    if locate:
                        origins[_2 * o] = blank_start
                        origins[_2 * o + _1] = blank_end
                    o += _1
                    edges[n + _1] = o
                    n += _2
                edges[n] = o
                n += _1
                opened = ALONE
            elif action == MARK:
                if opened == SEPARATE:
                    edges[n] = o
                    n += _1
                    opened = JOIN
            elif action == BLANK:
                if locate and not blank_pending:
                    blank_start = start
                blank_end = i
                blank_pending = n > np.uint64(0)
                continue
            else:
                continue
            if o > limit:
                # Expansions outgrew the scratch array: a text of U+FDFA grows elevenfold.
                return np.int64(n), NEEDS_NORMALIZING
            end = encode(part & np.uint32(CODE_POINT_BITS), folded, o)
            if locate:
                for byte in range(o, end):
                    origins[_2 * byte] = start
                    origins[_2 * byte + _1] = i
            o = end
    if opened != SEPARATE:
        edges[n] = o
        n += _1
    tokens = n >> _1
    if tokens > length:
        # Expansions made more than one token a byte, which a text in normal form never has.
        return np.int64(0), NEEDS_NORMALIZING
    if cutting.rule == RULE_TERMS:
        return _keep_terms(folded, edges, np.int64(tokens)), DONE
    return np.int64(tokens), DONE


@inlined
def find_border(document: U8, start: int, borders: int) -> int:
    """Return where the part of a document ends that begins at `start`: at a border, or its end.

    borders : how many kinds of borders the document may have: 0, and it is one part; 1, those of
        parts; 2, also that of what is sealed (`base.forms`). A border is the byte 255, which UTF-8
        never has, and the number of its kind.
    """
    length = len(document)
    at = start if borders else length
    while at < length:
        found = within(document, at, 0, 0xFF, 1)
        while found:
            i = at + np.int64(count_trailing_zeros(found))
            found &= found - _1
            if i + 1 < length and document[i + 1] < borders:
                return i
        at += 64
    return length


@inlined
def parse_ids(document: U8, ids: U64) -> tuple[int, int]:
    """Parse blank-separated decimal integers below 2^64; return their number and the outcome."""
    n = 0
    i = 0
    length = len(document)
    limit = _ONES // np.uint64(10)
    while i < length:
        c = document[i]
        if c == 0x20 or 0x09 <= c <= 0x0D:
            i += 1
            continue
        x = np.uint64(0)
        while i < length and not (document[i] == 0x20 or 0x09 <= document[i] <= 0x0D):
            digit = np.uint64(document[i] - np.uint8(48))
            if digit > np.uint64(9) or x > limit or (x == limit and digit > np.uint64(5)):
                return n, NOT_IDS
            x = x * np.uint64(10) + digit
            i += 1
        ids[n] = x
        n += 1
    return n, DONE
