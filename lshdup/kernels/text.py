"""From the bytes of a batch of documents to shingle sets: tokenise, hash, roll, sort.

A document passes four loops. `_ascii_words` or `_tokens_by_table` writes its normal form to `folded` and the edges of its tokens
(start, end, start, end …) to `edges`; `_hash_tokens` turns tokens into 64-bit hashes; `_roll` turns k neighbouring hashes into one
shingle; `sort_unique` makes the set. Called by `shingles.py`, which owns the scratch arrays and the definitions in words.
"""

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.jit import count_trailing_zeros, inlined, kernel, load64, mix64
from lshdup.ragged import PADDING

# What a code point does to the token it meets (three bits of a character table entry, see chartable.py).
SEPARATE = 0  # ends the token
JOIN = 1  # continues a run, or begins one
ALONE = 2  # is a token of its own, with the marks that follow it
MARK = 3  # continues whatever token is open, or begins a run
DROP = 4  # vanishes
BLANK = 5  # a run of these becomes one blank between two characters

# An entry of the character table: code point written (21 bits), action (3 bits), and these.
ACTION_SHIFT = 21
CODE_POINT_BITS = 0x1FFFFF
EXPANDS = 1 << 24  # the low 21 bits index `expansions` instead: a length, then that many entries
COMPLEX = 1 << 25  # the normal form may depend on the neighbours
HAS_CLASS = 1 << 26  # a canonical combining class is recorded at either end

# Token rules and shingle hashes that differ by more than the table.
RULE_PLAIN = 0
RULE_TERMS = 1  # drop "the" and what is shorter than three characters
RULE_IDS = 2  # tokens are decimal integers, and are their own hash
HASH_MIX64 = 0
HASH_POLY31 = 1

# What became of a document.
DONE = 0
NOT_UTF8 = 1
NEEDS_NORMALIZING = 2
NOT_IDS = 3

# What `inspect` found in a document's bytes.
HAS_NUL = 1
HAS_HIGH = 2
STARTS_MARKUP = 4
BINARY_WINDOW = 8192

TOKEN_SEED = np.uint64(0x9E3779B97F4A7C15)
SHINGLE_FACTOR = np.uint64(0xD6E8FEB86659FD93)
BAG_STEP = np.uint64(0xA0761D6478BD642F)
_POLY31_FACTOR = np.uint64(31)
_POLY31_MASK = np.uint64(0xFFFFFFFF)

_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW_BITS = np.uint64(0x0101010101010101)
_HIGH_BITS = np.uint64(0x8080808080808080)
_GATHER = np.uint64(0x0102040810204080)  # moves the lowest bit of each of eight bytes into the highest byte
_WORD_THE = np.uint64(0x656874)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_THREE = np.uint64(3)
_FOUR = np.uint64(4)
CROWD = 48
_INVALID = np.uint32(0xFFFFFFFF)

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


@kernel
def inspect(text: U8, starts: I64, lengths: I64, flags: U8) -> None:
    """Set HAS_NUL (within the first 8 KB), HAS_HIGH (a byte >= 0x80 anywhere) and STARTS_MARKUP for each document."""
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
        i = 3 if length >= 3 and document[0] == 0xEF and document[1] == 0xBB and document[2] == 0xBF else 0
        while i < length and (document[i] == 0x20 or 0x09 <= document[i] <= 0x0D):
            i += 1
        if i < length and document[i] == 0x3C:
            found |= np.uint8(STARTS_MARKUP)
        flags[d] = found


