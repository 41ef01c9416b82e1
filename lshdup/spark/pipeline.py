"""Near-duplicates on Apache Spark: (id, text) in, verified pairs out, for collections too large for
one machine.

Read `Comparison` first: its members follow the six calls of `pipeline.find_near_duplicates`.
Workers use the shingler, sketcher, keys and similarity of the local engine (`workers.sets`,
`workers.pairs`). This module says which rows meet where.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Self

from lshdup.errors import InputError, ParameterError
from lshdup.lsh.band_plan import BandPlan
from lshdup.params import BandParams, PairParams, ShingleParams, SketchParams
from lshdup.spark import functions as f
from lshdup.spark import tiles as spark_tiles
from lshdup.spark.caching import byte_slice, cache, sift
from lshdup.spark.recipe import Recipe, make_recipe
from lshdup.spark.sources import Source, id_and_text, map_documents
from lshdup.spark.tiles import Tiles
from lshdup.spark.workers import pairs as worker_pairs
from lshdup.spark.workers import sets as worker_sets
from lshdup.utils.messages import count_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SHINGLE, _SKETCH, _BANDS, _PAIRS = ShingleParams(), SketchParams(), BandParams(), PairParams()

#: Exact duplicates are expanded by tasks of at most so many documents of one set.
BLOCK_COPIES = 1024

#: Tasks for the pairs of one document without exact duplicates, while the others are expanded.
SALTS = 64


def find_near_duplicates(
    documents: "DataFrame",
    shingle: ShingleParams = _SHINGLE,
    sketch: SketchParams = _SKETCH,
    band: BandParams = _BANDS,
    asked: PairParams = _PAIRS,
    *,
    contents: bool = False,
) -> "Comparison":
    """Return the comparison of documents: the pairs that `lshdup pairs` finds in them.

    documents : a DataFrame whose first two columns are an id (a string, bytes or a whole number,
        unique; as a string it is the document's name) and a text (a string or UTF-8 bytes; HTML
        is reduced to its visible text). It is evaluated twice and must be the same both times:
        persist or checkpoint a DataFrame that may change.
    contents : the texts are contents of files with the ids as names, in any encoding.

    Raises ParameterError for parameters outside their domain, InputError for
    columns of another type.

    >>> found = find_near_duplicates(spark.read.parquet("s3a://…"))  # doctest: +SKIP
    >>> found.pairs().write.parquet("s3a://…")  # doctest: +SKIP
    """
    if asked.measure != "jaccard":
        message = f"the measure is {asked.measure}"
        raise ParameterError(message, "call lshdup.spark.containment.find_contained_pairs")
    recipe = make_recipe(shingle, sketch, band, asked)
    return Comparison(source_of(documents, contents=contents), recipe, asked.max_bucket)


def source_of(documents: "DataFrame", *, contents: bool) -> tuple[Source]:
    """Return the source of the documents of `find_near_duplicates`. Raises InputError likewise."""
    if not hasattr(documents, "mapInArrow"):
        message = f"the documents are a {type(documents).__name__}, and must be a DataFrame"
        raise InputError(message, "session.createDataFrame makes one")
    if len(documents.columns) < 2:
        message = f"the documents have {count_of(len(documents.columns), 'column')}, and need two"
        raise InputError(message, "select an id and a text, in that order")
    rows = id_and_text(documents, *documents.columns[:2]).withColumn("plain", f.lit(contents))
    return (Source(rows),)


@dataclass(frozen=True)
class Summary:
    """Counts of documents.

    documents : compared documents, and those without shingles.
    empty : documents without tokens.
    small : documents of fewer tokens than `min_tokens`.
    skipped : skipped documents by reason.
    guesses : documents by detected encoding.
    forms : documents by what they were read as (`utils.forms.Form`).
    """

    documents: int
    shingles: int
    empty: int
    small: int
    skipped: dict[str, int]
    guesses: dict[str, int]
    forms: dict[int, int]


@dataclass(frozen=True)
class Comparison:
    """A comparison of documents, stage by stage, as DataFrames that Spark evaluates on request.

    sources : the documents (`find_documents`).
    max_bucket : largest bucket that is not skipped; 0 skips none.

    Spark caches `sketches`, `distinct_sets`, `shared` and `tiles`, because several stages use them,
    until `close` or the end of a ``with``. No stage collects rows. The memory of a task is bounded
    by one tile. An id that repeats is an error of the first stage that is evaluated.
    """

    sources: tuple[Source, ...]
    recipe: Recipe
    max_bucket: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let Spark drop the cached stages."""
        for name in ("sketches", "distinct_sets", "shared"):
            if name in self.__dict__:
                self.__dict__[name].unpersist()
        if "tiles" in self.__dict__:
            self.tiles.close()

    def begin_again(self) -> None:
        """Drop the stages that cannot be made again without what a lost executor held: none."""

    # --- collect ------------------------------------------------------------------------------

    @cached_property
    def sketches(self) -> "DataFrame":
        """The stage `collect`: `workers.sets.SKETCHES`, a row for each document."""
        work = partial(worker_sets.sketch_rows, self.recipe)
        return cache(map_documents(self.sources, work, worker_sets.SKETCHES))

    def summary(self) -> Summary:
        """Return counts of documents. Raise InputError if an id repeats."""
        size, detail = f.col("size"), f.col("detail")
        is_empty = (size == 0) & f.col("reason").isNull()
        counts = self.sketches.groupBy("reason", "encoding", "form").agg(
            f.count("*").alias("n"),
            f.sum(size).alias("shingles"),
            f.count_if(is_empty & detail.isNull()).alias("empty"),
            f.count_if(is_empty & detail.isNotNull()).alias("small"),
        )
        rows = counts.collect()
        self.refuse_repeated()
        skipped, guesses, forms = Counter[str](), Counter[str](), Counter[int]()
        for row in rows:
            if row.reason is not None:
                skipped[row.reason] += row.n
                continue
            forms[row.form] += row.n
            if row.encoding is not None:
                guesses[row.encoding] += row.n
        valid = [row for row in rows if row.reason is None]
        names = ("n", "shingles", "empty", "small")
        n, shingles, empty, small = (sum(row[name] for row in valid) for name in names)
        return Summary(n, shingles, empty, small, skipped, guesses, forms)

    def refuse_repeated(self) -> None:
        """Raise InputError if two documents have the same id, which would mix up their pairs."""
        if self._repeated:
            name, n = self._repeated[0]
            shown = bytes(name).decode("utf-8", "backslashreplace")
            message = f"the id {shown!r} is that of {n:,} documents"
            raise InputError(
                message, "each document needs an id of its own; name another column with --id-field"
            )

    @cached_property
    def _repeated(self) -> list[tuple[bytes, int]]:
        """The id of most documents and their number, if an id repeats."""
        counts = self.sketches.where("reason is null").groupBy("id").agg(f.count("*").alias("n"))
        most = counts.where("n > 1").orderBy(f.desc("n"), "id").limit(1)
        return [tuple(row) for row in most.collect()]

    @cached_property
    def distinct_sets(self) -> "DataFrame":
        """A row for each distinct shingle set: digest, first, documents.

        first : id, size and keys of its first document by name, which stands for its exact
            duplicates (documents with an equal set).
        documents : number of documents.

        Raises InputError if an id repeats.
        """
        self.refuse_repeated()
        first = f.min(f.struct("id", "size", "keys")).alias("first")
        sets = self.sketches.where("size > 0").groupBy("digest")
        return cache(sets.agg(first, f.count("*").alias("documents")))

    # --- build_index ----------------------------------------------------------------------------

    @cached_property
    def index_rows(self) -> "DataFrame":
        """A row for each distinct set and band: bucket (key and band), id, size, before.

        before : keys of the bands before.
        """
        assert isinstance(self.recipe.plan, BandPlan)
        bands, band = self.recipe.plan.bands, f.col("band")
        numbers = f.lit(b"".join(i.to_bytes(4, "big") for i in range(bands)))
        key = byte_slice("keys", band * 8, 8)
        every = f.explode(f.sequence(f.lit(0), f.lit(bands - 1))).alias("band")
        return self.distinct_sets.select("first.*", every).select(
            f.concat(key, numbers.substr(band * 4 + 1, f.lit(4))).alias("bucket"),
            "id",
            "size",
            byte_slice("keys", f.lit(0), band * 8).alias("before"),
        )

    @cached_property
    def shared(self) -> "DataFrame":
        """Buckets of two distinct sets or more: bucket, n, and the sum of their shingles.

        Tasks count before they shuffle, so no bucket is too large.
        """
        counts = self.index_rows.groupBy("bucket").agg(
            f.count("*").alias("n"), f.sum("size").alias("shingles")
        )
        return cache(counts.where("n > 1"))

    @cached_property
    def buckets(self) -> "DataFrame":
        """`index_rows` in shared buckets, with the bucket's n and shingles."""
        rows = sift(self.index_rows, self.shared, self.shared.count(), "bucket")
        return spark_tiles.with_counts(rows, self.shared)

    @cached_property
    def compared(self) -> "DataFrame":
        """`buckets` without those larger than `max_bucket`, nor their keys in `before`.

        So a pair is met in its first bucket that is compared.
        """
        if not self.max_bucket:
            return self.buckets
        bands = f.collect_set((f.length("before") / 8).cast("int")).alias("large")
        large = self.buckets.where(f.col("n") > self.max_bucket).groupBy("id").agg(bands)
        rows = self.buckets.where(f.col("n") <= self.max_bucket).join(large, "id", "left")
        earlier = f.filter(
            f.coalesce("large", f.array().cast("array<int>")),
            lambda band: band * 8 < f.length("before"),
        )
        no_key = f.lit(worker_pairs.NO_KEY)
        before = f.aggregate(
            earlier,
            f.col("before"),
            lambda keys, band: f.overlay(keys, no_key, band * 8 + 1, f.lit(8)),
        )
        return rows.withColumn("before", before).drop("large")

    def bucket_counts(self) -> tuple[int, bytes, int, int, int]:
        """Return the size of the largest bucket, its first id, and counts of skipped buckets.

        The counts are: skipped buckets, distinct sets in them, candidate pairs in them.
        """
        n, over = f.col("n"), f.col("n") > (self.max_bucket or 1 << 62)
        pairs = f.sum(f.when(over, n * (n - 1) / 2)).cast("bigint")
        counts = f.max("n").alias("n"), f.count_if(over).alias("buckets"), pairs.alias("pairs")
        row = self.shared.agg(*counts).collect()[0]
        if not row.n:
            return 0, b"", 0, 0, 0
        first = f.min(f.when(n == row.n, f.col("id"))).alias("id")
        sets = f.count_distinct(f.when(over, f.col("id"))).alias("sets")
        found = self.buckets.where(over | (n == row.n)).agg(first, sets).collect()[0]
        return row.n, bytes(found.id), row.buckets, found.sets, row.pairs or 0

    # --- candidate_pairs, verify ------------------------------------------------------------------

    @cached_property
    def tiles(self) -> Tiles:
        """Rows that make candidate pairs, and the pairs that are verified."""
        return spark_tiles.candidate_pairs(self.compared, self.sources, self.recipe)

    # --- expand_copies ----------------------------------------------------------------------------

    def pairs(self, *, collapse: bool = False) -> "DataFrame":
        """Return all pairs of documents: a, b (binary), and scores; a before b, in no order.

        m exact duplicates make m (m - 1) / 2 pairs.

        collapse : list each further exact duplicate once instead, beside the first by name.
        """
        pairs = self.distinct_pairs
        several = self.distinct_sets.where("documents > 1")
        if several.isEmpty():
            return pairs
        scores = pairs.columns[2:]
        equal = self.scores_of_equal(f.col("size"))
        if collapse:
            copies = self.exact_duplicates.where("id > first").withColumns(equal)
            a, b = f.col("first").alias("a"), f.col("id").alias("b")
            return pairs.unionByName(copies.select(a, b, *scores))
        first, size = f.col("first.id"), f.col("first.size").alias("size")
        within = several.select(first.alias("a"), first.alias("b"), size).withColumns(equal)
        within = within.drop("size").withColumn("same", f.lit(True))
        # A set beside itself gives each pair twice, and each document with itself.
        both = pairs.withColumn("same", f.lit(False)).unionByName(within)
        both = self._expand_copies(self._expand_copies(both, "a"), "b")
        once = both.where((f.col("a") < f.col("b")) | ~f.col("same"))
        a, b = (
            f.when(self.is_by_name, by_name("a", "b")).otherwise(f.col(side)).alias(side)
            for side, by_name in (("a", f.least), ("b", f.greatest))
        )
        return once.select(a, b, *scores)

    @property
    def distinct_pairs(self) -> "DataFrame":
        """a, b and scores of pairs of distinct sets."""
        return self.tiles.pairs.select("a", "b", f.col("score").alias("similarity"))

    def scores_of_equal(self, size: "Column") -> "dict[str, Column]":
        """Return the scores of two documents with an equal set of so many shingles."""
        return {"similarity": f.lit(1.0)}

    @property
    def is_by_name(self) -> "Column":
        """Whether the order of a pair is that of the names."""
        return f.lit(True)

    @cached_property
    def exact_duplicates(self) -> "DataFrame":
        """The documents of each set that has several, cut into blocks.

        first, id, size, blocks, block.
        """
        blocks = f.ceil(f.col("documents") / BLOCK_COPIES).cast("bigint")
        several = self.distinct_sets.where("documents > 1").select(
            "digest", f.col("first.id").alias("first"), "first.size", blocks.alias("blocks")
        )
        block = f.pmod(f.xxhash64("id"), f.col("blocks")).alias("block")
        rows = self.sketches.select("id", "digest").join(several, "digest")
        return rows.select("first", "id", "size", "blocks", block)

    def _expand_copies(self, pairs: "DataFrame", column: str) -> "DataFrame":
        """Repeat each pair for the exact duplicates of the document in a column, block by block."""
        sets = self.distinct_sets.where("documents > 1").select(
            f.col("first.id").alias("first"),
            f.ceil(f.col("documents") / BLOCK_COPIES).cast("bigint").alias("blocks"),
        )
        # A document without exact duplicates matches none. Its pairs are spread over tasks by salt.
        other = "b" if column == "a" else "a"
        salt = f.array(-1 - f.pmod(f.xxhash64(other), f.lit(SALTS)))
        every = f.sequence(f.lit(0), f.col("blocks") - 1)
        block = f.explode(f.when(f.col("blocks").isNull(), salt).otherwise(every)).alias("block")
        pairs = pairs.withColumnRenamed(column, "first").join(sets, "first", "left")
        pairs = pairs.select(*(name for name in pairs.columns if name != "blocks"), block)
        copies = self.exact_duplicates.select("first", "block", "id")
        pairs = pairs.join(copies, ["first", "block"], "left")
        return pairs.withColumn(column, f.coalesce("id", "first")).drop("first", "block", "id")
