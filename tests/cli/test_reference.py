"""The generated pages of docs/ are those of the commands and of their listings."""

import runpy
import subprocess
import sys

import pytest

from tests.conftest import ROOT

SCRIPT = ROOT / ".ci/reference"


@pytest.fixture(scope="module")
def reference():
    return runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize("name", ["commands.md", "options.md", "columns.md"])
def test_a_page_is_up_to_date(reference, name):
    """`.ci/reference` writes it again."""
    assert (reference["DOCS"] / name).read_text("utf-8") == reference["make_pages"]()[name]


def test_it_is_checked_before_a_commit():
    assert subprocess.run([sys.executable, SCRIPT, "--check"], check=True).returncode == 0


def test_an_option_is_described_once(reference):
    """What commands share is on the page of options alone; it is as long as a page may be, which of
    sixteen commands is 520 lines.
    """
    pages = reference["make_pages"]()
    assert pages["options.md"].count("`LSHDUP_HASH_KEY=KEY`") == 1
    assert "LSHDUP_HASH_KEY" not in pages["commands.md"]
    assert pages["commands.md"].count("\n") <= 520
