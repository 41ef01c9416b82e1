"""No command changes a document, or forgets what the store knows of others."""

import gzip
import json
import os
import zipfile

import pytest

from lshdup.cli.commands import COMMANDS
from tests.conftest import part, write_files
from tests.running import run_program

#: Command lines of each command, with the options that write something.
LINES = {
    "pairs": (
        *("d", "d --exact", "d --measure containment", "d -o o.tsv", "d --against e"),
        *("d --across folder", "d --baseline b --update-baseline", "d --histogram --plot p.svg"),
        "d --against e --measure containment --relation inside",
        "d/rows.jsonl --against e --measure containment --write w.jsonl --removed gone",
    ),
    "clusters": (
        *("d", "d -o o.tsv", "d/rows.jsonl --write w.jsonl --removed gone"),
        *("d/rows.jsonl.gz --write w.jsonl.gz", "d --archives --removed may-go.csv"),
        *("d --same bytes --removed may-go.jsonl", "d/rows.jsonl --annotate a.jsonl"),
        *("d/t.csv d/rows.jsonl.gz --annotate a/ --keep-by id",),
        *("d/box.mbox --write w.mbox --removed gone", "d/rows.jsonl --against e --write w.jsonl"),
    ),
    "query": ("d/a.txt --store kept", "d/a.txt"),
    "accept": ("d/a.txt d/b.txt --store kept --accepted w.jsonl",),
    "show": ("d/a.txt d/b.txt", "d/a.txt d/b.txt --store kept"),
    "report": ("d -o o.html",),
    "folders": ("d", "d -o o.tsv"),
    "passages": ("d --least 5", "d/rows.jsonl --least 5 --write w.jsonl", "d --emit template"),
    "shingle": ("d", "--show d/a.txt"),
    "signatures": ("d",),
    "index": ("d", "d --check-content"),
    "accuracy": ("d --runs 1 --perms 8", "d --found"),
    "timing": ("d --runs 1 --perms 8",),
    "curve": ("--bands 5 --rows 4 -o o.tsv",),
}

TEXT = (
    "the lamp stands upon a table near my window where grey cats like to sleep all day while rain"
)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Documents of every kind, a store of them, and one of others, which is the usual one."""
    tmp_path = tmp_path_factory.mktemp("untouched")
    rows = "".join(json.dumps({"id": n, "text": f"{TEXT} {n % 2}"}) + "\n" for n in range(4))
    mail = f"From: a@example.org\nTo: b@example.org\nSubject: x\nReceived: here\n\n{TEXT}\n"
    files = {
        "d/a.txt": TEXT, "d/b.txt": f"{TEXT} falls", "d/sub/a.txt": TEXT, "d/rows.jsonl": rows,
        "d/m.eml": mail, "d/box.mbox": f"From a Thu Aug 22 12:36:23 2002\n{mail}\n" * 2,
        "d/page.html": f"<html><p>{TEXT}", "d/t.csv": f"id,text\n1,{TEXT}\n",
        "e/c.txt": f"{TEXT} on", "f/d.txt": f"{TEXT} in",
    }  # fmt: skip
    write_files(tmp_path, files)
    (tmp_path / "d/rows.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
    (tmp_path / "d/link.txt").symlink_to("a.txt")
    os.link(tmp_path / "d/b.txt", tmp_path / "d/second name.txt")
    (tmp_path / "d/a.txt").chmod(0o400)
    with zipfile.ZipFile(tmp_path / "d/in.zip", "w") as archive:
        archive.writestr("a.txt", TEXT)
    for line in ("index d --store kept", "index f"):
        done = run_program(line.split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    return tmp_path


def state(*folders):
    """{path: what a program could see of it}, but for when it was read; of stores, of files."""
    found = {}
    for path in sorted(path for folder in folders for path in (folder, *folder.rglob("*"))):
        if path.name in (".lock", ".lshdup"):
            continue
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else sorted(os.listdir(path))
        found[path] = content, status.st_mode, status.st_ino, status.st_mtime_ns, status.st_nlink
    return found


def test_every_command_has_lines():
    # Spark has no store, and makes new folders only; of mcp, tests/test_mcp.py.
    assert {*LINES, "spark", "mcp"} == set(COMMANDS)


@pytest.mark.parametrize(
    "line", part([f"{name} {line}" for name, of in LINES.items() for line in of], 2)
)
def test_documents_and_what_is_known_of_others_stay_as_they_are(here, line):
    documents, store = state(here / "d", here / "e", here / "f"), state(here / ".lshdup")
    done = run_program(line.split(), cwd=here)
    assert done.returncode == 0, done.stderr
    assert state(here / "d", here / "e", here / "f") == documents
    if "--store" in line:
        assert state(here / ".lshdup").items() >= store.items()
    again = run_program("index f", cwd=here)
    assert b"0 documents read, 1 unchanged" in again.stderr
