"""The direction of imports, and what the first milliseconds may import."""

import ast
import subprocess
import sys

from tests.conftest import ROOT

PACKAGE = ROOT / "lshdup"

#: From the foundations up; a module imports only from lines above its own, and within the stages only from earlier stages.
LAYERS = [
    ["errors", "wording", "atomic", "mending", "recognition", "nametable", "__init__"],
    ["extractor"],
    ["kernels.jit"],
    ["kernels.compiling"],
    ["kernels.copying"],
    ["params", "ragged", "parallel", "locking", "reasons", "compression"],
    ["absent", "patterns"],
    ["rows"],
    ["kernels.text"],
    ["kernels.shingles", "kernels.sketch", "kernels.banding", "kernels.sets", "kernels.statistics", "kernels.files", "kernels.ordering"],
    ["kernels.grouping", "kernels.common", "kernels.rows", "kernels.differences"],
    ["chartable"],
    ["normalform"],
    ["files"], ["arrow"], ["decoded"], ["jsonlines", "parquet"], ["openrows"], ["places"],
    ["documents"], ["finding", "whereabouts"],
    ["filtered"], ["extraction"], ["charsets", "guessing"], ["formats"], ["shingles"], ["common"], ["signatures"], ["bands"],
    ["candidates"], ["pairs"], ["copies"], ["similarity"], ["exactjoin"], ["clusters"], ["leaders"], ["preference"],
    ["differences"],
    ["comparison"],
    ["checksums"], ["artifacts"],
    ["batchwork"],
    ["keeping"],
    ["collection"],
    ["sources"],
    ["pipeline"],
    ["stored"],
    ["store"],
    ["journal", "removing", "listings"],
    ["sides"],
    ["crossing"],
    ["asked", "unchanged"],
    ["context"], ["fromdocuments", "fromstore"],
    ["workspace", "accuracy", "timing", "minhash"],
    ["sparkkept"], ["sparkrows"], ["sparkreading", "sparktiles"], ["spark"],
    ["sparkstop", "sparkerrors"], ["sparksession", "sparknames"], ["sparkinput", "sparkleaders"], ["sparkclusters"],
    ["against"],
    ["histogram"],
    ["plots"],
    ["console"],
    ["schema", "tables"],
    ["rendering"],
    ["output", "report"],
    ["sparkwriting"],
    ["cli"],
]  # fmt: skip


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        if name not in ("__main__", "kernels.__init__"):
            yield name, ast.parse(path.read_text())


def imported(tree, *, type_checking=False):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "lshdup":
            base = node.module.removeprefix("lshdup").strip(".")
            for alias in node.names:
                path = f"{base}.{alias.name}".strip(".")
                file = PACKAGE / path.replace(".", "/")
                yield path if file.with_suffix(".py").exists() or file.is_dir() else base or "__init__"
        elif isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("lshdup.") for alias in node.names if alias.name.startswith("lshdup."))


def level(name):
    if name == "cli" or name.startswith("cli."):
        return len(LAYERS) - 1
    return next(i for i, layer in enumerate(LAYERS) if name in layer)


def test_every_module_has_its_place():
    names = {name for name, _ in modules() if not name.startswith("cli")}
    assert names == {name for layer in LAYERS for name in layer} - {"cli"}


def test_imports_go_down():
    for name, tree in modules():
        for other in imported(tree):
            if name.startswith("cli") and other.startswith("cli"):
                continue
            if (name, other) in {("console", "documents"), ("__init__", "minhash"), ("kernels.jit", "kernels.compiling")}:
                continue  # for types, or when first used: test_help_is_light holds that
            assert level(other) < level(name), f"{name} imports {other}"


def test_numba_is_imported_in_the_kernels_only():
    for name, tree in modules():
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None) or ""]
            if isinstance(node, ast.Import | ast.ImportFrom) and any(n.split(".")[0] in ("numba", "llvmlite") for n in names):
                assert name in ("kernels.jit", "kernels.compiling"), name


def test_help_is_light():
    """--help and --version import neither NumPy nor numba (nor Rich, tqdm, or anything of the stages)."""
    for argument in ("--help", "--version"):
        script = (
            f"import sys; sys.argv = ['lshdup', '{argument}']\nfrom lshdup.cli.main import main\ntry: main()\nexcept SystemExit: pass\n"
        )
        script += "print(*sys.modules)"
        process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
        loaded = {name.split(".")[0] for name in process.stdout.splitlines()[-1].split()}
        assert loaded.isdisjoint({"numpy", "numba", "llvmlite", "rich", "tqdm", "selectolax", "charset_normalizer"})
