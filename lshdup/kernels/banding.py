"""Signatures -> band keys, and buckets -> candidate pairs.

A bucket of a band is a run of equal keys in `order`, the documents sorted by key. Reference in the
tests: `candidates` of tests/reference.py.
"""

import numpy as np

from lshdup.kernels.helpers import I64, U8, U32, U64, U32Matrix, U64Matrix, inlined, mix64
from lshdup.kernels.jit import kernel
from lshdup.kernels.union_find import join_run

#: In `partners_from`: the document has no partner in its bucket.
NO_PARTNER = 0xFFFFFFFF
#: In place of `split`: pairs of all documents are wanted, not only those across two sides.
NO_SPLIT = -1


@kernel
def band_keys(
    signatures: U32Matrix, first: int, last: int, rows: int, buckets: np.uint64, out: U64Matrix
) -> None:
    """Fill out[band, d] with the 64-bit key of a band's rows, for documents first … last - 1.

    The band number is part of the key, so that equal rows in two bands make different keys.
    buckets : if not 0, the number of buckets that keys are folded into.
    """
    for d in range(first, last):
        for band in range(out.shape[0]):
            row = signatures[d, band * rows : (band + 1) * rows]
            h = np.uint64(band + 1)
            for j in range(rows):
                h = mix64(h ^ np.uint64(row[j]))
            out[band, d] = h % buckets if buckets else h


@kernel
def agree_in_a_band(
    signatures: U32Matrix, bands: int, rows: int, left: U32, right: U32, out: U8
) -> None:
    """Set out[p] to 1 if the signatures of left[p] and right[p] agree in all rows of a band."""
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
def bucket_end(keys: U64, order: U32, start: int) -> int:
    """Return the end of the bucket that begins at order[start]."""
    end = start + 1
    while end < len(order) and keys[order[end]] == keys[order[start]]:
        end += 1
    return end


@inlined
def _border(order: U32, start: int, end: int, split: int) -> int:
    """Return where the documents from number `split` on begin in a bucket."""
    border = start
    while border < end and order[border] < split:
        border += 1
    return border


@kernel
def join_buckets(
    keys: U64, order: U32, split: int, limit: int, parent: U32, skipped: U8, tally: I64
) -> None:
    """Join the documents of each bucket of one band in the forest `parent`.

    keys, order : of one band.
    split : if not NO_SPLIT, buckets count only if they have documents below and from it on, and
        only their pairs across.
    limit : if not 0, larger buckets join nothing and their documents are marked in `skipped`.
    tally : size and smallest document of the largest bucket so far; number of skipped buckets,
        and of their pairs.
    """
    start = 0
    while start < len(order):
        end = bucket_end(keys, order, start)
        size = end - start
        pairs = size * (size - 1) // 2
        if split != NO_SPLIT:
            left = _border(order, start, end, split) - start
            pairs = left * (size - left)
        if (pairs > 0 or split == NO_SPLIT) and size > tally[0]:
            tally[0] = size
            tally[1] = order[start]
        if pairs > 0:
            if limit and size > limit:
                tally[2] += 1
                tally[3] += pairs
                for p in range(start, end):
                    skipped[order[p]] = 1
            else:
                join_run(parent, order, start, end)
        start = end


@kernel
def find_partners(
    keys: U64, order: U32, split: int, limit: int, row_of: U32, band: int, partners_from: U32Matrix
) -> None:
    """Set partners_from[row_of[d], band] to where in `order` the partners of d begin.

    Partners are the later documents of the bucket; with a split, for documents below it, those
    from it on. Documents without partners, or in a bucket of more than `limit` (0: any size),
    keep NO_PARTNER.
    """
    start = 0
    while start < len(order):
        end = bucket_end(keys, order, start)
        if not limit or end - start <= limit:
            if split == NO_SPLIT:
                for p in range(start, end - 1):
                    partners_from[row_of[order[p]], band] = p + 1
            else:
                border = _border(order, start, end, split)
                if border < end:
                    for p in range(start, border):
                        partners_from[row_of[order[p]], band] = border
        start = end


@inlined
def _in_earlier_band(
    keys: U64, partners_from: U32, row: int, band: int, a: np.uint32, b: np.uint32
) -> bool:
    for earlier in range(band):
        # a < b: if a has partners in the bucket, b is one of them.
        if partners_from[row, earlier] != NO_PARTNER and keys[earlier, a] == keys[earlier, b]:
            return True
    return False


@kernel
def bucket_pairs(
    keys: U64Matrix,
    order: U32Matrix,
    documents: U32,
    partners_from: U32Matrix,
    state: I64,
    left: U32,
    right: U32,
) -> int:
    """Fill `left`, `right` with the pairs of documents that share a bucket; return their number.

    A pair belongs to the first band in which it agrees, so no set of seen pairs is needed.

    documents : in the order in which their pairs are wanted.
    partners_from : of `find_partners`, a row for each of the documents.
    state : (row, band, place in order) where the last call stopped because the output was full;
        when all is done, state[0] is the number of documents.
    """
    n = 0
    room = len(left)
    bands, m = order.shape
    row, band, p = state[0], state[1], state[2]
    while row < len(documents):
        a = documents[row]
        while band < bands:
            if p == 0:  # No document has its partners at place 0.
                p = np.int64(partners_from[row, band])
            if p != NO_PARTNER:
                key = keys[band, a]
                while p < m:
                    b = order[band, p]
                    if keys[band, b] != key:
                        break
                    if n == room:
                        state[0], state[1], state[2] = row, band, p
                        return n
                    if not _in_earlier_band(keys, partners_from, row, band, a, b):
                        left[n] = a
                        right[n] = b
                        n += 1
                    p += 1
            band += 1
            p = 0
        row += 1
        band = 0
    state[0], state[1], state[2] = row, band, p
    return n
