"""Faults of lshdup/matching."""

from tests.mutants import Mutant

CLUSTERS, COPIES = "tests/matching/test_clusters.py", "tests/matching/test_pairs.py"

MUTANTS = [
    Mutant(
        "exact join: rounding of sizes rules out a pair at the threshold",
        "lshdup/matching/exact_join.py",
        "threshold * prefixes.sizes * (1 - 1e-12)",
        "threshold * prefixes.sizes",
        "tests/matching/test_similarity.py",
    ),
    Mutant(
        "exact join: pairs of one side are wanted too",
        "lshdup/matching/prefix_index.py",
        "    if split is None:\n",
        "    if True:\n",
        "tests/workspace/test_against.py::test_the_join_across_is_brute_force",
    ),
    Mutant(
        "verification: pairs at the threshold are dropped",
        "lshdup/matching/similarity.py",
        "keep = similarity >= threshold",
        "keep = similarity > threshold",
        "tests/matching/test_similarity.py",
    ),
    Mutant(
        "pairs: equal similarities are in any order",
        "lshdup/matching/copies.py",
        "order = np.lexsort((keys, -values))",
        "order = np.argsort(-values)",
        COPIES,
    ),
    Mutant(
        "copies: a document is paired with itself",
        "lshdup/matching/copies.py",
        "once = (left != right)[of_pair] | (a < b)",
        "once = (left != right)[of_pair] | (a <= b)",
        COPIES,
    ),
    Mutant(
        "copies: estimates of 1 come behind copies",
        "lshdup/matching/copies.py",
        "    merged[: len(keys) + ones].sort()\n",
        "",
        COPIES,
    ),
    Mutant(
        "copies: pairs within a class are counted as products",
        "lshdup/matching/copies.py",
        "sum(n * (n - 1) // 2 - n * n for n",
        "sum(n * (n - 1) // 2 for n",
        COPIES,
    ),
    Mutant(
        "pairs: a threshold loses the pairs that are exactly at it",
        "lshdup/matching/copies.py",
        'np.searchsorted(-self._pairs.values, -thresholds, side="right")',
        'np.searchsorted(-self._pairs.values, -thresholds, side="left")',
        "tests/evaluation/test_calibration.py",
    ),
    Mutant(
        "clusters: of equal size any is first",
        "lshdup/matching/clusters.py",
        "lambda at: -by_size(leaders[at])",
        "lambda at: -by_size(leaders[at]) * 2 + leaders[at] % 2",
        f"{CLUSTERS}::test_listing_is_in_order",
    ),
    Mutant(
        "clusters: the representative is listed among its members",
        "lshdup/matching/clusters.py",
        "lambda at: own[documents[at]] != documents[at],",
        "",
        CLUSTERS,
    ),
    Mutant(
        "clusters: the least preferred copy takes the place of a representative",
        "lshdup/matching/clusters.py",
        "worst_first = preference[some][::-1]",
        "worst_first = preference[some]",
        CLUSTERS,
    ),
    Mutant(
        "earlier pairs: any threshold is covered",
        "lshdup/matching/results.py",
        "and self.band_params.threshold <= band_params.threshold",
        "and self.band_params.threshold <= 1.0",
        "tests/workspace/test_rethreshold.py",
    ),
    Mutant(
        "earlier pairs: those of another verification are covered",
        "lshdup/matching/results.py",
        "            and self.pair_params == pair_params\n",
        "",
        "tests/workspace/test_rethreshold.py",
    ),
]
