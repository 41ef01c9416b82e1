"""What the command line names -> documents as Spark sees them: files, rows of JSON Lines or Parquet, lines of id lists.

Names on this machine, `file:/` among them, are found as always (finding.py), and read by the workers under the same names and by the same
rules: Hadoop would pass over files whose names are not UTF-8, and cannot read those with a colon. Other URIs and patterns are listed and
read by Spark: `hdfs://`, `s3a://`.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from lshdup.documents.document_list import DocumentList
from lshdup.documents.finding import find_files
from lshdup.documents.missing import not_there
from lshdup.documents.parquet import ParquetFile
from lshdup.documents.records import Kind, RecordError, RecordFields, classify_file
from lshdup.errors import InputError, ParameterError
from lshdup.params import DEFAULT_TEXT_FIELD, DocumentParams
from lshdup.skipped import Reason, Skipped
from lshdup.spark import comparison as stages
from lshdup.spark import paths as spark_paths
from lshdup.spark import worker_reading
from lshdup.spark.worker import Batches
from lshdup.utils.compression import is_packed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

#: Bytes of files that one task reads; a file of rows that has more is cut.
TASK_BYTES = 32 << 20

_PATTERN = re.compile(r"[*?\[{]")

#: Taken literally, as Hadoop does: %20 is three characters.
_FILE_URI = re.compile(rb"(?is)file:(?://(?:localhost)?)?(/(?!/).*|/)\Z")

#: As regular expressions over whole paths: which files have rows; see `rows.classify_file`.
_ENDINGS = {Kind.JSON: r"(?i)\.(jsonl|ndjson)(\.gz|\.zst)?$", Kind.PARQUET: r"(?i)\.parquet$"}

#: The same as Spark's readers take them.
_GLOBS = {
    Kind.JSON: "*.{[jJ][sS][oO][nN][lL],[nN][dD][jJ][sS][oO][nN]}{,.[gG][zZ],.[zZ][sS][tT]}",
    Kind.PARQUET: "*.[pP][aA][rR][qQ][uU][eE][tT]",
}


@dataclass(frozen=True)
class Documents:
    """Documents for `stages.Comparison`, of the kind that its recipe must name, and what they are read from; and about how many bytes they
    are. has_rows : whether some are rows of files.
    """

    rows: "DataFrame"
    kind: str
    size: int
    home: bytes = b""
    has_rows: bool = False
    sources: tuple[stages.Source, ...] = ()


@dataclass(frozen=True)
class _Part:
    """What the documents of one place are read from, and about how many bytes they are."""

    source: stages.Source
    size: int

    @property
    def documents(self) -> "DataFrame":
        """The documents, with all columns of `sparkreading.DOCUMENTS`."""
        from pyspark.sql import functions as f

        rows, read = self.source.rows, self.source.read
        if read:
            return rows.mapInArrow(read, worker_reading.DOCUMENTS)
        columns = [field.split() for field in worker_reading.DOCUMENTS.split(", ")]
        return rows.select(
            *(
                (f.col(name) if name in rows.columns else f.lit(None)).cast(kind).alias(name)
                for name, kind in columns
            )
        )


def read(
    spark: "SparkSession",
    names: tuple[bytes, ...],
    params: DocumentParams,
    *,
    ids: bool,
    skipped: Callable[[Skipped], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    jobs: int = 1,
) -> Documents:
    """The documents that are named. ids : each line is one (`--tokens ids`). skipped, say, warn : as of `finding.find_files`.

    Raises InputError if no name exists; ParameterError for rows without an id field, because a row's number in its file is not known to
    the one who reads a piece of it, and for options that are not for URIs.
    """
    check_named(names)
    at_home = spark_paths.is_home_local(spark)
    found = [(name, _here(name, at_home=at_home)) for name in names]
    here = tuple(path for _, path in found if path is not None)
    others = [os.fsdecode(name) for name, path in found if path is None]
    if others and (params.hidden or params.follow or params.include or params.exclude):
        message = "--hidden, --follow, --include and --exclude are for names on this machine"
        raise ParameterError(
            message, "leave them out, or name a pattern such as hdfs://host/docs/*.txt"
        )
    away = [_Away(spark, name) for name in others]
    _refuse_overlaps(away)
    if here:
        files, kinds = find_files(
            here, params, id_lists=ids, jobs=jobs, on_skipped=skipped, say=say, warn=warn
        )
        if not (away or kinds or ids):
            return _files(spark, files)
    reader = _Reader(spark, params, ids=ids)
    parts = [part for each in away for part in reader.away(each)]
    if here:
        parts.append(reader.here(files, kinds))
    if not parts:
        message = "the folders that were named hold no files"
        raise InputError(message, "Spark passes over those whose names begin with _ or a dot")
    rows = reduce(lambda rows, more: rows.unionByName(more), (part.documents for part in parts))
    sources = tuple(part.source for part in parts)
    return Documents(
        rows,
        "texts",
        sum(part.size for part in parts),
        has_rows=ids or reader.has_rows,
        sources=sources,
    )


def check_named(names: tuple[bytes, ...]) -> None:
    """Raise InputError if there are none."""
    if not names:
        message = "no documents were named"
        raise InputError(message, "--engine spark keeps nothing between runs: name DOCS")


def _here(name: bytes, *, at_home: bool) -> bytes | None:
    """The path on this machine that a name is, if it is there, or can be nowhere else; None for what Spark looks up. at_home : names
    without a scheme are of this machine.
    """
    uri = _FILE_URI.match(name)
    path = uri[1] if uri else name
    if os.path.lexists(path):
        return path if uri or at_home else None
    text = os.fsdecode(path)
    nowhere_else = not _PATTERN.search(text) and (
        uri or (at_home and not spark_paths.has_scheme(text))
    )
    return path if nowhere_else else None


class _Away:
    """A URI or a pattern, looked up in the file system that it is in. Raises InputError if nothing is there.

    root : what it is to Spark, as the names of what is below it begin; files, folders : what matches.
    """

    def __init__(self, spark: "SparkSession", name: str) -> None:
        self.name = name
        self.path = spark_paths.spark_name(name, home_local=spark_paths.is_home_local(spark))
        path, system = spark_paths.located(spark, self.path)
        try:
            self.root = path.toString()
            matches = list(system.globStatus(path) or ())
            if not matches and system.exists(path):  # its name looks like a pattern, and is none
                matches = [system.getFileStatus(path)]
            self.size = sum(
                system.getContentSummary(match.getPath()).getLength() for match in matches
            )
        except Exception as error:
            raise spark_paths.not_looked_up(name, error) from None
        if not matches:
            if _PATTERN.search(name) and not spark_paths.has_scheme(name):
                raise not_there(
                    Skipped(os.fsencode(name), Reason.MISSING, "no such file or directory"), "", ""
                )
            message = f"{name!r} does not exist"
            raise InputError(message, "name folders or files that exist")
        self.files = [each.getPath().toString() for each in matches if not each.isDirectory()]
        self.folders = [each.getPath().toString() for each in matches if each.isDirectory()]
        self.is_pattern = [*self.files, *self.folders] != [self.root]

    def typed(self, column: "Column") -> "Column":
        """Paths as Spark spells them, as they would be typed: what a pattern matches has no other name."""
        from pyspark.sql import functions as f

        if self.is_pattern:
            return column
        below = len(self.root.rstrip("/"))  # a root alone ends with a slash
        return f.concat(
            f.lit(self.name.rstrip("/")), f.substring(column, f.lit(below + 1), f.length(column))
        )


def _refuse_overlaps(away: list[_Away]) -> None:
    """Raise InputError if something is named twice: its documents would be near-duplicates of themselves."""
    above = ""
    for path, name in sorted(
        (path.rstrip("/") + "/", each.name) for each in away for path in each.files + each.folders
    ):
        if above and path.startswith(above):
            message = f"{name!r} names what is in another name, too: {path.rstrip('/')}"
            raise InputError(message, "name each document once")
        above = path


def _escaped(path: str) -> str:
    """A path that would look like a pattern, as itself."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def _files(spark: "SparkSession", files: DocumentList) -> Documents:
    """Files of this machine, read by whoever makes their sketches."""
    import pyarrow as pa

    table = pa.table({"id": pa.array(list(files.names), pa.binary()), "size": files.sizes})
    size = int(files.sizes.sum())
    return Documents(
        _spread(spark, table, "id binary, size bigint", size),
        "files",
        size,
        os.getcwdb(),  # noqa: PTH109
    )


