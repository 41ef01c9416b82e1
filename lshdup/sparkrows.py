"""What Spark's workers do with batches of rows: documents -> sketches or sets, and the work within tiles. Called by spark.py.

No Spark here: functions from Arrow record batches to record batches, over the stages of the other engine. What they give depends on the rows
only, so that a task may be run again anywhere.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup import bands, similarity
from lshdup.bands import BandPlan
from lshdup.documents import BATCH_BYTES, BATCH_DOCUMENTS, DocumentList, Reason, TextBatch, batches, read_batch
from lshdup.errors import InputError
from lshdup.files import Buffer
from lshdup.kernels import banding as kernels
from lshdup.params import ShingleParams, SketchParams
from lshdup.ragged import PADDING, RaggedSets, StringTable
from lshdup.shingles import ShingleBatch, Shingler
from lshdup.signatures import Sketcher

#: Arrow's record batches; pyarrow is there only where Spark is.
Batches = Iterator[Any]

#: Rows of tiles that are worked on at a time, if no tile has more; and bytes of their sets.
ROWS = 1 << 14
SET_BYTES = 64 << 20

#: Pairs that are verified at a time: 20 bytes each.
PAIRS = 1 << 20

#: What the functions here give, as Spark writes schemas.
SKETCHES = "id binary, size bigint, digest binary, keys binary, reason string, detail string, encoding string"
SETS = "id binary, set binary"
TILES = "bucket binary, tile bigint, side int, id binary, before binary"
PAIRS_FOUND = "a binary, b binary, similarity double, candidates bigint"

#: Where a row stands in its tile: all pairs of the tile are wanted, or those of its left and its right rows.
WITHIN, LEFT, RIGHT = 0, 1, 2


@dataclass(frozen=True)
class Recipe:
    """What every worker must know.

    files : documents are files: rows are (id: its name, bytes; size), read from `home`, the folder that names start from. Otherwise rows are
    (id, text), where a text that is a string is text, and one of bytes is a file's content: it is decoded, and recognised if it is HTML.
    once : a pair is met in the first band in which it agrees, and nowhere else.
    """

    shingle: ShingleParams
    sketch: SketchParams
    plan: BandPlan
    threshold: float
    files: bool = False
    home: bytes = b""
    max_bytes: int = 0
    once: bool = True


# --- map side: documents -> sketches, documents -> sets -----------------------------------------------------------------------


def sketch_rows(recipe: Recipe, rows: Batches) -> Batches:
    """Documents -> SKETCHES: a row for each, also for those that are left out, with the reason.

    size : elements of the shingle set. digest : SHA-256 of the set, sorted, each element as eight bytes, little-endian; so documents of one
    digest have the same set. keys : eight bytes for each band, little-endian. encoding : where it was detected. Of a document without tokens
    only the id and the size are there.
    """
    import pyarrow as pa

    sketcher = Sketcher(recipe.sketch)
    for ids, made in _shingled(recipe, rows):
        n, sizes, sets = len(made.indices), made.sets.sizes, made.sets
        keys = np.ascontiguousarray(bands.band_keys(sketcher.sketch(sets), recipe.plan).T)
        there = sizes > 0
        data = memoryview(sets.values[: sets.offsets[-1]]).cast("B")
        ends = (sets.offsets * 8).tolist()
        digests = [sha256(data[a:b]).digest() if b > a else None for a, b in zip(ends[:-1], ends[1:], strict=True)]
        encodings = dict(made.guessed)
        columns = [
            ids.take(pa.array(made.indices)), pa.array(sizes), pa.array(digests, pa.binary()),
            _binary(keys.view(np.uint8).reshape(-1), np.full(n, keys.shape[1] * 8), there),
            pa.nulls(n, pa.string()), pa.nulls(n, pa.string()),
            pa.array([encodings.get(index) for index in made.indices.tolist()] if encodings else pa.nulls(n, pa.string()), pa.string()),
        ]  # fmt: skip
        yield _batch(SKETCHES, columns)
        if made.left_out:
            m = len(made.left_out)
            reasons, details = [str(each[1]) for each in made.left_out], [each[2] for each in made.left_out]
            left_out = ids.take(pa.array([each[0] for each in made.left_out], pa.int64()))
            none, text = pa.nulls(m, pa.binary()), pa.string()
            yield _batch(
                SKETCHES,
                [left_out, pa.array([0] * m, pa.int64()), none, none, pa.array(reasons, text), pa.array(details, text), pa.nulls(m, text)],
            )


def set_rows(recipe: Recipe, rows: Batches) -> Batches:
    """Documents -> SETS: those that have tokens; a set is sorted, eight bytes an element, little-endian."""
    import pyarrow as pa

    for ids, made in _shingled(recipe, rows):
        there = np.flatnonzero(made.sets.sizes)
        sets = made.sets.take(there)
        yield _batch(SETS, [ids.take(pa.array(made.indices[there])), _binary(sets.values.view(np.uint8), sets.sizes * 8)])


def _shingled(recipe: Recipe, rows: Batches) -> Iterator[tuple[Any, ShingleBatch]]:
    """Ids of some documents, and what was made of these, numbered from 0; valid until the next."""
    shingler, buffer = Shingler(recipe.shingle), Buffer()
    for batch in rows:
        ids = _as_binary(batch.column(0))
        _refuse_null(ids, "id")
        if recipe.files:
            names, offsets = _content(ids)
            sizes = batch.column(1).to_numpy()
            documents = DocumentList(
                StringTable(names, offsets), sizes, np.zeros(len(sizes), np.int64), home=recipe.home, max_bytes=recipe.max_bytes
            )
            for indices in batches(documents, np.arange(len(documents))):
                yield ids, shingler.shingle(read_batch(documents, indices, buffer))
            continue
        raw = _is_binary(batch.column(1))
        texts = _as_binary(batch.column(1)).fill_null(b"")
        lengths = texts.value_lengths().to_numpy() if hasattr(texts, "value_lengths") else _lengths(texts)
        for start, end in _cuts(lengths):
            part, indices = texts.slice(start, end - start), np.arange(start, end)
            if raw or recipe.shingle.tokens == "ids":
                yield ids, shingler.shingle(_text_batch(part, indices, ids.slice(start, end - start).to_pylist()))
            else:
                yield ids, _of_strings(shingler, part, indices)


def _of_strings(shingler: Shingler, texts: Any, indices: NDArray[np.int64]) -> ShingleBatch:
    listed = texts.to_pylist()
    try:
        return ShingleBatch(indices, shingler.shingle_texts(listed))
    except InputError:  # one is too long: which?
        kept, sets, left_out = [], [], []
        for index, text in zip(indices.tolist(), listed, strict=True):
            try:
                sets.append(shingler.shingle_texts([text]))
                kept.append(index)
            except InputError as error:
                left_out.append((index, Reason.TOO_LARGE, error.message))
        return ShingleBatch(np.array(kept, np.int64), RaggedSets.concatenate(sets), left_out)


def _text_batch(texts: Any, indices: NDArray[np.int64], names: list[bytes]) -> TextBatch:
    """Bytes of documents, with room behind them, without an object for each."""
    data, offsets = _content(texts)
    text = np.zeros(offsets[-1] - offsets[0] + PADDING, np.uint8)
    text[:-PADDING] = data[offsets[0] : offsets[-1]]
    return TextBatch(indices, names, text, offsets[:-1] - offsets[0], np.diff(offsets))


def _cuts(lengths: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Runs of at most BATCH_DOCUMENTS documents and about BATCH_BYTES bytes."""
    ends = np.cumsum(lengths, dtype=np.int64)
    start = 0
    while start < len(lengths):
        before = int(ends[start - 1]) if start else 0
        fits = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
        end = min(max(fits, start + 1), start + BATCH_DOCUMENTS)
        yield start, end
        start = end


