"""Spark beside the local engine, on the same Parquet.

Whole runs, the map side alone, and one key that half of the documents share.
"""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.corpora import text_of
from benchmarks.measure import LSHDUP, Run, interleaved, ratio, run, seconds, timed
from benchmarks.sections.bench import Bench, installed
from benchmarks.tables import Table
from lshdup.collection import collect

#: Documents of one file.
PART = 5000
FIELDS = ("--id-field", "id", "--text-field", "text")


def section(bench: Bench) -> list[Table]:
    """Measure, if pyspark and Java are installed."""
    if not installed("pyspark") or shutil.which("java") is None:
        return []
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return [
        _whole(bench),
        _skewed(bench),
        _map_side(bench),
    ]  # the last leaves a JVM behind, whose memory the others must not count


def parquet(bench: Bench, name: str, documents: int, kind: Callable[[int], str]) -> str:
    """Return a folder of Parquet files (id, text), made if it is missing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = bench.home / f"{name}-{documents}.parquet"
    if not folder.is_dir():
        folder.mkdir()
        for start in range(0, documents, PART):
            numbers = range(start, min(start + PART, documents))
            texts = [text_of(kind(number), number, bench.seed).decode() for number in numbers]
            pq.write_table(
                pa.table({"id": [f"{number:07}" for number in numbers], "text": texts}),
                folder / f"{start:07}.parquet",
            )
    return folder.name


def _whole(bench: Bench) -> Table:
    folder = parquet(bench, "natural", bench.documents, lambda _: "natural")
    table = Table(
        f"**Apache Spark**, {bench.documents:,} documents as Parquet; `local[2]`. Start-up of the "
        "JVM is in the time; memory is that of all processes (proportional set size)."
    )
    works = {
        "`lshdup pairs`": lambda: _watched(bench, "pairs", folder, *FIELDS, "-q", "--no-store"),
        "`lshdup spark pairs`": lambda: _on_spark(bench, "pairs", folder, "local[2]"),
    }
    done = interleaved(bench.few, works)
    for name, runs in done.items():
        table.rows.append(
            {
                "what": name,
                "seconds": seconds(runs),
                "ratio": ratio(runs, done["`lshdup pairs`"]),
                "memory": max(each.peak for each in runs),
                "pairs": runs[0].lines,
            }
        )
    return table


def _map_side(bench: Bench) -> Table:
    """Time documents -> sets, signatures and keys, on two cores; all is started and compiled."""
    import numpy as np

    from lshdup.base.params import DocumentParams
    from lshdup.base.run import Run as OneRun
    from lshdup.lsh import band_table
    from lshdup.sources import finding
    from lshdup.spark import files as spark_files
    from lshdup.spark import session as spark_session
    from lshdup.spark.pipeline import make_recipe
    from lshdup.spark.workers import SKETCHES, sketch_rows

    folder = parquet(bench, "natural", bench.documents, lambda _: "natural")
    files = DocumentParams(text_field="text", id_field="id")
    recipe = make_recipe()
    with spark_session.session("local[2]", {}, quiet=True) as session:

        def by_spark() -> None:
            found = spark_files.find_documents(session, (str(bench.home / folder),), files)
            mapped = found.mapInArrow(partial(sketch_rows, recipe), SKETCHES)
            mapped.write.format("noop").mode("overwrite").save()

        def by_local() -> None:
            listed = finding.find_documents(
                OneRun.quiet(), (os.fsencode(bench.home / folder),), files
            )
            made = collect.collect(OneRun.quiet(2), listed, recipe.shingle, recipe.sketch)
            assert made.signatures is not None
            assert band_table.band_keys(
                OneRun.quiet(), np.asarray(made.signatures), recipe.plan
            ).size

        by_spark()  # warms up
        by_local()
        done = interleaved(
            bench.runs, {"local": lambda: timed(by_local), "Spark": lambda: timed(by_spark)}
        )
    table = Table(
        f"**The map side** alone, two cores, everything warm: {bench.documents:,} documents to "
        "sets, signatures and keys."
    )
    for name, runs in done.items():
        table.rows.append(
            {
                "engine": name,
                "seconds": seconds(runs),
                "µs a document": seconds(runs) / bench.documents * 1e6,
                "ratio": ratio(runs, done["local"]),
                "aim": "1.5 × the local engine" if name == "Spark" else None,
            }
        )
    return table


def _skewed(bench: Bench) -> Table:
    """Run with half of the documents of one template; two executors of one core and 2 GB."""
    n = bench.documents
    folder = parquet(bench, "skewed", n, lambda number: "template" if number % 2 else "natural")
    table = Table(
        f"**Half of {n:,} documents are of one template**; "
        "two executors with one core and 2 GB each, on this machine."
    )
    pairs = f"{n // 2 * (n // 2 - 1) // 2:,} pairs of the template"
    for command, threshold, looked_at in (
        ("pairs", "0.99", f"{pairs}: all are candidates, none is one"),
        ("clusters", "0.8", f"{pairs}: all are, one document represents the others"),
    ):
        conf = ("-t", threshold, "--spark-conf", "spark.executor.memory=2g")
        ran = _on_spark(bench, command, folder, "local-cluster[2,1,2048]", *conf)
        table.rows.append(
            {
                "command": command,
                "threshold": threshold,
                "seconds": ran.seconds,
                "memory": ran.peak,
                "rows written": ran.lines,
                "there are": looked_at,
            }
        )
    return table


# --- memory of many processes -----------------------------------------------------------------


def _on_spark(bench: Bench, command: str, folder: str, master: str, *options: str) -> Run:
    """Run `lshdup spark` once, with the number of rows that it writes."""
    import pyarrow.parquet as pq

    answer = bench.home / "answer.parquet"
    shutil.rmtree(answer, ignore_errors=True)
    words = (command, folder, *FIELDS, "-q", "--master", master, *options, "-o", str(answer))
    ran = _watched(bench, "spark", *words)
    rows = sum(pq.ParquetFile(file).metadata.num_rows for file in answer.glob("*.parquet"))
    shutil.rmtree(answer, ignore_errors=True)
    return Run(ran.seconds, ran.peak, rows)


def _watched(bench: Bench, *arguments: str) -> Run:
    """Run lshdup once, with the largest sum of the memory of its processes."""
    with _memory() as peak:
        ran = run(*LSHDUP, *arguments, cwd=bench.home)
    return Run(ran.seconds, max(peak[0], ran.peak), ran.lines)


@contextmanager
def _memory() -> Iterator[list[int]]:
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            peak[0] = max(peak[0], sum(map(_proportional, _below(os.getpid()))))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def _below(root: int) -> list[int]:
    """Return the ids of all processes below one."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(folder.name))
    found, waiting = [], [root]
    while waiting:
        waiting += children.get(waiting[0], [])
        found.append(waiting.pop(0))
    return found[1:]


def _proportional(process: int) -> int:
    """Return bytes of memory; shared bytes are divided among their processes."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
