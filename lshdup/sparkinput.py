"""What the command line names -> documents as Spark sees them: files, rows of JSON Lines or Parquet, lines of id lists.

Names without a scheme, where Spark's own file system is the local one, are found as always (documents.py), and read by the workers under
the same names. Everything else is listed and read by Spark: `hdfs://`, `s3a://`, `file:/`, patterns.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lshdup import spark as stages
from lshdup import sparkrows
from lshdup.errors import InputError, ParameterError
from lshdup.finding import find_documents
from lshdup.params import DEFAULT_TEXT_FIELD, DocumentParams
from lshdup.reasons import LeftOut
from lshdup.rows import Kind, RowFields, kind_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")

#: Bytes of files that one task reads.
_TASK_BYTES = 32 << 20


@dataclass(frozen=True)
class Documents:
    """Documents for `stages.Comparison`, of the kind that its recipe must name; and about how many bytes they are."""

    rows: "DataFrame"
    kind: str
    size: int
    home: bytes = b""


def read(
    spark: "SparkSession",
    names: tuple[bytes, ...],
    params: DocumentParams,
    *,
    ids: bool,
    left_out: Callable[[LeftOut], None] = lambda _: None,
    jobs: int = 1,
) -> Documents:
    """The documents that are named. ids : each line is one (`--tokens ids`).

    Raises InputError for a name that does not exist, or if names of several kinds are mixed; ParameterError for rows without an id field,
    because a row's number in its file is not known to the one who reads it.
    """
    if not names:
        message = "no documents were named"
        raise InputError(message, "--engine spark keeps nothing between runs: name DOCS")
    found = [_Name(spark, os.fsdecode(name), params) for name in names]
    if ids:
        return _lines(spark, found)
    kinds = {each.kind for each in found}
    if len(kinds) > 1:
        message = "files and rows, or JSON Lines and Parquet, are named together"
        raise InputError(message, "with --engine spark, name those of one kind")
    kind = kinds.pop()
    if kind != Kind.FILE:
        return _rows(spark, found, params, kind)
    if all(each.is_local for each in found):
        return _local_files(spark, names, params, left_out, jobs)
    return _remote_files(spark, found, params)


class _Name:
    """One argument, looked up in the file system that it is in. Raises InputError if nothing is there."""

    def __init__(self, spark: "SparkSession", name: str, params: DocumentParams) -> None:
        context: Any = spark.sparkContext
        settings = context._jsc.hadoopConfiguration()
        has_scheme = _SCHEME.match(name) is not None
        self.name = name
        try:
            # Java's current folder is that of the time when it was started.
            at_home = not has_scheme and context._jvm.org.apache.hadoop.fs.FileSystem.get(settings).getScheme() == "file"
            path = context._jvm.org.apache.hadoop.fs.Path(_escaped(os.path.abspath(name)) if at_home else name)  # noqa: PTH100 (as typed)
            system = path.getFileSystem(settings)
            self.root = path.makeQualified(system.getUri(), system.getWorkingDirectory()).toString()
            matches = system.globStatus(path)
        except Exception as error:
            cause = str(getattr(error, "java_exception", error)).splitlines()[0]
            message = f"{name!r} cannot be looked up: {cause}"
            raise InputError(message, "does Spark know that file system, and may it read there?") from None
        if not matches:
            message = f"{name!r} does not exist"
            raise InputError(message, "name folders or files that exist")
        self.is_local = at_home and os.path.lexists(name)
        self.is_pattern = len(matches) > 1 or matches[0].getPath().toString() != self.root
        self.size = sum(system.getContentSummary(match.getPath()).getLength() for match in matches)
        self.kind = _kind(name, system, matches, params)


def _escaped(name: str) -> str:
    """A local path that would look like a pattern, as itself, if it is there."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", name) if os.path.lexists(name) else name


