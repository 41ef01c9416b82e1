"""Files of records in a list of files -> their records, in the order of a list of documents."""

import os
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.document_list import DocumentList
from lshdup.documents.locations import Locations
from lshdup.documents.record_files import RecordFiles
from lshdup.documents.records import Kind, RecordError, RecordList, name_records
from lshdup.skipped import Reason, RecordLocation, Skipped, SkippedFile
from lshdup.utils.ragged import StringTable
from lshdup.utils.scratch import NoRoomError

#: Records of a file, by its path, size in bytes and time in nanoseconds; None: --split found none.
KnownRecords = Mapping[tuple[bytes, int, int], RecordList | None]


class _Piece(NamedTuple):
    """The documents of one file of records; `file` is its number."""

    names: StringTable
    file: int
    records: RecordList


def expand_records(
    files: DocumentList,
    kinds: Mapping[bytes, Kind],
    opened: RecordFiles,
    known_records: KnownRecords,
    on_skipped: Callable[[Skipped], None],
) -> DocumentList:
    """Replace files of records by their records.

    Of documents with the same name the first counts, in the order of files and records.

    Parameters
    ----------
    files : whole files, in byte order of their names.
    kinds : kind of the files with records.
    opened : reads the records.
    known_records : of earlier runs; such files are not read.
    on_skipped : notified of files and records that are no documents.

    """
    paths = list(files.names)
    kind = np.array([kinds.get(path, Kind.FILE) for path in paths], np.uint8)
    skipped_records: list[SkippedFile] = []

    def skip(file: int, each: Skipped, *location: int) -> None:
        on_skipped(each)
        stamp = int(files.sizes[file]), int(files.mtimes[file])
        place = RecordLocation(paths[file], *location)
        skipped_records.append(SkippedFile(each, *stamp, place))

    pieces = []
    for file in np.flatnonzero(kind).tolist():
        path = paths[file]
        key = path, int(files.sizes[file]), int(files.mtimes[file])
        try:
            records = known_records.get(key)
            if records is None and not (kind[file] == Kind.SPLIT and key in known_records):
                records = opened.list_records(path, Kind(int(kind[file])))
        except RecordError as error:
            on_skipped(Skipped(path, error.reason, error.detail))
        except OSError as error:
            on_skipped(Skipped.because(path, error))
        except NoRoomError as error:
            on_skipped(Skipped(path, Reason.UNREADABLE, f"{error.message}; {error.hint}"))
        else:
            if records is None:
                kind[file] = Kind.FILE
                if key[1] > files.max_bytes:
                    detail = f"{key[1]} bytes, --max-bytes is {files.max_bytes}"
                    on_skipped(Skipped(path, Reason.TOO_LARGE, detail))
                continue
            for number, reason, detail, name in records.skipped:
                skip(file, Skipped(name or b"%s:%d" % (path, number), reason, detail), number)
            names = records.names or name_records(path, records.numbers)[0]
            pieces.append(_Piece(names, file, records))
    whole = np.flatnonzero((kind == Kind.FILE) & (files.sizes <= files.max_bytes))
    names = files.names.take(whole)
    numbered = all(piece.records.names is None for piece in pieces)
    order = _order_of_blocks(names, paths, pieces) if numbered else None
    tables, lists = [names, *(piece.names for piece in pieces)], [piece.records for piece in pieces]
    every = StringTable.concatenate(tables)
    none = np.zeros(len(whole), np.int64)
    file_of = np.concatenate([whole, *(np.full(len(piece.names), piece.file) for piece in pieces)])
    numbers = np.concatenate([none, *(each.numbers for each in lists)])
    starts = np.concatenate([none, *(each.starts for each in lists)])
    lengths = np.concatenate([files.sizes[whole], *(each.lengths for each in lists)])
    if order is None:
        order, repeated = _order_of_names(every, file_of, numbers, paths)
        for index, each in repeated:
            columns = (int(column[index]) for column in (numbers, starts, lengths))
            skip(int(file_of[index]), each, *columns)
    place = Locations(files.names, kind, file_of, starts, lengths, numbers).take(order)
    return replace(
        files,
        names=every.take(order),
        sizes=files.sizes[place.file],
        mtimes=files.mtimes[place.file],
        locations=place,
        record_files=opened,
        skipped_records=tuple(skipped_records),
    )


