"""Buckets, or pairs -> groups of documents and their representatives.

`parent` is a forest with the smallest document of a group at its root. For representatives,
documents are numbered by *position*: their place in the order of preference among the documents
that share a bucket. A *leader* is a document that represents itself; a document belongs to the
first leader that is similar enough. Reference: `obvious_groups` of tests/compare/test_clusters.py.
"""

import numpy as np

from lshdup.kernels.bands import NO_BUCKET, differ, may_be_similar, share_earlier
from lshdup.kernels.helpers import F64, I64, U8, U32, U64, U8Matrix, U32Matrix, first_from, inlined
from lshdup.kernels.jit import kernel
from lshdup.kernels.sets import jaccard_of, sizes_allow

#: In place of a bucket, a position or a leader: none.
NONE = NO_BUCKET


@inlined
def find_root(parent: U32, document: int) -> int:
    """Return the root of a document, and halve the path to it."""
    while parent[document] != document:
        parent[document] = parent[parent[document]]
        document = parent[document]
    return document


@kernel
def join_pairs(left: U32, right: U32, parent: U32) -> None:
    """Join the documents left[i] and right[i]; the smaller root stays."""
    for i in range(len(left)):
        a, b = find_root(parent, left[i]), find_root(parent, right[i])
        parent[max(a, b)] = min(a, b)


@kernel
def join_buckets(members: U32, ends: U32, parent: U32) -> None:
    """Join the documents of each bucket; their smallest root stays.

    members, ends : of `bands.shared_buckets`, of one band.
    """
    start = 0
    for i in range(len(ends)):
        end = np.int64(ends[i])
        a = find_root(parent, members[start])
        for p in range(start + 1, end):
            b = find_root(parent, members[p])
            if a < b:
                parent[b] = a
            elif b < a:
                parent[a] = b
                a = b
        start = end


@kernel
def find_roots(parent: U32) -> None:
    """Replace each parent by the root. One ascending pass is enough: roots are the smallest."""
    for d in range(len(parent)):
        parent[d] = parent[parent[d]]


# --- representatives ---


