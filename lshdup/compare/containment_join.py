"""The exact join by containment: every pair of sets with |A ∩ B| / min(|A|, |B|) >= t.

A set shares s + 1 of its |A| - ⌈t|A|⌉ + s + 1 rarest elements with each set that holds a share t of
it, for any s. These prefixes are indexed (prefix_index.py), and each set looks all its elements up
among the prefixes of smaller sets. In natural text, elements of its own rule most sets out; sets
that share a phrase only are ruled out by s.

A candidate is verified in a hash table of the larger set, until too many elements are missing: its
cost does not depend on the larger set.
"""

import threading
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import slices_of
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.compare import prefix_index
from lshdup.kernels import joins as kernels
from lshdup.kernels.joins import Postings
from lshdup.kernels.sets import mark_elements

#: Bits that mark the elements of lists, for each element.
_BITS = 16

#: One in so many of the common elements that a set needs makes its prefix longer.
_SLACK = 25

#: (inside, holder, containment, similarity) of pairs: two uint32 and two float64 arrays.
Insides = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64], NDArray[np.float64]]


def containment_pairs(
    run: Run,
    sets: RaggedSets,
    members: NDArray[np.int64],
    threshold: float,
    split: int | None = None,
    min_shared: NDArray[np.int64] | None = None,
) -> Iterator[Insides]:
    """Yield all pairs of the sets `members` with |A ∩ B| / |A| >= threshold, |A| <= |B|.

    Empty sets have no pairs. Of two sets of one size, the one of the lower number is inside.

    members : int64 array of shape (m,), numbers of `sets`.
    threshold : above 0, at most 1; a pair is in if the quotient as a double reaches it.
    split : if set, only pairs of two sides, one below `split` and one not; common elements within
        a side then cost nothing.
    min_shared : int64 array over all sets, from 1: in place of the threshold, the number of
        elements of each that a larger set must have.

    Yields pieces of (inside, holder, containment, similarity), in any order; at most
    `prefix_index.PIECE` pairs each.

    Determinism: the same pieces at any number of jobs. Cost: three passes over the sets, then a
    step for each rare element of a set that a larger one has. Memory: `planned_memory`.
    """
    order = prefix_index.order_by_size(sets, members)
    if min_shared is None:
        shared = prefix_index.min_shared_sizes(sets.sizes[order], threshold)
    else:
        shared = min_shared[order]
    prefixes = prefix_index.choose_prefixes(run, sets, order, _loosened(shared))
    outside = prefixes.sizes - prefixes.single - prefixes.kept
    turns = [
        (prefixes._replace(kept=prefixes.kept * indexed), np.flatnonzero(probing))
        for indexed, probing in prefix_index.sides(order, split)
    ]
    before = 0
    for indexed, holders in turns:

        def report(stage: str, done: int, _: int, before: int = before) -> None:
            run.progress(stage, before + done, len(order))

        before += len(holders)
        postings = prefix_index.write_postings(run, indexed, 0.0)
        part = run.but(progress=report)
        for x, y, containment, similarity in _probe(
            part, sets, order, holders, postings, outside, shared
        ):
            yield order[x].astype(np.uint32), order[y].astype(np.uint32), containment, similarity


def planned_memory(sizes: NDArray[np.int64], threshold: float, jobs: int = 1) -> int:
    """Return the bytes that `containment_pairs` needs at most, the sets themselves included.

    sizes : int64 array of shape (n,), of the sets that are compared.

    >>> planned_memory(np.full(100_000, 900), 0.8) >> 20
    1393
    """
    n, total, largest = len(sizes), int(sizes.sum()), int(sizes.max(initial=0))
    prefixes = 0
    for some in slices_of(n):
        shared = _loosened(prefix_index.min_shared_sizes(sizes[some], threshold))
        prefixes += int((sizes[some] - shared + 1).sum())
    columns = 24 * prefix_index.PIECE
    counting = 2 * total + jobs * 4 * largest
    # A list for each element of a prefix, its element, its holder, and its marks.
    probing = (24 + _BITS // 8) * prefixes + jobs * (8 * n + 36 * largest + 4 * columns)
    return 8 * total + 48 * n + 8 * prefixes + max(counting, probing)


def _loosened(min_shared: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return lower numbers of common elements, from 1, whose prefixes are longer."""
    return np.maximum(min_shared - np.minimum(min_shared // _SLACK, min_shared // 2), 1)


def _probe(
    run: Run,
    sets: RaggedSets,
    order: NDArray[np.int64],
    holders: NDArray[np.int64],
    postings: Postings,
    outside: NDArray[np.int64],
    min_shared: NDArray[np.int64],
) -> Iterator[Insides]:
    """Yield the sets inside each of `holders`: (rank, rank, containment, similarity)."""
    n, room = len(order), prefix_index.PIECE
    largest = int(sets.sizes[order[-1:]].max(initial=0))
    marks = np.zeros(len(postings.elements) * _BITS // 64 + 1, np.uint64)
    mark_elements(postings.elements, marks)
    local = threading.local()

    def probe(state: NDArray[np.int64], last: int) -> Insides:
        if not hasattr(local, "met"):
            local.hits = np.zeros(n, np.uint32)
            local.met = np.empty(n, np.uint32)
            local.own = np.empty(largest, np.uint32)
            local.table = np.empty(1 << (2 * largest).bit_length(), np.uint64)
            local.ranks = np.empty((2, room), np.uint32)
            local.shares = np.empty((2, room), np.float64)
        written = kernels.containment_join(
            sets.values, sets.offsets, order, min_shared, postings, marks, holders, state, last,
            outside, local.hits, local.met, local.own, local.table, *local.ranks, *local.shares,
        )  # fmt: skip
        x, y = local.ranks[:, :written].copy()
        containment, similarity = local.shares[:, :written].copy()
        return x, y, containment, similarity

    yield from prefix_index.run_probes(run, len(holders), probe)
