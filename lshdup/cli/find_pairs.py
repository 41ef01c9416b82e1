"""The pairs that `pairs` and `report` print, by bands or by an exact join."""

from typing import TYPE_CHECKING, Any

from lshdup.cli.console import Console
from lshdup.cli.messages import say_buckets, say_collection, say_index, say_pairs
from lshdup.cli.session import Session
from lshdup.frozen import dataclass
from lshdup.params import PairParams
from lshdup.utils.messages import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from lshdup.collection.collection import Collection
    from lshdup.lsh.band_plan import BandPlan
    from lshdup.matching.copies import ExpandedPairs
    from lshdup.matching.pairs import Pairs


#: A document of fewer tokens lies inside others by accident.
_FEW_TOKENS = 20


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


def find_pairs(session: Session, options: dict[str, Any]) -> PairsListed:
    """Find the pairs that the options of `pairs` request, and say on stderr what was done."""
    from lshdup.lsh.candidates import find_exact_duplicates
    from lshdup.matching.results import NO_PAIRS_FOUND
    from lshdup.pipeline import expand_copies, find_pairs_exactly

    console, workspace, request = session.console, session.workspace, session.request
    measure = options.get("measure", PairParams().measure)
    if options["exact"] or measure == "containment":
        plan, threshold = None, options["threshold"]
        collection, sets = workspace.load_or_collect_sets(request)
        say_collection(session, collection)
        duplicate_of = find_exact_duplicates(collection.fingerprints)
        if measure == "containment":
            say_plan(console, collection.sizes, threshold, request.jobs)
        found = find_pairs_exactly(
            collection, sets, duplicate_of, threshold, request.jobs, console.progress, measure
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
    sizes = collection.sizes if measure == "containment" else None
    pairs = expand_copies(found.pairs, duplicate_of, collapse=collapse, sizes=sizes)
    candidates = found.candidates if found.candidates >= 0 else None
    same = options.get("same")
    say_pairs(console, len(pairs), threshold, candidates, len(found.pairs), same, measure)
    if measure == "containment":
        advise_min_tokens(console, [collection], found.pairs)
    return PairsListed(collection, found.pairs, duplicate_of, pairs, threshold, plan, measure)


def say_plan(console: Console, sizes: "NDArray[np.int64]", threshold: float, jobs: int) -> None:
    """Say before the work how much memory the exact join by containment takes.

    sizes : int64 array of shape (n,), shingles of each document.
    """
    from lshdup.matching.containment_join import planned_memory

    planned = planned_memory(sizes, threshold, jobs)
    console.say(f"all sets are joined exactly, in at most {planned / (1 << 20):,.0f} MB of memory")


def advise_min_tokens(
    console: Console, collections: "Sequence[Collection]", pairs: "Pairs"
) -> None:
    """Suggest --min-tokens if very short documents make most of the pairs of containment.

    collections : those of the pairs; with two, the numbers of the second one follow the first's.
    pairs : pairs of documents that represent their exact duplicates.
    """
    import numpy as np

    shingle = collections[0].shingle
    # A document of n tokens has at most n - k + 1 shingles.
    most = _FEW_TOKENS - shingle.k
    is_short = np.concatenate([each.unfiltered_sizes for each in collections]) <= most
    short = int((is_short[pairs.left] | is_short[pairs.right]).sum())
    if 2 * short > len(pairs) and shingle.min_tokens < _FEW_TOKENS:
        console.say(
            f"{short:,} of {count_of(len(pairs), 'pair')} have a document of fewer than "
            f"{_FEW_TOKENS} tokens, which lies inside many others; --min-tokens {_FEW_TOKENS} "
            "leaves such documents out"
        )
