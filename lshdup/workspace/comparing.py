"""The comparison of one collection, or of two: loading what its method needs, and its answer.

Pairs and groups of one collection by bands are kept in the store, and loaded if they answer again.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.params import AcrossParams, BandParams, ClusterParams, PairParams, SketchParams
from lshdup.base.ragged import distinct
from lshdup.base.skipped import Reason, Skipped
from lshdup.collection.collect import EVERY_SET
from lshdup.collection.collection import Collection
from lshdup.collection.keep_rules import preference
from lshdup.collection.origins import find_origins
from lshdup.collection.set_source import side_of
from lshdup.collection.shared_documents import match_paths, resolve_paths
from lshdup.compare.best_matches import BestMatches, find_best_matches
from lshdup.compare.comparing import compare, separate_pairs, verify
from lshdup.compare.expand_duplicates import NO_KEYS, ExpandedPairs, expand_copies
from lshdup.compare.results import ClustersFound, PairsFound
from lshdup.compare.sides import Side, Sides
from lshdup.lsh.band_plan import BandPlan, plan_bands
from lshdup.lsh.candidates import NO_ORIGINS, Sieve, candidate_pairs, say_large_bucket
from lshdup.pipeline import build_index, find_clusters
from lshdup.sources.document_list import DocumentList, names_of
from lshdup.store import results_io
from lshdup.views.mails import Mails
from lshdup.workspace.index import IndexedCollection, indexing
from lshdup.workspace.loading import (
    compares_files,
    load_all_sets,
    load_signatures,
    load_whole_documents,
)
from lshdup.workspace.request import Request, merge_params
from lshdup.workspace.workspace import Workspace

T = TypeVar("T")


@dataclass(frozen=True)
class Comparison:
    """The documents of DOCS, which are compared with each other or with those of OTHER.

    Documents of OTHER are numbered behind those of DOCS.

    run, request : of the command.
    method : how documents are compared.
    params : threshold and recall.
    here : the collection of DOCS.
    sides : what is compared of the documents.
    there : the collection of OTHER, if there is one.
    plan : the bands, if bands find the pairs.
    indexed : DOCS with their bands, if bands find the pairs of DOCS.
    store : store that OTHER is; None for a collection that was read now.
    fates : number of documents of a stored OTHER that were needed and could not be read, by what
        became of them.
    """

    run: Workspace
    request: Request
    method: PairParams
    params: BandParams
    here: Collection
    sides: Sides
    there: Collection | None = None
    plan: BandPlan | None = None
    indexed: IndexedCollection | None = None
    store: Path | None = None
    fates: Counter[str] = field(default_factory=Counter)

    @property
    def lists(self) -> tuple[DocumentList, ...]:
        """The documents of DOCS, and those of OTHER if there is one."""
        return tuple(each.documents for each in (self.here, self.there) if each is not None)

    @cached_property
    def mails(self) -> Mails:
        """The mails among the documents."""
        sides = [each for each in (self.here, self.there) if each is not None]
        none = np.zeros(len(self.sides.sizes), np.uint8)
        forms = [each.columns.get("forms", none[: len(each.documents)]) for each in sides]
        return Mails(self.run, self.lists, forms)

    def names(self, documents: NDArray[np.int64]) -> list[bytes]:
        """Return the names of documents (ascending int64 array) as typed from here."""
        return names_of(self.lists, documents)

    def tell(self, documents: NDArray[np.int64], of: Callable[..., Sequence[T]]) -> list[T]:
        """Return what a function says of documents (int64 array). of : called once for each side
        with different documents of it, ascending.
        """
        different, _ = distinct(documents)
        parts = zip(self.lists, self.sides.separate(different), strict=False)
        told = [each for side, rows in parts for each in of(side, rows)]
        return [told[at] for at in np.searchsorted(different, documents).tolist()]

    def find_pairs(self, relation: str | None = None) -> PairsFound:
        """Find the pairs, or load those of the last run.

        relation : "holds" or "inside": only pairs in which the left document holds the right one,
            or is inside it; of equal sizes it is both.

        Raise InputError if a set of OTHER that is joined is lost.
        """
        if self.indexed is not None:
            found = load_or_find_pairs(self.run, self.indexed, self.method)
            return separate_pairs(self.run, self.sides, found)
        found = compare(self.run, self.sides, self.params, self.method, self.plan)
        if relation not in ("holds", "inside"):
            return found
        sizes, is_so = self.sides.sizes, np.greater_equal if relation == "holds" else np.less_equal
        kept = found.pairs.where(self.run, lambda a, b: is_so(sizes[a], sizes[b]))
        return replace(found, pairs=kept)

    def find_best_matches(self) -> BestMatches:
        """Find a near document of OTHER for each document of DOCS that has one."""
        return find_best_matches(self.run, self.sides, self.params, self.method, self.plan)

    def expand_copies(self, found: PairsFound, *, collapse: bool) -> ExpandedPairs:
        """Expand to pairs of all documents. No file is paired with itself."""
        sides, there = self.sides, self.there
        are_ordered = there is None and self.method.measure == "containment"
        pairs = expand_copies(
            self.run, found.pairs, sides.duplicate_of, across=sides.identical(found.pairs),
            collapse=collapse, sizes=sides.sizes if are_ordered else None,
            estimated=found.estimated,
        )  # fmt: skip
        if there is None:
            return pairs
        documents = sides.separate(pairs.documents())
        left, right = match_paths(self.here.documents, there.documents, *documents)
        return pairs.without(left, right + len(self.here.documents))

    def find_clusters(self, rule: ClusterParams) -> ClustersFound:
        """Find the groups of DOCS, or load those of the last run.

        Groups of other methods than bands are not saved.
        """
        run, request, collection = self.run, self.request, self.here
        apart = self.sides.apart.keys
        if self.indexed is not None:
            return load_or_find_clusters(run, self.indexed, rule, request, apart)
        order = preference(run, collection.documents, collection.sizes, rule, request.documents)
        index = None
        if self.method.by_bands:
            index = build_index(run, collection, self.params, self.sides.duplicate_of)
        found = find_clusters(
            run, collection, index, self.sides.left, self.params.threshold, rule, order,
            same=self.method.same, apart=apart, origins=self.sides.origins,
        )  # fmt: skip
        return drop_changed(found, collection.documents)

    def is_one_document(self) -> bool:
        """Return whether either side has one document with shingles, the same on both."""
        each = zip(self.lists, self.sides.separate(np.flatnonzero(self.sides.sizes)), strict=True)
        here, there = (resolve_paths(*side) if len(side[1]) == 1 else [] for side in each)
        return here == there != []


def load_comparison(
    run: Workspace,
    request: Request,
    method: PairParams,
    *,
    clustering: bool,
    across: AcrossParams | None = None,
) -> Comparison:
    """Load or collect what a method needs.

    clustering : whether groups are made of the candidates of bands, or pairs.
    across : which documents are of one origin, and not compared.
    """
    params, duplicate_of, indexed = merge_params(BandParams, request.given), None, None
    origins, plan = NO_ORIGINS, None
    if across is not None and method.by_bands and request.documents:
        # A promise that cannot be kept is refused before the work.
        plan_bands(merge_params(SketchParams, request.given).perms, params)
    if method.by_bands and across is None:
        pairs = None if clustering else method
        indexed = run.saving.enter_context(indexing(run, request, pairs=pairs))
        collection, duplicate_of = indexed.collection, indexed.index.duplicate_of
        side = side_of(run, collection)
    elif method.exact:
        collection = load_all_sets(run, request)
        side = side_of(run, collection, collection.filtered_sets(run.arrays))
    elif compares_files(run, request, method):
        (collection,) = load_whole_documents((run, request))
        side = side_of(run, collection)
    else:
        collection, side = load_side(run, request, method)
    if across is not None:
        origins = find_origins(run, collection.documents, across, request.documents)
    sides = Sides.of(run, side, same=method.same, duplicate_of=duplicate_of, origins=origins)
    if indexed is not None:
        plan = indexed.plan
    elif method.by_bands:
        plan = plan_bands(collection.perms, params)
    return Comparison(run, request, method, params, collection, sides, plan=plan, indexed=indexed)


def load_side(run: Workspace, request: Request, method: PairParams) -> tuple[Collection, Side]:
    """Load or collect the documents of a request as a side; with their sets if these are joined."""
    collection = load_signatures(run, request, memory=EVERY_SET if method.is_join else 0)
    # Sets that this run has made need no look at their fingerprints, and no copy.
    is_made = method.is_join and collection.read and collection.shingle_filter is None
    sets = collection.sets if is_made else None
    return collection, side_of(run, collection, sets, stage="documents" if method.is_join else "")


# --- pairs and groups, from the store or found ---


def load_or_find_pairs(
    run: Workspace, indexed: IndexedCollection, params: PairParams
) -> PairsFound:
    """`lshdup pairs`: return the verified pairs of an index, from the last run if its pairs cover
    this run.

    params : how candidates are met and verified.
    """
    collection, index, bands = indexed.collection, indexed.index, indexed.params
    threshold, earlier = bands.threshold, indexed.pairs

    header = {}
    if run.store is not None:
        header = results_io.describe_pairs(collection, index, bands, params)
        earlier = earlier or results_io.load_pairs(run, run.store, collection)
    if earlier is not None and earlier.covers(index.plan, bands, params):
        found = earlier.at_least(threshold)
        say_large_bucket(run, found.buckets, collection.documents.names)
        found_at = earlier.band_params.threshold
        is_kept = found_at < threshold and indexed.from_documents
        if found_at < threshold:
            run.say(f"the pairs that were found at {found_at:g} answer this: no document is read")
    else:
        skipped = list[Skipped]()
        side = side_of(run.but(skipped=skipped.append), collection)
        sieve = Sieve.of(index.plan, threshold, collection.signatures)
        met = candidate_pairs(run, index.table, params.max_bucket, sieve=sieve)
        say_large_bucket(run, met.buckets, collection.documents.names)
        side.expect(met.documents)
        sides = Sides.of(run, side, duplicate_of=index.duplicate_of)
        found = verify(run, met, sides, threshold)
        for each in skipped:
            run.skipped(each)
        # Without DOCS, pairs of a lower threshold stay: they answer more.
        knows_less = earlier is None or earlier.band_params.threshold > threshold
        is_kept = not skipped and (indexed.from_documents or knows_less)
    run.saving.close()
    if is_kept:
        run.keep("pairs.npz", lambda store: results_io.save_pairs(store, header, found))
    return found


def load_or_find_clusters(
    run: Workspace,
    indexed: IndexedCollection,
    params: ClusterParams,
    request: Request,
    apart: NDArray[np.uint64] = NO_KEYS,
) -> ClustersFound:
    """`lshdup clusters`: the clusters of all documents; if nothing has changed, from the last run
    or its pairs.

    Documents that changed or could not be read again are in no cluster. A document whose
    representative is one of them is alone, so that it is not dropped.

    apart : of `find_clusters` of the pipeline.
    """
    collection, index, bands = indexed.collection, indexed.index, indexed.params
    order = preference(run, collection.documents, collection.sizes, params, request.documents)
    store, found, known, header = run.store, None, None, {}
    if store is not None:
        header = results_io.describe_clusters(collection, index, bands, params, order.order, apart)
        found = results_io.load_clusters(run, store, header, collection, index)
        earlier = results_io.load_pairs(run, store, collection) if found is None else None
        pair_params = PairParams(max_bucket=params.max_bucket)
        if earlier is not None and earlier.covers(index.plan, bands, pair_params):
            known = earlier.at_least(bands.threshold)
    made = found
    if made is None:
        side, threshold = side_of(run, collection), bands.threshold
        made = find_clusters(
            run, collection, index, side, threshold, params, order, known=known, apart=apart
        )
    run.saving.close()
    if found is None and not len(made.lost):
        run.keep("clusters.npz", lambda store: results_io.save_clusters(store, header, made))
    return drop_changed(made, collection.documents)


def drop_changed(found: ClustersFound, documents: DocumentList, first: int = 0) -> ClustersFound:
    """Return clusters without documents that changed since they were listed; open no file.

    Users may delete dropped documents, so none may be dropped for a document that is gone.

    documents : those that are looked at. first : the number of the first of them in the clusters.
    """
    clusters = found.clusters
    run, sizes, own = clusters.run, clusters.sizes, clusters.representative
    end = min(first + len(documents), len(own))

    def are_several(some: slice) -> NDArray[np.bool_]:
        mine = own[first:end][some]
        return (mine >= 0) & (sizes[mine] > 1)

    members = run.arrays.where(end - first, are_several)
    changed = documents.changed(members)
    detail = "or gone since it was looked at; run it again with DOCS"
    for index in changed.tolist():
        run.skipped(Skipped(documents.names[index], Reason.CHANGED, detail))
    lost = np.concatenate([found.lost, changed + first])
    return replace(found, clusters=clusters.without(changed + first), lost=lost)