# --- tiles: rows of a bucket, or of two blocks of it, that are compared with each other --------------------------------------------


def unmet_rows(recipe: Recipe, rows: Batches) -> Batches:
    """TILES, by bucket, tile and side -> the rows that make a pair there which no earlier band has met.

    The others need no sets: of documents that are much alike, nearly all pairs are met in the first bands.
    """
    import pyarrow as pa

    for table, starts, splits in _whole_tiles(rows):
        unmet = np.zeros(len(table), np.uint8)
        kernels.mark_unmet(*_ragged(table.column("before")), starts, splits, unmet)
        keep = np.flatnonzero(unmet)
        if len(keep):
            yield from table.take(pa.array(keep)).combine_chunks().to_batches()


def verified_rows(recipe: Recipe, rows: Batches) -> Batches:
    """TILES with a column `set`, by bucket, tile and side -> PAIRS_FOUND: pairs at or above the threshold, a before b.

    candidates : in one row of each piece how many pairs were looked at, in the others 0; a piece without pairs is that row alone.
    """
    import pyarrow as pa

    for table, starts, splits in _whole_tiles(rows):
        sets = RaggedSets(*_ragged(table.column("set")))
        before, offsets = _ragged(table.column("before"))
        ids = _one(table.column("id"))
        order = _ranks(ids)
        left, right = np.empty(PAIRS, np.uint32), np.empty(PAIRS, np.uint32)
        state = np.array([0, -1, 0])
        while state[0] < len(splits):
            n = kernels.tile_pairs(before, offsets, starts, splits, recipe.once, state, left, right)
            if not n:
                continue
            found = similarity.jaccard(sets, left[:n], right[:n], threshold=recipe.threshold)
            keep = np.flatnonzero(found >= recipe.threshold)
            a, b = left[keep], right[keep]
            turned = order[a] > order[b]
            a, b = np.where(turned, b, a), np.where(turned, a, b)
            counts = np.zeros(max(len(keep), 1), np.int64)
            counts[0] = n
            if len(keep):
                yield _batch(PAIRS_FOUND, [ids.take(pa.array(a)), ids.take(pa.array(b)), pa.array(found[keep]), pa.array(counts)])
            else:
                yield _batch(PAIRS_FOUND, [pa.nulls(1, pa.binary()), pa.nulls(1, pa.binary()), pa.nulls(1, pa.float64()), pa.array(counts)])


