"""Columns of Parquet files: which of them hold texts and ids, and what a file says of them."""

from collections.abc import Set
from typing import Any

from lshdup.base.skipped import Reason
from lshdup.sources.records import RecordError, field_names, no_field


def find_columns(schema: Any, *names: str) -> list[list[str]]:
    """Return the names on the way to each of the fields whose texts are joined."""
    return [find_column(schema, name, text=True) for name in names]


def find_column(schema: Any, field: str, *, text: bool) -> list[str]:
    """Return the names on the way to a field.

    Raises RecordError if it is no string, or for an id no integer either.
    """
    from pyarrow import types

    way = [field] if schema.get_field_index(field) >= 0 else field.split(".")
    fields = {each.name: each.type for each in schema}
    kind: Any = None
    for name in way:
        if name not in fields:
            columns = field_names(
                (each.name, part) for each in schema for part in ("", *_subfields(each.type))
            )
            option = "--text-field" if text else "--id-field"
            detail = f"it has {no_field(field, columns, option, 'column')}"
            raise RecordError(Reason.NO_TEXT if text else Reason.NO_ID, detail)
        kind = fields[name]
        fields = _subfields(kind)
    inner = kind.value_type if types.is_dictionary(kind) else kind
    if str(inner).removeprefix("large_").removesuffix("_view") in ("string", "binary") or (
        not text and types.is_integer(inner)
    ):
        return way
    detail = f"its column {field!r} is of type {kind}"
    raise RecordError(Reason.NOT_TEXT if text else Reason.NO_ID, detail)


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
