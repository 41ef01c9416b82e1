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
from lshdup.compare.best_matches import BestMatches
from lshdup.compare.clusters import Clusters
from lshdup.compare.results import ClustersFound
from lshdup.compare.sides import Sides
from lshdup.lsh.buckets import NO_BUCKETS, Buckets
from lshdup.lsh.candidates import find_exact_duplicates
from lshdup.params import ClusterParams
from lshdup.pipeline import build_index, find_clusters
from lshdup.sources.preference import Preference
from lshdup.workspace.against import Against, make_side
from lshdup.workspace.clustering import drop_changed, find_same_clusters, order_documents
from lshdup.workspace.request import Request


def leave_out_changed(run: Run, both: Against, skipped: Callable[[Skipped], None]) -> Against:
    """Return the sides without documents of a stored OTHER that are not what was indexed.

    Nothing may go in favour of a document that is gone.

    skipped : notified of each document of OTHER that is not compared.
    """
    there, n = both.there, len(both.there.documents)
    if both.store is None:
        return both
    changed = there.documents.changed(np.arange(n))
    if not len(changed):
        return both
    run.warn(
        f"skipped of OTHER: {count_of(len(changed), 'document')} deleted or changed since it was"
        " indexed; nothing is dropped for their sake"
    )
    kept = there.take(run, np.setdiff1d(np.arange(n), changed))
    side = make_side(kept, set_source(run.with_skipped(skipped), kept))
    sides = Sides.of(run, both.sides.left, side, both.method.same)
    return replace(both, there=kept, sides=sides)


def find_clusters_against(
    run: Run,
    both: Against,
    matches: BestMatches,
    shared: NDArray[np.int64],
    params: ClusterParams,
    request: Request,
) -> ClustersFound:
    """Group the documents of both sides; those of OTHER are numbered behind those of DOCS.

    A document of DOCS near one of OTHER is in its group. Documents of DOCS that have no match make
    groups as those of a collection of their own. All others of OTHER are in no group.

    Parameters
    ----------
    both : the sides.
    matches : a near document of OTHER for each document of DOCS that has one.
    shared : int64 array, documents of DOCS that are documents of OTHER too.
    params, request : how groups are made.

    """
    sides, here = both.sides, both.here
    split = len(here.documents)
    is_shared = np.zeros(split, bool)
    is_shared[shared] = True
    # An estimate drops nothing.
    goes = np.flatnonzero((matches.right >= 0) & ~matches.estimated & ~is_shared)
    found = Clusters.empty(run, len(sides.sizes))
    leaders = matches.right[goes] + split
    found.assign(goes, leaders, matches.similarity[goes])
    found.assign(leaders, leaders, 1.0)
    stays = np.flatnonzero(is_shared & (here.sizes > 0))
    found.assign(stays, stays, 1.0)
    rest = np.setdiff1d(np.flatnonzero((here.sizes > 0) & ~is_shared), goes)
    order = _take_order(order_documents(run, here, params, request), rest)
    groups = _cluster_rest(run, both, here.take(run, rest), order, params)
    own = groups.clusters.representative
    grouped = np.flatnonzero(own >= 0)
    found.assign(rest[grouped], rest[own[grouped]], groups.clusters.similarity[grouped])
    answer = replace(
        groups,
        clusters=found,
        duplicate_of=find_exact_duplicates(run, sides.keys),
        buckets=matches.buckets if matches.buckets.skipped else _renumber(groups.buckets, rest),
        lost=rest[groups.lost],
    )
    answer = drop_changed(answer, here.documents, run.skipped, 0)
    return drop_changed(answer, both.there.documents, run.skipped, split)


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
    run: Run, both: Against, rest: Collection, order: Preference, params: ClusterParams
) -> ClustersFound:
    """Cluster the documents of DOCS that are near none of OTHER."""
    if both.method.same is not None:
        return find_same_clusters(run, rest, both.method.same, order.order)
    threshold, source = both.params.threshold, set_source(run, rest)
    index = None if both.method.exact else build_index(run, rest, both.params)
    return find_clusters(run, rest, index, source, threshold, params, order)
