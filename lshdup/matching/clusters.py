"""Pairs -> groups of documents, each with one that represents it. Called by pipeline.py; leaders.py makes groups from buckets.

Representative linkage: documents are met in the order in which they are preferred; each joins the first representative that is at least
t similar to it, or becomes one itself (leader clustering, Hartigan 1975). So every member is t similar to its representative, which is
the most preferred of its group. Single linkage: what a chain of such pairs connects is one group.

Documents with identical shingle sets are one *kind*, called by its first copy: kinds are grouped, and `expand_groups` gives the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import grouping as kernels
from lshdup.kernels import union_find
from lshdup.lsh.candidates import PairArrays
from lshdup.matching import similarity
from lshdup.matching.pairs import Pairs, pack_pairs
from lshdup.utils.ragged import SetSource, offsets_of

#: Pairs that are looked up at a time.
_PIECE = 1 << 20


@dataclass(frozen=True)
class Groups:
    """A partition of the documents that were compared.

    representative : int64 array of shape (n,), the document that each document's group is represented by, itself if it is one; -1 : not
    compared. similarity : float64 array of shape (n,), exact, to the representative; NaN where nobody knows it yet.

    >>> groups = Groups(np.array([0, 0, 2, -1]), np.array([1.0, 0.9, 1.0, np.nan]))
    >>> groups.kept.tolist(), groups.dropped.tolist(), groups.count
    ([0, 2], [1], 1)
    """

    representative: NDArray[np.int64]
    similarity: NDArray[np.float64]

    @property
    def kept(self) -> NDArray[np.int64]:
        """Representatives, and documents that are alone: ascending int64 array."""
        return np.flatnonzero(self.representative == np.arange(len(self.representative)))

    @property
    def dropped(self) -> NDArray[np.int64]:
        """Those that another represents: ascending int64 array."""
        return np.flatnonzero(
            (self.representative >= 0)
            & (self.representative != np.arange(len(self.representative)))
        )

    @property
    def count(self) -> int:
        """Groups of two or more."""
        return len(np.flatnonzero(self.sizes > 1))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64 array of shape (n,): documents in the group that a document represents; 0 if it represents none."""
        return np.bincount(
            self.representative[self.representative >= 0], minlength=len(self.representative)
        )

    def without(self, lost: NDArray[np.int64]) -> "Groups":
        """The same without documents that cannot be had any more: in no group. Who was represented by one of them is alone: of the
        similarity to each other nobody knows anything, and nothing may be dropped for what is not there.
        """
        if not len(lost):
            return self
        is_lost = np.zeros(len(self.representative), bool)
        is_lost[lost] = True
        alone = (self.representative >= 0) & is_lost[self.representative]
        own = np.where(is_lost, -1, np.where(alone, np.arange(len(alone)), self.representative))
        return Groups(own, np.where(is_lost, np.nan, np.where(alone, 1.0, self.similarity)))


@dataclass(frozen=True)
class ClusterListing:
    """Groups of two or more, by size descending, then by representative; within one the representative, then by similarity descending.

    documents : int64 array of shape (m,). numbers : int64 array of shape (m,), of the groups, from 1. smallest : float64 array of
    shape (m,), the smallest similarity to the representative in the group.
    """

    documents: NDArray[np.int64]
    numbers: NDArray[np.int64]
    smallest: NDArray[np.float64]


def list_clusters(groups: Groups) -> ClusterListing:
    """Groups of two or more in output order."""
    sizes = groups.sizes
    leaders = np.flatnonzero(sizes > 1)
    leaders = leaders[np.argsort(-sizes[leaders], kind="stable")]
    number = np.zeros(len(sizes), np.int64)
    number[leaders] = np.arange(1, len(leaders) + 1)
    documents = np.flatnonzero((groups.representative >= 0) & (number[groups.representative] > 0))
    of_each = number[groups.representative[documents]]
    score = groups.similarity[documents]
    is_member = groups.representative[documents] != documents
    order = np.lexsort((documents, -score, is_member, of_each))
    documents, of_each, score = documents[order], of_each[order], score[order]
    smallest = score[np.cumsum(sizes[leaders]) - 1] if len(leaders) else score
    return ClusterListing(documents, of_each, smallest[of_each - 1])


