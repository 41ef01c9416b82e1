"""What Spark's workers do with batches of rows: documents -> sketches or sets, and the work within tiles. Called by spark.py.

No Spark here: functions from Arrow record batches to record batches, over the stages of the other engine. What they give depends on the
rows only, so that a task may be run again anywhere.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.document_list import DocumentList
from lshdup.documents.files import Buffer
from lshdup.documents.reading import (
    BATCH_BYTES,
    BATCH_DOCUMENTS,
    TextBatch,
    batches,
    read_batch,
    runs,
)
from lshdup.errors import InputError
from lshdup.kernels import tiles
from lshdup.kernels.helpers import PADDING
from lshdup.lsh import band_table
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.signatures import Sketcher
from lshdup.matching import similarity
from lshdup.params import (
    DEFAULT_FORMATS,
    DEFAULT_MAX_BYTES,
    FormatLimits,
    ShingleParams,
    SketchParams,
)
from lshdup.shingling.shingler import ShingleBatch, Shingler
from lshdup.skipped import Reason
from lshdup.utils.arrow import as_binary, batch_of, content, ragged
from lshdup.utils.ragged import RaggedSets, StringTable

#: Arrow's record batches; pyarrow is there only where Spark is.
Batches = Iterator[Any]

#: Rows of tiles that are worked on at a time, if no tile has more; and bytes of their sets.
ROWS = 1 << 14
SET_BYTES = 64 << 20

#: Pairs that are verified at a time: 20 bytes each; and how many are handed on at a time.
PAIRS = 1 << 20
PAIRS_GIVEN = 1 << 14

#: Arrow's offsets here, and Java's arrays, have 32 bits with a sign: bytes of one column, or of one set.
ARROW_BYTES = (1 << 31) - (1 << 16)

#: In place of a band's key: that bucket is left out.
NO_KEY = tiles.NO_KEY.tobytes()

#: What the functions here give, as Spark writes schemas.
SKETCHES = "id binary, size bigint, digest binary, keys binary, reason string, detail string, encoding string"
SETS = "id binary, set binary"
TILES = "bucket binary, tile bigint, side int, id binary, before binary"
PAIRS_FOUND = (
    "a binary, b binary, similarity double, size_a bigint, size_b bigint, candidates bigint"
)

#: Where a row stands in its tile: all pairs of the tile are wanted, or those of its left and its right rows.
WITHIN, LEFT, RIGHT = 0, 1, 2


@dataclass(frozen=True)
class Recipe:
    """What every worker must know.

    kind : what rows are. "texts": (id, text), as rows of Parquet are; "contents": (id, bytes), as files are, called by their ids, where a
    column `plain` does not say of each what it is; "files": (id, size), to be read from `home`, the folder that their names start from.
    max_bytes : larger documents are left out. formats :
    bounds for reading office documents.
    """

    shingle: ShingleParams
    sketch: SketchParams
    plan: BandPlan
    threshold: float
    kind: str = "texts"
    home: bytes = b""
    max_bytes: int = DEFAULT_MAX_BYTES
    formats: FormatLimits = DEFAULT_FORMATS


# --- map side: documents -> sketches, documents -> sets -----------------------------------------------------------------------


def read_and_made(
    read: Callable[[Batches], Batches] | None, made: Callable[[Batches], Batches], rows: Batches
) -> Batches:
    """What is made of the documents that are read from `rows`, or are these; in one worker."""
    return made(read(rows) if read else rows)


def sketch_rows(recipe: Recipe, rows: Batches) -> Batches:
    """Documents -> SKETCHES: a row for each, also for those that are left out, with the reason.

    size : elements of the shingle set. digest : SHA-256 of the set, sorted, each element as eight bytes, little-endian; so documents of
    one digest have the same set. keys : eight bytes for each band, little-endian. encoding : where it was detected. Of a document without
    tokens only the id and the size are there.
    """
    import pyarrow as pa

    sketcher = Sketcher(recipe.sketch)
    for ids, made in _shingled(recipe, rows):
        n, sizes, sets = len(made.indices), made.sets.sizes, made.sets
        keys = np.ascontiguousarray(band_table.band_keys(sketcher.sketch(sets), recipe.plan).T)
        there = sizes > 0
        data = sets.values.view(np.uint8).data
        ends = (sets.offsets * 8).tolist()
        digests = [
            sha256(data[a:b]).digest() if b > a else None for a, b in itertools.pairwise(ends)
        ]
        encodings = dict(made.guessed)
        columns = [
            ids.take(pa.array(made.indices)), pa.array(sizes), pa.array(digests, pa.binary()),
            _binary(keys.view(np.uint8).reshape(-1), np.full(n, keys.shape[1] * 8), there),
            pa.nulls(n, pa.string()), pa.nulls(n, pa.string()),
            pa.array([encodings.get(index) for index in made.indices.tolist()] if encodings else pa.nulls(n, pa.string()), pa.string()),
        ]  # fmt: skip
        yield batch_of(SKETCHES, columns)
        if made.skipped:
            m = len(made.skipped)
            reasons, details = (
                [str(each[1]) for each in made.skipped],
                [each[2] for each in made.skipped],
            )
            skipped = ids.take(pa.array([each[0] for each in made.skipped], pa.int64()))
            none, text = pa.nulls(m, pa.binary()), pa.string()
            yield batch_of(
                SKETCHES,
                [
                    skipped,
                    pa.array([0] * m, pa.int64()),
                    none,
                    none,
                    pa.array(reasons, text),
                    pa.array(details, text),
                    pa.nulls(m, text),
                ],
            )


def set_rows(recipe: Recipe, rows: Batches) -> Batches:
    """Documents -> SETS; a set is sorted, eight bytes an element, little-endian; null for those that are left out or have no tokens.

    Raises InputError for a set that is too large for Spark.
    """
    import pyarrow as pa

    for ids, made in _shingled(recipe, rows):
        there = np.flatnonzero(made.sets.sizes)
        for some in runs(made.sets.sizes[there] * 8, len(there), SET_BYTES):
            named = ids.take(pa.array(made.indices[there[some]]))
            sets = made.sets.take(there[some])
            if sets.values.nbytes > ARROW_BYTES:  # of one document, then
                what = f"{_name(named[0])} has {len(sets.values):,} shingles, more than Spark can hand from task to task"
                message = f"{what}; leave it out: --max-bytes is the most that a document may have"
                raise InputError(message)
            yield batch_of(SETS, [named, _binary(sets.values.view(np.uint8), sets.sizes * 8)])
        none = [*(each[0] for each in made.skipped), *made.indices[made.sets.sizes == 0].tolist()]
        if none:
            yield batch_of(
                SETS, [ids.take(pa.array(none, pa.int64())), pa.nulls(len(none), pa.binary())]
            )


def _shingled(recipe: Recipe, rows: Batches) -> Iterator[tuple[Any, ShingleBatch]]:
    """Ids of some documents, and what was made of these, numbered as their ids; valid until the next."""
    import pyarrow as pa

    shingler, buffer = Shingler(recipe.shingle), Buffer()
    for batch in rows:
        ids = as_binary(batch.column(0))
        if recipe.kind == "files":
            sizes = batch.column(1).to_numpy()
            names = StringTable(*content(ids))
            documents = DocumentList(
                names,
                sizes,
                np.zeros(len(sizes), np.int64),
                home=recipe.home,
                max_bytes=recipe.max_bytes,
            )
            for indices in batches(documents, np.arange(len(documents))):
                yield ids, shingler.shingle(read_batch(documents, indices, buffer), recipe.formats)
            continue
        texts = as_binary(batch.column(1))
        bad = _skipped(recipe, batch, ids, texts)
        if bad:
            yield (
                ids.fill_null(b""),
                ShingleBatch(np.zeros(0, np.int64), RaggedSets.concatenate([]), bad),
            )
        good = np.delete(np.arange(len(batch)), [index for index, _, _ in bad])
        data, offsets = content(texts)
        starts, lengths = offsets[good], offsets[good + 1] - offsets[good]
        plain = _plain(recipe, batch)[good]
        for is_text in (True, False):
            mine = np.flatnonzero(plain != is_text)
            for some in (mine[cut] for cut in runs(lengths[mine], BATCH_DOCUMENTS, BATCH_BYTES)):
                called = (
                    [b""] * len(some) if is_text else ids.take(pa.array(good[some])).to_pylist()
                )
                made = _text_batch(
                    recipe, good[some], called, data, starts[some], lengths[some], is_text=is_text
                )
                done = shingler.shingle(made, recipe.formats)
                yield ids, replace(done, skipped=_located(batch, done.skipped))


def _located(batch: Any, skipped: list[tuple[int, Reason, str]]) -> list[tuple[int, Reason, str]]:
    """The same, and where they are, if that is known; see `sparkreading.DOCUMENTS`."""
    if not skipped or "detail" not in batch.schema.names:
        return skipped
    where = batch.column("detail")
    return [
        (row, reason, "; ".join(filter(None, (detail, where[row].as_py()))))
        for row, reason, detail in skipped
    ]


def _plain(recipe: Recipe, batch: Any) -> NDArray[np.bool_]:
    """Which rows are contents of files, called by their ids."""
    if "plain" in batch.schema.names:
        return np.asarray(batch.column("plain").to_numpy(zero_copy_only=False), bool)
    return np.full(len(batch), recipe.kind == "contents")


def _skipped(recipe: Recipe, batch: Any, ids: Any, texts: Any) -> list[tuple[int, Reason, str]]:
    """Rows that are no documents: (row, reason, detail)."""
    bad: list[tuple[int, Reason, str]] = []
    if "reason" in batch.schema.names:
        reasons = batch.column("reason")
        there = np.flatnonzero(reasons.is_valid().to_numpy(zero_copy_only=False)).tolist()
        bad = [
            (row, Reason(reasons[row].as_py()), batch.column("detail")[row].as_py())
            for row in there
        ]
    known = {row for row, _, _ in bad}
    named = np.diff(content(ids)[1])  # null is of no length too
    lengths = np.diff(content(texts)[1])
    for rows, reason, detail in (
        (np.flatnonzero(named == 0), Reason.NO_ID, "its id is null, or an empty string"),
        (
            np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False)),
            Reason.NO_TEXT,
            "its text is null",
        ),
        (
            np.flatnonzero(lengths > recipe.max_bytes),
            Reason.TOO_LARGE,
            f"more than {recipe.max_bytes} bytes",
        ),
    ):
        new = [row for row in map(int, rows) if row not in known]
        bad += _located(batch, [(row, reason, detail) for row in new])
        known.update(new)
    return sorted(bad)


def _text_batch(
    recipe: Recipe,
    rows: NDArray[np.int64],
    names: list[bytes],
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    *,
    is_text: bool,
) -> TextBatch:
    """Some texts, copied to where there is room behind them, without an object for each."""
    first, last = (int(starts[0]), int(starts[-1] + lengths[-1])) if len(rows) else (0, 0)
    text = np.zeros(last - first + PADDING, np.uint8)
    text[:-PADDING] = data[first:last]
    return TextBatch(
        rows, names, text, starts - first, lengths, is_text=is_text, max_bytes=recipe.max_bytes
    )


# --- tiles: rows of a bucket, or of two blocks of it, that are compared with each other --------------------------------------------


def unmet_rows(recipe: Recipe, rows: Batches) -> Batches:
    """TILES, by bucket, tile and side -> the rows that make a pair there which no earlier band has met.

    The others need no sets: of documents that are much alike, nearly all pairs are met in the first bands.
    """
    import pyarrow as pa

    for table, starts, splits in _whole_tiles(rows):
        unmet = np.zeros(len(table), np.uint8)
        tiles.mark_unmet(*ragged(table.column("before")), starts, splits, unmet)
        keep = np.flatnonzero(unmet)
        if len(keep):
            yield from table.take(pa.array(keep)).to_batches()


def verified_rows(recipe: Recipe, rows: Batches) -> Batches:
    """TILES with a column `set`, by bucket, tile and side -> PAIRS_FOUND: pairs at or above the threshold, a before b.

    size_a, size_b : elements of their sets. candidates : in one row of each piece how many pairs were looked at, in the others 0; a piece
    without pairs is that row alone. Raises InputError for a document without a set: it was read before, and now it was not.
    """
    import pyarrow as pa

    for table, starts, splits in _whole_tiles(rows):
        if table.column("set").null_count:
            table = _with_sets(table)
            starts = np.append(_starts(table), len(table))
            splits = _splits(table, starts)
        sets = RaggedSets(*ragged(table.column("set")))
        sizes = sets.sizes
        before, offsets = ragged(table.column("before"))
        ids = _one(table.column("id"))
        order = _ranks(ids)
        left, right = np.empty(PAIRS, np.uint32), np.empty(PAIRS, np.uint32)
        state = np.array([0, -1, 0])
        while state[0] < len(splits):
            n = tiles.tile_pairs(before, offsets, starts, splits, state, left, right)
            if not n:
                continue
            found = similarity.jaccard(sets, left[:n], right[:n], threshold=recipe.threshold)
            keep = np.flatnonzero(found >= recipe.threshold)
            a, b = left[keep], right[keep]
            turned = order[a] > order[b]
            a, b = np.where(turned, b, a), np.where(turned, a, b)
            counts = np.zeros(max(len(keep), 1), np.int64)
            counts[0] = n
            if not len(keep):
                kinds = (pa.binary(), pa.binary(), pa.float64(), pa.int64(), pa.int64())
                yield batch_of(
                    PAIRS_FOUND, [*(pa.nulls(1, kind) for kind in kinds), pa.array(counts)]
                )
            columns = (found[keep], sizes[a], sizes[b], counts)
            for start in range(0, len(keep), PAIRS_GIVEN):
                some = slice(start, start + PAIRS_GIVEN)
                named = [ids.take(pa.array(each[some])) for each in (a, b)]
                yield batch_of(
                    PAIRS_FOUND, [*named, *(pa.array(column[some]) for column in columns)]
                )


def _with_sets(table: Any) -> Any:
    """The rows with sets. One without may be of another document that has the same id and was left out; if there is none, what cannot be
    read again would lose its pairs, and nobody would know.
    """
    import pyarrow.compute as pc

    there = pc.is_valid(table.column("set"))
    found, missing = table.filter(there), table.filter(pc.invert(there)).column("id")
    unread = missing.filter(pc.invert(pc.is_in(missing, found.column("id"))))
    if len(unread):
        what = f"{_name(unread[0])} was read once, and could not be read the second time: it has changed or gone, or its format took too long"  # noqa: E501
        message = f"{what}; let nothing change the documents meanwhile, leave it out, or raise --format-seconds"
        raise InputError(message)  # of an error that comes from a worker, the hint is lost
    return found


def _name(scalar: Any) -> str:
    return repr(scalar.as_py().decode("utf-8", "backslashreplace"))


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
        table = pa.Table.from_batches(held)
        starts = _starts(table)
        last = int(starts[-1])  # the rest of the last tile may be in the next batch
        if last:
            yield table.slice(0, last), starts, _splits(table, starts)
        held = table.slice(last).to_batches()
        count, size = len(table) - last, sum(each.nbytes for each in held)
    if count:
        table = pa.Table.from_batches(held)
        starts = np.append(_starts(table), len(table))
        yield table, starts, _splits(table, starts)


def _starts(table: Any) -> NDArray[np.int64]:
    """The rows at which a tile begins."""
    import pyarrow.compute as pc

    bucket, tile = _one(table.column("bucket")), table.column("tile").to_numpy()
    differ = pc.not_equal(bucket.slice(1), bucket.slice(0, len(bucket) - 1)).to_numpy(
        zero_copy_only=False
    )
    return np.concatenate([[0], 1 + np.flatnonzero(differ | (tile[1:] != tile[:-1]))])


def _splits(table: Any, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each tile the first of its right rows."""
    side = table.column("side").to_numpy()[: starts[-1]]
    lefts = np.add.reduceat((side == LEFT).astype(np.int64), starts[:-1])
    return np.where(side[starts[:-1]] == WITHIN, tiles.ONE_BLOCK, starts[:-1] + lefts)


