"""Batches of documents -> shingle sets, their fingerprints and signatures, on all threads. Called by collection.py and sources.py."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.document_list import DocumentList
from lshdup.documents.files import LARGE, Buffer
from lshdup.documents.reading import BATCH_BYTES, batches, read_batch
from lshdup.lsh.signatures import Sketcher
from lshdup.params import ShingleParams
from lshdup.shingling.shingle_filter import ShingleFilter, Unfiltered
from lshdup.shingling.shingler import ShingleBatch, Shingler, fingerprint_sets
from lshdup.skipped import Reason
from lshdup.utils.ragged import RaggedSets

#: A document of more bytes than this is read, shingled and sketched alone, whatever the number of threads.
BYTES_AT_ONCE = 64 << 20

#: For a batch whose sets nobody wants.
NO_VALUES = RaggedSets.from_sets([])


@dataclass
class Done:
    """One finished batch. sets : before anything was removed; none, if nobody wants them. whole : without the sets. extracted : as in
    `ShingleBatch`.
    """

    indices: NDArray[np.int64]
    sizes: NDArray[np.int64]
    sets: RaggedSets
    fingerprints: NDArray[np.uint64]
    signatures: NDArray[np.uint32] | None
    skipped: list[tuple[int, Reason, str]]
    guessed: list[tuple[int, str]]
    unfiltered: Unfiltered | None = None
    extracted: list[int] = field(default_factory=list)


class Workers:
    """Threads that each have a shingler and memory to read into, between one pass over documents and the next."""

    def __init__(self, shingle: ShingleParams, jobs: int) -> None:
        self.jobs = jobs
        self.pool = ThreadPoolExecutor(jobs)
        self.shingle = shingle
        self._own = threading.local()

    def room(self, size: int) -> NDArray[np.uint64]:
        """At least so many values of the calling thread's own memory; not of what is seldom wanted."""
        if size > LARGE // 8:
            return np.empty(size, np.uint64)
        if not hasattr(self._own, "room") or len(self._own.room) < size:
            self._own.room = np.empty(2 * size, np.uint64)
        room: NDArray[np.uint64] = self._own.room
        return room

    def shingled(self, documents: DocumentList, indices: NDArray[np.int64]) -> ShingleBatch:
        """Shingle sets of one batch, which the same thread's next batch overwrites."""
        if not hasattr(self._own, "shingler"):
            self._own.shingler, self._own.buffer = Shingler(self.shingle), Buffer()
        made: ShingleBatch = self._own.shingler.shingle(
            read_batch(documents, indices, self._own.buffer), documents.formats
        )
        return made


def batches_done(
    documents: DocumentList,
    todo: NDArray[np.int64],
    workers: Workers,
    sketcher: Sketcher | None,
    keep: Callable[[ShingleBatch, RaggedSets, NDArray[np.uint64]], RaggedSets],
    shingle_filter: ShingleFilter | None = None,
) -> Iterator[Done]:
    """Finished batches in order. Each thread reads, shingles and sketches its own batch; two a thread are under way, but of large
    documents only as many as fit into BYTES_AT_ONCE together, or one.

    keep : told, on that thread, the sets, what is left of them without the shingles of the filter, both valid until it returns, and the
    fingerprints of what is left; gives what the batch shall hold.
    """

    def work(indices: NDArray[np.int64]) -> Done:
        try:
            made = workers.shingled(documents, indices)
            left, unfiltered = made.sets, None
            if shingle_filter is not None:
                left = shingle_filter.apply(made.sets, workers.room(len(made.sets.values)))
                unfiltered = Unfiltered(
                    made.sets.sizes, fingerprint_sets(made.sets, workers.shingle)
                )
            signatures = sketcher.sketch(left) if sketcher is not None else None
            prints = fingerprint_sets(left, workers.shingle)
            sets = keep(made, left, prints)
            return Done(
                made.indices,
                left.sizes,
                sets,
                prints,
                signatures,
                made.skipped,
                made.guessed,
                unfiltered=unfiltered,
                extracted=made.extracted,
            )
        except MemoryError:
            if len(indices) > 1:
                raise
            detail = f"{documents.spans[indices[0]]} bytes, for which the memory is not enough; a smaller --max-bytes leaves it out"
            none = np.zeros(0, np.int64)
            unfiltered = (
                Unfiltered(none, none.view(np.uint64)) if shingle_filter is not None else None
            )
            return Done(
                none,
                none,
                NO_VALUES,
                none.view(np.uint64),
                None,
                [(int(indices[0]), Reason.TOO_LARGE, detail)],
                [],
                unfiltered,
            )

    room = max(BYTES_AT_ONCE, (2 * workers.jobs + 1) * BATCH_BYTES)
    under_way: deque[tuple[Future[Done], int]] = deque()
    try:
        for indices in batches(documents, todo):
            size = int(documents.spans[indices].sum())
            while under_way and (len(under_way) > 2 * workers.jobs or size > room):
                done, freed = under_way.popleft()
                room += freed
                yield done.result()
            room -= size
            under_way.append((workers.pool.submit(work, indices), size))
        while under_way:
            yield under_way.popleft()[0].result()
    finally:
        for future, _ in under_way:
            future.cancel()
        wait([future for future, _ in under_way])
