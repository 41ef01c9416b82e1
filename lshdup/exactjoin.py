"""Every pair of sets with similarity >= t, no misses: a prefix-filter join. Called by pipeline.py for `--exact`.

Two sets that are t similar must share an element among the first few of each, if both are read in one global order, rarest
first (Bayardo, Ma, Srikant, WWW 2007). So only those first few are indexed and looked up.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import sets as kernels
from lshdup.ragged import RaggedSets, offsets_of, ranges

#: The least number of pairs a piece has room for.
PIECE = 1 << 18


def exact_pairs(
    sets: RaggedSets, members: NDArray[np.int64], threshold: float
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
    """Pieces of (left, right, similarity) over the sets `members` (int64 array), left < right, in no order.

    left, right : int64, numbers of `sets`. similarity : float64, |A ∩ B| / |A ∪ B|. Empty sets are near nothing.
    Memory: about 20 bytes an element. Cost: depends on how rare the rarest elements are; quadratic if all sets share all of them.
    """
    members = members[np.argsort(sets.sizes[members], kind="stable")]
    ordered = sets.take(members)
    ranks, elements = _ranks(ordered)
    n = len(members)
    prefix = np.minimum(ordered.sizes, ordered.sizes - np.ceil(threshold * ordered.sizes * (1 - 1e-12)).astype(np.int64) + 2)
    prefix_ranks = ranks[ranges(ordered.offsets[:-1], prefix)]
    list_starts = offsets_of(np.bincount(prefix_ranks, minlength=elements).astype(np.int64))
    postings = int(list_starts[-1])
    list_starts = list_starts[:-1].copy()
    list_fill = np.zeros(elements, np.int64)
    posting_set = np.empty(postings, np.uint32)
    posting_place = np.empty(postings, np.uint32)
    counts = np.zeros(n, np.uint32)
    touched = np.empty(n, np.int64)
    room = max(PIECE, n)
    left, right, similarity = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    state = np.zeros(1, np.int64)
    while state[0] < n:
        written = kernels.prefix_join(
            ranks, ordered.offsets, threshold, state, list_starts, list_fill, posting_set, posting_place,
            counts, touched, left, right, similarity,
        )  # fmt: skip
        a, b = members[left[:written]], members[right[:written]]
        yield np.minimum(a, b), np.maximum(a, b), similarity[:written].copy()


def _ranks(sets: RaggedSets) -> tuple[NDArray[np.uint32], int]:
    """Elements renumbered rarest first, ascending within each set; and how many different ones there are."""
    elements, inverse, frequency = np.unique(sets.values, return_inverse=True, return_counts=True)
    rank = np.empty(len(elements), np.uint32)
    rank[np.argsort(frequency, kind="stable")] = np.arange(len(elements), dtype=np.uint32)
    ranks = rank[inverse]
    owner = np.repeat(np.arange(len(sets)), sets.sizes)
    return ranks[np.lexsort((ranks, owner))], len(elements)
