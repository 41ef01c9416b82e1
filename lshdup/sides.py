"""Pairs between two sides, new documents and those they are held against: the main path once more, across. Called by against.py.

Documents of the first side are numbered from 0, those of the other after them, so that pairs are what they are elsewhere. Each side has
kinds of its own (documents with identical shingle sets). Knows no terminal and no store.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup import bands, candidates, exactjoin, similarity
from lshdup.bands import BandPlan
from lshdup.candidates import Buckets, Pair
from lshdup.collection import Collection, Progress, no_progress
from lshdup.copies import Listing, listing_across
from lshdup.kernels import sets as kernels
from lshdup.pairs import Columns, Pairs, found_in, gathered, packed, unpacked
from lshdup.params import PairParams
from lshdup.pipeline import Found
from lshdup.ragged import RaggedSets, distinct, offsets_of
from lshdup.signatures import estimate
from lshdup.similarity import SetSource

#: Signatures of so many pairs are compared at a time: 8 bytes each and row.
_PAIRS_AT_ONCE = 1 << 13

#: (left, right, similarity, whether that is an estimate): uint32, uint32, float64 and bool arrays.
Decided = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64], NDArray[np.bool_]]


@dataclass(frozen=True)
class Part:
    """One collection with signatures, and where its shingle sets come from; a document whose set cannot be had is an empty set there."""

    collection: Collection
    source: SetSource


class Side:
    """The documents of one or more collections, in the order of one, or in byte order of their names as they are typed from here.

    A file that several collections have is a document of the first of them. sizes : int64 array of shape (n,), shingles of each.
    fingerprints : uint64 array of shape (n,), of the shingle sets.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._starts = offsets_of(np.array([len(part.collection.documents) for part in parts], np.int64))
        self._places: NDArray[np.int64] | None = None  # among all documents of all parts
        self.sizes = np.concatenate([part.collection.sizes for part in parts])
        self.fingerprints = np.concatenate([part.collection.fingerprints for part in parts])
        if len(parts) > 1:
            everything = np.arange(len(self.sizes))
            once = {name: place for place, name in reversed([*enumerate(self.identities(everything))])}
            names = self.names(everything)
            self._places = np.array(sorted(once.values(), key=names.__getitem__), np.int64)
            self.sizes, self.fingerprints = self.sizes[self._places], self.fingerprints[self._places]

    def __len__(self) -> int:
        return len(self.sizes)

    def names(self, documents: NDArray[np.int64]) -> list[bytes]:
        """As they would be typed from the current folder."""
        return self._strings(documents, lambda collection, rows: collection.documents.typed_names(rows))

    def identities(self, documents: NDArray[np.int64]) -> list[bytes]:
        """The real path of each document; of a line of an id list, with its name."""
        return self._strings(documents, _identities)

    def first_there(self, documents: NDArray[np.int64]) -> int:
        """The first of these documents whose file is still there; -1 if none is."""
        for part, rows, at in self._by_part(documents):
            for row, place in zip(rows.tolist(), at.tolist(), strict=True):
                if os.path.exists(part.collection.documents.path(row)):  # noqa: PTH110 (bytes path)
                    return int(documents[place])
        return -1

    def changed(self, documents: NDArray[np.int64]) -> int:
        """How many have vanished or changed since they were listed."""
        return sum(len(part.collection.documents.changed(rows)) for part, rows, _ in self._by_part(documents))

    def band_keys(self, plan: BandPlan, jobs: int) -> NDArray[np.uint64]:
        """uint64 array of shape (bands, n)."""
        keys = [bands.band_keys(_there(part.collection.signatures), plan, jobs) for part in self._parts]
        return keys[0] if self._places is None else np.concatenate(keys, axis=1)[:, self._places]

    def signatures(self, documents: NDArray[np.int64]) -> NDArray[np.uint32]:
        """uint32 array of shape (len(documents), K)."""
        out = np.empty((len(documents), _there(self._parts[0].collection.signatures).shape[1]), np.uint32)
        for part, rows, at in self._by_part(documents):
            out[at] = _there(part.collection.signatures)[rows]
        return out

    def sets(self, documents: NDArray[np.int64]) -> RaggedSets:
        """The shingle sets of some documents (ascending int64 array), as a `SetSource` gives them."""
        if self._places is None:
            return self._parts[0].source(documents)
        found, order = [], []
        for part, rows, at in self._by_part(documents):
            ascending = np.argsort(rows)
            found.append(part.source(rows[ascending]))
            order.append(at[ascending])
        return RaggedSets.concatenate(found).take(np.argsort(np.concatenate([np.zeros(0, np.int64), *order])))

    def _by_part(self, documents: NDArray[np.int64]) -> Iterator[tuple[Part, NDArray[np.int64], NDArray[np.int64]]]:
        """Each part with its rows among these documents, and where in `documents` they stand."""
        places = documents if self._places is None else self._places[documents]
        for part, start, end in zip(self._parts, self._starts[:-1], self._starts[1:], strict=True):
            at = np.flatnonzero((places >= start) & (places < end))
            if len(at):
                yield part, places[at] - start, at

    def _strings(self, documents: NDArray[np.int64], of: Callable[[Collection, NDArray[np.int64]], list[bytes]]) -> list[bytes]:
        out = [b""] * len(documents)
        for part, rows, at in self._by_part(documents):
            for place, string in zip(at.tolist(), of(part.collection, rows), strict=True):
                out[place] = string
        return out


