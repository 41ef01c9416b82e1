"""Files of several documents: which reader takes which file, what a reader does, and the files that
stay open for a run.

Reading the texts of some records opens no file again. A compressed file is unpacked once in the
life of a process, into a temporary file.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup.base.compression import (
    HEAD,
    PIP,
    PackedError,
    TooLongError,
    bare_name,
    can_unpack,
    chunks,
    name_of,
    unpack_to,
)
from lshdup.base.forms import looks_like_html
from lshdup.base.memory import Buffer
from lshdup.base.params import DEFAULT_FORMATS, FormatLimits
from lshdup.base.ragged import StringTable
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.base.system import pread
from lshdup.base.wording import quoted
from lshdup.errors import InputError
from lshdup.kernels.helpers import PADDING
from lshdup.sources.files import Contents, read_spans
from lshdup.sources.records import (
    Kind,
    RecordError,
    RecordFields,
    RecordList,
    Rows,
    Spans,
    Values,
    most_unpacked,
    too_large_unpacked,
)
from lshdup.text.office_types import PDF

if TYPE_CHECKING:
    from lshdup.sources.parquet import ParquetFile

T = TypeVar("T")

# --- which reader takes which file --------------------------------------------------------------

#: The module and the class that read files of each kind, but for Parquet: `parquet.ParquetFile`.
#: Imported when a file is met, to keep `query` fast.
_READERS = {
    Kind.IDS: ("lines", "IdList"),
    Kind.JSON: ("jsonlines", "JsonLines"),
    Kind.CSV: ("delimited", "DelimitedFile"),
    Kind.MBOX: ("lines", "Mailbox"),
    Kind.SPLIT: ("lines", "SplitFile"),
    **dict.fromkeys((Kind.SECTION, Kind.HTML_SECTION, Kind.PDF_PAGE), ("lines", "SplitFile")),
    Kind.TAR: ("archives", "TarFile"),
    Kind.ZIP: ("archives", "ZipFile"),
    Kind.WARC: ("archives", "WarcFile"),
    Kind.WIKI: ("archives", "WikiDump"),
}

#: Endings of their names; what is packed has one of `compression.ENDINGS` behind it. An XML file is
#: an archive if it is a dump.
_ENDINGS = {
    Kind.TAR: (b".tar", b".tgz", b".tzst", b".txz", b".tbz2", b".tbz"),
    Kind.ZIP: (b".zip",),
    Kind.WARC: (b".warc", b".wet"),
    Kind.WIKI: (b".xml",),
    Kind.PARQUET: (b".parquet",),
    Kind.CSV: (b".csv", b".tsv"),
    Kind.JSON: (b".jsonl", b".ndjson"),
}
JSON_LINES_ENDINGS = _ENDINGS[Kind.JSON]
#: The endings of archives that are told by their names alone.
ARCHIVE_ENDINGS = tuple(
    ending for kind in (Kind.TAR, Kind.ZIP, Kind.WARC) for ending in _ENDINGS[kind]
)


def classify_file(path: bytes, *, named: bool, field_given: bool, archives: bool) -> Kind:
    """Return whether a file is taken for its records, and for which.

    A file that is named itself is; one in a folder if the text field is set, or --archives for an
    archive. ``.json`` may hold anything: its lines are records only if both the file and the field
    are named.
    """
    name = bare_name(path).lower()
    if named and field_given and name.endswith(b".json"):
        return Kind.JSON
    kind = next((each for each in _ENDINGS if name.endswith(_ENDINGS[each])), Kind.FILE)
    if kind == Kind.PARQUET and len(name) < len(path):  # packed, which no reader takes
        return Kind.FILE
    return kind if named or (archives if kind.is_archive else field_given) else Kind.FILE


def is_archive(name: bytes) -> bool:
    """Return whether a name is that of an archive; of an XML file, only its content can tell."""
    return bare_name(name).lower().endswith(ARCHIVE_ENDINGS)


def may_end(names: StringTable, endings: tuple[bytes, ...]) -> bool:
    """Return whether a name may have one of these endings: three bytes behind a dot tell.

    endings : in lower case. Cost: some nanoseconds a name; names as objects would cost more.
    """
    dots = np.flatnonzero(names.values[:-3] == ord("."))
    behind = [names.values[dots + i] | 0x20 for i in (1, 2, 3)]
    return any(
        bool(((behind[0] == a) & (behind[1] == b) & (behind[2] == c)).any())
        for _, a, b, c, *_ in endings
    )


#: A dump says in its first bytes what it is.
_ROOT, _HEAD = b"<mediawiki", 4096


def is_dump(path: bytes) -> bool:
    """Return whether an XML file, perhaps packed, is a dump; False if it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (bytes path)
            head = file.read(_HEAD)
            file.seek(0)
            return can_unpack(head) and _ROOT in next(chunks(file), b"")[:_HEAD]
    except (OSError, PackedError):
        return False


