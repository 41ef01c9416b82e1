"""Groups of documents in a tree of folders -> pairs of folders that hold nearly the same.

A folder is the set of the groups of the documents below it; a group weighs as many bytes as its
representative. Folder A is inside B if B holds at least the share `threshold` of A's bytes. To have
it, B must hold one of A's *prefix*: the rarest groups of A that weigh more than may be lacking, as
in exact_join.py. So only folders above documents of these groups are looked at, from the top
down: a folder that does not hold A has no folder below it that does.

Many folders that share one large document and hold little else are each inside every larger one. So
of a *common* group, which is in very many folders, folders are looked at from the next larger one
on, and only until one holds A: the number of pairs stays in proportion to the number of folders.

No set of a folder is ever made: entries (folder, group) are in the order of the tree, so the
entries below a folder are a run of them, and a sum over a folder's different groups is a sum over
all its entries minus one term where two branches with the same group meet.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import cut_offsets, distinct, offsets_of, ranges
from lshdup.compare.scored_pairs import contains, pack_unordered
from lshdup.kernels.helpers import mix64_array

_I64 = NDArray[np.int64]


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
        return (upper <= lower) & (lower < self.ends[upper])

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

    def sum_below(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of the values of each folder and all below it; uint64 values wrap."""
        sums = np.zeros(len(values) + 1, values.dtype)
        np.cumsum(values, out=sums[1:])
        return sums[self.ends] - sums[:-1]


#: Entries of folders that are looked at together; and pairs of folders.
_AT_ONCE, _PAIRS_AT_ONCE = 1 << 22, 1 << 18

#: A group that is directly in more folders than this is *common*.
COMMON = 100


@dataclass(frozen=True)
class FolderPairs:
    """Pairs of folders, `inside` with the fewer bytes; by shared bytes, similarity, containment
    descending.

    inside, holder : int64 arrays of shape (n,), folders.
    similarity, containment : float64 arrays of shape (n,), by bytes.
    inside_documents, holder_documents : int64 arrays of shape (n,), documents below each.
    shared_documents : int64 array of shape (n,), documents of `inside` whose group is in `holder`.
    shared_bytes : int64 array of shape (n,), bytes of the groups in both.
    common : number of common groups by which more pairs could have been found.
    """

    inside: _I64
    holder: _I64
    similarity: NDArray[np.float64]
    containment: NDArray[np.float64]
    inside_documents: _I64
    holder_documents: _I64
    shared_documents: _I64
    shared_bytes: _I64
    common: int

    def __len__(self) -> int:
        return len(self.inside)


