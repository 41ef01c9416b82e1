"""What `--across` saves: the work of pairs across origins, beside that of all pairs."""

import os
from functools import partial

import numpy as np

from benchmarks.letters import letters
from benchmarks.measure import interleaved, ratio, seconds, timed
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table
from lshdup.base.params import BandParams, DocumentParams, PairParams, ShingleParams, SketchParams
from lshdup.base.run import Run
from lshdup.collection.collect import EVERY_SET, collect
from lshdup.collection.set_source import side_of
from lshdup.compare.comparing import compare, verify
from lshdup.compare.results import PairsFound
from lshdup.compare.sides import Sides
from lshdup.lsh.band_table import BandTable
from lshdup.lsh.candidates import NO_ORIGINS, candidate_pairs
from lshdup.pipeline import build_index
from lshdup.sources.finding import find_documents

COUNT = 1000
#: Share of the largest origin, the others being one, and the bar for the work beside all pairs.
SHARES = {"two halves": (0.5, 0.7), "95 %, and the rest": (0.95, 0.2)}
EXACT, CONTAINMENT = PairParams(exact=True), PairParams(measure="containment")


def section(bench: Bench) -> list[Table]:
    """Compare letters of one form across origins, from the band table on, or by a join."""
    folder = bench.home / "letters" / f"{COUNT}"
    if not folder.exists():
        letters(COUNT, COUNT // 10, bench.seed).write(folder)
    run, params = Run.quiet(os.cpu_count() or 1), BandParams()
    documents = find_documents(run, [os.fsencode(folder)], DocumentParams())
    made = collect(run, documents, ShingleParams(), SketchParams(), keep=EVERY_SET)
    side = side_of(run, made, made.filtered_sets(run.arrays))
    rng = np.random.default_rng(bench.seed)
    places = rng.permutation(len(documents))
    origins = {"all pairs": (NO_ORIGINS, 1.0)} | {
        name: ((places >= share * len(places)).astype(np.uint32), bar)
        for name, (share, bar) in SHARES.items()
    }
    table = Table(
        f"**Across origins**: {len(documents):,} letters of one form, threshold 0.8; candidates and"
        " verification by bands, and the joins."
    )
    works, counts = {}, dict[str, tuple[int, int]]()
    for name, (of, _) in origins.items():
        sides = Sides.of(run, side, origins=of)
        index = build_index(run, made, params, sides.duplicate_of)

        def by_bands(sides: Sides = sides, table: BandTable = index.table) -> PairsFound:
            return verify(run, candidate_pairs(run, table, 0, sides.origins), sides, 0.8)

        found = by_bands()
        counts[f"bands, {name}"] = found.candidates, len(found.pairs)
        works[f"bands, {name}"] = partial(timed, by_bands)
        for method, what in ((EXACT, "--exact"), (CONTAINMENT, "containment")):
            join = partial(compare, run, sides, params, method)
            counts[f"{what}, {name}"] = -1, len(join().pairs)
            works[f"{what}, {name}"] = partial(timed, join)
    done = interleaved(bench.runs, works)
    for what, runs in done.items():
        how, _, name = what.partition(", ")
        first = f"{how}, all pairs"
        met, pairs = counts[what]
        table.add(
            what=what,
            candidates=met if met >= 0 else None,
            candidates_beside=met / counts[first][0] if met >= 0 else None,
            pairs=pairs,
            seconds=seconds(runs),
            ratio=ratio(runs, done[first]),
            aim=f"{origins[name][1]:g} ×" if what != first else None,
        )
    return [table]
