"""Pairs across two sides: candidates of one band table over both, verified, and expanded to exact
duplicates.

A variation of `pipeline.find_near_duplicates`. Knows no terminal and no store.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.compare.copies import ExpandedPairs, expand_pairs
from lshdup.compare.measures import join_sets
from lshdup.compare.pairs import Pairs, contains, gather_pairs, pack_pairs, unpack_pairs
from lshdup.compare.results import PairsFound
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.band_table import sort_keys
from lshdup.lsh.candidates import (
    CandidateCounter,
    Candidates,
    PairArrays,
    candidate_pairs,
    documents_to_compare,
    find_exact_duplicates,
)
from lshdup.params import PairParams
from lshdup.workspace.against.sides import Sides
from lshdup.workspace.against.verifying import Verifier

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
    run: Run, sides: Sides, plan: BandPlan, threshold: float, params: PairParams
) -> CrossPairs:
    """Find pairs across the sides among the candidates of one band table over both.

    Similarities are exact as long as the sets of both documents are available. Where the set of a
    document there is not, signatures decide; equal fingerprints mean equal sets.
    """
    duplicate_of = sides.find_exact_duplicates(run)
    members = documents_to_compare(run, duplicate_of, sides.sizes)
    met = find_candidates(run, sides, members, plan, params)
    verifier = Verifier(run, sides, duplicate_of, threshold, params.verify == "estimate")
    counter = CandidateCounter()
    pairs = gather_pairs(run, verifier.verify(counter.count(met.pieces)))
    estimated = np.sort(np.concatenate([np.zeros(0, np.uint64), *verifier.estimated]))
    found = PairsFound(pairs, counter.pairs, met.buckets)
    return CrossPairs(found, duplicate_of, estimated, verifier.by_estimate)


def find_candidates(
    run: Run, sides: Sides, members: NDArray[np.int64], plan: BandPlan, params: PairParams
) -> Candidates:
    """Return the candidate pairs across both sides, of one band table over both.

    members : ascending int64 array, the documents in the table.
    """
    run.progress("candidates", 0, 0)
    table = sort_keys(run, sides.build_band_keys(run, plan), members)
    met = candidate_pairs(run, table, params.max_bucket, sides.split)
    sides.expect(met.documents)
    return met


def find_cross_pairs_exactly(
    run: Run, sides: Sides, sets: RaggedSets, threshold: float
) -> CrossPairs:
    """Find all pairs across the sides, none missed, by the prefix-filter join."""
    run.progress("candidates", 0, 0)
    duplicate_of = sides.find_exact_duplicates(run)
    members = documents_to_compare(run, duplicate_of, sides.sizes)
    pairs = join_sets(run, sets, members, threshold, "jaccard", sides.split)
    return CrossPairs(PairsFound(pairs, -1), duplicate_of, np.zeros(0, np.uint64))


def find_same_pairs(run: Run, sides: Sides, same: str) -> CrossPairs:
    """Find all pairs across the sides that are the same in text, or in bytes as well."""
    keys = sides.prints.keys(run, same, sides.sizes)
    here, there = keys[: sides.split], keys[sides.split :]
    duplicate_of = np.concatenate(
        [find_exact_duplicates(run, here), find_exact_duplicates(run, there) + sides.split]
    )
    firsts = documents_to_compare(run, duplicate_of, sides.sizes)
    left, right = sides.separate(firsts)
    _, at_left, at_right = np.intersect1d(
        here[left], there[right], assume_unique=True, return_indices=True
    )
    a, b = left[at_left].astype(np.uint32), (right[at_right] + sides.split).astype(np.uint32)
    pairs = gather_pairs(run, [(a, b, np.ones(len(a)))])
    return CrossPairs(PairsFound(pairs, -1), duplicate_of, np.zeros(0, np.uint64))


class ExpandedCrossPairs:
    """Pairs of all documents across two sides, in output order; no file is paired with itself.

    Parameters
    ----------
    sides : the two sides.
    pairs : verified pairs.
    collapse : list each further exact duplicate once, see `expand_pairs`.

    documents : ascending int64 array, documents that are in any pair.

    """

    def __init__(
        self, run: Run, sides: Sides, pairs: CrossPairs, *, collapse: bool = False
    ) -> None:
        self._pairs = pairs
        same = _select_identical(pairs.found.pairs, sides.fingerprints)
        self._expanded: ExpandedPairs = expand_pairs(
            run, pairs.found.pairs, pairs.duplicate_of, across=same, collapse=collapse
        )
        self.documents = self._expanded.documents()
        left, right = sides.match_paths(*sides.separate(self.documents))
        right += sides.split
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
