"""Sorting things by 64-bit hashes, in a few steps each. Called by bands.py and candidates.py."""

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.helpers import scatter_by
from lshdup.kernels.jit import kernel

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

_ONE = np.uint64(1)


@kernel
def order_by_key(keys: U64, members: I64, counts: U32, sorted_keys: U64, order: U32) -> None:
    """Order = members by keys[member], equal keys in the order of `members`.

    One scatter by the leading bits of the keys' range, then insertion: keys are hashes, so a place of the scatter holds one or two
    different ones, and equal ones cost a step each. Scratch: `counts` has room for a power of two >= m, and one; `sorted_keys` for m.
    """
    m = len(members)
    if m == 0:
        return
    low = high = keys[np.uint64(members[0])]
    for i in range(m):
        key = keys[np.uint64(members[i])]
        low = min(low, key)
        high = max(high, key)
    shift, places = scatter_by(high - low, m)
    for i in range(places + 1):
        counts[i] = 0
    for i in range(m):
        counts[((keys[np.uint64(members[i])] - low) >> shift) + _ONE] += np.uint32(1)
    for i in range(places):
        counts[i + 1] += counts[i]
    for i in range(m):
        key = keys[np.uint64(members[i])]
        place = (key - low) >> shift
        at = np.uint64(counts[place])
        counts[place] += np.uint32(1)
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
