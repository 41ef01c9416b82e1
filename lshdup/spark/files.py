"""Documents that Spark reads from files, and answers that it writes.

Spark lists and reads every path that it knows: `hdfs://`, `s3a://`, and names on this machine,
which all workers must have. It passes over empty files, and names that begin with `_` or a dot.
"""

import os
import re
from collections.abc import Iterator
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lshdup.base.forms import PART
from lshdup.base.params import ACCEPTED_FILE, LONGEST, DocumentParams
from lshdup.base.wording import join_names, json_line
from lshdup.errors import InputError, ParameterError
from lshdup.sources.document_list import typed_name
from lshdup.sources.readers import classify_file
from lshdup.sources.records import Kind, RecordFields, split_fields
from lshdup.spark import functions as f
from lshdup.spark.workers import DOCUMENTS, Batches, json_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Files of rows in folders, as patterns of Spark's readers and as regular expressions of paths.
_ROWS = {
    Kind.JSON: ("*.{jsonl,ndjson,JSONL,NDJSON}{,.gz}", r"\.(jsonl|ndjson|JSONL|NDJSON)(\.gz)?$"),
    Kind.PARQUET: ("*.{parquet,PARQUET}", r"\.(parquet|PARQUET)$"),
}

_FORMATS = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def find_documents(
    spark: "SparkSession", names: tuple[str, ...], params: DocumentParams
) -> "DataFrame":
    """Return the documents in files: `workers.DOCUMENTS`, a row for each.

    names : files, folders, and patterns, on any path that Spark reads.
    params : of which `text_field`, `id_field` and `max_bytes` count.

    Raises ParameterError for rows without an id field, since no worker knows the number of a row in
    its file, and for files that only the local engine reads. Errors of files are Spark's.
    """
    frames = (frame for name in names for frame in _Input(spark, name, params).frames())
    return reduce(lambda rows, more: rows.unionByName(more), frames)


class _Input:
    """A file, a folder, or a pattern that was named, and its documents.

    name : as typed. A file below it is called by the name and the rest of its path; a match of a
        pattern, by its whole path.
    """

    def __init__(self, spark: "SparkSession", name: str, params: DocumentParams) -> None:
        self._spark, self._name, self._params = spark, name, params
        is_here = os.path.lexists(name)  # Java does not know the current folder
        path = f"file:{os.path.abspath(name)}" if is_here else name  # noqa: PTH100 (as typed)
        self._root = hadoop_path(spark, path)[0].toString().rstrip("/")
        self._path = re.sub(r"([\\*?\[\]{}])", r"\\\1", path) if is_here else path
        typed = os.fsdecode(typed_name(os.fsencode(name))) if is_here else name.rstrip("/")
        self._typed = "" if typed == "." else typed

    def frames(self) -> "Iterator[DataFrame]":
        """Yield the documents of each kind of file: DOCUMENTS."""
        kind = classify_file(
            os.fsencode(self._name.rstrip("/")),
            named=True,
            field_given=bool(self._params.text_field),
            archives=False,
        )
        if kind in (Kind.JSON, Kind.PARQUET):
            yield self._rows(kind, "*")
        elif kind not in (Kind.FILE, Kind.WIKI):
            message = f"`lshdup spark` reads Parquet, JSON Lines, text and HTML, not {self._name}"
            raise ParameterError(message, "use `lshdup pairs`, or convert it")
        else:
            files = self._spark.read.format("binaryFile").option("recursiveFileLookup", "true")
            rows = files.load(self._path).where(~f.col("path").endswith(f"/{ACCEPTED_FILE}"))
            if self._params.text_field:  # in folders, files of rows have rows then
                for kind_of_rows, (pattern, ending) in _ROWS.items():
                    has_ending = f.col("path").rlike(ending)
                    if not rows.where(has_ending).select("path").isEmpty():
                        yield self._rows(kind_of_rows, pattern)
                    rows = rows.where(~has_ending)
            path = f.col("path")
            rest = path.substr(f.lit(len(self._root) + 1), f.length(path))
            rest = f.concat(f.lit(self._typed), rest) if self._typed else f.ltrim(rest, f.lit("/"))
            name = f.when(path.startswith(self._root), rest).otherwise(path)
            yield as_documents(rows.select(name.cast("binary").alias("id"), "content"), plain=True)

    def _rows(self, kind: Kind, pattern: str) -> "DataFrame":
        """Return the rows of files; pattern : of their names."""
        fields = RecordFields.of(self._params)
        if not fields.id:
            message = f"the rows of {self._name} need a name that comes from the data"
            raise ParameterError(message, "name the field that holds it with --id-field")
        options = {"recursiveFileLookup": "true", "pathGlobFilter": pattern}
        reader = self._spark.read.options(**options)
        if kind == Kind.PARQUET:
            rows = reader.parquet(self._path)
            return as_documents(select_fields(rows, fields.id, *split_fields(fields.text)))
        path = f.col("_metadata.file_path").cast("binary").alias("file")
        line = f.col("value").cast("binary").alias("line")
        lines = reader.text(self._path, lineSep="\n").select(line, path)
        return lines.mapInArrow(partial(json_rows, fields, self._params.max_bytes), DOCUMENTS)


