"""Kernels of the exact join: rarest elements, the inverted index of prefixes, and the pairs that its filters leave."""

import numpy as np

from lshdup.kernels.helpers import inlined
from lshdup.kernels.jit import kernel
from lshdup.kernels.sets import F64, I32, I64, U8, U16, U32, U64, _overlap

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
def count_elements(
    values: U64, offsets: I64, order: I64, part: int, parts: int, own: U32, counters: U16
) -> None:
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
    sizes: I64,
    threshold: float,
    starts: I64,
    prefix: U64,
    single: I64,
    kept: I64,
    part: int,
    parts: int,
    list_starts: I64,
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
                holders[to] = np.uint64(rank) << np.uint64(32) | np.uint64(
                    sizes[rank] - single[rank] - j - 1
                )


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
