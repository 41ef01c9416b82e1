"""What the experiments have in common: shingle sets, signatures to measure, and all pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import RaggedSets, ranges
from lshdup.base.run import Run
from lshdup.compare.comparing import Method, compare
from lshdup.compare.scored_pairs import Pairs
from lshdup.compare.sides import Side, Sides
from lshdup.lsh.signatures import make_signatures
from lshdup.params import BandParams, PairParams, SketchParams


@dataclass(frozen=True)
class Experiment:
    """The shingle sets of an experiment, and the signatures that it measures one after the other.

    sets : of all documents.
    """

    run: Run
    sets: RaggedSets
    sketches: Sequence[SketchParams]

    @property
    def present(self) -> NDArray[np.int64]:
        """The documents that have shingles, ascending: the other ones take no part."""
        return np.flatnonzero(self.sets.sizes > 0)

    def find_true_pairs(
        self, fingerprints: NDArray[np.uint64], threshold: float, measure: str = "jaccard"
    ) -> Pairs:
        """Return all pairs from the threshold on, none missed; of exact duplicates one stands.

        fingerprints : uint64 array of shape (n,), of the sets.
        """
        # What a join takes is said of no experiment.
        run = Run(self.run.arrays, self.run.jobs, self.run.progress)
        source, sets = self.sets.take, self.sets
        side = Side(sets.sizes, fingerprints, None, source, sets=sets)
        method = Method(PairParams(measure=measure), exact=True)
        return compare(run, Sides.of(run, side), BandParams(threshold), method).pairs

    def sign(self, sets: RaggedSets, sketch: SketchParams) -> NDArray[np.uint32]:
        """Return the signatures of sets: uint32 array of shape (n_sets, K)."""
        return make_signatures(self.run, sets, sketch)


def list_pairs(n: int, first: int, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return left and right of pairs of the upper triangle, in complete rows from `first` on.

    most : the largest number of pairs, unless the first row has more.

    >>> [each.tolist() for each in list_pairs(4, 1, 2)], [list_pairs(4, 1, 9)[1].tolist()]
    ([[1, 1], [2, 3]], [[2, 3, 3]])
    """
    lengths = np.arange(n - 1 - first, 0, -1)
    lengths = lengths[: max(1, int(np.searchsorted(np.cumsum(lengths), most, side="right")))]
    rows = first + np.arange(len(lengths))
    return np.repeat(rows, lengths), ranges(rows + 1, lengths)
