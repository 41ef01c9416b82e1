"""The filter that a command requests: shingles of template files, and a limit for common
shingles.
"""

import os

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import distinct
from lshdup.collection.collect import collect
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import FilterRequest
from lshdup.errors import InputError
from lshdup.params import FEW_TOKENS, DocumentParams, ShingleParams
from lshdup.pipeline import EVERY_SET
from lshdup.shingling.shingle_filter import NO_SHINGLES
from lshdup.sources.finding import check_named, find_documents
from lshdup.workspace.context import RunContext
from lshdup.workspace.request import Request


def read_filter_request(
    run: RunContext, request: Request, shingle: ShingleParams, last: Collection | None = None
) -> FilterRequest | None:
    """Read the template files of a request and return its filter; None for no filter.

    Parameters
    ----------
    run : notified of template files that are skipped.
    request : templates and limit, as far as they were set explicitly.
    shingle : parameters of the sets to be filtered.
    last : collection with sets of these parameters, whose filter is the default; None: the default
        is no filter.

    Errors: InputError if no template holds text.

    """
    made = last.shingle_filter if last is not None else None
    limit = request.given.get("ignore_common", made.params.ignore_common if made else 0.0)
    template = made.template.copy() if made is not None else NO_SHINGLES
    tokens = request.given.get("min_tokens", shingle.min_tokens or FEW_TOKENS)
    least = shingle.count_shingles(tokens)
    if made is not None and "min_tokens" not in request.given:
        least = made.params.least_shingles
    least = request.given.get("least_shingles", least)  # the other side's
    if request.templates:
        template = _read_template(run, request, shingle)
    return FilterRequest(template, limit, least) if len(template) or limit else None


def _read_template(run: RunContext, request: Request, shingle: ShingleParams) -> NDArray[np.uint64]:
    """Return the shingles of the template files: uint64 array, ascending, without repeats."""
    hint = "name files with the texts to remove, or folders of them"
    check_named(request.templates, "--template ", hint, included=False)
    try:
        documents = find_documents(
            run,
            request.templates,
            DocumentParams(max_bytes=request.files.max_bytes),
            id_lists=shingle.tokens == "ids",
        )
    except InputError as error:
        message = f"--template {error.message}"
        raise InputError(message, hint) from None
    texts = collect(run, documents, shingle.of_any_size(), keep=EVERY_SET)
    for each in texts.skipped:
        run.skipped(each.skipped)
    assert texts.sets is not None
    shingles = distinct(texts.sets.values)[0]
    if not len(shingles):
        names = ", ".join(os.fsdecode(name) for name in request.templates)
        message = f"--template {names}: there is no text in it"
        raise InputError(message, hint)
    return shingles
