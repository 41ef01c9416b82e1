"""The direction of imports, and what the first milliseconds may import."""

import ast
import graphlib
import subprocess
import sys

import pytest

from tests.conftest import ROOT

#: The rooms, from the foundations up: packages, and modules of the top folder. A room imports
#: only from lines above its own; within a line nothing imports anything. Inside a package only
#: circles are forbidden.
LAYERS = """
errors kernels version
base
params
lsh sources text
compare passages shingling
collection spark views
pipeline store
api evaluation workspace
cli
"""
LEVEL = {room: line for line, rooms in enumerate(LAYERS.split("\n")) for room in rooms.split()}

#: The top of the package, which imports lazily, and what `python -m lshdup` starts.
ENTRANCES = {"__init__", "__main__"}

#: Imported when they are first used, or for types only; `test_help_is_light` holds that.
LATER = {("__init__", "api")}


class Package:
    """The modules of a package by their dotted names below it, parsed, and their imports."""

    def __init__(self, folder):
        self.folder = folder
        self.trees = {
            ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(
                ".__init__"
            ): ast.parse(path.read_text("utf-8"))
            for path in sorted(folder.rglob("*.py"))
        }
        self.arrows = {
            name: {self.module_of(path) for path in imported_paths(tree)} - {name}
            for name, tree in self.trees.items()
        }

    def module_of(self, path):
        """The module that a dotted path leads to: the longest beginning of it that is one."""
        while path and path not in self.trees:
            path = path.rpartition(".")[0]
        return path or "__init__"

    def upwards(self):
        """Imports that do not go down."""
        return [
            f"{name} imports {other}"
            for name, others in self.arrows.items()
            for other in sorted(others)
            if name not in ENTRANCES
            and room(name) != room(other)
            and LEVEL.get(room(other), len(LEVEL)) >= LEVEL[room(name)]
        ]

    def circle(self):
        """Modules of a circle of imports, or []."""
        arrows = {
            name: {other for other in others if (name, other) not in LATER}
            for name, others in self.arrows.items()
        }
        try:
            list(graphlib.TopologicalSorter(arrows).static_order())
        except graphlib.CycleError as circle:
            return circle.args[1][::-1]
        return []

    def private_imports(self):
        """Private names of one module that another one uses."""
        return [
            f"{name} takes {taken}"
            for name, tree in self.trees.items()
            for taken in private_names(tree)
        ]


def room(module):
    return module.split(".")[0]


def from_the_package(tree):
    """Statements `from lshdup… import …`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: a relative import"
            if node.module.split(".")[0] == "lshdup":
                yield node


def imported_paths(tree):
    """Dotted paths below the package, of modules or of names in them."""
    for node in from_the_package(tree):
        for alias in node.names:
            yield f"{node.module}.{alias.name}".removeprefix("lshdup.")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "lshdup":
                    yield alias.name.removeprefix("lshdup").lstrip(".")


def private_names(tree):
    """Names that begin with one underscore, imported from the package or taken from its modules."""
    here = set()
    for node in from_the_package(tree):
        here |= {alias.asname or alias.name for alias in node.names}
        yield from (alias.name for alias in node.names if is_private(alias.name))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and is_private(node.attr)
            and isinstance(node.value, ast.Name)
            and node.value.id in here
        ):
            yield f"{node.value.id}.{node.attr}"


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


@pytest.fixture(scope="module")
def package():
    made = Package(ROOT / "lshdup")
    assert len(made.trees) > 100
    assert sum(map(len, made.arrows.values())) > 300
    return made


def test_every_room_has_its_line(package):
    assert {room(name) for name in package.trees} - ENTRANCES == set(LEVEL)
    assert len(set(LEVEL.values())) == 9


def test_imports_go_down(package):
    assert package.upwards() == []


def test_no_circles(package):
    """Modules can be put in an order in which each imports only from those before it."""
    assert package.circle() == []
    assert all(other in package.arrows[name] for name, other in LATER)


def test_private_names_stay_in_their_modules(package):
    assert package.private_imports() == []


@pytest.mark.parametrize(
    ("statement", "upwards", "private"),
    [
        ("from lshdup.store.npz import load", True, False),
        ("from lshdup.store import npz", True, False),
        ("from lshdup import store", True, False),
        ("import lshdup.store.npz", True, False),
        ("import lshdup.store.npz as other", True, False),
        ("def later():\n    from lshdup.store import npz", True, False),
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import lshdup.store",
            True,
            False,
        ),
        ("from lshdup.text import names", True, False),  # of the same line
        ("from lshdup import absent", True, False),
        ("from lshdup.errors import InputError", False, False),
        ("from lshdup.sources.reading import _private", False, True),
        ("from lshdup.errors import InputError as _mine", False, False),
        ("from lshdup import errors\nerrors._private", False, True),
        ("import numpy._core", False, False),
    ],
)
def test_wrong_imports_are_found(tmp_path, statement, upwards, private):
    for module in ("sources/a", "sources/reading", "text/names", "store/npz", "errors"):
        path = tmp_path / f"{module}.py"
        path.parent.mkdir(exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.touch()
    (tmp_path / "sources/a.py").write_text(statement)
    made = Package(tmp_path)
    assert bool(made.upwards()) == upwards
    assert bool(made.private_imports()) == private
    assert made.circle() == []
    (tmp_path / "errors.py").write_text("import lshdup.sources.a")
    (tmp_path / "sources/a.py").write_text("from lshdup.errors import InputError")
    assert Package(tmp_path).circle()


def test_relative_imports_are_found(tmp_path):
    (tmp_path / "a.py").write_text("from . import b")
    with pytest.raises(AssertionError, match="relative"):
        Package(tmp_path)


def test_packages_import_nothing(package):
    """Or `--help` would load NumPy."""
    names = [path.parent for path in package.folder.rglob("__init__.py")]
    assert len(names) > 10
    for folder in names:
        tree = ast.parse((folder / "__init__.py").read_text("utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        assert not imports or folder == package.folder, folder


def test_no_package_holds_two_things(package):
    """More than 16 modules are two packages; more than 600 lines are two modules."""
    for folder in {path.parent for path in package.folder.rglob("*.py")}:
        modules = {path.name for path in folder.glob("*.py")} - {"__init__.py", "__main__.py"}
        assert len(modules) <= 16, folder
    for path in package.folder.rglob("*.py"):
        assert len(path.read_text("utf-8").splitlines()) <= 600, path


def test_numba_is_imported_in_the_kernels_only(package):
    found = set()
    for name, tree in package.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module]
            else:
                continue
            if any(module.split(".")[0] in ("numba", "llvmlite") for module in modules):
                found.add(name)
    assert found == {"kernels.native.machine_code", "kernels.native.lowering"}


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_is_light(argument):
    """Neither NumPy nor numba is imported, nor Rich, tqdm, or anything of the stages."""
    script = (
        f"import sys; sys.argv = ['lshdup', '{argument}']\nfrom lshdup.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\nprint(*sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    loaded = {name.split(".")[0] for name in process.stdout.splitlines()[-1].split()}
    assert {"lshdup", "click"} <= loaded
    assert loaded.isdisjoint(
        {"numpy", "numba", "llvmlite", "rich", "tqdm", "selectolax", "charset_normalizer"}
        | {"pyarrow", "webencodings", "msgspec"}
    )
