"""Clusters of documents on Spark, each with a representative: the rule of `lshdup clusters`.

Documents are taken in the order of preference. Each joins the first representative that it is a
pair with, or becomes a representative. A document waits only for the preferred ones among its
pairs: in each round, documents that wait for none represent, and their partners do not. So the
representatives are the lexicographically first maximal independent set of the graph of pairs, for
which a random order needs O(log n) rounds (Fischer and Noever, SODA 2018). The driver decides a
small rest. Connected components would join documents that only a chain of pairs connects.
"""

from collections.abc import Callable
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from lshdup.collection.keep_rules import count_marks
from lshdup.errors import InputError, ParameterError
from lshdup.spark import functions as f
from lshdup.spark import tiles as spark_tiles
from lshdup.spark.pipeline import Comparison

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Rules of `choices.KEEP` that Spark has: each the rank of a document by its id and size; the
#: smallest rank is preferred, then the first id.
RULES: "dict[str, Callable[[Column, Column], Column]]" = {
    "shortest-path": lambda document, _: _rank_path(document),
    "longest": lambda _, size: -size,
    "shortest": lambda _, size: size,
    "path-order": lambda _, size: size * 0,
}

#: Undecided pairs that the driver takes, some hundred bytes a pair.
FEW_PAIRS = 500_000

#: Rounds after which too many undecided pairs are an error: a chain of descending preference.
MOST_ROUNDS = 100

#: The first rounds end after one that covers less than this share of its documents.
LEAST_SHARE = 0.1
MOST_FIRST_ROUNDS = 8


def lost(error: Exception) -> bool:
    """Return whether an error is the loss of an executor with the only checkpoint of a round."""
    return "Checkpoint block" in str(error) and "not found" in str(error)


def _rank_path(document: "Column") -> "Column":
    """Return the rank of a path: as `preference.rank_paths`, in one number."""
    path = f.decode(document, "ISO-8859-1")  # A character for each byte.
    path = f.regexp_replace(path, "^\\./(?=-)|^/+", "")
    components = f.when(f.length(path) == 0, 0).otherwise(f.size(f.split(path, "/+")))
    whole = f.decode(document, "ISO-8859-1")
    whole = f.regexp_replace(whole, "^\\./(?=-)|[\\x80-\\xbf]", "")
    marks = f.udf(lambda name: count_marks(bytes(name)), "bigint")(document)
    return (marks * (1 << 16) + components) * (1 << 28) + f.length(whole)


def _computed(rows: "DataFrame") -> "DataFrame":
    """Return the same rows, computed now; they forget their plan, which would grow with each round.

    They are in the folder `spark.checkpoint.dir`; without one, executors keep them as long as they
    are used, and the loss of an executor is an error (`lost`).
    """
    has_folder = rows.sparkSession.conf.get("spark.checkpoint.dir", "")
    return rows.checkpoint() if has_folder else rows.localCheckpoint()


def _without(rows: "DataFrame", gone: "DataFrame", *columns: str) -> "DataFrame":
    """Return the rows in which no column has an id of `gone`."""
    for column in columns:
        rows = rows.join(gone.select(f.col("id").alias(column)), column, "left_anti")
    return rows


