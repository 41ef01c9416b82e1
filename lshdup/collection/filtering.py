"""Filters of a collection: the shingles of template texts, and those that too many documents have,
leave every set.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.batches import NO_VALUES
from lshdup.collection.collect import Room, in_memory, sketched
from lshdup.collection.collection import Collection
from lshdup.lsh.candidates import documents_to_compare, find_exact_duplicates
from lshdup.lsh.signatures import Sketcher
from lshdup.params import FilterParams, SketchParams
from lshdup.shingling.shingle_filter import (
    NO_SHINGLES,
    ShingleFilter,
    Unfiltered,
    common_shingles,
    fingerprint,
    least_count,
)
from lshdup.shingling.shingler import fingerprint_sets
from lshdup.utils.ragged import RaggedSets


@dataclass(frozen=True)
class FilterRequest:
    """A filter as it is requested: template shingles, and the limit from which a shingle is common.

    Parameters
    ----------
    template : uint64 array, ascending, without repeats.
    ignore_common : share of the documents below 1, number of documents from 1 on; 0: no limit.

    """

    template: NDArray[np.uint64]
    ignore_common: float = 0.0

    @property
    def params(self) -> FilterParams:
        """The parameters, as headers of artifacts have them."""
        return FilterParams(self.ignore_common, fingerprint(self.template))


def build_filter(
    collection: Collection | None, request: FilterRequest, jobs: int = 1
) -> ShingleFilter:
    """Return the filter that is requested; count the shingles of the unfiltered sets if it has a
    limit.

    collection : with its unfiltered sets; may be None if the request has no limit.

    Exact duplicates count once: a text is common if many different documents have it. Documents
    without tokens do not count.
    """
    if not request.ignore_common:
        return ShingleFilter(request.params, request.template, NO_SHINGLES)
    assert collection is not None
    assert collection.sets is not None
    members = documents_to_compare(find_exact_duplicates(collection.fingerprints), collection.sizes)
    least = least_count(request.ignore_common, len(members))
    common = common_shingles(collection.sets, members, least, jobs)
    return ShingleFilter(request.params, request.template, *common)


def filter_collection(
    collection: Collection,
    shingle_filter: ShingleFilter,
    sketch: SketchParams | None = None,
    jobs: int = 1,
    room: Room = in_memory,
    *,
    keep: bool = False,
) -> Collection:
    """Return the collection with filtered sets, and with their signatures if `sketch` is given.

    Parameters
    ----------
    collection : collection with its unfiltered sets.
    shingle_filter : filter to apply to every set.
    sketch : how signatures are made; None: no signatures.
    jobs : threads.
    room : makes the array of the signatures.
    keep : whether the filtered sets are kept beside the unfiltered ones.

    Memory: signatures, kept sets (the linear scheme needs them while it works), and 4096 filtered
    sets a thread.

    """
    sets = collection.sets
    assert sets is not None
    n = len(sets)
    linear = sketch is not None and sketch.scheme == "linear"
    sketcher = Sketcher(sketch) if sketch is not None and not linear else None
    signatures = room((n, sketch.perms)) if sketcher and sketch else None
    sizes, prints = np.empty(n, np.int64), np.empty(n, np.uint64)

    def part(start: int) -> RaggedSets:
        end = min(start + 4096, n)
        left = shingle_filter.apply(RaggedSets(sets.values, sets.offsets[start : end + 1]))
        sizes[start:end], prints[start:end] = left.sizes, fingerprint_sets(left, collection.shingle)
        if signatures is not None and sketcher is not None:
            signatures[start:end] = sketcher.sketch(left)
        return left if keep or linear else NO_VALUES

    with ThreadPoolExecutor(jobs) as pool:
        parts = list(pool.map(part, range(0, n, 4096)))
    unfiltered = Unfiltered(collection.sizes, collection.fingerprints, sets, collection.corpus)
    kept = RaggedSets.concatenate(parts) if keep or linear else None
    made = replace(
        collection,
        sizes=sizes,
        fingerprints=prints,
        sets=kept,
        sketch=sketch,
        signatures=signatures,
        corpus="",
        shingle_filter=shingle_filter,
        unfiltered=unfiltered,
    )
    if linear and sketch is not None:
        made = sketched(made, sketch, jobs)
        return made if keep else replace(made, sets=None)
    return made
