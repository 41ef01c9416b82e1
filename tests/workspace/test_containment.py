"""Pairs of containment over a store: by the exact join, and by samples that are kept and grow."""

import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lshdup.collection.set_source import set_source
from lshdup.compare import sampled_join
from lshdup.compare.sampled_join import join_contained, plan_join
from lshdup.compare.sides import Sides
from lshdup.errors import ArtifactError
from lshdup.lsh.candidates import documents_to_compare
from lshdup.params import BandParams, DocumentParams, ShingleParams
from lshdup.pipeline import side_of
from lshdup.store import memo, npz
from lshdup.store.memo import Memo
from lshdup.store.results_io import load_samples
from lshdup.workspace import samples
from lshdup.workspace.comparing import load_with_samples
from lshdup.workspace.request import Request
from lshdup.workspace.samples import Samples
from tests.conftest import RUN, open_workspace

T = 0.8


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_insides(folder, holders, seed=1, words=2500):
    """Long texts, of each a part in a text of its own, nine tenths of it as it was."""
    chance = random.Random(seed)
    Path(folder).mkdir(exist_ok=True)
    for i in range(holders):
        text = [f"w{chance.randrange(1_000_000)}" for _ in range(words)]
        part = text[300 : 300 + chance.choice([100, 200, 800])]
        part[:1] = [f"own{i}"] * chance.randrange(1, 20)
        Path(f"{folder}/{seed}-{i:03}-a.txt").write_text(" ".join(text))
        Path(f"{folder}/{seed}-{i:03}-b.txt").write_text(" ".join(part))


def contained(
    store="store", *, sample=True, jobs=2, said=None, skipped=None, recall=0.99, again=False
):
    """(inside, holder, scores) of the documents of d, and the plan."""
    said = said if said is not None else []

    def say(line):
        if "containment" not in line and " joined" not in line:
            said.append(line)

    run = open_workspace(store, say, (skipped if skipped is not None else []).append, jobs=jobs)
    request = Request((b"d",), DocumentParams(), {"threshold": T, "recall": recall})
    collection, sample_of = load_with_samples(run, request)
    if again:  # as if the documents had not been read in this run
        sample_of.func.__self__.parts.clear()
        collection = replace(collection, sets=None)
    sides = sides_of(run, collection, sample_of)
    params = BandParams(T, recall)
    found = join_contained(run, sides, params, exact=False, sample=sample)
    sizes = sides.sizes[documents_to_compare(run, sides.duplicate_of, sides.sizes)]
    names = list(collection.documents.names)
    columns = found.pairs.part(0, len(found.pairs))
    pairs = [
        (names[a], names[b], s) for a, b, s in zip(*(c.tolist() for c in columns), strict=True)
    ]
    return pairs, plan_join(sizes, params, run.memory, jobs, sample=sample)


def sides_of(run, collection, sample):
    source = set_source(run, collection, stage="documents")
    return Sides.of(run, side_of(collection, source, collection.sets, sample))


def test_samples_find_the_pairs_of_the_exact_join():
    write_insides("d", 60)
    every, plan = contained(sample=False)
    assert len(every) == 60
    assert plan.samples is None
    found, plan = contained()
    assert plan.samples.rate == 8
    assert set(found) == set(every)
    assert all(contained(None, jobs=jobs)[0] == found for jobs in (1, 2, 4))
    assert contained(None, again=True)[0] == found


def test_they_are_kept_and_grow_to_what_a_run_from_nothing_makes(monkeypatch):
    write_insides("d", 10)
    before = contained()[0]
    said = []
    with monkeypatch.context() as patch:
        patch.setattr(samples, "sample_sets", None)  # nothing is sampled a second time
        assert contained(said=said)[0] == before
    assert said == ["20 samples are taken from samples.npz"]
    write_insides("d", 5, seed=2)
    Path("d/1-003-a.txt").unlink()
    Path("d/1-004-a.txt").rename("d/0.txt")
    grown = contained()[0]
    assert len(grown) == 14
    assert contained("new")[0] == grown
    assert Path("new/samples.npz").read_bytes() == Path("store/samples.npz").read_bytes()


def test_a_smaller_rate_serves_a_larger_one_and_not_the_reverse():
    write_insides("d", 5)
    contained()
    contained("fine", recall=0.99999)
    shingle = ShingleParams()
    run, fine = open_workspace("store"), open_workspace("fine")
    rates = [load_samples(RUN, each.store, shingle, 1)[1] for each in (run, fine)]
    assert rates[0] > rates[1]
    assert contained("fine")[0] == contained()[0]
    assert load_samples(RUN, fine.store, shingle, 1)[1] == rates[1]
    contained(recall=0.99999)
    assert Path("fine/samples.npz").read_bytes() == Path("store/samples.npz").read_bytes()
    # What is new is sampled at the rate of what is stored, not at that of the run.
    write_insides("d", 3, seed=2)
    contained("fine")
    contained("anew", recall=0.99999)
    assert Path("fine/samples.npz").read_bytes() == Path("anew/samples.npz").read_bytes()


def test_an_interrupted_run_is_resumed(monkeypatch):
    write_insides("d", 20)
    every = contained("other")[0]
    monkeypatch.setattr(samples, "_PATIENCE", 0.0)
    monkeypatch.setattr(samples, "_BYTES_AT_ONCE", 100_000)
    original, parts = samples.sample_sets, []

    def sample_three(*args):
        if len(parts) == 3:
            raise KeyboardInterrupt
        parts.append(len(args[1]))
        return original(*args)

    monkeypatch.setattr(samples, "sample_sets", sample_three)
    with pytest.raises(KeyboardInterrupt):
        contained(again=True)
    monkeypatch.setattr(samples, "sample_sets", original)
    said = []  # The first part was made while documents were read.
    assert contained(said=said)[0] == every
    assert said == [f"{sum(parts[1:])} samples are taken from samples.npz"]


