"""Where two rows of tokens agree: the longest common subsequence of short ones, the heaviest chain of passages of long ones.

Called by differences.py, which cuts long rows into short ones and owns the arrays.
"""

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.jit import kernel

U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

_BOTH, _LEFT, _RIGHT = 0, 1, 2


@kernel
def align(a: U64, b: U64, steps: U8, scores: I32, matches: I64) -> int:
    """A common subsequence of a and b, as long as can be and preferably in one piece: matches[2 i], matches[2 i + 1] are the positions of
    its i-th element, ascending; returns how many there are.

    An element counts two, and one more where the next of both is taken too. steps : at least len(a) * len(b) long. scores : len(b) + 1.
    matches : twice the shorter of both. Cost: about 1.5 ns for each of len(a) * len(b).
    """
    n = len(a)
    m = len(b)
    for j in range(m + 1):
        scores[j] = 0
    for i in range(
        n - 1, -1, -1
    ):  # scores[j]: of a[i + 1:] and b[j:], until this row has passed it
        diagonal = scores[m]
        scores[m] = 0
        base = i * m
        for j in range(m - 1, -1, -1):
            below = scores[j]
            right = scores[j + 1]
            best = below
            step = np.uint8(_LEFT)
            if right > best:
                best = right
                step = np.uint8(_RIGHT)
            if a[i] == b[j]:
                both = diagonal + 2
                if i + 1 < n and j + 1 < m and steps[base + m + j + 1] == _BOTH:
                    both += 1
                if both >= best:
                    best = both
                    step = np.uint8(_BOTH)
            steps[base + j] = step
            scores[j] = best
            diagonal = below
    found = 0
    i = 0
    j = 0
    while i < n and j < m:
        step = steps[i * m + j]
        if step == _BOTH:
            matches[2 * found] = i
            matches[2 * found + 1] = j
            found += 1
            i += 1
            j += 1
        elif step == _LEFT:
            i += 1
        else:
            j += 1
    return found


@kernel
def heaviest_chain(rank: I64, weight: I64, best: I64, last: I64, before: I64, chain: I64) -> int:
    """Of passages in the order of one text, those of the largest weight in all that stand in the same order in the other text.

    rank : int64 array of shape (n,), the place of each in the other text, a permutation of 0 … n - 1. chain : takes their numbers,
    ascending, at its end; returns how many. best, last : n + 1 long, before : n long. Cost: n log n (a tree of prefix maxima).
    """
    n = len(rank)
    for i in range(n + 1):
        best[i] = 0
        last[i] = -1
    for i in range(n):
        total = 0
        comes = -1
        at = rank[i]
        while at > 0:
            if best[at] > total:
                total = best[at]
                comes = last[at]
            at &= at - 1
        before[i] = comes
        total += weight[i]
        at = rank[i] + 1
        while at <= n:
            if total > best[at]:
                best[at] = total
                last[at] = i
            at += at & -at
    total = 0
    i = -1
    at = n
    while at > 0:
        if best[at] > total:
            total = best[at]
            i = last[at]
        at &= at - 1
    found = 0
    while i >= 0:
        found += 1
        chain[n - found] = i
        i = before[i]
    return found
