"""Sorts: members by their 64-bit hashes, and values in place.

Reference: NumPy's stable sort in tests/lsh/test_bands.py; the shingle sets of tests/reference.py.
"""

import numpy as np

from lshdup.kernels.helpers import I32, I64, U32, U64, inlined, scatter_by
from lshdup.kernels.jit import kernel

#: A bucket of `sort_values` with more values than this is sorted by comparison.
CROWD = 48

_ONE = np.uint64(1)


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
        counts[((keys[np.uint64(members[i])] - low) >> shift) + _ONE] += np.uint32(1)
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
            while j > np.uint64(0) and sorted_keys[j - _ONE] > key:
                sorted_keys[j] = sorted_keys[j - _ONE]
                order[j] = order[j - _ONE]
                j -= _ONE
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
        counts[((values[i] - low) >> shift) + _ONE] += 1
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
            while j > np.uint64(0) and values[j - _ONE] > x:
                values[j] = values[j - _ONE]
                j -= _ONE
            values[j] = x


@inlined
def unique_values(values: U64, n: int) -> int:
    """Drop repeats from n > 0 sorted values in place; return the number of distinct values."""
    m = _ONE
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
