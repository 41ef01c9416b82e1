"""The pairs of containment of a collection, or of two: by the exact join where the sets fit into
memory, else by samples of the sets.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import RaggedSets, SetSource
from lshdup.base.run import Run
from lshdup.collection.collection import Collection
from lshdup.collection.set_source import set_source
from lshdup.compare import sampled_join
from lshdup.compare.containment_join import planned_memory
from lshdup.compare.measures import join_sets
from lshdup.compare.pairs import Columns, gather_pairs, pack_pairs
from lshdup.compare.results import PairsFound
from lshdup.lsh.candidates import (
    CandidateCounter,
    PairArrays,
    documents_to_compare,
    find_exact_duplicates,
)
from lshdup.lsh.sample_plan import (
    CANDIDATES_EACH,
    FEW_CANDIDATES,
    LARGEST_FLOOR,
    SMALL,
    SamplePlan,
    plan_samples,
)
from lshdup.params import BandParams, SketchParams
from lshdup.store.checksums import is_lazy
from lshdup.workspace.containment.samples import SampleCollector, load_or_make_samples
from lshdup.workspace.context import RunContext
from lshdup.workspace.request import Request, merge_params

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

    def count_small(self) -> int:
        """Return the number of sets that are too small for the promise of the samples."""
        least = self.samples.promised_from if self.samples is not None else 0
        return int(np.count_nonzero(self.sizes < least))


@dataclass(frozen=True)
class JoinInput:
    """Documents to join: those of a collection, or of two sides.

    duplicate_of, sizes : int64 arrays of shape (n,), of `find_exact_duplicates`, and the number of
        shingles of each document.
    source : gives shingle sets.
    sample : returns the samples of documents (ascending int64 array) at a rate.
    split : number of the first document of the second side; None for one collection.
    sets : all sets, if they are in memory.
    """

    duplicate_of: NDArray[np.int64]
    sizes: NDArray[np.int64]
    source: SetSource
    sample: Callable[[NDArray[np.int64], int], RaggedSets]
    split: int | None = None
    sets: RaggedSets | None = None


def plan_join(
    sizes: NDArray[np.int64],
    params: BandParams,
    memory: int = 1 << 62,
    jobs: int = 1,
    *,
    sample: bool = False,
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


def new_collector(run: Run, params: BandParams, request: Request) -> SampleCollector:
    """Return the collector of samples while documents are read, at the rate of `plan_join`."""
    rate = plan_samples(SMALL, params.threshold, params.recall).rate
    seed = merge_params(SketchParams, request.given).seed
    return SampleCollector(run, rate, seed, run.memory // 4)


def find_contained_pairs(
    run: RunContext,
    collection: Collection,
    sampled: SampleCollector,
    params: BandParams,
    request: Request,
    on_plan: Callable[[JoinPlan], None] = lambda _: None,
    *,
    sample: bool = False,
) -> tuple[NDArray[np.int64], PairsFound]:
    """Return `duplicate_of`, and the pairs of containment of the documents that represent others.

    Parameters
    ----------
    run : state of the run.
    collection : documents, and their sets if memory or the store holds them.
    sampled : samples of the documents that this run has read.
    params, on_plan, sample : of `join_contained`.

    """
    request.accept(collection.documents, True)
    duplicate_of = find_exact_duplicates(run, collection.fingerprints)
    source = set_source(run, collection, stage="documents")

    def sample_of(members: NDArray[np.int64], rate: int) -> RaggedSets:
        return load_or_make_samples(run, collection, members, rate, sampled, source)

    sets = collection.sets
    if sets is not None and is_lazy(sets.values):
        sets = None  # The source verifies what it copies; kernels take no lazily verified array.
    given = JoinInput(duplicate_of, collection.sizes, source, sample_of, sets=sets)
    found = join_contained(run, given, params, on_plan, sample=sample)
    return duplicate_of, found


def join_contained(
    run: Run,
    given: JoinInput,
    params: BandParams,
    on_plan: Callable[[JoinPlan], None],
    *,
    memory: int = 0,
    sample: bool = False,
) -> PairsFound:
    """Return the pairs of containment of the documents that represent others.

    Pairs are (inside, holder); across two sides, (left, right) with left < split <= right.

    Parameters
    ----------
    given : the documents.
    params : threshold and recall.
    on_plan : notified of the plan, before the work.
    memory : bytes that the join may plan for; 0: those of the run.
    sample : take samples, even if the sets fit into memory.

    """
    members = documents_to_compare(run, given.duplicate_of, given.sizes)
    sizes = run.arrays.take(np.asarray(given.sizes), members)
    plan = plan_join(sizes, params, memory or run.memory, run.jobs, sample=sample)
    on_plan(plan)
    first_right = None if given.split is None else int(np.searchsorted(members, given.split))

    if plan.samples is None:
        sets, rows, split = given.sets, members, given.split
        if sets is None:
            sets, rows, split = given.source(members), np.arange(len(members)), first_right
        joining = run.with_jobs(plan.jobs)
        pairs = join_sets(joining, sets, rows, params.threshold, "containment", split)
        if given.sets is None:  # The order stays.
            pairs = replace(pairs, keys=pack_pairs(members[pairs.left], members[pairs.right]))
        return PairsFound(pairs, -1)
    samples = given.sample(members, plan.samples.rate)
    run.progress("candidates", 0, 0)
    counter = CandidateCounter()
    found = _find_candidates(run, samples, members, plan, first_right, on_plan)
    verified = sampled_join.verify_containment(
        run, counter.count(found), given.sizes, given.source, params.threshold
    )
    pairs = gather_pairs(run, verified if given.split is None else map(_in_order, verified))
    # Without any pair, NumPy would take the scores for real ones.
    pairs = replace(pairs, values=pairs.values.astype(np.complex128))
    return PairsFound(pairs, counter.pairs)


def _in_order(pairs: Columns) -> Columns:
    """Return pairs with the lower number first."""
    left, right, scores = pairs
    return np.minimum(left, right), np.maximum(left, right), scores


def _find_candidates(
    run: Run,
    samples: RaggedSets,
    members: NDArray[np.int64],
    plan: JoinPlan,
    split: int | None,
    on_plan: Callable[[JoinPlan], None],
) -> Iterator[PairArrays]:
    """Yield candidate pairs, with the smallest floor that keeps accidental ones few.

    on_plan : notified of a plan with a larger floor, which promises less.
    """
    assert plan.samples is not None
    most = max(FEW_CANDIDATES, CANDIDATES_EACH * len(members))
    while True:
        try:
            is_last = plan.samples.floor == LARGEST_FLOOR
            limit = 1 << 62 if is_last else most
            yield from sampled_join.candidate_pairs(
                run, samples, members, plan.samples, limit, split
            )
            return
        except sampled_join.TooManyError:
            plan = replace(plan, samples=replace(plan.samples, floor=plan.samples.floor + 1))
            on_plan(plan)
