"""Parquet files: the number of their records, and the texts and ids of some.

Only the columns that are needed are decoded. A row group is decoded from its beginning, a slab of
rows at a time. The last slabs are kept, so that threads that read a file together from front to
back decode each row once.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import PART
from lshdup.base.memory import Buffer, rows_of
from lshdup.base.ragged import StringTable, offsets_of
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.errors import InputError
from lshdup.kernels import sets as kernels
from lshdup.kernels.helpers import PADDING
from lshdup.sources.files import Contents
from lshdup.sources.records import (
    RecordError,
    RecordList,
    SkippedRecord,
    Spans,
    Values,
    describe_too_large,
    field_names,
    no_field,
    split_fields,
)

#: Values of a column: the bytes of all, int64 offsets of shape (n + 1,), and which are null.
Texts = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]

#: A slab has about so many bytes of text, and at most so many rows.
_SLAB_BYTES, _SLAB_ROWS = 1 << 22, 1 << 16

#: So many bytes of decoded slabs are kept of a row group, and so many row groups of a file.
_KEPT_BYTES, _KEPT_GROUPS = 16 << 20, 2

#: Of a slab of which fewer than one row in so many is needed, the rows are copied.
_SPARSE = 2


class ParquetFile:
    """One open Parquet file and the texts in it; for any thread.

    Errors: InputError without pyarrow, OSError as of the system, RecordError for a damaged file or
    one without such texts.

    path : the file.
    field : name of the column of texts, or names on the way to a field with dots between; or
        several (`split_fields`).
    """

    def __init__(self, path: bytes, field: str) -> None:
        pa, pq = import_pyarrow()
        self._lock = threading.Lock()
        self._field = field
        self._groups: dict[int, _RowGroup] = {}
        self._delivered = 0  # rows whose texts were returned, repeats counted
        with _reporting_damage():
            # Without pre-buffering, a column chunk is not decoded before its first page is needed.
            self._file = pq.ParquetFile(pa.OSFile(path), pre_buffer=False, buffer_size=1 << 20)
            schema = self._file.schema_arrow
            # The names on the way to each of the fields whose texts are joined.
            self._column = [
                _find_column(schema, name, "--text-field") for name in split_fields(field)
            ]
            metadata = self._file.metadata
            groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
            # First row of each row group, then the number of rows; bytes of an average text.
            counts = np.array([group.num_rows for group in groups], np.int64)
            if counts.min(initial=0) < 0 or counts.sum() != metadata.num_rows:
                raise RecordError(Reason.DAMAGED, "its row groups have other rows than it says")
            sizes = np.array([group.total_byte_size for group in groups]) * self._find_share()
            self._offsets = offsets_of(counts)
            self._means = np.maximum(sizes // np.maximum(counts, 1), 1).astype(np.int64)
            rows = np.clip(_SLAB_BYTES // np.maximum(self._means, 1), 1, _SLAB_ROWS)
            self._slab_rows: list[int] = rows.tolist()

    def _find_share(self) -> float:
        """Return the share of the texts in the bytes of the first row group that can be read.

        Words of a dictionary are counted once.
        """
        names = {".".join(way) for way in self._column}
        for number in range(self._file.metadata.num_row_groups):
            with contextlib.suppress(RecordError), _reporting_damage():
                chunks = column_chunks(self._file, number, names)
                total = int(self._file.metadata.row_group(number).total_byte_size)
                size = sum(int(chunk.total_uncompressed_size) for chunk in chunks)
                return min(max(size / max(total, 1), 0.0), 1.0)
        return 1.0

    @property
    def is_finished(self) -> bool:
        """Whether as many texts as the file has rows were returned."""
        return self._delivered >= int(self._offsets[-1])

    def forget(self, beyond: int) -> int:
        """Let go of decoded texts of more bytes; return the bytes left. No thread may read."""
        held = sum(group.held for group in self._groups.values())
        if held <= beyond:
            return held
        self._groups.clear()
        return 0

    def list_records(self, run: Run, id_field: str) -> RecordList:
        """Return all records, with ids if `id_field` names their column."""
        arrays = run.arrays
        n = int(self._offsets[-1])
        starts = arrays.compute(n, np.int64, rows_of)
        numbers = arrays.compute(n, np.int64, lambda some: starts[some] + 1)
        ends, mean_of = self._offsets[1:], self._means.__getitem__
        lengths = arrays.compute(
            n, np.int64, lambda some: mean_of(np.searchsorted(ends, rows_of(some), side="right"))
        )
        if not id_field:
            return RecordList(numbers, starts, lengths)
        null: NDArray[np.bool_] = arrays.zeros(n, np.bool_)
        with self._lock, _reporting_damage():
            column = [_find_column(self._file.schema_arrow, id_field, "--id-field")]
            decoded = (texts for (texts,) in _decode(self._file, [column], _SLAB_ROWS))
            ids = StringTable.gather(_with_nulls(decoded, null), arrays)
        bad = null | (ids.offsets[1:] == ids.offsets[:-1])
        skipped = [
            SkippedRecord(
                row + 1, Reason.NO_ID, f"{id_field!r} is {'null' if none else 'an empty string'}"
            )
            for row, none in zip(np.flatnonzero(bad).tolist(), null[bad].tolist(), strict=True)
        ]
        listed = RecordList(numbers, starts, lengths, ids, skipped)
        return listed.take(run, arrays.find(~bad)) if bad.any() else listed

    def has_text(self, field: str) -> bool:
        """Return whether a column holds texts; ids may be integers."""
        with contextlib.suppress(RecordError):
            return bool(_find_column(self._file.schema_arrow, field, "--text-field"))
        return False

    def values(self, spans: Spans, field: str, option: str) -> Values:
        """Return a field of some rows, as `RecordFiles.values` does."""
        column, found = [_find_column(self._file.schema_arrow, field, option)], Values()
        rows = spans[0]
        self._refuse_lost(rows)
        first, last = np.searchsorted(self._offsets, rows[[0, -1]], side="right").tolist()
        at = int(self._offsets[first - 1])
        with self._lock, _reporting_damage():
            for (part,) in _decode(self._file, [column], _SLAB_ROWS, range(first - 1, last)):
                mine = rows[slice(*np.searchsorted(rows, [at, at + len(part[2])]))] - at
                texts, null = StringTable(*part[:2]), part[2][mine].tolist()
                each = zip(mine.tolist(), null, strict=True)
                found += [None if none else texts[row] or None for row, none in each]
                at += len(part[2])
        return found

    def texts(self, rows: NDArray[np.int64], longest: int, buffer: Buffer) -> Contents:
        """Return the texts of some rows.

        rows : int64 array, ascending, numbers from 0.
        longest : a text of more bytes is an error.
        """
        n = len(rows)
        self._delivered += n
        starts, lengths, null = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, bool)
        with self._lock:
            slabs, failed = self._find_slabs(rows)
        for some, at, (_, offsets, missing) in slabs:
            starts[some], lengths[some] = offsets[at], offsets[at + 1] - offsets[at]
            null[some] = missing[at]
        for row in np.flatnonzero(lengths > longest).tolist():
            failed[row] = RecordError(Reason.TOO_LARGE, describe_too_large(lengths[row], longest))
        for row in np.flatnonzero(null).tolist():
            failed[row] = RecordError(Reason.NULL_TEXT, f"{self._field!r} is null")
        lengths[null | (lengths > longest)] = 0
        ends = offsets_of(lengths)
        text = buffer.room(int(ends[-1]) + PADDING)
        text[ends[-1] :] = 0
        for some, _, (data, _, _) in slabs:
            kernels.copy_runs(
                data, starts[some], lengths[some], text[ends[some.start] : ends[some.stop]]
            )
        return Contents(text, ends[:-1], lengths, failed)

    def _refuse_lost(self, rows: NDArray[np.int64]) -> None:
        if len(rows) and rows[-1] >= self._offsets[-1]:
            raise RecordError(Reason.CHANGED, "its file has fewer rows now")

    def _find_slabs(
        self, rows: NDArray[np.int64]
    ) -> tuple[list[tuple[slice, NDArray[np.int64], Texts]], dict[int, OSError | RecordError]]:
        """Return slabs with some rows: which of `rows`, where they are in the slab, and its texts;
        and errors, by index in `rows`.
        """
        found: list[tuple[slice, NDArray[np.int64], Texts]] = []
        failed: dict[int, OSError | RecordError] = {}
        self._refuse_lost(rows)
        done = 0
        while done < len(rows):
            number = int(np.searchsorted(self._offsets, rows[done], side="right")) - 1
            start = int(self._offsets[number])
            try:
                first, texts = self._row_group(number).find_slab(int(rows[done]) - start)
            except RecordError as error:  # The other row groups may be whole.
                stop = int(np.searchsorted(rows, self._offsets[number + 1]))
                for row in range(done, stop):
                    failed[row] = RecordError(error.reason, error.detail)
            else:
                stop = int(np.searchsorted(rows, start + first + len(texts[2])))
                at = rows[done:stop] - (start + first)
                if len(at) < len(texts[2]) // _SPARSE:  # The others are not held in memory.
                    at, texts = np.arange(len(at)), _take_texts(texts, at)
                found.append((slice(done, stop), at, texts))
            done = stop
        return found, failed

    def _row_group(self, number: int) -> "_RowGroup":
        group = self._groups.pop(number, None)
        if group is None:
            file, column, step = self._file, self._column, self._slab_rows[number]
            group = _RowGroup(lambda: _decode(file, [column], step, [number]))
        self._groups[number] = group  # the last in the order of use
        while len(self._groups) > _KEPT_GROUPS:
            del self._groups[next(iter(self._groups))]
        return group


class _RowGroup:
    """One row group, decoded as far as its rows were requested; `held` bytes of it are kept."""

    def __init__(self, decode: Callable[[], Iterator[list[Texts]]]) -> None:
        self._decode = decode
        self._restart()

    def _restart(self) -> None:
        self._rest = self._decode()
        self._error: tuple[Reason, str] | None = None
        self._slabs: deque[tuple[int, Texts]] = deque()
        self._rows = self.held = 0

    def find_slab(self, row: int) -> tuple[int, Texts]:
        """Return the slab with a row, and the number of its first row."""
        if self._slabs and row < self._slabs[0][0]:
            self._restart()
        while row >= self._rows:
            self._decode_next()
        return next(slab for slab in reversed(self._slabs) if slab[0] <= row)

    def _decode_next(self) -> None:
        """Decode the next slab; where an error was, raise it again."""
        if self._error:
            raise RecordError(*self._error)
        try:
            (texts,) = next(self._rest)
        except RecordError as error:
            # The error itself would hold the decoded texts of its frames.
            self._error = error.reason, error.detail
            raise RecordError(*self._error) from None
        except OSError:
            self._restart()  # The next attempt may succeed.
            raise
        self._slabs.append((self._rows, texts))
        self._rows += len(texts[2])
        self.held += texts[0].nbytes
        while self.held > _KEPT_BYTES and len(self._slabs) > 1:
            self.held -= self._slabs.popleft()[1][0].nbytes


@contextlib.contextmanager
def open_parquet(path: bytes) -> Iterator[tuple[Any, Any, Any]]:
    """Yield pyarrow, its module for Parquet, and an open file with all its columns.

    Raises as `ParquetFile` does.
    """
    pa, pq = import_pyarrow()
    with _reporting_damage(), pa.OSFile(path) as handle:
        # Without pre-buffering, a large row group is not read whole.
        yield pa, pq, pq.ParquetFile(handle, pre_buffer=False, buffer_size=1 << 20)


def import_pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its module for Parquet. Raise InputError if it is missing or broken."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("pyarrow"):
            raise
        message = "Parquet files need pyarrow"
        raise InputError(message, "pip install 'lshdup[parquet]'") from None
    except ImportError as error:
        message = f"pyarrow, which Parquet files need, does not load: {error}"
        raise InputError(message, "install it again, or leave these files out") from None
    return pa, pq


@contextlib.contextmanager
def _reporting_damage() -> Iterator[None]:
    """Raise RecordError for what Arrow raises about a damaged file."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowMemoryError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise RecordError(Reason.DAMAGED, str(error).partition("\n")[0][:200]) from None


