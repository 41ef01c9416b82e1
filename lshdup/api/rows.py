"""The results of programs: sequences of tuples that keep their columns, for tables of Arrow, pandas
and polars.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import eq
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from lshdup.base.wording import utf8_text
from lshdup.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

#: The cells of a column, in order: an array of numbers or flags, or texts.
Column = NDArray[Any] | Sequence[str]

T = TypeVar("T")

#: Rows whose tuples are made together.
_PIECE_ROWS = 1 << 16


class Table(Sequence[T]):
    """A sequence that is equal to a list, and can be had as a table of another package.

    fields : names of the columns of the table.
    columns : the columns, of equal length.
    """

    fields: tuple[str, ...]
    columns: tuple[Column, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table | list):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    def __repr__(self) -> str:
        return repr(list(self))

    def to_arrow(self) -> Any:
        r"""Return a `pyarrow.Table`. Numbers are not copied.

        A byte of a name that is not UTF-8 is the six characters of JSON's escape, as in ``\udcff``.
        Raise InputError without pyarrow.
        """
        return _import("pyarrow", "parquet").table(self._cells())

    def to_pandas(self) -> "pd.DataFrame":
        """Return a `pandas.DataFrame`, which may be changed, so its numbers are copied; else as
        `to_arrow`. Raise InputError without pandas.
        """
        frame: pd.DataFrame = _import("pandas").DataFrame(self._cells(), copy=True)
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """Return a `polars.DataFrame`; see `to_arrow`. Raise InputError without polars."""
        frame: pl.DataFrame = _import("polars").DataFrame(self._cells())
        return frame

    def _cells(self) -> dict[str, Any]:
        cells = map(_as_utf8, self.columns)
        return dict(zip(self.fields, cells, strict=True))


class Rows(Table[T]):
    """Rows of a result: tuples, made when they are looked at.

    A slice shares the numbers of the whole. Two sequences are equal if their tuples are, and a
    list of the same tuples is equal, too.

    fields : names of the columns, or a class of named tuples.
    columns : of equal length: arrays of numbers or flags, or lists of str.

    >>> rows = Rows(("name", "similarity"), (["a", "b"], np.array([1.0, 0.5])))
    >>> rows, rows[-1], rows == [("a", 1.0), ("b", 0.5)]
    ([('a', 1.0), ('b', 0.5)], ('b', 0.5), True)

    """

    def __init__(self, fields: type[T] | Sequence[str], columns: Iterable[Column]) -> None:
        self._fields, self.columns = fields, tuple(columns)
        names: Any = getattr(fields, "_fields", fields)
        self.fields = tuple(names)
        make: Any = tuple
        self._row: Callable[[Iterable[Any]], T] = getattr(fields, "_make", make)

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[T]:
        for start in range(0, len(self), _PIECE_ROWS):
            piece = (_as_list(column[start : start + _PIECE_ROWS]) for column in self.columns)
            yield from map(self._row, zip(*piece, strict=True))

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Self: ...
    def __getitem__(self, at: int | slice) -> T | Self:
        if isinstance(at, slice):
            return type(self)(self._fields, (column[at] for column in self.columns))
        at = range(len(self))[at]
        return self._row(_as_list(column[at : at + 1])[0] for column in self.columns)


class Groups(Table[Rows[T]]):
    """Groups of rows, each a sequence as a list of tuples; as a table, the number of the group,
    from 1, is a column before theirs.

    rows : of all groups, one group after the other.
    offsets : int64 array of shape (n_groups + 1,): where each group begins and the last one ends.

    >>> rows = Rows(("name", "similarity"), (["a", "b", "c"], np.array([1.0, 0.5, 1.0])))
    >>> groups = Groups(rows, np.array([0, 2, 3]))
    >>> groups, len(groups)
    ([[('a', 1.0), ('b', 0.5)], [('c', 1.0)]], 2)
    >>> groups.fields, groups.columns[0].tolist()
    (('group', 'name', 'similarity'), [1, 1, 2])

    """

    def __init__(self, rows: Rows[T], offsets: NDArray[np.int64]) -> None:
        self._rows, self._offsets = rows, offsets
        self.fields = "group", *rows.fields
        numbers = np.repeat(np.arange(1, len(offsets)), np.diff(offsets))
        self.columns = numbers, *rows.columns

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __iter__(self) -> Iterator[Rows[T]]:
        return (self[at] for at in range(len(self)))

    @overload
    def __getitem__(self, at: int) -> Rows[T]: ...
    @overload
    def __getitem__(self, at: slice) -> list[Rows[T]]: ...
    def __getitem__(self, at: int | slice) -> Rows[T] | list[Rows[T]]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        return self._rows[int(self._offsets[at]) : int(self._offsets[at + 1])]


def _as_list(column: Column) -> Sequence[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else column


def _as_utf8(column: Column) -> Column:
    r"""Return a column with texts that are UTF-8: lone surrogates become escapes as ``\udcff``."""
    if isinstance(column, np.ndarray) and column.dtype != object:
        return np.ascontiguousarray(column)
    if not len(column):
        return np.zeros(0, str)  # A list of none would be a column of nulls.
    texts: Sequence[str] = _as_list(column)
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError:
        return [utf8_text(text) for text in texts]
    return texts


def _import(package: str, extra: str = "") -> Any:
    """Import an optional package. Raise InputError if it is missing."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        message = f"a table of {package} needs {package}"
        raise InputError(message, f"pip install 'lshdup[{extra or package}]'") from None
