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


def score(a, b):
    """Containment and similarity of two sets."""
    return len(a & b) / min(len(a), len(b)), len(a & b) / len(a | b)


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


def duplicates(sets):
    """`duplicate_of`, from one number for each different set."""
    return find_exact_duplicates(RUN, numbered(sets))


def numbered(sets):
    """One number for each different set; 0 for empty ones."""
    kinds = {frozenset(each): number for number, each in enumerate(sets, 1)}
    return np.array([kinds[frozenset(each)] if each else 0 for each in sets], np.uint64)


@settings(max_examples=many(300))
@given(sets_of_numbers, thresholds, st.sampled_from([1, 3, 1 << 18]))
def test_pairs_of_all_documents_are_those_of_brute_force(sets, threshold, piece):
    ragged, duplicate_of = RaggedSets.from_sets(sets), duplicates(sets)
    members = np.flatnonzero(duplicate_of == np.arange(len(sets)))
    pairs = insides(ragged, members, threshold)
    expected = brute_force(sets, threshold)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(expand_duplicates, "PIECE", piece)
        made = expand_copies(RUN, pairs, duplicate_of, sizes=ragged.sizes)
        assert [row for each in made.pieces() for row in rows(each)] == expected
    assert len(made) == len(expected)
    levels = [threshold, 0.9, 1.0]
    assert made.totals(np.array(levels)) == [sum(row[2] >= t for row in expected) for t in levels]
    best = made.best(len(sets)).tolist()
    for i, share in enumerate(best):
        assert share == max([row[2] for row in expected if i in row[:2]], default=0.0)
    above = insides(ragged, members, min(threshold, 0.5)).at_least(threshold)
    of_both = ((each.left, each.right, each.similarity) for each in (above, pairs))
    assert rows(next(of_both)) == rows(next(of_both))


@settings(max_examples=many(200))
@given(sets_of_numbers, thresholds)
def test_collapsed_copies_are_beside_the_first(sets, threshold):
    ragged, duplicate_of = RaggedSets.from_sets(sets), duplicates(sets)
    is_first = duplicate_of == np.arange(len(sets))
    pairs = insides(ragged, np.flatnonzero(is_first), threshold)
    made = expand_copies(RUN, pairs, duplicate_of, collapse=True, sizes=ragged.sizes)
    assert [row for each in made.pieces() for row in rows(each)] == [
        row
        for row in brute_force(sets, threshold)
        if (is_first[row[0]] and is_first[row[1]]) or duplicate_of[row[1]] == row[0]
    ]


def test_only_exact_duplicates_have_scores_of_both_measures():
    """No pair of different sets says that the scores are of containment."""
    pairs = insides(RaggedSets.from_sets([{1}, {1}]), np.array([0]), 0.8)
    made = expand_copies(RUN, pairs, np.zeros(2, int))
    assert [row for each in made.pieces() for row in rows(each)] == [(0, 1, 1.0, 1.0)]


@settings(max_examples=many(200))
@given(sets_of_numbers, thresholds, st.sampled_from([1, 2, 4]), st.sampled_from([40, 1 << 20]))
def test_one_document_against_all(sets, threshold, jobs, block):
    """Its neighbours are those of brute force, whatever the size of a block."""
    ragged, duplicate_of = RaggedSets.from_sets(sets), duplicates(sets)
    members = documents_to_compare(RUN, duplicate_of, ragged.sizes)
    side = Side(ragged.sizes, numbered(sets), None, ragged.take)
    with_tokens = [i for i, each in enumerate(sets) if each]
    for i in with_tokens[:3]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(comparing, "BLOCK_BYTES", block)
            found = find_neighbours(
                Run.quiet(jobs), ragged[i], members, Sides.of(RUN, side), threshold,
                "containment", itself=i,
            )  # fmt: skip
        scores = {j: complex(*score(sets[i], sets[j])) for j in with_tokens if j != i}
        near = [(j, shares) for j, shares in scores.items() if shares.real >= threshold]
        expected = sorted(near, key=lambda each: (-each[1].real, -each[1].imag, each[0]))
        assert (
            list(zip(found.documents.tolist(), found.similarity.tolist(), strict=True)) == expected
        )


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
