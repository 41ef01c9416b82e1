"""What Spark keeps, and lets go of: caches, results of rounds, and filters of values that are wanted. Called by spark*.py."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: A filter of values has so many bits for each, of which each sets four: one in 400 of the other values passes. Up to 256 MB, which every
#: executor gets; with more values than fit, more of the others pass.
FILTER_BITS = 16
BLOCK_BITS = 1 << 15
MOST_BLOCKS = 1 << 16


def kept(rows: "DataFrame") -> "DataFrame":
    """The same, which Spark keeps on memory and disk when it has been made."""
    from pyspark import StorageLevel

    return rows.persist(StorageLevel.MEMORY_AND_DISK)


def sifted(rows: "DataFrame", wanted: "DataFrame", n: int, column: str) -> "DataFrame":
    """`rows` whose value in `column` is one of n `wanted` ones, which has such a column too, and a few others.

    It is a Bloom filter, cut into blocks by a hash of the value, and joined by broadcast; so nothing is shuffled but hashes of `wanted`.
    """
    from pyspark.sql import functions as f

    blocks = max(1, min(MOST_BLOCKS, -(-n * FILTER_BITS // BLOCK_BITS)))
    block = f.pmod(f.xxhash64(column), f.lit(blocks)).alias("block")
    bits = f.xxhash64(column, f.lit(1))
    places = [f.shiftright(bits, 15 * i).bitwiseAND(f.lit(BLOCK_BITS - 1)) for i in range(4)]
    # A block is made by one task: parts of blocks would be 4 KB each, and most tasks have a bit of each block.
    filters = (
        wanted.select(block, f.explode(f.array(*places)).alias("place"))
        .repartition("block")
        .groupBy("block")
    )
    made = filters.agg(f.bitmap_construct_agg("place").alias("filter"))
    passed = rows.withColumn("block", block).join(f.broadcast(made), "block")
    for place in places:
        byte = f.conv(f.hex(cut("filter", f.shiftright(place, 3).cast("int"), 1)), 16, 10).cast(
            "int"
        )
        passed = passed.where(f.getbit(byte, place.bitwiseAND(f.lit(7)).cast("int")) == 1)
    return passed.select(*rows.columns)


def cut(column: str, start: "Column", length: "Column | int") -> "Column":
    """Bytes of a binary column, from `start`, counted from 0."""
    from pyspark.sql import functions as f

    return f.substring(
        f.col(column), start + 1, f.lit(length) if isinstance(length, int) else length
    )


class Checkpoints:
    """Rows that were made, and are kept without how: what uses those of the round before more than once would have plans that grow by the
    power. In the folder for checkpoints, where the session has one; otherwise the executors keep them.
    """

    def __init__(self) -> None:
        self._made: list[DataFrame] = []

    def keep(self, rows: "DataFrame") -> "DataFrame":
        """The same, made now."""
        made = rows.checkpoint() if _has_folder(rows.sparkSession) else rows.localCheckpoint()
        self._made.append(made)
        return made

    def drop(self, *rows: "DataFrame") -> None:
        """Let go of what `keep` gave: nothing may use it any more."""
        for each in rows:
            self._made = [other for other in self._made if other is not each]
            _forget(each)

    def close(self) -> None:
        """Let go of everything."""
        self.drop(*self._made)


def _has_folder(session: Any) -> bool:
    try:
        context = session.sparkContext
    except (
        Exception
    ):  # with Spark Connect the server alone has one, and knows what it was started with
        return bool(session.conf.get("spark.checkpoint.dir", ""))
    return context.getCheckpointDir() is not None


def _forget(rows: Any) -> None:
    """Free the blocks, or delete the files, of a checkpoint. With Spark Connect the server does so when `rows` are garbage here."""
    frame = getattr(rows, "_jdf", None)
    if frame is None:
        return
    with suppress(
        Exception
    ):  # of a context that has ended, or an executor that was lost, nothing is left
        made = frame.queryExecution().logical().rdd()
        made.unpersist(False)
        file = made.getCheckpointFile()
        if file.isDefined():
            context = rows.sparkSession.sparkContext
            path = context._jvm.org.apache.hadoop.fs.Path(file.get())
            path.getFileSystem(context._jsc.hadoopConfiguration()).delete(path, True)
