"""Kernels that find the pairs of a bucket in tiles of documents."""

import numpy as np

from lshdup.kernels.helpers import I64, U8, U32, U64, inlined
from lshdup.kernels.jit import kernel

#: In `splits`: the tile is one block, and all its pairs are wanted.
ONE_BLOCK = -1
#: In place of a key: the bucket is left out, and no pair is met there. One in 2**64 true keys is this.
NO_KEY = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def _agree_earlier(keys: U64, offsets: I64, p: int, q: int) -> bool:
    """Whether two documents of a bucket share one of an earlier band. keys, offsets : each row's keys of all earlier bands, in order."""
    a, b = offsets[p], offsets[q]
    for band in range(offsets[p + 1] - a):
        if keys[a + band] == keys[b + band] and keys[a + band] != NO_KEY:
            return True
    return False


@kernel
def mark_unmet(keys: U64, offsets: I64, starts: I64, splits: I64, unmet: U8) -> None:
    """unmet[row] = 1 for rows that make a pair here which no earlier band has met.

    starts : int64 array of shape (tiles + 1,), the first row of each tile. splits : int64 array of shape (tiles,), the first row of its
    right block, or ONE_BLOCK. unmet : 0 before.
    """
    for tile in range(len(splits)):
        start, split, end = starts[tile], splits[tile], starts[tile + 1]
        for p in range(start, end):
            first, last = start, end
            if split != ONE_BLOCK:
                first, last = (split, end) if p < split else (start, split)
            q = first
            while q < last and not unmet[p]:
                # A row before p without a mark has been held against p, and they have met.
                if q != p and (q > p or unmet[q]) and not _agree_earlier(keys, offsets, p, q):
                    unmet[p] = 1
                    unmet[q] = 1
                q += 1


@kernel
def tile_pairs(
    keys: U64, offsets: I64, starts: I64, splits: I64, state: I64, left: U32, right: U32
) -> int:
    """Fill `left`, `right` with the pairs of rows that the tiles have and no earlier band has met; returns how many.

    Arguments as of `mark_unmet`. state : (tile, p, q) where the last call stopped because the output was full, q 0
    for a new p, and p -1 for a new tile; state[0] == tiles says that all is done.
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
