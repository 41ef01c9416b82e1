"""Answers that Spark writes as folders of part files: Parquet, and JSON Lines of `cli.output`."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lshdup.matching.pairs import Pairs
from lshdup.spark import functions as f
from lshdup.spark.files import paths
from lshdup.spark.interrupts import unfinished, wait_for_tasks
from lshdup.utils.arrow import as_binary
from lshdup.utils.json_cells import json_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Pairs that are handed on at a time.
_PART = 1 << 13


def write(
    answer: "DataFrame", path: str, form: str, ids: "DataFrame", *, overwrite: bool = False
) -> None:
    """Let Spark write an answer, in which names are columns of bytes; errors are those of Spark.

    Parquet has strings of the names, or their bytes if a name is not UTF-8.

    form : of `paths.format_of`.
    ids : all names, in a column `id`.
    overwrite : replace the folder of a first try.
    """
    mode = "overwrite" if overwrite else "errorifexists"
    session = answer.sparkSession
    with unfinished(*paths.located(session, path), partial(wait_for_tasks, session)):
        if form == "json":
            answer.mapInArrow(json_lines, "value string").write.mode(mode).text(path)
            return
        names = [name for name, of_column in answer.dtypes if of_column == "binary"]
        if ids.where(~f.is_valid_utf8(f.col("id").cast("string"))).isEmpty():
            answer = answer.withColumns({name: f.col(name).cast("string") for name in names})
        answer.write.mode(mode).parquet(path)


def json_lines(rows: Iterator[Any]) -> Iterator[Any]:
    """Return the rows of Arrow record batches as lines of JSON, in a column `value`."""
    for batch in rows:
        cells = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        lines = [json_line(batch.schema.names, row).decode("ascii") for row in cells]
        yield pa.RecordBatch.from_arrays([pa.array(lines, pa.string())], ["value"])


def ordered_pairs(table: Any) -> Iterator[list[list[Any]]]:
    """Yield the columns of the pairs of an Arrow table, part by part: scores descending, then by
    names.
    """
    columns = [as_binary(table.column(name).combine_chunks()) for name in ("a", "b")]
    names = pc.unique(pa.chunked_array(columns, pa.binary()))
    names = names.take(pc.sort_indices(names))
    left, right = (pc.index_in(column, names).to_numpy().astype(np.int64) for column in columns)
    scores, sizes = table.column("similarity").to_numpy(), np.zeros(len(names), np.int64)
    is_contained = "containment" in table.column_names
    if is_contained:
        scores = table.column("containment").to_numpy() + 1j * scores
        for side, documents in (("a", left), ("b", right)):
            sizes[documents] = table.column(f"{side}_shingles").to_numpy()
    pairs = Pairs.of(left, right, scores)
    objects = np.array([*names.to_pylist(), None], object)[:-1]
    for start in range(0, len(pairs), _PART):
        a, b, score = pairs.part(start, min(start + _PART, len(pairs)))
        arrays = [objects[a], objects[b], score]
        if is_contained:
            arrays = [objects[a], objects[b], score.real, score.imag, sizes[a], sizes[b]]
        yield [array.tolist() for array in arrays]


def ordered_clusters(table: Any) -> Iterator[tuple[int, str, bytes, float, bool, float]]:
    """Yield the rows that `lshdup clusters` lists: number, fate, name, similarity, copy, smallest.

    Clusters are in the order of size, descending, then of the representative. A cluster begins with
    its representative; the others follow by similarity, descending.
    """
    clusters: dict[bytes, list[tuple[bool, float, bytes, bool]]] = {}
    columns = (column.to_pylist() for column in table.columns)
    for name, representative, similarity, copy in zip(*columns, strict=True):
        member = (name != representative, -similarity, name, copy)
        clusters.setdefault(representative, []).append(member)
    in_order = sorted(clusters.items(), key=lambda cluster: (-len(cluster[1]), cluster[0]))
    for number, (_, members) in enumerate(in_order, 1):
        members.sort()
        smallest = -members[-1][1]
        for dropped, score, name, copy in members:
            fate = "drop" if dropped else "keep"
            yield number, fate, name, -score, copy, smallest
