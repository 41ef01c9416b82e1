"""Folders, files, id lists and files of records -> an ordered list of documents."""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from lshdup.documents.document_list import DocumentList, typed_name
from lshdup.documents.files import stat_files
from lshdup.documents.locations import KnownRecords, Locations, expand_records
from lshdup.documents.missing import not_there, perhaps_meant
from lshdup.documents.patterns import Selection
from lshdup.documents.record_files import RecordFiles
from lshdup.documents.records import Kind, RecordFields, classify_file
from lshdup.params import DEFAULT_TEXT_FIELD, DocumentParams
from lshdup.skipped import Reason, Skipped
from lshdup.utils.messages import count_of
from lshdup.utils.ragged import StringTable

#: Suggestions are made for so many names that do not exist.
_SUGGESTIONS = 10


def find_documents(
    arguments: Iterable[bytes],
    params: DocumentParams,
    *,
    id_lists: bool = False,
    store: bytes | None = None,
    jobs: int = 1,
    on_skipped: Callable[[Skipped], None] = lambda _: None,
    known_records: KnownRecords = MappingProxyType({}),
    say: Callable[[str], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> DocumentList:
    """Return the documents that are named: files, files below folders, records, lines of id lists.

    JSON Lines and Parquet files that are named themselves are taken for their records; those in
    folders if the field of the text is set.

    Errors: InputError if no argument exists, or if a package for records is missing.
    Determinism: the order depends on names only. Of a folder that is reached by two ways, the first
    in the order of arguments and names counts.

    Parameters
    ----------
    arguments : folders and files, as typed; symbolic links among them are followed.
    params : which files are taken.
    id_lists : whether each line of each file is a document: a name, then integers (R4, R5).
    store : folder that is passed over silently, because lshdup wrote it.
    jobs : threads.
    on_skipped : notified of every file that is no document.
    known_records : records known from earlier runs; such files are not read.
    say : notified of a line for the user.
    warn : notified of what is probably a mistake.

    """
    files, kinds = find_files(
        arguments,
        params,
        id_lists=id_lists,
        store=store,
        jobs=jobs,
        on_skipped=on_skipped,
        say=say,
        warn=warn,
    )
    if id_lists:
        return _lines_of(files, on_skipped)
    if not kinds:
        return files
    opened = RecordFiles(
        None if store is None else Path(os.fsdecode(store)),
        RecordFields(params.text_field or DEFAULT_TEXT_FIELD, params.id_field),
        params.max_bytes,
    )
    names, sizes, mtimes, locations, skipped_records = expand_records(
        files.names, files.sizes, files.mtimes, kinds, opened, known_records, on_skipped
    )
    return DocumentList(
        names,
        sizes,
        mtimes,
        locations,
        max_bytes=params.max_bytes,
        record_files=opened,
        skipped_records=skipped_records,
    )


def find_files(
    arguments: Iterable[bytes],
    params: DocumentParams,
    *,
    id_lists: bool = False,
    store: bytes | None = None,
    jobs: int = 1,
    on_skipped: Callable[[Skipped], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> tuple[DocumentList, dict[bytes, Kind]]:
    """Return the files that `find_documents` takes, unopened, and the kind of those with records.

    Raises as `find_documents` does.
    """
    finder = _Finder(params, store, on_skipped, id_lists)
    missing = [missed for argument in arguments if (missed := finder.add(argument)) is not None]
    if missing and not finder.found:
        raise not_there(missing[0], "", "name folders or files that exist")
    for at, each in enumerate(missing):
        meant = perhaps_meant(each.name) if at < _SUGGESTIONS else ""
        on_skipped(replace(each, detail=f"{each.detail}; {meant}" if meant else each.detail))
    files = finder.files(jobs)
    for line in finder.selection.warnings(finder.met):
        warn(line)
    if not id_lists:
        finder.say_unused_options(files.names, say)
    return files, finder.records


class _Finder:
    """One walk over all arguments.

    found : (size, mtime) by name, or None for a file whose size is looked up with all others at the
        end.
    records : kind of the files that are taken for their records.
    """

    def __init__(
        self,
        params: DocumentParams,
        store: bytes | None,
        on_skipped: Callable[[Skipped], None],
        id_lists: bool,
    ) -> None:
        self.records: dict[bytes, Kind] = {}  # files that are taken for their records
        self._id_lists = id_lists
        self.found: dict[bytes, tuple[int, int] | None] = {}
        self._seen: dict[tuple[int, int], bytes] = {}  # folders, by device and number
        self._named: dict[int, bytes] = {}  # files that were named themselves, by number
        self._params = params
        self._store = _identity(store) if store is not None and os.path.isdir(store) else None
        self._on_skipped = on_skipped
        self.selection = Selection(params.include, params.exclude)
        self._excluded: list[bytes] = []

    def add(self, argument: bytes) -> Skipped | None:
        """Take the documents that an argument names; return it if it cannot be read."""
        name = typed_name(argument)
        try:
            status = os.stat(argument)
        except OSError as error:
            missed = Skipped.because(argument, error)
            return replace(missed, reason=Reason.MISSING) if error.errno == errno.ENOENT else missed
        is_folder = stat.S_ISDIR(status.st_mode)
        if not is_folder and self._met_already(argument, status):
            return None
        if is_folder and self.selection and not self.selection.enter(name):
            self._excluded.append(name)
        elif is_folder:
            self._walk(name)
        elif stat.S_ISREG(status.st_mode):
            self._take(name, status, named=True)
        else:
            return Skipped(name, Reason.UNREADABLE, "not a regular file")
        return None

    def files(self, jobs: int) -> DocumentList:
        """Return the files found, in byte order of their names."""
        for name in self._excluded:
            if name not in self.found:  # a file that is named itself is taken all the same
                self._on_skipped(Skipped(name, Reason.EXCLUDED))
        plain = [name for name, known in self.found.items() if known is None]
        stats = stat_files(plain, jobs)
        for index, error in stats.failed.items():
            if error is not None:
                self._fail(plain[index], error)
            else:  # it was a regular file when its folder was listed
                self._on_skipped(Skipped(plain[index], Reason.SPECIAL))
        large = stats.sizes > self._params.max_bytes
        if self._params.text_field:
            large &= ~np.array([self._has_records(name, named=False) for name in plain], bool)
        for index in np.flatnonzero(large).tolist():
            self._too_large(plain[index], int(stats.sizes[index]))
        good = np.flatnonzero((stats.sizes >= 0) & ~large)
        named = [(name, *known) for name, known in self.found.items() if known is not None]
        names = [plain[index] for index in good.tolist()] + [name for name, _, _ in named]
        sizes = np.concatenate(
            [stats.sizes[good], np.array([size for _, size, _ in named], np.int64)]
        )
        mtimes = np.concatenate(
            [stats.mtimes[good], np.array([mtime for _, _, mtime in named], np.int64)]
        )
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        names = [names[index] for index in order.tolist()]
        table, params = StringTable.from_strings(names), self._params
        return DocumentList(
            table, sizes[order], mtimes[order], max_bytes=params.max_bytes, formats=params.formats
        )

    def _met_already(self, argument: bytes, status: os.stat_result) -> bool:
        """Return whether a named file was found under another spelling.

        Hard links are other files.
        """
        first = self._named.setdefault(status.st_ino, argument)
        if first is not argument and os.path.realpath(first) == os.path.realpath(argument):
            return True
        if not self._seen:
            return False
        parent, base = os.path.split(argument)
        walked = self._seen.get(_identity(parent or b"."))
        return walked is not None and typed_name(walked + b"/" + base) in self.found

    def _was_named(self, entry: "os.DirEntry[bytes]", name: bytes) -> bool:
        """Return whether a file in a folder was named itself before, under another spelling."""
        named = self._named.get(entry.inode()) if self._named else None
        return (
            named is not None
            and typed_name(named) != name
            and os.path.realpath(named) == os.path.realpath(name)
        )

    def _walk(self, top: bytes) -> None:
        folders = [top]
        simple = not (self._named or self.selection)
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
                    # With links, the name of a folder depends on the order of its names.
                    for entry in (
                        sorted(entries, key=lambda entry: entry.name)
                        if self._params.follow
                        else entries
                    ):
                        name = entry.name
                        if simple and name[0] != dot and entry.is_file(follow_symlinks=False):
                            self.found[
                                prefix + name if prefix or name[0] != dash else b"./" + name
                            ] = None
                        else:
                            name = prefix + name
                            self._meet(
                                entry, b"./" + name if name.startswith(b"-") else name, folders
                            )
            except OSError as error:
                self._fail(folder, error)

    def _meet(self, entry: "os.DirEntry[bytes]", name: bytes, folders: list[bytes]) -> None:
        try:
            link = entry.is_symlink()
            is_folder = entry.is_dir(follow_symlinks=self._params.follow)
            if is_folder and self._store is not None and _identity(name) == self._store:
                return
            allowed = not self.selection or self.selection.allows(name, is_folder=is_folder)
            if entry.name.startswith(b".") and not self._params.hidden:
                self._on_skipped(Skipped(name, Reason.HIDDEN))
            elif link and not self._params.follow:
                self._on_skipped(Skipped(name, Reason.LINK))
            elif not allowed:
                self._excluded.append(name)
            elif is_folder:
                folders.append(name)
            elif self._was_named(entry, name):
                return
            elif entry.is_file(follow_symlinks=False):
                self.found[name] = None
            elif entry.is_file():  # a link that is followed
                self._take(name, entry.stat())
            elif link and not os.path.exists(name):  # noqa: PTH110 (bytes path)
                self._on_skipped(Skipped(name, Reason.VANISHED, "a symbolic link to nothing"))
            else:
                self._on_skipped(Skipped(name, Reason.SPECIAL))
        except OSError as error:
            self._fail(name, error)

    def met(self) -> Iterator[bytes]:
        """Yield the names of folders and files that were met."""
        yield from self._seen.values()
        yield from self.found

    def _take(self, name: bytes, status: os.stat_result, *, named: bool = False) -> None:
        if not self._has_records(name, named=named) and status.st_size > self._params.max_bytes:
            self._too_large(name, status.st_size)
        else:
            self.found[name] = (status.st_size, status.st_mtime_ns)

    def _has_records(self, name: bytes, *, named: bool) -> bool:
        """Return whether a file is taken for its records."""
        if self._id_lists:
            return False
        kind = classify_file(name, named=named, field_given=bool(self._params.text_field))
        if kind != Kind.FILE:
            self.records[name] = kind
        return kind != Kind.FILE

    def say_unused_options(self, names: StringTable, say: Callable[[str], None]) -> None:
        """Say which files could have been taken for their records, and which options do nothing."""
        if self._params.text_field or self._params.id_field:
            if not self.records:
                option = "--text-field" if self._params.text_field else "--id-field"
                say(f"{option} had no effect: no JSON Lines or Parquet file was met")
            return
        if any(ending in names.blob.tobytes() for ending in (b".jsonl", b".ndjson")):
            met = [
                name
                for name in names
                if name not in self.records
                and classify_file(name, named=True, field_given=False) == Kind.JSON
            ]
            if met:
                what = count_of(
                    len(met),
                    "JSON Lines file in a folder is",
                    "JSON Lines files in folders are each",
                )
                say(f"{what} one document; --text-field NAME takes the rows")

    def _too_large(self, name: bytes, size: int) -> None:
        self._on_skipped(
            Skipped(
                name, Reason.TOO_LARGE, f"{size} bytes, --max-bytes is {self._params.max_bytes}"
            )
        )

    def _fail(self, name: bytes, error: OSError) -> None:
        self._on_skipped(Skipped.because(name, error))


def _identity(path: bytes) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _lines_of(files: DocumentList, on_skipped: Callable[[Skipped], None]) -> DocumentList:
    """Return the lines of id lists as documents: names, and where the ids of each are."""
    found: dict[bytes, tuple[bytes, int, int, int, int]] = {}
    for path, size, mtime in zip(
        files.names, files.sizes.tolist(), files.mtimes.tolist(), strict=True
    ):
        try:
            with open(path, "rb") as lines:  # noqa: PTH123 (bytes path)
                start = 0
                for number, line in enumerate(lines, 1):
                    name, body = _split_line(line)
                    if name in found:
                        detail = f"line {number} of {os.fsdecode(path)}"
                        on_skipped(Skipped(name, Reason.REPEATED, detail))
                    elif name:
                        found[name] = (path, size, mtime, start + body, len(line) - body)
                    start += len(line)
        except OSError as error:
            on_skipped(Skipped.because(path, error))
    rows = sorted(found.items())
    columns = list(zip(*(row for _, row in rows), strict=True)) or [(), (), (), (), ()]
    numbers = {path: number for number, path in enumerate(files.names)}
    locations = Locations(
        files.names,
        np.full(len(files), Kind.IDS, np.uint8),
        np.array([numbers[path] for path in columns[0]], np.int64),
        np.array(columns[3], np.int64),
        np.array(columns[4], np.int64),
        np.zeros(len(rows), np.int64),
    )
    names = StringTable.from_strings(name for name, _ in rows)
    return DocumentList(
        names,
        np.array(columns[1], np.int64),
        np.array(columns[2], np.int64),
        locations,
        max_bytes=files.max_bytes,
    )


def _split_line(line: bytes) -> tuple[bytes, int]:
    """Return the name in a line of an id list, and the position where its ids begin."""
    parts = line.split(None, 1)
    if not parts:
        return b"", 0
    return parts[0], line.index(parts[0]) + len(parts[0])
