"""Prefixes of rare elements, and their inverted index.

Sets are numbered by *rank*: their place in `order`, which is the order of their sizes. Reference
in the tests: the joins against `all_pairs` of tests/reference.py.
"""

from typing import NamedTuple

import numpy as np

from lshdup.kernels.helpers import I64, U8, U16, U32, U64, inlined
from lshdup.kernels.jit import kernel

#: Fibonacci hashing: 2^64 / golden ratio, odd. Shingles are mixed already; ids are not.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
#: Elements whose counters are read between two checks of whether a prefix is complete.
_CHUNK = np.uint64(64)
#: Counters stop here.
_MOST = 0xFFFF


class Prefixes(NamedTuple):
    """The prefix of each set: its rarest elements. Sets are numbered by rank.

    sizes : int64 array of shape (n,), of the whole sets.
    single : int64 array of shape (n,), number of elements of the prefix that no other set has; they
        are first in the order and are not kept.
    starts, kept : int64 arrays of shape (n,); the others are elements[starts[i]:starts[i] +
        kept[i]], so the j-th of them is element single[i] + j of its set.
    """

    sizes: I64
    starts: I64
    elements: U64
    single: I64
    kept: I64


class Postings(NamedTuple):
    """Lists of the sets that hold an element: list i is [starts[i]:starts[i + 1]].

    elements : the element of each posting, because several elements may share a list.
    holders : rank << 32 | number of elements that the set has after this one.
    """

    starts: I64
    elements: U64
    holders: U64


@inlined
def slot_of(element: np.uint64, slots: np.uint64) -> np.uint64:
    """Return a number below slots <= 2^32, by the high bits of a product."""
    return ((element * _FACTOR) >> np.uint64(32)) * slots >> np.uint64(32)


@inlined
def share_of(n: int, part: int, parts: int) -> tuple[np.uint64, np.uint64]:
    """Return the first number, and how many, of one of `parts` equal parts of range(n)."""
    first = np.uint64(n * part // parts)
    return first, np.uint64(n * (part + 1) // parts) - first


@inlined
def least_overlap(a: int, b: int, threshold: float) -> int:
    """Return the smallest overlap of sets of sizes a, b with similarity >= threshold.

    The loop makes the result exact for the rounded division of doubles.
    """
    least = max(0, np.int64(np.floor(threshold / (1.0 + threshold) * (a + b))) - 1)
    while least <= min(a, b) and least / (a + b - least) < threshold:
        least += 1
    return least


@kernel
def count_elements(
    values: U64, offsets: I64, order: I64, part: int, parts: int, own: U32, counters: U16
) -> None:
    """Add one to the counter of every element of the sets `order`, in one part of the counters.

    Elements may share a counter. The slots of a set are collected first and counted then, so that
    neither loop waits for a branch and the cache misses of the second overlap.

    own : scratch, as long as the largest set.
    """
    slots = np.uint64(len(counters))
    first, room = share_of(len(counters), part, parts)
    for at in range(len(order)):
        n = np.uint64(0)
        for i in range(np.uint64(offsets[order[at]]), np.uint64(offsets[order[at] + 1])):
            slot = slot_of(values[i], slots)
            own[n] = slot
            n += np.uint64(slot - first < room)  # Slots below `first` wrap.
        for i in range(n):
            slot = np.uint64(own[i])
            counters[slot] += np.uint16(counters[slot] != _MOST)


@inlined
def _rarity(count: int) -> int:
    """Return a number below 256 that never falls as count rises to 2^16 - 1.

    Counts up to 127 have a number each, and larger ones share eight an octave.
    """
    if count < 128:
        return count
    octave = 7
    while count >> octave > 1:
        octave += 1
    return 128 + 8 * (octave - 7) + ((count >> (octave - 3)) & 7)


@kernel
def rarest_elements(
    values: U64,
    offsets: I64,
    order: I64,
    least_sizes: I64,
    counters: U16,
    rarity: U8,
    tally: I64,
    first: int,
    last: int,
    prefixes: Prefixes,
) -> None:
    """Write the prefixes of the sets at ranks first … last - 1.

    The prefix of a set is its rarest elements, as many as a similar set must share one of. All
    sets order their elements by (rarity of the counter, value).

    least_sizes : by rank, the least number of elements that a similar set must share, from 1.
    rarity, tally : scratch, as long as the largest set, and of 257.
    """
    slots = np.uint64(len(counters))
    for rank in range(first, last):
        begin = np.uint64(offsets[order[rank]])
        size = np.uint64(offsets[order[rank] + 1]) - begin
        length = np.int64(size) - least_sizes[rank] + 1
        # In natural text, elements that no other set has often fill the whole prefix. A loop
        # without dependencies finds out soon, because its cache misses overlap.
        alone = 0
        done = np.uint64(0)
        while done < size and alone < length:
            until = min(size, done + _CHUNK)
            for i in range(done, until):
                count = counters[slot_of(values[begin + i], slots)]
                rarity[i] = min(count, np.uint16(128))
                alone += np.int64(count == 1)
            done = until
        prefixes.single[rank] = min(alone, length)
        prefixes.kept[rank] = length - min(alone, length)
        if alone >= length:
            continue
        tally[:] = 0
        for i in range(size):
            if rarity[i] == 128:
                rarity[i] = _rarity(counters[slot_of(values[begin + i], slots)])
            tally[rarity[i] + 1] += 1
        for level in range(256):
            tally[level + 1] += tally[level]
        # From here tally[level] is the place in its set of the next element of this rarity.
        for i in range(size):
            place = tally[rarity[i]]
            tally[rarity[i]] = place + 1
            if alone <= place and place < length:
                prefixes.elements[prefixes.starts[rank] + place - alone] = values[begin + i]


@kernel
def write_postings(
    prefixes: Prefixes, threshold: float, part: int, parts: int, postings: Postings
) -> None:
    """Write the postings of one part of the lists, ascending by rank.

    A threshold of 0 takes whole prefixes.

    If there is no room for any, count them: add the length of each list to starts[list + 2]. To
    write, starts[list + 1] is where the list begins; when all parts are done, it is where the list
    ends.
    """
    starts, elements, holders = postings
    to_count = len(elements) == 0
    lists = np.uint64(len(starts) - 2)
    low, room = share_of(len(starts) - 2, part, parts)
    for rank in range(len(prefixes.sizes)):
        size, single = prefixes.sizes[rank], prefixes.single[rank]
        # A set looks up only sets that are no larger, so a shorter prefix is enough here.
        enough = size - least_overlap(size, size, threshold) + 1 - single
        for j in range(min(prefixes.kept[rank], enough)):
            element = prefixes.elements[prefixes.starts[rank] + j]
            at = slot_of(element, lists)
            if at - low < room:
                if to_count:
                    starts[at + np.uint64(2)] += 1
                else:
                    to = starts[at + np.uint64(1)]
                    starts[at + np.uint64(1)] = to + 1
                    elements[to] = element
                    after = np.uint64(size - single - j - 1)
                    holders[to] = np.uint64(rank) << np.uint64(32) | after
