"""The stages one by one, on one thread of this process; sketches beside other libraries."""

import functools
import os
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpora import text_of
from benchmarks.measure import Run, interleaved, seconds, timed
from benchmarks.sections.bench import Bench, installed
from benchmarks.tables import Table
from lshdup.base.params import BandParams, DocumentParams, ShingleParams, SketchParams
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run as Quiet
from lshdup.compare import scored_pairs, verification
from lshdup.lsh import band_plan, band_table, candidates
from lshdup.lsh.signatures import Sketcher
from lshdup.shingling.shingler import Shingler
from lshdup.sources.finding import find_documents
from lshdup.sources.text_batches import batches, read_batch

AIMS = {"shingle": "700 MB/s", "sketch": "6 µs"}
SETS = 256
SET_SIZE = 900
#: Sets for libraries in Python, which are slow.
FEW_SETS = 64


def section(bench: Bench) -> list[Table]:
    """Measure stages, texts of several scripts, and sketches."""
    return [_stages(bench), texts(bench), _sketches(bench)]


def _stages(bench: Bench) -> Table:
    n = bench.peer_documents
    folder = bench.home / bench.corpus("natural", n)
    size = sum(file.stat().st_size for file in folder.rglob("*.txt"))
    _one_pass(folder)  # compiles
    passes = [_one_pass(folder) for _ in range(bench.runs)]
    table = Table(f"**Stages**, one thread, {n:,} files, threshold 0.8, medians.")
    total = 0.0
    for stage in passes[0]:
        took = seconds([each[stage] for each in passes])
        total += took
        table.rows.append(_stage_row(stage, took, n, size, AIMS.get(stage)))
    table.rows.append(_stage_row("all", total, n, size, None))
    return table


def _stage_row(
    stage: str, took: float, n: int, size: int, aim: str | None
) -> dict[str, str | int | float | None]:
    return {"stage": stage, "µs a document": took / n * 1e6, "MB/s": size / took / 1e6, "aim": aim}


def _one_pass(folder: Path) -> dict[str, Run]:
    """Return the run of each stage over all documents."""
    took: dict[str, Run] = {}
    last = time.perf_counter()

    def lap(stage: str) -> None:
        nonlocal last
        now = time.perf_counter()
        took[stage] = Run(now - last)
        last = time.perf_counter()

    documents = find_documents(Quiet.quiet(), [os.fsencode(folder)], DocumentParams())
    lap("find")
    texts = [
        read_batch(documents, indices)
        for indices in batches(Quiet.quiet(), documents, np.arange(len(documents)))
    ]
    lap("read")
    shingler = Shingler(ShingleParams())
    made = []
    for batch in texts:
        shingled = shingler.shingle(batch)
        made.append(replace(shingled, sets=shingled.sets.copy()))
    lap("shingle")
    sketcher = Sketcher(SketchParams())
    signatures = np.concatenate([sketcher.sketch(each.sets) for each in made])
    lap("sketch")
    duplicate_of = candidates.find_exact_duplicates(
        Quiet.quiet(), np.concatenate([each.columns["fingerprints"] for each in made])
    )
    sizes = np.concatenate([each.sets.sizes for each in made])
    members = np.flatnonzero((duplicate_of == np.arange(len(duplicate_of))) & (sizes > 0))
    lap("find copies")
    table = band_table.build_band_table(
        Quiet.quiet(), signatures, members, band_plan.plan_bands(signatures.shape[1], BandParams())
    )
    lap("band")
    pieces = list(candidates.candidate_pairs(Quiet.quiet(), table).pieces)
    lap("candidates")
    sets = RaggedSets.concatenate(each.sets for each in made)

    def take(wanted: NDArray[np.int64]) -> RaggedSets:
        return sets.take(wanted).sort()

    last = time.perf_counter()  # A run keeps no sets: it makes those of candidates again.
    scored_pairs.gather_pairs(
        Quiet.quiet(),
        verification.verify_jaccard(Quiet.quiet(), pieces, sizes, take, BandParams().threshold),
    )
    lap("verify")
    return took


