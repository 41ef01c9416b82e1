"""Clusters -> their central documents: `--keep central`.

The central document of a cluster has the largest sum of exact similarities to all documents of it.
With representative linkage every member must be t similar to the document that is kept. So clusters
are made by the default order first, and only members that are t similar to all others can be
central; the first representative always is.
"""

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import StringTable, cut_offsets, offsets_of, ranges
from lshdup.base.run import Run
from lshdup.compare import verification
from lshdup.compare.clusters import Clusters, Edges
from lshdup.compare.scored_pairs import hold_pairs
from lshdup.lsh.candidates import PairArrays

#: Pairs that are compared at a time, 8 bytes each.
PIECE = 1 << 20

#: Elements of the sets of a block: two blocks are compared with each other in memory.
BLOCK = verification.SET_BYTES // 64

#: More similarities are announced: they take seconds.
_MANY_COMPARISONS = 1 << 22

#: Sums that differ by a smaller share are equal: floating-point sums depend on their order.
_TIE = 1e-9


def choose_medoids(
    run: Run,
    clusters: Clusters,
    ordered: NDArray[np.int64],
    duplicate_of: NDArray[np.int64],
    edges: Edges,
    level: NDArray[np.int64],
    names: StringTable,
) -> Clusters:
    """Return the clusters with their central documents as representatives. Much work is said
    before.

    The similarities to the new representatives are unknown (NaN) in the result;
    `complete_similarities` computes them.

    clusters : of one document a shingle set. Exact duplicates count as often as they are there.
    ordered : int64 array, these documents by preference; the first of equal sums is central.
    duplicate_of : int64 array of shape (n,), of `find_exact_duplicates`.
    edges : with single linkage, any member can be central, since members may be less similar than
        t.
    level : int64 array of shape (n,); only documents of the representative's level can be central.
    names : of all documents.

    Cost: m (m - 1) / 2 similarities for a cluster of m distinct sets. Memory: as
    `verification.verify_jaccard`, and 100 bytes for each document in a cluster.
    """
    n = len(duplicate_of)
    rank = run.arrays.places(ordered, n)
    own = clusters.representative
    members = np.flatnonzero((own >= 0) & (clusters.sizes[own] > 1))
    members = members[np.lexsort((rank[members], rank[own[members]]))]
    first = np.flatnonzero(np.diff(own[members], prepend=-1))
    counts = np.diff(first, append=len(members))
    pairs = int((counts * (counts - 1) // 2).sum())
    if not len(members):
        return clusters
    if pairs > _MANY_COMPARISONS:
        largest = int(counts.argmax())
        run.say(
            f"--keep central compares all documents of a group: {pairs:,} similarities; "
            f"the largest group has {counts[largest]:,} different documents, one is "
            f"{os.fsdecode(names[members[first[largest]]])}"
        )
    position = run.arrays.places(members, n)
    weight = np.bincount(duplicate_of, minlength=n)[members]
    total = weight.astype(np.float64)  # Each document is like itself.
    can_lead = np.ones(len(members), bool)
    documents, done = members.astype(np.uint32), 0

    def pieces() -> Iterator[PairArrays]:
        for left, right in pairs_within(counts, edges.sizes[members]):
            yield documents[left], documents[right]

    found = verification.verify_jaccard(run, pieces(), edges.sizes, edges.source, 0.0)
    for left, right, score in found:
        a, b = position[left], position[right]
        np.add.at(total, a, score * weight[b])
        np.add.at(total, b, score * weight[a])
        if edges.linkage == "representative":
            below = (score < edges.threshold) | hold_pairs(edges.apart, left, right)
            can_lead[a[below]] = can_lead[b[below]] = False
        done += len(score)
        run.progress("groups", done, pairs)
    can_lead[first] = True
    can_lead &= level[members] == np.repeat(level[members[first]], counts)
    total[~can_lead] = -np.inf
    best = np.repeat(np.maximum.reduceat(total, first), counts)
    winners = np.flatnonzero(total >= best * (1 - _TIE))
    medoid = members[winners[np.searchsorted(winners, first)]]  # By preference within a cluster.
    result = clusters.copy().assign(members, np.repeat(medoid, counts), np.nan)
    return result.assign(medoid, medoid, 1.0)


def pairs_within(
    counts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield all pairs of positions within clusters, in pieces of about PIECE.

    Clusters stand one after the other; large ones are cut into blocks of sets, and their pairs come
    block by block.

    counts : int64 array, positions of each cluster.
    sizes : int64 array, elements of the set at each position.
    """
    ends = offsets_of(sizes)
    starts = offsets_of(counts)
    elements = np.diff(ends[starts])
    small, large = np.flatnonzero(elements <= BLOCK), np.flatnonzero(elements > BLOCK)
    rows = ranges(starts[small], counts[small])
    stops = np.repeat(starts[small + 1], counts[small])
    yield from pairs_of_rows(rows, rows + 1, stops)
    for cluster in large.tolist():
        begin, stop = int(starts[cluster]), int(starts[cluster + 1])
        blocks = cut_offsets(ends[begin : stop + 1], BLOCK)
        cuts = [begin, *(begin + block.stop for block in blocks)]
        for block, upper in enumerate(cuts[:-1]):
            rows = np.arange(upper, cuts[block + 1])
            for low, high in zip(cuts[block:-1], cuts[block + 1 :], strict=True):
                yield from pairs_of_rows(rows, np.maximum(rows + 1, low), np.full(len(rows), high))


def pairs_of_rows(
    rows: NDArray[np.int64], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the pairs of each row with starts[i] … stops[i] - 1."""
    for part in cut_offsets(offsets_of(stops - starts), PIECE):
        counts = stops[part] - starts[part]
        if counts.any():
            yield np.repeat(rows[part], counts), ranges(starts[part], counts)
