"""The steps over one store, or over none: each from documents, or from what the store holds.

A step with DOCS runs the steps before it and reads only new and changed documents. A step without
DOCS continues from the store; stale artifacts are rebuilt, and said. The modules beside this one do
the work.
"""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from lshdup.collection.collection import Collection
from lshdup.collection.filtering import build_filter, filter_collection
from lshdup.collection.set_source import set_source
from lshdup.errors import RERUN, ArtifactError, InputError
from lshdup.lsh.candidates import Buckets
from lshdup.matching.results import ClustersFound, PairsFound
from lshdup.params import ClusterParams, PairParams, ShingleParams, SketchParams
from lshdup.pipeline import EVERY_SET
from lshdup.shingling.shingle_filter import ShingleFilter, find_first_sets
from lshdup.skipped import Skipped
from lshdup.store.store import Store
from lshdup.utils.parallel import Progress, no_progress
from lshdup.utils.ragged import RaggedSets, SetSource
from lshdup.utils.scratch import Spool
from lshdup.workspace import from_documents, from_store, index, pairs
from lshdup.workspace.context import RunContext
from lshdup.workspace.filter_request import read_filter_request
from lshdup.workspace.index import IndexedCollection
from lshdup.workspace.request import Request, merge_params


class Workspace:
    """The steps over one store folder, or over none.

    Parameters
    ----------
    folder : the store; None: nothing is kept.
    say : notified of a line for the user, such as that an artifact was rebuilt.
    skipped : notified of each file that is not compared.
    progress : notified (stage, steps done, steps in all).
    secret : hash key, for stores that were made with it; requests have it as a parameter too.
    read_only : nothing is written.
    apart : folder in which no documents are looked for, if there is no store.
    warn : notified of a probable mistake; default: `say`.

    """

    def __init__(
        self,
        folder: Path | None,
        say: Callable[[str], None] = lambda _: None,
        skipped: Callable[[Skipped], None] = lambda _: None,
        progress: Progress = no_progress,
        secret: bytes = b"",
        *,
        read_only: bool = False,
        apart: Path | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        store = Store(folder, secret) if folder is not None else None
        self._run = RunContext(
            store, folder or apart, read_only, say, warn or say, skipped, progress
        )

    # --- the steps: each from documents, or from the store ----------------------------------------

    def make_shingles(self, request: Request) -> Collection:
        """`lshdup shingle`: save the sets of all documents, and return them as filtered."""
        if not request.documents:
            message = "no documents were named"
            raise InputError(message, f"{RERUN} (files or folders)")
        run, shingle = self._run, merge_params(ShingleParams, request.given)
        with run.writing() as store, Spool(store.folder) as spool:
            wanted = read_filter_request(run, request, shingle)
            collection = from_documents.collect_sets(run, request, shingle, spool)
            store.save_collection("shingles", collection)
            if wanted is not None:
                shingle_filter = build_filter(collection, wanted, request.jobs)
                collection = filter_collection(collection, shingle_filter, jobs=request.jobs)
            return collection.with_unfiltered_sets(None)  # The spool ends here.

    def make_signatures(self, request: Request) -> Collection:
        """`lshdup signatures`: save the signatures of all documents, or of shingles.npz."""
        run = self._run
        if request.documents:
            with run.writing():
                return from_documents.collect_signatures(run, request)
        with run.continuing():
            shingles = from_store.load_shingles(run, request)
            wanted = read_filter_request(run, request, shingles.shingle)
            sketch = merge_params(SketchParams, request.given)
            return from_store.sketch_shingles(
                run, shingles, sketch, wanted, request.jobs, save=True
            )

    def load_or_build_index(
        self, request: Request, *, save: bool = True, verify: bool = True, clustering: bool = False
    ) -> IndexedCollection:
        """`lshdup index`, and how `pairs`, `clusters` and `query` begin.

        Parameters
        ----------
        request : names documents, or continues from the store.
        save : whether a table that is rebuilt from stored signatures is saved (`index`) or only
            used.
        verify : check every byte of the artifacts, or only the bytes that are read (`query`).
        clustering : continue the last `clusters`, if it used this index.

        """
        if request.documents:
            indexed = index.index_documents(self._run, request)
        else:
            indexed = index.load_or_rebuild_index(
                self._run, request, save=save, verify=verify, clustering=clustering
            )
        request.accept(indexed.collection.documents, True)
        return indexed

    def find_pairs(self, indexed: IndexedCollection, params: PairParams, jobs: int) -> PairsFound:
        """`lshdup pairs`: the verified pairs, from the store if the last run found them."""
        return pairs.load_or_find_pairs(self._run, indexed, params, jobs)

    def find_clusters(
        self, indexed: IndexedCollection, params: ClusterParams, request: Request
    ) -> ClustersFound:
        """`lshdup clusters`: the clusters, from the store if the last run found them."""
        from lshdup.workspace import clustering  # Imported here to keep `query` fast.

        return clustering.load_or_find_clusters(self._run, indexed, params, request)

    def find_clusters_exactly(
        self, request: Request, choose_params: Callable[[ClusterParams | None], ClusterParams]
    ) -> tuple[Collection, ClustersFound, float, ClusterParams | None]:
        """`lshdup clusters --exact`: the collection, and what `cluster_exactly` returns."""
        from lshdup.workspace import clustering  # Imported here to keep `query` fast.

        collection, sets = self.load_or_collect_sets(request)
        return collection, *clustering.cluster_exactly(
            self._run, collection, sets, request, choose_params
        )

    # --- inputs of the exact join, of --against and of the experiments ----------------------------

    def load_or_collect_sets(self, request: Request) -> tuple[Collection, RaggedSets]:
        """Return a collection and all its sets, filtered as requested. Nothing is saved."""
        run, last = self._run, None
        if request.documents:
            shingle = merge_params(ShingleParams, request.given)
            wanted = read_filter_request(run, request, shingle)
            collection = from_documents.collect_sets(run, request, shingle, EVERY_SET)
        else:
            collection = from_store.load_shingles(run, request)
            last = from_store.load_if_of_last_run(run, collection)
            wanted = read_filter_request(run, request, collection.shingle, last)
        request.accept(collection.documents, True)
        if wanted is not None:
            shingle_filter = build_filter(collection, wanted, request.jobs)
            collection = filter_collection(collection, shingle_filter, jobs=request.jobs, keep=True)
        assert collection.sets is not None
        return collection, collection.sets

    def load_or_collect_signatures(self, request: Request) -> Collection:
        """Return a collection with signatures, and with its sets if they are kept anywhere."""
        run = self._run
        if request.documents:
            with run.writing() if run.store is not None else nullcontext():
                collection = from_documents.collect_signatures(run, request)
        else:
            collection = from_store.load_or_sketch_signatures(run, request, verify=True, save=False)
        return from_store.attach_sets(run, collection)

    def set_source(self, collection: Collection, jobs: int) -> SetSource:
        """Return the function that gives the sets of a collection."""
        return set_source(collection, jobs, self._run.skipped)

    def say_large_bucket(self, indexed: IndexedCollection, buckets: Buckets) -> None:
        """Say what the largest bucket means for time and memory, if it has many documents."""
        pairs.say_large_bucket(self._run, indexed, buckets)

    # --- what the last run left -------------------------------------------------------------------

    def load_last_collection(self) -> Collection | None:
        """Load the collection of the last run, to look names up in; None without a usable one."""
        store = self._run.store
        if store is None:
            return None
        try:
            return store.load_collection("signatures", verify=False) or store.load_collection(
                "shingles", verify=False
            )
        except ArtifactError as error:
            self._run.say(error.message)
            return None

    def choose_threshold(self, request: Request) -> float:
        """Return the threshold: explicit, else of the last index (without DOCS), else default."""
        return from_store.choose_threshold(self._run, request)

    # --- filters, to show them --------------------------------------------------------------------

    def load_or_build_filter(
        self, request: Request, shingle: ShingleParams, stored: Collection | None
    ) -> ShingleFilter | None:
        """Return the filter of sets with these parameters: as requested, else of the last run.

        stored : what `load_last_collection` returns.
        """
        last = stored if stored is not None and stored.shingle == shingle else None
        wanted = read_filter_request(self._run, request, shingle, last)
        if wanted is None:
            return None
        made = last.shingle_filter if last is not None else None
        if made is not None and made.params == wanted.params:
            return made
        if not wanted.ignore_common:
            return build_filter(None, wanted)
        shingles = from_store.load_shingles(self._run, request)
        if shingles.shingle != shingle:
            message = "shingles.npz was made with other options than are shown"
            raise ArtifactError(message, RERUN)
        return build_filter(shingles, wanted, request.jobs)

    def most_common_shingles(self, collection: Collection, most: int) -> list[tuple[int, int, int]]:
        """Return the most common filtered shingles: (shingle, documents with it, one of them).

        Only for shingles that this run has counted and that shingles.npz holds; else nothing.
        """
        shingle_filter = collection.shingle_filter
        sets = from_store.load_sets(self._run, collection, verify=True)
        if shingle_filter is None or shingle_filter.counts is None or sets is None:
            return []
        top = np.argsort(-shingle_filter.counts.astype(np.int64), kind="stable")[:most]
        shingles, counts = shingle_filter.common[top], shingle_filter.counts[top]
        columns = shingles.tolist(), counts.tolist(), find_first_sets(sets, shingles).tolist()
        return list(zip(*columns, strict=True))
