"""The direction of imports, what may not be imported, and what the first milliseconds import."""

import ast
import gc
import graphlib
import os
import platform
import subprocess
import sys

import pytest

from tests.conftest import ROOT, write_files

#: The rooms, from the foundations up: packages, and modules of the top folder. A room imports
#: only from lines above its own; within a line nothing imports anything. Inside a package only
#: circles are forbidden.
LAYERS = """
errors kernels
base
lsh text
compare shingling sources
collection evaluation passages
pipeline spark store views
workspace
api cli
"""
LEVEL = {room: line for line, rooms in enumerate(LAYERS.split("\n")) for room in rooms.split()}

#: The top of the package, which imports lazily, and what `python -m lshdup` starts.
ENTRANCES = {"__init__", "__main__"}

#: Imported when they are first used, or for types only; `test_what_is_not_imported` holds that.
LATER = {("__init__", "api")}


class Package:
    """The nodes of the modules of a package, by dotted names below it, and their imports."""

    def __init__(self, folder):
        self.folder = folder
        self.nodes = {}
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(folder).with_suffix("").parts)
            tree = ast.parse(path.read_text("utf-8"))
            self.nodes[name.removesuffix(".__init__")] = list(ast.walk(tree))
        self.arrows = {
            name: {self.module_of(path) for path in imported_paths(nodes)} - {name}
            for name, nodes in self.nodes.items()
        }

    def module_of(self, path):
        """The module that a dotted path leads to: the longest beginning of it that is one."""
        while path and path not in self.nodes:
            path = path.rpartition(".")[0]
        return path or "__init__"

    def upwards(self):
        """Imports that do not go down."""
        arrows = ((a, b) for a in {*self.arrows} - ENTRANCES for b in self.arrows[a])
        levels = ((a, b, LEVEL[room(a)], LEVEL.get(room(b), len(LEVEL))) for a, b in arrows)
        return [f"{a} imports {b}" for a, b, i, j in levels if room(a) != room(b) and j >= i]

    def circle(self):
        """Modules of a circle of imports, or []."""
        later = {name: {b for a, b in LATER if a == name} for name in self.arrows}
        arrows = {name: others - later[name] for name, others in self.arrows.items()}
        try:
            list(graphlib.TopologicalSorter(arrows).static_order())
        except graphlib.CycleError as circle:
            return circle.args[1][::-1]
        return []

    def private_imports(self):
        """Private names of one module that another one uses."""
        of_each = ((name, private_names(nodes)) for name, nodes in self.nodes.items())
        return [f"{name} takes {taken}" for name, names in of_each for taken in names]


def room(module):
    return module.split(".")[0]


def from_the_package(nodes):
    """Statements `from lshdup… import …`."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: a relative import"
            if node.module.split(".")[0] == "lshdup":
                yield node


def modules_of(node):
    """The dotted names of the modules that a node imports, or imports from."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) else []


def imported_paths(nodes):
    """Dotted paths below the package, of modules or of names in them."""
    for node in from_the_package(nodes):
        for alias in node.names:
            yield f"{node.module}.{alias.name}".removeprefix("lshdup.")
    for node in nodes:
        for name in modules_of(node) if isinstance(node, ast.Import) else ():
            if name.split(".")[0] == "lshdup":
                yield name.removeprefix("lshdup").lstrip(".")


def private_names(nodes):
    """Names that begin with one underscore, imported from the package or taken from its modules."""
    here = set()
    for node in from_the_package(nodes):
        here |= {alias.asname or alias.name for alias in node.names}
        yield from (alias.name for alias in node.names if is_private(alias.name))
    for node in nodes:
        is_taken = isinstance(node, ast.Attribute) and is_private(node.attr)
        if is_taken and isinstance(node.value, ast.Name) and node.value.id in here:
            yield f"{node.value.id}.{node.attr}"


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


@pytest.fixture(scope="module")
def package():
    gc.disable()  # nodes of a tree are no garbage
    made = Package(ROOT / "lshdup")
    gc.enable()
    assert len(made.nodes) > 100
    assert sum(map(len, made.arrows.values())) > 300
    return made


def test_every_room_has_its_line_and_imports_go_down(package):
    assert {room(name) for name in package.nodes} - ENTRANCES == set(LEVEL)
    assert len(set(LEVEL.values())) == 8
    assert package.upwards() == []


def test_no_circles(package):
    assert package.circle() == []
    assert all(other in package.arrows[name] for name, other in LATER)


def test_private_names_stay_in_their_modules(package):
    assert package.private_imports() == []


UPWARDS = [
    "from lshdup.store.npz import load", "from lshdup.store import npz", "from lshdup import store",
    "import lshdup.store.npz", "import lshdup.store.npz as other", "from lshdup import absent",
    "def later():\n    from lshdup.store import npz",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import lshdup.store",
    "from lshdup.compare import names",  # of the same line
]  # fmt: skip
PRIVATE = ["from lshdup.sources.text_batches import _private"]
PRIVATE += ["from lshdup import errors\nerrors._private"]
RIGHT = ["from lshdup.errors import InputError", "from lshdup.errors import InputError as _mine"]
RIGHT += ["import numpy._core"]


