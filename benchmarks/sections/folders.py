"""`folders` beside `clusters`, from which it begins."""

from functools import partial

from benchmarks.measure import interleaved, peak, ratio, seconds
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table


def section(bench: Bench) -> list[Table]:
    """Compare `folders` with `clusters` over two corpora, of which one may be inside the other."""
    bench.compiled("clusters", bench.small())
    n = bench.documents * 3 // 10
    docs = [bench.corpus("natural", n), bench.corpus("natural", bench.peer_documents)]
    calls = {
        f"`{name}`": partial(bench.lshdup, name, *docs, "-q", "--no-store")
        for name in ("clusters", "folders")
    }
    done = interleaved(bench.runs, calls)
    table = Table(f"**`folders`** beside `clusters`; {n + bench.peer_documents:,} files.")
    for name, ran in done.items():
        table.add(
            what=name,
            seconds=seconds(ran),
            ratio=ratio(ran, done["`clusters`"]),
            lines=ran[0].lines,
            memory=peak(ran),
            aim="1.1 × `clusters`" if name == "`folders`" else None,
        )
    return [table]
