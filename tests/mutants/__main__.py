"""Put drawn faults into a copy of the program, one after the other, and run the tests that enter
the changed function: those of its room first, then the quickest.

Exit code 1: so many survive as less than one draw in a thousand would have, if RATE of all faults
did. Run with the environment of the tests:

    mkdir /tmp/reached
    REACHED_BY_TESTS=/tmp/reached python -m pytest -p tests.mutants.reached -n 3
    python -m tests.mutants --reached /tmp/reached --draw 24 --seed COMMIT
"""

import argparse
import ast
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from math import comb
from pathlib import Path

from tests.mutants import reached
from tests.mutants.drawing import ROOT, all_faults, draw

_COPIED = (
    "lshdup", "tests", "docs", "benchmarks", "sample_corpus", ".ci", "*.md", "*.toml", "*.yml",
    "*.py", ".github", ".pre-commit-hooks.yaml", "Dockerfile", "conda",
)  # fmt: skip

#: A fault may make its tests last this many times as long, and so many seconds more; then it has
#: been noticed.
_SLOWER, _MORE_SECONDS = 4, 60

#: The share of drawn faults that the tests of a minute do not notice. Of 210 that were drawn by
#: "issue 30", 41 were left: 15 that change no answer, 6 that later tests notice, and 20 that none
#: did. Since then tests hold them; another draw finds others. A higher share would say that tests
#: were lost.
RATE = 41 / 210


def most_survivors(faults):
    """Return how many of so many faults may survive: more would, by chance, in less than one draw of
    a thousand (the tail of the binomial distribution).

    >>> [most_survivors(faults) for faults in (10, 40, 200)]
    [6, 16, 57]
    """
    tail, survivors = 1.0, -1
    while tail >= 0.001:
        survivors += 1
        tail -= comb(faults, survivors) * RATE**survivors * (1 - RATE) ** (faults - survivors)
    return survivors


#: This test notices any change of a kernel, right or wrong.
_ANY_CHANGE = "tests/kernels/test_pack.py::test_the_pack_is_that_of_the_sources"


class Reached:
    """Which tests enter a function, and how long they last."""

    def __init__(self, folder):
        self.seconds, self._tests = reached.read(folder)

    def tests_of(self, fault):
        """Return the tests that enter what a fault changes: those of its room, then the quickest."""
        entered = self._tests.get((fault.file, fault.function), set())
        if not entered and "/kernels/" in fault.file:
            entered = set().union(*map(self._tests.__getitem__, _callers(fault) & set(self._tests)))
        if not entered:
            # What a module does when it is imported, a kernel calls, or a process of its own does,
            # concerns all users of the module.
            files = {fault.file, *_users(fault.file)}
            entered = set().union(*(each for at, each in self._tests.items() if at[0] in files))
        entered = entered - {_ANY_CHANGE}
        room = f"tests/{fault.file.split('/')[1]}/"
        return sorted(entered, key=lambda test: (room not in test, self.seconds[test], test))


def _callers(fault):
    """Return the functions of kernels that call the changed one, at any distance: (file, first line)."""
    functions = {}
    for path in (ROOT / "lshdup/kernels").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                first = min(each.lineno for each in (node, *node.decorator_list))
                words = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                functions[str(path.relative_to(ROOT)), first] = node.name, words
    found, todo = set(), [(fault.file, fault.function)]
    while todo:
        name = functions.get(todo.pop(), ("", ()))[0]
        callers = {at for at, (_, words) in functions.items() if name in words} - found
        found |= callers
        todo += callers
    return found


def _users(file):
    """Return the files that name a module."""
    paths, name = (ROOT / "lshdup").rglob("*.py"), re.compile(rf"\b{Path(file).stem}\b")
    return {str(path.relative_to(ROOT)) for path in paths if name.search(path.read_text())}