# --- what a reader does ---------------------------------------------------------------------------


def join_contents(parts: Iterable[T], read: Callable[[T], bytes]) -> Contents:
    """Return the contents of parts of a file.

    parts : the parts as they are in the file.
    read : returns the content of a part. Raises RecordError.
    """
    contents: list[bytes] = []
    failed: dict[int, OSError | RecordError] = {}
    for at, part in enumerate(parts):
        try:
            contents.append(read(part))
        except RecordError as error:
            failed[at] = error
            contents.append(b"")
    sizes = np.fromiter(map(len, contents), np.int64, len(contents))
    text = np.frombuffer(bytearray().join([*contents, bytes(PADDING)]), np.uint8)
    return Contents(text, np.cumsum(sizes) - sizes, sizes, failed)


class Reader:
    """An open file of records: lists the records, and returns their texts.

    file : descriptor, of the unpacked file.
    fields : what of it is a document.
    longest : records of more bytes are skipped.
    path : where the file is.
    """

    def __init__(self, file: int, fields: RecordFields, longest: int, path: bytes = b"") -> None:
        self.file, self.fields, self.longest, self.path = file, fields, longest, path

    def list_records(self) -> RecordList | None:
        """Return the records; None if the file is one document. Raises RecordError if the file has
        none to give.
        """
        raise NotImplementedError

    def texts(self, spans: Spans, buffer: Buffer) -> Contents:
        """Return the texts of some records, or their bytes, if `Kind.is_text` says so.

        spans : ascending, from `list_records`. buffer : memory for the texts.
        """
        return read_spans(self.file, spans, buffer)

    def list_rows(self) -> Rows:
        """Return all rows of a file of JSON Lines or CSV. Raises as `list_records`."""
        raise NotImplementedError

    def values(self, spans: Spans, field: str, option: str) -> Values:
        """Return a field of some records of JSON Lines or CSV, as `RecordFiles.values` does."""
        raise NotImplementedError

    def have_integer_ids(self, spans: Spans) -> NDArray[np.bool_]:
        """Return which records of JSON Lines have an integer as id, not a string.

        Raises as `list_records`. Parameters are as of `texts`.
        """
        raise NotImplementedError

    def count_lines(self, start: int) -> int | None:
        """Return the number of lines before a byte; None if the file is a temporary one."""
        if not self.is_own:
            return None
        return pread(self.file, start, 0).count(b"\n")

    @property
    def is_own(self) -> bool:
        """Whether records are read from the file itself, not from a temporary one."""
        return os.path.samestat(os.fstat(self.file), os.stat(self.path))

    def declare(self, start: int, name: bytes) -> bytes:
        """Return the name of a record, as `base.forms` declares mails and pages."""
        return name


class ContentReader(Reader):
    """A file of records whose texts are made of their bytes."""

    def content(self, part: memoryview) -> bytes:
        """Return the text of a record. Raises RecordError."""
        raise NotImplementedError

    def texts(self, spans: Spans, buffer: Buffer) -> Contents:
        read = read_spans(self.file, spans, buffer)
        view = read.text.data
        each = zip(read.starts.tolist(), read.lengths.tolist(), strict=True)
        return join_contents((view[at : at + size] for at, size in each), self.content)


# --- the files of a run ---------------------------------------------------------------------------

#: So many Parquet files stay open while no thread reads them, and so many of them that were read
#: to their end. Batches finish in any order: a file that was closed with records left would be
#: decoded from its start again.
_OPEN_FILES, _FINISHED_FILES = 8, 2

#: Bytes of decoded texts that Parquet files keep which no thread reads.
_IDLE_BYTES = 32 << 20

#: So many files stay unpacked; the one used least recently is unpacked again when it is needed.
_UNPACKED_FILES = 100

#: Size and time of a file: with another stamp it is another file.
_Stamp = tuple[int, int]


