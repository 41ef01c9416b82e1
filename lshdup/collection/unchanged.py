"""Documents and skipped files that have not changed since an earlier run, and need not be read
again.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.compression import is_lacking
from lshdup.base.memory import rows_of
from lshdup.base.params import DocumentParams
from lshdup.base.ragged import StringTable
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, SkippedFile
from lshdup.collection.collection import Collection
from lshdup.sources.document_list import DocumentList
from lshdup.sources.expansion import KnownRecords
from lshdup.sources.records import Kind, RecordFields, RecordList, SkippedRecord, most_unpacked

#: Reasons in the content of a file: an unchanged file is skipped again without reading it.
_LASTING = {
    Reason.BINARY, Reason.FORMAT, Reason.UNDECODABLE, Reason.NOT_IDS, Reason.MARKUP, Reason.DAMAGED,
    Reason.NOT_JSON, Reason.NO_TEXT, Reason.NULL_TEXT, Reason.NOT_TEXT, Reason.NO_READER,
    Reason.ENCRYPTED, Reason.SPOILT, Reason.BROKEN_ROW,
}  # fmt: skip

_NO_ROWS = np.zeros(0, np.int64)


def find_unchanged(run: Run, old: DocumentList, new: DocumentList) -> NDArray[np.int64]:
    """Return for each new document the same old one, or -1: int64 array.

    The same is a document with the same name, size and time in the same place: a whole file, or the
    same part of one, read the same way.
    """
    arrays = run.arrays
    if not len(old) or (old.parts is None and not new.are_paths()):
        return arrays.full(len(new), -1, np.int64)
    rows = old.names.match(new.names, arrays)
    same_fields = old.record_fields == new.record_fields
    are_same = new.parts.same_as(old.parts) if old.parts and new.parts else None

    def unchanged(some: slice) -> NDArray[np.int64]:
        mine, theirs = rows_of(some), rows[some]
        kinds = new.kinds_of(mine)
        same = (theirs >= 0) & (old.sizes[theirs] == new.sizes[some])
        same &= (old.mtimes[theirs] == new.mtimes[some]) & (old.kinds_of(theirs) == kinds)
        parts = np.flatnonzero(same & (kinds != Kind.FILE))
        if are_same is not None and len(parts):
            there = are_same(mine[parts], theirs[parts])
            same[parts] = there & ((kinds[parts] == Kind.IDS) | same_fields)
        return np.where(same, theirs, -1)

    return arrays.compute(len(new), np.int64, unchanged)


def find_still_skipped(collection: Collection, documents: DocumentList) -> dict[int, SkippedFile]:
    """Return the unchanged files that are skipped because of their content, by their index."""
    found = {}
    indices = documents.find_all([each.skipped.name for each in collection.skipped])
    for each, index in zip(collection.skipped, indices, strict=True):
        reason = each.skipped.reason
        # A package that was missing may be installed now.
        lacks_package = reason == Reason.FORMAT and is_lacking(each.skipped.detail)
        if reason not in _LASTING or lacks_package or index < 0:
            continue
        stamp = int(documents.sizes[index]), int(documents.mtimes[index])
        if (*stamp, documents.record_location(index)) == (each.size, each.mtime, each.record):
            found[index] = each
    return found


def find_known_records(run: Run, collection: Collection, params: DocumentParams) -> KnownRecords:
    """Return the records of the files of a collection, as listing these files would return them.

    Nothing is known of files without any record, and of files that are listed in another way with
    this limit of bytes. Of files that --split did not cut, that is known. Cost: one sort of the
    records.
    """
    arrays = run.arrays
    documents, locations = collection.documents, collection.documents.locations
    fields = RecordFields.of(params)
    if documents.parts is None or documents.record_fields != fields:
        return {}
    skipped: dict[tuple[bytes, int, int], list[SkippedFile]] = {}
    for each in collection.skipped + documents.skipped:
        if each.record is not None:
            skipped.setdefault((each.record.path, each.size, each.mtime), []).append(each)
    known = {
        key: _list_records(run, documents, _NO_ROWS, some, named=True)
        for key, some in skipped.items()
    }
    rows = arrays.find(locations.are_records())
    rows = arrays.take(rows, arrays.order(len(rows), [lambda at: locations.file[rows[at]]]))
    files = arrays.take(locations.file, rows)
    for part in np.split(rows, np.flatnonzero(files[1:] != files[:-1]) + 1):
        if len(part):
            stamp = int(documents.sizes[part[0]]), int(documents.mtimes[part[0]])
            number = int(locations.file[part[0]])
            key = (locations.paths[number], *stamp)
            kind = Kind(int(locations.kinds[number]))
            named = bool(fields.id) or kind.is_archive or kind.is_section
            mine = skipped.get(key, [])
            records = _list_records(run, documents, part, mine, named=named)
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
    most, limit = params.max_bytes, f"--max-bytes is {params.max_bytes}"
    for key, records in known.items():
        lengths, starts = records.lengths, records.starts
        large = [skip.detail for skip in records.skipped if skip.reason == Reason.TOO_LARGE]
        fits = lengths.max(initial=0) <= most and all(each.endswith(limit) for each in large)
        if records.kind.is_archive:
            fits = fits and int(lengths.sum()) <= most_unpacked(key[1], most)
        if fits and min(starts.min(initial=0), lengths.min(initial=0)) >= 0:
            whole[key] = records
    return whole


def _list_records(
    run: Run,
    documents: DocumentList,
    rows: NDArray[np.int64],
    skipped: list[SkippedFile],
    *,
    named: bool,
) -> RecordList:
    """Return the records of a file: the documents at `rows`, and skipped records.

    named : whether they have names of their own.
    """
    arrays = run.arrays
    listed, unlisted, names = list[tuple[int, ...]](), [], []
    for each in skipped:
        assert each.record is not None
        skip = each.skipped
        if each.record.start < 0:
            unlisted.append(SkippedRecord(each.record.number, skip.reason, skip.detail, skip.name))
        else:
            listed.append(each.record[1:])
            names.append(skip.name)
    known = documents.locations.take(run, rows)
    others = np.array(listed, np.int64).reshape(-1, 3).T
    numbers, starts, lengths = (
        arrays.concatenate(each)
        for each in zip((known.numbers, known.starts, known.lengths), others, strict=True)
    )
    table = None
    if named:
        tables = documents.names.take(rows, arrays), StringTable.from_strings(names)
        table = StringTable.concatenate(tables, arrays)
    records = RecordList(numbers, starts, lengths, table, sorted(unlisted))
    return records.take(run, arrays.order(len(numbers), [numbers.__getitem__]))
