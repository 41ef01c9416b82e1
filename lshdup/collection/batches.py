"""Batches of documents made into shingle sets, fingerprints and signatures, on all threads."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lshdup.base.memory import Buffer
from lshdup.base.params import ShingleParams
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.base.system import trim_memory
from lshdup.collection.collection import WHOLE, set_columns
from lshdup.collection.equal_files import digest_documents
from lshdup.lsh.signatures import Sketcher
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.shingling.shingler import NO_SETS, ShingleBatch, Shingler
from lshdup.sources.document_list import DocumentList
from lshdup.sources.text_batches import BATCH_BYTES, batches, read_batch
from lshdup.text.office_types import OFFICE_ENDINGS

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

#: A document of more bytes is read, shingled and sketched alone, at any number of threads.
BYTES_AT_ONCE = 64 << 20

#: So few documents, of so few bytes together, are read without threads, whose import takes longer.
_FEW, _FEW_BYTES = 128, 1 << 20


def _is_little(documents: DocumentList, todo: NDArray[np.int64]) -> bool:
    """Return whether documents are read faster than threads are imported: no office documents."""
    names = documents.names.strings_at(todo)
    is_slow = any(name.lower().endswith(OFFICE_ENDINGS) for name in names)
    return not is_slow and int(documents.spans[todo].sum()) <= _FEW_BYTES


class Workers:
    """Threads with a shingler and reading buffers each, which last from one pass to the next.

    in_order : as for `Shingler`.
    """

    def __init__(self, run: Run, shingle: ShingleParams, *, in_order: bool = False) -> None:
        self._jobs, self._shingle, self._in_order = run.jobs, shingle, in_order
        self._own, self._freed = threading.local(), 0

    @cached_property
    def _pool(self) -> "ThreadPoolExecutor":
        from concurrent.futures import ThreadPoolExecutor  # Imported here to keep `query` fast.

        return ThreadPoolExecutor(self._jobs)

    def process(
        self,
        run: Run,
        documents: DocumentList,
        todo: NDArray[np.int64],
        keep: Callable[[ShingleBatch, RaggedSets, NDArray[np.uint64]], RaggedSets],
        shingle_filter: ShingleFilter | None,
        sketcher: Sketcher | None = None,
    ) -> Iterator[ShingleBatch]:
        """Yield batches in order: with the sets that the run keeps, the columns of `COLUMNS`, and
        signatures, of the (filtered) sets. Each thread reads, shingles and sketches one at a time.

        Two batches a thread are under way; of large documents only as many as fit into
        BYTES_AT_ONCE together, or one.

        keep : called on that thread with the sets, the filtered sets, and the fingerprints of the
            filtered sets, valid until it returns; the elements of a set are in no particular order.
            Returns the sets that the batch shall hold.
        """
        work = partial(self._work, documents, keep, shingle_filter, sketcher)
        if len(todo) <= _FEW and _is_little(documents, todo):
            yield from map(work, batches(run, documents, todo))
            return
        from concurrent.futures import wait

        room = max(BYTES_AT_ONCE, (2 * self._jobs + 1) * BATCH_BYTES)
        under_way: deque[tuple[Future[ShingleBatch], int]] = deque()
        try:
            for indices in batches(run, documents, todo):
                size = int(documents.spans[indices].sum())
                if self._shingle.of_bytes and documents.is_file(int(indices[0])):
                    size = min(size, BATCH_BYTES)  # It is read in pieces.
                while under_way and (len(under_way) > 2 * self._jobs or size > room):
                    done, freed = under_way.popleft()
                    room += freed
                    self._freed += freed
                    if self._freed > BYTES_AT_ONCE:  # Allocators keep several times as much.
                        self._freed = 0
                        trim_memory()
                    yield done.result()
                room -= size
                under_way.append((self._pool.submit(work, indices), size))
            while under_way:
                yield under_way.popleft()[0].result()
        finally:
            for future, _ in under_way:
                future.cancel()
            wait([future for future, _ in under_way])

    def _work(
        self,
        documents: DocumentList,
        keep: Callable[[ShingleBatch, RaggedSets, NDArray[np.uint64]], RaggedSets],
        shingle_filter: ShingleFilter | None,
        sketcher: Sketcher | None,
        indices: NDArray[np.int64],
    ) -> ShingleBatch:
        """Return a finished batch. What is read and shingled is overwritten by the next one of this
        thread.
        """
        own = self._own
        if self._shingle.of_bytes:
            own.buffer = getattr(own, "buffer", None) or Buffer()
            return digest_documents(documents, indices, own.buffer)
        if not hasattr(own, "shingler"):
            own.shingler, own.buffer = Shingler(self._shingle, in_order=self._in_order), Buffer()
            own.filtered = Buffer(np.uint64)
        try:
            batch = read_batch(documents, indices, own.buffer)
            made: ShingleBatch = own.shingler.shingle(batch, documents.formats)
            filtered, columns = made.sets, made.columns | {"set_sizes": made.sets.sizes}
            if shingle_filter is not None:
                filtered = shingle_filter.apply(made.sets, own.filtered)
                columns |= {whole: columns[name] for name, whole in WHOLE.items()}
                columns |= set_columns(filtered, self._shingle)
            signatures = sketcher.sketch(filtered) if sketcher is not None else None
            kept = keep(made, filtered, columns["fingerprints"])
            return replace(made, sets=kept, columns=columns, signatures=signatures)
        except MemoryError:
            if len(indices) > 1:
                raise
            detail = (
                f"{documents.spans[indices[0]]} bytes, for which the memory is not enough;"
                " a smaller --max-bytes leaves it out"
            )
            skipped = [(int(indices[0]), Reason.TOO_LARGE, detail)]
            return ShingleBatch(np.zeros(0, np.int64), NO_SETS, skipped=skipped)
