"""Signatures -> band keys, and buckets -> candidate pairs.

A bucket of a band is a run of equal keys in `order`, the documents sorted by key. A bucket may also
be cut into tiles of consecutive rows. A tile has either one block, and all its pairs are wanted; or
a left and a right block, and a pair has one document of each. References in the tests: `candidates`
of tests/reference.py, and `reference_pairs` of tests/spark/test_workers.py.
"""

import numpy as np

from lshdup.kernels.helpers import (
    I64,
    U8,
    U32,
    U64,
    I64Matrix,
    U8Matrix,
    U32Matrix,
    U64Matrix,
    first_from,
    inlined,
    mix64,
)
from lshdup.kernels.jit import kernel

#: In place of the number of a bucket, or of a position: none.
NO_BUCKET = 0xFFFFFFFF
#: Bytes of a digest; fewer than 256.
DIGEST_BYTES = 192
#: In `splits`: the tile has one block.
ONE_BLOCK = -1
#: In place of the key of a skipped bucket, which makes no pairs. One true key in 2**64 is equal.
NO_KEY = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def band_key(signatures: U32Matrix, d: int, band: int, rows: int, buckets: np.uint64) -> np.uint64:
    """Return the 64-bit key of the rows of a band of a document."""
    h = np.uint64(band + 1)
    for j in range(band * rows, (band + 1) * rows):
        h = mix64(h ^ np.uint64(signatures[d, j]))
    return h % buckets if buckets else h


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
            out[band, d] = band_key(signatures, d, band, rows, buckets)


