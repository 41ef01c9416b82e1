"""Machine code of kernels: made from the pack without numba, stored, checked, loaded."""

import os
import shutil
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("numba", reason="no numba: pip install 'lshdup[kernels]'")

from llvmlite.binding import get_process_triple

from lshdup.kernels.native import cache, images, machine_code, pack
from lshdup.kernels.native.machine_code import object_code, target
from tests.conftest import ROOT, part

SKETCH = """
import sys, numpy as np
from lshdup.kernels import jit, sketch
from lshdup.kernels.native import cache
compiled, own = [], cache.write
def write(*args):
    compiled.append(1)
    return own(*args)
cache.write = write
jit.notify_of_waits(lambda message: print(message, end=" | "))
rows = np.array([[1, 2, 3], [1, 5, 3]], np.uint32)
out = np.zeros(1, np.int64)
sketch.agreeing_rows(rows, np.array([0]), np.array([1]), out)
assert out[0] == 2
print("compiled" if compiled else "loaded", *["numba"] * bool(sys.modules.get("numba")))
"""

#: As if numba were not installed.
WITHOUT_NUMBA = """
import importlib.metadata, sys
own = importlib.metadata.version
def version(name):
    if name == "numba": raise importlib.metadata.PackageNotFoundError(name)
    return own(name)
importlib.metadata.version, sys.modules["numba"] = version, None
"""

#: As if the processor had none of the instructions that came after the first of its kind.
OLD_PROCESSOR = """
import llvmlite.binding as llvm, platform
class Features(dict):
    def flatten(self): return ""
llvm.get_host_cpu_features = Features
llvm.get_host_cpu_name = lambda: {"x86_64": "x86-64"}.get(platform.machine(), "generic")
from lshdup.kernels.native import cache
cache.processor = lambda: {"flags": "none"}
"""


@pytest.fixture(scope="session")
def own_pack(kernels):
    """A pack of the sources with two kernels."""
    return pack.Pack(pack.digest_of_sources(), "a compiler", kernels)


