"""Files -> sets of 3-word shingles, and pairs -> lines, for all scripts."""

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

_WORD = re.compile(r"\w+")


def arguments() -> argparse.ArgumentParser:
    """Return the parser of all scripts: FOLDER THRESHOLD."""
    parser = argparse.ArgumentParser(description="Print near-duplicate pairs.")
    parser.add_argument("folder")
    parser.add_argument("threshold", type=float)
    return parser


def shingled(folder: str) -> tuple[list[str], list[set[str]]]:
    """Return the names of files, and their sets of runs of three lower-case words."""
    names, sets = [], []
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            words = _WORD.findall(path.read_text(encoding="utf-8").lower())
            names.append(str(path))
            sets.append(
                set(map(" ".join, zip(words, words[1:], words[2:], strict=False)))
                or {" ".join(words)}
            )
    return names, sets


def jaccard(a: set[str], b: set[str]) -> float:
    """Return the size of the intersection by the size of the union."""
    common = len(a & b)
    return common / (len(a) + len(b) - common)


def print_pairs(names: list[str], pairs: Iterable[tuple[int, int]]) -> None:
    """Print pairs of positions as lines of names."""
    sys.stdout.writelines(f"{names[a]}\t{names[b]}\n" for a, b in sorted(pairs))


def verified(
    candidates: Iterable[tuple[int, int]], sets: list[set[str]], threshold: float
) -> list[tuple[int, int]]:
    """Return the candidate pairs at or above the threshold."""
    return [(a, b) for a, b in candidates if jaccard(sets[a], sets[b]) >= threshold]
