"""Folders, files, file lists and id lists -> an ordered list of documents, and their bytes in batches.

Inputs are read here only, by means of files.py. What a byte means is not decided here (formats.py, shingles.py). Called by workspace.py.
"""

import enum
import errno
import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.errors import ArtifactError, InputError
from lshdup.files import Buffer, read_files, stat_files
from lshdup.params import DEFAULT_MAX_BYTES, DocumentParams
from lshdup.ragged import PADDING, Check, StringTable, trusted

#: Batches end at whichever comes first: few enough documents to feed all threads, few enough bytes to stay in memory.
BATCH_DOCUMENTS = 512
BATCH_BYTES = 4 << 20


class Reason(enum.StrEnum):
    """Why a file that was met is not compared."""

    BINARY = "binary"
    FORMAT = "format not supported"
    EMPTY = "no tokens"
    HIDDEN = "hidden"
    LINK = "symbolic link"
    SPECIAL = "not a regular file"
    EXCLUDED = "excluded"
    TOO_LARGE = "too large"
    UNREADABLE = "unreadable"
    MISSING = "missing"
    VANISHED = "vanished"
    CHANGED = "changed while in use"
    UNDECODABLE = "undecodable"
    NOT_IDS = "not integers"
    REPEATED = "repeated name"
    MARKUP = "too much markup"

    @property
    def is_error(self) -> bool:
        """Whether a person asked for such a file and did not get it, even if it was only met in a folder."""
        return self not in _EXPECTED


_EXPECTED = {Reason.BINARY, Reason.FORMAT, Reason.EMPTY, Reason.HIDDEN, Reason.LINK, Reason.SPECIAL, Reason.EXCLUDED}


@dataclass(frozen=True)
class LeftOut:
    """A file that was met and is not compared, and why. named : it was named itself, not met in a folder."""

    name: bytes
    reason: Reason
    detail: str = ""
    named: bool = False

    @property
    def is_error(self) -> bool:
        """Whether a person asked for this file and did not get it: exit code 2."""
        return self.reason.is_error or (self.named and self.reason in (Reason.BINARY, Reason.FORMAT))


@dataclass(frozen=True)
class DocumentList:
    """Documents in byte order of their names.

    names : n names. sizes, mtimes : int64 arrays of shape (n,), bytes and nanoseconds of the file a document is in. paths : the files they
    are in; None where names are paths. starts, lengths : int64 arrays of shape (n,), first byte and number of bytes of the documents that
    are lines of an id list; None where they are whole files. home : the folder that names and paths start from; empty: the current one.
    max_bytes : a file that is larger when it is read is not read. check : told what of the arrays is used.
    """

    names: StringTable
    sizes: NDArray[np.int64]
    mtimes: NDArray[np.int64]
    paths: StringTable | None = None
    starts: NDArray[np.int64] | None = None
    lengths: NDArray[np.int64] | None = None
    home: bytes = b""
    max_bytes: int = DEFAULT_MAX_BYTES
    check: Check = trusted

    def __len__(self) -> int:
        return len(self.names)

    def check_rows(self, indices: NDArray[np.int64], *more: NDArray[Any]) -> None:
        """Tell `check` that these documents are looked at: what files they are, where in them, and `more` columns."""
        for column in (self.sizes, self.mtimes, self.starts, self.lengths, *more):
            if column is not None:
                self.check(column, indices, indices + 1)

    def path(self, index: int) -> bytes:
        """Where to read a document from, as seen from the current folder."""
        name = (self.names if self.paths is None else self.paths)[index]
        _refuse_if(b"\0" in name, "a path with NUL in it")
        return os.path.join(self.home, name)  # noqa: PTH118 (bytes path)

    def changed(self, indices: NDArray[np.int64]) -> int:
        """How many of these documents have vanished, or have another size or time than when they were listed. Opens none."""
        changed = 0
        self.check_rows(indices)
        for index in indices.tolist():
            try:
                status = os.stat(self.path(index))
                changed += (status.st_size, status.st_mtime_ns) != (self.sizes[index], self.mtimes[index])
            except OSError:
                changed += 1
        return changed

    def typed_names(self, indices: NDArray[np.int64]) -> list[bytes]:
        """Names as they would be typed from the current folder."""
        try:
            names = list(self.names.take(indices))
        except IndexError:
            _refuse_if(True, "documents whose names are not there")
        if not self.home or self.paths is not None:
            return names
        return [typed_name(os.path.relpath(os.path.join(self.home, name))) for name in names]  # noqa: PTH118 (bytes path)

    def take(self, indices: NDArray[np.int64]) -> "DocumentList":
        """The documents at `indices`, in that order."""
        self.check_rows(indices)
        return DocumentList(
            self.names.take(indices),
            self.sizes[indices],
            self.mtimes[indices],
            None if self.paths is None else self.paths.take(indices),
            None if self.starts is None else self.starts[indices],
            None if self.lengths is None else self.lengths[indices],
            self.home,
            self.max_bytes,
        )

    @property
    def spans(self) -> NDArray[np.int64]:
        """int64 array of shape (n,): bytes to read for each document."""
        return self.sizes if self.lengths is None else self.lengths


