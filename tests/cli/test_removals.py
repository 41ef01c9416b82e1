"""`clusters --removed` without `--write`: what may go, and why, held against the files."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import zipfile
from datetime import UTC, datetime
from functools import partial

import numpy as np
import pytest

from lshdup.base.run import Run
from lshdup.cli.columns import MAY_GO
from lshdup.collection.checksums import make_checksums
from tests.conftest import require, write_files
from tests.documents import find

pa = require("parquet", "pyarrow")
pq = require("parquet", "pyarrow.parquet")

WORDS = """the lamp stands upon a table near my window where grey cats like to sleep all day while
rain falls softly over every roof in this small town and someone drinks tea with honey""".split()
TEXT = " ".join(WORDS)
NEAR = TEXT.replace("honey", "sugar")
MAIL = f"From: a@example.org\nSubject: x\n\n{TEXT}\n"
BOX = f"From a Thu Aug 22 12:36:23 2002\n{MAIL}\nFrom b Thu Aug 22 12:36:23 2002\n{MAIL}\n".encode()
ROWS = [json.dumps({"id": n, "text": f"{TEXT} {n % 2}"}).encode() for n in range(4)]
CSV = [b"n,text", f'1,"{TEXT}\nand more"'.encode(), f"2,{TEXT} and more".encode()]


@pytest.fixture
def folder(here):
    """Equal files, other letters, near texts, and parts of files of every kind, alike each."""
    files = {
        "d/a.txt": TEXT, "d/sub/a.txt": TEXT, "d/capitals.txt": TEXT.upper(), "d/near.txt": NEAR,
        "d/with space\nand line.txt": TEXT, "d/alone.txt": "another text of a few words",
        "d/box": BOX, "d/rows.jsonl": b"\n".join(ROWS), "d/table.csv": b"\r\n".join(CSV) + b"\r\n",
    }  # fmt: skip
    for number, (name, content) in enumerate(files.items()):
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(path, ns=(0, 1_600_000_000_123_456_789 + number * 86_400_000_000_007))
    (here / os.fsdecode(b"d/\xff.txt")).write_text(TEXT)
    with zipfile.ZipFile(here / "d/in.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", TEXT)
    with tarfile.open(here / "d/in.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("b.txt")
        member.size = len(NEAR)
        archive.addfile(member, io.BytesIO(NEAR.encode()))
    pq.write_table(pa.table({"text": [TEXT, f"{TEXT} ⅔"]}), here / "d/t.parquet")
    return here


def content(name):
    """The bytes of a document as it is stored, found without lshdup."""
    if "/in." in name:
        path, member = re.fullmatch(r"(d/in\.(?:zip|tar\.gz))/(.*)", name).groups()
        if path.endswith("zip"):
            with zipfile.ZipFile(path) as archive:
                return archive.read(member)
        with tarfile.open(path) as archive:
            return archive.extractfile(member).read()
    file, _, number = name.rpartition(":")
    if file == "d/box":
        return re.split(rb"^(?=From )", BOX, flags=re.MULTILINE)[int(number)]
    if file == "d/t.parquet":
        return pq.read_table(file)["text"][int(number) - 1].as_py().encode()
    if file == "d/rows.jsonl":
        return ROWS[int(number) - 1]
    if file == "d/table.csv":
        return CSV[int(number)] + b"\r"
    with open(os.fsencode(name), "rb") as opened:
        return opened.read()


LINE = "clusters d --archives --text-field text --no-store -q -t 0.5"


def listed(run, line=LINE, **more):
    run(f"{line} --removed gone.jsonl", **more)
    with open("gone.jsonl") as file:
        return list(map(json.loads, file))


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_list_is_what_is_dropped_with_reasons_and_checksums(run, folder, jobs):
    dropped = run(f"{LINE} --emit drop -0").out.split(b"\0")[:-1]
    groups = run(f"{LINE} --format jsonl").out.splitlines()
    groups = {each["name"]: each for each in map(json.loads, groups)}
    kept = {each["group"]: name for name, each in groups.items() if each["role"] == "keep"}
    rows = listed(run, f"{LINE} -j {jobs}")
    assert [os.fsencode(row["name"]) for row in rows] == dropped
    assert len(rows) > 12
    for row in rows:
        assert tuple(row) == tuple(MAY_GO)
        group = groups[row["name"]]
        assert row["kept"] == kept[group["group"]]
        assert row["similarity"] == group["similarity"]
        assert row["reason"] == (group["same"] or "similarity")
        stored = content(row["name"])
        assert row["sha256"] == hashlib.sha256(stored).hexdigest(), row
        assert row["kept_sha256"] == hashlib.sha256(content(row["kept"])).hexdigest(), row
        assert row["size"] == len(stored)
        file = re.sub(r":\d+$|(?<=zip)/.*|(?<=gz)/.*", "", row["name"])
        stamp = os.stat(os.fsencode(file)).st_mtime_ns
        assert row["time"].endswith(f".{stamp % 10**9:09}Z")
        at = datetime.fromisoformat(row["time"]).replace(microsecond=0)
        assert at == datetime.fromtimestamp(stamp // 10**9, UTC)
    assert {row["reason"] for row in rows} == {"bytes", "text", "similarity"}


def test_every_format_has_the_same_rows(run, folder):
    shutil.rmtree(folder / "d/sub")
    (folder / "d/with space\nand line.txt").unlink()
    rows = [list(map(str, row.values())) for row in listed(run)]
    for ending in ("csv", "tsv", "json", "parquet"):
        run(f"{LINE} --removed gone.{ending}")
        if ending == "parquet":
            table = require("parquet", "pyarrow.parquet").read_table("gone.parquet")
            assert table.schema.field("size").type == "int64"
            escape = partial(re.sub, "[\udc80-\udcff]", lambda c: f"\\u{ord(c[0]):x}")
            found = [list(map(str, row.values())) for row in table.to_pylist()]
            assert found == [list(map(escape, row)) for row in rows]
            continue
        with open(f"gone.{ending}", newline="", errors="surrogateescape") as file:
            if ending == "csv":
                found = list(csv.reader(file))
                assert found.pop(0) == list(MAY_GO)
            elif ending == "tsv":
                found = [line.rstrip("\n").split("\t") for line in file]
            else:
                found = [list(map(str, row.values())) for row in json.load(file)]
        assert found == rows
    assert [*map(json.loads, run(f"{LINE} --removed -").lines)] == listed(run)


def test_checksums_of_what_changes_meanwhile(here):
    write_files(here, {name: name * 10 for name in "abc"})
    documents, _ = find("a", "b", "c")
    (here / "b").write_text("longer than it was")
    (here / "c").unlink()
    sums = make_checksums(Run.quiet(2), [documents, documents], np.array([0, 1, 2, 3, 5]))
    assert sums.sizes.tolist() == [10, -1, -1, 10, -1]
    assert sums.words(np.array([3])) == [hashlib.sha256(b"a" * 10).hexdigest()]


def test_checksums_by_pieces(here, monkeypatch):
    """A large file, and many small ones over several batches and threads."""
    (here / "large").write_bytes(b"large text " * 300_000)
    write_files(here, {f"f{number}": f"text {number % 5}" for number in range(700)})
    documents, _ = find(".")
    every = np.arange(len(documents))
    sums = make_checksums(Run.quiet(3), [documents], every)
    wanted = [hashlib.sha256(content(name.decode())).hexdigest() for name in documents.names]
    assert sums.words(every) == wanted
    assert sums.sizes.tolist() == documents.sizes.tolist()
