"""The central documents of clusters, against sums of fractions over all pairs of each group."""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.params import ClusterParams
from lshdup.base.ragged import RaggedSets, StringTable
from lshdup.compare import clusters, medoids
from lshdup.compare.expand_duplicates import NO_KEYS
from lshdup.workspace.comparing import load_or_find_clusters
from tests.compare.test_clusters import Made, collections
from tests.conftest import ROOT, RUN, many, open_index, part, write_files
from tests.reference import path_key


def jaccard(a, b):
    return Fraction(len(a & b), len(a | b))


def obvious_centre(group, sets, rank, threshold, linkage, level):
    """The document of a group with the largest sum, the first of equal ones.

    group : documents; the one of the smallest rank represents it before.
    """
    first = min(group, key=rank)

    def may_be_it(d):
        near = (linkage == "single" or float(jaccard(sets[d], sets[e])) >= threshold for e in group)
        return level(d) == level(first) and (d == first or all(near))

    return min(
        filter(may_be_it, group),
        key=lambda d: (-sum(jaccard(sets[d], sets[e]) for e in group), rank(d)),
    )


def groups_of(representatives):
    groups = defaultdict(list)
    for d, representative in representatives.items():
        groups[representative].append(d)
    return groups.values()


def check(made, threshold, linkage, level):
    done = []
    run = replace(RUN, progress=lambda _, *steps: done.append(steps))
    found, _ = made.find_kinds(linkage, threshold)
    best = clusters.choose_representatives(RUN, made.duplicate_of, made.order)
    edges, level_of = made.edges(linkage, threshold), level[best[made.duplicate_of]]
    order, firsts, names = made.ordered, made.duplicate_of, StringTable.from_strings([])
    central = medoids.choose_medoids(run, found, order, firsts, edges, level_of, names)
    central = made.expand(central)
    rank = np.argsort(made.order).tolist().__getitem__
    before = {d: r for d, (r, _) in made.expected(linkage, threshold).items()}
    pairs = 0
    for group in groups_of(before):
        centre = obvious_centre(group, made.sets, rank, threshold, linkage, level.__getitem__)
        for d in group:
            assert central.representative[d] == centre
            assert central.similarity[d] == float(jaccard(made.sets[d], made.sets[centre]))
            assert linkage == "single" or central.similarity[d] >= threshold
        distinct = len({int(made.duplicate_of[d]) for d in group})
        pairs += distinct * (distinct - 1) // 2
    assert done[-1:] == [(pairs, pairs)] * (pairs > 0)
    assert (np.flatnonzero(central.representative >= 0)).tolist() == sorted(before)


THRESHOLDS = st.sampled_from([0.2, 0.3, 0.5, 2 / 3, 1.0])
LINKAGES = st.sampled_from(["representative", "single"])


@settings(max_examples=many(300))
@given(collections(), THRESHOLDS, LINKAGES, st.data())
def test_the_centre_has_the_largest_sum(made, threshold, linkage, data):
    n = len(made.sets)
    level = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    # What is preferred comes first, as `preference` orders.
    ordered = made.order[np.argsort(level[made.order], kind="stable")]
    check(Made(made.sets, made.keys.tolist(), ordered, made.max_bucket), threshold, linkage, level)


@pytest.mark.parametrize(("block", "piece"), part(product([3, 40, 1 << 20], [1, 7, 1 << 20]), 3))
def test_large_groups_are_compared_in_pieces(monkeypatch, piece, block):
    monkeypatch.setattr(medoids, "PIECE", piece)
    monkeypatch.setattr(medoids, "BLOCK", block)
    rng = np.random.default_rng(7)
    base = set(range(20))
    sets = [base - set(rng.integers(0, 20, 3).tolist()) | {50 + i % 4} for i in range(40)]
    sets += [{1000 + i % 3, *range(900, 905)} for i in range(12)] + [set(), {7}]
    n = len(sets)
    made = Made(sets, [[1] * 40 + [2] * 13 + [3]], rng.permutation(n).tolist())
    for linkage in ("representative", "single"):
        for threshold in (0.3, 0.7):
            check(made, threshold, linkage, np.zeros(n, np.int64))


@pytest.mark.parametrize("block", [1, 5, 100])
def test_each_pair_comes_once(monkeypatch, block):
    monkeypatch.setattr(medoids, "PIECE", 4)
    monkeypatch.setattr(medoids, "BLOCK", block)
    counts, sizes = np.array([3, 1, 6, 2]), np.array([1, 2, 9, 4, 1, 1, 1, 7, 1, 0, 3, 3])
    pieces = medoids.pairs_within(counts, sizes)
    found = [pair for a, b in pieces for pair in zip(a.tolist(), b.tolist(), strict=True)]
    group = np.repeat(np.arange(4), counts)
    assert sorted(found) == [(i, j) for i, j in combinations(range(12), 2) if group[i] == group[j]]


