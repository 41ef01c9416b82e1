"""What tests share: the sample corpus, pages of shingle ids, and runs of the program."""

import gc
import importlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from contextlib import chdir
from datetime import date
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

from lshdup.base.run import Run
from tests import reference
from tests.running import ROOT, as_variables, clean_environment, run_program

#: Whether tables and properties are tried whole, as in a part of CI, or as far as every day has
#: time for.
WHOLE = os.environ.get("LSHDUP_MANY_EXAMPLES") == "all" or "LSHDUP_UPDATE_GOLDEN" in os.environ

#: A run on one thread that says nothing.
RUN = Run.quiet()


def many(examples):
    """Return how many examples a property is tried on that is worth so many."""
    return examples if WHOLE else min(examples, 20)


def part(cases, of):
    """Return one case of each `of` in a row, from another place in each row, or all cases."""
    cases = list(cases)
    rows = enumerate(range(0, len(cases), of))
    return cases if WHOLE else [cases[min(start + row % of, len(cases) - 1)] for row, start in rows]


#: The seed of a run: that of its commit in CI, otherwise always the same.
_SEED = re.search(r"--hypothesis-seed=(\d+)", os.environ.get("PYTEST_ADDOPTS", ""))


def drawn(cases, number):
    """Return so many cases of a table that takes long, drawn by the commit, or the day; or all."""
    cases = list(cases)
    rng = random.Random(_SEED[1] if _SEED else f"{date.today()}")
    return cases if WHOLE else rng.sample(cases, number)


# In CI the examples are those of a seed, as .ci/run sets that of the commit; without one, the same
# every time. Elsewhere they are new ones every time.
# A loaded machine is no fault of a test, or of an example.
_OPTIONS = {"max_examples": many(100), "suppress_health_check": [HealthCheck.too_slow]}
_OPTIONS["deadline"] = None
settings.register_profile("ci", derandomize=not _SEED, print_blob=True, **_OPTIONS)
settings.register_profile("own", print_blob=True, **_OPTIONS)
settings.load_profile("ci" if os.environ.get("CI") else "own")

#: Seconds after which a test that has not ended ends the run, with its name and where it hangs.
HUNG, LONG_HUNG = 300, 1800


def pytest_collection_modifyitems(config, items):
    """Give every test a time after which it hangs; more, if it takes long by its marker."""
    if not config.pluginmanager.hasplugin("timeout"):  # the run of an installation without extras
        return
    for item in items:
        slow = item.get_closest_marker("long") or item.get_closest_marker("spark")
        if not item.get_closest_marker("timeout"):
            # By a thread: a loop within a kernel hears no signal.
            item.add_marker(pytest.mark.timeout(LONG_HUNG if slow else HUNG, method="thread"))


#: All that is collected stays to the end: no collection of garbage looks at it, then or later.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


#: The module for zstd: of the standard library, or its backport.
ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"

#: Why a test may be skipped where LSHDUP_REQUIRE is set: what CI cannot have everywhere.
MAY_BE_SKIPPED = {
    "all tests skipped by +SKIP option": "examples that need a cluster of Spark",
    "a file system cannot be mounted here": "a right of root that a container may lack",
    "no control group of memory can be made here": "a right of root that a container may lack",
    "only root can give files away": "a right of root that a person lacks",
    "root cannot do without its rights here": "a right of root that a container may lack",
    "this pyarrow makes no views": "the lowest version of pyarrow",
    "views cannot be written": "the lowest version of pyarrow",
}


def require(extra, module):
    """Import a module of an extra; skip where it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError:
        pytest.skip(f"no {module}: pip install 'lshdup[{extra}]'", allow_module_level=True)


@pytest.fixture
def kreuzberg():
    """The reader. A variable that its import sets for the dynamic loader goes again: it would make
    each later run of this process one that imports the program anew.
    """
    with mock.patch.dict(os.environ):
        return require("formats", "kreuzberg")


def may_be_skipped(reason, required):
    """Return whether CI may skip a test for a reason, where these extras are required."""
    if extra := re.search(r"'lshdup\[(.*)\]'", reason):
        return extra[1] not in required
    return reason in MAY_BE_SKIPPED


def _reasons(config):
    """Return why tests of a run were skipped."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    return sorted({each.longrepr[2].removeprefix("Skipped: ") for each in skipped})


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Fail a run with LSHDUP_REQUIRE=EXTRA,… in which a test is skipped that may not be skipped."""
    required = os.environ.get("LSHDUP_REQUIRE")
    if required and not all(
        may_be_skipped(reason, required.split(",")) for reason in _reasons(session.config)
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config):
    """Name in the last line of a run the extras and programs that its skipped tests are for, and
    those that may not be skipped.
    """
    required = os.environ.get("LSHDUP_REQUIRE", "").split(",")
    extras = {
        re.sub(r".*lshdup\[(.*)\].*", r"the extra \1", reason)
        + ("" if required == [""] or may_be_skipped(reason, required) else " (may NOT be skipped)")
        for reason in _reasons(config)
    }
    if extras:
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        reporter.write_line(f"skipped: {', '.join(sorted(extras))}")


def write_files(folder, contents):
    """Write files below a folder, which need not be there: {name: text, or bytes}."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        path = Path(folder, os.fsdecode(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def failing(error):
    """A function that raises an error, whatever it is given."""

    def fail(*_, **__):
        raise error

    return fail


class Result:
    """One finished run of the program; a failed check shows command, code and both streams."""

    def __init__(self, process):
        self.command, self.code = process.args, process.returncode
        self.out, self.err = process.stdout, process.stderr.decode("utf-8", "backslashreplace")

    def __repr__(self):
        said = f"exit code {self.code}\n--- stdout\n{self.out[:2000]!r}\n--- stderr\n{self.err}"
        return f"{self.command}\n{said}"

    @property
    def lines(self):
        return self.out.decode("utf-8", "surrogateescape").splitlines()

    @property
    def rows(self):
        return [line.split("\t") for line in self.lines]

    def ok(self):
        assert self.code == 0, self
        return self


