"""Common runs of two documents each -> what the two share: tokens, the longest run, and places.

Reference: `obvious_sharing` in tests/passages/test_sharing.py.
"""

from typing import NamedTuple

import numpy as np

from lshdup.kernels.bands import differ
from lshdup.kernels.helpers import I64, U64
from lshdup.kernels.jit import kernel
from lshdup.kernels.passages import Grouped, chain_around, document_of

_HALF = np.uint64(32)


class CommonRuns(NamedTuple):
    """Common runs of two documents each, in any order.

    pairs : uint64 array of shape (n,), left · 2^32 + right, the documents of each; left < right.
    starts, others : int64 arrays of shape (n,), first token on the left and on the right, by its
        place in all sequences.
    sizes : int64 array of shape (n,), tokens.
    """

    pairs: U64
    starts: I64
    others: I64
    sizes: I64


@kernel
def list_runs(
    grouped: Grouped, groups: I64, documents: I64, lefts: int, holders: I64, state: I64,
    out: CommonRuns,
) -> int:  # fmt: skip
    """Write the maximal common runs, or chains of runs, of two documents each that groups find.

    groups : groups to look at, from member state[1] of number state[0] on, which the call sets.
    documents : the document of each sequence.
    lefts : only runs with a place in a sequence below this number.
    holders : scratch, for the members of the largest of these groups.
    out : with room for more runs than the largest group has members.

    Returns the number of runs.
    """
    found = 0
    for at in range(state[0], len(groups)):
        n, start = grouped.sizes[groups[at]], grouped.starts[groups[at]]
        for i in range(n):
            position = grouped.positions[grouped.members[start + i]]
            holders[i] = document_of(grouped.offsets, position)
        for i in range(state[1], n):
            own = holders[i]
            if own >= lefts:
                break
            if found + n > len(out.pairs):
                state[0], state[1] = at, i
                return found
            a = grouped.members[start + i]
            for j in range(i + 1, n):
                other = holders[j]
                if own == other or not differ(grouped.origins, own, other):
                    continue
                b = grouped.members[start + j]
                before, after = chain_around(grouped, a, b, own, other)
                if after > 0:
                    one, two = documents[own], documents[other]
                    p, q = grouped.positions[a] - before, grouped.positions[b] - before
                    if one > two:
                        one, two, p, q = two, one, q, p
                    out.pairs[found] = (np.uint64(one) << _HALF) | np.uint64(two)
                    out.starts[found], out.others[found] = p, q
                    out.sizes[found] = before + after
                    found += 1
        state[1] = 0
    state[0] = len(groups)
    return found


@kernel
def measure_pairs(
    order: I64, pairs: U64, starts: I64, sizes: I64, out_pair: U64, out_tokens: I64,
    out_longest: I64, out_places: I64,
) -> int:  # fmt: skip
    """Write each pair once, with what its runs cover of one of its documents; return how many.

    order : runs by pair, and those of a pair by start.
    pairs, starts, sizes : of each run the pair, the first token in this document, and the tokens.
    out_pair, out_tokens, out_longest, out_places : the pair, the tokens in a run of it, those of
        its longest run, and the places where runs begin; with room for as many as there are runs.
    """
    found = 0
    reach = last = np.int64(-1)
    for at in range(len(order)):
        i = order[at]
        if found == 0 or pairs[i] != out_pair[found - 1]:
            out_pair[found] = pairs[i]
            out_tokens[found] = out_longest[found] = out_places[found] = 0
            reach = last = np.int64(-1)
            found += 1
        start, end = starts[i], starts[i] + sizes[i]
        out_tokens[found - 1] += max(end - max(start, reach), 0)
        out_longest[found - 1] = max(out_longest[found - 1], sizes[i])
        out_places[found - 1] += start != last
        reach, last = max(reach, end), start
    return found
