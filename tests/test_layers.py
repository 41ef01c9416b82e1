"""The direction of imports, and what the first milliseconds may import."""

import ast
import graphlib
import subprocess
import sys

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "lshdup"

#: The rooms, from the foundations up: packages, and modules of the top folder. A room imports only from lines above its own;
#: within a line nothing imports anything. Inside a package only circles are forbidden.
LAYERS = """
errors version kernels
params utils
skipped lsh
documents text matching
shingling
collection report spark
pipeline store
api evaluation workspace
cli
"""
LEVEL = {room: line for line, rooms in enumerate(LAYERS.split("\n")) for room in rooms.split()}

#: Imported when they are first used, or for types only; `test_help_is_light` holds that.
LATER = {("__init__", "api"), ("kernels.jit", "kernels.compiling")}


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        yield name, ast.parse(path.read_text())


def room(module):
    return module.split(".")[0]


def imported(tree, *, type_checking=False):
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == "lshdup"
        ):
            base = node.module.removeprefix("lshdup").strip(".")
            for alias in node.names:
                path = f"{base}.{alias.name}".strip(".")
                file = PACKAGE / path.replace(".", "/")
                yield (
                    path
                    if file.with_suffix(".py").exists() or file.is_dir()
                    else base or "__init__"
                )
        elif isinstance(node, ast.Import):
            yield from (
                alias.name.removeprefix("lshdup.")
                for alias in node.names
                if alias.name.startswith("lshdup.")
            )


def test_every_room_has_its_line():
    assert {room(name) for name, _ in modules()} - {"__init__", "__main__"} == set(LEVEL)


def test_imports_go_down():
    upwards = [
        f"{name} imports {other}"
        for name, tree in modules()
        for other in imported(tree)
        if name not in ("__init__", "__main__")
        and room(name) != room(other)
        and LEVEL[room(other)] >= LEVEL[room(name)]
    ]
    assert not upwards, "\n".join(upwards)


def test_no_circles():
    """Modules can be put in an order in which each imports only from those before it."""
    names = {name for name, _ in modules()}
    arrows = {
        name: {other for other in imported(tree) if other in names and (name, other) not in LATER}
        - {name}
        for name, tree in modules()
    }
    try:
        list(graphlib.TopologicalSorter(arrows).static_order())
    except graphlib.CycleError as circle:
        pytest.fail(" -> ".join(reversed(circle.args[1])))


def test_packages_import_nothing():
    """Or `--help` would load NumPy."""
    for path in PACKAGE.rglob("__init__.py"):
        statements = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        assert not statements or path.parent == PACKAGE, path


def test_no_package_holds_two_things():
    """More than 16 modules (20 kernels) are two packages; more than 400 lines are two modules."""
    for folder in {path.parent for path in PACKAGE.rglob("*.py")}:
        assert len(list(folder.glob("[!_]*.py"))) <= (20 if folder.name == "kernels" else 16), (
            folder
        )
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path


def test_numba_is_imported_in_the_kernels_only():
    for name, tree in modules():
        for node in ast.walk(tree):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [getattr(node, "module", None) or ""]
            )
            if isinstance(node, ast.Import | ast.ImportFrom) and any(
                n.split(".")[0] in ("numba", "llvmlite") for n in names
            ):
                assert name in ("kernels.jit", "kernels.compiling"), name


def test_help_is_light():
    """--help and --version import neither NumPy nor numba (nor Rich, tqdm, or anything of the stages)."""
    for argument in ("--help", "--version"):
        script = f"import sys; sys.argv = ['lshdup', '{argument}']\nfrom lshdup.cli.main import main\ntry: main()\nexcept SystemExit: pass\n"  # noqa: E501
        script += "print(*sys.modules)"
        process = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
        )
        loaded = {name.split(".")[0] for name in process.stdout.splitlines()[-1].split()}
        assert loaded.isdisjoint(
            {"numpy", "numba", "llvmlite", "rich", "tqdm", "selectolax", "charset_normalizer"}
        )
