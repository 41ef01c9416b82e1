"""Which tests may be skipped where LSHDUP_REQUIRE says what must be there, and which examples CI
draws.
"""

import subprocess
import sys

import pytest

from tests.conftest import MAY_BE_SKIPPED, may_be_skipped
from tests.running import ROOT, clean_environment


@pytest.mark.parametrize(
    ("reason", "required", "may"),
    [
        ("no pyspark: pip install 'lshdup[spark]'", ["formats"], True),
        ("no pyspark: pip install 'lshdup[spark]'", ["formats", "spark"], False),
        ("fish is not here", ["formats"], False),
        *((reason, ["formats"], True) for reason in MAY_BE_SKIPPED),
    ],
)
def test_a_skip_is_for_an_extra_or_of_the_list(reason, required, may):
    assert may_be_skipped(reason, required) is may


@pytest.mark.parametrize("reason", MAY_BE_SKIPPED)
def test_every_reason_of_the_list_is_used(reason):
    """No reason stays when its test is gone; one is pytest's own."""
    sources = (path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    used = sum(source.count(f'"{reason}"') for source in sources)
    assert used >= 2 or reason.endswith("+SKIP option")


#: What a test draws in a run of pytest with the settings of this project.
DRAWING = """
from hypothesis import given, strategies as st
from tests import conftest

@given(st.integers(0, 1 << 60))
def test_drawn(number):
    print("drawn", number)
"""


def test_ci_draws_examples_by_the_seed_of_the_commit(tmp_path):
    """Without a seed it draws the same ones every time."""
    (tmp_path / "test_drawing.py").write_text(DRAWING)

    def drawn(options):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "test_drawing.py"],
            cwd=tmp_path,
            env=clean_environment() | {"CI": "1", "PYTEST_ADDOPTS": options},
            capture_output=True,
            check=True,
        )
        return [line for line in done.stdout.splitlines() if b"drawn" in line]

    seeded = [drawn(f"--hypothesis-seed={seed}") for seed in (1, 2, 1)]
    assert seeded[0] == seeded[2] != seeded[1]
    assert drawn("") == drawn("")
