"""Pairs -> clusters of documents, each with a representative; leaders.py clusters buckets.

Representative linkage: documents are taken in order of preference. Each joins the first
representative that is at least t similar to it, or becomes one itself (leader clustering: Hartigan,
"Clustering algorithms", 1975). So every member is t similar to its representative, which is the
most preferred of its cluster. Single linkage: documents that a chain of pairs connects are one
cluster.

Of exact duplicates one document is clustered; `expand_clusters` adds the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.frozen import dataclass
from lshdup.kernels import grouping as kernels
from lshdup.kernels import union_find
from lshdup.lsh.candidates import PairArrays
from lshdup.matching import similarity
from lshdup.matching.pairs import Columns, Pairs, pack_pairs
from lshdup.utils.ragged import SetSource, offsets_of

#: Pairs whose similarity is looked up at a time.
_PIECE = 1 << 20


@dataclass(frozen=True)
class Clusters:
    """A partition of the documents that were compared.

    representative : int64 array of shape (n,), the representative of each document's cluster, which
        may be the document itself; -1 if the document was not compared.
    similarity : float64 array of shape (n,), exact, to the representative; NaN if not known yet.

    >>> clusters = Clusters(np.array([0, 0, 2, -1]), np.array([1.0, 0.9, 1.0, np.nan]))
    >>> clusters.kept.tolist(), clusters.dropped.tolist(), clusters.count
    ([0, 2], [1], 1)
    """

    representative: NDArray[np.int64]
    similarity: NDArray[np.float64]

    @classmethod
    def empty(cls, n: int) -> "Clusters":
        """Return the clusters of n documents of which none was compared."""
        return cls(np.full(n, -1, np.int64), np.full(n, np.nan))

    def assign(
        self,
        documents: NDArray[np.int64],
        representative: NDArray[np.int64],
        similarity: NDArray[np.float64] | float,
    ) -> "Clusters":
        """Set representative and similarity of documents, and return the clusters."""
        self.representative[documents] = representative
        self.similarity[documents] = similarity
        return self

    @property
    def kept(self) -> NDArray[np.int64]:
        """Return the documents that represent themselves: ascending int64 array."""
        return np.flatnonzero(self.representative == np.arange(len(self.representative)))

    @property
    def dropped(self) -> NDArray[np.int64]:
        """Return the documents with another representative: ascending int64 array."""
        own = self.representative
        return np.flatnonzero((own >= 0) & (own != np.arange(len(own))))

    @property
    def count(self) -> int:
        """Return the number of clusters of two or more."""
        return len(np.flatnonzero(self.sizes > 1))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the size of the cluster that each document represents, or 0: shape (n,)."""
        own = self.representative
        return np.bincount(own[own >= 0], minlength=len(own))

    def count_groups(self, copies: NDArray[np.int64]) -> tuple[int, int]:
        """Return the number of clusters of two or more documents, and of the documents in them.

        copies : int64 array of shape (n,), number of exact duplicates that a document stands for.
        """
        known = np.flatnonzero(self.representative >= 0)
        sizes = np.bincount(self.representative[known], copies[known])
        return int((sizes > 1).sum()), int(sizes[sizes > 1].sum())

    def without(self, lost: NDArray[np.int64]) -> "Clusters":
        """Return the clusters without documents whose content is lost.

        The documents that a lost one represented are alone from now on: their similarity to each
        other is not known, and no document may be dropped in favour of a lost one.
        """
        if not len(lost):
            return self
        is_lost = np.zeros(len(self.representative), bool)
        is_lost[lost] = True
        alone = (self.representative >= 0) & is_lost[self.representative]
        own = np.where(is_lost, -1, np.where(alone, np.arange(len(alone)), self.representative))
        return Clusters(own, np.where(is_lost, np.nan, np.where(alone, 1.0, self.similarity)))


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
    sizes = clusters.sizes
    leaders = np.flatnonzero(sizes > 1)
    leaders = leaders[np.argsort(-sizes[leaders], kind="stable")]
    number_of = np.zeros(len(sizes), np.int64)
    number_of[leaders] = np.arange(1, len(leaders) + 1)
    own = clusters.representative
    documents = np.flatnonzero((own >= 0) & (number_of[own] > 0))
    numbers = number_of[own[documents]]
    score = clusters.similarity[documents]
    order = np.lexsort((documents, -score, own[documents] != documents, numbers))
    documents, numbers, score = documents[order], numbers[order], score[order]
    smallest = score[np.cumsum(sizes[leaders]) - 1] if len(leaders) else score
    return ClusterListing(documents, numbers, smallest[numbers - 1])


