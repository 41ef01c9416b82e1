"""Shingle sets -> signatures, one kernel for each scheme.

Reference in the tests: `fast_signature`, `classic_signature` and `linear_signatures` of
tests/reference.py.
"""

import numpy as np

from lshdup.kernels.helpers import I64, U32, U64, U32Matrix, inlined, mix64
from lshdup.kernels.jit import kernel

#: Every row of the signature of an empty set.
EMPTY_ROW = np.uint32(0xFFFFFFFF)
MERSENNE_31 = np.uint64((1 << 31) - 1)

_UNSET = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW_32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_31 = np.uint64(31)
_ROUND_FACTOR = np.uint64(0xBF58476D1CE4E5B9)


@inlined
def _round_hash(mixed: np.uint64, offset: np.uint64, factor: np.uint64) -> np.uint64:
    """Return the hash of one round.

    Each round has constants of its own, so that no round of x is another round of x + 1.
    """
    z = (mixed ^ offset) * factor
    z ^= z >> _32
    return z * _ROUND_FACTOR


@kernel
def fast_sketch(
    values: U64,
    offsets: I64,
    salt: np.uint64,
    round_offsets: U64,
    round_factors: U64,
    keys: U64,
    mixed: U64,
    out: U32Matrix,
) -> None:
    """Write the signatures of a batch of sets by Fast Similarity Sketching.

    Dahlgaard, Knudsen, Thorup, "Fast similarity sketching", FOCS 2017, section 2. In round i
    every element throws a hash value into a random row. The values of a round exceed those of
    the rounds before, so the first round that reaches a row settles it. After K rounds, a row j
    still unset takes the minimum of hash K + j over all elements. The upper half of a 64-bit key
    is the round, which makes "exceed" a plain comparison; the lower half is the row.

    keys, mixed : scratch, for K and for the largest set.
    """
    k = out.shape[1]
    k64 = np.uint64(k)
    for d in range(len(offsets) - 1):
        elements = values[offsets[d] : offsets[d + 1]]
        n = len(elements)
        row = out[d]
        if n == 0:
            row[:] = EMPTY_ROW
            continue
        for i in range(n):
            mixed[i] = mix64(elements[i] ^ salt)
        for j in range(k):
            keys[j] = _UNSET
        for i in range(n):  # Round 0: the mixed element is its own hash.
            z = mixed[i]
            at = ((z >> _32) * k64) >> _32
            keys[at] = min(keys[at], z & _LOW_32)
        unset = 0
        for j in range(k):
            unset += np.int64(keys[j] == _UNSET)
        r = 1
        while unset and r < k:
            tag = np.uint64(r) << _32
            offset = round_offsets[r]
            factor = round_factors[r]
            for i in range(n):
                z = _round_hash(mixed[i], offset, factor)
                at = ((z >> _32) * k64) >> _32
                key = tag | (z & _LOW_32)
                if key < keys[at]:
                    unset -= np.int64(keys[at] == _UNSET)
                    keys[at] = key
            r += 1
        if unset:
            for j in range(k):
                if keys[j] == _UNSET:
                    offset = round_offsets[k + j]
                    factor = round_factors[k + j]
                    best = _UNSET
                    for i in range(n):
                        best = min(best, _round_hash(mixed[i], offset, factor) >> _32)
                    keys[j] = best
        for j in range(k):
            row[j] = np.uint32(keys[j] & _LOW_32)


@kernel
def classic_sketch(
    values: U64,
    offsets: I64,
    salt: np.uint64,
    multipliers: U32,
    addends: U32,
    mixed: U32,
    out: U32Matrix,
) -> None:
    """Write K minima of (a x + b) mod 2^31 - 1 over the mixed elements x of each set.

    Broder 1997; Carter and Wegman 1979.

    mixed : scratch, for the largest set.
    """
    for d in range(len(offsets) - 1):
        elements = values[offsets[d] : offsets[d + 1]]
        n = len(elements)
        if n == 0:
            out[d, :] = EMPTY_ROW
            continue
        for i in range(n):
            mixed[i] = np.uint32(mix64(elements[i] ^ salt) >> np.uint64(33))
        for j in range(out.shape[1]):
            a = np.uint64(multipliers[j])
            b = np.uint64(addends[j])
            best = MERSENNE_31
            for i in range(n):
                z = np.uint64(mixed[i]) * a + b
                z = (z & MERSENNE_31) + (z >> _31)
                z = (z & MERSENNE_31) + (z >> _31)
                best = min(best, z)
            out[d, j] = np.uint32(best)


@kernel
def permuted_minima(numbers: I64, offsets: I64, permutations: U32Matrix, out: U32Matrix) -> None:
    """Set out[d, j] to the smallest permutations[j, x] over the element numbers x of set d."""
    for d in range(len(offsets) - 1):
        for j in range(permutations.shape[0]):
            table = permutations[j]
            best = EMPTY_ROW
            for i in range(offsets[d], offsets[d + 1]):
                best = min(best, table[np.uint64(numbers[i])])
            out[d, j] = best


@kernel
def agreeing_rows(signatures: U32Matrix, left: I64, right: I64, out: I64) -> None:
    """Set out[p] to the number of rows in which the signatures of left[p] and right[p] agree."""
    k = signatures.shape[1]
    for p in range(len(left)):
        a = signatures[left[p]]
        b = signatures[right[p]]
        agree = 0
        for j in range(k):
            agree += np.int64(a[j] == b[j])
        out[p] = agree
