"""The index of a collection: loaded from the store, or built from signatures."""

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.system import trim_memory
from lshdup.collection.collection import Collection
from lshdup.compare.results import Index, StoredPairs
from lshdup.errors import ArtifactError
from lshdup.lsh.band_plan import BandPlan, plan_bands
from lshdup.lsh.candidates import candidates_of
from lshdup.params import BandParams, PairParams, SketchParams
from lshdup.pipeline import build_index
from lshdup.store import results_io
from lshdup.workspace.context import RunContext
from lshdup.workspace.from_documents import collect_signatures
from lshdup.workspace.from_store import attach_sets, leave_out_changed, load_or_sketch_signatures
from lshdup.workspace.request import Request, merge_params


@dataclass(frozen=True)
class IndexedCollection:
    """A collection with its index.

    collection : documents and signatures, with their sets if memory or the store holds them.
    index : band table.
    params : parameters of the bands.
    plan : bands that decide which documents are candidates. The table of a `query` may have been
        planned for more candidates.
    from_documents : whether the documents were named: then artifacts are saved as by a first run.
    pairs : pairs of the last run that answer what is requested. Then it is not known whether the
        buckets of the table are in order, as kernels need them.
    """

    collection: Collection
    index: Index
    params: BandParams
    plan: BandPlan
    from_documents: bool = True
    pairs: StoredPairs | None = None

    def candidates_of(
        self, document: int, keys: NDArray[np.uint64], signature: NDArray[np.uint32]
    ) -> NDArray[np.int64]:
        """Return the documents that share a band of the plan with one document, ascending.

        document : its number if it is in the collection; else -1.
        keys : uint64 array of shape (bands,), its band keys.
        signature : uint32 array of shape (K,).

        Raises ArtifactError if the table is damaged.
        """
        table = self.index.table
        is_indexed = document >= 0 and np.array_equal(keys, table.keys_of(document))
        member = int(self.index.duplicate_of[document]) if is_indexed else -1
        near, is_candidate = candidates_of(table, keys, member), self.is_candidate(signature)
        return near if is_candidate is None else near[is_candidate(near)]

    def is_candidate(
        self, signature: NDArray[np.uint32]
    ) -> Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None:
        """Return the function that tells which documents meet a signature in a band of the plan.

        Return None if the table holds no other ones.
        """
        if self.index.plan == self.plan:
            return None
        plan, signatures = self.plan, self.collection.signatures
        assert signatures is not None
        width = plan.bands * plan.rows

        def agree(documents: NDArray[np.int64]) -> NDArray[np.bool_]:
            same = signatures[documents, :width] == signature[:width]
            bands = same.reshape(len(documents), plan.bands, plan.rows)
            agreeing: NDArray[np.bool_] = bands.all(axis=2).any(axis=1)
            return agreeing

        return agree


def load_or_build_index(
    run: RunContext, request: Request, *, save: bool, verify: bool, pairs: PairParams | None
) -> IndexedCollection:
    """Load the band table, or build it from signatures, of the documents that a request names.

    The bands are those that the request plans, whatever another command planned.

    Parameters
    ----------
    run : state of the run.
    request : names documents, or continues with the collection of the store.
    save : whether a table is saved that is built without DOCS.
    verify : check every byte of the artifacts; or only the bytes that are read, and use a stored
        table with more candidates too.
    pairs : what is done with the candidates, if that is to find pairs.

    """
    params = merge_params(BandParams, request.given)
    if request.documents:  # A promise that cannot be kept is refused before the work.
        plan_bands(merge_params(SketchParams, request.given).perms, params)
        save = True
    with run.locking(create=bool(request.documents)) if save else nullcontext():
        if request.documents:
            collection = collect_signatures(run, request, 0)
        else:
            collection = load_or_sketch_signatures(run, request, verify=verify, save=save)
        collection = leave_out_changed(run, attach_sets(run, collection), request)
        assert collection.sketch is not None
        plan = plan_bands(collection.sketch.perms, params)
        earlier = None
        if pairs is not None and run.store is not None:
            earlier = results_io.load_pairs(run, run.store, collection)
            if earlier is not None and not earlier.covers(plan, params, pairs):
                earlier = None
        stored = _load(run, collection, request, verify=verify, in_order=earlier is None)
        index = stored[0] if stored is not None else None
        if index is not None and index.plan.has_shape_of(plan):
            index = Index(plan, index.table, index.duplicate_of)
        elif index is None or verify or not index.plan.finds_all_of(plan):
            run.progress("bands", 0, 0)
            if index is not None and not verify:
                run.say(
                    f"bands rebuilt from signatures.npz, as the stored ones were planned for"
                    f" {index.plan.threshold:g}; `lshdup index` with the same options keeps them"
                )
            trim_memory()  # What reading kept.
            index = build_index(run, collection, params)
            trim_memory()
        if save and run.store is not None and (stored is None or stored[1] != params):
            results_io.save_index(run.store, collection, index, params)
        return IndexedCollection(collection, index, params, plan, bool(request.documents), earlier)


def _load(
    run: RunContext, collection: Collection, request: Request, *, verify: bool, in_order: bool
) -> tuple[Index, BandParams] | None:
    """Load bands.npz. A damaged one is rebuilt by a command with DOCS, and refused by others."""
    if run.store is None:
        return None
    try:
        return results_io.load_index(run, run.store, collection, verify=verify, in_order=in_order)
    except ArtifactError as error:
        if not request.documents:
            raise
        run.say(f"{error.message}; it is rebuilt")
        return None
