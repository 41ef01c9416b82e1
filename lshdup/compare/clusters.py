"""Pairs -> clusters of documents, each with a representative; leaders.py clusters buckets.

Representative linkage: documents are taken in order of preference. Each joins the first
representative that is at least t similar to it, or becomes one itself (leader clustering: Hartigan,
"Clustering algorithms", 1975). So every member is t similar to its representative, which is the
most preferred of its cluster. Single linkage: documents that a chain of pairs connects are one
cluster.

Of exact duplicates one document is clustered; `expand_clusters` adds the others.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import rows_of, slices_of
from lshdup.base.ragged import SetSource
from lshdup.base.run import Run
from lshdup.compare import verification
from lshdup.compare.scored_pairs import Columns, Pairs, Scores
from lshdup.kernels import clusters as kernels
from lshdup.lsh.candidates import PairArrays

#: Pairs whose similarity is looked up at a time.
_PIECE = 1 << 20


@dataclass(frozen=True)
class Edges:
    """What makes an edge of two documents that may be similar, and what edges connect.

    sizes : int64 array of shape (n,), size of the set of each document.
    source : called with ascending documents for their sets; a lost set is empty.
    threshold : smallest similarity of an edge.
    linkage : "representative" or "single".
    apart : uint64 array, ascending keys of pairs that are no edges, the lower number left.
    """

    sizes: NDArray[np.int64]
    source: SetSource
    threshold: float
    linkage: str
    apart: NDArray[np.uint64]


@dataclass(frozen=True)
class Clusters:
    """A partition of the documents that were compared.

    run : makes the arrays of documents that are made of these.
    representative : int64 array of shape (n,), the representative of each document's cluster, which
        may be the document itself; -1 if the document was not compared.
    similarity : float64 array of shape (n,), exact, to the representative; NaN if not known yet.

    >>> own, score = np.array([0, 0, 2, -1]), np.array([1.0, 0.9, 1.0, np.nan])
    >>> clusters = Clusters(Run.quiet(), own, score)
    >>> clusters.kept.tolist(), clusters.dropped.tolist(), clusters.count
    ([0, 2], [1], 1)
    """

    run: Run = field(compare=False, repr=False)
    representative: NDArray[np.int64]
    similarity: NDArray[np.float64]

    @classmethod
    def empty(cls, run: Run, n: int) -> "Clusters":
        """Return the clusters of n documents of which none was compared."""
        full = run.arrays.full
        return cls(run, full(n, -1, np.int64), full(n, np.nan, np.float64))

    def assign(
        self,
        documents: NDArray[np.integer],
        representative: NDArray[np.integer],
        similarity: NDArray[np.float64] | float,
    ) -> "Clusters":
        """Set representative and similarity of documents, and return the clusters."""
        for some in slices_of(len(documents)):
            score = similarity if isinstance(similarity, float) else similarity[some]
            self.representative[documents[some]] = representative[some]
            self.similarity[documents[some]] = score
        return self

    @property
    def kept(self) -> NDArray[np.int64]:
        """Return the documents that represent themselves: ascending int64 array."""
        return self._find(lambda own, documents: own == documents)

    @property
    def dropped(self) -> NDArray[np.int64]:
        """Return the documents with another representative: ascending int64 array."""
        return self._find(lambda own, documents: (own >= 0) & (own != documents))

    def _find(
        self, condition: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
    ) -> NDArray[np.int64]:
        """Return the documents for which a condition of the representative holds."""
        own, arrays = self.representative, self.run.arrays
        return arrays.where(len(own), lambda some: condition(own[some], rows_of(some)))

    @property
    def count(self) -> int:
        """Return the number of clusters of two or more."""
        sizes = self.sizes
        return sum(int(np.count_nonzero(sizes[some] > 1)) for some in slices_of(len(sizes)))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the size of the cluster that each document represents, or 0: shape (n,)."""
        return self._sum(np.ones(1, np.int64))

    def _sum(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum of the counts of the documents that each one represents: shape (n,).

        counts : int64 array of shape (n,), or (1,) for all.
        """
        own = self.representative
        sums: NDArray[np.int64] = self.run.arrays.zeros(len(own), np.int64)
        for some in slices_of(len(own)):
            is_known = own[some] >= 0
            added = counts[some][is_known] if len(counts) > 1 else counts
            np.add.at(sums, own[some][is_known], added)
        return sums

    def group_of(self, document: int) -> list[int]:
        """Return the documents of a document's cluster, the representative first, then by
        similarity; of one that was not compared, itself.
        """
        own = self.representative[document]
        members = np.flatnonzero(self.representative == own) if own >= 0 else np.array([document])
        order = np.lexsort((members, -self.similarity[members], members != own))
        group: list[int] = members[order].tolist()
        return group

    def count_groups(self, copies: NDArray[np.int64]) -> tuple[int, int]:
        """Return the number of clusters of two or more documents, and of the documents in them.

        copies : int64 array of shape (n,), number of exact duplicates that a document stands for.
        """
        sizes = self._sum(copies)
        return int((sizes > 1).sum()), int(sizes[sizes > 1].sum())

    def without(self, lost: NDArray[np.int64]) -> "Clusters":
        """Return the clusters without documents whose content is lost.

        The documents that a lost one represented are alone from now on: their similarity to each
        other is not known, and no document may be dropped in favour of a lost one.
        """
        if not len(lost):
            return self
        is_lost: NDArray[np.bool_] = self.run.arrays.zeros(len(self.representative), np.bool_)
        is_lost[lost] = True
        alone = self._find(lambda own, _: (own >= 0) & is_lost[own])
        made = self.copy().assign(alone, alone, 1.0)
        return made.assign(lost, np.full(len(lost), -1), np.nan)

    def copy(self) -> "Clusters":
        """Return a copy, to assign other representatives in."""
        copy = self.run.arrays.copy
        return Clusters(self.run, copy(self.representative), copy(self.similarity))


@dataclass(frozen=True)
class ClusterListing:
    """Clusters of two or more in output order: by size descending, then by representative.

    Within a cluster the representative is first; the others follow by similarity descending.

    documents : int64 array of shape (m,).
    numbers : int64 array of shape (m,), numbers of the clusters, from 1.
    smallest : float64 array of shape (m,), smallest similarity of a member to the representative.
    """

    documents: NDArray[np.int64]
    numbers: NDArray[np.int64]
    smallest: NDArray[np.float64]


def list_clusters(clusters: Clusters) -> ClusterListing:
    """Return the clusters of two or more in output order."""
    sizes, arrays, own = clusters.sizes, clusters.run.arrays, clusters.representative
    n, by_size = len(sizes), sizes.__getitem__
    leaders = arrays.where(n, lambda some: by_size(some) > 1)
    leaders = arrays.take(leaders, arrays.order(len(leaders), [lambda at: -by_size(leaders[at])]))
    place_of = arrays.places(leaders, n)
    documents = arrays.where(n, lambda some: (own[some] >= 0) & (by_size(own[some]) > 1))
    score: NDArray[np.float64] = arrays.take(clusters.similarity, documents)
    order = arrays.order(
        len(documents),
        [
            lambda at: place_of[own[documents[at]]],
            lambda at: own[documents[at]] != documents[at],
            lambda at: -score[at].view(np.int64),  # As numbers that are not negative compare.
        ],
    )
    documents, score = arrays.take(documents, order), arrays.take(score, order)
    numbers = arrays.compute(
        len(documents), np.int64, lambda some: place_of[own[documents[some]]] + np.int64(1)
    )
    ends = np.cumsum(by_size(leaders)) - 1
    smallest = arrays.compute(
        len(documents), np.float64, lambda some: score[ends[numbers[some] - 1]]
    )
    return ClusterListing(documents, numbers, smallest)


def expand_clusters(
    clusters: Clusters,
    duplicate_of: NDArray[np.int64],
    preference: NDArray[np.int64],
    across: str = "",
) -> Clusters:
    """Return the clusters of all documents from clusters of one document a shingle set.

    The most preferred of the exact duplicates of a representative takes its place.

    duplicate_of : int64 array of shape (n,), of `find_exact_duplicates`.
    preference : int64 array of shape (n,), all documents, the most preferred first.
    across : the linkage, if exact duplicates are of one origin and so not compared: those of a
        representative are alone, unless by single linkage a third document connects them.
    """
    sizes = clusters.sizes if across else None
    best = choose_representatives(clusters.run, duplicate_of, preference)
    made = Clusters.empty(clusters.run, len(duplicate_of))
    for some in slices_of(len(duplicate_of)):
        own = clusters.representative[duplicate_of[some]]
        made.representative[some] = np.where(own < 0, -1, best[own])
        if sizes is not None:
            is_alone = (sizes[own] == 1) | (across != "single")
            lone = np.flatnonzero(is_alone & (own == duplicate_of[some]))
            made.representative[some][lone] = lone + some.start
        score = clusters.similarity[duplicate_of[some]]
        made.similarity[some] = np.where(own < 0, np.nan, score)
    return made


def choose_representatives(
    run: Run, duplicate_of: NDArray[np.int64], preference: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the most preferred of the exact duplicates of each d with duplicate_of[d] == d.

    Returns an int64 array of shape (n,): of every other document the document itself.
    """
    best = run.arrays.compute(len(duplicate_of), np.int64, rows_of)
    for some in reversed(list(slices_of(len(preference)))):
        # NumPy writes in order: the last one written, the most preferred, stays.
        worst_first = preference[some][::-1]
        best[duplicate_of[worst_first]] = worst_first
    return best


def rank_documents(
    run: Run,
    members: NDArray[np.int64],
    duplicate_of: NDArray[np.int64],
    preference: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the members in order of preference: each counts as its best exact duplicate.

    members : int64 array, documents d with duplicate_of[d] == d.
    """
    arrays = run.arrays
    rank = arrays.places(preference, len(preference))
    best = choose_representatives(run, duplicate_of, preference)
    order = arrays.order(len(members), [lambda at: rank[best[members[at]]]])
    return arrays.take(members, order)


# --- from known pairs ---


def cluster_pairs(
    run: Run,
    pairs: Pairs,
    ordered: NDArray[np.int64],
    n: int,
    threshold: float,
    linkage: str = "representative",
) -> Clusters:
    """Return the clusters of n documents from verified pairs.

    pairs : all pairs at or above the threshold; lower ones are ignored.
    ordered : int64 array, the documents to cluster, the most preferred first (`rank_documents`).
    linkage : "representative" or "single". With single linkage, similarities to representatives
        that are not among the pairs are NaN; `complete_similarities` computes them.

    Cost: a sort of the pairs. Memory: 30 bytes a pair.
    """
    if linkage != "single":
        return next(cluster_steps(run, pairs, ordered, n, [threshold]))
    low, high, score = _by_position(run, pairs.at_least(threshold), ordered, n)
    parent = np.arange(len(ordered), dtype=np.uint32)
    kernels.join_pairs(low, high, parent)
    kernels.find_roots(parent)
    to_root = np.where(parent == np.arange(len(parent)), 1.0, np.nan)
    direct = parent[high] == low
    to_root[high[direct]] = score[direct]
    return Clusters.empty(run, n).assign(ordered, ordered[parent], to_root)


def cluster_steps(
    run: Run, pairs: Pairs, ordered: NDArray[np.int64], n: int, thresholds: Sequence[float]
) -> Iterator[Clusters]:
    """Yield the clusters by representative linkage at each of some ascending thresholds.

    pairs, ordered, n : as in `cluster_pairs`.

    Cost: one sort of the pairs, and one pass over them for each threshold.
    """
    arrays = run.arrays
    low, high, score = _by_position(run, pairs.at_least(thresholds[0]), ordered, n)
    order = arrays.order(len(low), [low.__getitem__, high.__getitem__])
    low, high, score = (arrays.take(each, order) for each in (low, high, score))
    m = len(ordered)
    for threshold in thresholds:
        is_enough = partial(_is_at_least, score, threshold)
        low, high, score = _select(run, (low, high, score), is_enough)
        counts: NDArray[np.int64] = arrays.zeros(m + 1, np.int64)
        np.add.at(counts[1:], low, 1)
        offsets = np.cumsum(counts, out=counts)
        leader = arrays.full(m, kernels.NONE, np.uint32)
        to_leader = arrays.full(m, 1.0, np.float64)
        kernels.assign_leaders_by_pairs(offsets, high, score, leader, to_leader)
        representative = arrays.take(ordered, leader)
        yield Clusters.empty(run, n).assign(ordered, representative, to_leader)


def _by_position(run: Run, pairs: Pairs, ordered: NDArray[np.int64], n: int) -> Columns:
    """Return the pairs as positions in `ordered`, the smaller one first, and similarities."""
    arrays = run.arrays
    position, m = arrays.places(ordered, n), len(pairs)
    low, high = arrays.empty(m, np.uint32), arrays.empty(m, np.uint32)
    score = arrays.empty(m, pairs.values.dtype)
    for some in slices_of(m):
        left, right, score[some] = pairs.part(some.start, some.stop)
        a, b = position[left], position[right]
        low[some], high[some] = np.minimum(a, b), np.maximum(a, b)
    # A forged artifact may hold pairs of other documents.
    return _select(run, (low, high, score), lambda some: high[some] != kernels.NONE)


def _is_at_least(score: Scores, threshold: float, some: slice) -> NDArray[np.bool_]:
    return score[some] >= threshold


def _select(run: Run, columns: Columns, condition: Callable[[slice], NDArray[np.bool_]]) -> Columns:
    """Return the pairs for which a condition holds of the rows of a slice."""
    rows = run.arrays.where(len(columns[0]), condition)
    if len(rows) == len(columns[0]):
        return columns
    low, high, score = (run.arrays.take(column, rows) for column in columns)
    return low, high, score


def complete_similarities(run: Run, clusters: Clusters, edges: Edges) -> Clusters:
    """Return the clusters with unknown similarities computed; 0 where a set is lost."""
    unknown = np.flatnonzero((clusters.representative >= 0) & np.isnan(clusters.similarity))
    if not len(unknown):
        return clusters
    completed = clusters.copy()
    completed.similarity[unknown] = 0.0
    unknown = unknown[np.argsort(clusters.representative[unknown], kind="stable")]

    def pieces() -> Iterator[PairArrays]:
        for start in range(0, len(unknown), _PIECE):
            part = unknown[start : start + _PIECE]
            yield clusters.representative[part].astype(np.uint32), part.astype(np.uint32)

    found = verification.verify_jaccard(run, pieces(), edges.sizes, edges.source, 0.0)
    for _, right, score in found:
        completed.similarity[right] = score
    return completed
