"""Files without some of their records, or with others instead, and Maildirs without some of their
mails: the rest is as it was, and in the same order.

Only what was compared can be dropped: blank, broken and unnamed records stay. Commands see to it
before that no file that is read is written.
"""

import os
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lshdup.base.atomic import replace_file
from lshdup.base.compression import PIP, ZSTD, PackedError, bare_name, can_unpack, chunks, packing
from lshdup.base.mbox import is_mailbox_file
from lshdup.base.run import Run
from lshdup.base.system import STDOUT, is_stdout
from lshdup.base.wording import count_of, join_names, quoted
from lshdup.errors import RERUN, InputError, ParameterError
from lshdup.sources.document_list import DocumentList
from lshdup.sources.maildirs import check_folder, copy_maildir, find_top, list_files
from lshdup.sources.parquet import column_chunks, open_parquet
from lshdup.sources.readers import classify_file
from lshdup.sources.records import ROWS, Kind, RecordError

I64 = NDArray[np.int64]

#: Opens the file that is written instead of one that is read.
Open = Callable[[Path], AbstractContextManager[BinaryIO]]

#: A larger row group is read, and written, in parts of about so many bytes.
_PART_BYTES = 64 << 20

#: Documents whose locations are looked at, and changed lines that are listed, at a time.
_AT_ONCE = 1 << 20

#: Files of records, and what the names of such files end in.
_FORMATS = {
    Kind.JSON: ("JSON Lines", ".jsonl, .jsonl.gz or .jsonl.zst"),
    Kind.CSV: ("CSV", ".csv, .tsv, .csv.gz or .csv.zst"),
    Kind.PARQUET: ("Parquet", ".parquet"),
    Kind.MBOX: ("mails", ".mbox"),
}

#: Endings of packed files that are read only: in a folder they are written without.
_UNWRITTEN = (b".xz", b".bz2")

#: Files in the way that a message names.
_NAMED = 3


class Source(NamedTuple):
    """What is written anew: a file of records, or a Maildir.

    number : of the file among those of the documents; of a Maildir that of one of its files.
    path : from the current folder.
    kind : of the records; a mailbox of one mail is a mailbox too, and FILE is a Maildir.
    mails : the documents of a Maildir by the names of their files from its folder.
    """

    number: int
    path: bytes
    kind: Kind
    mails: dict[bytes, int]


class Written(NamedTuple):
    """What was written.

    paths : files and folders.
    sources : the files and Maildirs that were read, from the current folder.
    read : their bytes.
    others : number of files of Maildirs that are no documents, and were copied.
    """

    paths: list[Path]
    sources: list[bytes]
    read: int
    others: int


class Change:
    """What is written instead of some records."""

    def find(self, documents: DocumentList, number: int, mine: I64) -> tuple[I64, I64, I64]:
        """Return the rows of a file that change: starts and lengths, as `RecordList` has them, and
        the document that each is, -1 for a row that is none: int64 arrays of shape (m,).

        number : of the file. mine : int64 array, its documents that change.
        """
        locations = documents.locations
        return locations.starts[mine], locations.lengths[mine], mine

    def line(self, document: int, line: bytes) -> bytes:
        """Return what is written instead of a line with its end."""
        raise NotImplementedError

    def share(self, documents: DocumentList, changed: I64) -> float:
        """Return the share of the bytes that is written at least."""
        del documents, changed
        return 0.0

    def schema(self, schema: Any) -> Any:
        """Return the schema of what is written instead of a Parquet file."""
        return schema

    def rows(self, table: Any, rows: I64, documents: I64) -> Any:
        """Return what is written instead of a table of pyarrow, given rows of the table, and the
        documents that they are: int64 arrays.
        """
        raise NotImplementedError


class Dropping(Change):
    """The change of records that are left out."""

    def share(self, documents: DocumentList, changed: I64) -> float:
        size = int(documents.spans.sum())
        return (size - int(documents.spans[changed].sum())) / max(size, 1)

    def line(self, document: int, line: bytes) -> bytes:
        del document, line
        return b""

    def rows(self, table: Any, rows: I64, documents: I64) -> Any:
        import pyarrow as pa

        del documents
        keep = np.ones(len(table), bool)
        keep[rows] = False
        return table.filter(pa.array(keep))


