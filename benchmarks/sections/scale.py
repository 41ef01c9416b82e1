"""Cost against the number of documents."""

import functools
from dataclasses import dataclass
from functools import partial

from benchmarks.measure import Run, interleaved, peak, ratio, seconds
from benchmarks.sections.bench import Bench
from benchmarks.tables import Cell, Table

#: Hundredths of `Bench.documents`, and the largest ratio to md5sum: the bar and the dream.
SIZES: dict[int, tuple[str | None, str | None]] = {
    3: (None, None),
    10: ("3 ×", "2 ×"),
    30: ("1.8 ×", "1.2 ×"),
    100: ("1.5 ×", "1 ×"),
    300: (None, None),
}

#: Bytes a document that the store may take.
STORE = 700


@dataclass(frozen=True)
class Measured:
    """The runs over one number of documents, by name, and the files of the store after them.

    runs : `md5sum`, `fresh` without a store before, `again` over the unchanged folder, `same` of
        equal files, `query`.
    files : name -> bytes.
    """

    documents: int
    runs: dict[str, list[Run]]
    files: dict[str, int]

    @property
    def against_md5sum(self) -> float:
        """The time of the fresh run as a multiple of that of md5sum."""
        return ratio(self.runs["fresh"], self.runs["md5sum"])

    @property
    def stored(self) -> float:
        """Bytes of the store a document."""
        return sum(self.files.values()) / self.documents


@functools.cache
def measure(bench: Bench, n: int) -> Measured:
    """Run `pairs` on n files, again, and a query, beside md5sum; once for all sections."""
    folder = bench.corpus("natural", n)
    bench.compiled("pairs", bench.small())
    # The shorter a turn is, the more it varies.
    turns = max(bench.few, min(5 * bench.few, 3 * bench.documents // n))
    done = interleaved(
        turns if n <= bench.documents else 1,
        {
            "md5sum": partial(bench.md5sum, folder),
            "fresh": partial(bench.fresh, "pairs", folder, "-q"),
            "again": partial(bench.lshdup, "pairs", folder, "-q"),
            "same": partial(
                bench.lshdup, "clusters", folder, "--same", "bytes", "--no-store", "-q"
            ),
            "query": partial(bench.lshdup, "query", f"{folder}/0000/0000000.txt", "-q"),
        },
    )
    files = {file.name: file.stat().st_size for file in sorted(bench.store.glob("*.npz"))}
    bench.forget()
    return Measured(n, done, files)


def section(bench: Bench) -> list[Table]:
    """Run at several sizes: linear is a constant time a document."""
    table = Table(
        "**Cost against the number of documents** "
        "(natural text; `again` is the second run over the unchanged folder)."
    )
    artifacts = Table("**What the store holds**, at the largest of these.")
    sizes: dict[int, tuple[str | None, str | None]] = {
        bench.documents * share // 100: aims for share, aims in SIZES.items()
    }
    if bench.million:
        sizes[1_000_000] = (None, None)
    for n, (bar, dream) in sizes.items():
        measured = measure(bench, n)
        table.rows.append({**_row(measured), "bar": bar, "dream": dream})
        artifacts.rows = [
            {"file": f"`{name}`", "size": size, "bytes a document": size / n}
            for name, size in measured.files.items()
        ]
    return [table, artifacts]


def _row(measured: Measured) -> dict[str, Cell]:
    runs, n = measured.runs, measured.documents
    fresh = runs["fresh"]
    return {
        "documents": n,
        "pairs": fresh[0].lines,
        "seconds": seconds(fresh),
        "µs a document": seconds(fresh) / n * 1e6,
        "md5sum": seconds(runs["md5sum"]),
        "ratio": measured.against_md5sum,
        "memory": peak(fresh),
        "bytes a document": measured.stored,
        "again": seconds(runs["again"]),
        "ratio of again": ratio(runs["again"], fresh),
        "query": seconds(runs["query"]),
        "query memory": peak(runs["query"]),
    }
