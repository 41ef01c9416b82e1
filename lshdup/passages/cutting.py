"""JSON Lines and Parquet files without parts of their texts: all else is as it was."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.atomic import replace_file
from lshdup.base.forms import PART
from lshdup.base.run import Run
from lshdup.errors import ParameterError
from lshdup.sources.document_list import DocumentList
from lshdup.sources.jsonlines import find_values
from lshdup.sources.records import Kind, split_fields
from lshdup.sources.rewriting import Change, Open, rewrite

I64 = NDArray[np.int64]


def check_cutting(documents: DocumentList) -> None:
    """Raise before the work if texts of these documents cannot be cut."""
    if Kind.CSV in documents.kinds:
        message = "--write cuts the rows of JSON Lines and Parquet files, not of CSV"
        raise ParameterError(message, "--emit spans says where to cut")


def write_cut(
    run: Run,
    documents: DocumentList,
    cut: I64,
    starts: I64,
    ends: I64,
    target: Path | str,
    open_target: Open = replace_file,
) -> tuple[list[Path], set[int]]:
    """Write the files of the documents without parts of their texts.

    Errors: as of `rewrite`.

    Parameters
    ----------
    documents : records of JSON Lines or Parquet files.
    cut, starts, ends : int64 arrays of shape (n,), document, first byte and the byte behind the
        last one of each part, in the text of a record; ascending.
    target, open_target : as of `rewrite`.

    Returns the paths written, and the documents that could not be cut: rows of JSON with values
    that no strict parser reads, and fields within a column of Parquet.

    """
    change = _Cutting(split_fields(documents.record_files.fields.text), cut, starts, ends)
    written = rewrite(run, documents, np.unique(cut), target, change, open_target)
    return written.paths, change.uncut


class _Cutting(Change):
    """The change of records whose texts lose some parts; see `write_cut`.

    names : of the fields that make a text.
    uncut : documents that could not be cut.
    """

    def __init__(self, names: Sequence[str], cut: I64, starts: I64, ends: I64) -> None:
        self._names, self._cut, self._starts, self._ends = names, cut, starts, ends
        self.uncut: set[int] = set()

    def _parts_of(self, document: int) -> list[tuple[int, int]]:
        rows = slice(*np.searchsorted(self._cut, [document, document + 1]))
        return list(zip(self._starts[rows].tolist(), self._ends[rows].tolist(), strict=True))

    def line(self, document: int, line: bytes) -> bytes:
        values = find_values(line, self._names)
        if values is None:
            self.uncut.add(document)
            return line
        texts = [None if value is None else value[2] for value in values]
        new = zip(values, cut_texts(texts, self._parts_of(document)), strict=True)
        made, at = list[bytes](), 0
        for value, text in sorted(
            (value, text) for value, text in new if value and text is not None
        ):
            # A text that had escapes for all but ASCII has them again.
            is_ascii = line[value[0] : value[1]].isascii()
            cut = json.dumps(text.decode("utf-8"), ensure_ascii=is_ascii).encode("utf-8")
            made += [line[at : value[0]], cut]
            at = value[1]
        return b"".join([*made, line[at:]])

    def rows(self, table: Any, rows: I64, documents: I64) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not set(self._names) <= set(table.column_names):
            self.uncut.update(documents.tolist())
            return table
        places = [table.column_names.index(name) for name in self._names]
        columns = [table.column(place) for place in places]
        columns = [column.cast(_plain_type(column.type)) for column in columns]
        taken = [column.take(rows).to_pylist() for column in columns]
        made = [
            cut_texts([_utf8(each) for each in row], self._parts_of(document))
            for row, document in zip(zip(*taken, strict=True), documents.tolist(), strict=True)
        ]
        mask = np.zeros(len(table), bool)
        mask[rows] = True
        for place, column, texts in zip(places, columns, zip(*made, strict=True), strict=True):
            new = pa.array(texts, pa.large_binary()).cast(column.type)
            field = table.schema.field(place)
            replaced = pc.replace_with_mask(column, mask, new).cast(field.type)
            table = table.set_column(place, field, replaced)
        return table


def cut_texts(
    texts: Sequence[bytes | None], parts: Sequence[tuple[int, int]]
) -> list[bytes | None]:
    r"""Return the fields of a text without some parts of it.

    texts : fields, of which those that are not None make the text, with borders between.
    parts : first byte in the text, and the byte behind the last one; ascending.

    >>> cut_texts([b"one two", None, b"three four"], [(4, 14), (15, 16)])
    [b'one ', None, b' our']
    """
    made: list[bytes | None] = []
    begin = 0
    for text in texts:
        if text is None:
            made.append(None)
            continue
        kept, at = [], 0
        for start, end in parts:
            if start < begin + len(text) and end > begin:
                kept.append(text[at : max(start - begin, 0)])
                at = end - begin
        made.append(b"".join([*kept, text[at:]]))
        begin += len(text) + len(PART)
    return made


def _plain_type(kind: Any) -> Any:
    """Return the type of the texts of a column: of a dictionary that of its values; of a view,
    which pyarrow takes no rows of, texts of any length.
    """
    import pyarrow as pa

    kind = getattr(kind, "value_type", kind)
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return views.get(kind, kind)


def _utf8(value: str | bytes | None) -> bytes | None:
    return value.encode("utf-8") if isinstance(value, str) else value