def _there(signatures: NDArray[np.uint32] | None) -> NDArray[np.uint32]:
    assert signatures is not None
    return signatures


def _identities(collection: Collection, rows: NDArray[np.int64]) -> list[bytes]:
    documents = collection.documents
    folders: dict[bytes, bytes] = {}
    found = []
    for row in rows.tolist():
        folder, base = os.path.split(documents.path(row))
        if folder not in folders:
            folders[folder] = os.path.realpath(folder or b".")
        path = os.path.join(folders[folder], base)  # noqa: PTH118 (bytes path)
        if os.path.islink(path):  # noqa: PTH114 (bytes path)
            path = os.path.realpath(path)
        found.append(path if documents.paths is None else path + b"\0" + documents.names[row])
    return found


@dataclass(frozen=True)
class Sides:
    """Two sides, and the documents of both under one numbering; the other side's begin at `split`."""

    here: Side
    there: Side

    @property
    def split(self) -> int:
        return len(self.here)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.concatenate([self.here.sizes, self.there.sizes])

    @property
    def fingerprints(self) -> NDArray[np.uint64]:
        return np.concatenate([self.here.fingerprints, self.there.fingerprints])

    def firsts(self) -> NDArray[np.int64]:
        """The first copy of each document on its own side: int64 array."""
        here, there = candidates.first_copies(self.here.fingerprints), candidates.first_copies(self.there.fingerprints)
        return np.concatenate([here, there + self.split])

    def of(self, documents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ascending numbers of documents of both sides -> of the first, and of the other by its own numbering."""
        return documents[documents < self.split], documents[documents >= self.split] - self.split

    def names(self, documents: NDArray[np.int64]) -> list[bytes]:
        """Names of documents of both sides (ascending int64 array)."""
        here, there = self.of(documents)
        return self.here.names(here) + self.there.names(there)

    def sets(self, documents: NDArray[np.int64]) -> RaggedSets:
        """Sets of documents of both sides (ascending int64 array)."""
        here, there = self.of(documents)
        return RaggedSets.concatenate([self.here.sets(here), self.there.sets(there)])


@dataclass(frozen=True)
class Across:
    """Pairs of first copies of the two sides.

    estimated : uint64 array, the keys of those pairs whose similarity is an estimate, ascending. by_estimate : how many candidates were
    decided so, with those that were turned down.
    """

    found: Found
    firsts: NDArray[np.int64]
    estimated: NDArray[np.uint64]
    by_estimate: int = 0


def near_duplicates_across(
    sides: Sides, plan: BandPlan, threshold: float, asked: PairParams, *, jobs: int = 1, progress: Progress = no_progress
) -> Across:
    """All pairs of first copies across the sides at or above the threshold, among the candidates of one band table over both.

    Similarities are exact, as long as the sets of both documents can be had. Where that of the other side cannot be had, the signatures
    decide. Documents with the same fingerprint are identical, wherever they are.
    """
    firsts = sides.firsts()
    members = np.flatnonzero((firsts == np.arange(len(firsts))) & (sides.sizes > 0))
    keys = np.concatenate([sides.here.band_keys(plan, jobs), sides.there.band_keys(plan, jobs)], axis=1)
    buckets, pieces = candidates.cross_pairs(bands.ordered(keys, members, jobs), sides.split, asked.max_bucket)
    decision = _Decision(sides, firsts, threshold, asked.verify == "estimate", jobs)
    met = 0

    def counted() -> Iterator[Pair]:
        nonlocal met
        for left, right in pieces:
            met += len(left)
            progress("candidates", met, 0)
            yield left, right

    pairs = gathered(decision.pairs(counted()))
    estimated = np.sort(np.concatenate([np.zeros(0, np.uint64), *decision.estimated]))
    return Across(Found(pairs, met, buckets), firsts, estimated, decision.by_estimate)


def exact_near_duplicates_across(sides: Sides, sets: RaggedSets, threshold: float, jobs: int = 1) -> Across:
    """The same, no misses, by the prefix-filter join of the sets of both sides."""
    firsts = sides.firsts()
    members = np.flatnonzero((firsts == np.arange(len(firsts))) & (sides.sizes > 0))
    joined = exactjoin.exact_pairs(sets, members, threshold, jobs, sides.split)
    return Across(Found(gathered(joined), -1, Buckets()), firsts, np.zeros(0, np.uint64))


class _Decision:
    """Which candidates are pairs, and by what."""

    def __init__(self, sides: Sides, firsts: NDArray[np.int64], threshold: float, only_estimate: bool, jobs: int) -> None:
        self._sides = sides
        self._firsts = firsts
        self._threshold = threshold
        self._only_estimate = only_estimate
        self._jobs = jobs
        self._sizes, self._prints = sides.sizes, sides.fingerprints
        self._gone = np.zeros(len(self._sizes), bool)  # documents of the other side whose sets were wanted and are not to be had
        self._order: NDArray[np.int64] | None = None
        self.estimated: list[NDArray[np.uint64]] = []
        self.by_estimate = 0

    def pairs(self, pieces: Iterator[Pair]) -> Iterator[Columns]:
        """Those candidate pairs (left, right), uint32 arrays, that are at least as similar as the threshold, in no order."""
        for left, right in pieces:
            same = self._prints[left] == self._prints[right]
            yield left[same], right[same], np.ones(int(same.sum()))
            left, right = left[~same], right[~same]
            if self._only_estimate:
                yield self._estimated(left, right)
                continue
            possible = kernels.possible_pairs(left, right, self._sizes, self._threshold)
            left, right = left[:possible], right[:possible]
            hopeful = ~self._gone[right]
            left, right, rest = left[hopeful], right[hopeful], (left[~hopeful], right[~hopeful])
            yield from similarity.verified([(left.copy(), right.copy())], self._sizes, self._sets, self._threshold, self._jobs)
            disappointed = self._gone[right]
            yield self._estimated(*(np.concatenate(each) for each in zip(rest, (left[disappointed], right[disappointed]), strict=True)))

    def _sets(self, documents: NDArray[np.int64]) -> RaggedSets:
        sets = self._sides.sets(documents)
        lost = np.flatnonzero((sets.sizes == 0) & (documents >= self._sides.split))
        if len(lost):
            sets = self._with_stand_ins(sets, documents, lost)
            self._gone[documents[lost[sets.sizes[lost] == 0]]] = True
        return sets

    def _with_stand_ins(self, sets: RaggedSets, documents: NDArray[np.int64], lost: NDArray[np.int64]) -> RaggedSets:
        """The same with the sets of copies that are still there, for those at the places `lost`."""
        split = self._sides.split
        if self._order is None:
            self._order = np.argsort(self._firsts, kind="stable")
        starts, ends = (np.searchsorted(self._firsts, documents[lost], side=side, sorter=self._order) for side in ("left", "right"))
        found = np.full(len(lost), -1)
        for number in np.flatnonzero(ends - starts > 1).tolist():
            found[number] = self._sides.there.first_there(self._order[starts[number] + 1 : ends[number]] - split)
        stand_ins = distinct(found[found >= 0])[0]
        index = np.arange(len(sets))
        index[lost[found >= 0]] = len(sets) + np.searchsorted(stand_ins, found[found >= 0])
        return RaggedSets.concatenate([sets, self._sides.there.sets(stand_ins)]).take(index)

    def _estimated(self, left: NDArray[np.uint32], right: NDArray[np.uint32]) -> Columns:
        share = np.empty(len(left))
        for start in range(0, len(left), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            a = self._sides.here.signatures(left[part].astype(np.int64))
            b = self._sides.there.signatures(right[part].astype(np.int64) - self._sides.split)
            places = np.arange(len(a))
            share[part] = estimate(np.concatenate([a, b]), places, places + len(a), self._jobs).similarity
        keep = share >= self._threshold
        self.by_estimate += len(left)
        self.estimated.append(packed(left[keep], right[keep]))
        return left[keep], right[keep], share[keep]


class Crossing:
    """The pairs of all documents across two sides, by similarity descending, then a, then b; no file with itself.

    collapse : of copies, see `listing_across`. documents : int64 array, those in any pair, ascending.
    """

    def __init__(self, sides: Sides, across: Across, *, collapse: bool = False) -> None:
        pairs, prints = across.found.pairs, sides.fingerprints
        self._across = across
        self._listing: Listing = listing_across(pairs, across.firsts, _identical(pairs, prints), collapse=collapse)
        self.documents = self._listing.documents()
        here, there = sides.of(self.documents)
        at = {path: document for document, path in zip((there + sides.split).tolist(), sides.there.identities(there), strict=True)}
        both = [(a, at[path]) for a, path in zip(here.tolist(), sides.here.identities(here), strict=True) if path in at]
        left, right = np.array(both, np.int64).reshape(-1, 2).T
        self._itself = np.sort(packed(left, right)[self._listing.holds(left, right)])

    def __len__(self) -> int:
        return self._listing.total - len(self._itself)

    @property
    def estimates(self) -> int:
        """How many of the similarities are estimates."""
        firsts = self._across.firsts
        itself = packed(*(firsts[each] for each in unpacked(self._itself)))
        return self._listing.count(self._across.estimated) - int(found_in(self._across.estimated, itself).sum())

    def pieces(self) -> Iterator[Decided]:
        """All pairs in order."""
        firsts = self._across.firsts
        for left, right, score in self._listing.pieces():
            if len(self._itself):
                other = ~found_in(self._itself, packed(left, right))
                left, right, score = left[other], right[other], score[other]
            yield left, right, score, found_in(self._across.estimated, packed(firsts[left], firsts[right]))


def _identical(pairs: Pairs, prints: NDArray[np.uint64]) -> Pair:
    ones = pairs.at_least(1.0)
    same = prints[ones.left] == prints[ones.right]
    return ones.left[same], ones.right[same]
