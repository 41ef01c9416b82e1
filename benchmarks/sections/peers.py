"""Scripts with other libraries, on the same files, at the same thresholds."""

import sys
from functools import partial

from benchmarks.measure import (
    NamePair,
    Run,
    interleaved,
    peak,
    precision,
    ratio,
    recall,
    run,
    seconds,
)
from benchmarks.sections.bench import Bench, installed
from benchmarks.tables import Cell, Table

THRESHOLDS = (0.7, 0.8, 0.9)

#: Shown name -> (module, script and options, whether it runs at one threshold only).
SCRIPTS = {
    "datasketch": ("datasketch", ("with_datasketch",), False),
    "datasketch, SHA-1 (its default)": ("datasketch", ("with_datasketch", "--hash", "sha1"), True),
    "rensa": ("rensa", ("with_rensa",), False),
}

#: How many times as fast lshdup is at least on all files, and hopefully.
LARGE_AIMS = {"datasketch": ("80 ×", "120 ×"), "rensa": ("40 ×", "60 ×")}


def section(bench: Bench) -> list[Table]:
    """Compare time, recall and precision."""
    n = bench.peer_documents
    small = bench.small()
    bench.compiled("pairs", small)
    folder = bench.corpus("natural", n)
    table = Table(
        f"**Beside other libraries.** {n:,} files, all stages, start-up and verification included. "
        "Small scripts (`benchmarks/peers`) make the same shingle sets in Python, sketch with 128 "
        "permutations, look candidates up, and verify them exactly.",
        note="A script's candidates are those its library's bands give for the threshold (for "
        "rensa, the fewest that find nine in ten); lshdup promises 0.99. More documents raise the "
        "ratios, because start-up weighs less.",
    )
    for threshold in THRESHOLDS:
        true = bench.lshdup(
            "pairs", folder, "-q", "--exact", "--no-store", "--threshold", str(threshold), keep=True
        ).pairs
        works = {
            "lshdup": partial(
                bench.lshdup,
                "pairs",
                folder,
                "-q",
                "--no-store",
                "--threshold",
                str(threshold),
                keep=True,
            )
        }
        for name, (module, (script, *options), once) in SCRIPTS.items():
            if once and threshold != 0.8:
                continue
            if not installed(module):
                table.rows.append({"threshold": f"{threshold}", "with": f"{name}: not installed"})
                continue
            command = (
                sys.executable,
                "-m",
                f"benchmarks.peers.{script}",
                folder,
                str(threshold),
                *options,
            )
            works[name] = partial(run, *command, cwd=bench.home, keep=True)
        done = interleaved(bench.runs if threshold == 0.8 else bench.few, works)
        table.rows += _rows(f"{threshold}", done, true)
    start = [bench.lshdup("pairs", small, "-q", "--no-store") for _ in range(bench.runs)]
    table.rows.append(
        {
            "threshold": "0.8",
            "with": "lshdup on 100 files: its start-up",
            "seconds": seconds(start),
            "memory": peak(start),
        }
    )
    return [table]


def large_section(bench: Bench) -> list[Table]:
    """Compare one turn over all files: five minutes, and 12 GB of memory for the scripts."""
    folder = bench.corpus("natural", bench.documents)
    runs = [bench.fresh("pairs", folder, "-q", keep=True) for _ in range(bench.few)]
    done = {"lshdup": [sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]]}
    for name, (module, (script, *options), _) in SCRIPTS.items():
        if installed(module) and name in LARGE_AIMS:
            command = (sys.executable, "-m", f"benchmarks.peers.{script}", folder, "0.8", *options)
            done[name] = [run(*command, cwd=bench.home, keep=True)]
    true = bench.lshdup("pairs", folder, "-q", "--exact", "--no-store", keep=True).pairs
    table = Table(
        f"**Beside other libraries**, {bench.documents:,} files, threshold 0.8, one turn; scripts "
        "as above."
    )
    for row in _rows("0.8", done, true):
        bar, dream = LARGE_AIMS.get(str(row["with"]), (None, None))
        table.rows.append({**row, "bar": bar, "dream": dream})
    return [table]


def _rows(
    threshold: str, done: dict[str, list[Run]], true: frozenset[NamePair]
) -> list[dict[str, Cell]]:
    """Return a row for each program."""
    return [
        {
            "threshold": threshold,
            "with": name,
            "seconds": seconds(runs),
            "lshdup is faster": None if name == "lshdup" else ratio(runs, done["lshdup"]),
            "pairs": runs[0].lines,
            "recall": recall(runs[0].pairs, true),
            "precision": precision(runs[0].pairs, true),
            "memory": peak(runs),
        }
        for name, runs in done.items()
    ]
