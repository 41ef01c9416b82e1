"""Test items that are put into training texts: how many of these rows `pairs --write` drops."""

import json
import random
from pathlib import Path

from benchmarks.corpora import text_of
from benchmarks.measure import Run
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table

ITEMS = 1_000
#: Words of a test item.
LEAST, MOST = 15, 60
#: How many times as long as the item a text is that it is put into.
TIMES = (1, 2, 5, 10)
THRESHOLDS = ("0.8", "1")


def section(bench: Bench) -> list[Table]:
    """Put test items in whole, in lines of eight words, and into longer texts; count what goes."""
    folder = bench.home / "decontamination"
    folder.mkdir(exist_ok=True)
    held, clean = _inject(folder, ITEMS, bench.seed)
    table = Table(
        f"**Test items that were put into other texts**: {ITEMS:,} of {LEAST} to {MOST} words, "
        f"each whole, in lines of eight words, and within texts {TIMES[0]} to {TIMES[-1]} times as "
        f"long, beside {clean:,} rows without any; `pairs TRAIN --against TEST --measure "
        "containment --write`."
    )
    for threshold in THRESHOLDS:
        done = _write(bench, folder, threshold)
        lines = (folder / "removed.jsonl").read_text("utf-8").splitlines()
        gone = {json.loads(line)["id"] for line in lines}
        for how, names in held.items():
            table.add(
                threshold=threshold,
                what=how,
                rows=len(names),
                found=len(gone & names),
                recall=len(gone & names) / len(names),
                aim="recall 1",
            )
        others = len(gone.difference(*held.values()))
        table.add(threshold=threshold, what="none", rows=clean, found=others, seconds=done.seconds)
    return [table]


def _write(bench: Bench, folder: Path, threshold: str) -> Run:
    train, test, written, removed = (
        str(folder / f"{name}.jsonl") for name in ("train", "test", "written", "removed")
    )
    options = ("--id-field", "id", "--measure", "containment", "--no-store", "-q", "-t", threshold)
    return bench.lshdup(
        "pairs", train, "--against", test, *options, "--write", written, "--removed", removed
    )


def _inject(folder: Path, n: int, seed: int) -> tuple[dict[str, set[str]], int]:
    """Write TRAIN and TEST; return which rows of TRAIN hold an item, by how it was put in, and how
    many hold none.
    """
    draw = random.Random(seed)
    held: dict[str, set[str]] = {}
    train, test = dict[str, str](), dict[str, str]()

    def add(how: str, number: int, text: str) -> None:
        train[f"{how}, {number}"] = text
        held.setdefault(how, set()).add(f"{how}, {number}")

    for number in range(n):
        item = _words(500_000 + number)[: draw.randrange(LEAST, MOST + 1)]
        test[f"item {number}"] = " ".join(item)
        add("whole", number, " ".join(item))
        lines = [" ".join(item[at : at + 8]) for at in range(0, len(item), 8)]
        add("in lines of eight words", number, "\n".join(lines))
        for times in TIMES:
            around = _words(number)[: times * len(item)]
            at = draw.randrange(len(around) + 1)
            text = " ".join([*around[:at], *item, *around[at:]])
            add(f"in a text {times} × as long", number, text)
        train[f"none, {number}"] = " ".join(_words(number))
    names = [*train]
    draw.shuffle(names)
    for path, rows in (("train", [(each, train[each]) for each in names]), ("test", test.items())):
        lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in rows]
        (folder / f"{path}.jsonl").write_text("".join(lines), "utf-8")
    return held, n


def _words(number: int) -> list[str]:
    return text_of("natural", number).decode("utf-8").split()
