"""The accuracy experiments: estimates of all pairs, and the pairs that bands find (R1 tables 1, 4).

Each measurement stands beside its theoretical expectation, which shows at a glance whether the
system is at its statistical optimum.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collect import sketch_collection
from lshdup.collection.collection import Collection
from lshdup.kernels import statistics as kernels
from lshdup.lsh.band_plan import BandPlan, collision_probabilities, half_point_estimate
from lshdup.lsh.band_table import band_keys
from lshdup.lsh.signatures import estimate
from lshdup.matching.pairs import Pairs
from lshdup.matching.similarity import all_pairs, jaccard
from lshdup.params import SketchParams
from lshdup.utils.parallel import Progress, no_progress
from lshdup.utils.ragged import RaggedSets

#: Allowance for rounding: an error that is epsilon plus less than this does not exceed epsilon.
TIE = 1e-9

#: More different similarities are rounded to a millionth before tails are summed, to bound memory.
_DIFFERENT = 1 << 22


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


def accuracy(
    sets: RaggedSets,
    collection: Collection,
    sketch: SketchParams,
    perms: Sequence[int],
    epsilons: Sequence[float],
    runs: int,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Iterator[Accuracy]:
    """Yield one result for each K and epsilon. Documents without shingles take no part.

    runs : run i uses seed `sketch.seed` + i.
    Cost: one exact similarity a pair and K, K comparisons a pair and run.
    Memory: the signatures of all runs, and a piece of at most about 8 million pairs.
    """
    compared, _ = _select_compared(sets, collection)
    assert compared.sets is not None
    n = len(compared.sets)
    pairs = n * (n - 1) // 2
    for k in perms:
        off = np.zeros((runs, len(epsilons)))
        total = squares = largest = 0.0
        expected = np.zeros(len(epsilons))
        seeds = [replace(sketch, perms=k, seed=sketch.seed + run) for run in range(runs)]
        signed = [sketch_collection(compared, params, jobs).signatures for params in seeds]
        done = 0
        for first, exact in all_pairs(compared.sets, jobs):
            left, right = _list_pairs(n, first, len(exact))
            different, counts = _count_values(exact)
            for at, epsilon in enumerate(epsilons):
                chances = np.empty(len(different))
                kernels.chances_off(different, k, epsilon + TIE, chances)
                expected[at] += float(chances @ counts)
            for run, signatures in enumerate(signed):
                assert signatures is not None
                error = estimate(signatures, left, right, jobs).similarity - exact
                size = np.abs(error)
                off[run] += [np.count_nonzero(size > epsilon + TIE) for epsilon in epsilons]
                total += float(error.sum())
                squares += float(error @ error)
                largest = max(largest, float(size.max(initial=0.0)))
            done += len(exact)
            progress(f"K = {k}", done, pairs)
        measured = max(1, pairs * runs)
        for at, epsilon in enumerate(epsilons):
            spread = float(off[:, at].std(ddof=1)) if runs > 1 else float("nan")
            yield Accuracy(
                scheme=sketch.scheme,
                perms=k,
                epsilon=epsilon,
                runs=runs,
                pairs=pairs,
                off=float(off[:, at].mean()),
                off_error=spread / runs**0.5,
                off_worst=float(off[:, at].max()),
                expected=float(expected[at]),
                bias=total / measured,
                rmse=(squares / measured) ** 0.5,
                largest=largest,
            )


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
    sets: RaggedSets,
    collection: Collection,
    sketch: SketchParams,
    bands: Sequence[int],
    threshold: float,
    sample: int,
    queries: NDArray[np.bool_] | None = None,
    buckets: int = 0,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Iterator[BandAccuracy]:
    """Yield one result for each number of bands b, with r = K // b rows.

    A document is found if it shares a bucket with the query: candidates are not verified.

    sample : number of different documents that the seed draws as queries.
    queries : bool array of shape (n_documents,), which documents may be drawn; None means all.
    buckets : number of buckets that keys are folded into (R1 took the smallest prime >= the number
        of documents); 0 means 64-bit keys.
    Cost: one exact similarity a query and document, one signature a document.
    Memory: 8 bytes a query and document.
    """
    compared, present = _select_compared(sets, collection)
    assert compared.sets is not None
    n = len(compared.sets)
    rng = np.random.Generator(np.random.PCG64(sketch.seed))
    eligible = np.arange(n) if queries is None else np.flatnonzero(queries[present])
    drawn = np.sort(rng.choice(eligible, min(sample, len(eligible)), replace=False))
    exact = jaccard(
        compared.sets, np.repeat(drawn, n), np.tile(np.arange(n), len(drawn)), jobs
    ).reshape(len(drawn), n)
    exact[np.arange(len(drawn)), drawn] = -1.0  # A document is no neighbour of itself.
    is_other = exact >= 0
    is_near = exact >= threshold
    signatures = sketch_collection(compared, sketch, jobs).signatures
    assert signatures is not None
    for done, b in enumerate(bands, 1):
        plan = BandPlan(b, sketch.perms // b, threshold, 0.0, buckets)
        keys = band_keys(signatures, plan)
        shares = np.zeros_like(is_near)
        for band in range(b):
            shares |= keys[band, drawn, None] == keys[band]
        shares &= is_other
        chance = np.where(is_other, _find_chances(np.maximum(exact, 0.0), plan), 0.0)
        found, false_positives = (shares & is_near).sum(1), (shares & ~is_near).sum(1)
        false_negatives, apart = (is_near & ~shares).sum(1), (is_other & ~shares).sum(1)
        progress("bands", done, len(bands))
        yield BandAccuracy(
            scheme=sketch.scheme,
            perms=sketch.perms,
            bands=b,
            rows=plan.rows,
            half=half_point_estimate(plan.bands, plan.rows),
            queries=len(drawn),
            near=float(is_near.sum(1).mean()),
            found=float(found.mean()),
            found_low=_bound_mean(found)[0],
            found_high=_bound_mean(found)[1],
            found_expected=float((chance * is_near).sum(1).mean()),
            false_positives=float(false_positives.mean()),
            false_positives_low=_bound_mean(false_positives)[0],
            false_positives_high=_bound_mean(false_positives)[1],
            false_positives_expected=float((chance * ~is_near).sum(1).mean()),
            false_positive_rate=float(false_positives.sum() / max(1, shares.sum())),
            false_negatives=float(false_negatives.mean()),
            false_negatives_expected=float(((1.0 - chance) * is_near).sum(1).mean()),
            false_negative_rate=float(false_negatives.sum() / max(1, apart.sum())),
        )


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
    pairs: Pairs,
    sets: RaggedSets,
    collection: Collection,
    sketch: SketchParams,
    plans: Sequence[BandPlan],
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Iterator[BandRecall]:
    """Yield for each plan one result for each bin from the threshold to 1, and one for all bins.

    The found pairs are those that `lshdup pairs` finds with these parameters.

    pairs : the true pairs, from the exact join; without exact duplicates, which are always found.
    plans : band plans for signatures of `sketch.perms` rows.
    Cost: one signature a document, one comparison a pair and band.
    Memory: some 40 bytes a pair, a signature a document.
    """
    signatures = sketch_collection(replace(collection, sets=sets), sketch, jobs).signatures
    assert signatures is not None
    left, right, similarity = pairs.part(0, len(pairs))
    for done, plan in enumerate(plans):
        progress(f"bands, K = {sketch.perms}", done, len(plans))
        keys = band_keys(signatures, plan, jobs)
        is_found = np.zeros(len(pairs), np.bool_)
        for band in keys:
            is_found |= band[left] == band[right]
        chance = _find_chances(similarity, plan)
        edges = make_bins(plan.threshold)
        bins = np.searchsorted(edges[1:-1], similarity, side="right")
        n = np.bincount(bins, minlength=len(edges) - 1)
        found = np.bincount(bins[is_found], minlength=len(edges) - 1)
        expected = np.bincount(bins, chance, minlength=len(edges) - 1)
        rows = list(
            zip(edges[:-1], edges[1:], n.tolist(), found.tolist(), expected.tolist(), strict=True)
        )
        if len(rows) > 1:
            rows.append(
                (edges[0], edges[-1], int(n.sum()), int(found.sum()), float(expected.sum()))
            )
        for low, high, of, hits, hoped in rows:
            share, mean = (hits / of, hoped / of) if of else (None, None)
            least, most = bound_share(hits, of) if of else (None, None)
            yield BandRecall(
                sketch.scheme,
                sketch.perms,
                plan.bands,
                plan.rows,
                low,
                high,
                of,
                hits,
                share,
                least,
                most,
                mean,
            )


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
    half = z * (share * (1.0 - share) / trials + z * z / (4 * trials * trials)) ** 0.5
    scale = 1.0 + z * z / trials
    low = (middle - half) / scale if hits else 0.0
    return low, (middle + half) / scale if hits < trials else 1.0


def _find_chances(similarity: NDArray[np.float64], plan: BandPlan) -> NDArray[np.float64]:
    """Return the chance to share a bucket at each similarity, by accident in folded ones too."""
    chance = collision_probabilities(similarity, plan.bands, plan.rows)
    if plan.buckets:
        chance = 1.0 - (1.0 - chance) * (1.0 - 1.0 / plan.buckets) ** plan.bands
    return chance


def _select_compared(
    sets: RaggedSets, collection: Collection
) -> tuple[Collection, NDArray[np.int64]]:
    """Return the collection of the documents that have shingles, and their numbers."""
    present = np.flatnonzero(collection.sizes > 0)
    return replace(collection, sets=sets.take(present)), present


def _bound_mean(counts: NDArray[np.int64]) -> tuple[float, float]:
    """Return the 95 % confidence interval of a mean over queries, by its standard error."""
    mean = float(counts.mean())
    half = (
        1.96 * float(counts.std(ddof=1)) / len(counts) ** 0.5 if len(counts) > 1 else float("nan")
    )
    return max(0.0, mean - half), mean + half


def _count_values(exact: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the different similarities and how often each occurs."""
    different, counts = np.unique(exact, return_counts=True)
    if len(different) > _DIFFERENT:
        different, counts = np.unique(exact.round(6), return_counts=True)
    return different, counts


def _list_pairs(n: int, first: int, pairs: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return left and right of pairs of the upper triangle, in complete rows from `first` on."""
    lengths = n - 1 - np.arange(first, n)
    rows = np.arange(first, first + int(np.searchsorted(np.cumsum(lengths), pairs)) + 1)
    left = np.repeat(rows, n - 1 - rows)
    starts = np.cumsum(n - 1 - rows) - (n - 1 - rows)
    return left, np.arange(pairs) - np.repeat(starts, n - 1 - rows) + left + 1
