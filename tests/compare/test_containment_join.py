"""The exact join by containment against brute force."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.compare.exact_join import join_sets, min_shared_sizes
from lshdup.lsh.candidates import NO_ORIGINS
from tests import reference
from tests.compare.test_pairs import rows
from tests.compare.test_verification import rationals
from tests.conftest import many

# Sets of very different sizes over few elements, so that many are inside others; a few elements of
# the full domain, and 0, which is special in hash tables.
collections = st.lists(
    st.sets(st.integers(0, 12) | st.integers(0, (1 << 64) - 1), max_size=14)
    | st.sets(st.integers(0, 40), max_size=4)
    | st.sets(st.integers(0, 40), max_size=40),
    max_size=30,
)
thresholds = rationals | st.sampled_from([1e-300, 0.8, 0.999, 1.0])


def joined(ragged, members, threshold, jobs=1, origins=()):
    """Return all pairs in the order of the pieces: (inside, holder, containment, similarity)."""
    of = np.array(origins, np.uint32)
    pieces = join_sets(Run.quiet(jobs), ragged, members, threshold, "containment", of)
    return [(a, b, s.real, s.imag) for piece in pieces for a, b, s in rows(piece)]


@settings(max_examples=many(400), deadline=None)
@given(collections, thresholds, st.sampled_from([1, 3, 1 << 20]))
def test_the_containment_join_is_brute_force(sets, threshold, most):
    """With 1 or 3 counters and lists (`most`), elements share them; the pairs stay the same."""
    ragged = RaggedSets.from_sets(sets)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("lshdup.compare.exact_join._MOST", most)
        found = joined(ragged, np.arange(len(sets)), threshold)
    assert sorted(found) == reference.all_insides(sets, threshold)


@settings(max_examples=many(100), deadline=None)
@given(collections, thresholds, st.integers(1, 5), st.data())
def test_the_same_pieces_at_any_number_of_jobs(sets, threshold, probes, data):
    """Some of the sets, of several origins or not, in pieces of one pair or of many."""
    ragged = RaggedSets.from_sets(sets)
    members = np.array([i for i in range(len(sets)) if data.draw(st.booleans())], np.int64)
    n, kinds = len(sets), data.draw(st.sampled_from([0, 1, 2, 4]))
    origins = data.draw(st.lists(st.integers(0, kinds), min_size=n, max_size=n)) if kinds else ()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("lshdup.compare.exact_join._PROBES", probes)
        alone = joined(ragged, members, threshold, 1, origins)
        assert joined(ragged, members, threshold, 2, origins) == alone
        patched.setattr("lshdup.compare.exact_join.PIECE", data.draw(st.sampled_from([1, 3])))
        assert joined(ragged, members[::-1], threshold, 4, origins) == alone
    every, wanted = reference.all_insides(sets, threshold), set(members.tolist())
    every = [row for row in every if {*row[:2]} <= wanted]
    crossing = [(a, b, *s) for a, b, *s in every if not kinds or origins[a] != origins[b]]
    assert sorted(alone) == crossing


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
    ragged = RaggedSets.from_sets(sets)
    every, found = reference.all_insides(sets, 0.05), joined(ragged, np.arange(300), 0.8, 2)
    assert sorted(found) == [row for row in every if row[2] >= 0.8]
    assert len(found) >= 25
    assert sorted(joined(ragged, np.arange(300), 0.05)) == every


def test_progress_counts_each_set_once():
    sets = RaggedSets.from_sets([{i, i + 1} for i in range(40)])
    seen = []
    for origins, pairs in ((NO_ORIGINS, 39), ((np.arange(40) >= 15).astype(np.uint32), 1)):
        seen.clear()
        run = replace(Run.quiet(), progress=lambda _, *counts: seen.append(counts))
        pieces = join_sets(run, sets, np.arange(40), 0.5, "containment", origins)
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
    prefix = n * (
        size - int(min_shared_sizes(np.array([size]), threshold, "containment")[0]) * 24 // 25 + 1
    )
    own = 8 * n + 36 * size + 96 * (1 << 18)  # of a thread
    least = 48 * n + 8 * prefix + max(2 * len(values), 26 * prefix + own)
    most = least + own
    tracemalloc.start()
    pairs = join_sets(Run.quiet(2), sets, np.arange(n), threshold, "containment")
    found = sum(len(piece[0]) for piece in pairs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == n // 4 * 6
    assert least / 4 < peak <= most
