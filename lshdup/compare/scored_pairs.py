"""Verified pairs in output order, eight bytes each.

Similarities are quotients of small numbers, so many pairs have few different ones. Each is stored
once, and a pair is one integer that sorts the pairs of equal similarity.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import distinct, offsets_of, ranges
from lshdup.base.run import Run

#: Similarities, float64; or scores of containment, complex128 (`compare.containment`).
Scores = NDArray[Any]

#: Pairs that are merged while further ones come.
RUN = 1 << 21

#: (left, right, similarity): uint32 and uint32 arrays and scores, of equal length.
Columns = tuple[NDArray[np.uint32], NDArray[np.uint32], Scores]


@dataclass(frozen=True)
class Pairs:
    """Pairs of documents by similarity descending, then by left and right ascending.

    values : scores, of shape (m,), the different similarities, descending.
    offsets : int64 array of shape (m + 1,); the pairs of similarity values[i] are
        keys[offsets[i]:offsets[i + 1]].
    keys : uint64 array of shape (n_pairs,), left · 2^32 + right, which are documents. left < right,
        but where scores are of containment: there left is inside right.

    >>> run = Run.quiet()
    >>> pairs = Pairs.of(run, np.array([1, 0, 0]), np.array([2, 2, 1]), np.array([0.5, 0.5, 1.0]))
    >>> pairs.left.tolist(), pairs.right.tolist(), pairs.similarity.tolist()
    ([0, 0, 1], [1, 2, 2], [1.0, 0.5, 0.5])
    """

    values: Scores
    offsets: NDArray[np.int64]
    keys: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def of(
        cls, run: Run, left: NDArray[np.integer], right: NDArray[np.integer], similarity: Scores
    ) -> "Pairs":
        """Return pairs given in any order.

        left, right : integer arrays of shape (n_pairs,), documents below 2^32, as in `keys`.
        similarity : scores, of shape (n_pairs,).
        """
        return gather_pairs(run, [(left.astype(np.uint32), right.astype(np.uint32), similarity)])

    def at_least(self, threshold: float) -> "Pairs":
        """Return the pairs with at least this similarity, as a view: they are the first ones."""
        count = int(np.searchsorted(-self.values, -threshold, side="right"))
        return Pairs(
            self.values[:count], self.offsets[: count + 1], self.keys[: self.offsets[count]]
        )

    def where(
        self,
        run: Run,
        condition: Callable[[NDArray[np.uint32], NDArray[np.uint32]], NDArray[np.bool_]],
    ) -> "Pairs":
        """Return the pairs for which a condition of left and right documents holds."""
        keys, arrays = self.keys, run.arrays
        rows = arrays.where(len(keys), lambda some: condition(*unpack_pairs(keys[some])))
        offsets = np.searchsorted(rows, self.offsets)
        stays = np.flatnonzero(np.diff(offsets))
        return Pairs(
            self.values[stays], np.append(offsets[stays], len(rows)), arrays.take(keys, rows)
        )

    def part(self, start: int, end: int) -> Columns:
        """Return the pairs start … end - 1."""
        left, right = unpack_pairs(self.keys[start:end])
        cuts = np.clip(self.offsets, start, end)
        return left, right, np.repeat(self.values, np.diff(cuts))

    @property
    def left(self) -> NDArray[np.uint32]:
        """Return the left documents: uint32 array of shape (n_pairs,)."""
        return unpack_pairs(self.keys)[0]

    @property
    def right(self) -> NDArray[np.uint32]:
        """Return the right documents: uint32 array of shape (n_pairs,)."""
        return unpack_pairs(self.keys)[1]

    @property
    def similarity(self) -> Scores:
        """Return the similarities: scores, of shape (n_pairs,)."""
        return np.repeat(self.values, np.diff(self.offsets))


def pack_pairs(left: NDArray[np.integer], right: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return left · 2^32 + right: uint64 array that sorts as the pairs do."""
    keys = left.astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= right.astype(np.uint64, copy=False)
    return keys


