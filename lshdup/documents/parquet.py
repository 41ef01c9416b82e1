"""Parquet: how many rows there are, and the texts and ids of some. Called by openrows.py.

Only the columns that are needed are read. Rows of a row group are decoded from its beginning on, some at a time; what was decoded last is
kept, so that readers that go through a file from front to back decode each row once, however many threads they are. Before more rows of
a file are decoded than it has, all its texts are decoded once more, and kept (decoded.py): who comes back for rows here and there, to
verify pairs, finds them there.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.files import Buffer
from lshdup.documents.records import RecordError, RecordList, field_names, no_field
from lshdup.documents.text_cache import KeptTexts, Scratch
from lshdup.errors import InputError
from lshdup.kernels import copying
from lshdup.kernels.helpers import PADDING
from lshdup.skipped import Reason
from lshdup.utils.arrow import Texts, texts_of
from lshdup.utils.ragged import StringTable, offsets_of

#: About so many bytes of text are decoded at a time, and at most so many rows.
_SLAB_BYTES, _SLAB_ROWS = 1 << 22, 1 << 16

_FEWER = "its file has fewer rows now"

#: Of a row group, decoded texts of so many bytes are kept, and of a file so many row groups.
_KEPT_BYTES, _KEPT_GROUPS = 16 << 20, 2


class ParquetFile:
    """One Parquet file and the texts in it; for any thread. Raises InputError if pyarrow is not there.

    It is opened when it is needed, as often as it was closed; which of its texts are kept, and how many were decoded, outlives that. `rows`
    and `texts` raise OSError as the system does, and RecordError if it is no such file, or has no such text. scratch : where texts are
    kept; None: nowhere.
    """

    def __init__(self, path: bytes, field: str, scratch: Scratch | None = None) -> None:
        self._pyarrow = _pyarrow()
        self._path = path
        self._scratch = scratch
        self._lock = threading.Lock()
        self._field = field
        self._file: Any = None
        self._column: list[str] = []
        self._offsets = self._means = np.zeros(0, np.int64)
        self._groups: dict[int, _Group] = {}
        self._decoded = 0  # rows, again and again
        self._all: KeptTexts | None = None
        self._broken = False  # not all texts can be decoded

    def close(self) -> None:
        """Give back the file and what of it is in memory; texts that are kept stay. For when nobody reads it."""
        self._groups.clear()
        self._file = None

    def _open(self) -> None:
        if self._file is not None:
            return
        pa, pq = self._pyarrow
        # Not all of a column chunk before its first page is decoded.
        file = pq.ParquetFile(pa.OSFile(self._path), pre_buffer=False, buffer_size=1 << 20)
        self._column = _column(file.schema_arrow, self._field, text=True)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        # First row of each row group and, last, the number of rows; and the bytes of an average text.
        self._offsets = offsets_of(np.array([group.num_rows for group in groups], np.int64))
        self._means = np.array([_mean(group, self._column) for group in groups], np.int64)
        self._file = file

    def rows(self, id_field: str) -> RecordList:
        """All rows, and their ids."""
        with self._lock, _damaged():
            self._open()
            n = int(self._offsets[-1])
            numbers, lengths = np.arange(1, n + 1), np.repeat(self._means, np.diff(self._offsets))
            if not id_field:
                return RecordList(numbers, numbers - 1, lengths)
            column = _column(self._file.schema_arrow, id_field, text=False)
            blobs, sizes, null = (
                [np.zeros(0, np.uint8)],
                [np.zeros(0, np.int64)],
                [np.zeros(0, bool)],
            )
            for data, offsets, missing in _pieces(self._file, column, _SLAB_ROWS):
                blobs.append(data[offsets[0] : offsets[-1]].copy())
                sizes.append(np.diff(offsets))
                null.append(missing)
        ids = StringTable(np.concatenate(blobs), offsets_of(np.concatenate(sizes)))
        none = np.concatenate(null)
        bad = none | (np.diff(ids.offsets) == 0)
        skipped = [
            (row + 1, Reason.NO_ID, f"{id_field!r} is {'null' if none[row] else 'an empty string'}")
            for row in np.flatnonzero(bad).tolist()
        ]
        keep = np.flatnonzero(~bad)
        return RecordList(numbers[keep], keep, lengths[keep], ids.take(keep), skipped)

    def texts(
        self, rows: NDArray[np.int64], longest: int, buffer: Buffer
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], dict[int, RecordError]]:
        """The texts of some rows (numbers from 0, ascending) in one array: see `jsonlines.read_texts`."""
        with self._lock:
            slabs = None if self._all is not None else self._slabs(rows)
        if slabs is None:
            assert self._all is not None
            if len(rows) and rows[-1] >= len(self._all.null):
                raise RecordError(Reason.CHANGED, _FEWER)
            starts, lengths = self._all.spans(rows)
            failed = _refused(lengths, self._all.null[rows], longest, self._field)
            text, places = self._all.read(starts, lengths, buffer)
            return text, places, lengths, failed
        starts, lengths, null = (
            np.zeros(len(rows), np.int64),
            np.zeros(len(rows), np.int64),
            np.zeros(len(rows), bool),
        )
        found, damaged = slabs
        for some, first, (_, offsets, missing) in found:
            at = rows[some] - first
            starts[some], lengths[some], null[some] = (
                offsets[at],
                offsets[at + 1] - offsets[at],
                missing[at],
            )
        failed = {**_refused(lengths, null, longest, self._field), **damaged}
        places = offsets_of(lengths)
        text = buffer.room(int(places[-1]) + PADDING)
        text[places[-1] :] = 0
        for some, _, (data, _, _) in found:
            copying.copy_runs(
                data, starts[some], lengths[some], text[places[some.start] : places[some.stop]]
            )
        return text, places[:-1], lengths, failed

    def groups(self, id_field: str) -> int:
        """How many row groups it has, which `batches` reads one after the other. Raises RecordError if it has no such ids."""
        with self._lock, _damaged():
            self._open()
            _column(self._file.schema_arrow, id_field, text=False)
            return len(self._means)

    def batches(
        self, id_field: str, groups: range
    ) -> Iterator[tuple[int, Texts, Texts, RecordError | None]]:
        """Rows of some row groups, some at a time, for whoever reads a file in pieces: the number of the first, their ids, their texts,
        and why all these are null, if they could not be decoded. Like `texts`, it misses the rows of a group behind damage, and goes on
        with the next.
        """
        with self._lock, _damaged():
            self._open()
        column = _column(self._file.schema_arrow, id_field, text=False)
        for group in groups:
            first, end = self._offsets[group : group + 2].tolist()
            try:
                for ids, texts in _columns_of(
                    self._file, [column, self._column], _rows_of(int(self._means[group])), [group]
                ):
                    yield first, ids, texts, None
                    first += len(texts[2])
            except RecordError as error:
                yield (
                    first,
                    self._last_ids(column, group, end - first),
                    _nothing(end - first),
                    error,
                )

    def _last_ids(self, column: list[str], group: int, n: int) -> Texts:
        """Those of the last n rows of a group; null if they cannot be decoded either."""
        rows = int(self._offsets[group + 1] - self._offsets[group])
        try:
            data, offsets, null = next(_pieces(self._file, column, max(rows, 1), [group]))
        except (RecordError, StopIteration):
            return _nothing(n)
        return (data, offsets[-n - 1 :], null[-n:]) if len(null) == rows else _nothing(n)

    def _slabs(
        self, rows: NDArray[np.int64]
    ) -> tuple[list[tuple[slice, int, Texts]], dict[int, RecordError]] | None:
        """Which of these rows are among which decoded texts, and the row that is the first of those; and by their places, why others are
        not. None: all texts are kept now.
        """
        found: list[tuple[slice, int, Texts]] = []
        failed: dict[int, RecordError] = {}
        done = 0
        with _damaged():
            self._open()
        if len(rows) and rows[-1] >= self._offsets[-1]:
            raise RecordError(Reason.CHANGED, _FEWER)
        while done < len(rows):
            number = int(np.searchsorted(self._offsets, rows[done], side="right")) - 1
            group, row = self._group(number), int(rows[done] - self._offsets[number])
            # So none is decoded more than twice on average, in whatever order, and whenever the file was closed.
            if self._decoded + group.cost(row) > self._offsets[-1] and self._keep_all():
                return None
            before = group.decoded
            try:
                at, texts = group.slab(row)
            except RecordError as error:  # the other groups may be good for all that
                stop = int(np.searchsorted(rows, self._offsets[number + 1]))
                failed.update(
                    dict.fromkeys(range(done, stop), RecordError(error.reason, error.detail))
                )
            else:
                first = int(self._offsets[number]) + at
                stop = int(np.searchsorted(rows, first + len(texts[2])))
                found.append((slice(done, stop), first, texts))
            self._decoded += group.decoded - before
            done = stop
        return found, failed

    def _keep_all(self) -> bool:
        """Decode the texts of all rows to where they are kept; False if that cannot be."""
        if self._broken or self._scratch is None or self._scratch.full:
            return False
        step = _rows_of(int(self._means.max(initial=1)))
        try:
            with _damaged():
                self._all = self._scratch.keep(self._path, _pieces(self._file, self._column, step))
        except (OSError, RecordError):  # other rows may be good for all that
            self._broken = True
        if self._all is None:
            return False
        self.close()
        return True

    def _group(self, number: int) -> "_Group":
        group = self._groups.pop(number, None)
        if group is None:
            n, mean = (
                int(self._offsets[number + 1] - self._offsets[number]),
                int(self._means[number]),
            )
            group = _Group(self._file, number, n, self._column, mean)
        self._groups[number] = group  # the last in the order of use
        while len(self._groups) > _KEPT_GROUPS:
            del self._groups[next(iter(self._groups))]
        return group


def _nothing(n: int) -> Texts:
    """As many nulls."""
    return np.zeros(0, np.uint8), np.zeros(n + 1, np.int64), np.ones(n, bool)


def _rows_of(mean: int) -> int:
    """Rows with texts of about so many bytes that are decoded at a time."""
    return max(1, min(_SLAB_ROWS, _SLAB_BYTES // max(mean, 1)))


def _refused(
    lengths: NDArray[np.int64], null: NDArray[np.bool_], longest: int, field: str
) -> dict[int, RecordError]:
    """The rows whose texts cannot be had, by their places; their lengths become 0."""
    failed = {}
    for row in np.flatnonzero((lengths > longest) | null).tolist():
        failed[row] = RecordError(Reason.NO_TEXT, f"{field!r} is null")
        if not null[row]:
            failed[row] = RecordError(
                Reason.TOO_LARGE, f"{lengths[row]} bytes, --max-bytes is {longest}"
            )
        lengths[row] = 0
    return failed


class _Group:
    """One row group, decoded as far as it was asked for."""

    def __init__(self, file: Any, number: int, n: int, column: list[str], mean: int) -> None:
        self.decoded = 0
        self._n = n
        self._step = step = _rows_of(
            mean
        )  # a name that is not in a circle: memory has to be free at once
        self._open: Callable[[], Iterator[Texts]] = lambda: _pieces(file, column, step, [number])
        self._begin()

    def _begin(self) -> None:
        self._pieces: Iterator[Texts] = self._open()
        self._error: tuple[Reason, str] | tuple[()] = ()
        self._firsts: list[int] = []
        self._slabs: list[Texts | None] = []
        self._dropped = self._rows = self._bytes = 0

    def _is_dropped(self, row: int) -> bool:
        return self._dropped > 0 and row < self._firsts[self._dropped]

    def cost(self, row: int) -> int:
        """How many rows have to be decoded to have the slab of this one."""
        end = min(self._n, (row // self._step + 1) * self._step)
        return end if self._is_dropped(row) else max(0, end - self._rows)

    def _next(self) -> Texts:
        """What comes next; where there was an error, the same again."""
        if not self._error:
            try:
                return next(self._pieces)
            except RecordError as error:  # without what it was raised in: that holds decoded texts
                self._error = error.reason, error.detail
            except OSError:
                self._begin()  # the next try may succeed
                raise
        raise RecordError(*self._error)

    def slab(self, row: int) -> tuple[int, Texts]:
        if self._is_dropped(row):
            self._begin()
        while row >= self._rows:
            texts = self._next()
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
    """What Arrow raises for a damaged file, as a RecordError."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowMemoryError:
        raise
    except pa.ArrowException as error:
        raise RecordError(Reason.DAMAGED, str(error).partition("\n")[0][:200]) from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise RecordError(Reason.DAMAGED, str(error).partition("\n")[0][:200]) from None


