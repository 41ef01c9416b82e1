"""Samples of shingle sets, their rate, and the recall that they promise for containment.

A sample keeps the elements whose hash is below a limit, one in `rate` (FracMinHash: Irber et al.,
"Lightweight compositional analysis of metagenomes with FracMinHash and minimum metagenome covers",
bioRxiv 2022). If a share c of a set A is in B, each element of the sample of A is in the sample of
B with that chance. So of n elements, X are common, and X is binomial: Bin(n, c); drawn without
replacement it is nearer to its mean. A pair is a candidate if X is at least the quantile of this
law that the recall allows. A set that keeps few elements may be missed; small sets keep few.
"""

import math
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import RaggedSets, offsets_of
from lshdup.base.run import Run
from lshdup.kernels import sets as kernels

#: The law is evaluated up to samples of this size. The quantile of a larger one is at least in
#: proportion.
_LARGEST = 1 << 14

#: The coarsest rate.
_MOST = 1 << 20

#: Elements of the smallest sets for which the recall is promised. A rate that keeps enough of
#: smaller sets would make nearly the exact join; a larger rate makes many accidental candidates.
SMALL = 64

#: More candidate pairs than this, and than so many for each document, are taken for accidents of
#: small samples: a larger floor is taken, at most this one.
FEW_CANDIDATES, CANDIDATES_EACH, LARGEST_FLOOR = 1 << 20, 32, 8


