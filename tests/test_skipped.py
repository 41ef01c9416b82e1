"""Tests that may be skipped with LSHDUP_REQUIRE, and the examples that CI draws."""

import re
import subprocess
import sys
from types import SimpleNamespace

from tests.conftest import MAY_BE_SKIPPED, may_be_skipped, pytest_sessionfinish
from tests.running import ROOT, clean_environment


def test_a_skip_is_for_an_extra_or_of_the_list():
    extra = "no pyspark: pip install 'lshdup[spark]'"
    assert may_be_skipped(extra, ["formats"])
    assert not may_be_skipped(extra, ["formats", "spark"])
    assert not may_be_skipped("fish is not here", ["formats"])
    assert all(may_be_skipped(reason, ["formats"]) for reason in MAY_BE_SKIPPED)


def test_a_skip_that_is_not_of_the_list_fails_a_run_that_requires_something(monkeypatch):
    for reason, is_listed in (("fish is not here", False), ([*MAY_BE_SKIPPED][-1], True)):
        skipped = SimpleNamespace(longrepr=("test_x.py", 1, f"Skipped: {reason}"))
        reporter = SimpleNamespace(stats={"skipped": [skipped]})
        plugins = SimpleNamespace(get_plugin=lambda _, reporter=reporter: reporter)
        for required in ("", "formats"):
            session = SimpleNamespace(config=SimpleNamespace(pluginmanager=plugins), exitstatus=0)
            monkeypatch.setenv("LSHDUP_REQUIRE", required)
            pytest_sessionfinish(session)
            assert bool(session.exitstatus) == (bool(required) and not is_listed)


def test_every_reason_of_the_list_is_used():
    """No reason stays when its test is gone; one is pytest's own."""
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    unused = [reason for reason in MAY_BE_SKIPPED if tests.count(f'"{reason}"') < 2]
    assert all(reason.endswith("+SKIP option") for reason in unused)


#: What a test draws in a run of pytest with the settings of this project.
DRAWING = """
from hypothesis import given, strategies as st
from tests import conftest

@given(st.integers(0, 1 << 60))
def test_drawn(number):
    print("drawn", number)
"""

#: Runs pytest with each of these options, in children of a process that has imported what it needs.
RUNS = """
import os, sys
import hypothesis.strategies, pytest, tests.running
for options in sys.argv[1:]:
    print("a run", flush=True)
    if not os.fork():
        os.environ["PYTEST_ADDOPTS"] = options
        os._exit(pytest.main(["-s", *"-p no:cacheprovider -p no:xdist".split(), "test_drawing.py"]))
    assert os.wait()[1] == 0
"""


def test_ci_draws_examples_by_the_seed_of_the_commit(tmp_path):
    (tmp_path / "test_drawing.py").write_text(DRAWING)
    done = subprocess.run(
        [sys.executable, "-c", RUNS, *(f"--hypothesis-seed={seed}" for seed in (1, 2, 1)), "", ""],
        cwd=tmp_path, env=clean_environment() | {"CI": "1"}, capture_output=True, check=True,
    )  # fmt: skip
    drawn = [re.findall(rb"drawn \d+", run) for run in done.stdout.split(b"a run\n")[1:]]
    assert drawn[0] == drawn[2] != drawn[1]
    assert drawn[3] == drawn[4] != []
