"""Folders of generated documents, equal for equal seeds on every machine.

The text of a document depends on the kind, the seed and the document's number only: the first 1,000
files of a corpus of a million are the corpus of 1,000. A folder holds 1,000 files.
`python -m benchmarks.corpora KIND DOCUMENTS FOLDER` makes a corpus to look at.
"""

import argparse
import contextlib
import functools
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: Version of the texts, so that the folder of an older suite is not used again.
VERSION = 1
FOLDER = 1000

VOCABULARY = 30_000
PHRASES = 3_000
PHRASE = 6

#: One document in ten (one in two of the huge ones) is a near-copy of an earlier original, with
#: this share of its words replaced. The expected similarity of 3-word shingle sets for a share p is
#: s / (2 - s) with s = (1 - p)^3: 1, .99, .98, .94, .91, .89, .84, .79, .75, .67, .60, .52.
REPLACED = (0.0, 0.002, 0.004, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.09, 0.12)

CONSONANTS_VOWELS = {"latin": ("bcdfglmnprstv", "aeiou"), "cyrillic": ("бвгджзклмнпрст", "аеиоуя")}
HAN_FIRST, HAN_CHARACTERS = 0x4E00, 3_000


@dataclass(frozen=True)
class Vocabulary:
    """Pieces of text of one script.

    pieces : the 4 forms of each word, by rank: within a sentence, at its start, before a comma, at
        its end; each with its separator from the next word.
    phrases : int32 array of shape (PHRASES, PHRASE), ranks of words that often stand together.
    """

    pieces: list[bytes]
    phrases: NDArray[np.int32]


