"""Differences between two sequences of tokens: runs that are alike, removed, added or moved.

Anchors are passages that stand once in each text; the heaviest chain of anchors in the same order
holds the texts together. Between anchors, small gaps are aligned by their longest common
subsequence. So any two texts are compared in about the time of sorting them, and a single changed
word is still found. Tokens are words or characters, lines, or pieces of lines.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import offsets_of, ranges
from lshdup.compare.scored_pairs import contains
from lshdup.kernels import differences as kernels

ALIKE, REMOVED, ADDED = "alike", "removed", "added"
MOVED_AWAY, MOVED_HERE = "moved away", "moved here"

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: A gap of _SMALL comparisons is aligned at once, a gap of _LARGE comparisons if it has no anchor.
_SMALL, _LARGE = 1 << 12, 1 << 20

#: The most times that a gap is cut into smaller ones; only texts written for it need more.
_DEPTH = 32

_FACTOR = np.uint64(0xD6E8FEB86659FD93)


class Change(NamedTuple):
    """A run of tokens of one kind of change, from start to end in each text.

    In a text that does not have the run, start and end are equal.
    """

    kind: str
    a_start: int
    a_end: int
    b_start: int
    b_end: int

    @property
    def tokens(self) -> int:
        return max(self.a_end - self.a_start, self.b_end - self.b_start)


class _Gap(NamedTuple):
    """Tokens from a to a_end in one text, and from b to b_end in the other, beside each other."""

    a: int
    a_end: int
    b: int
    b_end: int
    depth: int = 0


class _Block(NamedTuple):
    """Tokens that are alike: `size` tokens from `a` on in one text and from `b` on in the other."""

    a: int
    b: int
    size: int


def find_changes(
    a: U64, b: U64, passage: int, moved: int, *, least: int | None = None
) -> list[Change]:
    """Return how to get b from a: runs in the order of both texts, removed before added ones.

    a, b : uint64 arrays, equal where tokens are.
    passage : tokens of an anchor.
    moved : the fewest tokens in a row that have moved if they are removed here and added there, at
        least 2.
    least : the fewest tokens in a row that are alike wherever they stand; default: `moved`. Shorter
        runs between long changes are taken for coincidences.
    Cost: n log n; a few seconds at worst for two texts of 10 MB.

    >>> numbers = np.array([1, 2, 3, 4], np.uint64)
    >>> [tuple(change) for change in find_changes(numbers, numbers[[0, 1, 3]], 3, 8)]
    [('alike', 0, 2, 0, 2), ('removed', 2, 3, 2, 2), ('alike', 3, 4, 2, 3)]
    """
    found = _join(_find_blocks(a, b, _Gap(0, len(a), 0, len(b)), passage))
    end = _Block(len(a), len(b), 0)
    blocks = [*_remove_crumbs(found, end, least or moved), end]
    around = pairwise([_Block(0, 0, 0), *blocks])
    gaps = [_Gap(x.a + x.size, y.a, x.b + x.size, y.b) for x, y in around]
    away, here = _find_moved(a, b, gaps, moved)
    changes: list[Change] = []
    for gap, block in zip(gaps, blocks, strict=True):
        changes += _describe_gap(gap, away, here)
        if block.size:
            ends = block.a + block.size, block.b + block.size
            changes.append(Change(ALIKE, block.a, ends[0], block.b, ends[1]))
    return changes


def _describe_gap(gap: _Gap, away: Flags, here: Flags) -> Iterator[Change]:
    """Yield what is removed or added in a gap; or has moved.

    away, here : bool arrays of shape (n_tokens,), whether a token of a, and of b, has moved.
    """
    for start, end, has_moved in _stretches(away, gap.a, gap.a_end):
        yield Change(MOVED_AWAY if has_moved else REMOVED, start, end, gap.b, gap.b)
    for start, end, has_moved in _stretches(here, gap.b, gap.b_end):
        yield Change(MOVED_HERE if has_moved else ADDED, gap.a_end, gap.a_end, start, end)


def split_hunks(changes: list[Change], context: int) -> Iterator[list[Change] | int]:
    """Yield the hunks of changes with their context, and between them the folded number of tokens.

    context : tokens that stay around a change.
    """
    hunk: list[Change] = []
    for i, change in enumerate(changes):
        before = 0 if i == 0 else context
        after = 0 if i == len(changes) - 1 else context
        size = change.tokens
        # The line about folded words takes as much room as a few words.
        if change.kind != ALIKE or size <= before + after + context:
            hunk.append(change)
            continue
        _, a, a_end, b, b_end = change
        if before:
            hunk.append(Change(ALIKE, a, a + before, b, b + before))
        if hunk:
            yield hunk
        yield size - before - after
        hunk = [Change(ALIKE, a_end - after, a_end, b_end - after, b_end)] if after else []
    if hunk:
        yield hunk


def match_places(values: U64, others: U64, at: I64) -> I64:
    """Return where the values at some places stand in another sequence, which has each of them.

    A value that stands there several times is found beside the value before or behind it, if it is
    there; else where it is nearest to that. So a passage is found as a whole, and of its copies the
    one that is nearest to the passages around it.

    at : ascending int64 array. Returns an int64 array of its shape. Cost: n log n.

    >>> numbers, others = np.array([1, 2, 3], np.uint64), np.array([2, 9, 1, 2, 3], np.uint64)
    >>> match_places(numbers, others, np.arange(3)).tolist()
    [2, 3, 4]
    """
    order = np.argsort(others, kind="stable")
    first, end = (
        np.searchsorted(others, values[at], side, sorter=order).tolist()
        for side in ("left", "right")
    )
    every, rows, wanted, there = (
        order.tolist(), at.tolist(), values[at].tolist(), [*others.tolist(), None]
    )  # fmt: skip
    places = [every[each] for each in first]
    # How far from the passage before, or behind, a passage begins.
    distance = [np.inf] * len(rows)
    for step, visited in ((1, range(1, len(rows))), (-1, range(len(rows) - 2, -1, -1))):
        for i in visited:
            beside = places[i - step] + rows[i] - rows[i - step]
            if rows[i] - rows[i - step] == step and there[beside] == wanted[i]:
                places[i], distance[i] = beside, distance[i - step]
                continue
            above = bisect_left(every, beside, first[i], end[i])
            near = every[max(above - 1, first[i]) : min(above + 1, end[i])]
            nearest = min(near, key=lambda place: abs(place - beside))
            if abs(nearest - beside) < distance[i]:
                places[i], distance[i] = nearest, abs(nearest - beside)
    return np.array(places, np.int64)


def gather_passages(
    passages: list[Change], in_a: Flags, in_b: Flags, context: int
) -> Iterator[list[Change]]:
    """Yield hunks of passages that follow each other in both texts, with the tokens between them
    and around them. These are removed or added; or moved, if they are in another passage.

    passages : runs that are alike, in the order of a.
    in_a, in_b : bool arrays of shape (n_tokens,), whether a token is in any passage.
    context : tokens that stay around a hunk; twice as many stay between passages.
    """
    hunk: list[Change] = []
    for passage, following in zip_longest(passages, passages[1:]):
        _, a, a_end, b, b_end = passage
        before = _Gap(max(0, a - context), a, max(0, b - context), b)
        hunk = hunk or [*_describe_gap(before, in_a, in_b)]
        hunk.append(passage)
        if following is not None:
            gaps = following.a_start - a_end, following.b_start - b_end
            if min(gaps) >= 0 and max(gaps) <= 2 * context:
                between = _Gap(a_end, following.a_start, b_end, following.b_start)
                hunk += _describe_gap(between, in_a, in_b)
                continue
        ends = min(len(in_a), a_end + context), min(len(in_b), b_end + context)
        yield [*hunk, *_describe_gap(_Gap(a_end, ends[0], b_end, ends[1]), in_a, in_b)]
        hunk = []


def _find_blocks(a: U64, b: U64, gap: _Gap, passage: int) -> Iterator[_Block]:
    """Yield the runs of a gap that are alike, in order."""
    left, right = a[gap.a : gap.a_end], b[gap.b : gap.b_end]
    before = count_common(left, right)
    after = count_common(left[before:][::-1], right[before:][::-1])
    if before:
        yield _Block(gap.a, gap.b, before)
    rest = _Gap(gap.a + before, gap.a_end - after, gap.b + before, gap.b_end - after, gap.depth)
    if rest.a < rest.a_end and rest.b < rest.b_end:
        yield from _split_gap(a, b, rest, passage)
    if after:
        yield _Block(gap.a_end - after, gap.b_end - after, after)


def _split_gap(a: U64, b: U64, gap: _Gap, passage: int) -> Iterator[_Block]:
    """Yield the runs that are alike of a gap that neither begins nor ends alike."""
    left, right = a[gap.a : gap.a_end], b[gap.b : gap.b_end]
    steps, anchors = len(left) * len(right), list[_Block]()
    if steps > _SMALL and gap.depth < _DEPTH:
        anchors = _find_anchors(left, right, passage)
        if not anchors and steps > _LARGE:
            anchors = _find_anchors(left, right, 1)
    if anchors:
        at_a, at_b = gap.a, gap.b
        for anchor in [*anchors, _Block(len(left), len(right), 0)]:
            start_a, start_b = gap.a + anchor.a, gap.b + anchor.b
            overlap = max(at_a - start_a, at_b - start_b, 0)  # each stands once on both sides
            block = _Block(start_a + overlap, start_b + overlap, anchor.size - overlap)
            between = _Gap(at_a, block.a, at_b, block.b, gap.depth + 1)
            yield from _find_blocks(a, b, between, passage)
            if block.size:
                yield block
            at_a, at_b = block.a + block.size, block.b + block.size
    elif steps <= _LARGE:
        matches = np.empty(2 * min(len(left), len(right)), np.int64)
        left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
        found = kernels.align(
            left, right, np.empty(steps, np.uint8), np.empty(len(right) + 1, np.int32), matches
        )
        for i, j in matches[: 2 * found].reshape(-1, 2).tolist():
            yield _Block(gap.a + i, gap.b + j, 1)


def _find_anchors(a: U64, b: U64, size: int) -> list[_Block]:
    """Return the heaviest chain of passages that stand once in a and once in b, in order in both.

    size : the fewest tokens of a passage.
    """
    values_a, at_a = _find_unique(windows(a, size))
    values_b, at_b = _find_unique(windows(b, size))
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
    blocks = zip(*(each[chain].tolist() for each in (at_a, at_b, sizes)), strict=True)
    return [_Block(*each) for each in blocks]


def windows(tokens: U64, size: int) -> U64:
    """Return hashes of all runs of `size` tokens, equal where the runs are.

    Returns a uint64 array of shape (max(0, n_tokens - size + 1),). Unequal runs have equal hashes
    with probability 2^-64 a pair.
    """
    n = max(0, len(tokens) - size + 1)
    out = tokens[:n].copy()
    for j in range(1, size if n else 0):
        out *= _FACTOR
        out += tokens[j : j + n]
    return out


def _find_unique(values: U64) -> tuple[U64, I64]:
    """Return the values that occur once, ascending, and their positions."""
    distinct, first, counts = np.unique(values, return_index=True, return_counts=True)
    return distinct[counts == 1], first[counts == 1]


def count_common(left: U64, right: U64) -> int:
    """Return how many tokens both begin with."""
    n = min(len(left), len(right))
    different = np.flatnonzero(left[:n] != right[:n])
    return int(different[0]) if len(different) else n


def _join(blocks: Iterator[_Block]) -> list[_Block]:
    """Return the blocks, with touching blocks joined."""
    joined: list[_Block] = []
    for block in blocks:
        last = joined[-1] if joined else _Block(0, 0, 0)
        if (last.a + last.size, last.b + last.size) == (block.a, block.b):
            joined[-1:] = [_Block(last.a, last.b, last.size + block.size)]
        else:
            joined.append(block)
    return joined


def _remove_crumbs(blocks: list[_Block], end: _Block, most: int) -> list[_Block]:
    """Return the blocks without crumbs: words that any two texts have in common.

    A crumb has fewer than `most` tokens and is short beside the changes on both sides.
    end : where both texts end.
    """
    solid: list[_Block] = []
    for block, following in pairwise([*blocks, end]):
        last = solid[-1] if solid else _Block(0, 0, 0)
        before = max(block.a - last.a, block.b - last.b) - last.size
        after = max(following.a - block.a, following.b - block.b) - block.size
        if block.size >= most or 2 * block.size > min(before, after):
            solid.append(block)
    return solid


def _find_moved(
    a: U64, b: U64, gaps: list[_Gap], size: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which tokens of a, and which of b, have moved.

    They are in a window of `size` tokens that is removed in one place and added in another.
    """
    removed, added = [(gap.a, gap.a_end) for gap in gaps], [(gap.b, gap.b_end) for gap in gaps]
    if any(max(end - start for start, end in side) < size for side in (removed, added)):
        return np.zeros(len(a), bool), np.zeros(len(b), bool)
    (at_a, of_a), (at_b, of_b) = (
        _windows_within(tokens, side, size) for tokens, side in ((a, removed), (b, added))
    )
    away, here = at_a[contains(np.sort(of_b), of_a)], at_b[contains(np.sort(of_a), of_b)]
    return cover(len(a), away, size), cover(len(b), here, size)


def _windows_within(tokens: U64, stretches: list[tuple[int, int]], size: int) -> tuple[I64, U64]:
    """Return the windows of `size` tokens that lie in one stretch: their places and hashes."""
    starts, ends = np.array(stretches, np.int64).T
    sizes = ends - starts
    starts, sizes = starts[sizes >= size], sizes[sizes >= size]
    hashes, counts = windows(tokens[ranges(starts, sizes)], size), sizes - size + 1
    return ranges(starts, counts), hashes[ranges(offsets_of(sizes)[:-1], counts)]


def cover(n: int, starts: I64, size: int | I64) -> NDArray[np.bool_]:
    """Return which of n tokens are in one of the windows that begin there, of size tokens."""
    begun, ended = (np.bincount(each, minlength=n + 1) for each in (starts, starts + size))
    return np.cumsum(begun - ended)[:n] > 0


def _stretches(flags: NDArray[np.bool_], start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yield the stretches of equal flags from start to end: start, end, flag."""
    turns = np.flatnonzero(np.diff(flags[start:end])) + start + 1
    for first, last in pairwise([start, *turns.tolist(), end]):
        if first < last:
            yield first, last, bool(flags[first])
