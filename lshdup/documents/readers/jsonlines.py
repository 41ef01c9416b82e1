"""JSON Lines: where the records are, and their texts and ids.

A record is a line; a line of white space is counted and skipped. Lines are found without parsing
them: a file of any size costs one pass and 24 bytes a record. msgspec parses records; Python's
parser reads those that it refuses, and says what is wrong with them. What msgspec takes, Python's
parser takes too: a test holds both to the same texts.
"""

import json
import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from lshdup.documents.files import Buffer, read_spans
from lshdup.documents.records import (
    RecordError,
    RecordFields,
    RecordList,
    SkippedRecord,
    field_names,
    no_field,
)
from lshdup.kernels.helpers import PADDING
from lshdup.skipped import Reason
from lshdup.utils.ragged import StringTable

#: Bytes read at a time to find the ends of lines, and to read records.
_SCAN_BYTES, _READ_BYTES = 1 << 22, 1 << 22

_NEWLINE, _SPACES = ord("\n"), b" \t\r"
_MISSING = object()


class _Number(str):
    """An integer as it is written: an id keeps its digits, however many they are."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_int=_Number)


def list_records(file: int, fields: RecordFields, longest: int) -> RecordList:
    """Return the records of an open file.

    With an id field, every record is parsed, and one without id or text is skipped; else none is
    parsed. Memory: 24 bytes a record, and the ids.

    Parameters
    ----------
    file : descriptor of the file.
    fields : names of text and id.
    longest : records of more bytes are skipped.

    """
    starts, lengths, suspects = _find_lines(file)
    numbers, keep = np.arange(1, len(starts) + 1), (lengths > 0) & (lengths <= longest)
    for row in suspects[keep[suspects]].tolist():
        keep[row] = bool(os.pread(file, int(lengths[row]), int(starts[row])).strip(_SPACES))
    skipped = [
        SkippedRecord.too_large(row + 1, int(lengths[row]), longest)
        for row in np.flatnonzero(lengths > longest).tolist()
    ]
    numbers, starts, lengths = numbers[keep], starts[keep], lengths[keep]
    if not fields.id:
        return RecordList(numbers, starts, lengths, None, skipped)
    parse = _parser(fields)
    ids: list[bytes] = []
    good = np.zeros(len(starts), bool)
    for at, view in enumerate(_read_lines(file, starts, lengths)):
        try:
            ids.append(parse(view)[0])
            good[at] = True
        except RecordError as error:
            skipped.append(SkippedRecord(int(numbers[at]), error.reason, error.detail))
    skipped.sort()
    return RecordList(
        numbers[good], starts[good], lengths[good], StringTable.from_strings(ids), skipped
    )


def read_texts(
    file: int, starts: NDArray[np.int64], lengths: NDArray[np.int64], field: str, buffer: Buffer
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], dict[int, RecordError]]:
    """Return the texts of records of an open file.

    Parameters
    ----------
    file : descriptor of the file.
    starts, lengths : int64 arrays of shape (n,), bytes of the records.
    field : name of the text.
    buffer : memory to read into.

    Returns
    -------
    A uint8 array with room to load past the end; int64 starts and lengths of shape (n,) of the
    texts in it; and by index why others have no text.

    """
    parse = _parser(RecordFields(field))
    data, places = read_spans(file, starts, lengths, buffer)
    lines = data.data
    texts: list[bytes] = []
    failed: dict[int, RecordError] = {}
    for row, (start, length) in enumerate(zip(places.tolist(), lengths.tolist(), strict=True)):
        try:
            texts.append(parse(lines[start : start + length])[1])
        except RecordError as error:
            failed[row] = error
            texts.append(b"")
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    text = np.frombuffer(bytearray().join([*texts, bytes(PADDING)]), np.uint8)
    return text, np.cumsum(sizes) - sizes, sizes, failed


def parse_record(line: bytes, fields: RecordFields) -> tuple[bytes, bytes] | None:
    """Return id and text of a line that was read elsewhere; None for a line of white space.

    Raises RecordError.
    """
    return _parser(fields)(line) if line.strip(_SPACES) else None


def _find_lines(file: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return where lines begin, how long they are without their ends, and which begin with white
    space: int64 arrays.
    """
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


