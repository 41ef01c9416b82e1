"""The two measures of likeness, and every pair that one of them puts at or above a threshold.

"jaccard" is |A ∩ B| / |A ∪ B|. "containment" is |A ∩ B| / min(|A|, |B|): the share of the smaller
set that is inside the other. A pair of containment is ordered: (inside, holder), and of equal sizes
the lower number is inside.

A score of containment is one complex number, containment + similarity·i. NumPy sorts complex
numbers by their real parts, then by their imaginary parts, which is the order of the listing.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import RaggedSets, SetSource
from lshdup.base.run import Run
from lshdup.compare import containment_join, exact_join
from lshdup.compare.pairs import Columns, Pairs, Scores, gather_pairs
from lshdup.compare.results import Neighbours
from lshdup.compare.similarity import BLOCK_BYTES, jaccard
from lshdup.lsh.candidates import documents_to_compare


def join_sets(
    run: Run,
    sets: RaggedSets,
    members: NDArray[np.int64],
    threshold: float,
    measure: str,
    split: int | None = None,
) -> Pairs:
    """Return all pairs of the sets `members` at or above the threshold, none missed.

    members : int64 array of shape (m,), numbers of `sets`.
    measure : one of MEASURES.
    split : if set, only pairs of two sides, left < split <= right, whichever is inside the other.
    """
    if measure == "jaccard":
        return gather_pairs(run, exact_join.exact_pairs(run, sets, members, threshold, split))
    pieces = containment_join.containment_pairs(run, sets, members, threshold, split)

    def score() -> Iterator[Columns]:
        for inside, holder, containment, similarity in pieces:
            pair = inside, holder
            if split is not None:
                pair = np.minimum(inside, holder), np.maximum(inside, holder)
            yield *pair, containment + 1j * similarity

    pairs = gather_pairs(run, score())
    # Without any pair, NumPy would take the scores for real ones.
    return Pairs(pairs.values.astype(np.complex128), pairs.offsets, pairs.keys)


def containment(
    run: Run, sets: RaggedSets, left: NDArray[np.integer], right: NDArray[np.integer]
) -> Scores:
    """Return the scores of containment of the sets left[i] and right[i]; 0 if one is empty.

    left, right : integer arrays of shape (n_pairs,), below 2^32.

    Returns a complex128 array of shape (n_pairs,).

    >>> sets = RaggedSets.from_sets([{1, 2, 3, 4}, {1, 2, 3}, {3, 5}])
    >>> containment(Run.quiet(), sets, np.array([0, 0]), np.array([1, 2])).tolist()
    [(1+0.75j), (0.5+0.2j)]
    """
    a, b = sets.sizes[left], sets.sizes[right]
    similarity = jaccard(run, sets, left, right)
    # Sets have fewer than 2^31 elements: the rounding error of a double is far below one half.
    common = np.rint(similarity * (a + b) / (1.0 + similarity))
    scores: Scores = common / np.maximum(np.minimum(a, b), 1) + 1j * similarity
    return scores


def find_containing(
    run: Run,
    shingles: NDArray[np.uint64],
    duplicate_of: NDArray[np.int64],
    sizes: NDArray[np.int64],
    source: SetSource,
    threshold: float,
    *,
    itself: int,
) -> Neighbours:
    """Find the documents that one document is inside of, or holds, by scores of containment.

    Parameters
    ----------
    shingles : uint64 array, shingle set of the document.
    duplicate_of, sizes : int64 arrays of shape (n,), of `find_exact_duplicates`, and the number of
        shingles of each document.
    source : gives shingle sets.
    threshold : smallest containment.
    itself : number of the document if it is in the collection: it is not in the answer; else -1.

    Cost: one pass over the sets of all documents, a block in memory at a time.

    """
    members = documents_to_compare(run, duplicate_of, sizes)
    one = RaggedSets.from_sizes(shingles, np.array([len(shingles)], np.int64))
    blocks = np.cumsum(8 * sizes[members]) // BLOCK_BYTES
    scores, done = np.zeros(len(members), np.complex128), 0
    for block in np.split(members, np.flatnonzero(np.diff(blocks)) + 1):
        pool = RaggedSets.concatenate([one, source(block)])
        rows = np.arange(1, len(pool))
        scores[done : done + len(block)] = containment(run, pool, np.zeros_like(rows), rows)
        done += len(block)
        run.progress("candidates", done, len(members))
    keep = scores.real >= threshold
    return Neighbours.of(members[keep], scores[keep], duplicate_of, itself)


def relations(a_sizes: NDArray[np.int64], b_sizes: NDArray[np.int64]) -> list[str]:
    """Return which of two sets containment is about: "inside" if a is the smaller one, "holds" if
    b is, "both" if they have the same size.

    >>> relations(np.array([1, 2, 2]), np.array([2, 1, 2]))
    ['inside', 'holds', 'both']
    """
    words = ("inside", "both", "holds")
    return [words[sign + 1] for sign in np.sign(a_sizes - b_sizes).tolist()]