def _whole_tiles(rows: Batches) -> Iterator[tuple[Any, NDArray[np.int64], NDArray[np.int64]]]:
    """Rows of some tiles, all of each; where each tile starts, with the end; and where its right block does, or ONE_BLOCK."""
    import pyarrow as pa

    held: list[Any] = []
    count = size = 0
    for batch in rows:
        held.append(batch)
        count += len(batch)
        size += batch.nbytes
        if count < ROWS and size < SET_BYTES:
            continue
        table = pa.Table.from_batches(held).combine_chunks()
        starts = _starts(table)
        last = int(starts[-1])  # the rest of the last tile may be in the next batch
        if last:
            yield table.slice(0, last), starts, _splits(table, starts)
        held = table.slice(last).combine_chunks().to_batches()
        count, size = len(table) - last, sum(each.nbytes for each in held)
    if count:
        table = pa.Table.from_batches(held).combine_chunks()
        starts = np.append(_starts(table), len(table))
        yield table, starts, _splits(table, starts)


def _starts(table: Any) -> NDArray[np.int64]:
    """The rows at which a tile begins."""
    import pyarrow.compute as pc

    bucket, tile = _one(table.column("bucket")), table.column("tile").to_numpy()
    differ = pc.not_equal(bucket.slice(1), bucket.slice(0, len(bucket) - 1)).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], 1 + np.flatnonzero(differ | (tile[1:] != tile[:-1]))])


def _splits(table: Any, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each tile the first of its right rows."""
    side = table.column("side").to_numpy()[: starts[-1]]
    lefts = np.add.reduceat((side == LEFT).astype(np.int64), starts[:-1])
    return np.where(side[starts[:-1]] == WITHIN, kernels.ONE_BLOCK, starts[:-1] + lefts)


# --- Arrow and NumPy ------------------------------------------------------------------------------------------------------------


def _one(column: Any) -> Any:
    """A column of a table as one array."""
    combined = column.combine_chunks()
    return combined.chunk(0) if hasattr(combined, "chunk") else combined


def _is_binary(array: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type))


def _as_binary(array: Any) -> Any:
    """Strings, or bytes, with offsets of 32 bits or 64, as bytes."""
    import pyarrow as pa

    return array if array.type == pa.binary() else array.cast(pa.binary())


def _refuse_null(array: Any, what: str) -> None:
    if array.null_count:
        message = f"{array.null_count} of the documents have no {what}"
        raise InputError(message, f"leave out the rows whose {what} is null")


def _content(array: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of an array of binary, and int64 offsets of shape (n + 1,) into them."""
    _, offsets, data = array.buffers()
    if not len(array):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8), ends


def _lengths(array: Any) -> NDArray[np.int64]:
    return np.diff(_content(array)[1])


def _ragged(column: Any) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """A column of numbers of eight bytes: all of them, and int64 offsets."""
    data, offsets = _content(_one(column))
    values = data[offsets[0] : offsets[-1]]
    return np.frombuffer(values.tobytes(), "<u8").astype(np.uint64, copy=False), (offsets - offsets[0]) // 8


def _binary(data: NDArray[np.uint8], sizes: NDArray[np.integer], there: NDArray[np.bool_] | None = None) -> Any:
    """An array of binary from bytes one after the other; null where it is not `there`."""
    import pyarrow as pa

    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    mask = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(sizes), [mask, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))])


def _ranks(ids: Any) -> NDArray[np.int64]:
    """For each id a number, ordered as they are: by their bytes."""
    import pyarrow.compute as pc

    ranks: NDArray[np.int64] = pc.rank(ids, tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks


def _batch(schema: str, columns: list[Any]) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(columns, [field.split()[0] for field in schema.split(", ")])


Rows = Callable[[Recipe, Batches], Batches]
