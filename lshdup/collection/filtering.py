"""Filters of a collection: shingles of templates and common shingles leave every set."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.collection.collection import WHOLE, Collection, Columns, Unfiltered, set_columns
from lshdup.lsh.candidates import documents_to_compare, find_exact_duplicates
from lshdup.lsh.signatures import Sketcher
from lshdup.params import FilterParams, SketchParams
from lshdup.shingling.shingle_filter import (
    NO_SHINGLES,
    ShingleFilter,
    find_common_shingles,
    find_least_count,
    fingerprint,
)
from lshdup.shingling.shingler import NO_SETS

#: Sets that a thread filters together.
_PIECE = 4096


@dataclass(frozen=True)
class FilterRequest:
    """A filter as it is requested: template shingles, and the limit from which a shingle is common.

    template : uint64 array, ascending, without repeats.
    ignore_common : share of the documents below 1, number of documents from 1 on; 0: no limit.
    least_shingles : a document that keeps fewer shingles is not compared.
    """

    template: NDArray[np.uint64]
    ignore_common: float = 0.0
    least_shingles: int = 1

    @property
    def params(self) -> FilterParams:
        """The parameters, as headers of artifacts have them."""
        return FilterParams(self.ignore_common, fingerprint(self.template), self.least_shingles)


def build_filter(run: Run, collection: Collection | None, request: FilterRequest) -> ShingleFilter:
    """Return the requested filter; count shingles of the unfiltered sets if it has a limit.

    collection : with its unfiltered sets; may be None if the request has no limit.

    Exact duplicates count once: a text is common if many different documents have it. Documents
    without tokens do not count.
    """
    if not request.ignore_common:
        return ShingleFilter(request.params, request.template, NO_SHINGLES)
    assert collection is not None
    assert collection.sets is not None
    duplicate_of = find_exact_duplicates(run, collection.fingerprints)
    members = documents_to_compare(run, duplicate_of, collection.sizes)
    least = find_least_count(request.ignore_common, len(members))
    common = find_common_shingles(run, collection.sets, members, least)
    return ShingleFilter(request.params, request.template, *common)


def filter_collection(
    run: Run,
    collection: Collection,
    shingle_filter: ShingleFilter,
    sketch: SketchParams | None = None,
    *,
    keep: bool = False,
) -> Collection:
    """Return the collection with filtered sets, and with their signatures if `sketch` is given.

    collection : with its unfiltered sets.
    keep : whether the filtered sets are kept beside the unfiltered ones.

    Memory: signatures, kept sets, and 4096 filtered sets a thread.
    """
    sets = collection.sets
    assert sets is not None
    n, arrays = len(sets), run.arrays
    sketcher = Sketcher(sketch) if sketch is not None else None
    signatures = arrays.empty((n, sketch.perms), np.uint32) if sketch is not None else None

    made: Columns = {name: arrays.empty(n, collection.columns[name].dtype) for name in WHOLE}

    def filter_piece(start: int) -> RaggedSets:
        rows = slice(start, min(start + _PIECE, n))
        filtered = shingle_filter.apply(
            RaggedSets(sets.values, sets.offsets[rows.start : rows.stop + 1])
        )
        if signatures is not None and sketcher is not None:
            signatures[rows] = sketcher.sketch(filtered)
        for name, column in set_columns(filtered, collection.shingle).items():
            made[name][rows] = column
        return filtered if keep else NO_SETS

    from concurrent.futures import ThreadPoolExecutor  # Imported here to keep `query` fast.

    with ThreadPoolExecutor(run.jobs) as pool:
        pieces = list(pool.map(filter_piece, range(0, max(n, 1), _PIECE)))
    columns = dict(collection.columns)
    for name, whole in WHOLE.items():
        columns[whole] = columns[name]
        columns[name] = made[name]
    return replace(
        collection,
        columns=columns,
        sets=RaggedSets.concatenate(pieces) if keep else None,
        sketch=sketch,
        signatures=signatures,
        unfiltered=Unfiltered(shingle_filter, sets, collection.identity),
        saved_identity="",
    )
