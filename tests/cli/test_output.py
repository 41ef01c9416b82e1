"""Every listing × every format × terminal or pipe, as it was looked at."""

import csv
import io
import json
import os
import re
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from lshdup.base.atomic import check_writable
from lshdup.base.version import __version__
from lshdup.cli.columns import LISTINGS, LISTS, OPTIONAL, SHARE, columns_of
from lshdup.cli.layouts import table
from lshdup.cli.output import FORMATS, Target, cut_pieces
from tests import golden
from tests.cli.test_streams import in_bash
from tests.conftest import part, require, write_files
from tests.running import run_many

#: Each listing of docs/reference/columns.md, and a command line that prints it. A new listing is
#: one more line, and a golden file.
COMMANDS = {
    "pairs": "pairs d -t 0.5",
    "pairs-against": "pairs d/one.txt d/x --against d -t 0.5 --no-store",
    "pairs-containment": "pairs d --measure containment -t 0.5",
    "pairs-containment-against": "pairs d/one.txt d/x --against d --measure containment -t 0.5"
    " --no-store",
    "pairs-unmatched": "pairs d --against d/one.txt -t 0.9 --no-store --unmatched",
    "pairs-histogram": "pairs d -t 0.5 --histogram",
    "clusters": "clusters d -t 0.5",
    "clusters-against": "clusters d --against d/one.txt -t 0.5 --no-store",
    "clusters-names": "clusters d -t 0.5 --emit drop",
    "folders": "folders e --no-store --containment 0.6",
    "passages": "passages d --least 4 --no-store",
    "passages-pairs": "passages d --least 4 --emit pairs --no-store",
    "passages-spans": "passages d --least 4 --emit spans --no-store",
    "query": "query one.txt 'two words.txt' -t 0.5",
    "query-containment": "query one.txt 'two words.txt' --measure containment -t 0.5",
    "query-passages": "query one.txt 'two words.txt' --by passages --least 4",
    "query-top": "query one.txt 'two words.txt' -t 0.5 --top 1",
    "shingle": "shingle --show 'd/two words.txt'",
    "shingle-removed": "shingle --show 'd/two words.txt' --template d/one.txt",
    "show": "show one.txt 'two words.txt'",
    "show-group": "show one.txt -t 0.5",
    "show-folders": "show e/one 'e/t\nwo' -t 0.5",
    "show-shared": "show one.txt 'two words.txt' --shared",
    "show-shingles": "show one.txt 'two words.txt' --shingles",
    "show-shingles-removed": "show one.txt 'two words.txt' --shingles --template d/x"
    " --ignore-common 2",
    "accuracy": "accuracy d --perms 50 --runs 2",
    "accuracy-bands": "accuracy d --perms 60 --bands 10,20 -t 0.5",
    "accuracy-found": "accuracy d --found -t 0.5 --perms 64",
    "timing": "timing d --perms 50 --runs 1",
    "curve": "curve --bands 20 --rows 5",
    "curve-all": "curve --all --perms 8 -t 0.5",
}

#: Of those, what is another listing with an option.
OF = {
    "pairs-containment-against": "pairs-containment", "clusters-against": "clusters",
    "pairs-histogram-counts": "pairs-histogram", "query-top": "query", "shingle-removed": "shingle",
    "show-shingles-removed": "show-shingles",
}  # fmt: skip

#: Those whose JSON is not an array of rows, and those whose numbers are measured.
OBJECTS, MEASURED = {"show", "show-shared"}, {"timing"}

