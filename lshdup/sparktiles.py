"""Buckets -> tiles -> verified pairs, on Spark: how rows that share a bucket meet, however many they are. Called by spark.py.

A bucket of more than a block is cut into blocks, and each two blocks, or one with itself, are a *tile*: the work of one task, which needs
the sets of two blocks and no more. What is done in a tile is in sparkrows.py.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from lshdup import sparkrows
from lshdup.sparkrows import Recipe

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

#: A block is of so many documents, or so many bytes of shingles, at most, as hashes of ids distribute them.
BLOCK_DOCUMENTS = 4096
BLOCK_BYTES = 32 << 20

#: Up to so many documents in tiles, the hashes of their ids (64 bytes each in Java) are sent to every executor, and only the sets of these
#: documents are made.
FEW_WANTED = 1_000_000


def of_buckets(buckets: "DataFrame", documents: "DataFrame", recipe: Recipe, led: "DataFrame | None" = None) -> "Tiles":
    """Tiles of buckets, as `spark.Comparison.compared` has them. led : ids that need no pairs with each other; None: all pairs are wanted.

    A bucket of B blocks has B (B + 1) / 2 tiles, and each of its documents is in B of them. Those that are led have blocks of their own,
    which meet those of the others only. A document's block is a hash of its id.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    rows = buckets.withColumns({"free": f.lit(True), "free_n": f.col("n"), "free_shingles": f.col("shingles")})
    if led is not None:
        together = Window.partitionBy("bucket")
        rows = buckets.join(led.select("id", f.lit(True).alias("led")), "id", "left").withColumn("free", f.col("led").isNull())
        size = f.when(f.col("free"), f.col("size")).otherwise(0)
        rows = rows.withColumns({"free_n": f.count_if("free").over(together), "free_shingles": f.sum(size).over(together)})
        rows = rows.where("free_n > 0")
    of_free = _blocks(f.col("free_n"), f.col("free_shingles"))
    of_led = _blocks(f.col("n") - f.col("free_n"), f.col("shingles") - f.col("free_shingles"))
    number, block, other = f.xxhash64("id"), f.col("block"), f.col("other")
    at = f.when(f.col("free"), f.pmod(number, of_free)).otherwise(of_free + f.pmod(number, of_led))
    last = of_free - 1 + f.when(f.col("free"), of_led).otherwise(0)
    rows = rows.withColumns({"block": at, "other": f.explode(f.sequence(f.lit(0), last))})
    side = f.when(block == other, sparkrows.WITHIN).when(block < other, sparkrows.LEFT).otherwise(sparkrows.RIGHT)
    tile = f.least(block, other) * (1 << 31) + f.greatest(block, other)
    rows = rows.select("bucket", tile.alias("tile"), side.alias("side"), "id", "before")
    if recipe.once:
        rows = _by_tile(rows).mapInArrow(partial(sparkrows.unmet_rows, recipe), sparkrows.TILES)
    return Tiles(kept(rows), documents, recipe)


@dataclass(frozen=True)
class Tiles:
    """Rows that are compared with each other, those that make a pair in their tile which no earlier band has met; and what comes of it.

    rows : bucket, tile, side, id, before (`sparkrows.TILES`), kept by Spark until `close`. documents : what sets are made of.
    """

    rows: "DataFrame"
    documents: "DataFrame"
    recipe: Recipe

    def close(self) -> None:
        """Let go of what Spark keeps."""
        self.rows.unpersist()

    @cached_property
    def counts(self) -> tuple[int, int]:
        """Rows, and how many documents they are of."""
        from pyspark.sql import functions as f

        row = self.rows.agg(f.count("*").alias("rows"), f.count_distinct("id").alias("documents")).collect()[0]
        return row.rows, row.documents

    @cached_property
    def verified(self) -> "DataFrame":
        """Pairs of kinds at or above the threshold with their exact similarity, and counts of candidates: `sparkrows.verified_rows`."""
        from pyspark.sql import functions as f

        sets = sets_of(self.documents, self.rows, self.counts[1], self.recipe)
        found = verified(self.rows, sets, self.recipe)
        return found.observe(self._observed, f.sum("candidates").alias("candidates"), f.count("a").alias("pairs"))

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
        found = self.verified.where("a is not null").drop("candidates")
        return found if self.recipe.once else found.dropDuplicates(["a", "b"])


def sets_of(documents: "DataFrame", rows: "DataFrame", wanted: int, recipe: Recipe) -> "DataFrame":
    """Shingle sets (id, set) of the documents with the ids of `rows`: made again, which is cheaper than to have kept those of all.

    wanted : how many these are. If they are many, sets of others are there too.
    """
    from pyspark.sql import functions as f

    if wanted <= FEW_WANTED:
        # Two ids of one hash do no harm: a join by id follows.
        hashes = f.broadcast(rows.select(f.xxhash64("id").alias("hash")).distinct())
        documents = documents.withColumn("hash", f.xxhash64("id")).join(hashes, "hash", "left_semi").drop("hash")
    return documents.mapInArrow(partial(sparkrows.set_rows, recipe), sparkrows.SETS)


def verified(rows: "DataFrame", sets: "DataFrame", recipe: Recipe) -> "DataFrame":
    """What comes of tiles and sets: `sparkrows.PAIRS_FOUND`."""
    together = rows.join(sets, "id").select("bucket", "tile", "side", "id", "before", "set")
    return _by_tile(together).mapInArrow(partial(sparkrows.verified_rows, recipe), sparkrows.PAIRS_FOUND)


def is_cut(n: "Column", shingles: "Column") -> "Column":
    """Whether a bucket of n documents with so many shingles is of more than one block."""
    return _blocks(n, shingles) > 1


def stars(points: "DataFrame") -> "DataFrame":
    """Tiles of rows (centre, id): each centre is compared with all its points, block by block of these, and the points are not."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    blocks = f.ceil(f.count("*").over(Window.partitionBy("centre")) / BLOCK_DOCUMENTS).cast("bigint")
    placed = points.withColumn("tile", f.pmod(f.xxhash64("id"), blocks))
    none = f.lit(b"").alias("before")
    right = placed.select(f.col("centre").alias("bucket"), "tile", f.lit(sparkrows.RIGHT).alias("side"), "id", none)
    left = placed.select("centre", "tile").distinct()
    left = left.select(f.col("centre").alias("bucket"), "tile", f.lit(sparkrows.LEFT).alias("side"), f.col("centre").alias("id"), none)
    return left.unionByName(right)


def kept(rows: "DataFrame") -> "DataFrame":
    """The same, which Spark keeps on memory and disk when it has been made."""
    from pyspark import StorageLevel

    return rows.persist(StorageLevel.MEMORY_AND_DISK)


def _blocks(n: "Column", shingles: "Column") -> "Column":
    from pyspark.sql import functions as f

    return f.greatest(f.ceil(n / BLOCK_DOCUMENTS), f.ceil(shingles * 8 / BLOCK_BYTES)).cast("bigint")


def _by_tile(rows: "DataFrame") -> "DataFrame":
    """The rows of a tile one after the other in one partition, left ones first."""
    return rows.repartition("bucket", "tile").sortWithinPartitions("bucket", "tile", "side")
