"""Samples of shingle sets: the elements whose hash is below a limit (FracMinHash).

The sample at a larger rate is part of that at a smaller rate. What is promised for samples is in
sample_plan.py.
"""

import numpy as np

from lshdup.base.arrays import IN_MEMORY, Arrays
from lshdup.base.ragged import RaggedSets, offsets_of
from lshdup.kernels import sets as kernels

#: Makes the hash another one than those of signatures with the same seed.
_STREAM = 18


def sample_sets(sets: RaggedSets, rate: int, seed: int, arrays: Arrays = IN_MEMORY) -> RaggedSets:
    """Return the sample of each set: its elements x with hash(x) < 2^64 / rate, in their order.

    rate : one element in so many is kept. seed : of the hash. arrays : makes the result.

    Determinism: whether an element is kept depends on it, the rate and the seed only.

    >>> sets = RaggedSets.from_sets([range(1000), range(500)])
    >>> half, tenth = sample_sets(sets, 2, seed=1), sample_sets(sets, 10, seed=1)
    >>> set(tenth[1]) < set(tenth[0]) < set(half[0]), bool(set(half[1]) <= set(half[0]))
    (True, True)
    """
    if rate == 1:
        return sets
    salt = np.random.Generator(np.random.PCG64([seed, _STREAM])).integers(
        0, 1 << 64, dtype=np.uint64
    )
    out, sizes = arrays.empty(len(sets.values), np.uint64), arrays.empty(len(sets), np.int64)
    n = kernels.select_below(
        sets.values, sets.offsets, salt, np.uint64((1 << 64) // rate), out, sizes
    )
    return RaggedSets(arrays.copy(out[:n]), offsets_of(sizes, arrays))
