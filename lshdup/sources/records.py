"""Records of files as documents: which files have records, and what records are called."""

import enum
import re
from collections.abc import Iterable
from dataclasses import field, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import IN_MEMORY, Arrays, rows_of, slices_of
from lshdup.base.compression import bare_name
from lshdup.base.frozen import dataclass
from lshdup.base.messages import did_you_mean, join_names, quoted
from lshdup.base.ragged import StringTable
from lshdup.base.skipped import Reason
from lshdup.params import DEFAULT_TEXT_FIELD, DocumentParams


class Kind(enum.IntEnum):
    """The part of its file that a document is; artifacts hold these numbers."""

    FILE = 0  # the whole of it
    IDS = 1  # a line of an id list
    JSON = 2  # a line of JSON Lines
    PARQUET = 3
    CSV = 4
    MBOX = 5  # a mail of a mailbox
    TAR = 6  # a member of an archive, perhaps compressed as a whole
    ZIP = 7
    WARC = 8  # a response or a converted text of a crawl
    WIKI = 9  # a page of a MediaWiki dump
    SPLIT = 10  # lines from one that --split matches to the next

    @property
    def is_archive(self) -> bool:
        """Whether documents are called FILE/NAME, and a file in a folder is opened with --archives
        only.
        """
        return self in ARCHIVES

    @property
    def is_row(self) -> bool:
        """Whether documents are rows with fields, of which one is the text."""
        return self in ROWS

    @property
    def is_text(self) -> bool:
        """Whether a document is text when it is read; else it is the content of a file: perhaps a
        mail, a page, an office document, compressed, or binary.
        """
        return self.is_row or self == Kind.WIKI


#: Kinds whose documents are rows with fields.
ROWS = (Kind.JSON, Kind.PARQUET, Kind.CSV)

#: Kinds whose documents are members of archives, and are called by paths.
ARCHIVES = (Kind.TAR, Kind.ZIP, Kind.WARC, Kind.WIKI)

#: Endings of archives; others that are packed have one of `compression.ENDINGS` behind it. An XML
#: file is an archive if it is a dump.
_ENDINGS = {
    Kind.TAR: (b".tar", b".tgz", b".tzst", b".txz", b".tbz2", b".tbz"),
    Kind.ZIP: (b".zip",),
    Kind.WARC: (b".warc", b".wet"),
    Kind.WIKI: (b".xml",),
}
#: The endings of archives that are told by their names alone.
ARCHIVE_ENDINGS = tuple(
    ending for kind, endings in _ENDINGS.items() if kind != Kind.WIKI for ending in endings
)

#: The value of --id-field that names mails by their Message-ID, in small letters.
MESSAGE_ID = "message-id"

_JSON_LINES, _CSV = (b".jsonl", b".ndjson"), (b".csv", b".tsv")

#: A message names at most so many fields of a record, and so many characters of each name.
_MOST_FIELDS, _NAME = 100, 80

#: An integer; Python reads no longer one.
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,4000}")

#: Records that are named at a time.
_NAMES_AT_ONCE = 1 << 16


class RecordError(ValueError):
    """A record, or a file of records, that gives no document, and why."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def field_names(names: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names of fields, and of fields in fields, for messages.

    Of very many only the first, of long names the beginning; unprintable characters are escaped.
    names : pairs of a field and a field in it, or "".
    """
    some = (
        f"{name[:_NAME]}.{part[:_NAME]}" if part else name[:_NAME]
        for name, part in islice(names, _MOST_FIELDS)
    )
    return tuple(name if name.isprintable() else ascii(name)[1:-1] for name in some)


@lru_cache(256)  # most records of a file have the same fields
def no_field(field: str, known: tuple[str, ...], option: str, what: str = "field") -> str:
    """Return the message for a field that does not exist: the names of others, and the probable
    one.

    >>> no_field("txt", ("id", "text"), "--text-field")
    "no field 'txt', but id, text; did you mean --text-field text?"
    >>> no_field("text", ("body",), "--text-field", "column")
    "no column 'text', but body; --text-field names another"
    """
    last = {name.rpartition(".")[2]: name for name in known}
    question = did_you_mean(field, known, f"{option} {{}}".format) or did_you_mean(
        field, last, lambda part: f"{option} {last[part]}"
    )
    remedy = question or f"{option} names another"
    return f"no {what} {quoted(field)}, but {join_names(known)}; {remedy}"