class Copy:
    """A copy of the program and its tests, with compiled kernels of its own."""

    def __init__(self, folder):
        self.folder = folder
        ignored = shutil.ignore_patterns("*.pyc", ".hypothesis", "node_modules")
        for path in (path for name in _COPIED for path in ROOT.glob(name)):
            if path.is_dir():
                shutil.copytree(path, folder / path.name, ignore=ignored, symlinks=True)
            else:
                shutil.copy2(path, folder / path.name)
        (folder / "tmp").mkdir()
        places = {"PYTHONPATH": "", "XDG_CACHE_HOME": "cache", "TMPDIR": "tmp"}
        self._environment = os.environ | {name: f"{folder / at}" for name, at in places.items()}
        self._changes, self._unusable = 0, set()

    def try_out(self, fault, tests, seconds):
        """Return what notices a fault, or "" if nothing does."""
        while chosen := [each for each in tests if each not in self._unusable]:
            with self._changed(fault):
                code, output = self._pytest(chosen, seconds * _SLOWER + _MORE_SECONDS)
            if code in (0, 5):
                return ""
            failed = re.search(r"^(?:FAILED|ERROR) (\S+(?:\[.*?\])?)(?: - |$)", output, re.M)
            if failed is None or failed[1] not in chosen:
                return f"exit code {code}"
            if not self._pytest([failed[1]], 600)[0]:
                return failed[1]
            self._unusable.add(failed[1])  # It fails in a copy without the fault, too.
        return ""

    @contextmanager
    def _changed(self, fault):
        """Have a fault in its file, and compiled code that does not know the change."""
        path = self.folder / fault.file
        status, before = path.stat(), path.read_bytes()
        # A time of its own, or Python would take the byte code of another text of this length.
        self._changes += 1
        time = status.st_mtime_ns + self._changes * 10**10
        path.write_bytes(fault.changed())
        os.utime(path, ns=(time, time))
        try:
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _pytest(self, tests, seconds):
        names = self.folder / "tmp/tests"
        names.write_text("\n".join(tests))
        options = [
            "-x", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-o",
            "addopts=-q --import-mode=importlib --doctest-modules", f"@{names}",
        ]  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options], cwd=self.folder, env=self._environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            output, process.returncode = b"", -1
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with its children
        process.wait()
        return process.returncode, output.decode("utf-8", "backslashreplace")


def main():
    """Try the faults that the command line draws."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--reached", type=Path, required=True, help="folder of a recorded run")
    parser.add_argument("--draw", type=int, default=40, metavar="N", help="faults (default 40)")
    parser.add_argument("--seed", default="", help="what decides the draw: a commit")
    text = "files with one of these, separated by commas, in their names"
    parser.add_argument("--only", default="", metavar="TEXT", help=text)
    parser.add_argument("--seconds", type=float, default=60, help="most of tests for a fault")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args()
    chosen = [f for f in all_faults() if any(part in f.file for part in options.only.split(","))]
    faults = draw(chosen, options.draw, options.seed)
    known, survived = Reached(options.reached), []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = queue.SimpleQueue()

        def run(fault):
            chosen, seconds = [], 0.0
            for test in known.tests_of(fault):
                if seconds < options.seconds:
                    chosen.append(test)
                    seconds += known.seconds[test]
            copy, start = copies.get(), time.monotonic()
            try:
                noticed = copy.try_out(fault, chosen, seconds)
            finally:
                copies.put(copy)
            if not noticed:
                survived.append(fault)
            said = f"noticed by {noticed}" if noticed else f"SURVIVED {len(chosen)} tests"
            print(f"{time.monotonic() - start:5.0f} s  {said}  {fault}", flush=True)

        with ThreadPoolExecutor(options.jobs) as pool:
            for number in range(options.jobs):
                place = Path(folder).resolve() / str(number)
                place.mkdir()
                copies.put(Copy(place))
            list(pool.map(run, faults))
    print(f"{len(faults) - len(survived)} of {len(faults)} faults were noticed, these were not:")
    for fault in survived:
        print(f"  {fault}")
    return len(survived) > most_survivors(len(faults))


if __name__ == "__main__":
    sys.exit(main())
