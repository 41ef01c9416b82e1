"""The share of the pairs of containment that samples find, beside what the binomial law expects."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.compare.scored_pairs import Pairs
from lshdup.compare.verification import containment
from lshdup.evaluation.experiments import Experiment, recall_in_bins
from lshdup.lsh.samples import SamplePlan, sample_sets


@dataclass(frozen=True)
class SampleRecall:
    """Share of the true pairs that samples find, in one bin of containment and of size.

    rate : one shingle in so many is in a sample.
    shingles_from, shingles_to : smallest and largest size of the smaller set in the bin. The recall
        is promised from a size on; the pairs of smaller sets have bins of their own.
    containment_from, containment_to : edges of the bin; the upper edge belongs to it only at 1.
    pairs : number of true pairs, of documents with different shingle sets.
    found : number of true pairs that are candidates.
    share : found / pairs; None without pairs.
    share_low, share_high : 95 % confidence interval of the share (Wilson) for independent pairs.
    expected : mean of the chances of the pairs.
    """

    rate: int
    shingles_from: int
    shingles_to: int
    containment_from: float
    containment_to: float
    pairs: int
    found: int
    share: float | None
    share_low: float | None
    share_high: float | None
    expected: float | None


def sample_recall(
    experiment: Experiment, pairs: Pairs, plan: SamplePlan, seed: int
) -> Iterator[SampleRecall]:
    """Yield a result for each bin from the threshold to 1, and for all bins; then for the pairs of
    sets that are too small for the promise, if there are any.

    The found pairs are those that `lshdup pairs --measure containment` finds with these samples.

    pairs : the true pairs, ordered, with scores of containment.
    Cost: one pass over the sets, one comparison of samples a pair.
    """
    samples = sample_sets(experiment.run, experiment.sets, plan.rate, seed)
    inside, holder = (side.astype(np.int64) for side in (pairs.left, pairs.right))
    share = pairs.similarity.real
    least = np.minimum(samples.sizes[inside], samples.sizes[holder])
    common = np.rint(containment(experiment.run, samples, inside, holder).real * least)
    is_found = common >= plan.least_common(least)
    sizes = experiment.sets.sizes[inside]
    chance = _find_chances(sizes, np.rint(share * sizes).astype(np.int64), plan)
    largest = int(experiment.sets.sizes.max(initial=1))
    promised = plan.promised_from
    for first, last in ((promised, max(promised, largest)), (1, promised - 1)):
        own = (sizes >= first) & (sizes <= last)
        if first < promised and not own.any():
            return
        for each in recall_in_bins(plan.threshold, share[own], is_found[own], chance[own]):
            yield SampleRecall(plan.rate, first, last, *each)


def _find_chances(
    sizes: NDArray[np.int64], common: NDArray[np.int64], plan: SamplePlan
) -> NDArray[np.float64]:
    """Return the chance to find each pair, by the size of the smaller set and its common elements.

    Sizes above 100 are rounded to two digits, so that few different pairs are evaluated.
    """
    powers = 10 ** np.arange(1, 19, dtype=np.int64)  # a logarithm could be below that of a power
    digits = 10 ** np.maximum(np.searchsorted(powers, sizes, side="right") - 1, 0)
    rounded = np.maximum(sizes // digits * digits, 1)
    shared = np.rint(common / np.maximum(sizes, 1) * rounded).astype(np.int64)
    different, of_pair = np.unique(np.stack([rounded, shared]), axis=1, return_inverse=True)
    chances = np.array([plan.chance(*pair) for pair in different.T.tolist()])
    found: NDArray[np.float64] = chances[of_pair.ravel()]
    return found
