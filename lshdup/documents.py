"""Folders, files, file lists, id lists and files of rows -> an ordered list of documents, and their bytes in batches.

Inputs are read here only, by means of files.py and openrows.py. What a byte means is not decided here (formats.py, shingles.py). Called by
workspace.py.
"""

import errno
import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.errors import ArtifactError, InputError
from lshdup.files import Buffer, read_files, stat_files
from lshdup.openrows import OpenRows
from lshdup.params import DEFAULT_FORMATS, DEFAULT_MAX_BYTES, DEFAULT_TEXT_FIELD, DocumentParams, FormatLimits
from lshdup.places import Listings, Places, with_rows
from lshdup.ragged import PADDING, Check, StringTable, distinct, trusted
from lshdup.reasons import LeftOut as LeftOut
from lshdup.reasons import Reason as Reason
from lshdup.reasons import detail_of, reason_of
from lshdup.rows import Kind, RowError, RowFields, kind_of

#: Batches end at whichever comes first: few enough documents to feed all threads, few enough bytes to stay in memory.
BATCH_DOCUMENTS = 512
BATCH_BYTES = 4 << 20


@dataclass(frozen=True)
class DocumentList:
    """Documents in byte order of their names.

    names : n names. sizes, mtimes : int64 arrays of shape (n,), bytes and nanoseconds of the file a document is in. places : where they
    are; None where each is a whole file and names are paths. home : the folder that names and paths start from; empty: the current one.
    max_bytes : a file that is larger when it is read is not read. opened : where rows are read from, and which of their fields.
    formats : bounds for reading office documents. check : told what of the arrays is used.
    """

    names: StringTable
    sizes: NDArray[np.int64]
    mtimes: NDArray[np.int64]
    places: Places | None = None
    home: bytes = b""
    max_bytes: int = DEFAULT_MAX_BYTES
    opened: OpenRows = field(default_factory=OpenRows, compare=False)
    formats: FormatLimits = DEFAULT_FORMATS
    check: Check = trusted

    def __len__(self) -> int:
        return len(self.names)

    def check_rows(self, indices: NDArray[np.int64], *more: NDArray[Any]) -> None:
        """Tell `check` that these documents are looked at: what files they are, where in them, and `more` columns."""
        places = () if self.places is None else (self.places.file, self.places.starts, self.places.lengths)
        for column in (self.sizes, self.mtimes, *places, *more):
            self.check(column, indices, indices + 1)

    def path(self, index: int) -> bytes:
        """Where to read a document from, as seen from the current folder."""
        return self._path(self.names[index] if self.places is None else self.places.paths[self._files_of(index)])

    def _files_of(self, indices: Any) -> Any:
        """In which of the files documents are."""
        assert self.places is not None
        self.check(self.places.file, indices, indices + 1)
        return _checked(self.places, indices)

    def file_path(self, number: int) -> bytes:
        """Where a file is that documents are parts of, as seen from the current folder."""
        assert self.places is not None
        return self._path(self.places.paths[number])

    def _path(self, name: bytes) -> bytes:
        _refuse_if(b"\0" in name, "a path with NUL in it")
        return os.path.join(self.home, name)  # noqa: PTH118 (bytes path)

    def is_file(self, index: int) -> bool:
        """Whether a document is a whole file."""
        return self.places is None or bool(self.places.kinds[self._files_of(index)] == Kind.FILE)

    def where(self, index: int) -> str:
        """Where a document is, if its name does not say so."""
        if self.places is None:
            return ""
        kind = self.places.kinds[self._files_of(index)]
        if kind == Kind.FILE or (kind != Kind.IDS and not self.opened.fields.id):
            return ""
        path = os.fsdecode(self.path(index))
        return f"row {self.places.starts[index] + 1} of {path}" if kind == Kind.PARQUET else f"in {path}"

    def changed(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of these documents have vanished, or have another size or time than when they were listed. Opens none."""
        self.check_rows(indices)
        firsts, file = indices, np.arange(len(indices))
        if self.places is not None:  # one look at each file
            files = self._files_of(indices)
            different, counts = distinct(files)
            file = np.searchsorted(different, files)
            firsts = indices[np.argsort(files, kind="stable")[np.cumsum(counts) - counts]]
        gone = np.zeros(len(firsts), bool)
        for at, index in enumerate(firsts.tolist()):
            try:
                status = os.stat(self.path(index))
                gone[at] = (status.st_size, status.st_mtime_ns) != (self.sizes[index], self.mtimes[index])
            except OSError:
                gone[at] = True
        return indices[gone[file]]

    def typed_names(self, indices: NDArray[np.int64]) -> list[bytes]:
        """Names as they would be typed from the current folder; ids are what they are."""
        try:
            names = list(self.names.take(indices))
        except IndexError:
            _refuse_if(True, "documents whose names are not there")
        if not self.home:
            return names
        are_paths = np.ones(len(names), bool)
        if self.places is not None:
            kinds = self.places.kinds[self._files_of(indices)]
            are_paths = (kinds == Kind.FILE) | ((kinds != Kind.IDS) & (not self.opened.fields.id))
        return [
            typed_name(os.path.relpath(os.path.join(self.home, name))) if is_path else name  # noqa: PTH118 (bytes path)
            for name, is_path in zip(names, are_paths.tolist(), strict=True)
        ]

    def take(self, indices: NDArray[np.int64]) -> "DocumentList":
        """The documents at `indices`, in that order."""
        self.check_rows(indices)
        places = None if self.places is None else self.places.take(indices)
        return replace(self, names=self.names.take(indices), sizes=self.sizes[indices], mtimes=self.mtimes[indices], places=places)

    def are_paths(self) -> bool:
        """Whether names begin with a path, as far as is known; lines of id lists do not."""
        return self.places is None or not (self.places.kinds == Kind.IDS).any()

    def rows_in(self, path: bytes) -> bool:
        """Whether documents of this list are rows of that file."""
        return self.places is not None and (path in list(self.places.paths.take(np.flatnonzero(self.places.kinds >= Kind.JSON))))

    @property
    def row_fields(self) -> RowFields | None:
        """Where in a row text and name are, if there are rows among the documents."""
        return self.opened.fields if self.places is not None and (self.places.kinds >= Kind.JSON).any() else None

    @property
    def spans(self) -> NDArray[np.int64]:
        """int64 array of shape (n,): bytes to read for each document."""
        return self.sizes if self.places is None else self.places.lengths


@dataclass(frozen=True)
class TextBatch:
    """The bytes of some documents, one after the other, in a buffer with room to load past the end.

    indices : int64 array of shape (m,), which documents of the list these are. names : theirs. text : uint8 array. starts, lengths :
    int64 arrays of shape (m,). left_out : (document, reason, detail) for those that could not be read. is_text : they are UTF-8, or meant
    to be, because they were texts where they come from, and not files. max_bytes : what may be made of one that has to be unpacked.
    """

    indices: NDArray[np.int64]
    names: list[bytes]
    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    left_out: list[tuple[int, Reason, str]] = field(default_factory=list)
    is_text: bool = False
    max_bytes: int = DEFAULT_MAX_BYTES

    @classmethod
    def of(cls, indices: Iterable[int], texts: list[bytes], names: list[bytes] | None = None) -> "TextBatch":
        """A batch of texts that are in memory already; without names, none of them is named like HTML."""
        buffer = bytearray().join([*texts, bytes(PADDING)])
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        starts = np.cumsum(lengths) - lengths
        return cls(np.array(list(indices), np.int64), names or [b""] * len(texts), np.frombuffer(buffer, np.uint8), starts, lengths)


# --- finding documents --------------------------------------------------------------------------------------------------


def find_documents(
    arguments: Iterable[bytes],
    params: DocumentParams,
    *,
    id_lists: bool = False,
    store: bytes | None = None,
    jobs: int = 1,
    on_left_out: Callable[[LeftOut], None] = lambda _: None,
    listings: Listings | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> DocumentList:
    """Every document below the named folders, of the named files, in their rows, or in the named id lists.

    arguments : folders and files, as typed; a symbolic link that is named itself is followed. id_lists : each line of each file is a
    document: a name, then integers (R4, R5). store : a folder that is left out silently, because lshdup wrote it. on_left_out : told
    every file that was met and is not a document. listings : what is known of files of rows; afterwards what is known of these. say : told
    what a person should know.

    Files of JSON Lines or Parquet that are named themselves are taken for their rows, and, if the field of the text is given, those in
    folders. Raises InputError if no argument exists at all, or if a package is missing that the rows take. Determinism: the order depends
    on names only; of a folder that is reached by two ways, the first in the order of arguments and names counts.
    """
    finder = _Finder(params, store, on_left_out, id_lists)
    missing = [missed for argument in arguments if (missed := finder.add(argument)) is not None]
    if missing and not finder.found:
        message = f"{os.fsdecode(missing[0].name)!r}: {missing[0].detail}"
        raise InputError(message, "name folders or files that exist")
    for each in missing:
        on_left_out(each)
    files = finder.files(jobs)
    if id_lists:
        return _lines_of(files, on_left_out)
    finder.say_of_rows(files.names, say)
    if not finder.rows:
        return files
    opened = OpenRows(
        None if store is None else Path(os.fsdecode(store)),
        RowFields(params.text_field or DEFAULT_TEXT_FIELD, params.id_field),
        params.max_bytes,
    )
    known = {} if listings is None else listings
    names, sizes, mtimes, places = with_rows(files.names, files.sizes, files.mtimes, finder.rows, opened, known, on_left_out)
    return DocumentList(names, sizes, mtimes, places, max_bytes=params.max_bytes, opened=opened)


def typed_name(path: bytes) -> bytes:
    """A path as it would be typed from the current folder: no ``./`` in front unless the name begins with ``-``.

    ``..`` stays: behind a symbolic link it means another folder than the text suggests.

    >>> typed_name(b"./docs//a.txt"), typed_name(b"-x"), typed_name(b"../y/"), typed_name(b"./")
    (b'docs/a.txt', b'./-x', b'../y', b'.')
    """
    name = b"/".join(part for part in path.split(b"/") if part not in (b"", b"."))
    if path.startswith(b"/"):
        return b"/" + name
    return b"./" + name if name.startswith(b"-") else name or b"."


class _Finder:
    """One walk over all arguments; keeps name -> (size, mtime), or None for a file that is asked with all others at the end."""

    def __init__(self, params: DocumentParams, store: bytes | None, on_left_out: Callable[[LeftOut], None], id_lists: bool) -> None:
        self.rows: dict[bytes, Kind] = {}  # files that are taken for their rows
        self._id_lists = id_lists
        self.found: dict[bytes, tuple[int, int] | None] = {}
        self._seen: dict[tuple[int, int], bytes] = {}  # folders, by device and number
        self._named: dict[int, bytes] = {}  # files that were named themselves, by number
        self._params = params
        self._store = _identity(store) if store is not None and os.path.isdir(store) else None
        self._on_left_out = on_left_out
        self._include = globs(params.include)
        self._exclude = globs(params.exclude)

    def add(self, argument: bytes) -> LeftOut | None:
        """Take what an argument names; returns it if it cannot be had."""
        name = typed_name(argument)
        try:
            status = os.stat(argument)
        except OSError as error:
            return (
                replace(LeftOut.because(argument, error), reason=Reason.MISSING)
                if error.errno == errno.ENOENT
                else LeftOut.because(argument, error)
            )
        if stat.S_ISDIR(status.st_mode):
            self._walk(name)
        elif self._met_already(argument, status):
            return None
        elif self._excluded(os.path.basename(name), name):  # noqa: PTH119 (bytes path)
            self._on_left_out(LeftOut(name, Reason.EXCLUDED))
        elif stat.S_ISREG(status.st_mode):
            self._take(name, status, named=True)
        else:
            return LeftOut(name, Reason.UNREADABLE, "not a regular file")
        return None

    def files(self, jobs: int) -> DocumentList:
        """What was found, in byte order of the names."""
        plain = [name for name, known in self.found.items() if known is None]
        stats = stat_files(plain, jobs)
        for index, error in stats.failed.items():
            if error is not None:
                self._fail(plain[index], error)
            else:  # it was a regular file when its folder was listed
                self._on_left_out(LeftOut(plain[index], Reason.SPECIAL))
        large = stats.sizes > self._params.max_bytes
        if self._params.text_field:
            large &= ~np.array([self._has_rows(name, named=False) for name in plain], bool)
        for index in np.flatnonzero(large).tolist():
            self._too_large(plain[index], int(stats.sizes[index]))
        good = np.flatnonzero((stats.sizes >= 0) & ~large)
        named = [(name, *known) for name, known in self.found.items() if known is not None]
        names = [plain[index] for index in good.tolist()] + [name for name, _, _ in named]
        sizes = np.concatenate([stats.sizes[good], np.array([size for _, size, _ in named], np.int64)])
        mtimes = np.concatenate([stats.mtimes[good], np.array([mtime for _, _, mtime in named], np.int64)])
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        names = [names[index] for index in order.tolist()]
        table, params = StringTable.from_strings(names), self._params
        return DocumentList(table, sizes[order], mtimes[order], max_bytes=params.max_bytes, formats=params.formats)

    def _met_already(self, argument: bytes, status: os.stat_result) -> bool:
        """Whether a file that is named has been found under another spelling. (Hard links are other files.)"""
        first = self._named.setdefault(status.st_ino, argument)
        if first is not argument and os.path.realpath(first) == os.path.realpath(argument):
            return True
        if not self._seen:
            return False
        parent, base = os.path.split(argument)
        walked = self._seen.get(_identity(parent or b"."))
        return walked is not None and typed_name(walked + b"/" + base) in self.found

    def _was_named(self, entry: "os.DirEntry[bytes]", name: bytes) -> bool:
        """Whether a file that is met in a folder was named itself before, under another spelling."""
        named = self._named.get(entry.inode()) if self._named else None
        return named is not None and typed_name(named) != name and os.path.realpath(named) == os.path.realpath(name)

    def _walk(self, top: bytes) -> None:
        folders = [top]
        simple = not (self._named or self._include or self._exclude)
        dot, dash = b".-"
        while folders:
            folder = folders.pop()
            try:
                identity = _identity(folder)
                if identity in self._seen:
                    continue
                self._seen[identity] = folder
                prefix = b"" if folder == b"." else folder.rstrip(b"/") + b"/"
                with os.scandir(folder) as entries:
                    # With links, which name a folder gets depends on the order in which its names are met.
                    for entry in sorted(entries, key=lambda entry: entry.name) if self._params.follow else entries:
                        name = entry.name
                        if simple and name[0] != dot and entry.is_file(follow_symlinks=False):
                            self.found[prefix + name if prefix or name[0] != dash else b"./" + name] = None
                        else:
                            name = prefix + name
                            self._meet(entry, b"./" + name if name.startswith(b"-") else name, folders)
            except OSError as error:
                self._fail(folder, error)

    def _meet(self, entry: "os.DirEntry[bytes]", name: bytes, folders: list[bytes]) -> None:
        try:
            link = entry.is_symlink()
            is_folder = entry.is_dir(follow_symlinks=self._params.follow)
            if is_folder and self._store is not None and _identity(name) == self._store:
                return
            if entry.name.startswith(b".") and not self._params.hidden:
                self._on_left_out(LeftOut(name, Reason.HIDDEN))
            elif link and not self._params.follow:
                self._on_left_out(LeftOut(name, Reason.LINK))
            elif is_folder:
                folders.append(name)
            elif self._excluded(entry.name, name):
                self._on_left_out(LeftOut(name, Reason.EXCLUDED))
            elif self._was_named(entry, name):
                return
            elif entry.is_file(follow_symlinks=False):
                self.found[name] = None
            elif entry.is_file():  # a link that is followed
                self._take(name, entry.stat())
            elif link and not os.path.exists(name):  # noqa: PTH110 (bytes path)
                self._on_left_out(LeftOut(name, Reason.VANISHED, "a symbolic link to nothing"))
            else:
                self._on_left_out(LeftOut(name, Reason.SPECIAL))
        except OSError as error:
            self._fail(name, error)

    def _excluded(self, base: bytes, name: bytes) -> bool:
        if self._include and not any(glob(base) or glob(name) for glob in self._include):
            return True
        return any(glob(base) or glob(name) for glob in self._exclude)

    def _take(self, name: bytes, status: os.stat_result, *, named: bool = False) -> None:
        if not self._has_rows(name, named=named) and status.st_size > self._params.max_bytes:
            self._too_large(name, status.st_size)
        else:
            self.found[name] = (status.st_size, status.st_mtime_ns)

    def _has_rows(self, name: bytes, *, named: bool) -> bool:
        """Whether a file is taken for its rows, which may be more than fit into a document."""
        if self._id_lists:
            return False
        kind = kind_of(name, named=named, field_given=bool(self._params.text_field))
        if kind != Kind.FILE:
            self.rows[name] = kind
        return kind != Kind.FILE

    def say_of_rows(self, names: StringTable, say: Callable[[str], None]) -> None:
        """Of files that could have been taken for their rows, and of options that had no such file to be for."""
        if self._params.text_field or self._params.id_field:
            if not self.rows:
                option = "--text-field" if self._params.text_field else "--id-field"
                say(f"{option} had no effect: no JSON Lines or Parquet file was met")
            return
        if any(ending in names.blob.tobytes() for ending in (b".jsonl", b".ndjson")):
            met = [name for name in names if name not in self.rows and kind_of(name, named=True, field_given=False) == Kind.JSON]
            if met:
                what = "1 JSON Lines file in a folder is" if len(met) == 1 else f"{len(met):,} JSON Lines files in folders are each"
                say(f"{what} one document; --text-field NAME takes the rows")

    def _too_large(self, name: bytes, size: int) -> None:
        self._on_left_out(LeftOut(name, Reason.TOO_LARGE, f"{size} bytes, --max-bytes is {self._params.max_bytes}"))

    def _fail(self, name: bytes, error: OSError) -> None:
        self._on_left_out(LeftOut.because(name, error))


def _identity(path: bytes) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def globs(patterns: Iterable[str]) -> list[Callable[[bytes], object]]:
    """What tells whether a whole name matches each pattern; ``*`` matches ``/`` too."""
    return [re.compile(fnmatch.translate(pattern).encode("utf-8", "surrogateescape")).match for pattern in patterns]


def _lines_of(files: DocumentList, on_left_out: Callable[[LeftOut], None]) -> DocumentList:
    """The lines of id lists as documents: name, then where the ids begin and end."""
    found: dict[bytes, tuple[bytes, int, int, int, int]] = {}
    for path, size, mtime in zip(files.names, files.sizes.tolist(), files.mtimes.tolist(), strict=True):
        try:
            with open(path, "rb") as lines:  # noqa: PTH123 (bytes path)
                start = 0
                for number, line in enumerate(lines, 1):
                    name, body = _split_line(line)
                    if name in found:
                        detail = f"line {number} of {os.fsdecode(path)}"
                        on_left_out(LeftOut(name, Reason.REPEATED, detail))
                    elif name:
                        found[name] = (path, size, mtime, start + body, len(line) - body)
                    start += len(line)
        except OSError as error:
            on_left_out(LeftOut.because(path, error))
    rows = sorted(found.items())
    columns = list(zip(*(row for _, row in rows), strict=True)) or [(), (), (), (), ()]
    numbers = {path: number for number, path in enumerate(files.names)}
    places = Places(
        files.names,
        np.full(len(files), Kind.IDS, np.uint8),
        np.array([numbers[path] for path in columns[0]], np.int64),
        np.array(columns[3], np.int64),
        np.array(columns[4], np.int64),
    )
    names = StringTable.from_strings(name for name, _ in rows)
    return DocumentList(names, np.array(columns[1], np.int64), np.array(columns[2], np.int64), places, max_bytes=files.max_bytes)


def _split_line(line: bytes) -> tuple[bytes, int]:
    """Name of an id-list line, and the position where its ids begin."""
    parts = line.split(None, 1)
    if not parts:
        return b"", 0
    return parts[0], line.index(parts[0]) + len(parts[0])


# --- reading documents --------------------------------------------------------------------------------------------------


def batches(documents: DocumentList, indices: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Cut `indices` into runs of at most BATCH_DOCUMENTS documents and about BATCH_BYTES bytes.

    Parts of files come in the order of their places, so that a file is read from front to back, and each run is of one `Kind`.
    """
    places = documents.places
    if places is not None:
        _checked(places, indices)
    for run in [indices] if places is None else places.reading_order(indices):
        spans = documents.spans[run]
        ends = np.cumsum(spans)
        start = 0
        while start < len(run):
            before = int(ends[start] - spans[start])
            fits = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
            end = min(max(fits, start + 1), start + BATCH_DOCUMENTS)
            yield run[start:end]
            start = end


def read_batch(documents: DocumentList, indices: NDArray[np.int64], buffer: Buffer | None = None) -> TextBatch:
    """The bytes of some documents of one kind; those that cannot be read are in `left_out` and not in `indices`.

    buffer : memory for them, which the next batch may use again.
    Cost: one open, read and close a file, without the GIL. A file that grew or shrank since it was listed is read as it is now.
    Raises ArtifactError for a list that no folder can have given: it comes from an artifact that says what is not so.
    """
    documents.check_rows(indices)
    spans = documents.spans[indices]
    _refuse_if(len(indices) and (spans.min() < 0 or spans.max() >= 1 << 31), "documents of a size that none can have")
    names = documents.names.some(indices)
    places, sizes = documents.places, documents.sizes[indices]
    if places is not None and len(indices):
        files = _checked(places, indices)
        kind = places.kinds[files[0]]
        if kind == Kind.IDS:
            return _read_lines(documents, indices, names)
        if kind != Kind.FILE:
            return _read_rows(documents, indices, Kind(int(kind)), buffer or Buffer())
    _refuse_if(b"\0" in b"".join(names), "a path with NUL in it")
    paths = names if not documents.home else [os.path.join(documents.home, name) for name in names]  # noqa: PTH118 (bytes path)
    contents = read_files(paths, sizes, buffer, documents.max_bytes)
    if not contents.failed:
        return TextBatch(indices, names, contents.text, contents.starts, contents.lengths, max_bytes=documents.max_bytes)
    left_out = [(int(indices[i]), reason_of(error), detail_of(error)) for i, error in contents.failed.items()]
    good = np.delete(np.arange(len(indices)), list(contents.failed))
    names = [names[i] for i in good.tolist()]
    starts, lengths = contents.starts[good], contents.lengths[good]
    return TextBatch(indices[good], names, contents.text, starts, lengths, left_out, max_bytes=documents.max_bytes)


def _checked(places: Places, indices: Any) -> Any:
    """The files of some documents, which an artifact may have wrong."""
    try:
        file = places.file[indices]
        _refuse_if(np.size(file) and (np.min(file) < 0 or np.max(file) >= len(places.paths)), "files that are not there")
    except IndexError:
        _refuse_if(True, "documents that are not there")
    return file


def _refuse_if(wrong: object, what: str) -> None:
    """Of an artifact that is only looked into, not every number has been checked; where one would lead astray, this is called."""
    if wrong:
        message = f"the store names {what}: it is damaged"
        raise ArtifactError(message, "run the command with DOCS")


def _read_lines(documents: DocumentList, indices: NDArray[np.int64], names: list[bytes]) -> TextBatch:
    """Documents that are lines of id lists."""
    assert documents.places is not None
    places = documents.places.take(indices)
    read: list[int] = []
    texts: list[bytes] = []
    left_out: list[tuple[int, Reason, str]] = []
    for position, (index, start, length) in enumerate(zip(indices.tolist(), places.starts.tolist(), places.lengths.tolist(), strict=True)):
        try:
            with open(documents.path(index), "rb") as file:  # noqa: PTH123 (bytes path)
                file.seek(start)
                text = file.read(length)
        except OSError as error:
            left_out.append((index, reason_of(error), detail_of(error)))
            continue
        if len(text) < length:
            left_out.append((index, Reason.CHANGED, "its list has become shorter"))
            continue
        texts.append(text)
        read.append(position)
    batch = TextBatch.of(indices[read].tolist(), texts, [names[position] for position in read])
    return replace(batch, left_out=left_out)


def _read_rows(documents: DocumentList, indices: NDArray[np.int64], kind: Kind, buffer: Buffer) -> TextBatch:
    """Documents that are rows; they have no names that could tell HTML. Those of several files are put together."""
    assert documents.places is not None
    places = documents.places.take(indices)
    _refuse_if(places.starts.min() < 0, "rows before the first")
    cuts = np.flatnonzero(np.diff(places.file)) + 1
    made, left_out = [], []
    for run in np.split(np.arange(len(indices)), cuts):
        path = documents.path(int(indices[run[0]]))
        try:
            text, starts, lengths, failed = documents.opened.texts(
                path, kind, places.starts[run], places.lengths[run], Buffer() if len(cuts) else buffer
            )
        except OSError as error:
            left_out += [(index, reason_of(error), detail_of(error)) for index in indices[run].tolist()]
            continue
        except RowError as error:
            left_out += _of_rows(documents, indices[run], [error] * len(run))
            continue
        if failed:
            left_out += _of_rows(documents, indices[run[list(failed)]], list(failed.values()))
            good = np.delete(np.arange(len(run)), list(failed))
            run, starts, lengths = run[good], starts[good], lengths[good]
        made.append(TextBatch(indices[run], [b""] * len(run), text, starts, lengths, is_text=True))
    if not made:
        return replace(TextBatch.of([], []), left_out=left_out, is_text=True)
    if len(made) == 1:
        return replace(made[0], left_out=left_out)
    before = np.cumsum([0, *(len(each.text) for each in made)])
    return TextBatch(
        np.concatenate([each.indices for each in made]),
        [b""] * sum(len(each.indices) for each in made),
        np.concatenate([each.text for each in made]),
        np.concatenate([each.starts + start for each, start in zip(made, before[:-1], strict=True)]),
        np.concatenate([each.lengths for each in made]),
        left_out,
        is_text=True,
    )


def _of_rows(documents: DocumentList, indices: NDArray[np.int64], errors: list[RowError]) -> list[tuple[int, Reason, str]]:
    """Why rows of one file give no document: what is wrong with them, or that their file is another one now."""
    if len(documents.changed(indices[:1])):
        return [(index, Reason.CHANGED, "its file is not what was listed") for index in indices.tolist()]
    return [(index, error.reason, error.detail) for index, error in zip(indices.tolist(), errors, strict=True)]
