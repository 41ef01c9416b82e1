"""Records of files as documents: which files have records, and what records are called."""

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.params import DEFAULT_TEXT_FIELD, DocumentParams
from lshdup.base.ragged import StringTable, offsets_of
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.base.wording import did_you_mean, join_names, quoted


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
    SECTION = 11  # a part of a text from a heading to the next, a page, a paragraph
    HTML_SECTION = 12  # of the visible text of an HTML page
    PDF_PAGE = 13

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
        return self.is_row or self == Kind.WIKI or self.is_section

    @property
    def is_section(self) -> bool:
        """Whether documents are what a word of --split says."""
        return self >= Kind.SECTION

    @property
    def is_split(self) -> bool:
        """Whether --split makes documents of a file, which else is one."""
        return self >= Kind.SPLIT


#: Kinds whose documents are rows with fields.
ROWS = (Kind.JSON, Kind.PARQUET, Kind.CSV)

#: Kinds whose documents are members of archives, and are called by paths.
ARCHIVES = (Kind.TAR, Kind.ZIP, Kind.WARC, Kind.WIKI)

#: The value of --id-field that names mails by their Message-ID, in small letters.
MESSAGE_ID = "message-id"

#: A message names at most so many fields of a record, and so many characters of each name.
_MOST_FIELDS, _NAME = 100, 80

#: An integer; Python reads no longer one.
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,4000}")

#: An archive with members of more bytes than --max-bytes in all, and than so many times its own
#: size, is taken for a bomb. Texts shrink to a fifth, log files to a fiftieth.
_MOST_TIMES = 200

#: No name has more bytes: systems take 4096, zip 65535.
LONGEST_NAME = 1 << 16

#: Records that are named at a time.
_NAMES_AT_ONCE = 1 << 16


