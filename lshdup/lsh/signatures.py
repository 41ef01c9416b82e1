"""Shingle sets -> signatures, by three schemes; and the estimate of similarity from signatures.

Row j of two signatures agrees with probability J, the Jaccard similarity of the sets (Broder,
"On the resemblance and containment of documents", 1997). The share of agreeing rows therefore
estimates J without bias; only for the scheme `linear` of R1 it is biased.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, permutations

import numpy as np
from numpy.typing import NDArray

from lshdup.base.params import STORED_SCHEMES, SketchParams
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run, run_in_parts
from lshdup.errors import ParameterError
from lshdup.kernels import sketch as kernels

#: Sets that a thread signs together.
_PIECE = 4096


def random_words(seed: int) -> Iterator[int]:
    """Yield random numbers of 64 bits: those of `numpy.random.PCG64`, which takes 7 ms to import.

    O'Neill, "PCG: a family of simple fast space-efficient statistically good algorithms for random
    number generation", 2014; seeded as NumPy does, for seeds below 2^128.
    """
    low_32, low_64, low_128 = ((1 << bits) - 1 for bits in (32, 64, 128))
    factor = 0x43B0D7E5

    def mixed(word: int, growth: int = 0x931E8875) -> int:
        nonlocal factor
        word ^= factor
        factor = factor * growth & low_32
        word = word * factor & low_32
        return word ^ word >> 16

    pool = [mixed(seed >> 32 * i & low_32) for i in range(4)]
    for i, j in permutations(range(4), 2):
        word = 0xCA01F9DD * pool[j] - 0x4973F715 * mixed(pool[i]) & low_32
        pool[j] = word ^ word >> 16
    factor = 0x8B51F9DD
    words = [mixed(pool[i % 4], 0x58F38DED) for i in range(8)]
    start, step = (sum(words[i ^ 2] << 32 * (i - at) for i in range(at, at + 4)) for at in (0, 4))
    step, growth = step << 1 | 1, 0x2360ED051FC65DA44385DF649FCCF645
    state = (start + step) * growth + step
    while True:
        state = (state * growth + step) & low_128
        word, turn = (state >> 64 ^ state) & low_64, state >> 122
        yield (word >> turn | word << (64 - turn)) & low_64


class Sketcher:
    """The scheme `fast` or `classic` with its random constants; safe to share between threads.

    fast : Fast Similarity Sketching (Dahlgaard, Knudsen, Thorup, FOCS 2017), cost about
        n + K log K for a set of n elements.
    classic : K independent permutations (a x + b) mod 2^31 - 1, cost n K.

    Determinism: a signature depends on the seed and the set only.
    """

    def __init__(self, params: SketchParams) -> None:
        if params.scheme not in STORED_SCHEMES:
            message = f"the scheme {params.scheme} has no sketcher of single sets"
            raise ParameterError(message, f"use {' or '.join(STORED_SCHEMES)}")
        self.params = params
        if params.scheme == "classic":
            rng = np.random.Generator(np.random.PCG64(params.seed))
            self._salt = rng.integers(0, 1 << 64, dtype=np.uint64)
            self._first = rng.integers(1, (1 << 31) - 1, params.perms, dtype=np.uint32)
            self._second = rng.integers(0, (1 << 31) - 1, params.perms, dtype=np.uint32)
        else:
            constants = islice(random_words(params.seed), 1 + 4 * params.perms)
            self._salt, *rounds = map(np.uint64, constants)
            self._round_offsets, factors = np.array(rounds).reshape(2, -1)
            self._round_factors = factors | np.uint64(1)

    def sketch(self, sets: RaggedSets) -> NDArray[np.uint32]:
        """Return the signatures: uint32 array of shape (n_sets, K); 2^32 - 1 for empty sets."""
        out = np.empty((len(sets), self.params.perms), np.uint32)
        largest = int(sets.sizes.max(initial=0))
        if self.params.scheme == "classic":
            mixed = np.empty(largest, np.uint32)
            kernels.classic_sketch(
                sets.values, sets.offsets, self._salt, self._first, self._second, mixed, out
            )
        else:
            keys, room = np.empty(self.params.perms, np.uint64), np.empty(largest, np.uint64)
            kernels.fast_sketch(
                sets.values, sets.offsets, self._salt, self._round_offsets, self._round_factors,
                keys, room, out,
            )  # fmt: skip
        return out


#: Makes a sketcher once: its constants take longer than a signature.
_sketcher_of = lru_cache(8)(Sketcher)


def make_signatures(run: Run, sets: RaggedSets, params: SketchParams) -> NDArray[np.uint32]:
    """Return the signatures of sets by any scheme: uint32 array of shape (n_sets, K)."""
    if params.scheme == "linear":
        return linear_signatures(sets, params)
    sketcher = _sketcher_of(params)
    signatures: NDArray[np.uint32] = run.arrays.empty((len(sets), params.perms), np.uint32)

    def sketch(part: slice) -> None:
        for start in range(part.start, part.stop, _PIECE):
            stop = min(start + _PIECE, part.stop)
            piece = RaggedSets(sets.values, sets.offsets[start : stop + 1])
            signatures[start:stop] = sketcher.sketch(piece)

    run_in_parts(len(sets), run.jobs, sketch)
    return signatures


def linear_signatures(sets: RaggedSets, params: SketchParams) -> NDArray[np.uint32]:
    """Return signatures by R1's permutations x -> (a x + b) mod p of element numbers x.

    Elements are numbered 0 … n - 1 in order of first appearance in the collection, the new
    elements of a set by value; p is the smallest prime >= n. All a are distinct and all b are
    distinct, drawn from [0, p). The consecutive numbers bias the estimates, which this scheme
    exists to show. A new document changes every signature.

    Returns a uint32 array of shape (n_sets, K). Raises ParameterError if K > p. Cost: K n for the
    permutations, and K for each element of a set.
    """
    elements, first, inverse = np.unique(sets.values, return_index=True, return_inverse=True)
    n = len(elements)
    number_of = np.empty(n, np.int64)
    number_of[np.argsort(first)] = np.arange(n)
    numbers, p = number_of[inverse], smallest_prime_from(n)
    if params.perms > p:
        message = (
            f"the linear scheme needs {params.perms} different coefficients below the prime {p}"
        )
        raise ParameterError(message, "use fewer --perms, or another --scheme")
    rng = np.random.Generator(np.random.PCG64(params.seed))
    a = rng.choice(p, params.perms, replace=False).astype(np.int64)
    b = rng.choice(p, params.perms, replace=False).astype(np.int64)
    out = np.empty((len(sets), params.perms), np.uint32)
    at_once = max(1, (1 << 22) // max(n, 1))
    for start in range(0, params.perms, at_once):
        rows = slice(start, start + at_once)
        permutations = (np.outer(a[rows], np.arange(n)) + b[rows, None]) % p
        part = np.empty((len(sets), len(permutations)), np.uint32)
        kernels.permuted_minima(numbers, sets.offsets, permutations.astype(np.uint32), part)
        out[:, rows] = part
    return out


def smallest_prime_from(n: int) -> int:
    """Return the smallest prime >= n.

    >>> [smallest_prime_from(n) for n in (0, 2, 4, 1001, 32804)]
    [2, 2, 5, 1009, 32831]
    """
    candidate = max(n, 2)
    while any(candidate % d == 0 for d in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


def estimate(
    run: Run, signatures: NDArray[np.uint32], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the share s of agreeing rows of the pairs (left[i], right[i]) of signatures.

    Its standard error is that of K independent rows, sqrt(s (1 - s) / K); the scheme `fast` has at
    most that. Empty sets must not be among the pairs: they agree in every row.

    signatures : uint32 array of shape (n, K).
    left, right : int64 arrays of shape (n_pairs,).
    """
    agreeing = np.empty(len(left), np.int64)
    run_in_parts(
        len(left),
        run.jobs,
        lambda part: kernels.agreeing_rows(signatures, left[part], right[part], agreeing[part]),
    )
    shares: NDArray[np.float64] = agreeing / signatures.shape[1]
    return shares


def chances_off(exact: NDArray[np.float64], perms: int, epsilon: float) -> NDArray[np.float64]:
    """Return the chance that the estimate of each similarity differs from it by more than epsilon.

    exact : float64 array of shape (n,). The signatures have `perms` independent rows.
    """
    chances = np.empty(len(exact))
    kernels.chances_off(exact, perms, epsilon, chances)
    return chances
