"""Which elements many sets have, and sets without them. Called by common.py."""

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.helpers import inlined, mix64
from lshdup.kernels.jit import kernel
from lshdup.kernels.prefix_join import _share, _slot

I64 = NDArray[np.int64]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

_0, _1, _6, _32, _63, _64 = (np.uint64(i) for i in (0, 1, 6, 32, 63, 64))


@inlined
def _place(element: np.uint64, places: np.uint64) -> np.uint64:
    """Where in a table of so many places, at most 2^32, the search for an element begins: given ids are not mixed, so they are here."""
    return (mix64(element) >> _32) * places >> _32


@inlined
def _next(place: np.uint64, places: np.uint64) -> np.uint64:
    place += _1
    return _0 if place == places else place


@inlined
def _mark(element: np.uint64, marks: np.uint64) -> np.uint64:
    """An element's bit among so many, at most 2^32."""
    return _slot(element, marks)


@kernel
def fill_table(elements: U64, nothing: np.uint64, table: U64, marks: U64) -> None:
    """Put elements, none of which is `nothing`, into a table that is `nothing` everywhere and has more places than they are; and mark them.

    marks : bits, 64 a word, all 0 before.
    """
    places, bits = np.uint64(len(table)), _64 * np.uint64(len(marks))
    for i in range(len(elements)):
        at = _place(elements[i], places)
        while table[at] != nothing:
            at = _next(at, places)
        table[at] = elements[i]
        mark = _mark(elements[i], bits)
        marks[mark >> _6] |= _1 << (mark & _63)


@kernel
def without(
    values: U64, offsets: I64, table: U64, marks: U64, nothing: np.uint64, out: U64, sizes: I64
) -> int:
    """The sets without the elements of a table of `fill_table`, one after the other into `out`; returns how many elements that is.

    out : as long as the sets together. sizes : what is left of each. Most elements are not marked, and nothing needs to be guessed about
    those: without the marks, half of the places of the table would be taken, and each look at one a coin that is tossed.
    """
    places, bits = np.uint64(len(table)), _64 * np.uint64(len(marks))
    n = _0
    for s in range(len(sizes)):
        before = n
        for i in range(np.uint64(offsets[s]), np.uint64(offsets[s + 1])):
            element = values[i]
            mark = _mark(element, bits)
            out[n] = element
            n += _1
            if (marks[mark >> _6] >> (mark & _63)) & _1:
                at = _place(element, places)
                found = table[at]
                while found != nothing and found != element:
                    at = _next(at, places)
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
    """Count, each for itself, the elements of the sets `order` whose shared counter says `least` or more.

    counters : of `sets.count_elements`; the elements of that part of them which is this call's are counted. keys, counts : a table; a count
    of 0 is a free place. state : set, element in it, different elements so far. Returns with state[0] < len(order) when half of the places
    are taken: the caller comes again with a larger table.
    """
    slots, places = np.uint64(len(counters)), np.uint64(len(keys))
    first, room = _share(len(counters), part, parts)
    for at in range(state[0], len(order)):
        start = np.uint64(offsets[order[at]])
        for i in range(start + np.uint64(state[1]), np.uint64(offsets[order[at] + 1])):
            slot = _slot(values[i], slots)
            if slot - first < room and np.int64(counters[slot]) >= least:
                p = _place(values[i], places)
                while counts[p] != 0 and keys[p] != values[i]:
                    p = _next(p, places)
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
    """A table of counts into a larger one, whose places are all free."""
    places = np.uint64(len(new_keys))
    for i in range(len(keys)):
        if counts[i] != 0:
            p = _place(keys[i], places)
            while new_counts[p] != 0:
                p = _next(p, places)
            new_keys[p] = keys[i]
            new_counts[p] = counts[i]
