"""The main path, one call a stage: paths -> documents -> sets and signatures -> index -> candidates
-> pairs.

`find_near_duplicates` is the whole program, in memory. The workspace, `--against`
and Spark are variations of it and use its six calls by name. Nothing here knows a terminal or a
store.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.params import BandParams, ClusterParams, PairParams, Params
from lshdup.base.ragged import RaggedSets, distinct
from lshdup.base.run import Run
from lshdup.collection.collect import EVERY_SET, collect
from lshdup.collection.collection import Collection
from lshdup.collection.keep_rules import Preference
from lshdup.collection.set_source import side_of
from lshdup.compare.comparing import compare, verify
from lshdup.compare.expand_duplicates import NO_KEYS, Apart, ExpandedPairs, expand_copies
from lshdup.compare.results import ClustersFound, Index, PairsFound
from lshdup.compare.scored_pairs import unpack_pairs
from lshdup.compare.sides import Side, Sides
from lshdup.lsh import band_plan, band_table
from lshdup.lsh.candidates import (
    NO_ORIGINS,
    Components,
    SharedBuckets,
    Sieve,
    candidate_pairs,
    documents_to_compare,
    find_exact_duplicates,
    say_large_bucket,
)
from lshdup.sources.finding import find_documents

#: The kernels of the main path, in the order of their calls.
KERNELS = (
    "files.stat_files", "sets.copy_runs.uint8", "files.read_files",
    "shingles.byte_fingerprints", "flags.inspect", "shingles.shingle_batch", "sketch.fast_sketch",
    "sets.order_by_key", "bands.band_keys", "bands.shared_buckets", "clusters.join_buckets",
    "clusters.find_roots", "bands.number_buckets", "bands.bucket_pairs", "sets.possible_pairs",
    "sets.block_end", "sets.copy_runs.uint64", "sets.sort_sets", "sets.pair_jaccard",
)  # fmt: skip

_DEFAULTS = Params()


@dataclass(frozen=True)
class DuplicatesFound:
    """The near-duplicate pairs of a collection.

    collection : documents, with their sets and signatures.
    index : band table over one of all exact duplicates; None if no bands found the pairs.
    found : verified pairs of the documents in the index.
    pairs : pairs of all documents, in output order.
    """

    collection: Collection
    index: Index | None
    found: PairsFound
    pairs: ExpandedPairs


def find_near_duplicates(
    run: Run,
    source: Iterable[bytes] | Collection,
    params: Params = _DEFAULTS,
    *,
    side: Side | None = None,
    index: Index | None = None,
) -> DuplicatesFound:
    """Find all near-duplicate pairs among documents: the program in six calls.

    Parameters
    ----------
    source : folders and files, as typed; or a collection that has its sets and signatures already.
    params : parameters of all stages.
    side, index : of a collection whose documents are read again; signatures decide where one is
        lost.

    Errors: InputError if no path exists, ParameterError if no plan of bands keeps the promised
    recall.

    >>> params = Params(bands=BandParams(threshold=0.9))
    >>> answer = find_near_duplicates(Run.quiet(), [b"sample_corpus/licences"], params)
    >>> names = answer.collection.documents.names
    >>> for left, right, similarity in answer.pairs.pieces():
    ...     print(names[int(left[0])], names[int(right[0])], round(similarity[0], 3), len(left))
    b'sample_corpus/licences/Apache-1.1.txt' b'sample_corpus/licences/Apache-1.1.txt.copy1' 1.0 9

    """
    if isinstance(source, Collection):
        collection = source
    else:
        id_lists = params.shingle.tokens == "ids"
        documents = find_documents(run, source, params.documents, id_lists=id_lists)
        collection = collect(run, documents, params.shingle, params.sketch, keep=EVERY_SET)
    estimates = side is not None
    side = side or side_of(run, collection, collection.filtered_sets(run.arrays))
    if index is None and params.pairs.by_bands:
        index = build_index(run, collection, params.bands)
    duplicate_of = index.duplicate_of if index is not None else None
    sides = Sides.of(run, side, same=params.pairs.same, duplicate_of=duplicate_of)
    if index is not None:
        sieve = Sieve.of(index.plan, params.bands.threshold, collection.signatures)
        met = candidate_pairs(run, index.table, params.pairs.max_bucket, sieve=sieve)
        side.expect(met.documents)
        found = verify(run, met, sides, params.bands.threshold, estimates=estimates)
    else:
        found = compare(run, sides, params.bands, params.pairs)
    sizes = sides.sizes if params.pairs.measure == "containment" else None
    pairs = expand_copies(
        run, found.pairs, sides.duplicate_of, sizes=sizes, estimated=found.estimated
    )
    return DuplicatesFound(collection, index, found, pairs)


def build_index(
    run: Run,
    collection: Collection,
    params: BandParams,
    duplicate_of: NDArray[np.int64] | None = None,
) -> Index:
    """Plan the bands and build the band table of a collection with signatures.

    duplicate_of : of `Sides`, if documents of one origin are not compared.

    Errors: ParameterError if no plan keeps the promised recall.
    """
    signatures = np.asarray(collection.signatures)
    plan = band_plan.plan_bands(signatures.shape[1], params)
    if duplicate_of is None:
        duplicate_of = find_exact_duplicates(run, collection.fingerprints)
    members = documents_to_compare(run, duplicate_of, collection.sizes)
    table = band_table.build_band_table(run, signatures, members, plan)
    return Index(plan, table, duplicate_of)


# --- variations: clusters, one document against the index ----------------------------------------


def find_clusters(
    run: Run,
    collection: Collection,
    index: Index | None,
    side: Side,
    threshold: float,
    params: ClusterParams,
    preference: Preference,
    *,
    known: PairsFound | None = None,
    same: str = "",
    origins: NDArray[np.uint32] = NO_ORIGINS,
    apart: NDArray[np.uint64] = NO_KEYS,
) -> ClustersFound:
    """Cluster all documents that have shingles, by the exact similarities of their candidates.

    What takes long is said before the work.

    Parameters
    ----------
    collection : documents and the sizes of their sets.
    index : band table of the collection, of documents of each origin; None: all pairs are known, or
        none may be missed.
    side : the collection, with the source of its sets.
    threshold : smallest similarity to the representative of a cluster.
    params : linkage, and the limit of buckets.
    preference : which document of a cluster is kept.
    known : verified pairs of the same candidates, if an earlier run has found them.
    same : "text" or "bytes", if documents must be the same instead of similar; no set is needed.
    origins : of `Sides`.
    apart : ascending keys of pairs that are no edges, the lower number left. None of their two
        documents is dropped for the other.

    """
    from lshdup.compare import clusters, leaders, medoids  # Imported here to keep `query` fast.

    run.progress("groups", 0, 0)
    sizes, order = collection.sizes, preference.order
    duplicate_of = index.duplicate_of if index else None
    sides = Sides.of(run, side, same=same, duplicate_of=duplicate_of, origins=origins)
    whole = sides.duplicate_of
    separated = Apart.of(run, apart, whole)
    duplicate_of = separated.duplicate_of
    members = documents_to_compare(run, duplicate_of, sizes)
    ordered = clusters.rank_documents(run, members, duplicate_of, order)
    lost: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]

    def watch(wanted: NDArray[np.int64]) -> RaggedSets:
        sets = side.source(wanted)
        lost.append(wanted[sets.sizes == 0])
        return sets

    compared, linkage = -1, params.linkage
    edges = clusters.Edges(sizes, watch, threshold, linkage, apart)
    if index is None and known is None:
        joining = run.but(progress=lambda _, done, n: run.progress("groups", done, n))
        known = compare(joining, sides, BandParams(threshold), PairParams(exact=True, same=same))
    if known is not None:
        buckets = known.buckets
        pairs = separated.separate(run, known.pairs, across=sides.identical(known.pairs))
        groups = clusters.cluster_pairs(run, pairs, ordered, len(sizes), threshold, linkage)
    else:
        assert index is not None
        table, signatures = index.table, collection.signatures
        if separated.splits:
            table = band_table.build_band_table(run, np.asarray(signatures), members, index.plan)
        shared = SharedBuckets.of(run, table, params.max_bucket, origins)
        buckets = shared.counts
        say_large_bucket(run, buckets, collection.documents.names, clustering=True)
        sieve = Sieve.of(index.plan, threshold, signatures)
        components = Components.of(run, shared, ordered, origins, sieve)
        side.expect(components.list_documents(run))
        groups, compared = leaders.cluster_buckets(run, components, ordered, edges)
    if preference.keep == "central" and not same:
        best = clusters.choose_representatives(run, duplicate_of, order)
        level = preference.level[best[duplicate_of]]
        names = collection.documents.names
        groups = medoids.choose_medoids(run, groups, ordered, duplicate_of, edges, level, names)
    groups = clusters.complete_similarities(run, groups, edges)
    across = linkage if len(origins) else ""
    groups = clusters.expand_clusters(groups, duplicate_of, order, across)
    a, b = unpack_pairs(apart)
    for one, other in ((a, b), (b, a)):  # what single linkage connects by other pairs
        freed = one[groups.representative[one] == other]
        groups.assign(freed, freed, 1.0)
    if len(origins):
        whole = Sides.of(run, side, same=same).duplicate_of
    unreadable = distinct(np.concatenate(lost))[0]
    return ClustersFound(groups.without(unreadable), whole, compared, buckets, unreadable)