@inlined
def _ascii_words(document: U8, folded: U8, edges: I32, work: U8) -> int:
    """Lower-case an ASCII document into `folded` and find its runs of [0-9A-Za-z_]; returns their number.

    The first loop is written so that the compiler vectorises it (no branch, unsigned byte arithmetic). The second packs 64
    verdicts into one word, where a set bit after `xor` with its neighbour is an edge: one unpredictable branch per 64 bytes.
    """
    length = len(document)
    word_bytes = work[:length]
    out = folded[:length]
    for i in range(length):
        c = document[i]
        letter = np.uint8((c | np.uint8(0x20)) - np.uint8(97)) < np.uint8(26)
        upper = np.uint8(c - np.uint8(65)) < np.uint8(26)
        word_bytes[i] = np.uint8(letter | (np.uint8(c - np.uint8(48)) < np.uint8(10)) | (c == np.uint8(95)))
        out[i] = c + np.uint8(upper) * np.uint8(32)
    for i in range(length, length + PADDING):
        work[i] = 0
    n = np.uint64(0)
    carry = np.uint64(0)
    for base in range(0, length + 1, 64):
        verdicts = np.uint64(0)
        for j in range(8):
            verdicts |= ((load64(work, base + 8 * j) * _GATHER) >> np.uint64(56)) << np.uint64(8 * j)
        turns = verdicts ^ ((verdicts << _ONE) | carry)
        carry = verdicts >> np.uint64(63)
        while turns:
            edges[n] = base + count_trailing_zeros(turns)
            n += _ONE
            turns &= turns - _ONE
    return np.int64(n >> _ONE)


@inlined
def _decode(document: U8, i: np.uint64, length: np.uint64) -> tuple[np.uint32, np.uint64]:
    """The code point at byte i of strict UTF-8 (RFC 3629) and its number of bytes, or `_INVALID`."""
    c = np.uint32(document[i])
    if c < 0x80:
        return c, _ONE
    if c < 0xE0:
        if c < 0xC2 or i + _ONE >= length or document[i + _ONE] & 0xC0 != 0x80:
            return _INVALID, _ONE
        return ((c & np.uint32(0x1F)) << np.uint32(6)) | np.uint32(document[i + _ONE] & 0x3F), _TWO
    if c < 0xF0:
        if i + _TWO >= length or document[i + _ONE] & 0xC0 != 0x80 or document[i + _TWO] & 0xC0 != 0x80:
            return _INVALID, _ONE
        point = (
            ((c & np.uint32(0x0F)) << np.uint32(12))
            | (np.uint32(document[i + _ONE] & 0x3F) << np.uint32(6))
            | np.uint32(document[i + _TWO] & 0x3F)
        )
        if point < 0x800 or 0xD800 <= point < 0xE000:
            return _INVALID, _ONE
        return point, _THREE
    if (
        c > 0xF4
        or i + _THREE >= length
        or document[i + _ONE] & 0xC0 != 0x80
        or document[i + _TWO] & 0xC0 != 0x80
        or document[i + _THREE] & 0xC0 != 0x80
    ):
        return _INVALID, _ONE
    point = (
        ((c & np.uint32(0x07)) << np.uint32(18))
        | (np.uint32(document[i + _ONE] & 0x3F) << np.uint32(12))
        | (np.uint32(document[i + _TWO] & 0x3F) << np.uint32(6))
        | np.uint32(document[i + _THREE] & 0x3F)
    )
    if point < 0x10000 or point > 0x10FFFF:
        return _INVALID, _ONE
    return point, _FOUR


@inlined
def _encode(point: np.uint32, out: U8, o: np.uint64) -> np.uint64:
    """Write a code point as UTF-8 at out[o]; returns the next position."""
    if point < 0x80:
        out[o] = np.uint8(point)
        return o + _ONE
    if point < 0x800:
        out[o] = np.uint8(0xC0 | (point >> np.uint32(6)))
        out[o + _ONE] = np.uint8(0x80 | (point & np.uint32(0x3F)))
        return o + _TWO
    if point < 0x10000:
        out[o] = np.uint8(0xE0 | (point >> np.uint32(12)))
        out[o + _ONE] = np.uint8(0x80 | ((point >> np.uint32(6)) & np.uint32(0x3F)))
        out[o + _TWO] = np.uint8(0x80 | (point & np.uint32(0x3F)))
        return o + _THREE
    out[o] = np.uint8(0xF0 | (point >> np.uint32(18)))
    out[o + _ONE] = np.uint8(0x80 | ((point >> np.uint32(12)) & np.uint32(0x3F)))
    out[o + _TWO] = np.uint8(0x80 | ((point >> np.uint32(6)) & np.uint32(0x3F)))
    out[o + _THREE] = np.uint8(0x80 | (point & np.uint32(0x3F)))
    return o + _FOUR


