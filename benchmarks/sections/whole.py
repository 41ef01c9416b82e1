"""The whole program against the time it takes to read the files."""

import os

from benchmarks.measure import interleaved, peak, precision, ratio, recall, seconds
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table

#: Documents beyond which the exact answer takes longer than the rest of the section.
EXACT_UP_TO = 100_000


def section(bench: Bench) -> list[Table]:
    """Run `pairs` on all files, again, on 100 files, a query and help, beside md5sum."""
    n = bench.documents
    small = bench.small()
    folder = bench.corpus("natural", n)
    bench.compiled("pairs", small)
    answer = bench.fresh("pairs", folder, "-q", keep=True)
    stored = os.fsdecode(min(answer.pairs)[0])
    done = interleaved(
        bench.runs,
        {
            "md5sum": lambda: bench.md5sum(folder),
            "fresh": lambda: bench.fresh("pairs", folder, "-q"),
            "again": lambda: bench.lshdup("pairs", folder, "-q"),
            "query": lambda: bench.lshdup("query", stored, "-q"),
            "help": lambda: bench.lshdup("--help"),
            "small": lambda: bench.lshdup("pairs", small, "-q", "--no-store"),
        },
    )
    size = sum(file.stat().st_size for file in (bench.home / folder).rglob("*") if file.is_file())
    table = Table(
        f"**The whole run.** {n:,} files of {size / n / 1000:.1f} kB; files and compiled kernels "
        "are cached, start-up is included; ratios are made within each turn."
    )
    table.add(what="`md5sum` of the files, 2 processes", seconds=seconds(done["md5sum"]))
    found: dict[str, float] = {}
    if n <= EXACT_UP_TO:
        true = bench.lshdup("pairs", folder, "-q", "--exact", "--no-store", keep=True).pairs
        found = {"recall": recall(answer.pairs, true), "precision": precision(answer.pairs, true)}
    table.add(
        what="`lshdup pairs`",
        seconds=seconds(done["fresh"]),
        ratio=ratio(done["fresh"], done["md5sum"]),
        memory=peak(done["fresh"]),
        answers=answer.lines,
        **found,
        aim="2 × md5sum",
    )
    again = ratio(done["again"], done["fresh"])
    table.add(
        what="again, nothing changed",
        seconds=seconds(done["again"]),
        ratio=again,
        memory=peak(done["again"]),
        answers=done["again"][0].lines,
        aim="0.2 × the first run",
    )
    table.add(
        what="`lshdup query` of one of them",
        seconds=seconds(done["query"]),
        memory=peak(done["query"]),
        answers=done["query"][0].lines,
        aim="0.25 s, 150 MB",
    )
    table.add(
        what="`lshdup pairs` on 100 files",
        seconds=seconds(done["small"]),
        memory=peak(done["small"]),
        answers=done["small"][0].lines,
        aim="0.6 s",
    )
    table.add(what="`lshdup --help`", seconds=seconds(done["help"]), aim="0.15 s")
    if (os.cpu_count() or 1) != 2:
        table.note = "The aims are for two cores."
    return [table]
