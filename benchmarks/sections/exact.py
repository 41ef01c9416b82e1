"""The exact join beside the bands, and beside the best-known library for it."""

import sys
from collections.abc import Callable
from functools import partial

from benchmarks.measure import Run, interleaved, peak, ratio, recall, run, seconds
from benchmarks.sections.bench import Bench, installed
from benchmarks.tables import Cell, Table


def section(bench: Bench) -> list[Table]:
    """Compare `--exact` with bands on many documents, and with SetSimilaritySearch on few."""
    bench.compiled("pairs", bench.small())
    bench.compiled("pairs", bench.small(), "--exact")
    n = bench.documents // 5
    folder = bench.corpus("natural", n)
    table = Table(f"**`--exact`**, which misses nothing, beside the bands; {n:,} files.")
    for threshold, runs in ((0.9, bench.runs), (0.7, bench.few)):
        pairs = partial(
            bench.lshdup, "pairs", folder, "-q", "--no-store", "--threshold", str(threshold)
        )
        done = interleaved(
            runs,
            {"bands": partial(pairs, keep=True), "exact": partial(pairs, "--exact", keep=True)},
        )
        true = done["exact"][0].pairs
        for name, label in (("bands", "`pairs`"), ("exact", "`pairs --exact`")):
            ran = done[name]
            table.add(
                threshold=str(threshold),
                what=label,
                seconds=seconds(ran),
                ratio=ratio(ran, done["bands"]),
                pairs=ran[0].lines,
                recall=recall(ran[0].pairs, true),
                memory=peak(ran),
                aim="3 × the bands" if name == "exact" and threshold == 0.9 else None,
            )
    return [table, _beside_library(bench)]


def _beside_library(bench: Bench) -> Table:
    n = bench.peer_documents // 5
    table = Table(
        "The same answer by SetSimilaritySearch, which is Python and takes long: "
        f"{n:,} files, threshold 0.9."
    )
    folder = bench.corpus("natural", n)
    options = ("-q", "--exact", "--no-store", "--threshold", "0.9")
    ours = partial(bench.lshdup, "pairs", folder, *options, keep=True)
    return compare_with_library(bench, table, "`pairs --exact`", ours, (folder, "0.9"))


def compare_with_library(
    bench: Bench,
    table: Table,
    name: str,
    work: Callable[[], Run],
    arguments: tuple[str, ...],
    aim: str | None = None,
) -> Table:
    """Add a row for our work, called `name`, and one for SetSimilaritySearch beside it.

    arguments : of the script with the library: folder, threshold, and perhaps the measure.
    """
    if not installed("SetSimilaritySearch"):
        table.add(what="SetSimilaritySearch: not installed")
        return table
    script = (sys.executable, "-m", "benchmarks.peers.with_setsimilaritysearch", *arguments)
    library = partial(run, *script, cwd=bench.home, keep=True)
    done = interleaved(bench.few, {name: work, "SetSimilaritySearch": library})
    ours = done[name]
    for what, runs in done.items():
        row: dict[str, Cell] = {
            "what": what,
            "seconds": seconds(runs),
            "lshdup_is_faster": None if runs is ours else ratio(runs, ours),
            "pairs": runs[0].lines,
            "recall": recall(runs[0].pairs, ours[0].pairs),
            "memory": peak(runs),
        }
        if aim is not None:
            row["aim"] = None if runs is ours else aim
        table.add(**row)
    return table
