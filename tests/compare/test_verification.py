"""Exact similarity of given pairs, and tables of sets and strings, against the reference."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.ragged import RaggedSets, StringTable
from lshdup.base.run import Run
from lshdup.compare import verification
from lshdup.compare.scored_pairs import gather_pairs
from lshdup.compare.verification import verify_jaccard
from lshdup.lsh import band_plan, band_table, candidates
from tests import reference
from tests.compare.test_pairs import listed, rows
from tests.conftest import RUN, many, part

# Small domains make ties and overlaps; the full domain makes none.
elements = st.integers(0, 12) | st.integers(0, (1 << 64) - 1)
collections = st.lists(st.sets(elements, max_size=14), max_size=14)
thresholds = st.sampled_from([0.01, 0.1, 0.25, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 0.9, 1.0])


@settings(max_examples=many(150))
@given(
    collections.filter(lambda sets: len(sets) > 1), thresholds, st.sampled_from([1, 9]),
    st.sampled_from([1, 3]),
)  # fmt: skip
def test_given_pairs(sets, threshold, times, jobs):
    """Also so many that threads share them; and 0 below a threshold."""
    run, ragged = Run.quiet(jobs), RaggedSets.from_sets(sets)
    left, right = (np.tile(each, times) for each in np.triu_indices(len(sets), 1))
    exact = [reference.jaccard(sets[i], sets[j]) for i, j in zip(left, right, strict=True)]
    assert verification.jaccard(run, ragged, left, right).tolist() == exact
    above = [s if s >= threshold else 0 for s in exact]
    assert verification.jaccard(run, ragged, left, right, threshold).tolist() == above


sizes = st.integers(0, 60)


@given(st.integers(0, 1 << 32), sizes, sizes, st.integers(0, 90), thresholds)
def test_long_runs_of_common_elements(seed, only_a, only_b, common, threshold):
    """Equal runs, which are compared eight elements at a time, begin and end anywhere."""
    rng = np.random.default_rng(seed)
    pool = rng.choice(1000, only_a + only_b + common, replace=False).tolist()
    a, b = set(pool[: only_a + common]), set(pool[only_a:])
    exact = reference.jaccard(a, b)
    ragged = RaggedSets.from_sets([a, b])
    found = verification.jaccard(RUN, ragged, np.array([0]), np.array([1]), threshold)
    assert found[0] == (exact if exact >= threshold else 0)


def watched(sets):
    """A source of sets, and the numbers that it was asked for, a list each time."""
    asked = []

    def source(wanted):
        asked.append(wanted.tolist())
        return sets.take(wanted)

    return source, asked


def cut(left, right, size):
    """Return pairs in pieces of at most `size`."""
    both = np.stack([left, right]).astype(np.uint32)
    return [tuple(both[:, i : i + size].copy()) for i in range(0, len(left), size)]


@pytest.mark.parametrize(
    ("room", "piece", "cache", "jobs"),
    part(product([0, 800, 1 << 30], [7, 1 << 20], [0, 1 << 20], [1, 3]), 3),
)
def test_verification_in_blocks_of_any_size(monkeypatch, room, piece, cache, jobs):
    rng = np.random.default_rng(1)
    sets = [set(rng.integers(0, 30, rng.integers(1, 15)).tolist()) for _ in range(80)]
    ragged = RaggedSets.from_sets(sets)
    source, asked = watched(ragged)
    monkeypatch.setattr(verification, "SET_BYTES", room)
    monkeypatch.setattr(verification, "CACHE_BYTES", cache)
    pieces = cut(*np.triu_indices(80, 1), piece)
    verified = verify_jaccard(Run.quiet(jobs), pieces, ragged.sizes, source, 0.3)
    found = gather_pairs(RUN, verified)
    expected = sorted(reference.all_pairs(sets, 0.3), key=lambda each: (-each[2], each[0], each[1]))
    assert rows((found.left, found.right, found.similarity)) == expected
    if piece > 80 * 79 // 2:
        assert (len(asked) == 1) == (room == 1 << 30)


def test_memory_of_sets_is_bounded(monkeypatch):
    """One cluster of sets that exceed the limit: half of it is for the sets of a block."""
    ragged = RaggedSets.from_sets([set(range(d, d + 100)) for d in range(400)])
    monkeypatch.setattr(verification, "SET_BYTES", 8 * 100 * 80)  # eighty sets
    monkeypatch.setattr(verification, "BLOCK_BYTES", 8 * 100 * 400)
    source, asked = watched(ragged)
    pairs = tuple(each.astype(np.uint32) for each in np.triu_indices(400, 1))
    found = listed(verify_jaccard(RUN, [pairs], ragged.sizes, source, 0.5))
    assert len(found) == sum(400 - step for step in range(1, 34))
    assert max(map(len, asked)) <= 40


def test_sets_of_a_cluster_are_fetched_once(monkeypatch):
    """Pairs come cluster by cluster, so a set is fetched once although memory holds only a few."""
    # Five documents of each kind, all over the collection.
    kinds = np.random.default_rng(2).permutation(np.repeat(np.arange(100), 5))
    signatures = kinds[:, None].astype(np.uint32).repeat(4, 1)
    plan = band_plan.BandPlan(2, 2, 0.5, 0.9)
    table = band_table.build_band_table(RUN, signatures, np.arange(500), plan)
    sets = RaggedSets.from_sets([range(1000 * kind, 1000 * kind + 20) for kind in kinds.tolist()])
    source, asked = watched(sets)
    monkeypatch.setattr(verification, "SET_BYTES", 16 * 20 * 30)  # thirty sets
    monkeypatch.setattr(candidates, "PIECE", 64)
    pieces = candidates.candidate_pairs(RUN, table).pieces
    assert len(listed(verify_jaccard(RUN, pieces, sets.sizes, source, 0.5))) == 100 * 10
    fetched = [each for some in asked for each in some]
    assert set(fetched) == set(range(500))
    # A cluster that two blocks share may be fetched again, but not what is still held.
    assert len(fetched) <= 500 + 25 * 5


@given(st.lists(st.binary(max_size=5), max_size=12), st.binary(min_size=1, max_size=2))
def test_string_tables(strings, tail):
    table = StringTable.from_strings(strings)
    assert list(table) == strings
    assert table.ending_with(tail) == [i for i, s in enumerate(strings) if s.endswith(tail)]
    indices = np.array([i for i in range(len(strings)) if i % 2], np.int64)
    assert list(table.take(indices)) == strings[1::2]
    ordered = sorted(set(strings))
    for i, s in enumerate(ordered):
        assert StringTable.from_strings(ordered).find(s) == i
    assert StringTable.from_strings(ordered).find(b"not there") is None
    assert StringTable.from_strings([b"ab", b"c"]).ending_with(b"bc") == []


def test_offsets_that_wrap_are_outside_the_values():
    """As a damaged file may hold them: the sum of start and size is negative."""
    table = StringTable(np.zeros(9, np.uint8), np.array([1, -(1 << 63)]))
    with pytest.raises(IndexError, match="outside"):
        table.take(np.array([0]))


@given(collections)
def test_ragged_sets_round_trip(sets):
    ragged = RaggedSets.from_sets(sets)
    assert [set(each.tolist()) for each in ragged] == sets
    order = np.arange(len(sets))[::-1]
    assert [set(each.tolist()) for each in ragged.take(order)] == sets[::-1]
    again = RaggedSets.concatenate([ragged.take(np.array([i])) for i in range(len(sets))])
    assert (again.values == ragged.values).all()
    assert (again.offsets == ragged.offsets).all()