class RecordFiles:
    """The files that records come from; for any thread.

    folder : where to unpack; None: where the system has temporary files.
    fields : where text and id are in a record.
    longest : texts of more bytes are skipped.
    formats : bounds for reading office documents.
    streams : copies of standard input and of pipes, by their names, in files without names.
    """

    def __init__(
        self,
        folder: Path | None = None,
        fields: RecordFields = RecordFields(),
        longest: int = 1 << 31,
        formats: FormatLimits = DEFAULT_FORMATS,
        streams: Mapping[bytes, IO[bytes]] = MappingProxyType({}),
    ) -> None:
        self.streams = streams
        self.folder = folder
        self.fields = fields
        self.longest = longest
        self.formats = formats
        self._lock = threading.Lock()
        self._unpacked: dict[tuple[bytes, _Stamp], _Unpacked] = {}
        self._parquet: dict[tuple[bytes, _Stamp], ParquetFile] = {}
        # Threads that read; the file used last is last.
        self._users: dict[tuple[bytes, _Stamp], int] = {}

    def __reduce__(self) -> tuple[type["RecordFiles"], tuple[object, ...]]:
        """Pickle without open files, which are opened again when they are needed."""
        return RecordFiles, (self.folder, self.fields, self.longest, self.formats)

    def __del__(self) -> None:
        # In a circle of objects a file would be collected before the `_Unpacked` that closes it.
        for unpacked in self._unpacked.values():
            unpacked.file.close()

    def list_records(self, run: Run, path: bytes, kind: Kind, name: bytes) -> RecordList | None:
        """Return the records of a file; None if --split finds none in it: it is one document.

        name : what names of members and sections begin with.

        Raises RecordError if the file has none to give, OSError if it cannot be read.
        """
        if kind == Kind.PARQUET:
            with self._parquet_file(path) as parquet:
                return parquet.list_records(run, self.fields.id)
        with self.reader(path, kind) as reader:
            listed = reader.list_records()
        if listed and kind.is_section:
            listed = replace(listed, kind=_kind_of_sections(path))
            listed = _below(name, listed) if listed.names else listed
        elif listed and (kind.is_archive or (kind == Kind.MBOX and listed.names)):
            listed = _below(name + b"/", listed)
        return listed and listed.kept_by(run)

    def texts(self, path: bytes, kind: Kind, spans: Spans, buffer: Buffer) -> Contents:
        """Return the texts of some records of one file, as `Reader.texts` does.

        Raises as `list_records` does.

        path : the file. kind : what its records are.
        """
        if kind == Kind.PARQUET:
            with self._parquet_file(path) as parquet:
                return parquet.texts(spans[0], self.longest, buffer)
        with self.reader(path, kind) as reader:
            return reader.texts(spans, buffer)

    def have_integer_ids(self, path: bytes, kind: Kind, spans: Spans) -> NDArray[np.bool_]:
        """Return which records of one file have an integer as id, not a string. Raises as `texts`.

        spans : from `list_records`, in any order.
        """
        if kind == Kind.PARQUET:
            with self._parquet_file(path) as parquet:
                return np.full(len(spans[0]), not parquet.has_text(self.fields.id))
        if kind != Kind.JSON:
            return np.zeros(len(spans[0]), bool)
        with self.reader(path, kind) as reader:
            return reader.have_integer_ids(spans)

    def values(self, path: bytes, kind: Kind, spans: Spans, field: str, option: str) -> Values:
        """Return a field of some rows of one file. spans : starts and lengths, as for `texts`.
        option : that names the field, for messages.

        Raises as `texts`; RecordError with NO_TEXT if none of the rows has the field.
        """
        is_parquet = kind == Kind.PARQUET
        with self._parquet_file(path) if is_parquet else self.reader(path, kind) as file:
            return file.values(spans, field, option)

    def declare(
        self, path: bytes, kind: Kind, starts: NDArray[np.int64], names: list[bytes]
    ) -> list[bytes]:
        """Return the names of members of an archive; of a mailbox and of a crawl, as `base.forms`
        declares mails and pages.
        """
        with self.reader(path, kind) as reader:
            return list(map(reader.declare, starts.tolist(), names))

    @contextmanager
    def reader(self, path: bytes, kind: Kind) -> Iterator[Reader]:
        """Yield the reader of a file. Raises as `list_records` does."""
        module, name = _READERS[kind]
        made: type[Reader] = getattr(import_module(f"lshdup.sources.{module}"), name)
        with self.lines(path, kind) as file:
            yield made(file, self.fields, self.longest, path)

    @contextmanager
    def lines(self, path: bytes, kind: Kind = Kind.JSON) -> Iterator[int]:
        """Yield the descriptor of a file of lines or of an archive, unpacked if it is compressed;
        of a file with sections that is not plain text, that of its text.

        Raises as `list_records` does.
        """
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (bytes path)
            if _is_ready(file.fileno(), path, kind):
                yield file.fileno()
                return
            with self._lock:  # Other threads that need the file wait.
                known = path, _stamp(os.fstat(file.fileno()))
                unpacked = self._unpacked.pop(known, None)
                if unpacked is None:
                    try:
                        unpacked = _Unpacked(self._unpack(path, kind))
                    except PackedError as error:
                        raise RecordError(Reason.DAMAGED, str(error)) from None
                self._unpacked[known] = unpacked  # the last in the order of use
                if len(self._unpacked) > _UNPACKED_FILES:
                    del self._unpacked[next(iter(self._unpacked))]
        yield unpacked.file.fileno()

    def _unpack(self, path: bytes, kind: Kind) -> IO[bytes]:
        if kind.is_section:
            from lshdup.text.sections import text_with_sections

            is_large = os.stat(path).st_size > self.longest
            data = b"" if is_large else Path(os.fsdecode(path)).read_bytes()
            how = self.fields.split, self.longest, self.formats
            return unpack_to(path, self.folder, text=text_with_sections(data, path, *how))
        if not kind.is_archive:
            return unpack_to(path, self.folder, self.longest)
        most = most_unpacked(os.stat(path).st_size, self.longest)
        try:
            return unpack_to(path, self.folder, most=most)
        except TooLongError:
            raise too_large_unpacked(most, self.longest) from None

    @contextmanager
    def _parquet_file(self, path: bytes) -> Iterator["ParquetFile"]:
        """Yield an open Parquet file, which no other thread closes meanwhile."""
        from lshdup.sources.parquet import ParquetFile  # Imported here to keep `query` fast.

        known = path, _stamp(os.stat(path))
        with self._lock:
            if known not in self._parquet:
                self._parquet[known] = ParquetFile(path, self.fields.text)
            file = self._parquet[known]
            self._users[known] = self._users.pop(known, 0) + 1
        try:
            yield file
        finally:
            del file
            with self._lock:
                self._users[known] -= 1
                self._close_idle_files()

    def _close_idle_files(self) -> None:
        """Close the least recently used files that no thread reads, the finished ones first."""
        idle = [each for each, users in self._users.items() if not users]
        finished = [each for each in idle if self._parquet[each].is_finished]
        room = _IDLE_BYTES
        for each in reversed(idle):  # Those that were read last keep what they have decoded.
            room -= self._parquet[each].forget(beyond=0 if each in finished else room)
        closed = finished[:-_FINISHED_FILES]
        kept = [each for each in idle if each not in closed]
        for each in [*closed, *kept[:-_OPEN_FILES]]:
            del self._users[each], self._parquet[each]


