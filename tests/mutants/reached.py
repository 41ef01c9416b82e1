"""A plugin of pytest that records which tests enter which functions, with their seconds:
`pytest -p tests.mutants.reached` adds to the folder that REACHED_BY_TESTS names.

Runs of the program that `tests.running` starts are recorded too. Of compiled kernels the call is
recorded; the kernels that they call are not, nor what Spark's workers do.
"""

import os
import sys
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = "REACHED_BY_TESTS"
_OURS = f"{ROOT}{os.sep}lshdup{os.sep}"
_CALL = f"{_OURS}kernels{os.sep}jit.py", "__call__"


class _Recorder:
    """Writes each function that is entered, once a test and process, to a file of the process."""

    def __init__(self, folder):
        self._folder, self._file, self._seen = folder, None, set()
        os.register_at_fork(after_in_child=self._forget)

    def begin(self, test):
        """Record what this process and its threads enter from here on as entered by a test."""
        self._seen.clear()
        self.write(f"> {test}")
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def write(self, line):
        with suppress(OSError):  # as of a test that limits what may be written
            if self._file is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._file = os.open(f"{self._folder}/{os.getpid()}", flags, 0o600)
            os.write(self._file, f"{line}\n".encode())

    def _forget(self):
        self._file = None  # another process writes to another file

    def _trace(self, frame, _event, _arg):
        code = frame.f_code
        if code not in self._seen:
            self._seen.add(code)
            self._enter(code)
        if code.co_name == _CALL[1] and code.co_filename == _CALL[0]:
            kernel = frame.f_locals["self"]
            if kernel not in self._seen:
                self._seen.add(kernel)
                self._enter(kernel.function.__code__)

    def _enter(self, code):
        if code.co_filename.startswith(_OURS):
            self.write(f"{os.path.relpath(code.co_filename, ROOT)}:{code.co_firstlineno}")


def record_run():
    """Record the rest of this process if a folder is named: a run of the program."""
    if folder := os.environ.get(FOLDER):
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
        _Recorder(folder).begin(test)


def pytest_configure(config):
    config.stash[_KEY] = _Recorder(os.environ[FOLDER])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.config.stash[_KEY].begin(item.nodeid)


def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        with (Path(os.environ[FOLDER]) / "seconds").open("a") as file:
            file.write(f"{report.duration} {report.nodeid}\n")


def pytest_unconfigure():
    sys.settrace(None)


_KEY = pytest.StashKey()


def read(folder):
    """Return {test: seconds} of the tests that passed, and {(file, first line): their names}."""
    lines = (folder / "seconds").read_text().splitlines()
    seconds = {test: float(each) for each, _, test in (line.partition(" ") for line in lines)}
    tests = defaultdict(set)
    for path in folder.iterdir():
        if path.name != "seconds":
            for line in path.read_text().splitlines():
                if line.startswith("> "):
                    test = line[2:]
                elif test in seconds:
                    file, _, first = line.rpartition(":")
                    tests[file, int(first)].add(test)
    return seconds, tests
