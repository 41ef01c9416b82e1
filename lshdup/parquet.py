"""Parquet: how many rows there are, and the texts and ids of some. Called by openrows.py.

Only the columns that are needed are read. Rows of a row group are decoded from its beginning on, some at a time; what was decoded last is
kept, so that readers that go through a file from front to back decode each row once, however many threads they are. Who comes back for
rows here and there, to verify pairs, finds the texts of the whole file in a nameless file, decoded once more.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lshdup.compression import NoRoomError, new_scratch, write_scratch
from lshdup.errors import InputError
from lshdup.files import Buffer, read_spans
from lshdup.kernels import copying
from lshdup.ragged import PADDING, StringTable, offsets_of
from lshdup.reasons import Reason
from lshdup.rows import RowError, RowList, field_names, no_field

#: About so many bytes of text are decoded at a time, and at most so many rows.
_SLAB_BYTES, _SLAB_ROWS = 1 << 22, 1 << 16

#: Of a row group, decoded texts of so many bytes are kept, and of a file so many row groups.
_KEPT_BYTES, _KEPT_GROUPS = 16 << 20, 2

#: Some of a column, as in Arrow: the bytes of all, int64 offsets of shape (n + 1,), and which are null.
_Texts = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]


class ParquetFile:
    """One open Parquet file and the texts in it; for any thread. Raises InputError if pyarrow is not there, OSError as the system does,
    and RowError if it is no such file, or has no such text.
    """

    def __init__(self, path: bytes, field: str, folder: Path | None = None) -> None:
        self._path = path
        self._folder = folder
        self._lock = threading.Lock()
        self._field = field
        pa, pq = _pyarrow()
        with _damaged():
            # Not all of a column chunk before its first page is decoded.
            self._file = pq.ParquetFile(pa.OSFile(path), pre_buffer=False, buffer_size=1 << 20)
        self._column = _column(self._file.schema_arrow, field, text=True)
        groups = [self._file.metadata.row_group(number) for number in range(self._file.metadata.num_row_groups)]
        #: First row of each row group and, last, the number of rows; and the bytes of an average text.
        self.offsets = offsets_of(np.array([group.num_rows for group in groups], np.int64))
        self.means = np.array([_mean(group, self._column) for group in groups], np.int64)
        self._groups: dict[int, _Group] = {}
        self._decoded = 0  # rows, again and again
        self._all: _Everything | None = None
        self._no_room = False

    def __del__(self) -> None:
        everything = getattr(self, "_all", None)
        if everything is not None:
            everything.file.close()

    def rows(self, id_field: str) -> RowList:
        """All rows, and their ids."""
        n = int(self.offsets[-1])
        numbers, lengths = np.arange(1, n + 1), np.repeat(self.means, np.diff(self.offsets))
        if not id_field:
            return RowList(numbers, numbers - 1, lengths)
        column = _column(self._file.schema_arrow, id_field, text=False)
        blobs, sizes, null = [np.zeros(0, np.uint8)], [np.zeros(0, np.int64)], [np.zeros(0, bool)]
        with _damaged():
            for batch in self._file.iter_batches(_SLAB_ROWS, columns=[".".join(column)], use_threads=False):
                data, offsets, missing = _texts_of(batch, column)
                blobs.append(data[offsets[0] : offsets[-1]].copy())
                sizes.append(np.diff(offsets))
                null.append(missing)
        ids = StringTable(np.concatenate(blobs), offsets_of(np.concatenate(sizes)))
        none = np.concatenate(null)
        bad = none | (np.diff(ids.offsets) == 0)
        left_out = [
            (row + 1, Reason.NO_ID, f"{id_field!r} is {'null' if none[row] else 'an empty string'}") for row in np.flatnonzero(bad).tolist()
        ]
        keep = np.flatnonzero(~bad)
        return RowList(numbers[keep], keep, lengths[keep], ids.take(keep), left_out)

    def texts(
        self, rows: NDArray[np.int64], longest: int, buffer: Buffer
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], dict[int, RowError]]:
        """The texts of some rows (numbers from 0, ascending) in one array: see `jsonlines.read_texts`."""
        if len(rows) and rows[-1] >= self.offsets[-1]:
            raise RowError(Reason.CHANGED, "its file has fewer rows now")
        with self._lock, _damaged():
            if self._all is None and self._decoded >= self.offsets[-1] and not self._no_room:
                self._decode_all()
        if self._all is not None:
            return self._all.texts(rows, longest, buffer, self._field)
        parts = []
        starts, lengths, null = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64), np.zeros(len(rows), bool)
        done = 0
        with self._lock, _damaged():
            while done < len(rows):
                first, (data, offsets, missing) = self._slab(int(rows[done]))
                stop = int(np.searchsorted(rows, first + len(missing)))
                at = rows[done:stop] - first
                starts[done:stop], lengths[done:stop], null[done:stop] = offsets[at], offsets[at + 1] - offsets[at], missing[at]
                parts.append((slice(done, stop), data))
                done = stop
        failed = _refused(lengths, null, longest, self._field)
        places = offsets_of(lengths)
        text = buffer.room(int(places[-1]) + PADDING)
        text[places[-1] :] = 0
        for some, data in parts:
            copying.copy_runs(data, starts[some], lengths[some], text[places[some.start] : places[some.stop]])
        return text, places[:-1], lengths, failed

    def batches(self, id_field: str, groups: range) -> Iterator[tuple[int, _Texts, _Texts]]:
        """Rows of some row groups, some at a time, for whoever reads a file in pieces: the number of the first, their ids, their texts."""
        column = _column(self._file.schema_arrow, id_field, text=False)
        columns = sorted({".".join(column), ".".join(self._column)})
        for group in groups:
            first = int(self.offsets[group])
            rows = max(1, min(_SLAB_ROWS, _SLAB_BYTES // int(self.means[group])))
            with _damaged():
                for batch in self._file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False):
                    ids, texts = (batch.select(way[:1]) for way in (column, self._column))
                    yield first, _texts_of(ids, column), _texts_of(texts, self._column)
                    first += len(batch)

    def _decode_all(self) -> None:
        """The texts of all rows to a nameless file, if there is room."""
        column = ".".join(self._column)
        sizes, null = [np.zeros(0, np.int64)], [np.zeros(0, bool)]
        rows = max(1, min(_SLAB_ROWS, _SLAB_BYTES // max(1, int(self.means.max(initial=1)))))
        file = None
        try:
            file = new_scratch(self._path, self._folder)
            at = 0
            for batch in self._file.iter_batches(rows, columns=[column], use_threads=False):
                data, offsets, missing = _texts_of(batch, self._column)
                write_scratch(file, data[offsets[0] : offsets[-1]].data, at, self._path, self._folder)
                at += int(offsets[-1] - offsets[0])
                sizes.append(np.diff(offsets))
                null.append(missing)
        except NoRoomError:
            if file is not None:
                file.close()
            self._no_room = True
            return
        self._groups.clear()
        self._all = _Everything(file, offsets_of(np.concatenate(sizes)), np.concatenate(null))

    def _slab(self, row: int) -> tuple[int, _Texts]:
        """The decoded texts among which that of `row` is, and the row that is the first of them."""
        number = int(np.searchsorted(self.offsets, row, side="right")) - 1
        group = self._groups.pop(number, None) or _Group(self._file, number, self._column, int(self.means[number]))
        self._groups[number] = group  # the last in the order of use
        while len(self._groups) > _KEPT_GROUPS:
            del self._groups[next(iter(self._groups))]
        first = int(self.offsets[number])
        before = group.decoded
        at, texts = group.slab(row - first)
        self._decoded += group.decoded - before
        return first + at, texts


@dataclass(frozen=True)
class _Everything:
    """The texts of all rows of a file, in another that can be read at any place: int64 offsets of shape (n + 1,), and which are null."""

    file: IO[bytes]
    offsets: NDArray[np.int64]
    null: NDArray[np.bool_]

    def texts(
        self, rows: NDArray[np.int64], longest: int, buffer: Buffer, field: str
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], dict[int, RowError]]:
        starts, lengths = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        failed = _refused(lengths, self.null[rows], longest, field)
        text, places = read_spans(self.file.fileno(), starts, lengths, buffer)
        return text, places, lengths, failed


def _refused(lengths: NDArray[np.int64], null: NDArray[np.bool_], longest: int, field: str) -> dict[int, RowError]:
    """The rows whose texts cannot be had, by their places; their lengths become 0."""
    failed = {}
    for row in np.flatnonzero((lengths > longest) | null).tolist():
        failed[row] = RowError(Reason.NO_TEXT, f"{field!r} is null")
        if not null[row]:
            failed[row] = RowError(Reason.TOO_LARGE, f"{lengths[row]} bytes, --max-bytes is {longest}")
        lengths[row] = 0
    return failed


class _Group:
    """One row group, decoded as far as it was asked for."""

    def __init__(self, file: Any, number: int, column: list[str], mean: int) -> None:
        self._column = column
        self.decoded = 0
        rows = max(1, min(_SLAB_ROWS, _SLAB_BYTES // max(mean, 1)))
        self._open: Callable[[], Iterator[Any]] = lambda: file.iter_batches(
            rows, row_groups=[number], columns=[".".join(column)], use_threads=False
        )
        self._begin()

    def _begin(self) -> None:
        self._batches: Iterator[Any] = self._open()
        self._firsts: list[int] = []
        self._slabs: list[_Texts | None] = []
        self._dropped = self._rows = self._bytes = 0

    def slab(self, row: int) -> tuple[int, _Texts]:
        if self._dropped and row < self._firsts[self._dropped]:
            self._begin()
        while row >= self._rows:
            batch = next(self._batches, None)
            if batch is None:
                raise RowError(Reason.DAMAGED, "a row group has fewer rows than it says")
            texts = _texts_of(batch, self._column)
            self._firsts.append(self._rows)
            self._slabs.append(texts)
            self._rows += len(texts[2])
            self.decoded += len(texts[2])
            self._bytes += texts[0].nbytes
            while self._bytes > _KEPT_BYTES and self._dropped < len(self._slabs) - 1:
                dropped = self._slabs[self._dropped]
                assert dropped is not None
                self._bytes -= dropped[0].nbytes
                self._slabs[self._dropped] = None
                self._dropped += 1
        at = int(np.searchsorted(self._firsts, row, side="right")) - 1
        texts_there = self._slabs[at]
        assert texts_there is not None
        return self._firsts[at], texts_there


@contextlib.contextmanager
def parquet_file(path: bytes) -> Iterator[tuple[Any, Any, Any]]:
    """pyarrow, its module for Parquet, and an open file, all of whose columns are wanted. Raises what `ParquetFile` does."""
    pa, pq = _pyarrow()
    with _damaged(), pa.OSFile(path) as handle:
        yield pa, pq, pq.ParquetFile(handle)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        message = "Parquet files need pyarrow"
        raise InputError(message, "pip install 'lshdup[parquet]'") from None
    return pa, pq


@contextlib.contextmanager
def _damaged() -> Iterator[None]:
    """What Arrow raises for a damaged file, as a RowError."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as error:
        raise RowError(Reason.DAMAGED, str(error).partition("\n")[0][:200]) from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise RowError(Reason.DAMAGED, str(error).partition("\n")[0][:200]) from None


