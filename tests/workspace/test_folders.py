"""The folders above documents, as `lshdup folders` compares them."""

import os

import numpy as np

from lshdup.workspace.folders import find_folders
from tests.conftest import write_files
from tests.documents import find


def folders_of(*names, cwd):
    os.chdir(cwd)
    documents, _ = find(*names)
    found = find_folders(documents)
    typed = found.typed_names(documents, np.arange(len(found.examples)))
    parents = found.tree.parents.tolist()
    names = [None, *(each.decode() for each in typed[1:])]
    return {names[i]: names[parents[i]] for i in range(1, len(parents))}


def test_folders_above_names(here):
    names = "a/b/c/1 a/b/c/2 a/d/3 e/f/g/h/4 w/5 w/x/6 w/x/-y/7".split()
    write_files(here, dict.fromkeys(names, "x"))
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
