"""Samples of the sets of a collection: from the store, or from documents that are read again."""

import time
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import RaggedSets, SetSource
from lshdup.base.run import Run
from lshdup.base.wording import count_of
from lshdup.collection.collection import Collection
from lshdup.compare.scored_pairs import contains
from lshdup.errors import ArtifactError
from lshdup.lsh.samples import SMALL, plan_samples, sample_sets
from lshdup.params import BandParams, ShingleParams, SketchParams
from lshdup.sources.reading import cut_by_size
from lshdup.store.results_io import SampledSets, load_samples, save_samples
from lshdup.workspace.request import Request, merge_params
from lshdup.workspace.workspace import Workspace

#: Bytes of sets that are read at a time.
_BYTES_AT_ONCE = 24 << 20

#: Seconds of work after which it is saved; then after twice as many, and so on.
_PATIENCE = 10.0


class Samples:
    """Samples of the sets of documents: taken while these are read, unless they exceed the room;
    from the store; or of documents that are read again.

    run, request : threshold and recall decide the rate (`plan_samples`).
    """

    def __init__(self, run: Workspace, request: Request) -> None:
        params = merge_params(BandParams, request.given)
        self._run, self._room = run, run.memory // 4
        self.rate = plan_samples(SMALL, params.threshold, params.recall).rate
        self.seed = merge_params(SketchParams, request.given).seed
        self.parts: list[SampledSets] = []

    def keep(self, shingle: ShingleParams) -> None:
        """Save the samples so far beside those that are stored: an interrupted run goes on with
        them. Samples of another rate stay as they are.
        """
        run = self._run
        stored, rate = self._load(shingle, self.rate)
        if run.store is not None and self.parts and rate == self.rate:
            made = _gather(run, [stored, *self.parts])
            with suppress(ArtifactError):
                save_samples(run.store, shingle, made, rate, self.seed)

    def add(self, sets: RaggedSets, prints: NDArray[np.uint64]) -> None:
        """Keep the samples of some sets. For any thread."""
        if self._room >= 0:
            made = sample_sets(self._run, sets, self.rate, self.seed).copy().sort()
            self._room -= prints.nbytes + made.values.nbytes + made.offsets.nbytes
            self.parts.append(SampledSets(prints.copy(), made))
            if self._room < 0:
                self.parts.clear()

    def load_or_make(
        self, collection: Collection, members: NDArray[np.int64], rate: int, source: SetSource
    ) -> RaggedSets:
        """Return the samples of the sets of documents; documents are read for missing ones only.

        They are saved, also now and then in a long run: a killed one is resumed by the next.

        members : int64 array of shape (m,), documents whose sets differ.
        rate : of the samples; those stored with a smaller rate serve too.
        source : gives shingle sets; the set of a document that cannot be read again is empty, and
            so is its sample.
        """
        run, arrays, shingle = self._run, self._run.arrays, collection.shingle
        prints = arrays.take(np.asarray(collection.fingerprints), members)
        in_order = arrays.copy(prints)
        in_order.sort()
        # Samples that were too many to be collected are made at the rate that fits into memory.
        stored, made_at = self._load(shingle, min(rate, self.rate) if self.parts else rate)
        wanted = _find(run, stored.prints, in_order)
        if len(wanted):
            run.say(f"{count_of(len(wanted), 'sample is', 'samples are')} taken from samples.npz")
        is_changed = len(wanted) < len(stored.prints)
        made = _take(run, stored, wanted)
        if self.rate == made_at and self.parts:
            new = _gather(run, self.parts)
            made = _gather(run, [made, _take(run, new, _find(run, new.prints, in_order))])
        missing = _find(run, prints, made.prints, is_in=False)
        is_changed |= len(missing) > 0 or len(made.prints) > len(wanted)
        done, patience, started, parts = 0, _PATIENCE, time.monotonic(), [made]

        for some in _in_reading_order(run, collection, members, missing):
            run.progress("samples", done, len(missing))
            sets = source(members[some])
            readable = np.flatnonzero(sets.sizes)
            sampled = sample_sets(run, sets.take(readable), made_at, self.seed)
            parts.append(SampledSets(prints[some[readable]], sampled))
            done += len(some)
            if time.monotonic() - started > patience:
                made = _gather(run, parts)
                parts = [made]
                self._save(collection, made, made_at)
                patience, started = 2 * patience, time.monotonic()
        made = _gather(run, parts) if len(parts) > 1 else made
        if is_changed:
            self._save(collection, made, made_at)
        # The sample after the last one is empty.
        samples = RaggedSets.concatenate([made.samples, RaggedSets.from_sets([[]])], arrays)

        def place_of(some: slice) -> NDArray[np.int64]:
            at = np.searchsorted(made.prints, prints[some])
            return np.where(contains(made.prints, prints[some]), at, len(made.prints))

        samples = samples.take(arrays.compute(len(prints), np.int64, place_of), arrays)
        return samples if made_at == rate else sample_sets(run, samples, rate, self.seed)

    def _load(self, shingle: ShingleParams, rate: int) -> tuple[SampledSets, int]:
        """Return the stored samples and their rate, if they serve; else none, at the rate."""
        try:
            if self._run.store is not None:
                stored = load_samples(self._run, self._run.store, shingle, self.seed)
                if stored is not None and stored[1] <= rate:
                    return stored
        except ArtifactError as error:
            self._run.say(f"{error.message}; it is rebuilt")
        return SampledSets(np.zeros(0, np.uint64), RaggedSets.concatenate([])), rate

    def _save(self, collection: Collection, made: SampledSets, rate: int) -> None:
        self._run.keep(
            "samples.npz",
            lambda store: save_samples(store, collection.shingle, made, rate, self.seed),
        )


def _find(
    run: Run, prints: NDArray[np.uint64], among: NDArray[np.uint64], *, is_in: bool = True
) -> NDArray[np.int64]:
    """Return the indices of fingerprints that are among others, which ascend; or that are not."""
    return run.arrays.where(len(prints), lambda some: contains(among, prints[some]) == is_in)


def _take(run: Run, stored: SampledSets, rows: NDArray[np.int64]) -> SampledSets:
    """Return the samples at ascending rows."""
    if len(rows) == len(stored.prints):
        return stored
    prints = run.arrays.take(stored.prints, rows)
    return SampledSets(prints, stored.samples.take(rows, run.arrays))


def _gather(run: Run, parts: list[SampledSets]) -> SampledSets:
    """Return samples by the fingerprints of their sets, given in any order, those of copies too."""
    arrays = run.arrays
    prints = arrays.concatenate([np.zeros(0, np.uint64), *(part.prints for part in parts)])
    order = arrays.order(len(prints), [prints.__getitem__])
    prints = arrays.take(prints, order)
    is_first = arrays.full(len(prints), value=True, dtype=np.bool_)
    np.not_equal(prints[1:], prints[:-1], out=is_first[1:])
    firsts = arrays.find(is_first)
    samples = RaggedSets.concatenate([part.samples for part in parts], arrays)
    samples = samples.take(arrays.take(order, firsts), arrays)
    return SampledSets(arrays.take(prints, firsts), samples)


def _in_reading_order(
    run: Run, collection: Collection, members: NDArray[np.int64], rows: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """Yield ascending runs of rows of `members`: files front to back, sets of limited size."""
    arrays = run.arrays
    wanted = arrays.take(members, rows)
    for order in collection.documents.reading_order(run, wanted):
        sizes = arrays.take(np.asarray(collection.sizes), order)
        for some in cut_by_size(sizes, len(order), _BYTES_AT_ONCE // 8):
            yield np.searchsorted(members, np.sort(order[some]))
