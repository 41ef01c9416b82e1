"""What is known of documents is found again from whatever DOCS, as a run from nothing finds it."""

import os
import shutil
from pathlib import Path

import pytest

import lshdup.base.ragged
import lshdup.collection.collection
import lshdup.sources.text_batches
import lshdup.store.memo
import lshdup.store.store
from tests.conftest import open_index, part
from tests.office import docx
from tests.store.disturbed import Disturbed

WORDS = [f"word{number}" for number in range(40)]


def text(seed):
    return " ".join([*WORDS[: 20 + seed % 5], f"own{seed % 7}", *WORDS[20:]])


def fill(folder, numbers, first="x"):
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        (folder / f"{first if number % 2 else 'y'}{number}.txt").write_text(text(number))


@pytest.fixture
def here(here):
    fill(here / "a", range(8))
    fill(here / "a/sub", range(8, 12))
    fill(here / "b", range(20, 26))
    return here


def segments():
    return sorted(path.name for path in Path(".lshdup/memo").glob("*"))


KILLED = ["pairs", "shingle", "pairs --ignore-common 0.9"]
KILLED[1:] = (pytest.param(each, marks=pytest.mark.long) for each in KILLED[1:])


@pytest.mark.parametrize("command", KILLED)
def test_killed_at_every_write_while_the_collection_changes(run, here, command):
    answers = [run("pairs", folder, "-q", "--no-store").out for folder in "ab"]
    expected = {folder: run(f"{command} {folder} -q --store new").out for folder in "ab"}
    run(f"{command} a -q --store saved")
    with Disturbed(here) as disturbed:
        for number in part(range(1, 200), 8):
            shutil.rmtree(".lshdup", ignore_errors=True)
            shutil.copytree("saved", ".lshdup", copy_function=shutil.copy2)
            code, said = disturbed.run("killed", number, f"{command} b -q")
            if "ignore" not in command:
                assert run("pairs", "-q").out in answers
            for folder in ("a", "b"):
                result = run(*command.split(), folder)
                assert result.out == expected[folder]
                assert folder == "b" or "12 documents read" not in result.err, number
            if not code:
                break
            assert code == -9, said
    assert number > 10


def test_another_reader_is_said_once(here, monkeypatch):
    said = []
    for folder in "ab":
        (here / folder / "x.docx").write_bytes(docx(text(1)))
        open_index("store", [os.fsencode(folder)], said.append)
    monkeypatch.setattr(lshdup.collection.collection, "current_reader", lambda: "another one")
    open_index("store", [b"a", b"b"], said.append)
    assert len([line for line in said if "the reader of office documents" in line]) == 1


def test_sets_of_office_documents_stay_known(here):
    """Reading one again, to verify a pair, would take a reader milliseconds."""
    for docs in ((b"a",), (b"b",), (b"a", b"b")):
        (here / os.fsdecode(docs[0]) / "x.docx").write_bytes(docx(text(1)))
        os.utime(here / os.fsdecode(docs[0]) / "x.docx", ns=(0, 0))
        found = open_index(".lshdup", docs)[1].collection
        assert found.sets is not None
    assert found.read == 0
    assert segments() == []


def test_the_memo_has_not_more_segments_than_a_run_can_look_into(run, here, monkeypatch):
    monkeypatch.setattr(lshdup.store.store, "_MOST_SEGMENTS", 2)
    for number in range(5):
        fill(here / f"c{number}", range(number * 10, number * 10 + 6))
        open_index(".lshdup", [os.fsencode(f"c{number}")])
    assert len(segments()) == 2
    assert "0 documents read" in run("index", "c2", "c3", "c4").err


def test_what_other_runs_have_made_gives_way_when_the_disk_is_full(run, here, small_disk):
    for number in range(5):
        rows = (f'{{"text": "{text(row)} {row} {number}"}}\n' for row in range(1800))
        (here / f"{number}.jsonl").write_text("".join(rows))
        run("signatures", f"{number}.jsonl", "--store", small_disk / "store", "-q")
    err = run("signatures", "4.jsonl", "--store", small_disk / "store").err
    assert "0 documents read" in err
