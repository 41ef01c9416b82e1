"""Texts in memory, or in a column of a table -> a collection."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from lshdup.base.forms import Form
from lshdup.base.params import DEFAULT_TEXT_FIELD, DocumentParams, ShingleParams
from lshdup.base.ragged import RaggedSets, StringTable
from lshdup.base.wording import did_you_mean, join_names
from lshdup.collection.collection import Collection, set_columns
from lshdup.errors import InputError, ParameterError
from lshdup.shingling.shingler import Shingler, are_ids, fingerprint_bytes
from lshdup.sources.document_list import DocumentList
from lshdup.sources.parquet import import_pyarrow
from lshdup.text.decoding import decode_record
from lshdup.text.text_batch import TextBatch

#: Bytes of texts that are shingled together.
_TOGETHER = 1 << 20

#: Of what is no table.
NO_FIELDS = DocumentParams()


class Frame(Protocol):
    """A table of pandas, polars or Arrow, or one that streams arrays of Arrow."""

    @property
    def columns(self) -> Any: ...


#: A mapping of names to texts, or texts, whose names are "0", "1", …, or the labels of a Series; or
#: a table, of which one column has the texts, and perhaps another one the names.
Texts = Mapping[str, str] | Iterable[str] | Frame


def collect_texts(
    documents: Texts, shingle: ShingleParams, fields: DocumentParams = NO_FIELDS
) -> Collection:
    """Return the collection of texts, in the order in which they were given, with their sets.

    documents : read as records are, some million bytes at a time.
    fields : of which `text_field` and `id_field` name columns of a table.

    Errors: InputError if a text or a name is no string, a text cannot be read as a mail or page, or
    a table has no such columns; ParameterError for fields of what is no table.
    """
    names, texts = name_texts(documents, fields)
    checked = (check_text(*each, shingle) for each in zip(names, texts, strict=True))
    return collect_checked(names, checked, shingle)


def name_texts(
    documents: Texts, fields: DocumentParams = NO_FIELDS
) -> tuple[list[str], Iterable[str]]:
    """Return the names of documents and their texts, unchecked, as `collect_texts` takes them."""
    given: Any = documents
    if hasattr(given, "columns") or hasattr(given, "schema"):  # A stream of Arrow has no columns.
        return _name_rows(given, fields)
    if fields != NO_FIELDS:
        message = "text_field and id_field are of files of records and tables, not of texts"
        raise ParameterError(message, "leave them out; the keys of a mapping are names")
    is_column = isinstance(given, Iterable) and getattr(given, "ndim", 1) == 1
    if isinstance(given, bytes | str) or not is_column:
        message = f"documents are given as {type(given).__name__}"
        raise InputError(message, "give a path, a mapping of names to texts, or a list of texts")
    if isinstance(documents, Mapping):
        return list(documents.keys()), documents.values()
    if hasattr(given, "keys"):  # a Series of pandas
        names = list(map(str, given.keys()))
        if len(set(names)) < len(names):
            message = "two documents have one name in the index of the Series"
            raise InputError(message, "give its values, or reset its index")
        return names, given
    texts: Any = given if hasattr(given, "__len__") else list(given)
    return [str(at) for at in range(len(texts))], cells_of(texts)


def _name_rows(table: Any, fields: DocumentParams) -> tuple[list[str], Iterable[str]]:
    """Return the names and texts of the rows of a table."""
    is_known = _package_of(table) in ("pandas", "polars", "pyarrow")
    if not is_known or not hasattr(table, "__len__"):  # A LazyFrame has no rows yet.
        if not hasattr(table, "__arrow_c_stream__"):
            message = f"documents are given as {type(table).__name__}"
            raise InputError(message, "give a list of the texts in one of its columns")
        table = import_pyarrow()[0].table(table)
    known = list(getattr(table, "column_names", table.columns))
    text_field = fields.text_field or DEFAULT_TEXT_FIELD
    for keyword, field in (("text_field", text_field), ("id_field", fields.id_field)):
        if field and known.count(field) != 1:
            names = list(map(str, known))
            wrong = f"two columns {field!r}" if field in known else f"no column {field!r}"
            question = did_you_mean(field, set(names) - {field}, f"{keyword}={{!r}}".format)
            message = f"the table has {wrong}, but {join_names(names)}"
            raise InputError(message, question or f"name another with {keyword}")
    if not fields.id_field:
        return name_texts(table[text_field])
    rows: dict[str, int] = {}
    for row, name in enumerate(cells_of(table[fields.id_field])):
        if not isinstance(name, str | int | np.integer) or isinstance(name, bool):
            message = f"the id of row {row} is {_kind(name)}, not str or int"
            raise InputError(message, "leave the row out, or give it an id")
        if (first := rows.setdefault(str(name), row)) != row:
            message = f"rows {first} and {row} have one id, {name!r}"
            raise InputError(message, "leave one of them out, or leave id_field out")
    return list(rows), cells_of(table[text_field])


def _package_of(given: object) -> str:
    return type(given).__module__.partition(".")[0]


def cells_of(column: Any) -> Iterable[Any]:
    """Return what iterates over the cells of a column, which are made one by one."""
    if _package_of(column) == "pyarrow":
        return (cell.as_py() for cell in column)
    if _package_of(column) == "polars":  # Its iterator makes 25,000 of them.
        return map(column.__getitem__, range(len(column)))
    cells: Iterable[Any] = column
    return cells


def _kind(value: Any) -> str:
    """Return the type of a value that is no string, or "null"."""
    is_nan = isinstance(value, float) and value != value
    name = type(value).__name__
    return "null" if value is None or is_nan or name in ("NAType", "NaTType") else name


def check_text(name: Any, text: Any, shingle: ShingleParams) -> bytes:
    """Return a text as UTF-8. Raise InputError as `collect_texts`."""
    for what, value in (("name", name), ("text", text)):
        if not isinstance(value, str):
            message = f"the {what} of document {name!r} is {_kind(value)}, not str"
            raise InputError(message, f"leave the document out, or give its {what} as str")
        try:
            os.fsencode(value) if what == "name" else value.encode()
        except UnicodeEncodeError as error:
            message = f"the {what} of document {name!r} cannot be UTF-8: {error.reason}"
            raise InputError(message, f"leave the document out, or mend its {what}") from None
    utf8: bytes = text.encode()
    if shingle.tokens == "ids" and not are_ids(utf8.split()):
        message = f"the text of document {name!r} is no list of integers from 0 to 2^64 - 1"
        raise InputError(message, "leave the document out, or mend its text")
    if _is_decoded(shingle) and (found := decode_record(utf8, shingle)).reason is not None:
        message = f"the text of document {name!r} cannot be read: {found.reason}, {found.detail}"
        raise InputError(message, "leave the document out")
    return utf8


def collect_checked(
    names: Iterable[str], texts: Iterable[bytes], shingle: ShingleParams
) -> Collection:
    """Return the collection of texts that `check_text` returned, with their sets.

    Memory: the sets, and some million bytes of texts.
    """
    shingler, parts = Shingler(shingle), []
    for some in _cut(texts):
        read = [decode_record(text, shingle) for text in some] if _is_decoded(shingle) else []
        sets, text_prints = shingler.shingle_decoded([each.utf8 for each in read] or some)
        forms = np.array([each.form for each in read] or [Form.TEXT] * len(some), np.uint8)
        byte_prints = fingerprint_bytes(TextBatch.of(range(len(some)), some), shingle)
        parts.append((sets, forms, byte_prints, text_prints))
    every, *columns = zip(*parts, strict=True)
    sets = RaggedSets.concatenate(every)
    zeros = np.zeros(len(sets), np.int64)
    listed = DocumentList(StringTable.from_strings(map(os.fsencode, names)), zeros, zeros)
    prints = zip(("forms", "byte_prints", "text_prints"), map(np.concatenate, columns), strict=True)
    return Collection(listed, shingle, set_columns(sets, shingle) | dict(prints), sets=sets)


def _cut(texts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield all texts, each time some million bytes; none of none."""
    some, size = [], 0
    for text in texts:
        some.append(text)
        size += len(text)
        if size >= _TOGETHER:
            yield some
            some, size = [], 0
    yield some


def _is_decoded(shingle: ShingleParams) -> bool:
    """Return whether a part of a text may be compared: of a mail or page."""
    return shingle.mail or shingle.markup == "visible"
