"""Pairs of one document a shingle set -> pairs of all documents, in output order, when read.

m exact duplicates make m (m - 1) / 2 pairs: 100,000 files make 5 · 10^9. These pairs are counted
but not stored: they are generated in order, a piece at a time, while the output is written. A
*class* is the exact duplicates of one document, the first of them, which represents them.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import rows_of, slices_of
from lshdup.base.ragged import cut_offsets, distinct, offsets_of, ranges
from lshdup.base.run import Run
from lshdup.compare.scored_pairs import (
    Columns,
    Pairs,
    Scores,
    contains,
    gather_pairs,
    hold_pairs,
    pack_pairs,
    pack_unordered,
    unpack_pairs,
)
from lshdup.lsh.candidates import PairArrays

#: Pairs are generated in pieces of about this many.
PIECE = 1 << 18

#: Keys of no pairs.
NO_KEYS = np.zeros(0, np.uint64)


@dataclass(frozen=True)
class ExpandedPairs:
    """Pairs of all documents, by similarity descending, then by left and right ascending.

    total : number of pairs.
    """

    total: int
    _documents: int
    _pairs: Pairs
    _classes: "_Classes | None"
    _estimated: NDArray[np.uint64]
    _left_out: NDArray[np.uint64]

    def __len__(self) -> int:
        return self.total

    def without(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> "ExpandedPairs":
        """Return the pairs without some, those of two sides that are one file."""
        is_pair = self.holds(left, right)
        out = np.sort(pack_pairs(left[is_pair], right[is_pair]))
        return replace(self, total=self.total - len(out), _left_out=out)

    @property
    def estimates(self) -> int:
        """Number of pairs whose similarity is an estimate."""
        out = self.is_estimate(*unpack_pairs(self._left_out))
        return self.count(self._estimated) - int(out.sum())

    def is_estimate(self, left: NDArray[np.uint32], right: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return of which of these pairs the similarity is an estimate: bool array."""
        return hold_pairs(self._estimated, self._first(left), self._first(right))

    def _first(self, documents: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the document that stands for each of these documents in the pairs."""
        return documents if self._classes is None else self._classes.duplicate_of[documents]

    def pieces(self) -> Iterator[Columns]:
        """Yield all pairs in order: (left, right, similarity), uint32 and uint32 arrays and scores.

        Memory and cost: as of `_all`.
        """
        for left, right, scores in self._all():
            if len(self._left_out):
                stays = ~hold_pairs(self._left_out, left, right)
                left, right, scores = left[stays], right[stays], scores[stays]
            yield left, right, scores

    def _all(self) -> Iterator[Columns]:
        """Yield the pieces with the pairs that are left out.

        Memory: one piece, or the pairs of one document if they are more; and 16 bytes for each
        document and each pair of classes of one similarity. Cost: about 0.2 us a pair.
        """
        pairs, classes = self._pairs, self._classes
        start = 0
        while start < len(pairs):
            end = min(start + PIECE, len(pairs))
            if classes is None or (counts := classes.products(pairs.keys[start:end])).max() == 1:
                yield pairs.part(start, end)
                start = end
                continue
            # Either as many similarities as make a piece, or one that is larger, by left document.
            group = int(np.searchsorted(pairs.offsets, start, side="right")) - 1
            fits = start + int(np.searchsorted(np.cumsum(counts), PIECE, side="right"))
            last = int(np.searchsorted(pairs.offsets, fits, side="right")) - 1
            if last > group:
                end = int(pairs.offsets[last])
                yield classes.expand(*pairs.part(start, end))
            else:
                end = int(pairs.offsets[group + 1])
                for left, right in classes.expand_by_left(pairs.keys[start:end]):
                    yield left, right, np.full(len(left), pairs.values[group])
            start = end

    def totals(self, thresholds: NDArray[np.float64]) -> list[int]:
        """Return the number of pairs at or above each threshold, which is at most 1."""
        cuts = self._pairs.offsets[np.searchsorted(-self._pairs.values, -thresholds, side="right")]
        if self._classes is None:
            return [int(cut) for cut in cuts]
        # Pairs before each similarity.
        sums = np.zeros(len(self._pairs.values) + 1, np.int64)
        for number, (start, end) in enumerate(pairwise(self._pairs.offsets.tolist())):
            sums[number + 1] = sums[number] + self.count(self._pairs.keys[start:end])
        # A class with itself makes fewer pairs than products; all of them have similarity 1.
        within = self.total - int(sums[-1])
        return [
            int(sums[np.searchsorted(self._pairs.offsets, cut)]) + (within if cut else 0)
            for cut in cuts
        ]

    def best(self) -> NDArray[np.float64]:
        """Return the largest similarity of a pair of each document; 0 if it is in none."""
        best = np.zeros(self._documents)
        for start in reversed(range(0, len(self._pairs), PIECE)):
            left, right, similarity = self._pairs.part(start, start + PIECE)
            # In ascending order of similarity: the last one written stays.
            scores = np.repeat(similarity.real[::-1], 2)
            best[np.stack([left, right], axis=1).ravel()[::-1]] = scores
        return best if self._classes is None else best[self._classes.duplicate_of]

    def example(self, low: float, high: float) -> tuple[int, int, float] | None:
        """Return the least similar pair with low <= similarity < high; None if there is none."""
        pairs, classes = self._pairs, self._classes
        start, end = np.searchsorted(-pairs.values, (-high, -low), side="right").tolist()
        if start == end:
            return None
        left, right = unpack_pairs(pairs.keys[pairs.offsets[end - 1]][np.newaxis])
        if classes is not None and left[0] == right[0]:  # a class, of which two are shown
            right = classes.members(classes.starts[right] + 1)
        return int(left[0]), int(right[0]), float(pairs.values[end - 1])

    def holds(self, left: NDArray[np.integer], right: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which of these pairs of different documents are among the pairs: bool array."""
        return contains(
            np.sort(self._pairs.keys), pack_pairs(self._first(left), self._first(right))
        )

    def count(self, keys: NDArray[np.uint64]) -> int:
        """Return the number of pairs that pairs of different classes expand to."""
        return len(keys) if self._classes is None else self._classes.count(keys)

    def documents(self) -> NDArray[np.int64]:
        """Return the documents that are in any pair: ascending int64 array."""
        named = np.zeros(self._documents, bool)
        for start in range(0, len(self._pairs), PIECE):
            for part in unpack_pairs(self._pairs.keys[start : start + PIECE]):
                named[part] = True
        return np.flatnonzero(named[self._classes.duplicate_of] if self._classes else named)


def expand_copies(
    run: Run,
    pairs: Pairs,
    duplicate_of: NDArray[np.int64],
    *,
    across: PairArrays | None = None,
    collapse: bool = False,
    sizes: NDArray[np.int64] | None = None,
    estimated: NDArray[np.uint64] = NO_KEYS,
) -> ExpandedPairs:
    """Return the pairs of all documents from pairs of one document a shingle set.

    duplicate_of : int64 array of shape (n,), of `Sides`, for each origin by itself.
    across : of several origins, the pairs with equal shingle sets, (left, right), ascending.
    collapse : whether an exact duplicate is paired with the first of its class only, m - 1 pairs
        for m duplicates, instead of m (m - 1) / 2 and all pairs across classes. Of several origins:
        with the first one of another origin, m - 1 pairs too.
    sizes : int64 array of shape (n,), shingles of each document; for pairs of containment, of which
        the smaller set is left. None: the lower number is left.
    estimated : uint64 array, ascending keys of the pairs whose similarity is an estimate.
    """
    arrays = run.arrays
    n = len(duplicate_of)
    copies = arrays.where(n, lambda some: duplicate_of[some] != rows_of(some))
    if collapse or not len(copies):
        beside = duplicate_of
        if across is not None:
            twin = arrays.full(n, -1, np.int64)
            left, right = across[0][::-1], across[1][::-1]
            twin[left], twin[right] = right, left  # NumPy writes in order: the first one stays.
            if collapse:
                again = (twin[across[1]] != across[0]) & (twin[across[0]] != across[1])
                keys = pack_pairs(*across)[again]
                pairs = pairs.where(run, lambda a, b: ~hold_pairs(keys, a, b))
            beside = twin[duplicate_of]
            copies = copies[beside[copies] >= 0]
        pairs = _with_copies(run, pairs, pack_unordered(copies, beside[copies]))
        return ExpandedPairs(len(pairs), n, pairs, None, estimated, NO_KEYS)
    classes, within = _Classes.of(run, duplicate_of, sizes), 0
    if across is None:
        several = arrays.where(n, lambda some: classes.sizes[some] > 1)
        # The pair of a class with itself stands for the pairs within it.
        pairs = _with_copies(run, pairs, pack_pairs(several, several))
        within = sum(m * (m - 1) // 2 - m * m for m in classes.sizes[several].tolist())
    total = classes.count(pairs.keys) + within
    return ExpandedPairs(total, n, pairs, classes, estimated, NO_KEYS)


def _with_copies(run: Run, pairs: Pairs, keys: NDArray[np.uint64]) -> Pairs:
    """Return the pairs, and the pairs of `keys`, which have equal sets."""
    if not len(keys):
        return pairs
    one = 1.0 + 1.0j if np.iscomplexobj(pairs.values) else 1.0
    # Estimates of different sets may be 1, too.
    ones = int(pairs.offsets[1]) if len(pairs) and pairs.values[0] == one else 0
    merged = run.arrays.empty(len(keys) + len(pairs), np.uint64)
    merged[: len(keys)], merged[len(keys) :] = keys, pairs.keys
    merged[: len(keys) + ones].sort()
    values = pairs.values if ones else np.concatenate([[one], pairs.values])
    offsets = pairs.offsets[1:] if ones else pairs.offsets
    return Pairs(values, np.concatenate([[0], offsets + len(keys)]), merged)


@dataclass(frozen=True)
class _Classes:
    """The classes of exact duplicates; a class is numbered by its first document.

    duplicate_of : int64 array of shape (n,), of `find_exact_duplicates`.
    keys : uint64 array of shape (n,), class · 2^32 + document, ascending.
    sizes, starts : int64 arrays of shape (n,), documents of each class, and its start in `keys`.
    set_sizes : int64 array of shape (n,), shingles of each document if the smaller set of a pair is
        left; None if the lower number is.
    """

    run: Run
    duplicate_of: NDArray[np.int64]
    keys: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    set_sizes: NDArray[np.int64] | None

    @classmethod
    def of(
        cls, run: Run, duplicate_of: NDArray[np.int64], set_sizes: NDArray[np.int64] | None
    ) -> "_Classes":
        n = len(duplicate_of)
        keys, starts = run.arrays.empty(n, np.uint64), run.arrays.empty(n, np.int64)
        sizes = run.arrays.zeros(n, np.int64)
        for some in slices_of(n):
            keys[some] = pack_pairs(duplicate_of[some], rows_of(some))
            np.add.at(sizes, duplicate_of[some], 1)
        keys.sort()
        np.cumsum(sizes, out=starts)
        starts -= sizes
        return cls(run, duplicate_of, keys, sizes, starts, set_sizes)

    def products(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the product of the sizes of two classes, for each of their pairs."""
        left, right = unpack_pairs(keys)
        return self.sizes[left] * self.sizes[right]

    def count(self, keys: NDArray[np.uint64]) -> int:
        """Return the sum of `products` of all pairs, a piece at a time."""
        starts = range(0, len(keys), PIECE)
        return sum(int(self.products(keys[at : at + PIECE]).sum()) for at in starts)

    def differ_in_size(
        self, left: NDArray[np.integer], right: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """Return which pairs are ordered by the sizes of their sets, instead of by number."""
        if self.set_sizes is None:
            return np.zeros(len(left), bool)
        differ: NDArray[np.bool_] = self.set_sizes[left] != self.set_sizes[right]
        return differ

    def members(self, places: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the documents at indices of `keys`."""
        return self.keys[places].astype(np.uint32)

    def expand(
        self, left: NDArray[np.uint32], right: NDArray[np.uint32], similarity: Scores
    ) -> Columns:
        """Return all pairs of the documents of these pairs of classes, in order."""
        counts = self.sizes[left] * self.sizes[right]
        of_pair = np.repeat(np.arange(len(left)), counts)
        step = ranges(np.zeros(len(left), np.int64), counts)
        others = self.sizes[right[of_pair]]
        a = self.members(self.starts[left[of_pair]] + step // others)
        b = self.members(self.starts[right[of_pair]] + step % others)
        once = (left != right)[of_pair] | (a < b)
        a, b, of_pair = a[once], b[once], of_pair[once]
        keys, values = pack_unordered(a, b), similarity[of_pair]
        if self.set_sizes is not None:
            keys = np.where(self.differ_in_size(a, b), pack_pairs(a, b), keys)
        order = np.lexsort((keys, -values))
        return *unpack_pairs(keys[order]), values[order]

    def expand_by_left(
        self, keys: NDArray[np.uint64]
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
        """Yield all pairs of the documents of these classes (ascending keys), in order.

        Each piece has all pairs of some left documents.
        """
        n, arrays = len(self.duplicate_of), self.run.arrays
        # A document may come after documents of a class with a larger number: such pairs are found
        # from that class.
        left, right = unpack_pairs(keys)
        back = (self.sizes[left] > 1) & (left != right) & ~self.differ_in_size(left, right)
        backwards = np.sort(pack_pairs(right[back], left[back]))
        tables = [each for each in (keys, backwards) if len(each)]
        partners: NDArray[np.int64] = arrays.zeros(n, np.int64)
        for each in tables:
            for start in range(0, len(each), PIECE):
                own, other = unpack_pairs(each[start : start + PIECE])
                np.add.at(partners, own, self.sizes[other])
        first = self.duplicate_of
        lefts = arrays.where(n, lambda some: partners[first[some]] > 0)
        counts = arrays.compute(len(lefts), np.int64, lambda some: partners[first[lefts[some]]])
        for some in cut_offsets(offsets_of(counts, arrays), PIECE):
            found = np.concatenate([self._after(lefts[some], each) for each in tables])
            found.sort()
            yield unpack_pairs(found)

    def _after(self, documents: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the pairs of each document with later ones of the classes paired with its own, or
        with all of a class of larger sets.
        """
        first = self.duplicate_of[documents]
        half = np.uint64(32)
        begins, ends = (
            np.searchsorted(keys, each.astype(np.uint64) << half) for each in (first, first + 1)
        )
        counts = ends - begins
        own = np.repeat(first, counts)
        other = keys[ranges(begins, counts)].astype(np.uint32)
        document = np.repeat(documents, counts)
        places = np.searchsorted(self.keys, pack_pairs(other, document), side="right")
        places = np.where(self.differ_in_size(own, other), self.starts[other], places)
        counts = self.starts[other] + self.sizes[other] - places
        return pack_pairs(np.repeat(document, counts), self.members(ranges(places, counts)))


@dataclass(frozen=True)
class Apart:
    """Pairs that are left out, such as those that a person has accepted: they are no edges.

    A document of such a pair stands for itself alone: what holds for it need not hold for its exact
    duplicates.

    keys : uint64 array, ascending keys of the pairs, the lower number left.
    whole : int64 array of shape (n,), of `find_exact_duplicates`.
    duplicate_of : the same array, but that each document of these pairs is a class of its own.
    splits : whether any class has become smaller.
    """

    keys: NDArray[np.uint64]
    whole: NDArray[np.int64]
    duplicate_of: NDArray[np.int64]
    splits: bool = False

    @classmethod
    def of(cls, run: Run, keys: NDArray[np.uint64], whole: NDArray[np.int64]) -> "Apart":
        """Return the pairs of some keys. keys, whole : as in the class."""
        if not len(keys):
            return cls(keys, whole, whole)
        alone = distinct(np.concatenate(unpack_pairs(keys)))[0].astype(np.int64)
        own = run.arrays.copy(whole)
        own[alone] = alone
        # Of a class whose first document is alone now, the next one is the first.
        rest = run.arrays.where(
            len(own), lambda some: contains(alone, own[some]) & (own[some] != rows_of(some))
        )
        led, first = np.unique(own[rest], return_index=True)
        own[rest] = rest[first][np.searchsorted(led, own[rest])]
        return cls(keys, whole, own, bool(len(rest) or (whole[alone] != alone).any()))

    def separate(
        self,
        run: Run,
        pairs: Pairs,
        *,
        across: PairArrays | None = None,
        sizes: NDArray[np.int64] | None = None,
    ) -> Pairs:
        """Return the pairs of one document a class of `duplicate_of`, without those of `keys`.

        pairs : of one document a class of `whole`. across, sizes : of `expand_copies`.
        """
        if not len(self.keys):
            return pairs
        own, whole = self.duplicate_of, self.whole
        stands_for = run.arrays.compute(
            len(own),
            np.int64,
            lambda some: np.where(own[some] == rows_of(some), whole[some], rows_of(some)),
        )
        every = expand_copies(run, pairs, stands_for, across=across, sizes=sizes)
        without = replace(every, _left_out=self.keys)  # Not all of them need be pairs.
        return gather_pairs(run, without.pieces(), pairs.values.dtype.type)
