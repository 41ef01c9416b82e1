"""Collections made from the sets of a collection: with signatures, or without some shingles."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from lshdup.collection.batches import NO_SETS
from lshdup.collection.collection import Collection, Unfiltered
from lshdup.lsh.signatures import Allocate, Sketcher, in_memory, make_signatures
from lshdup.params import SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.shingling.shingler import fingerprints
from lshdup.utils.ragged import RaggedSets

#: Sets that a thread works on together.
_PIECE = 4096


def sketch_collection(
    collection: Collection, sketch: SketchParams, jobs: int = 1, allocate: Allocate = in_memory
) -> Collection:
    """Return the collection with signatures of the sets that it holds."""
    assert collection.sets is not None
    signatures = make_signatures(collection.sets, sketch, jobs, allocate)
    return replace(collection, sketch=sketch, signatures=signatures)


def filter_collection(
    collection: Collection,
    shingle_filter: ShingleFilter,
    sketch: SketchParams | None = None,
    jobs: int = 1,
    allocate: Allocate = in_memory,
    *,
    keep: bool = False,
) -> Collection:
    """Return the collection with filtered sets, and with their signatures if `sketch` is given.

    Memory: the signatures, the filtered sets if `keep` says so, and those of 4096 documents a thread.
    """
    sets = collection.sets
    assert sets is not None
    sketcher = Sketcher(sketch) if sketch is not None else None
    signatures = allocate((len(sets), sketch.perms)) if sketch is not None else None
    sizes, prints = np.empty(len(sets), np.int64), np.empty(len(sets), np.uint64)

    def work(start: int) -> RaggedSets:
        rows = slice(start, min(start + _PIECE, len(sets)))
        filtered = shingle_filter.apply(
            RaggedSets(sets.values, sets.offsets[rows.start : rows.stop + 1])
        )
        sizes[rows], prints[rows] = filtered.sizes, fingerprints(filtered, collection.shingle)
        if signatures is not None and sketcher is not None:
            signatures[rows] = sketcher.sketch(filtered)
        return filtered if keep else NO_SETS

    with ThreadPoolExecutor(jobs) as pool:
        pieces = list(pool.map(work, range(0, len(sets), _PIECE)))
    unfiltered = Unfiltered(
        shingle_filter, collection.sizes, collection.fingerprints, sets, collection.identity
    )
    return replace(
        collection,
        sizes=sizes,
        fingerprints=prints,
        sets=RaggedSets.concatenate(pieces) if keep else None,
        sketch=sketch,
        signatures=signatures,
        unfiltered=unfiltered,
        saved_identity="",
    )
