"""Signatures -> band table: the documents of each bucket.

Two documents are candidates if they agree in all rows of a band, and so share a bucket there.
"""

from bisect import bisect_right
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import IN_MEMORY, Arrays
from lshdup.base.parallel import run_in_parts
from lshdup.kernels import bands as kernels
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.key_order import scratch_bytes, sort_by_key


class BandTable:
    """The buckets of a collection: a bucket of band i is a run of equal ``keys[i, order[i]]``.

    keys : uint64 array of shape (bands, n_docs), the key of every document in every band.
    order : uint32 array of shape (bands, m), the m members by key and then by number.
    """

    def __init__(self, keys: NDArray[np.uint64], order: NDArray[np.uint32]) -> None:
        self._keys, self.order = keys, order
        self.documents = keys.shape[1]

    @property
    def keys(self) -> NDArray[np.uint64]:
        """The key of every document in every band: uint64 array of shape (bands, n_docs)."""
        return self._keys

    def is_in_order(self) -> bool:
        """Return whether `order` is sorted and has no document twice in a band.

        Kernels rely on both. Cost: a pass over the table.
        """
        for keys, order in zip(self.keys, self.order, strict=True):
            sorted_keys = keys[order]
            before, after = sorted_keys[:-1], sorted_keys[1:]
            if not ((before < after) | ((before == after) & (order[:-1] < order[1:]))).all():
                return False
        return True

    def keys_of(self, document: int) -> NDArray[np.uint64]:
        """Return the keys of a document: uint64 array of shape (bands,)."""
        return self._keys[:, document]

    def bucket(self, band: int, key: np.uint64) -> NDArray[np.uint32]:
        """Return the documents with this key in this band.

        Cost: a look at about 2 log log m places of the table, because keys are hashes and so spread
        evenly; at most 3 log m if they are not.
        """
        order, wanted = self.order[band], int(key)

        def key_at(place: int) -> int:
            return int(self.keys_of(int(order[place]))[band])

        start, end = 0, len(order)
        below, above = -1, 1 << 64  # The keys before `start` and at `end`, as far as known.
        looks = hits = 0
        while start < end:
            share = (wanted - below) / (above - below)
            if above == wanted:
                hits += 1  # Most buckets hold one document: at first, look at the place before.
            if looks % 3 == 2 or hits > 1:
                share = 0.5
            looks += 1
            middle = min(start + int((end - start) * share), end - 1)
            found = key_at(middle)
            if found < wanted:
                start, below = middle + 1, found
            else:
                end, above = middle, found
        step = 1  # Most buckets hold a few documents: their end is near.
        while start + step < len(order) and key_at(start + step) == wanted:
            step *= 2
        stop = bisect_right(range(min(start + step, len(order))), wanted, start, key=key_at)
        bucket: NDArray[np.uint32] = order[start:stop]
        return bucket


class StoredBandTable(BandTable):
    """A band table of which only the order is stored: keys are made from signatures.

    A query needs the keys of few documents. All keys are made when they are requested together.

    signatures : uint32 array of shape (n_docs, K). plan : the bands. order : as of `BandTable`.
    jobs : threads that make all keys. arrays : makes their array.
    """

    def __init__(
        self,
        signatures: NDArray[np.uint32],
        plan: BandPlan,
        order: NDArray[np.uint32],
        jobs: int,
        arrays: Arrays,
    ) -> None:
        self._signatures, self._plan, self.order, self._jobs = signatures, plan, order, jobs
        self._arrays = arrays
        self.documents = len(signatures)

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """The key of every document in every band: uint64 array of shape (bands, n_docs)."""
        return band_keys(np.asarray(self._signatures), self._plan, self._jobs, self._arrays)

    def keys_of(self, document: int) -> NDArray[np.uint64]:
        """Return the keys of a document: uint64 array of shape (bands,)."""
        return band_keys(self._signatures[document : document + 1], self._plan)[:, 0]


def band_keys(
    signatures: NDArray[np.uint32], plan: BandPlan, jobs: int = 1, arrays: Arrays = IN_MEMORY
) -> NDArray[np.uint64]:
    """Return the key of every signature in every band.

    Equal rows in two bands make different keys (R3: a separate bucket array per band).

    signatures : uint32 array of shape (n, K).

    Returns a uint64 array of shape (bands, n).
    """
    keys: NDArray[np.uint64] = arrays.empty((plan.bands, len(signatures)), np.uint64)
    buckets = np.uint64(plan.buckets)
    run_in_parts(
        len(signatures),
        jobs,
        lambda part: kernels.band_keys(signatures, part.start, part.stop, plan.rows, buckets, keys),
    )
    return keys


def build_band_table(
    signatures: NDArray[np.uint32],
    members: NDArray[np.int64],
    plan: BandPlan,
    jobs: int = 1,
    arrays: Arrays = IN_MEMORY,
) -> BandTable:
    """Return the band table of signatures.

    signatures : uint32 array of shape (n, K).
    members : ascending int64 array of shape (m,), the documents in buckets; others have keys only.
    arrays : makes the arrays of the table.

    Cost: one pass over the signatures, and one over the keys of each band. Memory: 8 n + 4 m bytes
    a band, which `arrays` makes, and bounded scratch a thread.
    """
    return sort_keys(band_keys(signatures, plan, jobs, arrays), members, jobs, arrays)


def sort_keys(
    keys: NDArray[np.uint64], members: NDArray[np.int64], jobs: int = 1, arrays: Arrays = IN_MEMORY
) -> BandTable:
    """Return the band table of keys, a uint64 array of shape (bands, n)."""
    order: NDArray[np.uint32] = arrays.empty((len(keys), len(members)), np.uint32)
    scratch = scratch_bytes(arrays.limit, jobs)

    def sort(bands: slice) -> None:
        for band in range(bands.start, bands.stop):
            for _ in sort_by_key(keys[band], members, order[band], scratch):
                pass

    run_in_parts(len(keys), jobs, sort, least=1)
    return BandTable(keys, order)