@functools.cache
def texts(bench: Bench) -> Table:
    """Measure text to sets, for several scripts; once for all sections."""
    table = Table("**Text to sets of 3-word shingles**, in memory, one thread.")
    shingler = Shingler(ShingleParams())
    made = {
        kind: [text_of(kind, number) for number in range(SETS)]
        for kind in ("natural", "cyrillic", "han")
    }
    for each in made.values():
        shingler.shingle_texts(each)  # compiles
    works = {
        kind: partial(timed, partial(shingler.shingle_texts, each)) for kind, each in made.items()
    }
    for kind, runs in interleaved(3 * bench.runs, works).items():
        size = sum(map(len, made[kind]))
        table.rows.append(
            {
                "script": "Latin" if kind == "natural" else kind.capitalize(),
                "bytes a document": size / SETS,
                "µs a document": seconds(runs) / SETS * 1e6,
                "MB/s": size / seconds(runs) / 1e6,
                "aim": "700 MB/s" if kind == "natural" else "150 MB/s",
            }
        )
    return table


# --- sketches ---------------------------------------------------------------------------------


def _sketches(bench: Bench) -> Table:
    table = Table(
        f"**Sketches** of sets of {SET_SIZE} shingles, one thread; `error` is the root mean square "
        f"error of the estimate for {SETS // 2} pairs of similarity 0.5 (datasketch: "
        f"{FEW_SETS // 2}). FastSketchLSH makes powers of two only."
    )
    # Half of the sets share two thirds of their elements with the one before.
    values = np.random.default_rng(2).integers(0, 1 << 64, (SETS, SET_SIZE), dtype=np.uint64)
    values[1::2, : SET_SIZE * 2 // 3] = values[::2, : SET_SIZE * 2 // 3]
    values.sort(axis=1)
    for perms, aim in ((128, "6 µs"), (400, None), (1000, "35 µs")):
        makers = _makers(values, perms)
        errors = {name: _error(make()) for name, (make, _) in makers.items()}  # compiles too
        works = {name: partial(timed, make) for name, (make, _) in makers.items()}
        for name, runs in interleaved(2 * bench.runs, works).items():
            table.rows.append(
                {
                    "K": perms,
                    "with": name,
                    "µs a set": seconds(runs) / makers[name][1] * 1e6,
                    "error": errors[name],
                    "aim": aim if name == "lshdup, fast" else None,
                }
            )
    table.note = " ".join(
        f"{name}: not installed."
        for name in ("FastSketchLSH", "rensa", "datasketch")
        if not installed(name)
    )
    return table


def _makers(values: NDArray[np.uint64], perms: int) -> dict[str, tuple[Callable[[], Any], int]]:
    """Return functions that make signatures, and the number of sets, by name."""
    count = len(values)
    sets = RaggedSets.from_sizes(values.reshape(-1), np.full(count, SET_SIZE))
    makers: dict[str, tuple[Callable[[], Any], int]] = {}
    for scheme in ("fast", "classic"):
        makers[f"lshdup, {scheme}"] = (
            partial(Sketcher(SketchParams(scheme, perms)).sketch, sets),
            count,
        )
    if installed("FastSketchLSH"):
        from FastSketchLSH import FastSimilaritySketch

        flat, starts = sets.values, sets.offsets.astype(np.uint64)
        size = 1 << (perms - 1).bit_length()
        fast = FastSimilaritySketch(size=size, seed=1)
        makers["FastSketchLSH" if size == perms else f"FastSketchLSH, K = {size}"] = (
            partial(fast.batch_csr, flat, starts, prehashed=True, num_threads=1),
            count,
        )
    if installed("rensa"):
        os.environ.setdefault("RAYON_NUM_THREADS", "1")
        from rensa import RMinHash

        matrix = partial(
            RMinHash.digest_matrix_from_flat_token_hashes,
            sets.values,
            sets.offsets.astype(np.uint64),
            perms,
            1,
        )
        makers["rensa, ordinary path"] = matrix, count
    if installed("datasketch"):
        from datasketch import MinHash

        few = [[value.tobytes() for value in each] for each in values[:FEW_SETS]]
        makers["datasketch, `bulk` with CRC-32"] = (
            lambda: np.array(
                [each.hashvalues for each in MinHash.bulk(few, num_perm=perms, hashfunc=zlib.crc32)]
            ),
            FEW_SETS,
        )
    return makers


def _error(made: Any) -> float:
    """Return the root mean square error of the estimates for pairs of similarity 0.5.

    made : a matrix of signatures, or an object of rensa with rows.
    """
    signatures = np.array(made.to_rows() if hasattr(made, "to_rows") else made)
    estimates = (signatures[::2] == signatures[1::2]).mean(axis=1)
    return float(np.sqrt(((estimates - 0.5) ** 2).mean()))