def expand_groups(
    kinds: Groups, duplicate_of: NDArray[np.int64], preference: NDArray[np.int64]
) -> Groups:
    """Groups of all documents from groups of first copies; of each kind the most preferred document represents.

    duplicate_of : int64 array of shape (n,), each document's first copy. preference : int64 array of shape (n,), all documents, the most
    preferred one first.
    """
    best = choose_representatives(duplicate_of, preference)
    leader = kinds.representative[duplicate_of]
    compared = leader >= 0
    return Groups(
        np.where(compared, best[leader], -1),
        np.where(compared, kinds.similarity[duplicate_of], np.nan),
    )


def choose_representatives(
    duplicate_of: NDArray[np.int64], preference: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each first copy the most preferred document of its kind: int64 array of shape (n,)."""
    best = np.empty(len(duplicate_of), np.int64)
    best[duplicate_of[preference[::-1]]] = preference[::-1]  # the last one that is written stays
    return best


def rank_documents(
    members: NDArray[np.int64], duplicate_of: NDArray[np.int64], preference: NDArray[np.int64]
) -> NDArray[np.int64]:
    """First copies (`members`) by preference, that of a kind being that of its most preferred document: int64 array."""
    rank = np.empty(len(preference), np.int64)
    rank[preference] = np.arange(len(preference))
    order: NDArray[np.int64] = members[
        np.argsort(rank[choose_representatives(duplicate_of, preference)[members]])
    ]
    return order


# --- from pairs that are known ----------------------------------------------------------------------------------------------------


def cluster_pairs(
    pairs: Pairs,
    ordered: NDArray[np.int64],
    n: int,
    threshold: float,
    linkage: str = "representative",
) -> Groups:
    """Groups of n documents from verified pairs: those of at least `threshold`, all pairs at or above it being there.

    ordered : int64 array, those that are compared, the most preferred first (`rank_documents`). With single linkage, similarities to
    representatives that are no pair are NaN; `complete_similarities` finds them. Cost: the pairs are sorted. Memory: 30 bytes a pair.
    """
    position = np.full(n, kernels.NONE, np.uint32)
    position[ordered] = np.arange(len(ordered), dtype=np.uint32)
    enough = int(pairs.offsets[np.searchsorted(-pairs.values, -threshold, side="right")])
    left, right, score = pairs.part(0, enough)
    a, b = position[left], position[right]
    low, high = np.minimum(a, b), np.maximum(a, b)
    if (high == kernels.NONE).any():  # an artifact that says what is not so
        low, high, score = (each[high != kernels.NONE] for each in (low, high, score))
    if linkage == "single":
        parent = np.arange(len(ordered), dtype=np.uint32)
        union_find.join_pairs(low, high, parent)
        union_find.find_roots(parent)
        known = np.where(parent == np.arange(len(parent)), 1.0, np.nan)
        direct = parent[high] == low
        known[high[direct]] = score[direct]
        return groups_of_positions(ordered, parent, known, n)
    order = np.argsort(pack_pairs(low, high))
    offsets = offsets_of(np.bincount(low, minlength=len(ordered)).astype(np.int64))
    leader, found = np.full(len(ordered), kernels.NONE, np.uint32), np.ones(len(ordered))
    kernels.assign_leaders_by_pairs(offsets, high[order], score[order], leader, found)
    return groups_of_positions(ordered, leader, found, n)


def groups_of_positions(
    documents: NDArray[np.int64], leader: NDArray[np.uint32], score: NDArray[np.float64], n: int
) -> Groups:
    """From positions to documents; those that have no position are not compared."""
    groups = Groups(np.full(n, -1, np.int64), np.full(n, np.nan))
    groups.representative[documents] = documents[leader]
    groups.similarity[documents] = score
    return groups


def complete_similarities(
    groups: Groups, sizes: NDArray[np.int64], source: SetSource, jobs: int = 1
) -> Groups:
    """The same with similarities where they are not known, looked up in the sets of first copies; 0 where a set cannot be had."""
    unknown = np.flatnonzero((groups.representative >= 0) & np.isnan(groups.similarity))
    if not len(unknown):
        return groups
    found = groups.similarity.copy()
    found[unknown] = 0.0
    unknown = unknown[np.argsort(groups.representative[unknown], kind="stable")]

    def pieces() -> Iterator[PairArrays]:
        for start in range(0, len(unknown), _PIECE):
            part = unknown[start : start + _PIECE]
            yield groups.representative[part].astype(np.uint32), part.astype(np.uint32)

    for _, right, score in similarity.verify(pieces(), sizes, source, 0.0, jobs):
        found[right] = score
    return replace(groups, similarity=found)
