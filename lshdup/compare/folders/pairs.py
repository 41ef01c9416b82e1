"""Groups of documents in a tree of folders -> pairs of folders that hold nearly the same.

A folder is the set of the groups of the documents below it; a group weighs as many bytes as its
representative. Folder A is inside B if B holds at least the share `threshold` of A's bytes. To have
it, B must hold one of A's *prefix*: the rarest groups of A that weigh more than may be lacking, as
in prefix_index.py. So only folders above documents of these groups are looked at, from the top
down: a folder that does not hold A has no folder below it that does.

Many folders that share one large document and hold little else are each inside every larger one. So
of a *common* group, which is in very many folders, folders are looked at from the next larger one
on, and only until one holds A: the number of pairs stays in proportion to the number of folders.
"""

import numpy as np
from numpy.typing import NDArray

from lshdup.compare.folders.contents import Contents, FolderPairs
from lshdup.compare.folders.tree import FolderTree
from lshdup.compare.scored_pairs import contains

_I64 = NDArray[np.int64]

#: Pairs of folders that are looked at together.
_AT_ONCE = 1 << 18


def find_folder_pairs(
    tree: FolderTree, folders: _I64, groups: _I64, weights: _I64, threshold: float
) -> FolderPairs:
    """Return the pairs of folders of which one is inside the other, as far as they say something.

    Never paired: a folder and one above it. A pair counts if the holder is the *tightest*: no
    folder below it holds the other one as well and is more similar to it. Of the pairs that count,
    those are returned that are below no other one (a pair is below another one if each of its
    folders is below, or is, one of the two). Of folders with equal sets the first one is compared,
    and each other one is paired with the first (of those not above it): n copies make n - 1 pairs.
    Folders that share nothing but groups that are directly in more than COMMON folders: one holder
    for each, the next larger one or, failing that, another, unless it has one by a rarer group.

    Parameters
    ----------
    tree : all folders.
    folders : int64 array of shape (n,), folder that each document is directly in.
    groups : int64 array of shape (n,), group of each document.
    weights : int64 array, bytes of each group; less than 2^53 in all.
    threshold : smallest containment, above 0.

    Cost: a few sorts of the documents; then for each folder that others might hold, a step for each
    document of its prefix, and for each document of it and folder that is compared with it.

    """
    contents = Contents(tree, folders, groups, weights)
    known = _Matches(tree, *contents.equal_pairs())
    has_holder = np.zeros(len(tree.parents), bool)
    for candidates in contents.candidates(threshold, has_holder):
        inside, holder, shared = _tight(contents, candidates, known, threshold)
        known.add(inside, holder, shared)
        has_holder[inside[contents.is_first[holder]]] = True
    inside, holder, shared = known.listed(contents)
    return contents.describe(inside, holder, shared)


