"""The order of rows by a field, for `--keep-by`: by numbers, or else by text as it is written."""

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

#: Bytes of a text that count, and the words of 8 bytes that they are.
_TEXT, _WORDS = 64, 8

_ALL_BUT_SIGN = np.int64((1 << 63) - 1)


def order_by_field(run: Run, documents: DocumentList, field: str, least: bool) -> list[Key]:
    """Return numbers by which smaller means preferred, the strongest first: a document without the
    field comes last. Say how the field is compared, and how many documents have none.

    least : whether the least value is preferred, not the greatest.

    Raises ParameterError if no document has the field, InputError if a file cannot be read again.

    Cost: one pass over the files. Memory: 73 bytes a document.
    """
    arrays, n = run.arrays, len(documents)
    texts: NDArray[np.uint64] = arrays.zeros((_WORDS, n), np.uint64)
    numbers: NDArray[np.float64] = arrays.full(n, np.nan, np.float64)
    is_missing: NDArray[np.bool_] = arrays.full(n, True, np.bool_)
    are_numbers, lacking = True, list[str]()
    for rows, values in read_values(run, documents, field, lacking, "--keep-by"):
        mine = rows[np.array([value is not None for value in values], bool)]
        written = np.array([value[:_TEXT] for value in values if value is not None], f"S{_TEXT}")
        is_missing[mine] = False
        texts[:, mine] = written.view(">u8").reshape(-1, _WORDS).T
        try:
            numbers[mine] = written.astype(np.float64)
        except ValueError:
            are_numbers = False
    bits = numbers.view(np.int64)
    for some in slices_of(n if are_numbers else 0):
        is_missing[some] |= np.isnan(numbers[some])
        numbers[some] += 0.0  # or a negative zero would be less
        bits[some] ^= np.where(bits[some] < 0, _ALL_BUT_SIGN, 0)  # now in the order of the numbers
    missing = int(np.count_nonzero(is_missing))
    if missing == n > 0:
        lacking.append(f"no row of JSON Lines, CSV or Parquet has a value in {quoted(field)}")
        message = f"--keep-by: {lacking[0]}"
        raise ParameterError(message, "name a field of the rows")
    how = "as numbers" if are_numbers else "as text, as not all values are numbers"
    last = f"; {count_of(missing, 'document')} without it kept last" if missing else ""
    run.say(f"{quoted(field)} is compared {how}{last}")
    columns = [bits] if are_numbers else list(texts)
    return [is_missing.__getitem__, *(partial(_take, each, least) for each in columns)]


def _take(column: NDArray[np.integer], least: bool, rows: NDArray[np.int64]) -> NDArray[np.integer]:
    return column[rows] if least else ~column[rows]


def read_values(
    run: Run, documents: DocumentList, field: str, lacking: list[str], option: str
) -> Iterator[tuple[NDArray[np.int64], Values]]:
    """Yield rows of files (int64 array) and their values.

    lacking : gets a line for some rows of which none has the field. option : that names it.

    Raises InputError if a file cannot be read again.
    """
    locations = documents.locations
    every = run.arrays.compute(len(documents), np.int64, rows_of)
    for some in documents.reading_order(run, every):
        kind = Kind(int(documents.kinds_of(some[:1])[0])) if len(some) else Kind.FILE
        if not kind.is_row:
            continue
        for mine in np.split(some, np.flatnonzero(np.diff(locations.file[some])) + 1):
            path = documents.path(int(mine[0]))
            for rows in (mine[part] for part in slices_of(len(mine))):
                spans = locations.starts[rows], locations.lengths[rows]
                try:
                    yield rows, documents.record_files.values(path, kind, spans, field)
                except (OSError, RecordError) as error:
                    if isinstance(error, OSError) or error.reason != Reason.NO_TEXT:
                        message = f"{option} reads {quoted(path)} again, and cannot: {error}"
                        raise InputError(message, RERUN) from None
                    lacking.append(error.detail)
