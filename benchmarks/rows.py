"""Folders of Parquet files with rows of made-up text, equal for equal seeds on every machine.

A row depends on the kind, the seed and its number only: the first 1,000 rows of ten million are the
rows of a corpus of 1,000. One row in ten is a near-copy of an earlier one, wherever that is, as in
`corpora`. Words are drawn by hashing their places, for many rows at a time.
`python -m benchmarks.rows KIND ROWS FOLDER` makes a corpus to look at.
"""

import itertools
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpora import REPLACED, VOCABULARY, filling, main, vocabulary, zipf

#: Version of the rows, so that the folder of an older suite is not used again.
VERSION = 1

#: Words of a row, at least and less than, by kind. A word has about six bytes.
WORDS = {"short": (46, 89), "long": (230, 439)}

#: Rows of a file, and about so many words of a row group.
FILE = 1_000_000
_WORDS_OF_GROUP = 1 << 21

#: So many rows are written by one process: another one takes longer to start.
_FEW = 20_000

#: What is drawn for a row, or for a word of it.
_LENGTH, _SOURCE, _SHARE, _IS_REPLACED, _REPLACEMENT, _WORD, _FORM = range(7)

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


def _draw(seed: int, what: int, rows: I64, places: I64 | int = 0) -> U64:
    """Return a number below 2^32 for each place of each row (splitmix64: Steele, Lea, Flood,
    "Fast splittable pseudorandom number generators", 2014).
    """
    z = (rows * 1024 + places).astype(np.uint64)
    z *= np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64((seed * 8 + what + 1) * 0xD1B54A32D192ED03 & (1 << 64) - 1)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    numbers: U64 = z >> np.uint64(32)
    return numbers


def sources_of(rows: I64, seed: int = 1) -> I64:
    """Return the row that each row is a near-copy of, or the row itself."""
    drawn = (_draw(seed, _SOURCE, rows) * rows.astype(np.uint64) >> np.uint64(32)).astype(np.int64)
    return np.where(rows % 10 == 9, drawn - (drawn % 10 == 9), rows)


def texts_of(kind: str, rows: I64, seed: int = 1) -> Any:
    """Return the texts of some rows, a string array of pyarrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high = WORDS[kind]
    sources = sources_of(rows, seed)
    lengths = low + _draw(seed, _LENGTH, sources).astype(np.int64) % (high - low)
    ends = np.cumsum(lengths)
    place = np.arange(int(ends[-1])) - np.repeat(ends - lengths, lengths)
    row, source = np.repeat(rows, lengths), np.repeat(sources, lengths)
    ranks = zipf(VOCABULARY)[_draw(seed, _WORD, source, place) >> np.uint64(12)]
    shares = (np.array(REPLACED) * (1 << 32)).astype(np.uint64)
    share = shares[_draw(seed, _SHARE, rows) % np.uint64(len(REPLACED))] * (sources != rows)
    new = np.flatnonzero(_draw(seed, _IS_REPLACED, row, place) < np.repeat(share, lengths))
    drawn = _draw(seed, _REPLACEMENT, row[new], place[new]) >> np.uint64(12)
    ranks[new] = zipf(VOCABULARY)[drawn]
    # A copy has other commas and other stops, but the same words.
    form = np.array([0] * 12 + [1, 2, 3, 3])[_draw(seed, _FORM, row, place) >> np.uint64(28)]
    pieces = pa.array([piece.decode() for piece in vocabulary("latin").pieces])
    words = pieces.take(pa.array(4 * ranks.astype(np.int64) + form))
    offsets = pa.array(np.append(0, ends), pa.int32())
    return pc.binary_join(pa.ListArray.from_arrays(offsets, words), "")


def corpus(home: Path, kind: str, rows: int, seed: int = 1, jobs: int = 2) -> Path:
    """Return the folder of a corpus below `home`, made if it is not complete, by some processes."""
    folder = home / f"{kind}-rows-{rows}-seed{seed}"
    step = min(FILE, max(-(-rows // jobs), _FEW))
    parts = [range(first, min(first + step, rows)) for first in range(0, rows, step)]
    write = partial(_write, folder, kind, seed)
    with filling(folder, VERSION) as is_missing:
        if is_missing and len(parts) == 1:
            write(parts[0])
        elif is_missing:
            with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
                list(pool.map(write, parts))
    return folder


def _write(folder: Path, kind: str, seed: int, rows: range) -> None:
    """Write one file of a corpus."""
    groups = -(-len(rows) * WORDS[kind][1] // _WORDS_OF_GROUP)
    cuts = np.linspace(rows.start, rows.stop, groups + 1).astype(np.int64).tolist()
    parts = (np.arange(*cut) for cut in itertools.pairwise(cuts))
    write_rows(folder / f"{rows.start:09}.parquet", kind, parts, seed)


def write_rows(path: Path, kind: str, parts: Any, seed: int = 1) -> None:
    """Write a Parquet file with some rows. parts : int64 arrays, the rows of each row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for part in parts:
            writer.write_table(
                pa.table([pa.array(part), texts_of(kind, part, seed)], schema=schema)
            )


if __name__ == "__main__":
    main(corpus, WORDS, "rows")
