"""Pairs of first copies -> pairs of all documents, in output order, as they are asked for. Called by pipeline.py.

m equal documents make m (m - 1) / 2 pairs: 100,000 files make 5 · 10^9. So the pairs that copies bring are counted but not kept: they
are made in order, a piece at a time, when somebody reads them. A *kind* is a class of documents with identical shingle sets, called
by its first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lshdup.lsh.candidates import PairArrays
from lshdup.matching.pairs import Columns, Pairs, contains, pack_pairs, unpack_pairs
from lshdup.utils.ragged import offsets_of, ranges

#: Pairs are made and handed on in pieces of about this many.
PIECE = 1 << 18


@dataclass(frozen=True)
class ExpandedPairs:
    """Pairs of all documents, by similarity descending, then by left and right ascending.

    total : how many. Made by `expand_pairs`.
    """

    total: int
    _pairs: Pairs
    _kinds: "_Kinds | None"

    def __len__(self) -> int:
        return self.total

    def pieces(self) -> Iterator[Columns]:
        """All pairs in order: pieces of (left, right, similarity), uint32, uint32 and float64 arrays.

        Memory: one piece, or what the pairs of one document take if they are more; and 16 bytes for each document and pair of
        kinds of one similarity. Cost: about 0.2 us a pair where there are copies.
        """
        pairs, kinds = self._pairs, self._kinds
        start = 0
        while start < len(pairs):
            end = min(start + PIECE, len(pairs))
            counts = (
                np.ones(end - start, np.int64)
                if kinds is None
                else kinds.products(pairs.keys[start:end])
            )
            if kinds is None or (counts == 1).all():
                yield pairs.part(start, end)
                start = end
                continue
            # As many whole groups of equal similarity as make a piece; or one group that is larger, by left document.
            group = int(np.searchsorted(pairs.offsets, start, side="right")) - 1
            fits = start + int(np.searchsorted(np.cumsum(counts), PIECE, side="right"))
            last = int(np.searchsorted(pairs.offsets, fits, side="right")) - 1
            if last > group:
                end = int(pairs.offsets[last])
                yield kinds.expanded(*pairs.part(start, end))
            else:
                end = int(pairs.offsets[group + 1])
                for left, right in kinds.by_left(pairs.keys[start:end]):
                    yield left, right, np.full(len(left), pairs.values[group])
            start = end

    def totals(self, thresholds: NDArray[np.float64]) -> list[int]:
        """How many pairs there are of each of these similarities or more; each at most 1."""
        cuts = self._pairs.offsets[np.searchsorted(-self._pairs.values, -thresholds, side="right")]
        if self._kinds is None:
            return [int(cut) for cut in cuts]
        sums = np.zeros(
            len(self._pairs.values) + 1, np.int64
        )  # of the pairs before each similarity
        for number, (start, end) in enumerate(pairwise(self._pairs.offsets.tolist())):
            parts = (
                self._kinds.products(self._pairs.keys[at : min(at + PIECE, end)])
                for at in range(start, end, PIECE)
            )
            sums[number + 1] = sums[number] + sum(int(part.sum()) for part in parts)
        within = self.total - int(
            sums[-1]
        )  # of a kind beside itself not all products are pairs; all of these are in the first sum
        return [
            int(sums[np.searchsorted(self._pairs.offsets, cut)]) + (within if cut else 0)
            for cut in cuts
        ]

    def best(self, n: int) -> NDArray[np.float64]:
        """The largest similarity that each of the n documents is in a pair with: float64 array; 0 if it is in none."""
        best = np.zeros(n)
        for start in reversed(range(0, len(self._pairs), PIECE)):
            left, right, similarity = self._pairs.part(start, min(start + PIECE, len(self._pairs)))
            # The most similar last: what is written last stays.
            best[np.stack([left, right], axis=1).ravel()[::-1]] = np.repeat(similarity[::-1], 2)
        return best if self._kinds is None else best[self._kinds.duplicate_of]

    def examples(self, low: float, high: float, most: int) -> Columns:
        """At most so many pairs with low <= similarity < high, the least similar first; of copies, each kind once."""
        start, end = (
            int(cut) for cut in np.searchsorted(-self._pairs.values, (-high, -low), side="right")
        )
        found: list[Columns] = []
        for group in reversed(range(start, end)):
            missing = most - sum(len(part[0]) for part in found)
            if missing <= 0:
                break
            first, last = self._pairs.offsets[group], self._pairs.offsets[group + 1]
            left, right, similarity = self._pairs.part(int(first), int(min(last, first + missing)))
            if self._kinds is not None:
                second = self._kinds.members(
                    np.minimum(self._kinds.starts[right] + 1, len(self._kinds.keys) - 1)
                )
                right = np.where(left == right, second, right)
            found.append((left, right, similarity))
        empty = np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0)
        left, right, similarity = (
            np.concatenate(column) for column in zip(empty, *found, strict=True)
        )
        return left, right, similarity

    def holds(self, left: NDArray[np.integer], right: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Whether these pairs of different documents (two integer arrays) are among them: bool array."""
        if self._kinds is not None:
            left, right = self._kinds.duplicate_of[left], self._kinds.duplicate_of[right]
        return contains(np.sort(self._pairs.keys), pack_pairs(left, right))

    def count(self, keys: NDArray[np.uint64]) -> int:
        """How many pairs come of some of the pairs of different first copies."""
        return len(keys) if self._kinds is None else int(self._kinds.products(keys).sum())

    def documents(self) -> NDArray[np.int64]:
        """Which documents are in any pair: ascending int64 array."""
        n = (
            len(self._kinds.duplicate_of)
            if self._kinds
            else 1 + max((int(part.max()) for part in self._columns()), default=-1)
        )
        named = np.zeros(n, bool)
        for part in self._columns():
            named[part] = True
        return np.flatnonzero(named[self._kinds.duplicate_of] if self._kinds else named)

    def _columns(self) -> Iterator[NDArray[np.uint32]]:
        for start in range(0, len(self._pairs), PIECE):
            yield from unpack_pairs(self._pairs.keys[start : start + PIECE])


