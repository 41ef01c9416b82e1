"""Tokens -> shingle sets: `shingle_batch` goes from the bytes of a batch of documents to sets.

`_hash_tokens` turns tokens into 64-bit hashes, `_roll` turns k consecutive hashes into a shingle,
`distinct_values` makes the set, in no particular order; `sets.sort_sets` sorts it. Beside the sets
are the fingerprints of sequences, and the bytes of runs of tokens. References in the tests:
`shingle_list`, `sequence_fingerprint` and `byte_fingerprint` of tests/reference.py.
"""

from typing import NamedTuple

import numpy as np

from lshdup.kernels.helpers import I32, I64, U8, U32, U64, folded_product, inlined, load64, mix64
from lshdup.kernels.jit import kernel
from lshdup.kernels.sets import heap_sort, sort_values, unique_values
from lshdup.kernels.text import (
    DONE,
    REACH_SHIFT,
    RULE_IDS,
    Cutting,
    decode,
    find_border,
    parse_ids,
    tokens_by_table,
)

HASH_MIX64 = 0
HASH_POLY31 = 1
HASH_KEYED = 2

TOKEN_SEED = np.uint64(0x9E3779B97F4A7C15)
SHINGLE_FACTOR = np.uint64(0xD6E8FEB86659FD93)
BAG_STEP = np.uint64(0xA0761D6478BD642F)

#: `distinct_values` sorts the values that still share a slot after this many rounds.
ROUNDS = 8
_NEXT_FACTOR = np.uint64(0x9E3779B97F4A7C16)  # Even: a factor stays odd.

_POLY31_FACTOR = np.uint64(31)
_POLY31_MASK = np.uint64(0xFFFFFFFF)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_0, _1, _2, _8, _16, _24, _32 = (np.uint64(i) for i in (0, 1, 2, 8, 16, 24, 32))
_LEFT, _RIGHT = np.uint64(29), np.uint64(35)
_BORDER_BYTE = np.uint64(0xFF)

#: Distance of the lanes of a fingerprint of a sequence.
_LANE = np.uint64(0x9E3779B97F4A7C15)


class ShingleHash(NamedTuple):
    """The hash that identifies shingles.

    kind : HASH_MIX64, HASH_POLY31, or HASH_KEYED.
    seed, factor, step : numbers in the hash of tokens, of sequences, and of repeats in a bag; the
        factor is odd.
    set_seed : number in the fingerprint of a set.
    """

    kind: int
    seed: np.uint64 = TOKEN_SEED
    factor: np.uint64 = SHINGLE_FACTOR
    step: np.uint64 = BAG_STEP
    set_seed: np.uint64 = TOKEN_SEED


class Scratch(NamedTuple):
    """Arrays for the work on one document at a time.

    folded : bytes of its normal form. edges : where its tokens begin and end in it.
    hashes, shingles : for one number a token.
    """

    folded: U8
    edges: I32
    hashes: U64
    shingles: U64


# --- fingerprints of sequences ---


@inlined
def _turn(lane: np.uint64, word: np.uint64, used: ShingleHash) -> np.uint64:
    """Return a lane after a word: one of the four that take words in turn.

    The processor multiplies four words at a time. Each step is a bijection of its lane for a given
    word. The word is multiplied modulo 2^64 + 1 before: a bit of a lane that is changed by one
    word, and changed back by the next of the lane, would make a collision that needs no key. How a
    product changes with its word depends on all bits of the factor, which is secret with a key.
    """
    lane ^= folded_product(word ^ used.seed, used.factor)
    return ((lane << _LEFT) | (lane >> _RIGHT)) * used.factor


@inlined
def _finish(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, length: int) -> np.uint64:
    """Return the fingerprint of four lanes and the length."""
    h = mix64(mix64(mix64(mix64(a ^ np.uint64(length)) ^ b) ^ c) ^ d)
    return max(h, np.uint64(1))  # 0 stands for no fingerprint.