def test_a_first_pass_that_was_interrupted_is_not_sampled_again(monkeypatch):
    """Samples of its documents are saved with each segment of them."""
    write_insides("d", 20)
    every = contained("other")[0]
    with monkeypatch.context() as patch:
        patch.setattr(memo, "PATIENCE", 0.0)
        patch.setattr(Memo, "save", None)  # interrupted before signatures.npz is there
        with pytest.raises(TypeError):
            contained()
    assert Path("store/samples.npz").exists()
    said = []
    with monkeypatch.context() as patch:
        patch.setattr(samples, "sample_sets", None)
        assert contained(said=said)[0] == every
    assert said[0] == "resumed: 40 documents of an interrupted run are not read again"
    assert not Path("store/memo").exists()
    assert Path("store/samples.npz").read_bytes() == Path("other/samples.npz").read_bytes()


@pytest.mark.parametrize("damage", ["bytes", "rate", "order", "prints", "offsets", "kind", "seed"])
def test_damaged_and_forged_samples_are_made_anew(damage):
    write_insides("d", 5)
    before = contained()[0]
    path = Path("store/samples.npz")
    right = path.read_bytes()
    if damage == "bytes":
        path.write_bytes(right[:-3000] + bytes(100) + right[-2900:])
    else:
        artifact = npz.load(path, "samples", "")
        header, arrays = artifact.header, {name: a.copy() for name, a in artifact.arrays.items()}
        if damage == "rate":
            header["rate"] *= 2
        elif damage == "seed":
            header["seed"] = "1"
        elif damage == "order":
            arrays["values"][:2] = arrays["values"][1::-1]
        elif damage == "prints":
            arrays["fingerprints"][:2] = arrays["fingerprints"][1::-1]
        elif damage == "offsets":
            arrays["offsets"][1] = 1 << 62
        kind = "bands" if damage == "kind" else "samples"
        npz.save(path, kind, {n: v for n, v in header.items() if n not in ("kind",)}, arrays)
    with pytest.raises(ArtifactError, match=r"samples\.npz"):
        load_samples(RUN, open_workspace("store").store, ShingleParams(), 1)
    said = []
    assert contained(said=said)[0] == before
    assert len(said) == 1
    assert said[0].endswith("; it is rebuilt")
    assert path.read_bytes() == right


def test_a_document_that_changed_meanwhile_is_reported_and_in_no_pair(monkeypatch):
    write_insides("d", 5)
    original = Samples.load_or_make

    def change(*args):
        made = original(*args)
        Path("d/1-002-a.txt").write_text("something else")
        return made

    monkeypatch.setattr(Samples, "load_or_make", change)
    skipped = []
    assert len(contained(skipped=skipped, again=True)[0]) == 4
    assert [each.name for each in skipped] == [b"d/1-002-a.txt"]


def test_the_rate_serves_small_documents_unless_memory_needs_a_larger_one():
    sizes = np.full(10_000, 1000)
    params, enough = BandParams(T), 1 << 40
    assert plan_join(sizes, params, enough, 2).samples is None
    exact = plan_join(sizes, params, enough, 1).needed
    assert plan_join(sizes, params, exact - 1, 2).samples is not None
    assert plan_join(sizes, params, enough, 2, sample=True).count_small() == 0
    sizes[0] = 1  # Of very small documents the program says that they may be missed.
    small = plan_join(sizes, params, enough, 2, sample=True)
    assert (small.samples.rate, small.count_small()) == (8, 1)
    tight = plan_join(sizes, params, 16 << 20, 2)
    assert tight.samples.rate == 32
    assert tight.count_small() == np.count_nonzero(sizes < tight.samples.promised_from)
    assert plan_join(np.zeros(0, np.int64), params, 16 << 20, 2).count_small() == 0


def test_the_choice_of_the_join_does_not_depend_on_threads():
    """With memory for the exact join on two threads, it runs on two of four."""
    sizes, params = np.full(10_000, 1000), BandParams(T)
    needed = [plan_join(sizes, params, 1 << 62, jobs).needed for jobs in (1, 2, 3)]
    assert needed == sorted(set(needed))
    plans = [plan_join(sizes, params, needed[1], jobs) for jobs in (1, 2, 3, 4)]
    assert [(plan.samples, plan.jobs) for plan in plans] == [(None, jobs) for jobs in (1, 2, 2, 2)]
    assert [plan.needed for plan in plans] == [needed[0], *[needed[1]] * 3]
    few = [plan_join(sizes, params, needed[0] - 1, jobs).samples for jobs in (1, 4)]
    assert few[0] == few[1] is not None


def test_accidental_candidates_are_ruled_out_by_more_common_elements(monkeypatch):
    """What is promised then is less, and is said again."""
    write_insides("d", 10)
    found, said = contained(), []
    monkeypatch.setattr(sampled_join, "FEW_CANDIDATES", 9)
    monkeypatch.setattr(sampled_join, "CANDIDATES_EACH", 0)
    monkeypatch.setattr(sampled_join, "LARGEST_FLOOR", 3)
    request = Request((b"d",), DocumentParams(), {"threshold": T})
    run = open_workspace(None, said.append)
    sides = sides_of(run, *load_with_samples(run, request))
    again = join_contained(run, sides, BandParams(T), exact=False, sample=True)
    assert re.findall(r"pairs have (\d) or more", " ".join(said)) == ["2", "3"]
    promises = [int(n) for n in re.findall(r"if the smaller document has (\d+)", " ".join(said))]
    assert len(promises) == 3
    assert promises == sorted(promises)
    assert len(again.pairs) == len(found[0]) == 10
