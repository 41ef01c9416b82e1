"""Limits of the system that a script may meet; exit codes: golden/scenes/gates.txt."""

import pytest

from lshdup.cli.main import main
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
