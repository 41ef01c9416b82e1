"""The comparison: each measure and method, of one side and of two, against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lshdup.base.params import BandParams, PairParams, SketchParams
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.compare.best_matches import find_best_matches
from lshdup.compare.comparing import compare, meet
from lshdup.compare.expand_duplicates import expand_copies
from lshdup.compare.sides import Fingerprints, Side, Sides
from lshdup.lsh.band_plan import BandPlan
from lshdup.lsh.signatures import make_signatures
from tests.compare.test_pairs import listed
from tests.conftest import RUN

sets_of_numbers = st.lists(st.sets(st.integers(0, 12), max_size=8), max_size=8)
thresholds = st.sampled_from([0.2, 0.5, 0.8, 1.0])

#: As many bands as rows, so that nearly every pair with a common element is a candidate.
PLAN = BandPlan(256, 1, 0.2, 0.99)

CONTAINMENT = PairParams(measure="containment")
METHODS = {
    "bands": PairParams(), "exact": PairParams(exact=True), "same": PairParams(same="text"),
    "contained": CONTAINMENT,
}  # fmt: skip


def side_of(sets, keys):
    """The sets as a side; documents of equal sets are of one text."""
    ragged = RaggedSets.from_sets(sets)
    prints = np.array([keys[frozenset(each)] if each else 0 for each in sets], np.uint64)
    signatures = make_signatures(RUN, ragged, SketchParams(perms=256))
    return Side(ragged.sizes, prints, Fingerprints(prints, prints), ragged.take, signatures)


def sides_of(here, there=None, same="", origins=()):
    keys = {frozenset(each): number for number, each in enumerate(here + (there or []), 1)}
    right = None if there is None else side_of(there, keys)
    return Sides.of(RUN, side_of(here, keys), right, same, origins=np.array(origins, np.uint32))


def found_by(sides, method, threshold, run=RUN, *, collapse=False):
    """All pairs, the lower number first, with their scores."""
    found = compare(run, sides, BandParams(threshold, 0.99), method, PLAN)
    across = sides.identical(found.pairs)
    expanded = expand_copies(run, found.pairs, sides.duplicate_of, across=across, collapse=collapse)
    every = listed(expanded.pieces())
    assert len(every) == len(expanded)
    return sorted([(min(a, b), max(a, b), complex(score)) for a, b, score in every], key=str)


@pytest.mark.parametrize("name", METHODS)
@given(sets_of_numbers, sets_of_numbers, thresholds, st.sampled_from([1, 3]))
def test_pairs_of_two_sides_are_crossing_pairs_of_their_union(name, here, there, threshold, jobs):
    method, split = METHODS[name], len(here)
    crossing = found_by(sides_of(here, there, method.same), method, threshold, Run.quiet(jobs))
    union = found_by(sides_of(here + there, same=method.same), method, threshold)
    ones = complex(1, 1) if method.measure == "containment" else 1
    if name == "same":  # Exact duplicates are all there is.
        assert {score for *_, score in union} <= {1}
    assert crossing == [row for row in union if row[0] < split <= row[1]]
    assert all(score == ones for a, b, score in union if (here + there)[a] == (here + there)[b])


@pytest.mark.parametrize("name", METHODS)
@given(st.data(), st.sampled_from([1, 2, 3, 8]), thresholds, st.sampled_from([1, 3]))
def test_pairs_across_origins_are_all_but_those_of_one(name, data, kinds, threshold, jobs):
    """Documents with nothing that says their origin are origins of one document: 8 are many."""
    different = data.draw(st.lists(st.sets(st.integers(0, 12), max_size=8), min_size=1, max_size=6))
    sets = data.draw(st.lists(st.sampled_from(different), max_size=10))
    origins = [data.draw(st.integers(0, kinds - 1)) for _ in sets]
    method = METHODS[name]
    across = sides_of(sets, same=method.same, origins=origins)
    found = found_by(across, method, threshold, Run.quiet(jobs))
    every = found_by(sides_of(sets, same=method.same), method, threshold)
    if not origins:
        return
    assert found == [row for row in every if origins[row[0]] != origins[row[1]]]
    if method.by_bands:
        met = meet(RUN, across, np.arange(len(sets)), PLAN)
        for left, right in met.pieces:
            assert all(origins[a] != origins[b] for a, b in zip(left, right, strict=True))
    collapsed = found_by(across, method, threshold, collapse=True)
    assert set(collapsed) <= set(found)
    # Equal sets: each once, beside the first one of another origin.
    equal = {(a, b) for a, b, _ in collapsed if sets[a] == sets[b]}
    for kind in map(frozenset, different):
        rows_ = [i for i, each in enumerate(sets) if each == kind]
        beside = [
            next(((min(i, j), max(i, j)) for j in rows_ if origins[i] != origins[j]), None)
            for i in rows_
            if kind
        ]
        assert {pair for pair in equal if sets[pair[0]] == kind} == {*beside} - {None}


@given(sets_of_numbers, sets_of_numbers, thresholds)
def test_the_best_match_is_that_of_all_pairs(here, there, threshold):
    sides, params = sides_of(here, there), BandParams(threshold)
    best = find_best_matches(RUN, sides, params, PairParams(exact=True))
    pairs = found_by(sides, PairParams(exact=True), threshold)
    for document in range(len(here)):
        scores = [score.real for a, _, score in pairs if a == document]
        assert best.similarity[document] == max(scores, default=0)
        assert (best.right[document] >= 0) == bool(scores)
    by_bands = find_best_matches(RUN, sides, params, PairParams(), PLAN)
    assert (by_bands.right[best.right < 0] < 0).all()