# --- Arrow and NumPy ------------------------------------------------------------------------------------------------------------


def _one(column: Any) -> Any:
    """A column of a table as one array. Raises InputError if it is too large for one."""
    import pyarrow as pa

    if column.nbytes > ARROW_BYTES:
        message = f"the ids of {len(column):,} documents that share buckets have {column.nbytes:,} bytes, more than Arrow can hold together"
        raise InputError(message, "give documents shorter ids")
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _binary(
    data: NDArray[np.uint8], sizes: NDArray[np.integer], there: NDArray[np.bool_] | None = None
) -> Any:
    """An array of binary from bytes one after the other, ARROW_BYTES at most; null where it is not `there`."""
    import pyarrow as pa

    if data.nbytes > ARROW_BYTES:
        message = f"{len(sizes):,} documents have {data.nbytes:,} bytes of keys, more than Arrow can hold together"
        raise InputError(
            message, "use fewer bands, or a smaller spark.sql.execution.arrow.maxRecordsPerBatch"
        )
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    mask = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(
        pa.binary(),
        len(sizes),
        [mask, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))],
    )


def _ranks(ids: Any) -> NDArray[np.int64]:
    """For each id a number, ordered as they are: by their bytes."""
    import pyarrow.compute as pc

    ranks: NDArray[np.int64] = pc.rank(ids, tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks


Rows = Callable[[Recipe, Batches], Batches]