def pack_unordered(a: NDArray[np.integer], b: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return `pack_pairs` of pairs with the lower number left."""
    return pack_pairs(np.minimum(a, b), np.maximum(a, b))


def unpack_pairs(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return left and right of `pack_pairs`, as uint32 arrays."""
    return (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)


def contains(keys: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of `wanted` are in the ascending array `keys`: bool array."""
    if not len(keys):
        return np.zeros(len(wanted), bool)
    nearest = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)]
    is_there: NDArray[np.bool_] = nearest == wanted
    return is_there


def hold_pairs(
    keys: NDArray[np.uint64], left: NDArray[np.integer], right: NDArray[np.integer]
) -> NDArray[np.bool_]:
    """Return which pairs are in ascending keys of pairs with the lower number left: bool array."""
    return contains(keys, pack_unordered(left, right))


def take_pairs(keys: NDArray[np.uint64], documents: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the pairs within some documents, by the places of these in an ascending array."""
    left, right = unpack_pairs(keys)
    within = contains(documents, left) & contains(documents, right)
    places = (np.searchsorted(documents, each[within]) for each in (left, right))
    return pack_pairs(*places)


def gather_pairs(
    run: Run, parts: Iterable[Columns], scores: type[np.number[Any]] = np.float64
) -> Pairs:
    """Return all pairs of all parts.

    parts : columns in any order; no pair is in two of them.
    scores : type of the scores, which no pair might tell.

    Memory: 8 bytes a pair while the parts come, 16 while they are merged, of the run; and 32
    bytes for each of RUN pairs. A value that many pairs have is sorted where it is.
    """
    merged: list[Pairs] = []
    waiting: list[Pairs] = []
    n = 0
    for part in parts:
        if len(part[0]):
            waiting.append(_by_similarity(*part))
            n += len(part[0])
        if n >= RUN:
            merged.append(_merge(run, waiting))
            n = 0
    merged.extend(waiting)
    whole = _merge(run, merged)
    for i in np.flatnonzero(np.diff(whole.offsets) > 1).tolist():
        whole.keys[whole.offsets[i] : whole.offsets[i + 1]].sort()
    return whole if len(whole) else Pairs(whole.values.astype(scores), whole.offsets, whole.keys)


def _merge(run: Run, parts: list[Pairs]) -> Pairs:
    """Return the pairs of all parts by similarity only, and empty the list."""
    values = distinct(np.concatenate([np.zeros(0), *(part.values for part in parts)]))[0][::-1]
    sizes = np.zeros(len(values), np.int64)
    for part in parts:
        sizes[np.searchsorted(-values, -part.values)] += np.diff(part.offsets)
    offsets = offsets_of(sizes)
    if len(parts) == 1:
        return parts.pop()
    keys = run.arrays.empty(int(offsets[-1]), np.uint64)
    ends = offsets[:-1].copy()
    while parts:
        part = parts.pop()  # Its memory is free after this round.
        at, counts = np.searchsorted(-values, -part.values), np.diff(part.offsets)
        keys[ranges(ends[at], counts)] = part.keys
        ends[at] += counts
    return Pairs(values, offsets, keys)


def _by_similarity(
    left: NDArray[np.uint32], right: NDArray[np.uint32], similarity: Scores
) -> Pairs:
    """Return one part, sorted by similarity only."""
    values, counts = distinct(similarity)
    keys = pack_pairs(left, right)
    if len(values) > 1:
        rank = len(values) - 1 - np.searchsorted(values, similarity)
        # NumPy sorts numbers of 16 bits by radix, an order of magnitude faster than larger ones.
        rank = rank.astype(np.uint16 if len(values) <= 1 << 16 else np.uint32)
        keys = keys[np.argsort(rank, kind="stable")]
    return Pairs(values[::-1], offsets_of(counts[::-1]), keys)
