"""The index of a collection: loaded from the store, or built from signatures."""

from contextlib import nullcontext
from dataclasses import dataclass, replace

from lshdup.collection.collection import Collection
from lshdup.errors import ArtifactError
from lshdup.lsh.band_plan import plan_bands
from lshdup.matching.results import Index
from lshdup.params import BandParams, ClusterParams, SketchParams
from lshdup.pipeline import build_index
from lshdup.store import results_io
from lshdup.workspace.context import RunContext
from lshdup.workspace.from_documents import collect_signatures
from lshdup.workspace.from_store import attach_sets, load_or_sketch_signatures
from lshdup.workspace.request import Request, merge_params, reset_bands


@dataclass(frozen=True)
class IndexedCollection:
    """A collection with its index.

    collection : documents and signatures, with their sets if memory or the store holds them.
    index : band table.
    params : parameters of the bands.
    from_documents : whether the documents were named: then artifacts are saved as by a first run.
    last_clustering : parameters of the last `clusters`, if this run continues it.
    """

    collection: Collection
    index: Index
    params: BandParams
    from_documents: bool = True
    last_clustering: ClusterParams | None = None


def index_documents(run: RunContext, request: Request) -> IndexedCollection:
    """Index the documents that a request names; load the band table if nothing has changed."""
    params = merge_params(BandParams, request.given)
    # A promise that cannot be kept is refused before the work.
    plan_bands(merge_params(SketchParams, request.given).perms, params)
    with run.writing() if run.store is not None else nullcontext():
        collection = attach_sets(run, collect_signatures(run, request))
        stored = None
        if run.store is not None:
            try:
                stored = results_io.load_index(run.store, collection)
            except ArtifactError as error:
                run.say(f"{error.message}; it is made anew")
        if stored is not None and stored[1] == params:
            return IndexedCollection(collection, stored[0], params)
        index = _build(run, collection, params, request.jobs)
        if run.store is not None:
            results_io.save_index(run.store, collection, index, params)
        return IndexedCollection(collection, index, params)


def load_or_rebuild_index(
    run: RunContext, request: Request, *, save: bool, verify: bool, clustering: bool
) -> IndexedCollection:
    """Load the index of the last run; rebuild it from signatures if it does not serve the request.

    Parameters
    ----------
    run : state of the run.
    request : explicit parameters; all others are those of the stored index.
    save : whether a rebuilt index is saved, or only used.
    verify : check every byte of the artifacts, or only the bytes that are read.
    clustering : take all other parameters from the last `clusters`, if it used this index.

    """
    with run.continuing() if save else nullcontext():
        signatures = load_or_sketch_signatures(run, request, verify=verify, save=save)
        collection = attach_sets(run, signatures)
        assert run.store is not None
        stored = results_io.load_index(run.store, collection, verify=verify)
        last = results_io.load_last_clustering(run.store, collection) if clustering else None
        last_clustering = last[1] if last is not None else None
        base = last[0] if last is not None else stored[1] if stored is not None else None
        given = request.given if base is None else reset_bands(request.given)
        wanted = merge_params(BandParams, given, base)
        if stored is not None and _serves(stored[1], wanted, exactly=save):
            index = stored[0]
        else:
            index = _build(run, collection, wanted, request.jobs)
            if save:
                results_io.save_index(run.store, collection, index, wanted)
            elif stored is not None:
                planned = f"the stored ones were planned for {stored[1].threshold:g}"
                run.say(f"bands made anew from signatures.npz; {planned}")
        return IndexedCollection(collection, index, wanted, False, last_clustering)


def _serves(stored: BandParams, wanted: BandParams, *, exactly: bool) -> bool:
    """Return whether stored bands serve a request: bands for t serve every higher threshold."""
    if exactly or wanted.threshold < stored.threshold:
        return wanted == stored
    return replace(wanted, threshold=stored.threshold) == stored


def _build(run: RunContext, collection: Collection, params: BandParams, jobs: int) -> Index:
    run.progress("bands", 0, 0)
    return build_index(collection, params, jobs)
