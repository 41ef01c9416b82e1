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
from typing import TYPE_CHECKING, Self

from lshdup.documents.copy_names import count_marks
from lshdup.errors import InputError, ParameterError
from lshdup.spark import functions as f
from lshdup.spark import tiles as spark_tiles
from lshdup.spark.caching import Checkpoints
from lshdup.spark.pipeline import Comparison
from lshdup.spark.tiles import Tiles

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


def check_keep(keep: str) -> None:
    """Raise ParameterError for a rule that is not one of RULES."""
    if keep not in RULES:
        message = f"--keep is {keep!r}, which Spark does not have"
        raise ParameterError(message, f"choose one of {', '.join(RULES)}")


def _rank_path(document: "Column") -> "Column":
    """Return the rank of a path: as `preference.rank_paths`, in one number."""
    path = f.decode(document, "ISO-8859-1")  # A character for each byte.
    path = f.regexp_replace(path, "^\\./(?=-)|^/+", "")
    components = f.when(f.length(path) == 0, 0).otherwise(f.size(f.split(path, "/+")))
    whole = f.decode(document, "ISO-8859-1")
    whole = f.regexp_replace(whole, "^\\./(?=-)|[\\x80-\\xbf]", "")
    marks = f.udf(lambda name: count_marks(bytes(name)), "bigint")(document)
    return (marks * (1 << 16) + components) * (1 << 28) + f.length(whole)


