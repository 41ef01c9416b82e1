"""Documents and skipped files that have not changed since an earlier run, and need not be read
again.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection
from lshdup.documents.document_list import DocumentList
from lshdup.documents.expansion import KnownRecords
from lshdup.documents.readers.members import most_unpacked
from lshdup.documents.records import Kind, RecordFields, RecordList, SkippedRecord
from lshdup.params import DocumentParams
from lshdup.skipped import Reason, SkippedFile
from lshdup.utils.compression import is_lacking
from lshdup.utils.ragged import StringTable

#: Reasons in the content of a file: an unchanged file is skipped again without reading it.
_LASTING = {
    Reason.BINARY, Reason.FORMAT, Reason.UNDECODABLE, Reason.NOT_IDS, Reason.MARKUP, Reason.DAMAGED,
    Reason.NOT_JSON, Reason.NO_TEXT, Reason.NULL_TEXT, Reason.NOT_TEXT, Reason.NO_READER,
    Reason.ENCRYPTED, Reason.SPOILT, Reason.BROKEN_ROW,
}  # fmt: skip

_NO_ROWS = np.zeros(0, np.int64)


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
        stamp = int(documents.sizes[index]), int(documents.mtimes[index])
        if (*stamp, documents.record_location(index)) == (each.size, each.mtime, each.record):
            found[name] = each
    return found


def find_known_records(collection: Collection, params: DocumentParams) -> KnownRecords:
    """Return the records of the files of a collection, as listing these files would return them.

    Nothing is known of files without any record, and of files that are listed in another way with
    this limit of bytes. Of files that --split did not cut, that is known. Cost: one sort of the
    records.
    """
    documents, locations = collection.documents, collection.documents.locations
    fields = RecordFields.of(params)
    if locations is None or documents.record_fields != fields:
        return {}
    skipped: dict[tuple[bytes, int, int], list[SkippedFile]] = {}
    for each in collection.skipped + documents.skipped_records:
        if each.record is not None:
            skipped.setdefault((each.record.path, each.size, each.mtime), []).append(each)
    known = {
        key: _list_records(documents, _NO_ROWS, some, named=bool(fields.id))
        for key, some in skipped.items()
    }
    rows = np.flatnonzero(locations.are_records())
    rows = rows[np.argsort(locations.file[rows], kind="stable")]
    for run in np.split(rows, np.flatnonzero(np.diff(locations.file[rows])) + 1):
        if len(run):
            stamp = int(documents.sizes[run[0]]), int(documents.mtimes[run[0]])
            number = int(locations.file[run[0]])
            key = (locations.paths[number], *stamp)
            kind = Kind(int(locations.kinds[number]))
            named = bool(fields.id) or kind.is_archive
            records = _list_records(documents, run, skipped.get(key, []), named=named)
            known[key] = replace(records, kind=kind)
    whole: dict[tuple[bytes, int, int], RecordList | None] = {}
    if fields.split:
        is_file = ~locations.are_records()
        for row in np.flatnonzero(is_file).tolist():
            stamp = int(documents.sizes[row]), int(documents.mtimes[row])
            whole[documents.names[row], *stamp] = None
        for each in collection.skipped:
            if each.record is None:
                whole[each.skipped.name, each.size, each.mtime] = None
    limit = f"--max-bytes is {params.max_bytes}"
    return whole | {
        key: records
        for key, records in known.items()
        if min(records.starts.min(initial=0), records.lengths.min(initial=0)) >= 0
        and records.lengths.max(initial=0) <= params.max_bytes
        and (
            not records.kind.is_archive
            or int(records.lengths.sum()) <= most_unpacked(key[1], params.max_bytes)
        )
        and all(
            reason != Reason.TOO_LARGE or detail.endswith(limit)
            for _, reason, detail, _ in records.skipped
        )
    }


def _list_records(
    documents: DocumentList, rows: NDArray[np.int64], skipped: list[SkippedFile], *, named: bool
) -> RecordList:
    """Return the records of a file: the documents at `rows`, and skipped records.

    named : whether they have names of their own.
    """
    assert documents.locations is not None
    locations = documents.locations.take(rows)
    columns = np.stack([locations.numbers, locations.starts, locations.lengths], axis=1)
    names = documents.names.strings_at(rows) if named else []
    listed, unlisted = [], []
    for each in skipped:
        assert each.record is not None
        skip = each.skipped
        if each.record.start < 0:
            unlisted.append(SkippedRecord(each.record.number, skip.reason, skip.detail, skip.name))
        else:
            listed.append(each.record[1:])
            names.append(skip.name)
    if listed:
        columns = np.concatenate([columns, np.array(listed, np.int64)])
    order = np.argsort(columns[:, 0])
    numbers, starts, lengths = np.ascontiguousarray(columns[order].T)
    table = None
    if named:
        table = StringTable.from_strings(names[index] for index in order.tolist())
    return RecordList(numbers, starts, lengths, table, sorted(unlisted))
