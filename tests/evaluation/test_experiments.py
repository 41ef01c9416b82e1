"""The experiments of R1 and R3, and `pairs --histogram`: numbers against slow references."""

import itertools
import json
import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lshdup.base.params import BandParams, ShingleParams, SketchParams
from lshdup.base.ragged import RaggedSets, StringTable
from lshdup.base.run import Run
from lshdup.cli.main import lshdup
from lshdup.collection.collect import sketch_collection
from lshdup.collection.collection import Collection
from lshdup.compare.exact_join import join_sets
from lshdup.compare.scored_pairs import gather_pairs
from lshdup.evaluation import experiments, histogram, plots
from lshdup.evaluation.experiments import Experiment
from lshdup.kernels import sketch as kernels
from lshdup.lsh import band_plan, band_table
from lshdup.sources.document_list import DocumentList
from tests import reference
from tests.conftest import ROOT, RUN, part, require


def collection_of(sets):
    ragged = RaggedSets.from_sets(sets)
    zeros = np.zeros(len(sets), np.int64)
    names = StringTable.from_strings(b"%d" % i for i in range(len(sets)))
    documents = DocumentList(names, zeros, zeros)
    columns = {"set_sizes": ragged.sizes, "fingerprints": np.zeros(len(sets), np.uint64)}
    return ragged, Collection(documents, ShingleParams(), columns, sets=ragged)


def some_sets(n, seed=0):
    rng = np.random.default_rng(seed)
    sets = []
    for i in range(n):
        base = sets[int(rng.integers(i))] if i and i % 2 else set(rng.integers(0, 400, 40).tolist())
        sets.append({x if rng.random() < 0.9 else int(rng.integers(400)) for x in base})
    return sets


def six_digits(x):
    return float(f"{x:.6g}")


# --- expectations ----


