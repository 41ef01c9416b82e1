"""R1's table 1: for how many pairs is the estimate off by more than epsilon? Called by `lshdup accuracy`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lshdup.collection import Collection, Progress, no_progress, sketched
from lshdup.params import SketchParams
from lshdup.ragged import RaggedSets
from lshdup.signatures import estimate
from lshdup.similarity import all_pairs


@dataclass(frozen=True)
class Accuracy:
    """Estimates of all pairs against exact similarities, mean over independent seeds.

    off : pairs whose estimate differs from the exact similarity by more than epsilon. bias : mean of estimate - exact. rmse : root of
    the mean square of it. largest : its largest absolute value in any run.
    """

    scheme: str
    perms: int
    epsilon: float
    runs: int
    pairs: int
    off: float
    bias: float
    rmse: float
    largest: float


def accuracy(
    sets: RaggedSets,
    collection: Collection,
    sketch: SketchParams,
    perms: Sequence[int],
    epsilons: Sequence[float],
    runs: int,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Iterator[Accuracy]:
    """One result for each K and epsilon; run i uses seed `sketch.seed` + i. Documents without shingles take no part.

    Cost: one exact similarity a pair and K (however many runs), K comparisons a pair and run. Memory: bounded.
    """
    present = np.flatnonzero(collection.sizes > 0)
    compared = replace(collection, sets=sets.take(present))
    assert compared.sets is not None
    n = len(present)
    pairs = n * (n - 1) // 2
    for k in perms:
        off = np.zeros(len(epsilons))
        total = squares = largest = 0.0
        signed = [sketched(compared, replace(sketch, perms=k, seed=sketch.seed + run), jobs).signatures for run in range(runs)]
        done = 0
        for first, exact in all_pairs(compared.sets, jobs):
            rows = _rows_of(n, first, len(exact))
            left = np.repeat(rows, n - 1 - rows)
            right = np.concatenate([np.arange(row + 1, n) for row in rows])
            for signatures in signed:
                assert signatures is not None
                error = estimate(signatures, left, right).similarity - exact
                off += [np.count_nonzero(np.abs(error) > epsilon) for epsilon in epsilons]
                total += float(error.sum())
                squares += float(error @ error)
                largest = max(largest, float(np.abs(error).max(initial=0.0)))
            done += len(exact)
            progress(f"K = {k}", done, pairs)
        measured = max(1, pairs * runs)
        for epsilon, count in zip(epsilons, off, strict=True):
            yield Accuracy(
                sketch.scheme, k, epsilon, runs, pairs, float(count) / runs, total / measured, (squares / measured) ** 0.5, largest
            )


def _rows_of(n: int, first: int, pairs: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The rows of the upper triangle, from `first` on, that together hold so many pairs."""
    lengths = n - 1 - np.arange(first, n)
    return np.arange(first, first + int(np.searchsorted(np.cumsum(lengths), pairs)) + 1)
