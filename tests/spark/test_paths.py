"""Outputs, settings, and what workers read and write; no Java needed."""

import gzip
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import click
import pytest

from lshdup.cli.commands import on_spark
from lshdup.cli.main import lshdup
from lshdup.documents.readers.lines import count_lines, lines_between
from lshdup.documents.records import Kind, RecordFields
from lshdup.errors import ParameterError
from lshdup.params import BandParams, PairParams, ShingleParams, SketchParams
from lshdup.spark.files import paths
from tests.conftest import require


def typed(*arguments):
    """The options of `pairs` as parsed from a command line."""
    command = lshdup.get_command(click.Context(lshdup), "pairs")
    with command.make_context(
        "pairs", ["docs", *arguments], help_option_names=["-h", "--help"]
    ) as context:  # commands remember these
        return context.params


@pytest.mark.parametrize(
    "name",
    [
        "hdfs:///x.parquet",
        "dbfs:/x.jsonl",
        "s3a://b/x.parquet",
        "file:///x.jsonl",
        "hdfs://h:9/x.parquet",
        "s3a://b//x.jsonl",
        "x.jsonl",
    ],
)
def test_output_stays_what_was_typed(name):
    options = typed("--engine", "spark", "-o", name)
    assert on_spark.Destination(options)._name == name
    assert on_spark.Destination(options).is_written
    is_uri = ":/" in name
    for home_local in (True, False):
        expected = name if is_uri or not home_local else os.path.abspath(name)
        assert paths.spark_name(options["output"], home_local=home_local) == expected


def test_output_to_a_uri_that_spark_does_not_write():
    with pytest.raises(
        ParameterError, match=re.escape("-o hdfs:///x.tsv: Spark writes .parquet and .jsonl")
    ):
        on_spark.Destination(typed("--engine", "spark", "-o", "hdfs:///x.tsv"))


def test_settings_of_spark_in_a_variable(monkeypatch):
    monkeypatch.setenv(
        "LSHDUP_SPARK_CONF", "spark.executor.memory=4g\nspark.driver.extraJavaOptions=-Xa -Xb\n\n"
    )
    settings = on_spark.settings_of(typed()["spark_conf"])
    assert settings == {"spark.executor.memory": "4g", "spark.driver.extraJavaOptions": "-Xa -Xb"}
    assert on_spark.settings_of(
        typed("--spark-conf", "a=b c", "--spark-conf", "d=e")["spark_conf"]
    ) == {"a": "b c", "d": "e"}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"a",
        b"a\n",
        b"\n\nab\n" + b"c" * 9 + b"\nlonger than nine\n\nlast one is longer",
        b"x\r\n" * 5,
    ],
)
@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_lines_of_pieces(tmp_path, text, step):
    """However a file is cut: every line once, where it begins, too long ones with their lengths."""
    (tmp_path / "f").write_bytes(text)
    expected, at = [], 0
    for line in text.splitlines(keepends=True) if b"\r" not in text else [b"x\r\n"] * 5:
        bare = line.removesuffix(b"\n")
        expected.append((at, bare if len(bare) <= 9 else None, len(bare)))
        at += len(line)
    found = []
    with (tmp_path / "f").open("rb") as file:
        for start in range(0, len(text), step):
            lines = lines_between(file.fileno(), start, start + step, 9)
            found += [(at, line if size <= 9 else None, size) for at, line, size in lines]
        for number, (at, _, _) in enumerate(found):
            assert count_lines(file.fileno(), at) == number
    assert found == expected


def batch_of(schema, *rows):
    pa = require("spark", "pyarrow")
    kinds = {"binary": pa.binary(), "int": pa.int32(), "bigint": pa.int64()}
    names, types = zip(*(field.split() for field in schema.split(", ")), strict=True)
    columns = zip(zip(*rows, strict=True), types, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kinds[kind]) for column, kind in columns], names=names
    )


def documents_of(batches):
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def read(tmp_path, *rows, max_bytes=50):
    from lshdup.spark.workers import documents as worker

    batches = iter([batch_of(worker.PIECES, *rows)])
    fields = RecordFields("body", "key")
    return documents_of(worker.read_pieces(fields, os.fsencode(tmp_path), max_bytes, batches))


def test_files(tmp_path):
    """Files as documents, also one that has changed its size or is gone."""
    from lshdup.spark.workers import documents as worker

    (tmp_path / "f.html").write_text("<p>")
    (tmp_path / "g").write_text("longer now")
    rows = (b"f.html", 3), (b"none", 9), (b"g", 2)
    made = worker.read_files(os.fsencode(tmp_path), 50, iter([batch_of(worker.FILES, *rows)]))
    assert documents_of(made) == [
        (b"f.html", b"<p>", None, None, True),
        (b"g", b"longer now", None, None, True),
        (b"none", None, "vanished", "No such file or directory", False),
    ]


