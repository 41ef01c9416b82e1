"""Spark gives the answers of the local engine: from every kind of input, on a cluster, after a lost
executor.

The tests need pyspark and Java; without them they are skipped.
One session serves most tests. They take minutes, so they run only on request: `pytest -m spark`.
Tests without Java are in test_worker.py.
"""

import csv
import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lshdup.errors import InputError, ParameterError
from lshdup.params import BandParams, DocumentParams, PairParams, ShingleParams, SketchParams
from lshdup.spark import caching
from lshdup.spark import clusters as spark_clusters
from lshdup.spark import pipeline as spark_pipeline
from lshdup.spark import session as spark_session
from lshdup.spark import tiles as spark_tiles
from lshdup.spark.errors import one_line
from lshdup.spark.files import inputs
from lshdup.spark.recipe import make_recipe
from lshdup.spark.sources import id_and_text
from tests.conftest import ROOT, require
from tests.reference import path_key

pytestmark = pytest.mark.spark

#: Most of a small run is the start of Java: no compiler for hot code, no verifier, one collector.
_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)

#: And no generated code, no page to look at, few partitions.
QUICK = {
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.executor.extraJavaOptions": _JAVA,
    "spark.ui.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
}


def require_spark():
    """Skip without pyspark, its packages and Java."""
    for package in ("pyspark", "pandas", "pyarrow"):
        require("spark", package)
    if shutil.which("java") is None:
        pytest.skip("there is no Java")


