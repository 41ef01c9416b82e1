"""Pairs of documents by the passages that they share.

*Common run.* Two places with the same tokens, one in each of two documents, at least `least`, that
cannot be longer; with a gap a chain of such runs (`passages.finding`). The common runs of a pair
depend on its two documents alone, whatever others have in common with them; but runs of which every
anchor is common, in more than `max_documents` documents, are not found.
"""

import threading

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import GrowingArray, release_pages
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run, run_parts
from lshdup.kernels.sharing import list_runs, measure_pairs
from lshdup.params import PassageParams
from lshdup.passages.anchors import Anchors
from lshdup.passages.finding import AT_ONCE, GROUPS_AT_ONCE, group_anchors, rare_groups

_HALF, _LOW_HALF = np.uint64(32), np.uint64((1 << 32) - 1)


@dataclass(frozen=True)
class CommonRuns:
    """Common runs of documents, in any order.

    pairs : uint64 array of shape (n,), left · 2^32 + right, the documents of each; left < right.
    starts, others : int64 arrays of shape (n,), first token on the left and on the right, by its
        place in all sequences.
    sizes : int64 array of shape (n,), tokens.
    most_common : places of the most common anchor that finds no runs; 0: every one does.
    """

    pairs: NDArray[np.uint64]
    starts: NDArray[np.int64]
    others: NDArray[np.int64]
    sizes: NDArray[np.int64]
    most_common: int

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True)
class SharingPairs:
    """Pairs of documents by the larger share of the two that is in common runs, descending, then by
    left and right.

    pairs : uint64 array of shape (n,), as of `CommonRuns`.
    left_tokens, right_tokens : int64 arrays of shape (n,), tokens of each document in common runs.
    longest : int64 array of shape (n,), tokens of the longest run.
    passages : int64 array of shape (n,), places where runs begin, in the document with fewer.
    sizes : int64 array, tokens of each document.
    most_common : of `CommonRuns`.
    """

    pairs: NDArray[np.uint64]
    left_tokens: NDArray[np.int64]
    right_tokens: NDArray[np.int64]
    longest: NDArray[np.int64]
    passages: NDArray[np.int64]
    sizes: NDArray[np.int64]
    most_common: int

    def __len__(self) -> int:
        return len(self.pairs)

    def shares(self, some: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the shares of the left and the right documents of some pairs."""
        left, right = self.pairs[some] >> _HALF, self.pairs[some] & _LOW_HALF
        return (
            self.left_tokens[some] / self.sizes[left], self.right_tokens[some] / self.sizes[right]
        )  # fmt: skip


def find_common_runs(
    run: Run,
    sequences: RaggedSets,
    anchors: Anchors,
    params: PassageParams,
    *,
    documents: NDArray[np.int64],
    origins: NDArray[np.uint32],
    lefts: int | None = None,
) -> CommonRuns:
    """Find the common runs of any two documents.

    sequences, anchors, documents, origins : as of `find_passages`; documents are below 2^32.
    lefts : only runs with a place in one of the first `lefts` sequences; None: all.

    Memory: 32 bytes a run, of the run.
    Cost: as of `find_passages`.
    """
    grouped = group_anchors(run, sequences, anchors, params, origins)
    rare, largest = rare_groups(grouped), int(grouped.sizes.max(initial=0))
    pairs = GrowingArray(np.uint64, run.arrays)
    others = [GrowingArray(np.int64, run.arrays) for _ in range(3)]
    lock, first = threading.Lock(), len(sequences) if lefts is None else lefts

    def work(part: int, parts: int) -> None:
        groups = np.ascontiguousarray(rare[part::parts])
        holders, out = np.empty(largest, np.int64), np.empty((4, largest + AT_ONCE), np.int64)
        for at in range(0, len(groups), GROUPS_AT_ONCE):
            some, state = groups[at : at + GROUPS_AT_ONCE], np.zeros(2, np.int64)
            while state[0] < len(some):
                columns = out[0].view(np.uint64), *out[1:]
                found = list_runs(grouped, some, documents, first, holders, state, *columns)
                with lock:
                    for column, values in zip([pairs, *others], columns, strict=True):
                        column.append(values[:found])
            release_pages(grouped.tokens)

    run_parts(run.jobs, work)
    most_common = int(grouped.sizes[grouped.is_rare == 0].max(initial=0))
    return CommonRuns(pairs.whole(), *(each.whole() for each in others), most_common)


def find_sharing_pairs(
    run: Run,
    sequences: RaggedSets,
    anchors: Anchors,
    params: PassageParams,
    *,
    documents: NDArray[np.int64],
    origins: NDArray[np.uint32],
    threshold: float = 0.0,
) -> SharingPairs:
    """Find the pairs of documents with common runs, of which one is in them to a share.

    sequences, anchors, documents, origins : as of `find_passages`.
    threshold : the smallest share.

    Determinism: the same at any number of jobs and with any memory.
    Memory: about 100 bytes a common run, of the run.
    """
    runs = find_common_runs(
        run, sequences, anchors, params, documents=documents, origins=origins
    )
    n, arrays = len(runs), run.arrays
    sizes = np.zeros(int(documents.max(initial=0)) + 1, np.int64)
    sizes[documents] = sequences.sizes
    measured = []
    for starts in (runs.starts, runs.others):
        order = arrays.order(n, [runs.pairs.__getitem__, starts.__getitem__])
        pairs, columns = arrays.empty(n, np.uint64), [arrays.empty(n, np.int64) for _ in range(3)]
        found = measure_pairs(order, runs.pairs, starts, runs.sizes, pairs, *columns)
        measured.append([each[:found] for each in (pairs, *columns)])
    (pairs, left, longest, places), (_, right, _, others) = measured
    np.minimum(places, others, out=places)
    every = SharingPairs(pairs, left, right, longest, places, sizes, runs.most_common)
    best = arrays.compute(
        len(every), np.float64, lambda some: np.maximum(*every.shares(some))
    )
    kept = arrays.where(len(every), lambda some: best[some] >= threshold)
    order = arrays.order(
        len(kept),
        [lambda rows: -best[kept[rows]].view(np.int64), lambda rows: pairs[kept[rows]]],
    )
    rows = arrays.take(kept, order)
    taken = (arrays.take(each, rows) for each in (pairs, left, right, longest, places))
    return SharingPairs(*taken, sizes, runs.most_common)
