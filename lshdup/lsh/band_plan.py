"""The S-curve of a band table, and the choice of bands and rows for a promised recall.

K rows of a signature are cut into b bands of r rows. Two documents of similarity s agree in all
rows of some band with probability 1 - (1 - s^r)^b (R3; Leskovec, Rajaraman, Ullman, "Mining of
massive datasets", section 3.4). More rows a band: fewer candidates, more misses. More bands: the
reverse, and a larger table.
"""

import math

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.params import MAX_PERMS, BandParams
from lshdup.errors import ParameterError


def collision_probability(similarity: float, bands: int, rows: int) -> float:
    """Return the probability that two documents share a bucket: 1 - (1 - s^r)^b (R3).

    similarity : Jaccard similarity s, from 0 to 1.
    bands : number of bands b.
    rows : rows r of each band.

    >>> [round(collision_probability(s / 10, 20, 5), 4) for s in range(2, 9)]
    [0.0064, 0.0475, 0.186, 0.4701, 0.8019, 0.9748, 0.9996]
    """
    if similarity >= 1.0:
        return 1.0
    return -math.expm1(bands * math.log1p(-math.pow(similarity, rows)))


def collision_probabilities(
    similarity: NDArray[np.float64], bands: int, rows: int
) -> NDArray[np.float64]:
    """Return `collision_probability` of each element of a float64 array, of the same shape."""
    with np.errstate(divide="ignore"):
        probabilities: NDArray[np.float64] = -np.expm1(bands * np.log1p(-(similarity**rows)))
    return probabilities


def half_point(bands: int, rows: int) -> float:
    """Return the similarity at which the S-curve is 1/2: (1 - 2^(-1/b))^(1/r).

    >>> [round(half_point(b, r), 4) for r, b in ((3, 10), (6, 20), (5, 50))]
    [0.4061, 0.5694, 0.4244]
    """
    return math.pow(-math.expm1(-math.log(2.0) / bands), 1.0 / rows)


def half_point_estimate(bands: int, rows: int) -> float:
    """Return the threshold as R3 approximates it: (1/b)^(1/r).

    The S-curve is about 1 - 1/e there, not 1/2.

    >>> [round(half_point_estimate(b, r), 4) for r, b in ((3, 10), (6, 20), (5, 50))]
    [0.4642, 0.607, 0.4573]
    """
    return math.pow(1.0 / bands, 1.0 / rows)


def least_agreement(rows: int, similarity: float, chance: float) -> int:
    """Return the largest L so that two signatures agree in fewer than L rows with at most a chance.

    rows : rows of a signature, which agree with a chance of `similarity` each (binomially).

    >>> least_agreement(256, 0.4, 1e-6), least_agreement(128, 0.8, 1e-6)
    (66, 79)
    """
    least, sum_below = 0, 0.0
    while least < rows:
        rest = rows - least
        sum_below += math.comb(rows, least) * similarity**least * (1 - similarity) ** rest
        if sum_below > chance:
            break
        least += 1
    return least


@dataclass(frozen=True)
class BandPlan:
    """The number of bands and of rows a band, and the request they were planned for.

    bands, rows : b and r; together at most K.
    threshold, recall : a pair of this similarity is to be met with this probability.
    buckets : if not 0, the number of buckets that the keys of a band are folded into.
    """

    bands: int
    rows: int
    threshold: float
    recall: float
    buckets: int = 0

    def miss(self, similarity: float) -> float:
        """Return the probability to miss a pair of this similarity."""
        return 1.0 - collision_probability(similarity, self.bands, self.rows)

    def has_shape_of(self, other: "BandPlan") -> bool:
        """Return whether a table of one plan is a table of the other."""
        mine, its = (self.bands, self.rows, self.buckets), (other.bands, other.rows, other.buckets)
        return mine == its

    def finds_all_of(self, other: "BandPlan") -> bool:
        """Return whether each candidate of the other plan is one of this plan.

        So it is if each band of the other plan holds a whole band of this one.

        >>> BandPlan(42, 3, 0.5, 0.99).finds_all_of(BandPlan(21, 6, 0.8, 0.99))
        True
        >>> BandPlan(25, 5, 0.75, 0.99).finds_all_of(BandPlan(21, 6, 0.8, 0.99))
        False
        """
        starts = range(0, other.bands * other.rows, other.rows)
        within = ((-(-start // self.rows), start + other.rows) for start in starts)
        return (self.buckets, other.buckets) == (0, 0) and all(
            band < self.bands and (band + 1) * self.rows <= end for band, end in within
        )


def plan_bands(perms: int, params: BandParams) -> BandPlan:
    """Return the plan with the largest r that meets a pair at the threshold with the recall.

    The number of bands is K // r. The largest r makes the fewest accidental candidates.

    perms : number of rows K of the signatures.
    params : threshold and recall; `bands` and `rows` override the choice, and one of them alone
        makes the other K // it.

    Raises ParameterError if they need more than K rows, or if no r keeps the promise; the error
    names the smallest K that would.

    >>> plan_bands(128, BandParams(threshold=0.9))
    BandPlan(bands=12, rows=10, threshold=0.9, recall=0.99, buckets=0)
    """
    bands, rows = params.bands, params.rows
    if bands or rows:
        bands = bands or perms // rows
        rows = rows or perms // bands
        if not (bands and rows) or bands * rows > perms:
            bands, rows = bands or 1, rows or 1
            needed = bands * rows
            message = f"{bands} bands of {rows} rows need {needed} rows; signatures have {perms}"
            raise ParameterError(message, f"use --perms {needed}, or fewer bands or rows")
    else:
        rows = _largest_rows(perms, params)
        if not rows:
            # One row a band finds most: b >= log(1 - recall) / log(1 - t) bands are enough.
            enough = math.ceil(math.log1p(-params.recall) / math.log1p(-params.threshold))
            message = (
                f"{perms} rows cannot meet a pair of similarity {params.threshold:g} "
                f"with chance {params.recall:g}"
            )
            hint = "raise --threshold or lower --recall"
            if enough <= MAX_PERMS:
                hint = f"use --perms {enough}"
            raise ParameterError(message, f"{hint}; or choose --bands and --rows yourself")
        bands = perms // rows
    return BandPlan(bands, rows, params.threshold, params.recall, params.buckets)


def _largest_rows(perms: int, params: BandParams) -> int:
    for rows in range(perms, 0, -1):
        # Rounded, as the last digits of a logarithm differ between processors.
        chance = collision_probability(params.threshold, perms // rows, rows)
        if round(chance, 12) >= params.recall:
            return rows
    return 0
