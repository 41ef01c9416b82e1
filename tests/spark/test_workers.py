"""What Spark's workers do with rows, and errors without Spark; no Java needed."""

import itertools
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from lshdup.documents.finding import Finder
from lshdup.documents.records import Kind, RecordFields
from lshdup.errors import InputError
from lshdup.kernels import tiles
from lshdup.params import DocumentParams
from lshdup.skipped import Reason
from lshdup.spark import caching
from lshdup.spark.recipe import make_recipe
from lshdup.spark.workers import documents as worker_documents
from lshdup.spark.workers import pairs as worker_pairs
from lshdup.spark.workers import sets as worker_sets
from tests.conftest import ROOT, require

NO_KEY = np.frombuffer(worker_pairs.NO_KEY, "<u8")[0]


def some_tiles(rng, groups):
    """Rows of tiles: (bucket, tile, side, before), random keys of few values."""
    rows = []
    for number in range(groups):
        band = int(rng.integers(0, 4))
        right = rng.integers(0, 2)
        for _ in range(int(rng.integers(1, 9))):
            side = worker_pairs.WITHIN if not right else int(rng.integers(1, 3))
            rows.append((number, side, rng.choice(np.array([0, 1, 2, NO_KEY], np.uint64), band)))
    return sorted(rows, key=lambda row: row[:2])


def tile_rows(buckets, sides, ids, before, sets=None):
    """Return a table of TILES, with sets (bytes, or None) if there are any."""
    pa = require("spark", "pyarrow")
    columns = {
        "bucket": pa.array(buckets, pa.binary()),
        "tile": pa.array([0] * len(ids), pa.int64()),
        "side": pa.array(sides, pa.int32()),
        "id": pa.array(ids, pa.binary()),
        "before": pa.array(before, pa.binary()),
    }
    return pa.table(columns if sets is None else columns | {"set": pa.array(sets, pa.binary())})


def one_tile(ids, sets):
    """Return the rows of one block of one bucket, of its first band."""
    n = len(ids)
    return tile_rows([b"b"] * n, [worker_pairs.WITHIN] * n, ids, [b""] * n, sets)


def reference_pairs(rows):
    for (p, a), (q, b) in itertools.combinations(enumerate(rows), 2):
        apart = a[1] == b[1] == worker_pairs.WITHIN or (a[1], b[1]) == (
            worker_pairs.LEFT,
            worker_pairs.RIGHT,
        )
        if a[0] == b[0] and apart and not ((a[2] == b[2]) & (a[2] != NO_KEY)).any():
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
        splits.append(
            tiles.ONE_BLOCK
            if sides[0] == worker_pairs.WITHIN
            else start + sides.count(worker_pairs.LEFT)
        )
    splits = np.array(splits)
    state, found = np.array([0, -1, 0]), []
    left, right = np.empty(3, np.uint32), np.empty(3, np.uint32)
    while state[0] < len(splits):
        n = tiles.tile_pairs(keys, offsets, starts, splits, state, left, right)
        found += zip(left[:n].tolist(), right[:n].tolist(), strict=True)
    assert found == list(reference_pairs(rows))
    unmet = np.zeros(len(rows), np.uint8)
    tiles.mark_unmet(keys, offsets, starts, splits, unmet)
    assert set(np.flatnonzero(unmet).tolist()) == {
        row for pair in reference_pairs(rows) for row in pair
    }


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_tiles_are_whole_whatever_the_batches(monkeypatch, size):
    pa = require("spark", "pyarrow")
    rng = np.random.default_rng(size)
    rows = some_tiles(rng, 40)
    table = tile_rows(
        [b"%03d" % row[0] for row in rows],
        [row[1] for row in rows],
        [b"%d" % i for i in range(len(rows))],
        [row[2].astype("<u8").tobytes() for row in rows],
    )
    whole = pa.Table.from_batches(worker_pairs.unmet_rows(iter(table.to_batches())))
    monkeypatch.setattr(worker_pairs, "ROWS", 5)
    batches = iter(table.to_batches(max_chunksize=size))
    cut = pa.Table.from_batches(worker_pairs.unmet_rows(batches))
    assert cut.combine_chunks().equals(whole.combine_chunks())
    expected = sorted({row for pair in reference_pairs(rows) for row in pair})
    assert whole.column("id").to_pylist() == [b"%d" % i for i in expected]


