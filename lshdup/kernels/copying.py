"""Copies of runs of values. Reference: RaggedSets, in tests/compare/test_similarity.py."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.helpers import I64
from lshdup.kernels.jit import kernel

T = TypeVar("T", np.uint8, np.uint64)


@kernel
def copy_runs(values: NDArray[T], starts: I64, sizes: I64, out: NDArray[T]) -> None:
    """Copy the runs values[starts[i]:starts[i] + sizes[i]] to `out`, one after the other."""
    at = np.uint64(0)
    for i in range(len(starts)):
        start = np.uint64(starts[i])
        size = np.uint64(sizes[i])
        for j in range(size):
            out[at + j] = values[start + j]
        at += size
