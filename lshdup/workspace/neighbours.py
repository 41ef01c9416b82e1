"""The near-duplicates of one document that was named: looked up in bands, or in the sets of all."""

from typing import TYPE_CHECKING

import numpy as np

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.compare.measures import find_containing
from lshdup.compare.sameness import Prints
from lshdup.lsh import band_table
from lshdup.lsh.candidates import find_exact_duplicates
from lshdup.lsh.signatures import Sketcher
from lshdup.pipeline import find_neighbours
from lshdup.shingling.shingler import Shingler, fingerprint_bytes, fingerprint_sets
from lshdup.sources.reading import TextBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lshdup.base.ragged import SetSource
    from lshdup.collection.collection import Collection
    from lshdup.compare.results import Neighbours
    from lshdup.workspace.index import IndexedCollection
    from lshdup.workspace.lookup import NamedDocument


@dataclass(frozen=True)
class Query:
    """A document that is looked up.

    shingles : its shingle set, uint64 array, ascending.
    prints : its fingerprints.
    index : its number in the collection; -1 if it is not of the store.
    is_stored : whether the store has this text of it.
    """

    shingles: "NDArray[np.uint64]"
    prints: Prints
    index: int
    is_stored: bool

    @property
    def has_changed(self) -> bool:
        """Whether the store has another text of the document."""
        return self.index >= 0 and not self.is_stored


def read_query(collection: "Collection", document: "NamedDocument") -> Query:
    """Read a document, and make its set as those of the collection were made."""
    params, text = collection.shingle, document.utf8(collection.shingle)
    sets, text_prints = Shingler(params).shingle_decoded([text])
    raw = text if params.tokens == "ids" else document.content()
    prints = Prints(fingerprint_bytes(TextBatch.of([0], [raw]), params), text_prints)
    if collection.shingle_filter is not None:
        sets = collection.shingle_filter.apply(sets)
    index, print_ = document.index, fingerprint_sets(sets, params)[0]
    is_stored = index >= 0 and print_ == collection.fingerprints[index]
    return Query(sets[0], prints, index, bool(is_stored))


def find_by_bands(
    indexed: "IndexedCollection", source: "SetSource", query: Query, threshold: float
) -> "Neighbours":
    """Find the documents at or above a similarity that share a bucket with a document."""
    collection, table = indexed.collection, indexed.index.table
    assert collection.sketch is not None
    if query.is_stored:
        assert collection.signatures is not None
        keys, signature = table.keys_of(query.index), collection.signatures[query.index]
    else:
        sizes = np.array([len(query.shingles)], np.int64)
        made = Sketcher(collection.sketch).sketch(RaggedSets.from_sizes(query.shingles, sizes))
        keys = np.ascontiguousarray(band_table.band_keys(made, indexed.index.plan)[:, 0])
        signature = made[0]
    return find_neighbours(
        indexed.index,
        source,
        threshold,
        keys=keys,
        shingles=query.shingles,
        itself=query.index,
        is_candidate=indexed.is_candidate(signature),
    )


def find_by_containment(
    run: Run, collection: "Collection", source: "SetSource", query: Query, threshold: float
) -> "Neighbours":
    """Find the documents at or above a containment with a document among all sets."""
    return find_containing(
        query.shingles,
        find_exact_duplicates(collection.fingerprints),
        collection.sizes,
        source,
        threshold,
        itself=query.index,
        jobs=run.jobs,
        on_progress=lambda done, n: run.progress("candidates", done, n),
    )


def holds_another(collection: "Collection", index: int) -> bool:
    """Return whether a collection has a document with shingles beside the one at `index`, or -1."""
    return any(at != index for at in collection.sizes.nonzero()[0][:2].tolist())
