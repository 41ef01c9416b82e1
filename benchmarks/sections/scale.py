"""Cost against the number of documents."""

import os
from functools import partial
from pathlib import Path

from benchmarks.measure import interleaved, peak, ratio, seconds
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table


def section(bench: Bench) -> list[Table]:
    """Run at a tenth, at all, and at a million documents: linear is a constant time a document."""
    table = Table(
        "**Cost against the number of documents** "
        "(natural text; `again` is the second run over the unchanged folder)."
    )
    artifacts = Table("**What the store holds**, at the largest of these.")
    bench.compiled("pairs", bench.small())
    for n in dict.fromkeys(
        (bench.documents // 10, bench.documents, *((1_000_000,) if bench.million else ()))
    ):
        folder = bench.corpus("natural", n)
        stored = os.fsdecode(min(bench.fresh("pairs", folder, "-q", keep=True).pairs)[0])
        done = interleaved(
            1 if n > 200_000 else bench.few,
            {
                "md5sum": partial(bench.md5sum, folder),
                "fresh": partial(bench.fresh, "pairs", folder, "-q"),
                "again": partial(bench.lshdup, "pairs", folder, "-q"),
                "query": partial(bench.lshdup, "query", stored, "-q"),
            },
        )
        files = _files(bench.home / ".lshdup")
        fresh = done["fresh"]
        table.rows.append(
            {
                "documents": n,
                "pairs": fresh[0].lines,
                "seconds": seconds(fresh),
                "µs a document": seconds(fresh) / n * 1e6,
                "md5sum": seconds(done["md5sum"]),
                "ratio": ratio(fresh, done["md5sum"]),
                "memory": peak(fresh),
                "store": sum(files.values()),
                "again": seconds(done["again"]),
                "query": seconds(done["query"]),
                "query memory": peak(done["query"]),
            }
        )
        artifacts.rows = [
            {"file": f"`{name}`", "size": size, "bytes a document": size / n}
            for name, size in files.items()
        ]
    bench.forget()
    return [table, artifacts]


def _files(store: Path) -> dict[str, int]:
    """Return the sizes of a store's files by name."""
    return {file.name: file.stat().st_size for file in sorted(store.glob("*.npz"))}
