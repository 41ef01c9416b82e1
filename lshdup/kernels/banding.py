"""Signature rows -> band keys, and buckets -> candidate pairs. Called by bands.py and candidates.py."""

import numpy as np

from lshdup.kernels.helpers import I64, U8, U32, U64, inlined, mix64
from lshdup.kernels.jit import kernel
from lshdup.kernels.union_find import _join

#: In the places of `bucket_places`: no document follows in this bucket.
LAST = 0xFFFFFFFF


@kernel
def band_keys(
    signatures: U32, first: int, last: int, rows: int, buckets: np.uint64, out: U64
) -> None:
    """out[band, d] = 64-bit key of rows band*rows … of signature d, for d from `first` to `last`; folded into `buckets` if that is not 0.

    The band's number is in the key, so that equal rows in different bands make different keys.
    """
    for d in range(first, last):
        for band in range(out.shape[0]):
            row = signatures[d, band * rows : (band + 1) * rows]
            h = np.uint64(band + 1)
            for j in range(rows):
                h = mix64(h ^ np.uint64(row[j]))
            out[band, d] = h % buckets if buckets else h


@kernel
def agree_in_a_band(signatures: U32, bands: int, rows: int, left: U32, right: U32, out: U8) -> None:
    """out[p] = 1 if the signatures of left[p] and right[p] have the same rows in any of so many bands of so many rows, else 0."""
    for p in range(len(left)):
        a = signatures[left[p]]
        b = signatures[right[p]]
        out[p] = 0
        for band in range(bands):
            j = band * rows
            end = j + rows
            while j < end and a[j] == b[j]:
                j += 1
            if j == end:
                out[p] = 1
                break


@inlined
def _bucket_end(keys: U64, order: U32, start: int) -> int:
    end = start + 1
    while end < len(order) and keys[order[end]] == keys[order[start]]:
        end += 1
    return end


@inlined
def _border(order: U32, start: int, end: int, split: int) -> int:
    """Where documents from `split` on begin in a bucket."""
    border = start
    while border < end and order[border] < split:
        border += 1
    return border


@kernel
def join_buckets(keys: U64, order: U32, limit: int, parent: U32, skipped: U8, tally: I64) -> None:
    """Join the documents of each bucket of one band: afterwards they have the same root, the smallest of all joined.

    keys, order : one band. limit : larger buckets join nothing, and their documents are marked in `skipped`; 0: none is too large.
    tally : size and first document of the largest bucket so far; number of buckets left out, and of pairs in them.
    """
    start = 0
    while start < len(order):
        end = _bucket_end(keys, order, start)
        size = end - start
        if size > tally[0]:
            tally[0] = size
            tally[1] = order[start]
        if limit and size > limit:
            tally[2] += 1
            tally[3] += size * (size - 1) // 2
            for p in range(start, end):
                skipped[order[p]] = 1
        elif size > 1:
            _join(parent, order, start, end)
        start = end


@kernel
def join_sides(
    keys: U64, order: U32, split: int, limit: int, parent: U32, skipped: U8, tally: I64
) -> None:
    """As `join_buckets`, of buckets with documents of both sides only, and of their pairs across: one side's numbers are below `split`."""
    start = 0
    while start < len(order):
        end = _bucket_end(keys, order, start)
        border = _border(order, start, end, split)
        size = end - start
        if start < border < end:
            if size > tally[0]:
                tally[0] = size
                tally[1] = order[start]
            if limit and size > limit:
                tally[2] += 1
                tally[3] += (border - start) * (end - border)
                for p in range(start, end):
                    skipped[order[p]] = 1
            else:
                _join(parent, order, start, end)
        start = end


@kernel
def largest_buckets(keys: U64, order: U32, sizes: I64, firsts: I64) -> None:
    """The largest buckets of one band, largest first, and the first document of each; of equal ones, those with the lower keys.

    sizes, firsts : as many as are wanted, and sizes 0 before.
    """
    start = 0
    while start < len(order):
        end = _bucket_end(keys, order, start)
        at = len(sizes)
        while at > 0 and end - start > sizes[at - 1]:
            at -= 1
            if at + 1 < len(sizes):
                sizes[at + 1] = sizes[at]
                firsts[at + 1] = firsts[at]
        if at < len(sizes):
            sizes[at] = end - start
            firsts[at] = order[start]
        start = end


@kernel
def first_of_equal(keys: U64, order: U32, firsts: I64) -> None:
    """firsts[d] = the first document with d's key. keys, order : keys ascending, and their documents, ascending where keys are equal. A
    document of key 0 is its own first.
    """
    first = np.uint32(0)
    for i in range(len(order)):
        if i == 0 or keys[i] != keys[i - 1] or keys[i] == 0:
            first = order[i]
        firsts[order[i]] = first


@kernel
def bucket_places(keys: U64, order: U32, limit: int, rows: U32, band: int, places: U32) -> None:
    """places[rows[d], band] = where in `order` the documents begin that follow d in its bucket, if any do and it is not too large."""
    start = 0
    while start < len(order):
        end = _bucket_end(keys, order, start)
        if not limit or end - start <= limit:
            for p in range(start, end - 1):
                places[rows[order[p]], band] = p + 1
        start = end


@kernel
def places_across(
    keys: U64, order: U32, split: int, limit: int, rows: U32, band: int, places: U32
) -> None:
    """places[rows[d], band] = where in `order` the other side begins in d's bucket, for d below `split`, if there is one, not too large."""
    start = 0
    while start < len(order):
        end = _bucket_end(keys, order, start)
        border = _border(order, start, end, split)
        if start < border < end and (not limit or end - start <= limit):
            for p in range(start, border):
                places[rows[order[p]], band] = border
        start = end


@inlined
def _met_before(keys: U64, places: U32, v: int, band: int, a: np.uint32, b: np.uint32) -> bool:
    for earlier in range(band):
        # a < b: if the bucket counts, b follows a in it.
        if places[v, earlier] != LAST and keys[earlier, a] == keys[earlier, b]:
            return True
    return False


@kernel
def bucket_pairs(
    keys: U64, order: U32, visit: U32, places: U32, state: I64, left: U32, right: U32
) -> int:
    """Fill `left`, `right` with pairs of documents that share a bucket, each once; returns how many.

    visit : the documents in the order in which their pairs are wanted; a document's partners are those from its place in its buckets on.
    places : of `bucket_places` or `places_across`, a row for each visit. state : (visit, band, place) where the last call stopped, because
    the output was full; state[0] == len(visit) says that all is done. A pair is met in the first band in which it agrees, so no set of seen
    pairs is needed.
    """
    n = 0
    room = len(left)
    bands, m = order.shape
    v, band, p = state[0], state[1], state[2]
    while v < len(visit):
        a = visit[v]
        while band < bands:
            if p == 0:  # no document follows at place 0
                p = np.int64(places[v, band])
            if p != LAST:
                key = keys[band, a]
                while p < m:
                    b = order[band, p]
                    if keys[band, b] != key:
                        break
                    if n == room:
                        state[0], state[1], state[2] = v, band, p
                        return n
                    if not _met_before(keys, places, v, band, a, b):
                        left[n] = a
                        right[n] = b
                        n += 1
                    p += 1
            band += 1
            p = 0
        v += 1
        band = 0
    state[0], state[1], state[2] = v, band, p
    return n


# --- buckets that are cut into tiles (Spark) ----------------------------------------------------------------------------------
#
# Rows of a tile stand together. Either all its pairs are wanted, or it has a left and a right block, and pairs of one from each are.
