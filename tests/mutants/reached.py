"""A plugin of pytest that records which tests enter which functions, with their seconds:
`pytest -p tests.mutants.reached` adds to the folder that REACHED_BY_TESTS names.

Each function of the program says so when it is entered: modules are compiled with a first statement
more, if this one is imported before them. Runs of the program that `tests.running` starts are
recorded too. Of compiled kernels the call is recorded; the kernels that they call are not, nor what
Spark's workers do.
"""

import ast
import builtins
import importlib.machinery
import os
import sys
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = "REACHED_BY_TESTS"

#: Of the modules of kernels, those that Python runs.
_RUN = ("lshdup/kernels/jit.py", "lshdup/kernels/native/")
_CALL = "lshdup/kernels/jit.py", "__call__"


class _Recorder:
    """Writes each function that is entered, once a test and process, to a file of the process."""

    def __init__(self):
        self._file, self._seen, self._is_begun = None, set(), False
        os.register_at_fork(after_in_child=self._forget)

    def begin(self, test):
        """Record what this process and its threads enter from here on as entered by a test."""
        self._seen.clear()
        self._is_begun = True
        self._write(f"> {test}")

    def enter(self, what, kernel=None):
        """A function is entered. kernel : that is called by it."""
        if what not in self._seen and self._is_begun:
            self._seen.add(what)
            self._write(what)
        if kernel is not None:
            code = kernel.function.__code__
            self.enter(f"{os.path.relpath(code.co_filename, ROOT)}:{code.co_firstlineno}")

    def _write(self, line):
        with suppress(OSError):  # as of a test that limits what may be written
            if self._file is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._file = os.open(f"{os.environ[FOLDER]}/{os.getpid()}", flags, 0o600)
            os.write(self._file, f"{line}\n".encode())

    def _forget(self):
        self._file = None  # another process writes to another file


class _Saying(ast.NodeTransformer):
    """Puts a first statement into functions."""

    def __init__(self, file):
        self._file = file

    def visit_FunctionDef(self, node):
        first = min(each.lineno for each in (node, *node.decorator_list))
        kernel = ", self" if (self._file, node.name) == _CALL else ""
        said = ast.parse(f"__reached__('{self._file}:{first}'{kernel})").body[0]
        for each in ast.walk(said):
            ast.copy_location(each, node.body[0])
        self.generic_visit(node)
        node.body.insert(ast.get_docstring(node) is not None, said)
        return node


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        path = self.get_filename(fullname)
        tree = _Saying(os.path.relpath(path, ROOT)).visit(ast.parse(self.get_data(path), path))
        return compile(tree, path, "exec", dont_inherit=True)


class _Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        spec = super().find_spec(fullname, path, target) if fullname[:6] == "lshdup" else None
        if spec is None or spec.origin is None:
            return None
        file = os.path.relpath(spec.origin, ROOT)
        if file.startswith("lshdup/kernels/") and not file.startswith(_RUN):
            return None
        spec.loader = _Loader(fullname, spec.origin)
        return spec


_recorder = _Recorder()
if FOLDER in os.environ:
    builtins.__reached__ = _recorder.enter
    sys.meta_path.insert(0, _Finder)


def record_run():
    """Record the rest of this process if a folder is named: a run of the program."""
    if FOLDER in os.environ:
        _recorder.begin(os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0])


def pytest_runtest_logstart(nodeid):
    _recorder.begin(nodeid)


def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        with (Path(os.environ[FOLDER]) / "seconds").open("a") as file:
            file.write(f"{report.duration} {report.nodeid}\n")


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
