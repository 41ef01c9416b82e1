"""Rows of Parquet, up to ten million: time, memory and disk against their number; and from there
what 10⁸ would take.
"""

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import rows
from benchmarks.measure import Run, cpu_seconds, interleaved, precision, recall, seconds
from benchmarks.sections.bench import Bench
from benchmarks.tables import Cell, Table

_READ = ("--text-field", "text", "--id-field", "id", "-q")

#: Times a second that memory and disk are looked at.
_SAMPLES = 20

#: Rows above which works run once, and their memory is bounded in a run of its own.
_MANY = 1_000_000
_BOUND = "1GB"

#: Near-copies, and other rows, in the sample on which the answer is compared with --exact.
_COPIES, _OTHERS = 10_000, 10_000

#: What is planned for.
_PLANNED = 100_000_000

#: The two works: lshdup's arguments behind the folder of rows.
_PAIRS = "`pairs`"
_CLEAN = "`clusters --write --removed`"
_BOUNDED = f"`pairs --memory {_BOUND}`"

_SIZES = {"short": "400 bytes", "long": "2 kB"}


def section(bench: Bench) -> list[Table]:
    """Run both works over each number of rows."""
    cost = Table(
        "**Rows of Parquet** (zstd; words by Zipf's law, a tenth near-copies), threshold 0.8, "
        "without a store before. `memory` is anonymous, `mapped` the files of the store and of the "
        "rows, which the system can drop; `disk` is the most that was taken, with temporary files, "
        "and what is written; `clusters` writes the rows without duplicates, and a list of these.",
        note="Aimed at: 10,000,000 rows of 400 bytes in 8 minutes and 2 GB of anonymous memory, "
        "linear from 100,000, 40 µs of processor time a row.",
    )
    slopes = Table("**What one row more costs**, between two numbers of rows.")
    planned = Table(
        f"**{_PLANNED:,} rows**, planned from the largest number that was measured and the last "
        "slope."
    )
    found = Table(
        "**What is found in rows**: of the pairs that `--exact` finds among a sample of the rows "
        "with near-copies and their originals, those that `pairs` found among all rows."
    )
    for kind, numbers in (("short", bench.rows), ("long", bench.long_rows)):
        before: dict[str, tuple[int, dict[str, float]]] = {}
        for n in numbers:
            folder = rows.corpus(bench.home, kind, n, bench.seed)
            size = sum(file.stat().st_size for file in folder.iterdir())
            for what, runs in _measure(bench, folder, n).items():
                costs = _costs(runs)
                cost.rows.append(_row(kind, n, size, what, runs, costs))
                if what in before:
                    m, smaller = before[what]
                    slope = {each: (costs[each] - smaller[each]) / (n - m) for each in costs}
                    slopes.rows.append(_slope(kind, f"{m:,} to {n:,}", what, slope))
                    if n == numbers[-1] >= _MANY:  # fewer say little of so many
                        planned.rows.append(_plan(kind, n, what, costs, slope))
                before[what] = n, costs
        if numbers:
            found.rows.append(_found(bench, kind, numbers[-1]))
    return [table for table in (cost, slopes, planned, found) if table.rows]


def _measure(bench: Bench, folder: Path, n: int) -> dict[str, list[Run]]:
    """Return the runs of each work; files and compiled kernels are cached."""
    for command in ("pairs", "clusters"):
        bench.compiled(command, bench.small())
    bench.md5sum(folder.name)
    fresh = partial(bench.fresh, samples=_SAMPLES)
    write = ("--write", "clean/", "--removed", "removed.jsonl")
    works = {
        _PAIRS: partial(fresh, "pairs", folder.name, *_READ),
        _CLEAN: partial(fresh, "clusters", folder.name, *_READ, *write),
    }
    if n >= _MANY:
        works[_BOUNDED] = partial(fresh, "pairs", folder.name, *_READ, "--memory", _BOUND)
    done = interleaved(bench.few if n < _MANY else 1, works)
    bench.forget()
    _forget_written(bench)
    return done


def _forget_written(bench: Bench) -> None:
    for file in (bench.home / "clean").glob("*"):
        file.unlink()
    (bench.home / "removed.jsonl").unlink(missing_ok=True)


def _costs(runs: list[Run]) -> dict[str, float]:
    """Return what grows with the rows: seconds, and bytes."""
    return {
        "seconds": seconds(runs),
        "cpu": cpu_seconds(runs),
        "memory": max(run.memory for run in runs),
        "disk": max(run.disk for run in runs),
    }


def _row(
    kind: str, n: int, size: int, what: str, runs: list[Run], costs: dict[str, float]
) -> dict[str, Cell]:
    return {
        "rows": n,
        "of": _SIZES[kind],
        "size": size,
        "what": what,
        "pairs": runs[0].lines or None,
        "seconds": costs["seconds"],
        "cpu": costs["cpu"],
        "CPU µs a row": costs["cpu"] / n * 1e6,
        "memory": costs["memory"],
        "mapped": max(run.mapped for run in runs),
        "disk": costs["disk"],
    }


def _slope(kind: str, step: str, what: str, slope: dict[str, float]) -> dict[str, Cell]:
    return {
        "rows": step,
        "of": _SIZES[kind],
        "what": what,
        "µs a row": slope["seconds"] * 1e6,
        "CPU µs a row": slope["cpu"] * 1e6,
        "memory a row": slope["memory"],
        "disk a row": slope["disk"],
    }


def _plan(
    kind: str, n: int, what: str, costs: dict[str, float], slope: dict[str, float]
) -> dict[str, Cell]:
    more = _PLANNED - n
    return {
        "of": _SIZES[kind],
        "what": what,
        "hours": (costs["seconds"] + more * slope["seconds"]) / 3600,
        "memory": costs["memory"] + more * slope["memory"],
        "disk": costs["disk"] + more * slope["disk"],
        "rows in 1 TB": int(1e12 / slope["disk"]) // 1_000_000 * 1_000_000,
    }


def _found(bench: Bench, kind: str, n: int) -> dict[str, Cell]:
    """Compare the answer over all rows with the exact one over a sample of them."""
    folder = rows.corpus(bench.home, kind, n, bench.seed)
    rng = np.random.default_rng(bench.seed)
    copies = np.unique(rng.integers(0, n // 10, min(_COPIES, n // 20))) * 10 + 9
    others = rng.integers(0, n, min(_OTHERS, n // 2))
    chosen = np.unique(np.concatenate([copies, rows.sources_of(copies, bench.seed), others]))
    rows.write_rows(bench.home / "sample.parquet", kind, [chosen], bench.seed)
    exact = bench.fresh("pairs", "sample.parquet", *_READ, "--no-store", "--exact", keep=True)
    answer = bench.fresh("pairs", folder.name, *_READ, keep=True)
    (bench.home / "sample.parquet").unlink()
    bench.forget()
    names = {b"%d" % row for row in chosen.tolist()}
    of_sample = frozenset(pair for pair in answer.pairs if names.issuperset(pair))
    return {
        "rows": n,
        "of": _SIZES[kind],
        "sample": len(chosen),
        "pairs": len(exact.pairs),
        "recall": recall(of_sample, exact.pairs),
        "precision": precision(of_sample, exact.pairs),
    }
