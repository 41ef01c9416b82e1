"""The manual page and the reference are those of the commands, and manual readers show the page without a complaint."""

import re
import shutil
import subprocess

import pytest

from lshdup.cli.commands import COMMANDS
from lshdup.cli.reference import MANUAL, REFERENCE, manual, reference


def test_they_are_up_to_date():
    """`python -m lshdup.cli.reference` writes them anew."""
    assert MANUAL.read_text("utf-8") == manual()
    assert REFERENCE.read_text("utf-8") == reference()


def test_every_command_and_option_is_in_them():
    page = MANUAL.read_text("utf-8").replace("\\-", "-")
    for command in COMMANDS:
        assert f".SS lshdup {command}\n" in page
        assert f"## lshdup {command}\n" in REFERENCE.read_text("utf-8")
    for option in ("--threshold", "--side-by-side", "--check", "LSHDUP_STORE", "NO_COLOR"):
        assert option in page
    assert "--complete" not in page  # it is hidden


@pytest.mark.parametrize(
    "command",
    [
        ["groff", "-man", "-ww", "-Tutf8"],
        ["man", "--warnings", "-E", "UTF-8", "-l"],
        ["mandoc", "-T", "lint", "-W", "error"],
    ],
    ids=lambda command: command[0],
)
def test_the_page_is_rendered_without_warnings(command):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not here")
    process = subprocess.run([*command, str(MANUAL)], capture_output=True, text=True, check=False)
    if "command not found" in process.stderr or "minimized" in process.stdout:
        pytest.skip(f"{command[0]} is not all here")
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    if command[0] != "mandoc":
        shown = re.sub(r".\x08", "", process.stdout)  # bold is a letter typed twice
        assert "near-duplicate documents" in shown
        assert "--side-by-side" in shown
