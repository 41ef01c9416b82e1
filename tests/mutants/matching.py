"""Faults in matching: the exact join, clusters, what is kept, and memory bounds."""

from tests.mutants import Mutant

CLUSTERS = "tests/matching/test_clusters.py"
CENTRES = "tests/matching/test_centres.py"
THRESHOLD = "tests/matching/test_at_threshold.py"

MUTANTS = [
    Mutant(
        "exact join: the length filter is not rounded down",
        "lshdup/matching/exact_join.py",
        "threshold * prefixes.sizes * (1 - 1e-12)",
        "threshold * prefixes.sizes",
        f"{THRESHOLD} -k exact",
    ),
    Mutant(
        "sizes: two sets exactly at the threshold are ruled out by their sizes, in a command",
        "lshdup/kernels/sets.py",
        "threshold * max(a, b) * (1.0 - 1e-12)",
        "threshold * max(a, b)",
        f"{THRESHOLD} -k bands",
    ),
    Mutant(
        "verify: the threshold is exclusive",
        "lshdup/matching/similarity.py",
        "keep = similarity >= threshold",
        "keep = similarity > threshold",
        f"{THRESHOLD} -k bands",
    ),
    Mutant(
        "verify: four times the memory for a block of sets",
        "lshdup/matching/similarity.py",
        "most = SET_BYTES // 16",
        "most = SET_BYTES // 4",
        "tests/matching/test_similarity.py -k memory",
    ),
    Mutant(
        "clusters: the sets of all leaders stay in memory",
        "lshdup/matching/leaders.py",
        "while done < len(rest) and used <= HELD_BYTES // 8:",
        "while done < len(rest):",
        f"{CLUSTERS} -k memory",
    ),
    Mutant(
        "clusters --against: what is in DOCS and OTHER may go",
        "lshdup/workspace/against/clusters.py",
        "rest = np.setdiff1d(np.flatnonzero((here.sizes > 0) & ~is_shared), goes)",
        "rest = np.setdiff1d(np.flatnonzero(here.sizes > 0), goes)",
        "tests/workspace/test_clusters_against.py -k both_sides",
    ),
    Mutant(
        "--unmatched: a document is compared once",
        "lshdup/workspace/against/partners.py",
        "until = 2 * until + 1",
        "break",
        "tests/workspace/test_against.py -k only_in_docs",
    ),
    Mutant(
        "against: a file that is paired with itself counts as an estimate",
        "lshdup/workspace/against/pairs.py",
        "self._expanded.count(estimated) - int(contains(estimated, itself).sum())",
        "self._expanded.count(estimated)",
        "tests/workspace/test_against.py -k by_an_estimate",
    ),
    Mutant(
        "filter: ids from 0 to n - 1 leave no number for free slots",
        "lshdup/shingling/shingle_filter.py",
        "gaps[0] if len(gaps) else len(shingles)",
        "gaps[0] if len(gaps) else len(shingles) - 1",
        "tests/shingling/test_shingle_filter.py -k consecutive",
    ),
    Mutant(
        "keep: folders do not count",
        "lshdup/documents/preference.py",
        "components = np.diff(until, prepend=0)",
        "components = np.minimum(np.diff(until, prepend=0), 1)",
        f"{CLUSTERS} -k shortest_path",
    ),
    Mutant(
        "keep: bytes of the last name count, not characters",
        "lshdup/documents/preference.py",
        "(blob & 0xC0 != 0x80)",
        "(blob >= 0)",
        f"{CLUSTERS} -k shortest_path",
    ),
    Mutant(
        "keep: backups are originals",
        "lshdup/documents/preference.py",
        "is not None\n    return list(keys)",
        "is None\n    return list(keys)",
        f"{CLUSTERS} -k shortest_path",
    ),
    Mutant(
        "keep: of records the shortest path is the default",
        "lshdup/documents/preference.py",
        'return "shortest-path" if have_paths.any() else "first"',
        'return "shortest-path"',
        f"{CLUSTERS} -k lines_of",
    ),
    Mutant(
        "keep: any record makes `first` the default",
        "lshdup/documents/preference.py",
        "if have_paths.any() else",
        "if have_paths.all() else",
        f"{CLUSTERS} -k lines_of",
    ),
    Mutant(
        "central: members need not be similar to the one that is kept",
        "lshdup/matching/centres.py",
        "can_lead[a[below]] = can_lead[b[below]] = False",
        "can_lead[a[below]] = can_lead[a[below]]",
        f"{CENTRES} -k every_member",
    ),
    Mutant(
        "central: exact duplicates count once",
        "lshdup/matching/centres.py",
        "np.add.at(total, a, score * weight[b])",
        "np.add.at(total, a, score)",
        f"{CENTRES} -k largest_sum",
    ),
    Mutant(
        "central: --prefer is forgotten",
        "lshdup/matching/centres.py",
        "if level is not None:",
        "if False:",
        f"{CENTRES} -k largest_sum",
    ),
    Mutant(
        "central: equal sums are told apart by rounding",
        "lshdup/matching/centres.py",
        "_TIE = 1e-9",
        "_TIE = 0.0",
        f"{CENTRES} -k rounding",
    ),
    Mutant(
        "central: the last of equal sums is kept",
        "lshdup/matching/centres.py",
        "centre = members[winners[np.searchsorted(winners, first)]]",
        "centre = members[winners[np.searchsorted(winners, first + counts) - 1]]",
        f"{CENTRES} -k largest_sum",
    ),
    Mutant(
        "containment: of equal sets only one measure is 1",
        "lshdup/matching/copies.py",
        "one = 1.0 + 1.0j if",
        "one = 1.0 if",
        "tests/matching/test_measures.py -k exact_duplicates",
    ),
    Mutant(
        "containment: a document of many copies is inside later ones only",
        "lshdup/matching/copies.py",
        "np.where(self.differ_in_size(own, other), self.starts[other], places)",
        "places",
        "tests/matching/test_measures.py -k all_documents",
    ),
    Mutant(
        "containment: a query looks at the first block of documents only",
        "lshdup/matching/measures.py",
        "        done += len(block)\n",
        "        done += 0\n",
        "tests/matching/test_measures.py -k one_document",
    ),
]
