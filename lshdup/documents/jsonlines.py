"""JSON Lines: where the rows are, and their texts and ids. Called by openrows.py.

A row is a line; rows that hold nothing but white space are passed over, but counted. Lines are found without looking into them, so that a
file of any size costs one pass and 24 bytes a row. Kernels find the texts; Python's parser looks at the rows where they do not, and says
what is wrong with them.
"""

import json
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.files import Buffer, read_spans
from lshdup.documents.records import RecordError, RecordFields, RecordList, field_names, no_field
from lshdup.kernels import json_rows as kernels
from lshdup.kernels.helpers import PADDING
from lshdup.skipped import Reason
from lshdup.utils.ragged import StringTable

#: Bytes read at a time when looking for the ends of lines, and when reading rows.
_SCAN_BYTES, _READ_BYTES = 1 << 22, 1 << 22

_NEWLINE, _SPACES = ord("\n"), b" \t\r"
_MISSING = object()


class _Number(str):
    """An integer as it is written: as an id it stays so, byte for byte, and it may be as long as it likes."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_int=_Number)


def list_records(file: int, fields: RecordFields, longest: int) -> RecordList:
    """The rows of an open file (its descriptor). With an id field each is parsed, and one without text is left out; otherwise none is
    looked into.

    longest : rows of more bytes are left out. Memory: 24 bytes a row and the ids.
    """
    starts, lengths, suspects = _lines(file)
    numbers = np.arange(1, len(starts) + 1)
    keep = lengths > 0
    for row in suspects.tolist():
        if lengths[row] <= longest and not os.pread(
            file, int(lengths[row]), int(starts[row])
        ).strip(_SPACES):
            keep[row] = False
    keep &= lengths <= longest
    skipped = [
        (row + 1, Reason.TOO_LARGE, f"{lengths[row]} bytes, --max-bytes is {longest}")
        for row in np.flatnonzero(lengths > longest).tolist()
    ]
    numbers, starts, lengths = numbers[keep], starts[keep], lengths[keep]
    if not fields.id:
        return RecordList(numbers, starts, lengths, None, skipped)
    ids: list[bytes] = []
    good = np.zeros(len(starts), bool)
    for at, row in enumerate(_rows(file, starts, lengths)):
        try:
            values = _parsed(row)
            name = _id_of(values, fields.id)
            _text_of(values, fields.text)
        except RecordError as error:
            skipped.append((int(numbers[at]), error.reason, error.detail))
        else:
            ids.append(name)
            good[at] = True
    skipped.sort()
    return RecordList(
        numbers[good], starts[good], lengths[good], StringTable.from_strings(ids), skipped
    )


def read_texts(
    file: int, starts: NDArray[np.int64], lengths: NDArray[np.int64], field: str, buffer: Buffer
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], dict[int, RecordError]]:
    """The texts of rows of an open file (its descriptor): uint8 array with room to load past the end, int64 starts and lengths of shape
    (n,) in it; and why others have none.
    """
    text, places = _there(file, starts, lengths, buffer, twice=True)
    half = (len(text) - PADDING) // 2
    found_at, found = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    name = np.frombuffer(field.encode("utf-8", "surrogatepass"), np.uint8)
    kernels.find_texts(text[:half], places, lengths, name, text[half:], found_at, found)
    failed: dict[int, RecordError] = {}
    others, end = [], len(text) - PADDING
    for row in np.flatnonzero(found < 0).tolist():
        found_at[row], found[row] = 0, 0
        try:
            data = _text_of(
                _parsed(text[places[row] : places[row] + lengths[row]].tobytes()), field
            )
        except RecordError as error:
            failed[row] = error
            continue
        others.append(data)
        found_at[row], found[row] = end, len(data)
        end += len(data)
    if others:
        text = np.frombuffer(
            bytearray().join([text[: len(text) - PADDING].tobytes(), *others, bytes(PADDING)]),
            np.uint8,
        )
    return text, found_at, found, failed


def _lines(file: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where the lines of a file begin, how long they are without their ends, and which begin with white space: int64 arrays."""
    size = os.fstat(file).st_size
    block = np.empty(_SCAN_BYTES, np.uint8)
    starts, suspects, ends = [], [], []
    at, begins = 0, True  # whether a line begins where the next block does
    while at < size and (got := os.preadv(file, [block[: size - at].data], at)):
        newlines = np.flatnonzero(block[:got] == _NEWLINE)
        first = np.concatenate([np.zeros(int(begins), np.int64), newlines + 1])
        begins = bool(len(first)) and int(first[-1]) == got
        first = first[:-1] if begins else first
        letters = block[first]
        white = (letters == _SPACES[0]) | (letters == _SPACES[1]) | (letters == _SPACES[2])
        suspects.append(first[white] + at)
        starts.append(first + at)
        ends.append(newlines + at)
        at += got
    if at and not begins:  # the last line has no end
        ends.append(np.array([at]))
    none = np.zeros(0, np.int64)
    first, last = np.concatenate([none, *starts]), np.concatenate([none, *ends])
    return first, last - first, np.searchsorted(first, np.concatenate([none, *suspects]))


