"""The experiments: estimates of all pairs, and the pairs that bands find (R1 tables 1 and 4); and
the time of exact and estimated similarities (R1 table 2).
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.params import BandParams, PairParams, SketchParams
from lshdup.base.ragged import RaggedSets, ranges
from lshdup.base.run import Run
from lshdup.base.wording import significant
from lshdup.compare.comparing import compare
from lshdup.compare.scored_pairs import Pairs
from lshdup.compare.sides import Side, Sides
from lshdup.compare.verification import jaccard
from lshdup.lsh.band_plan import BandPlan, collision_probabilities, half_point_estimate
from lshdup.lsh.band_table import band_keys
from lshdup.lsh.signatures import chances_off, estimate, make_signatures


@dataclass(frozen=True)
class Experiment:
    """The shingle sets of an experiment, and the signatures that it measures one after the other.

    sets : of all documents.
    """

    run: Run
    sets: RaggedSets
    sketches: Sequence[SketchParams]

    @property
    def present(self) -> NDArray[np.int64]:
        """The documents that have shingles, ascending: the other ones take no part."""
        return np.flatnonzero(self.sets.sizes > 0)

    def find_true_pairs(self, fingerprints: NDArray[np.uint64], threshold: float) -> Pairs:
        """Return all pairs from the threshold on, none missed; of exact duplicates one stands.

        fingerprints : uint64 array of shape (n,), of the sets.
        """
        sets = self.sets
        sides = Sides.of(self.run, Side(sets.sizes, fingerprints, None, sets.take, sets=sets))
        return compare(self.run, sides, BandParams(threshold), PairParams(exact=True)).pairs


#: Pairs that are compared together, 40 bytes each.
PIECE = 1 << 22


def list_pairs(n: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield left and right of all pairs of n documents, in pieces of PIECE pairs or of one row.

    >>> [[each.tolist() for each in pair] for pair in list_pairs(3)]
    [[[0, 0, 1], [1, 2, 2]]]
    """
    first = 0
    while first < n - 1:
        lengths = np.arange(n - 1 - first, 0, -1)
        fitting = int(np.searchsorted(np.cumsum(lengths), PIECE, side="right"))
        lengths = lengths[: max(1, fitting)]
        rows = first + np.arange(len(lengths))
        yield np.repeat(rows, lengths), ranges(rows + 1, lengths)
        first += len(lengths)


#: Allowance for rounding: an error that is epsilon plus less than this does not exceed epsilon.
TIE = 1e-9


@dataclass(frozen=True)
class Accuracy:
    """Estimates of all pairs against exact similarities, over independent seeds (R1 table 1).

    off : mean number of pairs whose estimate is off the exact similarity by more than epsilon.
    off_error : standard error of that mean, from its spread over the runs.
    off_worst : largest number of such pairs in any run.
    expected : number of such pairs for K independent permutations (binomial tails).
    bias : mean error, estimate - exact.
    rmse : root of the mean squared error.
    largest : largest absolute error in any run.
    """

    scheme: str
    perms: int
    epsilon: float
    runs: int
    pairs: int
    off: float
    off_error: float
    off_worst: float
    expected: float
    bias: float
    rmse: float
    largest: float


def accuracy(experiment: Experiment, epsilons: Sequence[float], runs: int) -> Iterator[Accuracy]:
    """Yield one result for each sketch and epsilon.

    runs : turn i uses the seed of the sketch + i.
    Cost: one exact similarity a pair and K, K comparisons a pair and run.
    Memory: the signatures of all runs, and a piece of at most about 4 million pairs.
    """
    run, sets = experiment.run, experiment.sets.take(experiment.present)
    n = len(sets)
    pairs = n * (n - 1) // 2
    for sketch in experiment.sketches:
        off = np.zeros((runs, len(epsilons)), np.int64)
        total = squares = largest = 0.0
        expected = np.zeros(len(epsilons))
        signed = [
            make_signatures(run, sets, replace(sketch, seed=sketch.seed + turn))
            for turn in range(runs)
        ]
        done = 0
        for left, right in list_pairs(n):
            exact = jaccard(run, sets, left, right)
            different, counts = np.unique(exact, return_counts=True)
            for at, epsilon in enumerate(epsilons):
                chances = chances_off(different, sketch.perms, epsilon + TIE)
                expected[at] += float((chances * counts).sum())
            for turn, signatures in enumerate(signed):
                error = estimate(run, signatures, left, right) - exact
                size = np.abs(error)
                off[turn] += [np.count_nonzero(size > epsilon + TIE) for epsilon in epsilons]
                total += float(error.sum())
                squares += float(np.square(error).sum())
                largest = max(largest, float(size.max(initial=0.0)))
            done += len(exact)
            run.progress(f"K = {sketch.perms}", done, pairs)
        measured = max(1, pairs * runs)
        # Errors of both signs cancel, so later digits are rounding errors of the sum.
        bias = significant(round(total / measured, 12))
        rmse = significant(math.sqrt(squares / measured))
        for at, epsilon in enumerate(epsilons):
            own = off[:, at]
            yield Accuracy(
                sketch.scheme, sketch.perms, epsilon, runs, pairs, off=float(own.mean()),
                off_error=significant(_standard_error(own)), off_worst=float(own.max()),
                expected=significant(expected[at]), bias=bias, rmse=rmse, largest=largest,
            )  # fmt: skip


