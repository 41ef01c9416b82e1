"""Batches of documents made into shingle sets, fingerprints and signatures, on all threads."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Unfiltered
from lshdup.documents.document_list import DocumentList
from lshdup.documents.files import LARGE, Buffer
from lshdup.documents.reading import BATCH_BYTES, batches, read_batch
from lshdup.lsh.signatures import Sketcher
from lshdup.params import ShingleParams
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.shingling.shingler import ShingleBatch, Shingler, fingerprint_sets
from lshdup.skipped import Reason
from lshdup.utils.ragged import RaggedSets

#: A document of more bytes is read, shingled and sketched alone, at any number of threads.
BYTES_AT_ONCE = 64 << 20

#: The sets of a batch whose sets are not kept.
NO_SETS = RaggedSets.from_sets([])


@dataclass
class FinishedBatch:
    """A batch of documents that has been read, shingled and sketched.

    indices : int64 array, the documents. sizes, fingerprints, signatures : of their filtered sets.
    sets : the sets that the run keeps. unfiltered : without sets; None without a filter.
    skipped : the documents that could not be read, and why. guesses : detected encodings.
    office_documents : as in `ShingleBatch`.
    """

    indices: NDArray[np.int64]
    sizes: NDArray[np.int64]
    sets: RaggedSets
    fingerprints: NDArray[np.uint64]
    signatures: NDArray[np.uint32] | None
    skipped: list[tuple[int, Reason, str]]
    guesses: list[tuple[int, str]]
    unfiltered: Unfiltered | None = None
    office_documents: list[int] = field(default_factory=list)


class Workers:
    """Threads with a shingler and a reading buffer each, which last from one pass to the next."""

    def __init__(self, shingle: ShingleParams, jobs: int) -> None:
        self.jobs = jobs
        self.pool = ThreadPoolExecutor(jobs)
        self.shingle = shingle
        self._own = threading.local()

    def room(self, size: int) -> NDArray[np.uint64]:
        """Return an array of at least `size` values that belongs to the calling thread.

        Large arrays are not kept for the next call.
        """
        if size > LARGE // 8:
            return np.empty(size, np.uint64)
        if not hasattr(self._own, "room") or len(self._own.room) < size:
            self._own.room = np.empty(2 * size, np.uint64)
        room: NDArray[np.uint64] = self._own.room
        return room

    def shingle_batch(self, documents: DocumentList, indices: NDArray[np.int64]) -> ShingleBatch:
        """Return the shingle sets of one batch, which the next one of this thread overwrites."""
        if not hasattr(self._own, "shingler"):
            self._own.shingler, self._own.buffer = Shingler(self.shingle), Buffer()
        made: ShingleBatch = self._own.shingler.shingle(
            read_batch(documents, indices, self._own.buffer), documents.formats
        )
        return made


def process_batches(
    documents: DocumentList,
    todo: NDArray[np.int64],
    workers: Workers,
    sketcher: Sketcher | None,
    keep: Callable[[ShingleBatch, RaggedSets, NDArray[np.uint64]], RaggedSets],
    shingle_filter: ShingleFilter | None = None,
) -> Iterator[FinishedBatch]:
    """Yield finished batches in order. Each thread reads, shingles and sketches a batch at a time.

    Two batches a thread are under way; of large documents only as many as fit into BYTES_AT_ONCE
    together, or one.

    keep : called on that thread with the sets, the filtered sets, and the fingerprints of the
        filtered sets, valid until it returns. Returns the sets that the batch shall hold.
    """

    def work(indices: NDArray[np.int64]) -> FinishedBatch:
        try:
            made = workers.shingle_batch(documents, indices)
            filtered, unfiltered = made.sets, None
            if shingle_filter is not None:
                filtered = shingle_filter.apply(made.sets, workers.room(len(made.sets.values)))
                unfiltered = Unfiltered(
                    shingle_filter, made.sets.sizes, fingerprint_sets(made.sets, workers.shingle)
                )
            signatures = sketcher.sketch(filtered) if sketcher is not None else None
            prints = fingerprint_sets(filtered, workers.shingle)
            sets = keep(made, filtered, prints)
            return FinishedBatch(
                made.indices,
                filtered.sizes,
                sets,
                prints,
                signatures,
                made.skipped,
                made.guesses,
                unfiltered=unfiltered,
                office_documents=made.office_documents,
            )
        except MemoryError:
            if len(indices) > 1:
                raise
            size = documents.spans[indices[0]]
            detail = (
                f"{size} bytes, for which the memory is not enough;"
                " a smaller --max-bytes leaves it out"
            )
            none = np.zeros(0, np.int64)
            return FinishedBatch(
                none,
                none,
                NO_SETS,
                none.view(np.uint64),
                None,
                [(int(indices[0]), Reason.TOO_LARGE, detail)],
                [],
            )

    room = max(BYTES_AT_ONCE, (2 * workers.jobs + 1) * BATCH_BYTES)
    under_way: deque[tuple[Future[FinishedBatch], int]] = deque()
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
