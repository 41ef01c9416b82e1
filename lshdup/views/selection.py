"""What a page holds: numbers of all pairs and groups, and lists that end where the page would be
too large.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.run import Run
from lshdup.compare import clusters
from lshdup.compare.expand_duplicates import ExpandedPairs
from lshdup.compare.scored_pairs import Columns, Pairs, gather_pairs

#: What a page lists if no number is requested: so many documents and pairs, and bytes of each list.
_MOST, _GROUP_BYTES, _PAIR_BYTES = 100_000, 4_500_000, 2_000_000

#: About the bytes of a document besides its name, of a move, of a pair, and of a similarity.
_DOCUMENT, _MOVE, _PAIR, _VALUE = 30, 16, 14, 22

#: Members of a group that are compared with the kept document: the first number that is not more
#: than there is room for, for all groups together.
_SHARES = (1_000_000, 300, 100, 30, 10, 5)


@dataclass(frozen=True)
class Steps:
    """Numbers of all results at each of some ascending thresholds.

    pairs : number of pairs of all documents.
    rows : number of lines that list them: pairs of representatives, and one line for the exact
        duplicates of a document.
    groups, members : number of groups, and of the documents in them.
    """

    threshold: Sequence[float]
    pairs: list[int]
    rows: list[int]
    groups: list[int]
    members: list[int]


@dataclass(frozen=True)
class Moves:
    """The group of each document at each step, as changes from one step to the next.

    Before its first move a document represents itself. int64 arrays of equal length, by document
    and step, and float64 similarities to the representative.
    """

    document: NDArray[np.int64]
    step: NDArray[np.int64]
    representative: NDArray[np.int64]
    similarity: NDArray[np.float64]


@dataclass(frozen=True)
class Selection:
    """The part of the results that a page lists. Documents are representatives of copies.

    steps : numbers of all results, whether they are listed or not.
    grouped : int64 array, ascending: the documents whose groups are listed, at every step.
    moves : of these documents.
    pairs : the most similar pairs.
    document_count, pair_count : number of all documents in pairs, and of all pairs of different
        documents.
    grouped_count : number of documents whose groups are listed, with all exact duplicates.
    changed_roles : for each step the documents that are kept from this step on and were dropped
        before, or the other way round; ascending int64 arrays. Before the first step all are kept.
        These are all documents, whether their groups are listed or not.
    """

    steps: Steps
    grouped: NDArray[np.int64]
    moves: Moves
    pairs: Pairs
    document_count: int
    pair_count: int
    grouped_count: int
    changed_roles: list[NDArray[np.int64]]

    @property
    def kinds(self) -> NDArray[np.int64]:
        """The documents that are named: those of groups first."""
        paired = np.concatenate([self.pairs.left, self.pairs.right]).astype(np.int64)
        return np.concatenate([self.grouped, np.setdiff1d(paired, self.grouped)])

    def describe_omitted(self) -> str:
        """Return what the page counts but does not list; "" if it lists all."""
        parts = [
            f"{listed:,} of {total:,} {what}"
            for listed, total, what in (
                (self.grouped_count, self.document_count, "documents in groups"),
                (len(self.pairs), self.pair_count, "pairs of different documents"),
            )
            if listed < total
        ]
        if not parts:
            return ""
        return (
            f"the page counts all pairs and groups, and lists {' and '.join(parts)}; "
            f"--most {max(self.document_count, self.pair_count)} lists all"
        )

    def list_groups(self, most: int) -> list[tuple[int, list[int]]]:
        """Return kept documents and other members at the first threshold, the largest groups first.

        most : if there are more members, only the most similar members of large groups are listed.
        """
        first = self.moves.step == 0
        kept, members = self.moves.representative[first], self.moves.document[first]
        order = np.lexsort((-self.moves.similarity[first], kept))
        kept, members = kept[order], members[order]
        starts = np.flatnonzero(np.diff(kept, prepend=-1))
        sizes = np.diff(starts, append=len(kept))
        share = next((n for n in _SHARES if np.minimum(sizes, n).sum() <= most), _SHARES[-1])
        largest = np.argsort(-sizes, kind="stable")
        return [
            (int(kept[at]), members[at : at + min(size, share)].tolist())
            for at, size in zip(starts[largest].tolist(), sizes[largest].tolist(), strict=True)
        ]


def select(
    run: Run,
    pairs: Pairs,
    expanded: ExpandedPairs,
    duplicate_of: NDArray[np.int64],
    preference: NDArray[np.int64],
    name_sizes: NDArray[np.int64],
    thresholds: Sequence[float],
    most: int = 0,
    lost: NDArray[np.int64] | Sequence[int] = (),
) -> Selection:
    """Count all results at each threshold, and select what is listed.

    Documents that a chain of pairs connects are listed together or not at all: so the groups that
    are listed are true at each threshold. Groups come by size, as far as there is room.

    pairs : of representatives, from the first threshold on.
    expanded : the pairs of all documents.
    duplicate_of : int64 array of shape (n,), the representative of each document.
    preference : int64 array of shape (n,), all documents, the most preferred first.
    name_sizes : int64 array of shape (n,), bytes of each name.
    most : documents in groups, and pairs, that are listed; 0 means what fits into a page of 8 MB.
    lost : documents that changed or vanished: none is dropped, nor any for the sake of one.
    """
    n = len(duplicate_of)
    copies = np.bincount(duplicate_of, minlength=n)
    known = np.union1d(
        np.flatnonzero(copies > 1), np.concatenate([pairs.left, pairs.right]).astype(np.int64)
    )
    ranked = clusters.rank_documents(run, known, duplicate_of, preference)
    best = clusters.choose_representatives(run, duplicate_of, preference)
    moves: list[tuple[NDArray[Any], ...]] = []
    counts = []
    before, changed_roles = np.arange(n), []
    members = np.flatnonzero(np.isin(duplicate_of, known))
    is_kept, is_lost = np.ones(len(members), bool), np.zeros(n, bool)
    is_lost[list(lost)] = True
    for step, found in enumerate(clusters.cluster_steps(run, pairs, ranked, n, thresholds)):
        counts.append(found.count_groups(copies))
        own = found.representative
        moved = known[own[known] != before[known]]
        before[moved] = own[moved]
        moves.append((moved, np.full(len(moved), step), own[moved], found.similarity[moved]))
        kept = best[own[duplicate_of[members]]]
        stays = (kept == members) | is_lost[members] | is_lost[kept]
        changed_roles.append(members[stays != is_kept])
        is_kept = stays
    columns = [np.concatenate(column) for column in zip(*moves, strict=True)]
    cost = np.bincount(duplicate_of, name_sizes + _DOCUMENT, n)
    whole = clusters.cluster_pairs(run, pairs, ranked, n, thresholds[0], "single").representative
    group_cost = cost + _MOVE * np.bincount(columns[0], minlength=n)
    listed = np.zeros(n, bool)
    listed[known] = _fit(whole[known], copies[known], group_cost[known], most)
    order = np.lexsort((columns[1], columns[0]))
    order = order[listed[columns[0][order]]]
    several = int((copies > 1).sum())
    steps = Steps(
        thresholds,
        expanded.totals(np.array(thresholds)),
        [len(pairs.at_least(threshold)) + several for threshold in thresholds],
        *map(list, zip(*counts, strict=True)),
    )
    return Selection(
        steps,
        np.flatnonzero(listed),
        Moves(*(column[order] for column in columns)),
        _first_pairs(pairs, np.where(listed, 0, cost), most),
        int(copies[known].sum()),
        len(pairs),
        int(copies[listed].sum()),
        changed_roles,
    )


def select_pairs(
    run: Run,
    expanded: ExpandedPairs,
    name_sizes: NDArray[np.int64],
    thresholds: Sequence[float],
    most: int = 0,
) -> Selection:
    """Count the pairs at each threshold, and select the first ones, as `lshdup pairs` lists them.

    name_sizes, thresholds, most : of `select`. Cost: one pass over all pairs.
    """
    counts, first, room = np.zeros(len(thresholds) + 1, np.int64), list[Columns](), most or _MOST
    for left, right, scores in expanded.pieces():
        steps = np.searchsorted(thresholds, scores.real, side="right")
        counts += np.bincount(steps, minlength=len(counts))
        first.append((left[:room], right[:room], scores[:room]))
        room -= len(first[-1][0])
    totals, empty = np.cumsum(counts[:0:-1])[::-1].tolist(), np.zeros(0, np.int64)
    steps_of = Steps(thresholds, totals, totals, *([[0] * len(totals)] * 2))
    moves = Moves(empty, empty, empty, np.zeros(0))
    costs = name_sizes.astype(np.float64) + _DOCUMENT
    pairs = _first_pairs(gather_pairs(run, first), costs, most)
    return Selection(steps_of, empty, moves, pairs, 0, len(expanded), 0, [])


def _fit(
    whole: NDArray[np.int64], copies: NDArray[np.int64], cost: NDArray[Any], most: int
) -> NDArray[np.bool_]:
    """Return which documents are listed: the largest wholes first, and each that still fits.

    whole : int64 array, equal for documents that are listed together.
    copies, cost : arrays of its shape, number of exact duplicates, and bytes in the page.
    """
    if not len(whole):
        return np.zeros(0, bool)
    sizes, costs = np.bincount(whole, copies), np.bincount(whole, cost)
    room, room_bytes = (most, np.inf) if most else (_MOST, _GROUP_BYTES)
    fits = np.zeros(len(sizes), bool)
    present = np.flatnonzero(sizes)
    for each in present[np.argsort(-sizes[present], kind="stable")].tolist():
        if sizes[each] <= room and costs[each] <= room_bytes:
            room, room_bytes = room - sizes[each], room_bytes - costs[each]
            fits[each] = True
    return fits[whole]


def _first_pairs(pairs: Pairs, cost: NDArray[np.float64], most: int) -> Pairs:
    """Return the most similar pairs.

    cost : float64 array of shape (n,), bytes of each document in the page.
    """
    if most:
        end = min(most, len(pairs))
    else:
        start = Pairs(pairs.values, pairs.offsets, pairs.keys[:_MOST])
        documents, first = np.unique(np.stack([start.left, start.right], 1), return_index=True)
        bytes_of = np.bincount(first // 2, cost[documents], len(start.keys)) + _PAIR
        bytes_of[pairs.offsets[:-1][pairs.offsets[:-1] < len(start.keys)]] += _VALUE
        end = int(np.searchsorted(np.cumsum(bytes_of), _PAIR_BYTES, side="right"))
    values = int(np.searchsorted(pairs.offsets, end))
    return Pairs(
        pairs.values[:values], np.minimum(pairs.offsets[: values + 1], end), pairs.keys[:end]
    )