def _column(schema: Any, field: str, *, text: bool) -> list[str]:
    """The names on the way to a field, checked to be a string, or for an id an integer. Raises RecordError."""
    import pyarrow as pa

    types = pa.types
    missing = Reason.NO_TEXT if text else Reason.NO_ID
    way = [field] if schema.get_field_index(field) >= 0 else field.split(".")
    fields = {each.name: each.type for each in schema}
    kind: Any = None
    for name in way:
        if name not in fields:
            raise RecordError(
                missing,
                f"it has {no_field(field, _columns(schema), '--text-field' if text else '--id-field', 'column')}",
            )
        kind = fields[name]
        fields = _parts(kind)
    inner = kind.value_type if types.is_dictionary(kind) else kind
    strings = (
        types.is_string,
        types.is_large_string,
        types.is_string_view,
        types.is_binary,
        types.is_large_binary,
        types.is_binary_view,
    )
    if any(is_kind(inner) for is_kind in strings) or (not text and types.is_integer(inner)):
        return way
    raise RecordError(
        Reason.NOT_TEXT if text else Reason.NO_ID, f"its column {field!r} is of type {kind}"
    )


def _columns(schema: Any) -> tuple[str, ...]:
    return field_names((each.name, part) for each in schema for part in ("", *_parts(each.type)))


