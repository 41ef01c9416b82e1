"""`clusters DOCS --against OTHER`: what is near a document of OTHER may go, the rest is grouped.

Documents of OTHER are never dropped, also not where they are named in DOCS too.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.messages import count_of
from lshdup.base.run import Run
from lshdup.base.skipped import Skipped
from lshdup.collection.collection import Collection
from lshdup.collection.set_source import set_source
from lshdup.compare.clusters import Clusters
from lshdup.compare.results import ClustersFound
from lshdup.lsh.buckets import NO_BUCKETS, Buckets
from lshdup.lsh.candidates import find_exact_duplicates
from lshdup.params import ClusterParams
from lshdup.pipeline import build_index, find_clusters, find_clusters_exactly
from lshdup.sources.preference import Preference
from lshdup.workspace.against.loading import Against
from lshdup.workspace.against.partners import Partners
from lshdup.workspace.against.sides import Side
from lshdup.workspace.clustering import drop_changed, find_same_clusters, order_documents
from lshdup.workspace.request import Request


def leave_out_changed(run: Run, both: Against, skipped: Callable[[Skipped], None]) -> Against:
    """Return the sides without documents of a stored OTHER that are not what was indexed.

    Nothing may go in favour of a document that is gone.

    skipped : notified of each document of OTHER that is not compared.
    """
    there = both.sides.there
    n = len(there.documents)
    if both.store is None:
        return both
    changed = there.documents.changed(np.arange(n))
    if not len(changed):
        return both
    run.warn(
        f"skipped of OTHER: {count_of(len(changed), 'document')} deleted or changed since it was"
        " indexed; nothing is dropped for their sake"
    )
    kept = there.collection.take(run, np.setdiff1d(np.arange(n), changed))
    side = Side(kept, set_source(run.with_skipped(skipped), kept))
    return replace(both, sides=replace(both.sides, there=side))


def find_clusters_against(
    run: Run,
    both: Against,
    partners: Partners,
    shared: NDArray[np.int64],
    params: ClusterParams,
    request: Request,
    *,
    same: str | None,
    exact: bool,
) -> ClustersFound:
    """Group the documents of both sides; those of OTHER are as in `Sides`.

    A document of DOCS near one of OTHER is in its group. Documents of DOCS that have no partner
    make groups as those of a collection of their own. All others of OTHER are in no group.

    Parameters
    ----------
    both : the sides.
    partners : a near document of OTHER for each document of DOCS that has one.
    shared : int64 array, documents of DOCS that are documents of OTHER too.
    params, request : how groups are made.
    same : "text" or "bytes" instead of a similarity.
    exact : whether all pairs of the rest are compared.

    """
    sides, here = both.sides, both.here
    n = len(sides.sizes)
    is_shared = np.zeros(sides.split, bool)
    is_shared[shared] = True
    # An estimate drops nothing.
    goes = np.flatnonzero((partners.there >= 0) & ~partners.estimated & ~is_shared)
    found = Clusters.empty(run, n)
    leaders = partners.there[goes] + sides.split
    found.assign(goes, leaders, partners.similarity[goes])
    found.assign(leaders, leaders, 1.0)
    stays = np.flatnonzero(is_shared & (here.sizes > 0))
    found.assign(stays, stays, 1.0)
    rest = np.setdiff1d(np.flatnonzero((here.sizes > 0) & ~is_shared), goes)
    order = _take_order(order_documents(run, here, params, request), rest)
    groups = _cluster_rest(run, both, here.take(run, rest), order, params, same=same, exact=exact)
    own = groups.clusters.representative
    grouped = np.flatnonzero(own >= 0)
    found.assign(rest[grouped], rest[own[grouped]], groups.clusters.similarity[grouped])
    keys = sides.fingerprints if same is None else sides.prints.keys(run, same, sides.sizes)
    answer = replace(
        groups,
        clusters=found,
        duplicate_of=find_exact_duplicates(run, keys),
        buckets=partners.buckets if partners.buckets.skipped else _renumber(groups.buckets, rest),
        lost=rest[groups.lost],
    )
    answer = drop_changed(answer, here.documents, run.skipped, 0)
    return drop_changed(answer, both.there.documents, run.skipped, sides.split)


def _take_order(order: Preference, rest: NDArray[np.int64]) -> Preference:
    """Return the order of some documents, by their place in `rest`, an ascending int64 array."""
    is_in = np.zeros(len(order.order), bool)
    is_in[rest] = True
    places = np.searchsorted(rest, order.order[is_in[order.order]])
    level = order.level[rest] if len(order.level) else order.level
    return Preference(places, level, order.keep, [])


def _renumber(buckets: Buckets, rest: NDArray[np.int64]) -> Buckets:
    """Return buckets whose example is a document of DOCS."""
    return replace(buckets, example=int(rest[buckets.example])) if len(rest) else NO_BUCKETS


def _cluster_rest(
    run: Run,
    both: Against,
    rest: Collection,
    order: Preference,
    params: ClusterParams,
    *,
    same: str | None,
    exact: bool,
) -> ClustersFound:
    """Cluster the documents of DOCS that are near none of OTHER."""
    if same is not None:
        return find_same_clusters(run, rest, same, order.order)
    threshold = both.params.threshold
    source = set_source(run, rest)
    if exact:
        sets = source(np.arange(len(rest.documents)))
        return find_clusters_exactly(run, rest, sets, threshold, params, order)
    index = build_index(run, rest, both.params)
    return find_clusters(run, rest, index, source, threshold, params, order)
