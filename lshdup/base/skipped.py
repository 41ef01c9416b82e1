"""Skipped documents, files and records, and the reasons why they are not compared."""

import enum
import errno
from typing import NamedTuple

from lshdup.base.frozen import dataclass
from lshdup.base.wording import count_of


class Reason(enum.StrEnum):
    """The reason why a document, a file or a record is not compared.

    Artifacts hold positions in this list, so new reasons come at the end.
    """

    BINARY = "binary"
    FORMAT = "format not supported"
    EMPTY = "no tokens"
    HIDDEN = "hidden"
    LINK = "symbolic link"
    SPECIAL = "not a regular file"
    EXCLUDED = "excluded by --exclude"
    TOO_LARGE = "too large"
    UNREADABLE = "unreadable"
    MISSING = "missing"
    VANISHED = "vanished"
    CHANGED = "changed while in use"
    UNDECODABLE = "undecodable"
    NOT_IDS = "not integers"
    REPEATED = "repeated name"
    MARKUP = "too much markup"
    DAMAGED = "damaged"
    NOT_JSON = "row that is no JSON object"
    NO_TEXT = "row without text"
    NOT_TEXT = "row whose text is no string"
    NO_ID = "row without id"
    NO_READER = "format not supported without lshdup[formats]"
    ENCRYPTED = "encrypted"
    SPOILT = "damaged document"
    SLOW = "took too long"
    MEMORY = "took too much memory"
    CRASHED = "crashed its reader"
    NOT_INCLUDED = "excluded by --include"
    NESTED = "archive in an archive"
    IGNORED = "excluded by .gitignore"
    BROKEN_ROW = "broken row"
    PREAMBLE = "text before the first line of --split"
    HARD_LINK = "hard link in an archive"
    NULL_TEXT = "row whose text is null"
    COPY = "row with the id and the text of another"
    ACCEPTED = "list of accepted pairs"

    def counted(self, n: int) -> str:
        """Return the number of skipped documents with their description.

        >>> Reason.NO_TEXT.counted(3000), Reason.NO_TEXT.counted(1), Reason.BINARY.counted(2)
        ('3,000 rows without text', '1 row without text', '2 binary')
        """
        return count_of(n, str(self), _PLURALS.get(self, str(self)))

    @property
    def is_error(self) -> bool:
        """Whether the file should have been compared, even if it was only found in a folder."""
        return self not in _EXPECTED

    @property
    def is_of_pattern(self) -> bool:
        """Whether a pattern of the user says so: such files are many, and none is a surprise."""
        return self in _OF_PATTERNS

    @property
    def stays(self) -> bool:
        """Whether the input exists and belongs to DOCS: whoever keeps all that stays needs it."""
        return self not in _NOT_IN_DOCS

    @property
    def is_of_row(self) -> bool:
        """Whether this is a reason of records only."""
        return self in _OF_ROWS

    @property
    def is_of_reader(self) -> bool:
        """Whether another version of the reader of office documents may read the document."""
        return self in _OF_READER


#: Descriptions in the plural, where they differ.
_PLURALS = {
    Reason.LINK: "symbolic links",
    Reason.SPECIAL: "not regular files",
    Reason.REPEATED: "repeated names",
    Reason.NOT_JSON: "rows that are no JSON objects",
    Reason.BROKEN_ROW: "broken rows",
    Reason.NO_TEXT: "rows without text",
    Reason.NOT_TEXT: "rows whose texts are no strings",
    Reason.NO_ID: "rows without ids",
    Reason.SPOILT: "damaged documents",
    Reason.CRASHED: "crashed their reader",
    Reason.NESTED: "archives in archives",
    Reason.PREAMBLE: "texts before the first line of --split",
    Reason.HARD_LINK: "hard links in archives",
    Reason.NULL_TEXT: "rows whose text is null",
    Reason.COPY: "rows with the id and the text of another",
    Reason.ACCEPTED: "lists of accepted pairs",
}
_OF_PATTERNS = {Reason.EXCLUDED, Reason.NOT_INCLUDED, Reason.IGNORED}
#: Inputs that no option of the run takes.
_NOT_TAKEN = _OF_PATTERNS | {Reason.HIDDEN, Reason.LINK, Reason.SPECIAL}
#: Inputs that are not taken, that do not exist, or whose name is another document's.
_NOT_IN_DOCS = _NOT_TAKEN | {Reason.MISSING, Reason.VANISHED, Reason.REPEATED, Reason.COPY}
_EXPECTED = _NOT_TAKEN | {
    Reason.BINARY, Reason.FORMAT, Reason.EMPTY, Reason.NO_READER, Reason.PREAMBLE,
    Reason.HARD_LINK, Reason.NULL_TEXT, Reason.COPY, Reason.ACCEPTED,
}  # fmt: skip
_OF_ROWS = {
    Reason.NOT_JSON, Reason.BROKEN_ROW, Reason.NO_TEXT, Reason.NOT_TEXT, Reason.NO_ID,
    Reason.NULL_TEXT, Reason.COPY,
}  # fmt: skip
_OF_READER = {Reason.NO_READER, Reason.ENCRYPTED, Reason.SPOILT}


@dataclass(frozen=True)
class Skipped:
    """A document, file or record that is not compared, and why.

    named : whether it was named itself, not found in a folder.
    """

    name: bytes
    reason: Reason
    detail: str = ""
    named: bool = False

    @property
    def is_error(self) -> bool:
        """Whether the file should have been compared: exit code 2."""
        return self.reason.is_error or (
            self.named and self.reason in (Reason.BINARY, Reason.FORMAT, Reason.NO_READER)
        )

    @classmethod
    def because(cls, name: bytes, error: OSError) -> "Skipped":
        """Return a file that is skipped because of an error of the operating system."""
        return cls(name, find_reason(error), describe_error(error))


class RecordLocation(NamedTuple):
    """Where a record is that is skipped.

    path, number : the file, and the number of the record in it, from 1.
    start, length : as in `RecordList`; start is -1 if the list of records does not hold the record.
    """

    path: bytes
    number: int
    start: int = -1
    length: int = 0


@dataclass(frozen=True)
class SkippedFile:
    """A skipped file or record, remembered so that it is not read again while unchanged.

    size, mtime : bytes and nanoseconds of the file; -1 if it was skipped when files were found.
    record : where the record is; None for a file.
    """

    skipped: Skipped
    size: int = -1
    mtime: int = -1
    record: RecordLocation | None = None

    @property
    def place(self) -> tuple[bytes, int]:
        """The file, and the number of the record in it: documents and skipped files are in the
        order of their places.
        """
        return (self.skipped.name, 0) if self.record is None else self.record[:2]

    @property
    def is_of_list(self) -> bool:
        """Whether a file was skipped when files were found, or a record when those of its file were
        listed.
        """
        if self.record is None:
            return self.size < 0
        return self.record.start < 0 or self.skipped.reason in (Reason.REPEATED, Reason.COPY)


def find_reason(error: OSError) -> Reason:
    """Return the reason for an error of the operating system."""
    if error.errno in (errno.ENOENT, errno.ESTALE):
        return Reason.VANISHED
    return Reason.TOO_LARGE if error.errno == errno.EFBIG else Reason.UNREADABLE


def describe_error(error: OSError) -> str:
    """Return the system's description of an error, or what to do about it."""
    if error.errno == errno.ENAMETOOLONG:
        return "its path is longer than the system takes; start lshdup in a folder further down"
    return error.strerror or ""
