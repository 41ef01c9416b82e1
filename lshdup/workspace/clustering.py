"""The clusters of a collection: loaded from the store, made from stored pairs, or found; without
changed documents.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.memory import slices_of
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, Skipped
from lshdup.collection.collection import Collection
from lshdup.collection.set_source import set_source
from lshdup.compare.clusters import Clusters, expand_clusters
from lshdup.compare.keep_rules import Preference, preference
from lshdup.compare.results import ClustersFound
from lshdup.params import ClusterParams, PairParams
from lshdup.pipeline import find_clusters, side_of
from lshdup.sources.document_list import DocumentList
from lshdup.store import results_io
from lshdup.workspace.index import IndexedCollection
from lshdup.workspace.request import Request
from lshdup.workspace.workspace import Workspace


def load_or_find_clusters(
    run: Workspace, indexed: IndexedCollection, params: ClusterParams, request: Request
) -> ClustersFound:
    """`lshdup clusters`: the clusters of all documents; if nothing has changed, from the last run
    or its pairs.

    Documents that changed or could not be read again are in no cluster. A document whose
    representative is one of them is alone, so that it is not dropped.
    """
    collection, index, bands = indexed.collection, indexed.index, indexed.params
    order = order_documents(run, collection, params, request)
    store, found, known, header = run.store, None, None, {}
    if store is not None:
        header = results_io.describe_clusters(store, collection, index, bands, params, order.order)
        found = results_io.load_clusters(run, store, header, collection, index)
        earlier = results_io.load_pairs(run, store, collection) if found is None else None
        pair_params = PairParams(max_bucket=params.max_bucket)
        if earlier is not None and earlier.covers(index.plan, bands, pair_params):
            known = earlier.at_least(bands.threshold)
    if found is not None:
        return drop_changed(found, collection.documents, run.skipped, 0)
    side, threshold = side_of(collection, set_source(run, collection)), bands.threshold
    made = find_clusters(run, collection, index, side, threshold, params, order, known=known)
    if not len(made.lost):
        run.keep("clusters.npz", lambda store: results_io.save_clusters(store, header, made))
    return drop_changed(made, collection.documents, run.skipped, 0)


def find_same_clusters(
    run: Run, collection: Collection, same: str, preference: NDArray[np.int64]
) -> ClustersFound:
    """Group all documents that are the same in text, or in bytes as well.

    same : "text" or "bytes".
    preference : int64 array of shape (n,), all documents, the most preferred one first.

    Cost: a sort of the documents. No shingle set is needed.
    """
    duplicate_of = collection.prints.find_duplicates(run, same, collection.sizes)
    groups = Clusters.empty(run, len(duplicate_of))
    for some in slices_of(len(duplicate_of)):
        compared = np.asarray(collection.sizes[some]) > 0
        groups.representative[some][compared] = duplicate_of[some][compared]
        groups.similarity[some][compared] = 1.0
    return ClustersFound(expand_clusters(groups, duplicate_of, preference), duplicate_of)


def order_documents(
    run: Run, collection: Collection, params: ClusterParams, request: Request
) -> Preference:
    """Return the order of documents; warn of unused --prefer."""
    order = preference(run, collection.documents, collection.sizes, params, request.documents)
    for line in order.unused:
        run.warn(line)
    return order


def drop_changed(
    found: ClustersFound, documents: DocumentList, skipped: Callable[[Skipped], None], first: int
) -> ClustersFound:
    """Return clusters without documents that changed since they were listed; open no file.

    Users may delete dropped documents, so none may be dropped for a document that is gone.

    documents : those that are looked at. first : the number of the first of them in the clusters.
    """
    sizes, own, arrays = (
        found.clusters.sizes,
        found.clusters.representative,
        found.clusters.run.arrays,
    )
    end = min(first + len(documents), len(own))

    def are_several(some: slice) -> NDArray[np.bool_]:
        mine = own[first:end][some]
        return (mine >= 0) & (sizes[mine] > 1)

    members = arrays.where(end - first, are_several)
    changed = documents.changed(members)
    detail = "or gone since it was looked at; run it again with DOCS"
    for index in changed.tolist():
        skipped(Skipped(documents.names[index], Reason.CHANGED, detail))
    lost = np.concatenate([found.lost, changed + first])
    return replace(found, clusters=found.clusters.without(changed + first), lost=lost)