class _Reader:
    """What is found -> rows (id, text, …), wherever it is. has_rows : whether some of it were rows."""

    def __init__(self, spark: "SparkSession", params: DocumentParams, *, ids: bool) -> None:
        self._spark, self._params, self._ids = spark, params, ids
        self.has_rows = False

    def _fields(self) -> RecordFields:
        """Where in a row text and id are."""
        self.has_rows = True
        if not self._params.id_field:
            message = "rows need a name that comes from the data"
            raise ParameterError(message, "name the field that holds it with --id-field")
        return RecordFields(self._params.text_field or DEFAULT_TEXT_FIELD, self._params.id_field)

    def here(self, files: DocumentList, kinds: dict[bytes, Kind]) -> _Part:
        """Files of this machine, some of which have rows, cut into pieces for the workers to read."""
        import pyarrow as pa

        fields = self._fields() if kinds else RecordFields()
        pieces = [
            (path, int(kind), *piece)
            for path, size in zip(files.names, files.sizes.tolist(), strict=True)
            for kind in (Kind.IDS if self._ids else kinds.get(path, Kind.FILE),)
            for piece in _pieces(path, kind, size, fields)
        ]
        names = [field.split()[0] for field in worker_reading.PIECES.split(", ")]
        types = (pa.binary(), pa.int32(), pa.int64(), pa.int64(), pa.int64())
        columns = [pa.array([piece[at] for piece in pieces], kind) for at, kind in enumerate(types)]
        size = sum(piece[-1] for piece in pieces)
        rows = _spread(
            self._spark,
            pa.table(dict(zip(names, columns, strict=True))),
            worker_reading.PIECES,
            size,
        )
        home = os.getcwdb()  # noqa: PTH109 (bytes path)
        read = partial(worker_reading.piece_rows, fields, home, self._params.max_bytes)
        return _Part(stages.Source(rows, read), size)

    def away(self, each: _Away) -> Iterator[_Part]:
        """What a URI or a pattern names, read by Spark."""
        field_given = bool(self._params.text_field)
        size = each.size
        if self._ids:
            yield self._of_lines(each, each.files + each.folders, "", size, worker_reading.id_rows)
            return
        named: dict[Kind, list[str]] = {}
        for path in each.files:
            named.setdefault(
                classify_file(os.fsencode(path), named=True, field_given=field_given), []
            ).append(path)
        plain = list(each.folders)
        for folder in each.folders:
            kind = classify_file(os.fsencode(folder), named=True, field_given=field_given)
            if (
                kind != Kind.FILE
            ):  # as Spark itself writes a file: all that is in it is of that kind
                named.setdefault(kind, []).append(folder)
                plain.remove(folder)
        for kind, paths in named.items():
            yield self._of_kind(each, kind, paths, "", size)
            size = 0
        if not plain:
            return
        for kind in sorted(self._kinds(plain)) if field_given else [Kind.FILE]:
            yield self._of_kind(each, kind, plain, _GLOBS.get(kind, ""), size)
            size = 0

    def _kinds(self, folders: list[str]) -> set[Kind]:
        """Of which kinds the files in some folders are."""
        from pyspark.sql import functions as f

        path = f.col("path")
        kind = f.lit(int(Kind.FILE))
        for each, ending in _ENDINGS.items():
            kind = f.when(path.rlike(ending), f.lit(int(each))).otherwise(kind)
        return {
            Kind(row.kind)
            for row in self._binary(folders).select(kind.alias("kind")).distinct().collect()
        }

    def _of_kind(self, each: _Away, kind: Kind, paths: list[str], glob: str, size: int) -> _Part:
        """Files of one kind at some paths, with about how many bytes; glob : only those whose names match."""
        from pyspark.sql import functions as f

        if kind == Kind.FILE:
            files = self._binary(paths)
            if self._params.text_field and paths[0] in each.folders:
                for other in _ENDINGS.values():
                    files = files.where(~f.col("path").rlike(other))
            name, content = (
                each.typed(f.col("path")).cast("binary").alias("id"),
                f.col("content").alias("text"),
            )
            return _Part(
                stages.Source(files.select(name, content, f.lit(True).alias("plain"))), size
            )
        fields = self._fields()
        if kind == Kind.PARQUET:
            rows = self._reader(glob).parquet(*map(_escaped, paths))
            return _Part(stages.Source(stages.id_and_text(rows, fields.id, fields.text)), size)
        return self._of_lines(
            each,
            paths,
            glob,
            size,
            partial(worker_reading.json_rows, fields, self._params.max_bytes),
        )

    def _of_lines(
        self,
        each: _Away,
        paths: list[str],
        glob: str,
        size: int,
        read: Callable[[bytes, bytes, Batches], Batches],
    ) -> _Part:
        from pyspark.sql import functions as f

        root, typed = (
            (b"", b"")
            if each.is_pattern
            else (
                each.root.rstrip("/").encode(),
                each.name.rstrip("/").encode("utf-8", "surrogateescape"),
            )
        )
        lines = self._lines(paths, glob).select(
            f.col("value").cast("binary"), f.col("_metadata.file_path").cast("binary").alias("file")
        )
        return _Part(stages.Source(lines, partial(read, root, typed)), size)

    def _binary(self, paths: list[str]) -> "DataFrame":
        return self._reader("").format("binaryFile").load(list(map(_escaped, paths)))

    def _lines(self, paths: list[str], glob: str) -> "DataFrame":
        return self._reader(glob).text(list(map(_escaped, paths)), lineSep="\n")

    def _reader(self, glob: str) -> "DataFrameReader":
        reader = self._spark.read.option("recursiveFileLookup", "true")
        return reader.option("pathGlobFilter", glob) if glob else reader


