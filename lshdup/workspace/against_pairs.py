"""Pairs of documents across two sides: the main path once more, and its answer. Called by against.py. Knows no terminal and no store."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import sets as kernels
from lshdup.lsh import band_table, candidates
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.candidates import Buckets, PairArrays
from lshdup.lsh.signatures import estimate
from lshdup.matching import exact_join, similarity
from lshdup.matching.copies import ExpandedPairs, expand_pairs_across
from lshdup.matching.pairs import Columns, Pairs, contains, gather_pairs, pack_pairs, unpack_pairs
from lshdup.matching.results import PairsFound
from lshdup.params import PairParams
from lshdup.utils.parallel import Progress, no_progress
from lshdup.utils.ragged import RaggedSets, distinct
from lshdup.workspace.against_sides import Sides

#: Signatures of so many pairs are compared at a time: 8 bytes each and row.
_PAIRS_AT_ONCE = 1 << 13

#: (left, right, similarity, whether that is an estimate): uint32, uint32, float64 and bool arrays.
Decided = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64], NDArray[np.bool_]]


@dataclass(frozen=True)
class Across:
    """Pairs of first copies of the two sides.

    estimated : uint64 array, the keys of those pairs whose similarity is an estimate, ascending. by_estimate : how many candidates were
    decided so, with those that were turned down.
    """

    found: PairsFound
    duplicate_of: NDArray[np.int64]
    estimated: NDArray[np.uint64]
    by_estimate: int = 0


def near_duplicates_across(
    sides: Sides,
    plan: BandPlan,
    threshold: float,
    asked: PairParams,
    *,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Across:
    """All pairs of first copies across the sides at or above the threshold, among the candidates of one band table over both.

    Similarities are exact, as long as the sets of both documents can be had. Where that of the other side cannot be had, the signatures
    decide. Documents with the same fingerprint are identical, wherever they are.
    """
    progress("candidates", 0, 0)
    duplicate_of = sides.find_exact_duplicates()
    members = sides.members(duplicate_of)
    keys = np.concatenate(
        [sides.here.band_keys(plan, jobs), sides.there.band_keys(plan, jobs)], axis=1
    )
    table = band_table.sort_keys(keys, members, jobs)
    buckets, pieces = candidates.cross_pairs(
        table, sides.split, asked.max_bucket, lambda done, n: progress("candidates", done, n)
    )
    decision = _Decision(sides, duplicate_of, threshold, asked.verify == "estimate", jobs)
    met = candidates.CandidateCounter()
    pairs = gather_pairs(decision.pairs(met.count(pieces)))
    estimated = np.sort(np.concatenate([np.zeros(0, np.uint64), *decision.estimated]))
    return Across(
        PairsFound(pairs, met.pairs, buckets), duplicate_of, estimated, decision.by_estimate
    )


def exact_near_duplicates_across(
    sides: Sides,
    sets: RaggedSets,
    threshold: float,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Across:
    """The same, no misses, by the prefix-filter join of the sets of both sides."""
    duplicate_of = sides.find_exact_duplicates()
    members = sides.members(duplicate_of)
    progress("candidates", 0, 0)
    joined = exact_join.exact_pairs(
        sets, members, threshold, jobs, sides.split, lambda done, n: progress("candidates", done, n)
    )
    return Across(
        PairsFound(gather_pairs(joined), -1, Buckets()), duplicate_of, np.zeros(0, np.uint64)
    )


class _Decision:
    """Which candidates are pairs, and by what."""

    def __init__(
        self,
        sides: Sides,
        duplicate_of: NDArray[np.int64],
        threshold: float,
        only_estimate: bool,
        jobs: int,
    ) -> None:
        self._sides = sides
        self._duplicate_of = duplicate_of
        self._threshold = threshold
        self._only_estimate = only_estimate
        self._jobs = jobs
        self._sizes, self._prints = sides.sizes, sides.fingerprints
        self._gone = np.zeros(
            len(self._sizes), bool
        )  # documents of the other side whose sets were wanted and are not to be had
        self._order: NDArray[np.int64] | None = None
        self.estimated: list[NDArray[np.uint64]] = []
        self.by_estimate = 0

    def pairs(self, pieces: Iterator[PairArrays]) -> Iterator[Columns]:
        """Those candidate pairs (left, right), uint32 arrays, that are at least as similar as the threshold, in no order."""
        for left, right in pieces:
            same = self._prints[left] == self._prints[right]
            yield left[same], right[same], np.ones(int(same.sum()))
            left, right = left[~same], right[~same]
            if self._only_estimate:
                yield self._estimated(left, right)
                continue
            possible = kernels.possible_pairs(left, right, self._sizes, self._threshold)
            left, right = left[:possible], right[:possible]
            hopeful = ~self._gone[right]
            left, right, rest = left[hopeful], right[hopeful], (left[~hopeful], right[~hopeful])
            yield from similarity.verify(
                [(left.copy(), right.copy())], self._sizes, self._sets, self._threshold, self._jobs
            )
            disappointed = self._gone[right]
            yield self._estimated(
                *(
                    np.concatenate(each)
                    for each in zip(rest, (left[disappointed], right[disappointed]), strict=True)
                )
            )

    def _sets(self, documents: NDArray[np.int64]) -> RaggedSets:
        sets = self._sides.sets(documents)
        lost = np.flatnonzero((sets.sizes == 0) & (documents >= self._sides.split))
        if len(lost):
            sets = self._with_stand_ins(sets, documents, lost)
            self._gone[documents[lost[sets.sizes[lost] == 0]]] = True
        return sets

    def _with_stand_ins(
        self, sets: RaggedSets, documents: NDArray[np.int64], lost: NDArray[np.int64]
    ) -> RaggedSets:
        """The same with the sets of copies that are still there, for those at the places `lost`."""
        split = self._sides.split
        if self._order is None:
            self._order = np.argsort(self._duplicate_of, kind="stable")
        starts, ends = (
            np.searchsorted(self._duplicate_of, documents[lost], side=side, sorter=self._order)
            for side in ("left", "right")
        )
        found = np.full(len(lost), -1)
        for number in np.flatnonzero(ends - starts > 1).tolist():
            found[number] = self._sides.there.first_there(
                self._order[starts[number] + 1 : ends[number]] - split
            )
        stand_ins = distinct(found[found >= 0])[0]
        index = np.arange(len(sets))
        index[lost[found >= 0]] = len(sets) + np.searchsorted(stand_ins, found[found >= 0])
        return RaggedSets.concatenate([sets, self._sides.there.sets(stand_ins)]).take(index)

    def _estimated(self, left: NDArray[np.uint32], right: NDArray[np.uint32]) -> Columns:
        share = np.empty(len(left))
        for start in range(0, len(left), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            a = self._sides.here.signatures(left[part].astype(np.int64))
            b = self._sides.there.signatures(right[part].astype(np.int64) - self._sides.split)
            places = np.arange(len(a))
            share[part] = estimate(
                np.concatenate([a, b]), places, places + len(a), self._jobs
            ).similarity
        keep = share >= self._threshold
        self.by_estimate += len(left)
        self.estimated.append(pack_pairs(left[keep], right[keep]))
        return left[keep], right[keep], share[keep]


class Crossing:
    """The pairs of all documents across two sides, by similarity descending, then a, then b; no file with itself.

    collapse : of copies, see `expand_pairs_across`. documents : int64 array, those in any pair, ascending.
    """

    def __init__(self, sides: Sides, across: Across, *, collapse: bool = False) -> None:
        pairs, prints = across.found.pairs, sides.fingerprints
        self._across = across
        self._listing: ExpandedPairs = expand_pairs_across(
            pairs, across.duplicate_of, _identical(pairs, prints), collapse=collapse
        )
        self.documents = self._listing.documents()
        here, there = sides.of(self.documents)
        at = {
            path: document
            for document, path in zip(
                (there + sides.split).tolist(), sides.there.identities(there), strict=True
            )
        }
        both = [
            (a, at[path])
            for a, path in zip(here.tolist(), sides.here.identities(here), strict=True)
            if path in at
        ]
        left, right = np.array(both, np.int64).reshape(-1, 2).T
        self._itself = np.sort(pack_pairs(left, right)[self._listing.holds(left, right)])

    def __len__(self) -> int:
        return self._listing.total - len(self._itself)

    @property
    def estimates(self) -> int:
        """How many of the similarities are estimates."""
        duplicate_of = self._across.duplicate_of
        itself = pack_pairs(*(duplicate_of[each] for each in unpack_pairs(self._itself)))
        return self._listing.count(self._across.estimated) - int(
            contains(self._across.estimated, itself).sum()
        )

    def pieces(self) -> Iterator[Decided]:
        """All pairs in order."""
        duplicate_of = self._across.duplicate_of
        for left, right, score in self._listing.pieces():
            if len(self._itself):
                other = ~contains(self._itself, pack_pairs(left, right))
                left, right, score = left[other], right[other], score[other]
            yield (
                left,
                right,
                score,
                contains(
                    self._across.estimated, pack_pairs(duplicate_of[left], duplicate_of[right])
                ),
            )


def _identical(pairs: Pairs, prints: NDArray[np.uint64]) -> PairArrays:
    ones = pairs.at_least(1.0)
    same = prints[ones.left] == prints[ones.right]
    return ones.left[same], ones.right[same]
