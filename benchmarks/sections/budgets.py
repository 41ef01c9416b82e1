"""The budgets in one table: what was aimed at, and what was measured on this machine."""

import sys
from functools import partial

from benchmarks.measure import interleaved, ratio, run, seconds
from benchmarks.sections import first, office, scale, stages
from benchmarks.sections.bench import Bench
from benchmarks.tables import Cell, Table, shown

#: MB/s of text to sets half as much again as in November 2026, on AMD EPYC with AVX-512.
TEXTS = {"Latin": "700", "Cyrillic": "335", "Han": "320"}


def section(bench: Bench) -> list[Table]:
    """Measure everything that has a bar, but for the other libraries (section `peers-all`)."""
    table = Table(
        "**Budgets.** A ratio is made within each turn, so that it travels between machines; "
        "`against` says to what. Files and compiled kernels are cached, start-up is included."
    )
    documents = bench.documents
    for share, (bar, dream) in sorted(scale.SIZES.items(), reverse=True):
        table.rows.append(_pairs(scale.measure(bench, documents * share // 100), bar, dream))
    largest = scale.measure(bench, documents)
    fresh, again = largest.runs["fresh"], largest.runs["again"]
    table.add(
        what=f"`pairs` again, {documents:,} unchanged files",
        measured=shown("seconds", seconds(again)),
        against=f"the first run, {seconds(fresh):.2f} s",
        ratio=ratio(again, fresh),
        bar="0.2 ×",
        dream="0.1 ×",
    )
    same, md5sums = largest.runs["same"], largest.runs["md5sum"]
    table.add(
        what=f"`clusters --same bytes`, {documents:,} files of few sizes",
        measured=shown("seconds", seconds(same)),
        against=f"`md5sum`, {seconds(md5sums):.2f} s",
        ratio=ratio(same, md5sums),
        bar="2 ×",
    )
    table.add(
        what=f"the store of {documents:,} files",
        measured=f"{largest.stored:.0f} bytes a document",
        bar=f"{scale.STORE} bytes",
    )
    python = [run(sys.executable, "-c", "pass", cwd=bench.home) for _ in range(bench.runs)]
    table.add(
        what=f"`query`, {documents:,} files, over the start of Python",
        measured=shown("seconds", seconds(largest.runs["query"]) - seconds(python)),
        bar="0.15 s",
    )
    small, imports = bench.small(), (sys.executable, "-c", "import numpy")
    one = {"OPENBLAS_NUM_THREADS": "1"}  # as lshdup sets it
    turns = interleaved(
        bench.runs,
        {
            "numpy": partial(run, *imports, cwd=bench.home, environment=one),
            "--help": partial(bench.lshdup, "--help"),
            "pairs": partial(bench.lshdup, "pairs", small, "-q", "--no-store"),
        },
    )
    for name in ("--help", "pairs"):
        table.add(
            what=f"`lshdup {name}`" + ", 100 files" * (name == "pairs"),
            measured=shown("seconds", seconds(turns[name])),
            against=f"the import of NumPy, {seconds(turns['numpy']):.3f} s",
            ratio=ratio(turns[name], turns["numpy"]),
        )
    row = first.row(bench, ("pairs",))
    md5sum = seconds(first.measure(bench)["md5sum"])
    table.add(
        what="the first `pairs` of an installation, over the second",
        measured=shown("more", row["more"]),
        against=f"`md5sum` of {documents:,} files, {md5sum:.2f} s",
        ratio=row["ratio"],
        bar=row["bar"],
        dream=row["dream"],
    )
    for text in stages.texts(bench).rows:
        script = str(text["script"])
        table.rows.append(
            {
                "what": f"{script} text to sets",
                "measured": f"{text['MB/s']:.0f} MB/s",
                "bar": f"{TEXTS[script]} MB/s",
            }
        )
    for each in office.rows(bench):
        table.rows.append(
            {
                "what": f"{bench.documents // 100:,} files of ten pages: {each['what']}",
                "measured": f"{shown('cpu', each['cpu'])} of processor",
                "against": "`pdftotext`" if each["ratio"] else None,
                "ratio": each["ratio"],
                "bar": each["bar"],
            }
        )
    return [table]


def _pairs(measured: scale.Measured, bar: str | None, dream: str | None) -> dict[str, Cell]:
    n, runs = measured.documents, measured.runs
    return {
        "what": f"`pairs`, {n:,} files",
        "measured": shown("seconds", seconds(runs["fresh"])),
        "µs a document": seconds(runs["fresh"]) / n * 1e6,
        "against": f"`md5sum`, {seconds(runs['md5sum']):.2f} s",
        "ratio": measured.against_md5sum,
        "bar": bar,
        "dream": dream,
    }