class Contents:
    """What is below each folder: entries (folder, group), without repeats, in this order.

    total : int64 array of shape (m,), bytes of the different groups below each folder.
    sets : int64 array of shape (m,), the number of the set of each folder; equal sets have one.
    is_first : bool array of shape (m,), whether no folder before it has the same set, but for
        folders above it.
    """

    def __init__(self, tree: FolderTree, folders: _I64, groups: _I64, weights: _I64) -> None:
        self.tree, m = tree, len(tree.parents)
        keys, self._counts = distinct(folders * len(weights) + groups)
        folder, group = keys // max(len(weights), 1), keys % max(len(weights), 1)
        self._documents = tree.sum_below(np.bincount(folder, self._counts, m).astype(np.int64))
        weight = weights[group]
        order = np.argsort(group, kind="stable")
        again = np.flatnonzero(group[order][1:] == group[order][:-1])
        before, after = order[again], order[again + 1]
        meeting = tree.meet(folder[before], folder[after])

        def sum_of(at: _I64, values: _I64) -> _I64:
            return np.bincount(at, values, m).astype(np.int64)

        self.total = tree.sum_below(sum_of(folder, weight) - sum_of(meeting, weight[after]))
        prints = np.zeros(m, np.uint64)
        mixed = np.asarray(mix64_array(group.astype(np.uint64) + 1))  # type: ignore[arg-type]
        np.add.at(prints, folder, mixed)
        np.subtract.at(prints, meeting, mixed[after])
        self.sets, self._earlier = _find_equal(tree, tree.sum_below(prints), self.total)
        self.is_first = self._earlier < 0

        # From here on the entries of groups that are in several folders: others are never shared.
        several = np.zeros(len(keys), bool)
        several[before] = several[after] = True
        number = np.cumsum(several) - 1
        self._previous = np.full(len(keys), -1, np.int64)
        self._previous[after] = number[before]
        self._previous = self._previous[several]
        self._folder, self._weight = folder[several], weight[several]
        self._counts = self._counts[several]
        _, self._group = np.unique(group[several], return_inverse=True)
        self._starts = np.searchsorted(self._folder, np.arange(m + 1))
        self._places = np.argsort(self._group, kind="stable")
        self._lists = offsets_of(np.bincount(self._group))
        first, last = self._places[self._lists[:-1]], self._places[self._lists[1:] - 1]
        whole = tree.meet(self._folder[first], self._folder[last])
        # Bytes below each folder that are outside it as well.
        self._elsewhere = tree.sum_below(
            sum_of(self._folder, self._weight)
            - sum_of(meeting, weight[after])
            - sum_of(whole, self._weight[first])
        )
        self._span = first, last
        # Of each group, the folders that it is directly in, by their bytes; copies come last.
        self._ranks = np.empty(m, np.int64)
        self._ranks[np.lexsort((self.total, ~self.is_first))] = np.arange(m)
        self._by_size_keys = self._group * m + self._ranks[self._folder]
        order = np.argsort(self._by_size_keys)
        self._by_size, self._by_size_keys = self._folder[order], self._by_size_keys[order]
        self._sorted = self._group[self._places] * len(self._group) + self._places
        self._is_cut = np.zeros(len(self._lists) - 1, bool)  # groups with pairs not looked for

    def equal_pairs(self) -> tuple[_I64, _I64, _I64]:
        """Return each folder whose set one before it has: (that one, folder, bytes)."""
        folder = np.flatnonzero(~self.is_first & (self.total > 0))
        return self._earlier[folder], folder, self.total[folder]

    def candidates(
        self, threshold: float, has_holder: NDArray[np.bool_]
    ) -> Iterator[tuple[_I64, _I64]]:
        """Yield folders, and folders with a group of their prefix: upper folders come first.

        Of common groups come one folder, two, four, …, until the folder has a holder.

        has_holder : bool array of shape (m,), which folders have one by now.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            possible = (self._elsewhere / self.total >= threshold) & (self.total > 0)
        possible &= self.is_first
        folders = np.flatnonzero(possible)
        folders = folders[np.argsort(self.tree.depths[folders], kind="stable")]
        levels = np.flatnonzero(np.diff(self.tree.depths[folders])) + 1
        for level in np.split(folders, levels):
            sizes = self._starts[self.tree.ends[level]] - self._starts[level]
            for some in cut_offsets(offsets_of(sizes), _AT_ONCE):
                yield from self._holders_of_prefix(level[some], threshold, has_holder)

    def _holders_of_prefix(
        self, folders: _I64, threshold: float, has_holder: NDArray[np.bool_]
    ) -> Iterator[tuple[_I64, _I64]]:
        row, entry = self._entries(folders, once=True)
        group, at = self._group[entry], folders[row]
        first, last = (span[group] for span in self._span)
        outside = (first < self._starts[at]) | (last >= self._starts[self.tree.ends[at]])
        row, entry, group = row[outside], entry[outside], group[outside]
        rarity = self._lists[group + 1] - self._lists[group]
        order = np.lexsort((group, rarity, row))
        row, entry, group = row[order], entry[order], group[order]
        sums = offsets_of(self._weight[entry])
        before = sums[:-1] - sums[np.searchsorted(row, row)]
        spare = self._elsewhere[folders] - threshold * self.total[folders]
        prefix = before <= spare[row] + 1  # a byte too many, because of rounding
        inside, group = folders[row[prefix]], group[prefix]
        lengths = self._lists[group + 1] - self._lists[group]
        rare = lengths <= COMMON
        yield from self._places_of(inside[rare], group[rare], 0, COMMON)
        done, step, open_ = 0, 1, ~rare
        while open_.any():
            is_stopped = has_holder[inside]
            self._is_cut[group[open_ & is_stopped]] = True
            open_ &= ~is_stopped
            yield from self._places_of(inside[open_], group[open_], done, step)
            done, step = done + step, 2 * step
            open_ &= lengths > done

    def _places_of(
        self, inside: _I64, group: _I64, done: int, most: int
    ) -> Iterator[tuple[_I64, _I64]]:
        """Yield folders `inside` with folders that their `group` is directly in: with at most so
        many behind the first `done` ones, from the next larger folder on.
        """
        m = len(self.tree.parents)
        begins, lengths = self._lists[group], self._lists[group + 1] - self._lists[group]
        sizes = np.minimum(lengths - done, most)
        # All of a folder come together, those of some folders at a time.
        starts = np.flatnonzero(np.diff(inside, prepend=-1, append=-1))
        for some in cut_offsets(offsets_of(sizes)[starts], _PAIRS_AT_ONCE):
            part = slice(starts[some.start], starts[some.stop])
            row = np.repeat(np.arange(part.start, part.stop), sizes[part])
            a, begin = inside[row], begins[row]
            own = group[row] * m + self._ranks[a]
            larger = np.searchsorted(self._by_size_keys, own, side="right") - begin
            turn = larger + ranges(np.full(part.stop - part.start, done), sizes[part])
            place = self._by_size[begin + turn % lengths[row]]
            apart = ~self.tree.holds(a, place) & ~self.tree.holds(place, a)
            keys = distinct(a[apart] * m + place[apart])[0]
            if len(keys):
                yield keys // m, keys % m

    def _entries(self, folders: _I64, *, once: bool) -> tuple[_I64, _I64]:
        """Return (row of `folders`, entry): all entries below, or of each group the first."""
        starts = self._starts[folders]
        sizes = self._starts[self.tree.ends[folders]] - starts
        row, entry = np.repeat(np.arange(len(folders)), sizes), ranges(starts, sizes)
        if not once:
            return row, entry
        first = self._previous[entry] < starts[row]
        return row[first], entry[first]

    def _is_below(self, group: _I64, folder: _I64) -> NDArray[np.bool_]:
        """Return whether a group has an entry below a folder: bool array."""
        base, none = group * len(self._group), np.iinfo(np.int64).max
        at = np.searchsorted(self._sorted, base + self._starts[folder])
        found = np.append(self._sorted, none)[at] < base + self._starts[self.tree.ends[folder]]
        return np.asarray(found)

    def shared(self, inside: _I64, holder: _I64) -> _I64:
        """Return the bytes of the groups below both folders: int64 array."""
        return self._sum_shared(inside, holder, self._weight, once=True)

    def _sum_shared(self, inside: _I64, holder: _I64, values: _I64, *, once: bool) -> _I64:
        """Return the sums over entries below `inside` (`_entries`) of groups below `holder`."""
        out = np.zeros(len(inside), np.int64)
        sizes = self._starts[self.tree.ends[inside]] - self._starts[inside]
        for some in cut_offsets(offsets_of(sizes), _AT_ONCE):
            row, entry = self._entries(inside[some], once=once)
            both = self._is_below(self._group[entry], holder[some][row])
            out[some] = np.bincount(row[both], values[entry[both]], some.stop - some.start)
        return out

    def describe(self, inside: _I64, holder: _I64, shared: _I64) -> FolderPairs:
        """Return the pairs with all that is known of them, in output order."""
        a, b = self.total[inside], self.total[holder]
        similarity, containment = shared / (a + b - shared), shared / np.minimum(a, b)
        order = np.lexsort((holder, inside, -containment, -similarity, -shared))
        inside, holder, shared = inside[order], holder[order], shared[order]
        documents = self._sum_shared(inside, holder, self._counts, once=False)
        return FolderPairs(
            inside, holder, similarity[order], containment[order],
            self._documents[inside], self._documents[holder], documents, shared,
            int(self._is_cut.sum()),
        )  # fmt: skip


def _find_equal(tree: FolderTree, prints: NDArray[np.uint64], total: _I64) -> tuple[_I64, _I64]:
    """Return for each folder the number of its set, and the first folder before it that has the
    same set and is not above it, or -1: int64 arrays.
    """
    order = np.lexsort((total, prints))
    is_new = np.ones(len(order), bool)
    is_new[1:] = (np.diff(prints[order]) != 0) | (np.diff(total[order]) != 0)
    number, earlier = np.empty(len(order), np.int64), np.full(len(order), -1, np.int64)
    number[order] = np.cumsum(is_new) - 1
    open_ = np.flatnonzero(~is_new)
    at = np.flatnonzero(is_new)[number[order[open_]]]
    while len(open_):
        upper, folder = order[at], order[open_]
        apart = ~tree.holds(upper, folder)
        earlier[folder[apart]] = upper[apart]
        open_, at = open_[~apart], at[~apart] + 1
        open_, at = open_[at < open_], at[at < open_]
    return number, earlier


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
        self._keys = [np.sort(pack_unordered(inside, holder))]

    def add(self, inside: _I64, holder: _I64, shared: _I64) -> None:
        """Add more pairs."""
        if len(inside):
            self._parts.append((inside, holder, shared))
            self._keys.append(np.sort(pack_unordered(inside, holder)))
            while len(self._keys) > 1 and len(self._keys[-2]) < 2 * len(self._keys[-1]):
                keys = np.concatenate([self._keys.pop(), self._keys.pop()])
                keys.sort()
                self._keys.append(keys)

    def cover(self, a: _I64, b: _I64) -> NDArray[np.bool_]:
        """Return whether a folder above a, or a itself, is paired with b: bool array."""
        covered = np.zeros(len(a), bool)
        open_, at = np.arange(len(a)), a.copy()
        while len(open_):
            pairs = pack_unordered(at, b[open_])
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
        for start in range(0, len(inside), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
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
    inside, holder, shared = (np.concatenate(column) for column in zip(*found, strict=True))
    return inside, holder, shared
