"""Files of lines: where the lines are, their bytes, and what a parser makes of them; texts that are
cut at lines, and mailboxes.

Lines are found without parsing them: a file of any size costs one pass and 24 bytes a line.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import declare_mail, looks_like_html
from lshdup.base.mbox import LOOKAHEAD, bare_mail, find_mails
from lshdup.base.memory import Buffer
from lshdup.base.params import SPLITS
from lshdup.base.ragged import StringTable
from lshdup.base.skipped import Reason
from lshdup.base.system import pread, pread_into
from lshdup.sources.files import Contents, read_spans
from lshdup.sources.readers import ContentReader, Reader
from lshdup.sources.records import (
    MESSAGE_ID,
    RecordError,
    RecordList,
    SkippedRecord,
    Spans,
    distinct_names,
)
from lshdup.text.sections import find_sections

#: Bytes read at a time to find where lines and mails begin, and to read records.
_SCAN_BYTES, _READ_BYTES = 1 << 22, 1 << 22

_NEWLINE = ord("\n")
#: White space within a line.
SPACES = b" \t\r"

#: A file with a NUL in so many bytes at its beginning is no text in lines.
_HEAD = 8192
#: How PDF and RTF files begin, which may hold no NUL; pieces of them would be no documents.
_WHOLE = (b"%PDF-", b"{\\rtf")

#: The first bytes of a mail that hold its id.
_HEAD_BYTES = 1 << 16
_ID = re.compile(rb"(?im)^message-id:[ \t\r\n]*<?([^\s>]+)>?")

#: A record -> id and text. Raises RecordError.
Parse = Callable[["bytes | memoryview"], tuple[bytes, bytes]]


def find_lines(file: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return where lines begin, how long they are without their ends, and which begin with white
    space: int64 arrays.
    """
    size = os.fstat(file).st_size
    block = np.empty(_SCAN_BYTES, np.uint8)
    starts, suspects, ends = [], [], []
    at, begins = 0, True  # whether a line begins where the next block does
    while at < size and (got := pread_into(file, block[: size - at].data, at)):
        newlines = np.flatnonzero(block[:got] == _NEWLINE)
        first = np.concatenate([np.zeros(int(begins), np.int64), newlines + 1])
        begins = bool(len(first)) and int(first[-1]) == got
        first = first[:-1] if begins else first
        letters = block[first]
        white = (letters == SPACES[0]) | (letters == SPACES[1]) | (letters == SPACES[2])
        suspects.append(first[white] + at)
        starts.append(first + at)
        ends.append(newlines + at)
        at += got
    if at and not begins:  # the last line has no end
        ends.append(np.array([at]))
    none = np.zeros(0, np.int64)
    first, last = np.concatenate([none, *starts]), np.concatenate([none, *ends])
    return first, last - first, np.searchsorted(first, np.concatenate([none, *suspects]))


def batches_of_lines(file: int, spans: Spans) -> Iterator[tuple[int, Contents]]:
    """Yield lines together: the number of the first, and their bytes, valid until the next."""
    starts, lengths = spans
    ends, row, buffer = np.cumsum(lengths), 0, Buffer()
    while row < len(starts):
        stop = max(int(np.searchsorted(ends, ends[row] - lengths[row] + _READ_BYTES)), row + 1)
        yield row, read_spans(file, (starts[row:stop], lengths[row:stop]), buffer)
        row = stop


def read_lines(file: int, spans: Spans) -> Iterator[memoryview]:
    """Yield the bytes of lines, one after the other; valid until the next."""
    for _, read in batches_of_lines(file, spans):
        for place, length in zip(read.starts.tolist(), read.lengths.tolist(), strict=True):
            yield read.text.data[place : place + length]


def begins_of_lines(file: int, longest: int) -> Iterator[tuple[int, bytes]]:
    """Yield where each line of an open file begins, and its bytes without the end.

    Parameters
    ----------
    file : descriptor of the file.
    longest : bytes that are read of a line at most, but for one.

    """
    with open(os.dup(file), "rb") as lines:  # noqa: PTH123 (a descriptor)
        at = lines.seek(0)
        while line := lines.readline(longest + 1):
            yield at, line.removesuffix(b"\n")
            at += len(line)
            if not line.endswith(b"\n"):
                at += _skip_line(lines)


def _skip_line(lines: BinaryIO) -> int:
    """Move behind the end of the line; return by how many bytes."""
    gone, part = 0, b" "
    while part and not part.endswith(b"\n"):
        part = lines.readline(_READ_BYTES)
        gone += len(part)
    return gone


def list_parsed(file: int, records: RecordList, parse: Parse) -> RecordList:
    """Return the records of an open file that have an id and a text, with their ids.

    records : their numbers and bytes, and others that are skipped.
    """
    ids: list[bytes] = []
    skipped = list(records.skipped)
    good = np.zeros(len(records.starts), bool)
    for at, view in enumerate(read_lines(file, (records.starts, records.lengths))):
        try:
            ids.append(parse(view)[0])
            good[at] = True
        except RecordError as error:
            skipped.append(SkippedRecord(int(records.numbers[at]), error.reason, error.detail))
    columns = (records.numbers[good], records.starts[good], records.lengths[good])
    return RecordList(*columns, StringTable.from_strings(ids), sorted(skipped))


