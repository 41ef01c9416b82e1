"""Pairs -> groups of documents on Spark, each with one that represents it: the rule of `lshdup clusters`, in rounds.

Documents are met in the order in which they are preferred; each joins the first representative that it is a pair with, or becomes one
itself. That looks like one step after the other, but nobody has to wait for all that are preferred more, only for those of them that it
is a pair with: in each round, whoever has none of these left represents, and all its partners do not. So the representatives are the
lexicographically first maximal independent set of the graph of pairs, for which a random order needs O(log n) rounds (Fischer and Noever,
SODA 2018). What is undecided when it has become small is decided by the driver, so that few rounds are run. Connected components would
need rounds too, and put into one group what only a chain of pairs connects.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Self

from lshdup.errors import InputError, ParameterError
from lshdup.spark import leaders as spark_leaders
from lshdup.spark import tiles as spark_tiles
from lshdup.spark.caching import Checkpoints
from lshdup.spark.comparison import Comparison
from lshdup.spark.tiles import Tiles

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Which of a group represents it: the one with most or fewest different shingles, or the first by name, which also decides between equals.
KEEP = ("longest", "shortest", "path-order")

#: Undecided pairs that the driver takes: some hundred bytes each.
FEW_PAIRS = 500_000

#: After so many rounds undecided pairs that are too many for the driver are an error: a chain of ever less preferred documents.
MOST_ROUNDS = 100


def lost(error: Exception) -> bool:
    """Whether an executor was lost that alone had kept something of the rounds."""
    return "Checkpoint block" in str(error) and "not found" in str(error)


def check_keep(keep: str) -> None:
    """Raise ParameterError unless it is one of KEEP."""
    if keep not in KEEP:
        message = f"--keep is {keep!r}, which on Spark nobody knows"
        raise ParameterError(message, f"choose one of {', '.join(KEEP)}")


class Clusters:
    """The groups of a comparison, over all its verified pairs. A context manager: at its end Spark lets go of what it kept.

    comparison : the documents; it must stay open meanwhile. keep : one of KEEP. rounds : how many were run, known after `covered`.

    What rounds make is written to the folder for checkpoints where the context has one (`spark.checkpoint.dir`); otherwise the executors
    keep it, and if one of them is lost, the rounds end with an error (`lost` knows it) and can be run again from the same comparison.
    """

    def __init__(self, comparison: Comparison, keep: str = "longest") -> None:
        check_keep(keep)
        self._comparison = comparison
        self._keep = keep
        self._checkpoints = Checkpoints()
        self.rounds = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "tiles" in self.__dict__:
            self.tiles.close()
        self._checkpoints.close()

    def _rank(self, size: str) -> "Column":
        """The lowest is preferred."""
        from pyspark.sql import functions as f

        return f.col(size) * {"longest": -1, "shortest": 1, "path-order": 0}[self._keep]

    @cached_property
    def _buckets(self) -> "DataFrame":
        return self._checkpoints.keep(self._comparison.compared)

    @cached_property
    def covered_early(self) -> "DataFrame | None":
        """id: kinds of which it is known before the pairs that they do not represent; None if no bucket is so large that it is cut."""
        return spark_leaders.covered_in_crowds(
            self._comparison, self._buckets, self._rank("size"), self._checkpoints
        )

    @cached_property
    def tiles(self) -> Tiles:
        """What meets in the buckets: all pairs but those of two kinds that do not represent."""
        return spark_tiles.of_buckets(
            self._buckets, self._comparison.documents, self._comparison.recipe, self.covered_early
        )

    @cached_property
    def edges(self) -> "DataFrame":
        """rank, better, worse, similarity: pairs of kinds, the preferred one first, by (rank, id); it may represent."""
        from pyspark.sql import functions as f

        a, b = (
            f.struct(self._rank(f"size_{each}").alias("rank"), f.col(each).alias("id"))
            for each in "ab"
        )
        pairs = self.tiles.pairs.select(
            f.least(a, b).alias("x"), f.greatest(a, b).alias("y"), "similarity"
        )
        edges = pairs.selectExpr("x.rank as rank", "x.id as better", "y.id as worse", "similarity")
        if self.covered_early is not None:
            edges = edges.join(
                self.covered_early.withColumnRenamed("id", "better"), "better", "left_anti"
            ).select(*edges.columns)
        return self._checkpoints.keep(edges)

    @cached_property
    def covered(self) -> "DataFrame":
        """id: the first copies that another represents. Runs the rounds."""
        keep, drop = self._checkpoints.keep, self._checkpoints.drop
        undecided = first = self.edges.select("rank", "better", "worse")
        left, parts = undecided.count(), []
        while left > FEW_PAIRS and self.rounds < MOST_ROUNDS:
            waiting = undecided.selectExpr("worse as better").distinct()
            chosen = undecided.select("better").distinct().join(waiting, "better", "left_anti")
            gone = keep(
                undecided.join(chosen, "better", "left_semi").selectExpr("worse as id").distinct()
            )
            before = undecided
            undecided = undecided.join(
                gone.withColumnRenamed("id", "better"), "better", "left_anti"
            )
            undecided = keep(
                undecided.join(gone.withColumnRenamed("id", "worse"), "worse", "left_anti")
            )
            if before is not first:
                drop(before)
            parts.append(gone)
            left = undecided.count()
            self.rounds += 1
        if left > FEW_PAIRS:
            message = f"after {MOST_ROUNDS} rounds {left:,} pairs are still undecided"
            raise InputError(message, "keep by another property, or use a higher --threshold")
        covered = self._by_driver(undecided)
        if undecided is not first:
            drop(undecided)
        for part in parts:
            covered = covered.unionByName(part)
        if self.covered_early is not None:
            covered = covered.unionByName(self.covered_early)
        covered = keep(covered)
        drop(*parts)
        return covered

    def _by_driver(self, undecided: "DataFrame") -> "DataFrame":
        """The same one after the other: when it is the turn of a document, all that might cover it have had theirs."""
        import pyarrow as pa

        table = undecided.select("rank", "better", "worse").toArrow()
        covered: set[bytes] = set()
        for _, better, worse in sorted(
            zip(*(column.to_pylist() for column in table.columns), strict=True)
        ):
            if better not in covered:
                covered.add(worse)
        ids = pa.table({"id": pa.array(sorted(covered), pa.binary())})
        return undecided.sparkSession.createDataFrame(ids, "id binary")

    @cached_property
    def documents(self) -> "DataFrame":
        """id, representative, similarity, copy: every document that has tokens, itself if it represents or is alone.

        similarity : exact, to the representative. copy : whether it has the same set, but is not it.
        """
        from pyspark.sql import functions as f

        comparison = self._comparison
        leading = self.edges.join(
            self.covered.withColumnRenamed("id", "better"), "better", "left_anti"
        )
        first = f.min(f.struct("rank", "better", "similarity")).alias("first")
        members = (
            leading.groupBy("worse")
            .agg(first)
            .selectExpr("worse as kind", "first.better as leader", "first.similarity as similarity")
        )
        kinds = comparison.kinds.selectExpr("digest", "first.id as kind").join(
            members, "kind", "left"
        )
        rows = comparison.sketches.select("id", "digest").join(
            kinds, "digest"
        )  # without tokens there is no digest
        # Of one kind the first by name represents, because all else that is preferred is the same.
        alone = f.col("leader").isNull()
        documents = rows.select(
            "id",
            f.coalesce("leader", "kind").alias("representative"),
            f.coalesce("similarity", f.lit(1.0)).alias("similarity"),
            (alone & (f.col("id") != f.col("kind"))).alias("copy"),
        )
        return self._checkpoints.keep(documents)

    @property
    def kept(self) -> "DataFrame":
        """id: documents that represent, or are alone."""
        return self.documents.where("id = representative").select("id")

    @property
    def dropped(self) -> "DataFrame":
        """id: documents that another represents."""
        return self.documents.where("id != representative").select("id")

    @property
    def listed(self) -> "DataFrame":
        """The documents of groups of two or more."""
        from pyspark.sql import functions as f

        groups = (
            self.documents.groupBy(f.col("representative").alias("leader"))
            .agg(f.count("*").alias("n"))
            .where("n > 1")
        )
        return self.documents.join(
            groups, self.documents["representative"] == groups["leader"]
        ).select(*self.documents.columns)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Groups of two or more; documents that are kept, those that are dropped, and copies among these."""
        from pyspark.sql import functions as f

        apart = f.col("id") != f.col("representative")
        leaders = f.count_distinct(f.when(apart, f.col("representative")))
        row = self.documents.agg(
            leaders.alias("a"),
            f.count_if(~apart).alias("b"),
            f.count_if(apart).alias("c"),
            f.count_if("copy").alias("d"),
        )
        return tuple(row.collect()[0])
