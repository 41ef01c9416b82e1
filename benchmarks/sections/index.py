"""An index that is asked from Python, beside those of other libraries."""

import inspect
import sys
from collections.abc import Callable
from functools import partial

from benchmarks.measure import Run, interleaved, peak, precision, recall, run, seconds
from benchmarks.peers import asking
from benchmarks.sections.bench import Bench, installed
from benchmarks.tables import Table

#: Program -> what is shown.
SHOWN = {
    "index_many": "`lshdup.Index`, `query_many`",
    "index_each": "`lshdup.Index`, `add` and `query`",
    "datasketch": "datasketch `MinHashLSH`, candidates",
    "datasketch_verified": "datasketch `MinHashLSH`, verified",
    "in_the_way_of_text_dedup": "the way of text-dedup, candidates",
}
THRESHOLD = 0.8


def section(bench: Bench) -> list[Table]:
    """Compare lines, time, memory and answers of programs that ask which documents are near."""
    n, asked = bench.peer_documents, bench.peer_documents // 10
    table = Table(
        f"**An index from Python.** {n:,} rows of 400 bytes into an index, then {asked:,} others "
        f"to ask for what is {THRESHOLD} similar or more; start of Python and making of the rows "
        "taken off. Lines of the program: `benchmarks/peers/asking.py`, without documentation."
    )
    if not installed("datasketch") or not installed("pyarrow"):
        table.rows.append({"with": "datasketch or pyarrow: not installed"})
        return [table]

    def ask(program: str, documents: int, questions: int) -> Run:
        words = (program, str(documents), str(questions), str(THRESHOLD))
        command = (sys.executable, "-m", "benchmarks.peers.asking", *words)
        return run(*command, cwd=bench.home, keep=True)

    true = ask("exact", n, asked).pairs
    works = {name: partial(ask, name, n, asked) for name in SHOWN}
    done = interleaved(bench.few, works | {"start": partial(ask, "nothing", n, asked)})
    start = seconds(done.pop("start"))
    for name, runs in done.items():
        table.rows.append(
            {
                "with": SHOWN[name],
                "lines": _count_lines(asking.PROGRAMS[name]),
                "seconds": seconds(runs) - start,
                "memory": peak(runs),
                "answers": runs[0].lines,
                "recall": recall(runs[0].pairs, true),
                "precision": precision(runs[0].pairs, true),
            }
        )
    return [table]


def _count_lines(program: Callable[..., object]) -> int:
    """Return the lines of a function, and of the shingling that it needs, without docstrings."""
    source = inspect.getsource(program)
    body = source.split('"""')[2]
    more = inspect.getsource(asking.shingles).split('"""')[2] if "shingles(" in body else ""
    return len([line for line in (body + more).splitlines() if line.strip()])
