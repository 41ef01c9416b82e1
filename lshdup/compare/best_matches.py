"""The best match on the right side for each document of the left one: enough to know what is only
on the left side, and what may go. A list of all pairs is never made.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.params import BandParams, PairParams
from lshdup.base.ragged import distinct
from lshdup.base.run import Run
from lshdup.compare.comparing import compare, meet
from lshdup.compare.scored_pairs import contains, hold_pairs, pack_pairs, unpack_pairs
from lshdup.compare.sides import Sides
from lshdup.compare.verification import Verifier
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.candidates import NO_BUCKETS, Buckets, PairArrays, documents_to_compare


@dataclass(frozen=True)
class BestMatches:
    """A near document of the right side for each of the left side; if one is the same, that one.

    right : int64 array of shape (split,), its number on the right side; -1: none was found.
    similarity : float64 array of shape (split,); 0 without a match.
    estimated : bool array of shape (split,), whether the similarity is an estimate.
    by_estimate : number of candidates that were decided by an estimate, rejected ones too.
    buckets : buckets of the table.
    is_exact : whether no match was missed.
    """

    right: NDArray[np.int64]
    similarity: NDArray[np.float64]
    estimated: NDArray[np.bool_]
    by_estimate: int = 0
    buckets: Buckets = NO_BUCKETS
    is_exact: bool = False


def find_best_matches(
    run: Run, sides: Sides, params: BandParams, method: PairParams, plan: BandPlan | None = None
) -> BestMatches:
    """Find a match for each document of the left side. Parameters and errors: as of `compare`.

    By bands, a document is compared until a match is found, so that documents of one template cost
    a comparison each and no list of their pairs is made. Other methods find the nearest one.
    """
    best = _Best(run, sides)
    best.add_same()
    duplicate_of = sides.duplicate_of
    if method.same:
        rows = np.arange(len(best.right))
        levels = sides.prints.compare(rows, np.maximum(best.right, 0))
        best.right[levels == 0] = -1  # It shares the key only.
        return best.finish(np.arange(len(duplicate_of)))
    if not method.by_bands:
        found = compare(run, sides, params, method)
        pairs = found.pairs
        best.add(pairs.left, pairs.right, pairs.similarity.real)
        return replace(best.finish(duplicate_of), is_exact=found.candidates < 0)
    assert plan is not None
    is_open = np.append(best.right < 0, np.ones(len(duplicate_of) - len(best.right), bool))
    members = documents_to_compare(run, duplicate_of, sides.sizes)
    met = meet(run, sides, members[is_open[members]], plan, method.max_bucket)
    verifier = Verifier(run, sides, params.threshold)
    for left, right, score in verifier.verify(best.pass_open(met.pieces)):
        stays = ~hold_pairs(sides.apart.keys, left, right)
        best.add(left[stays], right[stays], score[stays])
    keys = pack_pairs(np.arange(len(best.right)), np.maximum(best.right, 0))
    best.estimated = (best.right >= 0) & contains(verifier.list_estimated(), keys)
    return replace(best.finish(duplicate_of), by_estimate=verifier.by_estimate, buckets=met.buckets)


class _Best:
    """The most similar match of each document of the left side so far.

    right, score : int64 and float64 arrays of shape (split,); -1 and 0 without a match.
    estimated : bool array of shape (split,).
    """

    def __init__(self, run: Run, sides: Sides) -> None:
        self._run, self._sides = run, sides
        split = len(sides.left.sizes)
        self.right = np.full(split, -1, np.int64)
        self.score = np.zeros(split)
        self.estimated = np.zeros(split, bool)

    def add_same(self) -> None:
        """Add the first exact duplicate on the right side, best with the same bytes or text."""
        sides, split, apart = self._sides, len(self.right), self._sides.apart.keys
        barred = distinct(unpack_pairs(apart)[0])[0]
        barred = barred[barred < split]
        texts, bytes_ = (
            sides.prints.keys(self._run, same, sides.sizes) for same in ("text", "bytes")
        )
        for keys in (sides.keys, texts, bytes_):
            there, first = np.unique(keys[split:], return_index=True)
            at = np.minimum(np.searchsorted(there, keys[:split]), max(len(there) - 1, 0))
            if len(there):
                same = (there[at] == keys[:split]) & (keys[:split] != 0)
                same &= (self.right >= 0) | (keys is sides.keys)
                same[barred] = False
                self.right[same] = first[at[same]] + split
                self.score[same] = 1.0
                for one in barred.tolist():
                    twins = np.flatnonzero(keys == keys[one])
                    twins = twins[twins >= split]
                    twins = twins[~hold_pairs(apart, np.full(len(twins), one), twins)]
                    if keys[one] and len(twins) and (self.right[one] >= 0 or keys is sides.keys):
                        self.right[one], self.score[one] = twins[0], 1.0

    def add(
        self, left: NDArray[np.uint32], right: NDArray[np.uint32], score: NDArray[np.float64]
    ) -> None:
        """Add verified pairs."""
        better = score > self.score[left]
        better |= (score == self.score[left]) & (right < self.right[left])
        left, right, score = left[better], right[better], score[better]
        # The last one written, the best, stays.
        order = np.lexsort((-right.astype(np.int64), score))
        self.right[left[order]] = right[order]
        self.score[left[order]] = score[order]

    def pass_open(self, pieces: Iterable[PairArrays]) -> Iterator[PairArrays]:
        """Yield the pairs of documents that have no match yet: one of each, two, four, …

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

    def finish(self, duplicate_of: NDArray[np.int64]) -> BestMatches:
        """Return the matches of all documents.

        duplicate_of : int64 array, the document whose match a document has too.
        """
        split = len(self.right)
        own = np.where(self.right < 0, duplicate_of[:split], np.arange(split))
        right = np.maximum(self.right[own] - split, -1)
        return BestMatches(right, self.score[own], self.estimated[own])
