"""Signatures -> band table: the S-curve, the choice of bands and rows, the keys. Called by pipeline.py.

K rows are cut into b bands of r. Two documents are candidates if they agree in all rows of some band: with probability
1 - (1 - s^r)^b at similarity s (R3). More rows a band: fewer candidates, more misses. More bands: the reverse, and a larger table.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import banding as kernels
from lshdup.kernels import ordering
from lshdup.lsh.band_plan import BandPlan
from lshdup.utils.parallel import run_in_parts
from lshdup.utils.ragged import Check, trusted


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
            middle = low + (
                min(size * (wanted - below) // (above - below), size - 1) if guess else size // 2
            )
            found = key_at(middle)
            if found < wanted:
                low, below = middle + 1, found
            else:
                high, above = middle, found
            guess = (
                2 * (high - low) <= size
            )  # one that did not do even that is followed by a halving
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
    run_in_parts(
        len(signatures),
        jobs,
        lambda part: kernels.band_keys(signatures, part.start, part.stop, plan.rows, buckets, keys),
    )
    return keys


def build_band_table(
    signatures: NDArray[np.uint32], members: NDArray[np.int64], plan: BandPlan, jobs: int = 1
) -> BandTable:
    """The band table of the documents `members` (ascending int64 array); the others have keys but are in no bucket.

    Cost: one pass over the signatures, and one over the keys of each band. Memory: 8 (n) + 4 (m) bytes a band, and 16 (m) a thread.
    """
    return table_of_keys(band_keys(signatures, plan, jobs), members, jobs)


def table_of_keys(keys: NDArray[np.uint64], members: NDArray[np.int64], jobs: int = 1) -> BandTable:
    """The band table of keys that are made: uint64 array of shape (bands, n)."""
    order = np.empty((len(keys), len(members)), np.uint32)

    def sort(bands: slice) -> None:
        counts = np.empty(2 * len(members) + 2, np.uint32)
        spare = np.empty(len(members), np.uint64)
        for band in range(bands.start, bands.stop):
            ordering.order_by_key(keys[band], members, counts, spare, order[band])

    run_in_parts(len(keys), jobs, sort, least=1)
    return BandTable(keys, order)
