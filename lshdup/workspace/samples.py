"""Samples of the sets of a collection: from the store, or from documents that are read again."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.messages import count_of
from lshdup.base.ragged import RaggedSets, SetSource
from lshdup.base.run import Run
from lshdup.collection.collection import Collection
from lshdup.compare.scored_pairs import contains
from lshdup.errors import ArtifactError
from lshdup.lsh.samples import SMALL, plan_samples, sample_sets
from lshdup.params import BandParams, ShingleParams, SketchParams
from lshdup.sources.reading import cut_by_size
from lshdup.store.samples_io import StoredSamples, load_samples, save_samples
from lshdup.workspace.context import RunContext
from lshdup.workspace.request import Request, merge_params

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

    def __init__(self, run: Run, rate: int, seed: int, room: int) -> None:
        self._run = run
        self.rate, self.seed = rate, seed
        self.parts: list[Part] = []
        self._room = room

    def keep(self, run: RunContext, shingle: ShingleParams) -> None:
        """Save the samples so far beside those that are stored: an interrupted run goes on with
        them. Samples of another rate stay as they are.
        """
        stored = _load(run, shingle, self.rate, self.seed)
        if run.store is not None and self.parts and stored.rate == self.rate:
            made = _gather(run, [stored.part, *self.parts], self.rate, self.seed)
            with suppress(ArtifactError):
                save_samples(run.store, shingle, made)

    def add(self, sets: RaggedSets, prints: NDArray[np.uint64]) -> None:
        """Keep the samples of some sets. For any thread."""
        if self._room >= 0:
            self._keep(
                (prints.copy(), sample_sets(self._run, sets, self.rate, self.seed).copy().sort())
            )

    def _keep(self, part: Part) -> None:
        prints, samples = part
        self._room -= prints.nbytes + samples.values.nbytes + samples.offsets.nbytes
        if self._room < 0:
            self.parts.clear()
        else:
            self.parts.append(part)


def new_collector(run: Run, params: BandParams, request: Request) -> SampleCollector:
    """Return the collector of samples while documents are read, at the rate of `plan_join`."""
    rate = plan_samples(SMALL, params.threshold, params.recall).rate
    seed = merge_params(SketchParams, request.given).seed
    return SampleCollector(run, rate, seed, run.memory // 4)


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
    arrays, seed = run.arrays, collected.seed
    prints = arrays.take(np.asarray(collection.fingerprints), members)
    in_order = arrays.copy(prints)
    in_order.sort()
    # Samples that were too many to be collected are made at the rate that fits into memory.
    most = min(rate, collected.rate) if collected.parts else rate
    stored = _load(run, collection.shingle, most, seed)
    wanted = _find(run, stored.prints, in_order)
    if len(wanted):
        run.say(f"{count_of(len(wanted), 'sample is', 'samples are')} taken from samples.npz")
    is_changed = len(wanted) < len(stored.prints)
    made = _take(run, stored, wanted)
    if collected.rate == stored.rate and collected.parts:
        new = _gather(run, collected.parts, stored.rate, seed)
        new = _take(run, new, _find(run, new.prints, in_order))
        made = _gather(run, [made.part, new.part], stored.rate, seed)
    missing = _find(run, prints, made.prints, is_in=False)
    is_changed |= len(missing) > 0 or len(made.prints) > len(wanted)
    done, patience, started, parts = 0, _PATIENCE, time.monotonic(), [made.part]
    for some in _in_reading_order(run, collection, members, missing):
        run.progress("samples", done, len(missing))
        sets = source(members[some])
        readable = np.flatnonzero(sets.sizes)
        sampled = sample_sets(run, sets.take(readable), made.rate, seed)
        parts.append((prints[some[readable]], sampled))
        done += len(some)
        if time.monotonic() - started > patience:
            made = _gather(run, parts, made.rate, seed)
            parts = [made.part]
            _save(run, collection, made)
            patience, started = 2 * patience, time.monotonic()
    made = _gather(run, parts, made.rate, seed) if len(parts) > 1 else made
    if is_changed:
        _save(run, collection, made)
    # The sample after the last one is empty.
    samples = RaggedSets.concatenate([made.samples, RaggedSets.from_sets([[]])], arrays)

    def place_of(some: slice) -> NDArray[np.int64]:
        at = np.searchsorted(made.prints, prints[some])
        return np.where(contains(made.prints, prints[some]), at, len(made.prints))

    samples = samples.take(arrays.compute(len(prints), np.int64, place_of), arrays)
    return samples if made.rate == rate else sample_sets(run, samples, rate, seed)


def _find(
    run: Run, prints: NDArray[np.uint64], among: NDArray[np.uint64], *, is_in: bool = True
) -> NDArray[np.int64]:
    """Return the indices of fingerprints that are among others, which ascend; or that are not."""
    return run.arrays.where(len(prints), lambda some: contains(among, prints[some]) == is_in)


def _take(run: Run, stored: StoredSamples, rows: NDArray[np.int64]) -> StoredSamples:
    """Return the samples at ascending rows."""
    if len(rows) == len(stored.prints):
        return stored
    samples = stored.samples.take(rows, run.arrays)
    return replace(stored, prints=run.arrays.take(stored.prints, rows), samples=samples)


def _load(run: RunContext, shingle: ShingleParams, rate: int, seed: int) -> StoredSamples:
    """Return the stored samples, if they serve; else none, at the rate."""
    try:
        stored = load_samples(run, run.store, shingle) if run.store is not None else None
        if stored is not None and stored.rate <= rate and stored.seed == seed:
            return stored
    except ArtifactError as error:
        run.say(f"{error.message}; it is rebuilt")
    return StoredSamples(np.zeros(0, np.uint64), RaggedSets.concatenate([]), rate, seed)


def _save(run: RunContext, collection: Collection, stored: StoredSamples) -> None:
    run.keep("samples.npz", lambda store: save_samples(store, collection.shingle, stored))


def _gather(run: Run, parts: list[Part], rate: int, seed: int) -> StoredSamples:
    """Return samples by the fingerprints of their sets, given in any order, those of copies too."""
    arrays = run.arrays
    prints = arrays.concatenate([np.zeros(0, np.uint64), *(part for part, _ in parts)])
    order = arrays.order(len(prints), [prints.__getitem__])
    prints = arrays.take(prints, order)
    is_first = arrays.full(len(prints), value=True, dtype=np.bool_)
    np.not_equal(prints[1:], prints[:-1], out=is_first[1:])
    firsts = arrays.find(is_first)
    samples = RaggedSets.concatenate([part for _, part in parts], arrays)
    samples = samples.take(arrays.take(order, firsts), arrays)
    return StoredSamples(arrays.take(prints, firsts), samples, rate, seed)


def _in_reading_order(
    run: Run, collection: Collection, members: NDArray[np.int64], rows: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """Yield ascending runs of rows of `members`: files front to back, sets of limited size."""
    arrays = run.arrays
    locations, wanted = collection.documents.locations, arrays.take(members, rows)
    orders = [wanted] if locations is None else locations.reading_order(run, wanted)
    for order in orders:
        sizes = arrays.take(np.asarray(collection.sizes), order)
        for some in cut_by_size(sizes, len(order), _BYTES_AT_ONCE // 8):
            yield np.searchsorted(members, np.sort(order[some]))
