"""Results of comparing: the index, pairs, clusters, neighbours."""

from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.params import BandParams, PairParams
from lshdup.base.ragged import ranges
from lshdup.compare.scored_pairs import Pairs, Scores
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.band_table import BandTable
from lshdup.lsh.candidates import NO_BUCKETS, Buckets

if TYPE_CHECKING:
    from lshdup.compare.clusters import Clusters


@dataclass(frozen=True)
class Index:
    """The band table of a collection.

    plan : how many bands of how many rows.
    table : buckets of the documents that are compared, one of all exact duplicates.
    duplicate_of : int64 array of shape (n,), for each document the first one with the same shingle
        set.
    """

    plan: BandPlan
    table: BandTable
    duplicate_of: NDArray[np.int64]

    @cached_property
    def _copies(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The documents that another one stands for, by this one, which is returned too."""
        copies = np.flatnonzero(self.duplicate_of != np.arange(len(self.duplicate_of)))
        copies = copies[np.argsort(self.duplicate_of[copies], kind="stable")]
        return self.duplicate_of[copies], copies

    def expand(self, documents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all documents that some documents of the table stand for, in any order, and the
        place of the one that stands for each: int64 arrays.
        """
        (firsts, every), places = self._copies, np.arange(len(documents))
        start, end = (np.searchsorted(firsts, documents, side) for side in ("left", "right"))
        copies = every[ranges(start, end - start)]
        return np.append(documents, copies), np.append(places, np.repeat(places, end - start))


@dataclass(frozen=True)
class PairsFound:
    """Verified pairs of the documents of an index.

    pairs : pairs at or above the threshold.
    candidates : number of candidate pairs; -1 if the exact join found the pairs.
    buckets : buckets that the candidates came from.
    estimated : uint64 array, ascending keys of the pairs whose similarity is an estimate.
    by_estimate : number of candidates that were decided by an estimate, rejected ones too.
    """

    pairs: Pairs
    candidates: int
    buckets: Buckets = NO_BUCKETS
    estimated: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    by_estimate: int = 0


@dataclass(frozen=True)
class StoredPairs:
    """Pairs that an earlier run over the same documents found, and its parameters.

    found : verified pairs.
    band_params, pair_params : parameters of that run.
    bands, rows : bands of its table, and rows of each.
    """

    found: PairsFound
    band_params: BandParams
    pair_params: PairParams
    bands: int
    rows: int

    def covers(self, plan: BandPlan, band_params: BandParams, pair_params: PairParams) -> bool:
        """Return whether a run with these parameters finds no other pairs: same table, higher
        threshold.
        """
        mine, threshold = self.band_params, band_params.threshold
        same_table = (self.bands, self.rows) == (plan.bands, plan.rows)
        same_bands = same_table and replace(mine, threshold=threshold) == band_params
        return same_bands and self.pair_params == pair_params and mine.threshold <= threshold

    def at_least(self, threshold: float) -> PairsFound:
        """Return the pairs with at least this similarity."""
        return replace(self.found, pairs=self.found.pairs.at_least(threshold))


@dataclass(frozen=True)
class ClustersFound:
    """Clusters of all documents.

    clusters : the clusters.
    duplicate_of : int64 array of shape (n,), for each document the first one with the same shingle
        set.
    compared : number of similarities that were computed; -1: clusters or pairs were known.
    buckets : buckets of the table.
    lost : int64 array, documents that changed or could not be read again: they are in no cluster.
    """

    clusters: "Clusters"
    duplicate_of: NDArray[np.int64]
    compared: int = -1
    buckets: Buckets = NO_BUCKETS
    lost: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def copies(self) -> NDArray[np.bool_]:
        """Bool array of shape (n,): whether a document has the same shingle set as its
        representative, another one.
        """
        own = self.clusters.representative
        is_other = (own >= 0) & (own != np.arange(len(own)))
        copies: NDArray[np.bool_] = is_other & (self.duplicate_of == self.duplicate_of[own])
        return copies


@dataclass(frozen=True)
class Matches:
    """Near documents of an index for each of some documents, in any order.

    left : int64 array of shape (m,), the document that is looked up.
    documents : int64 array of shape (m,), one of the index.
    similarity : scores of shape (m,).
    estimated : bool array of shape (m,), whether the similarity is an estimate, as a set is lost.
    """

    left: NDArray[np.int64]
    documents: NDArray[np.int64]
    similarity: Scores
    estimated: NDArray[np.bool_]

    def take(self, rows: NDArray[Any]) -> "Matches":
        """Return some of the matches, by their numbers or flags."""
        columns = self.left, self.documents, self.similarity, self.estimated
        return Matches(*(column[rows] for column in columns))


@dataclass(frozen=True)
class Neighbours:
    """Near-duplicates of one document, by similarity descending, then name: int64 array and scores
    of shape (m,).
    """

    documents: NDArray[np.int64]
    similarity: Scores

    @classmethod
    def of(
        cls, near: NDArray[np.int64], scores: Scores, duplicate_of: NDArray[np.int64], itself: int
    ) -> "Neighbours":
        """Return documents with all their exact duplicates, but without one document.

        Parameters
        ----------
        near, scores : ascending int64 array of shape (m,), documents that represent their exact
            duplicates, and their similarities.
        duplicate_of : int64 array of shape (n,), of `find_exact_duplicates`.
        itself : the document to leave out; -1: none.

        """
        is_near = np.zeros(len(duplicate_of), bool)
        is_near[near] = True
        answer = np.flatnonzero(is_near[duplicate_of])
        answer = answer[answer != itself]
        scores = scores[np.searchsorted(near, duplicate_of[answer])]
        order = np.lexsort((answer, -scores))
        return cls(answer[order], scores[order])

    def take(self, rows: NDArray[np.int64]) -> "Neighbours":
        """Return some of the documents."""
        return Neighbours(self.documents[rows], self.similarity[rows])
