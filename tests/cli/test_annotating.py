"""`clusters --annotate`, by which all rows stay as they were, and `--keep-by`."""

import bz2
import csv
import datetime as dt
import gzip
import io
import json
import random
import shutil
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lshdup.cli.columns import ANNOTATIONS
from lshdup.collection.keep_by import order_by_field
from tests.conftest import RUN, many, part, require
from tests.documents import find, write_rows

pa = require("parquet", "pyarrow")
pq = require("parquet", "pyarrow.parquet")

GROUP, KEPT, SIMILARITY, SAME, SIZE = ANNOTATIONS
quick = settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

#: Texts, of which some are alike in pairs, in letters, or wholly.
BASE = [" ".join(f"w{n}x{i}" for i in range(40)) for n in range(5)]
TEXTS = [
    *BASE, *(text.upper() for text in BASE[:3]), *(f"{text} more" for text in BASE[:2]), "",
    BASE[0] + "!",
]  # fmt: skip


def listed(run, files, options=""):
    """{name: (group, kept, similarity, same, size)} as the listing of `clusters` has them."""
    rows = [json.loads(each) for each in run(f"clusters {files} --format jsonl -q {options}").lines]
    kept = {row["group"]: row["name"] for row in rows if row["role"] == "keep"}
    sizes = {each: sum(row["group"] == each for row in rows) for each in kept}
    return {
        row["name"]: (row["group"], kept[row["group"]], row["similarity"], row["same"],
                      sizes[row["group"]])
        for row in rows
    }  # fmt: skip


def told(row, name, groups, is_compared):
    """What a row is annotated with, by the listing."""
    if not is_compared:
        return (None, None, None, None, 1)
    return groups.get(name, (None, name, 1.0, None, 1))


def sums_up(rows):
    """Whether the sizes of the rows that are kept are as many as all rows."""
    kept = [row for row in rows if row[GROUP] is None or row[KEPT] == row["id"]]
    return sum(row[SIZE] for row in kept) == len(rows)


@settings(quick, max_examples=4)
@given(st.lists(st.sampled_from(TEXTS), min_size=20, max_size=40), st.booleans())
def test_rows_are_annotated_as_they_are_listed(run, here, texts, integers):
    """JSON Lines, CSV and Parquet say the same, and the same as the listing."""
    if not any(texts):
        return
    ids = [n if integers else f"r{n}" for n in range(len(texts))]
    rows = [{"id": id_, "text": text} for id_, text in zip(ids, texts, strict=True)]
    options = "--id-field id --no-store"
    for ending in ("jsonl", "csv", "parquet"):
        write_rows(here / f"a.{ending}", rows, row_group_size=7)
    groups = listed(run, "a.jsonl", options)
    for ending in ("jsonl", "csv", "parquet"):
        run(f"clusters a.{ending} {options} --annotate out.{ending} -q")
        if ending == "jsonl":
            found = [json.loads(line) for line in (here / "out.jsonl").read_text().splitlines()]
        elif ending == "csv":
            found = list(
                csv.DictReader(io.StringIO((here / "out.csv").read_bytes().decode(), newline=""))
            )
            for row in found:
                row[GROUP], row[SIZE] = (row[GROUP] and int(row[GROUP])) or None, int(row[SIZE])
                row[SIMILARITY] = float(row[SIMILARITY]) if row[SIMILARITY] else None
                row[SAME], row[KEPT] = row[SAME] or None, row[KEPT] or None
        else:
            found = pq.read_table(here / "out.parquet").to_pylist()
        for row, before in zip(found, rows, strict=True):
            new = tuple(row[name] for name in ANNOTATIONS)
            want = told(row, str(before["id"]), groups, bool(before["text"]))
            if ending != "csv" and integers and want[1] is not None:
                want = (want[0], int(want[1]), *want[2:])
            assert new == want
            assert row["text"] == before["text"]
        assert sums_up(found)