@inlined
def hold_pair(keys: U64, left: int, right: int) -> bool:
    """Return whether left · 2^32 + right is in ascending keys."""
    key = (np.uint64(left) << np.uint64(32)) | np.uint64(right)
    place = first_from(keys, key, len(keys) // 2)
    return place < len(keys) and keys[place] == key


@kernel
def assign_leaders(
    values: U64,
    starts: I64,
    sizes: I64,
    positions: U32,
    origins: U32,
    since: int,
    add: bool,
    threshold: float,
    apart: U64,
    bucket: U32Matrix,
    digests: U8Matrix,
    least: int,
    heads: U32,
    tails: U32,
    following: U32Matrix,
    turns: U32,
    others: U32Matrix,
    leader: U32,
    similarity: F64,
) -> int:
    """Assign to each position the first leader in its buckets that is similar enough.

    values, starts, sizes : the sets; that of position p is values[starts[p]:starts[p] + sizes[p]].
        A position with an empty set has lost it: it leads itself and no other position.
    positions : ascending; those that have a leader are passed over.
    origins : of `bands.differ`, of each position.
    since : leaders before this position are not compared.
    add : whether a position without a leader becomes one.
    apart : ascending keys of the pairs of positions of which neither may lead the other.
    bucket : of `bands.number_buckets`. digests, least : of `bands.may_be_similar`.
    heads, tails, following : the leaders of each bucket as a list in ascending order: from
        heads[bucket] to tails[bucket] by following[position, band].
    turns, others : with origins, others[position, band] is the next leader in the list of another
        origin, for the first one of a run of one origin; the last run begins at turns[bucket].
    leader, similarity : the result.

    Returns the number of similarities that were computed.
    """
    compared = 0
    for i in range(len(positions)):
        v = np.int64(positions[i])
        if leader[v] != NONE:
            continue
        size = sizes[v]
        own = values[starts[v] : starts[v] + size]
        best = NONE
        score = 1.0
        for band in range(bucket.shape[1]):
            if size == 0 or bucket[v, band] == NONE:
                continue
            at = np.int64(heads[bucket[v, band]])
            while at < best:  # NONE, the end of the list, is not below `best`.
                if not differ(origins, at, v):
                    at = np.int64(others[at, band])
                    continue
                if (
                    at >= since
                    and sizes_allow(size, sizes[at], threshold)
                    and may_be_similar(digests, least, at, v)
                    and not share_earlier(bucket, band, at, v)
                ):
                    compared += 1
                    other = values[starts[at] : starts[at] + sizes[at]]
                    found = jaccard_of(own, other, threshold)
                    if found >= threshold and not hold_pair(apart, at, v):
                        best = at
                        score = found
                at = np.int64(following[at, band])
        if best != NONE:
            leader[v] = best
            similarity[v] = score
        elif add:
            leader[v] = v
            similarity[v] = 1.0
            for band in range(bucket.shape[1]):
                cell = bucket[v, band]
                if cell != NONE:
                    following[v, band] = NONE
                    is_turn = heads[cell] == NONE
                    if is_turn:
                        heads[cell] = v
                    else:
                        following[tails[cell], band] = v
                        if len(origins) and origins[tails[cell]] != origins[v]:
                            is_turn = True
                            others[turns[cell], band] = v
                    if is_turn and len(origins):
                        turns[cell] = v
                        others[v, band] = NONE
                    tails[cell] = v
    return compared


@kernel
def have_leaders(
    positions: U32,
    origins: U32,
    sizes: I64,
    threshold: float,
    bucket: U32Matrix,
    digests: U8Matrix,
    least: int,
    heads: U32,
    following: U32Matrix,
    others: U32Matrix,
    out: U8,
) -> None:
    """Set out[i] to whether a bucket of positions[i] has a leader of a size similar enough.

    Parameters are those of `assign_leaders`.
    """
    for i in range(len(positions)):
        v = np.int64(positions[i])
        out[i] = 0
        for band in range(bucket.shape[1]):
            if out[i] == 0 and bucket[v, band] != NONE:
                at = np.int64(heads[bucket[v, band]])
                while at != NONE:
                    if not differ(origins, at, v):
                        at = np.int64(others[at, band])
                        continue
                    may_be = may_be_similar(digests, least, at, v)
                    if may_be and sizes_allow(sizes[v], sizes[at], threshold):
                        out[i] = 1
                        break
                    at = np.int64(following[at, band])


@kernel
def assign_leaders_by_pairs(
    offsets: I64, partners: U32, scores: F64, leader: U32, similarity: F64
) -> None:
    """Make each position without a leader, in order, the leader of its partners without one.

    partners, scores : the later partners of position p and their similarities are at
        offsets[p] … offsets[p + 1] - 1.
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


# --- single linkage ---


@kernel
def unconnected_pairs(
    entries: U32,
    own_ends: I64,
    run_ends: I64,
    bucket_ends: I64,
    band: int,
    bucket: U32Matrix,
    digests: U8Matrix,
    least: int,
    leader: U32,
    parent: U32,
    state: I64,
    left: U32,
    right: U32,
) -> int:
    """Fill `left`, `right` with pairs that share a bucket of a band and are not connected yet.

    Pairs that share a bucket of an earlier band are passed over, and so are pairs of two leaders:
    leaders are not similar enough.

    entries : positions, bucket by bucket, and within a bucket by origin, and by the root they had.
    own_ends, run_ends, bucket_ends : for each entry the end of the entries of its origin, or if all
        are compared of its root; of its origin and root; and of its bucket.
    parent : the forest of connected positions.
    state : (i, j) where the last call stopped because the output was full; when all is done,
        state[0] is the number of entries.

    Returns the number of pairs.
    """
    n = 0
    i, j = state[0], state[1]
    while i < len(entries):
        a = np.int64(entries[i])
        root = find_root(parent, a)
        if j == 0:
            j = own_ends[i]
        while j < bucket_ends[i]:
            b = np.int64(entries[j])
            if find_root(parent, b) == root:
                j = run_ends[j]
                continue
            if not may_be_similar(digests, least, a, b):
                j += 1
                continue
            if not (leader[a] == a and leader[b] == b) and not share_earlier(bucket, band, a, b):
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
