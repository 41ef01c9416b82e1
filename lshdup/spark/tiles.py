"""Buckets -> tiles -> verified pairs, on Spark: how rows that share a bucket meet, however many they are. Called by spark.py.

A bucket of more than a block is cut into blocks, and each two blocks, or one with itself, are a *tile*: the work of one task, which needs
the sets of two blocks and no more. What is done in a tile is in sparkrows.py.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from lshdup.spark import worker
from lshdup.spark.caching import kept, sifted
from lshdup.spark.worker import Recipe

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

#: A block is of so many documents, or so many bytes of shingles, at most, as hashes of ids distribute them.
BLOCK_DOCUMENTS = 4096
BLOCK_BYTES = 32 << 20

#: Counts of buckets with more rows are sent to every executor, so that no task gets all rows of one.
MANY_ROWS = 1 << 17


def of_buckets(
    buckets: "DataFrame", documents: "DataFrame", recipe: Recipe, covered: "DataFrame | None" = None
) -> "Tiles":
    """Tiles of buckets, as `spark.Comparison.compared` has them. covered : ids that need no pairs with each other; None: all are wanted.

    A bucket of B blocks has B (B + 1) / 2 tiles, and each of its documents is in B of them. Those that are covered have blocks of their
    own, which meet those of the others, the free ones, only. A document's block is a hash of its id.
    """
    from pyspark.sql import functions as f

    rows = buckets.withColumns(
        {"free": f.lit(True), "free_n": f.col("n"), "free_shingles": f.col("shingles")}
    )
    counts = None
    if covered is not None:
        known = covered.select("id", f.lit(True).alias("covered"))
        rows = (
            buckets.join(known, "id", "left")
            .withColumn("free", f.col("covered").isNull())
            .drop("covered")
        )
        size = f.when(f.col("free"), f.col("size")).otherwise(0)
        of_bucket = (
            f.max("n").alias("n"),
            f.count_if("free").alias("free_n"),
            f.sum(size).alias("free_shingles"),
        )
        counts = kept(rows.groupBy("bucket").agg(*of_bucket))
        rows = with_counts(rows.drop("n"), counts).where("free_n > 0")
    of_free = _blocks(f.col("free_n"), f.col("free_shingles"))
    of_covered = _blocks(f.col("n") - f.col("free_n"), f.col("shingles") - f.col("free_shingles"))
    number, block, other = f.xxhash64("id"), f.col("block"), f.col("other")
    at = f.when(f.col("free"), f.pmod(number, of_free)).otherwise(
        of_free + f.pmod(number, of_covered)
    )
    last = of_free - 1 + f.when(f.col("free"), of_covered).otherwise(0)
    rows = rows.withColumns({"block": at, "other": f.explode(f.sequence(f.lit(0), last))})
    side = (
        f.when(block == other, worker.WITHIN)
        .when(block < other, worker.LEFT)
        .otherwise(worker.RIGHT)
    )
    tile = f.least(block, other) * (1 << 31) + f.greatest(block, other)
    rows = rows.select("bucket", tile.alias("tile"), side.alias("side"), "id", "before")
    rows = _by_tile(rows).mapInArrow(partial(worker.unmet_rows, recipe), worker.TILES)
    return Tiles(kept(rows), documents, recipe, counts)


def with_counts(rows: "DataFrame", counts: "DataFrame") -> "DataFrame":
    """Rows of buckets with the columns of `counts`: of each bucket that is wanted a row, with n, how many rows it has. counts : kept."""
    from pyspark.sql import functions as f

    large = counts.where(f.col("n") > MANY_ROWS)
    if large.isEmpty():
        return rows.join(counts, "bucket")
    others = rows.join(f.broadcast(large.select("bucket")), "bucket", "left_anti").join(
        counts.where(f.col("n") <= MANY_ROWS), "bucket"
    )
    return rows.join(f.broadcast(large), "bucket").unionByName(others)


@dataclass(frozen=True)
class Tiles:
    """Rows that are compared with each other, those that make a pair in their tile which no earlier band has met; and what comes of it.

    rows : bucket, tile, side, id, before (`sparkrows.TILES`), kept by Spark until `close`, and so are `counts`, if there are any.
    documents : what sets are made of.
    """

    rows: "DataFrame"
    documents: "DataFrame"
    recipe: Recipe
    bucket_counts: "DataFrame | None" = None

    def close(self) -> None:
        """Let go of what Spark keeps."""
        for rows in (self.rows, self.bucket_counts):
            if rows is not None:
                rows.unpersist()

    @cached_property
    def counts(self) -> tuple[int, int]:
        """Rows, and how many documents they are of."""
        from pyspark.sql import functions as f

        row = self.rows.agg(
            f.count("*").alias("rows"), f.count_distinct("id").alias("documents")
        ).collect()[0]
        return row.rows, row.documents

    @cached_property
    def verified(self) -> "DataFrame":
        """Pairs of kinds at or above the threshold with their exact similarity, and counts of candidates: `sparkrows.verified_rows`."""
        from pyspark.sql import functions as f

        sets = sets_of(self.documents, self.rows, self.counts[1], self.recipe)
        found = verified(self.rows, sets, self.recipe)
        return found.observe(
            self._observed, f.sum("candidates").alias("candidates"), f.count("a").alias("pairs")
        )

    @cached_property
    def _observed(self) -> "Observation":
        from pyspark.sql import Observation

        return Observation("verified")

    def found(self) -> dict[str, int]:
        """Candidate pairs looked at and pairs of kinds found, when `pairs` has been evaluated; tasks that ran again are counted again."""
        counted = self._observed.get if self.counts[0] else {}
        return {name: int(counted.get(name) or 0) for name in ("candidates", "pairs")}

    @cached_property
    def pairs(self) -> "DataFrame":
        """a, b (binary), similarity, size_a, size_b: pairs of first copies, a before b by their bytes, with the sizes of their sets."""
        return self.verified.where("a is not null").drop("candidates")


def sets_of(documents: "DataFrame", rows: "DataFrame", wanted: int, recipe: Recipe) -> "DataFrame":
    """Shingle sets (id, set) of the documents with the ids of `rows`: made again, which is cheaper than to have kept those of all.

    wanted : how many these are. Sets of a few others are there too (`sifted`).
    """
    documents = sifted(documents, rows, wanted, "id")
    return documents.mapInArrow(partial(worker.set_rows, recipe), worker.SETS)


def verified(rows: "DataFrame", sets: "DataFrame", recipe: Recipe) -> "DataFrame":
    """What comes of tiles and sets: `sparkrows.PAIRS_FOUND`. A document that could not be read again is an error there."""
    together = rows.join(sets, "id").select("bucket", "tile", "side", "id", "before", "set")
    return _by_tile(together).mapInArrow(partial(worker.verified_rows, recipe), worker.PAIRS_FOUND)


def is_cut(n: "Column", shingles: "Column") -> "Column":
    """Whether a bucket of n documents with so many shingles is of more than one block."""
    return _blocks(n, shingles) > 1


def stars(points: "DataFrame", counts: "DataFrame") -> "DataFrame":
    """Tiles of rows (bucket, id), where a bucket is called by its centre's id: each centre is compared with all its points, block by block
    of these, and the points are not. counts : (bucket, n), both kept.
    """
    from pyspark.sql import functions as f

    blocks = f.ceil(f.col("n") / BLOCK_DOCUMENTS).cast("bigint")
    none = f.lit(b"").alias("before")
    tile = f.pmod(f.xxhash64("id"), blocks).alias("tile")
    right = with_counts(points, counts).select(
        "bucket", tile, f.lit(worker.RIGHT).alias("side"), "id", none
    )
    every = f.explode(f.sequence(f.lit(0).cast("bigint"), blocks - 1)).alias("tile")
    left = counts.select(
        "bucket", every, f.lit(worker.LEFT).alias("side"), f.col("bucket").alias("id"), none
    )
    return left.unionByName(right)


def _blocks(n: "Column", shingles: "Column") -> "Column":
    from pyspark.sql import functions as f

    return f.greatest(f.ceil(n / BLOCK_DOCUMENTS), f.ceil(shingles * 8 / BLOCK_BYTES)).cast(
        "bigint"
    )


def _by_tile(rows: "DataFrame") -> "DataFrame":
    """The rows of a tile one after the other in one partition, left ones first."""
    return rows.repartition("bucket", "tile").sortWithinPartitions("bucket", "tile", "side")
