"""What Spark's workers do with rows, and errors without Spark; no Java needed."""

import itertools
import subprocess
import sys
import zipfile
from contextlib import contextmanager

import click
import numpy as np
import pytest

from lshdup.base.params import SPARK_KEEP, ShingleParams
from lshdup.cli.commands.spark import settings_of
from lshdup.cli.main import load_command, lshdup
from lshdup.errors import InputError, ParameterError
from lshdup.kernels import bands as kernels
from lshdup.sources.records import RecordFields
from lshdup.spark import session as spark_session
from lshdup.spark import tile_workers, workers
from lshdup.spark.clusters import RULES, Clusters
from lshdup.spark.pipeline import make_recipe
from tests.conftest import ROOT, require

NO_KEY = np.frombuffer(tile_workers.NO_KEY, "<u8")[0]


def some_tiles(rng, groups):
    """Rows of tiles: (bucket, tile, side, before), random keys of few values."""
    rows = []
    for number in range(groups):
        band = int(rng.integers(0, 4))
        right = rng.integers(0, 2)
        for _ in range(int(rng.integers(1, 9))):
            side = tile_workers.WITHIN if not right else int(rng.integers(1, 3))
            rows.append((number, side, rng.choice(np.array([0, 1, 2, NO_KEY], np.uint64), band)))
    return sorted(rows, key=lambda row: row[:2])


def tile_rows(buckets, sides, ids, before, sets=None):
    """Return a table of TILES, with sets (bytes, or None) if there are any."""
    pa = require("spark", "pyarrow")
    columns = {
        "bucket": pa.array(buckets, pa.int64()), "tile": pa.array([0] * len(ids), pa.int64()),
        "side": pa.array(sides, pa.int32()), "id": pa.array(ids, pa.binary()),
        "before": pa.array(before, pa.binary()),
    }  # fmt: skip
    return pa.table(columns if sets is None else columns | {"set": pa.array(sets, pa.binary())})


def verified(ids, sets):
    """Verify the rows of one block of one bucket, of its first band."""
    n = len(ids)
    rows = tile_rows([7] * n, [tile_workers.WITHIN] * n, ids, [b""] * n, sets)
    return list(tile_workers.verified_rows(make_recipe(), iter(rows.to_batches())))


def reference_pairs(rows):
    sides = {(tile_workers.WITHIN,) * 2, (tile_workers.LEFT, tile_workers.RIGHT)}
    for (p, a), (q, b) in itertools.combinations(enumerate(rows), 2):
        together = a[0] == b[0] and (a[1], b[1]) in sides
        if together and not ((a[2] == b[2]) & (a[2] != NO_KEY)).any():
            yield p, q


@pytest.mark.parametrize("seed", range(20))
def test_kernels_of_tiles(seed):
    rng = np.random.default_rng(seed)
    rows = some_tiles(rng, 12)
    keys = np.concatenate([row[2] for row in rows] or [[]]).astype(np.uint64)
    offsets = np.concatenate([[0], np.cumsum([len(row[2]) for row in rows])]).astype(np.int64)
    numbers = np.array([row[0] for row in rows])
    starts = np.append(np.flatnonzero(np.diff(numbers, prepend=-1)), len(rows))
    splits = []
    for start, end in itertools.pairwise(starts.tolist()):
        sides = [row[1] for row in rows[start:end]]
        split = start + sides.count(tile_workers.LEFT)
        splits.append(kernels.ONE_BLOCK if sides[0] == tile_workers.WITHIN else split)
    splits = np.array(splits)
    state, found = np.array([0, -1, 0]), []
    left, right = np.empty(3, np.uint32), np.empty(3, np.uint32)
    while state[0] < len(splits):
        n = kernels.tile_pairs(keys, offsets, starts, splits, state, left, right)
        found += zip(left[:n].tolist(), right[:n].tolist(), strict=True)
    assert found == list(reference_pairs(rows))
    unmet = np.zeros(len(rows), np.uint8)
    kernels.mark_unmet(keys, offsets, starts, splits, unmet)
    assert set(np.flatnonzero(unmet).tolist()) == {row for pair in found for row in pair}


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_tiles_are_whole_whatever_the_batches(monkeypatch, size):
    pa = require("spark", "pyarrow")
    rng = np.random.default_rng(size)
    rows = some_tiles(rng, 40)
    buckets, sides, keys = zip(*rows, strict=True)
    ids = [b"%d" % i for i in range(len(rows))]
    table = tile_rows(buckets, sides, ids, [each.astype("<u8").tobytes() for each in keys])
    whole = pa.Table.from_batches(tile_workers.unmet_rows(iter(table.to_batches())))
    monkeypatch.setattr(tile_workers, "ROWS", 5)
    batches = iter(table.to_batches(max_chunksize=size))
    cut = pa.Table.from_batches(tile_workers.unmet_rows(batches))
    assert cut.combine_chunks().equals(whole.combine_chunks())
    expected = sorted({row for pair in reference_pairs(rows) for row in pair})
    assert whole.column("id").to_pylist() == [b"%d" % i for i in expected]


