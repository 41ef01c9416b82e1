"""The main path: a collection of signatures -> band table -> candidate pairs -> verified pairs.

Read `banded` and `near_duplicates`: they are the table of contents; what comes before them is `collection.collect`. Knows no terminal
and no store; takes a callback for progress.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup import bands, candidates, similarity
from lshdup.bands import BandPlan, BandTable
from lshdup.candidates import NO_BUCKETS, Buckets, Pair
from lshdup.collection import Collection, Progress, no_progress
from lshdup.copies import Listing, listing
from lshdup.pairs import Columns, Pairs, gathered
from lshdup.params import BandParams, PairParams
from lshdup.ragged import RaggedSets
from lshdup.signatures import estimate
from lshdup.similarity import SetSource

_AS_USUAL = PairParams()


@dataclass(frozen=True)
class Banded:
    """A collection's band table over the first copies of its documents, the plan it was made by, and each document's first copy."""

    plan: BandPlan
    table: BandTable
    firsts: NDArray[np.int64]


def members(collection: Collection, firsts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Documents that take part in comparisons: the first of each kind that has tokens; ascending int64 array."""
    return np.flatnonzero((firsts == np.arange(len(firsts))) & (collection.sizes > 0))


def banded(collection: Collection, params: BandParams, jobs: int = 1) -> Banded:
    """Plan the bands and make the table. Raises ParameterError if no plan keeps the promise."""
    assert collection.signatures is not None
    plan = bands.plan_bands(collection.signatures.shape[1], params)
    firsts = candidates.first_copies(collection.fingerprints)
    return Banded(plan, bands.band_table(collection.signatures, members(collection, firsts), plan, jobs), firsts)


@dataclass(frozen=True)
class Found:
    """Verified pairs of first copies, how many candidate pairs there were (-1 if all pairs were joined exactly), and in what buckets."""

    pairs: Pairs
    candidates: int
    buckets: Buckets = NO_BUCKETS


def near_duplicates(
    collection: Collection,
    made: Banded,
    source: SetSource,
    threshold: float,
    params: PairParams = _AS_USUAL,
    *,
    jobs: int = 1,
    progress: Progress = no_progress,
    on_buckets: Callable[[Buckets], None] = lambda _: None,
) -> Found:
    """All pairs of first copies at or above the threshold among the candidates; `with_copies` adds the rest.

    on_buckets : told about the buckets before their pairs are looked at.
    """
    progress("candidates", 0, 0)
    buckets, pieces = candidates.candidate_pairs(made.table, params.max_bucket, lambda done, n: progress("candidates", done, n))
    on_buckets(buckets)
    met = 0

    def counted() -> Iterator[Pair]:
        nonlocal met
        for left, right in pieces:
            met += len(left)
            yield left, right

    if params.verify == "estimate":
        found = _estimated(collection, counted(), threshold, jobs)
    else:
        found = similarity.verified(counted(), collection.sizes, source, threshold, jobs)
    pairs = gathered(found)
    return Found(pairs, met, buckets)


def _estimated(collection: Collection, pieces: Iterator[Pair], threshold: float, jobs: int) -> Iterator[Columns]:
    """Those candidate pairs of which the share of agreeing rows is at least the threshold."""
    assert collection.signatures is not None
    for left, right in pieces:
        found = estimate(collection.signatures, left.astype(np.int64), right.astype(np.int64), jobs).similarity
        keep = found >= threshold
        yield left[keep], right[keep], found[keep]


def exact_near_duplicates(
    collection: Collection,
    sets: RaggedSets,
    firsts: NDArray[np.int64],
    threshold: float,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Found:
    """The same, no misses, by the prefix-filter join over the sets."""
    from lshdup import exactjoin  # here, because a query waits for every import

    progress("candidates", 0, 0)
    joined = exactjoin.exact_pairs(sets, members(collection, firsts), threshold, jobs, lambda done, n: progress("candidates", done, n))
    return Found(gathered(joined), -1)


def with_copies(pairs: Pairs, firsts: NDArray[np.int64], *, collapse: bool = False) -> Listing:
    """Pairs of first copies -> pairs of all documents, in output order. collapse : each further copy once, beside the first of its kind."""
    return listing(pairs, firsts, collapse=collapse)


# --- one document against the table -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Neighbours:
    """Near-duplicates of one document, by similarity descending, then name: int64 and float64 arrays of shape (m,)."""

    documents: NDArray[np.int64]
    similarity: NDArray[np.float64]


def neighbours(
    collection: Collection,
    made: Banded,
    source: SetSource,
    threshold: float,
    *,
    keys: NDArray[np.uint64],
    own: NDArray[np.uint64],
    itself: int = -1,
) -> Neighbours:
    """Documents at least `threshold` similar to one.

    keys : uint64 array of shape (bands,), its band keys. own : its shingle set. itself : its number if it is in the collection; then it
    is left out of the answer.
    """
    indexed = itself >= 0 and np.array_equal(keys, made.table.keys_of(itself))
    near = candidates.candidates_of(made.table, keys, int(made.firsts[itself]) if indexed else -1)
    sets = source(near)
    pool = RaggedSets.concatenate([RaggedSets.from_sizes(own, np.array([len(own)], np.int64)), sets])
    score = similarity.jaccard(pool, np.zeros(len(near), np.int64), np.arange(1, len(near) + 1))
    keep = score >= threshold
    near, score = near[keep], score[keep]
    is_near = np.zeros(len(made.firsts), bool)
    is_near[near] = True
    answer = np.flatnonzero(is_near[made.firsts])  # every copy of each kind
    answer = answer[answer != itself]
    score = score[np.searchsorted(near, made.firsts[answer])]
    order = np.lexsort((answer, -score))
    return Neighbours(answer[order], score[order])
