"""Where documents are that are parts of files, and how records come into the list of documents."""

import os
from bisect import bisect_left
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.record_files import RecordFiles
from lshdup.documents.records import Kind, RecordError, RecordList, name_records
from lshdup.skipped import Reason, Skipped
from lshdup.utils.ragged import StringTable, offsets_of
from lshdup.utils.scratch import NoRoomError

#: Records of a file, by its path, size in bytes and time in nanoseconds.
KnownRecords = MutableMapping[tuple[bytes, int, int], RecordList]


@dataclass(frozen=True)
class Locations:
    """Where n documents are, if not every one is a file of its own.

    paths : m files.
    kinds : uint8 array of shape (m,), the `Kind` of the documents in each file.
    file : int64 array of shape (n,), number of the file of each document.
    starts, lengths : int64 arrays of shape (n,), first byte and number of bytes; of Parquet, the
        number of rows before the record and the bytes of an average text.
    """

    paths: StringTable
    kinds: NDArray[np.uint8]
    file: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def take(self, indices: NDArray[np.int64]) -> "Locations":
        """Return the locations of the documents at `indices`, in that order."""
        return Locations(
            self.paths, self.kinds, self.file[indices], self.starts[indices], self.lengths[indices]
        )

    @classmethod
    def joined(cls, parts: list["Locations"]) -> "Locations":
        """Return the locations of the documents of all parts, one after the other."""
        paths: dict[tuple[bytes, int], int] = {}
        files = []
        for part in parts:
            numbers = [
                paths.setdefault(each, len(paths))
                for each in zip(part.paths, part.kinds.tolist(), strict=True)
            ]
            files.append(np.array(numbers, np.int64)[part.file])
        return cls(
            StringTable.from_strings(path for path, _ in paths),
            np.array([kind for _, kind in paths], np.uint8),
            np.concatenate(files),
            np.concatenate([part.starts for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )

    def are_records(self) -> NDArray[np.bool_]:
        """Return which documents are records: bool array of shape (n,)."""
        rows: NDArray[np.bool_] = (self.kinds >= Kind.JSON)[self.file]
        return rows

    def same(
        self, mine: NDArray[np.int64], other: "Locations", theirs: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return whether documents `mine` are where documents `theirs` of another list are: bool
        array.
        """
        numbers = {
            each: number
            for number, each in enumerate(zip(other.paths, other.kinds.tolist(), strict=True))
        }
        here = np.array(
            [numbers.get(each, -1) for each in zip(self.paths, self.kinds.tolist(), strict=True)],
            np.int64,
        )
        same: NDArray[np.bool_] = here[self.file[mine]] == other.file[theirs]
        same &= (self.starts[mine] == other.starts[theirs]) & (
            self.lengths[mine] == other.lengths[theirs]
        )
        return same

    def reading_order(self, indices: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return indices in runs of one kind, in the order of files and of locations in them.

        So every file is read from front to back.
        """
        file = self.file[indices]
        kinds = self.kinds[file]
        order = np.lexsort((self.starts[indices], file, kinds))
        return (
            np.split(indices[order], np.flatnonzero(np.diff(kinds[order])) + 1)
            if len(indices)
            else []
        )


@dataclass(frozen=True)
class _Piece:
    """Documents of one file of records, or, without records, all whole files."""

    names: StringTable
    file: int
    records: RecordList | None = None


def expand_records(
    names: StringTable,
    sizes: NDArray[np.int64],
    mtimes: NDArray[np.int64],
    kinds: Mapping[bytes, Kind],
    opened: RecordFiles,
    known_records: KnownRecords,
    on_skipped: Callable[[Skipped], None],
) -> tuple[StringTable, NDArray[np.int64], NDArray[np.int64], Locations]:
    """Replace files of records by their records; return names, sizes, times and locations in order.

    Of documents with the same name the first counts, in the order of files and records.

    Parameters
    ----------
    names, sizes, mtimes : n files in byte order; int64 arrays of shape (n,).
    kinds : kind of the files with records.
    opened : reads the records.
    known_records : of earlier runs; such files are not read. Afterwards the records of these files.
    on_skipped : notified of files and records that are no documents.

    """
    paths = list(names)
    kind = np.array([kinds.get(path, Kind.FILE) for path in paths], np.uint8)
    known = dict(known_records)
    known_records.clear()
    whole = np.flatnonzero(kind == Kind.FILE)
    pieces = []
    for file in np.flatnonzero(kind).tolist():
        path = paths[file]
        key = path, int(sizes[file]), int(mtimes[file])
        try:
            records = (
                known[key] if key in known else opened.list_records(path, Kind(int(kind[file])))
            )
        except RecordError as error:
            on_skipped(Skipped(path, error.reason, error.detail))
            continue
        except OSError as error:
            on_skipped(Skipped.because(path, error))
            continue
        except NoRoomError as error:
            on_skipped(Skipped(path, Reason.UNREADABLE, f"{error.message}; {error.hint}"))
            continue
        known_records[key] = records
        for number, reason, detail in records.skipped:
            on_skipped(Skipped(b"%s:%d" % (path, number), reason, detail))
        pieces.append(_Piece(records.ids or name_records(path, records.numbers)[0], file, records))
    order = None if opened.fields.id else _order_of_blocks(names.take(whole), paths, pieces)
    tables = [names.take(whole), *(piece.names for piece in pieces)]
    every = StringTable(
        np.concatenate([table.blob for table in tables]),
        offsets_of(np.concatenate([np.diff(table.offsets) for table in tables])),
    )
    none = np.zeros(len(whole), np.int64)
    lists = [piece.records for piece in pieces if piece.records is not None]
    file_of = np.concatenate([whole, *(np.full(len(piece.names), piece.file) for piece in pieces)])
    numbers = np.concatenate([none, *(each.numbers for each in lists)])
    starts = np.concatenate([none, *(each.starts for each in lists)])
    lengths = np.concatenate([sizes[whole], *(each.lengths for each in lists)])
    if order is None:
        order = _order_of_names(every, file_of, numbers, paths, on_skipped)
    place = Locations(names, kind, file_of[order], starts[order], lengths[order])
    return every.take(order), sizes[place.file], mtimes[place.file], place


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
        assert piece.records is not None
        blocks += [np.arange(before, cut), first + name_records(key[:-1], piece.records.numbers)[1]]
        before, last = cut, key
    return np.concatenate([*blocks, np.arange(before, len(names))])


def _order_of_names(
    names: StringTable,
    file: NDArray[np.int64],
    numbers: NDArray[np.int64],
    paths: list[bytes],
    on_skipped: Callable[[Skipped], None],
) -> NDArray[np.int64]:
    """Return the byte order of names, each once."""
    every = list(names)
    order = sorted(range(len(every)), key=every.__getitem__)
    again = [at for at in range(1, len(order)) if every[order[at]] == every[order[at - 1]]]
    first = -1
    for at in again:
        if first < 0 or every[order[at]] != every[first]:
            first = order[at - 1]
        here, there = (_place(paths, file, numbers, index) for index in (order[at], first))
        on_skipped(Skipped(every[order[at]], Reason.REPEATED, f"{here}; the first is {there}"))
    return np.delete(np.array(order, np.int64), again)


def _place(
    paths: list[bytes], file: NDArray[np.int64], numbers: NDArray[np.int64], index: int
) -> str:
    path = os.fsdecode(paths[int(file[index])])
    return f"row {numbers[index]} of {path}" if numbers[index] else path
