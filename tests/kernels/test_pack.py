"""The pack of compiled kernels: how it is made, and that it is that of the sources."""

import subprocess
import sys

import pytest

pytest.importorskip("numba", reason="no numba: pip install 'lshdup[kernels]'")

from lshdup.kernels.jit import Kernel
from lshdup.kernels.native import lowering, pack
from lshdup.pipeline import KERNELS
from tests.conftest import ROOT


def test_the_lowest_versions_make_the_pack():
    command = [sys.executable, ROOT / ".ci/lowest.py"]
    lowest = subprocess.check_output(command, text=True).splitlines()
    python, *compilers = (word.split() for word in lowering.COMPILER.split(", "))
    assert f'requires-python = ">={python[1]}"' in (ROOT / "pyproject.toml").read_text()
    for name, version in compilers:
        (line,) = (line for line in lowest if line.startswith(f"{name}=="))
        assert version == line.removeprefix(f"{name}==") + ".0"


def test_the_pack_is_that_of_the_sources():
    """Otherwise every first run needs numba, and takes ten times as long. CI compares the IR."""
    assert pack.pack_compiler() == lowering.COMPILER, "kernels were changed: run .ci/pack"
    symbols = {each for kernel in lowering.all_kernels().values() for each in kernel.variants}
    assert set(pack.packed_kernels()) == symbols


def test_without_a_pack_kernels_are_compiled(monkeypatch, tmp_path):
    cached = pack._file, pack.pack_compiler, pack.packed_kernels
    with monkeypatch.context() as patch:
        patch.setattr(pack, "PATH", tmp_path / "kernels.ir")
        for each in cached:
            each.cache_clear()
        assert pack.read_pack() is None
        assert (pack.pack_compiler(), pack.packed_kernels()) == (None, {})
    for each in cached:
        each.cache_clear()


def test_the_pack_is_made_of_all_variants_of_a_kernel(monkeypatch):
    kernels = lowering.all_kernels()
    monkeypatch.setattr(lowering, "all_kernels", lambda: {"copy": kernels["sets.copy_runs"]})
    made = pack.Pack(**vars(lowering.make_pack()))
    assert set(made.kernels) == {"sets.copy_runs.uint8", "sets.copy_runs.uint64"}
    assert all(f"@{symbol}(" in text for symbol, text in made.kernels.items())


def test_another_compiler_is_refused(monkeypatch, capsys):
    """Its pack would differ, and an older LLVM might not read it."""
    monkeypatch.setattr(sys, "argv", ["lowering", "--check"])
    monkeypatch.setattr(lowering, "installed_compiler", lambda: "Python 2.7")
    with pytest.raises(SystemExit) as end:
        lowering.main()
    assert end.value.code == 2
    assert "run .ci/pack" in capsys.readouterr().err


def test_every_kernel_declares_what_it_takes():
    kernels = lowering.all_kernels()
    assert len(kernels) > 30
    assert all(isinstance(each, Kernel) and each.variants for each in kernels.values())
    symbols = [symbol for each in kernels.values() for symbol in each.variants]
    assert len(symbols) == len(set(symbols))


def test_pairs_names_its_kernels():
    """They are compiled at once, so that all processors share the first run's wait."""
    script = (
        "import sys\nfrom lshdup.kernels import jit\nload, loaded = jit._load, []\n"
        "jit._load = lambda *args: (loaded.append(args[1]), load(*args))[1]\n"
        "sys.argv = ['lshdup', 'pairs', 'sample_corpus', '--no-store', '-q', '-o', '/dev/null']\n"
        "from lshdup.cli.main import main\ntry: main()\nexcept SystemExit: print(*loaded)"
    )
    printed = subprocess.check_output([sys.executable, "-c", script], text=True, cwd=ROOT)
    assert sorted(printed.split()) == sorted(KERNELS)