ODD = [
    b'{"text":"plain words of a text","n":1}',
    b'{"n":1.0,"text":"a","m":1e5} ',
    b'  {"text" : "spaced" , "big":12345678901234567890123456789}\t',
    b'{"text":"\\u00e9\\ud83d\\ude00 }","escaped":"\\u0041"}\r',
    b'{"text":"twice","k":1,"k":2}',
    b'{"x":{"y":[1,[2,{"z":null}]]},"text":"deep"}',
    '{"text":"é漢😀 {"}'.encode(),
]
BARE = [b"{}", b'{"x":1}', b'{"text":null}', b'{"text":""}', b" { } \r", b'{"duplicate_": 1}']
BROKEN = [b"broken", b"[1,2]", b"\xff\xfe", b'{"text":"x"', b"}"]


@quick
@given(
    st.lists(st.sampled_from([*ODD, *BARE, *BROKEN, b"", b"  ", b"\r"]), max_size=20),
    st.booleans(),
    st.sampled_from(["jsonl", "jsonl.gz", "jsonl.bz2"]),
)
def test_a_line_of_json_stays_but_for_what_is_added(run, here, lines, ended, ending):
    pack = {"jsonl": bytes, "jsonl.gz": gzip.compress, "jsonl.bz2": bz2.compress}[ending]
    lines = [*lines, ODD[0]]
    shutil.rmtree(here / "o", ignore_errors=True)
    (here / f"a.{ending}").write_bytes(pack(b"\n".join(lines) + b"\n" * ended))
    bad = {*BROKEN, *BARE[:2], BARE[4], BARE[5]} & {*lines}
    done = run(f"clusters a.{ending} --no-store --annotate o/", code=2 if bad else 0)
    out = (here / "o" / f"a.{ending.removesuffix('.bz2')}").read_bytes()
    out = gzip.decompress(out) if ending.endswith("gz") else out
    assert out.endswith(b"\n") == ended
    rows = 0
    for line, new in zip(lines, out.removesuffix(b"\n").split(b"\n"), strict=True):
        if line in BROKEN or not line.strip():
            assert new == line
            continue
        rows += 1
        values = json.loads(new)
        assert {name: values.pop(name) for name in ANNOTATIONS}[SIZE] >= 1
        assert values == json.loads(line)
        end = len(line) - line.rindex(b"}")
        assert new.startswith(line[:-end])
        assert new.endswith(line[-end:])
    assert f"{rows} row" in done.err
    broken = sum(line in BROKEN for line in lines)
    assert (f"; {broken} broken row" in done.err) == bool(broken)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_row_of_csv_stays_but_for_its_cells(run, here, delimiter, end):
    d = delimiter
    rows = [
        f"id{d}text", f"a{d}{BASE[0]}", f'b{d}"{BASE[0]}"', f'"c""{d}"{d}"{BASE[1]}\nline"', "",
        f"d{d}", f"{d}{BASE[1]} line", f"too{d}many{d}cells", 'quote"', f"e{d}{BASE[2]}",
    ]  # fmt: skip
    (here / "a.tsv").write_bytes(end.join(rows).encode())
    done = run("clusters a.tsv --id-field id --no-store --annotate b.tsv", code=2)
    assert "6 rows annotated, 2 of them not compared; 2 broken rows as before" in done.err
    new = (here / "b.tsv").read_bytes().decode()
    for row in (row for row in rows if row and "too" not in row and row != 'quote"'):
        assert row + d in new
    assert f'{end}too{d}many{d}cells{end}quote"{end}' in new
    assert f'line"{d}{d}' in new or f'line"{d}"c""' in new
    found = [row for row in csv.reader(io.StringIO(new, newline=""), delimiter=d) if len(row) == 7]
    assert found[0] == ["id", "text", *ANNOTATIONS]
    assert [row[0] for row in found[1:]] == ["a", "b", f'c"{d}', "d", "", "e"]
    assert found[1][2:] == ["1", "a", "1.0", "", "2"]
    assert found[2][2:] == ["1", "a", "1.0", "text", "2"] or found[2][5] == "bytes"
    assert found[3][3] == f'c"{d}'
    assert found[4][2:] == ["", "", "", "", "1"]
    assert not new.endswith(end)


