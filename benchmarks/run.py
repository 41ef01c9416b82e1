"""The benchmarks: `python -m benchmarks.run` takes a quarter of an hour on two idle cores.

    python -m benchmarks.run --documents 5000 --only whole,stages   some sections
    python -m benchmarks.run --only budgets --readme                what has a bar: 5 minutes
    python -m benchmarks.run --only peers-all --readme              5 minutes, 12 GB of memory
    python -m benchmarks.run --million --readme                     all, into benchmarks/README.md

It makes its own files and prints a table a section. With -o, results go to a JSON file, which keeps
the results of sections that were not run.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.sections import ON_REQUEST, SECTIONS
from benchmarks.sections.bench import Bench

PACKAGES = (
    "numpy",
    "llvmlite",
    "pyspark",
    "datasketch",
    "rensa",
    "FastSketchLSH",
    "SetSimilaritySearch",
    "pydivsufsort",
)


def _processor_model() -> str:
    """Return the name of the processor, and its widest vectors: a name may say little."""
    lines = Path("/proc/cpuinfo")
    if not lines.exists():
        return platform.processor() or platform.machine()
    known: dict[str, str] = {}
    for line in lines.read_text("utf-8").splitlines():
        name, _, value = line.partition(":")
        known[name.strip()] = value.strip()
    flags = known.get("flags", "").split()
    vectors = next((name for name in ("avx512f", "avx2") if name in flags), "")
    return ", ".join(filter(None, (known.get("model name", platform.machine()), vectors)))


def versions() -> dict[str, str]:
    """Return the machine and the versions of the measured packages."""
    found = {
        "processors": str(os.cpu_count()),
        "model": _processor_model(),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _numbers(text: str) -> tuple[int, ...]:
    """Return some numbers, without zeros, from a list with commas."""
    return tuple(number for number in map(int, text.split(",")) if number)


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--documents",
        type=int,
        default=Bench.documents,
        help="files of the largest corpora (default: %(default)s)",
    )
    parser.add_argument(
        "--peer-documents",
        type=int,
        default=Bench.peer_documents,
        help="files for other libraries (default: %(default)s)",
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=Bench.runs,
        help="turns; medians are reported (default: %(default)s)",
    )
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=[name for name in SECTIONS if name not in ON_REQUEST],
        help=f"some of {','.join(SECTIONS)} (default: all but {','.join(ON_REQUEST)})",
    )
    parser.add_argument(
        "--million",
        action="store_true",
        help="also 1,000,000 files in the section `scale` (8 GB of disk)",
    )
    for name, default, size in (
        ("--rows", Bench.rows, "400 bytes"),
        ("--long-rows", Bench.long_rows, "2 kB"),
    ):
        numbers = ",".join(map(str, default))
        parser.add_argument(
            name,
            type=_numbers,
            default=default,
            metavar="N,N",
            help=f"rows of {size} in the section `rows`, ascending, or 0 (default: {numbers})",
        )
    parser.add_argument(
        "--folder",
        type=Path,
        help="make the corpora here and keep them (default: a temporary folder)",
    )
    parser.add_argument(
        "--seed", type=int, default=Bench.seed, help="of the corpora (default: %(default)s)"
    )
    parser.add_argument("-o", "--output", type=Path, help="JSON file for the results")
    parser.add_argument(
        "--readme",
        action="store_true",
        help=f"results to {report.RESULTS.name} beside this file, and benchmarks/README.md and "
        "pages of docs/ from it",
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.only) - set(SECTIONS):
        parser.error(
            f"--only: no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}"
        )
    if options.documents < 2000 or options.peer_documents < 1000 or options.runs < 1:
        parser.error("--documents must be at least 2,000, --peer-documents 1,000, --runs 1")
    return options


def measure(bench: Bench, names: list[str]) -> dict[str, dict[str, Any]]:
    """Run sections, and print the tables of a section when it is done."""
    done: dict[str, dict[str, Any]] = {}
    for name in (name for name in SECTIONS if name in names):
        start = time.perf_counter()
        tables = SECTIONS[name](bench)
        took = time.perf_counter() - start
        print(
            *(table.text() for table in tables),
            sep="\n\n",
            end=f"\n\n[{name}: {took:.0f} s]\n\n",
            flush=True,
        )
        done[name] = {
            "versions": versions(),
            "runs": bench.runs,
            "took": round(took),
            "tables": [table.to_json() for table in tables],
        }
    return done


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and save."""
    options = options_of(arguments)
    output = report.RESULTS if options.readme and not options.output else options.output
    with tempfile.TemporaryDirectory() as temporary:
        home = options.folder or Path(temporary)
        home.mkdir(parents=True, exist_ok=True)
        bench = Bench(
            home.resolve(),
            options.documents,
            options.peer_documents,
            options.runs,
            options.million,
            options.seed,
            options.rows,
            options.long_rows,
        )
        print(
            ", ".join(f"{name} {version}" for name, version in versions().items()),
            end="\n\n",
            file=sys.stderr,
        )
        done = measure(bench, options.only)
    if output:
        before = json.loads(output.read_text("utf-8")) if output.exists() else {}
        output.write_text(
            json.dumps({**before, **done}, indent=1, ensure_ascii=False) + "\n", "utf-8"
        )
    if options.readme:
        report.write_readme(output)
        report.write_pages(output)


if __name__ == "__main__":
    main()
