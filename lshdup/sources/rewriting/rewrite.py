"""Files without some of their records, or with others instead: the rest is as it was, and in the
same order.

Only records that were compared can be dropped: blank, broken and unnamed ones stay. Commands
see to it before that no file that is read is written.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lshdup.base.atomic import replace_file
from lshdup.base.compression import PackedError, chunks, packing
from lshdup.base.messages import quoted
from lshdup.base.parallel import Progress, no_progress
from lshdup.errors import RERUN, InputError
from lshdup.sources.document_list import DocumentList
from lshdup.sources.readers.parquet import open_parquet
from lshdup.sources.readers.parquet_columns import column_chunks
from lshdup.sources.records import ROWS, Kind, RecordError
from lshdup.sources.rewriting.targets import check_room, check_target

#: Opens the file that is written instead of one that is read.
Open = Callable[[Path], AbstractContextManager[BinaryIO]]

#: A larger row group is read, and written, in parts of about so many bytes.
_PART_BYTES = 64 << 20

#: Documents whose locations are looked at, and dropped lines that are listed, at a time.
_AT_ONCE = 1 << 20


def write_without(
    documents: DocumentList,
    dropped: NDArray[np.int64],
    target: Path | str,
    progress: Progress = no_progress,
    open_target: Open = replace_file,
) -> list[Path]:
    """Write the files of the documents without the records that are dropped; return the paths
    written.

    Each file is replaced whole or not at all. JSON Lines are compressed as the ending of the target
    says; Parquet as the source is.

    Errors: ParameterError if the target does not suit; InputError if a document is no record, a
    file cannot be read or has changed, or the target cannot be written.

    Memory: some 100 bytes a dropped record, and parts of files; no file is in memory.

    Parameters
    ----------
    documents : records.
    dropped : int64 array, indices of documents.
    target : a file; for several files, or if it is a folder or ends with a slash, the folder for
        files of the same names as typed, which is made; or "-", standard output, for one file.
    open_target : opens each target.

    """

    def drop_rows(table: Any, rows: NDArray[np.int64], _: NDArray[np.int64]) -> Any:
        import pyarrow as pa

        keep = np.ones(len(table), bool)
        keep[rows] = False
        return table.filter(pa.array(keep))

    size = int(documents.spans.sum())
    share = (size - int(documents.spans[dropped].sum())) / max(size, 1)
    return rewrite(
        documents, dropped, target, lambda _, _line: b"", drop_rows, progress, open_target,
        share=share,
    )  # fmt: skip


def rewrite(
    documents: DocumentList,
    changed: NDArray[np.int64],
    target: Path | str,
    change_line: Callable[[int, bytes], bytes],
    change_rows: Callable[[Any, NDArray[np.int64], NDArray[np.int64]], Any],
    progress: Progress = no_progress,
    open_target: Open = replace_file,
    *,
    share: float,
) -> list[Path]:
    """Write the files of the documents with other records instead of some; see `write_without`.

    Parameters
    ----------
    documents, target, open_target : as of `write_without`.
    changed : int64 array, indices of documents.
    change_line : returns what is written instead of a document, by its index, and its line with its
        end.
    change_rows : returns what is written instead of a table of pyarrow, given rows of the table,
        and the indices of the documents that they are: int64 arrays.
    share : the share of the bytes that is written at least: refused if the disk has less room.

    """
    files, targets = check_target(documents, target)
    locations = documents.locations
    assert locations is not None
    if files:
        check_room([path for _, path in files], targets, share)
    for folder in dict.fromkeys(goal.parent for goal in targets if goal != Path(target)):
        with _reporting(folder):
            folder.mkdir(parents=True, exist_ok=True)
    examples = _examples(documents)
    total, done = sum(os.path.getsize(path) for _, path in files), 0  # noqa: PTH202 (bytes path)
    order = np.lexsort((locations.starts[changed], locations.file[changed]))
    changed = changed[order]
    of_file = locations.file[changed]
    for (number, path), goal in zip(files, targets, strict=True):
        example = examples[number : number + 1]
        check = partial(_check_unchanged, documents, example[example >= 0], path)
        check()
        mine = changed[slice(*np.searchsorted(of_file, [number, number + 1]))]
        starts, lengths = locations.starts[mine], locations.lengths[mine]

        def report(read: int, before: int = done) -> None:
            progress("write", before + read, total)

        with _reporting(goal):
            out = open_target(goal)
            if locations.kinds[number] == Kind.PARQUET:
                _write_parquet(path, starts, mine, out, check, change_rows, report)
            else:
                name = os.fsencode(goal.name)
                _write_lines(path, starts, lengths, mine, out, name, check, change_line, report)
        done += os.path.getsize(path)  # noqa: PTH202 (bytes path)
    return targets


def _examples(documents: DocumentList) -> NDArray[np.int64]:
    """Return a document of each file, -1 if the file has none: int64 array."""
    locations = documents.locations
    assert locations is not None
    examples = np.full(len(locations.paths), -1, np.int64)
    for start in range(0, len(documents), _AT_ONCE):
        file = locations.file[start : start + _AT_ONCE]
        examples[file] = np.arange(start, start + len(file))
    return examples


def count_bytes(documents: DocumentList) -> int:
    """Return the bytes of the files that `write_without` reads."""
    locations = documents.locations
    assert locations is not None
    examples = _examples(documents)
    size = int(documents.sizes[examples[examples >= 0]].sum())
    for number in np.flatnonzero((examples < 0) & np.isin(locations.kinds, ROWS)).tolist():
        with suppress(OSError):  # a file of which no row is a document
            size += os.path.getsize(documents.file_path(number))  # noqa: PTH202 (bytes path)
    return size


def _check_unchanged(documents: DocumentList, first: NDArray[np.int64], path: bytes) -> None:
    if len(documents.changed(first)):
        message = f"{quoted(path)} has changed since its rows were compared"
        raise InputError(message, RERUN)


@contextmanager
def _reporting(target: Path) -> Iterator[None]:
    """Raise InputError for anything that goes wrong while a file is written."""
    try:
        yield
    except OSError as error:
        message = f"{target} is not written: {error.strerror or error}"
        raise InputError(message, "name another file, or a folder that can be written") from None
    except (RecordError, PackedError) as error:
        message = f"{target} is not written, because the file that is read is damaged: {error}"
        raise InputError(message) from None


def _write_lines(
    path: bytes,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    documents: NDArray[np.int64],
    target: AbstractContextManager[BinaryIO],
    name: bytes,
    check: Callable[[], None],
    change: Callable[[int, bytes], bytes],
    report: Callable[[int], None],
) -> None:
    """Write lines with some changed, given by first bytes (ascending) and lengths without ends.

    name : of the target, which says how it is packed.
    """
    spans = _list_spans(starts, starts + lengths + 1, documents)
    span = next(spans, None)
    with open(path, "rb") as file, target as out:  # noqa: PTH123 (bytes path)
        with packing(out, name) as packed:
            at = 0
            held: list[bytes] = []  # what has been read of a line that is changed
            for chunk in chunks(file):
                here, end = at, at + len(chunk)
                while span is not None and span[0] < end:
                    first, last, document = span
                    packed.write(chunk[here - at : max(first, here) - at])
                    held.append(chunk[max(first, here) - at : last - at])
                    here = max(here, min(last, end))
                    if last > end:  # its rest is in the next chunk
                        break
                    packed.write(change(document, b"".join(held)))
                    held = []
                    span = next(spans, None)
                packed.write(chunk[here - at :])
                at = end
                report(file.tell())
            if held and span is not None:  # the last line has no end
                packed.write(change(span[2], b"".join(held)))
        check()


def _list_spans(*columns: NDArray[np.int64]) -> Iterator[tuple[int, ...]]:
    """Yield the rows of some columns, without all of them as objects at a time."""
    for start in range(0, len(columns[0]), _AT_ONCE):
        yield from zip(*(each[start : start + _AT_ONCE].tolist() for each in columns), strict=True)


def _write_parquet(
    path: bytes,
    starts: NDArray[np.int64],
    documents: NDArray[np.int64],
    target: AbstractContextManager[BinaryIO],
    check: Callable[[], None],
    change: Callable[[Any, NDArray[np.int64], NDArray[np.int64]], Any],
    report: Callable[[int], None],
) -> None:
    """Write a Parquet file with some rows changed (numbers from 0, ascending), one row group at a
    time, a large one in parts.
    """
    with open_parquet(path) as (pa, pq, file), target as out:
        with pq.ParquetWriter(out, file.schema_arrow, **_as_before(file)) as writer:
            at, size = 0, os.path.getsize(path)  # noqa: PTH202 (bytes path)
            for table in _read_parts(pa, file):
                end = at + len(table)
                some = slice(*np.searchsorted(starts, [at, end]))
                if some.start < some.stop:
                    table = change(table, starts[some] - at, documents[some])
                if len(table):
                    writer.write_table(table, row_group_size=len(table))
                at = end
                report(size * at // max(file.metadata.num_rows, 1))
        check()


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
