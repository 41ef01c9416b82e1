"""Tokens -> shingle sets: `shingle_batch` goes from the bytes of a batch of documents to sets.

`_hash_tokens` turns tokens into 64-bit hashes, `_roll` turns k consecutive hashes into a shingle,
`_sort` and `_unique` make the set. Reference in the tests: `shingle_list` of tests/reference.py.
"""

import numpy as np

from lshdup.kernels.ascii import ascii_symbols, ascii_words
from lshdup.kernels.helpers import I32, I64, U8, U32, U64, inlined, load64, mix64, scatter_by
from lshdup.kernels.jit import kernel
from lshdup.kernels.ordering import heap_sort
from lshdup.kernels.sequences import sequence_fingerprint
from lshdup.kernels.text import (
    DONE,
    HAS_HIGH,
    RULE_IDS,
    RULE_SYMBOLS,
    RULE_TERMS,
    decode,
    keep_terms,
    parse_ids,
    tokens_by_table,
)  # fmt: skip

HASH_MIX64 = 0
HASH_POLY31 = 1
HASH_KEYED = 2

TOKEN_SEED = np.uint64(0x9E3779B97F4A7C15)
SHINGLE_FACTOR = np.uint64(0xD6E8FEB86659FD93)
BAG_STEP = np.uint64(0xA0761D6478BD642F)

#: A bucket of `_sort` with more values than this is sorted by comparison.
CROWD = 48

_POLY31_FACTOR = np.uint64(31)
_POLY31_MASK = np.uint64(0xFFFFFFFF)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)


@inlined
def _hash_tokens(folded: U8, edges: I32, tokens: int, seed: np.uint64, hashes: U64) -> None:
    """Set hashes[t] to the hash of a token: words of eight bytes, each xor-ed and mixed.

    The last word is padded with zeros. Tokens contain no NUL, unless they are one character, so
    the padding is unambiguous, and up to eight bytes the hash is a bijection. The first loop has
    no branch: most words of most languages end within it.
    """
    for t in range(tokens):
        start = edges[2 * t]
        size = min(edges[2 * t + 1] - start, 8)
        hashes[t] = load64(folded, start) & (_ONES >> np.uint64(64 - 8 * size))
    for t in range(tokens):  # A loop of its own, because the compiler vectorises it.
        hashes[t] = mix64(seed ^ hashes[t])
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
    """Set hashes[t] to the code point of a one-character token, for the polynomial hash of R2."""
    for t in range(tokens):
        point, _ = decode(folded, np.uint64(edges[2 * t]), np.uint64(edges[2 * t + 1]))
        hashes[t] = np.uint64(point)


@inlined
def _roll(
    hashes: U64, tokens: int, k: int, factor: np.uint64, mask: np.uint64, mixed: bool, shingles: U64
) -> int:
    """Set shingles[t] to Horner's polynomial in `factor` over k consecutive hashes.

    A document of fewer than k tokens is one shingle.

    mixed : whether every step but the first is mixed. Without mixing, certain sequences of two
        tokens (Thue and Morse's) agree in many bits for any factor, and from k = 1024 on in all;
        with a secret factor, mixing hides which sequences are equal.

    Returns the number of shingles.
    """
    if tokens == 0:
        return 0
    k = min(k, tokens)
    n = tokens - k + 1
    for t in range(n):
        shingles[t] = hashes[t]
    for j in range(1, k):
        for t in range(n):
            shingles[t] = shingles[t] * factor + hashes[t + j]
        if mixed:
            for t in range(n):
                shingles[t] = mix64(shingles[t])
    for t in range(n):
        shingles[t] &= mask
    return n


@inlined
def _sort(values: U64, n: int, spare: U64, counts: I32, uniform: bool) -> None:
    """Sort values[:n] in place: one scatter by the leading bits, then insertion.

    Hashes are uniform over 64 bits, so n buckets hold one or two values each, and a value costs a
    few cycles. Other values (ids, the hash of R2) are scattered by the bits of their range, and a
    crowded bucket is sorted by comparison.
    """
    low = np.uint64(0)
    high = _ONES
    if not uniform:
        low = values[0]
        high = values[0]
        for i in range(n):
            low = min(low, values[i])
            high = max(high, values[i])
    shift, buckets = scatter_by(high - low, n)
    for i in range(buckets + 1):
        counts[i] = 0
    for i in range(n):
        counts[((values[i] - low) >> shift) + _ONE] += 1
    crowd = np.int32(0)
    for i in range(buckets):
        crowd = max(crowd, counts[i + 1])
        counts[i + 1] += counts[i]
    for i in range(n):
        bucket = (values[i] - low) >> shift
        at = counts[bucket]
        spare[np.uint64(at)] = values[i]
        counts[bucket] = at + 1
    if crowd > CROWD:
        begin = 0  # counts[b] is now the end of bucket b.
        for i in range(buckets):
            end = counts[i]
            if end - begin > CROWD:
                heap_sort(spare, begin, end - begin)
            begin = end
    # One pass without a branch to mispredict sorts most buckets of two or three values.
    largest = spare[0]
    for i in range(1, n):
        x = spare[i]
        values[i - 1] = min(largest, x)
        largest = max(largest, x)
    values[n - 1] = largest
    for i in range(1, n):
        x = values[i]
        if values[i - 1] > x:
            j = np.uint64(i)
            while j > np.uint64(0) and values[j - _ONE] > x:
                values[j] = values[j - _ONE]
                j -= _ONE
            values[j] = x


