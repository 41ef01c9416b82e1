"""Rows without parts of their texts: all else is as it was, byte for byte."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.run import Run
from lshdup.errors import ParameterError
from lshdup.sources.jsonlines import find_values
from lshdup.sources.rewriting import check_cutting, cut_texts, write_cut
from tests.conftest import require
from tests.documents import find

WORDS = st.text(st.sampled_from('ab é"\\\n漢😀'), max_size=12)


def listed(*paths, **params):
    return find(*paths, **params)[0]


def cut(documents, parts, target):
    """Cut {name: [(start, end)]}."""
    rows = [(documents.find(name.encode()), *each) for name in parts for each in parts[name]]
    columns = np.array(sorted(rows), np.int64).reshape(-1, 3).T
    paths, uncut = write_cut(Run.quiet(), documents, *columns, target)
    return paths, {documents.names[number].decode() for number in uncut}


@settings(deadline=None)
@given(st.lists(WORDS | st.none(), min_size=1, max_size=3), st.data())
def test_parts_are_cut_from_the_fields_they_are_in(texts, data):
    """As if the fields were one text, in which each byte knows its field."""
    fields = [None if text is None else text.encode() for text in texts]
    bytes_of, at = {}, 0
    for number, field in enumerate(fields):
        for byte in field or b"":
            bytes_of[at] = (number, byte)
            at += 1
        at += 0 if field is None else 2
    cuts = sorted(data.draw(st.sets(st.integers(0, at), max_size=6)))
    parts = list(zip(cuts[::2], cuts[1::2], strict=False))
    gone = {at for start, end in parts for at in range(start, end)}
    kept = [each for at, each in bytes_of.items() if at not in gone]
    left = [bytes(byte for of, byte in kept if of == number) for number in range(len(fields))]
    left = [None if field is None else each for field, each in zip(fields, left, strict=True)]
    assert cut_texts(fields, parts) == left


@given(st.dictionaries(st.sampled_from(["text", "a", "b", "a.b"]), WORDS | st.none(), min_size=1),
       st.booleans(), st.sampled_from([b"", b"\xef\xbb\xbf", b"  "]))  # fmt: skip
def test_values_are_where_they_are_found(values, ascii_only, before):
    line = before + json.dumps(values | {"n": [1, {"text": "x"}]}, ensure_ascii=ascii_only).encode()
    for name, value in values.items():
        (place,) = find_values(line, [name])
        assert (place is None) == (value is None)
        if place is not None:
            start, end, text = place
            assert (json.loads(line[start:end]), text.decode()) == (value, value)


def test_values_within_values_and_none():
    line = b'{"text": {"body": "x"}, "text": {"body": "one"}}'
    assert find_values(line, ["text.body"]) == [(41, 46, b"one")]
    assert find_values(b'{"text": "x", "n": NaN}', ["text"]) is None
    assert find_values(b"[1]", ["text"]) is None


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_json_lines_are_cut_and_nothing_else(tmp_path, ending):
    lines = [
        b'{"n": 1.0, "text" : "one two three",  "m":1e5}',
        b"",
        b"broken",
        '{"text": "é\\u00e9 漢 four"}'.encode(),
        b'{"text": "\\u00e9 five six", "text2": 12345678901234567890123}',
        b'{"n": NaN, "text": "seven eight"}',
        b'{"text": "the last one"}',
    ]
    data = b"\n".join(lines)
    source, target = tmp_path / f"r.jsonl{ending}", tmp_path / f"out.jsonl{ending}"
    source.write_bytes(gzip.compress(data) if ending else data)
    documents = listed(source)
    parts = {1: [(4, 8)], 4: [(0, 5), (9, 13)], 5: [(0, 3)], 6: [(0, 5)], 7: [(3, 8)]}
    named = {f"{source}:{row}": each for row, each in parts.items()}
    assert cut(documents, named, target) == ([target], {f"{source}:6"})
    written = gzip.decompress(target.read_bytes()) if ending else target.read_bytes()
    lines[0] = b'{"n": 1.0, "text" : "one three",  "m":1e5}'
    lines[3] = '{"text": "漢 "}'.encode()
    lines[4] = b'{"text": "five six", "text2": 12345678901234567890123}'
    lines[6] = b'{"text": "the one"}'
    assert written == b"\n".join(lines)


@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "dictionary", "string_view"])
def test_parquet_is_cut(tmp_path, kind):
    pa = require("parquet", "pyarrow")
    pq = require("parquet", "pyarrow.parquet")
    kinds = {"string": pa.string(), "large_string": pa.large_string(), "binary": pa.binary(),
             "dictionary": pa.dictionary(pa.int32(), pa.string()),
             "string_view": pa.string_view()}  # fmt: skip
    texts = [f"row {i} é same" if i % 5 else None for i in range(40)]
    try:
        column = pa.array(texts, pa.string()).cast(kinds[kind])
    except pa.ArrowNotImplementedError:  # The lowest version allowed makes no views.
        assert kind == "string_view"
        assert int(pa.__version__.partition(".")[0]) < 20
        pytest.skip("this pyarrow makes no views")
    table = pa.table({"n": range(40), "text": column, "x": ["y"] * 40})
    table = table.replace_schema_metadata({"made": "here"})
    source, target = tmp_path / "r.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source, row_group_size=7)
    documents = listed(source)
    parts = {f"{source}:{row + 1}": [(0, 4)] for row in (1, 2, 6, 7, 8, 39)}
    assert cut(documents, parts, target) == ([target], set())
    written = pq.read_table(target)
    assert written.schema.equals(table.schema, check_metadata=True)
    for row, text in enumerate(texts):
        texts[row] = text[4:] if f"{source}:{row + 1}" in parts else text
    found = written.column("text").cast(pa.string()).to_pylist()
    assert found == texts
    assert written.drop_columns("text") == table.drop_columns("text")


def test_rows_of_csv_are_not_cut(tmp_path):
    (tmp_path / "r.csv").write_text("text\none\n")
    with pytest.raises(ParameterError, match="not of CSV"):
        check_cutting(listed(tmp_path / "r.csv"))
