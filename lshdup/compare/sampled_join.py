"""The join by containment over samples of sets, for sets that exceed memory.

The samples are joined as sets are (containment_join.py). Two documents are candidates if enough of
the smaller sample is in the other one, and candidates are verified over the whole sets. Which pairs
may be missed is in lsh/sample_plan.py.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import IN_MEMORY, Arrays, rows_of, slices_of
from lshdup.base.ragged import RaggedSets, SetSource
from lshdup.compare.containment_join import containment_pairs
from lshdup.compare.measures import containment
from lshdup.compare.pairs import Columns, pack_pairs, unpack_pairs
from lshdup.compare.similarity import score_pairs
from lshdup.kernels import clusters as kernels
from lshdup.lsh.candidates import PIECE, PairArrays
from lshdup.lsh.sample_plan import SamplePlan


class TooManyError(Exception):
    """There are more candidate pairs than wanted."""


def candidate_pairs(
    samples: RaggedSets,
    members: NDArray[np.int64],
    plan: SamplePlan,
    jobs: int = 1,
    on_progress: Callable[[int, int], None] = lambda done, n: None,
    most: int = 1 << 62,
    split: int | None = None,
    arrays: Arrays = IN_MEMORY,
) -> Iterator[PairArrays]:
    """Yield the candidate pairs of documents, each once: (left, right), uint32, left < right.

    Documents that candidate pairs connect come together, so that few of them are read twice.

    samples : those of the documents `members`, ascending int64 array of shape (m,).
    most : raises TooManyError, before the first pair, for more pairs.
    split : if set, only pairs of two sides: rows of `samples` below `split`, and others.

    arrays : makes the arrays of pairs and of documents.

    Memory: 32 bytes a pair and 4 a document, from `arrays`, and what the join of the samples that
    are not empty takes.
    """

    def sizes_of(some: slice) -> NDArray[np.int64]:
        return np.diff(samples.offsets[some.start : some.stop + 1])

    n = len(samples)
    rows = arrays.where(n, lambda some: sizes_of(some) > 0)
    least = arrays.compute(n, np.int64, lambda some: plan.least_common(sizes_of(some)))
    found = containment_pairs(samples, rows, plan.threshold, jobs, split, on_progress, least=least)
    keys, total = [np.zeros(0, np.uint64)], 0
    for inside, holder, *_ in found:
        keys.append(arrays.copy(pack_pairs(holder, inside)))
        total += len(inside)
        if total > most:
            raise TooManyError
    every = arrays.concatenate(keys)
    keys.clear()
    every.sort()
    root: NDArray[np.uint32] = arrays.compute(len(members), np.uint32, rows_of)
    for some in slices_of(len(every)):
        kernels.join_pairs(*unpack_pairs(every[some]), root)
    kernels.find_roots(root)
    order = arrays.order(len(every), [lambda at: root[unpack_pairs(every[at])[0]]])
    for start in range(0, len(order), PIECE):
        holder, inside = unpack_pairs(every[order[start : start + PIECE]])
        a, b = members[holder], members[inside]
        yield np.minimum(a, b).astype(np.uint32), np.maximum(a, b).astype(np.uint32)


def verify_containment(
    pieces: Iterator[PairArrays],
    sizes: NDArray[np.int64],
    source: SetSource,
    threshold: float,
    jobs: int,
) -> Iterator[Columns]:
    """Yield the candidate pairs whose exact containment is at least the threshold.

    Parameters and cost: as of `similarity.verify`. Yields (inside, holder, scores of containment).
    """

    def score(
        sets: RaggedSets, left: NDArray[np.uint32], right: NDArray[np.uint32]
    ) -> NDArray[np.complex128]:
        return containment(sets, left, right, jobs)

    for left, right, scores in score_pairs(pieces, sizes, source, score):
        keep = scores.real >= threshold
        low, high = np.minimum(left, right)[keep], np.maximum(left, right)[keep]
        is_high_inside = sizes[high] < sizes[low]  # Of equal sizes, the lower number is inside.
        inside, holder = np.where(is_high_inside, (high, low), (low, high))
        yield inside, holder, scores[keep]
