"""JSON Lines: where the records are, and their texts and ids.

A record is a line; a line of white space is counted and skipped. Lines are found without parsing
them: a file of any size costs one pass and 24 bytes a record. msgspec parses records; Python's
parser reads those that it refuses, and says what is wrong with them. What msgspec takes, Python's
parser takes too: a test holds both to the same texts.
"""

import codecs
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import PART
from lshdup.base.skipped import Reason
from lshdup.base.system import pread
from lshdup.sources.lines import SPACES, Parse, ParsedFile, find_lines, read_lines
from lshdup.sources.records import (
    RecordError,
    RecordFields,
    RecordList,
    Rows,
    Spans,
    Values,
    field_names,
    no_field,
    split_fields,
)

_MISSING = object()


class _Number(str):
    """An integer as it is written: an id keeps its digits, however many they are."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_int=_Number)
_AS_WRITTEN = json.JSONDecoder(parse_int=_Number, parse_float=_Number)
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])


class JsonLines(ParsedFile):
    """A file of JSON Lines."""

    def list_records(self) -> RecordList:
        """Return the records.

        With an id field, every record is parsed, and one without id or text is skipped; else none
        is parsed. Memory: 24 bytes a record, and the ids.
        """
        starts, lengths, suspects = find_lines(self.file)
        keep = lengths > 0
        for row in suspects[keep[suspects] & (lengths[suspects] <= self.longest)].tolist():
            keep[row] = bool(pread(self.file, int(lengths[row]), int(starts[row])).strip(SPACES))
        return self.with_ids(RecordList.of(starts, lengths, self.longest, keep))

    def list_rows(self) -> Rows:
        starts, lengths, _ = find_lines(self.file)
        return Rows(starts[lengths > 0], lengths[lengths > 0])

    def values(self, spans: Spans, field: str, option: str) -> Values:
        found = [_scalar(bytes(line), field) for line in read_lines(self.file, spans)]
        if not any(found):
            known = _fields(parse_object(bytes(next(read_lines(self.file, spans)))))
            if field not in known:
                raise RecordError(Reason.NO_TEXT, no_field(field, known, option))
        return found

    def have_integer_ids(self, spans: Spans) -> NDArray[np.bool_]:
        lines = read_lines(self.file, spans)
        found = (_has_integer_id(bytes(line), self.fields.id) for line in lines)
        return np.fromiter(found, bool, len(spans[0]))

    def parser(self, *, ids: bool) -> Parse:
        """Return the parser of a record."""
        return _parser(self.fields if ids else replace(self.fields, id=""))


def parse_record(line: bytes, fields: RecordFields) -> tuple[bytes, bytes] | None:
    """Return id and text of a line that was read elsewhere; None for a line of white space.

    Raises RecordError.
    """
    return _parser(fields)(line) if line.strip(SPACES) else None


def _scalar(line: bytes, field: str) -> bytes | None:
    """Return a field of a line, a number as it is written; None if it is no scalar."""
    with suppress(msgspec.MsgspecError, UnicodeError, RecursionError, KeyError):
        raw = bytes(_RAW.decode(line)[field])
        return raw if raw[0] in b"-0123456789tf" else _plain_id(raw)
    value = _value(parse_object(line, _AS_WRITTEN), field)
    if type(value) is bool:
        return b"true" if value else b"false"
    is_scalar = type(value) in (str, _Number, float)  # Infinity and NaN are floats.
    return str(value).encode("utf-8", "surrogatepass") or None if is_scalar else None


def _has_integer_id(line: bytes, field: str) -> bool:
    try:
        return not bytes(_RAW.decode(line)[field]).startswith(b'"')
    except (msgspec.MsgspecError, UnicodeError, RecursionError, KeyError):
        return type(_value(parse_object(line), field)) is _Number


def find_values(line: bytes, names: Sequence[str]) -> list[tuple[int, int, bytes] | None] | None:
    r"""Return where the values of fields stand in a line: first byte, the byte behind the last one,
    and the text; None for null. Return None if no strict parser reads the line.

    names : of fields that are texts or null; of a field in a field with dots, as `_value` has them.

    >>> find_values(rb'{"n": 1, "text": "\u00e9"}', ["text"])
    [(17, 25, b'\xc3\xa9')]
    """
    start = len(codecs.BOM_UTF8) if line.startswith(codecs.BOM_UTF8) else 0
    found: list[tuple[int, int, bytes] | None] = []
    for name in names:
        raw, path = line[start:], [name]
        try:
            values = _RAW.decode(raw)
            if name not in values:
                path = name.split(".")
            at = start
            for part in path:
                values = _RAW.decode(raw)
                at += _place_in(raw, values[part])
                raw = bytes(values[part])
            text = msgspec.json.decode(raw, type=str | None)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, KeyError):
            return None
        found.append(None if text is None else (at, at + len(raw), text.encode()))
    return found


def _place_in(whole: bytes, part: msgspec.Raw) -> int:
    """Return where a value begins in the bytes that it is a view of."""
    begin = np.frombuffer(part, np.uint8).ctypes.data
    return int(begin - np.frombuffer(whole, np.uint8).ctypes.data)


# --- one record -----------------------------------------------------------------------------------


@lru_cache(8)
def _parser(fields: RecordFields) -> Parse:
    """Return the parser of records with these fields; without an id field, ids are empty."""
    texts = [f"text{at}" for at, _ in enumerate(split_fields(fields.text))]
    names = dict(zip(texts, split_fields(fields.text), strict=True))
    names |= {"id": fields.id} if fields.id else {}
    types = [(name, msgspec.Raw if name == "id" else str) for name in names]
    try:
        record = msgspec.defstruct("Record", types, rename=names)
    except ValueError:  # names that msgspec does not take
        return lambda line: _parse_by_python(line, fields)
    decode = msgspec.json.Decoder(record).decode

    def parse(line: bytes | memoryview) -> tuple[bytes, bytes]:
        try:
            values: Any = decode(str(line, "utf-8"))  # all of it, as msgspec checks the text only
            name = _plain_id(bytes(values.id)) if fields.id else b""
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return _parse_by_python(line, fields)
        if name is None:
            return _parse_by_python(line, fields)
        return name, text_of(values)

    text_of = _joined(texts)
    return parse


def _joined(names: list[str]) -> Callable[[Any], bytes]:
    """Return what makes the text of an object with these attributes."""
    values_of: Callable[[Any], Any] = attrgetter(*names)
    if len(names) == 1:
        return lambda values: values_of(values).encode()
    return lambda values: PART.join([value.encode() for value in values_of(values)])


def _plain_id(raw: bytes) -> bytes | None:
    """Return an id from its JSON: a string, or an integer as it is written, or None."""
    if raw.startswith(b'"'):
        return msgspec.json.decode(raw, type=str).encode() or None
    return raw if raw.removeprefix(b"-").isdigit() else None


def _parse_by_python(line: bytes | memoryview, fields: RecordFields) -> tuple[bytes, bytes]:
    values = parse_object(bytes(line))
    return _id_of(values, fields.id) if fields.id else b"", _text_of(values, fields.text)


def parse_object(line: bytes, decoder: json.JSONDecoder = _DECODER) -> dict[str, Any]:
    """Return the object that a line is. Raises RecordError."""
    try:
        values = decoder.decode(line.decode("utf-8-sig"))
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


def _text_of(values: dict[str, Any], names: str) -> bytes:
    """Return the text: of several fields those that are not null, as parts."""
    found = []
    for field in split_fields(names):
        value = _value(values, field)
        if value is _MISSING:
            raise RecordError(Reason.NO_TEXT, no_field(field, _fields(values), "--text-field"))
        if value is not None and type(value) is not str:
            raise RecordError(Reason.NOT_TEXT, f"{field!r} is {_kind(value)}")
        found += [] if value is None else [_utf8(value, field)]
    if not found:
        raise RecordError(Reason.NULL_TEXT, f"{names!r} is null")
    return PART.join(found)


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
