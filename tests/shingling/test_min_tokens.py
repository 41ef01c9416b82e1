"""--min-tokens: smaller documents are not compared, wherever documents come from."""

import json
from pathlib import Path

import numpy as np
import pytest

import lshdup
from lshdup.params import ShingleParams
from lshdup.shingling.shingler import Shingler
from lshdup.sources.reading import TextBatch
from tests.reference import TOKENS, normal_form

LARGE = "one two three four five six seven eight nine ten"
SMALL = "a few words"


ROWS = [{"text": text} for text in (LARGE, LARGE, SMALL, SMALL)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two large and two small near-copies, and a file without words; and rows of such texts."""
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    for number in range(2):
        Path(f"d/large{number}").write_text(f"{LARGE} {number}")
        Path(f"d/small{number}").write_text(SMALL)
    Path("d/empty").write_text("...")
    Path("r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path / "d"


def names(result):
    return [row[:2] for row in result.rows]


@pytest.mark.parametrize("tokens", ["word", "symbols", "char", "terms"])
@pytest.mark.parametrize("bag", [False, True])
def test_sets_of_small_texts_are_empty_and_others_unchanged(tokens, bag):
    texts = ["", "x", "the the the the", "Größe, größe; 漢字!", f"{LARGE}. {LARGE}", "a b c d e"]
    counts = [len(TOKENS[tokens](normal_form(text))) for text in texts]
    batch = TextBatch.of(range(len(texts)), [text.encode() for text in texts])
    for least in (0, 1, 4, 5, max(counts), max(counts) + 1):
        params = [ShingleParams(tokens, 2, bag=bag, min_tokens=each) for each in (0, least)]
        whole, made = (Shingler(each).shingle(batch) for each in params)
        for at, count in enumerate(counts):
            expected = whole.sets[at] if count >= least else np.zeros(0, np.uint64)
            assert np.array_equal(made.sets[at], expected), (texts[at], least)
        assert np.array_equal(made.text_prints, whole.text_prints)


def test_small_files_are_counted_and_named(run, folder):
    found = run("pairs d --min-tokens 4 -t 0.5 -v")
    large, small = ([f"d/{name}{number}" for number in range(2)] for name in ("large", "small"))
    assert names(found) == [large]
    for said in (
        "1 document without tokens: not compared (-v names them)",
        "2 documents with fewer than 4 tokens: not compared",
        "d/small1: fewer than 4 tokens",
        "d/empty: no tokens",
    ):
        assert said in found.err
    again = run("pairs -t 0.5")
    assert again.out == found.out
    assert "--min-tokens 4" in again.err
    assert names(run("pairs d --min-tokens 3 -t 0.5")) == [small, large]
    assert names(run("pairs d --exact -t 0.5 --min-tokens 4")) == names(found)
    assert run("pairs d --same bytes --min-tokens 4").rows == []


def test_the_definition_of_a_collection_holds_it(run, folder):
    run("index d --min-tokens 4")
    other = run("pairs --min-tokens 3", code=2)
    assert "signatures.npz was made with --min-tokens 4, not 3" in other.err
    assert "run `lshdup pairs DOCS --min-tokens 3`" in other.err
    assert "4 documents read" not in run("index d --min-tokens 4").err
    assert "the store was made with" in run("index d").err


def test_groups_leave_small_documents_alone(run, folder):
    for way in ([], ["--exact"], ["--same", "text"]):
        listed = run("clusters d --min-tokens 4 -t 0.5 --emit drop", *way)
        assert not any("small" in line for line in listed.lines)
    kept = run("clusters d --min-tokens 4 -t 0.5 --emit keep")
    # What was not compared stays.
    assert kept.lines == ["d/empty", "d/large0", "d/small0", "d/small1"]
    run("clusters r.jsonl --no-store --min-tokens 4 --write out.jsonl")
    assert list(map(json.loads, Path("out.jsonl").read_text().splitlines())) == ROWS[1:]


def test_rows_ids_and_another_side(run, folder):
    Path("ids").write_text("a 1 2 3\nb 1 2 3\nc 4 5 6 7\nd 4 5 6 7\n")
    found = run("pairs r.jsonl --no-store --min-tokens 4")
    assert names(found) == [["r.jsonl:1", "r.jsonl:2"]]
    found = run("pairs ids --tokens ids --no-store --min-tokens 4")
    assert names(found) == [["c", "d"]]
    against = ("pairs", "d", "--against", "r.jsonl", "-t", "0.5", "--no-store")
    assert len(run(*against).rows) == 8
    found = {name for pair in names(run(*against, "--min-tokens", "4")) for name in pair}
    assert found == {"d/large0", "d/large1", "r.jsonl:1", "r.jsonl:2"}


def test_a_small_document_has_no_neighbours(run, folder):
    run("index d --min-tokens 4")
    for name, stdin in (("small0", b""), ("-", SMALL.encode())):
        found = run("query", name, "-t", "0.1", stdin=stdin)
        assert found.rows == []
        assert "has fewer than 4 tokens: it has no near-duplicates" in found.err
    assert len(run("query large0 -t 0.5").rows) == 1
    shown = run("show small0 small1")
    assert b"similarity 1" in shown.out
    assert "has changed" not in shown.err


def test_templates_may_be_small(run, folder):
    Path("t").write_text("three four five")
    found = run("pairs d --template t --min-tokens 4 -t 0.5 --no-store")
    assert "removed shingles: 1 of templates" in found.err


def test_nothing_to_compare_says_why(run, folder):
    found = run("pairs d --min-tokens 40 --check --no-store", code=2)
    assert "a smaller --min-tokens compares more of them" in found.err


def test_the_class_interface(folder):
    texts = {path.name: path.read_text() for path in sorted(folder.iterdir())}
    for documents in (texts, folder):
        found = lshdup.NearDuplicates(documents, threshold=0.5, min_tokens=4)
        assert [{Path(a).name, Path(b).name} for a, b, _ in found.pairs()] == [{"large0", "large1"}]