@pytest.mark.parametrize("statement", [*UPWARDS, *PRIVATE, *RIGHT])
def test_wrong_imports_are_found(tmp_path, statement):
    modules = ["sources/text_batches", "compare/names", "store/npz", "errors"]
    packages = [f"{folder}__init__" for folder in ("", "sources/", "compare/", "store/")]
    write_files(tmp_path, {f"{name}.py": "" for name in [*modules, *packages]})
    write_files(tmp_path, {"sources/a.py": statement})
    made = Package(tmp_path)
    assert bool(made.upwards()) == (statement in UPWARDS)
    assert bool(made.private_imports()) == (statement in PRIVATE)
    assert made.circle() == []
    (tmp_path / "errors.py").write_text("import lshdup.sources.a")
    (tmp_path / "sources/a.py").write_text("from lshdup.errors import InputError")
    assert Package(tmp_path).circle()


def test_relative_imports_are_found(tmp_path):
    (tmp_path / "a.py").write_text("from . import b")
    with pytest.raises(AssertionError, match="relative"):
        Package(tmp_path)


def test_packages_import_nothing(package):
    """Or `--help` would load NumPy; only programs import `api`, whose names are in its modules."""
    names = [path.parent.relative_to(ROOT) for path in package.folder.rglob("__init__.py")]
    assert len(names) > 10
    for name in (".".join(folder.parts[1:]) for folder in names):
        assert name in ("", "api") or not any(map(modules_of, package.nodes[name])), name


def test_no_package_holds_two_things(package):
    """More than 16 modules are two packages; more than 600 lines are two modules."""
    for folder in {path.parent for path in package.folder.rglob("*.py")}:
        modules = {path.name for path in folder.glob("*.py")} - {"__init__.py", "__main__.py"}
        assert len(modules) <= 16, folder
    for path in package.folder.rglob("*.py"):
        assert len(path.read_text("utf-8").splitlines()) <= 600, path


def test_numba_is_imported_in_the_kernels_only(package):
    found = set()
    for name, nodes in package.nodes.items():
        modules = {module.split(".")[0] for node in nodes for module in modules_of(node)}
        found |= {name} if modules & {"numba", "llvmlite"} else set()
    assert found == {f"kernels.native.{name}" for name in ("machine_code", "lowering", "cache")}


#: Modules that run code from outside, or talk to others; and functions and methods that do.
OUTSIDE = {*"pickle cPickle marshal shelve dill subprocess code pty".split()}
OUTSIDE |= {*"socket ssl http urllib requests".split()}
FUNCTIONS = {"eval", "exec", "compile", "__import__"}
METHODS = {"system", "popen", "execv", "execve", "execvp", "spawnv", "fork", "posix_spawn"}
#: They start Python for a module of the package, git for --changed-since, or (when a wheel is
#: built) the linker.
STARTERS = {"text.office_processes", "workspace.gate"}
STARTERS |= {"kernels.native.machine_code", "kernels.native.prebuilt"}


def test_nothing_in_the_package_runs_code_from_outside(package):
    seen = 0
    for name, nodes in package.nodes.items():
        for node in nodes:
            if name not in STARTERS:
                imported = {*modules_of(node)} - {"urllib.parse"}  # no network
                assert OUTSIDE.isdisjoint(each.split(".")[0] for each in imported), name
            if isinstance(node, ast.Call):
                seen += 1
                called, at = node.func, (name, node.lineno)
                assert not (isinstance(called, ast.Name) and called.id in FUNCTIONS), at
                assert not (isinstance(called, ast.Attribute) and called.attr in METHODS), at
                for keyword in node.keywords:
                    if keyword.arg in ("shell", "allow_pickle"):
                        assert not getattr(keyword.value, "value", True), at
    assert seen > 1000


_RARE = {*"numba rich tqdm selectolax charset_normalizer pyarrow webencodings msgspec".split()}
_RARE.add("email")
_HELP = {*_RARE, "numpy", "llvmlite"}
_WORK = {*_RARE, *"concurrent.futures gzip hashlib numpy.ma numpy.random subprocess".split()}
_WORK |= {"lshdup.text.office_worker", "lshdup.evaluation"}
if platform.machine() == "x86_64" and sys.platform == "linux":
    _WORK.add("llvmlite.binding")
#: Command lines, and what they do not import: each of these takes milliseconds, or a tenth of all.
LIGHT = {
    **dict.fromkeys(["--help", "--version", "help schema pairs"], _HELP),
    **dict.fromkeys(["pairs docs", "query docs/0"], _WORK),
}


@pytest.mark.parametrize("line", LIGHT)
def test_what_is_not_imported(line, tmp_path):
    script = "import sys\nfrom lshdup.cli.main import main\ntry: main(sys.argv[1:])\n"
    script += "except SystemExit as end: assert not end.code\nprint(*sys.modules)"
    text = "a text of some words and number"
    write_files(tmp_path, {f"docs/{i}": f"{text} {i}" for i in range(3)})
    # The first of two runs compiles what the cache lacks.
    for each in ("index docs", line, line):
        command = [sys.executable, "-c", script, *each.split()]
        path = {**os.environ, "PYTHONPATH": str(ROOT)}
        printed = subprocess.check_output(command, text=True, cwd=tmp_path, env=path)
    loaded = {*printed.splitlines()[-1].split()}
    assert {"lshdup", "click"} <= loaded
    assert sorted(loaded & LIGHT[line]) == []
