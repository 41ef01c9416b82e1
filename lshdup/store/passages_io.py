"""passages.npz: the passages of a collection, and the documents that were read for them."""

import numpy as np

from lshdup.collection.collection import Collection
from lshdup.params import PassageParams
from lshdup.passages.finding import Passages
from lshdup.store import npz
from lshdup.store.members import Member, check_arrays, damage_explained, declare_columns, refuse_if
from lshdup.store.store import Store

#: Passages of more places than this (256 MB) are not kept for the next run.
_MOST_PLACES = 1 << 24

_PASSAGES = declare_columns("passages", passage_tokens=np.int64, passage_places=np.int64)
_PASSAGES["place_documents"] = Member(np.int64, ("places",), below="documents")
_PASSAGES["place_first"] = Member(np.int64, ("places",))

_AGAIN = "run `lshdup passages DOCS` again"


def save_passages(
    store: Store, collection: Collection, params: PassageParams, passages: Passages
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
    collection = collection.with_unfiltered_sets(None)
    store.save_collection("passages", collection, beside)
    store.make_current("passages", collection)


def load_passages(store: Store, *, here: bool) -> tuple[Collection, PassageParams, Passages] | None:
    """Load passages.npz. Return None if it is missing. Raise ArtifactError if it is damaged.

    here : return None too if its names do not start from the current folder.
    """
    path = store.path("passages")
    collection = store.load_collection("passages", here=here)
    artifact = npz.load(path, "passages", _AGAIN)
    if collection is None or artifact is None:
        return None
    with damage_explained(path, _AGAIN):
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
        return collection, params, Passages(tokens, starts, documents, first)