def as_documents(rows: "DataFrame", *, plain: bool = False) -> "DataFrame":
    """Return DOCUMENTS of rows whose columns are an id and a text, both strings or bytes."""
    null = f.lit(None).cast("string")
    name, text = rows.columns
    return rows.select(
        f.col(name).alias("id"),
        f.col(text).cast("binary").alias("text"),
        f.lit(plain).alias("plain"),
        null.alias("reason"),
        null.alias("detail"),
    )


def select_fields(rows: "DataFrame", name: str, *texts: str) -> "DataFrame":
    """Return the columns `id` and `text` of rows, as bytes.

    name, texts : columns, or fields within columns (``a.b``); several texts are joined.

    Raises InputError if there are no such columns, or if they are of another type.
    """
    ident = _field(rows, name, "--id-field")
    parts = [_field(rows, each, "--text-field") for each in texts]
    text = parts[0]
    if len(parts) > 1:
        joined = f.concat(*(f.coalesce(f.concat(f.lit(PART), part), f.lit(b"")) for part in parts))
        joined = f.substring(joined, len(PART) + 1, LONGEST)  # none before the first
        text = f.when(f.coalesce(*parts).isNotNull(), joined)
    return rows.select(ident.alias("id"), text.alias("text"))


def _field(rows: "DataFrame", field: str, option: str) -> "Column":
    """Return a column, or a field within one, as bytes."""
    from pyspark.errors import AnalysisException

    typed = f"`{field.replace('`', '``')}`" if field in rows.columns else field
    try:
        kind = rows.select(typed).dtypes[0][1]
    except AnalysisException:
        message = f"there is not one column {field!r}, but {join_names(rows.columns)}"
        raise InputError(message, f"{option} names another") from None
    numbers = ("tinyint", "smallint", "int", "bigint") if option == "--id-field" else ()
    if kind not in ("string", "binary", *numbers):
        message = f"the column {field!r} is of type {kind}"
        raise InputError(message, f"{option} names another")
    return f.col(typed).cast("string").cast("binary") if kind != "binary" else f.col(typed)


def hadoop_path(spark: "SparkSession", name: str) -> tuple[Any, Any]:
    """Return Hadoop's full path of a name, and its file system. Errors are Spark's."""
    context: Any = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(name)
    system = path.getFileSystem(context._jsc.hadoopConfiguration())
    return path.makeQualified(system.getUri(), system.getWorkingDirectory()), system


def format_of(name: str) -> str:
    """Return the format that the name of an answer says. Raise ParameterError if it says none.

    >>> format_of("x.JSONL"), format_of("a.parquet/")
    ('jsonl', 'parquet')
    """
    form = _FORMATS.get(os.path.splitext(name.rstrip("/"))[1].lower())  # noqa: PTH122 (a URI)
    if form is None:
        message = f"-o is {name!r}, and Spark writes folders of Parquet or JSON Lines"
        raise ParameterError(message, "give it the ending .parquet or .jsonl")
    return form


def refuse_existing(spark: "SparkSession", name: str) -> None:
    """Raise InputError, before the work, if a folder for the answer exists."""
    path, system = hadoop_path(spark, name)
    if system.exists(path):
        message = f"-o {name} exists already"
        raise InputError(message, "Spark replaces no folder: name another, or remove it")


def write(answer: "DataFrame", name: str, ids: "DataFrame", mode: str = "errorifexists") -> None:
    """Let Spark write an answer, in which names are columns of bytes. Errors are Spark's.

    JSON Lines are those of `--format jsonl`, in no order. Parquet has strings of the names, or
    their bytes if a name is not UTF-8.

    ids : all names, in a column `id`.
    """
    if format_of(name) == "jsonl":
        answer.mapInArrow(json_lines, "value string").write.mode(mode).text(name)
        return
    if ids.where(~f.is_valid_utf8(f.col("id").cast("string"))).isEmpty():
        names = [column for column, kind in answer.dtypes if kind == "binary"]
        answer = answer.withColumns({each: f.col(each).cast("string") for each in names})
    answer.write.mode(mode).parquet(name)


def json_lines(rows: Batches) -> Batches:
    """Return the rows of Arrow record batches as lines of JSON, in a column `value`."""
    for batch in rows:
        cells = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        lines = [json_line(batch.schema.names, row).decode("ascii") for row in cells]
        yield pa.RecordBatch.from_arrays([pa.array(lines, pa.string())], ["value"])