def rewrite(
    run: Run,
    documents: DocumentList,
    changed: I64,
    target: Path | str,
    change: Change,
    open_target: Open = replace_file,
    *,
    mails: bool = False,
) -> Written:
    """Write the files of the documents with other records instead of some.

    Each file is replaced whole or not at all. JSON Lines are compressed as the ending of the target
    says; Parquet as the source is. A Maildir becomes a new folder: see `maildirs.copy_maildir`.

    Errors: ParameterError if the target does not suit; InputError if a document is no record, a
    file cannot be read or has changed, or the target cannot be written.

    Memory: some 100 bytes a changed record, and parts of files; no file is in memory.

    Parameters
    ----------
    documents : records.
    changed : int64 array, indices of documents; of a Maildir they are left out.
    target : a file; for several files, or if it is a folder or ends with a slash, the folder for
        files of the same names as typed, which is made; or "-", standard output, for one file.
    open_target : opens each target.
    mails : of `check_target`.

    """
    sources, targets = check_target(documents, target, mails=mails)
    locations, others, done = documents.locations, 0, 0
    with _reporting(Path(target)):
        sizes = list(map(_size_of, sources))
    total = sum(sizes)
    if sources:
        _check_room(sources, sizes, targets, change.share(documents, changed))
    for folder in dict.fromkeys(goal.parent for goal in targets if goal != Path(target)):
        with _reporting(folder):
            folder.mkdir(parents=True, exist_ok=True)
    examples = _examples(documents)
    changed = changed[np.lexsort((locations.starts[changed], locations.file[changed]))]
    of_file = locations.file[changed]
    for source, size, goal in zip(sources, sizes, targets, strict=True):
        number, path, kind, _ = source

        def report(read: int, before: int = done) -> None:
            run.progress("write", before + read, total)

        done += size
        if kind == Kind.FILE:
            every, drop = np.array(list(source.mails.values()), np.int64), set(changed.tolist())
            gone = [name for name, document in source.mails.items() if document in drop]
            _check_unchanged(documents, every, path)
            with _reporting(goal):
                others += copy_maildir(path, gone, goal, report) + len(gone) - len(every)
            _check_unchanged(documents, every, path)
            continue
        example = examples[number : number + 1]
        _check_unchanged(documents, example[example >= 0], path)
        mine = changed[slice(*np.searchsorted(of_file, [number, number + 1]))]
        with _reporting(goal):
            starts, lengths, mine = change.find(documents, number, mine)
        is_new = kind == Kind.MBOX and goal != STDOUT and not goal.exists()
        with _reporting(goal), open_target(goal) as out:
            if kind == Kind.PARQUET:
                _write_parquet(path, starts, mine, out, change, report)
            else:
                ends = starts + lengths + kind.is_row  # a row is known without its end
                with packing(out, os.fsencode(goal.name)) as packed:
                    _write_spans(path, starts, ends, mine, packed, change, report)
            _check_unchanged(documents, example[example >= 0], path)
        if is_new:  # nobody else gets to read the mails
            shutil.copymode(path, goal)
    return Written(targets, [each.path for each in sources], total, others)


def _examples(documents: DocumentList) -> I64:
    """Return a document of each file, -1 if the file has none: int64 array."""
    locations = documents.locations
    examples = np.full(len(locations.paths), -1, np.int64)
    for start in range(0, len(documents), _AT_ONCE):
        file = locations.file[start : start + _AT_ONCE]
        examples[file] = np.arange(start, start + len(file))
    return examples


def _check_unchanged(documents: DocumentList, first: I64, path: bytes) -> None:
    if len(documents.changed(first)):
        what = "mails" if documents.kinds.isdisjoint(ROWS) else "rows"
        message = f"{quoted(path)} has changed since its {what} were compared"
        raise InputError(message, RERUN)


@contextmanager
def _reporting(target: Path) -> Iterator[None]:
    """Raise InputError for anything that goes wrong while a file is written."""
    try:
        yield
    except OSError as error:
        read = f" ({os.fsdecode(error.filename)})" * os.path.exists(error.filename or "")  # noqa: PTH110 (bytes path)
        message = f"{target} is not written: {error.strerror or error}{read}"
        raise InputError(message, "name another file, or a folder that can be written") from None
    except (RecordError, PackedError) as error:
        message = f"{target} is not written, because the file that is read is damaged: {error}"
        raise InputError(message) from None


