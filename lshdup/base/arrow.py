"""Arrow arrays and batches <-> bytes, offsets and numbers as NumPy arrays.

pyarrow is imported where it is needed: it comes with an extra, and takes long to load.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import StringTable, offsets_of

#: Values of a column: the bytes of all, int64 offsets of shape (n + 1,), and which are null.
Texts = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]


def texts_of(batch: Any, ways: Sequence[Sequence[str]], between: bytes = b"") -> Texts:
    """Return strings, or integers as strings, of one column of a record batch.

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
        if pa.types.is_integer(array.type):
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


def as_binary(array: Any) -> Any:
    """Return an array of strings or bytes as bytes, with offsets of 32 bits."""
    import pyarrow as pa

    return array if array.type == pa.binary() else array.cast(pa.binary())


def content(array: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of an array of binary, and int64 offsets of shape (n + 1,) into them."""
    import pyarrow as pa

    _, offsets, data = array.buffers()
    if offsets is None or not len(array):
        return np.zeros(0, np.uint8), np.zeros(len(array) + 1, np.int64)
    width = "<i8" if array.type == pa.large_binary() else "<i4"
    ends = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data or b"", np.uint8), ends.astype(np.int64, copy=False)


def ragged(column: Any) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return a column of numbers of eight bytes: all numbers, and int64 offsets."""
    # Together they may be more than Arrow can have in one array.
    parts = [content(chunk) for chunk in column.chunks]
    data = b"".join([values[offsets[0] : offsets[-1]].data for values, offsets in parts])
    sizes = np.concatenate([np.diff(offsets) for _, offsets in parts])
    return np.frombuffer(data, "<u8").astype(np.uint64, copy=False), offsets_of(sizes // 8)


def batch_of(schema: str, columns: list[Any]) -> Any:
    """Return a record batch of columns with the names of a Spark schema: `name type, …`."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(columns, [field.split()[0] for field in schema.split(", ")])


def take_texts(texts: Texts, at: NDArray[np.int64]) -> Texts:
    """Return a copy of some texts."""
    data, offsets, null = texts
    some = StringTable(data, offsets).take(at)
    return some.values, some.offsets, null[at]
