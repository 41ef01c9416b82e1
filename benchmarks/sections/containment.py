"""Which documents are inside others: beside the exact join by similarity, and a library."""

from functools import partial

from benchmarks.measure import Run, interleaved, peak, ratio, seconds
from benchmarks.sections.bench import Bench
from benchmarks.sections.exact import compare_with_library
from benchmarks.tables import Table

THRESHOLD = "0.8"
CONTAINMENT = ("--measure", "containment")


def section(bench: Bench) -> list[Table]:
    """Compare the join by containment with that by similarity, and with a library."""
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
    return [table, _beside_library(bench), _memory(bench)]


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
    done = _pairs(bench, n, *CONTAINMENT)
    table = Table(f"Its memory at {n:,} files.")
    table.add(
        what="`pairs --measure containment`",
        seconds=done.seconds,
        pairs=done.lines,
        memory=done.peak,
    )
    return table