@inlined
def sequence_fingerprint(words: U64, n: int, used: ShingleHash) -> np.uint64:
    """Return a 64-bit fingerprint, never 0, of the first n words in their order."""
    seed = used.seed
    a, b, c, d = seed, seed + _LANE, seed - _LANE, ~seed
    rounds = n // 4
    for i in range(rounds):
        at = np.uint64(4 * i)
        a = _turn(a, words[at], used)
        b = _turn(b, words[at + np.uint64(1)], used)
        c = _turn(c, words[at + np.uint64(2)], used)
        d = _turn(d, words[at + np.uint64(3)], used)
    for i in range(4 * rounds, n):
        a = _turn(a, words[i], used)
    return _finish(a, b, c, d, n)


@kernel
def byte_fingerprints(
    text: U8, starts: I64, lengths: I64, used: ShingleHash, fingerprints: U64
) -> None:
    """Set fingerprints[d] to a 64-bit fingerprint, never 0, of the bytes of document d.

    text : with padding behind the last document.
    """
    seed = used.seed
    for i in range(len(starts)):
        a, b, c, d = seed, seed + _LANE, seed - _LANE, ~seed
        at = np.uint64(starts[i])
        left = lengths[i]
        while left >= 32:
            a = _turn(a, load64(text, at), used)
            b = _turn(b, load64(text, at + _8), used)
            c = _turn(c, load64(text, at + _16), used)
            d = _turn(d, load64(text, at + _24), used)
            at += _32
            left -= 32
        while left > 0:
            size = min(left, 8)
            a = _turn(a, load64(text, at) & (_ONES >> np.uint64(64 - 8 * size)), used)
            at += _8
            left -= 8
        fingerprints[i] = _finish(a, b, c, d, lengths[i])


# --- sets ---


@inlined
def _hash_tokens(
    folded: U8, edges: I32, tokens: int, seed: np.uint64, hashes: U64, longer: U64
) -> np.uint64:
    """Set hashes[t] to the hash of a token: words of eight bytes, each xor-ed and mixed.

    Return 0 if no token begins with a character of three bytes or more, so none is of a script
    without spaces.

    The last word is padded with zeros. Tokens contain no NUL, unless they are one character, so
    the padding is unambiguous, and up to eight bytes the hash is a bijection. Which tokens go on is
    collected without a branch to mispredict.

    longer : scratch, for the tokens.
    """
    if tokens and edges[2 * tokens - 1] == tokens:  # Each is one byte, of ASCII.
        for t in range(tokens):
            hashes[t] = mix64(seed ^ np.uint64(folded[t]))
        return _0
    n = np.uint64(0)
    for t in range(tokens):
        start = edges[2 * t]
        size = edges[2 * t + 1] - start
        hashes[t] = load64(folded, start) & (_ONES >> np.uint64(64 - 8 * min(size, 8)))
        longer[n] = t
        n += np.uint64(size > 8)
    high = np.uint64(0)
    for t in range(tokens):  # A loop of its own, because the compiler vectorises it.
        word = hashes[t]
        high |= word & (word << _1) & (word << _2)
        hashes[t] = mix64(seed ^ word)
    done = 8
    while n:
        count = np.int64(n)
        n = np.uint64(0)
        for i in range(count):
            t = longer[i]
            start = edges[_2 * t] + done
            size = edges[_2 * t + _1] - start
            word = load64(folded, start) & (_ONES >> np.uint64(64 - 8 * min(size, 8)))
            hashes[t] = mix64(hashes[t] ^ word)
            longer[n] = t
            n += np.uint64(size > 8)
        done += 8
    return high & np.uint64(0x80)