@kernel
def find_buckets(
    order: U32Matrix,
    keys: U64Matrix,
    signatures: U32Matrix,
    rows: int,
    buckets: np.uint64,
    wanted: U64Matrix,
    first: int,
    last: int,
    starts: I64Matrix,
    counts: I64Matrix,
) -> int:
    """Fill starts[band, q] and counts[band, q] with the place in order[band] and the size of the
    bucket with key wanted[band, q], for q from first to last - 1.

    order : of each band, the documents by key and then by number.
    keys : of each band and document; without columns, keys are made as by `band_keys`.

    Returns how many keys were looked at, or -1 if `order` names a document that is not there.
    """
    members, documents, looks = order.shape[1], max(keys.shape[1], len(signatures)), 0
    for q in range(first, last):
        for band in range(len(order)):
            key = wanted[band, q]
            # The keys before `start` and at `end`, as far as known: hashes are spread evenly.
            below, above = -1.0, 18446744073709551616.0
            start, end, turn, hits = 0, members, 0, 0
            is_found = False
            # The first place of the key; then, by steps that double, the last one, which is near.
            low, high, step = 0, members, 1
            while start < end or low < high:
                if start < end:
                    hits += is_found  # Most buckets hold one document: look at the place before.
                    share = 0.5
                    if turn % 3 < 2 and hits < 2 and above > below:
                        share = (np.float64(key) - below) / (above - below)
                    turn += 1
                    place = min(start + np.int64((end - start) * share), end - 1)
                else:
                    place = min(start + step, (low + high) // 2)
                d = order[band, place]
                if d >= documents:
                    return -1
                looks += 1
                at = (
                    keys[band, d] if keys.shape[1] else band_key(signatures, d, band, rows, buckets)
                )
                if start >= end:
                    if at == key:
                        low = place + 1
                        step *= 2
                    else:
                        high = place
                elif at < key:
                    start = low = place + 1
                    below = np.float64(at)
                else:
                    end = place
                    above = np.float64(at)
                    is_found = at == key
            starts[band, q] = start
            counts[band, q] = low - start
    return looks


@kernel
def find_sorted(
    keys: U64Matrix, wanted: U64Matrix, first: int, last: int, starts: I64Matrix, counts: I64Matrix
) -> None:
    """Fill starts[band, q] and counts[band, q] as `find_buckets`, from the ascending keys of each
    band.
    """
    members = keys.shape[1]
    scale = members / 18446744073709551616.0
    for band in range(len(keys) if members else 0):
        own = keys[band]
        for q in range(first, last):
            starts[band, q] = np.int64(np.float64(wanted[band, q]) * scale)
        # Hashes are spread evenly. A look does not wait for that of another key, as in a search.
        for _ in range(2):
            for q in range(first, last):
                place = min(max(starts[band, q], 0), members - 1)
                away = np.float64(wanted[band, q]) - np.float64(own[place])
                starts[band, q] = place + np.int64(away * scale)
        for q in range(first, last):
            key, place = wanted[band, q], min(max(starts[band, q], 0), members - 1)
            start = first_from(own, key, place)
            end = members
            if key + np.uint64(1) != 0:
                end = first_from(own, key + np.uint64(1), start)
            starts[band, q] = start
            counts[band, q] = end - start


@inlined
def bucket_end(keys: U64, order: U32, start: int) -> int:
    """Return the end of the bucket that begins at order[start]."""
    end = start + 1
    while end < len(order) and keys[order[end]] == keys[order[start]]:
        end += 1
    return end


@inlined
def differ(origins: U32, a: int, b: int) -> bool:
    """Return whether two documents, or positions, may be a pair: not if they have one origin.

    origins : of each; empty: all are compared.
    """
    return bool(len(origins) == 0 or origins[a] != origins[b])


@kernel
def shared_buckets(
    keys: U64,
    order: U32,
    origins: U32,
    limit: int,
    counts: U32,
    members: U32,
    ends: U32,
    tally: I64,
) -> int:
    """Fill `members` with the buckets of one band that have pairs; return the number of buckets.

    keys, order : of one band.
    origins : of `differ`, of each document. Buckets of one origin do not count.
    limit : if not 0, larger buckets are skipped. Their members are written behind all others, as
        far as there is room, which is tally[4] documents.
    counts : scratch, 0 for each origin.
    members, ends : the documents of the buckets, and where each bucket ends in them: arrays of the
        length of `order`, and of half of it.
    tally : size and smallest document of the largest bucket; number of skipped buckets, of their
        pairs, and of their documents; pairs of the largest bucket, which has the most.
    """
    count = n = 0
    last = len(members)
    tally[:] = 0
    start = 0
    while start < len(order):
        end = bucket_end(keys, order, start)
        size = end - start
        pairs = size * (size - 1) // 2
        if len(origins) and size > 1:
            for p in range(start, end):
                pairs -= np.int64(counts[origins[order[p]]])
                counts[origins[order[p]]] += np.uint32(1)
            for p in range(start, end):
                counts[origins[order[p]]] = 0
        if pairs > tally[5] or (len(origins) == 0 and size > tally[0]):
            tally[0] = size
            tally[1] = order[start]
            tally[5] = pairs
        if pairs > 0 and limit and size > limit:
            tally[2] += 1
            tally[3] += pairs
            tally[4] += size
            for p in range(start, end):
                last -= 1
                members[last] = order[p]
        elif pairs > 0:
            for p in range(start, end):
                members[n] = order[p]
                n += 1
            ends[count] = n
            count += 1
        start = end
    return count


@kernel
def number_buckets(
    members: U32, ends: U32, position: U32, band: int, first: int, bucket: U32Matrix
) -> None:
    """Set bucket[position[d], band] to the number of the bucket of each of its members d.

    members, ends : of one band. position : NO_BUCKET for documents that are passed over.
    first : number of the first bucket of the band.
    """
    start = 0
    for i in range(len(ends)):
        for p in range(start, np.int64(ends[i])):
            row = position[members[p]]
            if row != NO_BUCKET:
                bucket[row, band] = first + i
        start = np.int64(ends[i])


@inlined
def may_be_similar(digests: U8Matrix, least: int, a: int, b: int) -> bool:
    """Return whether the digests of two positions have `least` bytes in common.

    digests : of DIGEST_BYTES columns; if `least` is 0, none are needed. A number known beforehand
        lets the processor compare 32 or 64 at a time, as does a count of one byte.
    """
    common = np.uint8(0)
    if least > 0:
        for j in range(DIGEST_BYTES):
            common = np.uint8(common + np.uint8(digests[a, j] == digests[b, j]))
    return bool(np.int64(common) >= least)


@inlined
def share_earlier(bucket: U32Matrix, band: int, a: int, b: int) -> bool:
    """Return whether two positions share a bucket of an earlier band."""
    for earlier in range(band):
        if bucket[a, earlier] != NO_BUCKET and bucket[a, earlier] == bucket[b, earlier]:
            return True
    return False


@kernel
def bucket_pairs(
    documents: U32,
    origins: U32,
    bucket: U32Matrix,
    digests: U8Matrix,
    least: int,
    latest: U32,
    others: U32,
    before: U32Matrix,
    state: I64,
    left: U32,
    right: U32,
) -> int:
    """Fill `left`, `right` with the pairs of documents that share a bucket; return their number.

    A pair belongs to the first band in which it agrees, so no set of seen pairs is needed. Each
    position comes with the earlier ones of its bucket, from the last one back. Positions of one
    origin stand together, so all of them begin with the last one of another origin: no step is made
    to a document that is no partner.

    documents : of each position. bucket : of `number_buckets`, of them.
    digests, least : of `may_be_similar`; other pairs are passed over.
    origins : of `differ`, of each position; those of one stand together within what buckets
        connect.
    latest, others : for each bucket the last position so far, and the last one of another origin
        than that: NO_BUCKET before the first call.
    before : scratch, a column a band of the call: the position before each in its bucket.
    state : (position, band, partner or NO_BUCKET) where the last call stopped because the output
        was full, and the first band of the call; it begins with (0, first, NO_BUCKET, first). When
        all is done, state[0] is the number of documents.
    """
    n = 0
    i, band, partner, first = state[0], state[1], state[2], state[3]
    while i < len(documents):
        while band < first + before.shape[1]:
            own = bucket[i, band]
            if own != NO_BUCKET:
                if partner == NO_BUCKET:
                    newest = np.int64(latest[own])
                    if newest != NO_BUCKET and differ(origins, newest, i):
                        others[own] = newest
                    partner = np.int64(others[own])
                while partner != NO_BUCKET:
                    may_be = may_be_similar(digests, least, i, partner)
                    if may_be and not share_earlier(bucket, band, i, partner):
                        if n == len(left):
                            state[0], state[1], state[2] = i, band, partner
                            return n
                        left[n] = min(documents[i], documents[partner])
                        right[n] = max(documents[i], documents[partner])
                        n += 1
                    partner = np.int64(before[partner, band - first])
                before[i, band - first] = latest[own]
                latest[own] = i
            band += 1
        i += 1
        band = first
    state[0], state[1], state[2] = i, band, partner
    return n


# --- tiles ---


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
