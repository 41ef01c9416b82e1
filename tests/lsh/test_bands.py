"""S-curve, plan, band table and candidates against published tables, the reference and recall."""

import itertools
import operator
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lshdup.base.memory import Arrays
from lshdup.base.params import BandParams, SketchParams
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.errors import ArtifactError, ParameterError
from lshdup.kernels import bands as kernels
from lshdup.lsh import band_plan, band_table, candidates
from lshdup.lsh.signatures import Sketcher
from tests import reference
from tests.conftest import RUN


@pytest.mark.parametrize(
    ("bands", "rows", "curve"),
    [
        (20, 5, "0.2 0.0064, 0.3 0.047, 0.4 0.186, 0.5 0.470, 0.6 0.802, 0.7 0.975, 0.8 0.9996"),
        (20, 5, "0.75 0.9956"), (5, 25, "0.9 0.31, 0.95 0.80"), (12, 10, "0.9 0.994"),
        (16, 8, "0.9 0.9999"),
    ],
)  # fmt: skip
def test_the_s_curve_of_r3_and_r2(bands, rows, curve):
    for s, expected in map(str.split, curve.split(", ")):
        found = band_plan.collision_probability(float(s), bands, rows)
        assert f"{found:.{len(expected) - 2}f}" == expected


@given(st.integers(1, 2000), st.floats(0.05, 1.0), st.floats(0.5, 0.9999))
def test_the_plan_is_the_largest_r_that_keeps_the_promise(perms, threshold, recall):
    params = BandParams(threshold, recall)
    found = {r: 1 - (1 - threshold**r) ** (perms // r) for r in range(1, perms + 1)}
    keeping, near = ([r for r in found if found[r] >= recall + e] for e in (1e-9, -1e-9))
    if not near:
        with pytest.raises(ParameterError, match=str(perms)):
            band_plan.plan_bands(perms, params)
    if not keeping:
        return
    plan = band_plan.plan_bands(perms, params)
    assert max(keeping) <= plan.rows <= max(near)
    assert plan.bands == perms // plan.rows
    assert plan.miss(threshold) <= 1 - recall + 1e-12


def test_too_few_rows_name_how_many_would_do():
    with pytest.raises(ParameterError) as error:
        band_plan.plan_bands(16, BandParams(0.1))
    enough = int(error.value.hint.split("--perms ")[1].split(";")[0])
    assert band_plan.plan_bands(enough, BandParams(0.1)).miss(0.1) <= 0.01 + 1e-12
    with pytest.raises(ParameterError):
        band_plan.plan_bands(enough - 1, BandParams(0.1))


def test_overrides():
    def planned(perms, **params):
        plan = band_plan.plan_bands(perms, BandParams(**params))
        return plan.bands, plan.rows

    assert planned(128, threshold=0.9) == (12, 10)
    assert planned(128, bands=20) == (20, 6)
    assert planned(128, rows=5) == (25, 5)
    plan = band_plan.plan_bands(100, BandParams(bands=20, rows=5, threshold=0.75))
    assert plan.miss(0.75) == pytest.approx(0.0044, abs=1e-4)
    for wrong in ({"bands": 20, "rows": 7}, {"rows": 129}, {"bands": 200}):
        with pytest.raises(ParameterError, match="rows"):
            planned(128, **wrong)


def table_of(signatures, n_bands, rows, buckets=0, members=None):
    signatures = np.array(signatures, np.uint32)
    plan = band_plan.BandPlan(n_bands, rows, 0.5, 0.9, buckets)
    members = np.arange(len(signatures)) if members is None else members
    return band_table.build_band_table(RUN, signatures, members, plan), plan


def listed(pieces):
    """Pairs of pieces in their order."""
    found = [pair for a, b in pieces for pair in zip(a.tolist(), b.tolist(), strict=True)]
    assert len(found) == len(set(found)), "a pair was met twice"
    assert all(a < b for a, b in found)
    return found


def met(table):
    return set(listed(candidates.candidate_pairs(RUN, table).pieces))


signature_lists = st.lists(st.lists(st.integers(0, 2), min_size=6, max_size=6), max_size=25)


@given(
    signature_lists.filter(bool), st.sampled_from([(1, 6), (2, 3), (3, 2), (6, 1), (2, 2)]),
    st.sampled_from([1, 7, 1 << 18]),
)  # fmt: skip
def test_candidates_are_those_of_the_reference(signatures, shape, piece):
    table, plan = table_of(signatures, *shape)
    expected = reference.candidates(signatures, *shape)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(candidates, "PIECE", piece)
        assert met(table) == expected
    for document in range(len(signatures)):
        near = candidates.candidates_of(table, table.keys[:, document])
        partners = {a + b - document for a, b in expected if document in (a, b)}
        assert set(near.tolist()) == partners | {document}
    assert (band_table.band_keys(RUN, np.array(signatures, np.uint32), plan) == table.keys).all()


@given(signature_lists.filter(bool), st.integers(0, 6), st.integers(0, 25))
def test_a_sieve_rejects_pairs_that_have_few_rows_in_common(signatures, least, split):
    table, _ = table_of(signatures, 6, 1)
    rows = np.array(signatures, np.uint32)
    expected = {
        (a, b) for a, b in reference.candidates(signatures, 6, 1)
        if sum(map(operator.eq, signatures[a], signatures[b])) >= least
    }  # fmt: skip
    for parts in ((rows,), (rows[:split], rows[split:])):
        sieve = candidates.Sieve(parts, least)
        assert set(listed(candidates.candidate_pairs(RUN, table, sieve=sieve).pieces)) == expected


def test_pieces_behind_a_sieve_are_small_however_many_pairs_pass(monkeypatch):
    monkeypatch.setattr(candidates, "PIECE", 160)
    monkeypatch.setattr(candidates, "_TOGETHER", 25)
    rows = np.ones((40, 20), np.uint32)
    rows[30:, 3:] = np.arange(10)[:, None]  # Others pass a few at a time.
    table, _ = table_of(rows.tolist(), 20, 1)
    met = candidates.candidate_pairs(RUN, table, sieve=candidates.Sieve((rows,), 3))
    pieces = [list(zip(*piece, strict=True)) for piece in met.pieces]
    assert max(map(len, pieces)) <= 25
    assert sorted(itertools.chain(*pieces)) == list(itertools.combinations(range(40), 2))


def test_only_short_bands_have_a_sieve_and_it_rejects_one_similar_pair_in_a_million():
    rows = np.zeros((2, 300), np.uint32)
    assert candidates.Sieve.of(band_plan.BandPlan(60, 5, 0.4, 0.99), 0.4, rows).signatures == ()
    served = next(s for s in np.linspace(0, 1, 10_001) if 1 - (1 - s**4) ** 75 >= 0.9)
    for threshold in (0.2, 0.4, 0.5, 1.0):
        sieve = candidates.Sieve.of(band_plan.BandPlan(75, 4, 0.1, 0.9), threshold, rows)
        assert sieve.signatures[0].shape == (2, 192)
        lowest = min(threshold, served)  # Bands of one shape have one sieve.
        chances = [0.0] * 193  # to agree in so many rows, by adding one row after the other
        chances[0] = 1.0
        for _ in range(192):
            steps = zip(chances, [0.0, *chances], strict=False)
            chances = [lowest * one + (1 - lowest) * none for none, one in steps]
        assert sum(chances[: sieve.least]) <= 1e-6 < sum(chances[: sieve.least + 1])


@given(signature_lists.filter(bool), st.integers(1, 5))
def test_folded_buckets_only_add_candidates(signatures, buckets):
    folded, _ = table_of(signatures, 2, 3, buckets)
    assert folded.keys.max() < buckets
    assert met(folded) >= reference.candidates(signatures, 2, 3)


def test_whose_bucket_is_whose():
    """Documents that are no members are in none, and bands share none."""
    table, _ = table_of([[1, 1], [1, 1], [1, 1]], 2, 1, members=np.array([0, 2]))
    assert met(table) == {(0, 2)}
    table, _ = table_of([[1, 2], [2, 1]], 2, 1)
    assert met(table) == set()
    table, _ = table_of([[1, 1], [2, 2]], 2, 1)
    assert (table.keys[0] != table.keys[1]).all()


SHAPES = st.sampled_from([(1, 6), (2, 3), (3, 2), (6, 1)])


@given(signature_lists.filter(bool), SHAPES, st.integers(1, 8))
def test_large_buckets_are_left_out_and_counted(signatures, shape, limit):
    table, _ = table_of(signatures, *shape)
    buckets = reference.buckets(signatures, *shape)
    large = [bucket for bucket in buckets if len(bucket) > limit]
    small = [bucket for bucket in buckets if len(bucket) <= limit]
    found = candidates.candidate_pairs(RUN, table, limit)
    counts, pieces = found.buckets, found.pieces
    assert set(listed(pieces)) == {pair for each in small for pair in combinations(each, 2)}
    assert counts.skipped == len(large)
    assert counts.documents == len({document for bucket in large for document in bucket})
    assert counts.pairs == sum(len(bucket) * (len(bucket) - 1) // 2 for bucket in large)
    everything = candidates.candidate_pairs(RUN, table).buckets
    assert (everything.largest, everything.example) == (counts.largest, counts.example)
    assert everything.skipped == everything.documents == everything.pairs == 0
    assert counts.example == first_of_largest(table)
    assert counts.most == counts.largest * (counts.largest - 1) // 2
    if large:
        assert counts.largest == max(map(len, large))
        assert counts.example in [bucket[0] for bucket in large if len(bucket) == counts.largest]


def first_of_largest(table):
    """The smallest document of the largest bucket; of equal ones, of first band and lowest key."""
    buckets = (
        (-np.count_nonzero(band == key), number, key, int((band == key).argmax()))
        for number, band in enumerate(table.keys)
        for key in band.tolist()
    )
    return min(buckets)[3]


@pytest.fixture(params=[1 << 20, -1], ids=["looks", "sorted keys"])
def often(request, monkeypatch):
    """Tables that are never asked often, or are so from the first time on."""
    monkeypatch.setattr(band_table, "_FEW", request.param)


def test_forged_tables_are_noticed(often):
    keys = np.array([[5, 3, 9, 3]], np.uint64)

    def forged(*order):
        return band_table.BandTable(keys, np.array([order], np.uint32))

    assert forged(1, 3, 0, 2).is_in_order()
    for order in ((3, 1, 0, 2), (1, 1, 0, 2), (0, 1, 3, 2)):
        assert not forged(*order).is_in_order()
    assert candidates.candidates_of(forged(1, 3, 0, 2), keys[:, 3], 3).tolist() == [1, 3]
    equal, order = np.full((1, 16), 5, np.uint64), np.arange(16, dtype=np.uint32)
    order[5] = 99  # The search of the bucket does not meet this one.
    for table, wanted, *document in (
        (forged(1, 0, 3, 2), keys[:, 3], 3),
        (forged(7, 7, 7, 7), keys[:, 3]),
        (band_table.BandTable(equal, order[None]), equal[:, 0]),
    ):
        with pytest.raises(ArtifactError, match="not in order"):
            candidates.candidates_of(table, wanted, *document)


def test_pairs_come_cluster_by_cluster(monkeypatch):
    monkeypatch.setattr(candidates, "PIECE", 3)
    table, _ = table_of([[kind, 1 + i] for i, kind in enumerate([5, 6, 5, 7, 6, 5, 8, 6])], 2, 1)
    found = listed(candidates.candidate_pairs(RUN, table).pieces)
    assert found == [(2, 5), (0, 2), (0, 5), (4, 7), (1, 4), (1, 7)]


@pytest.mark.parametrize("scheme", ["fast", "classic"])
@pytest.mark.parametrize("n", [30, 300])
def test_found_recall_follows_the_s_curve(scheme, n):
    """By similarity, found shares are within a 99.99 % interval of the curve or above."""
    rng = np.random.default_rng(n)
    plan, trials = band_plan.plan_bands(128, BandParams(0.8)), 600
    for different in (1, n // 15, n // 9, n // 5, n // 3):
        similarity = (n - different) / (n + different)
        hits = 0
        for _ in range(trials):
            pool = rng.integers(0, 1 << 64, n + different, dtype=np.uint64)
            both = np.concatenate([np.sort(pool[:n]), np.sort(pool[different:])])
            sets = RaggedSets.from_sizes(both, np.array([n, n]))
            sketcher = Sketcher(SketchParams(scheme, 128, int(rng.integers(1 << 62))))
            keys = band_table.band_keys(RUN, sketcher.sketch(sets), plan)
            hits += bool((keys[:, 0] == keys[:, 1]).any())
        expected = band_plan.collision_probability(similarity, plan.bands, plan.rows)
        margin = 4 * (expected * (1 - expected) / trials) ** 0.5 + 1 / trials
        if scheme == "classic":
            assert abs(hits / trials - expected) <= margin
        elif expected >= 0.5:  # the fast scheme is steeper: never worse where recall is promised
            assert hits / trials >= expected - margin


ALL_KEYS = st.integers(0, (1 << 64) - 1)
keys_of_all_kinds = st.integers(0, 5) | ALL_KEYS | st.sampled_from([1 << 63, (1 << 64) - 1])


def one_band(keys):
    order = np.argsort(keys, kind="stable").astype(np.uint32)
    return band_table.BandTable(keys[None, :], np.asarray(order)[None, :])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(keys_of_all_kinds, max_size=80))
def test_a_bucket_is_what_a_look_at_all_documents_finds(often, keys):
    keys = np.array(keys, np.uint64)
    table = one_band(keys)
    wanted = np.array([*{*keys.tolist(), 0, 3, 6, 1 << 63, (1 << 64) - 1}], np.uint64)
    counts, found = table.find(wanted[None, :])
    assert counts.tolist() == [[np.count_nonzero(keys == key) for key in wanted]]
    assert found.tolist() == [d for key in wanted for d in np.flatnonzero(keys == key)]


@pytest.mark.parametrize("folded", [0, 1000])
def test_a_bucket_is_found_with_few_looks(folded):
    rng = np.random.default_rng(8)
    keys = rng.integers(0, folded or 1 << 64, 200_000, dtype=np.uint64)
    table, places = one_band(keys), np.zeros((2, 1, 200), np.int64)
    wanted, none = keys[None, :200], np.zeros((0, 0), np.uint32)
    bands, zero = (table.order, table.keys, none), np.uint64(0)
    looks = kernels.find_buckets(*bands, 0, zero, wanted, 0, 200, *places)
    assert 0 < looks < 200 * 40  # a binary search for both ends takes 36


# --- documents sorted by key, one range of keys after the other, as by NumPy's stable sort --------


@pytest.mark.parametrize("n", [0, 1, 6, 3000])
@pytest.mark.parametrize("different", [1, 3, 1 << 63])
@pytest.mark.parametrize("scratch", [24, 5000, 1 << 30])
def test_any_scratch_gives_the_stable_order(monkeypatch, n, different, scratch):
    monkeypatch.setattr(band_table, "_AT_ONCE", 700)
    rng = np.random.default_rng(n)
    keys = rng.integers(0, different, n, np.uint64) * np.uint64(2)
    if n == 3000:
        keys[:2] = 0, (1 << 64) - 1
    for members in (None, np.flatnonzero(rng.random(n) < 0.7)):
        some = np.arange(n) if members is None else members
        wanted = some[np.argsort(keys[some], kind="stable")]
        order = np.full(len(some), 7, np.uint32)
        parts = list(band_table.sort_by_key(keys, members, order, max(scratch, n)))
        assert order.tolist() == wanted.tolist()
        assert np.array_equal(np.concatenate([each for _, each in parts]), keys[wanted])
        assert [part.start for part, _ in parts[1:]] == [part.stop for part, _ in parts[:-1]]
        firsts = [int(each[0]) for _, each in parts if len(each)]
        assert len(set(firsts)) == len(firsts)


def test_tables_and_exact_duplicates_depend_on_no_memory_and_no_threads(monkeypatch, tmp_path):
    monkeypatch.setattr(band_table, "LEAST_SCRATCH", 24 * 100)
    monkeypatch.setattr("lshdup.base.memory._SMALL", 100)
    rng = np.random.default_rng(2)
    fingerprints = rng.integers(0, 900, 2000, np.uint64) << np.uint64(50)
    signatures = rng.integers(0, 3, (2000, 12), np.uint32)
    plan = band_plan.BandPlan(3, 4, 0.8, 0.9, 0)
    first = {}
    firsts = [first.setdefault(p, d) if p else d for d, p in enumerate(fingerprints.tolist())]
    seen = set()
    for limit, jobs in ((0, 2), (1 << 62, 1), (1 << 62, 4)):
        run = Run(Arrays(limit, tmp_path), jobs)
        duplicate_of = candidates.find_exact_duplicates(run, fingerprints)
        assert duplicate_of.tolist() == firsts
        members = candidates.documents_to_compare(run, duplicate_of, np.ones(2000, np.int64))
        table = band_table.build_band_table(run, signatures, members, plan)
        assert table.is_in_order()
        seen.add((table.order.tobytes(), table.keys.tobytes()))
    assert len(seen) == 1