@dataclass(frozen=True)
class TextBatch:
    """The bytes of some documents, one after the other, in a buffer with room to load past the end.

    indices : int64 array of shape (m,), which documents of the list these are. names : theirs. text : uint8 array. starts, lengths :
    int64 arrays of shape (m,). left_out : (document, reason, detail) for those that could not be read.
    """

    indices: NDArray[np.int64]
    names: list[bytes]
    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    left_out: list[tuple[int, Reason, str]] = field(default_factory=list)

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
) -> DocumentList:
    """Every document below the named folders, of the named files, or in the named id lists.

    arguments : folders and files, as typed; a symbolic link that is named itself is followed. id_lists : each line of each file is a
    document: a name, then integers (R4, R5). store : a folder that is left out silently, because lshdup wrote it. on_left_out : told
    every file that was met and is not a document.

    Raises InputError if no argument exists at all. Determinism: the order depends on names only; of a folder that is reached by two ways,
    the first in the order of arguments and names counts.
    """
    finder = _Finder(params, store, on_left_out)
    missing = [missed for argument in arguments if (missed := finder.add(argument)) is not None]
    if missing and not finder.found:
        message = f"{os.fsdecode(missing[0].name)!r}: {missing[0].detail}"
        raise InputError(message, "name folders or files that exist")
    for each in missing:
        on_left_out(each)
    files = finder.files(jobs)
    return _lines_of(files, on_left_out) if id_lists else files


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

    def __init__(self, params: DocumentParams, store: bytes | None, on_left_out: Callable[[LeftOut], None]) -> None:
        self.found: dict[bytes, tuple[int, int] | None] = {}
        self._seen: dict[tuple[int, int], bytes] = {}  # folders, by device and number
        self._named: dict[int, bytes] = {}  # files that were named themselves, by number
        self._params = params
        self._store = _identity(store) if store is not None and os.path.isdir(store) else None
        self._on_left_out = on_left_out
        self._include = _globs(params.include)
        self._exclude = _globs(params.exclude)

    def add(self, argument: bytes) -> LeftOut | None:
        """Take what an argument names; returns it if it cannot be had."""
        name = typed_name(argument)
        try:
            status = os.stat(argument)
        except OSError as error:
            return replace(_left_out(argument, error), reason=Reason.MISSING) if error.errno == errno.ENOENT else _left_out(argument, error)
        if stat.S_ISDIR(status.st_mode):
            self._walk(name)
        elif self._met_already(argument, status):
            return None
        elif self._excluded(os.path.basename(name), name):  # noqa: PTH119 (bytes path)
            self._on_left_out(LeftOut(name, Reason.EXCLUDED))
        elif stat.S_ISREG(status.st_mode):
            self._take(name, status)
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
        for index in np.flatnonzero(stats.sizes > self._params.max_bytes).tolist():
            self._too_large(plain[index], int(stats.sizes[index]))
        good = np.flatnonzero((stats.sizes >= 0) & (stats.sizes <= self._params.max_bytes))
        named = [(name, *known) for name, known in self.found.items() if known is not None]
        names = [plain[index] for index in good.tolist()] + [name for name, _, _ in named]
        sizes = np.concatenate([stats.sizes[good], np.array([size for _, size, _ in named], np.int64)])
        mtimes = np.concatenate([stats.mtimes[good], np.array([mtime for _, _, mtime in named], np.int64)])
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        names = [names[index] for index in order.tolist()]
        return DocumentList(StringTable.from_strings(names), sizes[order], mtimes[order], max_bytes=self._params.max_bytes)

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

    def _take(self, name: bytes, status: os.stat_result) -> None:
        if status.st_size > self._params.max_bytes:
            self._too_large(name, status.st_size)
        else:
            self.found[name] = (status.st_size, status.st_mtime_ns)

    def _too_large(self, name: bytes, size: int) -> None:
        self._on_left_out(LeftOut(name, Reason.TOO_LARGE, f"{size} bytes, --max-bytes is {self._params.max_bytes}"))

    def _fail(self, name: bytes, error: OSError) -> None:
        self._on_left_out(_left_out(name, error))


def _identity(path: bytes) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _globs(patterns: tuple[str, ...]) -> list[Callable[[bytes], object]]:
    return [re.compile(fnmatch.translate(pattern).encode("utf-8", "surrogateescape")).match for pattern in patterns]