def _write_spans(
    path: bytes,
    starts: I64,
    ends: I64,
    documents: I64,
    out: IO[bytes],
    change: Change,
    report: Callable[[int], None],
) -> None:
    """Write a file with some records changed, given by their first bytes, ascending, and the bytes
    behind the last ones: the end of a line, even where the last line has none.
    """
    spans = _list_spans(starts, ends, documents)
    span = next(spans, None)
    with open(path, "rb") as file:  # noqa: PTH123 (bytes path)
        at = 0
        held: list[bytes] = []  # what has been read of a line that is changed
        for chunk in chunks(file):
            here, end = at, at + len(chunk)
            while span is not None and span[0] < end:
                first, last, document = span
                out.write(chunk[here - at : max(first, here) - at])
                held.append(chunk[max(first, here) - at : last - at])
                here = max(here, min(last, end))
                if last > end:  # its rest is in the next chunk
                    break
                out.write(change.line(document, b"".join(held)))
                held = []
                span = next(spans, None)
            out.write(chunk[here - at :])
            at = end
            report(file.tell())
        if held and span is not None:  # the last line has no end
            out.write(change.line(span[2], b"".join(held)))


def _list_spans(*columns: I64) -> Iterator[tuple[int, ...]]:
    """Yield the rows of some columns, without all of them as objects at a time."""
    for start in range(0, len(columns[0]), _AT_ONCE):
        yield from zip(*(each[start : start + _AT_ONCE].tolist() for each in columns), strict=True)


