"""The pairs of containment of a collection: by the exact join where the sets fit into memory, else
by samples of the sets.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection
from lshdup.collection.set_source import set_source
from lshdup.frozen import dataclass
from lshdup.lsh.candidates import CandidateCounter, documents_to_compare, find_exact_duplicates
from lshdup.lsh.sample_plan import SamplePlan, plan_samples
from lshdup.matching import sampled_join
from lshdup.matching.containment_join import planned_memory
from lshdup.matching.measures import join_sets
from lshdup.matching.pairs import Pairs, gather_pairs
from lshdup.matching.results import PairsFound
from lshdup.params import BandParams, SketchParams
from lshdup.workspace.containment.samples import load_or_make_samples
from lshdup.workspace.context import RunContext
from lshdup.workspace.request import Request, merge_params

#: Sets of so few elements may be missed: rates that keep enough of them cost more than the exact
#: join.
SMALL = 64

#: Bytes that an element of a sample takes, gathered and joined.
_BYTES = 48


@dataclass(frozen=True)
class JoinPlan:
    """How the pairs of containment of a collection are found.

    sizes : int64 array of shape (m,), elements of the compared sets.
    needed : bytes that the exact join would take.
    memory : bytes that may be planned for.
    samples : rate and promise of the samples; None for the exact join.
    """

    sizes: NDArray[np.int64]
    needed: int
    memory: int
    samples: SamplePlan | None

    def count_small(self) -> int:
        """Return the number of sets that are too small for the promise of the samples."""
        least = self.samples.promised_from if self.samples is not None else 0
        return int(np.count_nonzero(self.sizes < least))


def plan_join(
    sizes: NDArray[np.int64], params: BandParams, memory: int, jobs: int, *, sample: bool = False
) -> JoinPlan:
    """Return how sets are joined: exactly if that fits into memory, else by samples.

    The rate of samples is the largest that keeps the promised recall for the smallest set, but for
    those below SMALL, or the smallest that fits into memory.

    sizes : int64 array of shape (m,), elements of the sets.
    sample : take samples in any case.
    """
    threshold, recall = params.threshold, params.recall
    needed = planned_memory(sizes, threshold, jobs)
    if needed <= memory and not sample:
        return JoinPlan(sizes, needed, memory, None)
    rate = 1
    while _BYTES * int(sizes.sum()) > rate * memory:
        rate *= 2
    smallest = max(SMALL, int(sizes.min())) if len(sizes) else SMALL
    return JoinPlan(sizes, needed, memory, plan_samples(smallest, threshold, recall, rate))


def find_contained_pairs(
    run: RunContext,
    collection: Collection,
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
    params : threshold and recall.
    request : threads, memory, and the seed of the samples.
    on_plan : notified of the plan, before the work.
    sample : take samples, even if the sets fit into memory.

    """
    duplicate_of = find_exact_duplicates(collection.fingerprints)
    members = documents_to_compare(duplicate_of, collection.sizes)
    plan = plan_join(collection.sizes[members], params, request.memory, request.jobs, sample=sample)
    on_plan(plan)
    source = set_source(collection, request.jobs, run.skipped, run.progress)

    def report(done: int, n: int) -> None:
        run.progress("candidates", done, n)

    if plan.samples is None:
        pairs = join_sets(
            source(members),
            np.arange(len(members)),
            params.threshold,
            "containment",
            request.jobs,
            on_progress=report,
        )
        left, right = members[pairs.left], members[pairs.right]
        return duplicate_of, PairsFound(Pairs.of(left, right, pairs.similarity), -1)
    seed = merge_params(SketchParams, request.given).seed
    samples = load_or_make_samples(run, collection, members, plan.samples.rate, seed, source)
    run.progress("candidates", 0, 0)
    counter = CandidateCounter()
    pieces = counter.count(
        sampled_join.candidate_pairs(samples, members, plan.samples, request.jobs, report)
    )
    verified = sampled_join.verify_containment(
        pieces, collection.sizes, source, params.threshold, request.jobs
    )
    pairs = gather_pairs(verified)
    return duplicate_of, PairsFound(pairs, counter.pairs)