@dataclass(frozen=True)
class BandAccuracy:
    """Documents that the bands find for sampled queries, as means per query (R1 table 4).

    half : (1/b)^(1/r).
    near : documents of similarity `threshold` or more to the query.
    found : near documents that share a bucket with the query.
    false_positives : other documents that share a bucket.
    false_positive_rate : false positives / documents that share a bucket.
    false_negatives : near documents that share no bucket.
    false_negative_rate : false negatives / documents that share no bucket.
    *_expected : from the S-curve over the exact similarities.
    *_low, *_high : 95 % confidence interval over the queries.
    """

    scheme: str
    perms: int
    bands: int
    rows: int
    half: float
    queries: int
    near: float
    found: float
    found_low: float
    found_high: float
    found_expected: float
    false_positives: float
    false_positives_low: float
    false_positives_high: float
    false_positives_expected: float
    false_positive_rate: float
    false_negatives: float
    false_negatives_expected: float
    false_negative_rate: float


def band_accuracy(
    experiment: Experiment,
    bands: Sequence[int],
    threshold: float,
    sample: int,
    queries: NDArray[np.bool_] | None,
    buckets: int,
) -> Iterator[BandAccuracy]:
    """Yield one result for each sketch and number of bands b, with r = K // b rows.

    A document is found if it shares a bucket with the query: candidates are not verified.

    sample : number of different documents that the seed draws as queries.
    queries : bool array of shape (n_documents,), which documents may be drawn; None means all.
    buckets : number of buckets that keys are folded into (R1 took the smallest prime >= the number
        of documents); 0 means 64-bit keys.
    Cost: one exact similarity a query and document, one signature a document.
    Memory: 8 bytes a query and document.
    """
    sets = experiment.sets.take(experiment.present)
    n = len(sets)
    eligible = np.arange(n) if queries is None else np.flatnonzero(queries[experiment.present])
    for sketch in experiment.sketches:
        rng = np.random.Generator(np.random.PCG64(sketch.seed))
        drawn = np.sort(rng.choice(eligible, min(sample, len(eligible)), replace=False))
        left, right = np.repeat(drawn, n), np.tile(np.arange(n), len(drawn))
        exact = jaccard(experiment.run, sets, left, right).reshape(len(drawn), n)
        is_other = drawn[:, None] != np.arange(n)  # A document is no neighbour of itself.
        is_near = is_other & (exact >= threshold)
        signatures = make_signatures(experiment.run, sets, sketch)
        for done, b in enumerate(bands, 1):
            plan = BandPlan(b, sketch.perms // b, threshold, 0.0, buckets)
            shares = np.zeros_like(is_near)
            for keys in band_keys(experiment.run, signatures, plan):
                shares |= keys[drawn, None] == keys
            shares &= is_other
            chance = np.where(is_other, _find_chances(exact, plan), 0.0)
            false_negatives, apart = (is_near & ~shares).sum(1), (is_other & ~shares).sum(1)
            false_positives = (shares & ~is_near).sum(1)
            experiment.run.progress("bands", done, len(bands))
            half, m = significant(half_point_estimate(b, plan.rows)), len(drawn)
            yield BandAccuracy(
                sketch.scheme, sketch.perms, b, plan.rows, half, m,
                float(is_near.sum(1).mean()),
                *_bound_mean((shares & is_near).sum(1)),
                significant((chance * is_near).sum() / m),
                *_bound_mean(false_positives),
                significant((chance * ~is_near).sum() / m),
                float(false_positives.sum() / max(1, shares.sum())),
                float(false_negatives.mean()),
                significant(((1.0 - chance) * is_near).sum() / m),
                float(false_negatives.sum() / max(1, apart.sum())),
            )  # fmt: skip


@dataclass(frozen=True)
class BandRecall:
    """Share of the true pairs that bands find, in one bin of similarity.

    similarity_from, similarity_to : edges of the bin; the upper edge belongs to it only at 1.
    pairs : number of true pairs, of documents with different shingle sets.
    found : number of true pairs that share a bucket.
    share : found / pairs; None without pairs.
    share_low, share_high : 95 % confidence interval of the share (Wilson) for independent pairs.
    expected : mean of the S-curve over the similarities of the pairs.
    """

    scheme: str
    perms: int
    bands: int
    rows: int
    similarity_from: float
    similarity_to: float
    pairs: int
    found: int
    share: float | None
    share_low: float | None
    share_high: float | None
    expected: float | None


def band_recall(
    experiment: Experiment, pairs: Pairs, plans: Mapping[int, Sequence[BandPlan]]
) -> Iterator[BandRecall]:
    """Yield for each sketch and plan a result for each bin from the threshold to 1, and for all.

    The found pairs are those that `lshdup pairs` finds with these parameters.

    pairs : the true pairs, from the exact join; without exact duplicates, which are always found.
    plans : the band plans to measure, by number of rows K of the signatures.
    Cost: one signature a document, one comparison a pair and band.
    Memory: some 40 bytes a pair, a signature a document.
    """
    left, right, similarity = pairs.part(0, len(pairs))
    for sketch in experiment.sketches:
        signatures = make_signatures(experiment.run, experiment.sets, sketch)
        for done, plan in enumerate(plans[sketch.perms]):
            experiment.run.progress(f"bands, K = {sketch.perms}", done, len(plans[sketch.perms]))
            is_found = np.zeros(len(pairs), np.bool_)
            for keys in band_keys(experiment.run, signatures, plan):
                is_found |= keys[left] == keys[right]
            chance = _find_chances(similarity, plan)
            for each in recall_in_bins(plan.threshold, similarity, is_found, chance):
                yield BandRecall(sketch.scheme, sketch.perms, plan.bands, plan.rows, *each)


def recall_in_bins(
    threshold: float,
    similarity: NDArray[np.float64],
    is_found: NDArray[np.bool_],
    chance: NDArray[np.float64],
) -> Iterator[tuple[Any, ...]]:
    """Yield the recall in each bin from the threshold to 1, and in all if there are several.

    A recall is the edges of the bin, the numbers of true and of found pairs, the share of these
    with its 95 % confidence interval, and the mean chance; None for the last four without pairs.

    similarity, is_found, chance : arrays of shape (n,), of the true pairs.
    """
    edges = make_bins(threshold)
    bins = np.searchsorted(edges[1:-1], similarity, side="right")
    columns = [
        np.bincount(bins, weights, len(edges) - 1)
        for weights in (np.ones(len(bins)), is_found, chance)
    ]
    rows = list(zip(edges, edges[1:], *columns, strict=False))
    if len(rows) > 1:
        rows.append((edges[0], edges[-1], *(column.sum() for column in columns)))
    for low, high, n, hits, hoped in rows:
        counts = low, high, int(n), int(hits)
        if n:
            low, high = map(significant, bound_share(int(hits), int(n)))
            yield *counts, float(hits / n), low, high, significant(hoped / n)
        else:
            yield *counts, None, None, None, None


def make_bins(threshold: float) -> list[float]:
    """Return the edges of bins from the threshold to 1.

    The width is the first of 0.1, 0.05, 0.02, 0.01, … that makes five bins or more.

    >>> make_bins(0.85)
    [0.85, 0.86, 0.88, 0.9, 0.92, 0.94, 0.96, 0.98, 1.0]
    """
    widths = (factor * 10**power for power in range(1, 16) for factor in (1, 2, 5))
    steps = next((width for width in widths if (1.0 - threshold) * width > 4.999), 1)
    # Quotients of integers like similarities, so that a similarity equals its edge exactly.
    inner = (step / steps for step in range(int(threshold * steps), steps))
    return [threshold, *(edge for edge in inner if edge > threshold), 1.0]


def bound_share(hits: int, trials: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of the chance of a hit (Wilson, JASA 1927).

    >>> [round(edge, 4) for edge in bound_share(99, 100)]
    [0.9455, 0.9982]
    """
    z = 1.959964
    share = hits / trials
    middle = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1.0 - share) / trials + z * z / (4 * trials * trials))
    scale = 1.0 + z * z / trials
    low = (middle - half) / scale if hits else 0.0
    return low, (middle + half) / scale if hits < trials else 1.0


def _find_chances(similarity: NDArray[np.float64], plan: BandPlan) -> NDArray[np.float64]:
    """Return the chance to share a bucket at each similarity, by accident in folded ones too."""
    chance = collision_probabilities(similarity, plan.bands, plan.rows)
    if plan.buckets:
        chance = 1.0 - (1.0 - chance) * (1.0 - 1.0 / plan.buckets) ** plan.bands
    return chance


def _bound_mean(counts: NDArray[np.int64]) -> tuple[float, float, float]:
    """Return a mean over queries, and its 95 % confidence interval by its standard error."""
    mean, half = float(counts.mean()), 1.96 * _standard_error(counts)
    return mean, significant(max(0.0, mean - half)), significant(mean + half)


def _standard_error(counts: NDArray[np.int64]) -> float:
    """Return the standard error of the mean of counts, by their spread; NaN for one count."""
    n = len(counts)
    return stdev(counts.tolist()) / math.sqrt(n) if n > 1 else float("nan")


EXACT, MATRIX, ESTIMATED = "exact, all pairs", "signature matrix", "estimated, all pairs"


@dataclass(frozen=True)
class Timing:
    """Seconds of one part of the work: median, smallest and largest of the runs.

    comparisons : number of elementary comparisons of the part.
    """

    scheme: str
    perms: int
    part: str
    comparisons: int
    median: float
    smallest: float
    largest: float
    runs: int


def timing(experiment: Experiment, runs: int) -> Iterator[Timing]:
    """Time exact similarities of all pairs and, for each sketch, the signatures and the estimates.

    The runs of the parts are interleaved. A first run that is not measured compiles the kernels.
    Comparisons are at most |A| + |B| - |A ∩ B| steps of a merge for an exact similarity, K hash
    values an element for the matrix (the fast scheme makes far fewer), and K rows for an estimate.
    Memory: bounded.
    """
    run, sets = experiment.run, experiment.sets.take(experiment.present)
    n, elements = len(sets), int(sets.sizes.sum())

    def compare_all(score: Callable[..., object]) -> None:
        for left, right in list_pairs(n):
            score(left, right)

    for done, sketch in enumerate(experiment.sketches):
        sign = partial(make_signatures, run, sets, sketch)
        exact, estimated = partial(jaccard, run, sets), partial(estimate, run, sign())
        parts: list[tuple[str, int, Callable[[], object]]] = [
            (EXACT, elements * (n - 1), partial(compare_all, exact)),
            (MATRIX, elements * sketch.perms, sign),
            (ESTIMATED, n * (n - 1) // 2 * sketch.perms, partial(compare_all, estimated)),
        ]
        seconds: list[list[float]] = [[] for _ in parts]
        for turn in range(-1, runs):
            total = len(experiment.sketches) * (runs + 1)
            run.progress("timing", done * (runs + 1) + turn + 1, total)
            for (_, _, work), times in zip(parts, seconds, strict=True):
                start = time.perf_counter()
                work()
                if turn >= 0:
                    times.append(time.perf_counter() - start)
        for (name, comparisons, _), times in zip(parts, seconds, strict=True):
            median, least, most = float(np.median(times)), min(times), max(times)
            yield Timing(sketch.scheme, sketch.perms, name, comparisons, median, least, most, runs)


def compare_timings(timings: Sequence[Timing]) -> Iterator[str]:
    """Yield for each scheme and K whether exact or estimated similarities are faster, in words.

    Estimates need the matrix, so their seconds include those of the matrix.
    """
    for at in range(0, len(timings), 3):
        exact, matrix, estimated = timings[at : at + 3]
        total = matrix.median + estimated.median
        winner = "exact is" if exact.median <= total else "estimated is"
        factor = max(exact.median, total) / max(1e-9, min(exact.median, total))
        yield (
            f"{exact.scheme}, K = {exact.perms}: {winner} {factor:.1f} x faster "
            f"(exact {exact.median:.4f} s; matrix and estimates {total:.4f} s)"
        )
