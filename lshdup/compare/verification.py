"""Candidate pairs -> scored pairs: by the sets of both documents, or by signatures where a set is
lost.

The measure "jaccard" is |A ∩ B| / |A ∪ B| of 64-bit shingle sets, divided once as doubles.
"containment" is |A ∩ B| / min(|A|, |B|): the share of the smaller set that is inside the other. A
pair of containment is ordered: (inside, holder), and of equal sizes the lower number is inside.

A score of containment is one complex number, containment + similarity·i. NumPy sorts complex
numbers by their real parts, then by their imaginary parts, which is the order of the listing.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import RaggedSets, SetSource, distinct
from lshdup.base.run import Run, run_in_parts
from lshdup.compare.scored_pairs import Columns, Scores, pack_pairs, unpack_pairs
from lshdup.compare.sides import Sides
from lshdup.kernels import sets as kernels
from lshdup.lsh.candidates import PairArrays
from lshdup.lsh.signatures import estimate

#: The largest size of the shingle sets that are in memory at a time.
SET_BYTES = 512 << 20

#: The size of the sets fetched at a time, unless a cluster is larger: enough documents for all
#: threads. A small block reuses memory, which is faster than new memory.
BLOCK_BYTES = 12 << 20

#: Elements of the sets that a thread compares at least.
_ELEMENTS_AT_LEAST = 1 << 18

#: Sets of this size stay in the cache of a processor.
CACHE_BYTES = 1 << 20

#: Pairs whose signatures are compared at a time: 8 bytes a pair and row.
_ESTIMATED_AT_ONCE = 1 << 13


def jaccard(
    run: Run,
    sets: RaggedSets,
    left: NDArray[np.integer],
    right: NDArray[np.integer],
    threshold: float = 0.0,
) -> NDArray[np.float64]:
    """Return |A ∩ B| / |A ∪ B| of the sets left[i] and right[i]; 0 below the threshold.

    The similarity of two empty sets is 0.

    left, right : integer arrays of shape (n_pairs,), below 2^32.

    Returns a float64 array of shape (n_pairs,). Cost: about 1 ns an element, less where two sets
    are similar or cannot reach the threshold.

    >>> sets = RaggedSets.from_sets([{1, 2, 3}, {1, 3}, {3}])
    >>> jaccard(Run.quiet(), sets, np.array([0, 0]), np.array([1, 2])).round(4).tolist()
    [0.6667, 0.3333]
    """
    out = np.empty(len(left), np.float64)
    a, b = left.astype(np.uint32, copy=False), right.astype(np.uint32, copy=False)

    def work(part: slice) -> None:
        kernels.pair_jaccard(sets.values, sets.offsets, a[part], b[part], threshold, out[part])

    elements = 2 * len(sets.values) // max(1, len(sets))  # of an average pair
    run_in_parts(len(left), run.jobs, work, least=1 + _ELEMENTS_AT_LEAST // (elements + 1))
    return out


def containment(
    run: Run, sets: RaggedSets, left: NDArray[np.integer], right: NDArray[np.integer]
) -> Scores:
    """Return the scores of containment of the sets left[i] and right[i]; 0 if one is empty.

    left, right : integer arrays of shape (n_pairs,), below 2^32.

    Returns a complex128 array of shape (n_pairs,).

    >>> sets = RaggedSets.from_sets([{1, 2, 3, 4}, {1, 2, 3}, {3, 5}])
    >>> containment(Run.quiet(), sets, np.array([0, 0]), np.array([1, 2])).tolist()
    [(1+0.75j), (0.5+0.2j)]
    """
    a, b = sets.sizes[left], sets.sizes[right]
    similarity = jaccard(run, sets, left, right)
    # Sets have fewer than 2^31 elements: the rounding error of a double is far below one half.
    common = np.rint(similarity * (a + b) / (1.0 + similarity))
    scores: Scores = common / np.maximum(np.minimum(a, b), 1) + 1j * similarity
    return scores


def relations(a_sizes: NDArray[np.int64], b_sizes: NDArray[np.int64]) -> list[str]:
    """Return which of two sets containment is about: "inside" if a is the smaller one, "holds" if
    b is, "both" if they have the same size.

    >>> relations(np.array([1, 2, 2]), np.array([2, 1, 2]))
    ['inside', 'holds', 'both']
    """
    words = ("inside", "both", "holds")
    return [words[sign + 1] for sign in np.sign(a_sizes - b_sizes).tolist()]


def keep_possible(
    left: NDArray[np.uint32], right: NDArray[np.uint32], sizes: NDArray[np.int64], threshold: float
) -> PairArrays:
    """Return the pairs whose sizes allow this similarity, moved to the front of the arrays."""
    n = kernels.possible_pairs(left, right, sizes, threshold)
    return left[:n], right[:n]


def verify_jaccard(
    run: Run,
    pieces: Iterable[PairArrays],
    sizes: NDArray[np.int64],
    source: "SetSource | FetchedSets",
    threshold: float,
) -> Iterator[Columns]:
    """Yield the candidate pairs whose exact similarity is at least the threshold, in any order.

    pieces : (left, right), uint32 arrays, which are overwritten.
    sizes : int64 array of shape (n,), size of the set of each document.
    source : called with ascending documents for their sets; or the sets that an earlier call has
        fetched from it.

    Yields pieces of (left, right, similarity).

    Memory: at most SET_BYTES of sets, fetched for a block of pairs at a time; a block reuses the
    sets of the one before. A set is fetched once if pairs come cluster by cluster, unless the sets
    of its cluster exceed the limit.
    """
    fetched = source if isinstance(source, FetchedSets) else FetchedSets(len(sizes), source)
    for piece in pieces:
        left, right = keep_possible(*piece, sizes, threshold)
        start = 0
        while start < len(left):
            seen = np.zeros(len(sizes), np.uint8)
            # Half of the limit: at the change of blocks the sets of both are in memory.
            most = SET_BYTES // 16
            end = kernels.block_end(
                left, right, start, sizes, min(BLOCK_BYTES // 8, most), most, seen
            )
            # Not the documents of a later block: sets that are kept for the next one are copied.
            seen[:] = 0
            seen[left[start:end]] = seen[right[start:end]] = 1
            sets, row_of = fetched.sets_of(np.flatnonzero(seen))
            a, b = _tiled(row_of[left[start:end]], row_of[right[start:end]], sets)
            similarity = jaccard(run, sets, a, b, threshold)
            del sets  # Its memory serves the next block.
            keep = similarity >= threshold
            yield fetched.documents[a[keep]], fetched.documents[b[keep]], similarity[keep]
            start = end


class FetchedSets:
    """The sets of one block of pairs."""

    def __init__(self, n: int, source: SetSource) -> None:
        self.documents = np.zeros(0, np.uint32)
        self._sets = RaggedSets.concatenate([])
        self._row_of = np.zeros(n, np.uint32)
        self._is_fetched = np.zeros(n, bool)
        self._source = source

    def sets_of(self, wanted: NDArray[np.int64]) -> tuple[RaggedSets, NDArray[np.uint32]]:
        """Return the sets of at least these ascending documents, and the row of each in them."""
        missing = wanted[~self._is_fetched[wanted]]
        if len(missing):
            known = wanted[self._is_fetched[wanted]]
            # The memory of sets that are no longer wanted is free before new ones come.
            self._sets = self._sets.take(self._row_of[known].astype(np.int64))
            new = self._source(missing)
            self._sets = RaggedSets.concatenate([self._sets, new]) if len(known) else new
            self._is_fetched[self.documents] = False
            self.documents = np.concatenate([known, missing]).astype(np.uint32)
            self._is_fetched[self.documents] = True
            self._row_of[self.documents] = np.arange(len(self.documents), dtype=np.uint32)
        return self._sets, self._row_of


class Verifier:
    """Verification of pairs by similarity; the counts grow while they come.

    Equal keys mean equal sets. If the set of a document of the right side is lost, and none of its
    exact duplicates is there, signatures decide; with `estimates` of any side, also of one alone.

    candidates : number of candidates.
    by_estimate : number of candidates that an estimate has decided, rejected ones too.
    """

    def __init__(
        self, run: Run, sides: Sides, threshold: float, *, estimates: bool = False
    ) -> None:
        self._run, self._sides, self._threshold = run, sides, threshold
        # The documents from `_first` on may be lost; they are of the right side from `_split` on.
        self._split = len(sides.left.sizes) if sides.right is not None else 0
        self._first = 0 if estimates else len(sides.left.sizes)
        self._is_lost = np.zeros(len(sides.sizes), bool)
        self._by_duplicate: NDArray[np.int64] | None = None
        self._estimated = [np.zeros(0, np.uint64)]
        self.candidates = self.by_estimate = 0

    def list_estimated(self) -> NDArray[np.uint64]:
        """Return the keys of the pairs of two sides whose similarity is an estimate, ascending."""
        return np.sort(np.concatenate(self._estimated))

    def verify(self, pieces: Iterable[PairArrays]) -> Iterator[Columns]:
        """Yield the candidate pairs whose similarity is at least the threshold.

        pieces : (left, right), uint32 arrays, which are overwritten.
        """
        sides, counted = self._sides, self._count(pieces)
        if sides.right is None and self._first:
            yield from verify_jaccard(self._run, counted, sides.sizes, sides.sets, self._threshold)
            return
        fetched = FetchedSets(len(sides.sizes), self._sets)
        for left, right in counted:
            yield from self._verify_piece(left, right, fetched)

    def _count(self, pieces: Iterable[PairArrays]) -> Iterator[PairArrays]:
        for piece in pieces:
            self.candidates += len(piece[0])
            yield piece

    def _verify_piece(
        self, left: NDArray[np.uint32], right: NDArray[np.uint32], fetched: FetchedSets
    ) -> Iterator[Columns]:
        keys, sizes = self._sides.keys, self._sides.sizes
        same = keys[left] == keys[right]
        yield left[same], right[same], np.ones(int(same.sum()))
        left, right = left[~same], right[~same]
        left, right = keep_possible(left, right, sizes, self._threshold)
        known = ~self._is_lost[right]
        pairs = left[known], right[known]
        yield from verify_jaccard(self._run, [pairs], sizes, fetched, self._threshold)
        lost = self._is_lost[left] | self._is_lost[right]
        yield self._estimate(left[lost], right[lost])

    def _sets(self, documents: NDArray[np.int64]) -> RaggedSets:
        sets = self._sides.sets(documents)
        lost = np.flatnonzero((sets.sizes == 0) & (documents >= self._first))
        if len(lost):
            right = lost[documents[lost] >= self._split]
            sets = self._replace_by_duplicates(sets, documents, right)
            self._is_lost[documents[lost[sets.sizes[lost] == 0]]] = True
        return sets

    def _replace_by_duplicates(
        self, sets: RaggedSets, documents: NDArray[np.int64], lost: NDArray[np.int64]
    ) -> RaggedSets:
        """Return the sets; for positions in `lost`, sets of exact duplicates whose files exist."""
        right, duplicate_of = self._sides.right or self._sides.left, self._sides.duplicate_of
        if self._by_duplicate is None:
            self._by_duplicate = np.argsort(duplicate_of, kind="stable")
        starts, ends = (
            np.searchsorted(duplicate_of, documents[lost], side=side, sorter=self._by_duplicate)
            for side in ("left", "right")
        )
        found = np.full(len(lost), -1)
        for number in np.flatnonzero(ends - starts > 1).tolist():
            others = self._by_duplicate[starts[number] + 1 : ends[number]] - self._split
            found[number] = right.find_existing(others)
        usable = distinct(found[found >= 0])[0]
        index = np.arange(len(sets))
        index[lost[found >= 0]] = len(sets) + np.searchsorted(usable, found[found >= 0])
        return RaggedSets.concatenate([sets, right.source(usable)]).take(index)

    def _estimate(self, left: NDArray[np.uint32], right: NDArray[np.uint32]) -> Columns:
        a, b = left.astype(np.int64), right.astype(np.int64)
        mine, others = self._sides.left, self._sides.right or self._sides.left
        assert mine.signatures is not None
        assert others.signatures is not None
        share = np.empty(len(left))
        for start in range(0, len(left), _ESTIMATED_AT_ONCE):
            part = slice(start, start + _ESTIMATED_AT_ONCE)
            both = mine.signatures[a[part]], others.signatures[b[part] - self._split]
            rows = np.arange(len(both[0]))
            pool = np.concatenate(both)
            share[part] = estimate(self._run, pool, rows, rows + len(rows))
        keep = share >= self._threshold
        self.by_estimate += len(left)
        self._estimated.append(pack_pairs(left[keep], right[keep]))
        return left[keep], right[keep], share[keep]


def _tiled(
    left: NDArray[np.uint32], right: NDArray[np.uint32], sets: RaggedSets
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the pairs in an order for the cache: sixteen left sets with all their partners.

    Otherwise, where many sets are compared with many others, every set comes from memory again
    for each of its pairs.
    """
    if sets.values.nbytes <= CACHE_BYTES or len(left) < 2 * len(sets):
        return left, right
    # One sort of integers: left without its last four bits, right, then those four bits.
    keys = pack_pairs(left >> np.uint32(4), right)
    keys = keys << np.uint64(4) | (left & np.uint32(15)).astype(np.uint64)
    keys.sort()
    high, right = unpack_pairs(keys >> np.uint64(4))
    return high << np.uint32(4) | (keys & np.uint64(15)).astype(np.uint32), right
