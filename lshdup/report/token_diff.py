"""Two rows of tokens -> what is alike, removed, added and moved. Called by comparison.py.

Passages that stand once in each text hold the two together, the heaviest chain of them in the same order; between them the longest common
subsequence is found where the gap is small. So any two texts are compared in about the time it takes to sort them, and a word more or less
is still found to the word.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import differences as kernels

ALIKE, REMOVED, ADDED, MOVED_AWAY, MOVED_HERE = (
    "alike",
    "removed",
    "added",
    "moved away",
    "moved here",
)

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

#: Gaps of at most so many comparisons are aligned at once; of at most so many, if no passage holds them together.
_SMALL, _LARGE = 1 << 12, 1 << 20

#: A gap is cut into smaller ones so many times at most; texts that need more are made for it.
_DEPTH = 32

_FACTOR = np.uint64(0xD6E8FEB86659FD93)


class Change(NamedTuple):
    """A run of tokens: what became of it, and where it is in each text, from start to end (equal where it is not in that text)."""

    kind: str
    a_start: int
    a_end: int
    b_start: int
    b_end: int

    @property
    def tokens(self) -> int:
        return max(self.a_end - self.a_start, self.b_end - self.b_start)


class _Block(NamedTuple):
    """`size` tokens alike, from `a` on in one text and from `b` on in the other."""

    a: int
    b: int
    size: int


@dataclass(frozen=True)
class _Gap:
    a: int
    a_end: int
    b: int
    b_end: int
    depth: int = 0


def find_changes(a: U64, b: U64, passage: int = 3, moved: int = 8) -> list[Change]:
    """What one must do to a to get b: runs in the order of both texts, all tokens in one of them; what is removed before what is added.

    a, b : uint64 arrays, equal where tokens are. passage : tokens in a passage that holds the texts together. moved : so many tokens in a
    row that are removed here and added there have moved. Determinism: the texts make the answer. Cost: n log n; the time of two texts of
    10 MB is a few seconds at worst.

    >>> numbers = np.array([1, 2, 3, 4], np.uint64)
    >>> [tuple(change) for change in find_changes(numbers, numbers[[0, 1, 3]])]
    [('alike', 0, 2, 0, 2), ('removed', 2, 3, 2, 2), ('alike', 3, 4, 2, 3)]
    """
    blocks = _without_crumbs(_joined(_blocks(a, b, passage)), len(a), len(b), moved)
    away, here = _moved(a, b, blocks, moved)
    changes: list[Change] = []
    at_a = at_b = 0
    for block in [*blocks, _Block(len(a), len(b), 0)]:
        for start, end, was_moved in _runs(away, at_a, block.a):
            changes.append(Change(MOVED_AWAY if was_moved else REMOVED, start, end, at_b, at_b))
        for start, end, was_moved in _runs(here, at_b, block.b):
            changes.append(Change(MOVED_HERE if was_moved else ADDED, block.a, block.a, start, end))
        at_a, at_b = block.a + block.size, block.b + block.size
        if block.size:
            changes.append(Change(ALIKE, block.a, at_a, block.b, at_b))
    return changes


def _blocks(a: U64, b: U64, passage: int) -> Iterator[_Block]:
    """Runs that are alike, in order."""
    ready: list[_Block | _Gap] = [_Gap(0, len(a), 0, len(b))]
    while ready:
        gap = ready.pop()
        if isinstance(gap, _Block):
            yield gap
            continue
        left, right = a[gap.a : gap.a_end], b[gap.b : gap.b_end]
        before = _common(left, right)
        after = _common(left[before:][::-1], right[before:][::-1])
        if before:
            yield _Block(gap.a, gap.b, before)
        if after:
            ready.append(_Block(gap.a_end - after, gap.b_end - after, after))
        gap = replace(
            gap,
            a=gap.a + before,
            a_end=gap.a_end - after,
            b=gap.b + before,
            b_end=gap.b_end - after,
        )
        if gap.a < gap.a_end and gap.b < gap.b_end:
            ready += reversed(_inside(a, b, gap, passage))


def _inside(a: U64, b: U64, gap: _Gap, passage: int) -> list[_Block | _Gap]:
    """Blocks and smaller gaps of a gap that neither begins nor ends alike, in order."""
    left, right = a[gap.a : gap.a_end], b[gap.b : gap.b_end]
    steps = len(left) * len(right)
    if steps > _SMALL and gap.depth < _DEPTH:
        anchors = _anchors(left, right, passage)
        if not anchors and steps > _LARGE:
            anchors = _anchors(left, right, 1)
        if anchors:
            return _between(anchors, gap)
    if steps > _LARGE:
        return []
    matches = np.empty(2 * min(len(left), len(right)), np.int64)
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    found = kernels.align(
        left, right, np.empty(steps, np.uint8), np.empty(len(right) + 1, np.int32), matches
    )
    pairs = matches[: 2 * found].reshape(-1, 2).tolist()
    return list(_joined(_Block(gap.a + i, gap.b + j, 1) for i, j in pairs))


def _between(anchors: list[_Block], gap: _Gap) -> list[_Block | _Gap]:
    parts: list[_Block | _Gap] = []
    at_a, at_b = gap.a, gap.b
    for anchor in anchors:
        block_a, block_b = gap.a + anchor.a, gap.b + anchor.b
        late = max(at_a - block_a, at_b - block_b, 0)  # passages overlap
        if late >= anchor.size:
            continue
        block = _Block(block_a + late, block_b + late, anchor.size - late)
        parts += [_Gap(at_a, block.a, at_b, block.b, gap.depth + 1), block]
        at_a, at_b = block.a + block.size, block.b + block.size
    return [*parts, _Gap(at_a, gap.a_end, at_b, gap.b_end, gap.depth + 1)]


def _anchors(a: U64, b: U64, size: int) -> list[_Block]:
    """Passages of `size` tokens and more that stand once in a and once in b: the heaviest chain of them that is in order in both."""
    values_a, at_a = _once(windows(a, size))
    values_b, at_b = _once(windows(b, size))
    _, in_a, in_b = np.intersect1d(values_a, values_b, assume_unique=True, return_indices=True)
    if not len(in_a):
        return []
    at_a, at_b = at_a[in_a], at_b[in_b]
    order = np.argsort(at_a)
    at_a, at_b = at_a[order], at_b[order]
    first = np.flatnonzero(np.concatenate([[True], (np.diff(at_a) != 1) | (np.diff(at_b) != 1)]))
    sizes = np.diff(first, append=len(at_a)) + size - 1
    at_a, at_b = at_a[first], at_b[first]
    n = len(first)
    rank = np.empty(n, np.int64)
    rank[np.argsort(at_b)] = np.arange(n)
    chain = np.empty(n, np.int64)
    best, last, before = (np.empty(n + 1, np.int64) for _ in range(3))
    found = kernels.heaviest_chain(rank, sizes, best, last, before, chain)
    chain = chain[n - found :]
    return [
        _Block(*each)
        for each in zip(
            at_a[chain].tolist(), at_b[chain].tolist(), sizes[chain].tolist(), strict=True
        )
    ]


def windows(tokens: U64, size: int) -> U64:
    """uint64 array of shape (max(0, tokens - size + 1),): equal where `size` tokens in a row are (but for a chance of 2^-64 a pair)."""
    n = max(0, len(tokens) - size + 1)
    out = tokens[:n].copy()
    for j in range(1, size if n else 0):
        out *= _FACTOR
        out += tokens[j : j + n]
    return out


def _once(values: U64) -> tuple[U64, I64]:
    """The values that are there once, ascending, and where."""
    distinct, first, counts = np.unique(values, return_index=True, return_counts=True)
    return distinct[counts == 1], first[counts == 1]


def _common(left: U64, right: U64) -> int:
    """How many tokens both begin with."""
    n = min(len(left), len(right))
    size = 64
    start = 0
    while start < n:  # most differ soon: do not look at all
        end = min(start + size, n)
        different = np.flatnonzero(left[start:end] != right[start:end])
        if len(different):
            return start + int(different[0])
        start, size = end, 4 * size
    return n


def _joined(blocks: Iterator[_Block]) -> Iterator[_Block]:
    """The same blocks, those that touch as one."""
    last = None
    for block in blocks:
        if last is not None and (last.a + last.size, last.b + last.size) == (block.a, block.b):
            last = _Block(last.a, last.b, last.size + block.size)
        else:
            if last is not None:
                yield last
            last = block
    if last is not None:
        yield last


def _without_crumbs(blocks: Iterator[_Block], n: int, m: int, most: int) -> list[_Block]:
    """Without blocks of fewer than `most` tokens and short beside the changes on both sides: words that any two texts have in common."""
    kept: list[_Block] = []
    waiting = list(blocks)
    for i, block in enumerate(waiting):
        end_a, end_b = (kept[-1].a + kept[-1].size, kept[-1].b + kept[-1].size) if kept else (0, 0)
        next_a, next_b = (waiting[i + 1].a, waiting[i + 1].b) if i + 1 < len(waiting) else (n, m)
        before = max(block.a - end_a, block.b - end_b)
        after = max(next_a - block.a, next_b - block.b) - block.size
        if block.size >= most or 2 * block.size > min(before, after):
            kept.append(block)
    return kept


def _moved(
    a: U64, b: U64, blocks: list[_Block], size: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which tokens of a, and which of b, are in passages of `size` tokens that are removed from one place and added at another."""
    changed_a, changed_b = np.ones(len(a), bool), np.ones(len(b), bool)
    for block in blocks:
        changed_a[block.a : block.a + block.size] = False
        changed_b[block.b : block.b + block.size] = False
    values_a, at_a = _changed_windows(a, changed_a, size)
    values_b, at_b = _changed_windows(b, changed_b, size)
    return _covered(at_a[np.isin(values_a, values_b)], size, len(a)), _covered(
        at_b[np.isin(values_b, values_a)], size, len(b)
    )


def _changed_windows(tokens: U64, changed: NDArray[np.bool_], size: int) -> tuple[U64, I64]:
    """Passages of tokens that are all changed, and where they begin."""
    values = windows(tokens, size)
    before = np.concatenate([[0], np.cumsum(changed)])
    at = (
        np.flatnonzero(before[size:] - before[:-size] == size)
        if len(values)
        else np.zeros(0, np.int64)
    )
    return values[at], at


def _covered(starts: I64, size: int, n: int) -> NDArray[np.bool_]:
    """Which of n tokens are in one of the passages that begin at `starts`."""
    edges = np.zeros(n + 1, np.int64)
    edges[starts] += 1
    edges[starts + size] -= 1
    return np.cumsum(edges[:n]) > 0


def _runs(flags: NDArray[np.bool_], start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Runs of equal flags from start to end."""
    if start == end:
        return
    turns = np.flatnonzero(flags[start + 1 : end] != flags[start : end - 1]) + start + 1
    edges = [start, *turns.tolist(), end]
    for i in range(len(edges) - 1):
        yield edges[i], edges[i + 1], bool(flags[edges[i]])
