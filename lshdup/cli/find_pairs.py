"""The pairs that `pairs` and `report` print, by bands or by the exact join."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lshdup.cli.messages import (
    say_buckets,
    say_collection,
    say_contract,
    say_funnel,
    say_if_nothing,
    say_joined,
)
from lshdup.cli.session import Session
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
    return _join(session, options) if options["exact"] else _find_by_bands(session, options)


def _find_by_bands(session: Session, options: dict[str, Any]) -> PairsListed:
    from lshdup.pipeline import expand_copies

    console, workspace, request = session.console, session.workspace, session.request
    params = PairParams(options.get("verify", PairParams().verify), options["max_bucket"] or 0)
    indexed = workspace.load_or_build_index(request, save=False)
    say_collection(console, indexed.collection)
    say_if_nothing(session, indexed.collection)
    say_contract(console, indexed.index.plan, indexed.params)
    result = workspace.find_pairs(indexed, params, request.jobs)
    table = indexed.index.table if options["verbose"] else None
    say_buckets(
        console,
        result.buckets,
        indexed.collection.documents.names.strings_at,
        params.max_bucket,
        table,
    )
    pairs = expand_copies(
        result.pairs, indexed.index.duplicate_of, collapse=options.get("collapse_copies", False)
    )
    say_funnel(console, result.candidates, len(result.pairs), len(pairs), indexed.params.threshold)
    return PairsListed(
        indexed.collection,
        result.pairs,
        indexed.index.duplicate_of,
        pairs,
        indexed.params.threshold,
        indexed.index.plan,
    )


def _join(session: Session, options: dict[str, Any]) -> PairsListed:
    from lshdup.lsh.candidates import find_exact_duplicates
    from lshdup.pipeline import expand_copies, find_pairs_exactly

    request = session.request
    threshold = options["threshold"]
    collection, sets = session.workspace.load_or_collect_sets(request)
    say_collection(session.console, collection)
    say_if_nothing(session, collection)
    duplicate_of = find_exact_duplicates(collection.fingerprints)
    result = find_pairs_exactly(
        collection, sets, duplicate_of, threshold, request.jobs, session.console.progress
    )
    pairs = expand_copies(
        result.pairs, duplicate_of, collapse=options.get("collapse_copies", False)
    )
    say_joined(session.console, len(result.pairs), len(pairs), threshold)
    return PairsListed(collection, result.pairs, duplicate_of, pairs, threshold)