class Clusters:
    """The clusters of a comparison, over all its verified pairs.

    comparison : stays open as long as the clusters are used.
    keep : one of RULES. Raises ParameterError for others.

    If an executor is lost with a round (`lost`), the clusters can be made again from the same
    comparison.
    """

    def __init__(self, comparison: Comparison, keep: str = "shortest-path") -> None:
        if keep not in RULES:
            message = f"--keep is {keep!r}, which Spark does not have"
            raise ParameterError(message, f"choose one of {', '.join(RULES)}")
        self._comparison, self._rank = comparison, RULES[keep]

    @cached_property
    def _preferred(self) -> "DataFrame":
        """first, preferred: of sets with exact duplicates, the first and the preferred document."""
        best = f.min(f.struct(self._rank(f.col("id"), f.lit(0)).alias("rank"), "id"))
        copies = self._comparison.exact_duplicates.groupBy("first").agg(best.id.alias("preferred"))
        return _computed(copies)

    def _with_rank(self, rows: "DataFrame", document: str, size: str, rank: str) -> "DataFrame":
        """Add the rank of first documents of sets, as bytes: the smallest is preferred."""
        rows = rows.join(self._preferred.withColumnRenamed("first", document), document, "left")
        preferred = f.coalesce("preferred", document)
        number = self._rank(preferred, f.col(size)) + (1 << 62)
        key = f.concat(f.unhex(f.lpad(f.hex(number), 16, "0")), preferred)
        return rows.withColumn(rank, key).drop("preferred")

    @cached_property
    def _buckets(self) -> "DataFrame":
        return _computed(self._with_rank(self._comparison.compared, "id", "size", "rank"))

    @cached_property
    def covered_early(self) -> "DataFrame | None":
        """id: documents that a representative covers, known before pairs; None if no bucket is cut.

        A million fillings of one template have 5 · 10¹¹ pairs, of which all but a million say
        nothing about clusters. A document that is preferred in all its buckets represents. It is
        compared with the others there, and the near ones are covered; then others are the preferred
        ones. That is one comparison a document and round. Rounds end when they cover few.
        """
        is_cut = spark_tiles.count_blocks(f.col("n"), f.col("shingles")) > 1
        crowd = _computed(self._buckets.where(is_cut).select("id").distinct())
        left = crowd.count()
        if not left:
            return None
        comparison = self._comparison
        sets = _computed(spark_tiles.sets_of(comparison.documents, crowd, comparison.recipe))
        marked = crowd.withColumn("crowd", f.lit(True))
        near = self._buckets.join(crowd, "id", "left_semi").select("bucket").distinct()
        alive = self._buckets.select("bucket", "id", "rank").join(near, "bucket", "left_semi")
        alive = _computed(alive.join(marked, "id", "left"))
        parts: list[DataFrame] = []
        for _ in range(MOST_FIRST_ROUNDS):
            first = alive.groupBy("bucket").agg(f.min("rank").alias("first"))
            leads = f.every(f.col("rank") == f.col("first")).alias("leads")
            leaders = alive.where("crowd").join(first, "bucket").groupBy("id").agg(leads)
            leaders = _computed(leaders.where("leads").select("id"))
            centres = alive.join(leaders, "id", "left_semi")
            centres = centres.select("bucket", f.col("id").alias("centre"))
            points = alive.where("crowd").join(centres, "bucket").where("id != centre")
            stars = spark_tiles.star_tiles(_computed(points.select("centre", "id").distinct()))
            pairs = spark_tiles.verified_pairs(stars, sets, comparison.recipe)
            ends = pairs.select(f.explode(f.array("a", "b")).alias("id")).distinct()
            parts.append(_computed(_without(ends, leaders, "id")))
            n = parts[-1].count()
            if n < LEAST_SHARE * left:
                break
            left -= n
            alive = _computed(_without(_without(alive, parts[-1], "id"), leaders, "id"))
        return _computed(reduce(lambda one, other: one.unionByName(other), parts))

    @cached_property
    def _pairs(self) -> "DataFrame":
        """Verified pairs of distinct sets, but those of two documents that are covered early."""
        rows = self._buckets
        if self.covered_early is not None:
            known = self.covered_early.withColumn("covered", f.lit(True))
            rows = rows.join(known, "id", "left").withColumn("free", f.col("covered").isNull())
            size = f.when(f.col("free"), f.col("size")).otherwise(0)
            counts = f.count_if("free").alias("free_n"), f.sum(size).alias("free_shingles")
            counted = _computed(rows.groupBy("bucket").agg(*counts).where("free_n > 0"))
            rows = rows.join(spark_tiles.broadcast_if_small(counted), "bucket")
        return self._comparison.verify(_computed(spark_tiles.candidate_rows(rows)))

    @cached_property
    def edges(self) -> "DataFrame":
        """rank, better, worse, similarity: pairs, the preferred document first; it may represent.

        The order is that of ranks.
        """
        pairs = self._pairs
        for side in "ab":
            pairs = self._with_rank(pairs, side, f"size_{side}", f"rank_{side}")
        a, b = (
            f.struct(f.col(f"rank_{side}").alias("rank"), f.col(side).alias("id")) for side in "ab"
        )
        pairs = pairs.select(f.least(a, b).alias("x"), f.greatest(a, b).alias("y"), "similarity")
        edges = pairs.selectExpr("x.rank as rank", "x.id as better", "y.id as worse", "similarity")
        if self.covered_early is not None:
            edges = _without(edges, self.covered_early, "better")
        return _computed(edges)

    @cached_property
    def covered(self) -> "DataFrame":
        """id: first documents of distinct sets that another one represents. Runs the rounds."""
        undecided = self.edges.select("rank", "better", "worse")
        parts = [self.covered_early] if self.covered_early is not None else []
        for _ in range(MOST_ROUNDS):
            if undecided.count() <= FEW_PAIRS:
                break
            waiting = undecided.selectExpr("worse as id").distinct()
            of_chosen = _without(undecided, waiting, "better")
            parts.append(_computed(of_chosen.selectExpr("worse as id").distinct()))
            undecided = _computed(_without(undecided, parts[-1], "better", "worse"))
        else:
            message = f"after {MOST_ROUNDS} rounds more than {FEW_PAIRS:,} pairs are undecided"
            raise InputError(message, "keep by another property, or use a higher --threshold")
        parts.append(self._decide(undecided))
        return _computed(reduce(lambda one, other: one.unionByName(other), parts))

    def _decide(self, undecided: "DataFrame") -> "DataFrame":
        """Return the covered documents of few pairs, decided by the driver in preferred order."""
        import pyarrow as pa

        table = undecided.select("rank", "better", "worse").toArrow()
        columns = (column.to_pylist() for column in table.columns)
        covered: set[bytes] = set()
        for _, better, worse in sorted(zip(*columns, strict=True)):
            if better not in covered:
                covered.add(worse)
        ids = pa.table({"id": pa.array(sorted(covered), pa.binary())})
        return undecided.sparkSession.createDataFrame(ids, "id binary")

    @cached_property
    def documents(self) -> "DataFrame":
        """id, representative, similarity, copy: every document that has shingles.

        representative : the document itself if it represents or is alone.
        similarity : exact, to the representative.
        copy : whether the document is an exact duplicate (equal set) of the representative.
        """
        comparison = self._comparison
        leading = _without(self.edges, self.covered, "better")
        first = f.min(f.struct("rank", "better", "similarity")).alias("first")
        members = leading.groupBy("worse").agg(first)
        members = members.selectExpr("worse as own", "first.better as leader", "first.similarity")
        sets = comparison.distinct_sets.selectExpr("digest", "first.id as own")
        sets = sets.join(members, "own", "left")
        # A document without shingles has no digest.
        rows = comparison.sketches.select("id", "digest").join(sets, "digest")
        rows = rows.withColumn("first", f.coalesce("leader", "own"))
        rows = rows.join(self._preferred, "first", "left")
        representative = f.coalesce("preferred", "first")
        documents = rows.select(
            "id",
            representative.alias("representative"),
            f.coalesce("similarity", f.lit(1.0)).alias("similarity"),
            (f.col("leader").isNull() & (f.col("id") != representative)).alias("copy"),
        )
        return _computed(documents)

    def counts(self) -> tuple[int, int, int, int]:
        """Return the numbers of clusters of two or more, and of documents that are kept, dropped,
        and copies among the dropped.
        """
        apart = f.col("id") != f.col("representative")
        clusters = f.count_distinct(f.when(apart, f.col("representative")))
        row = self.documents.agg(
            clusters, f.count_if(~apart), f.count_if(apart), f.count_if("copy")
        )
        return tuple(row.collect()[0])