@pytest.fixture
def package(tmp_path, own_pack):
    """A copy of the package with a cache of its own, and a function that runs a script in it."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "lshdup", tmp_path / "lshdup", ignore=ignored)
    packed = tmp_path / "lshdup" / pack.PATH.relative_to(ROOT / "lshdup")
    packed.write_bytes(own_pack.to_bytes())

    def run(before="", script=SKETCH, code=0, **environment):
        process = subprocess.run(
            [sys.executable, "-c", before + script],
            cwd=tmp_path, env=base | environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert process.returncode == code, process.stderr
        return (process.stdout if not code else process.stderr).removesuffix("\n")

    cache = tmp_path / "cache"
    base = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(cache)}
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        base.pop(name, None)
    return SimpleNamespace(
        run=run, folder=tmp_path, packed=packed,
        beside=tmp_path / "__pycache__", cache=cache / "lshdup",
        files=lambda folder: sorted(folder.glob("*.kernel*")),
    )  # fmt: skip


def test_the_first_process_compiles_without_numba_and_the_second_loads_without_llvm(package):
    assert package.run(WITHOUT_NUMBA) == "compiled"
    assert package.run("import sys; sys.modules['llvmlite.binding'] = None\n") == "loaded"
    # pip uninstalls byte code; what else is there would keep an empty package importable.
    assert not list((package.folder / "lshdup").rglob("*.kernel*"))


def test_changed_sources_without_numba_name_what_to_install(package):
    program = "import sys; sys.argv = ['lshdup', 'pairs', 'lshdup', '--no-store']\n"
    program += "from lshdup.cli.main import program; program()"
    package.packed.unlink()
    said = package.run(WITHOUT_NUMBA, program, code=2)
    assert "sources of kernels were changed" in said
    assert said.endswith("pip install 'lshdup[kernels]'")
    assert "Traceback" not in said


#: A processor that the system says nothing of; and another system, which has no images.
OTHERS = {
    "silent": "cache.processor = dict",
    "without images": "images.fit, images.link = lambda triple: False, lambda *args: None",
}


@pytest.mark.parametrize("other", OTHERS)
def test_other_systems_have_llvm_load_what_is_stored(package, other):
    before = f"from lshdup.kernels.native import cache, images\n{OTHERS[other]}\n"
    assert package.run(before) == "compiled"
    (cached,) = package.files(package.beside)
    assert cached.read_bytes()[16:].startswith(b"image ") == (other == "silent")
    assert package.run(before) == "loaded"


def test_kernels_have_images_unless_addresses_are_in_their_code(own_pack):
    """What LLVM makes for code that stays where it is has 64-bit addresses."""
    packed = (pack.read_pack() or own_pack).kernels
    for symbol, ir in part(sorted(packed.items()), 12):
        assert images.link(object_code(ir, machine_code.this_machine()), symbol)
    fixed = target(get_process_triple(), reloc="static", codemodel="jitdefault")
    name = max(packed, key=lambda each: len(packed[each]))
    assert images.link(object_code(packed[name], fixed), name) is None
    assert images.link(b"another format", name) is None


def test_what_is_expected_is_compiled_too(package):
    """By another process, which finds this program where it is, and nothing in the folder."""
    (package.folder / "json.py").write_text("raise SystemExit('not the module')")
    before = "import sys; del sys.path[0]\nfrom lshdup.kernels import jit\n"
    before += "jit.expect(['sketch.agreeing_rows', 'clusters.find_roots', 'no.kernel'], 2)\n"
    environment = {"PYTHONPATH": str(package.folder / "path")}
    (package.folder / "path").mkdir()
    (package.folder / "path/lshdup").symlink_to(package.folder / "lshdup")
    assert package.run(before, **environment) == "compiled"
    assert len(package.files(package.folder / "path/__pycache__")) == 2


def test_what_is_kept_is_not_compiled_again(kernels, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    # Other tests may have stored one of the kernels there.
    monkeypatch.setattr(cache, "_beside", lambda: tmp_path / "beside")
    monkeypatch.setattr(pack, "packed_kernels", lambda: kernels)
    for _ in range(2):
        machine_code.store_together(kernels, 1)
        assert len(list((tmp_path / "lshdup").iterdir())) == 2
        monkeypatch.setattr(machine_code, "compile_ir", None)


@pytest.mark.parametrize("damages", [2, pytest.param(5, marks=pytest.mark.long)])
def test_damaged_code_is_compiled_anew(package, damages):
    package.run()
    (cached,) = package.files(package.beside)
    whole = cached.read_bytes()
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    for damaged in (whole[:-1], flipped, whole[:100], b"", b"\0" * 16 + whole)[:damages]:
        cached.write_bytes(damaged)
        assert package.run() == "compiled"
        assert cached.read_bytes() == whole


def test_the_cache_goes_where_it_can(package):
    package.beside.write_text("in the way")
    assert package.run() == "compiled"
    (cached,) = package.files(package.cache)
    assert cached.stat().st_mode & 0o777 == 0o644  # every user of an installation can load it
    # Nor beside the package if that is Python's own setting.
    package.beside.unlink()
    cached.unlink()
    elsewhere = package.folder / "elsewhere"
    assert package.run(PYTHONPYCACHEPREFIX=str(elsewhere)) == "compiled"
    assert len(list(elsewhere.rglob("*.kernel"))) == 1
    assert package.run(PYTHONDONTWRITEBYTECODE="1") == "compiled"
    assert len(package.files(package.cache)) == 1
    assert not package.beside.exists()


def test_a_cache_that_cannot_be_is_not_promised(package):
    """Every run compiled and said that the kernels are kept."""
    package.beside.write_text("in the way")
    package.cache.parent.write_text("in the way too")
    said, what = package.run().rsplit(" | ", 1)
    assert what == "compiled"
    assert "every run compiles" in said
    assert "XDG_CACHE_HOME" in said


def test_a_shipped_package_has_its_pack(package):
    """With Spark's --py-files the package is a zip file, beside which nothing can be written."""
    shutil.make_archive(str(package.folder / "shipped"), "zip", package.folder, "lshdup")
    shutil.rmtree(package.folder / "lshdup")
    environment = {"PYTHONPATH": str(package.folder / "shipped.zip")}
    assert package.run(WITHOUT_NUMBA, **environment) == "compiled"
    assert package.run(WITHOUT_NUMBA, **environment) == "loaded"
    assert len(package.files(package.cache)) == 1