@inlined
def _unique(values: U64, n: int) -> int:
    """Drop repeats from sorted values in place; return the number of distinct values."""
    m = _ONE
    for i in range(1, n):
        x = values[i]
        different = x != values[m - _ONE]
        values[m] = x
        m += np.uint64(different)
    return np.int64(m)


@inlined
def _count_repeats(values: U64, n: int, step: np.uint64) -> None:
    """Turn a sorted multiset into a set: repeat j >= 1 of x becomes mix64(x + j * step)."""
    run = values[0]
    repeat = np.uint64(0)
    for i in range(1, n):
        x = values[i]
        if x == run:
            repeat += _ONE
            values[i] = mix64(x + repeat * step)
        else:
            run = x
            repeat = np.uint64(0)


@inlined
def _shingles_of(
    folded: U8,
    edges: I32,
    tokens: int,
    rule: int,
    hash_kind: int,
    seed: np.uint64,
    factor: np.uint64,
    k: int,
    hashes: U64,
    shingles: U64,
) -> int:
    """Write the shingles of a document's tokens in the order of the text; return their number.

    Ids are their own hashes.
    """
    if hash_kind == HASH_POLY31:
        _code_points(folded, edges, tokens, hashes)
        return _roll(hashes, tokens, k, _POLY31_FACTOR, _POLY31_MASK, False, shingles)
    if rule != RULE_IDS:
        _hash_tokens(folded, edges, tokens, seed, hashes)
    return _roll(hashes, tokens, k, factor, _ONES, hash_kind == HASH_KEYED, shingles)


@kernel
def shingle_batch(
    text: U8,
    starts: I64,
    lengths: I64,
    flags: U8,
    table: U32,
    classes: U8,
    take_ascii: bool,
    keep_case: bool,
    rule: int,
    hash_kind: int,
    seed: np.uint64,
    factor: np.uint64,
    step: np.uint64,
    k: int,
    bag: bool,
    least: int,
    folded: U8,
    edges: I32,
    work: U8,
    hashes: U64,
    spare: U64,
    counts: I32,
    values: U64,
    sizes: I64,
    text_prints: U64,
    outcomes: U8,
) -> int:
    """Write the shingle sets of a batch to `values`, one after the other, each sorted.

    least : documents of fewer tokens have empty sets.
    values : with room for one value a byte of text.
    sizes, text_prints, outcomes : of each document; if the outcome is not DONE, the first are 0.
        text_prints : fingerprints of the sequence of tokens, 0 without tokens.
    folded : scratch, for twice the longest document and padding; edges, work, hashes, spare and
        counts : scratch, for the longest document and padding.

    Returns the total size.
    """
    total = 0
    uniform = rule != RULE_IDS and hash_kind != HASH_POLY31
    for d in range(len(starts)):
        document = text[starts[d] : starts[d] + lengths[d]]
        room = values[total:]
        outcome = DONE
        tokens = 0
        if rule == RULE_IDS:
            tokens, outcome = parse_ids(document, hashes)
        elif take_ascii and not flags[d] & HAS_HIGH:
            if rule == RULE_SYMBOLS:
                tokens = ascii_symbols(document, folded, edges, work, keep_case)
            else:
                tokens = ascii_words(document, folded, edges, work, keep_case)
        else:
            tokens, outcome = tokens_by_table(document, table, classes, folded, edges, False, edges)
        outcomes[d] = outcome
        sizes[d] = 0
        text_prints[d] = 0
        if outcome != DONE:
            continue
        if rule == RULE_TERMS:
            tokens = keep_terms(folded, edges, tokens)
        n = _shingles_of(folded, edges, tokens, rule, hash_kind, seed, factor, k, hashes, room)
        if tokens:
            text_prints[d] = sequence_fingerprint(hashes, tokens, seed, factor)
        if tokens < least:
            n = 0
        if n > 1:
            _sort(room, n, spare, counts, uniform)
            if bag:
                _count_repeats(room, n, step)
                _sort(room, n, spare, counts, uniform)
            n = _unique(room, n)
        sizes[d] = n
        total += n
    return total


@kernel
def set_fingerprints(values: U64, offsets: I64, seed: np.uint64, fingerprints: U64) -> None:
    """Set fingerprints[d] to a 64-bit hash of a set; 0 for the empty set."""
    for d in range(len(offsets) - 1):
        h = np.uint64(0)
        for i in range(offsets[d], offsets[d + 1]):
            h += mix64(values[i] ^ seed)
        n = np.uint64(offsets[d + 1] - offsets[d])
        fingerprints[d] = mix64(h ^ (n * SHINGLE_FACTOR)) if n else np.uint64(0)


@kernel
def shingles_in_order(
    document: U8,
    table: U32,
    classes: U8,
    rule: int,
    hash_kind: int,
    seed: np.uint64,
    factor: np.uint64,
    k: int,
    folded: U8,
    edges: I32,
    origins: I32,
    hashes: U64,
    shingles: U64,
    found: I64,
) -> int:
    """Write the tokens of one document, and its shingles in the order of the text, with repeats.

    folded, edges, origins : the tokens, as `tokens_by_table` writes them.
    found : number of tokens, number of shingles.

    Returns the outcome. For display; `shingle_batch` makes the sets.
    """
    tokens, outcome = tokens_by_table(document, table, classes, folded, edges, True, origins)
    found[0] = found[1] = 0
    if outcome != DONE:
        return outcome
    if rule == RULE_TERMS:
        tokens = keep_terms(folded, edges, tokens)
    found[0] = tokens
    found[1] = _shingles_of(
        folded, edges, tokens, rule, hash_kind, seed, factor, k, hashes, shingles
    )
    return outcome