@inlined
def _reach(folded: U8, edges: I32, tokens: int, table: U32, reach: U64) -> np.uint64:
    """Set reach[t] to how many tokens, itself and the next ones, token t counts for in a shingle.

    Scripts without spaces have more than one, as the table says, but not beyond their run: tokens
    of such scripts with none of other scripts between. Return the bits of all numbers.
    """
    every = np.uint64(0)
    run = np.uint64(0)
    for t in range(tokens - 1, -1, -1):
        point, _ = decode(folded, np.uint64(edges[2 * t]), np.uint64(edges[2 * t + 1]))
        wanted = np.uint64(table[point] >> np.uint32(REACH_SHIFT))
        run = run + _1 if wanted else _0
        reach[t] = max(min(wanted, run), _1)
        every |= reach[t]
    return every


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
    k = min(max(k, 1), tokens)
    n = tokens - k + 1
    for t in range(n):
        shingles[t] = hashes[t]
    # Two steps at once: the arrays go through the processor half as often.
    pairs = 0 if mixed else (k - 1) // 2
    for step in range(pairs):
        j = 2 * step + 1
        for t in range(n):
            both = shingles[t] * factor + hashes[t + j]
            shingles[t] = both * factor + hashes[t + j + 1]
    for j in range(2 * pairs + 1, k):
        for t in range(n):
            shingles[t] = shingles[t] * factor + hashes[t + j]
        if mixed:
            for t in range(n):
                shingles[t] = mix64(shingles[t])
    for t in range(n):
        shingles[t] &= mask
    return n


@inlined
def distinct_values(values: U64, n: int, table: I32, lost: U64, out: U64) -> int:
    """Write the distinct values of values[:n] to `out`, in no particular order; return how many.

    Every value writes its index to the slot of its leading bits in a table of the size of a near
    cache; the last writer keeps the slot. A value that lost its slot is a repeat if the winner is
    equal. The other losers, few of hashes and most of ids, meet in the next round, by the leading
    bits of a product; values that collide for many rounds (ids can be made to) are sorted. No step
    has a branch to mispredict, and the table is never cleared.

    table : scratch, of about 4 n slots or fewer. lost : scratch, for n values.
    """
    bits = np.uint64(1)
    while (1 << np.int64(bits)) < 4 * n and (4 << np.int64(bits)) <= len(table):
        bits += _1
    shift = np.uint64(64) - bits
    for i in range(n):
        table[values[i] >> shift] = i
    m = np.uint64(0)
    left = np.uint64(0)
    for i in range(n):
        x = values[i]
        won = np.uint64(table[x >> shift] == i)
        out[m] = x
        m += won
        lost[left] = x
        left += _1 - won
    losers = np.int64(left)
    left = np.uint64(0)
    for i in range(losers):
        x = lost[i]
        lost[left] = x
        left += np.uint64(values[np.uint64(table[x >> shift])] != x)
    rounds = 0
    spread = SHINGLE_FACTOR
    while left and rounds < ROUNDS:
        rounds += 1
        spread += _NEXT_FACTOR
        losers = np.int64(left)
        for i in range(losers):
            table[(lost[i] * spread) >> shift] = i
        left = np.uint64(0)
        for i in range(losers):  # The winner is never before i, so `lost` can shrink in place.
            x = lost[i]
            winner = np.uint64(table[(x * spread) >> shift])
            repeats = lost[winner] == x
            out[m] = x
            m += np.uint64(winner == np.uint64(i))
            lost[left] = x
            left += _1 - np.uint64(repeats)
    if left:
        heap_sort(lost, 0, np.int64(left))
        losers = unique_values(lost, np.int64(left))
        for i in range(losers):
            out[m] = lost[i]
            m += _1
    return np.int64(m)


@inlined
def _fingerprint(values: U64, seed: np.uint64) -> np.uint64:
    """Return a 64-bit hash of a set, whose elements are in any order; 0 for the empty set."""
    h = np.uint64(0)
    for i in range(len(values)):
        h += mix64(values[i] ^ seed)
    n = np.uint64(len(values))
    return mix64(h ^ (n * SHINGLE_FACTOR)) if n else np.uint64(0)


