"""Pairs across two sides: candidates of one band table over both, verified, and expanded to exact
duplicates.

A variation of `pipeline.find_near_duplicates`. Knows no terminal and no store.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.frozen import dataclass
from lshdup.kernels import sets as kernels
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.band_table import sort_keys
from lshdup.lsh.candidates import (
    CandidateCounter,
    PairArrays,
    candidate_pairs,
    documents_to_compare,
    find_exact_duplicates,
)
from lshdup.lsh.signatures import estimate
from lshdup.matching import similarity
from lshdup.matching.copies import ExpandedPairs, expand_pairs
from lshdup.matching.measures import join_sets
from lshdup.matching.pairs import Columns, Pairs, contains, gather_pairs, pack_pairs, unpack_pairs
from lshdup.matching.results import PairsFound
from lshdup.params import PairParams
from lshdup.utils.parallel import Progress, no_progress
from lshdup.utils.ragged import RaggedSets, distinct
from lshdup.workspace.against_sides import Sides

#: Pairs whose signatures are compared at a time: 8 bytes a pair and row.
_PAIRS_AT_ONCE = 1 << 13

#: (left, right, similarity, whether it is an estimate): uint32, uint32, float64 and bool arrays.
VerifiedColumns = tuple[
    NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64], NDArray[np.bool_]
]


@dataclass(frozen=True)
class CrossPairs:
    """Verified pairs across two sides, of documents that stand for their exact duplicates.

    found : the pairs.
    duplicate_of : int64 array of shape (n,), for each document the first one of its side with the
        same set.
    estimated : uint64 array, ascending keys of the pairs whose similarity is an estimate.
    by_estimate : number of candidates that were decided by an estimate, rejected ones too.
    """

    found: PairsFound
    duplicate_of: NDArray[np.int64]
    estimated: NDArray[np.uint64]
    by_estimate: int = 0


def find_cross_pairs(
    sides: Sides,
    plan: BandPlan,
    threshold: float,
    params: PairParams,
    *,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> CrossPairs:
    """Find pairs across the sides among the candidates of one band table over both.

    Similarities are exact as long as the sets of both documents are available. Where the set of a
    document there is not, signatures decide; equal fingerprints mean equal sets.
    """
    progress("candidates", 0, 0)
    duplicate_of = sides.find_exact_duplicates()
    members = documents_to_compare(duplicate_of, sides.sizes)
    table = sort_keys(sides.build_band_keys(plan, jobs), members, jobs)
    buckets, pieces = candidate_pairs(
        table, params.max_bucket, lambda done, n: progress("candidates", done, n), sides.split
    )
    verifier = _Verifier(sides, duplicate_of, threshold, params.verify == "estimate", jobs)
    counter = CandidateCounter()
    pairs = gather_pairs(verifier.verify(counter.count(pieces)))
    estimated = np.sort(np.concatenate([np.zeros(0, np.uint64), *verifier.estimated]))
    found = PairsFound(pairs, counter.pairs, buckets)
    return CrossPairs(found, duplicate_of, estimated, verifier.by_estimate)


def find_cross_pairs_exactly(
    sides: Sides,
    sets: RaggedSets,
    threshold: float,
    jobs: int = 1,
    progress: Progress = no_progress,
    measure: str = PairParams().measure,
) -> CrossPairs:
    """Find all pairs across the sides, none missed, by the prefix-filter join.

    measure : one of MEASURES.
    """
    progress("candidates", 0, 0)
    duplicate_of = sides.find_exact_duplicates()
    members = documents_to_compare(duplicate_of, sides.sizes)
    pairs = join_sets(
        sets,
        members,
        threshold,
        measure,
        jobs,
        sides.split,
        lambda done, n: progress("candidates", done, n),
    )
    return CrossPairs(PairsFound(pairs, -1), duplicate_of, np.zeros(0, np.uint64))


def find_same_pairs(sides: Sides, same: str) -> CrossPairs:
    """Find all pairs across the sides that are the same in text, or in bytes as well."""
    keys = sides.prints.keys(same, sides.sizes)
    here, there = keys[: sides.split], keys[sides.split :]
    duplicate_of = np.concatenate(
        [find_exact_duplicates(here), find_exact_duplicates(there) + sides.split]
    )
    firsts = documents_to_compare(duplicate_of, sides.sizes)
    left, right = sides.separate(firsts)
    _, at_left, at_right = np.intersect1d(
        here[left], there[right], assume_unique=True, return_indices=True
    )
    a, b = left[at_left].astype(np.uint32), (right[at_right] + sides.split).astype(np.uint32)
    pairs = gather_pairs([(a, b, np.ones(len(a)))])
    return CrossPairs(PairsFound(pairs, -1), duplicate_of, np.zeros(0, np.uint64))


class _Verifier:
    """Verification of candidates by sets where they are available, else by signatures."""

    def __init__(
        self,
        sides: Sides,
        duplicate_of: NDArray[np.int64],
        threshold: float,
        only_estimate: bool,
        jobs: int,
    ) -> None:
        self._sides, self._threshold, self._jobs = sides, threshold, jobs
        self._only_estimate = only_estimate
        self._sizes, self._prints = sides.sizes, sides.fingerprints
        self._is_gone = np.zeros(
            len(self._sizes), bool
        )  # documents there whose sets are unavailable
        self._duplicate_of = duplicate_of
        self._by_duplicate: NDArray[np.int64] | None = None
        self.estimated: list[NDArray[np.uint64]] = []
        self.by_estimate = 0

    def verify(self, pieces: Iterable[PairArrays]) -> Iterator[Columns]:
        """Yield the candidate pairs whose similarity is at least the threshold."""
        for left, right in pieces:
            same = self._prints[left] == self._prints[right]
            yield left[same], right[same], np.ones(int(same.sum()))
            left, right = left[~same], right[~same]
            if self._only_estimate:
                yield self._estimate(left, right)
                continue
            possible = kernels.possible_pairs(left, right, self._sizes, self._threshold)
            left, right = left[:possible], right[:possible]
            known_gone = self._is_gone[right]
            rest = left[known_gone], right[known_gone]
            left, right = left[~known_gone], right[~known_gone]
            yield from similarity.verify(
                [(left.copy(), right.copy())], self._sizes, self._sets, self._threshold, self._jobs
            )
            found_gone = self._is_gone[right]
            yield self._estimate(
                np.concatenate([rest[0], left[found_gone]]),
                np.concatenate([rest[1], right[found_gone]]),
            )

    def _sets(self, documents: NDArray[np.int64]) -> RaggedSets:
        sets = self._sides.sets(documents)
        lost = np.flatnonzero((sets.sizes == 0) & (documents >= self._sides.split))
        if len(lost):
            sets = self._replace_by_duplicates(sets, documents, lost)
            self._is_gone[documents[lost[sets.sizes[lost] == 0]]] = True
        return sets

    def _replace_by_duplicates(
        self, sets: RaggedSets, documents: NDArray[np.int64], lost: NDArray[np.int64]
    ) -> RaggedSets:
        """Return the sets; for positions in `lost`, sets of exact duplicates whose files exist."""
        split = self._sides.split
        if self._by_duplicate is None:
            self._by_duplicate = np.argsort(self._duplicate_of, kind="stable")
        starts, ends = (
            np.searchsorted(
                self._duplicate_of, documents[lost], side=side, sorter=self._by_duplicate
            )
            for side in ("left", "right")
        )
        found = np.full(len(lost), -1)
        for number in np.flatnonzero(ends - starts > 1).tolist():
            others = self._by_duplicate[starts[number] + 1 : ends[number]] - split
            found[number] = self._sides.there.find_existing(others)
        usable = distinct(found[found >= 0])[0]
        index = np.arange(len(sets))
        index[lost[found >= 0]] = len(sets) + np.searchsorted(usable, found[found >= 0])
        return RaggedSets.concatenate([sets, self._sides.there.source(usable)]).take(index)

    def _estimate(self, left: NDArray[np.uint32], right: NDArray[np.uint32]) -> Columns:
        share = np.empty(len(left))
        for start in range(0, len(left), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            a = self._sides.here.signatures[left[part].astype(np.int64)]
            b = self._sides.there.signatures[right[part].astype(np.int64) - self._sides.split]
            rows = np.arange(len(a))
            share[part] = estimate(
                np.concatenate([a, b]), rows, rows + len(a), self._jobs
            ).similarity
        keep = share >= self._threshold
        self.by_estimate += len(left)
        self.estimated.append(pack_pairs(left[keep], right[keep]))
        return left[keep], right[keep], share[keep]


class ExpandedCrossPairs:
    """Pairs of all documents across two sides, in output order; no file is paired with itself.

    Parameters
    ----------
    sides : the two sides.
    pairs : verified pairs.
    collapse : list each further exact duplicate once, see `expand_pairs`.

    documents : ascending int64 array, documents that are in any pair.

    """

    def __init__(self, sides: Sides, pairs: CrossPairs, *, collapse: bool = False) -> None:
        self._pairs = pairs
        same = _select_identical(pairs.found.pairs, sides.fingerprints)
        self._expanded: ExpandedPairs = expand_pairs(
            pairs.found.pairs, pairs.duplicate_of, across=same, collapse=collapse
        )
        self.documents = self._expanded.documents()
        here, there = sides.separate(self.documents)
        paths = sides.there.resolve_paths(there)
        by_path = dict(zip(paths, (there + sides.split).tolist(), strict=True))
        both = [
            (document, by_path[path])
            for document, path in zip(here.tolist(), sides.here.resolve_paths(here), strict=True)
            if path in by_path
        ]
        left, right = np.array(both, np.int64).reshape(-1, 2).T
        keys = pack_pairs(left, right)
        self._itself = np.sort(keys[self._expanded.holds(left, right)])

    def __len__(self) -> int:
        return self._expanded.total - len(self._itself)

    @property
    def estimates(self) -> int:
        """Number of pairs whose similarity is an estimate."""
        duplicate_of, estimated = self._pairs.duplicate_of, self._pairs.estimated
        itself = pack_pairs(*(duplicate_of[each] for each in unpack_pairs(self._itself)))
        return self._expanded.count(estimated) - int(contains(estimated, itself).sum())

    def pieces(self) -> Iterator[VerifiedColumns]:
        """Yield all pairs in order."""
        duplicate_of, estimated = self._pairs.duplicate_of, self._pairs.estimated
        for left, right, score in self._expanded.pieces():
            if len(self._itself):
                other = ~contains(self._itself, pack_pairs(left, right))
                left, right, score = left[other], right[other], score[other]
            keys = pack_pairs(duplicate_of[left], duplicate_of[right])
            yield left, right, score, contains(estimated, keys)


def _select_identical(pairs: Pairs, prints: NDArray[np.uint64]) -> PairArrays:
    """Return the pairs of documents with the same shingle set."""
    ones = pairs.at_least(1.0)
    same = prints[ones.left] == prints[ones.right]
    return ones.left[same], ones.right[same]
