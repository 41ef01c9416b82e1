"""Samples of sets against the reference, and the binomial law of what they find."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.ragged import RaggedSets
from lshdup.kernels import sets as kernels
from lshdup.lsh.samples import SamplePlan, plan_samples, sample_sets
from tests import reference
from tests.conftest import RUN, many

ELEMENTS = st.sets(st.integers(0, (1 << 64) - 1), max_size=40)


@given(st.lists(ELEMENTS, max_size=6), st.integers(2, 40), st.integers(0, (1 << 64) - 1))
def test_the_kernel_selects_what_the_reference_does(sets, rate, salt):
    ragged = RaggedSets.from_sets(sets)
    out, sizes = np.empty(len(ragged.values), np.uint64), np.empty(len(sets), np.int64)
    limit = np.uint64((1 << 64) // rate)
    n = kernels.select_below(ragged.values, ragged.offsets, np.uint64(salt), limit, out, sizes)
    kept = RaggedSets.from_sizes(out[:n], sizes)
    # Where the rate is no power of two, its limit is rounded down: one hash in 2^64.
    expected = [sorted(reference.sample_of(each, rate, salt)) for each in sets]
    assert [each.tolist() for each in kept] == expected


@pytest.mark.parametrize("first", [0, 1 << 63], ids=["consecutive", "high"])
def test_samples_have_the_size_of_the_rate_and_nest(first):
    """Consecutive numbers are kept as random ones: mean and spread are binomial."""
    size, sets = 500, 400
    starts = range(first, first + sets * size, size)
    ragged = RaggedSets.from_sets(range(start, start + size) for start in starts)

    def sampled(rate, seed=7):
        return sample_sets(RUN, ragged, rate, seed=seed).values.tolist()

    for rate in (2, 8, 64):
        sample, p = sample_sets(RUN, ragged, rate, seed=7), 1 / rate
        spread = (size * p * (1 - p)) ** 0.5
        assert abs(sample.sizes.mean() - size * p) < 4 * spread / sets**0.5
        assert 0.8 * spread < sample.sizes.std() < 1.2 * spread
        assert sample_sets(RUN, sample, 2 * rate, seed=7).values.tolist() == sampled(2 * rate)
    assert sampled(8, seed=8) != sampled(8)


@settings(max_examples=many(60))
@given(st.fractions(0, 1).filter(bool), st.sampled_from([0.5, 0.9, 0.99, 0.999]))
def test_enough_common_elements_are_the_quantile_of_the_binomial_law(containment, recall):
    plan, allowed = SamplePlan(4, float(containment), recall), (1 - recall) / 2
    for n in (1, 2, 3, 7, 20, 33):
        law = [comb(n, k) * containment**k * (1 - containment) ** (n - k) for k in range(n + 1)]
        least = int(plan.min_shared[n])
        assert float(sum(law[:least], Fraction(0))) <= allowed + 1e-9 or least == 1
        assert least == n or float(sum(law[: least + 1], Fraction(0))) > allowed - 1e-9


def test_the_least_share_of_large_samples_is_no_larger_than_that_of_any_other():
    plan = SamplePlan(4, 0.8, 0.99)
    n = np.array([0, 1, 16383, 16384, 16385, 32768, 10**7])
    least = plan.least_common(n)
    assert least[0] == 1
    assert (np.diff(least[2:]) >= 0).all()
    assert (least[4:] / n[4:] > 0.78).all()


def test_equal_sets_are_missed_where_their_samples_are_empty():
    for size in (1, 2, 20, 100):
        assert SamplePlan(16, 1.0, 0.99).miss(size) == pytest.approx((15 / 16) ** size)
        assert SamplePlan(1, 1.0, 0.99).miss(size) == 0


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
def test_the_promise_holds_for_sets_from_the_size_that_is_said(threshold):
    """Pairs of exactly the threshold are met as often as the law says, whatever their size."""
    rng = np.random.Generator(np.random.PCG64(5))
    plan, trials = plan_samples(64, threshold, 0.99), 3000
    assert plan.promised_from <= 64
    assert plan.rate == 1 << 20 or plan_samples(10**6, threshold, 0.99).rate >= plan.rate
    for size in (10, 20, plan.promised_from, 200):
        common = -int(-threshold * size // 1)
        values = rng.integers(0, 1 << 63, (trials, size), dtype=np.uint64)
        inside = RaggedSets.from_sizes(values.ravel(), np.full(trials, size))
        shared = RaggedSets.from_sizes(values[:, :common].ravel(), np.full(trials, common))
        kept, both = (sample_sets(RUN, each, plan.rate, seed=3).sizes for each in (inside, shared))
        missed = np.count_nonzero(both < plan.least_common(kept)) / trials
        expected = plan.miss(size)
        allowed = 4 * (max(expected, 1e-3) / trials) ** 0.5
        # Without replacement, the number of common elements is nearer to its mean.
        assert missed <= expected + allowed
        if size >= plan.promised_from:
            assert expected <= 0.01
