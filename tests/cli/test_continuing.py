"""Which store a command uses, from which folder, and what it says of documents that are gone."""

import os
from pathlib import Path

import pytest

from lshdup.store.store import nearest_store
from tests.conftest import write_files

TEXT = "one of several texts that are nearly the same but for a word or a number at the end"


@pytest.fixture
def here(here):
    """Three near-duplicates, and a text of its own, below docs."""
    write_files(here, {name: f"{TEXT} {name[-1]}" for name in ("docs/a", "docs/b", "docs/sub/c")})
    (here / "docs/own").write_text("nothing that any other of these documents says as well")
    return here


def test_a_store_on_another_file_system_is_not_taken_from_above(run, here, monkeypatch):
    run("pairs docs -q")
    monkeypatch.chdir(here / "docs")
    assert nearest_store() == Path("../.lshdup")
    monkeypatch.setattr(Path, "is_mount", lambda folder: folder == here / "docs")
    assert nearest_store() == Path(".lshdup")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_store_of_another_user_is_not_taken_from_above(run, here, monkeypatch):
    run("pairs docs -q")
    monkeypatch.setattr("os.getuid", lambda: 12345)
    for folder in (here / "docs", here):
        monkeypatch.chdir(folder)
        assert nearest_store() == Path(".lshdup")


def snapshot(folder):
    """All names below a folder, when they were changed, and what the files hold."""
    return {
        (path, path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in (folder, *folder.rglob("*"))
    }


_FAILING = [
    *(f"{command} nosuch" for command in (
        "pairs", "clusters", "folders", "index", "passages", "report", "shingle", "signatures",
        "accuracy", "timing", "query", "show a",
    )),
    "pairs . --against nosuch", "clusters . --against nosuch", "passages . --against nosuch",
    "index . --template nosuch", "pairs . --template nosuch", "shingle . --template nosuch",
    "pairs --files-from nosuch", "pairs .. --store new/deep -o nosuch/x",
    "pairs . -o nosuch/x.tsv", "pairs . -o ..", "report . -o nosuch/x.html", "report . -o ..",
    "pairs . -o x.html", "pairs . -o x.xlsx", "pairs . --histogram --plot x.html",
    "pairs . --ignore-common 0", "pairs . --perms 4 --recall 0.999", "pairs . --k 2.5",
    "pairs . --baseline nosuch", "pairs . --changed-since HEAD",
    "pairs nosuch --store new/deep",
    "clusters . --write x.jsonl", "passages . --write x.jsonl", "clusters . --removed x.xlsx",
    "shingle . --no-store", "signatures . --no-store", "pairs -",
]  # fmt: skip


def test_a_run_that_fails_before_the_work_leaves_nothing_behind(run, here, refused, monkeypatch):
    run("index docs -q")
    before = snapshot(here)
    monkeypatch.chdir(here / "docs/sub")
    for words in _FAILING:
        refused(words)
        assert snapshot(here) == before, words
    assert not (here / "docs/sub/.lshdup").exists()


_INPUT_IS_OUTPUT = """
pairs docs --template form.txt -o form.txt | would replace --template form.txt
pairs docs --template forms -o forms/a.txt | would replace --template forms/a.txt
pairs docs --template forms -o hard.txt | hard.txt would replace --template forms/a.txt
pairs --files-from list -o list | would replace --files-from list
pairs docs --against other -o other/o.txt | would replace --against other/o.txt
passages docs --against other -o other/o.txt | would replace --against other/o.txt
passages rows.jsonl --against rows2.jsonl --write rows2.jsonl | would replace --against rows2.jsonl
pairs rows.jsonl --against rows2.jsonl --measure containment --write rows2.jsonl | replace --against
pairs rows.jsonl --against rows2.jsonl --measure containment --write rows.jsonl | of the documents
pairs rows.jsonl --against rows2.jsonl --measure containment --write o.csv | does not end like a
pairs rows.jsonl --measure containment --against rows2.jsonl --removed o | no effect without --write
clusters docs --against other/o.txt -o other/o.txt | would replace --against other/o.txt
pairs docs --baseline B --update-baseline -o B | -o and --baseline are both B
pairs docs --histogram --plot form.svg --template form.svg | --plot form.svg would replace
curve --plot new.svg -o new.svg --format tsv | -o and --plot are both new.svg
timing docs --plot new.svg -o ./new.svg --format tsv | are both new.svg
accuracy docs -o kept/signatures.npz --format tsv | is in the store
pairs docs -o kept/signatures.npz --format tsv | is in the store
pairs docs -o kept/new.tsv --format tsv | is in the store
curve -o kept/signatures.npz --format tsv | is in the store
clusters rows.jsonl --write kept/bands.npz | is in the store
report docs -o link/page.html | is in the store
passages docs -o docs/a | is one of the documents
folders docs -o docs/sub/c | is one of the documents
pairs docs -o docs/large.txt --max-bytes 1000 | is one of the documents
clusters rows.jsonl --write rows.jsonl | is one of the documents
clusters rows.jsonl rows2.jsonl --no-store --write . | . holds 18 files that this run does not write
pairs docs -o docs/new.tsv --hidden --follow | docs/new.tsv is one of the documents
"""


def test_no_output_is_an_input(run, here, refused):
    """It is refused before the work: nothing is written, and no store is made."""
    run("index docs -q --store kept")
    for name in ("forms", "other"):
        (here / name).mkdir()
    write_files(here, dict.fromkeys(("form.txt", "form.svg", "forms/a.txt", "other/o.txt"), TEXT))
    (here / "docs/large.txt").write_text(TEXT * 1000)
    (here / "docs/new.tsv").write_text("a\tb\t1.0\n")
    (here / "list").write_text("docs\n")
    (here / "list0").write_bytes(b"docs\0")
    for name in ("rows.jsonl", "rows2.jsonl"):
        (here / name).write_text('{"text": "one two three"}\n{"text": "four"}\n')
    os.link(here / "forms/a.txt", here / "hard.txt")
    os.symlink("list0", here / "soft")
    os.symlink("kept", here / "link")
    before = snapshot(here)
    for line in _INPUT_IS_OUTPUT.strip().splitlines():
        words, said = line.split(" | ")
        assert said in refused(words)
        assert snapshot(here) == before, words
