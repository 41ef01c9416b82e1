"""Shingle sets -> signature matrix, by three schemes; and what two signatures say about similarity. Called by pipeline.py.

Every scheme has the alignment property: row j of two signatures agrees with probability J, the Jaccard similarity of the
sets, so the share of agreeing rows estimates J without bias. `linear` is the exception that proves it (R1).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import sketch as kernels
from lshdup.params import SketchParams
from lshdup.utils.parallel import run_in_parts
from lshdup.utils.ragged import RaggedSets


class Sketcher:
    """Makes signatures of scheme `fast` or `classic`, set by set; safe to share between threads.

    ``fast``: Fast Similarity Sketching, cost about n + K log K a set of n elements. ``classic``: K independent permutations, cost
    n K. Determinism: the seed and the set make the signature, and nothing else does.
    """

    def __init__(self, params: SketchParams) -> None:
        self.params = params
        rng = np.random.Generator(np.random.PCG64(params.seed))
        self._salt = rng.integers(0, 1 << 64, dtype=np.uint64)
        if params.scheme == "classic":
            self._first = rng.integers(1, (1 << 31) - 1, params.perms, dtype=np.uint32)
            self._second = rng.integers(0, (1 << 31) - 1, params.perms, dtype=np.uint32)
        else:
            self._round_offsets = rng.integers(0, 1 << 64, 2 * params.perms, dtype=np.uint64)
            self._round_factors = rng.integers(
                0, 1 << 64, 2 * params.perms, dtype=np.uint64
            ) | np.uint64(1)

    def sketch(self, sets: RaggedSets) -> NDArray[np.uint32]:
        """Signatures of some sets: uint32 array of shape (n_sets, K); rows of an empty set are 2^32 - 1."""
        out = np.empty((len(sets), self.params.perms), np.uint32)
        if not len(sets):
            return out
        largest = int(sets.sizes.max())
        if self.params.scheme == "classic":
            mixed = np.empty(largest, np.uint32)
            kernels.classic_sketch(
                sets.values, sets.offsets, self._salt, self._first, self._second, mixed, out
            )
        else:
            keys, room = np.empty(self.params.perms, np.uint64), np.empty(largest, np.uint64)
            kernels.fast_sketch(
                sets.values,
                sets.offsets,
                self._salt,
                self._round_offsets,
                self._round_factors,
                keys,
                room,
                out,
            )
        return out


def linear_signatures(sets: RaggedSets, params: SketchParams) -> NDArray[np.uint32]:
    """R1 to the letter: x -> (a x + b) mod p on consecutive element numbers, p the smallest prime >= their number n.

    Elements are numbered 0, 1, 2 … in order of first appearance over the collection, the new elements of one set by size. All a
    are distinct, all b are distinct, drawn from [0, p). The small consecutive numbers make the estimates biased; this scheme exists to
    show it. Needs the whole collection at once: a new document changes every signature.

    Returns a uint32 array of shape (n_sets, K). Raises ValueError if K > p. Cost: K n for the permutations, K a set element.
    """
    numbers, n = _numbered(sets)
    p = smallest_prime_from(n)
    if params.perms > p:
        message = (
            f"the linear scheme needs {params.perms} different coefficients below the prime {p}"
        )
        raise ValueError(message)
    rng = np.random.Generator(np.random.PCG64(params.seed))
    a = rng.choice(p, params.perms, replace=False).astype(np.int64)
    b = rng.choice(p, params.perms, replace=False).astype(np.int64)
    out = np.empty((len(sets), params.perms), np.uint32)
    at_once = max(1, (1 << 24) // max(n, 1))
    for first in range(0, params.perms, at_once):
        rows = slice(first, first + at_once)
        permutations = np.empty((len(a[rows]), n), np.uint32)
        kernels.linear_permutations(a[rows], b[rows], p, permutations)
        part = np.empty((len(sets), len(permutations)), np.uint32)
        kernels.permuted_minima(numbers, sets.offsets, permutations, part)
        out[:, rows] = part
    return out


def permutation_signatures(
    sets: RaggedSets, permutations: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Signatures by permutations given as tables (R2's worked example).

    sets : elements are numbers from 0 to n - 1. permutations : uint32 array of shape (K, n), the new position of each.
    Returns a uint32 array of shape (n_sets, K).

    >>> rows = RaggedSets.from_sets([{0, 2}, {1}])
    >>> permutation_signatures(rows, np.array([[2, 1, 0], [0, 1, 2]], np.uint32)).tolist()
    [[0, 0], [1, 1]]
    """
    out = np.empty((len(sets), len(permutations)), np.uint32)
    kernels.permuted_minima(
        sets.values.astype(np.int64), sets.offsets, np.ascontiguousarray(permutations), out
    )
    return out


def _numbered(sets: RaggedSets) -> tuple[NDArray[np.int64], int]:
    """Each element's number in order of first appearance, and how many numbers there are."""
    elements, first, inverse = np.unique(sets.values, return_index=True, return_inverse=True)
    numbers = np.empty(len(elements), np.int64)
    numbers[np.argsort(first)] = np.arange(len(elements))
    return numbers[inverse], len(elements)


def smallest_prime_from(n: int) -> int:
    """The smallest prime >= n.

    >>> [smallest_prime_from(n) for n in (0, 2, 4, 1001, 32804)]
    [2, 2, 5, 1009, 32831]
    """
    candidate = max(n, 2)
    while any(candidate % d == 0 for d in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


@dataclass(frozen=True)
class Estimate:
    """Estimated similarities of pairs with their standard errors: float64 arrays of shape (n_pairs,)."""

    similarity: NDArray[np.float64]
    standard_error: NDArray[np.float64]


def estimate(
    signatures: NDArray[np.uint32], left: NDArray[np.int64], right: NDArray[np.int64], jobs: int = 1
) -> Estimate:
    """Share of agreeing rows for the pairs (left[i], right[i]) of rows of a (n, K) uint32 matrix.

    The standard error is that of K independent rows, sqrt(s (1 - s) / K); the fast scheme does at least as well. Two empty sets
    agree in every row though their similarity is not defined: callers leave them out.
    """
    agreeing = np.empty(len(left), np.int64)
    run_in_parts(
        len(left),
        jobs,
        lambda part: kernels.agreeing_rows(signatures, left[part], right[part], agreeing[part]),
    )
    rows = signatures.shape[1]
    similarity = agreeing / rows
    return Estimate(similarity, np.sqrt(similarity * (1 - similarity) / rows))
