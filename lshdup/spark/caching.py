"""What Spark keeps and drops: caches, checkpoints of rounds, and Bloom filters of wanted values."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lshdup.spark import functions as f

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Bits of a Bloom filter for each value, of which a value sets four: one in 400 other values
#: passes. A filter has at most 256 MB, since every executor gets it; beyond, more others pass.
FILTER_BITS = 16
BLOCK_BITS = 1 << 15
MOST_BLOCKS = 1 << 16


def cache(rows: "DataFrame") -> "DataFrame":
    """Return the same rows, kept on memory and disk once they are computed."""
    from pyspark import StorageLevel

    return rows.persist(StorageLevel.MEMORY_AND_DISK)


def sift(rows: "DataFrame", wanted: "DataFrame", n: int, column: str) -> "DataFrame":
    """Return the rows whose value in a column is wanted, and a few others.

    A Bloom filter, cut into blocks by a hash of the value, is joined by broadcast, so only hashes
    of wanted values are shuffled.

    wanted : a DataFrame with the same column.
    n : number of wanted values.
    """
    blocks = max(1, min(MOST_BLOCKS, -(-n * FILTER_BITS // BLOCK_BITS)))
    block = f.pmod(f.xxhash64(column), f.lit(blocks)).alias("block")
    bits = f.xxhash64(column, f.lit(1))
    positions = [f.shiftright(bits, 15 * i).bitwiseAND(f.lit(BLOCK_BITS - 1)) for i in range(4)]
    # One task makes a block: most tasks have bits of every block, and a part of a block is 4 KB.
    filters = (
        wanted.select(block, f.explode(f.array(*positions)).alias("position"))
        .repartition("block")
        .groupBy("block")
        .agg(f.bitmap_construct_agg("position").alias("filter"))
    )
    passed = rows.withColumn("block", block).join(f.broadcast(filters), "block")
    for position in positions:
        byte = byte_slice("filter", f.shiftright(position, 3).cast("int"), 1)
        byte = f.conv(f.hex(byte), 16, 10).cast("int")
        passed = passed.where(f.getbit(byte, position.bitwiseAND(f.lit(7)).cast("int")) == 1)
    return passed.select(*rows.columns)


def byte_slice(column: str, start: "Column", length: "Column | int") -> "Column":
    """Return bytes of a binary column, from `start`, counted from 0."""
    return f.substring(
        f.col(column), start + 1, f.lit(length) if isinstance(length, int) else length
    )


class Checkpoints:
    """Computed rows that have forgotten their plans: plans of rounds would grow exponentially.

    They are in the session's folder for checkpoints; without a folder, executors keep them.
    """

    def __init__(self) -> None:
        self._kept: list[DataFrame] = []

    def keep(self, rows: "DataFrame") -> "DataFrame":
        """Return the same rows, computed now."""
        kept = rows.checkpoint() if _has_folder(rows.sparkSession) else rows.localCheckpoint()
        self._kept.append(kept)
        return kept

    def drop(self, *rows: "DataFrame") -> None:
        """Free what `keep` returned; nothing may use it any more."""
        for dropped in rows:
            self._kept = [kept for kept in self._kept if kept is not dropped]
            _free(dropped)

    def close(self) -> None:
        """Free all checkpoints."""
        self.drop(*self._kept)


def _has_folder(session: Any) -> bool:
    try:
        context = session.sparkContext
    except Exception:  # with Spark Connect only the server's settings tell
        return bool(session.conf.get("spark.checkpoint.dir", ""))
    return context.getCheckpointDir() is not None


def _free(rows: Any) -> None:
    """Free the blocks, or delete the files, of a checkpoint; Spark Connect does so by itself."""
    frame = getattr(rows, "_jdf", None)
    if frame is None:
        return
    with suppress(Exception):  # a context that ended, or a lost executor, has nothing left
        checkpoint = frame.queryExecution().logical().rdd()
        checkpoint.unpersist(False)
        file = checkpoint.getCheckpointFile()
        if file.isDefined():
            context = rows.sparkSession.sparkContext
            path = context._jvm.org.apache.hadoop.fs.Path(file.get())
            path.getFileSystem(context._jsc.hadoopConfiguration()).delete(path, True)