@pytest.fixture
def run(tmp_path):
    """Run `lshdup` in an empty folder, as a process of its own."""

    def run(*arguments, code=0, stdin=b"", cwd=tmp_path, env=None):
        result = Result(run_program(arguments, cwd=cwd, stdin=stdin, env=env))
        assert result.code == code, result
        return result

    return run


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder of a test, which becomes the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(here, monkeypatch, capsys):
    """Run a line here that ends with exit code 2 and prints nothing; return what it says."""
    from lshdup.cli.main import main

    def refused(*arguments):
        words, variables = as_variables(arguments)
        with monkeypatch.context() as patched:
            for each in variables.items():
                patched.setenv(*each)
            with pytest.raises(SystemExit) as end:
                main(words)
        out, err = capsys.readouterr()
        assert (end.value.code, out) == (2, ""), arguments
        return err.replace("\n  ", " ")

    return refused


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Of several workers, one compiles the kernels that most tests need; the others wait for it."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        run_program(["--version"], cwd=ROOT)


@pytest.fixture
def corpus(tmp_path):
    """A copy of the sample corpus that a test may change."""
    return Path(shutil.copytree(ROOT / "sample_corpus", tmp_path / "sample_corpus"))


@pytest.fixture(scope="session")
def sample_sets():
    """The sets of the sample corpus, by the names of its documents."""
    with chdir(ROOT):
        return reference.folder_sets("sample_corpus")


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Pages like R5's hand-out, and the pairs of similarity 0.85 or more, found by brute force.

    700 pages of 100 shingle ids below 8192; 50 have a copy of similarity 0.905, 50 others one of
    similarity 0.835, and all others are strangers.
    """
    rng = random.Random(5)
    sets = [set(rng.sample(range(8192), 100)) for _ in range(700)]
    numbers = rng.sample(range(700), 200)
    for at, (page, copy) in enumerate(zip(numbers[:100], numbers[100:], strict=True)):
        kept = rng.sample(sorted(sets[page]), 95 if at < 50 else 91)
        others = [each for each in rng.sample(range(8192), 200) if each not in sets[page]]
        sets[copy] = {*kept, *others[: 100 - len(kept)]}
    shingles, duplicates = (tmp_path_factory.mktemp("pages") / name for name in ("ids", "pairs"))
    lines = (f"PAGE_{page:09} {' '.join(map(str, each))}" for page, each in enumerate(sets))
    shingles.write_text("\n".join(lines))
    true = [f"{a},{b}" for a, b, _ in reference.all_pairs(sets, 0.85)]
    duplicates.write_text("\n".join(true))
    assert len(true) == 50
    return shingles, duplicates


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MB, where a test may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    can_mount = shutil.which("mount")
    if not can_mount or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a file system cannot be mounted here")
    # It ends with the pipe, also if this process is killed.
    command = ["sh", "-c", 'cat; umount -l "$0"', str(disk)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        yield disk
    assert not disk.is_mount()


def killed_behind_segments(*arguments, batch, parts):
    """Run the program here, and kill it once so many batches of documents are in its memo."""
    script = f"""
import os, signal, lshdup.sources.text_batches, lshdup.store.memo
lshdup.sources.text_batches.BATCH_DOCUMENTS, lshdup.store.memo.PATIENCE = {batch}, 0.0
add, left = lshdup.store.memo.Memo.add, [{parts}]
def killing(self, part):
    add(self, part)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
lshdup.store.memo.Memo.add = killing
from lshdup.cli.main import program
program()"""
    command = [sys.executable, "-c", script, *arguments]
    process = subprocess.run(command, env=clean_environment(), capture_output=True, check=False)
    assert process.returncode == -signal.SIGKILL, process.stderr


def open_workspace(folder, say=None, skipped=None, *, jobs=2, memory=0):
    """A workspace over a store, or over none, whose run tells only what is asked for."""
    from lshdup.base.run import ignore
    from lshdup.store.store import Store
    from lshdup.workspace.workspace import Workspace

    arrays = Run.quiet(memory=memory).arrays
    run = Run(arrays, jobs, say=say or ignore, warn=say or ignore, skipped=skipped or ignore)
    return Workspace(run, Store(Path(folder)) if folder else None)


def open_index(
    folder, documents, say=None, skipped=None, *, save=True, templates=(), jobs=2, memory=0, **given
):
    """A workspace, the index of documents in it, and the request with the parameters given."""
    from lshdup.base.params import DocumentParams
    from lshdup.workspace.index import load_or_build_index
    from lshdup.workspace.request import Request

    workspace = open_workspace(folder, say, skipped, jobs=jobs, memory=memory)
    request = Request(tuple(documents), DocumentParams(), given, templates=templates)
    return workspace, load_or_build_index(workspace, request, save=save), request


def open_comparison(
    folder, documents, method, others=(), *, clustering=False, across=None, templates=(), jobs=2,
    **given,
):  # fmt: skip
    """The comparison of documents, or of them and others, over a store or over none."""
    from lshdup.base.params import DocumentParams
    from lshdup.workspace.against import load_sides
    from lshdup.workspace.comparing import load_comparison
    from lshdup.workspace.request import Request

    run = open_workspace(folder, jobs=jobs)
    request = Request(tuple(documents), DocumentParams(), given, templates=templates)
    if others:
        return load_sides(run, request, tuple(others), method)
    return load_comparison(run, request, method, clustering=clustering, across=across)