TEXT = "the quick brown fox jumps over the lazy dog and runs away from here"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store of few documents, some with odd names."""
    here = tmp_path_factory.mktemp("listings")
    names = {b"one.txt": TEXT, b"two words.txt": TEXT.replace("lazy", "sleepy"), b"x": "else"}
    write_files(here / "d", names | {b'=\xff\x1b[31m,".txt': f"{TEXT} again"})
    write_files(here / "e", {"one/0.txt": TEXT, "one/1.txt": TEXT[::-1], "t\nwo/0.txt": TEXT})
    ((code, _, err),) = run_many([("pairs d -t 0.5", None)], here)
    assert code == 0, err
    return here


def steady(listing, printed):
    """Without what a clock said."""
    return re.sub(rb"<?\d+\.\d+(e-\d+)?", b"#", printed) if listing in MEASURED else printed


@pytest.mark.parametrize("listing", part(COMMANDS, 3))
def test_every_format_in_a_pipe_and_on_a_terminal(listing, folder):
    """What is printed, byte for byte, as it was looked at (control characters as ^[ by `cat -v`).
    That its JSON has the columns and types that are documented, test_schemas.py holds.
    """
    texts = [kind for kind in FORMATS if kind != "parquet"]
    formats = {None: ("", *texts), 80: ("", *texts) if listing == "pairs" else ("", "table")}
    ways = [
        (["--format", kind] if kind else [], columns)
        for columns, kinds in formats.items()
        for kind in kinds
    ]
    ways += [(["-0"], None), (["-0"], 80)]
    results = run_many(
        [([COMMANDS[listing], "-q", *options], columns) for options, columns in ways], folder
    )
    parts, outs = [], {}
    for (options, columns), (code, out, err) in zip(ways, results, strict=True):
        assert code == 0, err
        where = "pipe" if columns is None else "terminal"
        printed = steady(listing, out)
        if listing in MEASURED and "table" in (options[-1:] or ["table" if columns else ""]):
            # The width of a column depends on what is in it.
            printed = re.sub(rb"[ \xe2\x94\x80]+", b" ", printed)
        parts.append(f"=== {' '.join(options) or 'no options'}, {where}\n".encode() + printed)
        if columns and "-0" not in options and ("table" in options or not options):
            lines = re.sub(rb"\x1b\[[\d;]*m", b"", out).decode().splitlines()
            assert all(map(str.isprintable, lines))
            is_table = "table" in options and listing not in OBJECTS
            assert not is_table or max(map(cell_len, lines)) <= columns
        outs[options[-1] if options else "", where] = out
    golden.check(f"output/{listing}.txt", b"".join(parts))
    whole, lines, table = (outs[each, "pipe"] for each in ("json", "jsonl", "csv"))
    assert (whole + lines).isascii()
    rows = [json.loads(line) for line in lines.splitlines()]
    of = OF.get(listing, listing)
    assert rows
    if listing not in OBJECTS | MEASURED:
        assert json.loads(whole) == rows
    # CSV has no column `query` where one document is asked for: here are two.
    if not of.startswith("query"):
        assert table.decode("utf-8", "surrogateescape").splitlines()[0].split(",") == list(rows[0])


@pytest.mark.parametrize("listing", part(COMMANDS, 3))
def test_parquet_has_the_rows_of_jsonl_and_the_documented_types(listing, folder):
    """An independent reader finds each cell; a byte that is not UTF-8 is an escape of JSON."""
    pq = require("parquet", "pyarrow.parquet")
    ways = [
        [COMMANDS[listing], *options]
        for options in (["-q", "--format", "jsonl"], ["-o", "o.parquet"])
    ]
    (code, lines, err), (_, printed, said) = run_many([(way, None) for way in ways], folder)
    assert (code, printed) == (0, b""), err
    rows, table = list(map(json.loads, lines.splitlines())), pq.read_table(folder / "o.parquet")
    of = OF.get(listing, listing)
    types = LISTINGS[of] | OPTIONAL.get(of, {})
    for field in table.schema:
        column = types.get(field.name, SHARE)
        names = {str: "string", int: "int64", float: "double", bool: "bool"}
        assert (str(field.type), field.nullable) == (names[column.cell], column.nullable), field
    if listing not in MEASURED:
        found = table.to_pylist()
        assert [list(row.items()) for row in found] == [
            [(name, as_utf8(cell)) for name, cell in row.items()] for row in rows
        ]
        assert (b"not UTF-8: those of o.parquet hold" in said) == (rb"\udc" in lines)
    made = json.loads(table.schema.metadata[b"lshdup"])
    assert (made["listing"], made["command"]) == (of, of.partition("-")[0])
    assert made["lshdup"] == __version__
    named = re.search(r" -t (\S+)", COMMANDS[listing])
    assert named is None or float(named[1]) in made["parameters"].values()


def as_utf8(cell):
    escape = partial(re.sub, "[\udc80-\udcff]", lambda c: f"\\u{ord(c[0]):x}")
    return escape(cell) if isinstance(cell, str) else cell


def test_every_listing_is_here():
    assert set(COMMANDS) - set(OF) == set(LISTINGS)
    assert {path.stem for path in (golden.GOLDEN / "output").iterdir()} == set(COMMANDS)
    assert set(OPTIONAL) - set(LISTS) <= set(OF.values())


#: Every byte that a file name can hold, and those that formats treat specially more often.
_NAMES = st.lists(
    st.binary(min_size=1, max_size=6).map(lambda name: name.replace(b"\0", b"\r"))
    | st.text('\r\n\t",;= |\\\x1c\x85\u2028é', min_size=1, max_size=6).map(str.encode),
    min_size=1,
    max_size=4,
)


@given(_NAMES, _NAMES)
@example([b"d/a\rd_victim.txt"], [b"x"])
def test_every_name_survives_every_format(tmp_path_factory, left, right):
    """Independent readers find the same rows; where they could not, tsv says so."""
    rows = [(a, b, 0.5, None) for a, b in zip(left, right, strict=False)]
    path = tmp_path_factory.mktemp("out") / "o"
    columns = ["a", "b", "similarity", "same"]

    def written(style, **options):
        is_clear = Target(style, path=path, **options).write_pieces(columns, cut_pieces(rows))
        return is_clear, path.read_bytes()

    text = os.fsdecode(written("csv")[1])
    read = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert read == [columns, *([os.fsdecode(a), os.fsdecode(b), "0.5", ""] for a, b, *_ in rows)]
    every = {"json": json.loads, "jsonl": lambda data: map(json.loads, data.splitlines())}
    for style, load in every.items():
        read = [tuple(row.values()) for row in load(written(style)[1])]
        assert [(os.fsencode(a), os.fsencode(b), *rest) for a, b, *rest in read] == rows
    nul = written("tsv", nul=True)[1].split(b"\0")
    assert nul == [*(cell for a, b, *_ in rows for cell in (a, b, b"0.5", b"")), b""]
    is_clear, data = written("tsv")
    names = [name for row in rows for name in row[:2]]
    assert is_clear == (not any(c in name for name in names for c in (b"\t", b"\n", b"\r")))
    if is_clear:
        lines = [line.split(b"\t") for line in data.split(b"\n")[:-1]]
        assert lines == [[a, b, b"0.5", b""] for a, b, *_ in rows]
    pq, columns = require("parquet", "pyarrow.parquet"), columns_of("pairs")
    is_clear, data = written("parquet")
    read = pq.read_table(io.BytesIO(data)).to_pylist()
    wanted = [(as_utf8(os.fsdecode(a)), as_utf8(os.fsdecode(b)), *rest) for a, b, *rest in rows]
    assert [tuple(row.values()) for row in read] == wanted
    assert is_clear == all(os.fsencode(name) in names for row in wanted for name in row[:2])
    lines = written("table")[1].split(b"\n")
    assert len(lines) == 2 + len(rows) + 1
    assert not any(each in line for line in lines for each in (b"\r", b"\t", b"\x1c"))


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """Thirty equal documents: 435 pairs."""
    here = tmp_path_factory.mktemp("copies")
    write_files(here / "d", {f"{i:02}.txt": TEXT for i in range(30)})
    ((code, _, err),) = run_many([("pairs d", None)], here)
    assert code == 0, err
    return here


def test_a_table_fills_ten_screens_and_says_how_many_rows_are_left(copies):
    pairs, table = ["pairs", "-q"], ["--format", "table"]
    ways = [
        ([], 80, 400, 35), (table, 80, 400, 35),  # a terminal of 40 lines
        (["--max-rows", "3"], 80, 3, 432), (["--max-rows", "0"], 80, 435, 0),
        (["--max-rows", "435"], 80, 435, 0), (["--max-rows", "434"], 80, 434, 1),
        (table, None, 435, 0), ([*table, "--max-rows", "3"], None, 3, 432),
        (["--format", "tsv"], 80, 435, 0), ([], None, 435, 0), (["-0"], None, 435, 0),
    ]  # fmt: skip
    commands = [([*pairs, *options], columns) for options, columns, _, _ in ways]
    for (options, _, shown, left), (code, out, err) in zip(
        ways, run_many(commands, copies), strict=True
    ):
        assert code == 0, err
        assert out.count(b"d/") == 2 * shown, options
        last = out.splitlines()[-1].decode()
        if left:
            assert last == f"… {left} more; use -o FILE, or --format tsv", options
        else:
            assert "more" not in last


def test_listings_for_eyes(corpus, tmp_path):
    """Tables and groups of real names, with colours and without, whole and cut."""
    prepare = run_many([("index sample_corpus -t 0.6", None)], tmp_path)
    assert prepare[0][0] == 0
    commands = {
        "pairs": "pairs -t 0.6 --max-rows 12",
        "clusters": "clusters -t 0.6 --max-rows 40",
        "columns": "clusters -t 0.6 --max-rows 5 --header",
        "group": "show BSD-2-Clause.txt -t 0.6",
        "passages": "passages sample_corpus/licences --store p --least 100 --max-rows 20",
    }
    ways = [("--color", 50), ("--color", 80), ("--no-color", 80), ("--color", 160)]
    for (name, command), (color, columns) in product(commands.items(), ways):
        ((code, out, err),) = run_many([([command, "-q", color], columns)], tmp_path)
        assert code == 0, err
        golden.check(f"eyes/{name}-{columns}{color.removeprefix('-')}.txt", out)
        lines = re.sub(rb"\x1b\[[\d;]*m", b"", out).decode().splitlines()
        assert all(len(line) <= columns for line in lines)
        assert (b"\x1b" in out) == (color == "--color")


def test_a_table_begins_before_its_last_row_is_made(tmp_path):
    made = []

    def pieces():
        for i in range(100):
            made.append(i)
            yield [b"a"] * 100, [b"b"] * 100, [0.5] * 100

    target = Target("table", path=tmp_path / "t", max_rows=50)
    assert target.write_pieces(("a", "b", "similarity"), pieces(), 10_000)
    assert made == [0]
    written = (tmp_path / "t").read_text()
    assert written.endswith("0.5000\n… 9,950 more; use -o FILE, or --format tsv\n")
    rows = (made.append(-1) or ("a", "b") for _ in range(10_000))
    lines = table(("x", "y"), rows, [False, False], 80, color=False, header=True)
    next(lines)
    assert made.count(-1) == 1000


def test_columns_of_a_long_table_grow():
    rows = [("a", "1"), *[("b", "2")] * 1999, ("longer", "30")]
    lines = list(table(("n", "x"), rows, [False, True], None, color=False, header=True))
    assert lines[:3] == ["n   x", "─────", "a   1"]
    assert lines[2001:] == ["b   2", "longer   30"]


def test_what_can_be_written_is_found_by_trying(tmp_path, monkeypatch):
    """A normal user may not write to /dev, but to what is there."""
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    for name in ("/dev/null", "pipe", "new", "/dev/fd/1"):
        check_writable(Path(name))
    check_writable(tmp_path, folder=True)
    assert os.listdir() == ["pipe"]


def test_an_answer_goes_to_pipes_that_have_no_name_of_their_own(folder):
    """As a shell makes them for `-o >(wc -l)`."""
    expected = run_many([("pairs -q -t 0.5", None)], folder)[0][1]
    for name in ("/dev/fd/3 3>&1 >&2", "/proc/self/fd/3 3>&1 >&2", "/dev/stdout"):
        done = in_bash(f"lshdup pairs -q -t 0.5 -o {name} | cat", folder)
        assert (done.code, done.err, done.out) == (0, "", expected)
