"""The exact join, of both measures, against brute force."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.compare import exact_join
from lshdup.compare.exact_join import join_sets, min_shared_sizes
from lshdup.compare.verification import verify_jaccard
from tests import reference
from tests.compare.test_pairs import listed
from tests.conftest import RUN, many

# Small domains make ties and overlaps of every size; the full domain makes none. Sets of very
# different sizes are inside others; 0 is special in hash tables.
numbers = st.integers(0, 40)
some_sets = st.lists(
    st.sets(st.integers(0, 12) | st.integers(0, (1 << 64) - 1), max_size=14)
    | st.sets(numbers, max_size=4)
    | st.sets(numbers, max_size=40),
    max_size=30,
) | st.lists(st.sets(numbers, max_size=30), max_size=30)
# Thresholds that similarities meet exactly, and tiny ones.
rationals = st.builds(lambda a, b: min(a, b) / max(a, b), st.integers(1, 40), st.integers(1, 40))
thresholds = rationals | st.sampled_from([1e-300, 1e-9, 0.01, 0.1, 0.25, 0.8, 0.999, 1.0])

BRUTE_FORCE = {"jaccard": reference.all_pairs, "containment": reference.all_insides}
of_measures = pytest.mark.parametrize("measure", BRUTE_FORCE)


def joined(measure, ragged, members, threshold, jobs=1, origins=()):
    """Rows of the reference, in the order of the pieces."""
    of = np.array(origins, np.uint32)
    found = listed(join_sets(Run.quiet(jobs), ragged, members, threshold, measure, of))
    if measure == "jaccard":
        return [(min(a, b), max(a, b), s) for a, b, s in found]
    return [(a, b, s.real, s.imag) for a, b, s in found]


@of_measures
@settings(max_examples=many(400))
@given(some_sets, thresholds, st.sampled_from([1, 3, 1 << 20]))
def test_the_join_is_brute_force(measure, sets, threshold, most):
    """Also with so few counters and posting lists (`most`) that elements share them."""
    ragged = RaggedSets.from_sets(sets)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exact_join, "_MOST", most)
        found = joined(measure, ragged, np.arange(len(sets)), threshold)
    assert sorted(found) == BRUTE_FORCE[measure](sets, threshold)


@of_measures
@given(some_sets, thresholds, st.integers(1, 5), st.sampled_from([1, 3]), st.data())
def test_the_same_pieces_at_any_number_of_jobs(measure, sets, threshold, probes, piece, data):
    """Some of the sets, of several origins or not, in pieces of one pair or of many."""
    ragged = RaggedSets.from_sets(sets)
    members = np.array([i for i in range(len(sets)) if data.draw(st.booleans())], np.int64)
    n, kinds = len(sets), data.draw(st.sampled_from([0, 1, 2, 4]))
    origins = data.draw(st.lists(st.integers(0, kinds), min_size=n, max_size=n)) if kinds else ()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exact_join, "_PROBES", probes)
        alone = joined(measure, ragged, members, threshold, 1, origins)
        assert joined(measure, ragged, members, threshold, 2, origins) == alone
        patched.setattr(exact_join, "PIECE", piece)
        assert joined(measure, ragged, members[::-1], threshold, 4, origins) == alone
        of = np.array(origins, np.uint32)
        pieces = join_sets(Run.quiet(2), ragged, members, threshold, measure, of)
        sizes = [len(left) for left, _, _ in pieces]
    assert sizes == [1] * len(alone) or (piece > 1 and max(sizes) <= piece)
    every, wanted = BRUTE_FORCE[measure](sets, threshold), set(members.tolist())
    every = [row for row in every if {*row[:2]} <= wanted]
    crossing = [row for row in every if not kinds or origins[row[0]] != origins[row[1]]]
    assert sorted(alone) == crossing


def test_longer_sets():
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
        found = joined("jaccard", ragged, np.arange(250), threshold, 2)
        assert sorted(found) == reference.all_pairs(sets, threshold)
        assert len(found) > 20


def test_planted_insides_of_longer_sets():
    """A quotation in a set twenty times as long, a part of ten in a long one, and decoys."""
    rng = np.random.default_rng(3)
    sets = [set(rng.integers(0, 1 << 62, int(rng.integers(20, 400))).tolist()) for _ in range(300)]
    for i in range(0, 100, 2):  # 80 % of a set and 79 %, each in a large one
        share = 80 if i % 4 else 79
        inside = rng.integers(0, 1 << 62, 100).tolist()
        sets[i] = set(inside)
        sets[i + 1] |= {*inside[:share], *rng.integers(0, 1 << 62, 1900).tolist()}
    shared = rng.integers(0, 1 << 62, 15).tolist()
    for i in range(100, 300):
        sets[i] |= set(shared)
    sets = [sets[i] for i in rng.permutation(300).tolist()]
    ragged, members = RaggedSets.from_sets(sets), np.arange(300)
    every, found = reference.all_insides(sets, 0.05), joined("containment", ragged, members, 0.8, 2)
    assert sorted(found) == [row for row in every if row[2] >= 0.8]
    assert len(found) >= 25
    assert sorted(joined("containment", ragged, members, 0.05)) == every


QUOTIENTS = [(7, 25), (28, 50), (55, 100), (11, 20), (7, 10), (9, 10), (3, 5), (29, 100)]


@pytest.mark.parametrize(("small", "size"), QUOTIENTS)
def test_a_pair_exactly_at_the_threshold_is_found_by_every_way(small, size):
    """0.28 * 25 is more than 7 as a double, and 7 / 25 is 0.28."""
    threshold = small / size
    for below, above in ((small, size), (size - 1, size + 1)):
        ragged = RaggedSets.from_sets([set(range(below)), set(range(above))])
        expected = [(0, 1, below / above)] if below / above >= threshold else []
        assert joined("jaccard", ragged, np.arange(2), threshold) == expected
        pairs = (np.array([0], np.uint32), np.array([1], np.uint32))
        pieces = verify_jaccard(RUN, [pairs], ragged.sizes, ragged.take, threshold)
        assert listed(pieces) == expected


def test_counters_that_are_full(monkeypatch):
    """A counter that wrapped at 2^16 would take frequent elements for unique ones."""
    monkeypatch.setattr(exact_join, "_MOST", 1)
    sets = [set(range(1000 * (i // 2), 1000 * (i // 2) + 256 - i % 2)) for i in range(257)]
    sets[-1] = set(range((1 << 16) + 1 - sum(map(len, sets[:-1]))))
    ragged = RaggedSets.from_sets(sets)
    assert len(ragged.values) == (1 << 16) + 1
    expected = [(i, i + 1, 255 / 256) for i in range(0, 256, 2)]
    assert sorted(joined("jaccard", ragged, np.arange(257), 0.9)) == expected


def test_progress_counts_each_set_once():
    sets = RaggedSets.from_sets([{i, i + 1} for i in range(40)])
    seen = []
    run = replace(Run.quiet(), progress=lambda _, *counts: seen.append(counts))
    for origins, pairs in (([], 39), (np.arange(40) >= 15, 1)):
        seen.clear()
        of = np.array(origins, np.uint32)
        pieces = join_sets(run, sets, np.arange(40), 0.5, "containment", of)
        assert sum(len(piece[0]) for piece in pieces) == pairs
        assert seen == sorted(seen)
        assert seen[-1] == (40, 40)


@pytest.mark.parametrize(("n", "size"), [(1000, 900), (100_000, 3)])
@pytest.mark.parametrize("threshold", [0.1, 0.8])
def test_memory_is_bounded_by_the_prefixes(n, size, threshold):
    """All elements are in several sets, so that all of a prefix is kept.

    The second thread needs its share only if it starts before the first is done.
    """
    values = np.tile(np.arange(n * size // 4, dtype=np.uint64), 4)
    sets = RaggedSets.from_sizes(values, np.full(n, size))
    # Of 25 elements that must be shared, one makes the prefix longer.
    shared = int(min_shared_sizes(np.array([size]), threshold, "containment")[0])
    prefix = n * (size - shared * 24 // 25 + 1)
    own = 8 * n + 36 * size + 96 * (1 << 18)  # of a thread
    least = 48 * n + 8 * prefix + max(2 * len(values), 26 * prefix + own)
    tracemalloc.start()
    pairs = join_sets(Run.quiet(2), sets, np.arange(n), threshold, "containment")
    found = sum(len(piece[0]) for piece in pairs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == n // 4 * 6
    assert least / 4 < peak <= least + own
