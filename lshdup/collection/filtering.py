"""Filters of a collection: shingles of templates and common shingles leave every set."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.params import DocumentParams, ShingleParams, SketchParams
from lshdup.base.ragged import RaggedSets, distinct
from lshdup.base.run import Run, run_in_parts
from lshdup.collection.collect import EVERY_SET, collect
from lshdup.collection.collection import WHOLE, Collection, Columns, set_columns
from lshdup.errors import InputError
from lshdup.lsh.candidates import documents_to_compare, find_exact_duplicates
from lshdup.lsh.signatures import Sketcher
from lshdup.shingling.shingle_filter import ShingleFilter, find_common_shingles, find_least_count
from lshdup.sources.document_list import DocumentList
from lshdup.sources.finding import check_named, find_documents

#: Sets that a thread filters together.
_PIECE = 4096


def read_template(
    run: Run,
    templates: Sequence[bytes],
    max_bytes: int,
    shingle: ShingleParams,
    accept: Callable[[DocumentList], None],
) -> NDArray[np.uint64]:
    """Return the shingles of template files: uint64 array, ascending, without repeats.

    accept : notified of the files before they are read.

    Errors: InputError if no template holds text.
    """
    hint = "name files with the texts to remove, or folders of them"
    check_named(templates, "--template ", hint, included=False)
    id_lists, params = shingle.tokens == "ids", DocumentParams(max_bytes=max_bytes)
    try:
        documents = find_documents(run, templates, params, id_lists=id_lists)
    except InputError as error:
        message = f"--template {error.message}"
        raise InputError(message, hint) from None
    accept(documents)
    texts = collect(run, documents, shingle.of_any_size(), keep=EVERY_SET)
    for each in texts.skipped:
        run.skipped(each.skipped)
    assert texts.sets is not None
    shingles = distinct(texts.sets.values)[0]
    if not len(shingles):
        message = f"--template {', '.join(map(os.fsdecode, templates))}: there is no text in it"
        raise InputError(message, hint)
    return shingles


def build_filter(run: Run, collection: Collection, requested: ShingleFilter) -> ShingleFilter:
    """Return the requested filter; count shingles of the unfiltered sets if it has a limit.

    collection : with its unfiltered sets.

    Exact duplicates count once: a text is common if many different documents have it. Documents
    without tokens do not count.
    """
    if not requested.params.ignore_common:
        return requested
    assert collection.sets is not None
    duplicate_of = find_exact_duplicates(run, collection.fingerprints)
    members = documents_to_compare(run, duplicate_of, collection.sizes)
    least = find_least_count(requested.params.ignore_common, len(members))
    common, counts = find_common_shingles(run, collection.sets, members, least)
    return replace(requested, common=common, counts=counts)


def filter_collection(
    run: Run,
    collection: Collection,
    shingle_filter: ShingleFilter,
    sketch: SketchParams | None = None,
) -> Collection:
    """Return the collection with a filter, and with signatures if `sketch` is given.

    collection : with its sets, and without a filter.

    Memory: signatures, and 4096 filtered sets a thread.
    """
    sets = collection.sets
    assert sets is not None
    n, arrays = len(sets), run.arrays
    sketcher = Sketcher(sketch) if sketch is not None else None
    signatures = arrays.empty((n, sketch.perms), np.uint32) if sketch is not None else None

    made: Columns = {name: arrays.empty(n, collection.columns[name].dtype) for name in WHOLE}

    def filter_pieces(part: slice) -> None:
        for start in range(part.start, part.stop, _PIECE):
            rows = slice(start, min(start + _PIECE, part.stop))
            filtered = shingle_filter.apply(
                RaggedSets(sets.values, sets.offsets[rows.start : rows.stop + 1])
            )
            if signatures is not None and sketcher is not None:
                signatures[rows] = sketcher.sketch(filtered)
            for name, column in set_columns(filtered, collection.shingle).items():
                made[name][rows] = column

    run_in_parts(n, run.jobs, filter_pieces)
    columns = dict(collection.columns)
    for name, whole in WHOLE.items():
        columns[whole] = columns[name]
        columns[name] = made[name]
    return replace(
        collection,
        columns=columns,
        sketch=sketch,
        signatures=signatures,
        shingle_filter=shingle_filter,
        saved_identity="",
        saved_whole_identity=collection.identity,
    )
