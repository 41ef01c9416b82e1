"""The same stages on Apache Spark: (id, text) in, verified pairs out; for collections that one machine cannot hold.

Read `Comparison`: its properties, from top to bottom, are the table of contents. What a worker does with rows is in sparkrows.py, over the
same shingler, sketcher, keys and similarity as the local engine's; what is here is which rows meet where.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Self

from lshdup.errors import InputError, ParameterError
from lshdup.lsh import band_plan
from lshdup.params import BandParams, PairParams, ShingleParams, SketchParams
from lshdup.spark import tiles as spark_tiles
from lshdup.spark import worker
from lshdup.spark.caching import cut, kept, sifted
from lshdup.spark.tiles import Tiles
from lshdup.spark.worker import Batches, Recipe, Rows
from lshdup.utils.messages import counted, some_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHINGLE, _SKETCH, _BANDS, _PAIRS = ShingleParams(), SketchParams(), BandParams(), PairParams()

#: Copies are listed by tasks of at most so many of one kind.
BLOCK_COPIES = 1024

#: Pairs of one document that has no copies go through so many tasks while those that have are listed.
SALTS = 64


def recipe(
    shingle: ShingleParams = _SHINGLE,
    sketch: SketchParams = _SKETCH,
    band: BandParams = _BANDS,
    asked: PairParams = _PAIRS,
) -> Recipe:
    """The parameters of a run on Spark. Raises ParameterError for what only the local engine has, or if no bands keep the promise."""
    if sketch.scheme == "linear":
        message = "--scheme linear needs the whole collection at once, which Spark has not"
        raise ParameterError(message, "use fast or classic")
    if asked.verify != "exact":
        message = "on Spark every pair is verified exactly"
        raise ParameterError(message, "leave --verify out")
    plan = band_plan.plan_bands(sketch.perms, band)
    return Recipe(shingle, sketch, plan, band.threshold)


def near_duplicates(
    documents: "DataFrame",
    shingle: ShingleParams = _SHINGLE,
    sketch: SketchParams = _SKETCH,
    band: BandParams = _BANDS,
    asked: PairParams = _PAIRS,
    *,
    contents: bool = False,
) -> "Comparison":
    """All pairs of documents at or above ``band.threshold``: what `lshdup pairs` finds in the same documents.

    documents : a DataFrame whose first two columns are an id (a string, bytes or a whole number, each once; as text it is the document's
    name) and a text (a string or UTF-8 bytes; what looks like a page of HTML is reduced to its visible text). It is evaluated twice, so it
    must be the same both times: persist or checkpoint what is not. contents : the texts are contents of files, called by their ids, in any
    encoding.

    Raises ParameterError for parameters outside their domain, InputError for columns of other types.

    >>> found = near_duplicates(spark.read.parquet("s3a://…"), band=BandParams(threshold=0.9))  # doctest: +SKIP
    >>> found.pairs().write.parquet("s3a://…")  # doctest: +SKIP
    """
    if not hasattr(documents, "mapInArrow"):
        message = f"the documents are a {type(documents).__name__}, and must be a DataFrame"
        raise InputError(message, "session.createDataFrame makes one")
    if len(documents.columns) < 2:
        message = f"the documents have {counted(len(documents.columns), 'column')}, and need two"
        raise InputError(message, "select an id and a text, in that order")
    made = replace(recipe(shingle, sketch, band, asked), kind="contents" if contents else "texts")
    return Comparison(id_and_text(documents, *documents.columns[:2]), made, asked.max_bucket)


def id_and_text(rows: "DataFrame", name: str, text: str) -> "DataFrame":
    """(id, text), the id as bytes, of rows that have columns of these names, or a field ``a.b``. Raises InputError if they have not."""
    from pyspark.sql import functions as f
    from pyspark.sql import types

    there = rows.columns
    numbered = rows.toDF(
        *(f"c{number}" for number in range(len(there)))
    )  # names that differ only by case would be taken for each other
    columns = []
    for option, field, kinds in (
        ("--id-field", name, (types.StringType, types.BinaryType, types.IntegralType)),
        ("--text-field", text, (types.StringType, types.BinaryType)),
    ):
        way = [field] if field in there else field.split(".")
        found: list[types.DataType] = [rows.schema]
        for step in way:
            found = [
                part.dataType
                for whole in found
                if isinstance(whole, types.StructType)
                for part in whole
                if part.name == step
            ]
        if len(found) != 1:
            message = f"there is no column {field!r}, but {some_of(rows.columns)}"
            if found:
                message = f"there are {len(found)} columns {field!r}"
            raise InputError(message, f"{option} names another")
        within = (".`" + part.replace("`", "``") + "`" for part in way[1:])
        column, kind = f.col("".join([f"c{there.index(way[0])}", *within])), found[0]
        if not isinstance(kind, kinds):
            message = f"the column {field!r} is of type {kind.simpleString()}"
            raise InputError(message, f"{option} names another")
        if option == "--id-field" and not isinstance(kind, types.BinaryType):
            column = column.cast("string").cast(
                "binary"
            )  # a text stays what it is: each cast would copy it
        columns.append(column.alias(option[2:-6]))
    return numbered.select(*columns)


@dataclass(frozen=True)
class Summary:
    """Documents, their shingles, how many have none, why others are left out, and which encodings were guessed."""

    documents: int
    shingles: int
    empty: int
    skipped: dict[str, int]
    guessed: dict[str, int]


@dataclass(frozen=True)
class Source:
    """Rows that documents are read from. read : their batches -> those of documents; None: they are documents already."""

    rows: "DataFrame"
    read: Callable[[Batches], Batches] | None = None


@dataclass(frozen=True)
class Comparison:
    """A comparison of documents, stage by stage; each is a DataFrame that Spark evaluates when something asks for its rows.

    documents : (id: binary, text) or, if they are files, (id: binary, size); see `sparkrows.Recipe`. max_bucket : larger buckets are
    left out; 0: none is. sources : what all documents are read from, if it is not they; so that the worker that reads a text makes its
    sketch, and Spark does not carry it from one to the other.

    `sketches`, `kinds`, `shared` and `tiles` are kept by Spark when they have been made, on memory and disk, because more than one stage
    needs them; `close`, or the end of a ``with``, lets go of them. No stage collects rows; the memory of a task is bounded by one tile.
    Ids that repeat are an error of whatever is asked first.
    """

    documents: "DataFrame"
    recipe: Recipe
    max_bucket: int = 0
    sources: tuple[Source, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what Spark keeps."""
        for name in ("sketches", "kinds", "shared"):
            if name in self.__dict__:
                self.__dict__[name].unpersist()
        if "tiles" in self.__dict__:
            self.tiles.close()

    # --- documents -> sketches -> kinds ----------------------------------------------------------------------------------------

    @cached_property
    def sketches(self) -> "DataFrame":
        """A row for each document: id, size and digest of its set, band keys; or why it is left out. See `sparkrows.sketch_rows`."""
        return kept(self.mapped(worker.sketch_rows, worker.SKETCHES))

    def summary(self) -> Summary:
        """Counts of documents. Raises InputError if ids repeat."""
        from pyspark.sql import functions as f

        size, reason = f.col("size"), f.col("reason")
        counts = self.sketches.groupBy("reason", "encoding").agg(
            f.count("*").alias("n"),
            f.sum(size).alias("shingles"),
            f.count_if((size == 0) & reason.isNull()).alias("empty"),
        )
        rows = counts.collect()
        self.refuse_repeated()
        skipped: dict[str, int] = {}
        guessed: dict[str, int] = {}
        for row in rows:
            if row.reason is not None:
                skipped[row.reason] = skipped.get(row.reason, 0) + row.n
            elif row.encoding is not None:
                guessed[row.encoding] = row.n
        there = [row for row in rows if row.reason is None]
        return Summary(
            sum(row.n for row in there),
            sum(row.shingles for row in there),
            sum(row.empty for row in there),
            skipped,
            guessed,
        )

    def refuse_repeated(self) -> None:
        """Raise InputError if two documents have the same id: the pairs of one could not be told from those of the other."""
        if self._repeated:
            name, n = self._repeated[0]
            message = f"the id {bytes(name).decode('utf-8', 'backslashreplace')!r} is that of {n:,} documents"
            raise InputError(
                message, "each document needs an id of its own; name another column with --id-field"
            )

    @cached_property
    def _repeated(self) -> list[tuple[bytes, int]]:
        """The id that most documents have, if that is more than one, and how many."""
        from pyspark.sql import functions as f

        counts = self.sketches.where("reason is null").groupBy("id").agg(f.count("*").alias("n"))
        return [
            tuple(row)
            for row in counts.where("n > 1").orderBy(f.desc("n"), "id").limit(1).collect()
        ]

    @cached_property
    def kinds(self) -> "DataFrame":
        """A row for each kind, the documents of one digest: id, size and keys of the first of them by name, and how many they are.

        Raises InputError if ids repeat.
        """
        from pyspark.sql import functions as f

        self.refuse_repeated()
        first = f.min(f.struct("id", "size", "keys")).alias("first")
        return kept(
            self.sketches.where("size > 0")
            .groupBy("digest")
            .agg(first, f.count("*").alias("documents"))
        )

    # --- kinds -> buckets ----------------------------------------------------------------------------------------------

    @cached_property
    def _rows(self) -> "DataFrame":
        """A row for each kind and band: bucket, its key and band; id, size, and the keys of the bands before."""
        from pyspark.sql import functions as f

        band = f.col("band")
        names = f.lit(b"".join(i.to_bytes(4, "big") for i in range(self.recipe.plan.bands)))
        return self.kinds.select("first.*", f.explode(f.sequence(f.lit(0), f.lit(self.recipe.plan.bands - 1))).alias("band")).select(
            f.concat(cut("keys", band * 8, 8), names.substr(band * 4 + 1, f.lit(4))).alias("bucket"),
            "id", "size", cut("keys", f.lit(0), band * 8).alias("before"),
        )  # fmt: skip

    @cached_property
    def shared(self) -> "DataFrame":
        """Buckets of two kinds or more: bucket, n, and the shingles of these. Tasks count before they shuffle: no bucket is too large."""
        from pyspark.sql import functions as f

        counts = self._rows.groupBy("bucket").agg(
            f.count("*").alias("n"), f.sum("size").alias("shingles")
        )
        return kept(counts.where("n > 1"))

    @cached_property
    def buckets(self) -> "DataFrame":
        """A row for each kind and band in a shared bucket: bucket, id, size, keys of the bands before, and the bucket's n and shingles."""
        return spark_tiles.with_counts(
            sifted(self._rows, self.shared, self.shared.count(), "bucket"), self.shared
        )

    @cached_property
    def compared(self) -> "DataFrame":
        """`buckets` without those larger than `max_bucket`, whose keys do not count before either: a pair is met where it first can be."""
        from pyspark.sql import functions as f

        if not self.max_bucket:
            return self.buckets
        of_large = f.collect_set((f.length("before") / 8).cast("int")).alias("large")
        large = self.buckets.where(f.col("n") > self.max_bucket).groupBy("id").agg(of_large)
        rows = self.buckets.where(f.col("n") <= self.max_bucket).join(large, "id", "left")
        earlier = f.filter(
            f.coalesce("large", f.array().cast("array<int>")),
            lambda band: band * 8 < f.length("before"),
        )
        none = f.lit(worker.NO_KEY)
        before = f.aggregate(
            earlier,
            f.col("before"),
            lambda keys, band: f.overlay(keys, none, band * 8 + 1, f.lit(8)),
        )
        return rows.withColumn("before", before).drop("large")

    def bucket_counts(self) -> tuple[int, bytes, int, int, int]:
        """Kinds in the largest bucket and the first of them; of larger ones than `max_bucket`: how many, their kinds, their pairs."""
        from pyspark.sql import functions as f

        n, over = f.col("n"), f.col("n") > (self.max_bucket or 1 << 62)
        pairs = f.sum(f.when(over, n * (n - 1) / 2)).cast("bigint")
        row = self.shared.agg(
            f.max("n").alias("n"), f.count_if(over).alias("buckets"), pairs.alias("pairs")
        ).collect()[0]
        if not row.n:
            return 0, b"", 0, 0, 0
        most = f.min(f.when(n == row.n, f.col("id"))).alias("id")
        wanted = self.buckets.where(over | (n == row.n))
        found = wanted.agg(
            most, f.count_distinct(f.when(over, f.col("id"))).alias("kinds")
        ).collect()[0]
        return row.n, bytes(found.id), row.buckets, found.kinds, row.pairs or 0

    # --- buckets -> tiles -> pairs ------------------------------------------------------------------------------------------------

    @cached_property
    def tiles(self) -> "Tiles":
        """What meets in the buckets, and the pairs that come of it."""
        return spark_tiles.of_buckets(self.compared, self.documents, self.recipe)

    @cached_property
    def members(self) -> "DataFrame":
        """first, id, blocks, block: the documents of each kind that has several, cut into blocks."""
        from pyspark.sql import functions as f

        several = self.kinds.where("documents > 1").select(
            "digest", "documents", f.col("first.id").alias("first")
        )
        blocks = f.ceil(f.col("documents") / BLOCK_COPIES).cast("bigint")
        rows = (
            self.sketches.select("id", "digest")
            .join(several, "digest")
            .withColumn("blocks", blocks)
        )
        return rows.select(
            "first", "id", "blocks", f.pmod(f.xxhash64("id"), f.col("blocks")).alias("block")
        )

    def pairs(self, *, collapse: bool = False) -> "DataFrame":
        """a, b (binary), similarity: all pairs of documents, a before b by their bytes, in no order.

        m documents of one kind make m (m - 1) / 2 pairs. collapse : each further copy once, beside the first of its kind, instead.
        """
        from pyspark.sql import functions as f

        pairs = self.tiles.pairs.select("a", "b", "similarity")
        if self.kinds.where("documents > 1").isEmpty():
            return pairs
        if collapse:
            copies = self.members.where("id > first").select(
                f.col("first").alias("a"), f.col("id").alias("b"), f.lit(1.0).alias("similarity")
            )
            return pairs.unionByName(copies)
        itself = f.col("first.id")
        within = self.kinds.where("documents > 1").select(
            itself.alias("a"), itself.alias("b"), f.lit(1.0).alias("similarity")
        )
        # A kind beside itself gives each pair twice, and each document with itself.
        both = pairs.withColumn("same", f.lit(False)).unionByName(
            within.withColumn("same", f.lit(True))
        )
        both = self._expanded(self._expanded(both, "a"), "b")
        a, b = f.col("a"), f.col("b")
        once = both.where((a < b) | ((a > b) & ~f.col("same")))
        return once.select(f.least(a, b).alias("a"), f.greatest(a, b).alias("b"), "similarity")

    def _expanded(self, pairs: "DataFrame", column: str) -> "DataFrame":
        """Each pair once for every document of the kind in `column`, by tasks that each see a block of them."""
        from pyspark.sql import functions as f

        kinds = self.kinds.where("documents > 1").select(
            f.col("first.id").alias("first"),
            f.ceil(f.col("documents") / BLOCK_COPIES).cast("bigint").alias("blocks"),
        )
        # Of a document that has no copies no member is found; so that one with many pairs is not all one task's, its pairs are strewn.
        other = "b" if column == "a" else "a"
        strewn = f.array(-1 - f.pmod(f.xxhash64(other), f.lit(SALTS)))
        pairs = pairs.withColumnRenamed(column, "first").join(kinds, "first", "left")
        block = f.explode(
            f.when(f.col("blocks").isNull(), strewn).otherwise(
                f.sequence(f.lit(0), f.col("blocks") - 1)
            )
        ).alias("block")
        pairs = pairs.select(*(each for each in pairs.columns if each != "blocks"), block)
        members = self.members.select("first", "block", "id")
        pairs = pairs.join(members, ["first", "block"], "left")
        return pairs.withColumn(column, f.coalesce("id", "first")).drop("first", "block", "id")

    # --- how rows are handed to workers ------------------------------------------------------------------------------------------

    def mapped(self, function: Rows, schema: str) -> "DataFrame":
        """What workers make of the documents; nothing is kept."""
        work = partial(function, self.recipe)
        sources = self.sources or (Source(self.documents),)
        made = (
            each.rows.mapInArrow(partial(worker.read_and_made, each.read, work), schema)
            for each in sources
        )
        return reduce(lambda rows, more: rows.unionByName(more), made)
