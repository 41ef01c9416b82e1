"""Buckets -> tiles -> verified pairs on Spark: the stages `candidate_pairs` and `verify`.

A bucket of more than a block is cut into blocks. Two blocks, or one with itself, are a *tile*: the
work of one task, which needs the sets of two blocks at most.
"""

from functools import partial
from typing import TYPE_CHECKING

from lshdup.spark import functions as f
from lshdup.spark.tile_workers import LEFT, PAIRS, RIGHT, TILES, WITHIN, unmet_rows, verified_rows
from lshdup.spark.workers import SETS, Recipe, set_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Most documents, and most bytes of shingles, of a block, as hashes of ids distribute them.
BLOCK_DOCUMENTS = 4096
BLOCK_BYTES = 32 << 20

#: Rows that every executor gets, some sixty bytes a row; more are joined by a shuffle.
BROADCAST_ROWS = 1 << 21


def broadcast_if_small(rows: "DataFrame") -> "DataFrame":
    """Return the rows, to be joined by a broadcast if they are few. rows : cached."""
    return f.broadcast(rows) if rows.count() <= BROADCAST_ROWS else rows


def candidate_rows(buckets: "DataFrame") -> "DataFrame":
    """Return the rows of buckets that make candidate pairs, in their tiles: `tile_workers.TILES`.

    A bucket of B blocks has B (B + 1) / 2 tiles, and a document is in B of them. A document's block
    is a hash of its id. Documents that are not free have blocks of their own, which meet only those
    of the free ones.

    buckets : bucket, id, before, n, shingles; and if not all documents are free: free, and of the
        free documents of the bucket free_n, free_shingles.
    """
    if "free" not in buckets.columns:
        buckets = buckets.withColumns(
            {"free": f.lit(True), "free_n": f.col("n"), "free_shingles": f.col("shingles")}
        )
    free, number = f.col("free"), f.xxhash64("id")
    of_free = count_blocks(f.col("free_n"), f.col("free_shingles"))
    others = f.col("n") - f.col("free_n"), f.col("shingles") - f.col("free_shingles")
    of_others = count_blocks(*others)
    block = f.when(free, f.pmod(number, of_free)).otherwise(of_free + f.pmod(number, of_others))
    last = of_free - 1 + f.when(free, of_others).otherwise(0)
    rows = buckets.withColumn("block", block)
    rows = rows.withColumn("other", f.explode(f.sequence(f.lit(0), last)))
    low, high = f.least("block", "other"), f.greatest("block", "other")
    side = f.when(low == high, WITHIN).when(f.col("block") < f.col("other"), LEFT).otherwise(RIGHT)
    tile = (low * (1 << 31) + high).alias("tile")
    rows = rows.select("bucket", tile, side.alias("side"), "id", "before")
    return _by_tile(rows).mapInArrow(unmet_rows, TILES)


def sets_of(documents: "DataFrame", wanted: "DataFrame", recipe: Recipe) -> "DataFrame":
    """Return the shingle sets of documents with the ids of `wanted`: `workers.SETS`.

    Sets are made again: that is cheaper than to keep the sets of all documents.

    documents : `workers.DOCUMENTS`. wanted : a DataFrame with a column `id`, cached.
    """
    hashes = broadcast_if_small(wanted.select(f.xxhash64("id").alias("hash")).distinct())
    rows = documents.withColumn("hash", f.xxhash64("id")).join(hashes, "hash", "left_semi")
    return rows.drop("hash").mapInArrow(partial(set_rows, recipe), SETS)


def verified_pairs(rows: "DataFrame", sets: "DataFrame", recipe: Recipe) -> "DataFrame":
    """Return the verified pairs of tiles, `tile_workers.PAIRS`; workers raise for lost sets.

    rows : `tile_workers.TILES`.
    sets : of their documents (`sets_of`).
    """
    joined = rows.join(sets, "id", "left").select(*rows.columns, "set")
    return _by_tile(joined).mapInArrow(partial(verified_rows, recipe), PAIRS)


def star_tiles(points: "DataFrame") -> "DataFrame":
    """Return tiles in which each centre is compared with its points, and points are not compared.

    points : rows (centre, id), both ids; cached.
    """
    counts = points.groupBy("centre").agg(f.count("*").alias("n"))
    blocks = f.ceil(f.col("n") / BLOCK_DOCUMENTS).cast("bigint").alias("blocks")
    counts = counts.select("centre", blocks)
    tile = f.explode(f.sequence(f.lit(0).cast("bigint"), f.col("blocks") - 1)).alias("tile")
    left = counts.select("centre", tile, f.lit(LEFT).alias("side"), f.col("centre").alias("id"))
    right = points.join(counts, "centre").select(
        "centre", f.pmod(f.xxhash64("id"), "blocks").alias("tile"), f.lit(RIGHT).alias("side"), "id"
    )
    return left.unionByName(right).select(
        f.xxhash64("centre").alias("bucket"), "tile", "side", "id", f.lit(b"").alias("before")
    )


def count_blocks(n: "Column", shingles: "Column") -> "Column":
    """Return the number of blocks of a bucket of n documents with so many shingles."""
    blocks = f.greatest(f.ceil(n / BLOCK_DOCUMENTS), f.ceil(shingles * 8 / BLOCK_BYTES))
    return blocks.cast("bigint")


def _by_tile(rows: "DataFrame") -> "DataFrame":
    """Bring the rows of a tile together in one partition, left rows first."""
    return rows.repartition("bucket", "tile").sortWithinPartitions("bucket", "tile", "side")
