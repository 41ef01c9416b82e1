"""Buckets -> tiles -> verified pairs on Spark: the stages `candidate_pairs` and `verify`.

A bucket of more than a block is cut into blocks. Two blocks, or one with itself, are a *tile*: the
work of one task, which needs the sets of two blocks at most.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from lshdup.spark import functions as f
from lshdup.spark.caching import cache
from lshdup.spark.recipe import Recipe
from lshdup.spark.sources import Source, map_documents, select_documents
from lshdup.spark.workers import pairs as worker_pairs
from lshdup.spark.workers.sets import SETS, set_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

#: Most documents, and most bytes of shingles, of a block, as hashes of ids distribute them.
BLOCK_DOCUMENTS = 4096
BLOCK_BYTES = 32 << 20

#: Counts of larger buckets are broadcast, so that no task gets all rows of one bucket.
MANY_ROWS = 1 << 17


def candidate_pairs(
    buckets: "DataFrame",
    sources: tuple[Source, ...],
    recipe: Recipe,
    covered: "DataFrame | None" = None,
) -> "Tiles":
    """Return the tiles of buckets, whose rows make candidate pairs.

    buckets : rows as of `comparison.Comparison.compared`.
    covered : ids of documents that need no pairs with each other; None if all pairs are wanted.
    """
    counts = None
    if covered is None:
        rows = buckets.withColumns(
            {"free": f.lit(True), "free_n": f.col("n"), "free_shingles": f.col("shingles")}
        )
    else:
        known = covered.select("id", f.lit(True).alias("covered"))
        free = f.col("covered").isNull()
        rows = buckets.join(known, "id", "left").withColumn("free", free).drop("covered")
        counts = count_free(rows)
        rows = with_counts(rows.drop("n", "shingles"), counts)
    rows = cut(rows).select("bucket", "tile", "side", "id", "before")
    unmet = by_tile(rows).mapInArrow(worker_pairs.unmet_rows, worker_pairs.TILES)
    return Tiles(cache(unmet), sources, recipe, counts)


def count_free(rows: "DataFrame") -> "DataFrame":
    """Return a row for each bucket with free documents, cached: bucket, and the counts of `cut`.

    rows : bucket, size, n, shingles, free.
    """
    size = f.when(f.col("free"), f.col("size")).otherwise(0)
    counts = rows.groupBy("bucket").agg(
        f.max("n").alias("n"),
        f.max("shingles").alias("shingles"),
        f.count_if("free").alias("free_n"),
        f.sum(size).alias("free_shingles"),
    )
    return cache(counts.where("free_n > 0"))


def cut(rows: "DataFrame") -> "DataFrame":
    """Return the rows of buckets in their tiles: `tile` and `side` are added.

    A bucket of B blocks has B (B + 1) / 2 tiles, and a document is in B of them. A document's block
    is a hash of its id. Documents that are not free have blocks of their own, which meet only those
    of the free ones.

    rows : bucket, id, free; and of the bucket n, shingles, and of its free documents free_n,
        free_shingles.
    """
    of_free = _blocks(f.col("free_n"), f.col("free_shingles"))
    of_covered = _blocks(f.col("n") - f.col("free_n"), f.col("shingles") - f.col("free_shingles"))
    number, block, other = f.xxhash64("id"), f.col("block"), f.col("other")
    own_block = f.when(f.col("free"), f.pmod(number, of_free)).otherwise(
        of_free + f.pmod(number, of_covered)
    )
    last = of_free - 1 + f.when(f.col("free"), of_covered).otherwise(0)
    rows = rows.withColumns({"block": own_block, "other": f.explode(f.sequence(f.lit(0), last))})
    side = (
        f.when(block == other, worker_pairs.WITHIN)
        .when(block < other, worker_pairs.LEFT)
        .otherwise(worker_pairs.RIGHT)
    )
    tile = f.least(block, other) * (1 << 31) + f.greatest(block, other)
    return rows.withColumns({"tile": tile, "side": side})


def with_counts(rows: "DataFrame", counts: "DataFrame") -> "DataFrame":
    """Return the rows of counted buckets, with the columns of the counts.

    counts : a cached row for each wanted bucket, with its number of rows, n.
    """
    large = counts.where(f.col("n") > MANY_ROWS)
    if large.isEmpty():
        return rows.join(counts, "bucket")
    small = counts.where(f.col("n") <= MANY_ROWS)
    others = rows.join(f.broadcast(large.select("bucket")), "bucket", "left_anti")
    return rows.join(f.broadcast(large), "bucket").unionByName(others.join(small, "bucket"))


@dataclass(frozen=True)
class Tiles:
    """Rows that make candidate pairs in their tiles, and the pairs that are verified.

    rows : `workers.pairs.TILES`, cached until `close`, like `bucket_counts`.
    sources : the documents, whose sets are made again.
    """

    rows: "DataFrame"
    sources: tuple[Source, ...]
    recipe: Recipe
    bucket_counts: "DataFrame | None" = None

    def close(self) -> None:
        """Let Spark drop the cached rows."""
        for rows in (self.rows, self.bucket_counts):
            if rows is not None:
                rows.unpersist()

    @cached_property
    def counts(self) -> tuple[int, int]:
        """Number of rows, and of their documents."""
        documents = f.count_distinct("id").alias("documents")
        row = self.rows.agg(f.count("*").alias("rows"), documents).collect()[0]
        return row.rows, row.documents

    @cached_property
    def verified(self) -> "DataFrame":
        """Pairs at or above the threshold, and counts of candidates: `PAIRS_FOUND` of workers."""
        sets = sets_of(self.sources, self.rows, self.counts[1], self.recipe)
        return verify(self.rows, sets, self.recipe).observe(
            self._observed, f.sum("candidates").alias("candidates"), f.count("a").alias("pairs")
        )

    @cached_property
    def _observed(self) -> "Observation":
        from pyspark.sql import Observation

        return Observation("verified")

    def found(self) -> dict[str, int]:
        """Return the numbers of candidate pairs and of pairs, once `pairs` has been evaluated.

        A task that ran again for a lost executor counts again.
        """
        counted = self._observed.get if self.counts[0] else {}
        return {name: int(counted.get(name) or 0) for name in ("candidates", "pairs")}

    @cached_property
    def pairs(self) -> "DataFrame":
        """a, b (binary), score, size_a, size_b: pairs of distinct sets, a before b."""
        return self.verified.where("a is not null").drop("candidates")


def sets_of(
    sources: tuple[Source, ...], wanted: "DataFrame", n: int, recipe: Recipe
) -> "DataFrame":
    """Return the shingle sets (id, set) of n documents, and of a few others (`sift`).

    Sets are made again: that is cheaper than to keep the sets of all documents.

    wanted : a DataFrame with the ids of the documents.
    """
    selected = select_documents(sources, wanted, n)
    return map_documents(selected, partial(set_rows, recipe), SETS)


def verify(rows: "DataFrame", sets: "DataFrame", recipe: Recipe) -> "DataFrame":
    """Return the verified pairs of tiles, `workers.pairs.PAIRS_FOUND`; workers raise for lost sets.

    rows : `workers.pairs.TILES`.
    sets : of their documents (`sets_of`).
    """
    joined = rows.join(sets, "id").select("bucket", "tile", "side", "id", "before", "set")
    work = partial(worker_pairs.verified_rows, recipe)
    return by_tile(joined).mapInArrow(work, worker_pairs.PAIRS_FOUND)


def is_cut(n: "Column", shingles: "Column") -> "Column":
    """Return whether a bucket of n documents with so many shingles has several blocks."""
    return _blocks(n, shingles) > 1


def star_tiles(points: "DataFrame", counts: "DataFrame") -> "DataFrame":
    """Return tiles in which each centre is compared with its points, and points are not compared.

    points : rows (bucket, id), cached; a bucket is named by the id of its centre.
    counts : rows (bucket, n), cached.
    """
    blocks = f.ceil(f.col("n") / BLOCK_DOCUMENTS).cast("bigint")
    before = f.lit(b"").alias("before")
    tile = f.pmod(f.xxhash64("id"), blocks).alias("tile")
    right = with_counts(points, counts).select(
        "bucket", tile, f.lit(worker_pairs.RIGHT).alias("side"), "id", before
    )
    tile = f.explode(f.sequence(f.lit(0).cast("bigint"), blocks - 1)).alias("tile")
    centre = f.col("bucket").alias("id")
    left = counts.select("bucket", tile, f.lit(worker_pairs.LEFT).alias("side"), centre, before)
    return left.unionByName(right)


def _blocks(n: "Column", shingles: "Column") -> "Column":
    blocks = f.greatest(f.ceil(n / BLOCK_DOCUMENTS), f.ceil(shingles * 8 / BLOCK_BYTES))
    return blocks.cast("bigint")


def by_tile(rows: "DataFrame") -> "DataFrame":
    """Bring the rows of a tile together in one partition, left rows first."""
    return rows.repartition("bucket", "tile").sortWithinPartitions("bucket", "tile", "side")
