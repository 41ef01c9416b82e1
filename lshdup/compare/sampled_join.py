"""The pairs of containment: by the exact join where the sets fit into memory, else by samples.

The samples are joined as sets are (exact_join.py). Two documents are candidates if enough of
the smaller sample is in the other one, and candidates are verified over the whole sets. Which pairs
may be missed is in lsh/samples.py. At rate 1 the samples are the sets, and the join is exact.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import rows_of, slices_of
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.base.wording import chance, count_of
from lshdup.compare.exact_join import containment_pairs, planned_memory
from lshdup.compare.results import PairsFound
from lshdup.compare.scored_pairs import Columns, gather_pairs, pack_pairs, unpack_pairs
from lshdup.compare.sides import Sides, renumber
from lshdup.compare.verification import verify_containment
from lshdup.kernels import clusters as kernels
from lshdup.lsh.candidates import PIECE, CandidateCounter, PairArrays, documents_to_compare
from lshdup.lsh.samples import (
    CANDIDATES_EACH,
    FEW_CANDIDATES,
    LARGEST_FLOOR,
    SMALL,
    SamplePlan,
    plan_samples,
)
from lshdup.params import BandParams

#: Bytes that an element of a sample takes, gathered and joined.
_BYTES = 48


@dataclass(frozen=True)
class JoinPlan:
    """How the pairs of containment of a collection are found.

    sizes : int64 array of shape (m,), elements of the compared sets.
    needed : bytes that the exact join would take, on `jobs` threads.
    memory : bytes that may be planned for.
    samples : rate and promise of the samples; None for the exact join.
    jobs : threads: as many as the exact join has memory for, so that neither the choice of the join
        nor the answer depends on the threads that are there.
    """

    sizes: NDArray[np.int64]
    needed: int
    memory: int
    samples: SamplePlan | None
    jobs: int = 1

    @property
    def rate(self) -> int:
        """One element in so many is joined; 1 is the exact join."""
        return 1 if self.samples is None else self.samples.rate

    def describe(self) -> str:
        """Return how pairs are found."""
        needed, memory = (f"{size / (1 << 20):,.0f} MB" for size in (self.needed, self.memory))
        if self.samples is None:
            return f"all sets are joined exactly; the arrays of the join take at most {needed}"
        return (
            f"the exact join would take {needed} of memory, more than --memory, {memory}: samples"
            f" of 1 shingle in {self.rate} are joined"
        )

    def describe_misses(self) -> str:
        """Return which pairs the samples miss."""
        assert self.samples is not None
        t, least, small = self.samples.threshold, self.samples.promised_from, self.count_small()
        line = (
            f"chance to miss a pair of containment {t:g}: {chance(self.samples.miss(least))} if the"
            f" smaller document has {count_of(least, 'shingle')}, less if it has more"
        )
        if small:
            size = max(1, least // 2)
            line += (
                f"; {count_of(small, 'document')} with fewer,"
                f" {chance(self.samples.miss(size))} with {size:,}: --exact finds all"
            )
        return line

    def count_small(self) -> int:
        """Return the number of sets that are too small for the promise of the samples."""
        least = self.samples.promised_from if self.samples is not None else 0
        return int(np.count_nonzero(self.sizes < least))


def plan_join(
    sizes: NDArray[np.int64], params: BandParams, memory: int, jobs: int, *, sample: bool = False
) -> JoinPlan:
    """Return how sets are joined: exactly if that fits into memory, else by samples.

    The rate of samples is the largest that keeps the promised recall for sets of SMALL elements, or
    the smallest one that fits into memory.

    sizes : int64 array of shape (m,), elements of the sets.
    jobs : most threads.
    sample : take samples in any case.
    """
    threshold, recall = params.threshold, params.recall
    needed = planned_memory(sizes, threshold)
    if needed <= memory and not sample:
        while (more := planned_memory(sizes, threshold, jobs)) > memory:
            jobs -= 1
        return JoinPlan(sizes, more, memory, None, jobs)
    rate = 1
    while _BYTES * int(sizes.sum()) > rate * memory:
        rate *= 2
    return JoinPlan(sizes, needed, memory, plan_samples(SMALL, threshold, recall, rate), jobs)


def join_contained(
    run: Run, sides: Sides, params: BandParams, *, exact: bool, sample: bool = False
) -> PairsFound:
    """Return the pairs of containment of the documents that represent others.

    How they are found, and which of them may be missed, is said before the work. Pairs of one side
    are (inside, holder); across two sides, (left, right).

    Parameters
    ----------
    sides : the documents.
    params : threshold and recall.
    exact : join the sets, even if they exceed memory.
    sample : take samples, even if the sets fit into memory.

    """
    members = documents_to_compare(run, sides.duplicate_of, sides.sizes)
    sizes = run.arrays.take(np.asarray(sides.sizes), members)
    memory = 1 << 62 if exact else run.memory
    plan = plan_join(sizes, params, memory, run.jobs, sample=sample)
    run.say(plan.describe())
    if plan.samples is None:
        sets, rows, split = sides.gather(run, members)
        scored = score_insides(run.but(jobs=plan.jobs), sets, rows, params.threshold, split)
        candidates = None
    else:
        run.say(plan.describe_misses())
        samples = sides.samples(run, members, plan.rate)
        run.progress("candidates", 0, 0)
        rows, candidates = members, CandidateCounter()
        split = None if sides.split is None else int(np.searchsorted(members, sides.split))
        met = candidates.count(_find_candidates(run, samples, members, plan, split))
        scored = verify_containment(run, met, sides.sizes, sides.sets, params.threshold)
    scored = scored if sides.right is None else map(_in_order, scored)
    pairs = gather_pairs(run, scored, np.complex128)
    return PairsFound(
        renumber(pairs, members, rows), -1 if candidates is None else candidates.pairs
    )


def score_insides(
    run: Run, sets: RaggedSets, members: NDArray[np.int64], threshold: float, split: int | None
) -> Iterator[Columns]:
    """Yield all pairs of the sets `members`, none missed: (inside, holder, scores).

    Parameters: as of `containment_pairs`.
    """
    pieces = containment_pairs(run, sets, members, threshold, split)
    for inside, holder, containment, similarity in pieces:
        yield inside, holder, containment + 1j * similarity


def _in_order(pairs: Columns) -> Columns:
    """Return pairs with the lower number first."""
    left, right, scores = pairs
    return np.minimum(left, right), np.maximum(left, right), scores


def _find_candidates(
    run: Run, samples: RaggedSets, members: NDArray[np.int64], plan: JoinPlan, split: int | None
) -> Iterator[PairArrays]:
    """Yield candidate pairs, with the smallest floor that keeps accidental ones few.

    A plan with a larger floor promises less, which is said.
    """
    assert plan.samples is not None
    most = max(FEW_CANDIDATES, CANDIDATES_EACH * len(members))
    while True:
        try:
            is_last = plan.samples.floor == LARGEST_FLOOR
            limit = 1 << 62 if is_last else most
            yield from candidate_pairs(run, samples, members, plan.samples, limit, split)
            return
        except TooManyError:
            floor = plan.samples.floor + 1
            plan = replace(plan, samples=replace(plan.samples, floor=floor))
            run.say(
                f"too many documents share {floor - 1} of these shingles by accident: pairs have"
                f" {floor} or more in common"
            )
            run.say(plan.describe_misses())


class TooManyError(Exception):
    """There are more candidate pairs than wanted."""


def candidate_pairs(
    run: Run,
    samples: RaggedSets,
    members: NDArray[np.int64],
    plan: SamplePlan,
    most: int = 1 << 62,
    split: int | None = None,
) -> Iterator[PairArrays]:
    """Yield the candidate pairs of documents, each once: (left, right), uint32, left < right.

    Documents that candidate pairs connect come together, so that few of them are read twice.

    samples : those of the documents `members`, ascending int64 array of shape (m,).
    most : raises TooManyError, before the first pair, for more pairs.
    split : if set, only pairs of two sides: rows of `samples` below `split`, and others.

    Memory: 32 bytes a pair and 4 a document, of the run, and what the join of the samples that
    are not empty takes.
    """

    def sizes_of(some: slice) -> NDArray[np.int64]:
        return np.diff(samples.offsets[some.start : some.stop + 1])

    arrays, n = run.arrays, len(samples)
    rows = arrays.where(n, lambda some: sizes_of(some) > 0)
    min_shared = arrays.compute(n, np.int64, lambda some: plan.least_common(sizes_of(some)))
    found = containment_pairs(run, samples, rows, plan.threshold, split, min_shared)
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
