"""A form letter with many fillings, some of them near-copies: a template hides true duplicates."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.corpora import vocabulary

#: Words of the form between its gaps; there is one gap more.
PARTS = (30, 60, 40, 80, 70, 60, 60)

#: Words of the free paragraph.
PARAGRAPH = (16, 30)


@dataclass(frozen=True)
class Letters:
    """Letters of one form.

    texts : the letters.
    form : the letter with empty gaps.
    pairs : numbers of letters, (original, copy).
    """

    texts: list[str]
    form: str
    pairs: frozenset[tuple[int, int]]

    def write(self, folder: Path) -> None:
        """Write one file a letter, and the form beside the folder as `form.txt`."""
        folder.mkdir(parents=True)
        for number, text in enumerate(self.texts):
            (folder / name(number)).write_text(text)
        (folder.parent / "form.txt").write_text(self.form)


def name(number: int) -> str:
    """Return the name of a letter's file."""
    return f"{number:05}.txt"


def letters(count: int, copies: int, seed: int = 1) -> Letters:
    """Return `count` letters; the last `copies` repeat others with one word changed.

    The changed word is in the free paragraph.
    """
    rng = np.random.default_rng([seed, count])
    # Every fourth piece is a plain word; the form and the fillings are independent texts.
    words = [piece.decode().strip() for piece in vocabulary("latin").pieces[::4]]
    form = [" ".join(words[i] for i in rng.integers(0, 3000, size)) for size in PARTS]
    fillings = []
    for _ in range(count - copies):
        who = f"{words[rng.integers(300, 800)]} {words[rng.integers(1000, 5000)]}"
        amount, reference = (
            f"{rng.integers(10, 9999)}.{rng.integers(0, 100):02}",
            str(rng.integers(10**7, 10**8)),
        )
        paragraph = [words[i] for i in rng.integers(0, 30_000, rng.integers(*PARAGRAPH))]
        fillings.append(
            [
                who,
                f"{rng.integers(1, 29)} {words[rng.integers(100, 112)]}",
                amount,
                reference,
                paragraph,
                who,
            ]
        )
    originals = np.sort(rng.choice(count - copies, copies, replace=False)).tolist()
    for original in originals:
        *others, paragraph, who = fillings[original]
        edited = list(paragraph)
        edited[rng.integers(len(edited))] = words[rng.integers(0, 30_000)]
        fillings.append([*others, edited, who])
    texts = [
        _filled(form, [part if isinstance(part, str) else " ".join(part) for part in filling])
        for filling in fillings
    ]
    pairs = frozenset((original, count - copies + at) for at, original in enumerate(originals))
    return Letters(texts, "\n\n".join(form), pairs)


def _filled(form: list[str], filling: list[str]) -> str:
    return "\n".join(part for pair in zip(form, [*filling, ""], strict=True) for part in pair)
