"""An ordered list of documents: their names, where each is, and the DOCS that were named. No file
is read here.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import rows_of, slices_of
from lshdup.base.params import DEFAULT_FORMATS, DEFAULT_MAX_BYTES, FormatLimits
from lshdup.base.ragged import StringTable, distinct
from lshdup.base.run import Run
from lshdup.base.skipped import RecordLocation, SkippedFile
from lshdup.base.wording import join_names
from lshdup.errors import RERUN, ArtifactError
from lshdup.sources.readers import RecordFiles
from lshdup.sources.records import ARCHIVES, Kind, RecordError, RecordFields, is_integer

#: Of more DOCS, only the folders that hold them all are kept.
_MOST = 100


@dataclass(frozen=True)
class Locations:
    """Where n documents are: whole files, or parts of files.

    paths : m files.
    kinds : uint8 array of shape (m,), the `Kind` of the documents in each file.
    file : int64 array of shape (n,), number of the file of each document.
    starts, lengths : int64 arrays of shape (n,), first byte and number of bytes; of Parquet, the
        number of rows before the record and the bytes of an average text.
    numbers : int64 array of shape (n,), number of each record in its file, from 1; else 0.
    """

    paths: StringTable
    kinds: NDArray[np.uint8]
    file: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    numbers: NDArray[np.int64]

    @classmethod
    def of_files(cls, paths: StringTable, sizes: NDArray[np.int64]) -> "Locations":
        """Return the locations of documents that are whole files.

        paths : n files. sizes : int64 array of shape (n,), bytes.
        """
        none = np.broadcast_to(np.int64(0), len(paths))  # takes no memory
        kinds = np.broadcast_to(np.uint8(Kind.FILE), len(paths))
        return cls(paths, kinds, np.arange(len(paths)), none, sizes, none)

    def files_of(self, indices: Any) -> Any:
        """Return the numbers of the files of documents. Raises ArtifactError for wrong numbers."""
        try:
            file = self.file[indices]
            refuse_if(
                np.size(file) and (np.min(file) < 0 or np.max(file) >= len(self.paths)),
                "files that are not there",
            )
        except IndexError:
            refuse_if(True, "documents that are not there")
        return file

    def take(self, run: Run, indices: NDArray[np.int64]) -> "Locations":
        """Return the locations of the documents at `indices`, in that order."""
        columns, take = (self.file, self.starts, self.lengths, self.numbers), run.arrays.take
        return Locations(self.paths, self.kinds, *(take(each, indices) for each in columns))

    @classmethod
    def joined(cls, run: Run, parts: list["Locations"]) -> "Locations":
        """Return the locations of the documents of all parts, one after the other."""
        arrays = run.arrays
        paths: dict[tuple[bytes, int], int] = {}
        files = []
        for part in parts:
            numbers = [paths.setdefault(each, len(paths)) for each in part._files()]
            files.append(np.array(numbers, np.int64)[part.file])
        return cls(
            StringTable.from_strings(path for path, _ in paths),
            np.array([kind for _, kind in paths], np.uint8),
            arrays.concatenate(files),
            arrays.concatenate([part.starts for part in parts]),
            arrays.concatenate([part.lengths for part in parts]),
            arrays.concatenate([part.numbers for part in parts]),
        )

    def _files(self) -> Iterable[tuple[bytes, int]]:
        return zip(self.paths, self.kinds.tolist(), strict=True)

    def are_records(self) -> NDArray[np.bool_]:
        """Return which documents are records: bool array of shape (n,)."""
        rows: NDArray[np.bool_] = (self.kinds >= Kind.JSON)[self.file]
        return rows

    def same_as(
        self, other: "Locations"
    ) -> Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]:
        """Return the function that tells whether documents are where documents of another list are:
        it takes their numbers here and there, int64 arrays of shape (m,), and returns a bool array.
        """
        numbers = {each: number for number, each in enumerate(other._files())}
        there = np.array([numbers.get(each, -1) for each in self._files()], np.int64)

        def compare(mine: NDArray[np.int64], theirs: NDArray[np.int64]) -> NDArray[np.bool_]:
            same: NDArray[np.bool_] = there[self.file[mine]] == other.file[theirs]
            same &= self.starts[mine] == other.starts[theirs]
            same &= self.lengths[mine] == other.lengths[theirs]
            return same

        return compare


def refuse_if(wrong: object, what: str) -> None:
    """Raise ArtifactError if a number of an artifact is wrong: not all are checked when it is
    opened.
    """
    if wrong:
        message = f"the store names {what}: it is damaged"
        raise ArtifactError(message, RERUN)


@dataclass(frozen=True)
class DocumentList:
    """Documents in byte order of their files' names, records and members by their number.

    names : n names, each once.
    sizes, mtimes : int64 arrays of shape (n,), bytes and nanoseconds of the file a document is in.
    parts : where documents are, if some are parts of files; None: each is a whole file, and names
        are paths.
    home : folder that names and paths start from; empty: the current folder.
    docs : the folders and files that were named, as typed from home.
    has_links : whether any of the files was a symbolic link itself when it was listed; True if that
        is not known.
    max_bytes : a file that is larger when it is read is skipped.
    record_files : the files that records are read from.
    formats : bounds for reading office documents.
    skipped : files and records that are no documents, as was seen without their texts.
    """

    names: StringTable
    sizes: NDArray[np.int64]
    mtimes: NDArray[np.int64]
    parts: Locations | None = None
    home: bytes = b""
    max_bytes: int = DEFAULT_MAX_BYTES
    record_files: RecordFiles = field(default_factory=RecordFiles, compare=False)
    formats: FormatLimits = DEFAULT_FORMATS
    skipped: tuple[SkippedFile, ...] = ()
    docs: tuple[bytes, ...] = field(default=(), compare=False)
    has_links: bool = field(default=True, compare=False)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def locations(self) -> Locations:
        """Where documents are. Of whole files it takes 8 bytes a file, once somebody asks."""
        return self.parts or Locations.of_files(self.names, self.sizes)

    @cached_property
    def kinds(self) -> set[int]:
        """The kinds of documents that the files have, each a `Kind` if no artifact is damaged."""
        return {Kind.FILE} if self.parts is None else set(np.unique(self.parts.kinds).tolist())

    def kinds_of(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the kind of each of these documents."""
        if self.parts is None:  # `locations` would take memory.
            return np.full(len(indices), Kind.FILE, np.uint8)
        kinds: NDArray[np.uint8] = self.parts.kinds[self.parts.files_of(indices)]
        return kinds

    @property
    def files(self) -> StringTable:
        """The files that documents are, or are in: from `home`, in byte order."""
        return self.names if self.parts is None else self.parts.paths

    def find(self, name: bytes) -> int | None:
        """Return the document of a name, or None.

        Cost: a binary search if all documents are whole files, else one pass over the names.
        """
        return self.names.find(name) if self.parts is None else self.names.search(name)

    def find_all(self, names: Sequence[bytes]) -> list[int]:
        """Return the document of each name, or -1. Cost: as `find`, or one sort of the names."""
        if self.parts is None or not names:
            return [-1 if at is None else at for at in map(self.names.find, names)]
        found: list[int] = self.names.match(StringTable.from_strings(names)).tolist()
        return found

    def path(self, index: int) -> bytes:
        """Return the path of the file of a document, from the current folder."""
        number = index if self.parts is None else self.parts.files_of(index)
        return self.path_of(self.files[number])

    def file_path(self, number: int) -> bytes:
        """Return the path of a file that documents are parts of, from the current folder."""
        return self.path_of(self.files[number])

    def path_of(self, name: bytes) -> bytes:
        """Return a path that starts from home as one from the current folder."""
        refuse_if(b"\0" in name, "a path with NUL in it")
        if name in self.record_files.streams:  # opened anew, it is read from its beginning
            return b"/dev/fd/%d" % self.record_files.streams[name].fileno()
        return os.path.join(self.home, name)  # noqa: PTH118 (bytes path)

    def find_file(self, path: str) -> bytes | None:
        """Return the file of these documents, or skipped file, that a path leads to, by any link;
        None if it leads to none.

        A file that has not changed is found by its size and time; one that has, by its name below
        DOCS. Only where links may give it another name are all files looked at.
        """
        try:
            status, real = os.stat(path), os.path.realpath(os.fsencode(path))
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        same = (self.sizes == status.st_size) & (self.mtimes == status.st_mtime_ns)
        if status.st_nlink > 1 or self.has_links:
            same[:] = True
        tops = ((each, os.path.realpath(self.path_of(each))) for each in (*self.docs, b"."))
        below = (top + real[len(there) :] for top, there in tops if real.startswith(there))
        names, table, rows = {typed_name(name) for name in below}, self.files, np.flatnonzero(same)
        rows = distinct(self.locations.file[rows])[0]
        known = {name for name in names if table.find(name) is not None}
        known.update(each.skipped.name for each in self.skipped if each.record is None)
        for name in (*known, *table.strings_at(rows)):
            with suppress(OSError):
                if os.path.samestat(status, os.stat(self.path_of(name))):
                    return name
        return None

    def describe_docs(self) -> str:
        """Return where documents are, for a sentence: " in docs, rows.jsonl"; "" if unknown."""
        docs = map(os.fsdecode, self._typed(self.docs))
        return f" in {join_names(docs, 3)}" if self.docs else ""

    def typed_paths(self, numbers: NDArray[np.int64]) -> list[bytes]:
        """Return files that documents are parts of as typed from the current folder."""
        return self._typed(self.files.strings_at(numbers))

    def typed_files_of(self, indices: NDArray[np.int64]) -> list[bytes]:
        """Return the file that each of these documents is in, as typed from the current folder."""
        numbers, at = np.unique(self.locations.files_of(indices), return_inverse=True)
        paths = self.typed_paths(numbers)
        return [paths[each] for each in at.tolist()]

    def _typed(self, names: Iterable[bytes]) -> list[bytes]:
        return list(map(self._typed_path, names) if self.home else names)

    def is_file(self, index: int) -> bool:
        """Return whether a document is a whole file."""
        return self._kind(index) == Kind.FILE

    def _kind(self, index: int) -> int:
        if self.parts is None:
            return Kind.FILE
        return int(self.parts.kinds[self.parts.files_of(index)])

    def where(self, index: int) -> str:
        """Return where a document is, or "" if its name says so."""
        kind = Kind(self._kind(index))
        if self._is_named_by_path(kind):
            return ""
        row = f"row {self.locations.starts[index] + 1} of" if kind == Kind.PARQUET else "in"
        return f"{row} {os.fsdecode(self.typed_files_of(np.array([index]))[0])}"

    def count_lines_before(self, index: int) -> int | None:
        """Return the number of lines of its file before a document; None if it is a part of another
        kind than what --split cuts from a text, or the file is another one now.
        """
        kind = Kind(self._kind(index))
        if not kind.is_split:
            return 0 if kind == Kind.FILE else None
        path, start = self.path(index), int(self.locations.starts[index])
        with suppress(OSError, RecordError), self.record_files.reader(path, kind) as text:
            return text.count_lines(start)
        return None

    def record_location(self, index: int) -> RecordLocation | None:
        """Return where a document is that is a record, or None."""
        if self._kind(index) < Kind.JSON:
            return None
        locations = self.locations
        columns = (locations.numbers, locations.starts, locations.lengths)
        path = locations.paths[int(locations.file[index])]
        return RecordLocation(path, *(int(column[index]) for column in columns))

    def changed(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the documents that have vanished, have another size or time than when they were
        listed, or have become symbolic links.

        Where links were listed, one that leads to another of these documents has become a link: of
        a link and its target only one is listed. No file is opened. indices : int64 array.
        """
        locations, parts = self.locations, [indices[some] for some in slices_of(len(indices))]
        named = [distinct(locations.files_of(part))[0] for part in parts]
        files = distinct(np.concatenate([indices[:0], *named]))[0]
        documents = np.empty(len(files), np.int64)  # one of each file, which is looked at once
        for part in parts:
            documents[np.searchsorted(files, locations.file[part])] = part
        gone = self._are_gone(documents)
        lost = (part[gone[np.searchsorted(files, locations.file[part])]] for part in parts)
        return np.concatenate([indices[:0], *lost])

    def _are_gone(self, documents: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each of these documents, one a file, whether its file is `changed`."""
        gone = np.zeros(len(documents), bool)
        links: dict[tuple[int, int], list[int]] = {}  # by device and number of the target
        for at, index in enumerate(documents.tolist()):
            try:
                status = os.lstat(self.path(index))
                if stat.S_ISLNK(status.st_mode) and self.has_links:
                    status = os.stat(self.path(index))
                    links.setdefault((status.st_dev, status.st_ino), []).append(at)
                listed = self.sizes[index], self.mtimes[index]
                gone[at] = (status.st_size, status.st_mtime_ns) != listed
                gone[at] |= stat.S_ISLNK(status.st_mode)
            except OSError:
                gone[at] = True
        for index in documents.tolist() if links else ():
            with suppress(OSError):
                status = os.lstat(self.path(index))
                gone[links.get((status.st_dev, status.st_ino), [])] = True
        return gone

    def reading_order(self, run: Run, indices: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return indices in groups of one kind, in the order of files and of locations in them.

        So every file is read from front to back. Raises ArtifactError for wrong numbers.
        """
        place = self.parts
        if place is None:
            return [indices]
        counts = np.zeros(256, np.int64)
        for some in slices_of(len(indices)):
            counts += np.bincount(self.kinds_of(indices[some]), minlength=256)
        order = run.arrays.order(
            len(indices),
            [
                lambda at: place.kinds[place.file[indices[at]]],
                lambda at: place.file[indices[at]],
                lambda at: place.starts[indices[at]],
            ],
        )
        return np.split(run.arrays.take(indices, order), np.cumsum(counts[counts > 0])[:-1])

    def typed_names(self, indices: NDArray[np.int64], folder: bytes = b"") -> list[bytes]:
        """Return names as they would be typed from the current folder; ids are literal.

        folder : the real path of another folder, from which all other folders have their real paths
        too.
        """
        try:
            names = list(self.names.take(indices))
        except IndexError:
            refuse_if(True, "documents whose names are not there")
        if not (self.home or folder):
            return names
        files = self.locations.files_of(indices)
        move = cache(lambda head: os.path.relpath(os.path.realpath(head or b"."), folder))
        known: dict[int, tuple[int, bytes]] = {}  # bytes of a path, and how it is typed
        for at, number in enumerate(files.tolist()):
            kind = Kind(int(self.locations.kinds[number]))
            if not self._is_named_by_path(kind):
                continue
            if number not in known:
                path = self.locations.paths[number]
                head, base = os.path.split(self.path_of(path))
                typed = typed_name(os.path.join(move(head), base)) if folder else b""  # noqa: PTH118
                known[number] = len(path), typed or self._typed_path(path)
            size, typed = known[number]
            names[at] = typed + names[at][size:]  # the name of a record begins with its file
        return names

    def typed_skipped(self, skipped: SkippedFile) -> bytes:
        """Return the name of a skipped file or record as it would be typed from the current
        folder.
        """
        name, record = skipped.skipped.name, skipped.record
        path = name if record is None else record.path
        if not self.home or not name.startswith(path):  # the name of a row may be its id
            return name
        return self._typed_path(path) + name[len(path) :]

    def _typed_path(self, name: bytes) -> bytes:
        return typed_name(os.path.relpath(self.path_of(name)))

    def _is_named_by_path(self, kind: Kind) -> bool:
        """Return whether the names of documents begin with the path of their file."""
        return kind != Kind.IDS and not (kind.is_row and self.record_files.fields.id)

    def take(self, run: Run, indices: NDArray[np.int64]) -> "DocumentList":
        """Return the documents at `indices`, in that order."""
        names, take = self.names.take(indices, run.arrays), run.arrays.take
        sizes, mtimes = take(self.sizes, indices), take(self.mtimes, indices)
        parts = self.parts and self.parts.take(run, indices)
        return replace(self, names=names, sizes=sizes, mtimes=mtimes, parts=parts)

    def with_records(self, records: Sequence[SkippedFile]) -> "DocumentList":
        """Return the list with skipped records of its files behind the documents."""
        locations = self.parts
        if locations is None or not records:
            return self
        numbers = {path: number for number, path in enumerate(locations.paths)}
        rows = [
            (each.size, each.mtime, numbers[path], start, length, number)
            for each in records
            if each.record is not None
            for path, number, start, length in (each.record,)
        ]
        old = (self.sizes, self.mtimes, locations.file, locations.starts, locations.lengths)
        sizes, mtimes, file, starts, lengths, numbered = (
            np.append(column, more)
            for column, more in zip((*old, locations.numbers), zip(*rows, strict=True), strict=True)
        )
        more = StringTable.from_strings(each.skipped.name for each in records)
        return replace(
            self,
            names=StringTable.concatenate([self.names, more]),
            sizes=sizes,
            mtimes=mtimes,
            parts=replace(locations, file=file, starts=starts, lengths=lengths, numbers=numbered),
        )

    def ids(self, indices: NDArray[np.int64]) -> list[bytes | int]:
        """Return names as they would be typed from the current folder, or ids with their types: an
        integer of JSON Lines or Parquet is one.
        """
        typed = self.typed_names(indices)
        names: list[bytes | int] = [*typed]
        locations = self.locations
        if not self.record_files.fields.id:
            return names
        rows = np.flatnonzero([is_integer(name) for name in typed])
        files = locations.files_of(indices[rows])
        order = np.lexsort((locations.starts[indices[rows]], files))
        rows, files = rows[order], files[order]
        for mine in np.split(rows, np.flatnonzero(np.diff(files)) + 1) if len(rows) else ():
            some = indices[mine]
            number = int(locations.file[some[0]])
            kind = Kind(int(locations.kinds[number]))
            spans = locations.starts[some], locations.lengths[some]
            with suppress(OSError, RecordError):  # The file may be gone: a string is an id too.
                path = self.file_path(number)
                are_integers = self.record_files.have_integer_ids(path, kind, spans)
                for at in mine[are_integers].tolist():
                    names[at] = int(names[at])
        return names

    def are_paths(self) -> bool:
        """Return whether names begin with a path; lines of id lists do not."""
        return Kind.IDS not in self.kinds

    def example_of(self, path: bytes) -> bytes:
        """Return the name of one of the records of a file; b"" if there is none."""
        files = np.flatnonzero(self.locations.kinds >= Kind.JSON)
        paths = self.files.strings_at(files)
        if path not in paths:
            return b""
        found = np.flatnonzero(self.locations.file == files[paths.index(path)])
        return self.names[int(found[0])] if len(found) else b""

    def are_parts(self, indices: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each of these documents whether it is a part of a file."""
        are_parts: NDArray[np.bool_] = self.kinds_of(indices) != Kind.FILE
        return are_parts

    def count_members(self) -> int:
        """Return how many documents are members of archives."""
        if self.kinds.isdisjoint(ARCHIVES):
            return 0
        kinds = (self.kinds_of(rows_of(some)) for some in slices_of(len(self)))
        return sum(int(np.isin(each, ARCHIVES).sum()) for each in kinds)

    @property
    def has_packed_members(self) -> bool:
        """Whether reading a document again may mean unpacking it, or the archive that it is in."""
        if self.kinds.isdisjoint(ARCHIVES):
            return False
        archives = np.flatnonzero(np.isin(self.locations.kinds, ARCHIVES))
        paths = self.files.strings_at(archives)
        return not all(
            path.lower().endswith((b".tar", b".warc", b".wet", b".xml")) for path in paths
        )

    @property
    def has_parquet(self) -> bool:
        """Whether reading a document again may mean decoding many others."""
        return Kind.PARQUET in self.kinds

    @property
    def record_fields(self) -> RecordFields | None:
        """The fields of text and id in a record; None without records among the documents."""
        return self.record_files.fields if max(self.kinds, default=Kind.FILE) >= Kind.JSON else None

    @property
    def spans(self) -> NDArray[np.int64]:
        """Bytes to read for each document: int64 array of shape (n,)."""
        return self.sizes if self.parts is None else self.parts.lengths


def find_in_lists(lists: Sequence[DocumentList], document: int) -> tuple[DocumentList, int]:
    """Return the list of a document, and its number in it.

    document : its number, counted from the first list to the last.
    """
    for documents, first, _ in split_by_list(lists, np.zeros(0, np.int64)):
        if document < first + len(documents):
            return documents, document - first
    raise IndexError(document)


def split_by_list(
    lists: Sequence[DocumentList], rows: NDArray[np.int64]
) -> Iterator[tuple[DocumentList, int, NDArray[np.int64]]]:
    """Yield each list, the number of its first document, and which of its documents are among some.

    rows : ascending int64 array, documents counted from the first list to the last.
    """
    first = 0
    for documents in lists:
        own = rows[slice(*np.searchsorted(rows, [first, first + len(documents)]))]
        yield documents, first, own - first
        first += len(documents)


def names_of(
    lists: Sequence[DocumentList], rows: NDArray[np.int64], folder: bytes = b""
) -> list[bytes]:
    """Return the names of documents as `DocumentList.typed_names`. rows : of `split_by_list`."""
    parts = split_by_list(lists, rows)
    return [name for documents, _, own in parts for name in documents.typed_names(own, folder)]


def typed_name(path: bytes) -> bytes:
    """Return a path as it would be typed from the current folder: without ``./`` in front.

    A name that begins with ``-`` has it. ``..`` stays: behind a symbolic link it means another
    folder than the text suggests.

    >>> typed_name(b"./docs//a.txt"), typed_name(b"-x"), typed_name(b"../y/"), typed_name(b"./")
    (b'docs/a.txt', b'./-x', b'../y', b'.')
    """
    name = b"/".join(part for part in path.split(b"/") if part not in (b"", b"."))
    if path.startswith(b"/"):
        return b"/" + name
    return b"./" + name if name.startswith(b"-") else name or b"."


def summarize_docs(arguments: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return DOCS in their order, each once. Of more than a hundred, return the folders above all,
    with a slash at the end: their order is not known then.

    arguments : folders and files, as `typed_name` writes them.

    >>> summarize_docs([b"b", b"a", b"b"]), summarize_docs([b"docs/%d.txt" % n for n in range(500)])
    ((b'b', b'a'), (b'docs/',))
    """
    docs = list(dict.fromkeys(arguments))
    if len(docs) <= _MOST:
        return tuple(docs)
    sides = ([d for d in docs if d.startswith(b"/")], [d for d in docs if not d.startswith(b"/")])
    return tuple((os.path.commonpath(side) or b".").rstrip(b"/") + b"/" for side in sides if side)
