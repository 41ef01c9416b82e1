"""What Spark's workers make of documents: sketches in the first pass, sets in the second.

Functions from Arrow record batches to record batches; nothing of Spark. Results depend on the rows
only, so a task may run again anywhere.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lshdup.documents.reading import BATCH_BYTES, BATCH_DOCUMENTS, TextBatch, runs
from lshdup.errors import InputError
from lshdup.kernels.helpers import PADDING
from lshdup.lsh.band_table import band_keys
from lshdup.lsh.sample_plan import SamplePlan
from lshdup.lsh.samples import sample_sets
from lshdup.lsh.signatures import Sketcher
from lshdup.shingling.shingler import ShingleBatch, Shingler
from lshdup.skipped import Reason
from lshdup.spark.recipe import Recipe
from lshdup.spark.workers.documents import Batches
from lshdup.utils.arrow import as_binary, batch_of, content
from lshdup.utils.messages import count_of
from lshdup.utils.ragged import RaggedSets

#: Schemas of the results, as Spark writes them.
SKETCHES = (
    "id binary, size bigint, digest binary, keys binary, "
    "reason string, detail string, encoding string, form int"
)
SETS = "id binary, set binary"

#: Bytes of sets that are handed on at a time.
SET_BYTES = 64 << 20

#: Bytes of one column, or of one set: offsets of Arrow and sizes of Java's arrays are int32.
ARROW_BYTES = (1 << 31) - (1 << 16)


def sketch_rows(recipe: Recipe, documents: Batches) -> Batches:
    """Return SKETCHES of documents: a row for each document, with the reason if it is skipped.

    size : elements of the shingle set.
    digest : SHA-256 of the sorted set, eight little-endian bytes an element; null if it is empty.
    keys : eight little-endian bytes for each band, or for each element of the sample; null if the
        set is empty.
    detail : why a document that is not skipped has an empty set, unless it has no tokens.
    encoding : the encoding of the document, if it was detected.
    form : what the document was read as (`utils.forms.Form`).
    """
    make_keys = _maker_of_keys(recipe)
    for ids, shingled in _shingled(recipe, documents):
        n, sizes, sets = len(shingled.indices), shingled.sets.sizes, shingled.sets
        keys = make_keys(sets)
        data, ends = sets.values.view(np.uint8).data, (sets.offsets * 8).tolist()
        digests = [
            sha256(data[a:b]).digest() if b > a else None for a, b in itertools.pairwise(ends)
        ]
        encodings = dict(shingled.guesses)
        columns = [
            ids.take(pa.array(shingled.indices)),
            pa.array(sizes),
            pa.array(digests, pa.binary()),
            binary_array(keys.values.view(np.uint8), 8 * keys.sizes, sizes > 0),
            pa.nulls(n, pa.string()),
            _details(recipe, shingled),
            pa.array([encodings.get(index) for index in shingled.indices.tolist()], pa.string())
            if encodings
            else pa.nulls(n, pa.string()),
            pa.array(shingled.forms.astype(np.int32)),
        ]
        yield batch_of(SKETCHES, columns)
        if shingled.skipped:
            indices, reasons, details = zip(*shingled.skipped, strict=True)
            m, none, text = len(indices), pa.nulls(len(indices), pa.binary()), pa.string()
            columns = [
                ids.take(pa.array(indices, pa.int64())),
                pa.array([0] * m, pa.int64()),
                none,
                none,
                pa.array(list(map(str, reasons)), text),
                pa.array(details, text),
                pa.nulls(m, text),
                pa.nulls(m, pa.int32()),
            ]
            yield batch_of(SKETCHES, columns)


def _maker_of_keys(recipe: Recipe) -> Callable[[RaggedSets], RaggedSets]:
    """Return the function that makes the keys of sets: of bands, or the samples."""
    plan = recipe.plan
    if isinstance(plan, SamplePlan):
        return partial(sample_sets, rate=plan.rate, seed=recipe.sketch.seed)
    sketcher = Sketcher(recipe.sketch)

    def make(sets: RaggedSets) -> RaggedSets:
        keys = band_keys(sketcher.sketch(sets), plan).T
        return RaggedSets.from_sizes(keys.reshape(-1), np.full(len(sets), plan.bands))

    return make


def _details(recipe: Recipe, shingled: ShingleBatch) -> Any:
    """Return the details of documents that are not skipped: an array of strings."""
    few = (shingled.sets.sizes == 0) & (shingled.text_prints != 0)
    detail = f"fewer than {count_of(recipe.shingle.min_tokens, 'token')}"
    return pa.array([detail if each else None for each in few.tolist()], pa.string())


def set_rows(recipe: Recipe, documents: Batches) -> Batches:
    """Return SETS of documents: sorted, eight little-endian bytes an element.

    The set of a document that is skipped, or that has no tokens, is null.

    Raises InputError for a set that is too large for Spark.
    """
    for ids, shingled in _shingled(recipe, documents):
        filled = np.flatnonzero(shingled.sets.sizes)
        for run in runs(shingled.sets.sizes[filled] * 8, len(filled), SET_BYTES):
            names = ids.take(pa.array(shingled.indices[filled[run]]))
            sets = shingled.sets.take(filled[run])
            if sets.values.nbytes > ARROW_BYTES:  # a run of one document
                message = (
                    f"{shown_id(names[0])} has {len(sets.values):,} shingles, more than Spark can "
                    "hand from task to task; leave it out: --max-bytes is the most that a document "
                    "may have"
                )
                raise InputError(message)  # a worker's error loses its hint
            column = binary_array(sets.values.view(np.uint8), sets.sizes * 8)
            yield batch_of(SETS, [names, column])
        without = [index for index, _, _ in shingled.skipped]
        without += shingled.indices[shingled.sets.sizes == 0].tolist()
        if without:
            names = ids.take(pa.array(without, pa.int64()))
            yield batch_of(SETS, [names, pa.nulls(len(without), pa.binary())])


def _shingled(recipe: Recipe, documents: Batches) -> Iterator[tuple[Any, ShingleBatch]]:
    """Yield ids of documents, and their shingle sets, whose indices are those of the ids.

    The sets are valid until the next are yielded.
    """
    shingler = Shingler(recipe.shingle)
    for batch in documents:
        ids = as_binary(batch.column("id")).fill_null(b"")
        for texts in _text_batches(recipe, batch, ids):
            shingled = shingler.shingle(texts, recipe.formats)
            shingled.sets.sort()
            skipped = texts.skipped + _with_locations(batch, shingled.skipped[len(texts.skipped) :])
            yield ids, replace(shingled, skipped=skipped)


def _text_batches(recipe: Recipe, batch: Any, ids: Any) -> Iterator[TextBatch]:
    """Yield the texts of a batch of DOCUMENTS, with its skipped records before the first of them.

    This is the one way from input to texts, in both passes.
    """
    texts = as_binary(batch.column("text"))
    bad = _skipped(recipe, batch, ids, texts)
    if bad:
        yield replace(TextBatch.of([], []), skipped=bad)
    good = np.delete(np.arange(len(batch)), [index for index, _, _ in bad])
    data, offsets = content(texts)
    starts, lengths = offsets[good], offsets[good + 1] - offsets[good]
    plain = np.zeros(len(good), bool)
    if "plain" in batch.schema.names:
        plain = np.asarray(batch.column("plain").to_numpy(zero_copy_only=False), bool)[good]
    for is_text in (True, False):
        of_kind = np.flatnonzero(plain != is_text)
        for run in runs(lengths[of_kind], BATCH_DOCUMENTS, BATCH_BYTES):
            some = of_kind[run]
            indices, first, last = good[some], starts[some[0]], starts[some[-1]] + lengths[some[-1]]
            text = np.zeros(last - first + PADDING, np.uint8)  # kernels read past the end
            text[:-PADDING] = data[first:last]
            yield TextBatch(
                indices,
                [b""] * len(some) if is_text else ids.take(pa.array(indices)).to_pylist(),
                text,
                starts[some] - first,
                lengths[some],
                is_text=is_text,
                max_bytes=recipe.max_bytes,
            )


def _skipped(recipe: Recipe, batch: Any, ids: Any, texts: Any) -> list[tuple[int, Reason, str]]:
    """Return the rows that are no documents: (row, reason, detail)."""
    bad: dict[int, tuple[int, Reason, str]] = {}
    if "reason" in batch.schema.names:
        reasons, details = batch.column("reason"), batch.column("detail")
        for row in np.flatnonzero(reasons.is_valid().to_numpy(zero_copy_only=False)).tolist():
            bad[row] = row, Reason(reasons[row].as_py()), details[row].as_py()
    null = texts.is_null().to_numpy(zero_copy_only=False)
    id_sizes, sizes = np.diff(content(ids)[1]), np.diff(content(texts)[1])  # of null: 0
    for faulty, reason, detail in (
        (id_sizes == 0, Reason.NO_ID, "its id is null, or an empty string"),
        (null, Reason.NULL_TEXT, "its text is null"),
        (sizes > recipe.max_bytes, Reason.TOO_LARGE, f"more than {recipe.max_bytes} bytes"),
    ):
        rows = [row for row in np.flatnonzero(faulty).tolist() if row not in bad]
        found = _with_locations(batch, [(row, reason, detail) for row in rows])
        bad.update(zip(rows, found, strict=True))
    return sorted(bad.values())


def _with_locations(
    batch: Any, skipped: list[tuple[int, Reason, str]]
) -> list[tuple[int, Reason, str]]:
    """Add the locations of skipped documents to the details, where DOCUMENTS have them."""
    if not skipped or "detail" not in batch.schema.names:
        return skipped
    locations = batch.column("detail")
    return [
        (row, reason, "; ".join(filter(None, (detail, locations[row].as_py()))))
        for row, reason, detail in skipped
    ]


def shown_id(scalar: Any) -> str:
    """Return an id, a scalar of Arrow, for messages."""
    return repr(scalar.as_py().decode("utf-8", "backslashreplace"))


def binary_array(
    data: NDArray[np.uint8], sizes: NDArray[np.integer], valid: NDArray[np.bool_] | None = None
) -> Any:
    """Return an Arrow array of binary.

    data : uint8 array, the values one after the other.
    sizes : integer array of shape (n,), bytes of each value.
    valid : bool array of shape (n,); other values are null, whatever their bytes.

    Raises InputError for more than ARROW_BYTES.
    """
    if data.nbytes > ARROW_BYTES:
        message = (
            f"{len(sizes):,} documents have {data.nbytes:,} bytes of keys, "
            "more than Arrow can hold together"
        )
        raise InputError(
            message, "use fewer bands, or a smaller spark.sql.execution.arrow.maxRecordsPerBatch"
        )
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    mask = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [mask, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)
