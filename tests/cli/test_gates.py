"""Answers that a script relies on: exit codes of --check, lists of names, and what is skipped."""

import pytest

from lshdup.base.skipped import Reason, Skipped
from lshdup.cli.console import Console
from lshdup.cli.main import main
from lshdup.errors import LshdupError
from tests.conftest import failing


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("can't start new thread"), OSError(12, "Cannot allocate memory"),
     OSError("Could not find/load shared object file 'libllvmlite.so'"),
     BlockingIOError(11, "Resource temporarily"),
     ImportError("_multiarray_umath.so: failed to map segment from shared object")],
)  # fmt: skip
def test_a_limit_of_addresses_is_named(monkeypatch, capsys, error):
    monkeypatch.setattr("lshdup.cli.main.lshdup.main", failing(error))
    monkeypatch.setattr("lshdup.cli.main.address_space", lambda: 200 << 20)
    with pytest.raises(SystemExit) as end:
        main(["pairs"])
    assert end.value.code == 2
    assert capsys.readouterr().err.splitlines() == [
        "lshdup: error: not enough memory: this process may take 200 MB of addresses",
        "  raise the limit, as `ulimit -v` shows it",
    ]


def test_the_exit_code_follows_from_errors_first():
    quiet, check = Console(), Console(check=True)
    assert (quiet.exit_code(3), check.exit_code(3), check.exit_code(0)) == (0, 1, 0)
    for console in (quiet, check):
        console.error(LshdupError("x"))
    assert (quiet.exit_code(3), check.exit_code(3), check.exit_code(0)) == (2, 2, 2)
    skipping = Console(check=True)
    skipping.report_skipped(Skipped(b"x", Reason.HIDDEN))
    assert skipping.exit_code(3) == 1
    skipping.report_skipped(Skipped(b"x", Reason.UNREADABLE))
    assert skipping.exit_code(3) == 2
