"""Texts with wrong characters: what finds them, by the share of characters that are wrong."""

import json
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measure import LSHDUP, NamePair, Run, interleaved, peak, ratio, run, seconds
from benchmarks.noise import TEXTS, pages, read, spoil
from benchmarks.sections.bench import Bench
from benchmarks.tables import Cell, Table
from lshdup.base.params import NOISY
from lshdup.cli.help import spell

#: Shares of wrong characters, from and below.
CLASSES = ((0, 0.02), (0.02, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.3))
#: Characters of a page.
PAGE = 1_200

#: What is measured: a heading, and the command behind its name.
COMMANDS = {
    "`pairs` at 0.8": ("pairs",),
    "at 0.5": ("pairs", "-t", "0.5"),
    "`pairs --noisy`": ("pairs", "--noisy"),
    "`passages --noisy --emit pairs`": ("passages", "--noisy", "--emit", "pairs"),
    "with `-t 20%`": ("passages", "--noisy", "--emit", "pairs", "-t", "20%"),
}


#: Rows of a signature whose cost is compared.
PERMS = (256, 720)
#: Files of which the cost is measured.
FILES = 30_000


def section(bench: Bench) -> list[Table]:
    """Compare pages with what is read of scans of them; and the cost with that of `pairs`."""
    return [found_by_noise(bench), cost(bench)]


def found_by_noise(bench: Bench, texts: tuple[str, ...] = TEXTS) -> Table:
    """Return how many pages are found with their scans, by the share of wrong characters."""
    table = Table(
        f"**Pages and poor scans of them**, of {PAGE:,} characters, from {len(texts)} texts in as "
        "many languages or kinds: how many pages are found with their scan / pairs of others."
    )
    for low, high in CLASSES:
        folder, count = write(bench.home, low, high, texts, bench.seed)
        row: dict[str, Cell] = {"wrong characters": f"{low:.0%} to {high:.0%}", "pages": count}
        for heading, command in COMMANDS.items():
            found = find(bench, folder, command)
            true = {pair for pair in found if len({name.split(b"/")[-1] for name in pair}) == 1}
            row[heading] = f"{len(true)} / {len(found) - len(true)}"
        table.rows.append(row)
    return table


def cost(bench: Bench) -> Table:
    """Return what `pairs --noisy` costs, by the rows of a signature."""
    documents = min(bench.documents, FILES)
    folder = bench.corpus("natural", documents)
    words = spell({name: value for name, value in NOISY.items() if name != "perms"})

    def compare(*options: str, perms: int) -> Run:
        command = (*LSHDUP, "pairs", folder, *options, "-q", "--no-store")
        return run(*command, cwd=bench.home, environment={"LSHDUP_PERMS": str(perms)})

    works = {"`pairs`": partial(compare, perms=128)}
    for perms in PERMS:
        works[f"`{words}`, K = {perms}"] = partial(compare, *words.split(), perms=perms)
    done = interleaved(bench.few, works)
    table = Table(
        f"**What it costs** over {documents:,} files of 5 to 6 KB, without a store, by the rows K "
        f"of a signature; `--noisy` takes {NOISY['perms']}."
    )
    for name, runs in done.items():
        table.add(
            command=name,
            pairs=runs[0].lines,
            seconds=seconds(runs),
            ratio=ratio(runs, done["`pairs`"]),
            memory=peak(runs),
        )
    return table


def write(
    home: Path, low: float, high: float, texts: tuple[str, ...], seed: int = 1
) -> tuple[Path, int]:
    """Write the pages of texts to DIR/page/N and their scans to DIR/scan/N; return DIR and how many
    there are.
    """
    folder = home / f"noisy-{high:g}"
    rng = np.random.Generator(np.random.PCG64([seed, round(1000 * high)]))
    every = [page for name in texts for page in pages(read(name), PAGE)]
    for kind in ("page", "scan"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for number, page in enumerate(every):
        (folder / f"page/{number:03}").write_text(page, "utf-8")
        share = low + (high - low) * rng.random()
        (folder / f"scan/{number:03}").write_text(spoil(page, share, rng), "utf-8")
    return folder, len(every)


def find(bench: Bench, folder: Path, command: tuple[str, ...]) -> set[NamePair]:
    """Return the pairs that a command finds."""
    output = bench.home / "noisy.jsonl"
    bench.lshdup(*command, folder.name, "--no-store", "-q", "-o", output.name)
    rows = map(json.loads, output.read_text("utf-8").splitlines())
    return {(each["a"].encode(), each["b"].encode()) for each in rows}
