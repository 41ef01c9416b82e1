"""Binomial tails. Reference: the sum of all terms, in tests/evaluation/test_experiments.py."""

import math

import numpy as np

from lshdup.kernels.helpers import F64, inlined
from lshdup.kernels.jit import kernel

_NEGLIGIBLE = 1e-18


@inlined
def _log_binomial(n: int, x: int, p: float) -> float:
    """Return log P(X = x), X binomial with n trials of probability 0 < p < 1."""
    choose = math.lgamma(n + 1.0) - math.lgamma(x + 1.0) - math.lgamma(n - x + 1.0)
    return choose + x * math.log(p) + (n - x) * math.log1p(-p)


@kernel
def chances_off(exact: F64, perms: int, epsilon: float, out: F64) -> None:
    """Set out[i] to P(|X / perms - s| > epsilon), X binomial with `perms` trials, s = exact[i].

    Each tail is summed from its edge outwards by the ratio of consecutive terms, until the terms
    are negligible: after a few dozen.
    """
    for i in range(len(exact)):
        s = exact[i]
        if s <= 0.0 or s >= 1.0:
            out[i] = 0.0
            continue
        total = 0.0
        low = min(perms, np.int64(math.floor((s - epsilon) * perms)) + 1)
        while low >= 0 and not s - low / perms > epsilon:
            low -= 1
        if low >= 0:
            term = math.exp(_log_binomial(perms, low, s))
            while low >= 0 and term > _NEGLIGIBLE:
                total += term
                term *= low / (perms - low + 1.0) * (1.0 - s) / s
                low -= 1
        high = max(0, np.int64(math.ceil((s + epsilon) * perms)) - 1)
        while high <= perms and not high / perms - s > epsilon:
            high += 1
        if high <= perms:
            term = math.exp(_log_binomial(perms, high, s))
            while high <= perms and term > _NEGLIGIBLE:
                total += term
                term *= (perms - high) / (high + 1.0) * s / (1.0 - s)
                high += 1
        out[i] = total