def test_a_shipped_package_knows_its_kernels(tmp_path):
    """With --py-files the package is a zip file; another one must not run its machine code."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); from lshdup.kernels.native import pack; "
    code += "print(pack.__file__, pack.digest_of_sources())"
    stamps = []
    for number in range(2):
        archive = tmp_path / f"{number}.zip"
        with zipfile.ZipFile(archive, "w") as packed:
            for path in sorted((ROOT / "lshdup").rglob("*.py")):
                change = f"\n# {number}" if path.name == "sets.py" else ""
                packed.writestr(str(path.relative_to(ROOT)), path.read_text("utf-8") + change)
        command = [sys.executable, "-I", "-c", code, str(archive)]
        place, stamp = subprocess.check_output(command, text=True, cwd=tmp_path).split()
        assert place.startswith(str(archive))
        stamps.append(stamp)
    assert stamps[0] != stamps[1]


def documents_of(pa, texts, **more):
    """Return a batch of DOCUMENTS."""
    none = pa.nulls(len(texts), pa.string())
    columns = {
        "id": pa.array(list(texts), pa.binary()), "text": pa.array([*texts.values()], pa.binary()),
        "plain": pa.array([False] * len(texts)), "reason": none, "detail": none,
    }  # fmt: skip
    return pa.RecordBatch.from_pydict(columns | more)


def test_what_is_skipped():
    """A row without id or text, a text that is too large, and a reason that Spark's reader has."""
    pa = require("spark", "pyarrow")
    cases = {
        b"a": (b"a few words", None, 1, None), b"": (b"x", None, 0, "row without id"),
        b"null": (None, None, 0, "row whose text is null"), b"few": (b"x y", None, 0, None),
        b"large": (b"x " * 50, None, 0, "too large"), b"gone": (None, "vanished", 0, "vanished"),
        b"largest": (b"one two ".ljust(60, b"x"), None, 1, None),
    }  # fmt: skip
    recipe = make_recipe(ShingleParams(min_tokens=3), max_bytes=60)
    reasons = pa.array([reason for _, reason, *_ in cases.values()], pa.string())
    batch = documents_of(pa, {key: text for key, (text, *_) in cases.items()}, reason=reasons)
    made = pa.Table.from_batches(workers.sketch_rows(recipe, iter([batch]))).to_pylist()
    found = {row["id"]: (row["size"], row["reason"]) for row in made}
    assert found == {key: case[2:] for key, case in cases.items()}


def test_lines_of_json():
    """Blank lines are none; a bad line is called by its file, and costs no other."""
    pa = require("spark", "pyarrow")
    lines = [b'{"key": "b", "body": "' + b"x" * 50, b"none", b" ", b'{"key": "a", "body": "x"}']
    batch = pa.RecordBatch.from_pydict({"line": lines, "file": [b"hdfs://h/a%20b.jsonl"] * 4})
    (made,) = workers.json_rows(RecordFields("body", "key"), 60, iter([batch]))
    assert [(row["id"], row["text"], row["reason"]) for row in made.to_pylist()] == [
        (b"hdfs://h/a b.jsonl", None, "too large"),
        (b"hdfs://h/a b.jsonl", None, "row that is no JSON object"),
        (b"a", b"x", None),
    ]


def test_what_is_too_large_for_arrow(monkeypatch):
    pa = require("spark", "pyarrow")
    monkeypatch.setattr(workers, "ARROW_BYTES", 200)
    monkeypatch.setattr(tile_workers, "ARROW_BYTES", 200)
    long = documents_of(pa, {b"long": b" ".join(b"x%d" % j for j in range(100))})
    with pytest.raises(InputError, match="'long' has 98 shingles, more than Spark can"):
        list(workers.set_rows(make_recipe(), iter([long])))
    with pytest.raises(InputError, match=r"the ids of 2 documents .* more than Arrow can hold"):
        verified([b"x" * 150, b"y" * 150], [np.arange(5).tobytes()] * 2)


def test_what_was_read_once_and_not_again_is_an_error():
    """Its pairs would be lost in silence."""
    with pytest.raises(InputError, match="'q' was read once, and could not be read the second"):
        verified([b"p", b"q"], [np.arange(5, dtype="<u8").tobytes(), None])


def test_pairs_are_handed_on_in_pieces(monkeypatch):
    pa = require("spark", "pyarrow")
    ids = [b"%02d" % i for i in range(12)]
    monkeypatch.setattr(tile_workers, "PAIRS_AT_ONCE", 10)
    monkeypatch.setattr(tile_workers, "CANDIDATES_AT_ONCE", 25)
    given = verified(ids, [np.arange(5, dtype="<u8").tobytes()] * 12)
    table = pa.Table.from_batches(given)
    assert max(map(len, given)) == 10
    found = zip(table["a"].to_pylist(), table["b"].to_pylist(), strict=True)
    assert list(found) == list(itertools.combinations(ids, 2))


# --- errors -----------------------------------------------------------------------------------

