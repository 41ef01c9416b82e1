"""Files of lines: where the lines are, their bytes, and what a parser makes of them.

Lines are found without parsing them: a file of any size costs one pass and 24 bytes a line.
"""

import os
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import StringTable
from lshdup.base.system import pread_into
from lshdup.sources.files import Buffer, read_spans
from lshdup.sources.readers.members import Contents, join_contents
from lshdup.sources.records import RecordError, RecordList, SkippedRecord

#: Bytes read at a time to find the ends of lines, and to read records.
_SCAN_BYTES, _READ_BYTES = 1 << 22, 1 << 22

_NEWLINE = ord("\n")
#: White space within a line.
SPACES = b" \t\r"

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


def batches_of_lines(
    file: int, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.uint8], NDArray[np.int64]]]:
    """Yield lines together: the number of the first, and their bytes and places, as `read_spans`.

    They are valid until the next.
    """
    ends, row = np.cumsum(lengths), 0
    buffer = Buffer()
    while row < len(starts):
        stop = max(int(np.searchsorted(ends, ends[row] - lengths[row] + _READ_BYTES)), row + 1)
        yield row, *read_spans(file, starts[row:stop], lengths[row:stop], buffer)
        row = stop


def read_lines(
    file: int, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> Iterator[memoryview]:
    """Yield the bytes of lines, one after the other; valid until the next."""
    for row, text, places in batches_of_lines(file, starts, lengths):
        sizes = lengths[row : row + len(places)]
        for place, length in zip(places.tolist(), sizes.tolist(), strict=True):
            yield text.data[place : place + length]


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

    file : descriptor of the file.
    records : their numbers and bytes, and others that are skipped.
    """
    ids: list[bytes] = []
    skipped = list(records.skipped)
    good = np.zeros(len(records.starts), bool)
    for at, view in enumerate(read_lines(file, records.starts, records.lengths)):
        try:
            ids.append(parse(view)[0])
            good[at] = True
        except RecordError as error:
            skipped.append(SkippedRecord(int(records.numbers[at]), error.reason, error.detail))
    skipped.sort()
    columns = (records.numbers[good], records.starts[good], records.lengths[good])
    return RecordList(*columns, StringTable.from_strings(ids), skipped)


def read_parsed(
    file: int, starts: NDArray[np.int64], lengths: NDArray[np.int64], parse: Parse, buffer: Buffer
) -> Contents:
    """Return the texts of records, as `RecordFiles.texts` does."""
    data, places = read_spans(file, starts, lengths, buffer)
    view = data.data
    each = zip(places.tolist(), lengths.tolist(), strict=True)
    return join_contents((view[at : at + size] for at, size in each), lambda line: parse(line)[1])
