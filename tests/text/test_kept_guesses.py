"""How documents were read whose encoding was guessed is kept with them: the next run says the same
of documents that it does not read.
"""

import re
from pathlib import Path

import pytest

from lshdup.params import DocumentParams, PairParams
from lshdup.workspace.comparing import load_or_find_pairs
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.loading import make_shingles
from lshdup.workspace.request import Request
from tests.conftest import killed_behind_segments, open_workspace, write_files

LATIN = "Die Größe der Bäume überraschte fünf müde Übersetzer. " * 5
RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах. " * 5

#: What is said of documents, whatever was made of them and how long it took.
OF_DOCUMENTS = r"^lshdup: (?:d/.*|\d+ documents? not UTF-8.*|skipped.*)$"
OF_DOCUMENTS += r"|\d+ documents? without tokens: not compared \(-v names them\)"
OF_DOCUMENTS = re.compile(OF_DOCUMENTS, re.M)


@pytest.fixture(autouse=True)
def folder(here):
    folder = Path("d")
    folder.mkdir()
    for number in range(8):
        text = f"plain words of document {number} and so on {'again ' * number}"
        (folder / f"{number}.txt").write_text(text)
    contents = {"3latin.txt": LATIN.encode("latin-1"), "5koi.txt": RUSSIAN.encode("koi8_r")}
    contents |= {"cut.txt": LATIN.encode()[:-30] + b"\xc3", "binary": b"\0\1", "empty": b""}
    write_files(folder, contents | {"zip": b"PK\x03\x04 but no more"})
    return folder


def request(documents=(b"d",), **given):
    return Request(tuple(documents), DocumentParams(), given)


def made(store, documents=(b"d",), **given):
    """The collection of a run of all steps, and what is known of guesses by name."""
    workspace = open_workspace(store)
    indexed = load_or_build_index(workspace, request(documents, **given), save=True)
    load_or_find_pairs(workspace, indexed, PairParams())
    return indexed.collection


def guesses(collection):
    names = collection.documents.names.strings_at(collection.notes.guess_documents)
    return dict(zip(names, [guess.decode() for guess in collection.notes.guesses], strict=True))


EXPECTED = {b"d/3latin.txt": "cp1252", b"d/5koi.txt": "koi8_r"}
EXPECTED |= {b"d/cut.txt": "utf-8, 1 byte is not UTF-8"}


def test_the_second_run_says_the_same_of_each_document(run):
    first = run("pairs d -v -t 0.9")
    said = OF_DOCUMENTS.findall(first.err)
    shares = "1 as cp1252, 1 as koi8_r, 1 as utf-8 but for a few bytes"
    line = f"lshdup: 3 documents not UTF-8, read {shares} (-v names them; --encoding forces one)"
    assert line in said
    for name, encoding in EXPECTED.items():
        assert f"lshdup: {name.decode()}: read as {encoding}" in said
    assert "lshdup: d/binary: binary" in said
    assert "lshdup: skipped: 1 binary, 1 format not supported" in said
    again = run("pairs d -v -t 0.9")
    assert "0 documents read" in again.err
    assert OF_DOCUMENTS.findall(again.err) == said
    assert again.out == first.out
    assert line in run("pairs d -t 0.9").err

    # Of what is in the store, in another order: nothing is skipped now.
    stored = run("pairs -v -t 0.9")
    without_docs = OF_DOCUMENTS.findall(stored.err)
    now = (each.replace("skipped when DOCS were read", "skipped") for each in without_docs)
    assert set(now) == set(said)
    assert stored.out == first.out
    exactly = run("pairs -v --exact -t 0.9")
    assert set(OF_DOCUMENTS.findall(exactly.err)) == set(without_docs)
    empty = "1 document without tokens: not compared (-v names them)"
    assert OF_DOCUMENTS.findall(run("pairs").err) == [empty]
    assert run("pairs -q -v").err == ""


def test_files_that_were_errors_are_none_of_a_run_without_docs(run):
    """They were said, with the exit code, when DOCS were read; now -v tells."""
    Path("d/packed.gz").write_bytes(b"\x1f\x8b\x08\x00 damaged")
    run("pairs d", code=2)
    assert "d/packed.gz: damaged" in run("pairs -v").err
    assert "packed" not in run("pairs").err


def test_names_are_as_they_would_be_typed(run):
    run("pairs d -q")
    Path("sub").mkdir()
    err = run("pairs -v --store ../.lshdup", cwd=Path.cwd() / "sub").err
    assert "lshdup: ../d/3latin.txt: read as cp1252" in err
    assert "lshdup: ../d/empty: no tokens" in err


def test_without_docs_the_store_knows_them():
    workspace = open_workspace("store")
    make_shingles(workspace, request())
    made("store")

    for verify in (False, True):
        known = load_or_build_index(workspace, request(()), save=False, verify=verify)
        assert guesses(known.collection) == EXPECTED
        for kind in ("signatures", "bands"):  # then from shingles.npz
            Path(f"store/{kind}.npz").unlink(missing_ok=True)


def test_a_run_that_was_killed_is_resumed_with_them():
    killed_behind_segments("pairs", "d", batch=3, parts=3)
    made("undisturbed")
    said = []
    resumed = open_workspace(".lshdup", said.append)
    collection = load_or_build_index(resumed, request(), save=True).collection
    assert any("of an interrupted run are not read again" in line for line in said)
    assert guesses(collection) == EXPECTED
    for kind in ("signatures", "bands"):
        made_again, expected = (Path(s, f"{kind}.npz") for s in (".lshdup", "undisturbed"))
        assert made_again.read_bytes() == expected.read_bytes()
