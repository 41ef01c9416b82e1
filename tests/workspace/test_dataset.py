"""Training data without what is in OTHER, by brute force; killed, and on a full disk."""

import csv
import gzip
import json
import shlex
import signal
from pathlib import Path

import numpy as np
import pytest

from tests import reference
from tests.conftest import require
from tests.store.disturbed import Disturbed

pa = require("parquet", "pyarrow")
pq = require("parquet", "pyarrow.parquet")

FILES = ("a.parquet", "b.jsonl", "c.csv", "d.jsonl.gz")
COMMAND = ("clusters", "train", "--text-field", "text", "--id-field", "id", "--no-store")
COMMAND += ("--recall", "0.99999", "--perms", "256", "--against", "old.jsonl", "--against")
COMMAND += ("old.parquet", "--write", "clean/", "--removed", "removed.jsonl")


def made_rows():
    """Originals of 60 words in four files, copies with up to two other words, and 30 old rows."""
    rng = np.random.default_rng(5)
    originals = [[f"w{word}" for word in rng.integers(0, 5000, 60)] for _ in range(120)]

    def near(number, most):
        words = list(originals[number])
        for at in rng.integers(0, 60, int(rng.integers(0, most))):
            words[at] = f"new{int(rng.integers(5000))}"
        return " ".join(words)

    numbers = rng.permutation(np.repeat(np.arange(120), 3))
    rows = [{"id": f"r{at:03}", "text": near(number, 3)} for at, number in enumerate(numbers)]
    for at in (5, 100, 200, 300):
        rows[at]["text"] = "" if at < 300 else "!"
    old = [{"id": f"r{at:03}", "text": near(at, 3)} for at in range(0, 60, 2)]
    return rows, old


def write(path, rows):
    if path.suffix == ".parquet":
        table = pa.Table.from_pylist([{"n": at, **row} for at, row in enumerate(rows)])
        pq.write_table(table, path, row_group_size=13, compression="none")
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "id"])
            writer.writerows([row["text"], row["id"]] for row in rows)
    else:
        lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        path.write_bytes(gzip.compress(lines) if path.suffix == ".gz" else lines)


def read(path):
    """[(id, text)] of the rows of a file."""
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        lines = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        rows = map(json.loads, lines.splitlines())
    return [(row["id"], row["text"]) for row in rows]


@pytest.fixture
def dataset(here):
    rows, old = made_rows()
    Path("train").mkdir()
    for at, name in enumerate(FILES):
        write(Path("train", name), rows[90 * at : 90 * (at + 1)])
    write(Path("old.jsonl"), old[:12])
    write(Path("old.parquet"), old[12:])
    return here


def shingles(text):
    return frozenset(reference.shingle_list(text))


def thinned(rows, old, threshold=0.8):
    """By brute force: the rows that go, and what each of these may be kept for."""
    kept, gone = [], {}
    old = [(name, shingles(text)) for name, text in old]
    sets = [(name, shingles(text)) for name, text in rows]
    for name, mine in sets:
        if not mine:
            continue
        near = {("old", other) for other, each in old if reference.jaccard(mine, each) >= threshold}
        if near:
            gone[name] = near
            continue
        near = [other for other, each in kept if reference.jaccard(mine, each) >= threshold]
        if near:
            gone[name] = {("train", near[0])}
        else:
            kept.append((name, mine))
    return gone


def snapshot():
    """The bytes of all files, without those that a killed run had begun."""
    paths = (each for each in sorted(Path().rglob("*")) if ".lshdup-" not in each.name)
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


def test_it_is_what_brute_force_says(dataset, run):
    before = snapshot()
    trained = {name: read(Path("train", name)) for name in FILES}
    rows = [row for each in trained.values() for row in each]
    old = read(Path("old.jsonl")) + read(Path("old.parquet"))
    gone = thinned(rows, old)
    assert len(gone) > 150
    result = run(*COMMAND)
    assert not result.out
    removed = [json.loads(line) for line in Path("removed.jsonl").read_text().splitlines()]
    assert {row["id"] for row in removed} == set(gone)
    texts, old_texts = dict(rows), dict(old)
    file_of = {row[0]: f"train/{name}" for name, each in trained.items() for row in each}
    for row in removed:
        is_old = row["kept_file"].startswith("old.")
        assert ("old" if is_old else "train", row["kept"]) in gone[row["id"]]
        kept = (old_texts if is_old else texts)[row["kept"]]
        exact = reference.jaccard(shingles(texts[row["id"]]), shingles(kept))
        assert row["similarity"] == exact >= 0.8
        assert row["file"] == file_of[row["id"]]
        if not is_old:
            assert row["kept_file"] == file_of[row["kept"]]
    for name, each in trained.items():
        assert read(Path("clean/train", name)) == [row for row in each if row[0] not in gone]
    schemas = [pq.read_schema(Path(folder, FILES[0])) for folder in ("train", "clean/train")]
    assert schemas[0].equals(schemas[1], check_metadata=True)
    after = snapshot()
    assert {name: after[name] for name in before} == before
    made, read_ = (
        sum(len(data) for name, data in after.items() if name.startswith(folder))
        for folder in ("clean/", "train/")
    )
    share = f"{100 * len(gone) / len(rows):.0f} %"
    summary = (
        f"{len(rows)} rows: {len(rows) - len(gone)} kept (4 of them not compared), {len(gone)} "
        f"dropped ({share}); {made:,} of {read_:,} bytes"
    )
    assert f"lshdup: {summary}" in result.err
    assert f"lshdup: removed.jsonl lists {len(gone)} removed rows" in result.err


def test_killed_between_any_two_steps(dataset, run):
    """All that is there is whole, nothing goes that no list names, and the next run mends it."""
    run(*COMMAND, "-q")
    whole = snapshot()
    # A file is synced before it takes its name, and its folder after: five files of four steps.
    with Disturbed(dataset) as disturbed:
        for step in (3, 14):
            for path in [Path("removed.jsonl"), *Path("clean/train").iterdir()]:
                path.unlink(missing_ok=True)
            assert disturbed.run("killed", step, shlex.join(COMMAND))[0] == -signal.SIGKILL
            left = snapshot()
            assert left.items() <= whole.items()
            assert len(left) == len(whole) - 5 + (step - 1) // 4
            assert "removed.jsonl" in left or not any(name.startswith("clean/") for name in left)
    run(*COMMAND, "-q")
    assert snapshot() == whole


def test_a_full_disk(dataset):
    """The file that is not written is named; an older one stays, and no part of another."""
    Path("clean/train").mkdir(parents=True)
    Path("clean/train/a.parquet").write_bytes(b"older")
    before = snapshot()
    with Disturbed(dataset) as disturbed:
        # Bytes of the largest file that can be written: none of these, or the list of removed rows.
        for room in (1000, 23_000):
            code, said = disturbed.run("no room", room, shlex.join(COMMAND))
            assert code == 2, said
            assert "Traceback" not in said
            assert "File too large" in said
            after = snapshot()
            # It comes first, and is smaller.
            assert ("removed.jsonl" in after) == (room == 23_000)
            after.pop("removed.jsonl", None)
            assert after == before
