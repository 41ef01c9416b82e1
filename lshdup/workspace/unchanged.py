"""Documents and skipped files that have not changed since an earlier run, and need not be read
again.
"""

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection, SkippedFile
from lshdup.documents.document_list import DocumentList
from lshdup.documents.records import Kind
from lshdup.skipped import Reason
from lshdup.utils.compression import is_lacking

#: Reasons in the content of a file: an unchanged file is skipped again without reading it.
_LASTING = {
    Reason.BINARY, Reason.FORMAT, Reason.UNDECODABLE, Reason.NOT_IDS, Reason.MARKUP, Reason.DAMAGED,
    Reason.NOT_JSON, Reason.NO_TEXT, Reason.NOT_TEXT, Reason.NO_READER, Reason.ENCRYPTED,
    Reason.SPOILT,
}  # fmt: skip


def find_unchanged(old: DocumentList, new: DocumentList) -> NDArray[np.int64]:
    """Return for each new document the same old one, or -1: int64 array.

    The same is a document with the same name, size, time and location.
    """
    if np.array_equal(old.names.offsets, new.names.offsets) and np.array_equal(
        old.names.blob, new.names.blob
    ):
        rows = np.arange(len(new))
    else:
        old_rows = {name: row for row, name in enumerate(old.names)}
        rows = np.fromiter((old_rows.get(name, -1) for name in new.names), np.int64, len(new))
    if not len(old) or (
        old.locations is None
        and new.locations is not None
        and (new.locations.kinds == Kind.IDS).any()
    ):
        return np.full(len(new), -1, np.int64)
    same = (rows >= 0) & (old.sizes[rows] == new.sizes) & (old.mtimes[rows] == new.mtimes)
    if old.locations is not None or new.locations is not None:
        same &= _have_same_location(old, rows, new)
    return np.where(same, rows, -1)


def _have_same_location(
    old: DocumentList, rows: NDArray[np.int64], new: DocumentList
) -> NDArray[np.bool_]:
    """Return whether new documents have the location of the old `rows`: a whole file, or the same
    part, read the same way.
    """
    whole = np.full(len(new), Kind.FILE, np.uint8)
    before = whole if old.locations is None else old.locations.kinds[old.locations.file[rows]]
    now = whole if new.locations is None else new.locations.kinds[new.locations.file]
    same: NDArray[np.bool_] = before == now
    parts = np.flatnonzero(same & (now != Kind.FILE))
    if old.locations is not None and new.locations is not None and len(parts):
        there = new.locations.same(parts, old.locations, rows[parts])
        same[parts] = there & ((now[parts] == Kind.IDS) | (old.record_fields == new.record_fields))
    return same


def count_known(collection: Collection, documents: DocumentList) -> int:
    """Return how many of the documents are unchanged documents of a collection."""
    return int(np.count_nonzero(find_unchanged(collection.documents, documents) >= 0))


def find_still_skipped(collection: Collection, documents: DocumentList) -> dict[bytes, SkippedFile]:
    """Return the unchanged files that are skipped because of their content, by name."""
    found = {}
    for each in collection.skipped:
        reason, name = each.skipped.reason, each.skipped.name
        # A package that was missing may be installed now.
        lacks_package = reason == Reason.FORMAT and is_lacking(each.skipped.detail)
        index = documents.names.find(name)
        if reason not in _LASTING or lacks_package or index is None:
            continue
        if documents.sizes[index] == each.size and documents.mtimes[index] == each.mtime:
            found[name] = each
    return found
