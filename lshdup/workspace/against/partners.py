"""One near document of OTHER for each document of DOCS: enough to know what is only in DOCS, and
what may go. A list of all pairs is never made.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.run import Run
from lshdup.compare.pairs import contains, pack_pairs
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.buckets import NO_BUCKETS, Buckets
from lshdup.lsh.candidates import PairArrays, documents_to_compare
from lshdup.params import PairParams
from lshdup.workspace.against.pairs import CrossPairs, find_candidates
from lshdup.workspace.against.sides import Sides
from lshdup.workspace.against.verifying import Verifier


@dataclass(frozen=True)
class Partners:
    """A document of OTHER that is near it, for each document of DOCS; if one is the same, that one.

    there : int64 array of shape (split,), its number in OTHER; -1: none was found.
    similarity : float64 array of shape (split,); 0 without a partner.
    estimated : bool array of shape (split,), whether the similarity is an estimate.
    by_estimate : number of candidates that were decided by an estimate, rejected ones too.
    buckets : buckets of the table.
    is_exact : whether no partner was missed.
    """

    there: NDArray[np.int64]
    similarity: NDArray[np.float64]
    estimated: NDArray[np.bool_]
    by_estimate: int = 0
    buckets: Buckets = NO_BUCKETS
    is_exact: bool = False


def find_partners(
    run: Run, sides: Sides, plan: BandPlan, threshold: float, params: PairParams
) -> Partners:
    """Find a partner for each document of DOCS, by the candidates of `find_cross_pairs`.

    A document is compared until a partner is found, so that documents of one template cost a
    comparison each and no list of their pairs is made.
    """
    duplicate_of = sides.find_exact_duplicates(run)
    best = _Best(run, sides)
    best.add_same(sides.fingerprints)
    is_open = np.append(best.right < 0, np.ones(len(duplicate_of) - sides.split, bool))
    members = documents_to_compare(run, duplicate_of, sides.sizes)
    members = members[is_open[members]]
    met = find_candidates(run, sides, members, plan, params)
    verifier = Verifier(run, sides, duplicate_of, threshold, params.verify == "estimate")
    for left, right, score in verifier.verify(best.pass_open(met.pieces)):
        best.add(left, right, score)
    keys = np.sort(np.concatenate([np.zeros(0, np.uint64), *verifier.estimated]))
    pairs = pack_pairs(np.arange(sides.split), np.maximum(best.right, 0))
    best.estimated = (best.right >= 0) & contains(keys, pairs)
    found = best.finish(duplicate_of)
    return replace(found, by_estimate=verifier.by_estimate, buckets=met.buckets)


def choose_partners(run: Run, sides: Sides, across: CrossPairs) -> Partners:
    """Return the nearest partner of each document of DOCS among all pairs across the sides."""
    best = _Best(run, sides)
    best.add_same(sides.fingerprints)
    pairs = across.found.pairs
    best.add(pairs.left, pairs.right, pairs.similarity.real)
    return replace(best.finish(across.duplicate_of), is_exact=across.found.candidates < 0)


def find_same_partners(run: Run, sides: Sides, same: str) -> Partners:
    """Find a partner that is the same in text, or in bytes as well, for each document of DOCS."""
    best = _Best(run, sides)
    best.add_same(sides.prints.keys(run, same, sides.sizes))
    return best.finish(np.arange(sides.split))


class _Best:
    """The most similar partner of each document of DOCS so far.

    right, score : int64 and float64 arrays of shape (split,); -1 and 0 without a partner.
    estimated : bool array of shape (split,).
    """

    def __init__(self, run: Run, sides: Sides) -> None:
        self._run, self._sides = run, sides
        self.right = np.full(sides.split, -1, np.int64)
        self.score = np.zeros(sides.split)
        self.estimated = np.zeros(sides.split, bool)

    def add_same(self, keys: NDArray[np.uint64]) -> None:
        """Add the first document of OTHER with the same key, best with the same bytes or text.

        keys : uint64 array of shape (n,); equal keys mean equal sets; 0: no partner.
        """
        sides, prints = self._sides, self._sides.prints
        for each in (
            keys,
            prints.keys(self._run, "text", sides.sizes),
            prints.keys(self._run, "bytes", sides.sizes),
        ):
            there, first = np.unique(each[sides.split :], return_index=True)
            at = np.minimum(np.searchsorted(there, each[: sides.split]), max(len(there) - 1, 0))
            if len(there):
                same = (there[at] == each[: sides.split]) & (each[: sides.split] != 0)
                same &= (self.right >= 0) | (each is keys)
                self.right[same] = first[at[same]] + sides.split
                self.score[same] = 1.0

    def add(
        self, left: NDArray[np.uint32], right: NDArray[np.uint32], score: NDArray[np.float64]
    ) -> None:
        """Add verified pairs."""
        better = score > self.score[left]
        better |= (score == self.score[left]) & (right < self.right[left])
        left, right, score = left[better], right[better], score[better]
        order = np.lexsort(
            (-right.astype(np.int64), score)
        )  # The last one written, the best, stays.
        self.right[left[order]] = right[order]
        self.score[left[order]] = score[order]

    def pass_open(self, pieces: Iterable[PairArrays]) -> Iterator[PairArrays]:
        """Yield the pairs of documents that have no partner yet: one of each, two, four, …

        pieces : candidate pairs; those of one left document follow each other.
        """
        for left, right in pieces:
            begins = np.flatnonzero(np.diff(left, prepend=~left[:1]))
            turn = np.arange(len(left)) - np.repeat(begins, np.diff(begins, append=len(left)))
            until = 1
            while len(left):
                is_open = self.right[left] < 0
                now = is_open & (turn < until)
                yield left[now], right[now]
                later = is_open & ~now
                left, right, turn = left[later], right[later], turn[later]
                until = 2 * until + 1

    def finish(self, duplicate_of: NDArray[np.int64]) -> Partners:
        """Return the partners of all documents.

        duplicate_of : int64 array, the document of DOCS whose partner a document has too.
        """
        split = self._sides.split
        from_ = np.where(self.right < 0, duplicate_of[:split], np.arange(split))
        there = np.maximum(self.right[from_] - split, -1)
        return Partners(there, self.score[from_], self.estimated[from_])
