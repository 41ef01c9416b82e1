"""What a run was asked to remove from the sets: the texts of templates, and the limit from which a shingle is common.

Which shingles that are, `pipeline.build_filter` says; what is left of the sets, `collection.filter_collection`. Called by context.py.
"""

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collect import collect
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import FilterRequest
from lshdup.documents.document_list import Skipped
from lshdup.documents.finding import find_documents
from lshdup.documents.missing import check_named
from lshdup.errors import ArtifactError, InputError
from lshdup.params import DocumentParams, ShingleParams, SketchParams
from lshdup.shingling.shingle_filter import NO_SHINGLES
from lshdup.store.collection_io import corpus_id, unfiltered_id
from lshdup.utils.ragged import distinct


def has_made(
    stored: Collection, unfiltered: Collection, request: FilterRequest, sketch: SketchParams
) -> bool:
    """Return whether stored signatures are those of these unfiltered sets and this filter: then nothing is counted again."""
    made = stored.shingle_filter.params if stored.shingle_filter is not None else None
    same = made == request.params and stored.sketch == sketch
    same = same and stored.shingle == unfiltered.shingle
    return same and unfiltered_id(stored) == corpus_id(unfiltered)


def filter_requested(
    template: NDArray[np.uint64] | None,
    ignore_common: float | None,
    params: ShingleParams,
    last: Collection | None = None,
) -> FilterRequest | None:
    """What is given, over what was removed in the last run; None: nothing.

    template, ignore_common : None where nothing was said of it. Raises ArtifactError if the templates of the last run are wanted, but were
    made to shingles by other parameters.
    """
    shingle_filter = last.shingle_filter if last is not None else None
    if template is None:
        template = NO_SHINGLES
        if last is not None and shingle_filter is not None and len(shingle_filter.template):
            if last.shingle != params:
                message = "the last run had a --template, read by other options than these"
                raise ArtifactError(message, "give --template again, or name DOCS")
            template = shingle_filter.template.copy()
    if ignore_common is None:
        ignore_common = shingle_filter.params.ignore_common if shingle_filter is not None else 0.0
    return FilterRequest(template, ignore_common) if len(template) or ignore_common else None


def template_shingles(
    names: tuple[bytes, ...],
    files: DocumentParams,
    params: ShingleParams,
    jobs: int,
    on_skipped: Callable[[Skipped], None],
) -> NDArray[np.uint64]:
    """The shingles of the texts in these files and folders: uint64 array, ascending, without repeats.

    Raises InputError if there is nothing at all. on_skipped : told each file that could not be taken.
    """
    hint = "name files with the texts to remove, or folders of them"
    check_named(names, "--template ", hint, included=False)
    try:
        texts = find_documents(
            names, files, id_lists=params.tokens == "ids", jobs=jobs, on_skipped=on_skipped
        )
    except InputError as error:
        message = f"--template {error.message}"
        raise InputError(message, hint) from None
    made = collect(texts, params, jobs=jobs, keep=1 << 62)
    for each in made.skipped:
        on_skipped(each.skipped)
    assert made.sets is not None
    shingles = distinct(made.sets.values)[0]
    if not len(shingles):
        message = (
            f"--template {', '.join(os.fsdecode(name) for name in names)}: there is no text in it"
        )
        raise InputError(message, hint)
    return shingles