def _write_parquet(
    path: bytes,
    starts: I64,
    documents: I64,
    out: BinaryIO,
    change: Change,
    report: Callable[[int], None],
) -> None:
    """Write a Parquet file with some rows changed (numbers from 0, ascending), one row group at a
    time, a large one in parts.
    """
    with (
        open_parquet(path) as (pa, pq, file),
        pq.ParquetWriter(out, change.schema(file.schema_arrow), **_as_before(file)) as writer,
    ):
        at, size = 0, os.path.getsize(path)  # noqa: PTH202 (bytes path)
        for table in _read_parts(pa, file):
            end = at + len(table)
            some = slice(*np.searchsorted(starts, [at, end]))
            if some.start < some.stop:
                table = change.rows(table, starts[some] - at, documents[some])
            if len(table):
                writer.write_table(table, row_group_size=len(table))
            at = end
            report(size * at // max(file.metadata.num_rows, 1))


def _read_parts(pa: Any, file: Any) -> Iterator[Any]:
    """Yield the row groups of a Parquet file as tables, a large one in parts."""
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        if group.total_byte_size <= _PART_BYTES:
            yield file.read_row_group(number, use_threads=False)
            continue
        rows = max(1, group.num_rows * _PART_BYTES // group.total_byte_size)
        for batch in file.iter_batches(rows, row_groups=[number], use_threads=False):
            yield pa.Table.from_batches([batch], file.schema_arrow)


def _as_before(file: Any) -> dict[str, Any]:
    """Return the options to write a Parquet file like an open one."""
    columns = column_chunks(file, 0) if file.metadata.num_row_groups else []
    codecs = {column.path_in_schema: column.compression.lower() for column in columns}
    codecs = {path: "none" if each == "uncompressed" else each for path, each in codecs.items()}
    words = [
        column.path_in_schema
        for column in columns
        if any("DICTIONARY" in encoding for encoding in column.encodings)
    ]
    several = len(set(codecs.values())) > 1
    return {
        "compression": codecs if several else next(iter(codecs.values()), "snappy"),
        "use_dictionary": words if 0 < len(words) < len(columns) else bool(words),
        "use_deprecated_int96_timestamps": any(each.physical_type == "INT96" for each in columns),
        "use_compliant_nested_type": False,  # names of list elements stay what they are
    }


# --- targets ------------------------------------------------------------------------------------


def check_target(
    documents: DocumentList, target: Path | str, *, read: bool = True, mails: bool = False
) -> tuple[list[Source], list[Path]]:
    """Return what is written anew, and the target of each.

    Raises as `rewrite` does, as far as that is known before the work.

    read : whether the documents have been read; before that, files among them may turn out to be no
        documents. mails : whether mailboxes and Maildirs are taken, too.
    """
    sources, other = _list_sources(documents, mails=mails)
    if (other >= 0) if read else not sources:
        raise _not_all_rows(documents, other, mails=mails)
    names = _typed_names(documents, sources)
    targets = _targets(names, target)
    for source, name, goal in zip(sources, names, targets, strict=True):
        if source.kind == Kind.FILE:
            check_folder(source.path, goal)
        elif goal != STDOUT:
            _check_name(name, source.kind, goal)
    return sources, targets


def _list_sources(documents: DocumentList, *, mails: bool) -> tuple[list[Source], int]:
    """Return the files of records and the Maildirs, and the first document that is in none, or -1.

    mails : of `check_target`.
    """
    locations, other = documents.locations, -1
    of_records = np.isin(locations.kinds, [*ROWS, Kind.MBOX] if mails else ROWS)
    sources = [
        Source(number, documents.file_path(number), Kind(int(locations.kinds[number])), {})
        for number in np.flatnonzero(of_records).tolist()
    ]
    maildirs, named = dict[bytes, Source](), set(map(documents.path_of, documents.docs))
    for document in np.flatnonzero(~of_records[locations.file]).tolist():
        number = int(locations.file[document])
        path, may_be = documents.file_path(number), mails and documents.is_file(document)
        if top := find_top(path, named) if may_be else b"":
            source = maildirs.setdefault(top, Source(number, top, Kind.FILE, {}))
            source.mails[path[len(top) + 1 :] if top != b"." else path] = document
        elif may_be and is_mailbox_file(path):
            sources.append(Source(number, path, Kind.MBOX, {}))
        else:
            other = document if other < 0 else other
            if sources or maildirs or not mails:
                break
    sources.sort(key=lambda each: each.number)
    # A mailbox in a Maildir is written behind that: no files may be in a new folder.
    return [*maildirs.values(), *sources], other


def _size_of(source: Source) -> int:
    """Return the bytes of what is written anew."""
    files = (
        list_files(source.path) if source.kind == Kind.FILE else [Path(os.fsdecode(source.path))]
    )
    return sum(path.stat().st_size for path in files if path.is_file())


def _not_all_rows(documents: DocumentList, number: int, *, mails: bool) -> ParameterError:
    """Return the error for documents of which some are no rows of files.

    number : a document that is none; -1: there are no documents. mails : of `check_target`.
    """
    name = os.fsdecode(documents.names[number]) if number >= 0 else ""
    message = (
        f"not all documents are rows of JSON Lines, CSV or Parquet files"
        f"{', or mails of a mailbox' * mails}"
        f"{f': {quoted(name)} is none' * bool(name)}, so no filtered file can be written"
    )
    if not np.isin(documents.locations.kinds[documents.locations.file], ROWS).any():
        hint = (
            "name files of rows only; --text-field takes the rows of files in folders too; "
            "--emit drop lists names"
        )
    elif documents.names[number] in documents.docs:
        hint = f"leave {name} out"
    else:
        files = np.flatnonzero(np.isin(documents.locations.kinds, ROWS))
        endings = {_ending(path) for path in documents.locations.paths.strings_at(files)}
        patterns = (shlex.quote(f"*{os.fsdecode(each)}") for each in sorted(endings))
        hint = f"take the files of rows only: {' '.join(f'--include {each}' for each in patterns)}"
    return ParameterError(message, hint)


def _ending(path: bytes) -> bytes:
    """Return the ending of a file of rows: of ``a.jsonl.gz`` both."""
    name = bare_name(path)
    return os.path.splitext(name)[1] + path[len(name) :]  # noqa: PTH122 (bytes path)


def refuse_other_files(folder: Path, targets: Iterable[Path]) -> None:
    """Raise ParameterError if a folder holds files beside these: rows would be there twice.

    Names that begin with a dot do not count.
    """
    top, others = folder.resolve(), list[Path]()
    ours = {each.parent.resolve() / each.name for each in targets}
    for above, folders, names in os.walk(top):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        paths = (Path(above, name) for name in sorted(names) if not name.startswith("."))
        others += [path for path in paths if path not in ours]
    if others:
        names = [str(path.relative_to(top)) for path in others[:_NAMED]]
        more = f" and {len(others) - _NAMED:,} more" * (len(others) > _NAMED)
        message = (
            f"{folder} holds {count_of(len(others), 'file')} that this run does not write: "
            f"{join_names(names)}{more}"
        )
        raise ParameterError(message, "name a new folder")


def _targets(names: list[bytes], target: Path | str) -> list[Path]:
    """Return the file that is written for each of some files, given by their names as typed.

    In a folder they have the same names, as tar gives them: without what leads out of the folder.
    """
    if is_stdout(target):
        if len(names) > 1:
            message = f"standard output takes one file, and {len(names):,} are read"
            raise ParameterError(message, "name one file, or write to a folder: --write DIR/")
        return [STDOUT]
    folder = os.fspath(target).endswith("/")
    target = Path(target)
    if len(names) == 1 and not (folder or target.is_dir()):
        return [target]
    if target.exists() and not target.is_dir():
        message = (
            f"{target} is no folder, and {count_of(len(names), 'file')} must be written to one"
        )
        raise ParameterError(message, "name a folder: each file gets its own name in it")
    below = map(_name_below, names)
    names = [bare_name(name) if name.lower().endswith(_UNWRITTEN) else name for name in below]
    again = next((name for name, n in Counter(names).items() if n > 1), None)
    if again is not None:
        name = os.fsdecode(again)
        message = f"two of the files are called {name}: they cannot be written to one folder"
        raise ParameterError(message, "write them in two runs, to two folders")
    return [target / os.fsdecode(name) for name in names]


def _name_below(name: bytes) -> bytes:
    """Return the name that a file has below a folder.

    >>> _name_below(b"/data/a.csv"), _name_below(b"../x/../y/a.csv"), _name_below(b"./-a/b.csv")
    (b'data/a.csv', b'y/a.csv', b'-a/b.csv')
    """
    parts = [part for part in name.split(b"/") if part not in (b"", b".")]
    while b".." in parts:
        del parts[: parts.index(b"..") + 1]
    return b"/".join(parts)


def _check_name(name: bytes, kind: Kind, target: Path) -> None:
    what, endings = _FORMATS[kind]
    other = classify_file(os.fsencode(target.name), named=True, field_given=False, archives=False)
    if other != kind and (kind == Kind.PARQUET or other in _FORMATS):
        message = f"{target} does not end like a file of {what}, which {os.fsdecode(name)} is"
        raise ParameterError(message, f"name one that ends in {endings}")
    if os.fsencode(target.name.lower()).endswith(_UNWRITTEN):
        message = f"{target} is to be packed by xz or bzip2, which are read only"
        raise ParameterError(message, f"name one that ends in {endings}")
    if target.name.lower().endswith(".zst") and not can_unpack(ZSTD):
        message = f"{target} is to be packed by zstd, which needs backports.zstd"
        raise InputError(message, PIP)


def _typed_names(documents: DocumentList, sources: list[Source]) -> list[bytes]:
    """Return sources as typed from the current folder."""
    files = documents.typed_paths(np.array([each.number for each in sources], np.int64))
    return [
        name.removesuffix(next(iter(each.mails), b"")) or b"."
        for each, name in zip(sources, files, strict=True)
    ]


def _check_room(sources: list[Source], sizes: list[int], targets: list[Path], share: float) -> None:
    """Raise InputError if the disk has less room than a share of the bytes of some files takes.

    A file that is packed only when it is written may take any room: it is not counted.
    """
    size = 0
    for source, read, target in zip(sources, sizes, targets, strict=True):
        if target.suffix not in (".gz", ".zst") or source.path.endswith(os.fsencode(target.suffix)):
            size += int(share * read)
    folder = next(each for each in targets[0].resolve().parents if each.is_dir())
    free = shutil.disk_usage(folder).free
    is_device = targets[0].exists() and not (targets[0].is_file() or targets[0].is_dir())
    if size > free and not is_device:
        message = (
            f"{targets[0]} is not written: the files take about {size:,} bytes, and its disk has "
            f"{free:,} left"
        )
        raise InputError(message, "name another disk; what was compared is not compared again")
