"""Documents sorted by 64-bit keys, in memory that does not grow with their number."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import sets as kernels

#: Bytes of scratch for one sort at most, and at least.
MOST_SCRATCH, LEAST_SCRATCH = 128 << 20, 4 << 20

#: Bytes of scratch for a document: its key, two counts, its number.
_BYTES = 24

#: Documents whose keys are looked at together.
_AT_ONCE = 1 << 20


def scratch_bytes(limit: int, jobs: int = 1) -> int:
    """Return the bytes for one of `jobs` sorts at a time: a small share of the memory limit."""
    return max(LEAST_SCRATCH, min(MOST_SCRATCH, limit // 16 // jobs))


def sort_by_key(
    keys: NDArray[np.uint64],
    members: NDArray[np.int64] | None,
    order: NDArray[np.uint32],
    scratch: int,
) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
    """Sort documents by key and then by number, one range of keys after the other.

    Parameters
    ----------
    keys : uint64 array of shape (n,), the key of each document.
    members : ascending int64 array of shape (m,), the documents to sort; None: all n.
    order : uint32 array of shape (m,), which is filled with the sorted documents.
    scratch : bytes to work in, if keys are spread evenly as hashes are: a range may hold more
        documents otherwise.

    Yields the slice of `order` that a range fills and its sorted keys: equal keys are in one range.

    Cost: one pass over the keys for each range, and one step a document.

    """
    m = len(order)
    count = max(1, -(-_BYTES * m // scratch))
    if count == 1:
        whole = np.arange(m) if members is None else members
        yield slice(0, m), _sort(keys, whole, order)
        return

    def look(start: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        if members is None:
            some = np.arange(start, min(start + _AT_ONCE, m))
            return some, keys[start : start + _AT_ONCE]
        some = members[start : start + _AT_ONCE]
        return some, keys[some]

    ends = [(each.min(), each.max()) for _, each in map(look, range(0, m, _AT_ONCE))]
    low, high = int(min(ends)[0]), max(int(end) for _, end in ends)
    at = 0
    for first, after in pairwise(low + (high + 1 - low) * i // count for i in range(count + 1)):
        found = []
        for some, each in map(look, range(0, m, _AT_ONCE)):
            found.append(some[(each >= np.uint64(first)) & (each <= np.uint64(max(after - 1, 0)))])
        mine = np.concatenate(found)
        if after > first and len(mine):
            part = slice(at, at + len(mine))
            yield part, _sort(keys, mine, order[part])
            at = part.stop


def _sort(
    keys: NDArray[np.uint64], members: NDArray[np.int64], order: NDArray[np.uint32]
) -> NDArray[np.uint64]:
    """Fill `order` with the sorted members; return their keys."""
    sorted_keys = np.empty(len(members), np.uint64)
    counts = np.empty(2 * len(members) + 2, np.uint32)
    kernels.order_by_key(keys, members, counts, sorted_keys, order)
    return sorted_keys