def _with_nulls(parts: Iterable[Texts], null: NDArray[np.bool_]) -> Iterator[StringTable]:
    """Yield the texts of all parts, and note which of them are null."""
    at = 0
    for data, offsets, none in parts:
        null[at : at + len(none)] = none
        at += len(none)
        yield StringTable(data[offsets[0] : offsets[-1]], offsets - offsets[0])


def _decode(
    file: Any, columns: list[list[list[str]]], rows: int, groups: Iterable[int] | None = None
) -> Iterator[list[Texts]]:
    """Yield columns of all row groups, or of some, so many rows at a time.

    Raises RecordError for damage. A row group with another number of rows than it says is damaged:
    all that follow would be taken for other rows.

    columns : of each the names on the way to it, or to all that are joined.
    """
    names = sorted({".".join(way) for ways in columns for way in ways})
    with _reporting_damage():
        for number in range(file.metadata.num_row_groups) if groups is None else groups:
            left = file.metadata.row_group(number).num_rows
            for batch in file.iter_batches(
                rows, row_groups=[number], columns=names, use_threads=False
            ):
                left -= len(batch)
                if left < 0:
                    break
                yield [texts_of(batch, ways, PART) for ways in columns]
            if left:
                raise RecordError(Reason.DAMAGED, "a row group has not as many rows as it says")


