"""Texts that are made of several fields of a row: `--text-field title,body`."""

import json
from pathlib import Path

import pytest

from lshdup.documents.readers import jsonlines
from lshdup.documents.records import RecordError, RecordFields
from lshdup.skipped import Reason
from tests.conftest import require

TEXT = "some words that are the same in each of these documents, but for a number"


def text_of(row, names):
    try:
        return jsonlines.parse_record(json.dumps(row).encode(), RecordFields(names))[1].decode()
    except RecordError as error:
        return error.reason


@pytest.mark.parametrize(
    ("row", "names", "expected"),
    [
        ({"a": "x", "b": "y"}, "a,b", "x\n\ny"),
        ({"a": "x", "b": "y"}, "b,a", "y\n\nx"),
        ({"a": "x", "b": "y"}, "b", "y"),
        ({"a": "", "b": "y"}, "a,b", "\n\ny"),
        ({"a": None, "b": "y"}, "a,b", "y"),
        ({"a": None, "b": None}, "a,b", Reason.NO_TEXT),
        ({"a": "x"}, "a,b", Reason.NO_TEXT),
        ({"a": "x", "b": 3}, "a,b", Reason.NOT_TEXT),
        ({"a": "x", "b": {"c": "z"}}, "a,b.c", "x\n\nz"),
        ({"a,b": "x", "c": "y"}, '"a,b",c', "x\n\ny"),
        ({"a,b": "x"}, '"a,b"', "x"),
        ({"a": "x", "b": "y", "c": "z"}, "a,b,c", "x\n\ny\n\nz"),
    ],
)
def test_fields_are_joined_by_a_blank_line(row, names, expected):
    assert text_of(row, names) == expected
    assert text_of({"more": [1, "\n"], **row}, names) == expected


def test_every_format_gives_the_same_texts(run, tmp_path, monkeypatch):
    pa, pq = require("parquet", "pyarrow"), require("parquet", "pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    rows = [
        {"title": f"title {n}", "meta": {"body": f"{TEXT} {n}"}, "a,b": f"more, {n}"}
        for n in range(4)
    ]
    rows[2]["title"] = None
    Path("r.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), "r.parquet")
    options = ("--text-field", 'title,meta.body,"a,b"', "-t", "0.5", "--no-store", "-0")
    names, answers = ("r.jsonl", "r.parquet"), []
    for name in names:
        found = run("pairs", name, *options)
        answers.append(found.out.replace(name.encode(), b"r"))
        assert len(found.out.split(b"\0")) == 6 * 4 + 1
    assert answers[0] == answers[1]
    nothing = pa.table({"a": pa.array([None, "x"], pa.string()), "b": pa.array([None, "y"])})
    pq.write_table(nothing, "null.parquet")
    said = run("pairs", "null.parquet", "--text-field", "a,b", "-v", "--no-store", code=2).err
    assert "null.parquet:1: row without text ('a,b' is null)" in said
    wrong = run("pairs", "r.parquet", "--text-field", "title,bdy", "--no-store", code=2).err
    assert "no column 'bdy'" in wrong


def test_a_written_file_keeps_all_fields(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"title": "t", "body": f"{TEXT} {n // 2}"}) + "\n" for n in range(4)]
    Path("r.jsonl").write_text("".join(lines))
    run("clusters", "r.jsonl", "--text-field", "title,body", "-t", "1", "--write", "out.jsonl")
    assert Path("out.jsonl").read_text() == lines[0] + lines[2]


def test_other_fields_are_read_again(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"title": "t", "body": f"{TEXT} {n}"} for n in range(2)]
    Path("r.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert run("pairs", "r.jsonl", "--text-field", "title", "-t", "1").rows
    assert not run("pairs", "r.jsonl", "--text-field", "title,body", "-t", "1").rows
    assert run("pairs", "r.jsonl", "--text-field", "title,body", "-t", "0.5").rows
