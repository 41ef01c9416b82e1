"""Pairs of documents by the passages that they share, and the documents that cover a text.

*Common run.* Two places with the same tokens, one in each of two documents, at least `least`, that
cannot be longer; with a gap a chain of such runs (`passages.finding`). The common runs of a pair
depend on its two documents alone, not on what others share with them; but runs of which every
anchor is common, in more than `max_documents` documents, are not found.
"""

import threading
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import GrowingArray, release_pages
from lshdup.base.params import PassageParams
from lshdup.base.ragged import distinct, ranges
from lshdup.base.run import Run, run_parts
from lshdup.compare.scored_pairs import unpack_pairs
from lshdup.kernels.sharing import CommonRuns, list_runs, measure_pairs
from lshdup.passages.anchors import Texts
from lshdup.passages.finding import AT_ONCE, GROUPS_AT_ONCE, group_anchors, rare_groups


@dataclass(frozen=True)
class SharingPairs:
    """Pairs of documents by the larger share of the two that is in common runs, descending, then by
    left and right.

    sizes : int64 array, tokens of each document.
    most_common : of `find_common_runs`.
    pairs : uint64 array of shape (n,), as of `CommonRuns`.
    left_tokens, right_tokens : int64 arrays of shape (n,), tokens of each document in common runs.
    longest : int64 array of shape (n,), tokens of the longest run.
    passages : int64 array of shape (n,), places where runs begin, in the document with fewer.
    """

    sizes: NDArray[np.int64]
    most_common: int
    pairs: NDArray[np.uint64]
    left_tokens: NDArray[np.int64]
    right_tokens: NDArray[np.int64]
    longest: NDArray[np.int64]
    passages: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.pairs)

    def shares(self, some: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the shares of the left and of the right documents of some pairs."""
        left, right = (self.sizes[each] for each in unpack_pairs(self.pairs[some]))
        return self.left_tokens[some] / left, self.right_tokens[some] / right


def find_common_runs(
    run: Run, texts: Texts, params: PassageParams, *, with_first: bool = False
) -> tuple[CommonRuns, int]:
    """Find the common runs of any two documents.

    Returns them, and how often the most common gram stands of which an anchor finds no run; 0: all
    anchors find runs.

    with_first : only runs with a place in the first sequence. An anchor is common then if its gram
        stands there at more than twice as many anchors as `max_documents`, wherever else it stands.

    Memory: 32 bytes a run, of the run. Cost: as of `find_passages`.
    """
    grouped, lefts = group_anchors(run, texts, params), len(texts.sequences)
    if with_first:
        mine = np.append(grouped.positions[grouped.members] < texts.sequences.offsets[1], False)
        is_rare = np.add.reduceat(mine, grouped.starts, dtype=np.int64) <= 2 * params.max_documents
        grouped, lefts = grouped._replace(is_rare=is_rare.view(np.uint8)), 1
    rare, largest, lock = rare_groups(grouped), int(grouped.sizes.max()), threading.Lock()
    kept = [GrowingArray(each, run.arrays) for each in (np.uint64, *[np.int64] * 3)]

    def work(part: int, parts: int) -> None:
        groups, holders = np.ascontiguousarray(rare[part::parts]), np.empty(largest, np.int64)
        columns = np.empty((4, largest + AT_ONCE), np.int64)
        out = CommonRuns(columns[0].view(np.uint64), *columns[1:])
        for at in range(0, len(groups), GROUPS_AT_ONCE):
            some, state = groups[at : at + GROUPS_AT_ONCE], np.zeros(2, np.int64)
            while state[0] < len(some):
                found = list_runs(grouped, some, texts.documents, lefts, holders, state, out)
                with lock:
                    for column, values in zip(kept, out, strict=True):
                        column.append(values[:found])
            release_pages(grouped.tokens)

    run_parts(run.jobs, work)
    most_common = int(grouped.sizes[grouped.is_rare == 0].max(initial=0))
    return CommonRuns(*(each.whole() for each in kept)), most_common


def find_sharing_pairs(
    run: Run, texts: Texts, params: PassageParams, *, threshold: float = 0.0
) -> SharingPairs:
    """Find the pairs of documents with common runs that make so large a share of one of the two.

    threshold : the smallest share.

    Determinism: the same at any number of jobs and with any memory.
    Memory: about 130 bytes a common run, of the run.
    """
    runs, most_common = find_common_runs(run, texts, params)
    n, arrays, measured = len(runs.pairs), run.arrays, []
    for starts in (runs.starts, runs.others):
        order = arrays.order(n, [runs.pairs.__getitem__, starts.__getitem__])
        out = [arrays.empty(n, each) for each in (np.uint64, *[np.int64] * 3)]
        found = measure_pairs(order, runs.pairs, starts, runs.sizes, *out)
        measured.append([each[:found] for each in out])
    (pairs, left, longest, places), (_, right, _, others) = measured
    np.minimum(places, others, out=places)
    sizes = np.zeros(int(texts.documents.max(initial=0)) + 1, np.int64)
    sizes[texts.documents] = texts.sequences.sizes
    every = SharingPairs(sizes, most_common, pairs, left, right, longest, places)
    best = arrays.compute(len(pairs), np.float64, lambda some: np.maximum(*every.shares(some)))
    kept = arrays.where(len(pairs), lambda some: best[some] >= threshold)
    keys = [lambda rows: -best[kept[rows]].view(np.int64), lambda rows: pairs[kept[rows]]]
    rows = arrays.take(kept, arrays.order(len(kept), keys))
    columns = (pairs, left, right, longest, places)
    return SharingPairs(sizes, most_common, *(arrays.take(each, rows) for each in columns))


def find_cover(
    run: Run, texts: Texts, params: PassageParams
) -> tuple[list[tuple[int, int, int]], int]:
    """Find the documents that together cover the first text: each has the most tokens that none
    before it has, as long as these are `params.least`; of equal ones it is the first.

    Returns the number of each, how many tokens are new, and how many it has in common with the
    text; tokens of the text, each counted once. And the second result of `find_common_runs`.

    texts : the first one is document 0.
    """
    runs, most_common = find_common_runs(run, texts, params, with_first=True)
    size = int(texts.sequences.offsets[1])
    order = np.lexsort((runs.starts, runs.pairs))
    holders, starts, sizes = runs.pairs[order], runs.starts[order], runs.sizes[order]
    cuts = np.flatnonzero(np.diff(holders, prepend=0, append=0)).tolist()
    # The new tokens of a document only become fewer: an earlier number bounds them.
    waiting = [(-size, int(holders[a]), a, b) for a, b in pairwise(cuts)]
    is_new, cover = np.ones(size, bool), []
    while waiting:
        _, document, a, b = heappop(waiting)
        tokens = distinct(ranges(starts[a:b], sizes[a:b]))[0]
        new = int(is_new[tokens].sum())
        if waiting and (-new, document) > waiting[0][:2]:
            heappush(waiting, (-new, document, a, b))
        elif new >= params.least:
            cover.append((document, new, len(tokens)))
            is_new[tokens] = False
    return cover, most_common
