"""Near-duplicates on Apache Spark: (id, text) in, verified pairs out, for collections too large for
one machine.

Read `Comparison` first: its members follow the six calls of `pipeline.find_near_duplicates`.
Workers use the shingler, sketcher, keys and similarity of the local engine (`workers`,
`tile_workers`). This module says which rows meet where.
"""

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, Self

from lshdup.base.params import DEFAULT_MAX_BYTES, BandParams, ShingleParams, SketchParams
from lshdup.base.wording import count_of
from lshdup.errors import InputError, ParameterError
from lshdup.lsh.band_plan import plan_bands
from lshdup.spark import functions as f
from lshdup.spark import tiles as spark_tiles
from lshdup.spark.files import as_documents, select_fields
from lshdup.spark.tile_workers import NO_KEY
from lshdup.spark.workers import SKETCHES, Recipe, sketch_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHINGLE, _SKETCH, _BANDS = ShingleParams(), SketchParams(), BandParams()

#: Exact duplicates are expanded by tasks of at most so many documents of one set.
BLOCK_COPIES = 1024


def make_recipe(
    shingle: ShingleParams = _SHINGLE,
    sketch: SketchParams = _SKETCH,
    band: BandParams = _BANDS,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Recipe:
    """Plan the bands, and return the parameters of a run on Spark.

    Raises ParameterError for parameters that only the local engine has.
    """
    if sketch.scheme == "linear" or shingle.tokens == "ids":
        message = "--scheme linear and --tokens ids are not for Spark"
        raise ParameterError(message, "use `lshdup accuracy`, or `lshdup pairs`")
    return Recipe(shingle, sketch, plan_bands(sketch.perms, band), band.threshold, max_bytes)


def find_near_duplicates(
    documents: "DataFrame",
    shingle: ShingleParams = _SHINGLE,
    sketch: SketchParams = _SKETCH,
    band: BandParams = _BANDS,
    *,
    max_bucket: int = 0,
    contents: bool = False,
) -> "Comparison":
    """Return the comparison of documents: the pairs that `lshdup pairs` finds in them.

    documents : a DataFrame whose first two columns are an id (a string, bytes or a whole number,
        unique; as a string it is the document's name) and a text (a string or UTF-8 bytes; HTML
        is reduced to its visible text). It is evaluated twice and must be the same both times:
        persist or checkpoint a DataFrame that may change.
    max_bucket : largest bucket that is not skipped; 0 skips none.
    contents : the texts are contents of files with the ids as names, in any encoding.

    Raises ParameterError for parameters outside their domain, InputError for
    columns of another type.

    >>> found = find_near_duplicates(spark.read.parquet("s3a://…"))  # doctest: +SKIP
    >>> found.pairs().write.parquet("s3a://…")  # doctest: +SKIP
    """
    if not hasattr(documents, "mapInArrow"):
        message = f"the documents are a {type(documents).__name__}, and must be a DataFrame"
        raise InputError(message, "session.createDataFrame makes one")
    if len(documents.columns) < 2:
        message = f"the documents have {count_of(len(documents.columns), 'column')}, and need two"
        raise InputError(message, "select an id and a text, in that order")
    rows = as_documents(select_fields(documents, *documents.columns[:2]), plain=contents)
    return Comparison(rows, make_recipe(shingle, sketch, band), max_bucket)


class Summary(NamedTuple):
    """Counts of documents.

    documents, shingles : compared documents, and the elements of their sets.
    empty : documents without tokens, or with fewer than `min_tokens`.
    skipped : skipped documents by reason.
    """

    documents: int
    shingles: int
    empty: int
    skipped: dict[str, int]


@dataclass(frozen=True)
class Comparison:
    """A comparison of documents, stage by stage, as DataFrames that Spark evaluates on request.

    documents : `workers.DOCUMENTS`, evaluated twice.
    max_bucket : largest bucket that is not skipped; 0 skips none.

    Spark caches the stages that several stages use until `close` or the end of a ``with``. No stage
    collects rows. The memory of a task is bounded by one tile. An id that repeats is an error of
    the first stage behind `sketches` that is evaluated.
    """

    documents: "DataFrame"
    recipe: Recipe
    max_bucket: int = 0
    _cached: "list[DataFrame]" = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let Spark drop the cached stages."""
        for rows in self._cached:
            rows.unpersist()

    def _cache(self, rows: "DataFrame") -> "DataFrame":
        self._cached.append(rows)
        return rows.persist()

    # --- collect ------------------------------------------------------------------------------

    @cached_property
    def sketches(self) -> "DataFrame":
        """The stage `collect`: `workers.SKETCHES`, a row for each document."""
        work = partial(sketch_rows, self.recipe)
        return self._cache(self.documents.mapInArrow(work, SKETCHES))

    def summary(self) -> Summary:
        """Return counts of documents."""
        is_empty = f.count_if(f.col("size") == 0)
        counts = f.count("*").alias("n"), f.sum("size").alias("shingles"), is_empty.alias("empty")
        rows = self.sketches.groupBy("reason").agg(*counts).collect()
        valid = ((row.n, row.shingles, row.empty) for row in rows if row.reason is None)
        n, shingles, empty = next(valid, (0, 0, 0))
        skipped = {row.reason: row.n for row in rows if row.reason is not None}
        return Summary(n, shingles, empty, skipped)

    @cached_property
    def distinct_sets(self) -> "DataFrame":
        """A row for each distinct shingle set: digest, first, documents.

        first : id, size and keys of its first document by name, which stands for its exact
            duplicates (documents with an equal set).
        documents : number of documents.

        Raises InputError if two documents have the same id, which would mix up their pairs.
        """
        counts = self.sketches.where("reason is null").groupBy("id").agg(f.count("*").alias("n"))
        for row in counts.where("n > 1").orderBy(f.desc("n"), "id").limit(1).collect():
            shown = bytes(row.id).decode("utf-8", "backslashreplace")
            message = f"the id {shown!r} is that of {row.n:,} documents"
            hint = "each document needs an id of its own; name another column with --id-field"
            raise InputError(message, hint)
        first = f.min(f.struct("id", "size", "keys")).alias("first")
        sets = self.sketches.where("size > 0").groupBy("digest")
        return self._cache(sets.agg(first, f.count("*").alias("documents")))

    # --- build_index ----------------------------------------------------------------------------

    @cached_property
    def index_rows(self) -> "DataFrame":
        """A row for each distinct set and band: bucket (hash of key and band), id, size, before.

        before : keys of the bands before.
        """
        band, every = f.col("band"), f.sequence(f.lit(0), f.lit(self.recipe.plan.bands - 1))
        return self.distinct_sets.select("first.*", f.explode(every).alias("band")).select(
            f.xxhash64(f.substring(f.col("keys"), band * 8 + 1, f.lit(8)), band).alias("bucket"),
            "id",
            "size",
            f.substring(f.col("keys"), f.lit(1), band * 8).alias("before"),
        )

    @cached_property
    def shared(self) -> "DataFrame":
        """Buckets of two distinct sets or more: bucket, n, and the sum of their shingles.

        Tasks count before they shuffle, so no bucket is too large.
        """
        counts = f.count("*").alias("n"), f.sum("size").alias("shingles")
        return self._cache(self.index_rows.groupBy("bucket").agg(*counts).where("n > 1"))

    @cached_property
    def compared(self) -> "DataFrame":
        """`index_rows` in shared buckets of at most `max_bucket`, with the bucket's n and shingles.

        The keys of larger buckets are taken out of `before`, so that a pair is met in its first
        bucket that is compared.
        """
        rows = self.index_rows.join(spark_tiles.broadcast_if_small(self.shared), "bucket")
        if not self.max_bucket:
            return rows
        bands = f.collect_set((f.length("before") / 8).cast("int")).alias("large")
        large = rows.where(f.col("n") > self.max_bucket).groupBy("id").agg(bands)
        rows = rows.where(f.col("n") <= self.max_bucket).join(large, "id", "left")
        large_bands = f.coalesce("large", f.array().cast("array<int>"))
        before = f.aggregate(
            f.filter(large_bands, lambda band: band * 8 < f.length("before")),
            f.col("before"),
            lambda keys, band: f.overlay(keys, f.lit(NO_KEY), band * 8 + 1, f.lit(8)),
        )
        return rows.withColumn("before", before).drop("large")

    def count_skipped_buckets(self) -> tuple[int, int]:
        """Return the number of buckets larger than `max_bucket`, and of candidate pairs in them."""
        n = f.col("n")
        large = self.shared.where(n > (self.max_bucket or 1 << 62))
        pairs = f.sum(n * (n - 1) / 2).cast("bigint")
        buckets, candidates = large.agg(f.count("*"), pairs).collect()[0]
        return buckets, candidates or 0

    # --- candidate_pairs, verify ------------------------------------------------------------------

    @cached_property
    def distinct_pairs(self) -> "DataFrame":
        """Verified pairs of distinct sets: `tile_workers.PAIRS`."""
        rows = self._cache(spark_tiles.candidate_rows(self.compared))
        return self.verify(rows)

    def verify(self, rows: "DataFrame") -> "DataFrame":
        """Return the verified pairs of tiles; rows : `tile_workers.TILES`, cached."""
        sets = spark_tiles.sets_of(self.documents, rows, self.recipe)
        return spark_tiles.verified_pairs(rows, sets, self.recipe)

    # --- expand_copies ----------------------------------------------------------------------------

    def pairs(self, *, collapse: bool = False) -> "DataFrame":
        """Return all pairs of documents: a, b (binary), and similarity; a before b, in no order.

        m exact duplicates make m (m - 1) / 2 pairs.

        collapse : list each further exact duplicate once instead, beside the first by name.
        """
        pairs = self.distinct_pairs.select("a", "b", "similarity")
        first, copies = f.col("first"), self.exact_duplicates
        one = f.lit(1.0).alias("similarity")
        if collapse:
            others = copies.where("id > first")
            return pairs.unionByName(others.select(first.alias("a"), f.col("id").alias("b"), one))
        within = copies.where("id = first").select(first.alias("a"), first.alias("b"), one)
        # A set beside itself gives each pair twice, and each document with itself.
        both = pairs.withColumn("same", f.lit(False)).unionByName(
            within.withColumn("same", f.lit(True))
        )
        both = self._expand_copies(self._expand_copies(both, "a"), "b")
        both = both.where((f.col("a") < f.col("b")) | ~f.col("same"))
        return both.select(
            f.least("a", "b").alias("a"), f.greatest("a", "b").alias("b"), "similarity"
        )

    @cached_property
    def exact_duplicates(self) -> "DataFrame":
        """The documents of each set that has several, cut into blocks: first, id, block, blocks."""
        blocks = f.ceil(f.col("documents") / BLOCK_COPIES).cast("bigint").alias("blocks")
        several = self.distinct_sets.where("documents > 1")
        several = several.select("digest", f.col("first.id").alias("first"), blocks)
        rows = self.sketches.select("id", "digest").join(several, "digest")
        return rows.select(
            "first", "id", f.pmod(f.xxhash64("id"), "blocks").alias("block"), "blocks"
        )

    def _expand_copies(self, pairs: "DataFrame", column: str) -> "DataFrame":
        """Repeat each pair for the exact duplicates of the document in a column, block by block."""
        copies = self.exact_duplicates
        sets = copies.where("id = first").select("first", "blocks")
        pairs = pairs.withColumnRenamed(column, "first").join(sets, "first", "left")
        # A document without exact duplicates has no block, and matches none.
        block = f.explode_outer(f.sequence(f.lit(0).cast("bigint"), f.col("blocks") - 1))
        pairs = pairs.withColumn("block", block).drop("blocks")
        pairs = pairs.join(copies.drop("blocks"), ["first", "block"], "left")
        return pairs.withColumn(column, f.coalesce("id", "first")).drop("first", "block", "id")
