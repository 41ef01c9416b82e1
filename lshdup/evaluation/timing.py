"""The timing experiment (R1 table 2): exact against estimated similarities of all pairs."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collect import sketch_collection
from lshdup.collection.collection import Collection
from lshdup.lsh.signatures import estimate
from lshdup.matching.similarity import all_pairs
from lshdup.params import SketchParams
from lshdup.utils.parallel import Progress, no_progress
from lshdup.utils.ragged import RaggedSets

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


def timing(
    sets: RaggedSets,
    collection: Collection,
    sketch: SketchParams,
    perms: Sequence[int],
    runs: int,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Iterator[Timing]:
    """Time exact similarities of all pairs and, for each K, the signature matrix and the estimates.

    The runs of the parts are interleaved. A first run that is not measured compiles the kernels.
    Comparisons are at most |A| + |B| - |A ∩ B| steps of a merge for an exact similarity, K hash
    values an element for the matrix (the fast scheme makes far fewer), and K rows for an estimate.
    Memory: bounded.
    """
    present = np.flatnonzero(collection.sizes > 0)
    compared = replace(collection, sets=sets.take(present))
    assert compared.sets is not None
    own = compared.sets
    n = len(present)
    pairs = n * (n - 1) // 2
    elements = int(own.sizes.sum())

    def exact() -> None:
        for _ in all_pairs(own, jobs):
            pass

    for done, k in enumerate(perms):
        params = replace(sketch, perms=k)
        signatures = sketch_collection(compared, params, jobs).signatures
        assert signatures is not None

        def matrix(params: SketchParams = params) -> None:
            sketch_collection(compared, params, jobs)

        def estimated(signatures: NDArray[np.uint32] = signatures) -> None:
            for left, right in _list_pairs(n):
                estimate(signatures, left, right, jobs)

        parts: list[tuple[str, int, Callable[[], None]]] = [
            (EXACT, elements * (n - 1), exact),
            (MATRIX, elements * k, matrix),
            (ESTIMATED, pairs * k, estimated),
        ]
        seconds: list[list[float]] = [[] for _ in parts]
        for run in range(-1, runs):
            progress("timing", done * (runs + 1) + run + 1, len(perms) * (runs + 1))
            for (_, _, work), times in zip(parts, seconds, strict=True):
                start = time.perf_counter()
                work()
                if run >= 0:
                    times.append(time.perf_counter() - start)
        for (name, comparisons, _), times in zip(parts, seconds, strict=True):
            yield Timing(
                sketch.scheme,
                k,
                name,
                comparisons,
                float(np.median(times)),
                min(times),
                max(times),
                runs,
            )


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


def _list_pairs(n: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield left and right of all pairs of the upper triangle, in pieces of complete rows."""
    at_once = max(1, _PIECE // max(1, n))
    for first in range(0, n - 1, at_once):
        rows = np.arange(first, min(first + at_once, n - 1))
        left = np.repeat(rows, n - 1 - rows)
        yield left, np.concatenate([np.arange(row + 1, n) for row in rows])
