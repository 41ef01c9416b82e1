"""Which of some documents are near a text: programs that make an index and ask it, by library.

`python -m benchmarks.peers.asking PROGRAM DOCUMENTS QUESTIONS THRESHOLD` makes rows of text, some
for the index and the next ones to ask for, and prints a line, question TAB document, an answer.
"""

import hashlib
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np

from benchmarks.rows import texts_of

_WORD = re.compile(r"\w+")

Texts = dict[str, str]
Answers = list[list[str]]


def shingles(text: str) -> set[str]:
    """Return the runs of three lower-case words of a text."""
    words = _WORD.findall(text.lower())
    return set(map(" ".join, zip(words, words[1:], words[2:], strict=False)))


def index_many(documents: Texts, questions: list[str], threshold: float) -> Answers:
    """Ask lshdup for all texts at once."""
    from lshdup.api import Index

    index = Index.open(documents, threshold=threshold)
    return [[match.name for match in found] for found in index.query_many(questions)]


def index_each(documents: Texts, questions: list[str], threshold: float) -> Answers:
    """Ask lshdup for one text after the other."""
    from lshdup.api import Index

    index = Index.open({}, threshold=threshold)
    for name, text in documents.items():
        index.add(name, text)
    return [[match.name for match in index.query(text)] for text in questions]


def datasketch(documents: Texts, questions: list[str], threshold: float) -> Answers:
    """Ask MinHashLSH of datasketch: candidates, as its documentation shows."""
    from datasketch import MinHash, MinHashLSH

    def sketch(text: str) -> MinHash:
        minhash = MinHash(num_perm=128)
        minhash.update_batch([shingle.encode() for shingle in shingles(text)])
        return minhash

    lsh = MinHashLSH(threshold=threshold, num_perm=128)
    for name, text in documents.items():
        lsh.insert(name, sketch(text))
    return [list(map(str, lsh.query(sketch(text)))) for text in questions]


def datasketch_verified(documents: Texts, questions: list[str], threshold: float) -> Answers:
    """Ask MinHashLSH of datasketch, and verify the candidates by their sets."""
    from datasketch import MinHash, MinHashLSH

    def sketch(own: set[str]) -> MinHash:
        minhash = MinHash(num_perm=128)
        minhash.update_batch([shingle.encode() for shingle in own])
        return minhash

    sets = {name: shingles(text) for name, text in documents.items()}
    lsh = MinHashLSH(threshold=threshold, num_perm=128)
    for name, own in sets.items():
        lsh.insert(name, sketch(own))
    answers = []
    for own in map(shingles, questions):
        near = list(map(str, lsh.query(sketch(own))))
        answers.append([n for n in near if len(own & sets[n]) >= threshold * len(own | sets[n])])
    return answers


def in_the_way_of_text_dedup(documents: Texts, questions: list[str], threshold: float) -> Answers:
    """Sketch as text-dedup does: SHA-1, 250 permutations in NumPy, a table of bytes for each band.

    That library clusters a data set, and cannot be asked: its tables are looked up here. Bands are
    those that it takes for its threshold, with equal weights of both errors.
    """
    from datasketch.lsh import _optimal_param

    bands, rows = _optimal_param(threshold, 250, 0.5, 0.5)
    rng, prime = np.random.Generator(np.random.PCG64(42)), np.uint64((1 << 61) - 1)
    a, b = rng.integers(1, prime, (2, bands * rows, 1), dtype=np.uint64)

    def keys(text: str) -> list[tuple[int, bytes]]:
        digests = b"".join(hashlib.sha1(each.encode()).digest()[:4] for each in shingles(text))
        values = (np.frombuffer(digests, "<u4").astype(np.uint64) * a + b) % prime
        values = (values & np.uint64(0xFFFFFFFF)).min(axis=1).astype(np.uint32)
        return [(band, values[band * rows : (band + 1) * rows].tobytes()) for band in range(bands)]

    tables: dict[tuple[int, bytes], set[str]] = defaultdict(set)
    for name, text in documents.items():
        for key in keys(text):
            tables[key].add(name)
    return [sorted(set().union(*(tables.get(key, ()) for key in keys(t)))) for t in questions]


def exact(documents: Texts, questions: list[str], threshold: float) -> Answers:
    """Count common shingles with each document: the truth."""
    sizes, lists = dict[str, int](), defaultdict[str, list[str]](list)
    for name, text in documents.items():
        own = shingles(text)
        sizes[name] = len(own)
        for shingle in own:
            lists[shingle].append(name)
    answers = []
    for own in map(shingles, questions):
        common = Counter(name for shingle in own for name in lists.get(shingle, ()))
        size = len(own)
        near = (n for n, c in common.items() if c >= threshold * (size + sizes[n] - c))
        answers.append(sorted(near))
    return answers


def nothing(_documents: Texts, _questions: list[str], _threshold: float) -> Answers:
    """Find nothing: the time that rows and Python take."""
    return []


PROGRAMS: dict[str, Callable[[Texts, list[str], float], Answers]] = {
    each.__name__: each
    for each in (
        index_many, index_each, datasketch, datasketch_verified, in_the_way_of_text_dedup, exact,
        nothing
    )
}  # fmt: skip


def main(program: str, documents: str, questions: str, threshold: str) -> None:
    """Make the rows, run a program, and print its answers."""
    n, asked = int(documents), int(questions)
    texts = texts_of("short", np.arange(n + asked)).to_pylist()
    names = {f"d{number}": text for number, text in enumerate(texts[:n])}
    answers = PROGRAMS[program](names, texts[n:], float(threshold))
    for number, found in enumerate(answers):
        sys.stdout.writelines(f"q{number}\t{name}\n" for name in found)


if __name__ == "__main__":
    main(*sys.argv[1:])