def texts_of(batch: Any, ways: Sequence[Sequence[str]], between: bytes = b"") -> Texts:
    """Return strings, or numbers and dates as strings, of one column of a record batch.

    ways : name of the column, and of the fields in it that lead to them; of several columns, the
        strings that are not null are joined.
    between : what stands between joined strings.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    arrays = []
    for way in ways:
        array = batch.column(batch.schema.names.index(way[0]))  # of several of one name the first
        for name in way[1:]:
            array = pc.struct_field(array, name)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if not str(array.type).removesuffix("_view").endswith(("string", "binary")):
            array = array.cast(pa.large_string())
        arrays.append(array.cast(pa.large_binary()))
    array = arrays[0]
    if len(arrays) > 1:
        empty, mark = (pa.scalar(each, pa.large_binary()) for each in (b"", between))
        all_null = pc.is_null(pc.coalesce(*arrays))
        arrays[0] = pc.if_else(all_null, empty, array)  # Arrow would give no row for nulls alone.
        joined = pc.binary_join_element_wise(*arrays, mark, null_handling="skip")
        array = pc.if_else(all_null, None, joined)
    null = np.asarray(array.is_null().to_numpy(zero_copy_only=False), bool)
    return *content(array), null


def content(array: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of an array of binary, and int64 offsets of shape (n + 1,) into them."""
    import pyarrow as pa

    _, offsets, data = array.buffers()
    if offsets is None or not len(array):
        return np.zeros(0, np.uint8), np.zeros(len(array) + 1, np.int64)
    width = "<i8" if array.type == pa.large_binary() else "<i4"
    ends = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data or b"", np.uint8), ends.astype(np.int64, copy=False)


