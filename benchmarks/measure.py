"""Commands and functions, timed side by side.

The speed of a machine varies. So compared works take turns, a ratio is taken within each turn, and
the median over the turns is reported.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LSHDUP = (sys.executable, "-m", "lshdup")

#: A pair of names, the smaller one first.
NamePair = tuple[bytes, bytes]


class CommandFailedError(Exception):
    """The failure of a measured command, with the command's stderr as message."""


@dataclass(frozen=True)
class Run:
    """One run.

    seconds : wall time.
    peak : bytes of resident memory.
    lines : lines of the answer.
    pairs : pairs in the answer, if requested.
    cpu : seconds of processor time, of the processes it started too.
    memory, mapped : peaks of bytes of anonymous memory, and of mapped files, if they were sampled.
    disk : most bytes of the file system that were taken meanwhile, if that was sampled.
    """

    seconds: float
    peak: int = 0
    lines: int = 0
    pairs: frozenset[NamePair] = frozenset()
    cpu: float = 0.0
    memory: int = 0
    mapped: int = 0
    disk: int = 0


def run(
    *command: str,
    cwd: Path,
    keep: bool = False,
    package: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    samples: int = 0,
) -> Run:
    """Run a command that must succeed.

    keep : read the answer, lines `name TAB name ...`, as pairs.
    package : the folder that lshdup is imported from.
    samples : how often a second its memory and the disk are looked at.
    """
    # Without byte code, which some machines forbid to write, each run would compile all modules.
    ours = ("LSHDUP_", "PYTHONDONTWRITEBYTECODE")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env |= {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys((str(package), str(ROOT)))),
        "LC_ALL": "C",
        **(environment or {}),
    }
    with tempfile.TemporaryDirectory() as temporary:
        result, out, err = (Path(temporary) / name for name in ("result", "out", "err"))
        launcher = [sys.executable, "-I", "-S", str(ROOT / "benchmarks" / "launcher.py")]
        subprocess.run(
            [*launcher, *map(str, (result, out, err, samples)), *command],
            cwd=cwd,
            env=env,
            check=True,
        )
        seconds, peak, code, cpu, *sampled = result.read_text().split()
        if int(code):
            raise CommandFailedError(
                f"{' '.join(command)}: exit code {code}: {err.read_text(errors='replace')[-2000:]}"
            )
        lines, pairs = 0, frozenset[NamePair]()
        if keep:
            pairs = _pairs(out.read_bytes())
            lines = len(pairs)
        else:
            with out.open("rb") as file:
                while part := file.read(1 << 22):
                    lines += part.count(b"\n")
    return Run(float(seconds), int(peak), lines, pairs, float(cpu), *map(int, sampled))


def _pairs(answer: bytes) -> frozenset[NamePair]:
    split = (line.split(b"\t")[:2] for line in answer.splitlines())
    return frozenset((a, b) if a < b else (b, a) for a, b in split)


def timed(work: Callable[[], object]) -> Run:
    """Time one call of a function."""
    start = time.perf_counter()
    work()
    return Run(time.perf_counter() - start)


def interleaved(runs: int, works: Mapping[str, Callable[[], Run]]) -> dict[str, list[Run]]:
    """Run all works in turn, `runs` times."""
    done: dict[str, list[Run]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            done[name].append(work())
    return done


def seconds(runs: Sequence[Run]) -> float:
    """Return the median wall time in seconds."""
    return statistics.median(run.seconds for run in runs)


def cpu_seconds(runs: Sequence[Run]) -> float:
    """Return the median processor time in seconds."""
    return statistics.median(run.cpu for run in runs)


def peak(runs: Sequence[Run]) -> int:
    """Return the largest peak memory in bytes."""
    return max(run.peak for run in runs)


def ratio(runs: Sequence[Run], others: Sequence[Run]) -> float:
    """Return the median over the turns of the ratio of two times."""
    return statistics.median(a.seconds / b.seconds for a, b in zip(runs, others, strict=True))


def recall(found: frozenset[NamePair], true: frozenset[NamePair]) -> float:
    """Return the share of the true pairs that were found; 1 if there are none."""
    return len(found & true) / len(true) if true else 1.0


def precision(found: frozenset[NamePair], true: frozenset[NamePair]) -> float:
    """Return the share of the found pairs that are true; 1 if there are none."""
    return len(found & true) / len(found) if found else 1.0