@inlined
def _shingles_of(
    scratch: Scratch,
    tokens: int,
    cutting: Cutting,
    used: ShingleHash,
    k: int,
    hashes: U64,
    reached: U64,
    shingles: U64,
) -> int:
    """Write the shingles of a document's tokens in the order of the text; return their number.

    Ids are their own hashes.

    k : as for `shingle_batch`.
    hashes, shingles : parts of those of `scratch`; hashes will be those of tokens.
    reached : scratch, for the tokens.
    """
    folded, edges = scratch.folded, scratch.edges
    if used.kind == HASH_POLY31:
        _code_points(folded, edges, tokens, hashes)
        return _roll(hashes, tokens, k, _POLY31_FACTOR, _POLY31_MASK, False, shingles)
    if (
        cutting.rule != RULE_IDS
        and _hash_tokens(folded, edges, tokens, used.seed, hashes, shingles)
        and k
        and _reach(folded, edges, tokens, cutting.table, reached) > _1
    ):
        for t in range(tokens):
            h = hashes[t]
            for j in range(1, reached[t]):
                h = mix64(h * used.factor + hashes[t + j])
            reached[t] = h
        hashes = reached
    return _roll(hashes, tokens, k, used.factor, _ONES, used.kind == HASH_KEYED, shingles)


@kernel
def shingle_batch(
    text: U8,
    starts: I64,
    lengths: I64,
    cutting: Cutting,
    borders: int,
    used: ShingleHash,
    k: int,
    bag: bool,
    least: int,
    scratch: Scratch,
    values: U64,
    sizes: I64,
    set_prints: U64,
    text_prints: U64,
    outcomes: U8,
) -> int:
    """Write the shingle sets of a batch to `values`, one after the other, in no particular order.

    borders : as for `find_border`.
    k : tokens in a shingle; 0: the shingles are the tokens themselves.
    least : documents of fewer tokens have empty sets.
    bag : whether to write all shingles with their repeats, for `count_repeats`.
    values : with room for one value a byte of text.
    sizes, set_prints, text_prints, outcomes : of each document; if the outcome is not DONE, the
        first are 0. set_prints : fingerprints of the sets. text_prints : fingerprints of the
        sequences of tokens, 0 without tokens. A border between two parts with tokens is in the
        sequence as a token of its two bytes.
    scratch : for the longest document and padding, and `folded` for twice of it.

    Returns the total size.
    """
    total = 0
    hashes, shingles = scratch.hashes, scratch.shingles
    for d in range(len(starts)):
        document = text[starts[d] : starts[d] + lengths[d]]
        room = values[total:]
        sizes[d] = 0
        set_prints[d] = 0
        text_prints[d] = 0
        outcome = DONE
        tokens = 0
        words = 0  # In `hashes`: those of tokens and borders.
        n = 0
        start = 0
        kind = np.uint64(0)  # Of the border before the part.
        while True:
            end = find_border(document, start, borders)
            found = 0
            if cutting.rule == RULE_IDS:
                found, outcome = parse_ids(document, hashes)
            else:
                found, outcome = tokens_by_table(
                    document[start:end], cutting, scratch.folded, scratch.edges,
                    False, scratch.edges,
                )  # fmt: skip
            if outcome != DONE:
                break
            if found:
                if words:
                    hashes[words] = mix64(used.seed ^ (_BORDER_BYTE | (kind << _8)))
                    words += 1
                made = _shingles_of(
                    scratch, found, cutting, used, k, hashes[words:], room, shingles[n:]
                )
                words += found
                if kind == np.uint64(0):
                    tokens += found
                    n += made
            if end == len(document):
                break
            kind = np.uint64(document[end + 1])
            start = end + 2
        outcomes[d] = outcome
        if outcome != DONE:
            continue
        if tokens:
            text_prints[d] = sequence_fingerprint(hashes, words, used)
        if tokens < least:
            n = 0
        if bag:
            for i in range(n):
                room[i] = shingles[i]
        else:
            n = distinct_values(shingles, n, scratch.edges, hashes, room)
        set_prints[d] = _fingerprint(room[:n], used.set_seed)
        sizes[d] = n
        total += n
    return total


@kernel
def count_repeats(values: U64, sizes: I64, step: np.uint64, spare: U64, counts: I32) -> int:
    """Make bags of lists of shingles, in place: repeat j >= 1 of x becomes mix64(x + j * step).

    sizes : of the lists, then of the bags, which are sorted sets.
    spare, counts : scratch, as `sort_values` needs for the longest list.

    Returns the total size.
    """
    start = 0
    total = 0
    for d in range(len(sizes)):
        n = sizes[d]
        listed = values[start : start + n]
        start += n
        if n > 1:
            sort_values(listed, n, spare, counts)
            last = listed[0]
            repeat = np.uint64(0)
            for i in range(1, n):
                x = listed[i]
                repeat = repeat + _1 if x == last else np.uint64(0)
                last = x
                if repeat:
                    listed[i] = mix64(x + repeat * step)
            sort_values(listed, n, spare, counts)
            n = unique_values(listed, n)
        for i in range(n):
            values[total + i] = listed[i]
        sizes[d] = n
        total += n
    return total