def expand_pairs(
    pairs: Pairs, duplicate_of: NDArray[np.int64], *, collapse: bool = False
) -> ExpandedPairs:
    """Pairs of all documents from those of first copies.

    duplicate_of : int64 array of shape (n,), each document's first copy. collapse : each further copy is
    paired with the first of its kind only
    (m - 1 lines for m equal documents), and no pair of two kinds is repeated for their copies. Otherwise every pair of
    documents is there: m (m - 1) / 2 for m equal ones.
    """
    copies = np.flatnonzero(duplicate_of != np.arange(len(duplicate_of)))
    if collapse or not len(copies):
        pairs = _with_copies(pairs, pack_pairs(duplicate_of[copies], copies))
        return ExpandedPairs(len(pairs), pairs, None)
    kinds = _Kinds.of(duplicate_of)
    several = np.flatnonzero(kinds.sizes > 1)
    pairs = _with_copies(
        pairs, pack_pairs(several, several)
    )  # a kind beside itself stands for the pairs within it
    within = sum(size * (size - 1) // 2 - size * size for size in kinds.sizes[several].tolist())
    products = (
        kinds.products(pairs.keys[start : start + PIECE]) for start in range(0, len(pairs), PIECE)
    )
    return ExpandedPairs(sum(int(part.sum()) for part in products) + within, pairs, kinds)


def expand_pairs_across(
    pairs: Pairs, duplicate_of: NDArray[np.int64], same: PairArrays, *, collapse: bool = False
) -> ExpandedPairs:
    """Pairs of the documents of two sides from those of first copies, which each side has of its own.

    same : which of the pairs are of identical documents, (left, right). collapse : no pair of two kinds is repeated for their copies, but
    of identical ones each further copy is paired with the first of the other side; m and n equal ones make m + n - 1 pairs, not m n.
    """
    copies = np.flatnonzero(duplicate_of != np.arange(len(duplicate_of)))
    if collapse or not len(copies):
        twin = np.full(len(duplicate_of), -1)
        twin[same[0]], twin[same[1]] = same[1], same[0]
        copies = copies[twin[duplicate_of[copies]] >= 0]
        others = twin[duplicate_of[copies]]
        pairs = _with_copies(
            pairs, pack_pairs(np.minimum(copies, others), np.maximum(copies, others))
        )
        return ExpandedPairs(len(pairs), pairs, None)
    kinds = _Kinds.of(duplicate_of)
    products = (
        kinds.products(pairs.keys[start : start + PIECE]) for start in range(0, len(pairs), PIECE)
    )
    return ExpandedPairs(sum(int(part.sum()) for part in products), pairs, kinds)


def _with_copies(pairs: Pairs, keys: NDArray[np.uint64]) -> Pairs:
    """The pairs and those of `keys`, which have similarity 1."""
    if not len(keys):
        return pairs
    ones = (
        int(pairs.offsets[1]) if len(pairs) and pairs.values[0] == 1.0 else 0
    )  # estimates may be 1 of different sets
    merged = np.concatenate([keys, pairs.keys])
    merged[: len(keys) + ones].sort()
    values = pairs.values if ones else np.concatenate([[1.0], pairs.values])
    offsets = pairs.offsets[1:] if ones else pairs.offsets
    return Pairs(values, np.concatenate([[0], offsets + len(keys)]), merged)


@dataclass(frozen=True)
class _Kinds:
    """Which documents are of one kind.

    duplicate_of : int64 array of shape (n,), each document's first copy. keys : uint64 array of shape (n,), first · 2^32 + document,
    ascending. sizes, starts : int64 arrays of shape (n,), how many documents a kind has, and where in `keys`; by its first.
    """

    duplicate_of: NDArray[np.int64]
    keys: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, duplicate_of: NDArray[np.int64]) -> "_Kinds":
        sizes = np.bincount(duplicate_of, minlength=len(duplicate_of))
        return cls(
            duplicate_of,
            np.sort(pack_pairs(duplicate_of, np.arange(len(duplicate_of)))),
            sizes,
            offsets_of(sizes)[:-1],
        )

    def products(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How many pairs of documents the members of two kinds make; of a kind beside itself, each twice and with itself."""
        left, right = unpack_pairs(keys)
        return self.sizes[left] * self.sizes[right]

    def members(self, places: NDArray[np.int64]) -> NDArray[np.uint32]:
        return self.keys[places].astype(np.uint32)

    def expanded(
        self, left: NDArray[np.uint32], right: NDArray[np.uint32], similarity: NDArray[np.float64]
    ) -> Columns:
        """All pairs of the members of these kinds, in order."""
        counts = self.sizes[left] * self.sizes[right]
        of_pair = np.repeat(np.arange(len(left)), counts)
        step = ranges(np.zeros(len(left), np.int64), counts)
        others = self.sizes[right[of_pair]]
        a = self.members(self.starts[left[of_pair]] + step // others)
        b = self.members(self.starts[right[of_pair]] + step % others)
        once = (left != right)[of_pair] | (a < b)
        a, b, of_pair = a[once], b[once], of_pair[once]
        keys, values = pack_pairs(np.minimum(a, b), np.maximum(a, b)), similarity[of_pair]
        order = np.lexsort((keys, -values))
        return *unpack_pairs(keys[order]), values[order]

    def by_left(
        self, keys: NDArray[np.uint64]
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
        """All pairs of the members of these kinds (ascending), in order, some left documents at a time."""
        n = len(self.duplicate_of)
        edges = np.arange(n + 1, dtype=np.uint64) << np.uint64(32)
        # A copy may come after the first of a kind with a larger first: such pairs are found from that kind.
        left, right = unpack_pairs(keys)
        back = (self.sizes[left] > 1) & (left != right)
        backwards = np.sort(pack_pairs(right[back], left[back]))
        tables = [(each, np.searchsorted(each, edges)) for each in (keys, backwards) if len(each)]
        partners = np.zeros(n)
        for each, _ in tables:
            for start in range(0, len(each), PIECE):
                kind, other = unpack_pairs(each[start : start + PIECE])
                partners += np.bincount(kind, self.sizes[other], n)
        lefts = np.flatnonzero(partners[self.duplicate_of])
        ends = np.cumsum(partners[self.duplicate_of[lefts]])
        start = 0
        while start < len(lefts):
            before = ends[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(ends, before + PIECE, side="right")))
            found = np.concatenate([self._after(lefts[start:end], *table) for table in tables])
            found.sort()
            yield unpack_pairs(found)
            start = end

    def _after(
        self, documents: NDArray[np.int64], keys: NDArray[np.uint64], edges: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """Pairs of each document with the later members of the kinds that `keys` has beside its own."""
        first = self.duplicate_of[documents]
        counts = edges[first + 1] - edges[first]
        kind = keys[ranges(edges[first], counts)].astype(np.uint32)
        document = np.repeat(documents, counts)
        places = np.searchsorted(self.keys, pack_pairs(kind, document), side="right")
        counts = self.starts[kind] + self.sizes[kind] - places
        return pack_pairs(np.repeat(document, counts), self.members(ranges(places, counts)))
