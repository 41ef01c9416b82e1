"""The two lists that people act on: names of what stays, and of what may go.

`clusters --emit` prints them, and the page of `report` saves them. What was not compared stays.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection
from lshdup.documents.document_list import DocumentList
from lshdup.documents.records import by_number

#: Names that are made at a time: few enough that they stay in a processor's cache.
_PIECE = 1 << 13


def names_to_keep(collection: Collection, dropped: NDArray[np.int64]) -> Iterator[list[bytes]]:
    """Yield the names of what stays, many at a time: documents in order, then `skipped_names`.

    dropped : ascending int64 array, the documents that may go.
    """
    stays = np.ones(len(collection.documents), bool)
    stays[dropped] = False
    yield from name_documents(collection.documents, np.flatnonzero(stays))
    yield skipped_names(collection)


def names_to_drop(
    documents: DocumentList, dropped: NDArray[np.int64], *, whole_files: bool = False
) -> Iterator[list[bytes]]:
    """Yield the names of what may go, many at a time, in the order of documents.

    dropped : ascending int64 array, the documents that may go.
    whole_files : leave out parts of files, which no program can move alone.
    """
    chosen = dropped[~documents.are_parts(dropped)] if whole_files else dropped
    return name_documents(documents, chosen)


def skipped_names(collection: Collection) -> list[bytes]:
    """Return the names of the files and records that are no documents, each once: they stay.

    What no option of the run took (hidden files, --exclude, symbolic links) is not among them.
    """
    every, typed = collection.list_skipped(), collection.documents.typed_skipped
    names = {typed(each) for each in every if each.skipped.reason.stays}
    return sorted(names, key=by_number)


def name_documents(documents: DocumentList, chosen: NDArray[np.int64]) -> Iterator[list[bytes]]:
    """Yield the names of documents as typed from the current folder, many at a time."""
    for start in range(0, len(chosen), _PIECE):
        yield documents.typed_names(chosen[start : start + _PIECE])
