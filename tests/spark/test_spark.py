"""Spark gives the answers of the local engine: from every kind of input, on a cluster, after a lost
executor.

The tests need pyspark and Java; without them they are skipped. One session serves most tests. They
take minutes, so they run only on request: `pytest -m spark`. Tests without Java are in
test_workers.py.
"""

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
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from lshdup.base.params import SPARK_KEEP, BandParams
from lshdup.errors import InputError, LshdupError
from lshdup.spark import clusters as spark_clusters
from lshdup.spark import pipeline as spark_pipeline
from lshdup.spark import session as spark_session
from lshdup.spark import tiles as spark_tiles
from tests.cli.test_untouched import state
from tests.conftest import ROOT, require, write_files
from tests.running import clean_environment

#: Of PySpark 4.0: sockets that it leaves to the collector of garbage.
_SOCKETS = "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings(_SOCKETS)]

#: Most of a small run is the start of Java: no compiler for hot code, no verifier, one collector.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
_JAVA += "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"

#: And no generated code, no page to look at, few partitions.
QUICK = {
    **dict.fromkeys([f"spark.{each}.extraJavaOptions" for each in ("driver", "executor")], _JAVA),
    **dict.fromkeys(["spark.sql.shuffle.partitions", "spark.default.parallelism"], "2"),
    **dict.fromkeys(["spark.ui.enabled", "spark.sql.adaptive.enabled"], "false"),
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

#: The fields of the rows of `here`.
FIELDS = ("--text-field", "body", "--id-field", "key")


def require_spark():
    """Skip without pyspark, its packages and Java."""
    for package in ("pyspark", "pandas", "pyarrow"):
        require("spark", package)
    if shutil.which("java") is None:
        pytest.skip("there is no Java")


@pytest.fixture(scope="module")
def session():
    require_spark()
    path = dict.fromkeys([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    with spark_session.session("local[2]", QUICK, quiet=True) as started:
        yield started


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


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder of files, of rows, and of both, some of them bad."""
    pa, pq = require("spark", "pyarrow"), require("spark", "pyarrow.parquet")
    folder = tmp_path_factory.mktemp("here")
    texts = texts_of(60)
    for name in ("files", "p.parquet", "mixed[1]"):
        (folder / name).mkdir()
    endings = (".txt", ".html", "", " %20.txt") * 15
    names = [name + ending for name, ending in zip(texts, endings, strict=True)]
    names[:6] = ["x/a.txt", "x/b (2).txt", "x/ü.txt", "x/y/c.txt", "#.txt", "Copy of d.txt"]
    for name, text in zip(names, texts.values(), strict=True):
        path = folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<p hidden>{text}</p><p>{text}" if name.endswith("html") else text)
    program = "int f(int a) { if (a < 1) return -1; return a; }"
    others = {"program.c": program, "program2.c": program.replace("<", ">")}
    write_files(folder / "files", others | {"bin": "x\0y" * 99, "few.txt": "few words"})
    bad = '{"key": "x"}\n{"key": "y", "body": 5}\nno json\n{"body": "a b c"}\n'
    keys = [f"é {name}" if number % 2 else number for number, name in enumerate(texts)]
    rows = zip(keys, texts.values(), strict=True)
    lines = [json.dumps({"key": key, "body": text, "more": "a b c"}) for key, text in rows]
    (folder / "r.jsonl").write_text("\n\n".join(lines) + "\n" + bad)
    columns = {"body": [*texts.values(), None], "key": [*range(60), 999]}
    table = pa.table(columns | {"more": ["a b c"] * 30 + [None] * 31})
    pq.write_table(table.slice(0, 40), folder / "p.parquet/one.parquet")
    pq.write_table(table.slice(40), folder / "p.parquet/two.parquet")
    mixed = folder / "mixed[1]"
    (mixed / "z.jsonl.gz").write_bytes(gzip.compress("\n".join(lines[:9]).encode()))
    (mixed / "a.ndjson").write_text("\n".join(lines[9:18]) + "\n" + "x" * 3000)
    odd = {"key": ["odd1", "odd2"], "body": [b"\x81\xff words", lines[0].encode()]}
    pq.write_table(pa.table(odd), mixed / "odd.parquet")
    (mixed / "notes.txt").write_text(texts["d001"])
    return folder


def local(run, command, folder, *arguments, code=0):
    """Return lines of JSON that the local engine prints, without what Spark does not make."""
    printed = run(command, *arguments, "--no-store", "--format", "jsonl", cwd=folder, code=code)
    return [json.loads(line) for line in printed.out.splitlines()]


def on_spark(*arguments, out, code=0):
    """Run a command in this process, through the session that is there; return the rows."""
    from lshdup.cli.main import lshdup

    shutil.rmtree(out, ignore_errors=True)
    words = ["spark", *arguments, "-o", str(out)]
    assert (lshdup.main(words, standalone_mode=False) or 0) == code
    return rows_in(out) if out.suffix == ".jsonl" else []


def rows_in(out):
    lines = (line for part in out.glob("part-*") for line in part.read_text().splitlines())
    return list(map(json.loads, lines))


def same(command, found, expected):
    return (same_pairs if command == "pairs" else same_clusters)(found, expected)


def same_pairs(found, expected):
    """Hold pairs against those of the local engine, which orders rows by their numbers."""
    ends = (sorted((row["a"], row["b"]), key=lambda name: str(name).encode()) for row in expected)
    rows = [(*each, row["similarity"]) for each, row in zip(ends, expected, strict=True)]
    assert sorted((row["a"], row["b"], row["similarity"]) for row in found) == sorted(rows)
    return len(rows)


def same_clusters(found, expected):
    """Hold a row for each document against the listing of the local engine."""
    leaders = {row["group"]: row["name"] for row in expected if row["role"] == "keep"}
    listed = {row["id"]: (row["representative"], row["similarity"], row["copy"]) for row in found}
    wanted = {name: (name, 1.0, False) for name in listed}  # those that are alone
    for row in expected:
        wanted[row["name"]] = leaders[row["group"]], row["similarity"], bool(row["copy"])
    assert listed == wanted
    return len(expected)


@pytest.fixture
def small(monkeypatch):
    """Buckets, sets of exact duplicates and rounds are cut, and nothing is broadcast."""
    monkeypatch.setattr(spark_tiles, "BLOCK_DOCUMENTS", 7)
    monkeypatch.setattr(spark_tiles, "BROADCAST_ROWS", 0)
    monkeypatch.setattr(spark_pipeline, "BLOCK_COPIES", 4)
    monkeypatch.setattr(spark_clusters, "FEW_PAIRS", 25)


#: Command lines, of which Spark and the local engine give the same answer.
SAME = {
    "sample": "pairs sample_corpus -t 0.5",
    "copies": "pairs files -t 0.7 --collapse-copies --perms 64 --seed 3",
    "files": "pairs ./files// -t 0.6",
    "symbols": "pairs files -t 0.5 --tokens symbols -k 2 --bag --min-tokens 5",
    "bands": "pairs files -t 0.6 --bands 5 --rows 8 --scheme classic --markup keep --keep-case",
    "large buckets": "pairs files -t 0.6 --max-bucket 10",
    "lines": "pairs r.jsonl FIELDS -t 0.6",
    "parquet": "pairs p.parquet FIELDS -t 0.6",
    "fields": "pairs p.parquet --text-field more,body --id-field key -t 0.6",
    "mixed": "pairs mixed[1] FIELDS -t 0.6 --max-bytes 2000",
    **{keep: f"clusters sample_corpus -t 0.6 --keep {keep}" for keep in SPARK_KEEP[2:]},
    "groups": "clusters files -t 0.6",
}


@pytest.mark.parametrize("case", SAME)
def test_the_same_answer(session, run, here, tmp_path, monkeypatch, case):
    code = 2 if case in ("lines", "mixed") else 0  # rows that are skipped
    command, *words = SAME[case].replace("FIELDS", " ".join(FIELDS)).split()
    folder = ROOT if words[0] == "sample_corpus" else here
    monkeypatch.chdir(folder)
    expected = local(run, command, folder, *words, code=code)
    inputs = sorted(here.iterdir())
    documents = state(*inputs)
    found = on_spark(command, *words, out=tmp_path / "out.jsonl", code=code)
    assert state(*inputs) == documents
    assert same(command, found, expected) > 0


@pytest.mark.parametrize(("command", "keep"), [("pairs", ()), ("clusters", ("--keep", "longest"))])
def test_a_skewed_bucket_is_cut(session, small, run, here, tmp_path, monkeypatch, command, keep):
    """One key, and one set of exact duplicates, over many tasks: every pair once."""
    monkeypatch.chdir(here)
    words = ["p.parquet", *FIELDS, "-t", "0.6", *keep]
    expected = local(run, command, here, *words)
    found = on_spark(command, *words, out=tmp_path / "out.jsonl")
    assert same(command, found, expected) > 20


def test_stages_of_a_skewed_bucket(session, small):
    """The tests above do cut buckets, and cover documents before pairs."""
    documents = session.createDataFrame(list(texts_of(60).items()), "id string, text string")
    with spark_pipeline.find_near_duplicates(documents, band=BandParams(0.6)) as found:
        assert spark_tiles.candidate_rows(found.compared).select("tile").distinct().count() > 5
        early = spark_clusters.Clusters(found, "longest").covered_early
        assert early is not None
        assert early.count() > 5
    assert not any(rows.storageLevel.useMemory for rows in found._cached)


def test_other_columns_and_patterns(session, run, here, tmp_path):
    """URIs and patterns are as Spark spells them."""
    out = tmp_path / "out.jsonl"
    found = on_spark("pairs", f"file:{here}/files/x/*.txt", "-t", "0.1", out=out)
    assert found
    assert all(row["a"].startswith(f"file:{here}/files/x/") for row in found)
    by_uri = on_spark("pairs", f"file://{here}/files", "-t", "0.6", out=out)
    expected = local(run, "pairs", here, "files", "-t", "0.6")
    for row in by_uri:
        row["a"], row["b"] = (row[side].removeprefix(f"file://{here}/") for side in "ab")
    same_pairs(by_uri, expected)


@pytest.mark.parametrize(
    ("first", "kind"), [("é".encode(), "string"), (b"\xff", "binary")], ids=["UTF-8", "other"]
)
def test_names_in_parquet(session, tmp_path, first, kind):
    """Strings, but where a name is bytes that no string holds."""
    pq = require("spark", "pyarrow.parquet")
    rows = [(first, "x y z u"), (b"a", "x y z u"), (b"b", "o t h e r")]
    path, out = f"{tmp_path}/in.parquet", tmp_path / "out.parquet"
    session.createDataFrame(rows, "id binary, text string").write.parquet(path)
    on_spark("pairs", path, "--id-field", "id", out=out)
    answer = pq.read_table(out)
    assert [str(each) for each in answer.schema.types] == [kind, kind, "double"]
    names = [name.decode() if kind == "string" else name for name in (b"a", first)]
    assert answer.to_pylist() == [{"a": names[0], "b": names[1], "similarity": 1.0}]


@pytest.mark.parametrize(("texts", "pairs"), [(["x y z", "x y z", "u v w"], 1), (["", " "], 0)])
def test_nothing_near(session, texts, pairs):
    """Without pairs, or with pairs of exact duplicates only, there is an answer with counts."""
    rows = [(str(number), text) for number, text in enumerate(texts)]
    documents = session.createDataFrame(rows, "id string, text string")
    compared = sum(bool(text.strip()) for text in texts)
    with spark_pipeline.find_near_duplicates(documents) as found:
        assert found.summary()[:3:2] == (len(texts), len(texts) - compared)
        assert found.pairs().count() == found.pairs(collapse=True).count() == pairs
        counts = spark_clusters.Clusters(found).counts()
        assert counts == (pairs, compared - pairs, pairs, pairs)


#: Command lines that are an error, and what is said.
ERRORS = {
    "pairs nothing -o out.jsonl": "does not exist",
    "pairs nofs:///x -o out.jsonl": "nofs",
    "pairs r.jsonl -o out.jsonl": "the rows of r.jsonl need a name",
    "pairs x.csv -o out.jsonl": "reads Parquet, JSON Lines, text and HTML",
    "pairs files -o files": "-o is 'files', and Spark writes folders of",
    "pairs files -o HERE/p.parquet": "p.parquet exists already",
    "pairs files --tokens ids -o out.jsonl": "are not for Spark",
    "pairs p.parquet --id-field no -o out.jsonl": "there is not one column 'no', but body",
    "pairs p.parquet --id-field key --text-field key -o out.jsonl": "'key' is of type bigint",
    "pairs p.parquet p.parquet FIELDS -o out.jsonl": "the id '0' is that of 2 documents",
}


@pytest.mark.parametrize("line", ERRORS)
def test_errors(session, here, monkeypatch, line):
    from lshdup.cli.main import lshdup

    monkeypatch.chdir(here)
    words = line.replace("FIELDS", " ".join(FIELDS)).replace("HERE", str(here)).split()
    with pytest.raises(LshdupError) as raised:
        lshdup.main(["spark", *words], standalone_mode=False)
    assert ERRORS[line] in raised.value.message
    assert "\n" not in raised.value.message


def test_columns(session):
    """A column may have any name; what is no table of texts is refused."""
    rows = [((7,), "x y z", 1.0)]
    documents = session.createDataFrame(rows, "`a.b` struct<c: int>, `back``tick` string, s double")
    find = spark_pipeline.find_near_duplicates
    chosen = documents.selectExpr("`a.b`.c as `i.d`", "`back``tick`")
    assert [bytes(row.id) for row in find(chosen).sketches.collect()] == [b"7"]
    for wrong, said in (
        ([("a", "x")], "the documents are a list"),
        (documents.select("s"), "have 1 column, and need two"),
        (documents.selectExpr("s", "`back``tick`"), "'s' is of type double"),
    ):
        with pytest.raises(InputError, match=said):
            find(wrong)


# --- processes ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """A standalone master and two workers on the loopback address: the master's URL."""
    require_spark()
    home = Path(require("spark", "pyspark").__file__).parent
    folder = tmp_path_factory.mktemp("cluster")
    environment = clean_environment() | {
        "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOG_DIR": str(folder),
        "SPARK_DAEMON_JAVA_OPTS": _JAVA, "SPARK_DAEMON_MEMORY": "256m",
    }  # fmt: skip
    started = []

    def start(role, *options):
        log = folder / f"{len(started)}.log"
        command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{role}"]
        command += ["-h", "127.0.0.1", "--webui-port", "0", *options]
        with log.open("wb") as out:
            process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=folder)
        started.append(process)
        return log

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    try:
        wait_for(start("master.Master", "-p", str(port)), "I have been elected leader")
        workers = [start("worker.Worker", "-c", "1", "-m", "1g", url) for _ in range(2)]
        for worker in workers:
            wait_for(worker, "Successfully registered with master")
        yield url
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)


def wait_for(log, text):
    until = time.monotonic() + 60
    while text not in log.read_text():
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.2)


