"""The exact join by containment: sets whose prefixes share elements with larger sets -> pairs.

Sets are numbered by rank, as in prefixes.py. Reference in the tests: `all_insides` of
tests/reference.py.
"""

import numpy as np

from lshdup.kernels.helpers import F64, I64, U32, U64, inlined
from lshdup.kernels.jit import kernel
from lshdup.kernels.joins.prefixes import Postings, slot_of

_0, _1, _2, _6, _63, _64 = (np.uint64(i) for i in (0, 1, 2, 6, 63, 64))


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


@kernel
def mark_elements(elements: U64, marks: U64) -> None:
    """Mark elements in bits, 64 a word, all 0 before; elements may share a bit."""
    bits = _64 * np.uint64(len(marks))
    for i in range(len(elements)):
        mark = slot_of(elements[i], bits)
        marks[mark >> _6] |= _1 << (mark & _63)


@kernel
def containment_join(
    values: U64,
    offsets: I64,
    order: I64,
    least_sizes: I64,
    postings: Postings,
    marks: U64,
    holders: I64,
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
    """Find the sets of lower rank inside the sets at ranks holders[state[0]] … holders[last - 1].

    The caller repeats the call until state[0] is last; a call ends when the output is full.

    least_sizes : by rank, the least number of elements that a larger set must share.
    postings : of the prefixes of the sets that may be inside.
    marks : of `mark_elements`, of the elements of the lists.
    state : number in `holders`, and of its candidates that are done.
    outside : for each set the number of its elements that are not of its prefix.
    hits, met : scratch, one for each set, `hits` all 0.
    own, table : scratch, as long as the largest set, and as `_slots_for` it.
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
        beyond = np.uint64(x) << np.uint64(32)
        for i in range(n):
            element = holder[np.uint64(own[i])]
            at = slot_of(element, lists)
            for q in range(np.uint64(starts[at]), np.uint64(starts[at + _1])):
                if entries[q] >= beyond:
                    break
                y = entries[q] >> np.uint64(32)
                if elements[q] == element:
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
            common = _overlap(inside, holder, table, slots, least_sizes[y])
            if common >= least_sizes[y]:
                left[written] = y
                right[written] = x
                containment[written] = common / len(inside)
                similarity[written] = common / (len(inside) + len(holder) - common)
                written += 1
        state[1] = 0
    state[0] = last
    return written
