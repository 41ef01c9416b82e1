"""The accuracy experiments: R1's table 1 (estimates of all pairs) and table 4 (what bands find for queries), and what share of all true
pairs bands find. Called by `lshdup accuracy`.

Each measurement comes with what theory expects of it, so that a person sees at a glance whether the system is at its statistical optimum.
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

#: An error that equals epsilon but for rounding is not more than epsilon, in the measurement as in the expectation.
TIE = 1e-9

#: Different similarities beyond so many are rounded to a millionth before tails are summed: memory stays bounded.
_DIFFERENT = 1 << 22


@dataclass(frozen=True)
class Accuracy:
    """Estimates of all pairs against exact similarities, over independent seeds (R1 table 1).

    off : mean number of pairs whose estimate differs from the exact similarity by more than epsilon; off_error : standard error
    of that mean, from its spread over the runs; off_worst : the largest number in any run. expected : the number that K
    independent permutations would give (binomial tails). bias : mean of estimate - exact. rmse : root of the mean square of it.
    largest : its largest absolute value in any run.
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
    """One result for each K and epsilon; run i uses seed `sketch.seed` + i. Documents without shingles take no part.

    Cost: one exact similarity a pair and K (however many runs), K comparisons a pair and run. Memory: the signatures of all runs, and a
    piece of at most about 8 million pairs.
    """
    compared, _ = _compared(sets, collection)
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
            left, right = _pairs_of(n, first, len(exact))
            different, counts = _distribution(exact)
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
    """What the bands find for sampled documents, means per query (R1 table 4).

    half : (1/b)^(1/r). near : documents at least `threshold` similar to the query. found : those of them that share a bucket with it.
    false_positives : others that share a bucket; false_positive_rate : their share of all that share one. false_negatives : similar but no
    bucket shared; false_negative_rate : their share of all that share none. *_expected : from the S-curve over the exact similarities.
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
    """One result for each number of bands b, with r = K // b rows; `sample` different documents, drawn by the seed, are the queries.

    queries : bool array over the documents, which of them may be drawn; None means all.
    Candidates are all that share a bucket, none is verified away: a pair counts as found by the bands alone. buckets : 0 means whole 64-bit
    keys; else keys are folded into so many (R1 took the smallest prime >= the number of documents).

    Cost: one exact similarity a query and document, one signature a document. Memory: sample times documents, 8 bytes each.
    """
    compared, present = _compared(sets, collection)
    assert compared.sets is not None
    n = len(compared.sets)
    rng = np.random.Generator(np.random.PCG64(sketch.seed))
    eligible = np.arange(n) if queries is None else np.flatnonzero(queries[present])
    drawn = np.sort(rng.choice(eligible, min(sample, len(eligible)), replace=False))
    exact = jaccard(
        compared.sets, np.repeat(drawn, n), np.tile(np.arange(n), len(drawn)), jobs
    ).reshape(len(drawn), n)
    exact[np.arange(len(drawn)), drawn] = -1.0  # a document is no neighbour of itself
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
        chance = np.where(is_other, _chances(np.maximum(exact, 0.0), plan), 0.0)
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
            found_low=_interval(found)[0],
            found_high=_interval(found)[1],
            found_expected=float((chance * is_near).sum(1).mean()),
            false_positives=float(false_positives.mean()),
            false_positives_low=_interval(false_positives)[0],
            false_positives_high=_interval(false_positives)[1],
            false_positives_expected=float((chance * ~is_near).sum(1).mean()),
            false_positive_rate=float(false_positives.sum() / max(1, shares.sum())),
            false_negatives=float(false_negatives.mean()),
            false_negatives_expected=float(((1.0 - chance) * is_near).sum(1).mean()),
            false_negative_rate=float(false_negatives.sum() / max(1, apart.sum())),
        )


@dataclass(frozen=True)
class BandRecall:
    """What share of the true pairs bands find, in one bin of similarity: at least similarity_from, below similarity_to (at 1: up to 1).

    pairs : true pairs, of documents with different shingle sets. found : those of them that share a bucket. share : found / pairs, None
    without pairs. share_low, share_high : 95 % confidence interval of the share (Wilson), as if pairs were independent. expected : mean of
    the S-curve over the similarities of the pairs.
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
    """For each plan one result for each bin of similarity from the threshold to 1, and last one for all of them.

    pairs : the true pairs, of numbers of documents: the exact join's. Exact copies are always found, so they are best left out. plans : of
    `sketch.perms` rows. What is found is what `lshdup pairs` finds with these parameters.

    Cost: one signature a document, one comparison a pair and band. Memory: some 40 bytes a pair, a signature a document.
    """
    signatures = sketch_collection(replace(collection, sets=sets), sketch, jobs).signatures
    assert signatures is not None
    left, right, similarity = pairs.part(0, len(pairs))
    for done, plan in enumerate(plans):
        progress(f"bands, K = {sketch.perms}", done, len(plans))
        keys = band_keys(signatures, plan, jobs)
        met = np.zeros(len(pairs), np.bool_)
        for band in keys:
            met |= band[left] == band[right]
        chance = _chances(similarity, plan)
        edges = similarity_bins(plan.threshold)
        bins = np.searchsorted(edges[1:-1], similarity, side="right")
        n = np.bincount(bins, minlength=len(edges) - 1)
        found = np.bincount(bins[met], minlength=len(edges) - 1)
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
            least, most = share_interval(hits, of) if of else (None, None)
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


