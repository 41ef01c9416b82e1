"""The share of the true pairs that is found."""

from benchmarks.measure import precision, recall
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def section(bench: Bench) -> list[Table]:
    """Compare the answer by bands with the exact one, at several thresholds."""
    n = bench.peer_documents
    bench.compiled("pairs", bench.small())
    bench.compiled("pairs", bench.small(), "--exact")
    folder = bench.corpus("natural", n)
    table = Table(
        f"**What is found** of the pairs that `--exact` finds, {n:,} files; "
        "0.99 is promised for a pair of exactly the threshold."
    )
    for threshold in THRESHOLDS:
        arguments = ("pairs", folder, "-q", "--no-store", "--threshold", str(threshold))
        found = bench.lshdup(*arguments, keep=True)
        true = bench.lshdup(*arguments, "--exact", keep=True)
        table.add(
            threshold=str(threshold),
            pairs=true.lines,
            found=found.lines,
            recall=recall(found.pairs, true.pairs),
            precision=precision(found.pairs, true.pairs),
            seconds=found.seconds,
            exact=true.seconds,
            aim="recall 0.99, precision 1",
        )
    return [table]
