"""Folders, files, id lists and files of records -> an ordered list of documents; names that do not
exist.
"""

import errno
import os
import shlex
import shutil
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

import numpy as np

from lshdup.base.atomic import MORE_ROOM, explained, temporary_file, temporary_place
from lshdup.base.compression import CHUNK, bare_name
from lshdup.base.forms import PAGE_ENDINGS
from lshdup.base.mbox import LARGE, is_mailbox_file
from lshdup.base.params import ACCEPTED_FILE, SPLITS, STDIN, STREAMS, DocumentParams
from lshdup.base.ragged import StringTable
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, Skipped, SkippedFile
from lshdup.base.wording import count_of, did_you_mean, join_names, printable, quoted
from lshdup.errors import InputError
from lshdup.sources.document_list import DocumentList, typed_name
from lshdup.sources.expansion import KnownRecords, expand_records, list_lines
from lshdup.sources.files import LOOKED_UP_AT_ONCE, Lookup
from lshdup.sources.patterns import GLOB, Rules, Selection
from lshdup.sources.readers import (
    ARCHIVE_ENDINGS,
    JSON_LINES_ENDINGS,
    RecordFiles,
    classify_file,
    is_dump,
    may_end,
)
from lshdup.sources.records import MESSAGE_ID, Kind, RecordFields, describe_too_large

_ACCEPTED = os.fsencode(ACCEPTED_FILE)

#: Suggestions are made for so many names that do not exist.
_SUGGESTIONS = 10


def find_documents(
    run: Run,
    arguments: Iterable[bytes],
    params: DocumentParams,
    *,
    id_lists: bool = False,
    store: bytes | None = None,
    known_records: KnownRecords = MappingProxyType({}),
) -> DocumentList:
    """Return the documents that are named: files, files below folders, records, lines of id lists.

    JSON Lines, Parquet files and archives that are named themselves are taken for their records;
    those in folders if the field of the text is set, or archives are requested.

    Errors: InputError if no argument exists, or if a package for records is missing.
    Determinism: the order depends on names only. A file or folder that is reached by two ways is
    taken once: by a way without symbolic links, else by the first in byte order of the names.

    Parameters
    ----------
    arguments : folders and files, as typed; symbolic links among them are followed.
    params : which files are taken.
    id_lists : whether each line of each file is a document: a name, then integers (R4, R5).
    store : folder that is passed over silently, because lshdup wrote it.
    known_records : records known from earlier runs; such files are not read.

    """
    skipped: list[SkippedFile] = []

    def skip(what: Skipped) -> None:
        if what.reason.stays:
            skipped.append(SkippedFile(what))
        run.skipped(what)

    finder = Finder(run.but(skipped=skip), params, id_lists, store)
    files = finder.find(arguments)
    if id_lists:
        return replace(list_lines(finder.run, files), skipped=tuple(skipped))
    folder = None if store is None else Path(os.fsdecode(store))
    opened = RecordFiles(
        folder, RecordFields.of(params), params.max_bytes, params.formats, finder.streams
    )
    too_large = set()
    for (path, *stamp), known in known_records.items():
        at = files.names.find(path) if known is not None and known.kind == Kind.MBOX else None
        was_mailbox = at is not None and stamp == [files.sizes[at], files.mtimes[at]]
        was_mailbox = was_mailbox and not params.whole
        if was_mailbox and finder.records.get(path, Kind.SPLIT).is_split:
            if stamp[0] <= params.max_bytes:
                finder.records[path] = Kind.MBOX
            else:  # Only one that --split cuts may be so large.
                too_large.add((path, *stamp))
    known_records = {key: known_records[key] for key in known_records if key not in too_large}
    found = replace(files, record_files=opened)
    if finder.records:
        found, listed = expand_records(run, found, finder.records, known_records)
        for each in listed:
            run.skipped(each.skipped)
            skipped.append(each if each.record else SkippedFile(each.skipped))
    found = replace(found, skipped=tuple(skipped))
    if params.split and max(found.kinds, default=Kind.FILE) < Kind.SPLIT:
        none = "matches no line of any text file"
        none = f"finds no {params.split} in any file" if params.split in SPLITS else none
        meant = did_you_mean(params.split, SPLITS, "--split {}".format)
        meant = f"; {meant}" if meant and params.split not in SPLITS else ""
        run.warn(f"--split {quoted(params.split)} {none}: none was cut{meant}")
    return found


