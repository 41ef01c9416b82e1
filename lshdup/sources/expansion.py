"""Files of records in a list of documents -> their records, in the order of a list."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import IN_MEMORY, Arrays
from lshdup.base.ragged import StringTable
from lshdup.base.scratch import NoRoomError
from lshdup.base.skipped import Reason, RecordLocation, Skipped, SkippedFile
from lshdup.sources.document_list import DocumentList
from lshdup.sources.files import Buffer
from lshdup.sources.locations import Locations
from lshdup.sources.reading import BATCH_BYTES, BATCH_DOCUMENTS, runs
from lshdup.sources.records import ROWS, Kind, RecordError, RecordList, name_records

#: Records of a file, by its path, size in bytes and time in nanoseconds; None: --split found none.
KnownRecords = Mapping[tuple[bytes, int, int], RecordList | None]


class _Piece(NamedTuple):
    """The records of one file with their names; `number` is that of the file as a document.

    order : the byte order of names that are numbered; empty for others.
    """

    names: StringTable
    path: bytes
    number: int
    records: RecordList
    order: NDArray[np.int64]


def expand_records(
    documents: DocumentList,
    files: Mapping[bytes, Kind],
    on_skipped: Callable[[SkippedFile], None],
    known_records: KnownRecords = MappingProxyType({}),
    arrays: Arrays = IN_MEMORY,
) -> DocumentList:
    """Replace files by their records.

    Of documents with the same name a whole file is the first, then the order is that of files and
    records; only the first counts. A row that repeats its text too is a copy of it.

    Parameters
    ----------
    documents : in byte order of their names.
    files : kinds of the files with records, by their names.
    on_skipped : notified of files and records that are no documents; the latter have locations.
    known_records : of earlier runs; such files are not read.
    arrays : makes the arrays of the list.

    """
    place = documents.locations or Locations.of_files(documents.names, documents.sizes)
    kinds, paths, opened = place.kinds.copy(), place.paths, documents.record_files
    pieces, replaced = [], []

    def skip(index: int, each: Skipped, *location: int) -> None:
        stamp = int(documents.sizes[index]), int(documents.mtimes[index])
        path = paths[int(place.file[index])]
        on_skipped(SkippedFile(each, *stamp, RecordLocation(path, *location) if location else None))

    for name in sorted(files):
        index, kind = documents.names.find(name), files[name]
        if index is None:
            continue
        file = int(place.file[index])
        path, size = paths[file], int(documents.sizes[index])
        key = path, size, int(documents.mtimes[index])
        try:
            records = known_records.get(key)
            if records is None and not (kind == Kind.SPLIT and key in known_records):
                records = opened.list_records(documents.path(index), kind, arrays)
        except RecordError as error:
            skip(index, Skipped(path, error.reason, error.detail))
        except OSError as error:
            skip(index, Skipped.because(path, error))
        except NoRoomError as error:
            skip(index, Skipped(path, Reason.UNREADABLE, f"{error.message}; {error.hint}"))
        else:
            if records is not None:
                for number, reason, detail, name in records.skipped:
                    name = name or b"%s:%d" % (path, number)
                    skip(index, Skipped(name, reason, detail), number)
                if records.names is not None:
                    mine, in_order = records.names, np.zeros(0, np.int64)
                else:
                    mine, in_order = name_records(path, records.numbers, arrays)
                pieces.append(_Piece(mine, path, index, records, in_order))
            elif size <= documents.max_bytes:
                continue
            else:
                detail = f"{size} bytes, --max-bytes is {documents.max_bytes}"
                skip(index, Skipped(path, Reason.TOO_LARGE, detail))
                kind = Kind.FILE
        kinds[file] = kind
        replaced.append(index)
    stays: NDArray[np.bool_] = arrays.full(len(documents), value=True, dtype=np.bool_)
    stays[replaced] = False
    others = arrays.find(stays)
    whole, lists = documents.names.take(others, arrays), [piece.records for piece in pieces]
    names = StringTable.concatenate([whole, *(piece.names for piece in pieces)], arrays)
    of_files = (arrays.full(len(each.names), each.number, np.int64) for each in pieces)
    source = arrays.concatenate([others, *of_files])
    file_of = arrays.take(place.file, source)
    numbers, starts, lengths = (
        arrays.concatenate([arrays.take(column, others), *parts])
        for column, parts in (
            (place.numbers, [each.numbers for each in lists]),
            (place.starts, [each.starts for each in lists]),
            (place.lengths, [each.lengths for each in lists]),
        )
    )
    numbered = all(each.names is None for each in lists)
    order = _order_of_blocks(whole, pieces, arrays) if numbered else None
    if order is None:
        order, repeated = _order_of_names(names, file_of, numbers, arrays)
        columns = _Rows(kinds, file_of, starts, lengths)
        copies = _find_copies(documents, source, columns, repeated)
        for index, first in repeated:
            here, there = (_place(paths, file_of, numbers, each) for each in (index, first))
            reason = Reason.COPY if index in copies else Reason.REPEATED
            each = Skipped(names[index], reason, f"{here}; the first is {there}")
            location = (int(column[index]) for column in (numbers, starts, lengths))
            skip(int(source[index]), each, *location)
    lists.clear()
    pieces.clear()  # Their memory is free before the arrays in order are made.
    locations = Locations(place.paths, kinds, file_of, starts, lengths, numbers)
    del file_of, starts, lengths, numbers
    locations, source = locations.take(order, arrays), arrays.take(source, order)
    return replace(
        documents,
        names=names.take(order, arrays),
        sizes=arrays.take(documents.sizes, source),
        mtimes=arrays.take(documents.mtimes, source),
        locations=locations,
    )


def _order_of_blocks(
    others: StringTable, pieces: list[_Piece], arrays: Arrays
) -> NDArray[np.int64] | None:
    """Return the byte order of names in which the records of each file stand together, as nearly
    always.

    Return None if they do not, because a file is called like a record.
    """
    blocks, before, last = [], 0, b""
    at = len(others)
    places = {}
    for piece in pieces:
        places[piece.path + b":"] = at, piece
        at += len(piece.names)
    for key in sorted(places):
        cut = others.bisect(key)
        if (last and key.startswith(last)) or (cut < len(others) and others[cut].startswith(key)):
            return None
        first, piece = places[key]
        in_place = arrays.copy(piece.order)
        in_place += first
        blocks += [np.arange(before, cut), in_place]
        before, last = cut, key
    return arrays.concatenate([*blocks, np.arange(before, len(others))])


def _order_of_names(
    names: StringTable, file: NDArray[np.int64], numbers: NDArray[np.int64], arrays: Arrays
) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
    """Return the byte order of names, each once, and the documents whose names are repeated, with
    the first of each name.

    Of equal names a whole file is the first, then the order is that of files and numbers.
    """
    keys = names.eight_bytes(arrays)
    order = arrays.order(
        len(names),
        [keys.__getitem__, lambda rows: numbers[rows] > 0, file.__getitem__, numbers.__getitem__],
    )
    keys = arrays.take(keys, order)
    again: list[int] = []
    repeated = []
    # Names that agree in the bytes of the key are one run, and few: only they become objects.
    agree: NDArray[np.bool_] = arrays.zeros(len(keys) + 1, np.bool_)
    np.equal(keys[1:], keys[:-1], out=agree[1:-1])
    changes = arrays.find(agree[1:] != agree[:-1]).tolist()
    for start, end in zip(changes[::2], changes[1::2], strict=True):
        run = slice(start, end + 1)
        every = dict(zip(order[run].tolist(), names.strings_at(order[run]), strict=True))
        mine = sorted(every, key=every.__getitem__)
        order[run] = mine
        first = mine[0]
        for at, index in enumerate(mine[1:], start + 1):
            if every[index] != every[first]:
                first = index
                continue
            repeated.append((index, first))
            again.append(at)
    if again:
        stays: NDArray[np.bool_] = arrays.full(len(order), value=True, dtype=np.bool_)
        stays[again] = False
        order = arrays.take(order, arrays.find(stays))
    return order, repeated


class _Rows(NamedTuple):
    """Where documents are: columns of `Locations`."""

    kinds: NDArray[np.uint8]
    file: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


def _find_copies(
    documents: DocumentList, source: NDArray[np.int64], rows: _Rows, repeated: list[tuple[int, int]]
) -> set[int]:
    """Return the rows of repeated names that have the text of the first row of their name.

    documents, source : the files, and the one that each row is of.
    repeated : rows, each with the first one of its name.
    """
    wanted = np.unique(np.array(repeated, np.int64))
    wanted = wanted[np.isin(rows.kinds[rows.file[wanted]], ROWS)]
    wanted = wanted[np.lexsort((rows.starts[wanted], rows.file[wanted]))]
    prints: dict[int, bytes] = {}
    for mine in np.split(wanted, np.flatnonzero(np.diff(rows.file[wanted])) + 1):
        for batch in runs(rows.lengths[mine], BATCH_DOCUMENTS, BATCH_BYTES):
            some = mine[batch]
            path, kind = (
                documents.path(int(source[some[0]])),
                Kind(int(rows.kinds[rows.file[some[0]]])),
            )
            spans = rows.starts[some], rows.lengths[some]
            with suppress(OSError, RecordError):
                data, starts, sizes, failed = documents.record_files.texts(
                    path, kind, *spans, Buffer()
                )
                texts = zip(some.tolist(), starts, starts + sizes, strict=True)
                for at, (row, start, end) in enumerate(texts):
                    if at not in failed:
                        prints[row] = blake2b(data[start:end].tobytes(), digest_size=16).digest()
    return {row for row, first in repeated if row in prints and prints[row] == prints.get(first)}


def _place(
    paths: StringTable, file: NDArray[np.int64], numbers: NDArray[np.int64], index: int
) -> str:
    path = os.fsdecode(paths[int(file[index])])
    return f"row {numbers[index]} of {path}" if numbers[index] else path
