"""The index of a collection and its verified pairs: loaded from the store, or made and saved."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.params import BandParams, PairParams, SketchParams
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.base.system import trim_memory
from lshdup.collection.collection import Collection
from lshdup.compare.comparing import find_neighbours
from lshdup.compare.results import Index, Neighbours, StoredPairs
from lshdup.compare.sides import Fingerprints, Side, Sides
from lshdup.errors import ArtifactError
from lshdup.lsh.band_plan import BandPlan, plan_bands
from lshdup.lsh.band_table import band_keys
from lshdup.lsh.candidates import candidates_of, documents_to_compare
from lshdup.lsh.signatures import Sketcher
from lshdup.pipeline import build_index
from lshdup.shingling.shingler import Shingler, fingerprint_bytes, fingerprint_sets
from lshdup.store import results_io
from lshdup.text.text_batch import TextBatch
from lshdup.workspace.loading import signing
from lshdup.workspace.lookup import NamedDocument
from lshdup.workspace.request import Request, merge_params
from lshdup.workspace.workspace import Workspace


@dataclass(frozen=True)
class IndexedCollection:
    """A collection with its index.

    collection : documents and signatures, with their sets if memory or the store holds them.
    index : band table.
    params : parameters of the bands.
    plan : bands that decide which documents are candidates. The table of a `query` may have been
        planned for more candidates.
    from_documents : whether the documents were named: then artifacts are saved as by a first run.
    pairs : pairs of the last run, if pairs are requested. If they answer that, it is not known
        whether the buckets of the table are in order, as kernels need them.
    """

    collection: Collection
    index: Index
    params: BandParams
    plan: BandPlan
    from_documents: bool = True
    pairs: StoredPairs | None = None


def load_or_build_index(
    run: Workspace, request: Request, *, save: bool = False, verify: bool = True
) -> IndexedCollection:
    """`lshdup index`, and how `query` begins: load the band table, or build it. As `indexing`."""
    with indexing(run, request, save=save, verify=verify) as indexed:
        return indexed


@contextmanager
def indexing(
    run: Workspace,
    request: Request,
    *,
    save: bool = False,
    verify: bool = True,
    pairs: PairParams | None = None,
) -> Iterator[IndexedCollection]:
    """How `pairs` and `clusters` begin: load the band table of the documents that a request names,
    or build it from signatures. What is saved is saved by the end of the block, as of `signing`.

    The bands are those that the request plans, whatever another command planned.

    Parameters
    ----------
    run : state of the run.
    request : names documents, or continues with the collection of the store.
    save : whether a table is saved that is built without DOCS (`index`).
    verify : check every byte of the artifacts; or only the bytes that are read, and use a stored
        table with more candidates too (`query`).
    pairs : how candidates are met and verified, if only pairs are found with the index.

    """
    params = merge_params(BandParams, request.given)
    if request.documents:  # A promise that cannot be kept is refused before the work.
        plan_bands(merge_params(SketchParams, request.given).perms, params)
    with signing(run, request, save=save, verify=verify) as (collection, follow):
        assert collection.sketch is not None
        plan, store = plan_bands(collection.sketch.perms, params), run.store
        earlier = stored = index = None
        if pairs is not None and store is not None:
            earlier = results_io.load_pairs(run, store, collection)
        is_answered = pairs is not None and earlier and earlier.covers(plan, params, pairs)
        try:
            if store is not None:
                stored = results_io.load_index(
                    run, store, collection, verify=verify, in_order=not is_answered
                )
        except ArtifactError as error:
            if not request.documents:
                raise
            run.say(f"{error.message}; it is rebuilt")
        if stored is not None:
            index = stored[0]
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
        if (
            (save or request.documents)
            and store is not None
            and (stored is None or stored[1] != params)
        ):
            follow(partial(results_io.save_index, store, collection, index, params))
        yield IndexedCollection(collection, index, params, plan, bool(request.documents), earlier)


# --- the near-duplicates of one document that was named ---


@dataclass(frozen=True)
class Query:
    """A document that is looked up.

    shingles : its shingle set, uint64 array, ascending.
    prints : its fingerprints.
    index : its number in the collection; -1 if it is not of the store.
    is_stored : whether the store has this text of it.
    """

    shingles: NDArray[np.uint64]
    prints: Fingerprints
    index: int
    is_stored: bool

    @property
    def has_changed(self) -> bool:
        """Whether the store has another text of the document."""
        return self.index >= 0 and not self.is_stored


def read_query(collection: Collection, document: NamedDocument) -> Query:
    """Read a document, and make its set as those of the collection were made."""
    params, text = collection.shingle, document.utf8(collection.shingle)
    sets, text_prints = Shingler(params).shingle_decoded([text])
    raw = text if params.tokens == "ids" else document.content()
    prints = Fingerprints(fingerprint_bytes(TextBatch.of([0], [raw]), params), text_prints)
    if collection.shingle_filter is not None:
        sets = collection.shingle_filter.apply(sets)
    index, print_ = document.index, fingerprint_sets(sets, params)[0]
    is_stored = index >= 0 and print_ == collection.fingerprints[index]
    return Query(sets[0], prints, index, bool(is_stored))


def find_near(
    run: Run, side: Side, query: Query, threshold: float, indexed: IndexedCollection | None
) -> Neighbours:
    """Find the documents at or above a similarity that share a bucket with a document.

    side : the documents, which are in the store.
    indexed : their bands; None for containment, of which the sets of all documents are looked at.

    Raises ArtifactError if the band table is damaged.
    """
    if indexed is not None:
        sides = Sides.of(run, side, duplicate_of=indexed.index.duplicate_of)
        near, measure = _candidates_of(run, indexed, query), "jaccard"
    else:
        sides, measure = Sides.of(run, side), "containment"
        near = documents_to_compare(run, sides.duplicate_of, sides.sizes)
    return find_neighbours(run, query.shingles, near, sides, threshold, measure, itself=query.index)


def _candidates_of(run: Run, indexed: IndexedCollection, query: Query) -> NDArray[np.int64]:
    """Return the documents that share a band of the plan with a document, ascending."""
    collection, index, plan = indexed.collection, indexed.index, indexed.plan
    table, signatures = index.table, collection.signatures
    assert collection.sketch is not None
    assert signatures is not None
    if query.is_stored:
        keys, signature = table.keys_of(query.index), signatures[query.index]
    else:
        sizes = np.array([len(query.shingles)], np.int64)
        made = Sketcher(collection.sketch).sketch(RaggedSets.from_sizes(query.shingles, sizes))
        keys = np.ascontiguousarray(band_keys(run, made, index.plan)[:, 0])
        signature = made[0]
    is_indexed = query.index >= 0 and np.array_equal(keys, table.keys_of(query.index))
    member = int(index.duplicate_of[query.index]) if is_indexed else -1
    near = candidates_of(table, keys, member)
    if index.plan == plan:
        return near
    # The table was planned for more candidates.
    width = plan.bands * plan.rows
    same = signatures[near, :width] == signature[:width]
    agree: NDArray[np.bool_] = (
        same.reshape(len(near), plan.bands, plan.rows).all(axis=2).any(axis=1)
    )
    return near[agree]


def holds_another(collection: Collection, index: int) -> bool:
    """Return whether a collection has a document with shingles beside the one at `index`, or -1."""
    return any(at != index for at in collection.sizes.nonzero()[0][:2].tolist())
