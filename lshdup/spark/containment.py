"""Pairs of containment on Spark: the pairs that samples of sets find on one machine.

The stages differ from those of `pipeline.Comparison` up to the candidate pairs. The elements of a
sample are looked at from rare to common. If enough of a sample is in another one, one of its rarest
elements is, so only these make pairs: `index_rows` -> buckets, one for each element -> pairs that
are *met* in a bucket -> candidates, which have enough elements in common. Candidates are verified
over the whole sets. `lsh.sample_plan` says what samples promise.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from lshdup.lsh.sample_plan import CANDIDATES_EACH, FEW_CANDIDATES, LARGEST_FLOOR, SamplePlan
from lshdup.params import BandParams, PairParams, ShingleParams, SketchParams
from lshdup.spark import functions as f
from lshdup.spark import tiles as spark_tiles
from lshdup.spark.caching import Checkpoints, cache, sift
from lshdup.spark.pipeline import Comparison, source_of
from lshdup.spark.recipe import make_recipe
from lshdup.spark.tiles import Tiles
from lshdup.spark.workers import samples as worker_samples

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Pairs that are met in a larger bucket are checked there, for which its rows get their samples.
FEW = 32

_SHINGLE, _SKETCH, _BANDS = ShingleParams(), SketchParams(), BandParams()

_ROWS = ("bucket", "tile", "side", "id", "size", "free", "sample")


def find_contained_pairs(
    documents: "DataFrame",
    shingle: ShingleParams = _SHINGLE,
    sketch: SketchParams = _SKETCH,
    band: BandParams = _BANDS,
    *,
    contents: bool = False,
) -> "Containment":
    """Return the comparison of documents by containment: the pairs that `lshdup pairs --measure
    containment` finds in them by samples.

    documents, contents : as of `pipeline.find_near_duplicates`; errors likewise.
    sketch : the seed decides which elements are in samples.
    band : threshold and recall.

    >>> found = find_contained_pairs(spark.read.parquet("s3a://…"))  # doctest: +SKIP
    >>> found.pairs().write.parquet("s3a://…")  # doctest: +SKIP
    """
    recipe = make_recipe(shingle, sketch, band, PairParams(measure="containment"))
    return Containment(source_of(documents, contents=contents), recipe)


@dataclass(frozen=True)
class Containment(Comparison):
    """A comparison by containment. Its recipe has a plan of samples.

    `pairs` are a, b (binary), containment, similarity, a_shingles, b_shingles: a is inside b.
    """

    def close(self) -> None:
        """Let Spark drop the cached stages."""
        self.begin_again()
        super().close()

    def begin_again(self) -> None:
        """Drop the stages that cannot be made again without what a lost executor held."""
        if "tiles" in self.__dict__:
            self.tiles.close()
        for rows in self._cached:
            rows.unpersist()
        self._checkpoints.close()
        for name in ("tiles", "_found", "_ranked", "_cached", "_checkpoints"):
            self.__dict__.pop(name, None)

    @cached_property
    def _checkpoints(self) -> Checkpoints:
        return Checkpoints()

    @cached_property
    def _cached(self) -> "list[DataFrame]":
        """What is cached, besides the stages of `Comparison`."""
        return []

    def _cache(self, rows: "DataFrame") -> "DataFrame":
        self._cached.append(cache(rows))
        return rows

    @cached_property
    def _samples(self) -> "DataFrame":
        """id, size, sample of each distinct set."""
        sample = f.col("first.keys").alias("sample")
        size = (f.length("first.keys") / 8).cast("bigint").alias("size")
        return self.distinct_sets.select("first.id", size, sample)

    @cached_property
    def index_rows(self) -> "DataFrame":
        """A row for each element of each sample: `workers.samples.ELEMENTS`."""
        work = partial(worker_samples.element_rows, self._plan)
        return self._samples.select("id", "sample").mapInArrow(work, worker_samples.ELEMENTS)

    @property
    def _plan(self) -> SamplePlan:
        assert isinstance(self.recipe.plan, SamplePlan)
        return self.recipe.plan

    @cached_property
    def _ranked(self) -> "DataFrame":
        """`buckets`, and the rank of each element of a sample, from common to rare."""
        from pyspark.sql import Window

        order = Window.partitionBy("id").orderBy(f.desc("n"), f.desc("bucket"))
        return self._checkpoints.keep(self.buckets.withColumn("rank", f.row_number().over(order)))

    @cached_property
    def _most_candidates(self) -> int:
        documents: int = self.distinct_sets.count()
        return max(FEW_CANDIDATES, CANDIDATES_EACH * documents)

    def _least_floor(self) -> int:
        """Return 2 if, without a pair being made, floor 1 is known to make too many; else 1.

        Each element that a sample has in common with a larger one makes a pair, if it needs one.
        """
        largest = np.flatnonzero(self._plan.least == 1)[-1]
        small = self._ranked.where("least = 1").groupBy("bucket")
        counts = small.agg(f.count("*").alias("own"), f.max("n").alias("n"))
        pairs = counts.agg(f.sum(f.expr("own * (own - 1) / 2 + own * (n - own)"))).collect()[0][0]
        return 2 if (pairs or 0) > int(largest) * self._most_candidates else 1

    @cached_property
    def _found(self) -> "tuple[SamplePlan, DataFrame]":
        """The plan, with the floor that keeps accidental candidates few, and its candidates."""
        floor = self._least_floor()
        found = self._candidates(floor)
        kind = f.least("least", f.lit(LARGEST_FLOOR)).alias("kind")
        counts = {row.kind: row["count"] for row in found.groupBy(kind).count().collect()}
        while floor < LARGEST_FLOOR and (
            sum(n for kind, n in counts.items() if kind >= floor) > self._most_candidates
        ):
            floor += 1
        return replace(self._plan, floor=floor), found.where(f.col("least") >= floor)

    @property
    def samples(self) -> SamplePlan:
        """The plan that the pairs are found with. Its floor is known once candidates are."""
        return self._found[0]

    def _candidates(self, floor: int) -> "DataFrame":
        """Return CANDIDATES, cached: pairs with enough elements in common, at least `floor`."""
        is_free = (f.col("rank") >= f.col("least")) & (f.col("least") >= floor)
        rows = self._ranked.withColumn("free", is_free)
        counts = spark_tiles.count_free(rows)
        self._cached.append(counts)
        rows = sift(rows.drop("n", "shingles"), counts, counts.count(), "bucket")
        rows = spark_tiles.cut(spark_tiles.with_counts(rows, counts))
        samples = self._samples.select("id", "sample")
        few = rows.where(f.col("n") <= FEW).withColumn("sample", f.lit(None).cast("binary"))
        many = rows.where(f.col("n") > FEW).join(samples, "id")
        met = self._check(few.select(*_ROWS).unionByName(many.select(*_ROWS)))
        met = self._checkpoints.keep(met.distinct())
        stars = self._stars(met).join(self._samples, "id").withColumn("free", f.lit(True))
        found = self._checkpoints.keep(self._check(stars.select(*_ROWS)))
        self._checkpoints.drop(met)
        return found

    def _check(self, rows: "DataFrame") -> "DataFrame":
        """Return the pairs of tiles that have enough in common, where rows have samples."""
        work = partial(worker_samples.candidate_rows, self._plan)
        return spark_tiles.by_tile(rows).mapInArrow(work, worker_samples.CANDIDATES)

    def _stars(self, pairs: "DataFrame") -> "DataFrame":
        """Return tiles that compare each holder with what may be inside it."""
        bucket, point = f.col("holder").alias("bucket"), f.col("inside").alias("id")
        points = pairs.select(bucket, point)
        counts = self._cache(points.groupBy("bucket").agg(f.count("*").alias("n")))
        return spark_tiles.star_tiles(points, counts)

    @cached_property
    def tiles(self) -> Tiles:
        """Candidate pairs as rows, and the pairs that are verified."""
        return Tiles(cache(self._stars(self._found[1])), self.sources, self.recipe)

    @property
    def distinct_pairs(self) -> "DataFrame":
        """a, b and scores of pairs of distinct sets."""
        common = f.rint(f.col("score") * f.least("size_a", "size_b"))
        return self.tiles.pairs.select(
            "a",
            "b",
            f.col("score").alias("containment"),
            (common / (f.col("size_a") + f.col("size_b") - common)).alias("similarity"),
            f.col("size_a").alias("a_shingles"),
            f.col("size_b").alias("b_shingles"),
        )

    def scores_of_equal(self, size: "Column") -> "dict[str, Column]":
        """Return the scores of two documents with an equal set of so many shingles."""
        one = f.lit(1.0)
        return {"containment": one, "similarity": one, "a_shingles": size, "b_shingles": size}

    @property
    def is_by_name(self) -> "Column":
        """Whether the order of a pair is that of the names: the sets are of one size."""
        return f.col("a_shingles") == f.col("b_shingles")