def test_parquet_keeps_schema_metadata_and_values(run, here):
    n = 50
    columns = {
        "text": pa.array([None if i % 7 == 3 else BASE[i % 5] for i in range(n)]),
        "id": pa.array([2**63 + i for i in range(n)], pa.uint64()),
        "when": pa.array([i * 10**9 for i in range(n)], pa.timestamp("ns", "Europe/Berlin")),
        "words": pa.array([["a", None] if i % 3 else None for i in range(n)]),
        "kinds": pa.array([f"kind {i % 4}" for i in range(n)]).dictionary_encode(),
    }
    table = pa.table(columns).replace_schema_metadata({"made by": "a test", "k\xff": "ü"})
    pq.write_table(table, here / "a.parquet", row_group_size=20, compression="zstd")
    run("clusters a.parquet --id-field id --no-store --annotate b.parquet -q")
    new = pq.read_table(here / "b.parquet")
    assert new.select(table.column_names).equals(table)
    assert new.schema.metadata == table.schema.metadata
    assert new.schema.names == [*table.column_names, *ANNOTATIONS]
    assert new.schema.field(KEPT).type == pa.uint64()
    meta = pq.ParquetFile(here / "b.parquet").metadata
    assert [meta.row_group(i).num_rows for i in range(3)] == [20, 20, 10]
    assert meta.row_group(0).column(0).compression == "ZSTD"
    rows = new.to_pylist()
    assert sums_up(rows)
    assert [row[GROUP] is None for row in rows] == [row["text"] is None for row in rows]
    assert {row[KEPT] for row in rows if row["text"]} == {
        min(row["id"] for row in rows if row["text"] == text) for text in BASE
    }


# --- what is kept ---------------------------------------------------------------------------------

VALUES = {
    "numbers": [3, -2.5, 1e300, 0, -0.0, 10, 9, 2**40, -7, None],
    "dates": ["2024-02-29", "1999-12-31", "2024-10-01", "2024-09-30", None],
    "times": ["2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z", "2023-06-01T12:00:00Z"],
    "texts": ["10", "9", "n/a", "b", "", "Ä"],
}


@pytest.mark.parametrize(
    ("least", "kind", "end"), part(product([False, True], VALUES, ["jsonl", "csv", "parquet"]), 4)
)
def test_the_greatest_or_least_is_kept(run, here, end, kind, least):
    draw = random.Random(7)
    rows = [
        {"id": n, "text": BASE[n % 3], "by": draw.choice(VALUES[kind])} for n in range(30)
    ]  # fmt: skip
    if kind == "dates" and end == "parquet":
        for row in rows:
            row["by"] = row["by"] and dt.date.fromisoformat(row["by"])
    lacking = [{name: cell for name, cell in row.items() if cell is not None} for row in rows]
    write_rows(here / f"a.{end}", lacking if end == "jsonl" else rows, row_group_size=8)
    line = f"clusters a.{end} --id-field id --keep-by by{':least' * least} --no-store"
    done = run(f"{line} --emit keep")
    want = []
    for group in range(3):
        mine = [row for row in rows if row["id"] % 3 == group]
        there = [row for row in mine if row["by"] not in (None, "")] or mine

        def value(row):
            return float(row["by"]) if kind == "numbers" else str(row["by"]).encode()

        best = (min if least else max)(map(value, there))
        want.append(min(row["id"] for row in there if value(row) == best))
    assert sorted(map(int, done.lines)) == sorted(want)
    missing = sum(row["by"] in (None, "") for row in rows)
    assert (f"; {missing} documents without it kept last" in done.err) == bool(missing)
    how = "as numbers" if kind == "numbers" else "as text, as not all values are numbers"
    assert f"'by' is compared {how}" in done.err
    assert f"kept: the {'least' if least else 'greatest'} 'by', then the first" in done.err


@pytest.mark.parametrize("option", ["--keep-by by", "--across field:by"])
@pytest.mark.parametrize("end", ["jsonl", "csv", "parquet"])
def test_a_file_that_became_another_has_no_values(run, here, end, option):
    """By --keep-by its rows stay, by --across the run ends; both say why."""
    rows = [{"id": n, "text": BASE[n % 3], "by": n} for n in range(60)]
    for name, some in ("a", rows[:30]), ("b", rows[30:]):
        write_rows(here / f"{name}.{end}", some, row_group_size=8)
    run(f"clusters a.{end} b.{end} --text-field text --id-field id")
    if end == "csv":
        head, *lines = (here / "b.csv").read_bytes().splitlines(keepends=True)
        (here / "b.csv").write_bytes(head + b"".join(x.replace(b",", b" ", 1) for x in lines))
    else:
        write_rows(here / f"b.{end}", rows[30:39], row_group_size=8)
    done = run(f"clusters {option} --emit keep", code=2)
    assert "changed" in done.err
    assert "defect" not in done.err
    kept = [*range(27, 60)] if "keep-by" in option else []
    assert [*map(int, done.lines)] == kept  # What was not compared stays.