class RecordError(ValueError):
    """A record, or a file of records, that gives no document, and why."""

    def __init__(self, reason: Reason, detail: str) -> None:
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
    typed = option if option.endswith(":") else f"{option} "
    question = did_you_mean(field, known, f"{typed}{{}}".format) or did_you_mean(
        field, last, lambda part: f"{typed}{last[part]}"
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
        part of it (`base.forms`).
    hidden : whether members of archives are taken whose path has a name that begins with a dot.
    split : as of `DocumentParams`; how other files are cut.
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


def describe_too_large(size: int, most: int) -> str:
    """Return the detail of a document of more bytes than are allowed."""
    return f"{size} bytes, --max-bytes is {most}"


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
        return cls(number, Reason.TOO_LARGE, describe_too_large(size, most), name)


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

    @classmethod
    def of(
        cls,
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
        longest: int,
        keep: NDArray[np.bool_] | None = None,
        skipped: Iterable[SkippedRecord] = (),
    ) -> "RecordList":
        """Return records that are numbered from 1, without those of more than `longest` bytes.

        starts, lengths : int64 arrays of shape (n,).
        keep : bool array of shape (n,); others are no records, or are among `skipped`.
        """
        keep = np.ones(len(starts), bool) if keep is None else keep
        too_large = [
            SkippedRecord.too_large(row + 1, int(lengths[row]), longest)
            for row in np.flatnonzero(keep & (lengths > longest)).tolist()
        ]
        rows = np.flatnonzero(keep & (lengths <= longest))
        return cls(rows + 1, starts[rows], lengths[rows], None, sorted([*skipped, *too_large]))

    def kept_by(self, run: Run) -> "RecordList":
        """Return the list in arrays that may be in files: a folder may have many such lists."""
        names, copy = self.names, run.arrays.copy
        if names is not None:
            names = StringTable(copy(names.values), copy(names.offsets))
        numbers, starts, lengths = map(copy, (self.numbers, self.starts, self.lengths))
        return RecordList(numbers, starts, lengths, names, self.skipped, self.kind)

    def take(self, run: Run, rows: NDArray[np.int64]) -> "RecordList":
        """Return some records, in the order of `rows`."""
        arrays = run.arrays
        return replace(
            self,
            numbers=arrays.take(self.numbers, rows),
            starts=arrays.take(self.starts, rows),
            lengths=arrays.take(self.lengths, rows),
            names=self.names and self.names.take(rows, arrays),
        )


class Rows(NamedTuple):
    """The n rows of a file of lines, records or not, but for empty lines and broken rows.

    starts, lengths : int64 arrays of shape (n,), as in `RecordList`.
    broken : number of broken rows.
    delimiter, columns : of CSV, what is between cells, and the names in the first of these rows.
    """

    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    broken: int = 0
    delimiter: str = ""
    columns: tuple[str, ...] = ()


#: Starts and lengths of records, as in `RecordList`.
Spans = tuple[NDArray[np.int64], NDArray[np.int64]]

#: A field of some rows, as it is written; None where it is missing, null, empty, or no scalar.
Values = list[bytes | None]


class Members:
    """The members of an archive, added one after the other.

    longest : members of more bytes are skipped.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rows: list[tuple[int, int, int]] = []
        self._names: list[bytes] = []
        self._skipped: list[SkippedRecord] = []

    def add(self, number: int, start: int, size: int, name: bytes) -> None:
        """Add a document: its number from 1, where it is, its bytes, and its name."""
        if len(name) > LONGEST_NAME:
            detail = f"a name of more than {LONGEST_NAME} bytes"
            self._skipped.append(SkippedRecord(number, Reason.UNREADABLE, detail))
        elif size > self._longest:
            self._skipped.append(SkippedRecord.too_large(number, size, self._longest, name))
        else:
            self._rows.append((number, start, size))
            self._names.append(name.replace(b"\0", b""))

    def skip(self, number: int, name: bytes, reason: Reason, detail: str) -> None:
        """Add a member that is no document, and why."""
        name = name if len(name) <= LONGEST_NAME else b""
        self._skipped.append(SkippedRecord(number, reason, detail, name))

    def damaged(self, number: int, detail: str) -> None:
        """Add what stands from member `number` on, which cannot be read.

        Raises RecordError if nothing stands before.
        """
        if not (self._rows or self._skipped):
            raise RecordError(Reason.DAMAGED, detail)
        self._skipped.append(SkippedRecord(number, Reason.DAMAGED, f"the rest of it: {detail}"))

    def listed(self) -> RecordList:
        """Return all members."""
        table = np.array(self._rows, np.int64).reshape(-1, 3)
        names = StringTable.from_strings(distinct_names(self._names))
        numbers, starts, sizes = np.ascontiguousarray(table.T)
        return RecordList(numbers, starts, sizes, names, self._skipped)


def name_records(run: Run, path: bytes, numbers: NDArray[np.int64]) -> StringTable:
    """Return the name FILE:NUMBER for each number.

    >>> list(name_records(Run.quiet(), b"a.jsonl", np.array([1, 2, 10])))
    [b'a.jsonl:1', b'a.jsonl:2', b'a.jsonl:10']
    """
    prefix = np.frombuffer(path + b":", np.uint8)
    width = len(str(int(numbers.max(initial=1))))
    powers = 10 ** np.arange(width, dtype=np.int64)

    def digits_of(some: slice) -> NDArray[np.int64]:
        return np.maximum(np.searchsorted(powers, numbers[some], side="right"), 1)

    def parts() -> Iterator[StringTable]:
        for start in range(0, len(numbers), _NAMES_AT_ONCE):
            some = slice(start, min(start + _NAMES_AT_ONCE, len(numbers)))
            digits = digits_of(some)
            cells = np.empty((len(digits), len(prefix) + width), np.uint8)
            cells[:, : len(prefix)] = prefix
            cells[:, len(prefix) :] = numbers[some, None] // powers[::-1] % 10 + ord("0")
            shown = np.ones(cells.shape, bool)
            shown[:, len(prefix) :] = np.arange(width) >= width - digits[:, None]
            yield StringTable(cells[shown], offsets_of(digits + len(prefix)))

    return StringTable.gather(parts(), run.arrays)


def inner_path(name: bytes) -> bytes:
    """Return the path of a member: relative, without ``.``, ``..``, empty parts and NUL.

    >>> inner_path(b"/etc/../a//b.txt"), inner_path(b"./c"), inner_path(b"..")
    (b'etc/a/b.txt', b'c', b'')
    """
    parts = name.replace(b"\0", b"").split(b"/")
    return b"/".join(part for part in parts if part not in (b"", b".", b".."))


def distinct_names(names: Iterable[bytes]) -> list[bytes]:
    """Return names of which each is different: of equal ones the second gets ``:2``, and so on.

    An empty name becomes a number. Cost: linear in the number of names.

    >>> distinct_names([b"a", b"b", b"a", b"a:2", b"a", b""])
    [b'a', b'b', b'a:3', b'a:2', b'a:4', b'6']
    """
    names = [name or b"%d" % number for number, name in enumerate(names, 1)]
    taken, counts = set(names), dict.fromkeys(names, 0)
    for at, name in enumerate(names):
        counts[name] += 1
        if counts[name] > 1:
            while b"%s:%d" % (name, counts[name]) in taken:
                counts[name] += 1
            names[at] = b"%s:%d" % (name, counts[name])
    return names


def most_unpacked(packed: int, longest: int) -> int:
    """Return how many bytes an archive may hold.

    packed : bytes of the archive.
    longest : bytes that one member may have.
    """
    return max(longest, _MOST_TIMES * packed)


def too_large_unpacked(most: int, longest: int) -> RecordError:
    """Return the error for an archive that holds more than `most` bytes."""
    detail = (
        f"more than {most} bytes when unpacked: above {_MOST_TIMES} times its size and above "
        f"--max-bytes, which is {longest}"
    )
    return RecordError(Reason.TOO_LARGE, detail)
