"""Shingle sets -> signatures, one kernel for each scheme; and how far their estimates are off.

Reference in the tests: `fast_signature`, `classic_signature` and `linear_signatures` of
tests/reference.py; the sum of all terms of a binomial, in tests/evaluation/test_experiments.py.
"""

import math

import numpy as np

from lshdup.kernels.helpers import F64, I64, U32, U64, U32Matrix, inlined, mix64
from lshdup.kernels.jit import kernel

#: Every row of the signature of an empty set.
EMPTY_ROW = np.uint32(0xFFFFFFFF)
MERSENNE_31 = np.uint64((1 << 31) - 1)

#: Terms of a sum below this are left out.
_NEGLIGIBLE = 1e-18

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


@inlined
def _log_binomial(n: int, x: int, p: float) -> float:
    """Return log P(X = x), X binomial with n trials of probability 0 < p < 1."""
    choose = math.lgamma(n + 1.0) - math.lgamma(x + 1.0) - math.lgamma(n - x + 1.0)
    return choose + x * math.log(p) + (n - x) * math.log1p(-p)


@kernel
def chances_off(exact: F64, perms: int, epsilon: float, out: F64) -> None:
    """Set out[i] to P(|X / perms - s| > epsilon), X binomial with `perms` trials, s = exact[i].

    Each tail is summed from its edge outwards by the ratio of consecutive terms, until the terms
    are negligible: after a few dozen.
    """
    for i in range(len(exact)):
        s = exact[i]
        if s <= 0.0 or s >= 1.0:
            out[i] = 0.0
            continue
        total = 0.0
        low = min(perms, np.int64(math.floor((s - epsilon) * perms)) + 1)
        while low >= 0 and not s - low / perms > epsilon:
            low -= 1
        if low >= 0:
            term = math.exp(_log_binomial(perms, low, s))
            while low >= 0 and term > _NEGLIGIBLE:
                total += term
                term *= low / (perms - low + 1.0) * (1.0 - s) / s
                low -= 1
        high = max(0, np.int64(math.ceil((s + epsilon) * perms)) - 1)
        while high <= perms and not high / perms - s > epsilon:
            high += 1
        if high <= perms:
            term = math.exp(_log_binomial(perms, high, s))
            while high <= perms and term > _NEGLIGIBLE:
                total += term
                term *= (perms - high) / (high + 1.0) * s / (1.0 - s)
                high += 1
        out[i] = total
