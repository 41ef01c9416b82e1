"""Which documents are inside others: beside the exact join by similarity, and a library."""

from functools import partial

import numpy as np

from benchmarks.measure import Run, interleaved, peak, ratio, seconds
from benchmarks.sections.bench import Bench
from benchmarks.sections.exact import compare_with_library
from benchmarks.tables import Table
from lshdup.base.run import count_processors
from lshdup.compare.exact_join import planned_memory

THRESHOLD = "0.8"
CONTAINMENT = ("--measure", "containment")


def section(bench: Bench) -> list[Table]:
    """Compare the join by containment with that by similarity, with a library, and its memory with
    what it plans; and the samples with the bands.
    """
    for options in ((), ("--exact",), (*CONTAINMENT, "--exact")):
        bench.compiled("pairs", bench.small(), *options)
    n = bench.documents // 5
    table = Table(
        f"**`--measure containment`** beside `--exact`, both without misses; {n:,} files, "
        f"threshold {THRESHOLD}."
    )
    _compare(
        table,
        interleaved(
            bench.runs,
            {
                "`pairs --exact`": partial(_pairs, bench, n, "--exact"),
                "`pairs --measure containment`": partial(_pairs, bench, n, *CONTAINMENT, "--exact"),
            },
        ),
        "3 ×",
    )
    return [table, _beside_library(bench), _memory(bench), _samples(bench)]


def _pairs(bench: Bench, documents: int, *options: str) -> Run:
    folder = bench.corpus("natural", documents)
    return bench.lshdup("pairs", folder, "-q", "--no-store", "-t", THRESHOLD, *options, keep=True)


def _compare(table: Table, done: dict[str, list[Run]], aim: str) -> None:
    """Add a row for each work; ratios are to the first."""
    first = next(iter(done.values()))
    for name, runs in done.items():
        table.add(
            what=name,
            seconds=seconds(runs),
            ratio=ratio(runs, first),
            pairs=runs[0].lines,
            memory=peak(runs),
            aim=None if runs is first else aim,
        )


def _beside_library(bench: Bench) -> Table:
    n = bench.peer_documents // 2
    table = Table(f"The same by a query of SetSimilaritySearch for each of {n:,} files.")
    name = "`pairs --measure containment`"
    ours = partial(_pairs, bench, n, *CONTAINMENT, "--exact")
    arguments = (bench.corpus("natural", n), THRESHOLD, "containment")
    return compare_with_library(bench, table, name, ours, arguments, aim="30 ×")


def _memory(bench: Bench) -> Table:
    n = bench.documents
    folder = bench.corpus("natural", n)
    bench.fresh("shingle", folder, "-q")
    with np.load(bench.store / "shingles.npz") as artifact:
        planned = planned_memory(artifact["set_sizes"], float(THRESHOLD), count_processors())
    done = bench.lshdup("pairs", folder, "-q", "-t", THRESHOLD, *CONTAINMENT, "--exact", keep=True)
    bench.forget()
    table = Table(f"Its memory at {n:,} files, and what it says before.")
    table.add(
        what="`pairs --measure containment`",
        seconds=done.seconds,
        pairs=done.lines,
        memory=done.peak,
        planned=planned,
    )
    return table


def _samples(bench: Bench) -> Table:
    n = 1_000_000 if bench.million else bench.documents
    table = Table(
        f"By samples of the sets, where these exceed memory; {n:,} files. `pairs` is by bands."
    )
    # Too little for the exact join, which takes 14 KB a file. With less than 5 KB a file, samples
    # would be smaller, and small documents be missed.
    small = (*CONTAINMENT, "--memory", f"{max(16, 6 * n // 1000)}M")
    _compare(
        table,
        interleaved(
            1 if bench.million else bench.few,
            {
                "`pairs`": partial(_pairs, bench, n),
                "`pairs --measure containment`, samples": partial(_pairs, bench, n, *small),
            },
        ),
        "3 ×",
    )
    return table