@inlined
def _tokens_by_table(document: U8, table: U32, expansions: U32, classes: U8, folded: U8, edges: I32) -> tuple[int, int]:
    """Fold and tokenise any UTF-8 by the character table; returns (number of tokens, what became of the document).

    The text is its own NFKC form, character by character, as long as every character passes the quick check of UAX #15
    (section 9) after its own mapping: no COMPLEX one, combining classes in order. Where that fails, the caller normalises.
    """
    length = np.uint64(len(document))
    limit = np.uint64(len(folded) - 8)
    o = np.uint64(0)
    n = np.uint64(0)
    opened = SEPARATE  # or JOIN: a run is open; or ALONE: such a token is open
    blank_pending = False
    last_class = np.uint8(0)
    i = np.uint64(0)
    while i < length:
        point, step = _decode(document, i, length)
        if point == _INVALID:
            return np.int64(n), NOT_UTF8
        i += step
        entry = table[point]
        if entry & np.uint32(COMPLEX):
            return np.int64(n), NEEDS_NORMALIZING
        if entry & np.uint32(HAS_CLASS):
            first = classes[np.uint64(2) * np.uint64(point)]
            if first != 0 and first < last_class:
                return np.int64(n), NEEDS_NORMALIZING
            last_class = classes[np.uint64(2) * np.uint64(point) + _ONE]
        else:
            last_class = np.uint8(0)
        at = np.uint64(0)
        pieces = np.uint32(1)
        if entry & np.uint32(EXPANDS):
            at = np.uint64(entry & np.uint32(CODE_POINT_BITS))
            pieces = expansions[at]
        for piece in range(pieces):
            if entry & np.uint32(EXPANDS):
                part = expansions[at + _ONE + np.uint64(piece)]
            else:
                part = entry
            action = (part >> np.uint32(ACTION_SHIFT)) & np.uint32(7)
            if action == JOIN:
                if opened != JOIN:
                    if opened == ALONE:
                        edges[n] = o
                        n += _ONE
                    edges[n] = o
                    n += _ONE
                    opened = JOIN
            elif action == SEPARATE:
                if opened != SEPARATE:
                    edges[n] = o
                    n += _ONE
                    opened = SEPARATE
                continue
            elif action == ALONE:
                if opened != SEPARATE:
                    edges[n] = o
                    n += _ONE
                if blank_pending:
                    blank_pending = False
                    edges[n] = o
                    folded[o] = 0x20
                    o += _ONE
                    edges[n + _ONE] = o
                    n += _TWO
                edges[n] = o
                n += _ONE
                opened = ALONE
            elif action == MARK:
                if opened == SEPARATE:
                    edges[n] = o
                    n += _ONE
                    opened = JOIN
            elif action == BLANK:
                blank_pending = n > np.uint64(0)
                continue
            else:
                continue
            if o > limit:
                # Expansions outgrew the scratch array (a text of U+FDFA grows elevenfold): take the patient way.
                return np.int64(n), NEEDS_NORMALIZING
            o = _encode(part & np.uint32(CODE_POINT_BITS), folded, o)
    if opened != SEPARATE:
        edges[n] = o
        n += _ONE
    return np.int64(n >> _ONE), DONE


