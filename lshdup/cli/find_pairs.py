"""What `pairs`, `clusters`, `folders` and `report` start from: pairs or groups, and what is said of
them.
"""

from typing import TYPE_CHECKING

from lshdup.base.frozen import dataclass
from lshdup.base.wording import count_of
from lshdup.cli.console import Console
from lshdup.cli.messages import say_buckets, say_collection, say_contract, say_largest, say_pairs
from lshdup.cli.options import FindOptions
from lshdup.cli.session import Session
from lshdup.params import FEW_TOKENS, ClusterParams, PairParams

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.collection.collection import Collection
    from lshdup.compare.comparing import Method
    from lshdup.compare.expand_duplicates import ExpandedPairs
    from lshdup.compare.results import ClustersFound
    from lshdup.compare.scored_pairs import Pairs
    from lshdup.lsh.band_plan import BandPlan
    from lshdup.lsh.candidates import Buckets
    from lshdup.workspace.comparing import Comparison


@dataclass(frozen=True)
class PairsListed:
    """All pairs at or above a threshold.

    collection : the documents.
    distinct_pairs : verified pairs of documents that stand for their exact duplicates.
    duplicate_of : int64 array of shape (n,), the document that stands for each document.
    pairs : pairs of all documents.
    threshold : smallest similarity.
    plan : bands; None for a join.
    measure : one of MEASURES.
    """

    collection: "Collection"
    distinct_pairs: "Pairs"
    duplicate_of: "NDArray[np.int64]"
    pairs: "ExpandedPairs"
    threshold: float
    plan: "BandPlan | None" = None
    measure: str = PairParams().measure


def method_of(options: FindOptions) -> "Method":
    """Return how the options of a command say that documents are compared."""
    from lshdup.compare.comparing import Method

    params = PairParams(options.max_bucket or 0, options.measure)
    return Method(params, options.exact, options.same)


def find_pairs(session: Session, options: FindOptions) -> PairsListed:
    """Find the pairs that the options of `pairs` request, and say on stderr what was done."""
    opened = _open(session, options)
    console, method = session.console, opened.method
    collection, found = opened.collection, opened.find_pairs()
    _say_buckets(session, opened, found.buckets)
    pairs = opened.expand_copies(found, collapse=options.collapse_copies)
    threshold = 1.0 if method.same is not None else opened.params.threshold
    candidates = found.candidates if found.candidates >= 0 else None
    measure = method.pairs.measure
    different = len(found.pairs)
    say_pairs(console, len(pairs), threshold, candidates, different, method.same, measure)
    if measure == "containment":
        advise_min_tokens(console, collection, found.pairs)
    plan = opened.indexed.index.plan if opened.indexed is not None else None
    duplicate_of = opened.sides.duplicate_of
    return PairsListed(collection, found.pairs, duplicate_of, pairs, threshold, plan, measure)


def find_groups(
    session: Session, options: FindOptions, rule: ClusterParams, least: int = 2
) -> "tuple[Collection, ClustersFound]":
    """Find the groups that the options request, and say on stderr what was done.

    least : of `say_collection`.
    """
    opened = _open(session, options, least, clustering=True)
    found = opened.find_clusters(rule)
    _say_buckets(session, opened, found.buckets)
    return opened.collection, found


def _open(
    session: Session, options: FindOptions, least: int = 2, *, clustering: bool = False
) -> "Comparison":
    """Load what is compared, and say what that is. least : of `say_collection`."""
    from lshdup.workspace.comparing import open_comparison

    method = method_of(options)
    opened = open_comparison(session.workspace, session.request, method, clustering=clustering)
    say_collection(session, opened.collection, least)
    if opened.indexed is not None:
        say_contract(session.console, opened.indexed.plan, opened.indexed.params)
    return opened


def _say_buckets(session: Session, opened: "Comparison", buckets: "Buckets") -> None:
    """Say what `say_buckets` does of the bands, if bands found the answer."""
    if opened.indexed is not None:
        names, limit = opened.collection.documents.names.strings_at, opened.method.pairs.max_bucket
        say_buckets(session.console, buckets, names, limit)
        if not buckets.skipped:
            say_largest(session.console, buckets, names)


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