def _take_texts(texts: Texts, at: NDArray[np.int64]) -> Texts:
    """Return a copy of some texts."""
    data, offsets, null = texts
    some = StringTable(data, offsets).take(at)
    return some.values, some.offsets, null[at]


# --- columns --------------------------------------------------------------------------------------


def _find_column(schema: Any, field: str, option: str) -> list[str]:
    """Return the names on the way to a field. option : the one that names it.

    Raises RecordError if it is no string, or for an id no integer either; a value to keep by may be
    anything but a list or fields.
    """
    from pyarrow import types

    lacks = Reason.NO_ID if option == "--id-field" else Reason.NO_TEXT
    way = [field] if schema.get_field_index(field) >= 0 else field.split(".")
    fields = {each.name: each.type for each in schema}
    kind: Any = None
    for name in way:
        if name not in fields:
            columns = field_names(
                (each.name, part) for each in schema for part in ("", *_subfields(each.type))
            )
            detail = f"it has {no_field(field, columns, option, 'column')}"
            raise RecordError(lacks, detail)
        kind = fields[name]
        fields = _subfields(kind)
    inner = kind.value_type if types.is_dictionary(kind) else kind
    is_text = str(inner).removeprefix("large_").removesuffix("_view") in ("string", "binary")
    is_id = option == "--id-field" and types.is_integer(inner)
    is_value = option not in ("--id-field", "--text-field") and not types.is_nested(inner)
    if is_text or is_id or is_value:
        return way
    detail = f"its column {field!r} is of type {kind}"
    raise RecordError(Reason.NOT_TEXT if option == "--text-field" else lacks, detail)


def _subfields(kind: Any) -> dict[str, Any]:
    """Return the types of the fields in a column, by name."""
    import pyarrow as pa

    if not pa.types.is_struct(kind):
        return {}
    return {kind.field(at).name: kind.field(at).type for at in range(kind.num_fields)}


def column_chunks(file: Any, group: int, names: Set[str] | None = None) -> list[Any]:
    """Return what a row group says about its columns; raise as pyarrow does for a damaged one.

    To ask for it ends the process if it is damaged. To read a row raises an error, so that is done
    first.

    names : of the columns; None: of all.
    """
    columns = None if names is None else sorted(names)
    next(file.iter_batches(1, row_groups=[group], columns=columns, use_threads=False), None)
    paths = [file.schema.column(at).path for at in range(file.metadata.num_columns)]
    metadata = file.metadata.row_group(group)
    return [metadata.column(at) for at, path in enumerate(paths) if names is None or path in names]