def _parts(kind: Any) -> dict[str, Any]:
    """The fields of a column, by name, and their types."""
    import pyarrow as pa

    return (
        {kind.field(at).name: kind.field(at).type for at in range(kind.num_fields)}
        if pa.types.is_struct(kind)
        else {}
    )


def _mean(group: Any, column: list[str]) -> int:
    """Bytes of an average text of a row group; only about: words of a dictionary are counted once."""
    path = ".".join(column)
    for at in range(group.num_columns):
        chunk = group.column(at)
        if chunk.path_in_schema == path:
            return max(1, int(chunk.total_uncompressed_size) // max(1, int(group.num_rows)))
    return 1


def _pieces(
    file: Any, column: list[str], rows: int, groups: Iterable[int] | None = None
) -> Iterator[Texts]:
    """One column of an open file, or of some of its row groups, so many rows at a time. Raises RecordError for what is damaged."""
    return (texts for (texts,) in _columns_of(file, [column], rows, groups))


def _columns_of(
    file: Any, columns: list[list[str]], rows: int, groups: Iterable[int] | None
) -> Iterator[list[Texts]]:
    """The same of some columns. A row group has exactly as many rows as it says, or what follows would be taken for other rows."""
    names = sorted({".".join(column) for column in columns})
    with _damaged():
        for number in range(file.metadata.num_row_groups) if groups is None else groups:
            left = file.metadata.row_group(number).num_rows
            for batch in file.iter_batches(
                rows, row_groups=[number], columns=names, use_threads=False
            ):
                left -= len(batch)
                if left < 0:
                    break
                yield [texts_of(batch, column) for column in columns]
            if left:
                raise RecordError(Reason.DAMAGED, "a row group has not as many rows as it says")