@kernel
def set_fingerprints(values: U64, offsets: I64, seed: np.uint64, fingerprints: U64) -> None:
    """Set fingerprints[d] to a 64-bit hash of set d; 0 for the empty set."""
    for d in range(len(offsets) - 1):
        fingerprints[d] = _fingerprint(values[offsets[d] : offsets[d + 1]], seed)


# --- places of tokens ---


@kernel
def shingles_in_order(
    document: U8,
    cutting: Cutting,
    used: ShingleHash,
    k: int,
    scratch: Scratch,
    origins: I32,
    shingles: U64,
    sizes: U64,
    found: I64,
) -> int:
    """Write the tokens of one document, and its shingles in the order of the text, with repeats.

    scratch, origins : the tokens, as `tokens_by_table` writes them, and their hashes.
    sizes : of each shingle, the tokens from its first to the last that counts.
    found : number of tokens, number of shingles.

    Returns the outcome. For display; `shingle_batch` makes the sets.
    """
    tokens, outcome = tokens_by_table(
        document, cutting, scratch.folded, scratch.edges, True, origins
    )
    found[0] = found[1] = 0
    if outcome == DONE:
        found[0] = tokens
        found[1] = _shingles_of(
            scratch, tokens, cutting, used, k, scratch.hashes, scratch.shingles, shingles
        )
        reach = scratch.shingles
        _reach(scratch.folded, scratch.edges, tokens, cutting.table, reach)
        for i in range(found[1]):
            for j in range(tokens - found[1] + 1):
                sizes[i] = max(sizes[i], np.uint64(j) + reach[i + j])
    return outcome


@inlined
def _start_of(edges: I32, origins: I32, token: int) -> int:
    """Return the first byte of a token in the document."""
    return int(origins[2 * edges[2 * token]])


@inlined
def _end_of(edges: I32, origins: I32, token: int) -> int:
    """Return the byte behind a token in the document."""
    return int(origins[2 * edges[2 * token + 1] - 1])


@kernel
def locate_runs(
    text: U8,
    starts: I64,
    lengths: I64,
    cutting: Cutting,
    bounds: I64,
    first: I64,
    sizes: I64,
    alone: bool,
    scratch: Scratch,
    origins: I32,
    begins: I64,
    ends: I64,
    outcomes: U8,
) -> None:
    """Set the first byte of runs of tokens, and the byte behind the last one, in their document.

    text, starts, lengths : the documents.
    bounds : the runs of document d are bounds[d] … bounds[d + 1] - 1.
    first, sizes : number of the first token, and tokens, of each run.
    alone : whether to leave out characters that are also of a token beside the run.
    scratch, origins : as for `shingles_in_order`.
    begins, ends : the result; unchanged for runs behind the last token.
    outcomes : of each document; if it is not DONE, its runs are unchanged.
    """
    edges = scratch.edges
    for d in range(len(starts)):
        document = text[starts[d] : starts[d] + lengths[d]]
        tokens, outcome = tokens_by_table(document, cutting, scratch.folded, edges, True, origins)
        outcomes[d] = outcome
        if outcome != DONE:
            continue
        for i in range(bounds[d], bounds[d + 1]):
            after = first[i] + sizes[i]
            if after > tokens:
                continue
            begin = _start_of(edges, origins, first[i])
            end = _end_of(edges, origins, after - 1)
            if alone:
                if first[i] > 0:
                    begin = max(begin, _end_of(edges, origins, first[i] - 1))
                if after < tokens:
                    end = min(end, _start_of(edges, origins, after))
                end = max(begin, end)
            begins[i] = begin
            ends[i] = end