def _read_lines(
    file: int, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> Iterator[memoryview]:
    """Yield the bytes of lines, one after the other; valid until the next."""
    ends, row = np.cumsum(lengths), 0
    buffer = Buffer()
    while row < len(starts):
        stop = max(int(np.searchsorted(ends, ends[row] - lengths[row] + _READ_BYTES)), row + 1)
        text, places = read_spans(file, starts[row:stop], lengths[row:stop], buffer)
        lines = text.data
        for place, length in zip(places.tolist(), lengths[row:stop].tolist(), strict=True):
            yield lines[place : place + length]
        row = stop


def lines_between(
    file: int, start: int, stop: int, longest: int
) -> Iterator[tuple[int, bytes, int]]:
    """Yield the lines of a piece of an open file, for a reader of pieces.

    Yields where a line begins, its bytes without the end, and how many they are; of a line of more
    than `longest` bytes only the first.

    Parameters
    ----------
    file : descriptor of the file.
    start, stop : the piece has the lines that begin at one of these bytes, without `stop`.
    longest : bytes that are read of a line at most, but for one.

    """
    with open(os.dup(file), "rb") as lines:  # noqa: PTH123 (a descriptor)
        at = lines.seek(max(start - 1, 0))
        if start:
            at += _skip_line(lines)
        while at < stop and (line := lines.readline(longest + 1)):
            size = len(line)
            ended = line.endswith(b"\n")
            if not ended and size > longest:
                size += _skip_line(lines)
                ended = os.pread(file, 1, at + size - 1) == b"\n"
            yield at, line[:-1] if line.endswith(b"\n") else line, size - ended
            at += size


def _skip_line(lines: BinaryIO) -> int:
    """Move behind the end of the line; return by how many bytes."""
    gone, part = 0, b" "
    while part and not part.endswith(b"\n"):
        part = lines.readline(_READ_BYTES)
        gone += len(part)
    return gone


def count_lines(file: int, place: int) -> int:
    """Return how many lines of an open file (its descriptor) end before a byte."""
    found = at = 0
    while at < place and (block := os.pread(file, min(_SCAN_BYTES, place - at), at)):
        found += block.count(b"\n")
        at += len(block)
    return found


# --- one record -----------------------------------------------------------------------------------

#: A line -> id and text. Raises RecordError.
_Parse = Callable[["bytes | memoryview"], tuple[bytes, bytes]]


@lru_cache(8)
def _parser(fields: RecordFields) -> _Parse:
    """Return the parser of records with these fields; without an id field, ids are empty."""
    names = {"text": fields.text, **({"id": fields.id} if fields.id else {})}
    types = {"text": str, "id": msgspec.Raw}
    try:
        record = msgspec.defstruct("Record", [(name, types[name]) for name in names], rename=names)
    except ValueError:  # names that msgspec does not take
        return lambda line: _parse_by_python(line, fields)
    decode = msgspec.json.Decoder(record).decode

    def parse(line: bytes | memoryview) -> tuple[bytes, bytes]:
        try:
            values: Any = decode(str(line, "utf-8"))  # all of it, as msgspec checks the text only
            name = _plain_id(bytes(values.id)) if fields.id else b""
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return _parse_by_python(line, fields)
        return (name, values.text.encode()) if name is not None else _parse_by_python(line, fields)

    return parse


def _plain_id(raw: bytes) -> bytes | None:
    """Return an id from its JSON: a string, or an integer as it is written, or None."""
    if raw.startswith(b'"'):
        return msgspec.json.decode(raw, type=str).encode() or None
    return raw if raw.removeprefix(b"-").isdigit() else None


def _parse_by_python(line: bytes | memoryview, fields: RecordFields) -> tuple[bytes, bytes]:
    values = _parse_object(bytes(line))
    return _id_of(values, fields.id) if fields.id else b"", _text_of(values, fields.text)


def _parse_object(line: bytes) -> dict[str, Any]:
    """Return the object that a line is. Raises RecordError."""
    try:
        values = _DECODER.decode(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        detail = f"not UTF-8: {error.reason} at byte {error.start} of the row"
        raise RecordError(Reason.UNDECODABLE, detail) from None
    except json.JSONDecodeError as error:
        detail = f"{error.msg.removesuffix(' at')} at character {error.pos + 1}"
        raise RecordError(Reason.NOT_JSON, detail) from None
    except RecursionError:
        raise RecordError(Reason.NOT_JSON, "nested too deeply") from None
    if type(values) is not dict:
        raise RecordError(Reason.NOT_JSON, f"it is {_kind(values)}")
    return values


def _value(values: dict[str, Any], name: str) -> Any:
    """Return a field by its name, or by the names on the way to it with dots between."""
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
    if type(value) is not str:
        reason = Reason.NO_TEXT if value is None else Reason.NOT_TEXT
        raise RecordError(reason, f"{field!r} is {_kind(value)}")
    return _utf8(value, field)


def _id_of(values: dict[str, Any], field: str) -> bytes:
    value = _value(values, field)
    if value is _MISSING:
        raise RecordError(Reason.NO_ID, no_field(field, _fields(values), "--id-field"))
    if not isinstance(value, str) or not value:
        detail = f"{field!r} is {_kind(value)}; an id is a string or an integer"
        raise RecordError(Reason.NO_ID, detail)
    return _utf8(value, field)


def _utf8(value: str, field: str) -> bytes:
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        detail = f"{field!r} has half a surrogate pair at character {error.start + 1}"
        raise RecordError(Reason.UNDECODABLE, detail) from None


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", float: "a number", _Number: "a number"}
    kinds |= {bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "an empty string" if value == "" else "a string")