@pytest.fixture(scope="module")
def session():
    require_spark()
    os.environ["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    )
    with spark_session.session("local[2]", QUICK) as started:
        yield started


def local(run, *arguments, cwd=ROOT):
    return triples(run("pairs", *arguments, "--no-store", "-q", cwd=cwd))


def bare(listing):
    """Return a listing without its last column, `same`, which Spark does not make."""
    return b"".join(line.rpartition(b"\t")[0] + b"\n" for line in listing.splitlines())


def collected(comparison, **options):
    """Pairs as the command prints them."""
    table = comparison.pairs(**options).toArrow()
    rows = zip(*(table.column(name).to_pylist() for name in ("a", "b", "similarity")), strict=True)
    return sorted((os.fsdecode(a), os.fsdecode(b), repr(similarity)) for a, b, similarity in rows)


def compared(
    session, names, band, shingle=ShingleParams(), files=DocumentParams(), asked=PairParams()
):
    documents = inputs.find_documents(
        session, tuple(map(os.fsencode, names)), files, ids=shingle.tokens == "ids"
    )
    recipe = make_recipe(shingle, SketchParams(), band, asked)
    recipe = replace(recipe, max_bytes=files.max_bytes)
    return spark_pipeline.Comparison(documents.sources, recipe, asked.max_bucket)


def frame(session, texts):
    """Return a DataFrame of texts by name."""
    return session.createDataFrame(list(texts.items()), "id string, text string")


def near(documents, threshold=0.6, **asked):
    """Return the comparison of a DataFrame."""
    return spark_pipeline.find_near_duplicates(
        documents, band=BandParams(threshold=threshold), asked=PairParams(**asked)
    )


def on_spark(*arguments):
    """Run a command in this process, through the session that is there; return the exit code."""
    from lshdup.cli.main import lshdup

    return lshdup.main([*arguments, "--engine", "spark"], standalone_mode=False) or 0


def triples(result):
    """Return names and similarity of the pairs that the local engine prints, in order."""
    return sorted(tuple(row[:3]) for row in result.rows)


def texts_of(n):
    """Documents that are all alike or nearly so, and some that are not."""
    rng = np.random.default_rng(5)
    words = [f"w{i}" for i in range(500)]
    base = rng.integers(0, 500, 60)
    texts = {}
    for i in range(n):
        text = base.copy() if i % 3 else rng.integers(0, 500, 60)
        if i % 3 == 2:
            text[rng.integers(0, 60, 2)] = rng.integers(0, 500, 2)
        texts[f"d{i:03}"] = " ".join(words[word] for word in text)
    return texts


# --- the same pairs ---------------------------------------------------------------------------


@pytest.mark.parametrize("collapse", [False, True])
def test_sample_corpus(session, run, monkeypatch, collapse):
    monkeypatch.chdir(ROOT)
    with compared(session, ["sample_corpus"], BandParams(threshold=0.5)) as comparison:
        summary = comparison.summary()
        assert (summary.documents, summary.empty, summary.guesses) == (121, 1, {"cp1252": 1})
        found = collected(comparison, collapse=collapse)
        counts = comparison.tiles.found()
    assert found == local(
        run, "sample_corpus", "-t", "0.5", *(["--collapse-copies"] if collapse else [])
    )
    assert counts["pairs"] < len(found)
    said = run("pairs", "sample_corpus", "-t", "0.5", "--no-store", "-v", cwd=ROOT).err
    assert (
        f"{counts['candidates']} candidate pairs -> {counts['pairs']} pairs; with all copies"
        in said
    )


def class_copies(folder):
    """Write posts with headers, and seven edited copies of each.

    Return their folder, and how many pairs there are, at least.
    """
    made = folder / "made_copies"
    made.mkdir()
    rng = np.random.default_rng(11)
    for post in range(1001):
        terms = rng.choice(20_000, int(rng.integers(60, 200)), replace=False)
        for copy in range(8):
            edited = terms.copy()
            if copy:
                edited[rng.integers(0, len(terms), copy % 4)] = 20_000 + copy
            head = f"From: author{post}@example.org\nSubject: term{post}\nLines: {copy}\n\n"
            text = " ".join(f"term{term}" for term in edited)
            (made / f"{post:04}-{copy}.txt").write_text(head + text)
    return made, 20_000


def test_class_copies(session, run, tmp_path, monkeypatch):
    made, pairs = class_copies(tmp_path)
    folder = made.name
    monkeypatch.chdir(tmp_path)
    with compared(
        session, [folder], BandParams(threshold=0.9), ShingleParams(tokens="terms")
    ) as comparison:
        found = collected(comparison)
    assert len(found) > pairs
    assert found == local(run, folder, "--tokens", "terms", "-t", "0.9", cwd=tmp_path)


def test_symbols(session, run, tmp_path, monkeypatch):
    """Program texts that differ in punctuation only are told apart by workers too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    text = "int f(int a, int b) { if (a < b) return -1; return a - b; }\n"
    for i, new in enumerate((text, text.replace("<", ">"), text.replace(" (", "("))):
        (tmp_path / f"src/{i}.c").write_text(new)
    with compared(
        session, ["src"], BandParams(threshold=0.5), ShingleParams(tokens="symbols")
    ) as comparison:
        found = collected(comparison)
    assert found == local(run, "src", "--tokens", "symbols", "-t", "0.5", cwd=tmp_path)
    assert [similarity == "1.0" for _, _, similarity in found] == [False, True, False]


def test_pages(session, run, pages):
    with compared(
        session, [str(pages[0])], BandParams(threshold=0.85), ShingleParams(tokens="ids")
    ) as comparison:
        found = collected(comparison)
    assert len(found) == 50
    assert found == local(run, str(pages[0]), "--tokens", "ids", "-t", "0.85")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Documents as JSON Lines and as Parquet, with some bad records."""
    pa, pq = require("spark", "pyarrow"), require("spark", "pyarrow.parquet")
    folder = tmp_path_factory.mktemp("rows")
    texts = texts_of(90)
    with (folder / "r.jsonl").open("w") as file:
        for i, (name, text) in enumerate(texts.items()):
            file.write(json.dumps({"key": name if i % 2 else f"é {name}", "body": text}) + "\n\n")
        file.write('{"key": "x"}\n{"key": "y", "body": 5}\nno json\n{"body": "a b c"}\n')
    table = pa.table({"body": [*texts.values(), None], "key": [*range(len(texts)), 999]})
    (folder / "p").mkdir()
    pq.write_table(table.slice(0, 40), folder / "p" / "one.parquet")
    pq.write_table(table.slice(40), folder / "p" / "two.parquet")
    return folder


@pytest.mark.parametrize(("name", "skipped", "code"), [("r.jsonl", 4, 2), ("p", 1, 0)])
def test_rows(session, run, rows, monkeypatch, name, skipped, code):
    monkeypatch.chdir(rows)
    fields = DocumentParams(text_field="body", id_field="key")
    with compared(session, [name], BandParams(threshold=0.6), files=fields) as comparison:
        assert sum(comparison.summary().skipped.values()) == skipped
        found = collected(comparison)
    printed = run("pairs", name, *FIELDS, "-t", "0.6", "--no-store", cwd=rows, code=code)
    assert found == triples(printed)
    assert len(found) > 1500


@pytest.mark.parametrize("form", ["r.csv", "r.jsonl", "r.parquet", "file:r.parquet"])
def test_rows_of_several_fields_and_small_ones(session, run, tmp_path, monkeypatch, form):
    pa, pq = require("spark", "pyarrow"), require("spark", "pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    texts = list(texts_of(30).values())
    rows = [{"key": f"k{n}", "a": f"a {n % 3}", "b": text} for n, text in enumerate(texts)]
    rows.append({"key": "small", "a": "few", "b": "words"})
    Path("r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Path("r.csv").open("w", newline="") as file:
        csv.writer(file).writerows([rows[0].keys(), *(row.values() for row in rows)])
    pq.write_table(pa.Table.from_pylist(rows), "r.parquet")
    name = form.replace("file:", f"file://{tmp_path}/")
    fields = DocumentParams(text_field="a,b", id_field="key")
    shingle = ShingleParams(min_tokens=5)
    with compared(
        session, [name], BandParams(threshold=0.6), files=fields, shingle=shingle
    ) as comparison:
        summary = comparison.summary()
        assert (summary.documents, summary.empty, summary.small) == (31, 0, 1)
        found = collected(comparison)
    options = ("--text-field", "a,b", "--id-field", "key", "-t", "0.6", "--min-tokens", "5")
    printed = run("pairs", form.removeprefix("file:"), *options, "--no-store")
    assert found == triples(printed)
    assert found


def test_arrow_with_long_offsets(session, run, monkeypatch, capfdbinary):
    """Columns of bytes may come with offsets of 64 bits."""
    session.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        expected, out, _, _ = outcome(
            session, run, monkeypatch, capfdbinary, ["pairs", "sample_corpus", "-t", "0.7"], ROOT
        )
    finally:
        session.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert out == expected


def test_small_blocks_change_nothing(session, monkeypatch):
    """One key, and one set of exact duplicates, over many tasks: every pair once."""
    texts = texts_of(90)
    documents = frame(session, texts).repartition(3)
    with near(documents) as whole:
        expected = collected(whole)
        counts = whole.tiles.found()
    assert len(expected) == len({row[:2] for row in expected})
    with near(documents, max_bucket=1000) as distinct:
        assert collected(distinct) == expected
        assert distinct.tiles.found() == counts
    monkeypatch.setattr(spark_tiles, "BLOCK_DOCUMENTS", 7)
    monkeypatch.setattr(spark_pipeline, "BLOCK_COPIES", 4)
    monkeypatch.setattr(spark_tiles, "MANY_ROWS", 3)
    with near(documents) as tiled:
        assert collected(tiled) == expected
        assert tiled.tiles.found()["pairs"] == counts["pairs"]
        assert tiled.tiles.rows.select("tile").distinct().count() > 5
        assert tiled.shared.where("n > 3").count() > 5
        assert tiled.shared.where("n <= 3").count() > 5


@pytest.mark.parametrize(
    "texts",
    [{"a": "x y z", "b": "u v w"}, {"a": "x y z", "b": "x y z", "c": "u v w"}, {"a": "", "b": " "}],
)
def test_nothing_near(session, texts):
    """Without pairs, or with pairs of exact duplicates only, there is an answer with counts."""
    documents = frame(session, texts)
    copies = [("a", "b", "1.0")] if len(texts) == 3 else []
    with spark_pipeline.find_near_duplicates(documents) as comparison:
        assert comparison.summary().documents == len(texts)
        assert collected(comparison) == copies
        assert not comparison.tiles.found()["pairs"]
        with spark_clusters.Clusters(comparison) as groups:
            compared = sum(bool(text.strip()) for text in texts.values())
            assert groups.counts == (len(copies), compared - len(copies), len(copies), len(copies))
            assert groups.listed.count() == 2 * len(copies)


def test_max_bucket(session, run, tmp_path):
    texts = texts_of(90)
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with near(frame(session, texts), max_bucket=10) as comparison:
        found = collected(comparison)
        largest, _, buckets, kinds, _ = comparison.bucket_counts()
        counts = comparison.tiles.found()
    arguments = [*sorted(texts), "-t", "0.6", "--max-bucket", "10", "--no-store", "-v"]
    printed = run("pairs", *arguments, cwd=tmp_path)
    every = run("pairs", *sorted(texts), "-t", "0.6", "--no-store", "-q", cwd=tmp_path)
    assert found == triples(printed)
    assert 100 < len(found) < len(every.rows) - 100  # the limit has an effect
    assert len(found) == len({row[:2] for row in found})
    assert (
        f"{counts['candidates']} candidate pairs -> {counts['pairs']} pairs; with all copies"
        in printed.err
    )
    assert f"skipped {buckets} bucket" in printed.err
    assert f"with {kinds} documents" in printed.err
    assert f"the largest has {largest} documents" in printed.err


def test_no_task_gets_all_rows_of_a_bucket(session):
    """No window over buckets or centres counts rows: a window's rows are those of one task."""
    with (
        near(frame(session, texts_of(30)), 0.8, max_bucket=4) as comparison,
        spark_clusters.Clusters(comparison) as groups,
    ):
        covered = comparison.distinct_sets.select("first.id").limit(3)
        tiles = spark_tiles.candidate_pairs(
            comparison.compared, comparison.sources, comparison.recipe, covered
        )
        points = session.createDataFrame([(b"a", b"b")], "bucket binary, id binary")
        stars = spark_tiles.star_tiles(
            points, points.groupBy("bucket").count().withColumnRenamed("count", "n")
        )
        for rows in (
            comparison.buckets,
            tiles.rows,
            tiles.pairs,
            stars,
            groups.documents,
            comparison.pairs(),
        ):
            plan = rows._jdf.queryExecution().toString()
            assert "Join" in plan or "LogicalRDD" in plan
            assert "Window" not in plan
        tiles.close()


@pytest.mark.parametrize("most", [1 << 16, 1])
def test_only_wanted_values_pass(session, monkeypatch, most):
    """And few other values pass, if the filter has room."""
    monkeypatch.setattr(caching, "MOST_BLOCKS", most)
    ids = session.range(30_000).selectExpr(
        "cast(cast(id as string) as binary) as id", "id as number"
    )
    passed = [
        row.number for row in caching.sift(ids, ids.where("number < 9000"), 9000, "id").collect()
    ]
    assert sorted(passed)[:9000] == list(range(9000))
    assert len(passed) == len(set(passed))
    assert 9000 < len(passed) < (9000 + 21000 / 200 if most > 1 else 30_000)


def test_sets_are_made_of_what_has_candidates(session, monkeypatch):
    texts = {f"s{i}": " ".join(f"w{i}-{j}" for j in range(20)) for i in range(400)} | {
        "a": "x y z u v w q",
        "b": "x y z u v w r",
    }
    with near(frame(session, texts), 0.5) as comparison:
        tiles = comparison.tiles
        sets = spark_tiles.sets_of(
            comparison.sources, tiles.rows, tiles.counts[1], comparison.recipe
        )
        wanted = {row.id for row in tiles.rows.select("id").distinct().collect()}
        made = {row.id for row in sets.collect()}
        assert wanted >= {b"a", b"b"}
        assert made >= wanted
        assert len(made) < len(wanted) + 20


def test_what_cannot_be_read_again(session, tmp_path, monkeypatch):
    """It is an error, not a lost pair; a document that the first pass skipped is no error."""
    for name, text in (("a", "x y z u v w"), ("b", "x y z u v w q"), ("bad", "x\0y" * 99)):
        (tmp_path / f"{name}.txt").write_text(text)
    monkeypatch.chdir(tmp_path)
    with compared(session, ["."], BandParams(threshold=0.5)) as comparison:
        assert comparison.summary().skipped == {"binary": 1}
        assert len(collected(comparison)) == 1
        (tmp_path / "b.txt").unlink()
        with pytest.raises(InputError, match=r"'b\.txt' was read once"), one_line():
            collected(comparison)


def test_ids_that_repeat_are_an_error_of_the_library(session):
    documents = session.createDataFrame(
        [("a", "x y z"), ("b", "x y z"), ("a", "u v w")], "id string, text string"
    )
    for asked in (
        lambda found: found.pairs(),
        lambda found: spark_clusters.Clusters(found).documents,
        lambda found: found.summary(),
    ):
        with (
            spark_pipeline.find_near_duplicates(documents) as comparison,
            pytest.raises(InputError, match="the id 'a' is that of 2 documents"),
        ):
            asked(comparison)


def persistent(session):
    return set(session.sparkContext._jsc.getPersistentRDDs())


@pytest.mark.parametrize("folder", [False, True])
def test_nothing_is_kept_afterwards(session, monkeypatch, tmp_path, folder):
    """Neither stages of a comparison, nor rounds, nor files of checkpoints."""
    monkeypatch.setattr(spark_clusters, "FEW_PAIRS", 10)
    monkeypatch.setattr(spark_tiles, "BLOCK_DOCUMENTS", 7)
    documents = frame(session, texts_of(60))
    before = persistent(session)
    if folder:  # which a session that has one cannot be made to forget
        session.sparkContext.setCheckpointDir(tmp_path.as_uri())
    monkeypatch.setattr(caching, "_has_folder", lambda _: folder)
    with near(documents) as comparison:
        collected(comparison)
        with spark_clusters.Clusters(comparison) as groups:
            assert sum(groups.counts[1:3]) == 60
            assert groups.covered_early is not None
            made = (
                len(list(tmp_path.glob("*/rdd-*"))) if folder else len(persistent(session) - before)
            )
            assert 3 < made < 13  # one of them: which of exact duplicates is preferred
    assert persistent(session) == before
    assert not list(tmp_path.glob("*/rdd-*"))


def test_names_of_any_kind(session, run, tmp_path, monkeypatch):
    """The local engine's rules hold for local names, also as URIs; Spark reads others as typed."""
    names = [
        "a b.txt",
        "100%25.txt",
        "x#y.txt",
        "ü.html",
        "_hidden",
        "[z].txt",
        os.fsdecode(b"\xff.txt"),
    ]
    (tmp_path / "in [1]").mkdir()
    for name in names:
        page = f"<p hidden>{name}</p>" if name.endswith("html") else ""
        (tmp_path / "in [1]" / name).write_text(f"{page} the same few words in every file")
    monkeypatch.chdir(tmp_path)
    band = BandParams(threshold=0.9)
    with compared(session, ["in [1]"], band) as comparison:
        assert collected(comparison) == local(run, "in [1]", "-t", "0.9", cwd=tmp_path)
    shutil.move(tmp_path / "in [1]", tmp_path / "in")
    uri = f"file://{tmp_path}/in"
    (tmp_path / "in" / "12:30").write_text("the same few words in every file")
    with compared(session, [uri], band) as comparison:
        assert collected(comparison) == local(run, f"{tmp_path}/in", "-t", "0.9", cwd=tmp_path)
    (tmp_path / "in" / "12:30").unlink()
    by_spark(monkeypatch)
    with compared(session, [uri], band) as comparison:
        found = {name for row in collected(comparison) for name in row[:2]}
    with compared(session, [f"{uri}/*%25.txt", f"{uri}/a*"], band) as comparison:
        assert collected(comparison) == [
            (f"file:{tmp_path}/in/100%25.txt", f"file:{tmp_path}/in/a b.txt", "1.0")
        ]
    assert {
        f"{uri}/a b.txt",
        f"{uri}/100%25.txt",
        f"{uri}/x#y.txt",
        f"{uri}/ü.html",
        f"{uri}/[z].txt",
    } <= found


def by_spark(monkeypatch):
    """Let Spark look up local names like remote ones."""
    monkeypatch.setattr(inputs, "_local_path", lambda name, home_local: None)


def outcome(session, run, monkeypatch, capfdbinary, arguments, cwd, code=0):
    """Return stdout and stderr of a command: of the local engine, and of Spark."""
    monkeypatch.chdir(cwd)
    expected = run(*arguments, "--no-store", cwd=cwd, code=code)
    capfdbinary.readouterr()
    assert on_spark(*arguments) == code
    out, err = capfdbinary.readouterr()
    return bare(expected.out), out, expected.err, err.decode()


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A folder of files and records: hidden from Spark, compressed, damaged, too large."""
    pa, pq = require("spark", "pyarrow"), require("spark", "pyarrow.parquet")
    folder = tmp_path_factory.mktemp("mixed")
    texts = list(texts_of(36).items())

    def lines(part, name):
        return "".join(
            json.dumps({"key": f"{name}{key}", "body": text}) + "\n" for key, text in part
        )

    docs = folder / "docs"
    docs.mkdir()
    (docs / "_s.jsonl").write_text(lines(texts[:6], "s"))
    (docs / "a [1].NDJSON").write_text(
        "\n"
        + lines(texts[6:12], "n")
        + '{"key": 1}\nnone\n'
        + "x" * 3000
        + "\n"
        + lines(texts[12:14], "m")
    )
    (docs / "z.jsonl.gz").write_bytes(gzip.compress(lines(texts[14:18], "z").encode()))
    (docs / ".hidden.jsonl").write_text(lines(texts[:6], "h"))
    (docs / "notes.txt").write_text(texts[18][1])
    (docs / "page.html").write_text(f"<p>{texts[18][1]}</p>")
    (docs / "bad.jsonl.gz").write_bytes(gzip.compress(b"x" * 100_000)[:-20])
    pq.write_table(
        pa.table({"key": ["p1", None, "p3", ""], "body": [texts[19][1], "x", None, "y"]}),
        docs / "_p.parquet",
    )
    odd = pa.table(
        {
            "key": ["odd1", "odd2", "odd3"],
            "body": [b"\x81\xff words", texts[19][1].encode(), b"x" * 3000],
        }
    )
    pq.write_table(odd, pa.OSFile(os.fsencode(docs) + b"/_\xff.parquet", "wb"))
    pq.write_table(pa.table({"key": [7], "body": [texts[19][1]]}), docs / "q.parquet")
    pq.write_table(pa.table({"key": ["other"]}), docs / "no_body.parquet")
    (docs / "cut.parquet").write_bytes((docs / "q.parquet").read_bytes()[:-30])
    return folder


#: The fields of the records of `rows` and `mixed`.
FIELDS = ("--text-field", "body", "--id-field", "key")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((*FIELDS, "--max-bytes", "2000"), 2),
        ((*FIELDS, "--hidden", "--exclude", "*.parquet", "--exclude", "[ab]*"), 0),
        (("--id-field", "key"), 2),  # without --text-field, files in folders are documents
        (("--include", "*.txt", "--include", "*.html"), 0),
    ],
)
def test_a_folder_of_all_kinds(session, run, monkeypatch, capfdbinary, mixed, options, code):
    """Files have records, and records have names and reasons to be skipped, as locally."""
    arguments = ["pairs", "docs", "-t", "0.6", "-v", *options]
    expected, out, expected_said, said = outcome(
        session, run, monkeypatch, capfdbinary, arguments, mixed, code
    )
    assert out == expected
    assert out.count(b"\n") >= 1

    def fates(text):
        wanted = r"lshdup: ((skipped|docs/|p3|odd).*|.* has no effect.*)"
        return sorted(
            line
            for line in text.splitlines()
            if re.fullmatch(wanted, line) and "no tokens" not in line
        )

    assert fates(said) == fates(expected_said)
    if options[-1].isdigit():
        assert any("docs/a [1].NDJSON:8: " in line for line in fates(said))
        assert any(
            "odd3: too large" in line and line.endswith("; row 3 of docs/_\\xff.parquet)")
            for line in fates(said)
        ), fates(said)


def test_pieces(session, run, mixed, monkeypatch, capfdbinary):
    """Files of records in several pieces: every record once, and bad ones by number."""
    monkeypatch.setattr(inputs, "TASK_BYTES", 700)
    arguments = ["pairs", "docs", "-t", "0.6", "-v", *FIELDS]
    expected, out, expected_said, said = outcome(
        session, run, monkeypatch, capfdbinary, arguments, mixed, 2
    )
    assert out == expected
    assert "docs/a [1].NDJSON:9: row that is no JSON object" in said
    totals = [
        [line for line in text.splitlines() if "skipped:" in line] for text in (said, expected_said)
    ]
    assert totals[0] == totals[1]


def test_uris_of_rows(session, run, mixed, monkeypatch, capfdbinary):
    """Spark lists a URI, passes over names with _ or a dot, and tells kinds by endings."""
    folder = mixed / "uris [2]"
    if not folder.exists():
        folder.mkdir()
        for name in ("a [1].NDJSON", "z.jsonl.gz", "notes.txt", "page.html", "q.parquet"):
            shutil.copy(mixed / "docs" / name, folder / name)
    monkeypatch.chdir(mixed)
    options = ["-t", "0.6", "-v", *FIELDS, "--max-bytes", "2000"]
    expected = run("pairs", folder.name, *options, "--no-store", cwd=mixed, code=2)
    by_spark(monkeypatch)
    assert on_spark("pairs", f"file:{folder}", *options) == 2
    out, err = capfdbinary.readouterr()

    def rows(text):  # what is first of two names follows from how they are called
        return sorted(
            (sorted(row.split(b"\t")[:2]), row.split(b"\t")[2]) for row in text.splitlines()
        )

    assert rows(out.replace(b"file:" + os.fsencode(folder), os.fsencode(folder.name))) == rows(
        expected.out
    )
    said = err.decode()
    assert f"file:{folder}/a [1].NDJSON: too large (3000 bytes, --max-bytes is 2000)" in said
    assert "skipped: 1 row that is no JSON object, 1 row without text, 1 too large" in said


def test_id_lists(session, run, tmp_path, monkeypatch, capfdbinary):
    (tmp_path / "lists").mkdir()
    for name in ("_a.txt", "b.txt", ".c.txt", "d.csv"):
        lines = [f"{name}{i} {' '.join(map(str, range(i % 3, 40)))}\n" for i in range(9)]
        (tmp_path / "lists" / name).write_text("".join([*lines, f"wrong{name} 1 x 2\n"]))
    arguments = ["pairs", "lists", "--tokens", "ids", "-t", "0.9", "--exclude", "*.csv", "-v"]
    expected, out, *both = outcome(session, run, monkeypatch, capfdbinary, arguments, tmp_path, 2)
    assert out == expected
    assert out.count(b"\n") > 50
    wrong, expected_wrong = (
        {line for line in said.splitlines() if "wrong" in line} for said in both
    )
    assert wrong == expected_wrong
    assert {"; in lists/" in line for line in wrong} == {True}


def test_nothing_to_compare(session, run, tmp_path, monkeypatch, capfdbinary):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("a few words of one text")
    (tmp_path / "docs" / ".b.txt").write_text("a few words of one text")
    for options in ([], ["--include", "*.none"]):
        *_, expected, said = outcome(
            session, run, monkeypatch, capfdbinary, ["pairs", "docs", *options], tmp_path
        )
        line = next(line for line in expected.splitlines() if "warning" in line)
        assert line in said.splitlines()


# --- answers that Spark writes ----------------------------------------------------------------


def written(folder):
    return sorted(line for part in folder.glob("part-*") for line in part.read_text().splitlines())


def test_what_spark_writes(session, run, tmp_path, monkeypatch, capfdbinary):
    """JSON Lines are those of the local engine; Parquet has bytes if a name is not UTF-8."""
    pq = require("spark", "pyarrow.parquet")
    (tmp_path / "docs").mkdir()
    for name in (b"\xff.txt", b"a.txt", "ü\n.txt".encode()):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/docs/" + name)).write_text(
            "the same few words in every file"
        )
    monkeypatch.chdir(tmp_path)

    def command(name, *options, cwd="docs"):
        return on_spark(name, cwd, "-t", "0.9", *options)

    assert command("pairs", "-o", "x.jsonl", "--check") == 1
    assert command("pairs", "--check", cwd="docs/a.txt") == 2
    assert b"nothing was checked: 1 document with shingles" in capfdbinary.readouterr().err
    expected = run(
        "pairs", "docs", "-t", "0.9", "--no-store", "--format", "jsonl", cwd=tmp_path
    ).out.decode()
    expected = re.sub(', "same": [^}]*', "", expected)
    assert written(tmp_path / "x.jsonl") == sorted(expected.splitlines())
    assert "\\udcff" in expected
    capfdbinary.readouterr()
    with pytest.raises(InputError, match=re.escape("-o x.jsonl exists already")):
        command("pairs", "-o", "x.jsonl")
    with pytest.raises(InputError, match="cannot be written"):
        command("pairs", "-o", "no/x.jsonl")
    with pytest.raises(InputError, match=r"'nofs:///x\.jsonl' cannot be looked up"):
        command("pairs", "-o", "nofs:///x.jsonl")
    assert b"signatures" not in capfdbinary.readouterr().err
    command("pairs", "-o", f"file:{tmp_path}/x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    assert [str(each) for each in table.schema.types] == ["binary", "binary", "double"]
    assert (b"docs/a.txt", b"docs/\xff.txt") in set(
        zip(*(table.column(name).to_pylist() for name in "ab"), strict=True)
    )
    os.unlink(b"docs/\xff.txt")
    command("clusters", "-o", "g.parquet")
    table = pq.read_table(tmp_path / "g.parquet")
    assert [str(each) for each in table.schema.types] == ["string", "string", "double", "string"]
    assert table.column_names == ["id", "representative", "similarity", "copy"]
    assert sorted(table.column("copy").to_pylist()) == ["no", "yes"]
    assert command("clusters", "-o", "k.jsonl", "--emit", "keep", "--check") == 1
    kept = run(
        "clusters",
        "docs",
        "-t",
        "0.9",
        "--emit",
        "keep",
        "--no-store",
        "--format",
        "jsonl",
        cwd=tmp_path,
    ).out.decode()
    assert written(tmp_path / "k.jsonl") == kept.splitlines()


# --- groups -----------------------------------------------------------------------------------


def represented(texts, sizes, pairs, keep):
    """Return the representative and similarity of each document, one after the other."""
    near = {}
    for a, b, similarity in pairs:
        near[a, b] = near[b, a] = float(similarity)
    rank = {
        "longest": lambda name: -sizes[name],
        "shortest": lambda name: sizes[name],
        "path-order": lambda name: 0,
        "shortest-path": path_key,
    }[keep]
    leaders, found = [], {}
    for name in sorted(texts, key=lambda name: (rank(name), os.fsencode(name))):
        leader = next((each for each in leaders if (name, each) in near), name)
        if leader == name:
            leaders.append(name)
        found[name] = (leader, near.get((name, leader), 1.0))
    return found


def test_a_failed_write_leaves_no_folder(session, tmp_path):
    """Or the next try would find it. The folder of another program stays."""
    from pyspark.sql import functions as f

    from lshdup.spark.files import outputs

    failing = session.range(3).select(
        f.raise_error(f.lit("an error of a task")).cast("binary").alias("a")
    )
    ids = session.createDataFrame([(b"a",)], "id binary")
    for kind in ("json", "parquet"):
        place = tmp_path / kind
        with pytest.raises(Exception, match="an error of a task"):
            outputs.write(failing, str(place), kind, ids)
        assert not place.exists()
        place.mkdir()
        with pytest.raises(Exception, match="PATH_ALREADY_EXISTS"):
            outputs.write(failing, str(place), kind, ids)
        assert place.exists()


@pytest.mark.parametrize(
    ("keep", "few", "block"),
    [
        ("longest", 25, 4096),
        ("path-order", 10**6, 4096),
        ("longest", 25, 3),
        ("shortest-path", 25, 4096),
        ("shortest-path", 25, 3),
    ],
)
def test_representatives(session, monkeypatch, keep, few, block):
    """By rounds and the driver, by the driver alone, and with cut buckets."""
    rng = np.random.default_rng(3)
    chain = [f"c{i}" for i in range(60)]  # each like its neighbours, less like theirs
    texts = {f"t{i:02}": " ".join(chain[i : i + int(rng.integers(12, 16))]) for i in range(40)}
    texts |= {f"copy{i}": texts[f"t{i:02}"] for i in range(0, 40, 5)}
    texts |= {f"t{i:02}.old": texts[f"t{i:02}"] for i in range(1, 40, 7)}
    names = ["a", "b.bak", "ä", "./-a", "d/e", "/f", "d/ee/g~", "h.copy2", "漢字"]
    texts |= dict(zip(names, (texts[f"t{i:02}"] for i in range(2, 40, 4)), strict=False))
    monkeypatch.setattr(spark_clusters, "FEW_PAIRS", few)
    monkeypatch.setattr(spark_tiles, "BLOCK_DOCUMENTS", block)
    with spark_pipeline.find_near_duplicates(
        frame(session, texts), band=BandParams(threshold=0.5, recall=0.999)
    ) as comparison:
        pairs = collected(comparison)
        sizes = {row.id.decode(): row.size for row in comparison.sketches.collect()}
        with spark_clusters.Clusters(comparison, keep) as clusters:
            rows = clusters.documents.collect()
            assert (clusters.rounds == 0) == (few == 10**6)
            assert clusters.rounds < 10
            assert (
                clusters.covered_early.count() if clusters.covered_early is not None else 0
            ) >= (10 if block == 3 else 0)
    expected = represented(texts, sizes, pairs, keep)
    assert {
        row.id.decode(): (row.representative.decode(), row.similarity) for row in rows
    } == expected
    assert {row.id.decode() for row in rows if row.copy} == {
        name
        for name, (leader, _) in expected.items()
        if name != leader and texts[name] == texts[leader]
    }
    assert 5 < len({leader for leader, _ in expected.values()}) < 30


def test_clusters_command(session, run, tmp_path, monkeypatch, capfdbinary):
    """The same lines as of the local engine, through the session that is there."""
    monkeypatch.chdir(ROOT)
    for emit, keep in (
        ("all", "longest"),
        ("keep", "shortest-path"),
        ("drop", None),
        ("all", None),
    ):
        options = ["sample_corpus", "-t", "0.7", *(["--keep", keep] if keep else [])]
        expected = run("clusters", *options, "--emit", emit, "--no-store", cwd=ROOT)
        code = on_spark("clusters", *options, "--emit", emit)
        out, err = capfdbinary.readouterr()
        assert (code, out) == (0, bare(expected.out) if emit == "all" else expected.out)
        for line in expected.err.splitlines()[-2:]:
            assert line.partition(" copies")[0].encode() in err
    with pytest.raises(ParameterError, match="'central', which Spark does not have"):
        on_spark("clusters", "sample_corpus", "--keep", "central")


# --- errors -----------------------------------------------------------------------------------


def test_errors(session, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(rows)

    def find(*names, **params):
        inputs.find_documents(session, names, DocumentParams(**params), ids=False)

    with pytest.raises(InputError, match="'nothing': No such file"):
        find(b"nothing")
    with pytest.raises(InputError, match="'/nothing': No such file"):
        find(b"file:/nothing")
    with pytest.raises(ParameterError, match="are for names on this machine"):
        find(b"hdfs://host/x", include=("*.txt",))
    for name, hint in (
        (b"nofs://x/y", "needs a package"),
        (b"s3a://x/y", "hadoop-aws"),
        (b"file:/[x/[[]*", "have a meaning in patterns"),
    ):
        with pytest.raises(InputError, match="cannot be looked up") as raised:
            find(name)
        assert hint in raised.value.hint
    with pytest.raises(InputError, match="no documents were named"):
        find()
    with pytest.raises(ParameterError, match="a name that comes from the data"):
        find(b"r.jsonl")
    by_spark(monkeypatch)
    with pytest.raises(InputError, match="does not exist"):
        find(b"file:/nothing")
    uri = os.fsencode(f"file:{rows}/p")
    with pytest.raises(InputError, match="there is no column 'words', but body, key"):
        find(uri, text_field="words", id_field="key")
    with pytest.raises(InputError, match="'key' is of type bigint"):
        find(uri, text_field="key", id_field="key")
    with pytest.raises(ParameterError, match="needs the whole collection"):
        make_recipe(sketch=SketchParams("linear"))
    with pytest.raises(ParameterError, match="verified exactly"):
        make_recipe(pair=PairParams("estimate"))
    with pytest.raises(InputError, match="Spark: "), one_line():
        session.sql("select no_such_column")


def test_columns(session):
    """Errors of columns are one line; a column may have any name."""
    documents = session.createDataFrame(
        [(("a",), "x y z", 1.0)], "`a.b` struct<c: string>, `back``tick` string, score double"
    )
    with pytest.raises(InputError, match="the documents are a list, and must be a DataFrame"):
        spark_pipeline.find_near_duplicates([("a", "x y z")])
    by_case = session.createDataFrame([("a", "x y z", "b")], "id string, text string, ID string")
    assert [bytes(row.id) for row in id_and_text(by_case, "id", "text").collect()] == [b"a"]
    with pytest.raises(InputError, match="the documents have 1 column, and need two"):
        spark_pipeline.find_near_duplicates(documents.select("score"))
    for id_field, text_field, said in (
        ("back`tick", "x", "no column 'x', but a.b, back`tick, score"),
        ("score", "back`tick", "'score' is of type double"),
        ("score.x", "back`tick", "no column 'score.x'"),
        ("back`tick", "no`ne", "no column 'no`ne'"),
    ):
        with pytest.raises(InputError, match=re.escape(said)):
            id_and_text(documents, id_field, text_field)
    named = session.createDataFrame(
        [(("k", None), "x y z")], "a struct<b: string, `c.d`: int>, `back``tick` string"
    )
    assert [
        tuple(map(bytes, row))
        for row in id_and_text(named.select("*"), "a.b", "back`tick").select("id").collect()
    ] == [(b"k",)]
    with pytest.raises(InputError, match=r"there is no column 'a\.x'"):
        id_and_text(named, "a.x", "back`tick")
    with pytest.raises(InputError, match="there are 2 columns 'back`tick'"):
        spark_pipeline.find_near_duplicates(named.select("`back``tick`", "`back``tick`"))


def test_no_java(run, tmp_path):
    require("spark", "pyspark")
    require("spark", "pandas")
    (tmp_path / "a.txt").write_text("a b c")
    said = run("pairs", "a.txt", "--engine", "spark", code=2, env={"JAVA_HOME": str(tmp_path)}).err
    assert "--engine spark needs Java" in said
    assert "openjdk-17" in said


# --- a cluster --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A standalone master and two workers on the loopback address: the master's URL."""
    require_spark()
    home = Path(require("spark", "pyspark").__file__).parent
    folder = tmp_path_factory.mktemp("cluster")
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOG_DIR": str(folder),
        "PYTHONPATH": str(ROOT),
        "SPARK_DAEMON_JAVA_OPTS": _JAVA,
        "SPARK_DAEMON_MEMORY": "256m",
    }
    started = []

    def start(role, *options):
        log = folder / f"{len(started)}.log"
        command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{role}"]
        command += ["-h", "127.0.0.1", "--webui-port", "0", *options]
        with log.open("wb") as out:
            process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=folder)
        started.append(process)
        return log

    def said(log, pattern):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if found := re.search(pattern, log.read_text()):
                return found
            time.sleep(0.2)
        raise AssertionError(log.read_text())

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    try:
        said(start("master.Master", "-p", str(port)), "I have been elected leader")
        workers = [start("worker.Worker", "-c", "1", "-m", "1g", master) for _ in range(2)]
        for worker in workers:
            said(worker, "Successfully registered with master")
        yield master
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)


