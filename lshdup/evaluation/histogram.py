"""How many pairs, documents and groups there are at each threshold, and examples to judge by eye. Called by cli/.

All of it from the pairs of one run at the lowest threshold: nothing is read, and pairs of copies are counted, not made.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection
from lshdup.documents.preference import preference
from lshdup.lsh.candidates import documents_to_compare
from lshdup.matching import clusters
from lshdup.matching.copies import ExpandedPairs
from lshdup.matching.pairs import Columns, Pairs
from lshdup.params import ClusterParams


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
    members = documents_to_compare(duplicate_of, collection.sizes)
    ranked = clusters.rank_documents(members, duplicate_of, order)
    steps = []
    for level, above, count in zip(levels, [*levels[1:], np.inf], counts, strict=True):
        kinds = clusters.cluster_pairs(pairs, ranked, n, level)
        groups = clusters.expand_groups(kinds, duplicate_of, order).count
        documents = n - int(np.searchsorted(best, level))
        steps.append(
            Step(level, count, documents, groups, listing.examples(level, above, examples))
        )
    return steps
