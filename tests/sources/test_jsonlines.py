"""Texts of JSON Lines: msgspec finds what Python's parser finds, in every plain row."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lshdup.base.memory import Buffer
from lshdup.base.skipped import Reason
from lshdup.sources import jsonlines, lines
from lshdup.sources.records import RecordError, RecordFields


def by_msgspec(row, field="text", id_field=""):
    """The text, or None if msgspec leaves it to Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonlines, "_parse_by_python", lambda *_: (None, None))
        name, text = jsonlines.parse_record(row, RecordFields(field, id_field)) or (None, None)
    return (name, text) if id_field else text


def by_python(row, field="text"):
    """The text by Python's parser alone, or why there is none."""
    try:
        return jsonlines._parse_by_python(row, RecordFields(field))[1]
    except RecordError as error:
        return error.reason


def by_file(tmp_path, data, field="text", **fields):
    """What lshdup makes of a file: (number, text or reason) of each row."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(data)
    with path.open("rb") as file:
        reader = jsonlines.JsonLines(file.fileno(), RecordFields(field, **fields), 1 << 20)
        listed = reader.list_records()
        if not len(listed.numbers):
            return listed, []
        text, starts, lengths, failed = reader.texts((listed.starts, listed.lengths), Buffer())
    places = zip(starts.tolist(), lengths.tolist(), strict=True)
    texts = [text[start : start + length].tobytes() for start, length in places]
    return listed, [failed[at].reason if at in failed else each for at, each in enumerate(texts)]


scalars = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(max_size=20)
scalars |= st.floats(allow_nan=False, allow_infinity=False)
names = st.text(max_size=3)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)
)
characters = st.characters(exclude_categories=["Cs"]) | st.sampled_from('a"\\/\n\t\b\f\r\x00é漢😀')
texts = st.text(characters, max_size=60)
fields = st.dictionaries(st.sampled_from(["a", "text ", "tex", "id", "t"]), values, max_size=3)


@st.composite
def rows(draw):
    """(row, text) of a plain row."""
    before, text, after = draw(fields), draw(texts), draw(fields)
    after = {name: value for name, value in after.items() if name not in before}
    separators = draw(st.sampled_from([(",", ":"), (" , ", " : "), (", ", ": ")]))
    whole = {**before, "text": text, **after}
    row = json.dumps(whole, ensure_ascii=draw(st.booleans()), separators=separators)
    return row.encode("utf-8", "replace"), text.encode()


@given(rows())
def test_plain_rows_need_no_other_parser(made):
    row, text = made
    assert by_msgspec(row) == text


pieces = [
    *(b"", b'"', b"\\", b"u", b"\\ud800", b"\\udc00", b"{", b"}", b"[", b"]", b",", b":", b"0"),
    *(b"-", b"e", b".", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\t", b" ", b"\x01", b'"text":'),
    *(b"NaN", b'"text":"again",', b"true", b"nul"),
]
mutation = st.tuples(st.integers(0, 400), st.sampled_from(pieces), st.integers(0, 3))


@given(rows(), st.lists(mutation, max_size=3))
def test_what_msgspec_takes_is_right(made, changes):
    row, _ = made
    for at, piece, dropped in changes:
        at %= len(row) + 1
        row = row[:at] + piece + row[at + dropped :]
    row = row.replace(b"\n", b" ")
    found = by_msgspec(row)
    if found is not None:
        assert found == by_python(row)
    name, found = by_msgspec(row, id_field="id")
    if found is not None:
        assert (name, found) == jsonlines._parse_by_python(row, RecordFields("text", "id"))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (b'{"text":"a"}', b"a"), (b'  {"text" : "" } \r', b""),
        (b'\xef\xbb\xbf{"text":"marked"}', b"marked"),
        (b'{"te\\u0078t":"escaped key"}', b"escaped key"),
        (b'{"text":"first","text":"second"}', b"second"),
        (b'{"text":1,"text":"second"}', b"second"), (b'{"text":"first","text":1}', Reason.NOT_TEXT),
        (b'{"x":{"text":"inner"}}', Reason.NO_TEXT),
        (b'{"x":{"text":"inner"},"text":"outer"}', b"outer"), (b'{"text":null}', Reason.NULL_TEXT),
        (b'{"text":["a"]}', Reason.NOT_TEXT),
        (b'{"text":"\\ud83d\\ude00\\u00e9\\/"}', "😀é/".encode()),
        (b'{"text":"\\ud83d"}', Reason.UNDECODABLE),
        (b'{"text":"\\ude00\\ud83d"}', Reason.UNDECODABLE),
        (b'{"x":"\\ud83d","text":"other field"}', b"other field"),
        (b'{"text":"\xff"}', Reason.UNDECODABLE), (b'{"x":"\xff","text":"a"}', Reason.UNDECODABLE),
        (b'{"text":"a\tb"}', Reason.NOT_JSON), (b'{"text":"a"', Reason.NOT_JSON),
        (b'{"text":"a"}}', Reason.NOT_JSON), (b'{"text":"a",}', Reason.NOT_JSON),
        (b'{"text":"a","x":01}', Reason.NOT_JSON), (b'{"text":"a","x":1.}', Reason.NOT_JSON),
        (b'{"text":"a","x":-}', Reason.NOT_JSON), (b'{"text":"a","x":NaN}', b"a"),
        (b'{"text":"a","x":' + b"9" * 9000 + b"}", b"a"),
        (b'{"text":"a","x":' + b"[" * 100 + b"]" * 100 + b"}", b"a"),
        (b'{"text":"a","x":' + b"[" * 100000 + b"}", Reason.NOT_JSON), (b"[1]", Reason.NOT_JSON),
        (b'"text"', Reason.NOT_JSON), (b"null", Reason.NOT_JSON), (b"nonsense", Reason.NOT_JSON),
    ],
)  # fmt: skip
def test_rows_good_and_bad(tmp_path, row, expected):
    assert by_file(tmp_path, row)[1] == [expected]
    # The same beside others, at other places.
    beside = b'{"text":"x"}\n' * 3 + row + b'\n{"text":"y\\n"}'
    assert by_file(tmp_path, beside)[1] == [b"x", b"x", b"x", expected, b"y\n"]


def test_names_with_dots_lead_inwards(tmp_path):
    data = b'{"a":{"b":"inner"}}\n{"a.b":"itself","a":{"b":"inner"}}\n{"a":[1]}\n{"a":{"b":{}}}\n'
    assert by_file(tmp_path, data, "a.b")[1] == [
        b"inner", b"itself", Reason.NO_TEXT, Reason.NOT_TEXT,
    ]  # fmt: skip


def test_blank_lines_are_counted_and_nothing_else(tmp_path):
    row = b'{"text":"a"}'
    for end in (b"", b"\n", b"\r\n", b"\n\n \t\r\n"):
        listed, made = by_file(tmp_path, b"\n" + row + b"\r\n \t\n  " + row + b"\n\n\n" + row + end)
        assert (listed.numbers.tolist(), made) == ([2, 4, 7], [b"a"] * 3)
    assert by_file(tmp_path, b"")[1] == by_file(tmp_path, b"\n \n")[1] == []


def test_lines_longer_than_what_is_read_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "_SCAN_BYTES", 16)
    monkeypatch.setattr(lines, "_READ_BYTES", 16)
    data = [{"text": "x" * n, "id": n} for n in range(60)]
    text = b"\n".join(json.dumps(row).encode() for row in data)
    for end in (b"", b"\n"):
        listed, made = by_file(tmp_path, text + end, id="id")
        assert made == [row["text"].encode() for row in data]
        assert list(listed.names) == [str(row["id"]).encode() for row in data]
    spaced = b"\n".join(b" " * n + b'{"text":"a"}' for n in range(20))
    assert by_file(tmp_path, spaced)[1] == [b"a"] * 20
    assert by_file(tmp_path, b"\n".join(b" " * n for n in range(40)))[1] == []


def test_rows_that_are_too_long_are_said(tmp_path):
    long = b'{"text":"' + b"x" * (1 << 20) + b'"}'
    listed, made = by_file(tmp_path, b'{"text":"a"}\n' + long + b'\n{"text":"b"}\n')
    assert made == [b"a", b"b"]
    assert [(number, reason) for number, reason, *_ in listed.skipped] == [(2, Reason.TOO_LARGE)]


def test_ids_are_what_is_written(tmp_path):
    ids = [
        b'"a"', b'"a\\u00e9"', b"12", b"-0", b"9" * 30, b'" \\n"', b"1.0", b"true", b"null", b'""',
        b"{}", b'"\\ud800"',
    ]  # fmt: skip
    lines = [*(b'{"text":"t","id":' + each + b"}" for each in ids), b'{"text":"t"}']
    listed, made = by_file(tmp_path, b"\n".join(lines), id="id")
    assert list(listed.names) == [b"a", "aé".encode(), b"12", b"-0", b"9" * 30, b" \n"]
    reasons = dict.fromkeys(range(7, 14), Reason.NO_ID) | {12: Reason.UNDECODABLE}
    assert {number: reason for number, reason, *_ in listed.skipped} == reasons
    assert made == [b"t"] * 6
