"""What has not changed since an earlier run, and so need not be read again. Called by fromdocuments.py."""

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection, SkippedFile
from lshdup.documents.document_list import DocumentList
from lshdup.documents.records import Kind
from lshdup.skipped import Reason
from lshdup.utils.compression import is_lacking

#: Left out because of what is in the file: no need to read it again while it is unchanged.
_LASTING = {
    Reason.BINARY, Reason.FORMAT, Reason.UNDECODABLE, Reason.NOT_IDS, Reason.MARKUP, Reason.DAMAGED, Reason.NOT_JSON, Reason.NO_TEXT,
    Reason.NOT_TEXT, Reason.NO_READER, Reason.ENCRYPTED, Reason.SPOILT,
}  # fmt: skip


def find_unchanged(old: DocumentList, new: DocumentList) -> NDArray[np.int64]:
    """For each new document the row of the old one with the same name, size, time and place, or -1: int64 array."""
    if np.array_equal(old.names.offsets, new.names.offsets) and np.array_equal(
        old.names.blob, new.names.blob
    ):
        rows = np.arange(len(new))
    else:
        places = {name: row for row, name in enumerate(old.names)}
        rows = np.fromiter((places.get(name, -1) for name in new.names), np.int64, len(new))
    if not len(old) or (
        old.locations is None
        and new.locations is not None
        and (new.locations.kinds == Kind.IDS).any()
    ):
        return np.full(len(new), -1, np.int64)
    same = (rows >= 0) & (old.sizes[rows] == new.sizes) & (old.mtimes[rows] == new.mtimes)
    if old.locations is not None or new.locations is not None:
        same &= _same_places(old, rows, new)
    return np.where(same, rows, -1)


def _same_places(
    old: DocumentList, rows: NDArray[np.int64], new: DocumentList
) -> NDArray[np.bool_]:
    """Whether new documents are where the old ones of those rows are: the whole of a file, or the same part of it, read the same way."""
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
    """How many of the documents are unchanged since."""
    return int(np.count_nonzero(find_unchanged(collection.documents, documents) >= 0))


def find_still_skipped(collection: Collection, documents: DocumentList) -> dict[bytes, SkippedFile]:
    """Unchanged files that are no documents because of what is in them, by name: they need not be read again."""
    still = {}
    for each in collection.skipped:
        lacked_a_package = each.skipped.reason == Reason.FORMAT and is_lacking(
            each.skipped.detail
        )  # which may be there now
        index = documents.names.find(each.skipped.name)
        if each.skipped.reason not in _LASTING or lacked_a_package or index is None:
            continue
        if documents.sizes[index] == each.size and documents.mtimes[index] == each.mtime:
            still[each.skipped.name] = each
    return still
