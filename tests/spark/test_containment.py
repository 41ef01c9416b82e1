"""Containment on Spark: the pairs that the samples of the local engine find, and their scores.

Like the tests of test_pipeline.py, these need Java, and run only on request: `pytest -m spark`.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from lshdup.errors import ParameterError
from lshdup.params import BandParams, DocumentParams, PairParams, ShingleParams
from lshdup.pipeline import expand_copies
from lshdup.spark import containment, pipeline, tiles
from lshdup.workspace.containment import joining
from lshdup.workspace.request import Request
from lshdup.workspace.workspace import Workspace
from tests.conftest import ROOT
from tests.spark.test_pipeline import bare, frame, on_spark, session  # noqa: F401 (a fixture)

pytestmark = pytest.mark.spark

SCORES = ("containment", "similarity", "a_shingles", "b_shingles")


def insides(n):
    """Paragraphs of documents in longer ones, some edited; copies; and a phrase in most of them."""
    rng = np.random.default_rng(7)
    words = [f"w{i}" for i in range(3000)]
    phrase = " ".join(words[:25])
    texts = {}
    for i in range(n):
        own = rng.integers(0, 3000, int(rng.integers(30, 400)))
        edited = own.copy()
        edited[rng.integers(0, len(own), i % 4 * len(own) // 60)] = 7
        around = rng.integers(0, 3000, int(rng.integers(1, 900)))
        texts[f"{i:03}-inside"] = " ".join(words[word] for word in own)
        texts[f"{i:03}-holder"] = " ".join(words[word] for word in [*around, *edited])
        if i % 3:
            texts[f"{i:03}-holder"] += " " + phrase
        if i % 5 == 0:
            texts[f"{i:03}-copy"] = texts[f"{i:03}-inside"]
            texts[f"0{i:03}-copy"] = texts[f"{i:03}-holder"]
        if i % 7 == 0:
            texts[f"{i:03}-same-size"] = " ".join([*texts[f"{i:03}-inside"].split()[1:], "another"])
        if i % 2:
            texts[f"{i:03}-short"] = " ".join(words[word] for word in own[: 3 + i % 9])
    return texts


def by_samples(threshold, *, collapse=False):
    """The pairs of the local engine by samples of the documents in the folder d, and their plan."""
    request = Request((b"d",), DocumentParams(), {"threshold": threshold}, 2)
    run, plans = Workspace(None), []
    collection, sampled = run.collect_to_join(request)
    duplicate_of, found = joining.find_contained_pairs(
        run, collection, sampled, BandParams(threshold), request, plans.append, sample=True
    )
    sizes = collection.sizes
    pairs = expand_copies(found.pairs, duplicate_of, collapse=collapse, sizes=sizes)
    rows = []
    for left, right, scores in pairs.pieces():
        names = [[Path(os.fsdecode(collection.documents.names[int(i)])).name for i in side]
                 for side in (left, right)]  # fmt: skip
        columns = *names, scores.real, scores.imag, sizes[left], sizes[right]
        rows += zip(*(list(column) for column in columns), strict=True)
    return sorted(rows), plans[-1].samples


def by_spark(compared, **options):
    table = compared.pairs(**options).toArrow()
    columns = [table.column(name).to_pylist() for name in ("a", "b", *SCORES)]
    rows = zip(*columns, strict=True)
    return sorted((a.decode(), b.decode(), *scores) for a, b, *scores in rows)


@pytest.fixture
def documents(session, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    texts = insides(40)
    Path("d").mkdir()
    for name, text in texts.items():
        Path("d", name).write_text(text)
    return frame(session, texts)


@pytest.mark.parametrize(
    ("threshold", "few", "block", "most"),
    [(0.8, 32, 4096, 1 << 20), (0.5, 2, 3, 1 << 20), (1.0, 0, 4096, 1 << 20), (0.8, 32, 9, 50)],
)
def test_pairs_are_those_of_local_samples(documents, monkeypatch, threshold, few, block, most):
    """Large buckets are checked where they are met, and cut; accidental candidates are ruled out
    by the same floor.
    """
    monkeypatch.setattr(containment, "FEW", few)
    monkeypatch.setattr(tiles, "BLOCK_DOCUMENTS", block)
    monkeypatch.setattr(tiles, "MANY_ROWS", block)
    monkeypatch.setattr(pipeline, "BLOCK_COPIES", 2)
    for module in (containment, joining):
        monkeypatch.setattr(module, "FEW_CANDIDATES", most)
        monkeypatch.setattr(module, "CANDIDATES_EACH", 0)
    expected, plan = by_samples(threshold)
    with containment.find_contained_pairs(documents, band=BandParams(threshold)) as compared:
        assert by_spark(compared) == expected
        collapsed = by_spark(compared, collapse=True)
        assert compared.samples == plan
    assert (plan.floor > 1) == (most == 50)
    assert len(expected) > len(collapsed) > 30
    assert collapsed == by_samples(threshold, collapse=True)[0]


def test_floor_that_is_known_before_pairs_are_made(documents, monkeypatch):
    """Many documents that keep a few elements share one: their pairs are not made."""
    for module in (containment, joining):
        monkeypatch.setattr(module, "FEW_CANDIDATES", 1)
        monkeypatch.setattr(module, "CANDIDATES_EACH", 0)
        monkeypatch.setattr(module, "LARGEST_FLOOR", 3)
    floors = []
    made = containment.Containment._candidates
    monkeypatch.setattr(
        containment.Containment,
        "_candidates",
        lambda self, floor: floors.append(floor) or made(self, floor),
    )
    with containment.find_contained_pairs(documents, band=BandParams(0.8)) as compared:
        found = by_spark(compared)
        assert compared.samples.floor == 3
    assert floors == [2]
    assert found == by_samples(0.8)[0]


@pytest.mark.parametrize("texts", [{"a": "x y z", "b": "u v w"}, {"a": "", "b": " "}])
def test_nothing_inside(session, texts):  # noqa: F811
    with containment.find_contained_pairs(frame(session, texts)) as compared:
        assert by_spark(compared) == []
        assert compared.tiles.found() == {"candidates": 0, "pairs": 0}


def test_command(session, run, monkeypatch, capfdbinary):  # noqa: F811
    """The listing of the local engine, and its advice."""
    monkeypatch.chdir(ROOT)
    options = ["sample_corpus", "--measure", "containment", "-t", "0.8"]
    expected = run("pairs", *options, "--no-store", cwd=ROOT)
    code = on_spark("pairs", *options)
    out, err = capfdbinary.readouterr()
    assert (code, out) == (0, bare(expected.out))
    assert b"-> samples of 1 shingle in 8" in err
    assert b"chance to miss a pair of containment 0.8: 1 %" in err
    assert b"--engine local --exact finds all" in err
    assert b"219 pairs of containment 0.8 or more" in err


def test_the_measure_has_its_own_function(session):  # noqa: F811
    documents = frame(session, {"a": "x"})
    with pytest.raises(ParameterError, match="the measure is containment"):
        pipeline.find_near_duplicates(documents, asked=PairParams(measure="containment"))
    with containment.find_contained_pairs(documents, ShingleParams(tokens="char")) as compared:
        assert compared.summary().documents == 1
