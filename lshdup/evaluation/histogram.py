"""How many pairs, documents and groups there are at each threshold, and examples to judge by eye. Called by cli/.

All of it from the pairs of one run at the lowest threshold: nothing is read, and pairs of copies are counted, not made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection
from lshdup.documents.preference import preference
from lshdup.lsh.band_plan import BandPlan, collision_probabilities
from lshdup.matching import clusters
from lshdup.matching.copies import ExpandedPairs
from lshdup.matching.pairs import Columns, Pairs
from lshdup.matching.results import StoredPairs
from lshdup.params import ClusterParams
from lshdup.pipeline import members
from lshdup.utils.ragged import distinct


@dataclass(frozen=True)
class Step:
    """What there is at one threshold.

    pairs : of this similarity or more. documents : in any of them. groups : of two or more, as `clusters` makes them. examples : pairs from
    this threshold to the next, (left, right, similarity), the least similar first.
    """

    threshold: float
    pairs: int
    documents: int
    groups: int
    examples: Columns


def thresholds(lowest: float, step: float) -> list[float]:
    """The lowest, the multiples of `step` above it, and 1.

    >>> thresholds(0.72, 0.1)
    [0.72, 0.8, 0.9, 1.0]
    """
    multiples = [round(number * step, 9) for number in range(1, int(1 / step) + 1)]
    return [
        lowest,
        *(each for each in multiples if lowest < each < 1.0),
        *([1.0] if lowest < 1.0 else []),
    ]


def histogram(
    collection: Collection,
    pairs: Pairs,
    duplicate_of: NDArray[np.int64],
    listing: ExpandedPairs,
    levels: Sequence[float],
    examples: int,
) -> list[Step]:
    """One step for each of the thresholds `levels`, ascending.

    pairs : of first copies, at the lowest threshold or a lower one. listing : those of all documents. examples : at most so many a step.

    Cost: the pairs are sorted once for each step.
    """
    n = len(duplicate_of)
    best = np.sort(listing.best(n))
    counts = listing.totals(np.array(levels))
    order, _ = preference(collection.documents, collection.sizes, ClusterParams(), ())
    ranked = clusters.rank_documents(members(collection, duplicate_of), duplicate_of, order)
    steps = []
    for level, above, count in zip(levels, [*levels[1:], np.inf], counts, strict=True):
        kinds = clusters.cluster_pairs(pairs, ranked, n, level)
        groups = clusters.expand_groups(kinds, duplicate_of, order).count
        documents = n - int(np.searchsorted(best, level))
        steps.append(
            Step(level, count, documents, groups, listing.examples(level, above, examples))
        )
    return steps


@dataclass(frozen=True)
class Bin:
    """Pairs that a run has found between two similarities, and the chances they had.

    chance : of a pair of similarity `low` to be found by the plan that is asked about. pairs : found, of all documents; None below the
    threshold of the run. missed : how many the plan is expected to miss, for all that are there.
    """

    low: float
    chance: float
    pairs: int | None
    missed: float | None


def expected_misses(
    run: StoredPairs, listing: ExpandedPairs, plan: BandPlan, levels: Sequence[float]
) -> list[Bin]:
    """The S-curve of `plan` beside the pairs that a run found, by bins that begin at `levels` (ascending).

    listing : its pairs of all documents.

    A pair of similarity s that was found, with chance p(s), stands for 1 / p(s) that are there (Horvitz and Thompson, 1952), and the plan
    misses one of them with chance 1 - q(s). Copies are never missed.
    """
    q = collision_probabilities(np.array(levels), plan.bands, plan.rows)
    counts = [*listing.totals(np.array(levels)), 0]
    values = distinct(np.append(run.found.pairs.values, 1.0))[0][::-1]
    sizes = np.diff(listing.totals(values), prepend=0)
    p = collision_probabilities(values, run.bands, run.rows)
    missed = sizes * (1 - collision_probabilities(values, plan.bands, plan.rows)) / p
    bins = []
    for at, (low, high) in enumerate(pairwise([*levels, np.inf])):
        if low < run.params.threshold:
            bins.append(Bin(low, float(q[at]), None, None))
        else:
            bins.append(
                Bin(
                    low,
                    float(q[at]),
                    counts[at] - counts[at + 1],
                    float(missed[(values >= low) & (values < high)].sum()),
                )
            )
    return bins