DIGITS = st.text("0123456789", min_size=1, max_size=25)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), st.integers(0, 2**60), DIGITS),
    st.builds("{}.{}e{}".format, st.integers(-3, 3), DIGITS, st.integers(-400, 400)),
    st.sampled_from(
        ["0", "-0", "0.0", "1", "1.0", "1.00", "10e-1", "NaN", "Infinity", "-Infinity"]
    ),
)
#: Numbers that differ far behind the point only, and as many characters as a number may have.
CLOSE = st.one_of(
    st.builds(
        "{}{}".format,
        st.sampled_from(["", "-3.3333333", "3.3333333"]),
        st.integers(2**53, 2**53 + 2),
    ),
    st.sampled_from([f'"{digit:>0{size}}"' for digit in "123" for size in (1, 63, 64, 65)]),
)
SPECIAL = ("nan", "inf", "infinity")
NONE = st.sampled_from(["null", '""', "[1]", '{"x": 1}', "", '"NAN"'])
OTHER = st.sampled_from([
    "true", "false", '"2024-02-29"', '"2024-10-01"', '"n/a"', '"1_0"', '"."', '"é"', '"1e"',
    f'"{"9" * 65}"', f'"{"a" * 64}b"', f'"{"a" * 64}c"', '"0x1"', '"1,5"', '"--1"',
])  # fmt: skip
TEXTS_OF_NUMBERS = st.sampled_from(['"10"', '"+9"', '" 9.5 "', '".5"', '"5."', '"INF"'])


@settings(deadline=None, max_examples=many(150))
@given(
    st.one_of(
        st.lists(st.one_of(NUMBERS, NUMBERS, TEXTS_OF_NUMBERS, NONE), max_size=12),
        st.lists(CLOSE, min_size=4, max_size=9),
        st.lists(st.one_of(NUMBERS, OTHER, OTHER, NONE), max_size=12),
    ),
    st.booleans(),
)
def test_values_are_ordered_as_python_orders_them(tmp_path_factory, written, least):
    """As exact fractions if all are numbers, else as bytes; what is none last; equal ones stay."""
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text(
        "".join('{"text": "x"%s}\n' % (each and f', "by": {each}') for each in ["1", *written])
    )
    documents, _ = find(path)
    texts = [
        None if each[:1] in ("", "[", "{", "n") or each == '""' else json.loads(each)
        if each.startswith('"') else each for each in ["1", *written]
    ]  # fmt: skip

    def number(text):
        try:
            if text.strip(" +-").lower() in SPECIAL:
                return float(text)
            return Fraction(text) if "_" not in text else None
        except (ValueError, ZeroDivisionError):
            return None

    numbers = [number(text) for text in texts if text is not None]
    is_long = any(len(text) > 64 for text in texts if text is not None)
    values = [text and text.replace("NaN", "nan").replace("Infinity", "inf") for text in texts]
    values = [text and text.encode()[:64] for text in values]
    if None not in numbers and not is_long:
        found = iter(numbers)
        values = [None if text is None or (x := next(found)) != x else x for text in texts]
    order = sorted(
        (n for n, each in enumerate(values) if each is not None),
        key=values.__getitem__, reverse=not least,
    )  # fmt: skip
    order += [n for n, each in enumerate(values) if each is None]
    keys = order_by_field(RUN, documents, "by", least)
    assert RUN.arrays.order(len(documents), keys).tolist() == order


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("--annotate o.parquet", "has a field 'duplicate_same' already"),
        ("--keep-by scor", "no column 'scor', but text, duplicate_same, score, many; did you mean"),
        ("--keep-by many", "its column 'many' is of type"),
    ],
)
def test_what_a_table_has_or_has_not_is_refused(refused, here, option, why):
    columns = {"text": ["a b"], "duplicate_same": ["x"], "score": [1], "many": [[1]]}
    pq.write_table(pa.table(columns), here / "a.parquet")
    assert why in refused(f"clusters a.parquet {option} --no-store")
