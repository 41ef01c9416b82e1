"""Containment: scores, the order of pairs, and their exact duplicates, against brute force."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.compare import comparing, expand_duplicates
from lshdup.compare.comparing import find_neighbours
from lshdup.compare.exact_join import join_sets
from lshdup.compare.expand_duplicates import expand_copies
from lshdup.compare.scored_pairs import gather_pairs
from lshdup.compare.sides import Side, Sides
from lshdup.compare.verification import containment, relations
from lshdup.lsh.candidates import documents_to_compare, find_exact_duplicates
from tests.conftest import RUN, many
from tests.reference import all_insides

sets_of_numbers = st.lists(st.sets(st.integers(0, 12), max_size=10), max_size=14)
thresholds = st.sampled_from([0.25, 1 / 3, 0.5, 2 / 3, 0.75, 0.8, 1.0])


def brute_force(sets, threshold):
    """All pairs (inside, holder, containment, similarity) in the order of the listing."""
    return sorted(all_insides(sets, threshold), key=lambda row: (-row[2], -row[3], *row[:2]))


def rows(columns):
    left, right, scores = columns
    names = left.tolist(), right.tolist()
    return list(zip(*names, scores.real.tolist(), scores.imag.tolist(), strict=True))


def insides(sets, members, threshold):
    found = join_sets(RUN, sets, members, threshold, "containment")
    return gather_pairs(RUN, found, np.complex128)


def numbered(sets):
    """One number for each different set; 0 for empty ones."""
    kinds = {frozenset(each): number for number, each in enumerate(sets, 1)}
    return np.array([kinds[frozenset(each)] if each else 0 for each in sets], np.uint64)


def listed(pairs):
    return [row for each in pairs.pieces() for row in rows(each)]


@settings(max_examples=many(500))
@given(sets_of_numbers, thresholds, st.sampled_from([1, 3, 1 << 18]))
def test_pairs_of_all_documents_are_those_of_brute_force(sets, threshold, piece):
    """And collapsed copies are beside the first one."""
    ragged, duplicate_of = RaggedSets.from_sets(sets), find_exact_duplicates(RUN, numbered(sets))
    is_first = duplicate_of == np.arange(len(sets))
    members = np.flatnonzero(is_first)
    pairs = insides(ragged, members, threshold)
    expected = brute_force(sets, threshold)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(expand_duplicates, "PIECE", piece)
        made = expand_copies(RUN, pairs, duplicate_of, sizes=ragged.sizes)
        assert listed(made) == expected
    collapsed = expand_copies(RUN, pairs, duplicate_of, collapse=True, sizes=ragged.sizes)
    assert listed(collapsed) == [
        (a, b, *scores)
        for a, b, *scores in expected
        if (is_first[a] and is_first[b]) or duplicate_of[b] == a
    ]
    assert len(made) == len(expected)
    levels = [threshold, 0.9, 1.0]
    assert made.totals(np.array(levels)) == [sum(row[2] >= t for row in expected) for t in levels]
    best = [max([row[2] for row in expected if i in row[:2]], default=0) for i in range(len(sets))]
    assert made.best().tolist() == best
    above = insides(ragged, members, min(threshold, 0.5)).at_least(threshold)
    of_both = ((each.left, each.right, each.similarity) for each in (above, pairs))
    assert rows(next(of_both)) == rows(next(of_both))


def test_only_exact_duplicates_have_scores_of_both_measures():
    """No pair of different sets says that the scores are of containment."""
    pairs = insides(RaggedSets.from_sets([{1}, {1}]), np.array([0]), 0.8)
    made = expand_copies(RUN, pairs, np.zeros(2, int))
    assert listed(made) == [(0, 1, 1.0, 1.0)]


@settings(max_examples=many(200))
@given(sets_of_numbers, thresholds, st.sampled_from([1, 2, 4]), st.sampled_from([40, 1 << 20]))
def test_one_document_against_all(sets, threshold, jobs, block):
    """Its neighbours are those of brute force, whatever the size of a block."""
    ragged, duplicate_of = RaggedSets.from_sets(sets), find_exact_duplicates(RUN, numbered(sets))
    members = documents_to_compare(RUN, duplicate_of, ragged.sizes)
    side = Side(ragged.sizes, numbered(sets), None, ragged.take)
    for i in [i for i, each in enumerate(sets) if each][:3]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(comparing, "BLOCK_BYTES", block)
            found = find_neighbours(
                Run.quiet(jobs), ragged[i], members, Sides.of(RUN, side), threshold,
                "containment", itself=i,
            )  # fmt: skip
        near = [(a + b - i, *s) for a, b, *s in all_insides(sets, threshold) if i in (a, b)]
        near.sort(key=lambda each: (-each[1], -each[2], each[0]))
        scores = found.similarity.real.tolist(), found.similarity.imag.tolist()
        assert list(zip(found.documents.tolist(), *scores, strict=True)) == near


@pytest.mark.parametrize("size", [1, 7, 25, 1000])
def test_containment_of_every_overlap_is_the_quotient(size):
    """The overlap that is found from a similarity is the one that made it."""
    small = [range(3 * size - k, 4 * size - k) for k in range(size + 1)]
    sets = RaggedSets.from_sets([range(3 * size), *small])
    found = containment(RUN, sets, np.zeros(size + 1, int), np.arange(1, size + 2))
    assert found.real.tolist() == [k / size for k in range(size + 1)]
    assert found.imag.tolist() == [k / (4 * size - k) for k in range(size + 1)]


def test_relations_say_which_set_is_smaller():
    sizes = np.array([*permutations((3, 5), 2), (4, 4)])
    assert relations(sizes[:, 0], sizes[:, 1]) == ["inside", "holds", "both"]
