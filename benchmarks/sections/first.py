"""The first run on a machine, when kernels are compiled."""

import shutil
import tempfile
from pathlib import Path

from benchmarks.measure import LSHDUP, ROOT, Run, run, seconds
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table

COMMANDS = (("pairs",), ("pairs", "--exact"), ("query",))


def section(bench: Bench) -> list[Table]:
    """Run each command twice from a new copy of the package."""
    small = bench.small()
    name = f"{small}/0000/0000000.txt"
    done: dict[tuple[str, str], list[Run]] = {}
    for _ in range(bench.few):
        with tempfile.TemporaryDirectory() as temporary:
            package = Path(temporary)
            shutil.copytree(
                ROOT / "lshdup", package / "lshdup", ignore=shutil.ignore_patterns("__pycache__")
            )
            bench.forget()
            for command, *options in COMMANDS:
                arguments = (command, name if command == "query" else small, *options, "-q")
                for when in ("first", "second"):
                    ran = run(
                        *LSHDUP,
                        *arguments,
                        cwd=bench.home,
                        package=package,
                        environment={"XDG_CACHE_HOME": str(package / "cache")},
                    )
                    done.setdefault((" ".join((command, *options)), when), []).append(ran)
    bench.forget()
    table = Table(
        "**The first run** on a machine compiles; 100 files, commands in this order, "
        "from a copy of the package that was never run."
    )
    for command, *options in COMMANDS:
        label = " ".join((command, *options))
        table.rows.append(
            {
                "command": f"`{label}`",
                "first run": seconds(done[label, "first"]),
                "second run": seconds(done[label, "second"]),
                "aim": "10 s to compile" if label == "pairs" else None,
            }
        )
    return [table]
