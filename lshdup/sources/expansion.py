"""Files of records in a list of documents -> their records, in the order of a list; lines of id
lists (a name, then integers: R4, R5) as documents.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, zip_longest
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup.base.compression import NoRoomError
from lshdup.base.ragged import StringTable
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, RecordLocation, Skipped, SkippedFile
from lshdup.base.system import blake2b
from lshdup.sources.document_list import DocumentList, Locations
from lshdup.sources.records import (
    ROWS,
    Kind,
    RecordError,
    RecordList,
    describe_too_large,
    name_records,
)
from lshdup.sources.text_batches import batches, read_batch

T = TypeVar("T")

#: Records of a file, by its path, size in bytes and time in nanoseconds; None: --split found none.
KnownRecords = Mapping[tuple[bytes, int, int], RecordList | None]


class _Piece(NamedTuple):
    """The records of one file with their names; `number` is that of the file as a document."""

    names: StringTable
    number: int
    records: RecordList


def expand_records(
    run: Run,
    documents: DocumentList,
    files: Mapping[bytes, Kind],
    known_records: KnownRecords = MappingProxyType({}),
) -> tuple[DocumentList, list[SkippedFile]]:
    """Return the documents with the records of files in the place of these files, and the files and
    records that are no documents; the latter have locations.

    Of documents with the same name a whole file is the first, then the order is that of files and
    records; only the first counts. A row that repeats its text too is a copy of it.

    Parameters
    ----------
    documents : in the order of a `DocumentList`.
    files : kinds of the files with records, by their names.
    known_records : of earlier runs; such files are not read.

    """
    place = documents.locations
    kinds, paths, arrays = place.kinds.copy(), place.paths, run.arrays
    pieces, replaced = list[_Piece](), list[int]()
    skipped: list[SkippedFile] = []

    def skip(index: int, each: Skipped, *location: int) -> None:
        stamp = int(documents.sizes[index]), int(documents.mtimes[index])
        path = paths[int(place.file[index])]
        record = RecordLocation(path, *location) if location else None
        skipped.append(SkippedFile(each, *stamp, record))

    names = sorted(files)
    for name, index in zip(names, documents.find_all(names), strict=True):
        if index < 0:
            continue
        kind, file = files[name], int(place.file[index])
        path, size = paths[file], int(documents.sizes[index])
        key = path, size, int(documents.mtimes[index])
        try:
            records = known_records.get(key)
            if records is None and not (kind.is_split and key in known_records):
                records = documents.record_files.list_records(
                    run, documents.path(index), kind, path
                )
        except RecordError as error:
            skip(index, Skipped(path, error.reason, error.detail))
        except OSError as error:
            skip(index, Skipped.because(path, error))
        except NoRoomError as error:
            skip(index, Skipped(path, Reason.UNREADABLE, f"{error.message}; {error.hint}"))
        else:
            if records is not None:
                for number, reason, detail, own in records.skipped:
                    skip(index, Skipped(own or b"%s:%d" % (path, number), reason, detail), number)
                own_names = records.names or name_records(run, path, records.numbers)
                pieces.append(_Piece(own_names, index, records))
                kind = records.kind or kind
            elif size <= documents.max_bytes:
                continue
            else:
                detail = describe_too_large(size, documents.max_bytes)
                skip(index, Skipped(path, Reason.TOO_LARGE, detail))
                kind = Kind.FILE
        kinds[file] = kind
        replaced.append(index)
    stays: NDArray[np.bool_] = arrays.full(len(documents), value=True, dtype=np.bool_)
    stays[replaced] = False
    others, numbers = arrays.find(stays), [piece.number for piece in pieces]
    cuts = [0, *np.searchsorted(others, numbers).tolist(), len(others)]
    rests = [others[start:end] for start, end in pairwise(cuts)]

    def joined(column: NDArray[np.int64], of_pieces: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        of_rests = [arrays.take(column, rest) for rest in rests]
        return arrays.concatenate(_alternate(of_rests, of_pieces))

    lists = [piece.records for piece in pieces]
    of_files = [arrays.full(len(each.names), each.number, np.int64) for each in pieces]
    source = arrays.concatenate(_alternate(rests, of_files))
    whole = [documents.names.take(rest, arrays) for rest in rests]
    found = replace(
        documents,
        names=StringTable.concatenate(_alternate(whole, [each.names for each in pieces]), arrays),
        sizes=arrays.take(documents.sizes, source),
        mtimes=arrays.take(documents.mtimes, source),
        parts=Locations(
            paths, kinds, arrays.take(place.file, source),
            joined(place.starts, [each.starts for each in lists]),
            joined(place.lengths, [each.lengths for each in lists]),
            joined(place.numbers, [each.numbers for each in lists]),
        ),
    )  # fmt: skip
    are_numbered = all(each.names is None for each in lists)
    if are_numbered and not any(paths.begins(paths[int(place.file[n])] + b":") for n in numbers):
        return found, skipped  # No two documents have the same name.
    found, repeated = _without_repeats(run, found)
    return found, skipped + repeated


def _alternate(rests: list[T], pieces: list[T]) -> list[T]:
    """Return each rest with the piece that follows it."""
    return [part for pair in zip_longest(rests, pieces) for part in pair][:-1]


def _without_repeats(run: Run, documents: DocumentList) -> tuple[DocumentList, list[SkippedFile]]:
    """Return the documents with each name once, and the records whose names are repeated."""
    place = documents.locations
    first_of: dict[int, int] = {}
    for rows in documents.names.repeats(run.arrays):
        first, *others = sorted(rows, key=lambda row: (place.numbers[row] > 0, row))
        first_of |= dict.fromkeys(others, first)
    if not first_of:
        return documents, []
    copies = _find_copies(run, documents, first_of)
    skipped = []
    for row, first in sorted(first_of.items()):
        reason = Reason.COPY if row in copies else Reason.REPEATED
        detail = f"{_describe(documents, row)}; the first is {_describe(documents, first)}"
        each = Skipped(documents.names[row], reason, detail)
        stamp = int(documents.sizes[row]), int(documents.mtimes[row])
        skipped.append(SkippedFile(each, *stamp, documents.record_location(row)))
    stays: NDArray[np.bool_] = run.arrays.full(len(documents), value=True, dtype=np.bool_)
    stays[list(first_of)] = False
    return documents.take(run, run.arrays.find(stays)), skipped


def _find_copies(run: Run, documents: DocumentList, first_of: Mapping[int, int]) -> set[int]:
    """Return the rows of repeated names that have the text of the first row of their name.

    first_of : the first row of each of the others of its name.
    """
    wanted = np.array(sorted({*first_of, *first_of.values()}), np.int64)
    prints: dict[int, bytes] = {}
    for indices in batches(run, documents, wanted[np.isin(documents.kinds_of(wanted), ROWS)]):
        batch = read_batch(documents, indices)
        for at, row in enumerate(batch.indices.tolist()):
            prints[row] = blake2b(batch.content(at), digest_size=16).digest()
    return {row for row in first_of.keys() & prints if prints[row] == prints.get(first_of[row])}


def _describe(documents: DocumentList, row: int) -> str:
    record = documents.record_location(row)
    if record is None:
        return os.fsdecode(documents.names[row])
    return f"row {record.number} of {os.fsdecode(record.path)}"


def list_lines(run: Run, files: DocumentList) -> DocumentList:
    """Return the lines of id lists as documents: names, and where the ids of each are."""
    found: dict[bytes, tuple[int, int, int]] = {}
    for at, path in enumerate(files.names):
        try:
            with open(path, "rb") as lines:  # noqa: PTH123 (bytes path)
                start = 0
                for number, line in enumerate(lines, 1):
                    name = next(iter(line.split(None, 1)), b"")
                    body = line.index(name) + len(name)
                    if name in found:
                        detail = f"line {number} of {os.fsdecode(path)}"
                        run.skipped(Skipped(name, Reason.REPEATED, detail))
                    elif name:
                        found[name] = (at, start + body, len(line) - body)
                    start += len(line)
        except OSError as error:
            run.skipped(Skipped.because(path, error))
    rows = np.array(list(found.values()), np.int64).reshape(-1, 3)
    file, starts, lengths = np.ascontiguousarray(rows.T)
    kinds = np.full(len(files), Kind.IDS, np.uint8)
    locations = Locations(files.names, kinds, file, starts, lengths, np.zeros(len(rows), np.int64))
    return DocumentList(
        StringTable.from_strings(found),
        files.sizes[file],
        files.mtimes[file],
        locations,
        max_bytes=files.max_bytes,
    )
