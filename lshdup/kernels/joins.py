"""The exact join: prefixes of rare elements, and the sets that have enough of them -> pairs.

Sets are numbered by *rank*: their place in `order`, which is the order of their sizes. Reference
in the tests: `all_pairs` and `all_insides` of tests/reference.py.
"""

from typing import NamedTuple

import numpy as np

from lshdup.kernels.bands import differ
from lshdup.kernels.helpers import F64, I64, U8, U16, U32, U64, inlined
from lshdup.kernels.jit import kernel
from lshdup.kernels.sets import share_of, slot_of

#: Elements whose counters are read between two checks of whether a prefix is complete.
_CHUNK = np.uint64(64)

_0, _1, _2, _6, _63, _64 = (np.uint64(i) for i in (0, 1, 2, 6, 63, 64))


class Prefixes(NamedTuple):
    """The prefix of each set: its rarest elements. Sets are numbered by rank.

    sizes : int64 array of shape (n,), of the whole sets.
    single : int64 array of shape (n,), number of elements of the prefix that no other set has; they
        are first in the order and are not kept.
    starts, kept : int64 arrays of shape (n,); the others are elements[starts[i]:starts[i] +
        kept[i]].
    """

    sizes: I64
    starts: I64
    elements: U64
    single: I64
    kept: I64


class Postings(NamedTuple):
    """Lists of the sets that hold an element: list i is [starts[i]:starts[i + 1]].

    elements : the element of each posting, because several elements may share a list.
    holders : the rank of its set.
    """

    starts: I64
    elements: U64
    holders: U32


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
def write_postings(prefixes: Prefixes, part: int, parts: int, postings: Postings) -> None:
    """Write the postings of one part of the lists, ascending by rank.

    If there is no room for any, count them: add the length of each list to starts[list + 2]. To
    write, starts[list + 1] is where the list begins; when all parts are done, it is where the list
    ends.
    """
    starts, elements, holders = postings
    to_count = len(elements) == 0
    lists = np.uint64(len(starts) - 2)
    low, room = share_of(len(starts) - 2, part, parts)
    for rank in range(len(prefixes.sizes)):
        for j in range(prefixes.kept[rank]):
            element = prefixes.elements[prefixes.starts[rank] + j]
            at = slot_of(element, lists)
            if at - low < room:
                if to_count:
                    starts[at + np.uint64(2)] += 1
                else:
                    to = starts[at + np.uint64(1)]
                    starts[at + np.uint64(1)] = to + 1
                    elements[to] = element
                    holders[to] = rank


@inlined
def _slots_for(size: int) -> np.uint64:
    """Return a power of two from 2 · size on: the slots of the hash table of a set."""
    slots = _2
    while slots < 2 * size:
        slots *= _2
    return slots


@inlined
def _fill_table(holder: U64, table: U64, slots: np.uint64) -> None:
    """Make the first slots of `table` a hash table of a set; 0 is a free slot."""
    for at in range(slots):
        table[at] = _0
    last = slots - _1
    for i in range(len(holder)):
        at = slot_of(holder[i], slots)
        while table[at] != _0:
            at = (at + _1) & last
        table[at] = holder[i]


@inlined
def _overlap(inside: U64, holder: U64, table: U64, slots: np.uint64, least: int) -> int:
    """Return |inside ∩ holder|, or any number below `least` if it cannot be reached.

    table : of `_fill_table`, of the holder, whose size is of no matter then.
    """
    last = slots - _1
    common = 0
    rest = len(inside) - least  # elements that the holder may lack
    for i in range(len(inside)):
        element = inside[i]
        at = slot_of(element, slots)
        while table[at] != element and table[at] != _0:
            at = (at + _1) & last
        # 0 is no element of the table; in a sorted set it is the first one.
        if table[at] == element and (element != _0 or holder[0] == _0):
            common += 1
        else:
            rest -= 1
            if rest < 0:
                break
    return common


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
def join_sets(
    values: U64,
    offsets: I64,
    order: I64,
    origins: U32,
    threshold: float,
    least_sizes: I64,
    postings: Postings,
    marks: U64,
    holders: I64,
    smallest: I64,
    state: I64,
    last: int,
    outside: I64,
    hits: U32,
    met: U32,
    own: U32,
    table: U64,
    left: U32,
    right: U32,
    containment: F64,
    similarity: F64,
) -> int:
    """Find the sets of lower rank that have enough in common with the sets at ranks
    holders[state[0]] … holders[last - 1].

    The caller repeats the call until state[0] is last; a call ends when the output is full.

    origins : of `bands.differ`, by rank.
    threshold : least similarity; 0 for all pairs that have enough elements in common.
    least_sizes : by rank, the least number of elements that a larger set must share.
    postings : of the prefixes of the sets that may be inside.
    marks : of `mark_elements`, of the elements of the lists.
    smallest : smallest[rank] is the first rank whose set is not too small for this one.
    state : number in `holders`, and of its candidates that are done.
    outside : for each set the number of its elements that are not of its prefix.
    hits, met : scratch, one for each set, `hits` all 0.
    own, table : scratch, as long as the largest set, and as `_slots_for` says of it.
    left, right : ranks: the set inside, and the set that holds it.

    Returns the number of pairs.
    """
    written = 0
    starts, elements, entries = postings
    lists, bits = np.uint64(len(starts) - 2), _64 * np.uint64(len(marks))
    for h in range(state[0], last):
        x = holders[h]
        holder = values[offsets[order[x]] : offsets[order[x] + 1]]
        # Most elements have no list. A loop without branches finds these, so that its cache misses
        # overlap.
        n = _0
        for i in range(len(holder)):
            mark = slot_of(holder[i], bits)
            own[n] = i
            n += (marks[mark >> _6] >> (mark & _63)) & _1
        near = 0
        lowest = smallest[x]
        for i in range(n):
            element = holder[np.uint64(own[i])]
            at = slot_of(element, lists)
            low, end = np.uint64(starts[at]), np.uint64(starts[at + _1])
            # By bisection, because lists ascend by rank and so by size.
            high = end
            while low < high:
                middle = (low + high) >> _1
                if entries[middle] < lowest:
                    low = middle + _1
                else:
                    high = middle
            for q in range(low, end):
                y = entries[q]
                if y >= x:
                    break
                if elements[q] == element and differ(origins, y, x):
                    if hits[y] == 0:
                        met[near] = y
                        near += 1
                    hits[y] += 1
        # Sets that share enough of their prefixes move to the front.
        candidates = 0
        for i in range(near):
            y = np.int64(met[i])
            met[candidates] = y
            candidates += np.int64(hits[y] + outside[y] >= least_sizes[y])
            hits[y] = 0
        if state[1] < candidates:
            slots = _slots_for(len(holder))
            _fill_table(holder, table, slots)
        for i in range(state[1], candidates):
            if written == len(left):
                state[0], state[1] = h, i
                return written
            y = np.int64(met[i])
            inside = values[offsets[order[y]] : offsets[order[y] + 1]]
            least = max(least_sizes[y], least_overlap(len(inside), len(holder), threshold))
            common = _overlap(inside, holder, table, slots, least)
            if common >= least:
                left[written] = y
                right[written] = x
                containment[written] = common / len(inside)
                similarity[written] = common / (len(inside) + len(holder) - common)
                written += 1
        state[1] = 0
    state[0] = last
    return written
