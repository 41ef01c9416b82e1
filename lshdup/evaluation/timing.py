"""The timing experiment (R1 table 2): exact against estimated similarities of all pairs."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lshdup.compare.verification import all_pairs
from lshdup.evaluation.experiment import Experiment, list_pairs
from lshdup.lsh.signatures import estimate
from lshdup.params import SketchParams

EXACT, MATRIX, ESTIMATED = "exact, all pairs", "signature matrix", "estimated, all pairs"

#: Pairs that are estimated together.
_PIECE = 1 << 22


@dataclass(frozen=True)
class Timing:
    """Seconds of one part of the work: median, smallest and largest of the runs.

    comparisons : number of elementary comparisons of the part.
    """

    scheme: str
    perms: int
    part: str
    comparisons: int
    median: float
    smallest: float
    largest: float
    runs: int


def timing(experiment: Experiment, runs: int) -> Iterator[Timing]:
    """Time exact similarities of all pairs and, for each sketch, the signatures and the estimates.

    The runs of the parts are interleaved. A first run that is not measured compiles the kernels.
    Comparisons are at most |A| + |B| - |A ∩ B| steps of a merge for an exact similarity, K hash
    values an element for the matrix (the fast scheme makes far fewer), and K rows for an estimate.
    Memory: bounded.
    """
    sets = experiment.sets.take(experiment.present)
    n, elements = len(sets), int(sets.sizes.sum())

    def exact(_: SketchParams) -> None:
        for _piece in all_pairs(experiment.run, sets):
            pass

    def estimated(_: SketchParams) -> None:
        first = 0
        while first < n - 1:
            left, right = list_pairs(n, first, _PIECE)
            estimate(experiment.run, signatures, left, right)
            first = int(left[-1]) + 1

    for done, sketch in enumerate(experiment.sketches):
        signatures = experiment.sign(sets, sketch)
        parts: list[tuple[str, int, Callable[[SketchParams], object]]] = [
            (EXACT, elements * (n - 1), exact),
            (MATRIX, elements * sketch.perms, partial(experiment.sign, sets)),
            (ESTIMATED, n * (n - 1) // 2 * sketch.perms, estimated),
        ]
        seconds: list[list[float]] = [[] for _ in parts]
        for turn in range(-1, runs):
            total = len(experiment.sketches) * (runs + 1)
            experiment.run.progress("timing", done * (runs + 1) + turn + 1, total)
            for (_, _, work), times in zip(parts, seconds, strict=True):
                start = time.perf_counter()
                work(sketch)
                if turn >= 0:
                    times.append(time.perf_counter() - start)
        for (name, comparisons, _), times in zip(parts, seconds, strict=True):
            median, least, most = float(np.median(times)), min(times), max(times)
            yield Timing(sketch.scheme, sketch.perms, name, comparisons, median, least, most, runs)


def compare_timings(timings: Sequence[Timing]) -> Iterator[str]:
    """Yield for each scheme and K whether exact or estimated similarities are faster, in words.

    Estimates need the matrix, so their seconds include those of the matrix.
    """
    for at in range(0, len(timings), 3):
        exact, matrix, estimated = timings[at : at + 3]
        total = matrix.median + estimated.median
        winner = "exact is" if exact.median <= total else "estimated is"
        factor = max(exact.median, total) / max(1e-9, min(exact.median, total))
        yield (
            f"{exact.scheme}, K = {exact.perms}: {winner} {factor:.1f} x faster "
            f"(exact {exact.median:.4f} s; matrix and estimates {total:.4f} s)"
        )
