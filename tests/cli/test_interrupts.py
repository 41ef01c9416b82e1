"""Ctrl-C at any instant of the start, while modules are imported."""

import signal
import subprocess
import sys
import time

import pytest

from lshdup.cli import main
from tests.conftest import WHOLE, failing
from tests.running import clean_environment

#: What the script of an installation does, and its module.
ENTRIES = {
    "script": ["-c", "import sys; from lshdup.__main__ import program; sys.exit(program())"],
    "module": ["-m", "lshdup"],
}


@pytest.fixture
def interruptible():
    """Children have SIGINT at its default, whatever the parent of this test did."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_instant_of_the_start_ends_in_a_traceback(tmp_path, interruptible, entry):
    # It waits for names until it is interrupted, so none comes too late.
    command = [sys.executable, *ENTRIES[entry], "pairs", "--files-from", "-", "--no-store"]
    ends = []
    for milliseconds in range(5, 166, 4 if WHOLE else 16):
        with subprocess.Popen(
            command, cwd=tmp_path, env=clean_environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            time.sleep(milliseconds / 1000)
            process.send_signal(signal.SIGINT)
            process.wait(60)
            err = process.stderr.read()
        ends.append(process.returncode)
        assert b"lshdup/" not in err, err
        assert b"click" not in err, err
        if process.returncode == 130:
            assert err in (b"", b"lshdup: interrupted; nothing of this run was kept\n")
        elif process.returncode != -signal.SIGINT:  # Python itself had not started.
            assert err.startswith((b"Fatal Python error", b"Could not import runpy")), err
    assert ends.count(130) >= len(ends) // 3, ends
    assert not list(tmp_path.iterdir())


def test_an_interrupt_that_is_an_exception(capsys, monkeypatch):
    """As of a question that waits for an answer, or of Spark."""
    monkeypatch.setattr(main.lshdup, "main", failing(KeyboardInterrupt))
    with pytest.raises(SystemExit) as end:
        main.main([])
    assert end.value.code == 130
    assert capsys.readouterr().err.startswith("lshdup: interrupted; ")