def java_of(mark, word=b""):
    """Ids of processes of Java with a word in the command line, and a mark in the environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            marked = mark.encode() in (folder / "environ").read_bytes()
        except OSError:
            continue
        if command.partition(b"\0")[0].endswith(b"/java") and word in command and marked:
            found.append(int(folder.name))
    return found


@contextmanager
def started(folder, *words, until, settings=QUICK):
    """Start the command on the sample corpus in a session of its own, with the folder as a mark in
    its environment, and wait for a text on stderr.
    """
    words = [*words, "sample_corpus", "-o", f"{folder}/out.jsonl"]
    words += [part for item in settings.items() for part in ("--spark-conf", "=".join(item))]
    more = {"MARK": str(folder), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with subprocess.Popen(
        [sys.executable, "-m", "lshdup", "spark", *words],
        cwd=ROOT, env=clean_environment() | more, start_new_session=True, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        said = ""
        while until not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        yield process


LOCALLY = ("pairs", "--master", "local[2]")


def test_an_executor_is_lost(run, master, tmp_path):
    """With one of two executors killed in mid-job, of pairs and of groups: the local answer."""
    settings = QUICK | {
        "spark.sql.adaptive.enabled": "true", "spark.executor.memory": "512m",
        "spark.locality.wait": "0", "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1", "spark.executorEnv.MARK": str(tmp_path),
    }  # fmt: skip
    words = ["clusters", "-t", "0.7", "--master", master]
    # The sketches are made, and kept by executors.
    with started(tmp_path, *words, until="signatures: fast", settings=settings) as process:
        executors = java_of(str(tmp_path), b"CoarseGrainedExecutorBackend")
        assert len(executors) == 2
        os.kill(executors[0], signal.SIGKILL)
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    expected = local(run, "clusters", ROOT, "sample_corpus", "-t", "0.7")
    assert same_clusters(rows_in(tmp_path / "out.jsonl"), expected) > 0


def test_rounds_that_are_lost_begin_again(session, here, tmp_path, monkeypatch, capsys):
    made, failing = spark_clusters.Clusters._decide, [True]

    def decide(self, undecided):
        if failing and failing.pop():
            message = "Checkpoint block rdd_1_0 not found!"
            raise RuntimeError(message)
        return made(self, undecided)

    monkeypatch.setattr(spark_clusters.Clusters, "_decide", decide)
    rows = on_spark("clusters", f"{here}/p.parquet", *FIELDS, out=tmp_path / "out.jsonl")
    assert len(rows) == 60
    assert "they begin again" in capsys.readouterr().err


def test_an_interrupt(here, tmp_path):
    """One line of ours, perhaps with words of Spark behind it, and no Java that is left."""
    mark = str(tmp_path)
    with started(tmp_path, *LOCALLY, until="chance to miss") as process:
        time.sleep(0.2)  # Spark has begun, and takes seconds.
        os.killpg(process.pid, signal.SIGINT)
        output, said = process.communicate(timeout=60)
    assert len(re.findall("^lshdup: interrupted; ", said, re.MULTILINE)) == 1
    assert "Traceback" not in said
    assert (process.returncode, output) == (130, "")
    until = time.monotonic() + 30
    while java_of(mark) and time.monotonic() < until:
        time.sleep(0.1)  # it ends when it reads the end of its pipe
    assert not java_of(mark)


def test_java_that_is_killed(tmp_path):
    with started(tmp_path, *LOCALLY, until="chance to miss") as process:
        for number in java_of(str(tmp_path)):
            os.kill(number, signal.SIGKILL)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "lshdup: error: Spark's driver, which is Java, ended" in said


def test_spark_submit(run, tmp_path):
    """A script of two lines, as the page has it, and Parquet that Spark writes."""
    require_spark()
    pq = require("spark", "pyarrow.parquet")
    (tmp_path / "run.py").write_text("from lshdup.cli.main import program\nprogram()\n")
    submit = Path(require("spark", "pyspark").__file__).parent / "bin" / "spark-submit"
    settings = QUICK | {"spark.sql.adaptive.enabled": "true"}
    settings.pop("spark.sql.shuffle.partitions")  # the number follows from the size of the input
    options = [part for item in settings.items() for part in ("--conf", "=".join(item))]
    answer = tmp_path / "pairs.parquet"
    wanted = ["spark", "pairs", "sample_corpus", "-t", "0.9", "-o", answer]
    process = subprocess.run(
        [submit, "--master", "local[2]", *options, tmp_path / "run.py", *wanted],
        cwd=ROOT, env=clean_environment() | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    expected = local(run, "pairs", ROOT, "sample_corpus", "-t", "0.9")
    same_pairs(pq.read_table(answer).to_pylist(), expected)


def test_no_java(run, tmp_path):
    require_spark()
    words = ["spark", "pairs", "a.txt", "-o", "out.jsonl"]
    said = run(*words, code=2, env={"JAVA_HOME": str(tmp_path)}).err
    assert "error: Spark did not start: " in said
    assert "openjdk-17" in said
