"""The two lists that people act on: names of what stays, and of what may go.

`clusters --emit` prints them, and the page of `report` saves them. What was not compared stays.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from lshdup.base.memory import IN_MEMORY, slices_of
from lshdup.collection.collection import Collection
from lshdup.sources.document_list import DocumentList, find_in_lists

#: Bytes of what is made for a name, about: names of a slice stay in a processor's cache.
_NAME_BYTES = 256

_NONE = np.zeros(0, np.int64)


def names_to_keep(
    collection: Collection, dropped: NDArray[np.int64], lost: NDArray[np.int64] = _NONE
) -> Iterator[list[bytes]]:
    """Yield the names of what stays, many at a time: documents in order, then `skipped_names`.

    dropped : ascending int64 array, the documents that may go.
    lost : int64 array, documents that changed meanwhile: they stay, unless they are gone.
    """
    documents = collection.documents
    stays = np.ones(len(documents), bool)
    stays[dropped] = False
    for row in lost[lost < len(documents)].tolist():
        stays[row] = os.path.lexists(documents.path(row))
    yield from name_documents(documents, np.flatnonzero(stays))
    yield skipped_names(collection)


def skipped_names(collection: Collection) -> list[bytes]:
    """Return the names of the files and records that are no documents, each once: they stay.

    What no option of the run took (hidden files, --exclude, symbolic links) is not among them.
    """
    every, typed = collection.list_skipped(), collection.documents.typed_skipped
    stays = (each for each in every if each.skipped.reason.stays)
    return list(dict.fromkeys(map(typed, sorted(stays, key=lambda each: each.place))))


def count_hard_links(
    lists: Sequence[DocumentList], dropped: NDArray[np.int64], kept: NDArray[np.int64]
) -> int:
    """Return how many documents are the same file as the one that is kept: removing one frees
    nothing.

    Only files of equal size and time are looked at.

    lists : the documents of all sides, numbered from the first list to the last.
    dropped, kept : int64 arrays of shape (n,), documents that may go, and the one of each group.
    """
    sizes = IN_MEMORY.concatenate([each.sizes for each in lists])
    times = IN_MEMORY.concatenate([each.mtimes for each in lists])
    alike = (sizes[dropped] == sizes[kept]) & (times[dropped] == times[kept])
    alike &= ~lists[0].are_parts(dropped)
    links = 0
    for pair in zip(dropped[alike].tolist(), kept[alike].tolist(), strict=True):
        a, b = (
            documents.path(row) for documents, row in (find_in_lists(lists, each) for each in pair)
        )
        with suppress(OSError):
            links += os.path.samestat(os.stat(a), os.stat(b))
    return links


def name_documents(documents: DocumentList, chosen: NDArray[np.int64]) -> Iterator[list[bytes]]:
    """Yield the names of documents as typed from the current folder, many at a time."""
    for some in slices_of(len(chosen), _NAME_BYTES):
        yield documents.typed_names(chosen[some])
