"""First figures for the budgets: makes its own corpus, runs everything interleaved, prints medians and ratios.

    python benchmarks/first.py [--documents 100000] [--runs 3] [--folder DIR]

The corpus: texts of words drawn from a Zipf-like vocabulary, about 6 KB each; one in ten is a near-copy of an earlier one, with 1, 3 or
8 % of its words replaced. Deterministic by seed. Ratios are of wall time within one run; figures of kernels are of one thread.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lshdup.params import ShingleParams, SketchParams
from lshdup.ragged import RaggedSets
from lshdup.shingles import Shingler
from lshdup.signatures import Sketcher

WORDS = 900
SYLLABLES = {
    "latin": "ba be bi ca co da de di do du fa fe fo ga ge la le li lo ma me mi mo na ne ni no pa pe ra re ri ro sa se si so ta te ti to",
    "cyrillic": "ба бе би бо ва ве га да де ди до ка ке ла ле ли ло ма ме на не ни но па пе ра ре ри ро са се си со та те ти то",
    "han": "人 口 日 月 水 火 木 金 土 山 川 田 天 地 大 小 中 上 下 左 右 東 西 南 北 国 家 学 生 先 校 時 間 年 今 何 行 来 見 食",
}


def vocabulary(rng: np.random.Generator, script: str, size: int = 30_000) -> list[str]:
    """Distinct words of one to four syllables."""
    syllables = SYLLABLES[script].split()
    words: dict[str, None] = {}
    while len(words) < size:
        words.setdefault("".join(rng.choice(syllables, rng.integers(1, 5 + len(words) // 10_000))))
    return list(words)


def text_of(rng: np.random.Generator, words: list[str], n: int = WORDS) -> list[str]:
    """N words, the frequent ones often, with sentences and lines."""
    ranks = (len(words) ** rng.random(n)).astype(int) - 1
    text = [words[rank] for rank in ranks]
    for at in range(0, n, 11):
        text[at] = text[at].capitalize()
    for at in range(10, n, 11):
        text[at] += ".\n" if at % 33 == 10 else ","
    return text


def make_corpus(folder: Path, documents: int) -> None:
    """Write the files, 1,000 in a folder."""
    rng = np.random.default_rng(1)
    words = vocabulary(rng, "latin")
    texts: list[list[str]] = []
    for number in range(documents):
        if number % 10 == 9:
            text = list(texts[int(rng.integers(len(texts)))])
            share = (0.01, 0.03, 0.08)[int(rng.integers(3))]
            for at in np.flatnonzero(rng.random(len(text)) < share).tolist():
                text[at] = words[int(rng.integers(len(words)))]
        else:
            text = text_of(rng, words)
        texts.append(text)
        del texts[:-2000]
        place = folder / f"{number // 1000:04}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number:07}.txt").write_text(" ".join(text))


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run(*command: str, cwd: Path, code: int = 0) -> bytes:
    """Standard output of a command that must succeed."""
    process = subprocess.run(command, cwd=cwd, capture_output=True, check=False)
    if process.returncode != code:
        sys.exit(f"{command} failed: {process.stderr.decode()}")
    return process.stdout


def show(what: str, figure: str, bar: str) -> None:
    """One line of the table."""
    print(f"{what:<68} {figure:>28}   {bar}", flush=True)


def whole_runs(folder: Path, runs: int) -> None:
    """`pairs` against md5sum over the same files, both cores each; then the unchanged folder, and a query."""
    lshdup = (sys.executable, "-m", "lshdup")
    files = folder / "files"
    md5 = f"find {files.name} -type f -print0 | xargs -0 -P 2 -n 2000 md5sum"
    fresh, again, floor, answers = [], [], [], 0
    run(*lshdup, "pairs", str(next(files.iterdir())), "--no-store", cwd=folder)  # compiles
    for _ in range(runs):
        shutil.rmtree(folder / ".lshdup", ignore_errors=True)
        floor.append(seconds(lambda: run("bash", "-c", md5, cwd=folder)))
        start = time.perf_counter()
        answers = run(*lshdup, "pairs", files.name, "-q", cwd=folder).count(b"\n")
        fresh.append(time.perf_counter() - start)
        again.append(seconds(lambda: run(*lshdup, "pairs", files.name, "-q", cwd=folder)))
    n = sum(1 for _ in files.rglob("*.txt"))
    exact = run(*lshdup, "pairs", files.name, "--exact", "-q", "--no-store", cwd=folder).count(b"\n") if n <= 20_000 else 0
    ratio = statistics.median(a / b for a, b in zip(fresh, floor, strict=True))
    show(f"pairs, {n:,} files: {answers:,} pairs{f' of {exact:,}' if exact else ''}", f"{statistics.median(fresh):.2f} s", "")
    show("  md5sum of the same files, 2 processes", f"{statistics.median(floor):.2f} s = {ratio:.2f} x", "<= 2 x")
    rerun = statistics.median(a / b for a, b in zip(again, fresh, strict=True))
    show("  pairs again, nothing changed", f"{statistics.median(again):.2f} s = 1/{1 / rerun:.1f}", "<= 1/5")
    name = str(next(files.rglob("*9.txt")).relative_to(folder))
    queries = [seconds(lambda: run(*lshdup, "query", name, "-q", cwd=folder)) for _ in range(runs)]
    show("  query of a stored document", f"{statistics.median(queries):.2f} s", "<= 0.25 s at 1,000,000")
    helps = [seconds(lambda: run(*lshdup, "--help", cwd=folder)) for _ in range(runs)]
    show("--help", f"{statistics.median(helps):.3f} s", "<= 0.15 s")


def kernels(runs: int) -> None:
    """Text to shingle sets, and sets to signatures, one thread."""
    rng = np.random.default_rng(2)
    for script in SYLLABLES:
        words = vocabulary(rng, script)
        texts = [" ".join(text_of(rng, words)).encode() for _ in range(256)]
        size = sum(map(len, texts))
        shingler = Shingler(ShingleParams())
        shingler.shingle_texts(texts)
        best = statistics.median(seconds(lambda s=shingler, t=texts: s.shingle_texts(t)) for _ in range(5 * runs))
        bar = ">= 700 MB/s (hashes; this is sets)" if script == "latin" else ">= 150 MB/s"
        show(f"text -> shingle sets, {script}, {size // 256:,} bytes", f"{size / best / 1e6:.0f} MB/s, {best / 256 * 1e6:.1f} us", bar)
    values = rng.integers(0, 1 << 64, 900 * 256, dtype=np.uint64)
    sets = RaggedSets.from_sizes(values, np.full(256, 900))
    for scheme in ("fast", "classic"):
        for perms, bar in ((128, "<= 6 us"), (400, ""), (1000, "<= 35 us")):
            sketcher = Sketcher(SketchParams(scheme, perms))
            sketcher.sketch(sets)
            best = statistics.median(seconds(lambda s=sketcher: s.sketch(sets)) for _ in range(5 * runs))
            show(f"sketch, {scheme}, 900 shingles, K = {perms}", f"{best / 256 * 1e6:.1f} us", bar if scheme == "fast" else "")


def hot_buckets(folder: Path, runs: int) -> None:
    """Identical files, twice as many each time: cost must double, not quadruple."""
    lshdup = (sys.executable, "-m", "lshdup")
    for kind in ("identical", "template"):
        for n in (10_000, 20_000, 40_000):
            files = folder / f"{kind}-{n}"
            files.mkdir()
            for number in range(n):
                tail = "" if kind == "identical" else f" number {number} of the series"
                (files / f"{number:06}").write_text("a text that is the same in every one of these files " * 20 + tail)
            times = []
            for _ in range(runs):
                shutil.rmtree(folder / ".lshdup", ignore_errors=True)
                times.append(seconds(lambda f=files: run(*lshdup, "index", f.name, "-q", cwd=folder)))
            line = f"index {statistics.median(times):.2f} s"
            if kind == "identical":
                pairs = seconds(lambda: run(*lshdup, "pairs", "--collapse-copies", "-q", cwd=folder))
                line += f", pairs {pairs:.2f} s"
            show(f"{n:,} {kind} files", line, "linear")


def main() -> None:
    """Run everything and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="keep the corpus here")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}, NumPy {np.__version__}\n")
    kernels(options.runs)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if not (folder / "files").exists():
            make_corpus(folder / "files", options.documents)
        whole_runs(folder, options.runs)
        with tempfile.TemporaryDirectory(dir=folder) as hot:
            hot_buckets(Path(hot), options.runs)


if __name__ == "__main__":
    main()
