"""R1's table 2: how long do exact and estimated similarities of all pairs take? Called by `lshdup timing`."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lshdup.collection import Collection, sketched
from lshdup.params import SketchParams
from lshdup.ragged import RaggedSets
from lshdup.signatures import estimate
from lshdup.similarity import all_pairs


@dataclass(frozen=True)
class Timing:
    """Seconds of one part: median, smallest and largest of the runs; and how many elementary comparisons it stands for."""

    scheme: str
    perms: int
    part: str
    comparisons: int
    median: float
    smallest: float
    largest: float
    runs: int


def timing(
    sets: RaggedSets, collection: Collection, sketch: SketchParams, perms: Sequence[int], runs: int, jobs: int = 1
) -> Iterator[Timing]:
    """For each K: exact similarity of all pairs, the signature matrix, estimated similarity of all pairs; interleaved runs.

    Comparisons are the elements the two sets of a pair have together, hash values made (K an element), and rows compared (K a pair).
    Kernels are compiled, and the data touched, before the first measured run.
    """
    present = np.flatnonzero(collection.sizes > 0)
    compared = replace(collection, sets=sets.take(present))
    assert compared.sets is not None
    own = compared.sets
    n = len(present)
    left, right = np.triu_indices(n, 1)
    elements = int(own.sizes.sum())

    def exact() -> None:
        for _ in all_pairs(own, jobs):
            pass

    for k in perms:
        params = replace(sketch, perms=k)
        signatures = sketched(compared, params, jobs).signatures
        assert signatures is not None
        signed = signatures

        def matrix(params: SketchParams = params) -> None:
            sketched(compared, params, jobs)

        def estimated(signed: "np.ndarray[tuple[int, int], np.dtype[np.uint32]]" = signed) -> None:
            estimate(signed, left, right)

        parts: list[tuple[str, int, Callable[[], None]]] = [
            ("exact, all pairs", elements * (n - 1), exact),
            ("signature matrix", elements * k, matrix),
            ("estimated, all pairs", len(left) * k, estimated),
        ]
        seconds: list[list[float]] = [[] for _ in parts]
        for run in range(-1, runs):
            for (_, _, work), times in zip(parts, seconds, strict=True):
                start = time.perf_counter()
                work()
                if run >= 0:
                    times.append(time.perf_counter() - start)
        for (name, comparisons, _), times in zip(parts, seconds, strict=True):
            yield Timing(sketch.scheme, k, name, comparisons, float(np.median(times)), min(times), max(times), runs)
