"""The exact join: every pair of sets with similarity >= t, none missed, by prefix filtering.

It answers `--exact`, and it is the truth that `accuracy` and the tests measure the bands against.
All pairs of n documents would cost n² / 2 comparisons.

Prefixes (prefix_index.py) are indexed and looked up; sizes and positions rule out most pairs that
meet there (Xiao, Wang, Lin, Yu, "Efficient similarity joins for near duplicate detection", WWW
2008), and the rest is verified over the whole sets.
"""

import threading
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.compare import prefix_index
from lshdup.compare.scored_pairs import Columns
from lshdup.kernels import joins as kernels
from lshdup.kernels.joins import Postings, Prefixes

#: (rank, rank, similarity) of pairs.
_Piece = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def exact_pairs(
    run: Run,
    sets: RaggedSets,
    members: NDArray[np.int64],
    threshold: float,
    split: int | None = None,
) -> Iterator[Columns]:
    """Yield all pairs of the sets `members` with |A ∩ B| / |A ∪ B| >= threshold, in any order.

    Empty sets have no pairs.

    members : int64 array of shape (m,), numbers of `sets`.
    threshold : above 0, at most 1.
    split : if set, only pairs of two sides, left < split <= right; common elements within a side
        then cost nothing.

    Yields pieces of (left, right, similarity), left < right.

    Determinism: the same pieces at any number of jobs. Cost: two passes over the sets, then a step
    for each rare element that two sets share; quadratic if all sets share all elements. Memory,
    beside the sets: a quarter of their size while elements are counted, then at most 32 bytes for
    each element of a prefix, which is a share of at most 1 - t of all: 0.8 times the sets at
    t = 0.8, 4 times near 0. And 12 bytes a set, and three pieces, for each thread.
    """
    order = prefix_index.order_by_size(sets, members)
    min_shared = prefix_index.min_shared_sizes(sets.sizes[order], threshold)
    prefixes = prefix_index.choose_prefixes(run, sets, order, min_shared)
    turns = list(prefix_index.sides(order, split))
    for turn, (indexed, probing) in enumerate(turns):
        # With two sides, each set counts twice.
        def report(stage: str, done: int, n: int, before: int = turn) -> None:
            run.progress(stage, before * n + done, len(turns) * n)

        # The prefixes of other sets are empty.
        postings = prefix_index.write_postings(
            run, prefixes._replace(kept=prefixes.kept * indexed), threshold
        )
        probed = prefixes._replace(kept=prefixes.kept * probing)
        part = run.but(progress=report)
        for x, y, similarity in _probe(part, sets, order, probed, postings, threshold):
            a, b = order[x], order[y]
            yield np.minimum(a, b).astype(np.uint32), np.maximum(a, b).astype(np.uint32), similarity


def _probe(
    run: Run,
    sets: RaggedSets,
    order: NDArray[np.int64],
    prefixes: Prefixes,
    postings: Postings,
    threshold: float,
) -> Iterator[_Piece]:
    """Yield the pairs of each set with sets of lower rank: (rank, rank, similarity)."""
    n = len(order)
    # The length filter, rounded down: the kernel rules out a set too many.
    longest = np.searchsorted(prefixes.sizes, threshold * prefixes.sizes * (1 - 1e-12))
    room = max(prefix_index.PIECE, n)
    local = threading.local()

    def probe(state: NDArray[np.int64], last: int) -> _Piece:
        if not hasattr(local, "missing"):
            local.missing = np.full(n, kernels.UNMET, np.int32)
            local.met = np.empty(n, np.int64)
            local.out = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
        written = kernels.prefix_join(
            sets.values, sets.offsets, order, threshold, prefixes, postings, longest, state, last,
            local.missing, local.met, *local.out,
        )  # fmt: skip
        x, y, similarity = (column[:written].copy() for column in local.out)
        return x, y, similarity

    yield from prefix_index.run_probes(run, n, probe)