def executors():
    """Process ids of executors of this machine's clusters on the loopback address."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command and b"@127.0.0.1:" in command:
                found.append(int(folder.name))
    return found


#: Commands in one session, one for each line of input: a session takes longer than a command.
COMMANDS_IN_TURN = """
import sys
from lshdup.spark import session as sparksession
from lshdup.cli.main import lshdup
settings = dict(each.split("=", 1) for each in sys.argv[2:])
with sparksession.session(sys.argv[1], settings):
    for line in sys.stdin:
        lshdup.main([*line.rstrip().split("|"), "--engine", "spark"], standalone_mode=False)
        print("done", file=sys.stderr, flush=True)
"""


@pytest.fixture(scope="module")
def master(cluster):
    """A function that runs a command on two executors, and kills one after a word on stderr."""
    settings = {
        **QUICK,
        "spark.sql.adaptive.enabled": "true",
        "spark.executor.memory": "512m",
        "spark.locality.wait": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
    }
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-c", COMMANDS_IN_TURN, cluster, *map("=".join, settings.items())]
    before = set(executors())
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:

        def send(arguments, kill_after=""):
            process.stdin.write("|".join(arguments) + "\n")
            process.stdin.flush()
            said = []
            for line in process.stderr:
                if line == "done\n":
                    break
                said.append(line)
                if kill_after and kill_after in line:
                    mine = sorted(set(executors()) - before)
                    assert len(mine) == 2
                    os.kill(mine[0], signal.SIGKILL)
                    kill_after = ""
            assert process.poll() is None, said
            assert not kill_after, said
            return said

        yield send
        process.stdin.close()


@pytest.mark.parametrize(
    ("kind", "options", "kill_after"),
    [
        ("class", ("--tokens", "terms", "-t", "0.9"), "signatures: fast"),
        ("pages", ("--tokens", "ids", "-t", "0.85"), "in buckets to be compared"),
        ("sample", ("-t", "0.7"), "signatures: fast"),
        ("sample groups", ("-t", "0.7", "--keep", "longest"), "in buckets to be compared"),
        ("sample", ("--measure", "containment"), "chance to miss"),
        ("sample", ("--measure", "containment"), "with candidates"),
    ],
)
def test_cluster_with_executors_killed(run, master, tmp_path, request, kind, options, kill_after):
    """With one of two executors killed in mid-job: the local answer, byte for byte."""
    if kind == "class":
        documents = str(class_copies(tmp_path)[0])
    else:
        documents = str(request.getfixturevalue("pages")[0]) if kind == "pages" else "sample_corpus"
    command = ["clusters" if "groups" in kind else "pairs", documents, *options]
    expected = run(*command, "--no-store", "-v", cwd=ROOT)
    out = tmp_path / "out.tsv"
    # The sketches are made, and kept by executors; or what is to be compared is.
    said = master([*command, "-o", str(out)], kill_after)
    assert out.read_bytes() == bare(expected.out)
    vary = r"[0-9,]+ candidate pairs?( -> )?|, [0-9,]+ bytes|; [0-9.]+ s.*|, none missed"
    last = [re.sub(vary, "", line) for line in (expected.err.splitlines()[-1], said[-1])]
    assert last[0].strip() == last[1].strip()


def test_spark_submit(run, tmp_path):
    """A script of two lines, as the README has it, and Parquet that Spark writes."""
    require_spark()
    pyspark, pq = require("spark", "pyspark"), require("spark", "pyarrow.parquet")
    (tmp_path / "run.py").write_text("from lshdup.cli.main import main\nmain()\n")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = [part for item in QUICK.items() for part in ("--conf", "=".join(item))]
    answer = tmp_path / "pairs.parquet"
    wanted = ["pairs", "sample_corpus", "-t", "0.9", "--engine", "spark", "-o", answer]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    process = subprocess.run(
        [submit, "--master", "local[2]", *options, tmp_path / "run.py", *wanted],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    rows = zip(*(column.to_pylist() for column in pq.read_table(answer).columns), strict=True)
    assert sorted((a, b, repr(similarity)) for a, b, similarity in rows) == local(
        run, "sample_corpus", "-t", "0.9"
    )