def expand_mailboxes(
    documents: DocumentList, mailboxes: list[int], on_skipped: Callable[[SkippedFile], None]
) -> DocumentList:
    """Replace files that turned out to be mailboxes by their mails.

    documents : the list. mailboxes : numbers of whole files, ascending.
    on_skipped : notified of mailboxes and mails that are no documents.
    """
    place = documents.locations or Locations.of_files(documents.names, documents.sizes)
    kinds, paths, opened = place.kinds.copy(), list(place.paths), documents.record_files
    pieces: list[_Piece] = []
    for index in mailboxes:
        file = int(place.file[index])
        stamp = int(documents.sizes[index]), int(documents.mtimes[index])
        skip = partial(_skip_part, on_skipped, paths[file], stamp)
        kinds[file] = Kind.MBOX
        try:
            records = opened.list_records(documents.path(index), Kind.MBOX)
        except OSError as error:
            on_skipped(SkippedFile(Skipped.because(paths[file], error), *stamp))
            continue
        assert records is not None
        for number, reason, detail, name in records.skipped:
            name = name or b"%s:%d" % (paths[file], number)
            skip(Skipped(name, reason, detail), number)
        names = records.names or name_records(paths[file], records.numbers)[0]
        pieces.append(_Piece(names, index, records))
    others = np.delete(np.arange(len(documents)), mailboxes)
    tables = [documents.names.take(others), *(piece.names for piece in pieces)]
    names = StringTable.concatenate(tables)
    source = np.concatenate([others, *(np.full(len(piece.names), piece.file) for piece in pieces)])
    lists = [piece.records for piece in pieces]
    file_of = place.file[source]
    numbers = np.concatenate([place.numbers[others], *(each.numbers for each in lists)])
    starts = np.concatenate([place.starts[others], *(each.starts for each in lists)])
    lengths = np.concatenate([place.lengths[others], *(each.lengths for each in lists)])
    order, repeated = _order_of_names(names, file_of, numbers, paths)
    for index, each in repeated:
        at = int(source[index])
        stamp = int(documents.sizes[at]), int(documents.mtimes[at])
        where = (int(column[index]) for column in (numbers, starts, lengths))
        _skip_part(on_skipped, paths[int(file_of[index])], stamp, each, *where)
    return replace(
        documents,
        names=names.take(order),
        sizes=documents.sizes[source[order]],
        mtimes=documents.mtimes[source[order]],
        locations=Locations(place.paths, kinds, file_of, starts, lengths, numbers).take(order),
    )


def _skip_part(
    on_skipped: Callable[[SkippedFile], None],
    path: bytes,
    stamp: tuple[int, int],
    each: Skipped,
    *location: int,
) -> None:
    on_skipped(SkippedFile(each, *stamp, RecordLocation(path, *location)))


def _order_of_blocks(
    files: StringTable, paths: list[bytes], pieces: list[_Piece]
) -> NDArray[np.int64] | None:
    """Return the byte order of names in which the records of each file stand together, as nearly
    always.

    Return None if they do not, because a file is called like a record.
    """
    names = list(files)
    blocks, before, last = [], 0, b""
    at = len(names)
    places = {}
    for piece in pieces:
        places[paths[piece.file] + b":"] = at, piece
        at += len(piece.names)
    for key in sorted(places):
        cut = bisect_left(names, key)
        if (last and key.startswith(last)) or (cut < len(names) and names[cut].startswith(key)):
            return None
        first, piece = places[key]
        blocks += [np.arange(before, cut), first + name_records(key[:-1], piece.records.numbers)[1]]
        before, last = cut, key
    return np.concatenate([*blocks, np.arange(before, len(names))])


def _order_of_names(
    names: StringTable, file: NDArray[np.int64], numbers: NDArray[np.int64], paths: list[bytes]
) -> tuple[NDArray[np.int64], list[tuple[int, Skipped]]]:
    """Return the byte order of names, each once, and the documents whose names are repeated.

    Of equal names a whole file is the first, then the order is that of files and numbers.
    """
    every = list(names)
    order = np.lexsort((numbers, file, numbers > 0)).tolist()
    order.sort(key=every.__getitem__)
    again = [at for at in range(1, len(order)) if every[order[at]] == every[order[at - 1]]]
    first, repeated = -1, []
    for at in again:
        if first < 0 or every[order[at]] != every[first]:
            first = order[at - 1]
        here, there = (_place(paths, file, numbers, index) for index in (order[at], first))
        detail = f"{here}; the first is {there}"
        repeated.append((order[at], Skipped(every[order[at]], Reason.REPEATED, detail)))
    return np.delete(np.array(order, np.int64), again), repeated


def _place(
    paths: list[bytes], file: NDArray[np.int64], numbers: NDArray[np.int64], index: int
) -> str:
    path = os.fsdecode(paths[int(file[index])])
    return f"row {numbers[index]} of {path}" if numbers[index] else path
