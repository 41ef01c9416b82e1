"""Alignment of two sequences of tokens, and the heaviest chain of common passages.

Reference in the tests: `lcs_score` and the trial of all chains, in tests/views/test_show.py.
"""

import numpy as np

from lshdup.kernels.helpers import I32, I64, U8, U64
from lshdup.kernels.jit import kernel

_BOTH, _LEFT, _RIGHT = 0, 1, 2


@kernel
def align(a: U64, b: U64, steps: U8, scores: I32, matches: I64) -> int:
    """Find a common subsequence of a and b of the highest score; return its length.

    An element scores two, and one more if the next elements of both are matched too.

    steps, scores : scratch, for len(a) * len(b) and len(b) + 1.
    matches : matches[2 i], matches[2 i + 1] are the positions of element i, ascending; room for
        twice the shorter sequence.

    Cost: about 1.5 ns for each of len(a) * len(b).
    """
    n = len(a)
    m = len(b)
    for j in range(m + 1):
        scores[j] = 0
    # scores[j] is the score of a[i + 1:] and b[j:] until row i overwrites it.
    for i in range(n - 1, -1, -1):
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
    """Find the passages of largest total weight that have the same order in both texts.

    rank : int64 array of shape (n,), a permutation: passages are numbered by their order in one
        text, and this is their order in the other.
    weight : int64 array of shape (n,).
    best, last, before : scratch, for n + 1, n + 1 and n.
    chain : the passages, ascending, at its end.

    Returns the number of passages. Cost: n log n, by a tree of prefix maxima.
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