def test_pieces_of_files(tmp_path):
    """Records and lines of id lists are documents; bad ones have numbers, bad files their names."""
    pa, pq = require("spark", "pyarrow"), require("spark", "pyarrow.parquet")
    good = json.dumps({"key": "a", "body": "x y"}) + "\n"
    (tmp_path / "r.jsonl").write_text(
        good + '\n{"key": 5}\n' + json.dumps({"key": "long", "body": "x" * 60}) + "\n" + good
    )
    (tmp_path / "r.gz").write_bytes(gzip.compress(good.encode()))
    (tmp_path / "l.txt").write_text("n1 1 2 3\n\nn2\n")
    table = pa.table({"key": ["a", None, "c", "d"], "body": ["x", "y", None, "z" * 60]})
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=2)
    (tmp_path / "d.parquet").write_bytes((tmp_path / "p.parquet").read_bytes()[:-9])
    json_kind, parquet = int(Kind.JSON), int(Kind.PARQUET)
    size = (tmp_path / "r.jsonl").stat().st_size
    rows = read(tmp_path, (b"r.jsonl", json_kind, 0, 1), (b"r.jsonl", json_kind, 1, size))
    assert rows == [
        (b"a", b"x y", None, "in r.jsonl", False),
        (
            b"r.jsonl:3",
            None,
            "row without text",
            "no field 'body', but key; --text-field names another",
            False,
        ),
        (b"r.jsonl:4", None, "too large", "87 bytes, --max-bytes is 50", False),
        (b"a", b"x y", None, "in r.jsonl", False),
    ]
    assert read(tmp_path, (b"r.gz", json_kind, 0, -1)) == [(b"a", b"x y", None, "in r.gz", False)]
    assert read(tmp_path, (b"l.txt", int(Kind.IDS), 0, -1)) == [
        (b"n1", b"1 2 3", None, "in l.txt", False),
        (b"n2", b"", None, "in l.txt", False),
    ]
    assert read(tmp_path, (b"p.parquet", parquet, 0, 1)) == [
        (b"a", b"x", None, "row 1 of p.parquet", False),
        (b"p.parquet:2", None, "row without id", "'key' is null", False),
    ]
    assert read(tmp_path, (b"p.parquet", parquet, 1, -1)) == [
        (b"c", None, "row whose text is null", "'body' is null; row 3 of p.parquet", False),
        (b"d", None, "too large", "60 bytes, --max-bytes is 50; row 4 of p.parquet", False),
    ]
    assert [row[::2] for row in read(tmp_path, (b"d.parquet", parquet, 0, -1))] == [
        (b"d.parquet", "damaged", False)
    ]
    for kind in (Kind.IDS, Kind.JSON, Kind.PARQUET):
        assert [row[::2] for row in read(tmp_path, (b"none", int(kind), 0, -1))] == [
            (b"none", "vanished", False)
        ]


def test_rows_that_spark_has_read():
    """Files have their typed names, also in later details; --max-bytes is of the record."""
    pa = require("spark", "pyarrow")
    from lshdup.spark.recipe import make_recipe
    from lshdup.spark.workers import documents as worker_documents
    from lshdup.spark.workers import sets as worker_sets

    lines = [
        b'{"key": "a", "body": "x"}',
        b" ",
        b"none",
        b'{"key": "b", "body": "' + b"x" * 50 + b'"}',
    ]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(lines), pa.array([b"hdfs://h/a%20b/c.jsonl"] * 4)], names=["value", "file"]
    )
    read = [
        batch.to_pylist()
        for batch in worker_documents.read_json_lines(
            RecordFields("body", "key"), 60, b"hdfs://h/a b", b"hdfs:///a b", iter([batch])
        )
    ]
    rows = [tuple(row.values())[:3] for row in read[0]]
    name = b"hdfs:///a b/c.jsonl"
    assert rows == [
        (b"a", b"x", None),
        (name, None, "row that is no JSON object"),
        (name, None, "too large"),
    ]
    rows = [pa.array([b"a 1 x", b"b 2 3", b"c " + b"1 " * 20]), batch.column(1).slice(1)]
    lists = pa.RecordBatch.from_arrays(rows, names=["value", "file"])
    recipe = replace(
        make_recipe(ShingleParams(tokens="ids"), SketchParams(), BandParams(), PairParams()),
        max_bytes=30,
    )
    made = worker_sets.sketch_rows(
        recipe, worker_documents.read_id_lists(b"hdfs://h/a b", b"hdfs:///a b", iter([lists]))
    )
    found = {
        row["id"]: (row["reason"], (row["detail"] or "").partition("; ")[2])
        for batch in made
        for row in batch.to_pylist()
    }
    where = "in hdfs:///a b/c.jsonl"
    assert found == {b"a": ("not integers", where), b"b": (None, ""), b"c": ("too large", where)}


def test_json_lines_of_any_name(run, tmp_path):
    """What a worker writes is what `--format jsonl` prints."""
    pa = require("spark", "pyarrow")
    from lshdup.spark.files import outputs

    names = [b"\xff.txt", "ü\n\u2028.txt".encode()]
    for name in names:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("the same few words")
    expected = run("pairs", ".", "--no-store", "--format", "jsonl", cwd=tmp_path).out
    a, b = sorted(names)
    batch = pa.RecordBatch.from_arrays(
        [pa.array([a]), pa.array([b]), pa.array([1.0])], names=["a", "b", "similarity"]
    )
    (made,) = outputs.json_lines(iter([batch]))
    expected = re.sub(', "same": [^}]*', "", expected.decode("ascii"))
    assert made.column(0).to_pylist() == expected.splitlines()