class Clusters:
    """The clusters of a comparison, over all its verified pairs; a context manager.

    comparison : stays open as long as the clusters.
    keep : one of RULES.
    rounds : number of rounds, after `covered` is evaluated.

    Rounds are checkpoints in the folder `spark.checkpoint.dir`. Without it executors keep them,
    and the loss of an executor is an error (`lost`), after which the clusters can be made again.
    """

    def __init__(self, comparison: Comparison, keep: str = "shortest-path") -> None:
        check_keep(keep)
        self._comparison = comparison
        self._rank = RULES[keep]
        self._checkpoints = Checkpoints()
        self.rounds = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "tiles" in self.__dict__:
            self.tiles.close()
        self._checkpoints.close()

    @cached_property
    def _preferred(self) -> "DataFrame":
        """first, preferred: of sets with exact duplicates, the first and the preferred document."""
        best = f.min(f.struct(self._rank(f.col("id"), f.lit(0)).alias("rank"), "id"))
        copies = self._comparison.exact_duplicates.groupBy("first").agg(best.id.alias("preferred"))
        return self._checkpoints.keep(copies)

    def _with_rank(self, rows: "DataFrame", document: str, size: str, rank: str) -> "DataFrame":
        """Add the rank of first documents of sets, as bytes: the smallest is preferred."""
        rows = rows.join(self._preferred.withColumnRenamed("first", document), document, "left")
        preferred = f.coalesce("preferred", document)
        number = self._rank(preferred, f.col(size)) + (1 << 62)
        key = f.concat(f.unhex(f.lpad(f.hex(number), 16, "0")), preferred)
        return rows.withColumn(rank, key).drop("preferred")

    @cached_property
    def _buckets(self) -> "DataFrame":
        ranked = self._with_rank(self._comparison.compared, "id", "size", "rank")
        return self._checkpoints.keep(ranked)

    @cached_property
    def covered_early(self) -> "DataFrame | None":
        """id: documents that a representative covers, known before pairs; None if none is cut."""
        return _cover_cut_buckets(self._comparison, self._buckets, self._checkpoints)

    @cached_property
    def tiles(self) -> Tiles:
        """Candidate pairs, but those of two documents that are covered early."""
        comparison = self._comparison
        return spark_tiles.candidate_pairs(
            self._buckets, comparison.sources, comparison.recipe, self.covered_early
        )

    @cached_property
    def edges(self) -> "DataFrame":
        """rank, better, worse, similarity: pairs, the preferred document first; it may represent.

        The order is that of ranks.
        """
        pairs = self.tiles.pairs.withColumnRenamed("score", "similarity")
        for side in "ab":
            pairs = self._with_rank(pairs, side, f"size_{side}", f"rank_{side}")
        a, b = (
            f.struct(f.col(f"rank_{side}").alias("rank"), f.col(side).alias("id")) for side in "ab"
        )
        pairs = pairs.select(f.least(a, b).alias("x"), f.greatest(a, b).alias("y"), "similarity")
        edges = pairs.selectExpr("x.rank as rank", "x.id as better", "y.id as worse", "similarity")
        if self.covered_early is not None:
            early = self.covered_early.withColumnRenamed("id", "better")
            edges = edges.join(early, "better", "left_anti").select(*edges.columns)
        return self._checkpoints.keep(edges)

    @cached_property
    def covered(self) -> "DataFrame":
        """id: first documents of distinct sets that another one represents. Runs the rounds."""
        keep, drop = self._checkpoints.keep, self._checkpoints.drop
        undecided = first = self.edges.select("rank", "better", "worse")
        left, parts = undecided.count(), []
        while left > FEW_PAIRS and self.rounds < MOST_ROUNDS:
            waiting = undecided.selectExpr("worse as better").distinct()
            chosen = undecided.select("better").distinct().join(waiting, "better", "left_anti")
            of_chosen = undecided.join(chosen, "better", "left_semi")
            gone = keep(of_chosen.selectExpr("worse as id").distinct())
            before = undecided
            for side in ("better", "worse"):
                gone_side = gone.withColumnRenamed("id", side)
                undecided = undecided.join(gone_side, side, "left_anti")
            undecided = keep(undecided)
            if before is not first:
                drop(before)
            parts.append(gone)
            left = undecided.count()
            self.rounds += 1
        if left > FEW_PAIRS:
            message = f"after {MOST_ROUNDS} rounds {left:,} pairs are still undecided"
            raise InputError(message, "keep by another property, or use a higher --threshold")
        covered = self._decide(undecided)
        if undecided is not first:
            drop(undecided)
        for part in parts:
            covered = covered.unionByName(part)
        if self.covered_early is not None:
            covered = covered.unionByName(self.covered_early)
        covered = keep(covered)
        drop(*parts)
        return covered

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
        covered = self.covered.withColumnRenamed("id", "better")
        leading = self.edges.join(covered, "better", "left_anti")
        first = f.min(f.struct("rank", "better", "similarity")).alias("first")
        members = (
            leading.groupBy("worse")
            .agg(first)
            .selectExpr("worse as own", "first.better as leader", "first.similarity as similarity")
        )
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
        return self._checkpoints.keep(documents)

    @property
    def kept(self) -> "DataFrame":
        """id: all that stays: documents that represent, are alone, or were not compared."""
        return self._comparison.sketches.select("id").join(self.dropped, "id", "left_anti")

    @property
    def dropped(self) -> "DataFrame":
        """id: documents that another one represents."""
        return self.documents.where("id != representative").select("id")

    @property
    def listed(self) -> "DataFrame":
        """The documents of clusters of two or more."""
        documents = self.documents
        counts = documents.groupBy(f.col("representative").alias("leader")).agg(
            f.count("*").alias("n")
        )
        clusters = counts.where("n > 1")
        listed = documents.join(clusters, documents["representative"] == clusters["leader"])
        return listed.select(*documents.columns)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Clusters of two or more; documents that are kept; dropped; copies among the dropped."""
        apart = f.col("id") != f.col("representative")
        leaders = f.count_distinct(f.when(apart, f.col("representative")))
        row = self.documents.agg(
            leaders.alias("a"),
            f.count_if(~apart).alias("b"),
            f.count_if(apart).alias("c"),
            f.count_if("copy").alias("d"),
        )
        return tuple(row.collect()[0])


def _cover_cut_buckets(
    comparison: Comparison, buckets: "DataFrame", checkpoints: Checkpoints
) -> "DataFrame | None":
    """Return ids in cut buckets that are known to be covered; None if no bucket is cut.

    A million fillings of one template have 5 · 10¹¹ pairs, of which all but a million say nothing
    about clusters. A document that is preferred in all its buckets represents. It is compared with
    the others there, and the near ones are covered; then others are the preferred ones. That is one
    comparison a document and round. Rounds end when they cover few, and leave the rest to pairs.

    buckets : `Comparison.compared` with ranks, kept.
    checkpoints : keeps the answer; results of rounds are dropped.
    """
    keep, drop = checkpoints.keep, checkpoints.drop
    cut = spark_tiles.is_cut(f.col("n"), f.col("shingles"))
    crowd = keep(buckets.where(cut).select("id").distinct())
    compared = crowd.count()
    if not compared:
        drop(crowd)
        return None
    near = buckets.join(crowd, "id", "left_semi").select("bucket").distinct()
    rows = buckets.join(near, "bucket", "left_semi").join(
        crowd.withColumn("crowd", f.lit(True)), "id", "left"
    )
    order = f.col("rank").alias("order")
    alive = keep(rows.select("bucket", "id", order, f.col("crowd").isNotNull().alias("crowd")))
    sets = keep(spark_tiles.sets_of(comparison.sources, crowd, compared, comparison.recipe))
    parts: list[DataFrame] = []
    while len(parts) < MOST_FIRST_ROUNDS:
        first = alive.groupBy("bucket").agg(f.min("order").alias("first"))
        leads = f.every(f.col("order") == f.col("first")).alias("leads")
        leaders = alive.where("crowd").join(first, "bucket").groupBy("id").agg(leads)
        leaders = keep(leaders.where("leads").select("id"))
        centres = alive.join(leaders, "id", "left_semi")
        centres = centres.select("bucket", f.col("id").alias("centre"))
        points = alive.where("crowd").join(centres, "bucket").where("id != centre")
        points = keep(points.select(f.col("centre").alias("bucket"), "id").distinct())
        counts = keep(points.groupBy("bucket").agg(f.count("*").alias("n")))
        stars = spark_tiles.star_tiles(points, counts)
        pairs = spark_tiles.verify(stars, sets, comparison.recipe).where("a is not null")
        ends = pairs.select(f.explode(f.array("a", "b")).alias("id")).distinct()
        gone = keep(ends.join(leaders, "id", "left_anti"))
        drop(points, counts)
        parts.append(gone)
        n = gone.count()
        before, is_last = alive, n < LEAST_SHARE * compared
        if not is_last:
            alive = keep(alive.join(gone, "id", "left_anti").join(leaders, "id", "left_anti"))
        drop(before, leaders)
        if is_last:
            break
        compared -= n
    drop(crowd, sets, alive)
    covered = keep(reduce(lambda one, other: one.unionByName(other), parts))
    drop(*parts)
    return covered
