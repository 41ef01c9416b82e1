"""`clusters DOCS --against OTHER`: what goes, what stays, and that nothing of OTHER ever goes."""

import json
import os
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests import reference
from tests.conftest import part, write_files
from tests.workspace.test_against import brute_force, state_of

WORDS = [f"word{i}" for i in range(400)]
BANDS = ("--recall", "0.99999", "--perms", "256")


@pytest.fixture
def two_sides(here):
    """Folders `new` and `old` of near-copies of every degree, with copies within and across."""
    rng = np.random.default_rng(11)
    originals = [[WORDS[int(w)] for w in rng.integers(0, 400, 60)] for _ in range(16)]
    for folder, n, some in (("new", 40, originals), ("old", 40, originals[:9])):
        (here / folder).mkdir()
        for i in range(n):
            words = list(some[int(rng.integers(len(some)))])
            for _ in range(int(rng.integers(0, 6))):
                words[int(rng.integers(60))] = f"new{int(rng.integers(500))}"
            Path(folder, f"{i:03}").write_text(" ".join(words))
    shutil.copy("old/003", "new/copy")
    shutil.copy("new/001", "new/again")
    write_files(".", {"new/upper": Path("old/005").read_text().upper(), "new/empty": ""})
    return here


def near(threshold):
    """The similarities of the pairs across the folders, by brute force."""
    pairs = brute_force(threshold)
    return {(os.fsdecode(a), os.fsdecode(b)): similarity for a, b, similarity in pairs}


HOW = BANDS, ("--exact",), (*BANDS, "--keep", "longest", "-j", "4")


@pytest.mark.parametrize(("how", "threshold"), part(product(HOW, ("0.5", "0.8", "1")), 3))
def test_what_is_near_goes_and_the_rest_is_grouped_as_ever(two_sides, run, threshold, how):
    pairs, before = near(float(threshold)), state_of("old")
    gone = {a for a, _ in pairs}
    compared = {name for name, each in reference.folder_sets("new").items() if each}
    assert 2 <= len(gone) < len(compared) - 3
    options = ("--against", "old", "-t", threshold, *how, "--no-store")
    rows = [*map(json.loads, run("clusters new", *options, "--format", "jsonl").lines)]
    other = {row["group"]: row["name"] for row in rows if row["role"] == "other"}
    led = {row["name"]: row for row in rows if row["role"] == "drop" and row["group"] in other}
    assert led.keys() == gone
    for name, row in led.items():
        assert row["similarity"] == pairs[name, other[row["group"]]]
        assert row["copy"] == (row["similarity"] == 1)
    assert led["new/copy"]["same"] == "bytes"
    assert led["new/upper"]["same"] == "text"
    # The rest is what `clusters` makes of it alone.
    Path("rest").mkdir()
    for name in compared - gone:
        shutil.copy2(name, "rest")
    alone = run("clusters rest", *options[2:], "--format", "jsonl").lines
    grouped = [row | {"group": 0} for row in rows if row["group"] not in other]
    alone = (json.loads(row.replace('"rest/', '"new/')) | {"group": 0} for row in alone)
    assert grouped == list(alone)
    emitted = (run("clusters new", *options, "--emit", what).lines for what in ("keep", "drop"))
    keep, drop = map(set, emitted)
    assert keep | drop == compared | {"new/empty"}  # which is not compared, and stays
    assert not keep & drop
    assert gone <= drop
    assert state_of("old") == before


@pytest.mark.parametrize("same", ["bytes", "text"])
def test_what_is_the_same(two_sides, run, same):
    form = str if same == "bytes" else str.lower
    texts = {str(p): form(p.read_text()) for p in sorted(Path("new").iterdir())}
    there = {form(p.read_text()) for p in Path("old").iterdir()}
    met, drop = set(there), []
    for name, text in sorted(texts.items(), key=lambda each: (len(each[0]), each[0])):
        if text and text in met:
            drop.append(name)
        met.add(text)
    options = ("--against", "old", "--same", same, "--no-store", "--emit", "drop", "-0")
    found = run("clusters new", *options).out.decode().split("\0")[:-1]
    assert found == sorted(drop)
    assert ("new/upper" in drop) == (same == "text")


def test_rows_are_written_without_what_goes(two_sides, run):
    texts = {}
    for side in ("new", "old"):
        texts[side] = [p.read_text() for p in sorted(Path(side).iterdir())]
        lines = [json.dumps({"text": text, "n": i}) for i, text in enumerate(texts[side])]
        Path(f"{side}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    old = Path("old.jsonl").read_bytes()
    options = ("clusters", "new.jsonl", "--against", "old.jsonl", *BANDS, "--no-store")
    result = run(*options, "--write", "out.jsonl")
    assert not result.out
    dropped = {int(name.split(":")[1]) for name in run(*options, "--emit", "drop").lines}
    lines = Path("new.jsonl").read_text().splitlines()
    kept = [line for number, line in enumerate(lines, 1) if number not in dropped]
    assert Path("out.jsonl").read_text().splitlines() == kept
    names = sorted(str(p) for p in Path("new").iterdir())
    assert {names.index(a) + 1 for a, _ in near(0.8)} <= dropped
    # Rows against files; and OTHER is no target, by any name.
    run("clusters new.jsonl --against old --no-store --write b.jsonl")
    assert Path("b.jsonl").exists()
    os.link("old.jsonl", "same.jsonl")
    for target, option in product(("old.jsonl", "same.jsonl"), ("--write", "-o")):
        refused = run(*options, option, target, code=2).err
        assert f"{option} {target} would replace --against old.jsonl" in refused
    run("index old.jsonl --store archive")
    refused = run(*options[:3], "archive", "--no-store", "--write", "same.jsonl", code=2).err
    assert "--write same.jsonl would replace --against old.jsonl" in refused
    assert Path("old.jsonl").read_bytes() == old
