"""Completion of document names: a shell asks `lshdup` for them through Click."""

import os
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from lshdup.sources.document_list import DocumentList

#: More candidates than this help nobody to choose one.
MOST_CANDIDATES = 300


def complete_document(
    ctx: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the documents of the store whose names begin with `incomplete`; without any, files.

    Names that are not UTF-8, or hold control characters, are skipped: Click cannot pass them on.
    """
    from lshdup.errors import LshdupError
    from lshdup.store.store import nearest_store, refuse_link
    from lshdup.workspace.workspace import Workspace

    typed = ctx.params.get("store")
    store = Path(typed or nearest_store())
    names: list[bytes] = []
    try:
        if not typed:
            refuse_link(store)
        from lshdup.base.run import Run

        collection = Workspace(Run.quiet(), store, read_only=True).load_last_collection()
        if collection is not None:
            names = find_names(collection.documents, os.fsencode(incomplete))
    except (LshdupError, OSError):
        pass  # A shell that completes a word has no place for errors.
    texts = (os.fsdecode(name) for name in names)
    items = [CompletionItem(text) for text in texts if text.isprintable()]
    return items or [CompletionItem(incomplete, type="file")]


def find_names(documents: "DocumentList", start: bytes) -> list[bytes]:
    """Return the names, as typed from the current folder, that begin with `start`.

    Of more than `MOST_CANDIDATES` names the first ones and the last one are returned: their
    common beginning is that of all, which is what a shell completes to.

    Cost: two binary searches and `MOST_CANDIDATES` names.
    """
    import numpy as np

    folder = b""  # the way from here to where names start from
    if documents.home and documents.are_paths():
        folder = os.path.relpath(documents.home) + b"/"
    if not (start.startswith(folder) or folder.startswith(start)):
        return []
    rest = start[len(folder) :]
    first = bisect_left(documents.names, rest)
    end = bisect_right(documents.names, rest, first, key=lambda name: name[: len(rest)])
    numbers = np.arange(first, min(end, first + MOST_CANDIDATES))
    if len(numbers) == MOST_CANDIDATES:
        numbers[-1] = end - 1
    return documents.typed_names(numbers)
