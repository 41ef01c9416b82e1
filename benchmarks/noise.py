"""Pages of real texts, and the same pages with wrong characters, equal for equal seeds.

`spoil` makes the mistakes of a reader of scans, by a table of what it takes for what, and more of
them in some lines than in others; `change` replaces characters evenly.
"""

import unicodedata
from pathlib import Path

import numpy as np

from benchmarks.measure import ROOT

CORPUS = ROOT / "sample_corpus"

#: A text of each language or kind, below CORPUS, none of which is a translation or version of one
#: in the same language.
TEXTS = (
    *(
        f"udhr/{name}.txt"
        for name in "arb cmn_hans eng fra hin jpn kor mal pes_1 por_PT ron_2006 rus srp_cyrl tha "
        "vie".split()
    ),
    "licences/CNRI-Python.txt",
    "licences/UPL-1.0.txt",
    "licences/W3C.txt",
)

#: What is read for what, the longest first; where nothing fits, a character of the same text is.
CONFUSIONS = {
    "rn": ("m",), "cl": ("d",), "vv": ("w",), "li": ("h", "ll"), "ri": ("n",), "fi": ("f",),
    "m": ("rn", "in"), "w": ("vv",), "d": ("cl",), "h": ("b", "li"), "e": ("c", "o"),
    "c": ("e", "o"), "o": ("0", "c"), "l": ("1", "i", "|"), "i": ("l", "1", "j"), "1": ("l",),
    "t": ("f", "l"), "f": ("t",), "s": ("5", "8"), "a": ("n", "u"), "u": ("n", "ii"),
    "n": ("u", "ri"), "b": ("h", "6"), "g": ("q", "9"), "q": ("g",), "v": ("y",), "I": ("l", "1"),
    "O": ("0",), "S": ("5",), "B": ("8",), ".": (",", ""), ",": (".", ""), "и": ("н", "п"),
    "н": ("и", "п"), "п": ("л",), "е": ("с",), "о": ("с", "0"), "ш": ("щ", "іп"), "т": ("г",),
    " ": ("",), "\n": (" ",),
}  # fmt: skip

#: Characters of a stretch of a scan, in which mistakes are equally likely.
_STRETCH = 60


def pages(text: str, size: int) -> list[str]:
    """Return the pieces of `size` characters that a text has, without a shorter rest."""
    return [text[start : start + size] for start in range(0, len(text) - size + 1, size)]


def read(name: str) -> str:
    """Return a text of TEXTS."""
    return Path(CORPUS / name).read_text("utf-8")


def spoil(text: str, share: float, rng: np.random.Generator) -> str:
    """Return a text as a poor scan is read. share : of its characters that are wrong then."""
    weights = rng.integers(1, 9, len(text) // _STRETCH + 1)[np.arange(len(text)) // _STRETCH]
    pieces, wrong = list(text), 0
    for at in np.argsort(rng.random(len(text)) / weights).tolist():
        if wrong >= round(share * len(text)):
            break
        old = next((text[at : at + n] for n in (2, 1) if text[at : at + n] in CONFUSIONS), text[at])
        if pieces[at : at + len(old)] != list(old):
            continue  # A part of it is wrong already.
        new = _misread(old, text, rng)
        pieces[at : at + len(old)] = [new, *[""] * (len(old) - 1)]
        wrong += max(len(old), len(new))
    return "".join(pieces)


def _misread(old: str, text: str, rng: np.random.Generator) -> str:
    """Return what is read for one or two characters."""
    kind = int(rng.integers(8))
    if kind == 0:
        return f"{old[0]} {old[1:]}"  # a broken word
    if kind == 1 and len(old) == 1:
        return ""
    if old in CONFUSIONS:
        return CONFUSIONS[old][int(rng.integers(len(CONFUSIONS[old])))]
    base = unicodedata.normalize("NFD", old)[0]
    if unicodedata.combining(old[0]) or unicodedata.category(old[0]) == "Mn":
        return ""
    return base if base != old and kind > 3 else text[int(rng.integers(len(text)))]


def change(text: str, share: float, rng: np.random.Generator) -> str:
    """Return a text with a share of its characters, but no blank, replaced by others of it."""
    letters = [at for at, each in enumerate(text) if not each.isspace()]
    pieces, known = list(text), sorted({text[at] for at in letters})
    for at in rng.choice(letters, round(share * len(letters)), replace=False).tolist():
        others = [each for each in known if each != text[at]]
        pieces[at] = others[int(rng.integers(len(others)))]
    return "".join(pieces)
