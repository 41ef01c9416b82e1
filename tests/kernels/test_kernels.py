"""Kernels: what they take, and what is refused. Machine code is in test_native.py."""

import numpy as np
import pytest

from lshdup.kernels.bands import DIGEST_BYTES
from lshdup.kernels.clusters import NONE, have_leaders
from lshdup.kernels.helpers import inlined, mix64, mix64_array
from lshdup.kernels.jit import kernel
from lshdup.kernels.sets import block_end
from lshdup.kernels.sketch import agreeing_rows, chances_off
from tests import reference
from tests.conftest import require


def test_kernels_take_contiguous_arrays_only():
    rows = np.zeros((4, 8), np.uint32)
    with pytest.raises(TypeError, match="contiguous"):
        agreeing_rows(rows[:, ::2], np.array([0]), np.array([1]), np.zeros(1, np.int64))


def test_kernels_take_what_they_declare():
    """A call of other types would have no compiled form in the pack."""
    pairs, out = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for rows in (np.zeros((2, 4), np.int32), np.zeros(4, np.uint32), 1, 1.0):
        with pytest.raises(TypeError, match=r"agreeing_rows takes .*uint32\[2\].*, not "):
            agreeing_rows(rows, pairs, pairs, out)
    with pytest.raises(TypeError, match="agreeing_rows takes"):
        agreeing_rows(np.zeros((2, 4), np.uint32), pairs, pairs)


def test_an_int_is_a_float_too():
    exact, out = np.array([0.5, 0.9]), np.zeros((2, 2))
    for row, epsilon in zip(out, (1, 1.0), strict=True):
        chances_off(exact, 16, epsilon, row)
    assert np.array_equal(*out)


def test_what_is_no_kernel_is_refused():
    errors = require("kernels", "numba.core.errors")

    def allocates(n: int):
        return len(np.zeros(n))

    def returns_a_pair(n: int):
        return n, n

    for function, error in ((allocates, errors.NumbaError), (returns_a_pair, RuntimeError)):
        with pytest.raises(error):
            kernel(function)(3)
    # Now that kernels were compiled: `show --shingles --bag` failed in the first run on a machine.
    words = np.arange(5, dtype=np.uint64)
    assert mix64_array(words).tolist() == [reference.mix64(word) for word in range(5)]


def test_who_has_leaders_against_the_obvious():
    """A leader in a bucket of the position, of another origin, whose size allows the similarity,
    and whose digest has two bytes of it."""
    rng = np.random.default_rng(5)
    found = []
    for turn in range(50):
        n, bands, cells = 30, 3, 8
        sizes = rng.integers(1, 20, n)
        begins = np.arange(0, bands * cells, cells, dtype=np.uint32)
        bucket = rng.integers(0, cells, (n, bands)).astype(np.uint32) + begins
        bucket[rng.random((n, bands)) < 0.3] = NONE
        leaders = np.flatnonzero(rng.random(n) < 0.4)
        heads, following = np.full(bands * cells, NONE), np.full((n, bands), NONE)
        for band in range(bands):
            for leader in leaders[::-1]:
                if (cell := bucket[leader, band]) != NONE:
                    following[leader, band], heads[cell] = heads[cell], leader
        origins, others = rng.integers(0, 3, n), np.full((n, bands), NONE)
        for leader, band in np.argwhere(following != NONE)[::-1].tolist():
            other = following[leader, band]
            is_same = origins[other] == origins[leader]
            others[leader, band] = others[other, band] if is_same else other
        digests = rng.integers(0, 2, (n, DIGEST_BYTES)).astype(np.uint8)
        positions, out = np.flatnonzero(rng.random(n) < 0.8), np.full(n, 7, np.uint8)
        have_leaders(
            positions.astype(np.uint32), origins[: n * (turn % 2)].astype(np.uint32), sizes, 0.7,
            bucket, digests, 96, heads.astype(np.uint32), following.astype(np.uint32),
            others.astype(np.uint32), out[: len(positions)],
        )  # fmt: skip
        small, large = np.minimum.outer(sizes, sizes), np.maximum.outer(sizes, sizes)
        near = ((bucket[:, None] == bucket) & (bucket != NONE)).any(2) & (small >= 0.7 * large)
        near &= (digests[:, None] == digests).sum(2) >= 96
        near &= (origins[:, None] != origins) | (turn % 2 == 0)
        expected = near[np.ix_(positions, leaders)].any(1).tolist()
        assert out[: len(positions)].tolist() == expected
        found += expected
    assert 0.2 < np.mean(found) < 0.8


def test_helpers_are_python_too():
    """Outside of kernels a helper is a Python function, before and after a compilation."""
    assert int(mix64(np.uint64(0))) == 0
    assert inlined(lambda x: x + 1)(1) == 2


def test_a_block_ends_where_a_cluster_begins():
    """Or where one that is too large has reached its size."""
    left, right = np.array([0, 0, 3, 3], np.uint32), np.array([1, 2, 4, 5], np.uint32)

    def end(start, room, most):
        return block_end(left, right, start, np.full(6, 10), room, most, np.zeros(6, np.uint8))

    assert [end(0, room, 99) for room in (60, 55, 45, 35)] == [4, 2, 2, 2]
    assert [end(0, 25, most) for most in (29, 30)] == [1, 2]
    assert end(2, 5, 5) == 3