@inlined
def _keep_terms(folded: U8, edges: I32, tokens: int) -> int:
    """Drop the tokens that R1 drops: fewer than three characters, and "the"."""
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
def _hash_tokens(folded: U8, edges: I32, tokens: int, hashes: U64) -> None:
    """hashes[t] = the token's bytes, eight at a time, each word xor-ed in and mixed; the last one padded with zeros.

    The first loop has no branch: nearly all words of nearly all languages end within it. Tokens contain no NUL unless they are
    characters, where the length is one byte, so the padding is unambiguous and up to eight bytes the hash is a bijection.
    """
    for t in range(tokens):
        start = edges[2 * t]
        size = min(edges[2 * t + 1] - start, 8)
        hashes[t] = mix64(TOKEN_SEED ^ (load64(folded, start) & (_ONES >> np.uint64(64 - 8 * size))))
    for t in range(tokens):
        end = edges[2 * t + 1]
        at = edges[2 * t] + 8
        if at < end:
            h = hashes[t]
            while at < end:
                size = min(end - at, 8)
                h = mix64(h ^ (load64(folded, at) & (_ONES >> np.uint64(64 - 8 * size))))
                at += 8
            hashes[t] = h


@inlined
def _code_points(folded: U8, edges: I32, tokens: int, hashes: U64) -> None:
    """hashes[t] = the code point of a one-character token, for the lecture's polynomial hash (R2)."""
    for t in range(tokens):
        point, _ = _decode(folded, np.uint64(edges[2 * t]), np.uint64(edges[2 * t + 1]))
        hashes[t] = np.uint64(point)


@inlined
def _roll(hashes: U64, tokens: int, k: int, factor: np.uint64, mask: np.uint64, shingles: U64) -> int:
    """shingles[t] = Horner's polynomial in `factor` over k neighbouring hashes; a shorter document is one shingle."""
    if tokens == 0:
        return 0
    k = min(k, tokens)
    n = tokens - k + 1
    for t in range(n):
        shingles[t] = hashes[t]
    for j in range(1, k):
        for t in range(n):
            shingles[t] = shingles[t] * factor + hashes[t + j]
    for t in range(n):
        shingles[t] &= mask
    return n


@inlined
def _sort(values: U64, n: int, spare: U64, counts: I32) -> None:
    """Sort values[:n] in place: one scatter by the leading bits of the range, then insertion.

    Hashes are uniform, so n buckets hold one or two values each and the whole costs a few cycles a value; ids, or repeats, that
    crowd in one bucket get a comparison sort of their own.
    """
    low = values[0]
    high = values[0]
    for i in range(n):
        low = min(low, values[i])
        high = max(high, values[i])
    bits = np.uint64(0)
    while (1 << bits) < n:
        bits += _ONE
    shift = np.uint64(0)
    while shift < 63 and ((high - low) >> shift) >> bits:
        shift += _ONE
    buckets = 1 << np.int64(bits)
    for i in range(buckets + 1):
        counts[i] = 0
    for i in range(n):
        counts[((values[i] - low) >> shift) + _ONE] += 1
    for i in range(buckets):
        counts[i + 1] += counts[i]
    for i in range(n):
        bucket = (values[i] - low) >> shift
        at = counts[bucket]
        spare[np.uint64(at)] = values[i]
        counts[bucket] = at + 1
    begin = 0  # counts[b] is where bucket b ends, now
    for i in range(buckets):
        end = counts[i]
        if end - begin > CROWD:
            spare[begin:end].sort()
        begin = end
    values[0] = spare[0]
    for i in range(1, n):
        x = spare[i]
        j = np.uint64(i)
        while j > np.uint64(0) and values[j - _ONE] > x:
            values[j] = values[j - _ONE]
            j -= _ONE
        values[j] = x


@inlined
def _unique(values: U64, n: int) -> int:
    """Drop repeats from sorted values in place; returns how many are left."""
    m = _ONE
    for i in range(1, n):
        x = values[i]
        different = x != values[m - _ONE]
        values[m] = x
        m += np.uint64(different)
    return np.int64(m)


@inlined
def _count_repeats(values: U64, n: int) -> None:
    """Turn a sorted multiset into a set: the j-th repeat of x (j = 1 …) becomes mix64(x + j * BAG_STEP)."""
    run = values[0]
    repeat = np.uint64(0)
    for i in range(1, n):
        x = values[i]
        if x == run:
            repeat += _ONE
            values[i] = mix64(x + repeat * BAG_STEP)
        else:
            run = x
            repeat = np.uint64(0)


