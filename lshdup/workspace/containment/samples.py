"""Samples of the sets of a collection: from the store, or from documents that are read again."""

import time
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection
from lshdup.documents.reading import runs
from lshdup.errors import ArtifactError
from lshdup.lsh.samples import sample_sets
from lshdup.params import ShingleParams
from lshdup.store.journal import Journal
from lshdup.store.members import DAMAGED
from lshdup.store.samples_io import (
    StoredSamples,
    describe_samples,
    load_samples,
    read_samples,
    save_samples,
)
from lshdup.utils.messages import count_of
from lshdup.utils.ragged import RaggedSets, SetSource
from lshdup.workspace.context import RunContext

#: Bytes of sets that are read at a time.
_BYTES_AT_ONCE = 24 << 20

#: Samples, and the fingerprints of their sets.
Part = tuple[NDArray[np.uint64], RaggedSets]

#: Seconds of work after which it is saved; then after twice as many, and so on.
_PATIENCE = 10.0


class SampleCollector:
    """The samples of the sets of documents while these are read, unless they exceed the room.

    rate, seed : of the samples. room : bytes.
    """

    def __init__(self, rate: int, seed: int, room: int) -> None:
        self.rate, self.seed = rate, seed
        self.parts: list[Part] = []
        self._room = room
        self._written = 0  # parts that an interrupted run leaves

    def follow(self, journal: Journal, shingle: ShingleParams) -> None:
        """Take the samples that an interrupted run has left beside its journal, and leave those of
        this run there.
        """
        left = journal.beside("samples", describe_samples(shingle, self.rate, self.seed))
        for artifact in left.load():
            with suppress(ArtifactError, *DAMAGED):
                stored = read_samples(artifact, self.rate, self.seed)
                self._keep((stored.prints.copy(), stored.samples.copy()))
        self._written = len(self.parts)

        def write() -> None:
            new = self.parts[self._written :]
            if new:
                left.write(_gather(new, self.rate, self.seed).arrays)
                self._written += len(new)

        journal.on_add = write

    def add(self, sets: RaggedSets, prints: NDArray[np.uint64]) -> None:
        """Keep the samples of some sets. For any thread."""
        if self._room >= 0:
            self._keep((prints.copy(), sample_sets(sets, self.rate, self.seed).copy().sort()))

    def _keep(self, part: Part) -> None:
        self._room -= part[1].values.nbytes
        if self._room < 0:
            self.parts.clear()
        else:
            self.parts.append(part)


def load_or_make_samples(
    run: RunContext,
    collection: Collection,
    members: NDArray[np.int64],
    rate: int,
    collected: SampleCollector,
    source: SetSource,
) -> RaggedSets:
    """Return the samples of the sets of documents; documents are read for missing ones only.

    They are saved, also now and then in a long run: a killed one is resumed by the next.

    members : int64 array of shape (m,), documents whose sets differ.
    rate : of the samples; those stored with a smaller rate serve too.
    collected : samples of documents that this run has read.
    source : gives shingle sets; the set of a document that cannot be read again is empty, and so is
        its sample.
    """
    prints, seed = collection.fingerprints[members], collected.seed
    stored = _load(run, collection, min(rate, collected.rate), seed)
    wanted = np.flatnonzero(np.isin(stored.prints, prints))
    if len(wanted):
        run.say(f"{count_of(len(wanted), 'sample is', 'samples are')} taken from samples.npz")
    parts = [(stored.prints[wanted], stored.samples.take(wanted))]
    if collected.rate == stored.rate:
        new = _gather(collected.parts, stored.rate, seed)
        rows = np.flatnonzero(np.isin(new.prints, prints) & ~np.isin(new.prints, stored.prints))
        parts.append((new.prints[rows], new.samples.take(rows)))
    known = np.concatenate([part for part, _ in parts])
    missing = np.flatnonzero(~np.isin(prints, known))
    is_changed = len(missing) > 0 or len(known) > len(wanted) or len(wanted) < len(stored.prints)
    done, patience, started = 0, _PATIENCE, time.monotonic()
    for some in _in_reading_order(collection, members, missing):
        run.progress("samples", done, len(missing))
        sets = source(members[some])
        readable = np.flatnonzero(sets.sizes)
        sampled = sample_sets(sets.take(readable), stored.rate, seed)
        parts.append((prints[some[readable]], sampled))
        done += len(some)
        if time.monotonic() - started > patience:
            stored = _gather(parts, stored.rate, seed)
            parts = [(stored.prints, stored.samples)]
            _save(run, collection, stored)
            patience, started = 2 * patience, time.monotonic()
    stored = _gather(parts, stored.rate, seed)
    if is_changed:
        _save(run, collection, stored)
    # The sample after the last one is empty.
    samples = RaggedSets.concatenate([stored.samples, RaggedSets.from_sets([[]])])
    at = np.searchsorted(stored.prints, prints)
    is_made = np.append(stored.prints, 0)[at] == prints
    samples = samples.take(np.where(is_made, at, len(stored.prints)))
    return samples if stored.rate == rate else sample_sets(samples, rate, seed)


def _load(run: RunContext, collection: Collection, rate: int, seed: int) -> StoredSamples:
    """Return the stored samples, if they serve; else none, at the rate."""
    try:
        stored = load_samples(run.store, collection.shingle) if run.store is not None else None
        if stored is not None and stored.rate <= rate and stored.seed == seed:
            return stored
    except ArtifactError as error:
        run.say(f"{error.message}; it is rebuilt")
    return StoredSamples(np.zeros(0, np.uint64), RaggedSets.concatenate([]), rate, seed)


def _save(run: RunContext, collection: Collection, stored: StoredSamples) -> None:
    run.keep("samples.npz", lambda store: save_samples(store, collection.shingle, stored))


def _gather(parts: list[Part], rate: int, seed: int) -> StoredSamples:
    """Return samples by the fingerprints of their sets, given in any order, those of copies too."""
    prints = np.concatenate([np.zeros(0, np.uint64), *(part for part, _ in parts)])
    order = np.argsort(prints, kind="stable")
    order = order[np.diff(prints[order], prepend=~prints[order[:1]]) != 0]
    samples = RaggedSets.concatenate([part for _, part in parts]).take(order)
    return StoredSamples(prints[order], samples, rate, seed)


def _in_reading_order(
    collection: Collection, members: NDArray[np.int64], rows: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """Yield ascending runs of rows of `members`: files front to back, sets of limited size."""
    locations = collection.documents.locations
    orders = [members[rows]] if locations is None else locations.reading_order(members[rows])
    for order in orders:
        for some in runs(8 * collection.sizes[order], len(order), _BYTES_AT_ONCE):
            yield np.searchsorted(members, np.sort(order[some]))
