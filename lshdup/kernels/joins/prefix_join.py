"""The exact join by similarity: prefixes that share elements -> pairs.

Sets are numbered by rank, as in prefixes.py. Reference in the tests: `all_pairs` of
tests/reference.py.
"""

import numpy as np

from lshdup.kernels.helpers import F64, I32, I64, U64
from lshdup.kernels.jit import kernel
from lshdup.kernels.joins.prefixes import Postings, Prefixes, least_overlap, slot_of
from lshdup.kernels.sets import overlap

#: In `missing`: the pair was not met yet; or it cannot reach the threshold.
UNMET = 0x7FFFFFFF
_OUT = 0x7FFFFFFE
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def prefix_join(
    values: U64,
    offsets: I64,
    order: I64,
    threshold: float,
    prefixes: Prefixes,
    postings: Postings,
    longest: I64,
    state: I64,
    last: int,
    missing: I32,
    met: I64,
    left: I64,
    right: I64,
    out: F64,
) -> int:
    """Find the pairs of the sets at ranks state[0] … last - 1 with the sets of lower ranks.

    PPJoin: Xiao, Wang, Lin, Yu, "Efficient similarity joins for near duplicate detection", WWW
    2008. The caller repeats the call until state[0] is last; a call ends when the output may not
    have room for all pairs of one more set, so it must have room for one pair a set.

    longest : longest[rank] is the first rank whose set is not too short for this one.
    missing : scratch, one for each set, all UNMET: the number of common elements still needed.
    met : scratch, as long.
    left, right, out : ranks, and similarities.

    Returns the number of pairs.
    """
    written = 0
    sizes, starts, prefix, single, kept = prefixes
    list_starts, elements, holders = postings
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
            at = slot_of(element, lists)
            low, end = np.uint64(list_starts[at]), np.uint64(list_starts[at + np.uint64(1)])
            # The length filter, by bisection, because lists ascend by rank and so by size.
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
                    if sizes[y] != length:  # Many neighbours in a list have one size.
                        length = sizes[y]
                        wanted = least_overlap(size, length, threshold)
                    lacking = wanted
                lacking -= 1
                # The position filter: the rest of both sets may be too short.
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
                least = least_overlap(size, len(b), threshold)
                common = overlap(a, b, least)
                if common >= least:
                    left[written] = y
                    right[written] = x
                    out[written] = common / (size + len(b) - common)
                    written += 1
            missing[y] = UNMET
    state[0] = last
    return written
