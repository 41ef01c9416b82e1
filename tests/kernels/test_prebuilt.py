"""Machine code of kernels that comes with a wheel: how it is made, and which is loaded."""

import ctypes
import importlib.util
import os

import numpy as np
import pytest

from lshdup.kernels import sketch
from lshdup.kernels.jit import Kernel
from lshdup.kernels.native import prebuilt
from tests.conftest import failing, require

X86 = prebuilt.LEVELS["x86_64"]


@pytest.fixture
def linking():
    require("kernels", "llvmlite")
    return prebuilt


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder where libraries are looked for."""
    monkeypatch.setattr(prebuilt, "_FOLDER", tmp_path)
    prebuilt._library.cache_clear()
    yield tmp_path
    prebuilt._library.cache_clear()


def test_the_best_level_of_a_processor():
    assert [*X86] == ["x86-64-v3", "x86-64"]
    assert prebuilt.best_level("x86_64", X86["x86-64-v3"] | {"sse2"}) == "x86-64-v3"
    for missing in X86["x86-64-v3"]:
        assert prebuilt.best_level("x86_64", X86["x86-64-v3"] - {missing}) == "x86-64"
    assert prebuilt.best_level("aarch64", frozenset()) == "generic"


def test_an_installation_without_libraries_compiles(folder):
    assert prebuilt.address("sketch.agreeing_rows") is None


def test_an_installed_wheel_is_prebuilt():
    """Where CI says so, the tests of kernels run on its libraries; the sources have none."""
    is_wheel = "prebuilt" in os.environ.get("LSHDUP_REQUIRE", "").split(",")
    assert (prebuilt.address("sketch.agreeing_rows") is not None) == is_wheel


def test_libraries_of_all_levels_are_linked_and_called(linking, kernels, folder, monkeypatch):
    machine = os.uname().machine
    (folder / "again").mkdir()
    made, again = (linking.link_libraries(into, kernels) for into in (folder, folder / "again"))
    assert [path.read_bytes() for path in made] == [path.read_bytes() for path in again]
    assert [path.name for path in made] == [*map(prebuilt.file_name, prebuilt.LEVELS[machine])]
    for path in made:
        library = ctypes.CDLL(str(path))
        assert all(library[symbol] for symbol in kernels)
    for features in (prebuilt._features(), frozenset()):
        prebuilt._library.cache_clear()
        monkeypatch.setattr(prebuilt, "_features", lambda found=features: found)
        rows = np.array([[1, 2, 3], [1, 5, 3]], np.uint32)
        out = np.zeros(1, np.int64)
        Kernel(sketch.agreeing_rows.function)(rows, np.array([0]), np.array([1]), out)
        assert out[0] == 2
        level = prebuilt.best_level(machine, features)
        assert prebuilt._library()._name == str(folder / prebuilt.file_name(level))


#: What is wrong, and what is said.
FAILURES = {
    "no linker": "install a C compiler, or run `pip install ziglan",
    "a linker that fails": "my-cc cannot link the kernels: no such option",
    "a pack of other sources": r"run \.ci/pack",
    "another machine": "only for Linux on x86_64 or aarch64",
}


@pytest.mark.parametrize("failure", FAILURES)
def test_why_libraries_are_not_linked(linking, kernels, tmp_path, monkeypatch, failure):
    if failure == "no linker":
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    elif failure == "a linker that fails":
        compiler = tmp_path / "my-cc"
        compiler.write_text("#!/bin/sh\necho no such option >&2\nexit 1\n")
        compiler.chmod(0o755)
        monkeypatch.setenv("CC", str(compiler))
    elif failure == "another machine":
        monkeypatch.setattr(linking.sys, "platform", "darwin")
    with pytest.raises(linking.LinkError, match=FAILURES[failure]):
        linking.link_libraries(tmp_path, {} if failure == "a pack of other sources" else kernels)


def test_a_processor_of_which_nothing_is_told_has_the_least(monkeypatch):
    assert prebuilt._features() or os.uname().machine != "x86_64"
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.open", failing(FileNotFoundError()))
        assert prebuilt._features() == frozenset()
        assert prebuilt.best_level("x86_64", prebuilt._features()) == [*X86][-1]
