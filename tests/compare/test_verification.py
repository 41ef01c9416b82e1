"""Exact similarity and the exact join against the reference."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.ragged import RaggedSets, StringTable
from lshdup.base.run import Run
from lshdup.compare import verification
from lshdup.compare.exact_join import join_sets
from lshdup.compare.scored_pairs import gather_pairs
from lshdup.compare.verification import verify_jaccard
from lshdup.lsh import band_plan, band_table, candidates
from tests import reference
from tests.compare.test_pairs import rows
from tests.conftest import RUN, many, part

# Small domains make ties and overlaps; the full domain makes none.
collections = st.lists(
    st.sets(st.integers(0, 12) | st.integers(0, (1 << 64) - 1), max_size=14), max_size=14
)
thresholds = st.sampled_from([0.01, 0.1, 0.25, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 0.9, 1.0])
# Few elements, so that overlaps of every size are frequent; thresholds that similarities meet
# exactly, and tiny ones.
overlapping = st.lists(st.sets(st.integers(0, 40), max_size=30), max_size=30)
rationals = st.builds(lambda a, b: min(a, b) / max(a, b), st.integers(1, 40), st.integers(1, 40))


def joined(ragged, members, threshold, jobs=1):
    """Return all pairs of the exact join in the order of the pieces."""
    return listed(_in_order(join_sets(Run.quiet(jobs), ragged, members, threshold, "jaccard")))


def _in_order(pieces):
    """Yield pairs with the lower number first."""
    for a, b, similarity in pieces:
        yield np.minimum(a, b), np.maximum(a, b), similarity


def listed(pieces):
    return [row for each in pieces for row in rows(each)]


@settings(max_examples=many(400), deadline=None)
@given(
    collections | overlapping,
    thresholds | rationals | st.sampled_from([1e-300, 1e-9, 0.999]),
    st.sampled_from([1, 3, 1 << 20]),
)
def test_the_exact_join_is_brute_force(sets, threshold, most):
    """Also with so few counters and posting lists that elements share them."""
    ragged = RaggedSets.from_sets(sets)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("lshdup.compare.exact_join._MOST", most)
        found = joined(ragged, np.arange(len(sets)), threshold)
    assert sorted(found) == reference.all_pairs(sets, threshold)


@settings(max_examples=many(100), deadline=None)
@given(overlapping, rationals, st.integers(1, 5), st.data())
def test_the_exact_join_is_the_same_at_any_number_of_jobs_and_room(sets, threshold, probes, data):
    ragged = RaggedSets.from_sets(sets)
    members = np.array([i for i in range(len(sets)) if data.draw(st.booleans())], np.int64)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("lshdup.compare.exact_join._PROBES", probes)
        alone = joined(ragged, members, threshold)
        assert joined(ragged, members, threshold, 2) == alone
        assert joined(ragged, members, threshold, 4) == alone
        patched.setattr("lshdup.compare.exact_join.PIECE", 1)
        pieces = list(_in_order(join_sets(Run.quiet(2), ragged, members, threshold, "jaccard")))
        assert listed(pieces) == alone
        assert all(len(left) == 1 for left, _, _ in pieces)
    every, wanted = reference.all_pairs(sets, threshold), set(members.tolist())
    assert sorted(alone) == [pair for pair in every if {*pair[:2]} <= wanted]


def test_the_exact_join_of_longer_sets():
    """Long prefixes, long lists, and elements so frequent that they share a rarity."""
    rng = np.random.default_rng(7)
    template = set(rng.integers(0, 1 << 62, 60).tolist())
    sets = []
    for i in range(250):
        if i % 4 == 3:
            base = sorted(sets[int(rng.integers(i))])
            sets.append({x if rng.random() < 0.95 else int(rng.integers(1 << 62)) for x in base})
        else:
            sets.append({*template, *rng.zipf(1.2, int(rng.integers(1, 400))).tolist()})
    ragged = RaggedSets.from_sets([{x % (1 << 64) for x in each} for each in sets])
    sets = [set(each.tolist()) for each in ragged]
    for threshold in (0.2, 0.6, 0.9):
        found = joined(ragged, np.arange(250), threshold, 2)
        assert sorted(found) == reference.all_pairs(sets, threshold)
        assert len(found) > 20


QUOTIENTS = [(7, 25), (28, 50), (55, 100), (11, 20), (7, 10), (9, 10), (3, 5), (29, 100)]


@pytest.mark.parametrize(("small", "size"), QUOTIENTS)
def test_a_pair_exactly_at_the_threshold_is_found_by_every_way(small, size):
    """0.28 * 25 is more than 7 as a double, and 7 / 25 is 0.28."""
    threshold = small / size
    for below, above in ((small, size), (size - 1, size + 1)):
        ragged = RaggedSets.from_sets([set(range(below)), set(range(above))])
        expected = [(0, 1, below / above)] if below / above >= threshold else []
        assert joined(ragged, np.arange(2), threshold) == expected
        pairs = (np.array([0], np.uint32), np.array([1], np.uint32))
        found = verify_jaccard(RUN, [pairs], ragged.sizes, ragged.take, threshold)
        assert listed(found) == expected


def test_the_exact_join_where_counters_are_full(monkeypatch):
    """A counter that wrapped at 2^16 would take frequent elements for unique ones."""
    monkeypatch.setattr("lshdup.compare.exact_join._MOST", 1)
    sets = [set(range(1000 * (i // 2), 1000 * (i // 2) + 256 - i % 2)) for i in range(257)]
    sets[-1] = set(range((1 << 16) + 1 - sum(map(len, sets[:-1]))))
    ragged = RaggedSets.from_sets(sets)
    assert len(ragged.values) == (1 << 16) + 1
    expected = [(i, i + 1, 255 / 256) for i in range(0, 256, 2)]
    assert sorted(joined(ragged, np.arange(257), 0.9)) == expected


@settings(max_examples=many(150), deadline=None)
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


@settings(max_examples=many(100), deadline=None)
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
    asked = []

    def source(wanted):
        asked.append(wanted)
        return ragged.take(wanted)

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
    asked = []

    def source(wanted):
        asked.append(len(wanted))
        return ragged.take(wanted)

    pairs = tuple(each.astype(np.uint32) for each in np.triu_indices(400, 1))
    found = listed(verify_jaccard(RUN, [pairs], ragged.sizes, source, 0.5))
    assert len(found) == sum(400 - step for step in range(1, 34))
    assert max(asked) <= 40


def test_sets_of_a_cluster_are_fetched_once(monkeypatch):
    """Pairs come cluster by cluster, so a set is fetched once although memory holds only a few."""
    # Five documents of each kind, all over the collection.
    kinds = np.random.default_rng(2).permutation(np.repeat(np.arange(100), 5))
    signatures = kinds[:, None].astype(np.uint32).repeat(4, 1)
    plan = band_plan.BandPlan(2, 2, 0.5, 0.9)
    table = band_table.build_band_table(RUN, signatures, np.arange(500), plan)
    sets = RaggedSets.from_sets([range(1000 * kind, 1000 * kind + 20) for kind in kinds.tolist()])
    asked = []

    def source(wanted):
        asked.extend(wanted.tolist())
        return sets.take(wanted)

    monkeypatch.setattr(verification, "SET_BYTES", 16 * 20 * 30)  # thirty sets
    monkeypatch.setattr(candidates, "PIECE", 64)
    pieces = candidates.candidate_pairs(RUN, table).pieces
    assert len(listed(verify_jaccard(RUN, pieces, sets.sizes, source, 0.5))) == 100 * 10
    assert set(asked) == set(range(500))
    # A cluster that two blocks share may be fetched again, but not what is still held.
    assert len(asked) <= 500 + 25 * 5


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
