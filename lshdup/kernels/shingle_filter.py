"""Counts of elements that many sets have, and sets without such elements.

Reference in the tests: set differences and Counter, in tests/shingling/test_shingle_filter.py.
"""

import numpy as np

from lshdup.kernels.helpers import I64, U16, U32, U64, inlined, mix64
from lshdup.kernels.jit import kernel
from lshdup.kernels.joins.prefixes import share_of, slot_of

_0, _1, _6, _32, _63, _64 = (np.uint64(i) for i in (0, 1, 6, 32, 63, 64))


@inlined
def _first_slot(element: np.uint64, slots: np.uint64) -> np.uint64:
    """Return the slot of a table of at most 2^32 where the search for an element begins.

    The element is mixed, because ids are not.
    """
    return (mix64(element) >> _32) * slots >> _32


@inlined
def _next_slot(slot: np.uint64, slots: np.uint64) -> np.uint64:
    slot += _1
    return _0 if slot == slots else slot


@kernel
def fill_table(elements: U64, nothing: np.uint64, table: U64, marks: U64) -> None:
    """Put elements into a hash table, and mark them.

    nothing : a number that is no element; the table has more slots than elements, all `nothing`.
    marks : bits, 64 a word, all 0 before.
    """
    slots, bits = np.uint64(len(table)), _64 * np.uint64(len(marks))
    for i in range(len(elements)):
        at = _first_slot(elements[i], slots)
        while table[at] != nothing:
            at = _next_slot(at, slots)
        table[at] = elements[i]
        mark = slot_of(elements[i], bits)
        marks[mark >> _6] |= _1 << (mark & _63)


@kernel
def filter_sets(
    values: U64, offsets: I64, table: U64, marks: U64, nothing: np.uint64, out: U64, sizes: I64
) -> int:
    """Write the sets without the elements of a table of `fill_table` to `out`.

    Most elements are not marked and need no look at the table. Without the marks, about half of
    the looks would meet a taken slot, a branch that cannot be predicted.

    out : as long as the sets together.
    sizes : the size of each filtered set.

    Returns the number of elements written.
    """
    slots, bits = np.uint64(len(table)), _64 * np.uint64(len(marks))
    n = _0
    for s in range(len(sizes)):
        before = n
        for i in range(np.uint64(offsets[s]), np.uint64(offsets[s + 1])):
            element = values[i]
            mark = slot_of(element, bits)
            out[n] = element
            n += _1
            if (marks[mark >> _6] >> (mark & _63)) & _1:
                at = _first_slot(element, slots)
                found = table[at]
                while found != nothing and found != element:
                    at = _next_slot(at, slots)
                    found = table[at]
                n -= np.uint64(found != nothing)
        sizes[s] = n - before
    return np.int64(n)


@kernel
def count_frequent(
    values: U64,
    offsets: I64,
    order: I64,
    part: int,
    parts: int,
    counters: U16,
    least: int,
    keys: U64,
    counts: U32,
    state: I64,
) -> None:
    """Count exactly the elements of the sets `order` whose shared counter is at least `least`.

    counters : of `prefixes.count_elements`; a call counts the elements of one part of them.
    keys, counts : a hash table; a count of 0 is a free slot.
    state : set, element in it, different elements so far. The call ends with state[0] < len(order)
        when half of the table is taken; the caller repeats it with a larger table.
    """
    shared, slots = np.uint64(len(counters)), np.uint64(len(keys))
    first, room = share_of(len(counters), part, parts)
    for at in range(state[0], len(order)):
        start = np.uint64(offsets[order[at]])
        for i in range(start + np.uint64(state[1]), np.uint64(offsets[order[at] + 1])):
            counter = slot_of(values[i], shared)
            if counter - first < room and np.int64(counters[counter]) >= least:
                p = _first_slot(values[i], slots)
                while counts[p] != 0 and keys[p] != values[i]:
                    p = _next_slot(p, slots)
                if counts[p] == 0:
                    if 2 * state[2] >= len(keys):
                        state[0], state[1] = at, np.int64(i - start)
                        return
                    keys[p] = values[i]
                    state[2] += 1
                counts[p] += np.uint32(1)
        state[1] = 0
    state[0] = len(order)


@kernel
def move_counts(keys: U64, counts: U32, new_keys: U64, new_counts: U32) -> None:
    """Move a table of counts to a larger one whose slots are all free."""
    slots = np.uint64(len(new_keys))
    for i in range(len(keys)):
        if counts[i] != 0:
            p = _first_slot(keys[i], slots)
            while new_counts[p] != 0:
                p = _next_slot(p, slots)
            new_keys[p] = keys[i]
            new_counts[p] = counts[i]
