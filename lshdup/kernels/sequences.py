"""Fingerprints of sequences: of the bytes of documents, and of the hashes of their tokens.

Four lanes take a word in turn, so that the processor multiplies four words at a time. Each step is
a bijection of its lane for a given word. The word is multiplied modulo 2^64 + 1 before: a bit of a
lane that is changed by one word, and changed back by the next of the lane, would make a collision
that needs no key. How a product changes with its word depends on all bits of the factor, which is
secret with a key. The length is mixed in last. References in the tests: `sequence_fingerprint` and
`byte_fingerprint` of tests/reference.py.
"""

import numpy as np

from lshdup.kernels.helpers import I64, U8, U64, folded_product, inlined, load64, mix64
from lshdup.kernels.jit import kernel

_LANE = np.uint64(0x9E3779B97F4A7C15)
_LEFT, _RIGHT = np.uint64(29), np.uint64(35)
_WORD, _ROUND = np.uint64(8), np.uint64(32)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def _turn(lane: np.uint64, word: np.uint64, seed: np.uint64, factor: np.uint64) -> np.uint64:
    lane ^= folded_product(word ^ seed, factor)
    return ((lane << _LEFT) | (lane >> _RIGHT)) * factor


@inlined
def _finish(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, length: int) -> np.uint64:
    h = mix64(mix64(mix64(mix64(a ^ np.uint64(length)) ^ b) ^ c) ^ d)
    return max(h, np.uint64(1))  # 0 stands for no fingerprint.


@inlined
def sequence_fingerprint(words: U64, n: int, seed: np.uint64, factor: np.uint64) -> np.uint64:
    """Return a 64-bit fingerprint, never 0, of the first n words in their order.

    seed, factor : numbers of the hash; the factor is odd.
    """
    a, b, c, d = seed, seed + _LANE, seed - _LANE, ~seed
    rounds = n // 4
    for i in range(rounds):
        at = np.uint64(4 * i)
        a = _turn(a, words[at], seed, factor)
        b = _turn(b, words[at + np.uint64(1)], seed, factor)
        c = _turn(c, words[at + np.uint64(2)], seed, factor)
        d = _turn(d, words[at + np.uint64(3)], seed, factor)
    for i in range(4 * rounds, n):
        a = _turn(a, words[i], seed, factor)
    return _finish(a, b, c, d, n)


@kernel
def byte_fingerprints(
    text: U8, starts: I64, lengths: I64, seed: np.uint64, factor: np.uint64, fingerprints: U64
) -> None:
    """Set fingerprints[d] to a 64-bit fingerprint, never 0, of the bytes of document d.

    text : with padding behind the last document.
    seed, factor : numbers of the hash; the factor is odd.
    """
    for i in range(len(starts)):
        a, b, c, d = seed, seed + _LANE, seed - _LANE, ~seed
        at = np.uint64(starts[i])
        left = lengths[i]
        while left >= 32:
            a = _turn(a, load64(text, at), seed, factor)
            b = _turn(b, load64(text, at + _WORD), seed, factor)
            c = _turn(c, load64(text, at + _WORD + _WORD), seed, factor)
            d = _turn(d, load64(text, at + _WORD + _WORD + _WORD), seed, factor)
            at += _ROUND
            left -= 32
        while left > 0:
            size = min(left, 8)
            a = _turn(a, load64(text, at) & (_ONES >> np.uint64(64 - 8 * size)), seed, factor)
            at += _WORD
            left -= 8
        fingerprints[i] = _finish(a, b, c, d, lengths[i])
