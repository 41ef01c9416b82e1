"""Passages: against `pairs`, against a suffix array, of one template, and planted ones."""

import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.corpora import text_of
from benchmarks.measure import cpu_seconds, interleaved, peak, ratio, run, seconds
from benchmarks.sections.bench import Bench, installed
from benchmarks.tables import Table

if TYPE_CHECKING:
    from lshdup.passages.finding import Passages

#: Bytes of 50 words of the corpora, which a suffix array looks for.
_LEAST_BYTES = 280


def section(bench: Bench) -> list[Table]:
    """Compare `passages` with `pairs` and a suffix array; look for planted passages."""
    bench.compiled("pairs", bench.small())
    bench.compiled("passages", bench.small())
    return [_beside_pairs(bench), _beside_suffix_array(bench), _planted(bench)]


def _beside_pairs(bench: Bench) -> Table:
    table = Table("**`passages`** beside `pairs`, of texts and of fillings of one form.")
    sizes = [("natural", n) for n in (bench.documents // 10, bench.documents)]
    sizes += [("natural", 1_000_000)] if bench.million else []
    for kind, n in (*sizes, ("template", bench.documents)):
        folder = bench.corpus(kind, n)
        works = {"passages": partial(bench.lshdup, "passages", folder, "-q", "--no-store")}
        if kind == "natural":  # All documents of a template are pairs.
            works["pairs"] = partial(bench.lshdup, "pairs", folder, "-q", "--no-store")
        done = interleaved(bench.few if n <= bench.documents else 1, works)
        for name, ran in done.items():
            is_beside = name == "passages" and "pairs" in done
            table.add(
                documents=n,
                corpus=kind,
                what=f"`{name}`",
                seconds=seconds(ran),
                cpu=cpu_seconds(ran),
                ratio=ratio(ran, done["pairs"]) if is_beside else None,
                lines=ran[0].lines,
                memory=peak(ran),
                aim="4 ×, 1 GB" if is_beside and n == bench.documents else None,
            )
    table.note = "Memory includes pages of temporary files, which the system takes back."
    return table


def _beside_suffix_array(bench: Bench) -> Table:
    n = bench.documents
    table = Table(f"The stretches that recur, by a suffix array of all bytes; {n:,} files.")
    if not installed("pydivsufsort"):
        table.add(what="pydivsufsort: not installed")
        return table
    folder = bench.corpus("natural", n)
    script = (sys.executable, "-m", "benchmarks.peers.with_suffix_array", folder)
    done = interleaved(
        bench.few,
        {
            "`passages`": partial(bench.lshdup, "passages", folder, "-q", "--no-store"),
            "pydivsufsort": lambda: run(*script, str(_LEAST_BYTES), cwd=bench.home),
        },
    )
    ours = done["`passages`"]
    for name, runs in done.items():
        table.add(
            what=name,
            seconds=seconds(runs),
            cpu=cpu_seconds(runs),
            lshdup_is_faster=None if runs is ours else ratio(runs, ours),
            lines=runs[0].lines,
            memory=peak(runs),
            aim=None if runs is ours else "10 ×, 10 × the memory",
        )
    return table


def _planted(bench: Bench) -> Table:
    """Plant passages in texts, and count how many are found whole, at both places."""
    from lshdup.base.params import DocumentParams, PassageParams
    from lshdup.base.run import Run
    from lshdup.workspace.passages import load_or_find_passages
    from lshdup.workspace.request import Request
    from lshdup.workspace.workspace import Workspace

    documents, count = 20 * bench.documents // 100, bench.documents // 100
    table = Table(
        f"{count:,} passages of 30 to 300 words, each planted in two of {documents:,} texts; in a"
        " third of them every tenth word is changed in the second text. `--least 25`;"
        " found: four fifths of the words or more are in one place, in both texts."
    )
    rng = np.random.default_rng(bench.seed)
    texts = [text_of("natural", 10 * i, bench.seed).split() for i in range(documents)]
    places = rng.permutation(documents)[: 2 * count].reshape(-1, 2).tolist()
    planted = []
    for i, (first, second) in enumerate(places):
        size = int(rng.integers(30, 301))
        passage = [b"p%d" % word for word in rng.integers(0, 1 << 40, size).tolist()]
        other = list(passage)
        if i % 3 == 0:
            other[9::10] = [b"c%d" % word for word in range(len(other[9::10]))]
        for text, words in ((first, passage), (second, other)):
            at = int(rng.integers(len(texts[text])))
            texts[text][at:at] = words
            planted.append((i, text, at, size))
    with tempfile.TemporaryDirectory(dir=bench.home) as folder:
        for number, words in enumerate(texts):
            Path(folder, f"{number:06}.txt").write_bytes(b" ".join(words))
        request = Request((os.fsencode(folder),), DocumentParams(), {})
        for gap in (0, 8):
            params = PassageParams(least=25, gap=gap)
            found = load_or_find_passages(
                Workspace(Run.quiet(os.cpu_count() or 1)), request, params
            ).passages
            hits = _hits(found, planted)
            for label, changed in (("verbatim", False), ("every tenth word changed", True)):
                mine = [i for i in range(count) if (i % 3 == 0) == changed]
                whole = sum(all((i, text) in hits for text in places[i]) for i in mine)
                table.add(
                    planted=label,
                    gap=gap,
                    passages=len(mine),
                    found=whole,
                    recall=whole / max(len(mine), 1),
                )
    return table


def _hits(found: "Passages", planted: list[tuple[int, int, int, int]]) -> set[tuple[int, int]]:
    """Return which planted passages lie within a found place, by four fifths of their words.

    planted : number of the passage, text, first word, words. Returns numbers and texts.
    """
    stretches: dict[int, list[tuple[int, int]]] = {}
    ends = found.first + np.repeat(found.tokens, found.places)
    columns = found.documents.tolist(), found.first.tolist(), ends.tolist()
    for document, start, end in zip(*columns, strict=True):
        stretches.setdefault(document, []).append((start, end))
    return {
        (i, text)
        for i, text, at, size in planted
        if any(
            min(at + size, end) - max(at, start) >= 0.8 * size
            for start, end in stretches.get(text, [])
        )
    }
