"""Signatures -> band table: the S-curve, the choice of bands and rows, the keys. Called by pipeline.py.

K rows are cut into b bands of r. Two documents are candidates if they agree in all rows of some band: with probability
1 - (1 - s^r)^b at similarity s (R3). More rows a band: fewer candidates, more misses. More bands: the reverse, and a larger table.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.errors import ParameterError
from lshdup.kernels import banding as kernels
from lshdup.kernels import ordering
from lshdup.params import MAX_PERMS, BandParams
from lshdup.utils.parallel import in_parts
from lshdup.utils.ragged import Check, trusted


def collision_probability(similarity: float, bands: int, rows: int) -> float:
    """Chance that two documents share a bucket: 1 - (1 - s^r)^b (R3).

    >>> [round(collision_probability(s / 10, 20, 5), 4) for s in range(2, 9)]
    [0.0064, 0.0475, 0.186, 0.4701, 0.8019, 0.9748, 0.9996]
    """
    if similarity >= 1.0:
        return 1.0
    return -math.expm1(bands * math.log1p(-math.pow(similarity, rows)))


def collision_probabilities(similarity: NDArray[np.float64], bands: int, rows: int) -> NDArray[np.float64]:
    """`collision_probability` of every element of a float64 array, of the same shape."""
    with np.errstate(divide="ignore"):
        chances: NDArray[np.float64] = -np.expm1(bands * np.log1p(-(similarity**rows)))
    return chances


def half_point(bands: int, rows: int) -> float:
    """The similarity at which the S-curve is exactly 1/2: (1 - 2^(-1/b))^(1/r).

    >>> [round(half_point(b, r), 4) for r, b in ((3, 10), (6, 20), (5, 50))]
    [0.4061, 0.5694, 0.4244]
    """
    return math.pow(-math.expm1(-math.log(2.0) / bands), 1.0 / rows)


def half_point_estimate(bands: int, rows: int) -> float:
    """The threshold as R3 approximates it: (1/b)^(1/r), where the curve is about 1 - 1/e, not 1/2.

    >>> [round(half_point_estimate(b, r), 4) for r, b in ((3, 10), (6, 20), (5, 50))]
    [0.4642, 0.607, 0.4573]
    """
    return math.pow(1.0 / bands, 1.0 / rows)


@dataclass(frozen=True)
class BandPlan:
    """How many bands of how many rows, and for which threshold they were planned."""

    bands: int
    rows: int
    threshold: float
    recall: float
    buckets: int = 0

    def miss(self, similarity: float) -> float:
        """Chance to miss a pair of this similarity."""
        return 1.0 - collision_probability(similarity, self.bands, self.rows)

    @property
    def keeps_promise(self) -> bool:
        """Whether a pair at the threshold is met with the chance that was asked for."""
        return collision_probability(self.threshold, self.bands, self.rows) >= self.recall


def plan_bands(perms: int, params: BandParams) -> BandPlan:
    """The recall contract: the largest r, with b = K // r, that meets a pair of similarity t with chance >= recall.

    The largest r gives the fewest accidental candidates among those that keep the promise. `bands` or `rows` override the choice;
    one of them alone makes the other K // it. Raises ParameterError if they need more than K rows, or if no r keeps the promise; the
    error names the smallest K that would.

    >>> plan_bands(128, BandParams(threshold=0.9))
    BandPlan(bands=12, rows=10, threshold=0.9, recall=0.99, buckets=0)
    """
    bands, rows = params.bands, params.rows
    if bands or rows:
        bands = bands or perms // rows
        rows = rows or perms // bands
        if not (bands and rows) or bands * rows > perms:
            message = f"{bands or 1} bands of {rows or 1} rows need {max(bands, 1) * max(rows, 1)} rows; signatures have {perms}"
            raise ParameterError(message, f"use --perms {max(bands, 1) * max(rows, 1)}, or fewer bands or rows")
    else:
        rows = _largest_rows(perms, params)
        if not rows:
            # One row a band finds most: b bands of it are enough from b = log(1 - recall) / log(1 - t) on.
            enough = math.ceil(math.log1p(-params.recall) / math.log1p(-params.threshold))
            message = f"{perms} rows cannot meet a pair of similarity {params.threshold:g} with chance {params.recall:g}"
            hint = f"use --perms {enough}" if enough <= MAX_PERMS else "raise --threshold or lower --recall"
            raise ParameterError(message, f"{hint}; or choose --bands and --rows yourself")
        bands = perms // rows
    return BandPlan(bands, rows, params.threshold, params.recall, params.buckets)


def _largest_rows(perms: int, params: BandParams) -> int:
    for rows in range(perms, 0, -1):
        if collision_probability(params.threshold, perms // rows, rows) >= params.recall:
            return rows
    return 0


def _nothing_is_mapped() -> None:
    """For tables in memory."""


@dataclass(frozen=True)
class BandTable:
    """Which documents share which bucket.

    keys : uint64 array of shape (bands, n_docs), every document's key in every band. order : uint32 array of shape (bands, m), the m
    documents that take part, by key and then by number. A bucket of band i is a run of equal ``keys[i, order[i]]``. unmap : lets go of the
    memory of what was touched, if both are mapped from a file: systems map up to a megabyte around each touch. check : told what of them
    is looked up, by `keys_of` and `bucket`.
    """

    keys: NDArray[np.uint64]
    order: NDArray[np.uint32]
    unmap: Callable[[], None] = _nothing_is_mapped
    check: Check = trusted

    def is_in_order(self) -> bool:
        """Whether `order` is as promised, so that no document is twice in a band: kernels rely on it. Looks at all of the table."""
        for keys, order in zip(self.keys, self.order, strict=True):
            sorted_keys = keys[order]
            before, after = sorted_keys[:-1], sorted_keys[1:]
            if not ((before < after) | ((before == after) & (order[:-1] < order[1:]))).all():
                return False
        return True

    def keys_of(self, document: int) -> NDArray[np.uint64]:
        """A document's keys: uint64 array of shape (bands,). Of a mapped table no more than the page of one stays in memory."""
        keys = np.empty(len(self.keys), np.uint64)
        for band in range(len(keys)):
            self.check(self.keys[band], document, document + 1)
            keys[band] = self.keys[band, document]
            self.unmap()
        return keys

    def bucket(self, band: int, key: np.uint64) -> NDArray[np.uint32]:
        """The documents with this key in this band.

        Keys are hashes: where one stands can be guessed from its size. A few guesses touch a few pages of a mapped table, where a binary
        search would touch forty; keys folded into few buckets are found by the binary steps between the guesses.
        """
        keys, order = self.keys[band], self.order[band]
        wanted = int(key)

        def key_at(place: int) -> int:
            self.check(order, place, place + 1)
            document = int(order[place])
            self.check(keys, document, document + 1)
            return int(keys[document])

        # Before `low` all are smaller than `wanted`, the largest of them `below`; from `high` on none is, the smallest of them `above`.
        low, high, below, above = 0, len(order), 0, 1 << 64
        guess = True
        while low < high:
            size = high - low
            middle = low + (min(size * (wanted - below) // (above - below), size - 1) if guess else size // 2)
            found = key_at(middle)
            if found < wanted:
                low, below = middle + 1, found
            else:
                high, above = middle, found
            guess = 2 * (high - low) <= size  # one that did not do even that is followed by a halving
        size = 1
        while low + size <= len(order) and key_at(low + size - 1) == wanted:
            size *= 2
        fits = size // 2  # so many have the key; the one at `size`, if there is one, has not
        while size - fits > 1:
            middle = (fits + size) // 2
            if low + middle <= len(order) and key_at(low + middle - 1) == wanted:
                fits = middle
            else:
                size = middle
        self.check(order, low, low + fits)
        bucket: NDArray[np.uint32] = order[low : low + fits]
        return bucket


def band_keys(signatures: NDArray[np.uint32], plan: BandPlan, jobs: int = 1) -> NDArray[np.uint64]:
    """Keys of every signature in every band: uint64 array of shape (bands, n).

    Equal rows in different bands make different keys (R3: a separate bucket array per band).
    """
    keys = np.empty((plan.bands, len(signatures)), np.uint64)
    buckets = np.uint64(plan.buckets)
    in_parts(len(signatures), jobs, lambda part: kernels.band_keys(signatures, part.start, part.stop, plan.rows, buckets, keys))
    return keys


def band_table(signatures: NDArray[np.uint32], members: NDArray[np.int64], plan: BandPlan, jobs: int = 1) -> BandTable:
    """The band table of the documents `members` (ascending int64 array); the others have keys but are in no bucket.

    Cost: one pass over the signatures, and one over the keys of each band. Memory: 8 (n) + 4 (m) bytes a band, and 16 (m) a thread.
    """
    return ordered(band_keys(signatures, plan, jobs), members, jobs)


def ordered(keys: NDArray[np.uint64], members: NDArray[np.int64], jobs: int = 1) -> BandTable:
    """The band table of keys that are made: uint64 array of shape (bands, n)."""
    order = np.empty((len(keys), len(members)), np.uint32)

    def sort(bands: slice) -> None:
        counts = np.empty(2 * len(members) + 2, np.uint32)
        spare = np.empty(len(members), np.uint64)
        for band in range(bands.start, bands.stop):
            ordering.order_by_key(keys[band], members, counts, spare, order[band])

    in_parts(len(keys), jobs, sort, least=1)
    return BandTable(keys, order)
