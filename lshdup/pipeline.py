"""The main path, one call a stage: paths -> documents -> sets and signatures -> index -> candidates
-> pairs.

`find_near_duplicates` is the whole program, in memory. The workspace, `--against`
and Spark are variations of it and use its six calls by name. Nothing here knows a terminal or a
store.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import IN_MEMORY, Arrays
from lshdup.base.frozen import dataclass
from lshdup.base.parallel import Progress, no_progress
from lshdup.base.ragged import RaggedSets, SetSource, distinct
from lshdup.base.run import Run
from lshdup.collection.collect import collect
from lshdup.collection.collection import Collection
from lshdup.compare import similarity
from lshdup.compare.copies import ExpandedPairs, expand_pairs
from lshdup.compare.pairs import Columns, Pairs, gather_pairs
from lshdup.compare.results import ClustersFound, Index, Neighbours, PairsFound, StoredPairs
from lshdup.lsh import band_plan, band_table, candidates
from lshdup.lsh.buckets import NO_BUCKETS, Buckets
from lshdup.lsh.candidates import (
    PairArrays,
    candidate_pairs,
    documents_to_compare,
    find_exact_duplicates,
)
from lshdup.lsh.signatures import estimate
from lshdup.params import BandParams, ClusterParams, PairParams, Params
from lshdup.sources.finding import find_documents
from lshdup.sources.preference import Preference

if TYPE_CHECKING:
    from lshdup.compare.centres import Comparisons
    from lshdup.compare.checkpoint import StageCheckpoint

#: Bytes of shingle sets that may be kept in memory: all of them.
EVERY_SET = 1 << 62

#: The kernels of the main path, in the order of their calls.
KERNELS = (
    "files.stat_files", "sets.copy_runs.uint8", "files.read_files",
    "shingles.byte_fingerprints", "text.inspect", "shingles.shingle_batch", "sketch.fast_sketch",
    "sets.order_by_key", "bands.band_keys", "bands.shared_buckets", "clusters.join_buckets",
    "clusters.find_roots", "bands.number_buckets", "bands.link_partners",
    "bands.bucket_pairs", "sets.possible_pairs", "sets.block_end",
    "sets.copy_runs.uint64", "sets.sort_sets", "sets.pair_jaccard",
)  # fmt: skip

_DEFAULTS = Params()


@dataclass(frozen=True)
class DuplicatesFound:
    """The near-duplicate pairs of a collection.

    collection : documents, with their sets and signatures.
    index : band table over one of all exact duplicates; None for containment.
    found : verified pairs of the documents in the index.
    pairs : pairs of all documents, in output order.
    """

    collection: Collection
    index: Index | None
    found: PairsFound
    pairs: ExpandedPairs


def find_near_duplicates(
    source: Iterable[bytes] | Collection,
    params: Params = _DEFAULTS,
    *,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> DuplicatesFound:
    """Find all near-duplicate pairs among documents: the program in six calls.

    Parameters
    ----------
    source : folders and files, as typed; or a collection that has its sets and signatures already.
    params : parameters of all stages.
    jobs : threads; the answer is the same for any number.
    progress : notified (stage, steps done, steps in all).

    Errors: InputError if no path exists, ParameterError if no plan of bands keeps the promised
    recall.

    >>> params = Params(bands=BandParams(threshold=0.9))
    >>> answer = find_near_duplicates([b"sample_corpus/licences"], params)
    >>> names = answer.collection.documents.names
    >>> for left, right, similarity in answer.pairs.pieces():
    ...     print(names[int(left[0])], names[int(right[0])], round(similarity[0], 3), len(left))
    b'sample_corpus/licences/Apache-1.1.txt' b'sample_corpus/licences/Apache-1.1.txt.copy1' 1.0 9

    """
    if isinstance(source, Collection):
        collection = source
    else:
        id_lists = params.shingle.tokens == "ids"
        run = replace(Run.quiet(jobs), progress=progress)
        documents = find_documents(run, source, params.documents, id_lists=id_lists)
        collection = collect(run, documents, params.shingle, params.sketch, keep=EVERY_SET)
    assert collection.sets is not None
    if params.pairs.measure == "containment":
        copies, t = find_exact_duplicates(collection.fingerprints), params.bands.threshold
        found = find_pairs_exactly(
            collection, collection.sets, copies, t, jobs, progress, params.pairs.measure
        )
        pairs = expand_copies(found.pairs, copies, sizes=collection.sizes)
        return DuplicatesFound(collection, None, found, pairs)
    index = build_index(collection, params.bands, jobs)
    _, pieces = candidate_pairs(index.table, params.pairs.max_bucket, jobs=jobs)
    found = verify(
        pieces, collection, collection.sets.take, params.bands.threshold,
        method=params.pairs.verify, jobs=jobs,
    )  # fmt: skip
    return DuplicatesFound(collection, index, found, expand_copies(found.pairs, index.duplicate_of))


def build_index(
    collection: Collection, params: BandParams, jobs: int, arrays: Arrays = IN_MEMORY
) -> Index:
    """Plan the bands and build the band table of a collection with signatures.

    arrays : makes the arrays of the table.

    Errors: ParameterError if no plan keeps the promised recall.
    """
    signatures = np.asarray(collection.signatures)
    plan = band_plan.plan_bands(signatures.shape[1], params)
    duplicate_of = find_exact_duplicates(collection.fingerprints, arrays)
    members = documents_to_compare(duplicate_of, collection.sizes, arrays)
    table = band_table.build_band_table(signatures, members, plan, jobs, arrays)
    return Index(plan, table, duplicate_of)


def verify(
    pieces: Iterable[PairArrays],
    collection: Collection,
    source: SetSource,
    threshold: float,
    *,
    method: str = "exact",
    earlier: StoredPairs | None = None,
    buckets: Buckets = NO_BUCKETS,
    jobs: int = 1,
    arrays: Arrays = IN_MEMORY,
    resumed: similarity.ResumedPairs | None = None,
) -> PairsFound:
    """Verify candidate pairs: return the pairs whose similarity is at least the threshold.

    Parameters
    ----------
    pieces : candidate pairs, (left, right), uint32 arrays; they are overwritten.
    collection : collection of the candidates.
    source : gives their shingle sets.
    threshold : smallest similarity.
    method : "exact" compares sets; "estimate" takes the share of agreeing rows of the signatures.
    earlier : pairs of an earlier run over the same documents, which are not verified again. They
        change the cost, never the answer.
    buckets : buckets of the candidates, which the result passes on.
    jobs : threads.
    arrays : makes the arrays of pairs.
    resumed : pairs that an interrupted run has verified.

    """
    counter = candidates.CandidateCounter()
    pieces = counter.count(pieces)
    verified: Iterable[Columns]
    if method == "estimate":
        verified = _verify_by_estimate(collection, pieces, threshold, jobs)
    elif earlier is not None and earlier.has_verified_all(threshold):
        known: list[Columns] = []
        assert collection.signatures is not None
        pieces = earlier.split_off_known(collection.signatures, pieces, known)
        verified = chain(
            similarity.verify(pieces, collection.sizes, source, threshold, jobs), known
        )
    elif resumed is not None:
        pieces = resumed.candidates(pieces)
        verified = similarity.verify(pieces, collection.sizes, source, threshold, jobs)
        verified = resumed.verified(verified)
    else:
        verified = similarity.verify(pieces, collection.sizes, source, threshold, jobs)
    pairs = gather_pairs(verified, arrays).at_least(threshold)
    return PairsFound(pairs, counter.pairs, buckets)


def _verify_by_estimate(
    collection: Collection, pieces: Iterable[PairArrays], threshold: float, jobs: int
) -> Iterator[Columns]:
    assert collection.signatures is not None
    for left, right in pieces:
        found = estimate(
            collection.signatures, left.astype(np.int64), right.astype(np.int64), jobs
        ).similarity
        keep = found >= threshold
        yield left[keep], right[keep], found[keep]


def expand_copies(
    pairs: Pairs,
    duplicate_of: NDArray[np.int64],
    *,
    collapse: bool = False,
    sizes: NDArray[np.int64] | None = None,
    arrays: Arrays = IN_MEMORY,
) -> ExpandedPairs:
    """Expand pairs of indexed documents to pairs of all documents, in output order.

    Parameters
    ----------
    pairs : pairs of documents of which each stands for all its exact duplicates.
    duplicate_of : int64 array of shape (n,), the document that stands for each document.
    collapse : list each further exact duplicate once, beside the document that stands for it.
    sizes : of pairs of containment, shingles of each document: int64 array of shape (n,).
    arrays : makes the arrays of pairs and of documents.

    """
    return expand_pairs(pairs, duplicate_of, collapse=collapse, sizes=sizes, arrays=arrays)


# --- variations: the exact join, clusters, one document against the index -------------------------


def find_pairs_exactly(
    collection: Collection,
    sets: RaggedSets,
    duplicate_of: NDArray[np.int64],
    threshold: float,
    jobs: int = 1,
    progress: Progress = no_progress,
    measure: str = PairParams().measure,
) -> PairsFound:
    """Find all pairs at or above the threshold, none missed, by the prefix-filter join.

    measure : one of MEASURES. Pairs of containment are ordered, with scores of both measures.
    """
    from lshdup.compare.measures import join_sets  # Imported here to keep `query` fast.

    progress("candidates", 0, 0)
    pairs = join_sets(
        sets,
        documents_to_compare(duplicate_of, collection.sizes),
        threshold,
        measure,
        jobs,
        on_progress=lambda done, n: progress("candidates", done, n),
    )
    return PairsFound(pairs, -1)


def find_clusters(
    collection: Collection,
    index: Index | None,
    source: SetSource,
    threshold: float,
    params: ClusterParams,
    preference: Preference,
    *,
    known: PairsFound | None = None,
    jobs: int = 1,
    progress: Progress = no_progress,
    on_buckets: Callable[[Buckets], None] = lambda _: None,
    on_central: Callable[["Comparisons"], None] = lambda _: None,
    on_documents: Callable[[NDArray[np.int64]], None] = lambda _: None,
    arrays: Arrays = IN_MEMORY,
    checkpoint: "StageCheckpoint | None" = None,
) -> ClustersFound:
    """Cluster all documents that have shingles, by the exact similarities of their candidates.

    Parameters
    ----------
    collection : documents and the sizes of their sets.
    index : band table of the collection; None: all pairs are known.
    source : gives shingle sets.
    threshold : smallest similarity to the representative of a cluster.
    params : linkage, and the limit of buckets.
    preference : which document of a cluster is kept.
    known : verified pairs of the same candidates, if an earlier run has found them.
    jobs : threads.
    progress : notified (stage, steps done, steps in all).
    on_buckets, on_central : notified of the buckets, and of the comparisons for the rule "central",
        before the work.
    on_documents : called with the documents that share a bucket, ascending, before the work.
    arrays : makes the arrays of these documents.
    checkpoint : keeps the groups that are found, and has those of an interrupted run.

    """
    from lshdup.compare import centres, clusters, leaders  # Imported here to keep `query` fast.

    progress("groups", 0, 0)
    sizes, order = collection.sizes, preference.order
    prints = collection.fingerprints
    duplicate_of = index.duplicate_of if index else find_exact_duplicates(prints, arrays)
    members = documents_to_compare(duplicate_of, sizes, arrays)
    ordered = clusters.rank_documents(members, duplicate_of, order, arrays)
    lost: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]

    def watch(wanted: NDArray[np.int64]) -> RaggedSets:
        sets = source(wanted)
        lost.append(wanted[sets.sizes == 0])
        return sets

    def advance(done: int, total: int) -> None:
        progress("groups", done, total)

    compared, linkage = -1, params.linkage
    if known is not None:
        buckets = known.buckets
        groups = clusters.cluster_pairs(
            known.pairs, ordered, len(sizes), threshold, linkage, arrays
        )
    else:
        assert index is not None
        groups, buckets, compared = leaders.cluster_buckets(
            index.table, ordered, sizes, watch, threshold, linkage=linkage,
            max_bucket=params.max_bucket, jobs=jobs, on_buckets=on_buckets, progress=advance,
            on_documents=on_documents, arrays=arrays, checkpoint=checkpoint,
        )  # fmt: skip
    if preference.keep == "central":
        best = clusters.choose_representatives(duplicate_of, order, arrays)
        groups = centres.choose_centres(
            groups, ordered, duplicate_of, sizes, watch, threshold,
            level=preference.level[best[duplicate_of]], linkage=linkage, jobs=jobs,
            on_work=on_central, progress=advance,
        )  # fmt: skip
    groups = clusters.complete_similarities(groups, sizes, watch, jobs)
    groups = clusters.expand_clusters(groups, duplicate_of, order)
    unreadable = distinct(np.concatenate(lost))[0]
    return ClustersFound(groups.without(unreadable), duplicate_of, compared, buckets, unreadable)


def find_clusters_exactly(
    collection: Collection,
    sets: RaggedSets,
    threshold: float,
    params: ClusterParams,
    preference: Preference,
    jobs: int = 1,
    progress: Progress = no_progress,
    on_central: Callable[["Comparisons"], None] = lambda _: None,
) -> ClustersFound:
    """Cluster documents by all pairs, none missed, from the prefix-filter join of the sets."""
    found = find_pairs_exactly(
        collection,
        sets,
        find_exact_duplicates(collection.fingerprints),
        threshold,
        jobs,
        lambda _, done, n: progress("groups", done, n),
    )
    return find_clusters(
        collection, None, sets.take, threshold, params, preference, known=found, jobs=jobs,
        progress=progress, on_central=on_central,
    )  # fmt: skip


def find_neighbours(
    index: Index,
    source: SetSource,
    threshold: float,
    *,
    keys: NDArray[np.uint64],
    shingles: NDArray[np.uint64],
    itself: int,
    is_candidate: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None = None,
) -> Neighbours:
    """Find the documents that are at least `threshold` similar to one document.

    Parameters
    ----------
    index : band table of the collection.
    source : gives shingle sets.
    threshold : smallest similarity.
    keys : uint64 array of shape (bands,), band keys of the document.
    shingles : uint64 array, shingle set of the document.
    itself : number of the document if it is in the collection: it is not in the answer; else -1.
    is_candidate : returns which documents are candidates, where a table with more serves.

    """
    is_indexed = itself >= 0 and np.array_equal(keys, index.table.keys_of(itself))
    near = candidates.candidates_of(
        index.table, keys, int(index.duplicate_of[itself]) if is_indexed else -1
    )
    if is_candidate is not None:
        near = near[is_candidate(near)]
    pool = RaggedSets.concatenate(
        [RaggedSets.from_sizes(shingles, np.array([len(shingles)], np.int64)), source(near)]
    )
    score = similarity.jaccard(pool, np.zeros(len(near), np.int64), np.arange(1, len(near) + 1))
    keep = score >= threshold
    return Neighbours.of(near[keep], score[keep], index.duplicate_of, itself)
