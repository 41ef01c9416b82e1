"""One saved run answers each higher threshold as a run of its own, and reads nothing."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lshdup.base.params import BandParams, PairParams
from lshdup.compare import verification
from lshdup.compare.results import PairsFound, StoredPairs
from lshdup.compare.scored_pairs import Pairs
from lshdup.lsh.band_plan import plan_bands
from lshdup.workspace.comparing import load_or_find_pairs
from tests import reference
from tests.conftest import RUN, open_index

HIGHER = [0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
USUAL = PairParams()


def overwrite(folder):
    """Other content of the same size and time: whoever reads a document again gets no text."""
    for path in Path(folder).rglob("*"):
        if path.is_file():
            status = path.stat()
            path.write_bytes(b"\0" * status.st_size)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.fixture
def no_sets_kept(monkeypatch):
    """As if the collection were too large for its shingle sets to be kept."""
    monkeypatch.setattr("lshdup.workspace.loading.SET_BYTES", 0)
    monkeypatch.setattr(verification, "SET_BYTES", 1 << 20)


def pairs(store, documents, threshold, given=(), asked=USUAL):
    """(name, name, similarity) of `lshdup pairs [documents] -t threshold`, that skips nothing."""
    skipped = []
    given = {"threshold": threshold, **dict(given)}
    run, indexed, _ = open_index(store, documents, skipped=skipped.append, save=False, **given)
    found = load_or_find_pairs(run, indexed, asked).pairs
    assert not skipped
    names = list(indexed.collection.documents.names)
    rows = zip(*(column.tolist() for column in found.part(0, len(found))), strict=True)
    return [(names[a], names[b], s) for a, b, s in rows]


def made_up(folder, seed, n=240):
    """Documents and edited copies of them, of every degree of similarity."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    originals = [[f"w{x}" for x in rng.integers(0, 3000, 120)] for _ in range(n // 5)]
    for i in range(n):
        words = list(originals[int(rng.integers(len(originals)))])
        for _ in range(int(rng.integers(0, 20))):
            words[int(rng.integers(len(words)))] = f"w{int(rng.integers(3000))}"
        (folder / f"{i:03}.txt").write_text(" ".join([*words, f"own{i}"]))  # none is a copy


def test_a_made_up_collection_against_brute_force(here, no_sets_kept):
    made_up(here / "d", 1)
    sets = {os.fsencode(name): each for name, each in reference.folder_sets("d").items()}
    names = sorted(sets)
    given = {"bands": 85, "rows": 3, "perms": 256}
    pairs("store", [b"d"], 0.5, given=given)
    assert not Path("store/shingles.npz").exists()
    overwrite("d")
    truth = reference.all_pairs([sets[name] for name in names], min(HIGHER))
    for t in HIGHER:
        expected = {(names[i], names[j], s) for i, j, s in truth if s >= t}
        answer = pairs("store", [], t, given={"bands": 85, "rows": 3})
        assert set(answer) == expected
        assert answer == sorted(answer, key=lambda each: (-each[2], each[0], each[1]))
        assert expected or t == 0.95


def test_a_higher_threshold_with_other_bands_is_a_run_of_its_own(here):
    """Artifacts and answers are those of a run from nothing."""
    made_up(here / "d", 3)
    pairs("store", [b"d"], 0.5)
    for t in HIGHER:
        fresh = pairs(f"fresh{t}", [b"d"], t)
        shutil.copytree("store", f"copy{t}")
        assert pairs(f"copy{t}", [b"d"], t) == fresh
        for kind in ("signatures", "bands", "pairs"):
            one, other = (Path(f"{store}{t}/{kind}.npz") for store in ("copy", "fresh"))
            assert one.read_bytes() == other.read_bytes()


def test_a_lower_threshold_and_other_parameters_are_no_business_of_saved_pairs(here):
    made_up(here / "d", 4)
    pairs("store", [b"d"], 0.8)
    for t, given, asked in (
        (0.6, {}, USUAL), (0.9, {"recall": 0.999}, USUAL), (0.9, {"bands": 4, "rows": 32}, USUAL),
        (0.9, {}, PairParams(3)), (0.7, {}, PairParams(3)),
    ):  # fmt: skip
        expected = pairs("", [b"d"], t, given=given, asked=asked)
        assert pairs("store", [], t, given=given, asked=asked) == expected, (t, given, asked)
        pairs("store", [b"d"], 0.8)


def test_pairs_at_least():
    made = Pairs.of(RUN, np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([0.5, 1.0, 0.5]))
    for t, n in ((0.4, 3), (0.5, 3), (0.50001, 1), (1.0, 1)):
        part = made.at_least(t)
        assert len(part) == n == int(part.offsets[-1])
        assert part.similarity.tolist() == [1.0, 0.5, 0.5][:n]
    assert len(made.at_least(1.1)) == 0
    assert len(Pairs.of(RUN, np.zeros(0, int), np.zeros(0, int), np.zeros(0)).at_least(0.5)) == 0


def test_bands_that_are_chosen_say_nothing_of_the_threshold_of_saved_pairs():
    params = BandParams(0.9, bands=20, rows=5)
    none = PairsFound(Pairs.of(RUN, *[np.zeros(0)] * 3), 0)
    stored = StoredPairs(none, params, PairParams(), 20, 5)
    for threshold, covered in ((0.9, True), (0.95, True), (0.89, False)):
        other = replace(params, threshold=threshold)
        assert stored.covers(plan_bands(100, other), other, PairParams()) == covered