@pytest.mark.parametrize(("last", "centre"), [(6, 0), (7, 1)])
def test_a_centre_is_similar_enough_to_every_member(last, centre):
    """The second set has the largest sum; 6 / 14 with the last one is too little, 7 / 14 is not."""
    sets, zeros = [set(range(n)) for n in (12, 14, 15, last)], np.zeros(4, np.int64)
    check(Made(sets, [[1] * 4], range(4)), 0.5, "representative", zeros)
    group = obvious_centre(range(4), sets, int, 0.5, "representative", zeros.__getitem__)
    assert group == centre


def test_rounding_decides_no_tie():
    """Sums of the same fractions in another order are equal: the first document is kept."""
    # A star of pairs: documents of the same kind have the same similarities, to others each.
    for seed in range(30):
        rng = np.random.default_rng(seed)
        step, n = int(rng.integers(1, 9)), 25
        # A ring: every document has the same similarities, in another order.
        sets = [{(d * step + i) % (n * step) for i in range(7 * step + 3)} for d in range(n)]
        made = Made(sets, [[1] * n], rng.permutation(n).tolist())
        check(made, 0.01, "single", np.zeros(n, np.int64))


def test_a_lost_set_is_no_centre():
    """The set of the document that represents is lost after groups were made."""
    sets = RaggedSets.from_sets([{1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 5}])
    found = clusters.Clusters(RUN, np.zeros(3, np.int64), np.array([1.0, 0.75, 0.75]))

    def source(wanted):
        taken = [sets[d] if d else sets[d][:0] for d in wanted.tolist()]
        return RaggedSets.from_sizes(np.concatenate(taken), np.array([len(each) for each in taken]))

    order, names = np.arange(3), StringTable.from_strings([])
    edges = clusters.Edges(sets.sizes, source, 0.7, "representative", NO_KEYS)
    for each in (edges, replace(edges, source=sets.take)):
        central = medoids.choose_medoids(RUN, found, order, order, each, np.zeros(3), names)
        assert central.representative.tolist() == [0, 0, 0]


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        "--exact",
        "--recall 0.9999 --perms 256 --linkage single",
        "--prefer '*.copy1' --prefer sample_corpus/udhr",
    ],
)
def test_central_on_the_sample_corpus(run, sample_sets, options):
    threshold = 0.5
    common = f"clusters sample_corpus -t {threshold} {options} --no-store"
    before, after = (run(common + more, cwd=ROOT) for more in ("", " --keep central"))
    assert "kept: the most similar to all others of its group" in after.err
    linkage = "single" if "single" in options else "representative"
    keepers = {row[0]: row[2] for row in before.rows if row[1] == "keep"}
    groups = groups_of({row[2]: keepers[row[0]] for row in before.rows})
    central = {row[0]: row[2] for row in after.rows if row[1] == "keep"}
    found = {row[2]: (central[row[0]], float(row[3])) for row in after.rows}
    assert {row[2] for row in before.rows} == set(found)
    changed = 0
    for group in groups:
        first = next(name for name in group if name in keepers.values())

        def rank(name, first=first):
            return name != first, path_key(name), name.encode()

        def level(name):
            in_folder = name.startswith("sample_corpus/udhr")
            is_copy = name.endswith(".copy1")
            return 0 if "--prefer" not in options or is_copy else 1 if in_folder else 2

        centre = obvious_centre(group, sample_sets, rank, threshold, linkage, level)
        changed += centre != first
        for name in group:
            similarity = float(jaccard(sample_sets[name], sample_sets[centre]))
            assert found[name] == (centre, pytest.approx(similarity, abs=1e-12))
            assert linkage == "single" or similarity >= threshold
    assert changed


def test_many_comparisons_are_said_before_them(here, monkeypatch):
    write_files(here, {f"{n}.txt": " ".join(f"w{i}" for i in range(n)) for n in (40, 44, 48)})
    monkeypatch.setattr(medoids, "_MANY_COMPARISONS", 2)
    said = []
    steps, indexed, request = open_index(None, [b"."], said.append, threshold=0.7)
    load_or_find_clusters(steps, indexed, ClusterParams(keep="central"), request)
    assert "--keep central compares all documents of a group: 3 similarities" in " ".join(said)
