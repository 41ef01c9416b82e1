"""What the defaults cost, by script: similarity of what is not alike, and what is found of copies
with changed characters.
"""

import statistics

import numpy as np

from benchmarks.noise import change, pages, read
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table

#: A text of each script, of sample_corpus/udhr.
SCRIPTS = {
    "Latin (English)": "eng",
    "Latin with marks (Vietnamese)": "vie",
    "Cyrillic (Russian)": "rus",
    "Arabic (Arabic)": "arb",
    "Devanagari (Hindi)": "hin",
    "Malayalam (Malayalam)": "mal",
    "Hangul (Korean)": "kor",
    "Han and kana (Japanese)": "jpn",
    "Han (Chinese)": "cmn_hans",
    "Thai (Thai)": "tha",
}
SHARES = (0.01, 0.02, 0.05, 0.1)
#: Characters of a page, and how many changed copies there are of all pages of a text.
PAGE, COPIES = 900, 30
THRESHOLD = 0.8


def section(bench: Bench) -> list[Table]:
    """Compare halves of a text, and pages with copies of which characters are changed."""
    table = Table(
        f"**What the defaults cost, by script.** Background: similarity of the halves of a text. "
        f"Then, for pages of {PAGE} characters and copies with a share of characters changed, how "
        f"many of 100 are found at {THRESHOLD}, and the median similarity. False: pairs of "
        "different pages that are found."
    )
    for script, name in SCRIPTS.items():
        text = read(f"udhr/{name}.txt")
        middle = text.index("\n", len(text) // 2)
        halves = similarities({"a": text[:middle], "b": text[middle:]})
        row, false = {"script": script, "background": f"{halves['a', 'b']:.3f}"}, 0
        rng = np.random.Generator(np.random.PCG64(bench.seed))
        for share in SHARES:
            texts = {f"{at}": page for at, page in enumerate(pages(text, PAGE))}
            copies = -(-COPIES // len(texts))
            texts |= {
                f"{at} {copy}": change(page, share, rng)
                for at, page in texts.items()
                for copy in range(copies)
            }
            known = similarities(texts)
            true = [s for (a, b), s in known.items() if b.startswith(f"{a} ")]
            found = sum(s >= THRESHOLD for s in true) / len(true)
            row[f"{share:.0%} changed"] = f"{100 * found:.0f} ({statistics.median(true):.2f})"
            false += sum(
                s >= THRESHOLD for (a, b), s in known.items() if a.split()[0] != b.split()[0]
            )
        table.rows.append({**row, "false": false})
    return [table]


def similarities(texts: dict[str, str]) -> dict[tuple[str, str], float]:
    """Return the similarity of each pair of texts by the defaults, the shorter name first."""
    from lshdup.api import MinHash

    sets = MinHash(texts, num_permutations=1)
    names = sorted(texts, key=lambda name: (len(name), name))
    return {(a, b): sets.exact_jaccard(a, b) for at, a in enumerate(names) for b in names[at + 1 :]}
