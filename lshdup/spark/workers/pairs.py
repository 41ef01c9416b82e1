"""What Spark's workers do with tiles: rows of a bucket, or of two blocks of it, -> verified pairs.

Functions from Arrow record batches to record batches; nothing of Spark.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lshdup.errors import InputError
from lshdup.kernels import tiles
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.sample_plan import SamplePlan
from lshdup.matching import measures, similarity
from lshdup.spark.recipe import Recipe
from lshdup.spark.workers.documents import Batches
from lshdup.spark.workers.sets import ARROW_BYTES, SET_BYTES, shown_id
from lshdup.utils.arrow import batch_of, ragged
from lshdup.utils.ragged import RaggedSets

#: Schemas, as Spark writes them. side : one of WITHIN, LEFT, RIGHT. before : keys of the bands
#: before the bucket's band, eight little-endian bytes a key.
TILES = "bucket binary, tile bigint, side int, id binary, before binary"
PAIRS_FOUND = "a binary, b binary, score double, size_a bigint, size_b bigint, candidates bigint"

#: Sides of a tile: all pairs of the tile are candidates, or pairs of a left and a right row.
WITHIN, LEFT, RIGHT = 0, 1, 2

#: A key in `before` of a bucket that is skipped.
NO_KEY = tiles.NO_KEY.tobytes()

#: Rows of tiles that are held at a time, if no tile has more.
ROWS = 1 << 14

#: Candidate pairs that are verified at a time, 20 bytes a pair, and pairs that are handed on.
PAIRS = 1 << 20
PAIRS_GIVEN = 1 << 14


def unmet_rows(rows: Batches) -> Batches:
    """Return the rows of TILES that make a pair in their tile which no earlier band has met.

    The other rows need no sets: of similar documents, most pairs are met in the first bands.

    rows : TILES, sorted by bucket, tile and side.
    """
    for table, starts, splits in whole_tiles(rows):
        unmet = np.zeros(len(table), np.uint8)
        tiles.mark_unmet(*ragged(table.column("before")), starts, splits, unmet)
        keep = np.flatnonzero(unmet)
        if len(keep):
            yield from table.take(pa.array(keep)).to_batches()


def verified_rows(recipe: Recipe, rows: Batches) -> Batches:
    """Return PAIRS_FOUND: pairs at or above the threshold, a before b.

    Of pairs of containment, a is inside b: the smaller set, or of equal sizes the first id.

    score : of the measure of the recipe.
    size_a, size_b : elements of the sets.
    candidates : number of verified candidate pairs, in one row of a batch of them, else 0; without
        pairs that row stands alone, and its other columns are null.

    rows : TILES with a column `set`, sorted by bucket, tile and side.

    Raises InputError for a document that has no set: the second pass could not read it.
    """
    for table, starts, splits in whole_tiles(rows):
        if table.column("set").null_count:
            table = _with_sets(table)
            starts = np.append(_starts(table), len(table))
            splits = _splits(table, starts)
        sets = RaggedSets(*ragged(table.column("set")))
        sizes = sets.sizes
        before, offsets = ragged(table.column("before"))
        ids = one_array(table.column("id"))
        order = ranks(ids)
        left, right = np.empty(PAIRS, np.uint32), np.empty(PAIRS, np.uint32)
        state = np.array([0, -1, 0])
        while state[0] < len(splits):
            n = tiles.tile_pairs(before, offsets, starts, splits, state, left, right)
            if not n:
                continue
            if isinstance(recipe.plan, BandPlan):
                found = similarity.jaccard(sets, left[:n], right[:n], threshold=recipe.threshold)
            else:
                found = measures.containment(sets, left[:n], right[:n]).real
            keep = np.flatnonzero(found >= recipe.threshold)
            a, b = left[keep], right[keep]
            swapped = order[a] > order[b]
            if isinstance(recipe.plan, SamplePlan):
                swapped = (sizes[a] > sizes[b]) | (swapped & (sizes[a] == sizes[b]))
            a, b = np.where(swapped, b, a), np.where(swapped, a, b)
            counts = np.zeros(max(len(keep), 1), np.int64)
            counts[0] = n
            if not len(keep):
                types = (pa.binary(), pa.binary(), pa.float64(), pa.int64(), pa.int64())
                nulls = [pa.nulls(1, each) for each in types]
                yield batch_of(PAIRS_FOUND, [*nulls, pa.array(counts)])
            columns = (found[keep], sizes[a], sizes[b], counts)
            for start in range(0, len(keep), PAIRS_GIVEN):
                part = slice(start, start + PAIRS_GIVEN)
                names = [ids.take(pa.array(side[part])) for side in (a, b)]
                numbers = [pa.array(column[part]) for column in columns]
                yield batch_of(PAIRS_FOUND, [*names, *numbers])


def _with_sets(table: Any) -> Any:
    """Return the rows with sets; raise InputError if a document has only rows without a set.

    A row without a set may be of a skipped document that has the same id as another. A document
    that only the first pass could read would lose its pairs in silence.
    """
    valid = pc.is_valid(table.column("set"))
    found, missing = table.filter(valid), table.filter(pc.invert(valid)).column("id")
    unread = missing.filter(pc.invert(pc.is_in(missing, found.column("id"))))
    if len(unread):
        message = (
            f"{shown_id(unread[0])} was read once, and could not be read the second time: it has "
            "changed or gone, or its format took too long; let nothing change the documents "
            "meanwhile, leave it out, or raise --format-seconds"
        )
        raise InputError(message)  # a worker's error loses its hint
    return found


def whole_tiles(rows: Batches) -> Iterator[tuple[Any, NDArray[np.int64], NDArray[np.int64]]]:
    """Yield tables of whole tiles; the first row of each tile, and the end; and `_splits`."""
    held: list[Any] = []
    count = size = 0
    for batch in rows:
        held.append(batch)
        count += len(batch)
        size += batch.nbytes
        if count < ROWS and size < SET_BYTES:
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
    bucket, tile = one_array(table.column("bucket")), table.column("tile").to_numpy()
    differ = pc.not_equal(bucket.slice(1), bucket.slice(0, len(bucket) - 1)).to_numpy(
        zero_copy_only=False
    )
    return np.concatenate([[0], 1 + np.flatnonzero(differ | (tile[1:] != tile[:-1]))])


def _splits(table: Any, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first right row of each tile, or ONE_BLOCK."""
    side = table.column("side").to_numpy()[: starts[-1]]
    lefts = np.add.reduceat((side == LEFT).astype(np.int64), starts[:-1])
    return np.where(side[starts[:-1]] == WITHIN, tiles.ONE_BLOCK, starts[:-1] + lefts)


def one_array(column: Any) -> Any:
    """Return a column of a table as one array. Raise InputError if it is too large."""
    if column.nbytes > ARROW_BYTES:
        message = (
            f"the ids of {len(column):,} documents that share buckets have {column.nbytes:,} "
            "bytes, more than Arrow can hold together"
        )
        raise InputError(message, "give documents shorter ids")
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def ranks(ids: Any) -> NDArray[np.int64]:
    """Return the rank of each id in the byte order of ids."""
    ranks: NDArray[np.int64] = pc.rank(ids, tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks
