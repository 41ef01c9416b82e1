"""Loops over sorted sets: intersections, and the prefix-filter join. Called by similarity.py and exactjoin.py."""

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.jit import inlined, kernel

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
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


@inlined
def jaccard_of(a: U64, b: U64, threshold: float) -> float:
    """Jaccard similarity of two sorted sets; 0 if it is below the threshold, or if both are empty."""
    together = len(a) + len(b)
    # Less than this is too little, with one to spare for rounding.
    common = _overlap(a, b, np.int64(threshold / (1.0 + threshold) * together) - 1)
    similarity = common / (together - common) if together else 0.0
    return similarity if similarity >= threshold else 0.0


@inlined
def sizes_allow(a: int, b: int, threshold: float) -> bool:
    """Whether sets of these sizes can be so similar: J <= smaller / larger."""
    return min(a, b) >= threshold * max(a, b) * (1.0 - 1e-12)


@kernel
def pair_jaccard(values: U64, offsets: I64, left: U32, right: U32, threshold: float, out: F64) -> None:
    """out[p] = Jaccard similarity of sets left[p] and right[p]; 0 if it is below the threshold, or if both are empty."""
    for p in range(len(left)):
        a = values[offsets[left[p]] : offsets[left[p] + 1]]
        b = values[offsets[right[p]] : offsets[right[p] + 1]]
        out[p] = jaccard_of(a, b, threshold)


@kernel
def possible_pairs(left: U32, right: U32, sizes: I64, threshold: float) -> int:
    """Move the pairs whose sizes allow the threshold to the front, in order; returns how many."""
    n = 0
    for p in range(len(left)):
        if sizes_allow(sizes[left[p]], sizes[right[p]], threshold):
            left[n] = left[p]
            right[n] = right[p]
            n += 1
    return n