@lru_cache(8)
def split_fields(names: str) -> tuple[str, ...]:
    """Return the fields that `--text-field` names: a list with commas, quoted as in CSV.

    Blanks around names do not count, but those in quotes.

    >>> split_fields("title, body"), split_fields('"a,b", " c"'), split_fields("a.b")
    (('title', 'body'), ('a,b', ' c'), ('a.b',))
    """
    if '"' not in names:
        return tuple(name.strip() for name in names.split(","))
    import csv  # Imported here to keep the start of every command fast.

    return tuple(next(csv.reader([names], skipinitialspace=True), ())) or (names,)


@dataclass(frozen=True)
class RecordFields:
    """How documents in files are found: the fields of a row, the members of an archive, the lines.

    text, id : names of text and id in a row; without an id field, records are called FILE:ROW. Of
        several names of texts (`split_fields`), the text is those that are not null, each as a
        part of it (`base.parts`).
    hidden : whether members of archives are taken whose path has a name that begins with a dot.
    split : regular expression; a document of other files begins at each line that matches.
    """

    text: str = "text"
    id: str = ""
    hidden: bool = False
    split: str = ""

    @classmethod
    def of(cls, params: DocumentParams) -> "RecordFields":
        """Return the fields that parameters name."""
        text = params.text_field or DEFAULT_TEXT_FIELD
        return cls(text, params.id_field, params.hidden, params.split)


def is_integer(name: bytes) -> bool:
    """Return whether a name reads as an integer, written as a program writes one.

    >>> [is_integer(name) for name in (b"-7", b"0", b"07", b"1e3", b"")]
    [True, True, False, False, False]
    """
    return _INTEGER.fullmatch(name) is not None


class SkippedRecord(NamedTuple):
    """A record that is no document.

    number : its number in its file, from 1.
    name : what it is called; empty: FILE:NUMBER.
    """

    number: int
    reason: Reason
    detail: str = ""
    name: bytes = b""

    @classmethod
    def too_large(cls, number: int, size: int, most: int, name: bytes = b"") -> "SkippedRecord":
        """Return a record of more bytes than are allowed."""
        detail = f"{size} bytes, --max-bytes is {most}"
        return cls(number, Reason.TOO_LARGE, detail, name)


@dataclass(frozen=True)
class RecordList:
    """The n records of one file, in order.

    numbers : int64 array of shape (n,), number of each record, from 1.
    starts, lengths : int64 arrays of shape (n,), first byte and number of bytes; of Parquet, the
        number of rows before the record and the bytes of an average text of its row group.
    names : n names, if records have names of their own: ids, and members of archives.
    skipped : records that are no documents.
    kind : what the records are, if an earlier run says it.
    """

    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    names: StringTable | None = None
    skipped: list[SkippedRecord] = field(default_factory=list)
    kind: Kind = Kind.FILE

    def kept_by(self, arrays: Arrays) -> "RecordList":
        """Return the list in arrays that may be in files: a folder may have many such lists."""
        names, copy = self.names, arrays.copy
        if names is not None:
            names = StringTable(copy(names.blob), copy(names.offsets))
        numbers, starts, lengths = map(copy, (self.numbers, self.starts, self.lengths))
        return RecordList(numbers, starts, lengths, names, self.skipped, self.kind)

    def take(self, rows: NDArray[np.int64], arrays: Arrays) -> "RecordList":
        """Return some records, in the order of `rows`. arrays : makes the result."""
        return replace(
            self,
            numbers=arrays.take(self.numbers, rows),
            starts=arrays.take(self.starts, rows),
            lengths=arrays.take(self.lengths, rows),
            names=self.names and self.names.take(rows, arrays),
        )


