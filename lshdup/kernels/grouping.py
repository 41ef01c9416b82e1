"""Buckets -> groups: who represents whom. Called by clusters.py.

Documents are numbered here by *position*, in the order in which they are preferred among those that buckets connect. So the earliest
representative that a document finds is the one it belongs to.
"""

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.helpers import inlined
from lshdup.kernels.jit import kernel
from lshdup.kernels.sets import jaccard_of, sizes_allow

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

#: No bucket, no position, no representative yet.
NONE = 0xFFFFFFFF


@kernel
def number_buckets(
    keys: U64, order: U32, limit: int, position: U32, band: int, first: int, bucket: U32
) -> int:
    """bucket[position[d], band] = number of the bucket of d in this band, from `first` on; returns the number after the last.

    Buckets of one document, and of more than `limit` if that is not 0, have none; nor have documents of position NONE. keys, order : one
    band.
    """
    start = 0
    while start < len(order):
        key = keys[order[start]]
        end = start + 1
        while end < len(order) and keys[order[end]] == key:
            end += 1
        if end - start > 1 and not (limit and end - start > limit):
            for p in range(start, end):
                if position[order[p]] != NONE:
                    bucket[position[order[p]], band] = first
            first += 1
        start = end
    return first


@inlined
def _met_before(bucket: U32, band: int, a: int, b: int) -> bool:
    for earlier in range(band):
        if bucket[a, earlier] != NONE and bucket[a, earlier] == bucket[b, earlier]:
            return True
    return False


@kernel
def lead(
    values: U64,
    starts: I64,
    sizes: I64,
    some: U32,
    since: int,
    grow: bool,
    threshold: float,
    bucket: U32,
    heads: U32,
    tails: U32,
    following: U32,
    leader: U32,
    similarity: F64,
) -> int:
    """Each position of `some` (ascending) without a leader gets the first leader in its buckets that is similar enough; returns how many
    similarities were looked at.

    Leaders of a bucket are a list in the order of their positions: heads[bucket], then following[position, band]. grow : who finds none
    becomes a leader and is added to the lists. since : leaders before this position were looked at already.
    values : of the sets at hand; that of position p is ``values[starts[p]:starts[p] + sizes[p]]``. A position whose set is empty has lost
    it: it leads itself, and nobody else.
    """
    compared = 0
    for i in range(len(some)):
        v = np.int64(some[i])
        if leader[v] != NONE:
            continue
        size = sizes[v]
        best = NONE
        score = 1.0
        if size:
            own = values[starts[v] : starts[v] + size]
            for band in range(bucket.shape[1]):
                if bucket[v, band] == NONE:
                    continue
                at = np.int64(heads[bucket[v, band]])
                while at < best:  # the end of the list is not
                    if (
                        at >= since
                        and sizes_allow(size, sizes[at], threshold)
                        and not _met_before(bucket, band, at, v)
                    ):
                        compared += 1
                        found = jaccard_of(
                            own, values[starts[at] : starts[at] + sizes[at]], threshold
                        )
                        if found >= threshold:
                            best = at
                            score = found
                    at = np.int64(following[at, band])
        if best != NONE:
            leader[v] = best
            similarity[v] = score
        elif grow:
            leader[v] = v
            similarity[v] = 1.0
            if size:
                for band in range(bucket.shape[1]):
                    cell = bucket[v, band]
                    if cell != NONE:
                        following[v, band] = NONE
                        if heads[cell] == NONE:
                            heads[cell] = v
                        else:
                            following[tails[cell], band] = v
                        tails[cell] = v
    return compared


@kernel
def has_leaders(
    some: U32, sizes: I64, threshold: float, bucket: U32, heads: U32, following: U32, out: U8
) -> None:
    """out[i] = whether a bucket of some[i] has a leader of a size that allows the threshold."""
    for i in range(len(some)):
        v = np.int64(some[i])
        out[i] = 0
        for band in range(bucket.shape[1]):
            if out[i] == 0 and bucket[v, band] != NONE:
                at = np.int64(heads[bucket[v, band]])
                while at != NONE:
                    if sizes_allow(sizes[v], sizes[at], threshold):
                        out[i] = 1
                        break
                    at = np.int64(following[at, band])


@kernel
def forget_leaders(some: U32, bucket: U32, heads: U32) -> None:
    """Empty the lists of all buckets of these positions."""
    for i in range(len(some)):
        for band in range(bucket.shape[1]):
            if bucket[some[i], band] != NONE:
                heads[bucket[some[i], band]] = NONE


@kernel
def lead_by_pairs(offsets: I64, partners: U32, scores: F64, leader: U32, similarity: F64) -> None:
    """Each position without a leader, in order, leads itself and those of its later partners that have none yet.

    partners, scores : those of position p are at offsets[p] … offsets[p + 1] - 1.
    """
    for v in range(len(leader)):
        if leader[v] == NONE:
            leader[v] = v
            similarity[v] = 1.0
            for at in range(offsets[v], offsets[v + 1]):
                other = partners[at]
                if leader[other] == NONE:
                    leader[other] = v
                    similarity[other] = scores[at]


# --- single linkage ---------------------------------------------------------------------------------------------------------------


@inlined
def _root(parent: U32, at: int) -> int:
    while parent[at] != at:
        parent[at] = parent[parent[at]]
        at = np.int64(parent[at])
    return at


@kernel
def unconnected_pairs(
    entries: U32,
    run_ends: I64,
    bucket_ends: I64,
    band: int,
    bucket: U32,
    leader: U32,
    parent: U32,
    state: I64,
    left: U32,
    right: U32,
) -> int:
    """Fill `left`, `right` with pairs of positions that share a bucket of this band, were not met in an earlier one, and are not connected
    yet; returns how many.

    entries : positions, bucket by bucket, and within one by the root they had. run_ends, bucket_ends : for each entry where the entries of
    its root end, and those of its bucket. Two leaders are known not to be similar enough. state : (i, j) where the last call stopped,
    because the output was full; state[0] == len(entries) says that all is done.
    """
    n = 0
    i, j = state[0], state[1]
    while i < len(entries):
        a = np.int64(entries[i])
        root = _root(parent, a)
        if j == 0:
            j = run_ends[i]
        while j < bucket_ends[i]:
            b = np.int64(entries[j])
            if _root(parent, b) == root:
                j = run_ends[j]
                continue
            if not (leader[a] == a and leader[b] == b) and not _met_before(bucket, band, a, b):
                if n == len(left):
                    state[0], state[1] = i, j
                    return n
                left[n] = min(a, b)
                right[n] = max(a, b)
                n += 1
            j += 1
        i += 1
        j = 0
    state[0], state[1] = i, j
    return n
