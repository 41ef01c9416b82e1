"""The first run on a machine, when kernels are compiled or loaded for the first time."""

import compileall
import functools
import shutil
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.measure import LSHDUP, ROOT, Run, interleaved, run, seconds
from benchmarks.sections.bench import Bench
from benchmarks.tables import Cell, Table

#: Commands in this order, and the most that the first run of each may wait more: bar and dream.
COMMANDS: dict[tuple[str, ...], tuple[str, str]] = {
    ("pairs",): ("3 s", "0 s"),
    ("pairs", "--exact"): ("1 s", "0 s"),
    ("clusters",): ("1 s", "0 s"),
    ("query",): ("1 s", "0 s"),
    ("show",): ("1 s", "0 s"),
}


@functools.cache
def measure(bench: Bench) -> dict[str, list[Run]]:
    """Run each command twice from a new copy of the package, md5sum beside; once for all sections.

    The runs are by `md5sum`, `COMMAND first` and `COMMAND second`.
    """
    small = bench.small()
    documents = bench.corpus("natural", bench.documents)
    done: dict[str, list[Run]] = {}
    for _ in range(bench.few):
        with tempfile.TemporaryDirectory() as temporary:
            package = Path(temporary)
            shutil.copytree(
                ROOT / "lshdup", package / "lshdup", ignore=shutil.ignore_patterns("__pycache__")
            )
            compileall.compile_dir(package, quiet=2)  # as installers do
            bench.forget()
            works = {"md5sum": partial(bench.md5sum, documents)}
            for command in COMMANDS:
                work = partial(_run, bench, small, package, command)
                works |= {f"{' '.join(command)} {when}": work for when in ("first", "second")}
            for name, runs in interleaved(1, works).items():
                done.setdefault(name, []).extend(runs)
    bench.forget()
    return done


def _run(bench: Bench, folder: str, package: Path, command: tuple[str, ...]) -> Run:
    names = [f"{folder}/0000/000000{number}.txt" for number in range(2)]
    documents = {"query": names[:1], "show": names}.get(command[0], [folder])
    return run(
        *LSHDUP,
        command[0],
        *documents,
        *command[1:],
        "-q",
        cwd=bench.home,
        package=package,
        environment={"XDG_CACHE_HOME": str(package / "cache")},
    )


def row(bench: Bench, command: tuple[str, ...]) -> dict[str, Cell]:
    """Return what the first run of a command takes more than the second."""
    done, name = measure(bench), " ".join(command)
    first, second = seconds(done[f"{name} first"]), seconds(done[f"{name} second"])
    bar, dream = COMMANDS[command]
    return {
        "command": f"`{name}`",
        "first run": first,
        "second run": second,
        "more": first - second,
        "ratio": (first - second) / seconds(done["md5sum"]),
        "bar": bar,
        "dream": dream,
    }


def section(bench: Bench) -> list[Table]:
    """Compare the first run of each command with the second."""
    md5sum = seconds(measure(bench)["md5sum"])
    table = Table(
        "**The first run** after an installation; 100 files, commands in this order, from a copy "
        "of the package that was never run, with an empty cache. `ratio` is what it takes more, as "
        f"a multiple of `md5sum` of {bench.documents:,} files in the same run ({md5sum:.2f} s): it "
        "travels between machines."
    )
    table.rows = [row(bench, command) for command in COMMANDS]
    return [table]
