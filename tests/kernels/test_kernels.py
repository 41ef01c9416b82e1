"""Kernels as machine code: compiled once, cached, checked, loaded without the compiler."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from lshdup.kernels.helpers import inlined, mix64, mix64_array
from lshdup.kernels.jit import kernel
from lshdup.kernels.sketch import agreeing_rows
from tests import reference
from tests.conftest import ROOT

SKETCH = """
import sys, numpy as np
from lshdup.kernels import jit, sketch
jit.on_first_compilation(lambda: print("compiling"))
rows = np.array([[1, 2, 3], [1, 5, 3]], np.uint32)
out = np.zeros(1, np.int64)
sketch.agreeing_rows(rows, np.array([0]), np.array([1]), out)
print(out[0], "numba" in sys.modules)
"""


@pytest.fixture
def package(tmp_path):
    """Return a copy of the package with a cache of its own, and a function that runs a script in
    it.
    """
    shutil.copytree(
        ROOT / "lshdup", tmp_path / "lshdup", ignore=shutil.ignore_patterns("__pycache__")
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }

    def run(before=""):
        return subprocess.run(
            [sys.executable, "-c", before + SKETCH],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    return tmp_path, run


def test_the_second_process_loads_what_the_first_compiled(package):
    _, run = package
    assert run() == "compiling\n2 True\n"
    assert run() == "2 False\n"


@pytest.mark.parametrize("damages", [2, pytest.param(5, marks=pytest.mark.long)])
def test_a_damaged_or_outdated_cache_is_compiled_anew(package, damages):
    folder, run = package
    run()
    (cached,) = (folder / "lshdup/kernels/__pycache__").glob("*.kernel")
    whole = cached.read_bytes()
    for damaged in (
        whole[:-1],
        whole[:-1] + bytes([whole[-1] ^ 1]),
        whole[:100],
        b"",
        b"{}\n" + whole,
    )[:damages]:
        cached.write_bytes(damaged)
        assert run() == "compiling\n2 True\n"
        assert cached.read_bytes() == whole
    with (folder / "lshdup/kernels/sets.py").open("a") as source:
        source.write("\n# another file, because kernels call each other's helpers\n")
    assert run() == "compiling\n2 True\n"
    assert run() == "2 False\n"


def test_the_cache_goes_where_it_can(package):
    folder, run = package
    (folder / "lshdup/kernels/__pycache__").write_text("in the way")
    assert run() == "compiling\n2 True\n"
    assert run() == "2 False\n"
    (cached,) = (folder / "cache/lshdup").glob("*.kernel")
    assert cached.stat().st_mode & 0o777 == 0o644  # every user of an installation can load it
    shutil.rmtree(folder / "cache")
    (folder / "cache").write_text("in the way too")
    assert run() == run() == "compiling\n2 True\n"


@pytest.mark.parametrize("what", ["get_host_cpu_name", "get_host_cpu_features"])
def test_code_of_another_processor_is_not_loaded(package, what):
    """A home folder may be on several machines, and an image may be moved to an older one."""
    _, run = package
    run()
    other = f"import llvmlite.binding as b; b.{what} = lambda own=b.{what}: Other(own())\n"
    class_ = """
class Other(str):
    def __new__(cls, own): return str.__new__(cls, "pentium")
    def flatten(self): return ""
"""
    assert run(class_ + other) == "compiling\n2 True\n"


def test_kernels_take_contiguous_arrays_only():
    rows = np.zeros((4, 8), np.uint32)
    with pytest.raises(TypeError, match="contiguous"):
        agreeing_rows(rows[:, ::2], np.array([0]), np.array([1]), np.zeros(1, np.int64))


def test_what_is_no_kernel_is_refused(tmp_path, monkeypatch):
    from numba.core.errors import NumbaError

    def allocates(n):
        return len(np.zeros(n))

    def returns_a_pair(n):
        return n, n

    for function, error in ((allocates, NumbaError), (returns_a_pair, RuntimeError)):
        with pytest.raises(error):
            kernel(function)(3)


def test_helpers_are_python_too():
    """Outside of kernels a helper is a Python function, before and after a compilation."""
    assert int(mix64(np.uint64(0))) == 0
    assert inlined(lambda x: x + 1)(1) == 2


def test_arrays_are_mixed_after_a_compilation_too():
    """`show --shingles --bag` failed in the first run on a machine."""
    from numba.core.errors import NumbaError

    def allocates(n):
        return len(np.zeros(n))

    with pytest.raises(NumbaError):
        kernel(allocates)(3)
    words = np.arange(5, dtype=np.uint64)
    assert mix64_array(words).tolist() == [reference.mix64(word) for word in range(5)]
