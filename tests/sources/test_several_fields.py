"""Texts that are made of several fields of a row: `--text-field title,body`."""

import csv
import json

import numpy as np
import pytest

from lshdup.base.forms import visible_text
from lshdup.base.params import ShingleParams
from lshdup.base.skipped import Reason
from lshdup.shingling.shingler import Shingler
from lshdup.sources import jsonlines
from lshdup.sources.records import RecordError, RecordFields
from lshdup.sources.text_batches import read_batch
from tests import reference
from tests.documents import find, write_rows

TEXT = "some words that are the same in each of these documents, but for a number"


def text_of(row, names):
    try:
        text = jsonlines.parse_record(json.dumps(row).encode(), RecordFields(names))[1]
        return visible_text(text).decode()
    except RecordError as error:
        return error.reason


@pytest.mark.parametrize(
    ("row", "names", "expected"),
    [
        ({"a": "x", "b": "y"}, "a,b", "x\n\ny"), ({"a": "x", "b": "y"}, "b,a", "y\n\nx"),
        ({"a": "x", "b": "y"}, "b", "y"), ({"a": "", "b": "y"}, "a,b", "\n\ny"),
        ({"a": None, "b": "y"}, "a,b", "y"), ({"a": None, "b": None}, "a,b", Reason.NULL_TEXT),
        ({"a": "x"}, "a,b", Reason.NO_TEXT), ({"a": "x", "b": 3}, "a,b", Reason.NOT_TEXT),
        ({"a": "x", "b": {"c": "z"}}, "a,b.c", "x\n\nz"),
        ({"a,b": "x", "c": "y"}, '"a,b",c', "x\n\ny"), ({"a,b": "x"}, '"a,b"', "x"),
        ({"a": "x", "b": "y", "c": "z"}, "a,b,c", "x\n\ny\n\nz"),
    ],
)  # fmt: skip
def test_a_blank_line_is_shown_between_fields(row, names, expected):
    assert text_of(row, names) == expected
    assert text_of({"more": [1, "\n"], **row}, names) == expected


def test_every_format_gives_the_same_texts(run, here):
    rows = [{"title": f"t {n}", "meta": {"body": f"{TEXT} {n}"}, "a,b": "more"} for n in range(4)]
    rows[2]["title"] = None
    options = ("--text-field", 'title,meta.body,"a,b"', "-t", "0.5", "--no-store", "-0")
    names = ("r.jsonl", "r.parquet")
    for name in names:
        write_rows(here / name, rows)
    one, other = (run("pairs", name, *options).out.replace(name.encode(), b"r") for name in names)
    assert one == other
    assert len(one.split(b"\0")) == 6 * 4 + 1


ROWS = [
    ["one two three", "four five six"], ["one two three four", "five six"],
    ["", "one two three four five six"], ["one two three four five six", None],
    ["Größe", "one two three four five six"],
    ["a", "e\u0301te\u0301 e\u0323\u0302 \ufdfa three four five"], ["a\0b", "\0 one two three"],
    ["<html><p>one two", "three <b>four</b> five &amp; six"],
]  # fmt: skip


@pytest.mark.parametrize("markup", ["auto", "visible"])
@pytest.mark.parametrize("form", ["jsonl", "csv", "latin-1.csv", "parquet"])
def test_no_shingle_has_words_of_two_fields(tmp_path, form, markup):
    path = tmp_path / f"r.{form}"
    rows = ROWS
    if form in ("jsonl", "parquet"):
        write_rows(path, [dict(zip("ab", row, strict=True)) for row in rows])
    else:
        rows = [row for row in rows if "\0" not in row[0]]
        if form == "latin-1.csv":  # in which the bytes of a border are letters
            rows = [row for row in rows if "\ufdfa" not in str(row[1])]
            rows.append(["aÿ\nÿ b", "ÿÿ\x01c d"])
        codec = form.removesuffix(".csv") if "-" in form else "utf-8"
        with path.open("w", encoding=codec, newline="") as file:
            csv.writer(file).writerows([["a", "b"], *rows])
    documents, _ = find(path, text_field="a,b")
    batch = read_batch(documents, np.arange(len(documents)))
    made = Shingler(ShingleParams(encoding="latin-1", markup=markup)).shingle(batch)
    for row, found in zip(rows, made.sets, strict=True):
        fields = [field or "" for field in row]
        if markup == "visible" and row[0].startswith("<html>"):
            fields = map(reference.visible_text, fields)
        assert set(found.tolist()) == set().union(*map(reference.shingle_list, fields)), row
