"""Winnowing: which positions of a document are anchors, by the tokens around them alone.

Schleimer, Wilkerson and Aiken, "Winnowing: Local Algorithms for Document Fingerprinting",
SIGMOD 2003. Reference: `anchors_of` in tests/passages/test_finding.py.
"""

import numpy as np

from lshdup.kernels.helpers import I64, U64, inlined, mix64
from lshdup.kernels.jit import kernel

GRAM_FACTOR = np.uint64(0x9FB21C651E98DF25)
_ONE, _WORD, _BITS = np.uint64(1), np.uint64(6), np.uint64(63)


@inlined
def _hash_grams(tokens: U64, begin: int, grams: int, gram: int, hashes: U64) -> None:
    """Set hashes[t] to the mixed polynomial of the tokens begin + t … begin + t + gram - 1."""
    power = np.uint64(1)
    rolled = np.uint64(0)
    for i in range(gram):
        rolled = rolled * GRAM_FACTOR + tokens[begin + i]
        power = power * GRAM_FACTOR
    hashes[0] = mix64(rolled)
    for t in range(1, grams):
        first, last = tokens[begin + t - 1], tokens[begin + t - 1 + gram]
        rolled = rolled * GRAM_FACTOR + last - first * power
        hashes[t] = mix64(rolled)


@kernel
def select_anchors(
    tokens: U64,
    offsets: I64,
    base: int,
    gram: int,
    window: int,
    scratch: U64,
    hashes: U64,
    positions: I64,
) -> int:
    """Write the anchors of documents, in order: of every window of grams the smallest hash.

    Of equal hashes in a window the last counts. Documents of less than a window have no anchor.

    tokens : of the documents; document d is tokens[offsets[d] - base : offsets[d + 1] - base].
    gram, window : tokens of a gram, and grams of a window.
    scratch : for the grams of the longest document.
    hashes, positions : the result, for an anchor a token; positions are those of offsets.

    Returns the number of anchors.
    """
    found = 0
    for d in range(len(offsets) - 1):
        begin = offsets[d] - base
        grams = offsets[d + 1] - offsets[d] - gram + 1
        if grams < window:
            continue
        _hash_grams(tokens, begin, grams, gram, scratch)
        best = 0
        last = -1
        for t in range(grams):
            if best <= t - window:
                best = t - window + 1
                for i in range(best + 1, t + 1):
                    if scratch[i] <= scratch[best]:
                        best = i
            elif scratch[t] <= scratch[best]:
                best = t
            if t >= window - 1 and best != last:
                hashes[found] = scratch[best]
                positions[found] = base + begin + best
                found += 1
                last = best
    return found


@kernel
def mark_hashes(hashes: U64, seen: U64, again: U64) -> None:
    """Set the bits of hashes in `seen`, and in `again` if they were set.

    seen, again : bit sets of equal sizes, a power of two. The low bits of a hash tell its bit: the
        high ones are small, as the hash is the smallest of a window.
    """
    most = np.uint64(64 * len(seen) - 1)
    for i in range(len(hashes)):
        bit = hashes[i] & most
        mask = _ONE << (bit & _BITS)
        word = seen[bit >> _WORD]
        again[bit >> _WORD] |= word & mask
        seen[bit >> _WORD] = word | mask


@kernel
def keep_marked(
    hashes: U64, positions: U64, again: U64, out_hashes: U64, out_positions: U64
) -> int:
    """Write the anchors whose hashes have their bits in `again`; return how many."""
    most = np.uint64(64 * len(again) - 1)
    n = np.uint64(0)
    for i in range(len(hashes)):
        bit = hashes[i] & most
        out_hashes[n] = hashes[i]
        out_positions[n] = positions[i]
        n += (again[bit >> _WORD] >> (bit & _BITS)) & _ONE
    return np.int64(n)