class _Unpacked:
    """A temporary file that is closed when the last thread that reads it lets it go."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def __del__(self) -> None:
        self.file.close()


def _is_ready(file: int, path: bytes, kind: Kind) -> bool:
    """Return whether records are read from a file as it is. Raises InputError if no package can
    unpack it.
    """
    if kind.is_section:
        # Imported here to keep runs without --split fast: `sections` reads office documents.
        from lshdup.text.sections import PLAIN_HEAD, is_plain

        return is_plain(pread(file, PLAIN_HEAD, 0), path)
    head = pread(file, HEAD, 0)
    if not can_unpack(head):
        message = f"{quoted(path)} is packed by zstd, which needs backports.zstd"
        raise InputError(message, PIP)
    return not name_of(head)


def _kind_of_sections(path: bytes) -> Kind:
    from lshdup.text.sections import PLAIN_HEAD

    with open(path, "rb") as file:  # noqa: PTH123 (bytes path)
        head = file.read(PLAIN_HEAD)
    if head.startswith(PDF):
        return Kind.PDF_PAGE
    return Kind.HTML_SECTION if looks_like_html(head, bare_name(path)) else Kind.SECTION


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_size, status.st_mtime_ns


def _below(prefix: bytes, listed: RecordList) -> RecordList:
    """Return the members of an archive, mails with ids, or sections under names of their file."""
    assert listed.names is not None
    names = StringTable.from_strings(prefix + name for name in listed.names)
    skipped = [
        each._replace(name=prefix + each.name) if each.name else each for each in listed.skipped
    ]
    return replace(listed, names=names, skipped=skipped)
