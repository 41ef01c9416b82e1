"""CSV and TSV files: rows are what Python's csv module reads, and a broken row costs no other."""

import csv
import io
import os
import random

import pytest

from lshdup.base.memory import Buffer
from lshdup.base.skipped import Reason
from lshdup.sources import delimited, lines
from lshdup.sources.records import RecordFields, split_fields
from tests.conftest import WHOLE

LONG = 1 << 20


def rows_of(tmp_path, data, text="text", id_="", longest=LONG):
    """What lshdup makes of a file: (number, text or reason) of each row, and ids."""
    path = tmp_path / "rows.csv"
    path.write_bytes(data)
    fields = RecordFields(text, id_)
    with path.open("rb") as file:
        number = file.fileno()
        reader = delimited.DelimitedFile(number, fields, longest)
        listed = reader.list_records()
        made = {each.number: each.reason for each in listed.skipped}
        if len(listed.starts):
            spans = listed.starts, listed.lengths
            data, starts, sizes, failed = reader.texts(spans, Buffer())
            for at, row in enumerate(listed.numbers.tolist()):
                text = data[starts[at] : starts[at] + sizes[at]].tobytes()
                made[row] = failed[at].reason if at in failed else text
    return [made[row] for row in sorted(made)], list(listed.names or ())


def written(rows, **dialect):
    out = io.StringIO(newline="")
    csv.writer(out, **dialect).writerows(rows)
    return out.getvalue().encode()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_rows_are_those_of_the_csv_module(tmp_path, delimiter, ends, monkeypatch):
    monkeypatch.setattr(lines, "_SCAN_BYTES", 64)
    monkeypatch.setattr(lines, "_READ_BYTES", 64)
    rng = random.Random(1)
    cells = ["a", '"', ",", ";", "\t", "|", "\n", "\r\n", " ", "ö", "漢", '""', "\n\n"]
    texts = iter(lambda: "".join(rng.choices(cells, k=rng.randrange(9))), None)
    for seed in range(60):
        rows = [[next(texts) for _ in range(3)] for _ in range(rng.randrange(9))]
        header = ["id", "text", "more" + "\n" * (seed % 2)]
        quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        data = written([header, *rows], delimiter=delimiter, lineterminator=ends, quoting=quoting)
        data = data if seed % 3 else data.removesuffix(ends.encode())
        made, _ = rows_of(tmp_path, b"\xef\xbb\xbf" * (seed % 2) + data)
        assert made == [row[1].encode() for row in rows], data


def test_what_is_quoted_oddly_is_read_as_by_the_csv_module(tmp_path):
    rng, met = random.Random(2), 0
    while met < (300 if WHOLE else 25):
        body = "".join(rng.choices(['"', '"', ",", "a", "b", "\n"], k=rng.randrange(30)))
        body += "\nlast,row\n"
        rows = [row for row in csv.reader(io.StringIO(body, newline="")) if row]
        if rows[-1] == ["last", "row"] and all(len(row) == 2 for row in rows):
            made, _ = rows_of(tmp_path, b"id,text\n" + body.encode())
            assert made == [row[1].encode() for row in rows], body
            met += any("\n" in row[1] for row in rows)


BAD = Reason.BROKEN_ROW
BROKEN = {
    b'2,"never closed': [BAD], b"2,two,more": [BAD], b"2": [BAD], b"2,t\0wo": [BAD],
    b"2,t\rwo": [BAD], b"2," + b"x" * 200: [Reason.TOO_LARGE], b"": [], b"\r": [],
    b'2,"two\n\n2"': [b"two\n\n2"], b'2,5" pipe': [b'5" pipe'], b'2,"a"b"c"': [b'ab"c"'],
    b'2,"' + b"x\n" * 200 + b'"': [BAD] * 201,  # too long for a row: lines are rows of one cell
}  # fmt: skip


@pytest.mark.parametrize("row", BROKEN)
def test_a_broken_row_costs_no_other(tmp_path, row):
    data = b"id,text\n1,one\n" + row + b"\n3,three\n4,four\n"
    made, _ = rows_of(tmp_path, data, longest=100)
    assert made == [b"one", *BROKEN[row], b"three", b"four"]


def test_ids_are_read_with_the_rows(tmp_path):
    data = b'text,id\n"a,\nb",x\nc,\nd\ne,"y\n\nz"\n'
    made, names = rows_of(tmp_path, data, id_="id")
    assert names == [b"x", b"y\n\nz"]
    assert made == [b"a,\nb", Reason.NO_ID, Reason.BROKEN_ROW, b"e"]


def test_names_of_columns(tmp_path):
    mark = b"\xef\xbb\xbf"  # is no part of a name; nor can a row with commas have the last one
    for head in (mark + b"text,id\na,1", mark + b'"text",id\na,1', b'id;text;"two\rl"\n1;a;b'):
        assert rows_of(tmp_path, head + b"\n", id_="id") == ([b"a"], [b"1"])
    assert rows_of(tmp_path, b"")[0] == []
    assert split_fields('a.b,"c,d"') == ("a.b", "c,d")
    assert split_fields("") == ("",)


def test_quotes_that_never_close_are_read_in_linear_time(tmp_path, monkeypatch):
    n = 2000
    for row in (b'1,"a', b'a","b', b'1,"a""', b'"', b'1,""",', b'"",""","'):
        data = b"id,text\n" + (row + b"\n") * n
        read, pread = [0], os.pread

        def counted(file, size, place, read=read, pread=pread):
            read[0] += size
            return pread(file, size, place)

        monkeypatch.setattr(os, "pread", counted)
        made, _ = rows_of(tmp_path, data)
        monkeypatch.setattr(os, "pread", pread)
        assert read[0] < 6 * len(data) + (1 << 16), row
        assert len(made) <= n