def _pieces(
    path: bytes, kind: Kind, size: int, fields: RecordFields
) -> Iterator[tuple[int, int, int]]:
    """Where the pieces of a file begin and end, and about how many bytes they have. What cannot be looked into is one piece."""
    if size <= TASK_BYTES or kind == Kind.FILE:
        yield 0, -1, size
    elif kind == Kind.PARQUET:
        try:
            groups = ParquetFile(path, fields.text).groups(fields.id)
        except (RecordError, OSError):
            yield 0, -1, size
            return
        each = max(1, groups * TASK_BYTES // size)  # they are about as large as each other
        for start in range(0, groups, each):
            yield start, min(start + each, groups), size * min(each, groups - start) // groups
    elif kind == Kind.JSON and _packed(path):
        yield 0, -1, size
    else:
        for start in range(0, size, TASK_BYTES):
            last = start + TASK_BYTES >= size
            yield start, -1 if last else start + TASK_BYTES, min(TASK_BYTES, size - start)


def _packed(path: bytes) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (bytes path)
            return is_packed(file.read(4))
    except OSError:
        return True  # whoever reads it says why it cannot be read


def _spread(spark: "SparkSession", table: Any, schema: str, size: int) -> "DataFrame":
    """A table of files or pieces, over so many tasks that each has not too many bytes to read."""
    tasks = max(2 * spark.sparkContext.defaultParallelism, -(-size // TASK_BYTES))
    return spark.createDataFrame(table, schema).repartition(tasks)