def _kind(name: str, system: Any, matches: Any, params: DocumentParams) -> Kind:
    """What a name holds: by its ending, or, where a field is named, by the ending of the first file of rows below it."""
    named = kind_of(os.fsencode(name.rstrip("/")), named=True, field_given=bool(params.text_field))
    if named != Kind.FILE or not (params.text_field or params.id_field):
        return named
    for match in matches:
        files = system.listFiles(match.getPath(), True)
        while files.hasNext():
            kind = kind_of(os.fsencode(files.next().getPath().getName()), named=True, field_given=True)
            if kind != Kind.FILE:
                return kind
    message = f"{name!r} holds no Parquet and no JSON Lines"
    raise InputError(message, "leave --text-field and --id-field out, or name files of rows")


def _local_files(
    spark: "SparkSession", names: tuple[bytes, ...], params: DocumentParams, left_out: Callable[[LeftOut], None], jobs: int
) -> Documents:
    import pyarrow as pa

    documents = find_documents(names, params, on_left_out=left_out, jobs=jobs)
    table = pa.table({"id": pa.array(list(documents.names), pa.binary()), "size": documents.sizes})
    size = int(documents.sizes.sum())
    tasks = max(2 * spark.sparkContext.defaultParallelism, -(-size // _TASK_BYTES))
    rows = spark.createDataFrame(table, "id binary, size bigint").repartition(tasks)
    return Documents(rows, "files", size, os.getcwdb())  # noqa: PTH109 (bytes path)


def _remote_files(spark: "SparkSession", found: list[_Name], params: DocumentParams) -> Documents:
    from pyspark.sql import functions as f

    if params.hidden or params.follow or params.include or params.exclude:
        message = "--hidden, --follow, --include and --exclude are for local names"
        raise ParameterError(message, "leave them out, or name a pattern such as hdfs://host/docs/*.txt")
    parts = []
    for each in found:
        files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(_reader_path(each))
        named = f.col("path")
        if not each.is_pattern:  # called as it was typed, and not as Spark spells it
            named = f.concat(f.lit(each.name.rstrip("/")), f.substring(named, f.lit(len(each.root) + 1), f.length(named)))
        parts.append(files.select(named.cast("binary").alias("id"), f.col("content").alias("text")))
    return Documents(_union(parts), "contents", sum(each.size for each in found))


def _rows(spark: "SparkSession", found: list[_Name], params: DocumentParams, kind: Kind) -> Documents:
    from pyspark.sql import functions as f

    if not params.id_field:
        message = "rows need a name that comes from the data"
        raise ParameterError(message, "name the field that holds it with --id-field")
    fields = RowFields(params.text_field or DEFAULT_TEXT_FIELD, params.id_field)
    paths = [_reader_path(each) for each in found]
    size = sum(each.size for each in found)
    if kind == Kind.PARQUET:
        rows = spark.read.option("recursiveFileLookup", "true").parquet(*paths)
        return Documents(stages.id_and_text(rows, fields.id, fields.text), "texts", size)
    lines = spark.read.option("recursiveFileLookup", "true").text(paths, lineSep="\n")
    lines = lines.select(f.col("value").cast("binary"), f.col("_metadata.file_path").cast("binary").alias("file"))
    return Documents(lines.mapInArrow(partial(sparkrows.json_rows, fields), sparkrows.JSON_ROWS), "texts", size)


def _lines(spark: "SparkSession", found: list[_Name]) -> Documents:
    from pyspark.sql import functions as f

    lines = spark.read.option("recursiveFileLookup", "true").text([_reader_path(each) for each in found], lineSep="\n")
    rows = lines.select(f.col("value").cast("binary")).mapInArrow(sparkrows.id_rows, sparkrows.ID_ROWS)
    return Documents(rows, "texts", sum(each.size for each in found))


def _reader_path(each: _Name) -> str:
    """The name as Spark's readers take it: a local one that is there is no pattern."""
    return _escaped(each.root) if each.is_local or not each.is_pattern else each.name


def _union(parts: list["DataFrame"]) -> "DataFrame":
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part)
    return rows
