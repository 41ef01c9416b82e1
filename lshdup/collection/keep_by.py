"""The order of rows by a field, for `--keep-by`: by numbers, or else by text as it is written."""

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lshdup.base.memory import Key, rows_of, slices_of
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.base.wording import count_of, quoted
from lshdup.errors import RERUN, InputError, ParameterError
from lshdup.sources.document_list import DocumentList
from lshdup.sources.records import Kind, RecordError, Values

#: Bytes of a text that count, and the most characters of a number.
_TEXT = 64

#: Bytes of a number as `_encode_number` writes it.
_NUMBER = 32

#: A number: sign, digits before and behind the point, power of ten.
_WRITTEN = rb"([+-]?)(?:(?=\.?[0-9])([0-9]*)\.?([0-9]*)(?:e([+-]?[0-9]{1,9}))?|inf(?:inity)?|nan)"


def order_by_field(run: Run, documents: DocumentList, field: str, least: bool) -> list[Key]:
    """Return numbers by which smaller means preferred, the strongest first: a document without the
    field comes last. Say how the field is compared, and how many documents have none.

    Values are compared as decimal numbers, exactly, if all are such of at most 64 characters; else
    all as text by their first 64 bytes. NaN among numbers is none. A file that has changed since it
    was listed has no values: `drop_changed` says it, and none of its rows is in a group.

    least : whether the least value is preferred, not the greatest.

    Raises ParameterError if no document has the field, InputError if a file cannot be read again.

    Cost: one pass over the files. Memory: 96 bytes a document.
    """
    arrays, n = run.arrays, len(documents)
    texts, numbers = arrays.zeros(n, f"S{_TEXT}"), arrays.zeros(n, f"S{_NUMBER}")
    are_numbers, changed = True, 0
    for rows, values in read_values(run, documents, field, "--keep-by "):
        if values is None:
            changed += len(rows)
            continue
        texts[rows] = [(value or b"")[:_TEXT] for value in values]
        if are_numbers:
            encoded = [_encode_number(value) if value else b"" for value in values]
            are_numbers = None not in encoded
            numbers[rows] = encoded if are_numbers else b""
    column = numbers if are_numbers else texts
    missing = sum(int(np.count_nonzero(column[some] == b"")) for some in slices_of(n)) - changed
    how = "as numbers" if are_numbers else "as text, as not all values are numbers"
    last = f"; {count_of(missing, 'document')} without it kept last" if missing else ""
    run.say(f"{quoted(field)} is compared {how}{last}")
    words = range(column.itemsize // 8)
    return [lambda rows: column[rows] == b"", *(partial(_word, column, at, least) for at in words)]


def _word(
    column: NDArray[np.bytes_], at: int, least: bool, rows: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return 8 bytes of rows as a number, its complement if the greatest is preferred."""
    words = column[rows].view(">u8").reshape(len(rows), -1)[:, at].astype(np.uint64)
    return words if least else ~words


def _encode_number(written: bytes) -> bytes | None:
    """Return 32 bytes in the order of numbers, none of NaN; None for what is no number.

    A number 0.d × 10^e is its exponent e, then 64 digits d, in one integer; of negative ones all is
    negative.

    >>> numbers = [b"-inf", b"-1e3", b"-.5", b"-0", b"9e-9", b"0.10", b"9007199254740993", b"INF"]
    >>> sorted(reversed(numbers), key=_encode_number) == numbers
    True
    >>> _encode_number(b"0.50") == _encode_number(b"+5e-1"), _encode_number(b"nan")
    (True, b'')
    """
    found = re.fullmatch(_WRITTEN, written.strip().lower())
    if found is None or len(written) > _TEXT:
        return None
    sign, whole, part, power = found.groups(b"")
    if found[0].endswith(b"nan"):
        return b""
    digits = (whole + part).lstrip(b"0")
    size = 1 << 250 if found[0].endswith((b"f", b"y")) else 0
    if digits:
        exponent = len(digits) - len(part) + int(power or 0) + (1 << 31)
        size = exponent * 10**_TEXT + int(digits.ljust(_TEXT, b"0"))
    return ((1 << 251) + (-size if sign == b"-" else size)).to_bytes(_NUMBER, "big")


def read_values(
    run: Run, documents: DocumentList, field: str, option: str
) -> Iterator[tuple[NDArray[np.int64], Values | None]]:
    """Yield rows of files (int64 array) and their values; None if the file has changed since it was
    listed, or is gone.

    option : all that is typed before the field.

    Raises ParameterError if no row has a value, InputError if a file cannot be read again.
    """
    locations, typed, are_any = documents.locations, f"{option}{field}", len(documents) == 0
    lacking, read = list[str](), documents.record_files.values
    every = run.arrays.compute(len(documents), np.int64, rows_of)
    for some in documents.reading_order(run, every):
        kind = Kind(int(documents.kinds_of(some[:1])[0])) if len(some) else Kind.FILE
        if not kind.is_row:
            continue
        for mine in np.split(some, np.flatnonzero(np.diff(locations.file[some])) + 1):
            path = documents.path(int(mine[0]))
            for rows in (mine[part] for part in slices_of(len(mine))):
                spans, values, failed = (locations.starts[rows], locations.lengths[rows]), None, ""
                try:
                    values = read(path, kind, spans, field, option.rstrip())
                except (OSError, RecordError) as error:
                    failed = str(error)
                    if isinstance(error, RecordError) and error.reason == Reason.NO_TEXT:
                        values = [None] * len(rows)
                        lacking.append(failed)
                if len(documents.changed(mine[:1])):
                    values = None  # Whatever was read is not of these rows.
                elif values is None:
                    message = f"{typed} reads {quoted(path)} again, and cannot: {failed}"
                    raise InputError(message, RERUN) from None
                are_any |= values is None or any(values)
                yield rows, values
    if not are_any:
        lacking.append(f"no row of JSON Lines, CSV or Parquet has a value in {quoted(field)}")
        message = f"{typed}: {lacking[0]}"
        raise ParameterError(message, "name a field of the rows")
