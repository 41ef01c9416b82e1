"""Passages: sequences of tokens that recur in a collection, and all their places.

*Passage.* A *run* is two places with the same tokens, at least `least`, that cannot be longer: the
tokens before them differ, or a document begins there, and so behind them. The places of a run do
not overlap. A place of a run is *longest* if no place of another run contains it. The sequences of
the longest places are the passages, each with all its places in the collection: from left to
right, those that do not overlap the place before. So every run lies within a place of a passage,
and what recurs as a part of longer passages only is no passage of its own.

*Common sequences.* Comparing all pairs of a million places would take forever, and a list of all
the ways in which they differ would help nobody. An anchor (`passages.anchors`) whose gram stands
in more than `max_documents` documents, or at more than twice as many anchors, is common, and finds
no runs. Instead its gram is extended by a token on its right or else on its left as long as half of
its places, overlapping ones not counted, agree. What it is extended to is a passage, with all its
places, if it has `least` tokens. Runs are found by other anchors, and pass over common ones. One
template with a hundred thousand fillings is one passage, and so is a word that a text repeats a
million times.

*Gaps.* With a gap, places are equal but for some tokens: in the place of runs there are chains, of
runs of at least a gram each, a run at most `gap` tokens behind the one before it in both places.
The passage is what stands at one of its longest places; its other places are those with a chain
from its first token to its last one, so all have as many tokens. A chain is found by a run of nine
tokens or more that is not common.

With origins (of --against, or --across), runs have places of two origins, and so have all passages.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import GrowingArray, release_pages, slices_of
from lshdup.base.params import PassageParams
from lshdup.base.ragged import offsets_of, ranges
from lshdup.base.run import Run, run_parts
from lshdup.kernels.passages import (
    ActivePlaces,
    Grouped,
    compare_in_pairs,
    extend_together,
    list_places,
)
from lshdup.kernels.sets import order_by_key
from lshdup.lsh.candidates import NO_ORIGINS
from lshdup.passages.anchors import Texts

#: Bytes that the sort of one anchor takes, and the most that the sort of a part takes.
_SORT_BYTES, _MOST_TO_SORT = 48, 128 << 20

#: Places, and runs, that a kernel writes at a time; groups, and passages, that it looks at until
#: the pages of tokens that it has seen are let go of.
AT_ONCE, GROUPS_AT_ONCE = 1 << 18, 1 << 7

#: Spreads the keys of the sort: hashes of anchors are small, being the smallest of their windows.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class TokenRuns:
    """Runs of tokens of documents.

    documents, first, sizes : int64 arrays of shape (n,), document, first token, and tokens.
    passages, beginnings : int64 arrays of shape (n,), the passage that each is a place of; or the
        one that it ends as, and the one that it begins as.
    """

    documents: NDArray[np.int64]
    first: NDArray[np.int64]
    sizes: NDArray[np.int64]
    passages: NDArray[np.int64]
    beginnings: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.documents)

    def take(self, rows: slice | NDArray[np.int64]) -> "TokenRuns":
        """Return some of the runs."""
        columns = (self.documents, self.first, self.sizes, self.passages, self.beginnings)
        return TokenRuns(*(column[rows] for column in columns))


@dataclass(frozen=True)
class Passages:
    """Passages and their places, the passages with the largest tokens × (places - 1) first.

    Equals are in the order of their first place; of equal first places the longer is first. The
    places of a passage are in order, and none overlaps another.

    tokens : int64 array of shape (p,), length of each passage.
    starts : int64 array of shape (p + 1,); places of passage i are starts[i] … starts[i + 1] - 1.
    documents : int64 array of shape (m,), document of each place.
    first : int64 array of shape (m,), number of the place's first token in its document, from 0.
    """

    tokens: NDArray[np.int64]
    starts: NDArray[np.int64]
    documents: NDArray[np.int64]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def places(self) -> NDArray[np.int64]:
        """The number of places of each passage: int64 array of shape (p,)."""
        return np.diff(self.starts)

    def runs_at(self, places: NDArray[np.int64]) -> TokenRuns:
        """Return places as runs of tokens. places : int64 array, positions in `documents`."""
        of = np.searchsorted(self.starts, places, side="right") - 1
        return TokenRuns(self.documents[places], self.first[places], self.tokens[of], of, of)

    def count_documents(self) -> NDArray[np.int64]:
        """Return the number of documents with each passage: int64 array of shape (p,)."""
        changes = np.ones(len(self.documents), np.int64)
        changes[1:] = np.diff(self.documents) != 0
        changes[self.starts[:-1]] = 1  # The places of a passage are in order, and it has one.
        return np.add.reduceat(changes, self.starts[:-1]) if len(self) else changes

    def take(self, passages: NDArray[np.int64]) -> "Passages":
        """Return these passages, in this order. passages : int64 array."""
        places = self.places[passages]
        rows = ranges(self.starts[passages], places)
        return Passages(
            self.tokens[passages], offsets_of(places), self.documents[rows], self.first[rows]
        )


#: Start, length and anchor of runs: int64 arrays of equal length.
_Runs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def find_passages(run: Run, texts: Texts, params: PassageParams) -> Passages:
    """Find the passages of texts.

    run : plans the memory for the anchors that recur: to sort them, and 12 bytes for each. Beside
        it, the answer is held.

    Determinism: the same at any number of jobs and with any memory.
    Cost: linear in the tokens and in tokens × places of the passages; rare anchors are compared
    with fewer than 2 × `max_documents` others.
    """
    grouped = group_anchors(run, texts, params)
    rare, common = rare_groups(grouped), np.flatnonzero(grouped.is_rare == 0)
    longest = _longest(_in_parts(run, lambda *part: _compare(grouped, rare, *part)))
    run.progress("passages", 1, 3)
    extended = _joined(_in_parts(run, lambda *part: _extend(grouped, common, *part)))
    release_pages(grouped.tokens)
    run.progress("passages", 2, 3)
    listed = [
        _list_places(grouped, longest, only_rare=True),
        _list_places(grouped._replace(gap=0), extended, only_rare=False),
    ]
    run.progress("passages", 3, 3)
    lengths, counts, places = _concatenate(listed)
    places, offsets = _by_document(run, counts, places, grouped.offsets, texts.documents)
    return _in_order(lengths, counts, places, offsets)


def group_anchors(run: Run, texts: Texts, params: PassageParams) -> Grouped:
    """Group the anchors by their hashes: sort the hashes in parts that fit into memory."""
    sequences, anchors = texts.sequences, texts.anchors
    n = len(anchors)
    bits = 0
    while bits < 12 and (_SORT_BYTES * n) >> bits > min(run.memory, _MOST_TO_SORT):
        bits += 1
    recurring, sizes = GrowingArray(np.int64, run.arrays), GrowingArray(np.int64, run.arrays)
    trailing = np.uint64((1 << bits) - 1)
    parts = run.arrays.compute(n, np.uint16, lambda some: anchors.hashes[some] & trailing)
    for part in range(1 << bits):
        mine = run.arrays.find(parts == part)
        keys = anchors.hashes[mine] * _SPREAD
        hashes, order = np.empty(len(mine), np.uint64), np.empty(len(mine), np.uint32)
        slots = np.empty((1 << max(len(mine) - 1, 0).bit_length()) + 1, np.uint32)
        order_by_key(keys, np.arange(len(mine)), slots, hashes, order)
        cuts = np.flatnonzero(np.diff(hashes)) + 1
        counts = np.diff(cuts, prepend=0, append=len(mine))
        recurs = counts > 1
        recurring.append(mine[order[np.repeat(recurs, counts)]])
        sizes.append(counts[recurs])
        run.progress("anchors sorted", part + 1, 1 << bits)
    members, all_sizes = recurring.whole(), np.append(sizes.whole(), 0)
    group_of = run.arrays.full(n, len(all_sizes) - 1, np.uint32)
    starts = offsets_of(all_sizes)[:-1]
    for some in slices_of(len(members)):
        places = np.arange(some.start, some.stop)
        group_of[members[some]] = np.searchsorted(starts[:-1], places, side="right") - 1
    is_rare = all_sizes <= 2 * params.max_documents
    for group in np.flatnonzero(is_rare & (all_sizes > params.max_documents)).tolist():
        places = anchors.positions[members[starts[group] : starts[group] + all_sizes[group]]]
        holders = np.searchsorted(sequences.offsets, places, side="right")
        is_rare[group] = len(np.unique(holders)) <= params.max_documents
    return Grouped(
        np.ascontiguousarray(sequences.values), np.ascontiguousarray(sequences.offsets),
        anchors.positions, anchors.hashes, members, starts, all_sizes, group_of,
        is_rare.view(np.uint8), anchors.gram, anchors.window, params.least, texts.origins,
        params.gap,
    )  # fmt: skip


def rare_groups(grouped: Grouped) -> NDArray[np.int64]:
    """Return the rare groups, by their first member: int64 array."""
    rare = np.flatnonzero(grouped.is_rare)[:-1]
    # Neighbours are compared with the same texts: in this order few pages are in use.
    return rare[np.argsort(grouped.members[grouped.starts[rare]])]


def _in_parts(run: Run, work: Callable[[int, int], Iterator[_Runs]]) -> list[_Runs]:
    """Return what a work yields for every part of `run.jobs`, on a thread each, in order."""
    made: list[list[_Runs]] = [[] for _ in range(run.jobs)]

    def work_on(part: int, parts: int) -> None:
        made[part] = list(work(part, parts))

    run_parts(run.jobs, work_on)
    return [each for part in made for each in part]


def _compare(grouped: Grouped, rare: NDArray[np.int64], part: int, parts: int) -> Iterator[_Runs]:
    """Yield the runs of every `parts`th of some rare groups."""
    groups = np.ascontiguousarray(rare[part::parts])
    most = int(grouped.sizes[groups].max(initial=0))
    holders = np.empty(most, np.int64)
    left, right = np.empty(most**2, np.int64), np.empty(most**2, np.int64)
    room = max(AT_ONCE, most**2)
    out = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    for start in range(0, len(groups), GROUPS_AT_ONCE):
        some, state = groups[start : start + GROUPS_AT_ONCE], np.zeros(1, np.int64)
        while state[0] < len(some):
            found = compare_in_pairs(grouped, some, holders, left, right, state, *out)
            starts, lengths, anchors = (each[:found] for each in out)
            # Most runs of neighbouring groups lie within others: few are kept.
            yield _longest([(starts, lengths, anchors)])
        release_pages(grouped.tokens)


def _extend(grouped: Grouped, common: NDArray[np.int64], part: int, parts: int) -> Iterator[_Runs]:
    """Yield what every `parts`th common group is extended to."""
    groups = np.ascontiguousarray(common[part::parts])
    largest = int(grouped.sizes[groups].max(initial=0))
    active = ActivePlaces(*(np.empty(largest, np.int64) for _ in range(3)))
    starts, lengths, anchors = (np.empty(len(groups), np.int64) for _ in range(3))
    found = extend_together(grouped, groups, active, starts, lengths, anchors)
    yield starts[:found], lengths[:found], anchors[:found]


def _joined(runs: list[_Runs]) -> _Runs:
    """Return runs as three arrays, by their starts, of equal starts the longest first."""
    starts, lengths, anchors = _concatenate(runs)
    order = np.lexsort((-lengths, starts))
    return starts[order], lengths[order], anchors[order]


def _concatenate(parts: list[_Runs]) -> _Runs:
    none = (np.zeros(0, np.int64),) * 3
    a, b, c = map(np.concatenate, zip(none, *parts, strict=True))
    return a, b, c


def _longest(runs: list[_Runs]) -> _Runs:
    """Return the runs at places that no other run's place contains, once each, in order."""
    starts, lengths, anchors = _joined(runs)
    ends = starts + lengths
    before = np.maximum.accumulate(np.append(-1, ends))[:-1]
    keep = ends > before
    return starts[keep], lengths[keep], anchors[keep]