def classify_file(path: bytes, *, named: bool, field_given: bool, archives: bool) -> Kind:
    """Return whether a file is taken for its records, and for which.

    A file that is named itself is; one in a folder if the text field is set, or --archives for an
    archive. ``.json`` may hold anything: its lines are records only if both the file and the field
    are named.
    """
    if named or archives:
        name = bare_name(path).lower()
        for kind, endings in _ENDINGS.items():
            if name.endswith(endings):
                return kind
    if not (named or field_given):
        return Kind.FILE
    if path.lower().endswith(b".parquet"):
        return Kind.PARQUET
    name = bare_name(path).lower()
    if name.endswith(_CSV):
        return Kind.CSV
    endings = (*_JSON_LINES, b".json") if named and field_given else _JSON_LINES
    return Kind.JSON if name.endswith(endings) else Kind.FILE


def is_archive(name: bytes) -> bool:
    """Return whether a name is that of an archive; of an XML file, only its content can tell."""
    return bare_name(name).lower().endswith(ARCHIVE_ENDINGS)


def may_end(names: StringTable, endings: tuple[bytes, ...]) -> bool:
    """Return whether a name may have one of these endings: three bytes behind a dot tell.

    endings : in lower case. Cost: some nanoseconds a name; names as objects would cost more.
    """
    dots = np.flatnonzero(names.blob[:-3] == ord("."))
    behind = [names.blob[dots + i] | 0x20 for i in (1, 2, 3)]
    return any(
        bool(((behind[0] == a) & (behind[1] == b) & (behind[2] == c)).any())
        for _, a, b, c, *_ in endings
    )


def by_number(name: bytes) -> tuple[bytes, int]:
    """Return a key that sorts names as people count: row 9 before row 10.

    >>> sorted([b"a:10", b"a:9", b"a", b"b:1"], key=by_number)
    [b'a', b'a:9', b'a:10', b'b:1']
    """
    file, colon, number = name.rpartition(b":")
    return (
        (file + colon, int(number))
        if colon and number.isdigit() and len(number) < 20
        else (name, -1)
    )


def name_records(
    path: bytes, numbers: NDArray[np.int64], arrays: Arrays = IN_MEMORY
) -> tuple[StringTable, NDArray[np.int64]]:
    """Return FILE:ROW for each number, and the indices in byte order, in which 10 comes before 2.

    arrays : makes the names.

    >>> names, order = name_records(b"a.jsonl", np.array([1, 2, 10]))
    >>> names.take(order)[1], list(names)
    (b'a.jsonl:10', [b'a.jsonl:1', b'a.jsonl:2', b'a.jsonl:10'])
    """
    prefix = np.frombuffer(path + b":", np.uint8)
    width = len(str(int(numbers.max(initial=1))))
    powers = 10 ** np.arange(width, dtype=np.int64)
    digits: NDArray[np.int8] = arrays.compute(
        len(numbers),
        np.int8,
        lambda some: np.maximum(np.searchsorted(powers, numbers[some], side="right"), 1),
    )
    offsets: NDArray[np.int64] = arrays.zeros(len(numbers) + 1, np.int64)
    np.cumsum(digits, out=offsets[1:])
    for some in slices_of(len(offsets)):
        offsets[some] += len(prefix) * rows_of(some)
    blob: NDArray[np.uint8] = arrays.empty(int(offsets[-1]), np.uint8)
    for start in range(0, len(numbers), _NAMES_AT_ONCE):
        these = numbers[start : start + _NAMES_AT_ONCE]
        cells = np.empty((len(these), len(prefix) + width), np.uint8)
        cells[:, : len(prefix)] = prefix
        cells[:, len(prefix) :] = these[:, None] // powers[::-1] % 10 + ord("0")
        shown = np.ones(cells.shape, bool)
        shown[:, len(prefix) :] = (
            np.arange(width) >= width - digits[start : start + _NAMES_AT_ONCE, None]
        )
        blob[offsets[start] : offsets[start + len(these)]] = cells[shown]
    keys = [lambda rows: numbers[rows] * powers[width - digits[rows]], digits.__getitem__]
    return StringTable(blob, offsets), arrays.order(len(numbers), keys)
