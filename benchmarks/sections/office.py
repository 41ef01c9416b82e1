"""PDF and DOCX files of ten pages, beside pdftotext."""

import functools
import shutil
from functools import partial
from pathlib import Path

from benchmarks.corpora import FOLDER, VERSION, filling, text_of
from benchmarks.measure import Run, cpu_seconds, interleaved, run
from benchmarks.sections.bench import Bench, installed
from benchmarks.tables import Cell, Table

BAR = "1.5 ×"


@functools.cache
def measure(bench: Bench) -> tuple[int, dict[str, list[Run]]]:
    """Read the same texts as PDF and as DOCX; return the number of files, and the runs by name."""
    n = bench.documents // 100
    folders = {kind: _corpus(bench.home, kind, n) for kind in ("pdf", "docx")}
    works = {
        f"lshdup {kind}": partial(bench.lshdup, "pairs", folder, "-q", "--no-store")
        for kind, folder in folders.items()
        if installed("kreuzberg")
    }
    if shutil.which("pdftotext"):
        command = f"find {folders['pdf']} -type f -print0 | xargs -0 -P 2 -I@ pdftotext -q @ -"
        works["pdftotext"] = partial(run, "bash", "-c", command, cwd=bench.home)
    return n, interleaved(bench.few, works)


def _corpus(home: Path, kind: str, n: int) -> str:
    """Return a folder of office documents, made if it is not complete."""
    from tests import office

    write = {"pdf": office.pdf, "docx": office.docx}[kind]
    folder = home / f"{kind}-{n}"
    with filling(folder, VERSION) as is_missing:
        for number in range(n if is_missing else 0):
            place = folder / f"{number // FOLDER:04}"
            place.mkdir(exist_ok=True)
            text = text_of("pages", number).decode()
            (place / f"{number:07}.{kind}").write_bytes(write(text))
    return folder.name


def rows(bench: Bench) -> list[dict[str, Cell]]:
    """Return processor time by reader; a ratio is of processor times, to pdftotext."""
    n, done = measure(bench)
    against = done.get("pdftotext")
    made: list[dict[str, Cell]] = []
    for name, runs in done.items():
        label = {"lshdup pdf": "`pairs`, PDF", "lshdup docx": "`pairs`, DOCX"}.get(
            name, f"`{name}`"
        )
        is_compared = name == "lshdup pdf" and against is not None
        made.append(
            {
                "what": label,
                "cpu": cpu_seconds(runs),
                "ms a file": cpu_seconds(runs) / n * 1e3,
                "ratio": cpu_seconds(runs) / cpu_seconds(against or runs) if is_compared else None,
                "bar": BAR if is_compared else None,
            }
        )
    return made


def section(bench: Bench) -> list[Table]:
    """Compare the processor time of both formats with that of pdftotext."""
    table = Table(
        f"**Office documents**: {bench.documents // 100:,} files of ten pages of each kind; "
        "processor time of all processes, start-up included."
    )
    table.rows = rows(bench)
    missing = [
        name
        for name, is_there in (
            ("kreuzberg", installed("kreuzberg")),
            ("pdftotext (poppler)", shutil.which("pdftotext")),
        )
        if not is_there
    ]
    table.note = " ".join(f"{name}: not installed." for name in missing)
    return [table]