def _list_places(grouped: Grouped, runs: _Runs, *, only_rare: bool) -> _Runs:
    """Return the length and the number of places of the sequence of each run, and all places."""
    parts = list[_Runs]()
    done, state = np.zeros(len(runs[0]), np.uint8), np.zeros(1, np.int64)
    room = max(AT_ONCE, int(grouped.sizes.max(initial=0)))
    candidates = np.empty(room, np.uint64)
    sizes = GROUPS_AT_ONCE, GROUPS_AT_ONCE, 2 * room
    lengths, counts, places = (np.empty(size, np.int64) for size in sizes)
    while state[0] < len(runs[0]):
        found = list_places(
            grouped, *runs, only_rare, done, state, candidates, lengths, counts, places
        )
        total = int(counts[:found].sum())
        parts.append((lengths[:found].copy(), counts[:found].copy(), places[:total].copy()))
        release_pages(grouped.tokens)
    return _concatenate(parts)


def _by_document(
    run: Run,
    counts: NDArray[np.int64],
    places: NDArray[np.int64],
    offsets: NDArray[np.int64],
    numbers: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return places as if sequences were in the order of their documents, and offsets of these.

    numbers : int64 array, the document of each sequence.
    """
    held = np.searchsorted(offsets, places, side="right") - 1
    n, arrays = len(numbers), run.arrays
    order = arrays.order(n, [numbers.__getitem__])
    sizes = arrays.compute(
        n, np.int64, lambda some: offsets[order[some] + 1] - offsets[order[some]]
    )
    in_order = offsets_of(sizes, arrays)
    moved: NDArray[np.int64] = arrays.empty(n, np.int64)
    for some in slices_of(n):
        moved[order[some]] = in_order[some]
    places = places + moved[held] - offsets[held]
    return places[np.lexsort((places, np.repeat(np.arange(len(counts)), counts)))], in_order


def _in_order(
    lengths: NDArray[np.int64],
    counts: NDArray[np.int64],
    places: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> Passages:
    """Return passages in the order of `Passages`, each once."""
    starts = offsets_of(counts)[:-1]
    order = np.lexsort((-lengths, places[starts], -lengths * (counts - 1)))
    keys = np.stack([places[starts[order]], lengths[order]])
    order = order[np.append(True, (np.diff(keys) != 0).any(axis=0))[: len(order)]]
    places = places[ranges(starts[order], counts[order])]
    documents = np.searchsorted(offsets, places, side="right") - 1
    first = places - offsets[documents]
    return Passages(lengths[order], offsets_of(counts[order]), documents, first)


def find_repeats(
    passages: Passages,
    preference: NDArray[np.int64],
    split: int | None,
    origins: NDArray[np.uint32] = NO_ORIGINS,
) -> TokenRuns:
    """Return the tokens of all places but one of each passage.

    The place that is none is in the most preferred document, the first there. Every token of a
    repeat stands, as part of the same passage, in a place that comes before it in this order.

    Returns runs, ascending, of which no two touch; each with the longest passage that ends where it
    ends, and the longest that begins there.

    preference : int64 array, all documents, the most preferred first.
    split : number of the first document of the other side, which nothing is cut from; all places
        before it are repeats then. None: there is one side.
    origins : of all documents of the one side; a place of the origin of the one that stays is no
        repeat. Empty: every place is.

    >>> passages = Passages(*map(np.array, ([9, 5], [0, 2, 5], [0, 1, 0, 1, 2], [4, 0, 8, 4, 7])))
    >>> runs = find_repeats(passages, np.arange(3), None)
    >>> runs.documents.tolist(), runs.first.tolist(), runs.sizes.tolist(), runs.passages.tolist()
    ([1, 2], [0, 7], [9, 5], [0, 1])
    """
    rows = np.arange(len(passages.documents))
    if split is None:
        rank = np.empty(len(preference), np.int64)
        rank[preference] = np.arange(len(preference))
        number = np.repeat(np.arange(len(passages)), passages.places)
        rows = np.lexsort((passages.first, rank[passages.documents], number))
        stays = np.repeat(rows[passages.starts[:-1]], passages.places - 1)
        rows = rows[ranges(passages.starts[:-1] + 1, passages.places - 1)]
        if len(origins):
            of = origins[passages.documents]
            rows = rows[of[rows] != of[stays]]
    else:
        rows = rows[passages.documents < split]
    runs = passages.runs_at(rows)
    if not len(runs):
        return runs
    runs = runs.take(np.lexsort((-runs.sizes, runs.first, runs.documents)))
    first, last = runs.first, runs.first + runs.sizes
    # On one line, with room between documents, overlapping runs are those that begin too early.
    rank = np.cumsum(np.diff(runs.documents, prepend=0) != 0) * (int(last.max()) + 1)
    reached = np.maximum.accumulate(last + rank)
    begins = np.flatnonzero(np.append(True, (first + rank)[1:] > reached[:-1]))
    ends = reached[np.append(begins[1:], len(runs)) - 1] - rank[begins]
    of = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(runs)))
    at_end = np.flatnonzero(last == ends[of])
    longest = at_end[np.unique(of[at_end], return_index=True)[1]]
    sizes, passage = ends - first[begins], runs.passages[longest]
    # Of runs that begin together, the longest is the first.
    return TokenRuns(runs.documents[begins], first[begins], sizes, passage, runs.passages[begins])
