"""The clusters of a collection: loaded from the store, made from stored pairs, or found; without
changed documents.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from lshdup.collection.collection import Collection
from lshdup.collection.set_source import set_source
from lshdup.documents.document_list import DocumentList
from lshdup.documents.preference import Preference, preference
from lshdup.errors import ParameterError
from lshdup.matching.centres import Comparisons
from lshdup.matching.results import ClustersFound
from lshdup.params import ClusterParams, PairParams
from lshdup.pipeline import find_clusters, find_clusters_exactly
from lshdup.skipped import Reason, Skipped
from lshdup.store import results_io
from lshdup.utils.ragged import RaggedSets
from lshdup.workspace.context import RunContext
from lshdup.workspace.from_store import choose_threshold
from lshdup.workspace.index import IndexedCollection
from lshdup.workspace.pairs import say_large_bucket
from lshdup.workspace.request import Request

#: More similarities than this are announced: they take seconds.
_MANY_COMPARISONS = 1 << 22


def load_or_find_clusters(
    run: RunContext, indexed: IndexedCollection, params: ClusterParams, request: Request
) -> ClustersFound:
    """Return the clusters of all documents; if nothing has changed, from the last run or its pairs.

    Documents that changed or could not be read again are in no cluster. A document whose
    representative is one of them is alone, so that it is not dropped.
    """
    collection, index, bands = indexed.collection, indexed.index, indexed.params
    store = run.store
    try:
        order = _order_documents(run, collection, params, indexed.last_clustering, request)
    except ParameterError:
        # The store has not kept the order of many DOCS, but it has the clusters that it led to.
        found = store and results_io.load_clusters(store, collection, index, bands, params, None)
        if not found:
            raise
        return _drop_changed(run, found, collection.documents)
    found = (
        results_io.load_clusters(store, collection, index, bands, params, order.order)
        if store is not None
        else None
    )
    if found is not None and store is not None and not run.read_only:
        store.touch("clusters")
    if found is None:
        earlier = results_io.load_pairs(store, collection) if store is not None else None
        pair_params = PairParams(max_bucket=params.max_bucket)
        covers = earlier is not None and earlier.covers(index.plan, bands, pair_params)
        found = find_clusters(
            collection,
            index,
            set_source(collection, request.jobs, run.skipped),
            bands.threshold,
            params,
            order,
            known=earlier.at_least(bands.threshold) if earlier is not None and covers else None,
            jobs=request.jobs,
            progress=run.progress,
            on_buckets=lambda buckets: say_large_bucket(run, indexed, buckets, clustering=True),
            on_central=partial(_say_comparisons, run, collection.documents),
        )
        complete = found
        if store is not None and not len(found.lost):
            run.keep(
                "clusters.npz",
                lambda store: results_io.save_clusters(
                    store, collection, index, bands, params, order.order, complete
                ),
            )
    return _drop_changed(run, found, collection.documents)


def cluster_exactly(
    run: RunContext,
    collection: Collection,
    sets: RaggedSets,
    request: Request,
    choose_params: Callable[[ClusterParams | None], ClusterParams],
) -> tuple[ClustersFound, float, ClusterParams | None]:
    """Cluster all documents by all pairs, none missed. Nothing is saved.

    Parameters
    ----------
    run : state of the run.
    collection, sets : documents, and all their sets.
    request : names the documents; without, the last `clusters` gives what is not set explicitly.
    choose_params : returns the parameters of this run, given the parameters of the last `clusters`,
        or None.

    Returns the clusters, the threshold, and the parameters of the last `clusters` if it is
    continued.

    """
    known = (
        results_io.load_last_clustering(run.store, collection) if run.store is not None else None
    )
    last = known[1] if known is not None and not request.documents else None
    params = choose_params(last)
    if known is not None and last is not None:
        threshold: float = request.given.get("threshold", known[0].threshold)
    else:
        threshold = choose_threshold(run, request)
    if known is not None and (known[0].threshold, known[1]) != (threshold, params):
        assert run.store is not None
        # These clusters are not saved, but they replace the saved ones as the last run.
        run.store.touch("clusters", 0)
    order = _order_documents(run, collection, params, last, request)
    found = find_clusters_exactly(
        collection, sets, threshold, params, order, request.jobs, run.progress,
        on_central=partial(_say_comparisons, run, collection.documents),
    )  # fmt: skip
    return _drop_changed(run, found, collection.documents), threshold, last


def _order_documents(
    run: RunContext,
    collection: Collection,
    params: ClusterParams,
    last: ClusterParams | None,
    request: Request,
) -> Preference:
    """Return the order of documents; warn of unused --prefer."""
    documents = collection.documents
    if last is not None and params.prefer == last.prefer:
        # --prefer of the last run is meant for names as they were typed then.
        documents = replace(documents, home=b"")
    order = preference(documents, collection.sizes, params, request.documents)
    for line in order.unused:
        run.warn(line)
    return order


def _say_comparisons(run: RunContext, documents: DocumentList, work: Comparisons) -> None:
    """Say what `--keep central` costs, if it takes more than moments."""
    if work.pairs > _MANY_COMPARISONS:
        name = os.fsdecode(documents.names[work.example])
        run.say(
            f"--keep central compares all documents of a group: {work.pairs:,} similarities; the "
            f"largest group has {work.largest:,} different documents, one is {name}"
        )


def _drop_changed(run: RunContext, found: ClustersFound, documents: DocumentList) -> ClustersFound:
    """Return clusters without documents that changed since they were listed; open no file.

    Users may delete dropped documents, so none may be dropped for a document that is gone.
    """
    is_leader = np.zeros(len(documents), bool)
    is_leader[np.flatnonzero(found.clusters.sizes > 1)] = True
    own = found.clusters.representative
    changed = documents.changed(np.flatnonzero((own >= 0) & is_leader[own]))
    detail = "or gone since it was looked at; run it again with DOCS"
    for index in changed.tolist():
        run.skipped(Skipped(documents.names[index], Reason.CHANGED, detail))
    lost = np.concatenate([found.lost, changed])
    return replace(found, clusters=found.clusters.without(changed), lost=lost)
