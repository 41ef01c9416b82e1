"""Buckets cut into tiles of documents -> candidate pairs.

The rows of a tile are consecutive. A tile has either one block, and all its pairs are wanted; or a
left and a right block, and a pair has one document of each. Reference in the tests:
`reference_pairs` of tests/spark/test_worker.py.
"""

import numpy as np

from lshdup.kernels.helpers import I64, U8, U32, U64, inlined
from lshdup.kernels.jit import kernel

#: In `splits`: the tile has one block.
ONE_BLOCK = -1
#: In place of the key of a skipped bucket, which makes no pairs. One true key in 2**64 is equal.
NO_KEY = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def _agree_earlier(keys: U64, offsets: I64, p: int, q: int) -> bool:
    """Return whether the documents of two rows share a bucket of an earlier band.

    keys, offsets : the keys of all earlier bands of each row, in order.
    """
    a, b = offsets[p], offsets[q]
    for band in range(offsets[p + 1] - a):
        if keys[a + band] == keys[b + band] and keys[a + band] != NO_KEY:
            return True
    return False


@kernel
def mark_unmet(keys: U64, offsets: I64, starts: I64, splits: I64, unmet: U8) -> None:
    """Set unmet[row] to 1 for rows with a pair in their tile that no earlier band has met.

    keys, offsets : as in `_agree_earlier`.
    starts : int64 array of shape (tiles + 1,), the first row of each tile.
    splits : int64 array of shape (tiles,), the first row of the right block, or ONE_BLOCK.
    unmet : 0 before.
    """
    for tile in range(len(splits)):
        start, split, end = starts[tile], splits[tile], starts[tile + 1]
        for p in range(start, end):
            first, last = start, end
            if split != ONE_BLOCK:
                first, last = (split, end) if p < split else (start, split)
            q = first
            while q < last and not unmet[p]:
                # An unmarked row before p was compared with p: an earlier band has met that pair.
                if q != p and (q > p or unmet[q]) and not _agree_earlier(keys, offsets, p, q):
                    unmet[p] = 1
                    unmet[q] = 1
                q += 1


@kernel
def tile_pairs(
    keys: U64, offsets: I64, starts: I64, splits: I64, state: I64, left: U32, right: U32
) -> int:
    """Fill `left`, `right` with pairs of rows that no earlier band has met; return how many.

    keys, offsets, starts, splits : as in `mark_unmet`.
    state : (tile, p, q) where the last call stopped because the output was full; q is 0 for a new
        p, and p is -1 for a new tile. When all is done, state[0] is the number of tiles.
    """
    n = 0
    tile, p, q = state[0], state[1], state[2]
    while tile < len(splits):
        split, end = splits[tile], starts[tile + 1]
        if p < 0:
            p = starts[tile]
            q = 0
        last = end if split == ONE_BLOCK else split
        while p < last:
            if q == 0:
                q = p + 1 if split == ONE_BLOCK else split
            while q < end:
                if n == len(left):
                    state[0], state[1], state[2] = tile, p, q
                    return n
                if not _agree_earlier(keys, offsets, p, q):
                    left[n] = p
                    right[n] = q
                    n += 1
                q += 1
            p += 1
            q = 0
        tile += 1
        p = -1
    state[0], state[1], state[2] = tile, p, q
    return n