@given(st.integers(1, 40), st.integers(0, 40), st.integers(1, 40), st.floats(0.01, 0.6))
def test_binomial_tails(perms, common, more, epsilon):
    """P(|X / K - s| > eps), summed term by term in exact arithmetic."""
    s = Fraction(common, common + more)
    limit = Fraction(epsilon) + Fraction(1, 10**9)
    exact = sum(
        math.comb(perms, x) * s**x * (1 - s) ** (perms - x)
        for x in range(perms + 1)
        if abs(Fraction(x, perms) - s) > limit
    )
    out = np.empty(1)
    kernels.chances_off(np.array([float(s)]), perms, epsilon + experiments.TIE, out)
    assert out[0] == pytest.approx(float(exact), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(
    ("r", "b", "half", "estimate"),
    [(3, 10, 0.4061, 0.4642), (6, 20, 0.5694, 0.6070), (5, 50, 0.4244, 0.4573)],
)
def test_half_points_and_the_exercises_of_r3(r, b, half, estimate):
    found = band_plan.half_point(b, r)
    assert (round(found, 4), round(band_plan.half_point_estimate(b, r), 4)) == (half, estimate)
    assert band_plan.half_point_estimate(b, r) == pytest.approx((1 / b) ** (1 / r))
    assert band_plan.collision_probability(found, b, r) == pytest.approx(0.5, abs=1e-12)
    for s in range(1, 10):
        chance = 1 - (1 - (s / 10) ** r) ** b
        assert band_plan.collision_probability(s / 10, b, r) == pytest.approx(chance, abs=1e-12)
    assert band_plan.collision_probability(0.02, b, r) == pytest.approx(b * 0.02**r, rel=0.01)


# --- accuracy ----


@pytest.mark.parametrize("scheme", ["fast", "classic", "linear"])
def test_accuracy_counts_what_a_loop_counts(scheme, monkeypatch):
    """Pieces of all pairs change nothing."""
    sets = [*some_sets(24), set(), set()]
    experiment = Experiment(Run.quiet(2), collection_of(sets)[0], [SketchParams(scheme, 60, 5)])
    (one, two) = whole = list(experiments.accuracy(experiment, [0.02, 0.06], 3))
    monkeypatch.setattr(experiments, "PIECE", 100)
    assert list(experiments.accuracy(experiment, [0.02, 0.06], 3)) == whole
    present = [each for each in sets if each]
    compared = collection_of(present)[1]
    errors = []
    for seed in range(5, 8):
        params = SketchParams(scheme, 60, seed)
        signatures = sketch_collection(Run.quiet(), compared, params).signatures
        for i, j in itertools.combinations(range(len(present)), 2):
            exact = reference.jaccard(present[i], present[j])
            errors.append(float((signatures[i] == signatures[j]).mean()) - exact)
    errors = np.array(errors)
    assert one.pairs == len(errors) // 3
    for result, epsilon in ((one, 0.02), (two, 0.06)):
        assert result.off == pytest.approx((np.abs(errors) > epsilon + 1e-9).sum() / 3)
    assert one.bias == six_digits(errors.mean())
    assert one.rmse == six_digits((errors**2).mean() ** 0.5)
    assert one.largest == pytest.approx(np.abs(errors).max())


PROCESSORS = [
    {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4"},
    {"NPY_DISABLE_CPU_FEATURES": "X86_V4"},
    {"OPENBLAS_CORETYPE": "Haswell"},
]


def test_figures_are_the_same_on_every_processor(run):
    """NumPy and its library of matrices choose their instructions by the processor."""
    command = "accuracy sample_corpus --no-store"
    of_each = [run(command, env=each, cwd=ROOT).out for each in part(PROCESSORS, 3)]
    assert {*of_each} == {run(command, cwd=ROOT).out}


@pytest.mark.parametrize("recall", [0.5, 0.75, 0.875, 0.9375])
def test_a_recall_that_bands_meet_exactly_is_met(recall):
    """The chance 1 - (1 - 1/2)^b, of bands of one row, is the recall itself."""
    bands = round(math.log2(1 / (1 - recall)))
    plan = band_plan.plan_bands(bands, BandParams(0.5, recall))
    assert (plan.bands, plan.rows) == (bands, 1)


@pytest.mark.parametrize("buckets", [0, 7])
def test_band_accuracy_counts_what_loops_count(buckets):
    sets = some_sets(30, 3)
    ragged, collection = collection_of(sets)
    sketch = SketchParams("fast", 60, 2)
    experiment = Experiment(RUN, ragged, [sketch])
    (result,) = experiments.band_accuracy(experiment, [12], 0.6, 30, None, buckets)
    signatures = sketch_collection(RUN, collection, sketch).signatures
    keys = band_table.band_keys(RUN, signatures, band_plan.BandPlan(12, 5, 0.6, 0.0, buckets))
    counts = Counter()
    for i, j in itertools.permutations(range(30), 2):
        shares = bool((keys[:, i] == keys[:, j]).any())
        counts[shares, reference.jaccard(sets[i], sets[j]) >= 0.6] += 1
    found, wrong, missed = counts[True, True], counts[True, False], counts[False, True]
    assert (result.rows, result.queries) == (5, 30)
    assert result.found == pytest.approx(found / 30)
    assert result.false_positives == pytest.approx(wrong / 30)
    assert result.false_negatives == pytest.approx(missed / 30)
    assert result.false_positive_rate == pytest.approx(wrong / max(1, wrong + found))
    apart = missed + counts[False, False]
    assert result.false_negative_rate == pytest.approx(missed / apart)
    assert result.near == pytest.approx(result.found + result.false_negatives)
    assert result.found_low <= result.found <= result.found_high


def test_bands_of_several_signatures_are_measured_one_by_one():
    ragged, _ = collection_of(some_sets(40, 8))
    sketches = [SketchParams("fast", perms, 3) for perms in (60, 80)]
    one, two, both = (
        list(experiments.band_accuracy(Experiment(RUN, ragged, some), [10], 0.6, 15, None, 0))
        for some in (sketches[:1], sketches[1:], sketches)
    )
    assert both == one + two


def test_band_expectations_are_met_on_average():
    """Over many seeds, found and false positives are what the S-curve says."""
    ragged, _ = collection_of(some_sets(40, 8))
    sketches = [SketchParams("classic", 60, seed) for seed in range(40)]
    experiment = Experiment(RUN, ragged, sketches)
    results = list(experiments.band_accuracy(experiment, [15], 0.6, 40, None, 0))
    for name in ("found", "false_positives", "false_negatives"):
        values = np.array([getattr(result, name) for result in results])
        expected = getattr(results[0], f"{name}_expected")
        assert abs(values.mean() - expected) <= 4 * values.std(ddof=1) / len(values) ** 0.5 + 1e-9


# --- what share of the true pairs bands find ----


def with_true_pairs(sets, threshold):
    ragged, collection = collection_of(sets)
    joined = join_sets(RUN, ragged, np.arange(len(sets)), threshold, "jaccard")
    pairs = gather_pairs(RUN, ((np.minimum(a, b), np.maximum(a, b), s) for a, b, s in joined))
    return pairs, ragged, collection


@pytest.mark.parametrize("buckets", [0, 7])
@pytest.mark.parametrize("threshold", [0.35, 0.5, 0.62, 1.0])
def test_band_recall_counts_what_loops_count(threshold, buckets):
    sets = [*some_sets(60, 11), set(), set(range(50)), set(range(50))]  # one pair that is equal
    pairs, ragged, collection = with_true_pairs(sets, threshold)
    sketch = SketchParams("fast", 30, 4)
    params = [BandParams(threshold, 0.9, bands=b, buckets=buckets) for b in (3, 10)]
    plans = {30: [band_plan.plan_bands(30, each) for each in params]}
    experiment = Experiment(Run.quiet(2), ragged, [sketch])
    results = list(experiments.band_recall(experiment, pairs, plans))
    signatures = sketch_collection(RUN, collection, sketch).signatures
    edges = experiments.make_bins(threshold)
    bins = list(itertools.pairwise(edges)) + ([(threshold, 1.0)] if len(edges) > 2 else [])
    of_each = [(r.bands, (r.similarity_from, r.similarity_to)) for r in results]
    assert of_each == [*itertools.product((3, 10), bins)]
    of_no_bucket = 1 - 1 / buckets if buckets else 1
    for r in results:
        plan = band_plan.BandPlan(r.bands, 30 // r.bands, threshold, 0.9, buckets)
        keys = band_table.band_keys(RUN, signatures, plan)
        found, chances = 0, []
        for i, j, s in reference.all_pairs(sets, threshold):
            if r.similarity_from <= s < r.similarity_to or s == r.similarity_to == 1:
                found += bool((keys[:, i] == keys[:, j]).any())
                chances.append(1 - ((1 - s**r.rows) * of_no_bucket) ** r.bands)
        assert (r.pairs, r.found, r.rows) == (len(chances), found, 30 // r.bands)
        if chances:
            assert r.share == found / len(chances)
            assert r.share_low <= r.share <= r.share_high
            assert r.expected == six_digits(np.mean(chances))
        else:
            assert r.share is r.share_low is r.share_high is r.expected is None
    assert results[-1].pairs == len(pairs) > 0
    assert buckets or threshold == 1.0 or any(0 < r.share < 1 for r in results if r.pairs)


@pytest.mark.parametrize("scheme", ["classic", "fast"])
def test_band_recall_is_what_the_s_curve_says_on_average(scheme):
    pairs, ragged, _ = with_true_pairs(some_sets(150, 8), 0.4)
    plan = band_plan.plan_bands(48, BandParams(0.4, bands=6))
    sketches = [SketchParams(scheme, 48, seed) for seed in range(60)]
    results = list(experiments.band_recall(Experiment(RUN, ragged, sketches), pairs, {48: [plan]}))
    n_bins = len(results) // 60
    told_apart, held = 0, []
    for of_bin in (results[at::n_bins] for at in range(n_bins)):
        if not (expected := of_bin[0].expected):
            continue
        shares = np.array([r.share for r in of_bin])
        told_apart += 0.1 < expected < 0.9
        assert abs(shares.mean() - expected) <= 4 * shares.std(ddof=1) / len(shares) ** 0.5 + 0.01
        if of_bin[0] is not results[n_bins - 1]:  # the sum of all bins
            held += [r.share_low <= r.expected <= r.share_high for r in of_bin]
    assert told_apart >= 3
    # Intervals hold the expectation about as often as they say; pairs that share documents vary a
    # little more.
    assert np.mean(held) > 0.85


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_share_intervals_are_where_the_score_test_turns(trials, part):
    hits = round(part * trials)
    low, high = experiments.bound_share(hits, trials)
    assert 0 <= low <= hits / trials <= high <= 1
    for edge in (low, high):
        if 0 < edge < 1:
            turn = 1.959964 * (edge * (1 - edge) / trials) ** 0.5
            assert abs(hits / trials - edge) == pytest.approx(turn, rel=1e-6, abs=1e-9)


@given(
    st.floats(1e-300, 1, exclude_min=True)
    | st.sampled_from([k / m for m in range(1, 60) for k in range(1, m + 1)])
)
def test_similarity_bins_ascend_from_the_threshold_to_1(threshold):
    edges = experiments.make_bins(threshold)
    assert edges[0] == threshold
    assert edges[-1] == 1.0
    assert all(low < high for low, high in itertools.pairwise(edges)) or edges == [1.0, 1.0]
    # A width is at most 2.5 times narrower than the one before, which made less than five bins:
    # twelve whole bins, one cut off.
    assert len(edges) <= 14
    assert threshold > 1 - 1e-9 or len(edges) >= 6


# --- commands ----


def rows_of(result):
    return [json.loads(line) for line in result.lines]


def test_accuracy_found_is_what_pairs_finds(run, corpus):
    options, shape = "sample_corpus -t 0.5 --perms 64 --seed 3 --no-store ", "--bands 5"
    found = f"accuracy {options} --found --format jsonl "
    planned, given = rows_of(run(found)), rows_of(run(found + shape))
    assert rows_of(run(found + shape + " --jobs 1")) == given
    assert planned[-1]["pairs"] == given[-1]["pairs"] == sum(row["pairs"] for row in given[:-1])
    assert len(given) == 6
    for rows, more in ((planned, ""), (given, shape)):
        # Of equal documents only the first counts.
        listed = [float(row[2]) for row in run(f"pairs {options} --collapse-copies {more}").rows]
        assert len([s for s in listed if s < 1]) == rows[-1]["found"]
        for row in rows:
            low, high = row["similarity_from"], row["similarity_to"]
            assert sum(low <= s < high for s in listed if s < 1) == row["found"] <= row["pairs"]
    assert (given[0]["bands"], given[0]["rows"]) == (5, 12)
    assert given[-1]["found"] < planned[-1]["found"]
    text = run(f"accuracy {options} --found {shape}")
    assert text.rows[-1][:7] == ["fast", "64", "5", "12", "0.5", "1.0", str(given[-1]["pairs"])]
    assert "by the exact join" in text.err
    assert "less than --recall 0.99" in text.err
    none = rows_of(run("accuracy sample_corpus --found -t 1 --no-store --format jsonl"))
    assert [(row["pairs"], row["share"]) for row in none] == [(0, None)]


@pytest.mark.parametrize(
    ("lowest", "step", "expected"),
    [
        (0.8, 0.05, [0.8, 0.85, 0.9, 0.95, 1.0]), (1.0, 0.05, [1.0]), (0.5, 1.0, [0.5, 1.0]),
        (0.5, 0.3, [0.5, 0.6, 0.9, 1.0]),
    ],
)  # fmt: skip
def test_thresholds(lowest, step, expected):
    assert histogram.list_thresholds(lowest, step) == expected


def test_the_histogram_is_what_runs_of_their_own_say(run, corpus):
    low, sure = ("pairs", "-t", "0.5", "--recall", "0.9999"), ("--recall", "0.9999")
    result = run(*low, "sample_corpus", "--perms", "256", "--histogram")
    by_threshold = {float(t): row for t, *row in result.rows}
    assert list(by_threshold) == [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0]
    everything = run(*low).rows
    levels, grouped = [*by_threshold, np.inf], part([*by_threshold][:-1], 3)
    for t, above in itertools.pairwise(levels):
        own = [(float(s), a, b) for a, b, s, _ in everything if float(s) >= t]
        is_asked = t in grouped  # a run for each
        groups = {row[0] for row in run("clusters -t", str(t), *sure).rows} if is_asked else None
        pairs, documents, count, s, a, b = by_threshold[t]
        assert int(pairs) == len(own)
        assert int(documents) == len({name for _, *names in own for name in names})
        assert groups is None or int(count) == len(groups)
        assert float(s) < above
        assert (float(s), a, b) in own
        assert float(s) == min(own)[0]
    exact = run("pairs -t 0.5 --histogram --format json --exact")
    parsed = json.loads(exact.out)
    assert [[row["pairs"], row["documents"], row["groups"]] for row in parsed] == [
        [int(x) for x in row[:3]] for row in by_threshold.values()
    ]
    assert parsed[0].keys() == {"threshold", "pairs", "documents", "groups", "similarity", "a", "b"}
    run("pairs --histogram --check", code=1)


def test_plots(run, corpus, here):
    """In this process, which imports matplotlib once; one of them also in another."""
    require("plot", "matplotlib")
    for command in (
        "curve --plot curve.svg",
        "pairs sample_corpus/udhr --histogram --plot histogram.svg",
        "accuracy sample_corpus/udhr --perms 50,100 --epsilon 0.05,0.1 --runs 2 --plot errors.png",
        "accuracy sample_corpus/udhr --perms 120 --bands 10,40 -t 0.7 --plot bands.pdf",
        "timing sample_corpus/udhr --perms 50,100 --runs 2 --plot timing.png",
    ):
        lshdup.main(command.split(), standalone_mode=False)
    for name in ("curve.svg", "histogram.svg"):
        assert (here / name).read_text().startswith("<?xml")
        assert (here / name).read_text().count("<path") > 10
    assert (here / "errors.png").read_bytes().startswith(b"\x89PNG")
    assert (here / "bands.pdf").read_bytes().startswith(b"%PDF")
    assert (here / "timing.png").stat().st_size > 5000
    run("curve --plot again.svg")
    assert (here / "again.svg").read_bytes() == (here / "curve.svg").read_bytes()
    assert all(axes.get_axisbelow() is True for axes in plots._figure(2)[1])  # bars hide the grid


def test_plots_without_matplotlib_are_refused_before_any_work(run, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\nu.find_spec = lambda n, *a: None "
        "if n == 'matplotlib' else find(n, *a)\n"
    )
    without = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    result = run("accuracy no-such-folder --plot x.png", code=2, env=without)
    assert "pip install 'lshdup[plot]'" in result.err
    assert "no-such-folder" not in result.err


def test_timing_says_who_wins(run, corpus):
    command = "timing sample_corpus --perms 64,128 --runs 2 --scheme fast,classic --format jsonl"
    result = run(command)
    rows = rows_of(result)
    parts = [experiments.EXACT, experiments.MATRIX, experiments.ESTIMATED]
    assert [row["part"] for row in rows] == parts * 4
    assert {row["scheme"] for row in rows} == {"fast", "classic"}
    assert all(0 < row["smallest"] <= row["median"] <= row["largest"] for row in rows)
    assert rows[2]["comparisons"] == 64 * 7140
    assert len(re.findall(r"(?:exact|estimated) is \d+\.\d x faster", result.err)) == 4
