"""Sameness of two documents: equal bytes, equal text, or neither.

Two documents of one text have the same sequence of tokens, under the normal form and the tokens of
the run. Documents of the same bytes are documents of one text: equal files that are read
differently, as page.html and page.txt are, are not the same here. A filter of shingles changes
nothing, and documents without tokens are the same as no other.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.run import Run
from lshdup.lsh.candidates import find_exact_duplicates

#: The words for how much two documents are the same, by level: not, in text, in bytes as well.
LEVELS = (None, "text", "bytes")

_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of n documents, of their bytes and of their sequences of tokens.

    byte_prints, text_prints : uint64 arrays of shape (n,); the latter 0 without tokens.
    """

    byte_prints: NDArray[np.uint64]
    text_prints: NDArray[np.uint64]

    @classmethod
    def concatenate(cls, parts: Iterable["Fingerprints"]) -> "Fingerprints":
        """Return the fingerprints of all parts, in order."""
        each = [(part.byte_prints, part.text_prints) for part in parts]
        return cls(*(np.concatenate(columns) for columns in zip(*each, strict=True)))

    def compare(self, left: NDArray[np.integer], right: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return how much pairs of documents are the same: indices of LEVELS.

        left, right : integer arrays of shape (m,).
        """
        texts = self.text_prints[left]
        same_text = (texts == self.text_prints[right]) & (texts != 0)
        same_bytes = self.byte_prints[left] == self.byte_prints[right]
        levels: NDArray[np.int64] = same_text * (1 + same_bytes.astype(np.int64))
        return levels

    def compare_to(
        self, others: "Fingerprints", documents: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """Return how much the first document is the same as some of the others."""
        both = Fingerprints.concatenate(
            [self, Fingerprints(others.byte_prints[documents], others.text_prints[documents])]
        )
        return both.compare(np.zeros(len(documents), np.int64), np.arange(1, len(documents) + 1))

    def words(self, left: NDArray[np.integer], right: NDArray[np.integer]) -> list[str | None]:
        """Return how much pairs of documents are the same, in words of LEVELS."""
        return [LEVELS[level] for level in self.compare(left, right).tolist()]

    def keys(self, run: Run, same: str, sizes: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return a key of each document that documents share if, and only if, they are the same.

        same : "text" or "bytes".
        sizes : int64 array of shape (n,), shingles of each document; without any, the key is 0.
        """

        def keys_of(some: slice) -> NDArray[np.uint64]:
            texts = np.asarray(self.text_prints[some])
            is_compared = (texts != 0) & (np.asarray(sizes[some]) != 0)
            if same == "bytes":
                keys = texts * _ODD ^ np.asarray(self.byte_prints[some])
                texts = np.maximum(keys, np.uint64(1))
            return np.where(is_compared, texts, np.uint64(0))

        return run.arrays.compute(len(self.text_prints), np.uint64, keys_of)

    def find_duplicates(self, run: Run, same: str, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each document the first one that is the same: int64 array of shape (n,)."""
        return find_exact_duplicates(run, self.keys(run, same, sizes))
