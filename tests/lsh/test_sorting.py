"""Documents sorted by key, one range of keys after the other, against NumPy's stable sort."""

import numpy as np
import pytest

from lshdup.base.memory import Arrays
from lshdup.base.run import Run
from lshdup.lsh import band_plan, band_table
from lshdup.lsh.band_table import build_band_table, sort_by_key
from lshdup.lsh.candidates import documents_to_compare, find_exact_duplicates


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
        parts = list(sort_by_key(keys, members, order, max(scratch, n)))
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
        duplicate_of = find_exact_duplicates(run, fingerprints)
        assert duplicate_of.tolist() == firsts
        members = documents_to_compare(run, duplicate_of, np.ones(2000, np.int64))
        table = build_band_table(run, signatures, members, plan)
        assert table.is_in_order()
        seen.add((table.order.tobytes(), table.keys.tobytes()))
    assert len(seen) == 1
