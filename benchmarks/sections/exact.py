"""The exact join beside the bands, and beside the best-known library for it."""

import sys
from functools import partial

from benchmarks.measure import interleaved, peak, ratio, recall, run, seconds
from benchmarks.sections.bench import Bench, installed
from benchmarks.tables import Table


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
    if not installed("SetSimilaritySearch"):
        table.add(what="SetSimilaritySearch: not installed")
        return table
    folder = bench.corpus("natural", n)
    script = (sys.executable, "-m", "benchmarks.peers.with_setsimilaritysearch", folder, "0.9")
    done = interleaved(
        bench.few,
        {
            "`pairs --exact`": lambda: bench.lshdup(
                "pairs", folder, "-q", "--exact", "--no-store", "--threshold", "0.9", keep=True
            ),
            "SetSimilaritySearch": lambda: run(*script, cwd=bench.home, keep=True),
        },
    )
    ours = done["`pairs --exact`"]
    for name, runs in done.items():
        table.add(
            what=name,
            seconds=seconds(runs),
            lshdup_is_faster=None if runs is ours else ratio(runs, ours),
            pairs=runs[0].lines,
            recall=recall(runs[0].pairs, ours[0].pairs),
            memory=peak(runs),
        )
    return table