class ParsedFile(ContentReader):
    """A file of rows with fields, each of which is parsed alone."""

    def parser(self, *, ids: bool) -> Parse:
        """Return the parser of a row; without `ids`, ids are empty."""
        raise NotImplementedError

    @cached_property
    def _parse(self) -> Parse:
        return self.parser(ids=False)

    def content(self, part: memoryview) -> bytes:
        """Return the text of a row. Raises RecordError."""
        return self._parse(part)[1]

    def with_ids(self, records: RecordList) -> RecordList:
        """Return the rows with their ids, if an id field is set: those that have id and text."""
        return list_parsed(self.file, records, self.parser(ids=True)) if self.fields.id else records


class IdList(Reader):
    """A list of ids, of which each line is a document; `expansion.list_lines` finds them."""

    def texts(self, spans: Spans, buffer: Buffer) -> Contents:
        starts, lengths = spans
        there = starts + lengths <= os.fstat(self.file).st_size
        starts, lengths = starts * there, lengths * there
        shorter = RecordError(Reason.CHANGED, "its list has become shorter")
        failed = dict.fromkeys(np.flatnonzero(~there).tolist(), shorter)
        return read_spans(self.file, (starts, lengths), buffer)._replace(failed=failed)


class SplitFile(Reader):
    """A text that --split cuts: a document begins at each section, or line that matches."""

    def list_records(self) -> RecordList | None:
        """Return the documents; None if there are none.

        What stands before the first line that matches is skipped.
        """
        size = os.fstat(self.file).st_size
        if self.fields.split not in SPLITS:
            begins = self._matching_lines()
            found = [(*span, b"") for span in pairwise([*begins, size])]
        elif size > self.longest:
            return None
        else:
            text, is_extracted = pread(self.file, size, 0), not self.is_own
            found = find_sections(text, self.path, self.fields.split, is_extracted=is_extracted)
        if not found:
            return None
        spans = np.array([span for *span, _ in found], np.int64)
        starts, ends = np.ascontiguousarray(spans.T)
        has_preamble = pread(self.file, min(found[0][0], _HEAD), 0).strip()
        skipped = [SkippedRecord(0, Reason.PREAMBLE)] if has_preamble else []
        listed = RecordList.of(starts, ends - starts, self.longest, skipped=skipped)
        if not found[0][-1]:
            return listed
        names = distinct_names(name for *_, name in found)
        own = StringTable.from_strings(names[number - 1] for number in listed.numbers.tolist())
        return replace(listed, names=own)

    def _matching_lines(self) -> list[int]:
        """Return where lines begin that match; none if the file is no text in lines: binary, HTML,
        or an office document.

        Of a line of more than `longest` bytes only the beginning is looked at.
        """
        head = pread(self.file, _HEAD, 0)
        if b"\0" in head or head.startswith(_WHOLE) or looks_like_html(head, b""):
            return []
        matches = re.compile(os.fsencode(self.fields.split)).search
        lines = begins_of_lines(self.file, self.longest)
        return [at for at, line in lines if matches(line.removesuffix(b"\r"))]


class Mailbox(ContentReader):
    """A mailbox (mbox). A mail begins at its `From ` line and ends where the next one begins."""

    def list_records(self) -> RecordList:
        """Return the mails, with the id field Message-ID under their names. Cost: one pass."""
        begins = self._find_starts()
        listed = RecordList.of(begins[:-1], np.diff(begins), self.longest)
        if self.fields.id.lower() != MESSAGE_ID:
            return listed
        return list_parsed(self.file, listed, _message_id)

    def content(self, part: memoryview) -> bytes:
        """Return a mail as it was before it was put in."""
        return bare_mail(part.tobytes())

    def declare(self, start: int, name: bytes) -> bytes:
        """Return the name of a mail."""
        return declare_mail(name)

    def _find_starts(self) -> NDArray[np.int64]:
        """Return where mails begin, and the end of the file: int64 array of n + 1 bytes."""
        size = os.fstat(self.file).st_size
        starts, at = [0], 0
        while at < size and (data := pread(self.file, _SCAN_BYTES + LOOKAHEAD + 8, at)):
            ended = at + len(data) >= size
            found = [at + place for place in find_mails(data, ended=ended)]
            starts += [place for place in found if place > starts[-1]]
            # The last bytes are looked at again: a separator may begin there, after an empty line.
            at = size if ended else at + len(data) - LOOKAHEAD - 4
        return np.array([*starts, size], np.int64)


def _message_id(mail: memoryview | bytes) -> tuple[bytes, bytes]:
    """Return the Message-ID of a mail. Raises RecordError if it has none."""
    head = bytes(mail[:_HEAD_BYTES]).replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    found = _ID.search(head)
    if found is None:
        raise RecordError(Reason.NO_ID, "the mail has no Message-ID")
    return found[1], b""
