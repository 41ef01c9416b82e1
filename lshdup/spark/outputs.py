"""Answers that Spark writes, in folders of part files: Parquet, and JSON Lines as output.py makes them. Called by cli/spark.py."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lshdup.spark import paths
from lshdup.spark.interrupts import unfinished
from lshdup.utils import atomic
from lshdup.utils.json_cells import json_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Endings of what Spark writes.
_KINDS = {".parquet": "parquet", ".jsonl": "json", ".ndjson": "json"}


def kind_of(name: str) -> str:
    """What is written under a name: parquet, json, or nothing.

    >>> kind_of("hdfs:///x.parquet"), kind_of("x.JSONL"), kind_of("x.tsv"), kind_of("a.parquet/")
    ('parquet', 'json', '', 'parquet')
    """
    return next(
        (kind for ending, kind in _KINDS.items() if name.rstrip("/").lower().endswith(ending)), ""
    )


def place(spark: "SparkSession", name: str) -> str:
    """Where an answer goes, as Spark takes it. Raises InputError if something is there, or nothing can be written there."""
    home_local = paths.is_home_local(spark)
    path = paths.spark_name(name, home_local=home_local)
    if home_local and not paths.has_scheme(name):
        atomic.check_writable(Path(path))
    paths.check_new(spark, path, name)
    return path


def write(
    answer: "DataFrame", path: str, kind: str, ids: "DataFrame", *, again: bool = False
) -> None:
    """Have Spark write an answer, whose names are columns of bytes.

    ids : all names, in a column `id`: where one is not UTF-8, Parquet has the bytes, because a string of it must be UTF-8; JSON Lines are
    the lines of the local engine. again : what is there is left of a first try, and may go. Raises what Spark does.
    """
    from pyspark.sql import functions as f

    mode = "overwrite" if again else "errorifexists"
    there = paths.located(answer.sparkSession, path)
    if kind == "json":
        with unfinished(*there):
            answer.mapInArrow(json_lines, "value string").write.mode(mode).text(path)
        return
    names = [name for name, kind_of_column in answer.dtypes if kind_of_column == "binary"]
    if ids.where(~f.is_valid_utf8(f.col("id").cast("string"))).isEmpty():
        answer = answer.withColumns({name: f.col(name).cast("string") for name in names})
    with unfinished(*there):
        answer.write.mode(mode).parquet(path)


def json_lines(rows: Iterator[Any]) -> Iterator[Any]:
    """Arrow record batches -> their rows as lines (value) of JSON."""
    import pyarrow as pa

    for batch in rows:
        cells = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        lines = [json_line(batch.schema.names, row) for row in cells]
        yield pa.RecordBatch.from_arrays(
            [pa.array([line.decode("ascii") for line in lines], pa.string())], ["value"]
        )