class _Folder(NamedTuple):
    """A folder to walk. rules : those of the folder above."""

    name: bytes
    rules: Rules | None = None


@dataclass
class Finder:
    """One walk over all arguments; the first four fields are as of `find_documents`.

    records : kind of the files that are taken for their records.
    streams : of `RecordFiles`.
    """

    run: Run
    params: DocumentParams
    id_lists: bool = False
    store: bytes | None = None
    records: dict[bytes, Kind] = field(default_factory=dict)
    streams: dict[bytes, IO[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._found: dict[bytes, os.stat_result | None] = {}  # None: looked up with all others
        self._lookup = Lookup(self.run)
        self._folders: dict[tuple[int, int], bytes] = {}  # by device and number
        self._named: dict[int, bytes] = {}  # files that were named themselves, by number
        include, exclude = self.params.include, self.params.exclude
        self._selection = Selection(include, exclude) if include or exclude else None
        self._excluded: dict[bytes, Reason] = {}
        self._linked_files: list[bytes] = []  # links that are followed, after all else
        self._linked_folders: list[_Folder] = []
        self._has_links = False
        store = self.store
        self._store = _identity(store) if store is not None and os.path.isdir(store) else None

    def find(self, arguments: Iterable[bytes]) -> DocumentList:
        """Return the files that `find_documents` takes, unopened, in byte order of their names.

        Raises as `find_documents` does.
        """
        arguments = list(arguments)
        missing = [missed for argument in arguments if (missed := self._add(argument)) is not None]
        self._follow_links()
        if missing and not self._found:
            raise not_there(missing[0], "", "name folders or files that exist", included=True)
        for at, each in enumerate(missing):
            meant = perhaps_meant(each.name, included=True) if at < _SUGGESTIONS else ""
            self.run.skipped(
                replace(each, detail=f"{each.detail}; {meant}" if meant else each.detail)
            )
        files = self._files()
        if self._selection is not None:
            for line in self._selection.warnings([*self._folders.values(), *self._found]):
                self.run.warn(line)
        if not self.id_lists:
            self._say_unused_options(files.names, arguments)
        return files

    def _add(self, argument: bytes) -> Skipped | None:
        """Take the documents that an argument names; return it if it cannot be read."""
        if argument == STDIN and self.params.stdin:
            self._take_stream(STDIN)
            return None
        name = typed_name(argument)
        try:
            status = os.stat(argument)
        except OSError as error:
            missed = Skipped.because(argument, error)
            return replace(missed, reason=Reason.MISSING) if error.errno == errno.ENOENT else missed
        if stat.S_ISDIR(status.st_mode):
            if self._selection is not None and not self._selection.enter(name):
                self._excluded[name] = Reason.EXCLUDED
            else:
                self._walk(_Folder(name))
        elif os.path.basename(name) == _ACCEPTED:  # noqa: PTH119 (bytes path)
            self._excluded[name] = Reason.ACCEPTED  # It is no document, even if it is named.
        elif not self._met_already(argument, status):
            if stat.S_ISFIFO(status.st_mode) and self.params.stdin:
                self._take_stream(name)
                return None
            if not stat.S_ISREG(status.st_mode):
                detail = "not a regular file"
                if stat.S_ISFIFO(status.st_mode):
                    detail = f"a pipe; DOCS may be one, with --stdin {'|'.join(STREAMS)}"
                return Skipped(name, Reason.UNREADABLE, detail)
            self._take([name], status)
            self._has_links |= os.path.islink(argument)  # noqa: PTH114 (bytes path)
            self._has_records(name, named=True)
        return None

    def _take(self, names: list[bytes], status: os.stat_result | None = None) -> None:
        """Take files. status : of one that is not looked up with all others."""
        new = [name for name in names if name not in self._found]
        self._found.update(dict.fromkeys(new, status))
        self._lookup.add(new)

    def _take_stream(self, name: bytes) -> None:
        """Copy standard input or a pipe, which can be read once, into a temporary file without a
        name, and take that for its records. Raises InputError if it cannot be read or copied.
        """
        if name in self.streams:
            return
        folder, kind = self.run.arrays.folder, self.params.stdin
        message = f"{printable(name)} cannot be copied to {temporary_place(folder)}"
        with explained(message, MORE_ROOM, InputError):
            copy = self.streams[name] = temporary_file(folder)
            is_stdin = name == STDIN
            with open(0 if is_stdin else name, "rb", closefd=not is_stdin) as stream:
                shutil.copyfileobj(stream, copy, CHUNK)
            copy.flush()
            if not copy.tell():
                self.run.warn(f"{printable(name)} is empty")
        self._take([name], os.fstat(copy.fileno()))
        self._has_links = True  # as /dev/fd/N is one
        self.records[name] = Kind.MBOX
        if kind != "mbox":
            ending = os.fsencode(f".{kind}")
            self.records[name] = classify_file(ending, named=True, field_given=True, archives=True)

    def _files(self) -> DocumentList:
        """Return the files that were found and are not too large."""
        for name, reason in self._excluded.items():
            if name not in self._found:  # a file that is named itself is taken all the same
                self._skip(name, reason)
        names, stats = self._lookup.finish()
        params = self.params
        for at, name in enumerate(names) if self._named or self._has_links else ():
            if (status := self._found[name]) is not None:
                stats.sizes[at], stats.mtimes[at] = status.st_size, status.st_mtime_ns
                stats.failed.pop(at, None)
        for at, error in stats.failed.items():
            if error is not None:
                self.run.skipped(Skipped.because(names[at], error))
            else:  # it was a regular file when its folder was listed
                self._skip(names[at], Reason.SPECIAL)
        if params.text_field or params.archives or params.split:
            for name in names:
                if name not in self.streams:
                    self._has_records(name)
        keep = stats.sizes >= 0
        most, may_be_mail = params.whole or params.max_bytes, not (self.id_lists or params.whole)
        for at in np.flatnonzero(stats.sizes > min(most, LARGE)).tolist():
            fits = stats.sizes[at] <= most
            if names[at] in self.records:
                continue
            if may_be_mail and is_mailbox_file(names[at], several=fits):
                self.records[names[at]] = Kind.MBOX
            elif not fits:
                keep[at] = False
                detail = describe_too_large(stats.sizes[at], most)
                self._skip(names[at], Reason.TOO_LARGE, detail)
        documents = DocumentList(
            names,
            stats.sizes,
            stats.mtimes,
            max_bytes=params.max_bytes,
            formats=params.formats,
            has_links=self._has_links,
        )
        return documents if keep.all() else documents.take(self.run, np.flatnonzero(keep))

    def _met_already(self, path: bytes, status: os.stat_result) -> bool:
        """Return whether a named file was found under another spelling."""
        if self._was_named(path, self._named.setdefault(status.st_ino, path)):
            return True
        if not self._folders:
            return False
        is_link = os.path.islink(path)  # noqa: PTH114 (bytes path)
        return self._was_walked(os.path.realpath(path) if is_link else path)

    def _was_walked(self, path: bytes) -> bool:
        """Return whether a file was found in a folder that was walked."""
        parent, base = os.path.split(path)
        walked = self._folders.get(_identity(parent or b"."))
        return walked is not None and typed_name(walked + b"/" + base) in self._found

    def _follow_links(self) -> None:
        """Take what only symbolic links lead to: a link and its target are one document."""
        while self._linked_folders:
            batch = sorted(self._linked_folders, key=lambda each: each.name)
            self._linked_folders.clear()
            for folder in batch:
                self._walk(folder)
        targets: set[bytes] = set()
        for name in sorted(self._linked_files):
            try:
                status, target = os.stat(name), os.path.realpath(name)
                if target not in targets and not self._was_walked(target):
                    targets.add(target)
                    if not self._was_named(name, self._named.get(status.st_ino)):
                        self._take([name], status)
                        self._has_links = True
            except OSError as error:
                self.run.skipped(Skipped.because(name, error))

    @staticmethod
    def _was_named(path: bytes, named: bytes | None) -> bool:
        """Return whether two paths of one number are one file; hard links are other files."""
        return (
            named is not None
            and named is not path
            and os.path.realpath(named) == os.path.realpath(path)
        )

    def _walk(self, top: _Folder) -> None:
        folders = [top]
        simple = not (self._named or self._selection is not None or self.params.gitignore)
        dot, dash = b".-"
        while folders:
            folder, rules = folders.pop()
            plain: list[bytes] = []  # The loop over all files: each look-up and call costs.
            try:
                identity = _identity(folder)
                if identity in self._folders:
                    continue
                self._folders[identity] = folder
                prefix = b"" if folder == b"." else folder.rstrip(b"/") + b"/"
                if self.params.gitignore:
                    cut = len(prefix)
                    rules = Rules.of(folder, rules, cut) if rules else Rules.of_named(folder, cut)
                here = _Folder(folder, rules)
                with os.scandir(folder) as entries:
                    for entry in entries:
                        base = entry.name
                        name = prefix + base if prefix or base[0] != dash else b"./" + base
                        is_plain = simple and base[0] != dot and base != _ACCEPTED
                        if not (is_plain and entry.is_file(follow_symlinks=False)):
                            self._meet(entry, name, here, folders)
                            continue
                        plain.append(name)
                        if len(plain) == LOOKED_UP_AT_ONCE:
                            self._take(plain)
                            plain.clear()
            except OSError as error:
                self.run.skipped(Skipped.because(folder, error))
            self._take(plain)

    def _meet(
        self, entry: "os.DirEntry[bytes]", name: bytes, above: _Folder, folders: list[_Folder]
    ) -> None:
        try:
            link = entry.is_symlink()
            is_folder = entry.is_dir(follow_symlinks=self.params.follow)
            if is_folder and self._store is not None and _identity(name) == self._store:
                return
            excluded = None
            if self._selection is not None:
                excluded = self._selection.skips(name, is_folder=is_folder)
            if entry.name.startswith(b".") and not self.params.hidden:
                self._skip(name, Reason.HIDDEN)
            elif link and not self.params.follow:
                self._skip(name, Reason.LINK)
            elif entry.name == _ACCEPTED and not is_folder:
                self._excluded[name] = Reason.ACCEPTED
            elif excluded is not None:
                self._excluded[name] = excluded
            elif above.rules and above.rules.ignore(name, is_folder=is_folder and not link):
                self._excluded[name] = Reason.IGNORED
            elif is_folder:
                below = _Folder(name, above.rules)
                (self._linked_folders if link else folders).append(below)
            elif self._was_named(name, self._named.get(entry.inode())):
                return
            elif entry.is_file(follow_symlinks=False):
                self._take([name])
            elif entry.is_file():
                self._linked_files.append(name)
            elif link and not os.path.exists(name):  # noqa: PTH110 (bytes path)
                self._skip(name, Reason.VANISHED, "a symbolic link to nothing")
            else:
                self._skip(name, Reason.SPECIAL)
        except OSError as error:
            self.run.skipped(Skipped.because(name, error))

    def _has_records(self, name: bytes, *, named: bool = False) -> None:
        """Remember a file that is taken for its records."""
        params = self.params
        kind = classify_file(
            name, named=named, field_given=bool(params.text_field), archives=params.archives
        )
        if kind == Kind.WIKI and not is_dump(name):
            kind = Kind.FILE
        if (
            kind == Kind.FILE
            and params.split
            and (params.split in SPLITS or not bare_name(name).lower().endswith(PAGE_ENDINGS))
        ):
            kind = Kind.SECTION if params.split in SPLITS else Kind.SPLIT
        if kind == Kind.FILE and named and params.whole and is_mailbox_file(name):
            kind = Kind.MBOX
        if kind != Kind.FILE and not self.id_lists:
            self.records[name] = kind

    def _say_unused_options(self, names: StringTable, arguments: Sequence[bytes]) -> None:
        """Say which files could have been taken for their records, and which options do nothing.

        arguments : one side of a comparison; there may be records on the other.
        """
        met = Counter[Kind]()
        if not self.params.whole and may_end(names, (*ARCHIVE_ENDINGS, *JSON_LINES_ENDINGS)):
            met.update(
                classify_file(name, named=True, field_given=False, archives=False)
                for name in names
                if name not in self.records
            )
        if closed := met[Kind.TAR] + met[Kind.ZIP] + met[Kind.WARC]:
            what = count_of(closed, "archive in a folder is", "archives in folders are")
            self.run.say(f"{what} not opened; --archives takes the documents in them")
        if self.params.text_field or self.params.id_field:
            option = "--text-field" if self.params.text_field else "--id-field"
            may_name_mails = self.params.id_field.lower() == MESSAGE_ID and option == "--id-field"
            if not may_name_mails and not any(kind.is_row for kind in self.records.values()):
                where = join_names(map(printable, arguments), 3)
                self.run.say(
                    f"{option} has no effect on {where}: no JSON Lines, CSV or Parquet file"
                )
        elif rows := met[Kind.JSON]:
            one, many = "JSON Lines file in a folder is", "JSON Lines files in folders are each"
            what = count_of(rows, one, many)
            self.run.say(f"{what} one document; --text-field NAME takes the rows")

    def _skip(self, name: bytes, reason: Reason, detail: str = "") -> None:
        self.run.skipped(Skipped(name, reason, detail))


def _identity(path: bytes) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


# --- names that do not exist --------------------------------------------------------------------

#: A name that is nearly the missing one is looked for among so many names of its folder.
_FEW_NAMES = 1000


def check_named(arguments: Iterable[bytes], what: str, hint: str, *, included: bool) -> None:
    """Raise InputError if none of the arguments exists.

    arguments : folders and files.
    what : option that names them, for the beginning of the message.
    hint : what to type, if no better hint is known.
    included : whether --include applies to them.
    """
    missing = []
    for argument in arguments:
        try:
            os.stat(argument)
        except OSError as error:
            missing.append(Skipped.because(argument, error))
        else:
            return
    if missing:
        raise not_there(missing[0], what, hint, included=included)


def not_there(missed: Skipped, what: str, hint: str, *, included: bool) -> InputError:
    """Return the error for a name that does not exist."""
    return InputError(
        f"{what}{quoted(missed.name)}: {missed.detail}",
        perhaps_meant(missed.name, included=included) or hint,
    )


def perhaps_meant(argument: bytes, *, included: bool) -> str:
    """Return what to type instead of a name that does not exist, or "".

    Recognised are patterns that the shell did not expand, and names that are nearly right.
    """
    name = os.fsdecode(argument)
    if os.path.lexists(name):
        return ""
    if name.startswith("~"):
        home = os.path.expanduser(name)  # noqa: PTH111 (a name as typed)
        instead = home if home != name else "name the folder"
        return f"a shell puts the home folder for ~ only outside quotes: {instead}"
    parts = name.split("/")
    odd = next((at for at, part in enumerate(parts) if GLOB.search(part)), None)
    if odd is not None:
        folder = "/".join(parts[:odd]) or ("/" if odd else ".")
        if not os.path.isdir(folder):
            return perhaps_meant(os.fsencode(folder), included=included)
        instead = (
            f"name the folder and the pattern: {shlex.join([folder, '--include', parts[-1]])}"
            if included
            else "name the folder"
        )
        return (
            f"the shell did not expand the pattern, as it is quoted or matches nothing; {instead}"
        )
    parent, base = os.path.split(name)
    try:
        with os.scandir(parent or ".") as entries:
            beside = sorted(entry.name for entry in islice(entries, _FEW_NAMES))
    except OSError:
        return ""
    return did_you_mean(base, beside, lambda name: shlex.quote(os.path.join(parent, name)))  # noqa: PTH118 (a name as typed)
