"""The histogram: numbers of pairs, documents and groups at each threshold, and example pairs.

It is made of the pairs of one run at the lowest threshold: no document is read, and pairs of exact
duplicates are counted without being made. Groups are those of `clusters`, for which a pair takes
its place in the arrays of the run: beyond its memory, in scratch files.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.base.run import Run
from lshdup.compare import clusters
from lshdup.compare.expand_duplicates import ExpandedPairs
from lshdup.compare.scored_pairs import Pairs
from lshdup.lsh.candidates import documents_to_compare


@dataclass(frozen=True)
class Step:
    """Results at one threshold.

    pairs : number of pairs of this similarity or more.
    documents : number of documents in these pairs.
    groups : number of groups of two or more documents, as `clusters` makes them.
    example : left, right and similarity of the pair nearest above this threshold, below the next.
    """

    threshold: float
    pairs: int
    documents: int
    groups: int
    example: tuple[int, int, float] | None


def list_thresholds(lowest: float, step: float = 0.05) -> list[float]:
    """Return the lowest threshold, the multiples of `step` above it, and 1.

    >>> list_thresholds(0.72, 0.1)
    [0.72, 0.8, 0.9, 1.0]
    """
    multiples = [round(number * step, 9) for number in range(1, int(1 / step) + 1)]
    return [
        lowest,
        *(multiple for multiple in multiples if lowest < multiple < 1.0),
        *([1.0] if lowest < 1.0 else []),
    ]


def make_histogram(
    run: Run,
    sizes: NDArray[np.int64],
    order: NDArray[np.int64],
    pairs: Pairs,
    duplicate_of: NDArray[np.int64],
    expanded: ExpandedPairs,
    levels: Sequence[float],
) -> list[Step]:
    """Return one step for each threshold.

    sizes : int64 array of shape (n,), size of the shingle set of each document.
    order : int64 array of shape (n,), documents from the one that is kept first.
    pairs : of representatives, at the lowest threshold or a lower one.
    duplicate_of : int64 array of shape (n,), the representative of each document.
    expanded : the pairs of all documents.
    levels : thresholds, ascending.
    Cost: the pairs are sorted once, and passed over once for each step.
    """
    n = len(duplicate_of)
    documents = n - np.searchsorted(np.sort(expanded.best()), levels)
    members = documents_to_compare(run, duplicate_of, sizes)
    ranked = clusters.rank_documents(run, members, duplicate_of, order)
    copies = np.bincount(duplicate_of, minlength=n)
    groups = (
        found.count_groups(copies)[0]
        for found in clusters.cluster_steps(run, pairs, ranked, n, levels)
    )
    counts = zip(levels, expanded.totals(np.array(levels)), documents.tolist(), groups, strict=True)
    return [
        Step(*each, expanded.example(each[0], above))
        for each, above in zip(counts, [*levels[1:], np.inf], strict=True)
    ]
