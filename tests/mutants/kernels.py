"""Faults of lshdup/kernels."""

from tests.mutants import Mutant

MUTANTS = [
    Mutant(
        "exact join: postings of one element too few",
        "lshdup/kernels/prefix_join.py",
        "enough = size - _least_overlap(size, size, threshold) + 1 - single",
        "enough = size - _least_overlap(size, size, threshold) - single",
        "tests/matching/test_similarity.py",
    ),
    Mutant(
        "exact join: the position filter is too strict",
        "lshdup/kernels/prefix_join.py",
        "missing[y] = _OUT if lacking > min(rest,",
        "missing[y] = _OUT if lacking >= min(rest,",
        "tests/matching/test_similarity.py",
    ),
    Mutant(
        "candidates: the first of equal fingerprints is the last",
        "lshdup/lsh/candidates.py",
        "np.repeat(order[begins],",
        "np.repeat(order[np.append(begins[1:], n) - 1],",
        "tests/matching/test_clusters.py",
    ),
]
