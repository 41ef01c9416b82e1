"""Files without some of their records, or with others instead: the rest is as it was, and in the
same order.

Only records that were compared can be dropped: blank, broken and unnamed ones stay. The file that
is read is never the file that is written.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.document_list import DocumentList, typed_name
from lshdup.documents.readers.parquet import open_parquet
from lshdup.documents.records import ROWS, Kind, RecordError, classify_file
from lshdup.errors import RERUN, InputError, ParameterError
from lshdup.utils.atomic import replace_file
from lshdup.utils.compression import PIP, ZSTD, PackedError, can_unpack, chunks, packing

#: Files of rows, and what the names of such files end in.
_FORMATS = {
    Kind.JSON: ("JSON Lines", ".jsonl, .jsonl.gz or .jsonl.zst"),
    Kind.CSV: ("CSV", ".csv, .tsv, .csv.gz or .csv.zst"),
    Kind.PARQUET: ("Parquet", ".parquet"),
}


def write_without(documents: DocumentList, dropped: NDArray[np.int64], target: Path) -> list[Path]:
    """Write the files of the documents without the records that are dropped; return the paths
    written.

    Each file is replaced whole or not at all. JSON Lines are compressed as the ending of the target
    says; Parquet as the source is.

    Errors: ParameterError if the target does not suit; InputError if a document is no record, a
    file cannot be read or has changed, or the target cannot be written.

    Parameters
    ----------
    documents : records.
    dropped : int64 array, indices of documents.
    target : a file; for several files, or if it is a folder, the folder for files of the same
        names.

    """

    def drop_rows(table: Any, rows: NDArray[np.int64], _: NDArray[np.int64]) -> Any:
        import pyarrow as pa

        keep = np.ones(len(table), bool)
        keep[rows] = False
        return table.filter(pa.array(keep))

    return rewrite(documents, dropped, target, lambda _, _line: b"", drop_rows)


def rewrite(
    documents: DocumentList,
    changed: NDArray[np.int64],
    target: Path,
    change_line: Callable[[int, bytes], bytes],
    change_rows: Callable[[Any, NDArray[np.int64], NDArray[np.int64]], Any],
) -> list[Path]:
    """Write the files of the documents with other records instead of some; see `write_without`.

    Parameters
    ----------
    documents, target : as of `write_without`.
    changed : int64 array, indices of documents.
    change_line : returns what is written instead of a document, by its index, and its line with its
        end.
    change_rows : returns what is written instead of a table of pyarrow, given rows of the table,
        and the indices of the documents that they are: int64 arrays.

    """
    files, targets = check_target(documents, target)
    locations = documents.locations
    assert locations is not None
    if len(files) > 1:
        with _reporting(target):
            target.mkdir(parents=True, exist_ok=True)
    for (number, path), goal in zip(files, targets, strict=True):
        check = partial(
            _check_unchanged, documents, np.flatnonzero(locations.file == number)[:1], path
        )
        check()
        mine = changed[locations.file[changed] == number]
        mine = mine[np.argsort(locations.starts[mine], kind="stable")]
        starts, lengths = locations.starts[mine], locations.lengths[mine]
        with _reporting(goal):
            if locations.kinds[number] == Kind.PARQUET:
                _write_parquet(path, starts, mine, goal, check, change_rows)
            else:
                _write_lines(path, starts, lengths, mine, goal, check, change_line)
    return targets


def check_target(
    documents: DocumentList, target: Path, *, read: bool = True
) -> tuple[list[tuple[int, bytes]], list[Path]]:
    """Return the files of records, by number and path, and their targets.

    Raises as `write_without` does, as far as that is known before the work. read : whether the
    documents have been read; before that, files among them may turn out to be no documents.
    """
    locations = documents.locations
    rows = np.zeros(len(documents), bool) if locations is None else locations.are_rows()
    met = locations is not None and np.isin(locations.kinds, ROWS).any()
    if locations is None or not (rows.all() if read else met):
        name = os.fsdecode(documents.names[int(np.argmin(rows))]) if len(documents) else ""
        why = f": {name!r} is none" if name else ""
        message = (
            f"not all documents are rows of JSON Lines, CSV or Parquet files{why}, "
            "so no filtered file can be written"
        )
        hint = (
            "name files of rows only; --text-field takes the rows of files in folders too; "
            "--emit drop lists names"
        )
        raise ParameterError(message, hint)
    files = [
        (number, documents.file_path(number))
        for number in np.flatnonzero(np.isin(locations.kinds, ROWS)).tolist()
    ]
    targets = _targets([path for _, path in files], target)
    for (number, path), goal in zip(files, targets, strict=True):
        _check(path, Kind(int(locations.kinds[number])), goal, [each for _, each in files])
    return files, targets


def refuse_document(output: Path, documents: DocumentList, option: str = "-o") -> None:
    """Raise ParameterError if an output is the file of one of the documents, by any name."""
    if output.is_file():
        number = documents.names.find(typed_name(os.fsencode(output)))
        of_size = np.flatnonzero(documents.sizes == output.stat().st_size).tolist()
        numbers = of_size if number is None else [number, *of_size]
        refuse_file(output, map(documents.path, numbers), option)


def refuse_file(output: Path, paths: Iterable[bytes], option: str = "-o") -> None:
    """Raise ParameterError if an output is one of these files, by any name."""
    if _is_one_of(output, paths):
        message = f"{option} {output} is one of the documents that are compared"
        raise ParameterError(message, "write to another file, or --exclude this one")


def _is_one_of(output: Path, paths: Iterable[bytes]) -> bool:
    """Return whether an output is one of these files, by any name."""
    for path in paths if output.is_file() else ():
        with suppress(OSError):
            if output.samefile(os.fsdecode(path)):
                return True
    return False


def _targets(paths: list[bytes], target: Path) -> list[Path]:
    if len(paths) == 1 and not target.is_dir():
        return [target]
    if target.exists() and not target.is_dir():
        message = f"{target} is no folder, and {len(paths)} files are to be written"
        raise ParameterError(message, "name a folder: each file gets its own name in it")
    names = [os.fsdecode(os.path.basename(path)) for path in paths]  # noqa: PTH119 (bytes path)
    again = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if again is not None:
        message = f"two of the files are called {again}: they cannot be written to one folder"
        raise ParameterError(message, "write them in two runs, to two folders")
    return [target / name for name in names]


def _check(path: bytes, kind: Kind, target: Path, sources: list[bytes]) -> None:
    if _is_one_of(target, sources):
        message = f"{target} is one of the files that are read; lshdup changes none of them"
        raise ParameterError(message, "write to another file")
    what, endings = _FORMATS[kind]
    other = classify_file(os.fsencode(target.name), named=True)
    if other != kind and (kind == Kind.PARQUET or other in _FORMATS):
        message = f"{target} does not end like a file of {what}, which {os.fsdecode(path)} is"
        raise ParameterError(message, f"name one that ends in {endings}")
    if target.name.lower().endswith(".zst") and not can_unpack(ZSTD):
        message = f"{target} is to be packed by zstd, which needs backports.zstd"
        raise InputError(message, PIP)


def _check_unchanged(documents: DocumentList, first: NDArray[np.int64], path: bytes) -> None:
    if len(documents.changed(first)):
        message = f"{os.fsdecode(path)!r} has changed since its rows were compared"
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
    target: Path,
    check: Callable[[], None],
    change: Callable[[int, bytes], bytes],
) -> None:
    """Write JSON Lines with some changed, given by first bytes (ascending) and lengths without
    ends.
    """
    ends = (starts + lengths + 1).tolist()
    spans = list(zip(starts.tolist(), ends, documents.tolist(), strict=True))
    with open(path, "rb") as file, replace_file(target) as out:  # noqa: PTH123 (bytes path)
        with packing(out, os.fsencode(target.name)) as packed:
            at = span = 0
            held: list[bytes] = []  # what has been read of a line that is changed
            for chunk in chunks(file):
                here, end = at, at + len(chunk)
                while span < len(spans) and spans[span][0] < end:
                    first, last, document = spans[span]
                    packed.write(chunk[here - at : max(first, here) - at])
                    held.append(chunk[max(first, here) - at : last - at])
                    here = max(here, min(last, end))
                    if last > end:  # its rest is in the next chunk
                        break
                    packed.write(change(document, b"".join(held)))
                    held = []
                    span += 1
                packed.write(chunk[here - at :])
                at = end
            if held:  # the last line has no end
                packed.write(change(spans[span][2], b"".join(held)))
        check()


def _write_parquet(
    path: bytes,
    starts: NDArray[np.int64],
    documents: NDArray[np.int64],
    target: Path,
    check: Callable[[], None],
    change: Callable[[Any, NDArray[np.int64], NDArray[np.int64]], Any],
) -> None:
    """Write a Parquet file with some rows changed (numbers from 0, ascending), one row group at a
    time.
    """
    with open_parquet(path) as (_, pq, file), replace_file(target) as out:
        with pq.ParquetWriter(out, file.schema_arrow, **_as_before(file.metadata)) as writer:
            at = 0
            for number in range(file.metadata.num_row_groups):
                end = at + file.metadata.row_group(number).num_rows
                some = slice(*np.searchsorted(starts, [at, end]))
                table = file.read_row_group(number, use_threads=False)
                if some.start < some.stop:
                    table = change(table, starts[some] - at, documents[some])
                if len(table):
                    writer.write_table(table, row_group_size=len(table))
                at = end
        check()


def _as_before(metadata: Any) -> dict[str, Any]:
    """Return the options to write a Parquet file like the one with this metadata."""
    groups = min(metadata.num_row_groups, 1)
    columns = [metadata.row_group(0).column(at) for at in range(groups * metadata.num_columns)]
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