def _column(schema: Any, field: str, *, text: bool) -> list[str]:
    """The names on the way to a field, checked to be a string, or for an id an integer. Raises RowError."""
    import pyarrow as pa

    types = pa.types
    missing = Reason.NO_TEXT if text else Reason.NO_ID
    way = [field] if schema.get_field_index(field) >= 0 else field.split(".")
    fields = {each.name: each.type for each in schema}
    kind: Any = None
    for name in way:
        if name not in fields:
            raise RowError(missing, f"it has {no_field(field, _columns(schema), '--text-field' if text else '--id-field', 'column')}")
        kind = fields[name]
        fields = _parts(kind)
    inner = kind.value_type if types.is_dictionary(kind) else kind
    strings = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary, types.is_binary_view)
    if any(is_kind(inner) for is_kind in strings) or (not text and types.is_integer(inner)):
        return way
    raise RowError(Reason.NOT_TEXT if text else Reason.NO_ID, f"its column {field!r} is of type {kind}")


def _columns(schema: Any) -> tuple[str, ...]:
    return field_names((each.name, part) for each in schema for part in ("", *_parts(each.type)))


def _parts(kind: Any) -> dict[str, Any]:
    """The fields of a column, by name, and their types."""
    import pyarrow as pa

    return {kind.field(at).name: kind.field(at).type for at in range(kind.num_fields)} if pa.types.is_struct(kind) else {}


def _mean(group: Any, column: list[str]) -> int:
    """Bytes of an average text of a row group; only about: words of a dictionary are counted once."""
    path = ".".join(column)
    for at in range(group.num_columns):
        chunk = group.column(at)
        if chunk.path_in_schema == path:
            return max(1, int(chunk.total_uncompressed_size) // max(1, int(group.num_rows)))
    return 1


def _texts_of(batch: Any, column: list[str]) -> _Texts:
    """One column of a record batch, whatever it is stored as."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = batch.column(0)
    for name in column[1:]:
        array = pc.struct_field(array, name)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_integer(array.type):
        array = array.cast(pa.large_string())
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    n = len(array)
    null = np.asarray(array.is_null().to_numpy(zero_copy_only=False), bool)
    if offsets is None or not n:
        return np.zeros(0, np.uint8), np.zeros(n + 1, np.int64), null
    ends = np.frombuffer(offsets, np.int64, n + 1, 8 * array.offset)
    blob = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return blob, ends, null
