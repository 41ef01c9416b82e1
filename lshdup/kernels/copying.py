"""Runs of values, one after the other. Called by ragged.py."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.jit import kernel

I64 = NDArray[np.int64]


@kernel
def copy_runs(values: NDArray[Any], starts: I64, sizes: I64, out: NDArray[Any]) -> None:
    """Copy values[starts[0]:starts[0] + sizes[0]] to `out`, then those of the next run, and so on."""
    at = np.uint64(0)
    for i in range(len(starts)):
        start = np.uint64(starts[i])
        size = np.uint64(sizes[i])
        for j in range(size):
            out[at + j] = values[start + j]
        at += size
