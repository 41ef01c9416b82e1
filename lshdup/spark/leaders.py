"""Cut buckets, on Spark: which documents another one represents, found before any other pair is made. Called by sparkclusters.py.

Where a bucket holds a template with a million fillings, its pairs are 5 · 10¹¹, and all but a million say nothing about groups. Here a
document that is preferred to all others in all its buckets, which therefore represents, is held against these only; those that are near
enough do not represent, and when they are gone, others are the preferred ones. Pairs of two documents that do not represent are never
needed. It is one comparison a document and round; rounds end when they find little, and leave the rest to the pairs.
"""

from functools import reduce
from typing import TYPE_CHECKING

from lshdup.spark import tiles
from lshdup.spark.caching import Checkpoints
from lshdup.spark.comparison import Comparison

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: A round that finds less than this share of those that it looks at was the last, and so is this one.
LEAST_SHARE = 0.1
MOST_ROUNDS = 8


def covered_in_crowds(
    comparison: Comparison, buckets: "DataFrame", rank: "Column", checkpoints: Checkpoints
) -> "DataFrame | None":
    """id: kinds in cut buckets of which it is known that they do not represent; None if no bucket is cut.

    buckets : `Comparison.compared`, kept. rank : of `id` and `size`, the lowest is preferred, and of equal ones the first by id.
    checkpoints : what keeps the answer. What the rounds make is let go of, the sets of all documents in cut buckets too.
    """
    from pyspark.sql import functions as f

    keep, drop = checkpoints.keep, checkpoints.drop
    crowd = keep(buckets.where(tiles.is_cut(f.col("n"), f.col("shingles"))).select("id").distinct())
    looked_at = crowd.count()
    if not looked_at:
        drop(crowd)
        return None
    near = buckets.join(crowd, "id", "left_semi").select("bucket").distinct()
    rows = buckets.join(near, "bucket", "left_semi").join(
        crowd.withColumn("crowd", f.lit(True)), "id", "left"
    )
    alive = keep(
        rows.select(
            "bucket",
            "id",
            f.struct(rank.alias("rank"), "id").alias("order"),
            f.col("crowd").isNotNull().alias("crowd"),
        )
    )
    sets = keep(tiles.sets_of(comparison.documents, crowd, looked_at, comparison.recipe))
    found: list[DataFrame] = []
    while len(found) < MOST_ROUNDS:
        first = alive.groupBy("bucket").agg(f.min("order").alias("first"))
        leaders = (
            alive.where("crowd")
            .join(first, "bucket")
            .groupBy("id")
            .agg(f.every(f.col("order") == f.col("first")).alias("leads"))
        )
        leaders = keep(leaders.where("leads").select("id"))
        centres = alive.join(leaders, "id", "left_semi").select(
            "bucket", f.col("id").alias("centre")
        )
        points = (
            alive.where("crowd")
            .join(centres, "bucket")
            .where("id != centre")
            .select(f.col("centre").alias("bucket"), "id")
        )
        points = keep(points.distinct())
        counts = keep(points.groupBy("bucket").agg(f.count("*").alias("n")))
        met = tiles.verified(tiles.stars(points, counts), sets, comparison.recipe).where(
            "a is not null"
        )
        ends = met.select(f.explode(f.array("a", "b")).alias("id")).distinct()
        gone = keep(ends.join(leaders, "id", "left_anti"))
        drop(points, counts)
        found.append(gone)
        n = gone.count()
        before, is_last = alive, n < LEAST_SHARE * looked_at
        if not is_last:
            alive = keep(alive.join(gone, "id", "left_anti").join(leaders, "id", "left_anti"))
        drop(before, leaders)
        if is_last:
            break
        looked_at -= n
    drop(crowd, sets, alive)
    every = keep(reduce(lambda one, other: one.unionByName(other), found))
    drop(*found)
    return every
