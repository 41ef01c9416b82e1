"""A tree of folders as arrays."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass

_I64 = NDArray[np.int64]
T = TypeVar("T", np.int64, np.uint64)


@dataclass(frozen=True)
class FolderTree:
    """m folders, each before those below it.

    parents : int64 array of shape (m,); -1 for the first, which holds all others.
    ends : int64 array of shape (m,); below folder i are the folders i + 1 … ends[i] - 1.
    depths : int64 array of shape (m,), of the first 0.
    """

    parents: _I64
    ends: _I64
    depths: _I64

    @classmethod
    def of(cls, parents: _I64) -> "FolderTree":
        """Return the tree of folders, each behind its parent, in the order of a walk."""
        above = parents.tolist()
        depths, ends = [0] * len(above), list(range(1, len(above) + 1))
        for folder in range(1, len(above)):
            depths[folder] = depths[above[folder]] + 1
        for folder in range(len(above) - 1, 0, -1):
            ends[above[folder]] = max(ends[above[folder]], ends[folder])
        return cls(parents, np.array(ends, np.int64), np.array(depths, np.int64))

    def has_branches(self) -> bool:
        """Return whether there are two folders of which neither is above the other."""
        return int((self.ends == np.arange(1, len(self.ends) + 1)).sum()) > 1

    def holds(self, upper: _I64, lower: _I64) -> NDArray[np.bool_]:
        """Return whether `upper` is a folder above `lower`, or the same: bool array."""
        is_above: NDArray[np.bool_] = (upper <= lower) & (lower < self.ends[upper])
        return is_above

    def meet(self, a: _I64, b: _I64) -> _I64:
        """Return the deepest folder that holds both: int64 array."""
        a, b = a.copy(), b.copy()
        open_ = np.flatnonzero(a != b)
        while len(open_):
            later = a[open_] > b[open_]  # cannot be above the other one
            first, second = open_[later], open_[~later]
            a[first], b[second] = self.parents[a[first]], self.parents[b[second]]
            open_ = open_[a[open_] != b[open_]]
        return a

    def climb(self, folders: _I64, depths: _I64) -> _I64:
        """Return the folder of this depth above each folder, or the same: int64 array."""
        folders = folders.copy()
        open_ = np.flatnonzero(self.depths[folders] > depths)
        while len(open_):
            folders[open_] = self.parents[folders[open_]]
            open_ = open_[self.depths[folders[open_]] > depths[open_]]
        return folders

    def sum_below(self, values: NDArray[T]) -> NDArray[T]:
        """Return the sum of the values of each folder and all below it; uint64 values wrap."""
        sums: NDArray[Any] = np.zeros(len(values) + 1, values.dtype)
        np.cumsum(values, out=sums[1:])
        below: NDArray[T] = sums[self.ends] - sums[:-1]
        return below
