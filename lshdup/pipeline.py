"""The main path: a collection of signatures -> band table -> candidate pairs -> verified pairs.

Read `banded` and `near_duplicates`: they are the table of contents; what comes before them is `collection.collect`. Knows no terminal
and no store; takes a callback for progress.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection, Progress, no_progress
from lshdup.kernels import banding
from lshdup.lsh import band_table, candidates
from lshdup.lsh.band_table import BandPlan, BandTable
from lshdup.lsh.candidates import NO_BUCKETS, Buckets, Pair
from lshdup.lsh.signatures import estimate
from lshdup.matching import similarity
from lshdup.matching.copies import Listing, listing
from lshdup.matching.pairs import Columns, Pairs, gathered, packed
from lshdup.matching.similarity import SetSource
from lshdup.params import BandParams, ClusterParams, CommonParams, PairParams
from lshdup.shingling.removal import NO_SHINGLES, Removal, common_shingles, fingerprint, least_count
from lshdup.utils.ragged import RaggedSets, distinct

if TYPE_CHECKING:
    from lshdup.matching.clusters import Groups

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


def removal_of(collection: Collection, ignore_common: float, template: NDArray[np.uint64], jobs: int = 1) -> Removal:
    """Which shingles are removed from a collection of whole sets: those of the templates, and those of too many documents.

    template : uint64 array, ascending, without repeats. ignore_common : see `CommonParams`; 0: none are of too many. Copies of one document
    count once: a text is common if many different documents have it, and that one document is there many times says nothing about it.
    Documents without tokens do not count.
    """
    params = CommonParams(ignore_common, fingerprint(template))
    if not ignore_common:
        return Removal(params, template, NO_SHINGLES)
    assert collection.sets is not None
    kinds = members(collection, candidates.first_copies(collection.fingerprints))
    return Removal(params, template, *common_shingles(collection.sets, kinds, least_count(ignore_common, len(kinds)), jobs))


def banded(collection: Collection, params: BandParams, jobs: int = 1) -> Banded:
    """Plan the bands and make the table. Raises ParameterError if no plan keeps the promise."""
    assert collection.signatures is not None
    plan = band_table.plan_bands(collection.signatures.shape[1], params)
    firsts = candidates.first_copies(collection.fingerprints)
    return Banded(plan, band_table.band_table(collection.signatures, members(collection, firsts), plan, jobs), firsts)


@dataclass(frozen=True)
class Found:
    """Verified pairs of first copies, how many candidate pairs there were (-1 if all pairs were joined exactly), and in what buckets."""

    pairs: Pairs
    candidates: int
    buckets: Buckets = NO_BUCKETS


@dataclass(frozen=True)
class Verified:
    """What an earlier run over the same documents has found, and how: by candidates of so many bands of so many rows."""

    found: Found
    params: BandParams
    asked: PairParams
    bands: int
    rows: int

    def answers(self, plan: BandPlan, params: BandParams, asked: PairParams) -> bool:
        """Whether the pairs of this table at this threshold are among these: it was the same table, at a threshold no higher."""
        same_table = (self.bands, self.rows) == (plan.bands, plan.rows) and replace(self.params, threshold=params.threshold) == params
        return same_table and self.asked == asked and self.params.threshold <= params.threshold

    def at_least(self, threshold: float) -> Found:
        """What was found of this similarity or more."""
        return replace(self.found, pairs=self.found.pairs.at_least(threshold))

    def knows_all_it_met(self, threshold: float) -> bool:
        """Whether a pair that it met is either among these or less similar than the threshold."""
        return self.params.threshold <= threshold and self.asked == _AS_USUAL

    def unknown(self, collection: Collection, pieces: Iterator[Pair], known: list[Columns]) -> Iterator[Pair]:
        """The candidate pairs that it has not met; of the others, those that are among these go to `known`."""
        assert collection.signatures is not None
        pairs = self.found.pairs
        order = np.argsort(pairs.keys)
        keys, similarity = pairs.keys[order], pairs.similarity[order]
        for left, right in pieces:
            wanted = packed(left, right)
            at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
            is_known = keys[at] == wanted if len(keys) else np.zeros(len(wanted), bool)
            if is_known.any():
                known.append((left[is_known], right[is_known], similarity[at[is_known]]))
            left, right = left[~is_known], right[~is_known]
            met = np.empty(len(left), np.uint8)
            banding.agree_in_a_band(collection.signatures, self.bands, self.rows, left, right, met)
            yield left[met == 0], right[met == 0]


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
    earlier: Verified | None = None,
) -> Found:
    """All pairs of first copies at or above the threshold among the candidates; `with_copies` adds the rest.

    on_buckets : told about the buckets before their pairs are looked at. earlier : what need not be verified again; the answer does not
    depend on it.
    """
    progress("candidates", 0, 0)
    buckets, pieces = candidates.candidate_pairs(made.table, params.max_bucket, lambda done, n: progress("candidates", done, n))
    on_buckets(buckets)
    met = candidates.Met()
    passing = met.counted(pieces)
    found: Iterable[Columns]
    if params.verify == "estimate":
        found = _estimated(collection, passing, threshold, jobs)
    elif earlier is not None and earlier.knows_all_it_met(threshold):
        known: list[Columns] = []
        unknown = earlier.unknown(collection, passing, known)
        found = chain(similarity.verified(unknown, collection.sizes, source, threshold, jobs), known)
    else:
        found = similarity.verified(passing, collection.sizes, source, threshold, jobs)
    pairs = gathered(found).at_least(threshold)
    return Found(pairs, met.pairs, buckets)


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
    from lshdup.matching import exact_join  # here, because a query waits for every import

    progress("candidates", 0, 0)
    joined = exact_join.exact_pairs(
        sets, members(collection, firsts), threshold, jobs, on_progress=lambda done, n: progress("candidates", done, n)
    )
    return Found(gathered(joined), -1)


def with_copies(pairs: Pairs, firsts: NDArray[np.int64], *, collapse: bool = False) -> Listing:
    """Pairs of first copies -> pairs of all documents, in output order. collapse : each further copy once, beside the first of its kind."""
    return listing(pairs, firsts, collapse=collapse)


# --- groups -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grouped:
    """Groups of all documents, and each document's first copy.

    compared : how many similarities of candidates were looked at; -1: groups or pairs were known. buckets : those of the table.
    lost : int64 array, documents that are not what was indexed, or could not be read again to be compared: in no group.
    """

    groups: "Groups"
    firsts: NDArray[np.int64]
    compared: int = -1
    buckets: Buckets = NO_BUCKETS
    lost: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def copies(self) -> NDArray[np.bool_]:
        """Bool array of shape (n,): whether another document represents this one, and has the same shingle set."""
        own = self.groups.representative
        copies: NDArray[np.bool_] = (own >= 0) & (own != np.arange(len(own))) & (self.firsts == self.firsts[own])
        return copies


def grouped(
    collection: Collection,
    made: Banded,
    source: SetSource,
    threshold: float,
    params: ClusterParams,
    preference: NDArray[np.int64],
    *,
    known: Found | None = None,
    jobs: int = 1,
    progress: Progress = no_progress,
    on_buckets: Callable[[Buckets], None] = lambda _: None,
) -> Grouped:
    """All documents that have tokens in groups, by their candidates' exact similarities.

    preference : int64 array of shape (n,), all documents, the most preferred one first. known : the pairs of the same candidates, if they
    were verified before. on_buckets : told about the buckets before the work.
    """
    from lshdup.matching import clusters, leaders  # here, because a query waits for every import

    progress("groups", 0, 0)
    ordered = clusters.ranked(members(collection, made.firsts), made.firsts, preference)
    lost: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]

    def watched(wanted: NDArray[np.int64]) -> RaggedSets:
        sets = source(wanted)
        lost.append(wanted[sets.sizes == 0])
        return sets

    if known is not None:
        kinds, buckets, compared = clusters.from_pairs(known.pairs, ordered, len(preference), threshold, params.linkage), known.buckets, -1
    else:
        kinds, buckets, compared = leaders.from_buckets(
            made.table, ordered, collection.sizes, watched, threshold, linkage=params.linkage, max_bucket=params.max_bucket, jobs=jobs,
            on_buckets=on_buckets, progress=lambda done, total: progress("groups", done, total),
        )  # fmt: skip
    kinds = clusters.completed(kinds, collection.sizes, watched, jobs)
    groups = clusters.of_documents(kinds, made.firsts, preference)
    gone = distinct(np.concatenate(lost))[0]
    return Grouped(groups.without(gone), made.firsts, compared, buckets, gone)


def exactly_grouped(
    collection: Collection,
    sets: RaggedSets,
    threshold: float,
    params: ClusterParams,
    preference: NDArray[np.int64],
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Grouped:
    """The same from all pairs, none missed, by the prefix-filter join over the sets."""
    from lshdup.matching import clusters  # here, because a query waits for every import

    firsts = candidates.first_copies(collection.fingerprints)
    found = exact_near_duplicates(collection, sets, firsts, threshold, jobs, lambda _, done, n: progress("groups", done, n))
    ordered = clusters.ranked(members(collection, firsts), firsts, preference)
    kinds = clusters.from_pairs(found.pairs, ordered, len(firsts), threshold, params.linkage)
    kinds = clusters.completed(kinds, collection.sizes, sets.take, jobs)
    return Grouped(clusters.of_documents(kinds, firsts, preference), firsts)


# --- one document against the table -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Neighbours:
    """Near-duplicates of one document, by similarity descending, then name: int64 and float64 arrays of shape (m,)."""

    documents: NDArray[np.int64]
    similarity: NDArray[np.float64]

    def first(self, top: int | None) -> "Neighbours":
        """The `top` most similar ones; all, if that is None."""
        return Neighbours(self.documents[:top], self.similarity[:top])


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
