"""What the stages of matching return."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import banding
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.band_table import BandTable
from lshdup.lsh.candidates import NO_BUCKETS, Buckets, PairArrays
from lshdup.matching.pairs import Columns, Pairs, pack_pairs
from lshdup.params import BandParams, PairParams

if TYPE_CHECKING:
    from lshdup.matching.clusters import Groups


_AS_USUAL = PairParams()


@dataclass(frozen=True)
class Index:
    """A collection's band table over the first copies of its documents, the plan it was made by, and each document's first copy."""

    plan: BandPlan
    table: BandTable
    duplicate_of: NDArray[np.int64]


@dataclass(frozen=True)
class PairsFound:
    """Verified pairs of first copies, how many candidate pairs there were (-1 if all pairs were joined exactly), and in what buckets."""

    pairs: Pairs
    candidates: int
    buckets: Buckets = NO_BUCKETS


@dataclass(frozen=True)
class StoredPairs:
    """What an earlier run over the same documents has found, and how: by candidates of so many bands of so many rows."""

    found: PairsFound
    params: BandParams
    asked: PairParams
    bands: int
    rows: int

    def answers(self, plan: BandPlan, params: BandParams, asked: PairParams) -> bool:
        """Whether the pairs of this table at this threshold are among these: it was the same table, at a threshold no higher."""
        same_table = (self.bands, self.rows) == (plan.bands, plan.rows) and replace(
            self.params, threshold=params.threshold
        ) == params
        return same_table and self.asked == asked and self.params.threshold <= params.threshold

    def at_least(self, threshold: float) -> PairsFound:
        """What was found of this similarity or more."""
        return replace(self.found, pairs=self.found.pairs.at_least(threshold))

    def knows_all_it_met(self, threshold: float) -> bool:
        """Whether a pair that it met is either among these or less similar than the threshold."""
        return self.params.threshold <= threshold and self.asked == _AS_USUAL

    def unknown(
        self, signatures: NDArray[np.uint32], pieces: Iterator[PairArrays], known: list[Columns]
    ) -> Iterator[PairArrays]:
        """The candidate pairs that it has not met; of the others, those that are among these go to `known`."""
        pairs = self.found.pairs
        order = np.argsort(pairs.keys)
        keys, similarity = pairs.keys[order], pairs.similarity[order]
        for left, right in pieces:
            wanted = pack_pairs(left, right)
            at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
            is_known = keys[at] == wanted if len(keys) else np.zeros(len(wanted), bool)
            if is_known.any():
                known.append((left[is_known], right[is_known], similarity[at[is_known]]))
            left, right = left[~is_known], right[~is_known]
            met = np.empty(len(left), np.uint8)
            banding.agree_in_a_band(signatures, self.bands, self.rows, left, right, met)
            yield left[met == 0], right[met == 0]


@dataclass(frozen=True)
class ClustersFound:
    """Groups of all documents, and each document's first copy.

    compared : how many similarities of candidates were looked at; -1: groups or pairs were known. buckets : those of the table.
    lost : int64 array, documents that are not what was indexed, or could not be read again to be compared: in no group.
    """

    groups: "Groups"
    duplicate_of: NDArray[np.int64]
    compared: int = -1
    buckets: Buckets = NO_BUCKETS
    lost: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def copies(self) -> NDArray[np.bool_]:
        """Bool array of shape (n,): whether another document represents this one, and has the same shingle set."""
        own = self.groups.representative
        copies: NDArray[np.bool_] = (
            (own >= 0)
            & (own != np.arange(len(own)))
            & (self.duplicate_of == self.duplicate_of[own])
        )
        return copies


@dataclass(frozen=True)
class Neighbours:
    """Near-duplicates of one document, by similarity descending, then name: int64 and float64 arrays of shape (m,)."""

    documents: NDArray[np.int64]
    similarity: NDArray[np.float64]

    def first(self, top: int | None) -> "Neighbours":
        """The `top` most similar ones; all, if that is None."""
        return Neighbours(self.documents[:top], self.similarity[:top])