def test_a_shipped_package_knows_its_kernels(tmp_path):
    """With --py-files the package is a zip file; another one must not run its machine code."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from lshdup.kernels.native import pack; "
        "print(pack.__file__); print(pack.digest_of_sources())"
    )
    stamps = []
    for number in range(2):
        archive = tmp_path / f"{number}.zip"
        with zipfile.ZipFile(archive, "w") as packed:
            for path in sorted((ROOT / "lshdup").rglob("*.py")):
                change = f"\n# {number}" if path.name == "sets.py" else ""
                packed.writestr(str(path.relative_to(ROOT)), path.read_text("utf-8") + change)
        process = subprocess.run(
            [sys.executable, "-I", "-c", code, str(archive)],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        place, stamp = process.stdout.split()
        assert place.startswith(str(archive))
        stamps.append(stamp)
    assert stamps[0] != stamps[1]


def rows_of(pa, texts):
    return pa.RecordBatch.from_arrays(
        [pa.array(list(texts), pa.binary()), pa.array(list(texts.values()), pa.binary())],
        ["id", "text"],
    )


def test_sets_of_more_bytes_than_arrow_has_offsets_for(monkeypatch):
    """Sets are handed on in pieces; a single set, ids or keys that are too large are an error."""
    pa = require("spark", "pyarrow")
    texts = {b"d%d" % i: b" ".join(b"w%d" % j for j in range(i, i + 12)) for i in range(20)}
    recipe = make_recipe()
    whole = pa.Table.from_batches(worker_sets.set_rows(recipe, iter([rows_of(pa, texts)])))
    monkeypatch.setattr(worker_sets, "SET_BYTES", 200)
    monkeypatch.setattr(worker_sets, "ARROW_BYTES", 200)
    monkeypatch.setattr(worker_pairs, "ARROW_BYTES", 200)
    cut = list(worker_sets.set_rows(recipe, iter([rows_of(pa, texts)])))
    assert len(cut) == 10
    assert max(len(each) for each in cut) == 2
    assert pa.Table.from_batches(cut).equals(whole)
    long = {b"long": b" ".join(b"x%d" % j for j in range(100))}
    with pytest.raises(InputError, match="'long' has 98 shingles, more than Spark can"):
        list(worker_sets.set_rows(recipe, iter([rows_of(pa, texts | long)])))
    with pytest.raises(InputError, match=r"20 documents have .* bytes of keys, more than Arrow"):
        list(worker_sets.sketch_rows(recipe, iter([rows_of(pa, texts)])))
    ids = pa.chunked_array(
        [pa.array([b"x" * 150], pa.binary()), pa.array([b"y" * 150], pa.binary())]
    )
    with pytest.raises(InputError, match=r"the ids of 2 documents .* more than Arrow can hold"):
        worker_pairs.one_array(ids)


def test_what_was_read_once_and_not_again_is_an_error():
    """Its pairs would be lost in silence."""
    pa = require("spark", "pyarrow")
    own = np.arange(5, dtype="<u8").tobytes()

    def verified(ids, *sets):
        batches = iter(one_tile(ids, sets).to_batches())
        rows = pa.Table.from_batches(worker_pairs.verified_rows(make_recipe(), batches)).to_pylist()
        return [(row["a"], row["b"], row["score"]) for row in rows]

    assert verified([b"p", b"q"], own, own) == [(b"p", b"q", 1.0)]
    with pytest.raises(
        InputError, match="'q' was read once, and could not be read the second time"
    ):
        verified([b"p", b"q"], own, None)
    # Another document called q, which was skipped.
    assert verified([b"p", b"q", b"q"], own, own, None) == [(b"p", b"q", 1.0)]


def test_a_damaged_row_group_costs_only_its_rows(tmp_path):
    """Its records are skipped under their own names, and the groups behind it are read."""
    pa, pq = require("parquet", "pyarrow"), require("parquet", "pyarrow.parquet")
    path = tmp_path / "a.parquet"
    texts = [f"text {number} " * 50 for number in range(90)]
    pq.write_table(
        pa.table({"id": [f"d{number}" for number in range(90)], "text": texts}),
        path,
        row_group_size=30,
        use_dictionary=False,
    )
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(1)
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset : chunk.data_page_offset + chunk.total_compressed_size] = bytes(
        chunk.total_compressed_size
    )
    path.write_bytes(data)
    columns = [[os.fsencode(path)], [int(Kind.PARQUET)], [0], [-1]]
    pieces = pa.RecordBatch.from_arrays(
        list(map(pa.array, columns)), ["path", "kind", "start", "stop"]
    )
    rows = pa.Table.from_batches(
        worker_documents.read_pieces(RecordFields("text", "id"), b"/", 1 << 20, iter([pieces]))
    ).to_pylist()
    assert [row["id"] for row in rows] == [b"d%d" % number for number in range(90)]
    lost = rows[30:60]
    assert {row["reason"] for row in lost} == {str(Reason.DAMAGED)}
    assert lost[3]["detail"].endswith("; row 34 of " + str(path))
    assert all(row["text"] is None for row in lost)
    assert [row["text"].decode() for row in rows[:30] + rows[60:]] == texts[:30] + texts[60:]


def test_pairs_are_handed_on_in_pieces(monkeypatch):
    pa = require("spark", "pyarrow")
    ids = [b"%02d" % i for i in range(12)]
    rows = one_tile(ids, [np.arange(5, dtype="<u8").tobytes()] * 12)
    monkeypatch.setattr(worker_pairs, "PAIRS_GIVEN", 10)
    given = list(worker_pairs.verified_rows(make_recipe(), iter(rows.to_batches())))
    table = pa.Table.from_batches(given)
    assert max(map(len, given)) == 10
    found = zip(table["a"].to_pylist(), table["b"].to_pylist(), strict=True)
    assert list(found) == list(itertools.combinations(ids, 2))
    assert sum(table["candidates"].to_pylist()) == 66


# --- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "Connection refused"), EOFError(), "py4j", "answer"]
)
def test_a_driver_that_ended(error):
    """Java was killed, and the connection is lost."""
    require("spark", "pyspark")
    from py4j.protocol import Py4JError, Py4JNetworkError

    from lshdup.spark.errors import one_line

    error = {
        "py4j": Py4JNetworkError("An error occurred"),
        "answer": Py4JError("Answer from Java side is empty"),
    }.get(error, error)
    with pytest.raises(InputError, match="driver, which is Java, ended") as raised, one_line():
        raise error
    assert "--spark-conf spark.driver.memory=" in raised.value.hint


def test_checkpoints_of_a_session_without_a_context():
    """Spark Connect has no context here: settings of the server say whether there is a folder."""

    class Connected:
        def __init__(self, settings):
            self.conf = settings

        @property
        def sparkContext(self):  # noqa: N802 (Spark's)
            raise NotImplementedError

    class Rows:
        def __init__(self, **settings):
            self.sparkSession = Connected(settings)

        def checkpoint(self):
            return "in the folder"

        def localCheckpoint(self):  # noqa: N802 (Spark's)
            return "on the executors"

    made = caching.Checkpoints()
    assert made.keep(Rows(**{"spark.checkpoint.dir": "/shared"})) == "in the folder"
    assert made.keep(Rows()) == "on the executors"
    made.close()


def test_without_java_or_pyspark(run, tmp_path):
    """One line, and a hint to install packages."""
    (tmp_path / "a.txt").write_text("a b c")
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "none.py").write_text(
        "import sys, importlib.util as u\nold = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'pyspark' else old(name, *rest)\n"
        "sys.argv = ['lshdup', 'pairs', 'a.txt', '--engine', 'spark']\n"
        "from lshdup.cli.main import main\nmain()\n"
    )
    process = subprocess.run(
        [sys.executable, "none.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.returncode == 2
    said, hint = process.stderr.splitlines()[-2:]
    assert said.startswith("lshdup: error: --engine spark needs pyspark")
    assert hint == "  pip install 'lshdup[spark]'"
    for arguments in (["--exact"], ["--no-store"], ["--same", "text"], ["--verify", "estimate"]):
        assert (
            "cannot be combined with --engine spark"
            in run("pairs", "a.txt", "--engine", "spark", *arguments, code=2).err
        )
    assert (
        "--master has no effect without --engine spark"
        in run("pairs", "a.txt", "--master", "local", code=2).err
    )
    assert (
        "it must be a setting and its value"
        in run("pairs", "a.txt", "--engine", "spark", "--spark-conf", "x", code=2).err
    )


def test_a_mailbox_that_is_too_large_ends_no_run(tmp_path, monkeypatch):
    """The local engine takes its mails; here it is one document, which is skipped."""
    require("spark", "pyarrow")
    from lshdup.spark.files import inputs

    mails = b"From a Thu Aug 22 12:36:23 2002\nFrom: a@b.c\nTo: d\n\nsome words\n\n" * 20
    (tmp_path / "box").write_bytes(mails)
    (tmp_path / "note").write_bytes(b"some words")
    monkeypatch.chdir(tmp_path)
    params = DocumentParams(max_bytes=1000)
    finder = Finder(params, False, None, 1, print, print, print)
    files = finder.find([b"."])
    assert finder.records == {b"box": Kind.MBOX}
    reader = inputs._Reader(None, params, ids=False)
    monkeypatch.setattr(reader, "_spread", lambda rows, schema, read, size: (rows, read))
    skipped = []
    ((rows, _),) = reader.local(files, finder.records, skipped.append)
    assert not reader.has_rows
    assert rows == [(b"note", 10)]
    assert [(each.name, each.reason) for each in skipped] == [(b"box", Reason.TOO_LARGE)]
