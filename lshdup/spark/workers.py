"""What Spark's workers make of documents: sketches in the first pass, sets in the second.

Functions from Arrow record batches to record batches; nothing of Spark. Results depend on the rows
only, so a task may run again anywhere.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lshdup.base.params import DEFAULT_MAX_BYTES, ShingleParams, SketchParams
from lshdup.base.ragged import StringTable, offsets_of
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.errors import InputError
from lshdup.kernels.helpers import PADDING
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.band_table import band_keys
from lshdup.lsh.signatures import Sketcher
from lshdup.shingling.shingler import ShingleBatch, Shingler
from lshdup.sources.jsonlines import parse_record
from lshdup.sources.parquet import content
from lshdup.sources.records import RecordError, RecordFields
from lshdup.sources.text_batches import BATCH_BYTES, BATCH_DOCUMENTS, cut_by_size
from lshdup.text.text_batch import TextBatch

#: Arrow's record batches; pyarrow is installed only where Spark is.
Batches = Iterator[Any]

#: Schemas, as Spark writes them. plain : whether the text is the content of a file with the name
#: `id`. reason, detail : why a document is skipped; null for the others.
DOCUMENTS = "id binary, text binary, plain boolean, reason string, detail string"
SKETCHES = "id binary, size bigint, digest binary, keys binary, reason string, detail string"
SETS = "id binary, set binary"

#: Bytes of the largest set: sizes of Java's arrays are int32.
ARROW_BYTES = (1 << 31) - (1 << 16)


@dataclass(frozen=True)
class Recipe:
    """The parameters of a run on Spark, as every worker needs them.

    threshold : least similarity of a pair, above 0 and at most 1.
    max_bytes : bytes of the largest document that is compared.
    """

    shingle: ShingleParams
    sketch: SketchParams
    plan: BandPlan
    threshold: float
    max_bytes: int = DEFAULT_MAX_BYTES


def json_rows(fields: RecordFields, max_bytes: int, rows: Batches) -> Batches:
    """Return DOCUMENTS of lines of JSON, which Spark has read; blank lines have none.

    rows : the line, and the URI of its file, both binary.
    """
    for batch in rows:
        found: list[tuple[bytes, bytes | None, bool, str | None, str | None]] = []
        for line, file in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            try:
                if len(line) > max_bytes:
                    detail = f"{len(line)} bytes, --max-bytes is {max_bytes}"
                    raise RecordError(Reason.TOO_LARGE, detail)
                record = parse_record(line, fields)
            except RecordError as error:
                row = unquote_to_bytes(file), None, False, str(error.reason), error.detail
                found.append(row)
            else:
                found += [(*record, False, None, None)] if record is not None else []
        types = (pa.binary(), pa.binary(), pa.bool_(), pa.string(), pa.string())
        yield batch_of(DOCUMENTS, _columns_of(found, types))


def sketch_rows(recipe: Recipe, documents: Batches) -> Batches:
    """Return SKETCHES of DOCUMENTS: a row for each document, with the reason if it is skipped.

    size : elements of the shingle set.
    digest : SHA-256 of the sorted set, eight little-endian bytes an element; null if it is empty.
    keys : eight little-endian bytes for each band; null if the set is empty.
    """
    sketcher = Sketcher(recipe.sketch)
    binary, text = pa.binary(), pa.string()
    types = (pa.int64(), pa.int64(), binary, binary, text, text)
    for ids, shingled in _shingled(recipe, documents):
        sets = shingled.sets
        data, ends = sets.values.view(np.uint8).data, (sets.offsets * 8).tolist()
        digests = [
            sha256(data[a:b]).digest() if b > a else None for a, b in itertools.pairwise(ends)
        ]
        keys = np.ascontiguousarray(band_keys(Run.quiet(), sketcher.sketch(sets), recipe.plan).T)
        rows = [
            row.tobytes() if digest else None for row, digest in zip(keys, digests, strict=True)
        ]
        skipped = [(index, 0, None, None, str(why), more) for index, why, more in shingled.skipped]
        made = zip(shingled.indices.tolist(), sets.sizes.tolist(), digests, rows, strict=True)
        every = [*((*row, None, None) for row in made), *skipped]
        indices, *columns = _columns_of(every, types)
        yield batch_of(SKETCHES, [ids.take(indices), *columns])


def set_rows(recipe: Recipe, documents: Batches) -> Batches:
    """Return SETS of the DOCUMENTS that have one: sorted, eight little-endian bytes an element.

    Raises InputError for a set that is too large for Spark.
    """
    for ids, shingled in _shingled(recipe, documents):
        sets, filled = shingled.sets, np.flatnonzero(shingled.sets.sizes)
        names = ids.take(pa.array(shingled.indices[filled]))
        for at in np.flatnonzero(sets.sizes[filled] * 8 > ARROW_BYTES).tolist():
            message = (
                f"{shown_id(names[at])} has {sets.sizes[filled[at]]:,} shingles, more than Spark "
                "can hand from task to task; a smaller --max-bytes leaves it out"
            )
            raise InputError(message)  # a worker's error loses its hint
        data, starts = sets.values.view(np.uint8).data, sets.offsets * 8
        rows = [bytes(data[starts[at] : starts[at + 1]]) for at in filled.tolist()]
        yield batch_of(SETS, [names, pa.array(rows, pa.binary())])


def _shingled(recipe: Recipe, documents: Batches) -> Iterator[tuple[Any, ShingleBatch]]:
    """Yield ids of documents, and their shingle sets, whose indices are those of the ids.

    The sets are valid until the next are yielded.
    """
    shingler = Shingler(recipe.shingle)
    for batch in documents:
        ids = as_binary(batch.column("id")).fill_null(b"")
        for texts in _text_batches(recipe, batch, ids):
            shingled = shingler.shingle(texts)
            shingled.sets.sort()
            yield ids, shingled


def _text_batches(recipe: Recipe, batch: Any, ids: Any) -> Iterator[TextBatch]:
    """Yield the texts of a batch of DOCUMENTS, with its skipped documents before the first text."""
    texts = as_binary(batch.column("text"))
    bad = _skipped(recipe, batch, ids, texts)
    if bad:
        empty = TextBatch.of([], [])
        empty.skipped.extend((row, *why) for row, why in sorted(bad.items()))
        yield empty
    good = np.delete(np.arange(len(batch)), sorted(bad))
    data, offsets = content(texts)
    starts, lengths = offsets[good], offsets[good + 1] - offsets[good]
    plain = np.asarray(batch.column("plain").to_numpy(zero_copy_only=False), bool)[good]
    for is_text in (True, False):
        of_kind = np.flatnonzero(plain != is_text)
        for some in cut_by_size(lengths[of_kind], BATCH_DOCUMENTS, BATCH_BYTES):
            at = of_kind[some]
            first, last = starts[at[0]], starts[at[-1]] + lengths[at[-1]]
            text = np.zeros(last - first + PADDING, np.uint8)  # kernels read past the end
            text[:-PADDING] = data[first:last]
            names = [b""] * len(at) if is_text else ids.take(pa.array(good[at])).to_pylist()
            yield TextBatch(
                good[at],
                StringTable.from_strings(names),
                text,
                starts[at] - first,
                lengths[at],
                is_text=is_text,
                max_bytes=recipe.max_bytes,
            )


def _skipped(recipe: Recipe, batch: Any, ids: Any, texts: Any) -> dict[int, tuple[Reason, str]]:
    """Return why rows are no documents: reason and detail by number of the row."""
    id_sizes, sizes = np.diff(content(ids)[1]), np.diff(content(texts)[1])  # of null: 0
    bad: dict[int, tuple[Reason, str]] = {}
    for faulty, reason, detail in (
        (sizes > recipe.max_bytes, Reason.TOO_LARGE, f"more than {recipe.max_bytes} bytes"),
        (texts.is_null().to_numpy(zero_copy_only=False), Reason.NULL_TEXT, "its text is null"),
        (id_sizes == 0, Reason.NO_ID, "its id is null, or an empty string"),
    ):
        bad |= dict.fromkeys(np.flatnonzero(faulty).tolist(), (reason, detail))
    reasons, details = batch.column("reason"), batch.column("detail")
    for row in np.flatnonzero(reasons.is_valid().to_numpy(zero_copy_only=False)).tolist():
        bad[row] = Reason(reasons[row].as_py()), details[row].as_py() or ""
    return bad


def shown_id(scalar: Any) -> str:
    """Return an id, a scalar of Arrow, for messages."""
    return repr(scalar.as_py().decode("utf-8", "backslashreplace"))


# --- Arrow and NumPy -----------------------------------------------------------------------------


def as_binary(array: Any) -> Any:
    """Return an array of strings or bytes as bytes, with offsets of 32 bits."""
    return array if array.type == pa.binary() else array.cast(pa.binary())


def ragged(column: Any) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return a column of numbers of eight bytes: all numbers, and int64 offsets."""
    # Together they may be more than Arrow can have in one array.
    parts = [content(chunk) for chunk in column.chunks]
    data = b"".join([values[offsets[0] : offsets[-1]].data for values, offsets in parts])
    sizes = np.concatenate([np.diff(offsets) for _, offsets in parts])
    return np.frombuffer(data, "<u8").astype(np.uint64, copy=False), offsets_of(sizes // 8)


def _columns_of(rows: Sequence[tuple[Any, ...]], types: tuple[Any, ...]) -> list[Any]:
    """Return rows as columns of these types of Arrow."""
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return list(map(pa.array, columns, types))


def batch_of(schema: str, columns: list[Any]) -> Any:
    """Return a record batch of columns with the names of a Spark schema: `name type, …`."""
    return pa.RecordBatch.from_arrays(columns, [field.split()[0] for field in schema.split(", ")])
