"""The pairs that `pairs` and `report` print, by bands or by the exact join."""

from typing import TYPE_CHECKING, Any

from lshdup.cli.messages import say_buckets, say_collection, say_index, say_pairs
from lshdup.cli.session import Session
from lshdup.frozen import dataclass
from lshdup.params import PairParams

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.collection.collection import Collection
    from lshdup.lsh.band_plan import BandPlan
    from lshdup.matching.copies import ExpandedPairs
    from lshdup.matching.pairs import Pairs


@dataclass(frozen=True)
class PairsListed:
    """All pairs at or above a threshold.

    collection : the documents.
    distinct_pairs : verified pairs of documents that stand for their exact duplicates.
    duplicate_of : int64 array of shape (n,), the document that stands for each document.
    pairs : pairs of all documents.
    threshold : smallest similarity.
    plan : bands; None for the exact join.
    """

    collection: "Collection"
    distinct_pairs: "Pairs"
    duplicate_of: "NDArray[np.int64]"
    pairs: "ExpandedPairs"
    threshold: float
    plan: "BandPlan | None" = None


def find_pairs(session: Session, options: dict[str, Any]) -> PairsListed:
    """Find the pairs that the options of `pairs` request, and say on stderr what was done."""
    from lshdup.lsh.candidates import find_exact_duplicates
    from lshdup.matching.results import NO_PAIRS_FOUND
    from lshdup.pipeline import expand_copies, find_pairs_exactly

    console, workspace, request = session.console, session.workspace, session.request
    if options["exact"]:
        plan, threshold = None, options["threshold"]
        collection, sets = workspace.load_or_collect_sets(request)
        say_collection(session, collection)
        duplicate_of = find_exact_duplicates(collection.fingerprints)
        found = find_pairs_exactly(
            collection, sets, duplicate_of, threshold, request.jobs, console.progress
        )
    elif options.get("same"):
        plan, threshold = None, 1.0
        collection = workspace.load_or_collect_signatures(request)
        say_collection(session, collection)
        duplicate_of = collection.prints.find_duplicates(options["same"], collection.sizes)
        found = NO_PAIRS_FOUND
    else:
        params = PairParams(options.get("verify", PairParams().verify), options["max_bucket"] or 0)
        indexed = workspace.load_or_build_index(request, save=False, pairs=params)
        collection, threshold = indexed.collection, indexed.params.threshold
        plan, duplicate_of = indexed.index.plan, indexed.index.duplicate_of
        say_index(session, indexed)
        found = workspace.find_pairs(indexed, params, request.jobs)
        names = collection.documents.names.strings_at
        say_buckets(console, found.buckets, names, params.max_bucket, indexed.index.table)
    collapse = options.get("collapse_copies", False)
    pairs = expand_copies(found.pairs, duplicate_of, collapse=collapse)
    candidates = found.candidates if found.candidates >= 0 else None
    same = options.get("same")
    say_pairs(console, len(pairs), threshold, candidates, len(found.pairs), same)
    return PairsListed(collection, found.pairs, duplicate_of, pairs, threshold, plan)
