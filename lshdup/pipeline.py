"""The main path: a collection of signatures -> band table -> candidate pairs -> verified pairs.

Read `build_index` and `find_pairs`: they are the table of contents; what comes before them is `collection.collect`. Knows no terminal
and no store; takes a callback for progress.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection
from lshdup.lsh import band_plan, band_table, candidates
from lshdup.lsh.candidates import Buckets, PairArrays
from lshdup.lsh.signatures import estimate
from lshdup.matching import similarity
from lshdup.matching.copies import ExpandedPairs, expand_pairs
from lshdup.matching.pairs import Columns, Pairs, gather_pairs
from lshdup.matching.results import (
    _AS_USUAL,
    ClustersFound,
    Index,
    Neighbours,
    PairsFound,
    StoredPairs,
)
from lshdup.params import BandParams, ClusterParams, FilterParams, PairParams
from lshdup.shingling.shingle_filter import (
    NO_SHINGLES,
    ShingleFilter,
    common_shingles,
    fingerprint,
    least_count,
)
from lshdup.utils.parallel import Progress, no_progress
from lshdup.utils.ragged import RaggedSets, SetSource, distinct

if TYPE_CHECKING:
    pass


def members(collection: Collection, duplicate_of: NDArray[np.int64]) -> NDArray[np.int64]:
    """Documents that take part in comparisons: the first of each kind that has tokens; ascending int64 array."""
    return np.flatnonzero((duplicate_of == np.arange(len(duplicate_of))) & (collection.sizes > 0))


def build_filter(
    collection: Collection, ignore_common: float, template: NDArray[np.uint64], jobs: int = 1
) -> ShingleFilter:
    """Which shingles are removed from a collection of whole sets: those of the templates, and those of too many documents.

    template : uint64 array, ascending, without repeats. ignore_common : see `FilterParams`; 0: none are of too many. Copies of one document
    count once: a text is common if many different documents have it, and that one document is there many times says nothing about it.
    Documents without tokens do not count.
    """
    params = FilterParams(ignore_common, fingerprint(template))
    if not ignore_common:
        return ShingleFilter(params, template, NO_SHINGLES)
    assert collection.sets is not None
    kinds = members(collection, candidates.find_exact_duplicates(collection.fingerprints))
    return ShingleFilter(
        params,
        template,
        *common_shingles(collection.sets, kinds, least_count(ignore_common, len(kinds)), jobs),
    )


def build_index(collection: Collection, params: BandParams, jobs: int = 1) -> Index:
    """Plan the bands and make the table. Raises ParameterError if no plan keeps the promise."""
    assert collection.signatures is not None
    plan = band_plan.plan_bands(collection.signatures.shape[1], params)
    duplicate_of = candidates.find_exact_duplicates(collection.fingerprints)
    return Index(
        plan,
        band_table.build_band_table(
            collection.signatures, members(collection, duplicate_of), plan, jobs
        ),
        duplicate_of,
    )


def find_pairs(
    collection: Collection,
    made: Index,
    source: SetSource,
    threshold: float,
    params: PairParams = _AS_USUAL,
    *,
    jobs: int = 1,
    progress: Progress = no_progress,
    on_buckets: Callable[[Buckets], None] = lambda _: None,
    earlier: StoredPairs | None = None,
) -> PairsFound:
    """All pairs of first copies at or above the threshold among the candidates; `expand_copies` adds the rest.

    on_buckets : told about the buckets before their pairs are looked at. earlier : what need not be verified again; the answer does not
    depend on it.
    """
    progress("candidates", 0, 0)
    buckets, pieces = candidates.candidate_pairs(
        made.table, params.max_bucket, lambda done, n: progress("candidates", done, n)
    )
    on_buckets(buckets)
    met = candidates.CandidateCounter()
    passing = met.count(pieces)
    found: Iterable[Columns]
    if params.verify == "estimate":
        found = _estimated(collection, passing, threshold, jobs)
    elif earlier is not None and earlier.knows_all_it_met(threshold):
        known: list[Columns] = []
        assert collection.signatures is not None
        unknown = earlier.unknown(collection.signatures, passing, known)
        found = chain(similarity.verify(unknown, collection.sizes, source, threshold, jobs), known)
    else:
        found = similarity.verify(passing, collection.sizes, source, threshold, jobs)
    pairs = gather_pairs(found).at_least(threshold)
    return PairsFound(pairs, met.pairs, buckets)


def _estimated(
    collection: Collection, pieces: Iterator[PairArrays], threshold: float, jobs: int
) -> Iterator[Columns]:
    """Those candidate pairs of which the share of agreeing rows is at least the threshold."""
    assert collection.signatures is not None
    for left, right in pieces:
        found = estimate(
            collection.signatures, left.astype(np.int64), right.astype(np.int64), jobs
        ).similarity
        keep = found >= threshold
        yield left[keep], right[keep], found[keep]


def find_pairs_exactly(
    collection: Collection,
    sets: RaggedSets,
    duplicate_of: NDArray[np.int64],
    threshold: float,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> PairsFound:
    """The same, no misses, by the prefix-filter join over the sets."""
    from lshdup.matching import exact_join  # here, because a query waits for every import

    progress("candidates", 0, 0)
    joined = exact_join.exact_pairs(
        sets,
        members(collection, duplicate_of),
        threshold,
        jobs,
        on_progress=lambda done, n: progress("candidates", done, n),
    )
    return PairsFound(gather_pairs(joined), -1)


def expand_copies(
    pairs: Pairs, duplicate_of: NDArray[np.int64], *, collapse: bool = False
) -> ExpandedPairs:
    """Pairs of first copies -> pairs of all documents, in output order. collapse : each further copy once, beside the first of its kind."""
    return expand_pairs(pairs, duplicate_of, collapse=collapse)


# --- groups -----------------------------------------------------------------------------------------------------------------


def find_clusters(
    collection: Collection,
    made: Index,
    source: SetSource,
    threshold: float,
    params: ClusterParams,
    preference: NDArray[np.int64],
    *,
    known: PairsFound | None = None,
    jobs: int = 1,
    progress: Progress = no_progress,
    on_buckets: Callable[[Buckets], None] = lambda _: None,
) -> ClustersFound:
    """All documents that have tokens in groups, by their candidates' exact similarities.

    preference : int64 array of shape (n,), all documents, the most preferred one first. known : the pairs of the same candidates, if they
    were verified before. on_buckets : told about the buckets before the work.
    """
    from lshdup.matching import clusters, leaders  # here, because a query waits for every import

    progress("groups", 0, 0)
    ordered = clusters.rank_documents(
        members(collection, made.duplicate_of), made.duplicate_of, preference
    )
    lost: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]

    def watched(wanted: NDArray[np.int64]) -> RaggedSets:
        sets = source(wanted)
        lost.append(wanted[sets.sizes == 0])
        return sets

    if known is not None:
        kinds, buckets, compared = (
            clusters.cluster_pairs(
                known.pairs, ordered, len(preference), threshold, params.linkage
            ),
            known.buckets,
            -1,
        )
    else:
        kinds, buckets, compared = leaders.cluster_buckets(
            made.table, ordered, collection.sizes, watched, threshold, linkage=params.linkage, max_bucket=params.max_bucket, jobs=jobs,
            on_buckets=on_buckets, progress=lambda done, total: progress("groups", done, total),
        )  # fmt: skip
    kinds = clusters.complete_similarities(kinds, collection.sizes, watched, jobs)
    groups = clusters.expand_groups(kinds, made.duplicate_of, preference)
    gone = distinct(np.concatenate(lost))[0]
    return ClustersFound(groups.without(gone), made.duplicate_of, compared, buckets, gone)


def find_clusters_exactly(
    collection: Collection,
    sets: RaggedSets,
    threshold: float,
    params: ClusterParams,
    preference: NDArray[np.int64],
    jobs: int = 1,
    progress: Progress = no_progress,
) -> ClustersFound:
    """The same from all pairs, none missed, by the prefix-filter join over the sets."""
    from lshdup.matching import clusters  # here, because a query waits for every import

    duplicate_of = candidates.find_exact_duplicates(collection.fingerprints)
    found = find_pairs_exactly(
        collection,
        sets,
        duplicate_of,
        threshold,
        jobs,
        lambda _, done, n: progress("groups", done, n),
    )
    ordered = clusters.rank_documents(members(collection, duplicate_of), duplicate_of, preference)
    kinds = clusters.cluster_pairs(
        found.pairs, ordered, len(duplicate_of), threshold, params.linkage
    )
    kinds = clusters.complete_similarities(kinds, collection.sizes, sets.take, jobs)
    return ClustersFound(clusters.expand_groups(kinds, duplicate_of, preference), duplicate_of)


# --- one document against the table -----------------------------------------------------------------------------------------


def find_neighbours(
    collection: Collection,
    made: Index,
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
    near = candidates.candidates_of(
        made.table, keys, int(made.duplicate_of[itself]) if indexed else -1
    )
    sets = source(near)
    pool = RaggedSets.concatenate(
        [RaggedSets.from_sizes(own, np.array([len(own)], np.int64)), sets]
    )
    score = similarity.jaccard(pool, np.zeros(len(near), np.int64), np.arange(1, len(near) + 1))
    keep = score >= threshold
    near, score = near[keep], score[keep]
    is_near = np.zeros(len(made.duplicate_of), bool)
    is_near[near] = True
    answer = np.flatnonzero(is_near[made.duplicate_of])  # every copy of each kind
    answer = answer[answer != itself]
    score = score[np.searchsorted(near, made.duplicate_of[answer])]
    order = np.lexsort((answer, -score))
    return Neighbours(answer[order], score[order])
