"""Loops over sorted sets: intersections, and the prefix-filter join. Called by similarity.py and exactjoin.py."""

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.jit import inlined, kernel

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

_0, _1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(i) for i in range(9))


@inlined
def _overlap(a: U64, b: U64, least: int) -> int:
    """|a ∩ b| of two sorted sets, or some number below `least` once that is out of reach.

    Sets that are compared are mostly alike: eight elements at a time while both go on alike; else eight steps of a merge in which
    both positions move without a branch that could be mispredicted.
    """
    i = np.uint64(0)
    j = np.uint64(0)
    n, m = np.uint64(len(a)), np.uint64(len(b))
    common = 0
    while i + _8 <= n and j + _8 <= m:
        if common + np.int64(min(n - i, m - j)) < least:
            return common
        differ = (a[i] ^ b[j]) | (a[i + _1] ^ b[j + _1]) | (a[i + _2] ^ b[j + _2]) | (a[i + _3] ^ b[j + _3])
        differ |= (a[i + _4] ^ b[j + _4]) | (a[i + _5] ^ b[j + _5]) | (a[i + _6] ^ b[j + _6]) | (a[i + _7] ^ b[j + _7])
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


@kernel
def pair_jaccard(values: U64, offsets: I64, left: U32, right: U32, threshold: float, out: F64) -> None:
    """out[p] = Jaccard similarity of sets left[p] and right[p]; 0 if it is below the threshold, or if both are empty."""
    for p in range(len(left)):
        a = values[offsets[left[p]] : offsets[left[p] + 1]]
        b = values[offsets[right[p]] : offsets[right[p] + 1]]
        together = len(a) + len(b)
        # Less than this is too little, with one to spare for rounding.
        common = _overlap(a, b, np.int64(threshold / (1.0 + threshold) * together) - 1)
        similarity = common / (together - common) if together else 0.0
        out[p] = similarity if similarity >= threshold else 0.0


@kernel
def possible_pairs(left: U32, right: U32, sizes: I64, threshold: float) -> int:
    """Move the pairs whose sizes allow the threshold to the front, in order; returns how many: J <= smaller / larger."""
    n = 0
    for p in range(len(left)):
        a, b = sizes[left[p]], sizes[right[p]]
        if min(a, b) >= threshold * max(a, b) * (1.0 - 1e-12):
            left[n] = left[p]
            right[n] = right[p]
            n += 1
    return n


@kernel
def block_end(left: U32, right: U32, start: int, sizes: I64, room: int, seen: U8) -> int:
    """The end of the pairs from `start` on whose documents together have at most `room` elements; one pair at least.

    seen : over all documents, 0 before; those of the block are marked.
    """
    p = start
    while p < len(left):
        a, b = left[p], right[p]
        more = (0 if seen[a] else sizes[a]) + (0 if seen[b] else sizes[b])
        if more > room and p > start:
            break
        room -= more
        seen[a] = 1
        seen[b] = 1
        p += 1
    return p


@kernel
def all_pairs_jaccard(numbers: U32, offsets: I64, posting_starts: I64, postings: U32, first: int, last: int, common: I32, out: F64) -> None:
    """Rows first … last-1 of the upper triangle of all similarities, one row after the other, into `out`.

    By counting: each element of set i adds one to every later set that its posting list names, so a pair costs what it has in common and
    not what it is. numbers : the elements of all sets, renumbered from 0. postings : for each element the sets that have it, ascending.
    common : scratch, one place a set.
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


@inlined
def _least_overlap(a: int, b: int, threshold: float) -> int:
    """Smallest overlap of sets of sizes a and b with similarity >= threshold, as doubles divide."""
    overlap = max(0, np.int64(np.floor(threshold / (1.0 + threshold) * (a + b))) - 1)
    while overlap <= min(a, b) and overlap / (a + b - overlap) < threshold:
        overlap += 1
    return overlap


@inlined
def _least_size(a: int, threshold: float) -> int:
    """Smallest size of a set that can be >= threshold similar to one of size a: the length filter."""
    size = max(0, np.int64(np.floor(threshold * a)) - 1)
    while size / a < threshold:
        size += 1
    return size


@inlined
def _overlap_at_least(a: U32, b: U32, i: int, j: int, common: int, wanted: int) -> int:
    """|a ∩ b| given `common` before positions i, j; gives up with -1 once `wanted` is out of reach."""
    n, m = len(a), len(b)
    while i < n and j < m:
        if common + min(n - i, m - j) < wanted:
            return -1
        if a[i] == b[j]:
            common += 1
            i += 1
            j += 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return common if common >= wanted else -1


@kernel
def prefix_join(
    ranks: U32,
    offsets: I64,
    threshold: float,
    state: I64,
    list_starts: I64,
    list_fill: I64,
    posting_set: U32,
    posting_place: U32,
    counts: U32,
    touched: I64,
    left: I64,
    right: I64,
    out: F64,
) -> int:
    """PPJoin (Xiao, Wang, Lin, Yu, WWW 2008): pairs of sets with similarity >= threshold; returns how many were written.

    ranks : the elements of all sets, renumbered rarest first and ascending within a set; sets ascend in size. Postings of element e
    begin at list_starts[e] and hold list_fill[e] sets so far. state[0] is the next set to probe: the caller comes again until it is
    the number of sets; a call ends when the output may not have room for all pairs of one more set. Sets at the front of a list that
    have become too short to match are dropped by moving list_starts[e].
    """
    written = 0
    n_sets = len(offsets) - 1
    while state[0] < n_sets:
        x = state[0]
        if written + x > len(left) and written > 0:
            break
        a = ranks[offsets[x] : offsets[x + 1]]
        size = len(a)
        if size == 0:
            state[0] += 1
            continue
        shortest = _least_size(size, threshold)
        probe = size - shortest + 1
        index = size - _least_overlap(size, size, threshold) + 1
        met = 0
        for i in range(probe):
            e = a[i]
            begin = list_starts[e]
            end = begin + list_fill[e]
            while begin < end:
                y = posting_set[begin]
                if offsets[y + 1] - offsets[y] >= shortest:
                    break
                begin += 1
            list_fill[e] = end - begin
            list_starts[e] = begin
            for q in range(begin, end):
                y = posting_set[q]
                length = offsets[y + 1] - offsets[y]
                if counts[y] == 0:
                    touched[met] = y
                    met += 1
                    counts[y] = 1
                elif counts[y] == 0xFFFFFFFF:
                    continue
                else:
                    counts[y] += 1
                # Position filter: what is left of both cannot make up for what is missing.
                wanted = _least_overlap(size, length, threshold)
                if counts[y] + min(size - i - 1, length - np.int64(posting_place[q]) - 1) < wanted:
                    counts[y] = 0xFFFFFFFF
        for c in range(met):
            y = touched[c]
            if counts[y] != 0xFFFFFFFF:
                b = ranks[offsets[y] : offsets[y + 1]]
                common = _overlap_at_least(a, b, 0, 0, 0, _least_overlap(size, len(b), threshold))
                if common >= 0:
                    left[written] = y
                    right[written] = x
                    out[written] = common / (size + len(b) - common)
                    written += 1
            counts[y] = 0
        for i in range(min(index, size)):
            e = a[i]
            at = list_starts[e] + list_fill[e]
            posting_set[at] = x
            posting_place[at] = i
            list_fill[e] += 1
        state[0] += 1
    return written
