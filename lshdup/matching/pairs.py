"""Verified pairs in the order of every output, eight bytes each. Called by pipeline.py, copies.py and store.py.

Similarities are quotients of small numbers: few are different among many pairs. So pairs are kept by similarity, each similarity once,
and a pair is one integer, by which those of equal similarity are in order.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.utils.ragged import distinct, offsets_of, ranges

#: (left, right, similarity): uint32, uint32 and float64 arrays of equal length.
Columns = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]


@dataclass(frozen=True)
class Pairs:
    """Pairs of documents with their similarity, by similarity descending, then by left and right ascending.

    values : float64 array of shape (m,), the different similarities, descending. offsets : int64 array of shape (m + 1,); the pairs of
    similarity values[i] are keys[offsets[i]:offsets[i + 1]]. keys : uint64 array of shape (n_pairs,), left · 2^32 + right, numbers of
    documents, left < right.

    >>> pairs = Pairs.of(np.array([1, 0, 0]), np.array([2, 2, 1]), np.array([0.5, 0.5, 1.0]))
    >>> pairs.left.tolist(), pairs.right.tolist(), pairs.similarity.tolist()
    ([0, 0, 1], [1, 2, 2], [1.0, 0.5, 0.5])
    """

    values: NDArray[np.float64]
    offsets: NDArray[np.int64]
    keys: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def of(
        cls, left: NDArray[np.integer], right: NDArray[np.integer], similarity: NDArray[np.float64]
    ) -> "Pairs":
        """Pairs in any order: integer arrays of numbers of documents below 2^32, float64 array."""
        return gather_pairs([(left.astype(np.uint32), right.astype(np.uint32), similarity)])

    def at_least(self, threshold: float) -> "Pairs":
        """Those of this similarity or more: the first ones, so none is copied."""
        several = int(np.searchsorted(-self.values, -threshold, side="right"))
        return Pairs(
            self.values[:several], self.offsets[: several + 1], self.keys[: self.offsets[several]]
        )

    def part(self, start: int, end: int) -> Columns:
        """Pairs start … end - 1."""
        left, right = unpack_pairs(self.keys[start:end])
        cuts = np.clip(self.offsets, start, end)
        return left, right, np.repeat(self.values, np.diff(cuts))

    @property
    def left(self) -> NDArray[np.uint32]:
        """The first documents: uint32 array of shape (n_pairs,)."""
        return unpack_pairs(self.keys)[0]

    @property
    def right(self) -> NDArray[np.uint32]:
        """The second documents: uint32 array of shape (n_pairs,)."""
        return unpack_pairs(self.keys)[1]

    @property
    def similarity(self) -> NDArray[np.float64]:
        """float64 array of shape (n_pairs,)."""
        return np.repeat(self.values, np.diff(self.offsets))


def pack_pairs(left: NDArray[np.integer], right: NDArray[np.integer]) -> NDArray[np.uint64]:
    """As uint64, left · 2^32 + right: ordered as the pairs are."""
    keys = left.astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= right.astype(np.uint64, copy=False)
    return keys


def unpack_pairs(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """What `pack_pairs` was given, as uint32."""
    return (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)


def contains(keys: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which of `wanted` are in the ascending array `keys`: bool array."""
    if not len(keys):
        return np.zeros(len(wanted), bool)
    found: NDArray[np.bool_] = (
        keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
    )
    return found


def gather_pairs(parts: Iterable[Columns]) -> Pairs:
    """All pairs of all parts, which come in any order, no pair twice.

    Memory: 8 bytes a pair while they come, 16 when they are put together. Cost: a part is sorted by similarity, and the whole by pairs.
    """
    kept = deque(_by_similarity(*part) for part in parts if len(part[0]))
    values = distinct(np.concatenate([np.zeros(0), *(each.values for each in kept)]))[0][::-1]
    sizes = np.zeros(len(values), np.int64)
    for each in kept:
        sizes[_places(values, each.values)] += np.diff(each.offsets)
    offsets = offsets_of(sizes)
    if len(kept) == 1:
        keys = kept[0].keys
    else:
        keys = np.empty(offsets[-1], np.uint64)
        free = offsets[:-1].copy()
        while kept:
            each = kept.popleft()  # and forget it
            places, counts = _places(values, each.values), np.diff(each.offsets)
            keys[ranges(free[places], counts)] = each.keys
            free[places] += counts
    for i in np.flatnonzero(sizes > 1).tolist():
        keys[offsets[i] : offsets[i + 1]].sort()
    return Pairs(values, offsets, keys)


def _by_similarity(
    left: NDArray[np.uint32], right: NDArray[np.uint32], similarity: NDArray[np.float64]
) -> Pairs:
    """One part, in order of similarity only."""
    values, counts = distinct(similarity)
    keys = pack_pairs(left, right)
    if len(values) > 1:
        places = len(values) - 1 - np.searchsorted(values, similarity)
        # NumPy sorts numbers of 16 bits by radix, an order of magnitude faster than larger ones.
        keys = keys[
            np.argsort(
                places.astype(np.uint16 if len(values) <= 1 << 16 else np.uint32), kind="stable"
            )
        ]
    return Pairs(values[::-1], offsets_of(counts[::-1]), keys)


def _places(values: NDArray[np.float64], some: NDArray[np.float64]) -> NDArray[np.int64]:
    """Where values that are all there stand in a descending array."""
    places: NDArray[np.int64] = np.searchsorted(-values, -some)
    return places
