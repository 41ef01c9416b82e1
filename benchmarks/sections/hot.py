"""Hot buckets: the cost must be linear in the documents, or in the answer."""

import shlex
import sys
from functools import partial

from benchmarks.measure import Run, interleaved, peak, run, seconds
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table


def section(bench: Bench) -> list[Table]:
    """Run `index` and `clusters` on n, 2n, 4n files of one kind, and `pairs` on fewer."""
    bench.compiled("pairs", bench.small())
    bench.compiled("clusters", bench.small())
    linear = Table(
        "**Files that are all alike**: `index`, then `clusters` of what is indexed, and for "
        "identical ones `pairs --collapse-copies`. Linear: constant time a document."
    )
    for kind in ("identical", "template"):
        for n in (bench.documents // 4, bench.documents // 2, bench.documents):
            folder = bench.corpus(kind, n)
            works = {
                "`index`": partial(bench.fresh, "index", folder, "-q"),
                "`clusters`": partial(bench.lshdup, "clusters", "--emit", "drop", "-q"),
            }
            if kind == "identical":
                works["`pairs --collapse-copies`"] = partial(
                    bench.lshdup, "pairs", "--collapse-copies", "-q"
                )
            for name, runs in interleaved(bench.few, works).items():
                linear.rows.append(
                    {
                        "files": f"{n:,} {kind}",
                        "what": name,
                        "seconds": seconds(runs),
                        "µs a document": seconds(runs) / n * 1e6,
                        "memory": peak(runs),
                        "lines": runs[0].lines or None,
                    }
                )
    bench.forget()
    return [linear, _all_pairs(bench)]


def _all_pairs(bench: Bench) -> Table:
    n = bench.documents // 20
    folder = bench.corpus("template", n)
    done = interleaved(
        bench.few,
        {
            "`pairs`, all of them": lambda: bench.lshdup("pairs", folder, "-q", "--no-store"),
            "`pairs | head -1`": lambda: _head(bench, folder),
        },
    )
    table = Table(
        f"**All pairs of {n:,} files of one template** ({n * (n - 1) // 2:,} true pairs)."
    )
    for name, runs in done.items():
        lines = runs[0].lines
        table.rows.append(
            {
                "what": name,
                "pairs": lines,
                "seconds": seconds(runs),
                "memory": peak(runs),
                "µs a pair": seconds(runs) / lines * 1e6 if lines > 1 else None,
                "bytes a pair": peak(runs) / lines if lines > 1 else None,
                "aim": "1 µs and 16 bytes a pair" if lines > 1 else None,
            }
        )
    return table


def _head(bench: Bench, folder: str) -> Run:
    """Run `pairs` with a reader that stops after one line."""
    lshdup = f"{shlex.quote(sys.executable)} -m lshdup pairs {folder} -q --no-store"
    return run("bash", "-o", "pipefail", "-c", f"{lshdup} | head -1", cwd=bench.home)