@functools.cache
def vocabulary(script: str) -> Vocabulary:
    """Return distinct words, the frequent ones short, as in languages."""
    rng = np.random.default_rng(sum(script.encode()))
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        missing = VOCABULARY - len(words)
        syllables = rng.integers(1, min(4 + len(words) // 5_000, 7), missing)
        if script == "han":
            # A skewed choice: few characters make most of a text.
            letters = HAN_FIRST + _ranks(rng, 3 * missing, HAN_CHARACTERS)
            made = [
                "".join(map(chr, letters[3 * i : 3 * i + min(n, 3)]))
                for i, n in enumerate(syllables.tolist())
            ]
        else:
            consonants, vowels = CONSONANTS_VOWELS[script]
            heads = rng.choice(list(consonants), 6 * missing)
            tails = rng.choice(list(vowels), 6 * missing)
            parts = np.char.add(heads, tails).tolist()
            made = ["".join(parts[6 * i : 6 * i + n]) for i, n in enumerate(syllables.tolist())]
        words.update(dict.fromkeys(made[: max(500, missing // 2)]))
    ranked = list(words)[:VOCABULARY]
    blank, comma, stop = ("", "，", "。\n") if script == "han" else (" ", ", ", ".\n")
    pieces = [
        form.encode()
        for word in ranked
        for form in (word + blank, word.capitalize() + blank, word + comma, word + stop)
    ]
    return Vocabulary(pieces, _ranks(rng, (PHRASES, PHRASE)))


@functools.cache
def zipf(size: int) -> NDArray[np.int32]:
    """Return the rank for each 20-bit number: k with a chance of about 1 / k, Zipf's law.

    Integers only, which every machine rounds alike.
    """
    weights = np.cumsum((1 << 40) // np.arange(1, size + 1))
    ranks: NDArray[np.int32] = np.searchsorted(
        weights, np.arange(1 << 20) * (weights[-1] >> 20), side="right"
    ).astype(np.int32)
    return ranks


def _ranks(
    rng: np.random.Generator, shape: int | tuple[int, ...], size: int = VOCABULARY
) -> NDArray[np.int32]:
    """Return ranks below `size`, low ones often."""
    ranks: NDArray[np.int32] = zipf(size)[rng.integers(0, 1 << 20, shape, np.int32)]
    return ranks


def _rng(kind: str, seed: int, number: int) -> np.random.Generator:
    """Return the generator of one document."""
    return np.random.Generator(np.random.PCG64([sum(kind.encode()), seed, number]))


def _original(rng: np.random.Generator, words: int) -> NDArray[np.int32]:
    """Return ranks of the words of an original; one stretch in twelve is a stock phrase."""
    chunks = -(-words // PHRASE)
    text = _ranks(rng, (chunks, PHRASE))
    stock = np.flatnonzero(rng.integers(0, 12, chunks, np.int8) == 0)
    text[stock] = vocabulary("latin").phrases[_ranks(rng, len(stock), PHRASES)]
    return text.reshape(-1)[:words]


def _natural(
    kind: str, script: str, words: tuple[int, int], every: int, seed: int, number: int
) -> bytes:
    """Return a text of Zipf-like words; one in `every` is a near-copy of an original."""
    rng = _rng(kind, seed, number)
    if number % every == every - 1:
        source = int(rng.integers(number))
        source -= source % every == every - 1
        first = _rng(kind, seed, source)
        text = _original(first, int(first.integers(*words)))
        replaced = np.flatnonzero(
            rng.random(len(text)) < REPLACED[int(rng.integers(len(REPLACED)))]
        )
        text[replaced] = _ranks(rng, len(replaced))
    else:
        text = _original(rng, int(rng.integers(*words)))
    # Sentences of 5 to 16 words. A copy has other line breaks and other bytes, but the same words.
    form = np.zeros(len(text), np.int64)
    ends = np.cumsum(rng.integers(5, 17, len(text) // 5 + 1))
    ends = ends[ends < len(text) - 1]
    form[(ends[:-1] + ends[1:]) // 2] = 2
    form[ends + 1] = 1
    form[ends] = 3
    form[0], form[-1] = 1, 3
    return b"".join(map(vocabulary(script).pieces.__getitem__, (4 * text + form).tolist()))


def _template(seed: int, number: int) -> bytes:
    """Return a form letter of 300 words with a number: all pairs have a similarity near 0.98."""
    return _template_text(seed).replace(b"@", b"%d" % number)


@functools.cache
def _template_text(seed: int) -> bytes:
    text = _natural("template", "latin", (300, 301), 10, seed, 0)
    middle = text.index(b" ", len(text) // 2)
    return text[:middle] + b" @" + text[middle:]


def _identical(seed: int, number: int) -> bytes:
    return _template_text(seed)


#: Kind -> function from seed and number to text.
KINDS: dict[str, Callable[[int, int], bytes]] = {
    "natural": functools.partial(_natural, "natural", "latin", (700, 1101), 10),
    "cyrillic": functools.partial(_natural, "cyrillic", "cyrillic", (500, 801), 10),
    "han": functools.partial(_natural, "han", "han", (700, 1101), 10),
    "tiny": functools.partial(_natural, "tiny", "latin", (11, 31), 10),
    "pages": functools.partial(_natural, "pages", "latin", (3900, 4301), 10),
    "huge": functools.partial(_natural, "huge", "latin", (600_000, 900_001), 2),
    "template": _template,
    "identical": _identical,
}


def text_of(kind: str, number: int, seed: int = 1) -> bytes:
    """Return the text of one document."""
    return KINDS[kind](seed, number)


def corpus(home: Path, kind: str, documents: int, seed: int = 1) -> Path:
    """Return the folder of a corpus below `home`, made if it is not complete.

    Cost: about 0.1 ms a natural document.
    """
    folder = home / (f"{kind}-{documents}" if seed == 1 else f"{kind}-{documents}-seed{seed}")
    text = KINDS[kind]
    with filling(folder, VERSION) as is_missing:
        for number in range(documents if is_missing else 0):
            if number % FOLDER == 0:
                place = folder / f"{number // FOLDER:04}"
                place.mkdir()
            with open(f"{place}/{number:07}.txt", "xb", buffering=0) as file:  # noqa: PTH123 (for speed)
                file.write(text(seed, number))
    return folder


@contextlib.contextmanager
def filling(folder: Path, version: int) -> Iterator[bool]:
    """Give whether a folder is to be filled; it is then empty, and complete behind the block."""
    made = folder.parent / f".{folder.name}.{version}.made"
    if made.exists() and folder.is_dir():
        yield False
        return
    made.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield True
    made.touch()


def main(
    make: Callable[[Path, str, int, int], Path], kinds: Iterable[str], unit: str = "documents"
) -> None:
    """Make one corpus of so many documents or rows, as the command line says."""
    parser = argparse.ArgumentParser(description="Make one corpus of the benchmarks.")
    parser.add_argument("kind", choices=kinds)
    parser.add_argument(unit, type=int)
    parser.add_argument("folder", type=Path, help="where the folder of the corpus goes")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(make(options.folder, options.kind, getattr(options, unit), options.seed))


if __name__ == "__main__":
    main(corpus, KINDS)
