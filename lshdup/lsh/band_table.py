"""Signatures -> band table: the documents of each bucket.

Two documents are candidates if they agree in all rows of a band, and so share a bucket there.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lshdup.base.memory import release_pages, rows_of
from lshdup.base.ragged import ranges
from lshdup.base.run import Run, run_in_parts
from lshdup.kernels import bands as kernels
from lshdup.kernels.sets import order_by_key
from lshdup.lsh.band_plan import BandPlan

#: A table is often asked if it was asked for more than a few documents, and for one in so many of
#: its own.
_FEW, _OFTEN = 32, 8192

#: Members of bands that a thread sorts or looks at, at least.
_MEMBERS_AT_LEAST = 4096


class BandTable:
    """The buckets of a collection: a bucket of band i is a run of equal ``keys[i, order[i]]``.

    keys : uint64 array of shape (bands, n_docs), the key of every document in every band.
    order : uint32 array of shape (bands, m), the m members by key and then by number.
    """

    def __init__(self, keys: NDArray[np.uint64], order: NDArray[np.uint32]) -> None:
        self._keys, self.order = keys, order
        self.documents, self._asked = keys.shape[1], 0

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

    def find(
        self, keys: NDArray[np.uint64], jobs: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return the buckets of keys, a uint64 array of shape (bands, q).

        Returns how many documents each bucket has, an int64 array of shape (bands, q), and the
        documents, bucket by bucket: a uint32 array. Raise IndexError if the table is damaged.

        Cost: for each key a look at about 2 log log m places of the table, because keys are hashes
        and so spread evenly; at most 3 log m if they are not. A table that is often asked keeps its
        sorted keys, 8 bytes a document and band, in which a key is found in a tenth of the time.
        """
        starts, counts = np.zeros((2, *keys.shape), np.int64)
        looks = [0]

        def look(some: slice) -> None:
            span = some.start, some.stop
            looks.append(
                kernels.find_buckets(self.order, *self._source, keys, *span, starts, counts)
            )

        def look_up(some: slice) -> None:
            span = some.start, some.stop
            kernels.find_sorted(self._sorted_keys, keys, *span, starts, counts)

        self._asked += keys.shape[1]
        is_often = self._asked > _FEW + self.documents // _OFTEN
        run_in_parts(keys.shape[1], jobs, look_up if is_often else look)
        if min(looks) < 0:
            message = "a document that is not there"
            raise IndexError(message)
        starts += np.arange(len(self.order))[:, np.newaxis] * self.order.shape[1]
        return counts, self.order.reshape(-1)[ranges(starts.ravel(), counts.ravel())]

    @cached_property
    def _sorted_keys(self) -> NDArray[np.uint64]:
        """The keys in the order of each band: uint64 array of shape (bands, m)."""
        return self._sort(self.keys.copy())

    def _sort(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the keys, which are overwritten, in the order of each band."""
        placed = keys.reshape(-1)[: self.order.size].reshape(self.order.shape)
        for band, order in enumerate(self.order):
            placed[band] = made = keys[band][order]
            if (made[1:] < made[:-1]).any():
                message = "buckets that are not in order"
                raise IndexError(message)
        return placed

    def release(self) -> None:
        """Let go of what can be had again: keys that signatures make, and the memory of a mapped
        table, of which the system maps up to a megabyte around each look.
        """
        self.__dict__.pop("keys", None)
        for mapped in (self.order, self._source[1]):
            release_pages(mapped)

    @property
    def _source(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32], int, np.uint64]:
        """What `find_buckets` makes keys of: keys, signatures, rows and buckets."""
        return self._keys, np.zeros((0, 0), np.uint32), 0, np.uint64(0)


class SignedBandTable(BandTable):
    """A band table whose keys are made from signatures when they are requested.

    A query needs the keys of few documents. Those of all are kept until `release`.

    signatures : uint32 array of shape (n_docs, K). plan : the bands. order : as of `BandTable`.
    """

    def __init__(
        self, run: Run, signatures: NDArray[np.uint32], plan: BandPlan, order: NDArray[np.uint32]
    ) -> None:
        self._run, self._signatures, self._plan, self.order = run, signatures, plan, order
        self.documents, self._asked = len(signatures), 0

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """The key of every document in every band: uint64 array of shape (bands, n_docs)."""
        return band_keys(self._run, self._signatures, self._plan)

    def keys_of(self, document: int) -> NDArray[np.uint64]:
        """Return the keys of a document: uint64 array of shape (bands,)."""
        keys = band_keys(self._run, self._signatures[document : document + 1], self._plan)[:, 0]
        release_pages(self._signatures)
        return keys

    @cached_property
    def _sorted_keys(self) -> NDArray[np.uint64]:
        return self._sort(band_keys(self._run, self._signatures, self._plan))

    @property
    def _source(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32], int, np.uint64]:
        plan = self._plan
        return np.zeros((0, 0), np.uint64), self._signatures, plan.rows, np.uint64(plan.buckets)


def band_keys(run: Run, signatures: NDArray[np.uint32], plan: BandPlan) -> NDArray[np.uint64]:
    """Return the key of every signature in every band.

    Equal rows in two bands make different keys (R3: a separate bucket array per band).

    signatures : uint32 array of shape (n, K).

    Returns a uint64 array of shape (bands, n).
    """
    keys: NDArray[np.uint64] = run.arrays.empty((plan.bands, len(signatures)), np.uint64)
    buckets = np.uint64(plan.buckets)
    run_in_parts(
        len(signatures),
        run.jobs,
        lambda part: kernels.band_keys(signatures, part.start, part.stop, plan.rows, buckets, keys),
    )
    return keys


def build_band_table(
    run: Run, signatures: NDArray[np.uint32], members: NDArray[np.int64], plan: BandPlan
) -> BandTable:
    """Return the band table of signatures.

    signatures : uint32 array of shape (n, K).
    members : ascending int64 array of shape (m,), the documents in buckets; others have keys only.

    Cost: one pass over the signatures, and one over the keys of each band. Memory: 4 m bytes a
    band, of the run, and until `release` 8 n; and bounded scratch a thread.
    """
    keys = band_keys(run, signatures, plan)
    table = SignedBandTable(run, signatures, plan, sort_keys(run, keys, members).order)
    table.keys = keys
    return table


def bands_at_least(members: int) -> int:
    """Return how many bands of so many members are worth a thread."""
    return 1 + _MEMBERS_AT_LEAST // (members + 1)


def sort_keys(run: Run, keys: NDArray[np.uint64], members: NDArray[np.int64]) -> BandTable:
    """Return the band table of keys, a uint64 array of shape (bands, n)."""
    order: NDArray[np.uint32] = run.arrays.empty((len(keys), len(members)), np.uint32)
    scratch = scratch_bytes(run, run.jobs)

    def sort(bands: slice) -> None:
        for band in range(bands.start, bands.stop):
            for _ in sort_by_key(keys[band], members, order[band], scratch):
                pass

    run_in_parts(len(keys), run.jobs, sort, least=bands_at_least(len(members)))
    return BandTable(keys, order)


# --- documents sorted by 64-bit keys, in memory that does not grow with their number ---


#: Bytes of scratch for one sort at most, and at least.
MOST_SCRATCH, LEAST_SCRATCH = 128 << 20, 4 << 20

#: Bytes of scratch for a document: its key, two counts, its number.
_BYTES = 24

#: Documents whose keys are looked at together.
_AT_ONCE = 1 << 20


def scratch_bytes(run: Run, sorts: int = 1) -> int:
    """Return the bytes for one of some sorts at a time: a small share of the memory of the run."""
    return max(LEAST_SCRATCH, min(MOST_SCRATCH, run.memory // 16 // sorts))


def sort_by_key(
    keys: NDArray[np.uint64],
    members: NDArray[np.int64] | None,
    order: NDArray[np.uint32],
    scratch: int,
) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
    """Sort documents by key and then by number, one range of keys after the other.

    Parameters
    ----------
    keys : uint64 array of shape (n,), the key of each document.
    members : ascending int64 array of shape (m,), the documents to sort; None: all n.
    order : uint32 array of shape (m,), which is filled with the sorted documents.
    scratch : bytes to work in, if keys are spread evenly as hashes are: a range may hold more
        documents otherwise.

    Yields the slice of `order` that a range fills and its sorted keys: equal keys are in one range.

    Cost: one pass over the keys for each range, and one step a document.

    """
    m = len(order)
    count = max(1, -(-_BYTES * m // scratch))
    if count == 1:
        whole = np.arange(m) if members is None else members
        yield slice(0, m), _sort(keys, whole, order)
        return

    def look(start: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        part = slice(start, min(start + _AT_ONCE, m))
        if members is None:
            return rows_of(part), keys[part]
        return members[part], keys[members[part]]

    ends = [(each.min(), each.max()) for _, each in map(look, range(0, m, _AT_ONCE))]
    low, high = int(min(ends)[0]), max(int(end) for _, end in ends)
    at = 0
    for first, after in pairwise(low + (high + 1 - low) * i // count for i in range(count + 1)):
        found = []
        for some, each in map(look, range(0, m, _AT_ONCE)):
            found.append(some[(each >= np.uint64(first)) & (each <= np.uint64(max(after - 1, 0)))])
        mine = np.concatenate(found)
        if after > first and len(mine):
            part = slice(at, at + len(mine))
            yield part, _sort(keys, mine, order[part])
            at = part.stop


def _sort(
    keys: NDArray[np.uint64], members: NDArray[np.int64], order: NDArray[np.uint32]
) -> NDArray[np.uint64]:
    """Fill `order` with the sorted members; return their keys."""
    sorted_keys = np.empty(len(members), np.uint64)
    counts = np.empty(2 * len(members) + 2, np.uint32)
    order_by_key(keys, members, counts, sorted_keys, order)
    return sorted_keys