@dataclass(frozen=True)
class SamplePlan:
    """A rate of samples, and the request it was chosen for.

    rate : one element in so many is kept, a power of two.
    threshold, recall : a pair of this containment is to be met with this chance.
    floor : candidates have at least so many common elements; a sample for which the recall allows
        fewer ones makes none. More: fewer accidental candidates, and the promise is for larger
        sets.
    """

    rate: int
    threshold: float
    recall: float
    floor: int = 1

    @cached_property
    def min_shared(self) -> NDArray[np.int64]:
        """The least number of common elements that make candidates of samples of n elements.

        int64 array over n, the size of the smaller sample; at least 1, and n + 1 if none is enough.

        >>> SamplePlan(16, 0.8, 0.99).min_shared[:13].tolist()
        [1, 1, 1, 1, 1, 1, 2, 3, 3, 4, 4, 5, 6]
        >>> SamplePlan(16, 0.8, 0.99, floor=3).min_shared[:13].tolist()
        [1, 2, 3, 4, 5, 6, 7, 3, 3, 4, 4, 5, 6]
        """
        return self._law[0]

    @cached_property
    def _law(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The least number of common elements, and the chance of fewer, by size of the sample."""
        least, fewer = _law(self.threshold, self.recall)
        # No sample is met whose least number of common elements is below the floor.
        is_unmet = least < self.floor
        return np.where(is_unmet, np.arange(len(least)) + 1, least), np.where(is_unmet, 1.0, fewer)

    def least_common(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return `min_shared` for samples of any size: int64 array."""
        within = np.minimum(sizes, _LARGEST)
        least: NDArray[np.int64] = self.min_shared[within] * sizes // np.maximum(within, 1)
        return np.maximum(least, 1)

    def miss(self, size: int) -> float:
        """Return the chance to miss a pair at the threshold whose smaller set has `size` elements.

        The sample of the set has n elements with the binomial law Bin(size, 1 / rate).

        >>> [round(SamplePlan(16, 0.8, 0.99).miss(size), 4) for size in (20, 50, 100, 200)]
        [0.3585, 0.0772, 0.0074, 0.0025]
        """
        if self.rate == 1:
            return float(self._law[1][min(size, _LARGEST)])
        n, chances = _binomial(size, 1.0 / self.rate)
        return math.fsum(chances * self._law[1][np.minimum(n, _LARGEST)])

    def chance(self, size: int, common: int) -> float:
        """Return the chance that two sets are candidates, by the size of the smaller one.

        Samples hold x of the common elements and y of the others, both with binomial laws; the
        other sample is taken as no smaller.

        common : elements of the smaller set that are in the larger one.

        >>> plan = SamplePlan(16, 0.8, 0.99)
        >>> [round(plan.chance(100, common), 4) for common in (40, 60, 80, 100)]
        [0.7203, 0.9418, 0.9933, 0.9984]
        """
        if self.rate == 1:
            return float(common >= self.least_common(np.array([size]))[0])
        x, of_x = _binomial(common, 1.0 / self.rate)
        y, of_y = _binomial(size - common, 1.0 / self.rate)
        is_enough = x[:, np.newaxis] >= self.least_common(x[:, np.newaxis] + y)
        return math.fsum((of_x[:, np.newaxis] * is_enough * of_y).ravel())

    @cached_property
    def promised_from(self) -> int:
        """The smallest size of sets from which on a pair is met with the recall.

        >>> SamplePlan(16, 0.8, 0.99).promised_from
        93
        """

        def is_missed(size: int) -> bool:
            # Rounded, as the last digits of a logarithm differ between processors.
            return round(self.miss(size) + self.recall, 12) > 1.0

        low, high = 0, 1
        while is_missed(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if is_missed(middle):
                low = middle
            else:
                high = middle
        return high


@cache
def _law(threshold: float, recall: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the least number of common elements, and the chance of fewer, by size of the sample.

    Half of the chance that the recall leaves is for samples that are too small.
    """
    c, allowed = threshold, (1.0 - recall) / 2
    least, fewer = np.ones(_LARGEST + 1, np.int64), np.ones(_LARGEST + 1)
    if c >= 1.0:
        least[1:], fewer[1:] = np.arange(1, _LARGEST + 1), 0.0
        return least, fewer
    # at : the largest number of common elements that is too few. The chance of it, and of it or
    # fewer, follow from those of the sample that is smaller by one.
    at, chance, below = 0, 1.0, 1.0
    for n in range(1, _LARGEST + 1):
        below -= c * chance
        chance *= n / (n - at) * (1.0 - c)
        more = chance * (n - at) / (at + 1) * c / (1.0 - c)
        while at + 1 < n and below + more <= allowed:
            at, chance, below = at + 1, more, below + more
            more = chance * (n - at) / (at + 1) * c / (1.0 - c)
        least[n], fewer[n] = at + 1, below
    return least, fewer


def _binomial(n: int, p: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the numbers of hits whose chance is not negligible, and their chances: Bin(n, p)."""
    mean, spread = n * p, math.sqrt(n * p * (1.0 - p))
    first, last = max(0, int(mean - 10 * spread) - 1), min(n, int(mean + 12 * spread) + 20)
    hits = np.arange(first, last + 1)
    if n == 0:
        return hits, np.ones(1)
    ways = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in hits.tolist()]
    logs = np.array(ways) + hits * math.log(p) + (n - hits) * math.log1p(-p)
    return hits, np.exp(logs)


def plan_samples(smallest: int, threshold: float, recall: float, least_rate: int = 1) -> SamplePlan:
    """Return the plan with the largest rate that keeps the recall for sets of the smallest size.

    smallest : elements.
    least_rate : no smaller rate is taken, though the promise then begins at a larger size.

    >>> plan_samples(64, 0.8, 0.99).rate, plan_samples(64, 0.8, 0.99, least_rate=32).rate
    (8, 32)
    """
    rate = 1
    while rate < _MOST and (
        rate < least_rate or SamplePlan(2 * rate, threshold, recall).promised_from <= smallest
    ):
        rate *= 2
    return SamplePlan(rate, threshold, recall)


# --- the samples ---


#: Makes the hash another one than those of signatures with the same seed.
_STREAM = 18


def sample_sets(run: Run, sets: RaggedSets, rate: int, seed: int) -> RaggedSets:
    """Return the sample of each set: its elements x with hash(x) < 2^64 / rate, in their order.

    rate : one element in so many is kept. seed : of the hash.

    Determinism: whether an element is kept depends on it, the rate and the seed only.

    >>> run, sets = Run.quiet(), RaggedSets.from_sets([range(1000), range(500)])
    >>> half, tenth = sample_sets(run, sets, 2, seed=1), sample_sets(run, sets, 10, seed=1)
    >>> set(tenth[1]) < set(tenth[0]) < set(half[0]), bool(set(half[1]) <= set(half[0]))
    (True, True)
    """
    if rate == 1:
        return sets
    salt = np.random.Generator(np.random.PCG64([seed, _STREAM])).integers(
        0, 1 << 64, dtype=np.uint64
    )
    arrays = run.arrays
    out, sizes = arrays.empty(len(sets.values), np.uint64), arrays.empty(len(sets), np.int64)
    n = kernels.select_below(
        sets.values, sets.offsets, salt, np.uint64((1 << 64) // rate), out, sizes
    )
    return RaggedSets(arrays.copy(out[:n]), offsets_of(sizes, arrays))
