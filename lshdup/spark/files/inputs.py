"""Named documents as Spark sees them: files, records of JSON Lines or Parquet, lines of id lists.

Names on this machine, `file:/` among them, are found by the local engine's rules, and workers read
them: Hadoop passes over names that are not UTF-8, and cannot read those with a colon. Spark lists
and reads other URIs and patterns: `hdfs://`, `s3a://`.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lshdup.documents.document_list import DocumentList
from lshdup.documents.finding import Finder
from lshdup.documents.missing import not_there
from lshdup.documents.readers.parquet import ParquetFile
from lshdup.documents.records import Kind, RecordError, RecordFields, classify_file, split_fields
from lshdup.errors import InputError, ParameterError
from lshdup.params import DEFAULT_TEXT_FIELD, DocumentParams
from lshdup.skipped import Reason, Skipped
from lshdup.spark import functions as f
from lshdup.spark.files import paths as spark_paths
from lshdup.spark.sources import Source, id_and_text
from lshdup.spark.workers import documents as worker_documents
from lshdup.spark.workers.documents import Batches
from lshdup.utils.compression import HEAD, is_packed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

#: Bytes of files that one task reads; a larger file of records is cut.
TASK_BYTES = 32 << 20

_PATTERN = re.compile(r"[*?\[{]")

#: Taken literally, as Hadoop does: %20 is three characters.
_FILE_URI = re.compile(rb"(?is)file:(?://(?:localhost)?)?(/(?!/).*|/)\Z")

#: Regular expressions over whole paths: files of records; see `records.classify_file`.
_ENDINGS = {
    Kind.JSON: r"(?i)\.(jsonl|ndjson)(\.gz|\.zst)?$",
    Kind.PARQUET: r"(?i)\.parquet$",
    Kind.CSV: r"(?i)\.(csv|tsv)(\.gz|\.zst)?$",
}

#: The same, as Spark's readers take them.
_GLOBS = {
    Kind.JSON: "*.{[jJ][sS][oO][nN][lL],[nN][dD][jJ][sS][oO][nN]}{,.[gG][zZ],.[zZ][sS][tT]}",
    Kind.PARQUET: "*.[pP][aA][rR][qQ][uU][eE][tT]",
}

#: A source and its approximate size in bytes.
_Sized = tuple[Source, int]


@dataclass(frozen=True)
class Documents:
    """The documents of a run.

    size : approximate bytes.
    has_rows : whether some documents are records of files.
    """

    sources: tuple[Source, ...]
    size: int
    has_rows: bool


def find_documents(
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
    """Find the named documents: the first stage of the main path.

    ids : each line is a document (`--tokens ids`).
    skipped, say, warn : as of `finding.find_documents`.

    Raises InputError if a name does not exist; ParameterError for records without an id field,
    since a worker does not know the number of a record in its file, and for options that do not
    hold for URIs.
    """
    check_named(names)
    home_local = spark_paths.is_home_local(spark)
    located = [(name, _local_path(name, home_local=home_local)) for name in names]
    local = tuple(path for _, path in located if path is not None)
    others = [os.fsdecode(name) for name, path in located if path is None]
    walk = params.hidden, params.follow, params.gitignore, params.max_depth
    if others and (any(walk) or params.include or params.exclude):
        message = (
            "--hidden, --follow, --gitignore, --max-depth, --include and --exclude are for names "
            "on this machine"
        )
        raise ParameterError(
            message, "leave them out, or name a pattern such as hdfs://host/docs/*.txt"
        )
    remote = [_Remote(spark, name) for name in others]
    _refuse_overlaps(remote)
    reader = _Reader(spark, params, ids=ids)
    parts: list[_Sized] = []
    if local:
        finder = Finder(params, ids, None, jobs, skipped, say, warn)
        parts += reader.local(finder.find(local), finder.records, skipped)
    parts += [part for name in remote for part in reader.remote(name)]
    if not parts:
        message = "the folders that were named hold no files"
        raise InputError(message, "Spark passes over those whose names begin with _ or a dot")
    sources, sizes = zip(*parts, strict=True)
    return Documents(sources, sum(sizes), ids or reader.has_rows)


def check_named(names: tuple[bytes, ...]) -> None:
    """Raise InputError if there are no names."""
    if not names:
        message = "no documents were named"
        raise InputError(message, "--engine spark keeps nothing between runs: name DOCS")


def _local_path(name: bytes, *, home_local: bool) -> bytes | None:
    """Return the path of a name that can only be on this machine; None if Spark looks it up.

    home_local : names without a scheme are of this machine.
    """
    uri = _FILE_URI.match(name)
    path = uri[1] if uri else name
    if os.path.lexists(path):
        return path if uri or home_local else None
    text = os.fsdecode(path)
    is_name = home_local and not spark_paths.has_scheme(text)
    return path if (uri or is_name) and not _PATTERN.search(text) else None


class _Remote:
    """A URI or a pattern, looked up in its file system. Raises InputError if nothing matches.

    root : what the names of the files below begin with, as Spark spells it.
    files, folders : what matches.
    """

    def __init__(self, spark: "SparkSession", name: str) -> None:
        self.name = name
        self.path = spark_paths.spark_name(name, home_local=spark_paths.is_home_local(spark))
        path, system = spark_paths.located(spark, self.path)
        try:
            self.root = path.toString()
            matches = list(system.globStatus(path) or ())
            if not matches and system.exists(path):  # a name that only looks like a pattern
                matches = [system.getFileStatus(path)]
            self.size = sum(
                system.getContentSummary(match.getPath()).getLength() for match in matches
            )
        except Exception as error:
            raise spark_paths.not_looked_up(name, error) from None
        if not matches:
            if _PATTERN.search(name) and not spark_paths.has_scheme(name):
                missing = Skipped(os.fsencode(name), Reason.MISSING, "no such file or directory")
                raise not_there(missing, "", "", included=True)
            message = f"{name!r} does not exist"
            raise InputError(message, "name folders or files that exist")
        self.files = [match.getPath().toString() for match in matches if not match.isDirectory()]
        self.folders = [match.getPath().toString() for match in matches if match.isDirectory()]
        self.is_pattern = [*self.files, *self.folders] != [self.root]

    def typed(self, column: "Column") -> "Column":
        """Return paths as they would be typed; a match of a pattern stays as Spark has it."""
        if self.is_pattern:
            return column
        below = len(self.root.rstrip("/"))  # a root alone ends with a slash
        rest = f.substring(column, f.lit(below + 1), f.length(column))
        return f.concat(f.lit(self.name.rstrip("/")), rest)


def _refuse_overlaps(remote: list[_Remote]) -> None:
    """Raise InputError if a document is named twice: it would be its own near-duplicate."""
    above = ""
    for path, name in sorted(
        (path.rstrip("/") + "/", each.name) for each in remote for path in each.files + each.folders
    ):
        if above and path.startswith(above):
            message = f"{name!r} names what is in another name, too: {path.rstrip('/')}"
            raise InputError(message, "name each document once")
        above = path


class _Reader:
    """Found files -> sources.

    has_rows : whether some files have records.
    """

    def __init__(self, spark: "SparkSession", params: DocumentParams, *, ids: bool) -> None:
        self._spark, self._params, self._ids = spark, params, ids
        self.has_rows = False

    def _fields(self) -> RecordFields:
        """Return the fields of records. Raise ParameterError if none is for the id."""
        self.has_rows = True
        if not self._params.id_field:
            message = "rows need a name that comes from the data"
            raise ParameterError(message, "name the field that holds it with --id-field")
        return RecordFields(self._params.text_field or DEFAULT_TEXT_FIELD, self._params.id_field)

    def local(
        self, files: DocumentList, kinds: dict[bytes, Kind], skipped: Callable[[Skipped], None]
    ) -> Iterator[_Sized]:
        """Yield the sources of files of this machine, which workers read.

        kinds : of files that have records. skipped : notified of mailboxes that are too large.
        """
        mailboxes = {path for path, kind in kinds.items() if kind == Kind.MBOX}  # too large as one
        kinds = {path: kind for path, kind in kinds.items() if kind != Kind.MBOX}
        for path, kind in kinds.items():
            _refuse_archive(os.fsdecode(path), kind)
        fields = self._fields() if kinds else RecordFields()
        home, max_bytes = os.getcwdb(), self._params.max_bytes  # noqa: PTH109 (bytes path)
        plain: list[tuple[bytes, int]] = []
        pieces: list[tuple[Any, ...]] = []
        size_of_pieces = 0
        for path, size in zip(files.names, files.sizes.tolist(), strict=True):
            kind = Kind.IDS if self._ids else kinds.get(path, Kind.FILE)
            if path in mailboxes:
                detail = f"{size} bytes, --max-bytes is {max_bytes}"
                skipped(Skipped(path, Reason.TOO_LARGE, detail))
            elif kind == Kind.FILE:
                plain.append((path, size))
            else:
                pieces += [(path, int(kind), *span) for span in _spans(path, kind, size, fields)]
                size_of_pieces += size
        if plain or not pieces:
            read = partial(worker_documents.read_files, home, max_bytes)
            yield self._spread(plain, worker_documents.FILES, read, sum(size for _, size in plain))
        if pieces:
            read = partial(worker_documents.read_pieces, fields, home, max_bytes)
            yield self._spread(pieces, worker_documents.PIECES, read, size_of_pieces)

    def _spread(
        self, rows: list[Any], schema: str, read: Callable[[Batches], Batches], size: int
    ) -> _Sized:
        """Return a source of files or pieces, in tasks with a limited number of bytes to read."""
        arrow = {"binary": pa.binary(), "int": pa.int32(), "bigint": pa.int64()}
        names, types = zip(*(field.split() for field in schema.split(", ")), strict=True)
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        arrays = [
            pa.array(column, arrow[name]) for column, name in zip(columns, types, strict=True)
        ]
        tasks = max(2 * self._spark.sparkContext.defaultParallelism, -(-size // TASK_BYTES))
        table = self._spark.createDataFrame(pa.table(arrays, names=names), schema)
        return Source(table.repartition(tasks), read), size

    def remote(self, named: _Remote) -> Iterator[_Sized]:
        """Yield the sources of a URI or a pattern, which Spark reads."""
        field_given = bool(self._params.text_field)
        size = named.size  # of the first source; the sum over sources is what matters
        if self._ids:
            paths = named.files + named.folders
            yield self._of_lines(named, paths, "", worker_documents.read_id_lists), size
            return
        by_kind: dict[Kind, list[str]] = {}
        folders: list[str] = []
        for path in named.files + named.folders:
            kind = classify_file(
                os.fsencode(path), named=True, field_given=field_given, archives=False
            )
            kind = Kind.FILE if kind == Kind.WIKI else kind  # only the content can tell
            _refuse_archive(path, kind)
            if kind == Kind.FILE and path in named.folders:
                folders.append(path)
            else:  # also a folder with such a name, as Spark itself writes a file
                by_kind.setdefault(kind, []).append(path)
        for kind, paths in by_kind.items():
            yield self._of_kind(named, kind, paths, ""), size
            size = 0
        if folders:
            for kind in sorted(self._kinds(folders)) if field_given else [Kind.FILE]:
                yield self._of_kind(named, kind, folders, _GLOBS.get(kind, "")), size
                size = 0

    def _kinds(self, folders: list[str]) -> set[Kind]:
        """Return the kinds of the files in folders."""
        path = f.col("path")
        kind = f.lit(int(Kind.FILE))
        for of_ending, ending in _ENDINGS.items():
            kind = f.when(path.rlike(ending), f.lit(int(of_ending))).otherwise(kind)
        kinds = self._binary(folders).select(kind.alias("kind")).distinct()
        return {Kind(row.kind) for row in kinds.collect()}

    def _of_kind(self, named: _Remote, kind: Kind, paths: list[str], glob: str) -> Source:
        """Return the source of files of one kind; glob : a pattern for their names."""
        if kind == Kind.FILE:
            files = self._binary(paths)
            if self._params.text_field and paths[0] in named.folders:
                for ending in _ENDINGS.values():
                    files = files.where(~f.col("path").rlike(ending))
            name = named.typed(f.col("path")).cast("binary").alias("id")
            text = f.col("content").alias("text")
            return Source(files.select(name, text, f.lit(True).alias("plain")))
        fields = self._fields()
        if kind == Kind.CSV:
            message = f"{named.name}: CSV files are read from this machine only"
            raise ParameterError(message, "name a folder of this machine, or Parquet files")
        if kind == Kind.PARQUET:
            rows = self._reader(glob).parquet(*map(_escaped, paths))
            return Source(id_and_text(rows, fields.id, *split_fields(fields.text)))
        read = partial(worker_documents.read_json_lines, fields, self._params.max_bytes)
        return self._of_lines(named, paths, glob, read)

    def _of_lines(
        self,
        named: _Remote,
        paths: list[str],
        glob: str,
        read: Callable[[bytes, bytes, Batches], Batches],
    ) -> Source:
        root = typed = b""
        if not named.is_pattern:
            root = named.root.rstrip("/").encode()
            typed = named.name.rstrip("/").encode("utf-8", "surrogateescape")
        lines = self._reader(glob).text(list(map(_escaped, paths)), lineSep="\n")
        file = f.col("_metadata.file_path").cast("binary").alias("file")
        return Source(lines.select(f.col("value").cast("binary"), file), partial(read, root, typed))

    def _binary(self, paths: list[str]) -> "DataFrame":
        return self._reader("").format("binaryFile").load(list(map(_escaped, paths)))

    def _reader(self, glob: str) -> "DataFrameReader":
        reader = self._spark.read.option("recursiveFileLookup", "true")
        return reader.option("pathGlobFilter", glob) if glob else reader


def _refuse_archive(path: str, kind: Kind) -> None:
    """Raise ParameterError for a file that only the local engine opens."""
    if kind != Kind.FILE and not kind.is_row:
        message = f"{path!r} is opened here only, not with --engine spark"
        raise ParameterError(message, "leave --engine spark out, or unpack it")


def _escaped(path: str) -> str:
    """Return the pattern that matches one path."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def _spans(path: bytes, kind: Kind, size: int, fields: RecordFields) -> Iterator[tuple[int, int]]:
    """Yield starts and stops of the pieces of a file; one piece if it cannot be cut or opened."""
    step = TASK_BYTES  # bytes, or row groups, which have about equal sizes
    end = size
    try:
        if size <= TASK_BYTES:
            end = 0
        elif kind == Kind.PARQUET:
            end = ParquetFile(path, fields.text).groups(fields.id)
            step = max(1, end * TASK_BYTES // size)
        elif kind == Kind.CSV:  # where a row begins is known from the beginning only
            end = 0
        elif kind == Kind.JSON:
            with open(path, "rb") as file:  # noqa: PTH123 (bytes path)
                end = 0 if is_packed(file.read(HEAD)) else size
    except (RecordError, OSError):  # the worker that reads it says why
        end = 0
    starts = range(0, max(end, 1), step)
    for start in starts:
        yield start, -1 if start == starts[-1] else start + step