@kernel
def block_end(left: U32, right: U32, start: int, sizes: I64, room: int, most: int, seen: U8) -> int:
    """The end of the pairs from `start` on whose documents together have at most `room` elements; one pair at least.

    It is where a cluster begins, if one does; a cluster that does not fit by itself is cut only where it reaches `most` elements.
    seen : over all documents, 0 before; those of the block are marked, and some that follow it.
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


# --- the exact join ---------------------------------------------------------------------------------------------------------
#
# Sets are met in the order of their sizes: `order` lists their numbers, and a set's place in it is called its rank here.

#: Fibonacci hashing: 2^64 / golden ratio, odd. Shingles are mixed already; given ids are not.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

#: Elements whose counters are looked up before the next look at whether a prefix is full.
_GLANCE = np.uint64(64)

#: Counters stop here.
_MANY = 0xFFFF

#: How far the overlap of a pair is from what is wanted, for a pair that was not met yet, or is out of reach.
UNMET = 0x7FFFFFFF
_OUT = 0x7FFFFFFE

_LOW = np.uint64(0xFFFFFFFF)


@inlined
def _slot(element: np.uint64, slots: np.uint64) -> np.uint64:
    """A number below slots <= 2^32, by the high bits of a product."""
    return ((element * _FACTOR) >> np.uint64(32)) * slots >> np.uint64(32)


@inlined
def _share(n: int, part: int, parts: int) -> tuple[np.uint64, np.uint64]:
    """Where the numbers below n that are one call's begin, and how many they are."""
    first = np.uint64(n * part // parts)
    return first, np.uint64(n * (part + 1) // parts) - first


@kernel
def count_elements(values: U64, offsets: I64, order: I64, part: int, parts: int, own: U32, counters: U16) -> None:
    """Adds one to the counter of every element of the sets `order`, in that part of the counters which is this call's.

    Elements may share a counter. own : scratch, as long as the largest set. The slots of a set are collected first and counted then, so
    that neither loop waits for a branch, and the misses of the second overlap.
    """
    slots = np.uint64(len(counters))
    first, room = _share(len(counters), part, parts)
    for at in range(len(order)):
        n = np.uint64(0)
        for i in range(np.uint64(offsets[order[at]]), np.uint64(offsets[order[at] + 1])):
            slot = _slot(values[i], slots)
            own[n] = slot
            n += np.uint64(slot - first < room)  # below first: wraps
        for i in range(n):
            slot = np.uint64(own[i])
            counters[slot] += np.uint16(counters[slot] != _MANY)


@inlined
def _rarity(count: int) -> int:
    """A number below 256 that never falls as count rises to 2^16 - 1; counts to 127 are told apart, above that eight in an octave."""
    if count < 128:
        return count
    octave = 7
    while count >> octave > 1:
        octave += 1
    return 128 + 8 * (octave - 7) + ((count >> (octave - 3)) & 7)


@kernel
def rarest(
    values: U64,
    offsets: I64,
    order: I64,
    threshold: float,
    counters: U16,
    rarity: U8,
    tally: I64,
    first: int,
    last: int,
    starts: I64,
    prefix: U64,
    single: I64,
    kept: I64,
) -> None:
    """The prefixes of the sets at ranks first … last-1: their rarest elements, as many as a partner can not do without.

    The order of elements is by (rarity of the counter, value): the same in all sets, rarer first but for elements that share a counter.
    Elements that no other set has come first and are not written, only counted: single[rank]. The others go to
    prefix[starts[rank] : starts[rank] + kept[rank]], so the j-th of them is element single[rank] + j of its set.
    rarity : scratch, as long as the largest set. tally : scratch of 257.
    """
    slots = np.uint64(len(counters))
    for rank in range(first, last):
        begin = np.uint64(offsets[order[rank]])
        size = np.uint64(offsets[order[rank] + 1]) - begin
        length = np.int64(size) - _least_size(np.int64(size), threshold) + 1
        # Most sets of natural text have so many elements of their own that these are the whole prefix: seen soon, and in a loop without
        # dependencies, so that cache misses overlap.
        alone = 0
        done = np.uint64(0)
        while done < size and alone < length:
            until = min(size, done + _GLANCE)
            for i in range(done, until):
                count = counters[_slot(values[begin + i], slots)]
                rarity[i] = min(count, np.uint16(128))
                alone += np.int64(count == 1)
            done = until
        single[rank] = min(alone, length)
        kept[rank] = length - single[rank]
        if alone >= length:
            continue
        tally[:] = 0
        for i in range(size):
            if rarity[i] == 128:
                rarity[i] = _rarity(counters[_slot(values[begin + i], slots)])
            tally[rarity[i] + 1] += 1
        for kind in range(256):
            tally[kind + 1] += tally[kind]
        # From here tally[kind] is the place in its set of the next element of this kind.
        for i in range(size):
            place = tally[rarity[i]]
            tally[rarity[i]] = place + 1
            if alone <= place and place < length:
                prefix[starts[rank] + place - alone] = values[begin + i]


@inlined
def _indexed(size: int, alone: int, kept: int, threshold: float) -> int:
    """How many of the kept elements of a set need postings: partners are no smaller, so a shorter prefix does."""
    return max(0, min(kept, size - _least_overlap(size, size, threshold) + 1 - alone))


@kernel
def count_postings(
    sizes: I64, threshold: float, starts: I64, prefix: U64, single: I64, kept: I64, part: int, parts: int, list_starts: I64
) -> None:
    """Adds the length of each posting list to list_starts[list + 2], for that part of the lists which is this call's."""
    lists = np.uint64(len(list_starts) - 2)
    low, room = _share(len(list_starts) - 2, part, parts)
    for rank in range(len(sizes)):
        if kept[rank] == 0:
            continue
        for j in range(_indexed(sizes[rank], single[rank], kept[rank], threshold)):
            at = _slot(prefix[starts[rank] + j], lists)
            if at - low < room:
                list_starts[at + np.uint64(2)] += 1


@kernel
def fill_postings(
    sizes: I64,
    threshold: float,
    starts: I64,
    prefix: U64,
    single: I64,
    kept: I64,
    part: int,
    parts: int,
    list_starts: I64,
    elements: U64,
    holders: U64,
) -> None:
    """The postings of the same lists, ascending by rank: element, and rank << 32 | how many elements its set has after it.

    list_starts[list + 1] is where the list begins; when all parts are done it is where it ends, and list_starts[list] where it begins.
    Elements that share a list are told apart by `elements`.
    """
    lists = np.uint64(len(list_starts) - 2)
    low, room = _share(len(list_starts) - 2, part, parts)
    for rank in range(len(sizes)):
        if kept[rank] == 0:
            continue
        for j in range(_indexed(sizes[rank], single[rank], kept[rank], threshold)):
            element = prefix[starts[rank] + j]
            at = _slot(element, lists)
            if at - low < room:
                to = list_starts[at + np.uint64(1)]
                list_starts[at + np.uint64(1)] = to + 1
                elements[to] = element
                holders[to] = np.uint64(rank) << np.uint64(32) | np.uint64(sizes[rank] - single[rank] - j - 1)


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


@kernel
def prefix_join(
    values: U64,
    offsets: I64,
    order: I64,
    sizes: I64,
    threshold: float,
    starts: I64,
    prefix: U64,
    single: I64,
    kept: I64,
    list_starts: I64,
    elements: U64,
    holders: U64,
    longest: I64,
    state: I64,
    last: int,
    missing: I32,
    met: I64,
    left: I64,
    right: I64,
    out: F64,
) -> int:
    """PPJoin (Xiao, Wang, Lin, Yu, WWW 2008): pairs of the sets at ranks state[0] … last-1 with the sets before them, as ranks.

    Returns how many were written. longest[rank] : the first rank whose set is not too short for this one. missing : scratch, all UNMET,
    one for each set: how many common elements are still wanted. met : scratch, as long. The caller comes again until state[0] is last;
    a call ends when the output may not have room for all pairs of one more set, so it must have room for one a set.
    """
    written = 0
    lists = np.uint64(len(list_starts) - 2)
    for x in range(state[0], last):
        state[0] = x
        if kept[x] == 0:
            continue
        size = sizes[x]
        near = 0
        length, wanted = -1, 0
        lowest = np.uint64(longest[x]) << np.uint64(32)
        beyond = np.uint64(x) << np.uint64(32)
        for j in range(kept[x]):
            element = prefix[starts[x] + j]
            at = _slot(element, lists)
            low, end = np.uint64(list_starts[at]), np.uint64(list_starts[at + np.uint64(1)])
            # The length filter, by bisection: lists ascend by rank, and so by size.
            high = end
            while low < high:
                middle = (low + high) >> np.uint64(1)
                if holders[middle] < lowest:
                    low = middle + np.uint64(1)
                else:
                    high = middle
            rest = size - single[x] - j - 1
            for q in range(low, end):
                holder = holders[q]
                if holder >= beyond:
                    break
                y = holder >> np.uint64(32)
                lacking = missing[y]
                if elements[q] != element or lacking == _OUT:
                    continue
                if lacking == UNMET:
                    met[near] = np.int64(y)
                    near += 1
                    if sizes[y] != length:  # of many neighbours in a list it is the same
                        length = sizes[y]
                        wanted = _least_overlap(size, length, threshold)
                    lacking = wanted
                lacking -= 1
                # The position filter: what is left of both cannot make up for what is missing.
                missing[y] = _OUT if lacking > min(rest, np.int64(holder & _LOW)) else lacking
        if written + near > len(left) and written > 0:
            for c in range(near):
                missing[met[c]] = UNMET
            return written
        a = values[offsets[order[x]] : offsets[order[x] + 1]]
        for c in range(near):
            y = met[c]
            if missing[y] != _OUT:
                b = values[offsets[order[y]] : offsets[order[y] + 1]]
                least = _least_overlap(size, len(b), threshold)
                common = _overlap(a, b, least)
                if common >= least:
                    left[written] = y
                    right[written] = x
                    out[written] = common / (size + len(b) - common)
                    written += 1
            missing[y] = UNMET
    state[0] = last
    return written
