"""Sets of 64-bit numbers, one after the other: sorted, copied, filtered, counted and compared.

References in the tests: NumPy's stable sort in tests/lsh/test_bands.py; `RaggedSets` in
tests/compare/test_measures.py; set differences and Counter in
tests/shingling/test_shingle_filter.py; `jaccard` of tests/reference.py.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.helpers import F64, I32, I64, U8, U16, U32, U64, inlined, mix64
from lshdup.kernels.jit import kernel

#: A bucket of `sort_values` with more values than this is sorted by comparison.
CROWD = 48
#: Counters stop here.
_MOST = 0xFFFF
#: Fibonacci hashing: 2^64 / golden ratio, odd. Shingles are mixed already; ids are not.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

_0, _1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(i) for i in range(9))
_32, _63, _64 = np.uint64(32), np.uint64(63), np.uint64(64)

T = TypeVar("T", np.uint8, np.uint64)


@inlined
def scatter_by(span: np.uint64, n: int) -> tuple[np.uint64, int]:
    """Return how to scatter n numbers of a range by their leading bits.

    span : largest minus smallest number.

    Returns the bits to shift (number - smallest) right by, and the number of slots, >= n.
    """
    bits = np.uint64(0)
    while (1 << bits) < n:
        bits += np.uint64(1)
    shift = np.uint64(0)
    while shift < 63 and (span >> shift) >> bits:
        shift += np.uint64(1)
    return shift, 1 << np.int64(bits)


@kernel
def order_by_key(keys: U64, members: I64, counts: U32, sorted_keys: U64, order: U32) -> None:
    """Sort `members` by keys[member] into `order`, equal keys in the order of `members`.

    One scatter by the leading bits of the keys' range, then insertion: keys are hashes, so a slot
    of the scatter holds one or two different keys, and an equal key costs one step.

    counts : scratch, for a power of two >= len(members), and one more.
    sorted_keys : for len(members) keys, the result of the sort.
    """
    m = len(members)
    if m == 0:
        return
    low = high = keys[np.uint64(members[0])]
    for i in range(m):
        key = keys[np.uint64(members[i])]
        low = min(low, key)
        high = max(high, key)
    shift, slots = scatter_by(high - low, m)
    for i in range(slots + 1):
        counts[i] = 0
    for i in range(m):
        counts[((keys[np.uint64(members[i])] - low) >> shift) + _1] += np.uint32(1)
    for i in range(slots):
        counts[i + 1] += counts[i]
    for i in range(m):
        key = keys[np.uint64(members[i])]
        slot = (key - low) >> shift
        at = np.uint64(counts[slot])
        counts[slot] += np.uint32(1)
        sorted_keys[at] = key
        order[at] = np.uint32(members[i])
    for i in range(1, m):
        key = sorted_keys[i]
        if sorted_keys[i - 1] > key:
            member = order[i]
            j = np.uint64(i)
            while j > np.uint64(0) and sorted_keys[j - _1] > key:
                sorted_keys[j] = sorted_keys[j - _1]
                order[j] = order[j - _1]
                j -= _1
            sorted_keys[j] = key
            order[j] = member


@inlined
def heap_sort(values: U64, begin: int, n: int) -> None:
    """Sort values[begin:begin + n] in place, in at most n log n steps."""
    last = n
    root = n // 2
    while last > 1:
        if root > 0:  # The heap is built.
            root -= 1
            x = values[begin + root]
        else:  # The largest is taken from it.
            last -= 1
            x = values[begin + last]
            values[begin + last] = values[begin]
        at = root
        child = 2 * at + 1
        while child < last:
            if child + 1 < last and values[begin + child] < values[begin + child + 1]:
                child += 1
            if values[begin + child] <= x:
                break
            values[begin + at] = values[begin + child]
            at = child
            child = 2 * at + 1
        values[begin + at] = x


@inlined
def sort_values(values: U64, n: int, spare: U64, counts: I32) -> None:
    """Sort values[:n] in place, n > 0: one scatter by the leading bits, then insertion.

    Hashes are uniform over 64 bits, so n buckets hold one or two values each, and a value costs a
    few cycles. Other values (ids, the hash of R2) are scattered by the bits of their range too, and
    a crowded bucket is sorted by comparison.

    spare, counts : scratch, for n values, and for a power of two >= n and one more.
    """
    low = values[0]
    high = values[0]
    for i in range(n):
        low = min(low, values[i])
        high = max(high, values[i])
    shift, buckets = scatter_by(high - low, n)
    for i in range(buckets + 1):
        counts[i] = 0
    for i in range(n):
        counts[((values[i] - low) >> shift) + _1] += 1
    crowd = np.int32(0)
    for i in range(buckets):
        crowd = max(crowd, counts[i + 1])
        counts[i + 1] += counts[i]
    for i in range(n):
        bucket = (values[i] - low) >> shift
        at = counts[bucket]
        spare[np.uint64(at)] = values[i]
        counts[bucket] = at + 1
    if crowd > CROWD:
        begin = 0  # counts[b] is now the end of bucket b.
        for i in range(buckets):
            end = counts[i]
            if end - begin > CROWD:
                heap_sort(spare, begin, end - begin)
            begin = end
    # One pass without a branch to mispredict sorts most buckets of two or three values.
    largest = spare[0]
    for i in range(1, n):
        x = spare[i]
        values[i - 1] = min(largest, x)
        largest = max(largest, x)
    values[n - 1] = largest
    for i in range(1, n):
        x = values[i]
        if values[i - 1] > x:
            j = np.uint64(i)
            while j > np.uint64(0) and values[j - _1] > x:
                values[j] = values[j - _1]
                j -= _1
            values[j] = x


@inlined
def unique_values(values: U64, n: int) -> int:
    """Drop repeats from n > 0 sorted values in place; return the number of distinct values."""
    m = _1
    last = values[0]
    for i in range(1, n):
        x = values[i]
        values[m] = x
        m += np.uint64(x != last)
        last = x
    return np.int64(m)


@kernel
def sort_sets(values: U64, offsets: I64, spare: U64, counts: I32) -> None:
    """Sort each set of values[offsets[d] : offsets[d + 1]] in place.

    spare, counts : scratch, as `sort_values` needs for the largest set.
    """
    for d in range(len(offsets) - 1):
        elements = values[offsets[d] : offsets[d + 1]]
        if len(elements) > 1:
            sort_values(elements, len(elements), spare, counts)


# --- copies ---


@kernel
def copy_runs(values: NDArray[T], starts: I64, sizes: I64, out: NDArray[T]) -> None:
    """Copy the runs values[starts[i]:starts[i] + sizes[i]] to `out`, one after the other."""
    at = np.uint64(0)
    for i in range(len(starts)):
        start = np.uint64(starts[i])
        size = np.uint64(sizes[i])
        for j in range(size):
            out[at + j] = values[start + j]
        at += size


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
def mark_elements(elements: U64, marks: U64) -> None:
    """Mark elements in bits, 64 a word, all 0 before; elements may share a bit."""
    bits = _64 * np.uint64(len(marks))
    for i in range(len(elements)):
        mark = slot_of(elements[i], bits)
        marks[mark >> _6] |= _1 << (mark & _63)


@kernel
def fill_table(elements: U64, nothing: np.uint64, table: U64) -> None:
    """Put elements into a hash table.

    nothing : a number that is no element; the table has more slots than elements, all `nothing`.
    """
    slots = np.uint64(len(table))
    for i in range(len(elements)):
        at = _first_slot(elements[i], slots)
        while table[at] != nothing:
            at = _next_slot(at, slots)
        table[at] = elements[i]


@kernel
def filter_sets(
    values: U64, offsets: I64, table: U64, marks: U64, nothing: np.uint64, out: U64, sizes: I64
) -> int:
    """Write the sets without the elements of a table of `fill_table`, and marks, to `out`.

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


# --- counts ---


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

    counters : of `count_elements`; a call counts the elements of one part of them.
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


# --- comparisons ---


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