TRACE = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: {}
\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala:3281)
"""


@pytest.mark.parametrize(
    ("error", "said", "hint"),
    [
        (TRACE.format("java.lang.RuntimeException: no"), "Spark: RuntimeException: no", ""),
        ("[PATH_NOT_FOUND] Path does not exist: x", "Spark: [PATH_NOT_FOUND] Path", "that exist"),
        (TRACE.format("java.lang.OutOfMemoryError: heap"), "OutOfMemoryError", "executor.memory"),
        ("x\nlshdup.errors.InputError: 'a' is read\n\tat y", "'a' is read", ""),
        (ConnectionRefusedError(111, "Connection refused"), "driver, which is Java", "driver.mem"),
        ("Py4JNetworkError: Error while sending", "driver, which is Java, ended", "driver.memory="),
        ("An error occurred while calling o1.x", "driver, which is Java, ended", "driver.memory="),
    ],
)
def test_errors_are_one_line(error, said, hint):
    protocol = require("spark", "py4j.protocol")
    require("spark", "pyspark")
    raised = error if isinstance(error, Exception) else protocol.Py4JError(error)
    if str(error).startswith("Py4JNetworkError"):
        raised = protocol.Py4JNetworkError(error)
    with pytest.raises(InputError) as found, spark_session.one_line():
        raise raised
    assert said in found.value.message
    assert "\n" not in found.value.message
    assert hint in found.value.hint


def test_rules_of_clusters():
    assert tuple(RULES) == SPARK_KEEP
    assert Clusters(None)._rank == RULES[SPARK_KEEP[0]]
    with pytest.raises(ParameterError, match="--keep is 'newest', which Spark does not have"):
        Clusters(None, "newest")


def test_settings_of_spark():
    typed = ("spark.executor.memory=4g", "a.extraJavaOptions=-Xa=b -Xb", "")
    expected = {"spark.executor.memory": "4g", "a.extraJavaOptions": "-Xa=b -Xb"}
    assert settings_of(typed) == expected
    with pytest.raises(ParameterError, match="it must be a setting and its value"):
        settings_of(("x",))


def test_without_pyspark(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    said = refused("spark pairs a.txt -o o.jsonl").splitlines()[-1]
    assert said.startswith("lshdup: error: `lshdup spark` needs pyspark")
    assert said.endswith(" pip install 'lshdup[spark]'")


#: Options of `lshdup spark`, and a value of each that is not the default.
SHOWN = """
--output other.jsonl | --min-tokens 5 | --max-bytes 100 | --text-field body | --id-field key
--encoding cp437 | --markup keep | --mail | --mail-headers | --mail-quotes drop
--tokens char | --shingle-size 2 | --bag | --keep-case | --no-normalize | --join-hyphens
--fold marks | --noisy | --max-bucket 3 | --master local[1] | --spark-conf a=b | --quiet
--scheme classic | --perms 64 | --seed 2 | --threshold 0.5 | --recall 0.5 | --bands 5 | --rows 4
"""

#: Those that change only what is made of the comparison, which needs Spark, or what is said.
ELSEWHERE = {"--collapse-copies", "--keep", "--verbose", "--color", "-h"}


class GivenError(Exception):
    """Ends a run where Spark would begin to compare."""


@pytest.fixture
def given(monkeypatch):
    """What reaches Spark of a command line, as a function of its options."""
    for package in ("pyarrow", "pyspark", "py4j.protocol"):
        require("spark", package)
    from lshdup.spark import files, pipeline

    told = []

    @contextmanager
    def session(master, settings, *, quiet):
        told.append((master, settings, quiet))
        yield

    def compare(_, *recipe):
        told.append(recipe)
        raise GivenError

    monkeypatch.setattr(spark_session, "session", session)
    monkeypatch.setattr(spark_session, "set_partitions", lambda *_: None)
    monkeypatch.setattr(files, "refuse_existing", lambda _, output: told.append(output))
    monkeypatch.setattr(files, "find_documents", lambda _, *found: told.append(found))
    monkeypatch.setattr(pipeline, "Comparison", compare)

    def give(command, *words):
        told.clear()
        line = ["spark", command, "x.jsonl", "-o", "o.jsonl", *words]
        with pytest.raises(GivenError):
            lshdup.main(line, standalone_mode=False)
        return list(map(str, told))

    return give


@pytest.mark.parametrize("command", ["pairs", "clusters"])
def test_every_option_reaches_spark(given, monkeypatch, command):
    lines = [each.split() for each in SHOWN.strip().replace("\n", " | ").split(" | ")]
    params = load_command("spark").commands[command].params
    options = {max(each.opts, key=len) for each in params if isinstance(each, click.Option)}
    assert options - ELSEWHERE == {option for option, *_ in lines} | {"--hash-key"}
    plain = given(command)
    assert len(plain) == 4
    for words in lines:
        assert given(command, *words) != plain, words
    monkeypatch.setenv("LSHDUP_HASH_KEY", "0123456789abcdef")
    assert given(command) != plain
