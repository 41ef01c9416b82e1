"""Put one fault after the other into a copy of the program, and run the tests that must fail.

Exit code 1: more than one fault in twenty survives (of fewer than twenty, one is too many), or an
entry of the lists is wrong. Run with the environment of the tests: pip install -e '.[test]'.
"""

import argparse
import hashlib
import importlib
import os
import pkgutil
import queue
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tests.mutants
from tests.mutants import Mutant

ROOT = Path(__file__).parents[2]
_COPIED = ("lshdup", "tests", "docs", "benchmarks", "sample_corpus", ".ci", "*.md", "*.toml")

#: A fault may make its tests last this many times as long, and so many seconds more; then it has
#: been noticed.
_SLOWER, _MORE_SECONDS = 5, 120

KILLED, SURVIVED, WRONG = "killed", "SURVIVED", "WRONG"


def all_mutants() -> list[Mutant]:
    """The lists of all rooms, without double names."""
    found = [
        mutant
        for module in pkgutil.iter_modules(tests.mutants.__path__)
        if not module.name.startswith("_")
        for mutant in importlib.import_module(f"tests.mutants.{module.name}").MUTANTS
    ]
    names = [mutant.name for mutant in found]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        sys.exit(f"names stand twice: {', '.join(double)}")
    return found


def draw(mutants: list[Mutant], n: int, key: str) -> list[Mutant]:
    """n of them, drawn by a key: the same ones every time."""
    ranked = sorted(
        mutants, key=lambda each: hashlib.sha256(f"{key} {each.name}".encode()).digest()
    )
    return ranked[:n]


class Copy:
    """A copy of the program and its tests, with compiled kernels of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("*.pyc", ".hypothesis", "node_modules")
        for path in (path for name in _COPIED for path in ROOT.glob(name)):
            if path.is_dir():
                shutil.copytree(path, folder / path.name, ignore=ignored, symlinks=True)
            else:
                shutil.copy2(path, folder / path.name)
        (folder / "tmp").mkdir()
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "TMPDIR": str(folder / "tmp"),
            "CI": "1",  # Hypothesis tries the same examples every time.
        }
        self._seconds: dict[str, float] = {}
        self._serial = 0
        place = self._python("-c", "import lshdup; print(lshdup.__file__)", seconds=60)[1]
        assert place.startswith(str(folder)), f"the copy is not what runs: {place}"

    def try_out(self, mutant: Mutant) -> tuple[str, str]:
        """Return what became of a mutant, and what is to be said about it."""
        path = self.folder / mutant.file
        text = path.read_text() if path.is_file() else ""
        if text.count(mutant.old) != 1:
            return WRONG, f"its text stands {text.count(mutant.old)} times in {mutant.file}"
        if mutant.tests not in self._seconds:
            start = time.monotonic()
            code, output = self._pytest(mutant.tests, 1800)
            if code:
                return WRONG, f"without the fault, {mutant.tests} ends with {code}:\n{output}"
            self._seconds[mutant.tests] = time.monotonic() - start
        patience = self._seconds[mutant.tests] * _SLOWER + _MORE_SECONDS
        with _Changed(self, path, text.replace(mutant.old, mutant.new)):
            code, output = self._pytest(mutant.tests, patience)
        if code in (0, 5):
            return SURVIVED, f"{mutant.file}: no failure in {mutant.tests}"
        first = next(
            (line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))), ""
        )
        return KILLED, first or f"exit code {code}"

    def next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def _pytest(self, tests_: str, seconds: float) -> tuple[int, str]:
        options = ["-x", "-rfE", "--tb=no", "-p", "no:cacheprovider"]
        code, output = self._python("-m", "pytest", *options, *shlex.split(tests_), seconds=seconds)
        return code, output[-2000:]

    def _python(self, *arguments: str, seconds: float) -> tuple[int, str]:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return -1, f"no end in {seconds:.0f} seconds"
        return process.returncode, output.decode("utf-8", "backslashreplace")


class _Changed:
    """A file of a copy with another text, and compiled code that does not know the change."""

    def __init__(self, copy: Copy, path: Path, text: str) -> None:
        self._path, self._text = path, text
        self._status, self._before = path.stat(), path.read_bytes()
        # A time of its own, or Python would take the byte code of another text of this length.
        self._time = self._status.st_mtime_ns + copy.next_serial() * 10**10
        # Any change in this folder makes all kernels anew: the good ones wait aside.
        self._kernels = path.parent / "__pycache__"
        self._aside = path.parent / "compiled"
        self._is_kernel = path.parent.name == "kernels"

    def __enter__(self) -> None:
        self._path.write_text(self._text)
        os.utime(self._path, ns=(self._time, self._time))
        if self._is_kernel and self._kernels.exists():
            self._kernels.rename(self._aside)

    def __exit__(self, *_: object) -> None:
        self._path.write_bytes(self._before)
        os.utime(self._path, ns=(self._status.st_atime_ns, self._status.st_mtime_ns))
        if self._is_kernel and self._aside.exists():
            shutil.rmtree(self._kernels, ignore_errors=True)
            self._aside.rename(self._kernels)


def main() -> int:
    """Run the faults that the command line chooses."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="faults whose names or files contain one of these")
    parser.add_argument("--all", action="store_true", help="all faults")
    parser.add_argument("--draw", type=int, metavar="N", help="draw N of them")
    parser.add_argument("--key", default="", help="what decides the draw: a commit")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--list", action="store_true", help="list the faults, and run none")
    options = parser.parse_args()
    chosen = all_mutants()
    if options.names:
        chosen = [
            mutant
            for mutant in chosen
            if any(name in mutant.name or name in mutant.file for name in options.names)
        ]
    elif not (options.all or options.draw or options.list):
        parser.error("which faults? --all, --draw N, or names")
    if options.draw:
        chosen = draw(chosen, options.draw, options.key)
    if options.list:
        print("\n".join(f"{mutant.name}  ({mutant.file})" for mutant in chosen))
        return 0
    if not chosen:
        sys.exit("no fault has that name")
    return _run(chosen, options.jobs)


def _run(chosen: list[Mutant], jobs: int) -> int:
    # Those of one test one after the other: its run without a fault is done once.
    chosen = sorted(chosen, key=lambda mutant: (mutant.tests, mutant.file, mutant.name))
    jobs = min(jobs, len(chosen))
    outcomes: dict[str, list[str]] = {KILLED: [], SURVIVED: [], WRONG: []}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()

        def run(mutant: Mutant) -> None:
            copy = copies.get()
            try:
                start = time.monotonic()
                outcome, said = copy.try_out(mutant)
            finally:
                copies.put(copy)
            outcomes[outcome].append(mutant.name)
            print(
                f"{outcome:8} {time.monotonic() - start:5.1f} s  {mutant.name}  [{said}]",
                flush=True,
            )

        with ThreadPoolExecutor(jobs) as pool:
            for number in range(jobs):
                (Path(folder) / str(number)).mkdir()
                copies.put(Copy(Path(folder).resolve() / str(number)))
            list(pool.map(run, chosen))
    killed, survived, wrong = (sorted(outcomes[each]) for each in (KILLED, SURVIVED, WRONG))
    print(f"{len(killed)} of {len(chosen)} faults were noticed, {len(survived)} survived")
    for title, names in (("survived", survived), ("wrong entries", wrong)):
        if names:
            print(f"{title}:", *names, sep="\n  ")
    return 1 if wrong or 20 * len(survived) > len(chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
