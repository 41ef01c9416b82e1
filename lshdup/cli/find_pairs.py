"""The pairs that `pairs` and `report` print, by bands or by an exact join."""

from typing import TYPE_CHECKING

from lshdup.base.frozen import dataclass
from lshdup.base.messages import chance, count_of
from lshdup.cli.console import Console
from lshdup.cli.messages import say_buckets, say_collection, say_index, say_pairs
from lshdup.cli.options import FindOptions
from lshdup.cli.session import Session
from lshdup.params import FEW_TOKENS, BandParams, PairParams

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.collection.collection import Collection
    from lshdup.compare.copies import ExpandedPairs
    from lshdup.compare.pairs import Pairs
    from lshdup.lsh.band_plan import BandPlan
    from lshdup.lsh.sample_plan import SamplePlan
    from lshdup.workspace.containment.joining import JoinPlan


@dataclass(frozen=True)
class PairsListed:
    """All pairs at or above a threshold.

    collection : the documents.
    distinct_pairs : verified pairs of documents that stand for their exact duplicates.
    duplicate_of : int64 array of shape (n,), the document that stands for each document.
    pairs : pairs of all documents.
    threshold : smallest similarity.
    plan : bands; None for the exact join.
    measure : one of MEASURES.
    """

    collection: "Collection"
    distinct_pairs: "Pairs"
    duplicate_of: "NDArray[np.int64]"
    pairs: "ExpandedPairs"
    threshold: float
    plan: "BandPlan | None" = None
    measure: str = PairParams().measure


def find_pairs(session: Session, options: FindOptions) -> PairsListed:
    """Find the pairs that the options of `pairs` request, and say on stderr what was done."""
    from lshdup.compare.results import NO_PAIRS_FOUND
    from lshdup.lsh.candidates import find_exact_duplicates
    from lshdup.pipeline import expand_copies, find_pairs_exactly
    from lshdup.workspace.containment.joining import plan_join

    console, workspace, request = session.console, session.workspace, session.request
    measure = options.measure
    if options.exact:
        plan, threshold = None, options.threshold
        collection, sets = workspace.load_or_collect_sets(request)
        say_collection(session, collection)
        duplicate_of = find_exact_duplicates(collection.fingerprints)
        if measure == "containment":
            join = plan_join(collection.sizes, BandParams(threshold), jobs=workspace.jobs)
            say_plan(console, join)
        found = find_pairs_exactly(
            collection, sets, duplicate_of, threshold, workspace.jobs, console.progress, measure
        )
    elif measure == "containment":
        plan, threshold = None, options.threshold
        collection, sampled = workspace.collect_to_join(request)
        say_collection(session, collection)
        duplicate_of, found = workspace.find_contained_pairs(
            collection, sampled, request, lambda join: say_plan(console, join)
        )
    elif options.same:
        plan, threshold = None, 1.0
        collection = workspace.load_or_collect_signatures(request, 0)
        say_collection(session, collection)
        duplicate_of = collection.prints.find_duplicates(options.same, collection.sizes)
        found = NO_PAIRS_FOUND
    else:
        params = PairParams(options.verify, options.max_bucket or 0)
        indexed = workspace.load_or_build_index(request, save=False, pairs=params)
        collection, threshold = indexed.collection, indexed.params.threshold
        plan, duplicate_of = indexed.index.plan, indexed.index.duplicate_of
        say_index(session, indexed)
        found = workspace.find_pairs(indexed, params)
        names = collection.documents.names.strings_at
        say_buckets(console, found.buckets, names, params.max_bucket, indexed.index.table)
    collapse = options.collapse_copies
    sizes = collection.sizes if measure == "containment" else None
    pairs = expand_copies(
        found.pairs, duplicate_of, collapse=collapse, sizes=sizes, arrays=workspace.arrays
    )
    candidates = found.candidates if found.candidates >= 0 else None
    same = options.same
    say_pairs(console, len(pairs), threshold, candidates, len(found.pairs), same, measure)
    if measure == "containment":
        advise_min_tokens(console, collection, found.pairs)
    return PairsListed(collection, found.pairs, duplicate_of, pairs, threshold, plan, measure)


def say_plan(console: Console, plan: "JoinPlan") -> None:
    """Say before the work how pairs of containment are found, and which of them may be missed."""
    needed, memory = (f"{size / (1 << 20):,.0f} MB" for size in (plan.needed, plan.memory))
    samples = plan.samples
    if samples is None:
        console.say(f"all sets are joined exactly; the arrays of the join take at most {needed}")
        return
    if samples.floor == 1:
        console.say(
            f"the exact join would take {needed} of memory, more than --memory, {memory}: samples"
            f" of 1 shingle in {samples.rate} are joined"
        )
    say_promise(console, samples, plan.count_small())


def say_promise(console: Console, samples: "SamplePlan", small: int) -> None:
    """Say which pairs of containment are missed by samples.

    small : number of sets that are too small for the promise.
    """
    if samples.floor > 1:
        console.say(
            f"too many documents share {samples.floor - 1} of these shingles by accident: pairs"
            f" have {samples.floor} or more in common"
        )
    t, least = samples.threshold, samples.promised_from
    line = (
        f"chance to miss a pair of containment {t:g}: {chance(samples.miss(least))} if the smaller"
        f" document has {count_of(least, 'shingle')}, less if it has more"
    )
    if small:
        size = max(1, least // 2)
        line += (
            f"; {count_of(small, 'document')} with fewer, {chance(samples.miss(size))} with"
            f" {size:,}: --exact finds all"
        )
    console.say(line)


def advise_min_tokens(console: Console, collection: "Collection", pairs: "Pairs") -> None:
    """Suggest --min-tokens if very short documents make most of the pairs of containment.

    pairs : pairs of documents that represent their exact duplicates.
    """
    shingle = collection.shingle
    # A document of n tokens has at most n - k + 1 shingles.
    is_short = collection.unfiltered_sizes <= FEW_TOKENS - shingle.k
    short = int((is_short[pairs.left] | is_short[pairs.right]).sum())
    if 2 * short > len(pairs) and shingle.min_tokens < FEW_TOKENS:
        console.say(
            f"{short:,} of {count_of(len(pairs), 'pair')} have a document of fewer than "
            f"{FEW_TOKENS} tokens, which may be inside others by accident; --min-tokens "
            f"{FEW_TOKENS} skips such documents"
        )
