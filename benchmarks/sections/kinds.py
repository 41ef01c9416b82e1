"""Other collections than many Latin texts of middle length."""

from functools import partial

from benchmarks.measure import interleaved, peak, precision, ratio, recall, seconds
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table


def section(bench: Bench) -> list[Table]:
    """Compare `pairs` with md5sum on other scripts, tiny and huge files."""
    bench.compiled("pairs", bench.small())
    bench.compiled("pairs", bench.small(), "--exact")
    table = Table("**Other collections**, threshold 0.8.")
    for kind, documents, label in (
        ("cyrillic", bench.documents // 10, "Cyrillic"),
        ("han", bench.documents // 10, "Han"),
        ("tiny", bench.documents // 2, "tiny, 50 to 200 bytes"),
        ("huge", max(4, bench.documents // 5000), "huge, about 4 MB"),
    ):
        folder = bench.corpus(kind, documents)
        size = sum(file.stat().st_size for file in (bench.home / folder).rglob("*.txt"))
        bench.compiled("pairs", folder)
        done = interleaved(
            bench.few,
            {
                "md5sum": partial(bench.md5sum, folder),
                "fresh": partial(bench.lshdup, "pairs", folder, "-q", "--no-store", keep=True),
            },
        )
        found = done["fresh"]
        true = bench.lshdup("pairs", folder, "-q", "--exact", "--no-store", keep=True).pairs
        table.rows.append(
            {
                "kind": label,
                "documents": documents,
                "size": size,
                "seconds": seconds(found),
                "md5sum": seconds(done["md5sum"]),
                "ratio": ratio(found, done["md5sum"]),
                "memory": peak(found),
                "pairs": found[0].lines,
                "recall": recall(found[0].pairs, true),
                "precision": precision(found[0].pairs, true),
            }
        )
    return [table]
