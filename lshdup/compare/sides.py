"""One side of a comparison, or two under one numbering.

A side says what is known of its documents, and has a function that gives their shingle sets.
Documents of the right side are numbered behind those of the left one. Documents of one *origin* are
not compared: a side is one, and `--across` divides one side into several.

Two documents are the same in bytes, in text, or not. Those of one text have the same sequence of
tokens, under the normal form and the tokens of the run. Documents of the same bytes are documents
of one text: equal files that are read differently, as page.html and page.txt are, are not the same
here. A filter of shingles changes nothing, and documents without tokens are the same as no other.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import rows_of
from lshdup.base.ragged import RaggedSets, SetSource, gather_sets
from lshdup.base.run import Run, ignore
from lshdup.compare.expand_duplicates import NO_KEYS, Apart
from lshdup.compare.scored_pairs import Pairs
from lshdup.lsh.candidates import NO_ORIGINS, PairArrays, find_exact_duplicates

_I64 = NDArray[np.int64]


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

    def confirm(self, run: Run, found: NDArray[np.int64], same: str) -> NDArray[np.int64]:
        """Return the first duplicate of each document, or itself if the two share the key only."""
        least = LEVELS.index(same)

        def confirmed(some: slice) -> NDArray[np.int64]:
            rows, firsts = rows_of(some), np.asarray(found[some])
            return np.where(self.compare(rows, firsts) >= least, firsts, rows)

        return run.arrays.compute(len(found), np.int64, confirmed)


@dataclass(frozen=True)
class Side:
    """The documents of one side of a comparison.

    sizes : int64 array of shape (n,), shingles of each document.
    fingerprints : uint64 array of shape (n,), of the shingle sets; 0 for empty sets.
    prints : fingerprints of bytes and of texts; None if they are not known.
    source : gives shingle sets of documents, an ascending int64 array. The set of a document that
        cannot be read any more is empty.
    signatures : uint32 array of shape (n, K); None if no method needs them.
    sets : all sets, if they are in memory or in a file.
    expect : told which sets will be wanted; changes the cost only.
    find_existing : returns the first of some documents whose file is still there, or -1.
    """

    sizes: _I64
    fingerprints: NDArray[np.uint64]
    prints: Fingerprints | None
    source: SetSource
    signatures: NDArray[np.uint32] | None = None
    sets: RaggedSets | None = None
    expect: Callable[[_I64], None] = ignore
    find_existing: Callable[[_I64], int] = lambda _: -1

    def keys(self, run: Run, same: str) -> NDArray[np.uint64]:
        """Return the keys of exact duplicates, of `Sides`."""
        if not same:
            return self.fingerprints
        assert self.prints is not None
        return self.prints.keys(run, same, self.sizes)


@dataclass(frozen=True)
class Sides:
    """One side, or two: the left one is compared with itself, or with the right one.

    origins : uint32 array of shape (n,), numbers from 0; documents of one origin are not compared.
        Empty: all are.
    keys : uint64 array of shape (n,), equal for documents that are exact duplicates: fingerprints
        of the sets, or of texts or bytes if documents are compared for sameness.
    apart : pairs that are left out, and the first exact duplicate of each document of its own
        origin.
    """

    left: Side
    right: Side | None
    origins: NDArray[np.uint32]
    sizes: _I64
    keys: NDArray[np.uint64]
    apart: Apart

    @classmethod
    def of(
        cls,
        run: Run,
        left: Side,
        right: Side | None = None,
        same: str = "",
        duplicate_of: _I64 | None = None,
        origins: NDArray[np.uint32] = NO_ORIGINS,
    ) -> "Sides":
        """Return the sides.

        same : "text" or "bytes", if such documents are exact duplicates; else empty.
        duplicate_of : if it is known already.
        origins : of one side.
        """
        each = [side for side in (left, right) if side is not None]
        sizes, keys = left.sizes, left.keys(run, same)
        if right is not None:
            split = len(left.sizes)
            sizes = run.arrays.concatenate([np.asarray(side.sizes) for side in each])
            keys = run.arrays.concatenate([np.asarray(side.keys(run, same)) for side in each])
            origins = run.arrays.compute(len(sizes), np.uint32, lambda some: rows_of(some) >= split)
        if duplicate_of is None:
            duplicate_of = find_exact_duplicates(run, _separate_origins(run, keys, origins))
            prints = [side.prints for side in each if same and side.prints is not None]
            if prints:
                whole = Fingerprints.concatenate(prints) if right is not None else prints[0]
                duplicate_of = whole.confirm(run, duplicate_of, same)
        return cls(left, right, origins, sizes, keys, Apart.of(run, NO_KEYS, duplicate_of))

    @property
    def duplicate_of(self) -> _I64:
        """The document that stands for each document, in pairs that are not left out."""
        return self.apart.duplicate_of

    @cached_property
    def prints(self) -> Fingerprints:
        """The fingerprints of the bytes and texts of all documents."""
        assert self.left.prints is not None
        if self.right is None:
            return self.left.prints
        assert self.right.prints is not None
        return Fingerprints.concatenate([self.left.prints, self.right.prints])

    def separate(self, documents: _I64) -> tuple[_I64, _I64]:
        """Separate ascending numbers into documents of the left side, and of the right side by
        their own number.
        """
        split = len(self.left.sizes)
        return documents[documents < split], documents[documents >= split] - split

    def leave_out(self, run: Run, keys: NDArray[np.uint64]) -> "Sides":
        """Return the sides without some pairs: ascending keys, the lower number left."""
        return replace(self, apart=Apart.of(run, keys, self.apart.whole))

    def expect(self, documents: _I64) -> None:
        """Tell the sources whose sets will be wanted (ascending int64 array)."""
        for side, own in zip((self.left, self.right), self.separate(documents), strict=True):
            if side is not None:
                side.expect(own)

    def sets(self, documents: _I64) -> RaggedSets:
        """Return the shingle sets of documents (ascending int64 array)."""
        if self.right is None:
            return self.left.source(documents)
        left, right = self.separate(documents)
        return RaggedSets.concatenate([self.left.source(left), self.right.source(right)])

    def gather(self, run: Run, members: _I64) -> tuple[RaggedSets, _I64, NDArray[np.uint32]]:
        """Return sets, the rows of `members` in them, and the origins of the rows.

        members : ascending int64 array.
        """
        if self.right is None and self.left.sets is not None:
            return self.left.sets, members, self.origins
        sets, origins = gather_sets(self.sets, members, self.sizes, run.arrays), self.origins
        rows = run.arrays.compute(len(members), np.int64, rows_of)
        return sets, rows, run.arrays.take(origins, members) if len(origins) else origins

    def identical(self, pairs: Pairs) -> PairArrays | None:
        """Return the pairs of exact duplicates of several origins; None without origins."""
        if not len(self.origins):
            return None
        ones = pairs.at_least(1.0)
        same = self.keys[ones.left] == self.keys[ones.right]
        return ones.left[same], ones.right[same]


def _separate_origins(
    run: Run, keys: NDArray[np.uint64], origins: NDArray[np.uint32]
) -> NDArray[np.uint64]:
    """Return keys that documents share if they share a key and an origin; 0 stays 0."""
    if not len(origins):
        return keys

    def own_keys(some: slice) -> NDArray[np.uint64]:
        own = np.asarray(keys[some])
        return np.where(own != 0, own ^ origins[some].astype(np.uint64) * _ODD, own)

    return run.arrays.compute(len(keys), np.uint64, own_keys)