def _there(
    file: int,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    buffer: Buffer,
    *,
    twice: bool = False,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    try:
        return read_spans(file, starts, lengths, buffer, twice=twice)
    except EOFError:
        raise RecordError(Reason.CHANGED, "its file has become shorter") from None


def _rows(file: int, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Iterator[bytes]:
    """The bytes of all these rows, one after the other."""
    ends, row = np.cumsum(lengths), 0
    buffer = Buffer()
    while row < len(starts):
        stop = max(int(np.searchsorted(ends, ends[row] - lengths[row] + _READ_BYTES)), row + 1)
        text, places = _there(file, starts[row:stop], lengths[row:stop], buffer)
        for place, length in zip(places.tolist(), lengths[row:stop].tolist(), strict=True):
            yield text[place : place + length].tobytes()
        row = stop


def lines_between(
    file: int, start: int, stop: int, longest: int
) -> Iterator[tuple[int, bytes, int]]:
    """Lines of an open file (its descriptor) that begin at a byte from `start` on, before `stop`, for whoever reads a file in pieces: where
    each begins, what it holds without its end, and how many bytes that is. Of one of more than `longest` bytes, some of it.
    """
    with open(os.dup(file), "rb") as lines:  # noqa: PTH123 (a descriptor)
        at = lines.seek(max(start - 1, 0))
        if start:
            at += _rest(lines)
        while at < stop and (line := lines.readline(longest + 1)):
            size = len(line)
            ended = line.endswith(b"\n")
            if not ended and size > longest:
                size += _rest(lines)
                ended = os.pread(file, 1, at + size - 1) == b"\n"
            yield at, line[:-1] if line.endswith(b"\n") else line, size - ended
            at += size


def _rest(lines: BinaryIO) -> int:
    """Go behind the end of the line; returns how many bytes that is away."""
    gone = 0
    while part := lines.readline(_READ_BYTES):
        gone += len(part)
        if part.endswith(b"\n"):
            break
    return gone


def lines_before(file: int, place: int) -> int:
    """How many lines of an open file (its descriptor) end before a byte."""
    found = at = 0
    while at < place and (block := os.pread(file, min(_SCAN_BYTES, place - at), at)):
        found += block.count(b"\n")
        at += len(block)
    return found


# --- one row ----------------------------------------------------------------------------------------------------------------


def row_of(line: bytes, fields: RecordFields) -> tuple[bytes, bytes] | None:
    """Id and text of one row, for whoever reads lines elsewhere; None for a line of white space. Raises RecordError."""
    if not line.strip(_SPACES):
        return None
    values = _parsed(line)
    return _id_of(values, fields.id), _text_of(values, fields.text)


def _parsed(row: bytes) -> dict[str, Any]:
    try:
        values = _DECODER.decode(row.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RecordError(
            Reason.UNDECODABLE, f"not UTF-8: {error.reason} at byte {error.start} of the row"
        ) from None
    except json.JSONDecodeError as error:
        raise RecordError(
            Reason.NOT_JSON, f"{error.msg.removesuffix(' at')} at character {error.pos + 1}"
        ) from None
    except RecursionError:
        raise RecordError(Reason.NOT_JSON, "nested too deeply") from None
    if type(values) is not dict:
        raise RecordError(Reason.NOT_JSON, f"it is {_kind(values)}")
    return values


def _value(values: dict[str, Any], name: str) -> Any:
    """A field by its name, or by the names on the way to it with dots between."""
    if name in values:
        return values[name]
    value: Any = values
    for part in name.split("."):
        if type(value) is not dict or part not in value:
            return _MISSING
        value = value[part]
    return value


def _fields(values: dict[str, Any]) -> tuple[str, ...]:
    return field_names(
        (name, part)
        for name, value in values.items()
        for part in ("", *(value if type(value) is dict else ()))
    )


def _text_of(values: dict[str, Any], field: str) -> bytes:
    value = _value(values, field)
    if value is _MISSING:
        raise RecordError(Reason.NO_TEXT, no_field(field, _fields(values), "--text-field"))
    if value is None:
        raise RecordError(Reason.NO_TEXT, f"{field!r} is null")
    if type(value) is not str:
        raise RecordError(Reason.NOT_TEXT, f"{field!r} is {_kind(value)}")
    return _utf8(value, field)


def _id_of(values: dict[str, Any], field: str) -> bytes:
    value = _value(values, field)
    if value is _MISSING:
        raise RecordError(Reason.NO_ID, no_field(field, _fields(values), "--id-field"))
    if not isinstance(value, str) or not value:
        raise RecordError(
            Reason.NO_ID, f"{field!r} is {_kind(value)}; an id is a string or an integer"
        )
    return _utf8(value, field)


def _utf8(value: str, field: str) -> bytes:
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RecordError(
            Reason.UNDECODABLE,
            f"{field!r} has half a surrogate pair at character {error.start + 1}",
        ) from None


def _kind(value: Any) -> str:
    kinds = {
        dict: "an object",
        list: "a list",
        float: "a number",
        _Number: "a number",
        bool: "true or false",
        type(None): "null",
    }
    return kinds.get(type(value), "an empty string" if value == "" else "a string")
