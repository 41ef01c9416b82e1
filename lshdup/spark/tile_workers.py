"""What Spark's workers do with tiles: rows of a bucket, or of two blocks of it, -> verified pairs.

Functions from Arrow record batches to record batches; nothing of Spark.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.compare.verification import jaccard
from lshdup.errors import InputError
from lshdup.kernels import bands as kernels
from lshdup.spark.workers import ARROW_BYTES, Batches, Recipe, batch_of, ragged, shown_id

#: Schemas, as Spark writes them. side : one of WITHIN, LEFT, RIGHT. before : keys of the bands
#: before the bucket's band, eight little-endian bytes a key.
TILES = "bucket bigint, tile bigint, side int, id binary, before binary"
PAIRS = "a binary, b binary, similarity double, size_a bigint, size_b bigint"

#: Sides of a tile: all pairs of the tile are candidates, or pairs of a left and a right row.
WITHIN, LEFT, RIGHT = 0, 1, 2

#: A key in `before` of a bucket that is skipped.
NO_KEY = kernels.NO_KEY.tobytes()

#: Rows of tiles, and bytes of their sets, that are held at a time, if no tile has more.
ROWS, ROW_BYTES = 1 << 14, 64 << 20

#: Candidate pairs that are verified at a time, 20 bytes a pair, and pairs that are handed on.
CANDIDATES_AT_ONCE, PAIRS_AT_ONCE = 1 << 20, 1 << 14


def unmet_rows(rows: Batches) -> Batches:
    """Return the rows of TILES that make a pair in their tile which no earlier band has met.

    The other rows need no sets: of similar documents, most pairs are met in the first bands.

    rows : TILES, sorted by bucket, tile and side.
    """
    for table, starts, splits in whole_tiles(rows):
        unmet = np.zeros(len(table), np.uint8)
        kernels.mark_unmet(*ragged(table.column("before")), starts, splits, unmet)
        yield from table.take(pa.array(np.flatnonzero(unmet))).to_batches()


def verified_rows(recipe: Recipe, rows: Batches) -> Batches:
    """Return PAIRS at or above the threshold, a before b; size_a, size_b : elements of the sets.

    rows : TILES with a column `set`, sorted by bucket, tile and side.

    Raises InputError for a document that has no set: the second pass could not read it.
    """
    for table, starts, splits in whole_tiles(rows):
        ids = _one_array(table.column("id"))
        if table.column("set").null_count:
            unread = ids.filter(_one_array(pc.is_null(table.column("set"))))[0]
            message = (
                f"{shown_id(unread)} was read once, and could not be read the second time: it has "
                "changed or gone, or its format took too long; let nothing change the documents "
                "meanwhile, or leave it out"
            )
            raise InputError(message)  # a worker's error loses its hint
        sets = RaggedSets(*ragged(table.column("set")))
        before, offsets = ragged(table.column("before"))
        order = pc.rank(ids, tiebreaker="dense").to_numpy()
        left, right = (np.empty(CANDIDATES_AT_ONCE, np.uint32) for _ in range(2))
        state = np.array([0, -1, 0])
        while state[0] < len(splits):
            n = kernels.tile_pairs(before, offsets, starts, splits, state, left, right)
            found = jaccard(Run.quiet(), sets, left[:n], right[:n], threshold=recipe.threshold)
            keep = np.flatnonzero(found >= recipe.threshold)
            swapped = order[left[keep]] > order[right[keep]]
            a = np.where(swapped, right[keep], left[keep])
            b = np.where(swapped, left[keep], right[keep])
            columns = found[keep], sets.sizes[a], sets.sizes[b]
            for start in range(0, len(keep), PAIRS_AT_ONCE):
                part = slice(start, start + PAIRS_AT_ONCE)
                names = [ids.take(pa.array(side[part])) for side in (a, b)]
                yield batch_of(PAIRS, [*names, *(pa.array(column[part]) for column in columns)])


def whole_tiles(rows: Batches) -> Iterator[tuple[Any, NDArray[np.int64], NDArray[np.int64]]]:
    """Yield tables of whole tiles; the first row of each tile, and the end; and `_splits`."""
    held: list[Any] = []
    count = size = 0
    for batch in rows:
        held.append(batch)
        count += len(batch)
        size += batch.nbytes
        if count < ROWS and size < ROW_BYTES:
            continue
        table = pa.Table.from_batches(held)
        starts = _starts(table)
        last = int(starts[-1])  # the next batch may continue the last tile
        if last:
            yield table.slice(0, last), starts, _splits(table, starts)
        held = table.slice(last).to_batches()
        count, size = len(table) - last, sum(batch.nbytes for batch in held)
    if count:
        table = pa.Table.from_batches(held)
        starts = np.append(_starts(table), len(table))
        yield table, starts, _splits(table, starts)


def _starts(table: Any) -> NDArray[np.int64]:
    """Return the first row of each tile."""
    bucket, tile = (table.column(name).to_numpy() for name in ("bucket", "tile"))
    differ = (bucket[1:] != bucket[:-1]) | (tile[1:] != tile[:-1])
    return np.append(0, 1 + np.flatnonzero(differ))


def _splits(table: Any, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first right row of each tile, or ONE_BLOCK."""
    side = table.column("side").to_numpy()[: starts[-1]]
    lefts = np.add.reduceat((side == LEFT).astype(np.int64), starts[:-1])
    return np.where(side[starts[:-1]] == WITHIN, kernels.ONE_BLOCK, starts[:-1] + lefts)


def _one_array(column: Any) -> Any:
    """Return a column of a table as one array. Raise InputError if it is too large."""
    if column.nbytes > ARROW_BYTES:
        message = (
            f"the ids of {len(column):,} documents that share buckets have {column.nbytes:,} "
            "bytes, more than Arrow can hold together; shorter ids are needed"
        )
        raise InputError(message)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