class _Matches:
    """Pairs of folders that count, each once: (inside, holder, bytes)."""

    def __init__(self, tree: FolderTree, inside: _I64, holder: _I64, shared: _I64) -> None:
        self._tree, self._parts = tree, [(inside, holder, shared)]
        # Ascending keys, each array at least twice as long as the next one: few are sorted again.
        self._keys = [np.sort(self._pack(inside, holder))]

    def _pack(self, a: _I64, b: _I64) -> NDArray[np.uint64]:
        keys = np.minimum(a, b) * len(self._tree.parents) + np.maximum(a, b)
        packed: NDArray[np.uint64] = keys.astype(np.uint64)
        return packed

    def add(self, inside: _I64, holder: _I64, shared: _I64) -> None:
        """Add more pairs."""
        if len(inside):
            self._parts.append((inside, holder, shared))
            self._keys.append(np.sort(self._pack(inside, holder)))
            while len(self._keys) > 1 and len(self._keys[-2]) < 2 * len(self._keys[-1]):
                keys = np.concatenate([self._keys.pop(), self._keys.pop()])
                keys.sort()
                self._keys.append(keys)

    def cover(self, a: _I64, b: _I64) -> NDArray[np.bool_]:
        """Return whether a folder above a, or a itself, is paired with b: bool array."""
        covered = np.zeros(len(a), bool)
        open_, at = np.arange(len(a)), a.copy()
        while len(open_):
            pairs = self._pack(at, b[open_])
            met = np.any([contains(keys, pairs) for keys in self._keys], axis=0)
            covered[open_[met]] = True
            at = self._tree.parents[at]
            going = ~met & (at >= 0)
            going[going] = ~self._tree.holds(at[going], b[open_[going]])
            open_, at = open_[going], at[going]
        return covered

    def listed(self, contents: Contents) -> tuple[_I64, _I64, _I64]:
        """Return the pairs that are below no other one; of equal sets only the first as holder."""
        columns = zip(*self._parts, strict=True)
        inside, holder, shared = (np.concatenate(column) for column in columns)
        own = contents.is_first[holder] | (contents.sets[holder] == contents.sets[inside])
        inside, holder, shared = inside[own], holder[own], shared[own]
        hidden = np.zeros(len(inside), bool)
        for start in range(0, len(inside), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            hidden[part] = self._hide(inside[part], holder[part])
        return inside[~hidden], holder[~hidden], shared[~hidden]

    def _hide(self, inside: _I64, holder: _I64) -> NDArray[np.bool_]:
        """Return which pairs are below another one: bool array."""
        hidden = np.zeros(len(inside), bool)
        open_, upper = np.arange(len(inside)), holder.copy()
        while len(open_):  # the holder and the folders above it, as far as they are apart
            is_itself = upper == holder[open_]
            start = np.where(is_itself, self._tree.parents[inside[open_]], inside[open_])
            good = start >= 0
            good[good] = ~self._tree.holds(start[good], upper[good])
            hidden[open_[good]] |= self.cover(start[good], upper[good])
            upper = self._tree.parents[upper]
            going = ~hidden[open_] & (upper >= 0)
            going[going] = ~self._tree.holds(upper[going], inside[open_[going]])
            open_, upper = open_[going], upper[going]
        return hidden


def _tight(
    contents: Contents, candidates: tuple[_I64, _I64], known: _Matches, threshold: float
) -> tuple[_I64, _I64, _I64]:
    """Return the pairs that count among folders and the folders above their candidates.

    candidates : (inside, place): folders, and a place that a holder must be above, or be.
    """
    tree, total = contents.tree, contents.total
    inside, place = candidates
    depth = tree.depths[tree.meet(inside, place)] + 1
    parent = np.full(len(inside), -1, np.int64)  # the row of the pair above, in the step before
    steps: list[tuple[_I64, _I64, _I64, _I64]] = []
    while len(inside):
        holder = tree.climb(place, depth)
        keys = inside * len(tree.parents) + holder
        order = np.argsort(keys, kind="stable")
        is_first = np.diff(keys[order], prepend=-1) != 0
        row = np.empty(len(keys), np.int64)
        row[order] = np.cumsum(is_first) - 1
        a, b, above = (each[order[is_first]] for each in (inside, holder, parent))
        good = total[b] / total[a] >= threshold
        if not steps:
            good[good] = ~known.cover(a[good], b[good])
        shared = np.zeros(len(a), np.int64)
        shared[good] = contents.shared(a[good], b[good])
        good &= shared / total[a] >= threshold
        steps.append((a[good], b[good], shared[good], above[good]))
        number = np.where(good, np.cumsum(good) - 1, -1)[row]
        going = (number >= 0) & (holder != place)
        inside, place, depth = inside[going], place[going], depth[going] + 1
        parent = number[going]
    best_below = [np.zeros(len(step[0])) for step in steps]
    found = []
    for at in reversed(range(len(steps))):
        a, b, shared, above = steps[at]
        similarity = shared / (total[a] + total[b] - shared)
        counts = (total[a] < total[b]) | ((total[a] == total[b]) & (a < b))
        counts &= (similarity >= best_below[at]) & (contents.sets[a] != contents.sets[b])
        found.append((a[counts], b[counts], shared[counts]))
        if at:
            np.maximum.at(best_below[at - 1], above, np.maximum(similarity, best_below[at]))
    if not found:
        none = np.zeros(0, np.int64)
        return none, none, none
    inside, holder, shared = (np.concatenate(column) for column in zip(*found, strict=True))
    return inside, holder, shared
