"""What Spark's workers do with samples, without Spark."""

import itertools

import numpy as np
import pytest

from lshdup.lsh.sample_plan import SamplePlan
from lshdup.lsh.samples import sample_sets
from lshdup.params import PairParams, ShingleParams, SketchParams
from lshdup.spark.recipe import make_recipe
from lshdup.spark.workers import pairs as worker_pairs
from lshdup.spark.workers import samples as worker_samples
from lshdup.spark.workers import sets as worker_sets
from lshdup.utils.ragged import RaggedSets
from tests.conftest import require

PLAN = SamplePlan(8, 0.8, 0.99)


def test_keys_of_documents_are_the_samples_of_the_local_engine():
    pa = require("spark", "pyarrow")
    recipe = make_recipe(
        ShingleParams(k=1), SketchParams(seed=5), pair=PairParams(measure="containment")
    )
    assert isinstance(recipe.plan, SamplePlan)
    texts = [" ".join(map(str, range(i * i))) for i in range(20)]
    batch = pa.RecordBatch.from_pydict({"id": [b"%d" % i for i in range(20)], "text": texts})
    rows = pa.Table.from_batches(worker_sets.sketch_rows(recipe, iter([batch]))).to_pylist()
    made = pa.Table.from_batches(worker_sets.set_rows(recipe, iter([batch]))).to_pylist()
    sets = {row["id"]: np.frombuffer(row["set"] or b"", "<u8") for row in made}
    for row in rows:
        elements = sets[row["id"]]
        one = RaggedSets.from_sizes(elements, np.array([len(elements)]))
        sample = sample_sets(one, recipe.plan.rate, 5).values
        assert row["keys"] == (sample.tobytes() if len(elements) else None)


def test_elements(monkeypatch):
    """Any cut into batches; an empty sample has no row, and an element of 64 bits is kept."""
    pa = require("spark", "pyarrow")
    samples = [[], [1, 2, 1 << 63], list(range(40)), [7]]
    binary = [np.array(sample, "<u8").tobytes() for sample in samples]
    ids = [b"%d" % i for i in range(len(samples))]
    batch = pa.RecordBatch.from_arrays([pa.array(ids), pa.array(binary)], ["id", "sample"])
    least = PLAN.least_common(np.arange(41))
    expected = [
        (ids[i], element, len(sample), least[len(sample)])
        for i, sample in enumerate(samples)
        for element in sample
    ]
    for most in (1, 3, 1 << 16):
        monkeypatch.setattr(worker_samples, "_ELEMENTS_GIVEN", most)
        made = pa.Table.from_batches(worker_samples.element_rows(PLAN, iter([batch]))).to_pylist()
        names = ("id", "bucket", "size", "least")
        found = [tuple(row[name] for name in names) for row in made]
        assert [(a, b % (1 << 64), c, d) for a, b, c, d in found] == expected


@pytest.mark.parametrize("seed", range(30))
def test_candidates(seed, monkeypatch):
    """As a plain loop over the pairs of each tile; the same for any cut into batches."""
    pa = require("spark", "pyarrow")
    rng = np.random.default_rng(seed)
    rows, expected = [], set()
    for tile in range(int(rng.integers(1, 8))):
        n, known = int(rng.integers(1, 9)), bool(rng.integers(2))
        sides = [worker_pairs.WITHIN] * n
        if rng.integers(2):
            sides = sorted(rng.integers(1, 3, n).tolist())
        numbers = rng.permutation(n)
        own = []
        for side, number in zip(sides, numbers, strict=True):
            elements = set(rng.integers(0, 12, int(rng.integers(1, 14))).tolist())
            name, free = b"%d-%d" % (tile, number), bool(rng.integers(3))
            own.append((tile, side, name, elements, free, known))
        rows += own
        for a, b in itertools.combinations(own, 2):
            if a[1] == b[1] != worker_pairs.WITHIN:
                continue
            inside, holder = sorted((a, b), key=lambda row: (len(row[3]), row[2]))
            least = int(PLAN.least[len(inside[3])])
            if inside[4] and (not known or len(inside[3] & holder[3]) >= least):
                expected.add((inside[2], holder[2], least))
    columns = {
        "bucket": [row[0] for row in rows],
        "tile": pa.array([5] * len(rows), pa.int64()),
        "side": pa.array([row[1] for row in rows], pa.int32()),
        "id": [row[2] for row in rows],
        "size": [len(row[3]) for row in rows],
        "free": [row[4] for row in rows],
        "sample": pa.array(
            [np.array(sorted(row[3]), "<u8").tobytes() if row[5] else None for row in rows],
            pa.binary(),
        ),
    }
    table = pa.table(columns)
    for size in (1, 3, 100):
        monkeypatch.setattr(worker_pairs, "ROWS", size)
        monkeypatch.setattr(worker_samples, "PAIRS", size)
        monkeypatch.setattr(worker_samples, "PAIRS_GIVEN", size)
        batches = worker_samples.candidate_rows(PLAN, iter(table.to_batches(max_chunksize=size)))
        found = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
        assert len(found) == len(expected)
        assert set(found) == expected