def expand_clusters(
    clusters: Clusters, duplicate_of: NDArray[np.int64], preference: NDArray[np.int64]
) -> Clusters:
    """Return the clusters of all documents from clusters of one document a shingle set.

    The most preferred of the exact duplicates of a representative takes its place.

    duplicate_of : int64 array of shape (n,), of `find_exact_duplicates`.
    preference : int64 array of shape (n,), all documents, the most preferred first.
    """
    leader = clusters.representative[duplicate_of]
    is_not_compared = leader < 0
    leader = choose_representatives(duplicate_of, preference)[leader]
    leader[is_not_compared] = -1
    score = clusters.similarity[duplicate_of]
    score[is_not_compared] = np.nan
    return Clusters(leader, score)


def choose_representatives(
    duplicate_of: NDArray[np.int64], preference: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the most preferred of the exact duplicates of each d with duplicate_of[d] == d.

    Returns an int64 array of shape (n,); other elements are undefined.
    """
    best = np.empty(len(duplicate_of), np.int64)
    # NumPy writes in order: the last one written, the most preferred, stays.
    best[duplicate_of[preference[::-1]]] = preference[::-1]
    return best


def rank_documents(
    members: NDArray[np.int64], duplicate_of: NDArray[np.int64], preference: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the members in order of preference: each counts as its best exact duplicate.

    members : int64 array, documents d with duplicate_of[d] == d.
    """
    rank = np.empty(len(preference), np.uint32)
    rank[preference] = np.arange(len(preference), dtype=np.uint32)
    rank = rank[choose_representatives(duplicate_of, preference)[members]]
    order: NDArray[np.int64] = members[np.argsort(rank)]
    return order


# --- from known pairs ---


def cluster_pairs(
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
        return next(cluster_steps(pairs, ordered, n, [threshold]))
    low, high, score = _by_position(pairs.at_least(threshold), ordered, n)
    parent = np.arange(len(ordered), dtype=np.uint32)
    union_find.join_pairs(low, high, parent)
    union_find.find_roots(parent)
    to_root = np.where(parent == np.arange(len(parent)), 1.0, np.nan)
    direct = parent[high] == low
    to_root[high[direct]] = score[direct]
    return Clusters.empty(n).assign(ordered, ordered[parent], to_root)


def cluster_steps(
    pairs: Pairs, ordered: NDArray[np.int64], n: int, thresholds: Sequence[float]
) -> Iterator[Clusters]:
    """Yield the clusters by representative linkage at each of some ascending thresholds.

    pairs, ordered, n : as in `cluster_pairs`.

    Cost: one sort of the pairs, and one pass over them for each threshold.
    """
    low, high, score = _by_position(pairs.at_least(thresholds[0]), ordered, n)
    order = np.argsort(pack_pairs(low, high))
    low, high, score = low[order], high[order], score[order]
    for threshold in thresholds:
        enough = score >= threshold
        low, high, score = low[enough], high[enough], score[enough]
        offsets = offsets_of(np.bincount(low, minlength=len(ordered)).astype(np.int64))
        leader, to_leader = np.full(len(ordered), kernels.NONE, np.uint32), np.ones(len(ordered))
        kernels.assign_leaders_by_pairs(offsets, high, score, leader, to_leader)
        yield Clusters.empty(n).assign(ordered, ordered[leader], to_leader)


def _by_position(pairs: Pairs, ordered: NDArray[np.int64], n: int) -> Columns:
    """Return the pairs as positions in `ordered`, the smaller one first, and similarities."""
    position = np.full(n, kernels.NONE, np.uint32)
    position[ordered] = np.arange(len(ordered), dtype=np.uint32)
    left, right, score = pairs.part(0, len(pairs))
    a, b = position[left], position[right]
    low, high = np.minimum(a, b), np.maximum(a, b)
    is_known = high != kernels.NONE
    if not is_known.all():  # A forged artifact may hold pairs of other documents.
        low, high, score = low[is_known], high[is_known], score[is_known]
    return low, high, score


def complete_similarities(
    clusters: Clusters, sizes: NDArray[np.int64], source: SetSource, jobs: int = 1
) -> Clusters:
    """Return the clusters with unknown similarities computed; 0 where a set is lost.

    sizes, source : as in `similarity.verify`.
    """
    unknown = np.flatnonzero((clusters.representative >= 0) & np.isnan(clusters.similarity))
    if not len(unknown):
        return clusters
    completed = clusters.similarity.copy()
    completed[unknown] = 0.0
    unknown = unknown[np.argsort(clusters.representative[unknown], kind="stable")]

    def pieces() -> Iterator[PairArrays]:
        for start in range(0, len(unknown), _PIECE):
            part = unknown[start : start + _PIECE]
            yield clusters.representative[part].astype(np.uint32), part.astype(np.uint32)

    for _, right, score in similarity.verify(pieces(), sizes, source, 0.0, jobs):
        completed[right] = score
    return replace(clusters, similarity=completed)
