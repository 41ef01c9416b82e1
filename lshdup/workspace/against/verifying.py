"""Verification of pairs across two sides: by sets, or by signatures where a document is gone."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import RaggedSets, distinct
from lshdup.base.run import Run
from lshdup.compare import similarity
from lshdup.compare.pairs import Columns, pack_pairs
from lshdup.lsh.candidates import PairArrays
from lshdup.lsh.signatures import estimate
from lshdup.workspace.against.sides import Sides

#: Pairs whose signatures are compared at a time: 8 bytes a pair and row.
_PAIRS_AT_ONCE = 1 << 13


class Verifier:
    """Verification of candidates by sets where they are available, else by signatures."""

    def __init__(
        self,
        run: Run,
        sides: Sides,
        duplicate_of: NDArray[np.int64],
        threshold: float,
        only_estimate: bool,
    ) -> None:
        self._run, self._sides, self._threshold = run, sides, threshold
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
            left, right = similarity.keep_possible(left, right, self._sizes, self._threshold)
            known_gone = self._is_gone[right]
            rest = left[known_gone], right[known_gone]
            left, right = left[~known_gone], right[~known_gone]
            yield from similarity.verify(
                self._run, [(left.copy(), right.copy())], self._sizes, self._sets, self._threshold
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
                self._run, np.concatenate([a, b]), rows, rows + len(a)
            ).similarity
        keep = share >= self._threshold
        self.by_estimate += len(left)
        self.estimated.append(pack_pairs(left[keep], right[keep]))
        return left[keep], right[keep], share[keep]
