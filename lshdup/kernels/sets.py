"""Intersections and similarities of sorted sets.

Reference in the tests: `jaccard` of tests/reference.py.
"""

import numpy as np

from lshdup.kernels.helpers import F64, I32, I64, U8, U32, U64, inlined
from lshdup.kernels.jit import kernel

_0, _1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(i) for i in range(9))


@inlined
def overlap(a: U64, b: U64, least: int) -> int:
    """Return |a ∩ b| of two sorted sets, or any number below `least` if it cannot be reached.

    Most compared sets are similar: eight elements are compared at a time while both sets agree.
    Otherwise eight steps of a merge move both positions without a branch to mispredict.
    """
    i = np.uint64(0)
    j = np.uint64(0)
    n, m = np.uint64(len(a)), np.uint64(len(b))
    common = 0
    while i + _8 <= n and j + _8 <= m:
        if common + np.int64(min(n - i, m - j)) < least:
            return common
        differ = (
            (a[i] ^ b[j])
            | (a[i + _1] ^ b[j + _1])
            | (a[i + _2] ^ b[j + _2])
            | (a[i + _3] ^ b[j + _3])
        )
        differ |= (
            (a[i + _4] ^ b[j + _4])
            | (a[i + _5] ^ b[j + _5])
            | (a[i + _6] ^ b[j + _6])
            | (a[i + _7] ^ b[j + _7])
        )
        if differ == _0:
            common += 8
            i += _8
            j += _8
        else:
            for _ in range(8):
                x, y = a[i], b[j]
                common += np.int64(x == y)
                i += np.uint64(x <= y)
                j += np.uint64(y <= x)
    while i < n and j < m:
        x, y = a[i], b[j]
        common += np.int64(x == y)
        i += np.uint64(x <= y)
        j += np.uint64(y <= x)
    return common


@inlined
def jaccard_of(a: U64, b: U64, threshold: float) -> float:
    """Return the Jaccard similarity of two sorted sets; 0 if below the threshold or both empty."""
    together = len(a) + len(b)
    # The smallest overlap that is enough, less one for rounding.
    common = overlap(a, b, np.int64(threshold / (1.0 + threshold) * together) - 1)
    similarity = common / (together - common) if together else 0.0
    return similarity if similarity >= threshold else 0.0


@inlined
def sizes_allow(a: int, b: int, threshold: float) -> bool:
    """Return whether sets of these sizes can reach the threshold: J <= smaller / larger."""
    return min(a, b) >= threshold * max(a, b) * (1.0 - 1e-12)


@kernel
def pair_jaccard(
    values: U64, offsets: I64, left: U32, right: U32, threshold: float, out: F64
) -> None:
    """Set out[p] to the Jaccard similarity of sets left[p] and right[p], as `jaccard_of`."""
    for p in range(len(left)):
        a = values[offsets[left[p]] : offsets[left[p] + 1]]
        b = values[offsets[right[p]] : offsets[right[p] + 1]]
        out[p] = jaccard_of(a, b, threshold)


@kernel
def possible_pairs(left: U32, right: U32, sizes: I64, threshold: float) -> int:
    """Move the pairs whose sizes allow the threshold to the front, in order; return how many."""
    n = 0
    for p in range(len(left)):
        if sizes_allow(sizes[left[p]], sizes[right[p]], threshold):
            left[n] = left[p]
            right[n] = right[p]
            n += 1
    return n


@kernel
def block_end(left: U32, right: U32, start: int, sizes: I64, room: int, most: int, seen: U8) -> int:
    """Return the end of the block of pairs from `start` on; it has at least one pair.

    The documents of a block have at most `room` elements together. A block ends where a cluster
    begins; a cluster that does not fit by itself is cut where it reaches `most` elements.

    seen : over all documents, 0 before; marks those of the block, and possibly later ones.
    """
    used = 0
    boundary = start
    p = start
    while p < len(left):
        a, b = left[p], right[p]
        if not (seen[a] or seen[b]):
            boundary = p
        more = (0 if seen[a] else sizes[a]) + (0 if seen[b] else sizes[b])
        if used + more > room and p > start:
            if boundary > start:
                return boundary
            if used + more > most:
                return p
        used += more
        seen[a] = 1
        seen[b] = 1
        p += 1
    return p


@kernel
def all_pairs_jaccard(
    numbers: U32,
    offsets: I64,
    posting_starts: I64,
    postings: U32,
    first: int,
    last: int,
    common: I32,
    out: F64,
) -> None:
    """Write rows first … last - 1 of the upper triangle of all similarities to `out`.

    Each element of set i adds one to the overlap with every later set in its posting list, so the
    cost of a pair is its common elements, not its size.

    numbers : the elements of all sets, renumbered from 0.
    postings : for each element the sets that have it, ascending.
    common : scratch, one for each set.
    """
    n = len(offsets) - 1
    p = 0
    for i in range(first, last):
        common[i + 1 :] = 0
        size = offsets[i + 1] - offsets[i]
        for at in range(offsets[i], offsets[i + 1]):
            element = np.uint64(numbers[at])
            q = posting_starts[element + np.uint64(1)] - 1
            while q >= 0 and postings[q] > i:
                common[np.uint64(postings[q])] += 1
                q -= 1
        for j in range(i + 1, n):
            union = size + offsets[j + 1] - offsets[j] - common[j]
            out[p] = common[j] / union if union else 0.0
            p += 1
