"""The steps over one store, or over none: each from documents, or from what the store holds.

A step with DOCS runs the steps before it and reads only new and changed documents. A step without
DOCS continues from the store; stale artifacts are rebuilt, and said. The modules beside this one do
the work.
"""

from typing import TYPE_CHECKING

import numpy as np

from lshdup.base.ragged import RaggedSets, SetSource
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import build_filter, filter_collection
from lshdup.collection.set_source import set_source
from lshdup.compare.results import ClustersFound, PairsFound
from lshdup.errors import RERUN, ArtifactError, InputError
from lshdup.lsh.buckets import Buckets
from lshdup.params import BandParams, ClusterParams, PairParams, ShingleParams
from lshdup.pipeline import say_large_bucket
from lshdup.shingling.shingle_filter import ShingleFilter, find_first_sets
from lshdup.workspace import from_documents, from_store, index, pairs
from lshdup.workspace.context import RunContext
from lshdup.workspace.filter_request import read_filter_request
from lshdup.workspace.index import IndexedCollection
from lshdup.workspace.request import Request, merge_params

if TYPE_CHECKING:
    from lshdup.workspace.samples import SampleCollector


class Workspace(RunContext):
    """The steps over one store folder, or over none."""

    # --- the steps: each from documents, or from the store ----------------------------------------

    def make_shingles(self, request: Request) -> Collection:
        """`lshdup shingle`: save the sets of all documents, and return them as filtered."""
        if not request.documents:
            message = "no documents were named"
            raise InputError(message, f"{RERUN} (files or folders)")
        self.require_store()
        shingle = merge_params(ShingleParams, request.given)
        with self.locking(create=True):
            wanted = read_filter_request(self, request, shingle)
            collection = from_documents.make_sets(self, request, shingle)
            if wanted is not None:
                shingle_filter = build_filter(self, collection, wanted)
                collection = filter_collection(self, collection, shingle_filter)
            return collection.with_unfiltered_sets(None)  # The spool ends here.

    def make_signatures(self, request: Request) -> Collection:
        """`lshdup signatures`: save the signatures of all documents, or of the last run's."""
        self.require_store()
        if request.documents:
            with self.locking(create=True):
                return from_documents.collect_signatures(self, request, 0)
        with self.locking(create=False):
            return from_store.sign_again(self, request)

    def load_or_build_index(
        self,
        request: Request,
        *,
        save: bool = True,
        verify: bool = True,
        pairs: PairParams | None = None,
    ) -> IndexedCollection:
        """`lshdup index`, and how `pairs`, `clusters` and `query` begin.

        Parameters
        ----------
        request : names documents, or continues from the store.
        save : whether a table that is rebuilt from stored signatures is saved (`index`) or only
            used.
        verify : check every byte of the artifacts; or only the bytes that are read, and use any
            stored table that serves (`query`).
        pairs : how candidates are met and verified, if only pairs are found with the index.

        """
        indexed = index.load_or_build_index(self, request, save=save, verify=verify, pairs=pairs)
        request.accept(indexed.collection.documents, True)
        return indexed

    def find_pairs(self, indexed: IndexedCollection, params: PairParams) -> PairsFound:
        """`lshdup pairs`: the verified pairs, from the store if the last run found them."""
        return pairs.load_or_find_pairs(self, indexed, params)

    def find_clusters(
        self, indexed: IndexedCollection, params: ClusterParams, request: Request
    ) -> ClustersFound:
        """`lshdup clusters`: the clusters, from the store if the last run found them."""
        from lshdup.workspace import clustering  # Imported here to keep `query` fast.

        return clustering.load_or_find_clusters(self, indexed, params, request)

    def find_same(
        self, collection: Collection, same: str, params: ClusterParams, request: Request
    ) -> ClustersFound:
        """`lshdup clusters --same`: the groups of documents that are the same."""
        from lshdup.workspace import clustering  # Imported here to keep `query` fast.

        return clustering.cluster_same(self, collection, same, params, request)

    def find_clusters_exactly(
        self, collection: Collection, params: ClusterParams, request: Request
    ) -> ClustersFound:
        """`lshdup clusters --exact`: the clusters of a collection with its sets."""
        from lshdup.workspace import clustering  # Imported here to keep `query` fast.

        threshold = merge_params(BandParams, request.given).threshold
        return clustering.cluster_exactly(self, collection, threshold, params, request)

    def collect_to_join(self, request: Request) -> tuple[Collection, "SampleCollector"]:
        """`lshdup pairs --measure containment` begins: the collection, and samples of its sets."""
        from lshdup.workspace import samples  # Imported here to keep `query` fast.

        sampled = samples.new_collector(self, merge_params(BandParams, request.given), request)
        self.sampled = sampled
        try:
            # Sets are in memory twice while they are gathered.
            collection = self.load_or_collect_signatures(request, self.memory // 2)
            assert collection.sketch is not None
            sampled.seed = collection.sketch.seed  # That of the store, if nothing was read.
            return collection, sampled
        finally:
            self.sampled = None

    # --- inputs of the exact join, of --against and of the experiments ----------------------------

    def load_or_collect_sets(self, request: Request) -> tuple[Collection, RaggedSets]:
        """Return a collection and all its sets, filtered as requested. Nothing is saved."""
        if request.documents:
            shingle = merge_params(ShingleParams, request.given)
            wanted = read_filter_request(self, request, shingle)
            collection = from_documents.read_sets(self, request, shingle)
        else:
            collection, last = from_store.load_or_read_sets(self, request)
            wanted = read_filter_request(self, request, collection.shingle, last)
        request.accept(collection.documents, True)
        if wanted is not None:
            shingle_filter = build_filter(self, collection, wanted)
            collection = filter_collection(self, collection, shingle_filter, keep=True)
        assert collection.sets is not None
        return collection, collection.sets

    def load_or_collect_signatures(self, request: Request, memory: int) -> Collection:
        """Return a collection with signatures, and with its sets if they are kept anywhere.

        memory : bytes of sets of documents that are read now that may be kept.
        """
        if request.documents:
            with self.locking(create=True):
                collection = from_documents.collect_signatures(self, request, memory)
        else:
            collection = from_store.load_or_sketch_signatures(
                self, request, verify=True, save=False
            )
        return from_store.attach_sets(self, collection)

    def set_source(self, collection: Collection) -> SetSource:
        """Return the function that gives the sets of a collection."""
        return set_source(self, collection)

    def say_large_bucket(self, indexed: IndexedCollection, buckets: Buckets) -> None:
        """Say what the largest bucket means for time and memory, if it has many documents."""
        say_large_bucket(self, indexed.collection.documents, buckets)

    # --- what the last run left -------------------------------------------------------------------

    def load_last_collection(self) -> Collection | None:
        """Load the collection of the last run, to look names up in; None without a usable one."""
        try:
            return from_store.load_last_collection(self, verify=False)
        except ArtifactError as error:
            self.say(error.message)
            return None

    # --- filters, to show them --------------------------------------------------------------------

    def load_or_build_filter(
        self, request: Request, shingle: ShingleParams, stored: Collection | None
    ) -> ShingleFilter | None:
        """Return the filter of sets with these parameters: as requested, else of the last run.

        stored : what `load_last_collection` returns.
        """
        last = stored if stored is not None and stored.shingle == shingle else None
        wanted = read_filter_request(self, request, shingle, last)
        if wanted is None:
            return None
        made = last.shingle_filter if last is not None else None
        if made is not None and made.params == wanted.params:
            return made
        if not wanted.ignore_common:
            return build_filter(self, None, wanted)
        shingles, _ = from_store.load_or_read_sets(self, request)
        if shingles.shingle != shingle:
            message = "the store was made with other options than are shown"
            raise ArtifactError(message, RERUN)
        return build_filter(self, shingles, wanted)

    def most_common_shingles(self, collection: Collection, most: int) -> list[tuple[int, int, int]]:
        """Return the most common filtered shingles: (shingle, documents with it, one of them).

        Only for shingles that this run has counted and that shingles.npz holds; else nothing.
        """
        shingle_filter = collection.shingle_filter
        sets = from_store.load_sets(self, collection, verify=True)
        if shingle_filter is None or shingle_filter.counts is None or sets is None:
            return []
        top = np.argsort(-shingle_filter.counts.astype(np.int64), kind="stable")[:most]
        shingles, counts = shingle_filter.common[top], shingle_filter.counts[top]
        columns = shingles.tolist(), counts.tolist(), find_first_sets(sets, shingles).tolist()
        return list(zip(*columns, strict=True))
