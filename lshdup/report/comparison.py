"""Why two documents match: both similarities, what their shingle sets share, and where their texts differ. Called by `lshdup show`."""

import math
from dataclasses import dataclass

import numpy as np

from lshdup.lsh.signatures import Sketcher, estimate
from lshdup.matching.similarity import jaccard
from lshdup.params import ShingleParams, SketchParams
from lshdup.report.token_diff import Change, differences
from lshdup.shingling.inspection import LocatedText, locate_tokens
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.shingling.shingler import Shingler
from lshdup.utils.ragged import RaggedSets

#: Tokens in a passage that holds two texts together, and in one that is said to have moved.
_PASSAGE = {"word": 3, "char": 9, "terms": 3, "ids": 1}
_MOVED = {"word": 8, "char": 40, "terms": 8, "ids": 1 << 40}


@dataclass(frozen=True)
class Comparison:
    """Two documents beside each other.

    similarity : exact, of the shingle sets; 0 if one has no tokens. estimate, standard_error : of signatures, where there are any. shared,
    only_a, only_b : elements of the shingle sets. removed_a, removed_b : of the whole sets, those that were not compared. a, b : the texts
    and their tokens. changes : what one must do to a to get b.
    """

    similarity: float
    estimate: float | None
    standard_error: float | None
    shared: int
    only_a: int
    only_b: int
    removed_a: int
    removed_b: int
    a: LocatedText
    b: LocatedText
    changes: list[Change]

    @property
    def counts(self) -> dict[str, int]:
        """Tokens of each kind of change."""
        found: dict[str, int] = {}
        for change in self.changes:
            found[change.kind] = found.get(change.kind, 0) + change.tokens
        return found


def compare(
    text_a: bytes,
    text_b: bytes,
    params: ShingleParams,
    sketch: SketchParams | None = None,
    shingle_filter: ShingleFilter | None = None,
) -> Comparison:
    """Compare two texts (valid UTF-8; ids: blank-separated numbers).

    sketch : how the signatures are made that give the estimate; of a scheme that can make those of two documents alone. removal : what is
    removed from both sets before they are compared. Cost: n log n in the length of the texts. Memory: about 100 bytes a token.
    """
    shingler = Shingler(params)
    sets = RaggedSets.concatenate(
        [shingler.shingle_texts([text]).copy() for text in (text_a, text_b)]
    )
    whole = sets.sizes
    if shingle_filter is not None:
        sets = shingle_filter.apply(sets)
    one, other = np.array([0]), np.array([1])
    shared = len(np.intersect1d(sets[0], sets[1], assume_unique=True))
    similarity = float(jaccard(sets, one, other)[0])
    estimated = standard_error = None
    if sketch is not None and all(sets.sizes):
        estimated = float(estimate(Sketcher(sketch).sketch(sets), one, other).similarity[0])
        standard_error = math.sqrt(
            similarity * (1 - similarity) / sketch.perms
        )  # of the true similarity: it is known here
    a, b = locate_tokens(text_a, params), locate_tokens(text_b, params)
    changes = differences(a.tokens, b.tokens, _PASSAGE[params.tokens], _MOVED[params.tokens])
    (only_a, only_b), (removed_a, removed_b) = (
        (sets.sizes - shared).tolist(),
        (whole - sets.sizes).tolist(),
    )
    return Comparison(
        similarity,
        estimated,
        standard_error,
        shared,
        only_a,
        only_b,
        removed_a,
        removed_b,
        a,
        b,
        changes,
    )