def similarity_bins(threshold: float) -> list[float]:
    """Edges of bins from the threshold to 1: the first of the widths 0.1, 0.05, 0.02, 0.01, … that makes five or more.

    >>> similarity_bins(0.85)
    [0.85, 0.86, 0.88, 0.9, 0.92, 0.94, 0.96, 0.98, 1.0]
    """
    widths = (factor * 10**power for power in range(1, 16) for factor in (1, 2, 5))
    steps = next((each for each in widths if (1.0 - threshold) * each > 4.999), 1)
    # Quotients of whole numbers, as similarities are: one that equals an edge is the same double.
    inner = (step / steps for step in range(int(threshold * steps), steps))
    return [threshold, *(edge for edge in inner if edge > threshold), 1.0]


def share_interval(hits: int, trials: int) -> tuple[float, float]:
    """95 % confidence interval of a chance, of which `hits` of `trials` were seen (Wilson, JASA 1927).

    >>> [round(edge, 4) for edge in share_interval(99, 100)]
    [0.9455, 0.9982]
    """
    z = 1.959964
    share = hits / trials
    middle = share + z * z / (2 * trials)
    half = z * (share * (1.0 - share) / trials + z * z / (4 * trials * trials)) ** 0.5
    whole = 1.0 + z * z / trials
    return (middle - half) / whole if hits else 0.0, (
        middle + half
    ) / whole if hits < trials else 1.0


def _chances(similarity: NDArray[np.float64], plan: BandPlan) -> NDArray[np.float64]:
    """Chance to share a bucket, at each similarity: by the S-curve, or by accident in any of the bands."""
    chance = collision_probabilities(similarity, plan.bands, plan.rows)
    if plan.buckets:
        chance = 1.0 - (1.0 - chance) * (1.0 - 1.0 / plan.buckets) ** plan.bands
    return chance


def _compared(sets: RaggedSets, collection: Collection) -> tuple[Collection, NDArray[np.int64]]:
    """The documents that have shingles, with their sets."""
    present = np.flatnonzero(collection.sizes > 0)
    return replace(collection, sets=sets.take(present)), present


def _interval(counts: NDArray[np.int64]) -> tuple[float, float]:
    """95 % confidence interval of a mean over queries, by its standard error; not below 0."""
    mean = float(counts.mean())
    half = (
        1.96 * float(counts.std(ddof=1)) / len(counts) ** 0.5 if len(counts) > 1 else float("nan")
    )
    return max(0.0, mean - half), mean + half


def _distribution(exact: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Different similarities and how often each occurs."""
    different, counts = np.unique(exact, return_counts=True)
    if len(different) > _DIFFERENT:
        different, counts = np.unique(exact.round(6), return_counts=True)
    return different, counts


def _pairs_of(n: int, first: int, pairs: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """left, right of so many pairs of the upper triangle, in whole rows from `first` on."""
    lengths = n - 1 - np.arange(first, n)
    rows = np.arange(first, first + int(np.searchsorted(np.cumsum(lengths), pairs)) + 1)
    left = np.repeat(rows, n - 1 - rows)
    starts = np.cumsum(n - 1 - rows) - (n - 1 - rows)
    return left, np.arange(pairs) - np.repeat(starts, n - 1 - rows) + left + 1
