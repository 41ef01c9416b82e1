"""Signature rows -> band keys, and buckets -> candidate pairs. Called by bands.py and candidates.py."""

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.jit import inlined, kernel, mix64

U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


@kernel
def band_keys(signatures: U32, first: int, last: int, rows: int, buckets: np.uint64, out: U64) -> None:
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


@inlined
def _met_before(keys: U64, band: int, a: np.uint64, b: np.uint64) -> bool:
    for earlier in range(band):
        if keys[earlier, a] == keys[earlier, b]:
            return True
    return False


@kernel
def bucket_pairs(keys: U64, order: U32, band: int, state: I64, left: I64, right: I64) -> int:
    """Fill `left`, `right` with the pairs of documents whose first common bucket is in this band; returns how many.

    `order` lists documents by their key in this band, ascending within a bucket. `state` holds (bucket's start, i, j): where the last
    call stopped, because the output was full; state[0] == len(order) says the band is done. A pair has met before if
    it agrees in an earlier band, so no set of seen pairs is needed.
    """
    n = 0
    room = len(left)
    mine = keys[band]
    start, i, j = state[0], state[1], state[2]
    while start < len(order):
        key = mine[order[start]]
        end = start + 1
        while end < len(order) and mine[order[end]] == key:
            end += 1
        while i < end:
            a = order[i]
            while j < end:
                if n == room:
                    state[0], state[1], state[2] = start, i, j
                    return n
                b = order[j]
                if not _met_before(keys, band, a, b):
                    left[n] = a
                    right[n] = b
                    n += 1
                j += 1
            i += 1
            j = i + 1
        start = end
        i = start
        j = i + 1
    state[0], state[1], state[2] = start, i, j
    return n
