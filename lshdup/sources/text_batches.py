"""Batches of documents, read into one buffer of text."""

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import Form
from lshdup.base.memory import Buffer
from lshdup.base.ragged import StringTable, offsets_of
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, describe_error, find_reason
from lshdup.kernels.helpers import PADDING
from lshdup.sources.document_list import DocumentList, refuse_if
from lshdup.sources.files import Contents, read_files
from lshdup.sources.records import Kind, RecordError
from lshdup.text.text_batch import TextBatch

#: A batch has few enough documents to feed all threads, and few enough bytes for memory.
BATCH_DOCUMENTS = 512
BATCH_BYTES = 4 << 20
#: The last batches are made smaller so that threads end together, but not smaller than this.
_LEAST_DOCUMENTS = 64

#: What files were read as whose sections are documents.
_FORMS = {Kind.HTML_SECTION: Form.PAGE, Kind.PDF_PAGE: Form.OFFICE}

#: Most things in a run.
_AT_ONCE = 1 << 16


def batches(
    run: Run, documents: DocumentList, indices: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """Yield `indices` in batches of at most BATCH_DOCUMENTS documents and about BATCH_BYTES bytes.

    Parts of files come in the order of their locations, and each batch is of one `Kind`. Each
    thread of the run gets as many batches, of the same length.
    """
    for each in documents.reading_order(run, indices):
        shares = run.jobs * -(-len(each) // (run.jobs * BATCH_DOCUMENTS)) or 1
        most = min(max(-(-len(each) // shares), _LEAST_DOCUMENTS), BATCH_DOCUMENTS)
        for batch in cut_by_size(run.arrays.take(documents.spans, each), most, BATCH_BYTES):
            yield each[batch]


def cut_by_size(sizes: NDArray[np.integer], most: int, most_bytes: int) -> Iterator[slice]:
    """Yield slices of at most `most` things and `most_bytes` bytes, or of one larger thing.

    >>> list(cut_by_size(np.array([1, 1, 1, 9, 5]), 2, 8))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None), slice(4, 5, None)]
    """
    start = 0
    while start < len(sizes):
        ends = np.cumsum(sizes[start : start + min(most, _AT_ONCE)], dtype=np.int64)
        end = start + max(int(np.searchsorted(ends, most_bytes, side="right")), 1)
        yield slice(start, end)
        start = end


def read_batch(
    documents: DocumentList, indices: NDArray[np.int64], buffer: Buffer | None = None
) -> TextBatch:
    """Return the bytes of documents of one kind; unreadable ones are in `skipped`, not in
    `indices`.

    A file that grew or shrank since it was listed is read as it is now. Raises ArtifactError for a
    list that no folder can have given. Cost: one open, read and close a file, without the GIL.

    documents : the list.
    indices : int64 array.
    buffer : memory to read into, which the next batch may use again.
    """
    spans = documents.spans[indices]
    refuse_if(
        len(indices) and (spans.min() < 0 or spans.max() >= 1 << 31),
        "documents of a size that none can have",
    )
    if documents.parts is not None and len(indices):
        kind = Kind(int(documents.kinds_of(indices)[0]))
        if kind != Kind.FILE:
            return _read_parts(documents, indices, kind, buffer or Buffer())
    paths = documents.names.take(indices)
    refuse_if(bool((paths.values == 0).any()), "a path with NUL in it")
    names = paths
    if documents.home:
        paths = StringTable.from_strings(os.path.join(documents.home, name) for name in names)  # noqa: PTH118 (bytes path)
    contents = read_files(
        paths, documents.sizes[indices], buffer, documents.max_bytes, links=documents.has_links
    )
    good = np.delete(np.arange(len(indices)), list(contents.failed))
    names = names if len(good) == len(names) else names.take(good)
    failed = contents.failed.items()
    lost = [(int(indices[at]), *_explain(error, changed=False)) for at, error in failed]
    spans_read = contents.starts[good], contents.lengths[good]
    most, home = documents.max_bytes, documents.home
    return TextBatch(
        indices[good], names, contents.text, *spans_read, lost, max_bytes=most, home=home,
        are_files=True,
    )  # fmt: skip


def _read_parts(
    documents: DocumentList, indices: NDArray[np.int64], kind: Kind, buffer: Buffer
) -> TextBatch:
    """Read documents that are records or lines, of one file or of several."""
    locations = documents.locations
    refuse_if(locations.starts[indices].min() < 0, "rows before the first")
    is_list = kind == Kind.IDS
    cuts = np.flatnonzero(np.diff(locations.file[indices])) + 1
    made = []
    for mine in np.split(indices, cuts):
        path = documents.path(int(mine[0]))
        spans = locations.starts[mine], locations.lengths[mine]
        try:
            own = Buffer() if len(cuts) else buffer
            read = documents.record_files.texts(path, kind, spans, own)
        except (OSError, RecordError) as error:
            read = Contents(
                np.zeros(PADDING, np.uint8), *spans, dict.fromkeys(range(len(mine)), error)
            )
        changed = bool(read.failed) and not is_list and len(documents.changed(mine[:1])) > 0
        skipped = [
            (int(mine[at]), *_explain(why, changed=changed)) for at, why in read.failed.items()
        ]
        good = np.delete(np.arange(len(mine)), list(read.failed))
        mine = mine[good]
        names = [b""] * len(mine) if is_list or kind.is_text else documents.names.strings_at(mine)
        if kind in (Kind.MBOX, Kind.WARC) and len(mine):
            names = documents.record_files.declare(path, kind, locations.starts[mine], names)
        table, spans = StringTable.from_strings(names), (read.starts[good], read.lengths[good])
        batch = TextBatch(mine, table, read.text, *spans, skipped)
        most, form = documents.max_bytes, _FORMS.get(kind, Form.TEXT)
        made.append(replace(batch, is_text=kind.is_text, max_bytes=most, form=form))
    if len(made) == 1:
        return made[0]
    before = offsets_of(np.array([len(each.text) for each in made]))
    return replace(
        made[0],
        indices=np.concatenate([each.indices for each in made]),
        names=StringTable.concatenate([each.names for each in made]),
        text=np.concatenate([each.text for each in made]),
        starts=np.concatenate(
            [each.starts + start for each, start in zip(made, before, strict=False)]
        ),
        lengths=np.concatenate([each.lengths for each in made]),
        skipped=[each for some in made for each in some.skipped],
    )


def _explain(error: OSError | RecordError, *, changed: bool) -> tuple[Reason, str]:
    """Return why a document cannot be read. changed : its file is another one now."""
    if isinstance(error, OSError):
        return find_reason(error), describe_error(error)
    if changed:
        return Reason.CHANGED, "its file is not what was listed"
    return error.reason, error.detail
