"""Samples of shingle sets: the elements whose hash is below a limit.

Reference in the tests: `sample_of` of tests/reference.py.
"""

import numpy as np

from lshdup.kernels.helpers import I64, U64, mix64
from lshdup.kernels.jit import kernel


@kernel
def select_below(
    values: U64, offsets: I64, salt: np.uint64, limit: np.uint64, out: U64, sizes: I64
) -> int:
    """Write the elements x of each set with mix64(x ^ salt) < limit to `out`, set after set.

    out : as long as the sets together.
    sizes : the number of such elements of each set.

    Returns the number of elements written.
    """
    n = np.uint64(0)
    for s in range(len(sizes)):
        before = n
        for i in range(np.uint64(offsets[s]), np.uint64(offsets[s + 1])):
            out[n] = values[i]
            n += np.uint64(mix64(values[i] ^ salt) < limit)
        sizes[s] = n - before
    return np.int64(n)
