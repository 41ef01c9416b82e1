"""`lshdup folders` on planted trees, and the folders above names."""

import os
import random
import shutil

import numpy as np
import pytest

from lshdup.base.run import Run
from lshdup.params import DocumentParams
from lshdup.sources.finding import find_documents
from lshdup.workspace.folders import find_folders

RNG = random.Random(5)
WORDS = ["".join(RNG.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(4000)]


def text(words=80):
    return " ".join(RNG.choices(WORDS, k=words))


def plant(folder, names):
    """Documents of random words, unlike all others."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(RNG.randrange(60, 120)))


def size(folder, only=lambda path: True):
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and only(p))


@pytest.fixture
def tree(tmp_path):
    """A folder of 12 documents in folders of its own, and others unlike it."""
    names = [f"letters/{n}.txt" for n in range(5)] + [f"notes/{n}/a.txt" for n in range(4)]
    plant(tmp_path / "t/first", [*names, "x.txt", "y.txt", "z.txt"])
    plant(tmp_path / "t/other", [f"m/{n}.txt" for n in range(6)] + ["p/q.txt"])
    return tmp_path / "t"


def rows(run, *options):
    answer = run("folders t --no-store -q", *options)
    return [
        (a, b, float(j), float(c), *map(int, counts)) for a, b, j, c, *counts in answer.ok().rows
    ]


def test_copies(run, tree):
    """A copy, one of other names, a nested one, all at once: once each, beside the first."""
    found = run("folders t --no-store --check")
    assert not found.rows
    assert "0 pairs of 11 folders: one holds 0.8 or more of the other" in found.err
    first = tree / "first"
    shutil.copytree(first, tree / "second")
    shutil.copytree(first, tree / "other/old/stuff")
    renamed = tree / "renamed"
    for number, path in enumerate(sorted(first.rglob("*.txt"))):
        new = renamed / str(number % 3) / f"{number}.text"
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, new)
    same = (1.0, 1.0, 12, 12, 12, size(first))
    wanted = [("t/first", b, *same) for b in ("t/other/old/stuff", "t/renamed", "t/second")]
    assert rows(run) == wanted
    assert rows(run, "--same", "bytes") == rows(run, "--exact") == wanted
    jobs = [run("folders t --no-store -j", n).out for n in "124"]
    assert len(set(jobs)) == 1
    assert run("folders t --check -q", code=1).rows


def test_a_partial_copy_is_inside(run, tree):
    """Some folders only, among other documents."""
    for name in ("letters", "notes"):
        shutil.copytree(tree / "first" / name, tree / "part" / name)
    plant(tree / "part", ["new.txt"])
    shared = size(tree / "part") - (tree / "part/new.txt").stat().st_size
    total = size(tree / "first") + size(tree / "part") - shared
    (row,) = rows(run, "--containment", "0.7")
    assert row[:2] == ("t/part", "t/first")
    assert row[2:] == (shared / total, shared / size(tree / "part"), 10, 12, 9, shared)


def folders_of(*names, cwd):
    os.chdir(cwd)
    documents = find_documents(Run.quiet(), [os.fsencode(name) for name in names], DocumentParams())
    found = find_folders(documents)
    typed = found.typed_names(documents, np.arange(len(found.examples)))
    parents = found.tree.parents.tolist()
    names = [None, *(each.decode() for each in typed[1:])]
    return {names[i]: names[parents[i]] for i in range(1, len(parents))}


def test_folders_above_names(here):
    plant(here, ["a/b/c/1", "a/b/c/2", "a/d/3", "e/f/g/h/4", "w/5", "w/x/6", "w/x/-y/7"])
    assert folders_of("a", "e", cwd=here) == {
        ".": None, "a": ".", "a/b/c": "a", "a/d": "a", "e/f/g/h": ".",
    }  # fmt: skip
    # What is above the current folder holds it.
    assert folders_of(".", "..", "../../e", cwd=here / "w/x") == {
        "../..": None, "..": "../..", ".": "..", "./-y": ".", "../../e/f/g/h": "../..",
    }  # fmt: skip
    above = folders_of(here / "a", "5", cwd=here / "w")
    assert above == {".": None, f"{here}/a": None, f"{here}/a/b/c": f"{here}/a",
                     f"{here}/a/d": f"{here}/a"}  # fmt: skip