def _left_out(name: bytes, error: OSError) -> LeftOut:
    return LeftOut(name, _reason_of(error), _detail_of(error))


def _reason_of(error: OSError) -> Reason:
    if error.errno in (errno.ENOENT, errno.ESTALE):
        return Reason.VANISHED
    return Reason.TOO_LARGE if error.errno == errno.EFBIG else Reason.UNREADABLE


def _detail_of(error: OSError) -> str:
    if error.errno == errno.ENAMETOOLONG:
        return "its path is longer than the system takes; start lshdup in a folder further down"
    return error.strerror or ""


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
            on_left_out(_left_out(path, error))
    rows = sorted(found.items())
    columns = list(zip(*(row for _, row in rows), strict=True)) or [(), (), (), (), ()]
    return DocumentList(
        StringTable.from_strings(name for name, _ in rows),
        np.array(columns[1], np.int64),
        np.array(columns[2], np.int64),
        StringTable.from_strings(columns[0]),
        np.array(columns[3], np.int64),
        np.array(columns[4], np.int64),
        max_bytes=files.max_bytes,
    )


def _split_line(line: bytes) -> tuple[bytes, int]:
    """Name of an id-list line, and the position where its ids begin."""
    parts = line.split(None, 1)
    if not parts:
        return b"", 0
    return parts[0], line.index(parts[0]) + len(parts[0])


# --- reading documents --------------------------------------------------------------------------------------------------


def batches(documents: DocumentList, indices: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Cut `indices` into runs of at most BATCH_DOCUMENTS documents and about BATCH_BYTES bytes."""
    spans = documents.spans[indices]
    ends = np.cumsum(spans)
    start = 0
    while start < len(indices):
        before = int(ends[start] - spans[start])
        fits = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
        end = min(max(fits, start + 1), start + BATCH_DOCUMENTS)
        yield indices[start:end]
        start = end


def read_batch(documents: DocumentList, indices: NDArray[np.int64], buffer: Buffer | None = None) -> TextBatch:
    """The bytes of some documents; those that cannot be read are in `left_out` and not in `indices`.

    buffer : memory for them, which the next batch may use again.
    Cost: one open, read and close a file, without the GIL. A file that grew or shrank since it was listed is read as it is now.
    Raises ArtifactError for a list that no folder can have given: it comes from an artifact that says what is not so.
    """
    documents.check_rows(indices)
    spans = documents.spans[indices]
    _refuse_if(len(indices) and (spans.min() < 0 or spans.max() >= 1 << 31), "documents of a size that none can have")
    names = documents.names.some(indices)
    _refuse_if(documents.paths is None and b"\0" in b"".join(names), "a path with NUL in it")
    if documents.starts is not None and documents.lengths is not None:
        return _read_lines(documents, indices, names)
    paths = names if not documents.home else [os.path.join(documents.home, name) for name in names]  # noqa: PTH118 (bytes path)
    contents = read_files(paths, documents.sizes[indices], buffer, documents.max_bytes)
    if not contents.failed:
        return TextBatch(indices, names, contents.text, contents.starts, contents.lengths)
    left_out = [(int(indices[i]), _reason_of(error), _detail_of(error)) for i, error in contents.failed.items()]
    good = np.delete(np.arange(len(indices)), list(contents.failed))
    names = [names[i] for i in good.tolist()]
    return TextBatch(indices[good], names, contents.text, contents.starts[good], contents.lengths[good], left_out)


def _refuse_if(wrong: object, what: str) -> None:
    """Of an artifact that is only looked into, not every number has been checked; where one would lead astray, this is called."""
    if wrong:
        message = f"the store names {what}: it is damaged"
        raise ArtifactError(message, "run the command with DOCS")


def _read_lines(documents: DocumentList, indices: NDArray[np.int64], names: list[bytes]) -> TextBatch:
    """Documents that are lines of id lists."""
    assert documents.starts is not None
    assert documents.lengths is not None
    read: list[int] = []
    texts: list[bytes] = []
    left_out: list[tuple[int, Reason, str]] = []
    for position, index in enumerate(indices.tolist()):
        try:
            with open(documents.path(index), "rb") as file:  # noqa: PTH123 (bytes path)
                file.seek(int(documents.starts[index]))
                text = file.read(int(documents.lengths[index]))
        except OSError as error:
            left_out.append((index, _reason_of(error), _detail_of(error)))
            continue
        if len(text) < documents.lengths[index]:
            left_out.append((index, Reason.CHANGED, "its list has become shorter"))
            continue
        texts.append(text)
        read.append(position)
    batch = TextBatch.of(indices[read].tolist(), texts, [names[position] for position in read])
    return replace(batch, left_out=left_out)