@pytest.fixture
def caching(tmp_path, monkeypatch):
    """The folder of a cache with some code."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert cache.write("kernel", "1", b"code")
    return tmp_path


def test_code_is_kept_and_loaded_where_no_other_can_write(caching):
    """It loaded machine code from any folder that XDG_CACHE_HOME named."""
    (kept,) = (caching / "lshdup").iterdir()
    for path in (kept, kept.parent):
        path.chmod(0o777)
        assert cache.read("kernel", "1") is None
        assert cache.write("kernel", "2", b"code") == (path == kept)
        path.chmod(0o755)
        assert cache.read("kernel", "1") == b"code"
        if os.geteuid() == 0:
            os.chown(path, 12345, -1)
            assert cache.read("kernel", "1") is None
            os.chown(path, 0, -1)


def test_no_link_in_the_cache_is_followed(caching):
    outside, (cached,) = caching / "outside", (caching / "lshdup").iterdir()
    outside.write_bytes(b"mine")
    for led_to in (outside, caching / "none"):
        cached.unlink()
        cached.symlink_to(led_to)
        assert cache.read("kernel", "1") is None
        assert cache.write("kernel", "1", b"code")
        assert cache.read("kernel", "1") == b"code"
        assert not cached.is_symlink()
    assert [outside.read_bytes(), sorted(os.listdir(caching))] == [b"mine", ["lshdup", "outside"]]


def test_installations_and_processors_share_a_folder(package):
    """Each replaced the files of the other: a home folder may be on several machines."""
    kept = {"PYTHONDONTWRITEBYTECODE": "1"}
    assert package.run(**kept) == "compiled"
    assert package.run(OLD_PROCESSOR, **kept) == "compiled"
    # Changed sources are compiled by numba, as soon as they are changed, and once.
    source = package.folder / "lshdup/kernels/sets.py"
    before = source.read_text()
    source.write_text(f"{before}\n# another file, because kernels call each other's helpers\n")
    said, what = package.run(**kept).rsplit(" | ", 1)
    assert what == "compiled numba"
    assert "sources were changed" in said
    assert package.run(**kept) == "loaded"
    pack_file = package.packed.rename(package.folder / "a pack of other sources")
    assert package.run(**kept) == "loaded"
    pack_file.rename(package.packed)
    source.write_text(before)
    assert package.run(**kept) == "loaded"
    assert package.run(OLD_PROCESSOR, **kept) == "loaded"
    assert len(package.files(package.cache)) == 3


def test_what_killed_writers_left_is_deleted(package):
    package.beside.mkdir(mode=0o755)
    names = ("lshdup.a-1.kernel-part", "lshdup.a-1.kernel", "lshdup.py", "other.kernel")
    for name in names:
        path = package.beside / name
        path.touch()
        os.utime(path, (0, time.time() - 2 * 3600))
    package.run()
    left = {path.name for path in package.beside.iterdir()} & {*names}
    assert left == {*names[1:]}
    for path in package.beside.glob("lshdup.*.kernel"):
        os.utime(path, (0, 0))
    assert package.run() == "loaded"
    assert package.run(OLD_PROCESSOR) == "compiled"
    assert len(package.files(package.beside)) == 2  # the new one, and one of another program


@pytest.mark.parametrize(
    ("machine", "cpu", "number"), [("aarch64", "generic", 183), ("x86_64", "x86-64", 62)]
)
def test_the_pack_is_for_every_processor(own_pack, machine, cpu, number):
    """LLVM makes object code of it (ELF's e_machine tells for what)."""
    packed = pack.read_pack() or own_pack
    for _, ir in part(sorted(packed.kernels.items()), 12):
        code = object_code(ir, target(f"{machine}-unknown-linux-gnu", cpu=cpu, reloc="pic"))
        assert code[:4] == b"\x7fELF"
        assert int.from_bytes(code[18:20], "little") == number
