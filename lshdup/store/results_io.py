"""What commands make of a collection, in the store: band tables, verified pairs, clusters, and
passages.
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.params import BandParams, ClusterParams, PairParams, PassageParams
from lshdup.base.run import Run
from lshdup.base.system import blake2b
from lshdup.collection.collection import Collection
from lshdup.compare.results import ClustersFound, Index, PairsFound, StoredPairs
from lshdup.compare.scored_pairs import Pairs
from lshdup.errors import ArtifactError
from lshdup.lsh import band_plan
from lshdup.lsh.band_table import SignedBandTable
from lshdup.lsh.candidates import Buckets
from lshdup.store import npz
from lshdup.store.npz import (
    DAMAGED,
    Array,
    Member,
    check_arrays,
    damage_explained,
    declare_columns,
    refuse_if,
)
from lshdup.store.store import Store

if TYPE_CHECKING:
    from lshdup.passages.finding import Passages

#: More verified pairs than this (64 MB) are not kept for the next run.
_MOST_PAIRS = 1 << 22

#: Passages of more places than this (256 MB) are not kept for the next run.
_MOST_PLACES = 1 << 24

#: A document without a representative, in clusters.npz.
_NONE = 0xFFFFFFFF

_INDEX_AGAIN = "run `lshdup index`"
_PASSAGES_AGAIN = "run `lshdup passages DOCS` again"

_BANDS = {
    "firsts": Member(np.uint32, ("documents",), below="documents"),
    "order": Member(np.uint32, ("bands", "compared"), below="documents"),
}
_PAIRS = {
    "left": Member(np.uint32, ("pairs",), below="documents"),
    "right": Member(np.uint32, ("pairs",), below="documents"),
    "similarity": Member(np.float64, ("pairs",)),
}
_CLUSTERS = {
    "representative": Member(np.uint32, ("documents",)),  # or _NONE
    "similarity": Member(np.float64, ("documents",)),
}

_PASSAGES = declare_columns("passages", passage_tokens=np.int64, passage_places=np.int64)
_PASSAGES["place_documents"] = Member(np.int64, ("places",), below="documents")
_PASSAGES["place_first"] = Member(np.int64, ("places",))

# --- bands.npz ----------------------------------------------------------------------------------


def save_index(store: Store, collection: Collection, index: Index, params: BandParams) -> None:
    """Save a band table as bands.npz, 4 bytes a document and band: signatures.npz has the rest."""
    header = _made_from(collection) | {"bands": params.to_json()}
    arrays: dict[str, Array] = {
        "order": index.table.order,
        "firsts": index.duplicate_of.astype(np.uint32),
    }
    npz.save(store.path("bands"), "bands", header, arrays)


def load_index(
    run: Run, store: Store, collection: Collection, *, verify: bool, in_order: bool
) -> tuple[Index, BandParams] | None:
    """Load bands.npz. Return None if it is missing or was made from another collection.

    verify : whether every byte is verified. Raises ArtifactError if the artifact is damaged.
    in_order : whether all keys are made then, to see that the buckets are in order.
    """
    path = store.path("bands")
    # A query reads all of `firsts`.
    artifact = npz.load(path, "bands", _INDEX_AGAIN, verify=verify, always=("firsts",))
    if artifact is None:
        return None
    with damage_explained(path, _INDEX_AGAIN):
        if not _says(artifact.header, _made_from(collection)):
            return None
        params = BandParams.from_json(artifact.header["bands"])
        plan = band_plan.plan_bands(collection.perms, params)
        sizes = {"documents": len(collection.documents), "bands": plan.bands}
        stored = check_arrays(artifact, _BANDS, sizes)
        order, duplicate_of = stored["order"], stored["firsts"].astype(np.int64)
        represent = np.array_equal(duplicate_of[duplicate_of], duplicate_of)
        refuse_if(not represent, "what represents others does not represent itself")
        if verify:
            is_compared = (duplicate_of == np.arange(len(duplicate_of))) & (collection.sizes > 0)
            fits = sizes["compared"] == np.count_nonzero(is_compared)
            fits = fits and all(is_compared[band].all() for band in order)
            refuse_if(not fits, "its buckets are of other documents")
        assert collection.signatures is not None
        table = SignedBandTable(run, collection.signatures, plan, order)
        refuse_if(verify and in_order and not table.is_in_order(), "its buckets are not in order")
        return Index(plan, table, duplicate_of), params


# --- pairs.npz ----------------------------------------------------------------------------------


def save_pairs(store: Store, header: dict[str, Any], found: PairsFound) -> None:
    """Save the verified pairs of representatives as pairs.npz: the next run reads no document.

    header : of `describe_pairs`.
    """
    if len(found.pairs) > _MOST_PAIRS:
        return
    header = header | {"candidates": found.candidates, "buckets": asdict(found.buckets)}
    arrays = {name: getattr(found.pairs, name) for name in ("left", "right", "similarity")}
    npz.save(store.path("pairs"), "pairs", header, arrays)


def load_pairs(run: Run, store: Store, collection: Collection) -> StoredPairs | None:
    """Load pairs.npz. Return None if it is missing, damaged, or of another collection."""
    with contextlib.suppress(ArtifactError, *DAMAGED):
        artifact = npz.load(store.path("pairs"), "pairs", "")
        if artifact is None or not _says(artifact.header, _made_from(collection)):
            return None
        header, n = artifact.header, len(collection.documents)
        bands, params = BandParams.from_json(header["bands"]), PairParams.from_json(header["pairs"])
        left, right, similarity = check_arrays(artifact, _PAIRS, {"documents": n}).values()
        in_range = (similarity >= bands.threshold) & (similarity <= 1)
        refuse_if(not (left < right).all() or not in_range.all(), "they are no pairs")
        counts = header["candidates"], header["planned_bands"], header["planned_rows"]
        are_counts = all(type(count) is int and count >= 0 for count in counts)
        refuse_if(not are_counts, "counts are none")
        fits = 0 < counts[1] * counts[2] <= collection.perms
        refuse_if(not fits, "bands that do not fit")
        found = PairsFound(
            Pairs.of(run, left, right, similarity), counts[0], _read_buckets(header, n)
        )
        return StoredPairs(found, bands, params, *counts[1:])
    return None


# --- clusters.npz -------------------------------------------------------------------------------


def save_clusters(store: Store, header: dict[str, Any], found: ClustersFound) -> None:
    """Save clusters as clusters.npz, 12 bytes a document: the next run reads no document.

    header : of `describe_clusters`.
    """
    arrays: dict[str, Array] = {
        "representative": found.clusters.representative.astype(np.uint32),  # -1 becomes _NONE
        "similarity": found.clusters.similarity,
    }
    header = header | {"buckets": asdict(found.buckets)}
    npz.save(store.path("clusters"), "clusters", header, arrays)


def load_clusters(
    run: Run, store: Store, header: dict[str, Any], collection: Collection, index: Index
) -> ClustersFound | None:
    """Load clusters.npz. Return None if it is missing, damaged, or was made otherwise.

    header : of `describe_clusters`.
    """
    with contextlib.suppress(ArtifactError, *DAMAGED):
        artifact = npz.load(store.path("clusters"), "clusters", "")
        if artifact is None or not _says(artifact.header, header):
            return None
        n = len(collection.documents)
        stored, similarity = check_arrays(artifact, _CLUSTERS, {"documents": n}).values()
        representative = np.where(stored == _NONE, -1, stored.astype(np.int64))
        compared = collection.sizes > 0
        own = representative[compared]
        fits = np.array_equal(representative >= 0, compared) and own.max(initial=-1) < n
        refuse_if(not fits, "not those documents")
        fits = np.array_equal(representative[own], own)
        refuse_if(not fits, "what represents others does not represent itself")
        in_range = (similarity[compared] >= 0) & (similarity[compared] <= 1)
        refuse_if(not in_range.all(), "similarities are none")
        buckets = _read_buckets(artifact.header, n)
        from lshdup.compare.clusters import Clusters  # Imported here to keep `query` fast.

        groups = Clusters(run, representative, similarity)
        return ClustersFound(groups, index.duplicate_of, buckets=buckets)
    return None


# --- passages.npz -------------------------------------------------------------------------------


def save_passages(
    store: Store, collection: Collection, params: PassageParams, passages: "Passages"
) -> None:
    """Save passages as passages.npz: the next run over unchanged documents reads none of them.

    collection : the documents; its set sizes are their numbers of tokens.
    """
    if len(passages.documents) > _MOST_PLACES:
        store.drop("passages")
        return
    beside = {
        "passages": params.to_json(),
        "passage_tokens": passages.tokens,
        "passage_places": passages.places,
        "place_documents": passages.documents,
        "place_first": passages.first,
    }
    collection = replace(collection, sets=None)
    store.save_collection("passages", collection, beside)
    store.make_current("passages", collection)


def load_passages(
    store: Store, *, here: bool
) -> "tuple[Collection, PassageParams, Passages] | None":
    """Load passages.npz. Return None if it is missing. Raise ArtifactError if it is damaged.

    here : return None too if its names do not start from the current folder.
    """
    path = store.path("passages")
    collection = store.load_collection("passages", here=here)
    artifact = npz.load(path, "passages", _PASSAGES_AGAIN)
    if collection is None or artifact is None:
        return None
    with damage_explained(path, _PASSAGES_AGAIN):
        refuse_if(artifact.header["corpus"] != collection.identity, "another run has replaced it")
        params = PassageParams.from_json(artifact.header["passages"])
        sizes = collection.sizes
        arrays = check_arrays(artifact, _PASSAGES, {"documents": len(sizes)})
        tokens, places, documents, first = arrays.values()
        refuse_if((places < 2).any() or (places > len(documents)).any(), "places are none")
        starts = np.append(0, np.cumsum(places))
        refuse_if(starts[-1] != len(documents), "places do not fit")
        refuse_if((tokens < params.least).any(), "passages are too short")
        outside = (first < 0) | (first > sizes[documents] - np.repeat(tokens, places))
        refuse_if(outside.any(), "places are outside their documents")
        from lshdup.passages.finding import Passages  # Imported here to keep `query` fast.

        return collection, params, Passages(tokens, starts, documents, first)


# --- headers ------------------------------------------------------------------------------------


def describe_pairs(
    collection: Collection, index: Index, bands: BandParams, params: PairParams
) -> dict[str, Any]:
    """Return what decides which pairs are verified, and in which order."""
    return _made_from(collection) | {
        "bands": bands.to_json(),
        "planned_bands": index.plan.bands,
        "planned_rows": index.plan.rows,
        "pairs": params.to_json(),
    }


def describe_clusters(
    collection: Collection,
    index: Index,
    bands: BandParams,
    params: ClusterParams,
    preference: NDArray[np.int64],
    apart: NDArray[np.uint64],
) -> dict[str, Any]:
    """Return what decides which clusters there are, and in which order they are found.

    preference : int64 array, the documents in order of preference. It may depend on times of files
        and on how DOCS were named, which are no part of the identity of a collection.
    apart : of `find_clusters` of the pipeline.
    """
    header = describe_pairs(collection, index, bands, PairParams())
    del header["pairs"]
    order = np.ascontiguousarray(preference).view(np.uint8).data
    header["clusters"] = json.loads(json.dumps(params.to_json()))
    header["preference"] = blake2b(order, digest_size=16).hexdigest()
    header["apart"] = blake2b(apart.view(np.uint8).data, digest_size=16).hexdigest()
    return header


def _made_from(collection: Collection) -> dict[str, Any]:
    """Return what identifies the signatures that an artifact is made from."""
    assert collection.sketch is not None
    return {"corpus": collection.identity, "sketch": collection.sketch.to_json()}


def _says(header: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return all(header.get(key) == value for key, value in expected.items())


def _read_buckets(header: Mapping[str, Any], documents: int) -> Buckets:
    buckets = Buckets(**header["buckets"])
    are_counts = all(type(count) is int and count >= 0 for count in asdict(buckets).values())
    refuse_if(not are_counts or buckets.example >= max(documents, 1), "counts are none")
    return buckets