@inlined
def _parse_ids(document: U8, ids: U64) -> tuple[int, int]:
    """Blank-separated decimal integers below 2^64; returns (how many, what became of the document)."""
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


@kernel
def shingle_batch(
    text: U8,
    starts: I64,
    lengths: I64,
    flags: U8,
    table: U32,
    expansions: U32,
    classes: U8,
    ascii_words: bool,
    rule: int,
    hash_kind: int,
    k: int,
    bag: bool,
    folded: U8,
    edges: I32,
    work: U8,
    hashes: U64,
    spare: U64,
    counts: I32,
    values: U64,
    sizes: I64,
    outcomes: U8,
) -> int:
    """Shingle sets of a batch: `values` holds them one after the other, each sorted; returns the total.

    Documents whose outcome is not DONE have size 0 here. `values` must have room for one value per byte of text, `folded` for
    twice the longest document and padding, the other scratch arrays for the longest document and padding.
    """
    total = 0
    for d in range(len(starts)):
        document = text[starts[d] : starts[d] + lengths[d]]
        room = values[total:]
        outcome = DONE
        tokens = 0
        if rule == RULE_IDS:
            tokens, outcome = _parse_ids(document, hashes)
        elif ascii_words and not flags[d] & HAS_HIGH:
            tokens = _ascii_words(document, folded, edges, work)
        else:
            tokens, outcome = _tokens_by_table(document, table, expansions, classes, folded, edges)
        outcomes[d] = outcome
        sizes[d] = 0
        if outcome != DONE:
            continue
        if rule == RULE_TERMS:
            tokens = _keep_terms(folded, edges, tokens)
        factor = SHINGLE_FACTOR
        mask = _ONES
        if hash_kind == HASH_POLY31:
            _code_points(folded, edges, tokens, hashes)
            factor = _POLY31_FACTOR
            mask = _POLY31_MASK
        elif rule != RULE_IDS:
            _hash_tokens(folded, edges, tokens, hashes)
        n = _roll(hashes, tokens, k, factor, mask, room)
        if n > 1:
            _sort(room, n, spare, counts)
            if bag:
                _count_repeats(room, n)
                _sort(room, n, spare, counts)
            n = _unique(room, n)
        sizes[d] = n
        total += n
    return total


@kernel
def set_fingerprints(values: U64, offsets: I64, fingerprints: U64) -> None:
    """One 64-bit number per set, the same exactly for equal sets (up to a chance of 2^-64 a pair); 0 for the empty set."""
    for d in range(len(offsets) - 1):
        h = np.uint64(0)
        for i in range(offsets[d], offsets[d + 1]):
            h += mix64(values[i] ^ TOKEN_SEED)
        n = np.uint64(offsets[d + 1] - offsets[d])
        fingerprints[d] = mix64(h ^ (n * SHINGLE_FACTOR)) if n else np.uint64(0)


@kernel
def shingles_in_order(
    document: U8,
    table: U32,
    expansions: U32,
    classes: U8,
    rule: int,
    hash_kind: int,
    k: int,
    folded: U8,
    edges: I32,
    hashes: U64,
    shingles: U64,
) -> tuple[int, int, int]:
    """One document's tokens (in `folded` and `edges`) and its shingles in the order of the text, repeats too.

    Returns (number of tokens, number of shingles, what became of the document). For people to look at; `shingle_batch` makes the sets.
    """
    tokens, outcome = _tokens_by_table(document, table, expansions, classes, folded, edges)
    if outcome != DONE:
        return 0, 0, outcome
    if rule == RULE_TERMS:
        tokens = _keep_terms(folded, edges, tokens)
    factor = SHINGLE_FACTOR
    mask = _ONES
    if hash_kind == HASH_POLY31:
        _code_points(folded, edges, tokens, hashes)
        factor = _POLY31_FACTOR
        mask = _POLY31_MASK
    else:
        _hash_tokens(folded, edges, tokens, hashes)
    return tokens, _roll(hashes, tokens, k, factor, mask, shingles), DONE
