"""Batches of documents, read into one buffer of text."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.document_list import DocumentList, check_files, refuse_if
from lshdup.documents.files import Buffer, read_files
from lshdup.documents.records import Kind, RecordError
from lshdup.kernels.helpers import PADDING
from lshdup.params import DEFAULT_MAX_BYTES
from lshdup.skipped import Reason, describe_error, find_reason

#: A batch has few enough documents to feed all threads, and few enough bytes for memory.
BATCH_DOCUMENTS = 512
BATCH_BYTES = 4 << 20


@dataclass(frozen=True)
class TextBatch:
    """The bytes of m documents, one after the other, in a buffer with room to load past the end.

    indices : int64 array of shape (m,), numbers in the list of documents.
    names : m names.
    text : uint8 array.
    starts, lengths : int64 arrays of shape (m,), bytes.
    skipped : (document, reason, detail) of documents that could not be read.
    is_text : whether the bytes are UTF-8 from their source, as in records.
    max_bytes : limit for a document that has to be unpacked.
    """

    indices: NDArray[np.int64]
    names: list[bytes]
    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    skipped: list[tuple[int, Reason, str]] = field(default_factory=list)
    is_text: bool = False
    max_bytes: int = DEFAULT_MAX_BYTES

    @classmethod
    def of(
        cls, indices: Iterable[int], texts: list[bytes], names: list[bytes] | None = None
    ) -> "TextBatch":
        """Return a batch of texts in memory; without names, no document is named like HTML."""
        buffer = bytearray().join([*texts, bytes(PADDING)])
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        starts = np.cumsum(lengths) - lengths
        return cls(
            np.array(list(indices), np.int64),
            names or [b""] * len(texts),
            np.frombuffer(buffer, np.uint8),
            starts,
            lengths,
        )


def batches(documents: DocumentList, indices: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield `indices` in runs of at most BATCH_DOCUMENTS documents and about BATCH_BYTES bytes.

    Parts of files come in the order of their locations, and each run is of one `Kind`.
    """
    locations = documents.locations
    if locations is not None:
        check_files(locations, indices)
    for run in [indices] if locations is None else locations.reading_order(indices):
        for some in runs(documents.spans[run], BATCH_DOCUMENTS, BATCH_BYTES):
            yield run[some]


def runs(sizes: NDArray[np.integer], most: int, most_bytes: int) -> Iterator[slice]:
    """Yield runs of at most `most` things and `most_bytes` bytes, or of one larger thing.

    >>> list(runs(np.array([1, 1, 1, 9, 5]), 2, 8))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None), slice(4, 5, None)]
    """
    ends = np.cumsum(sizes, dtype=np.int64)
    start = 0
    while start < len(sizes):
        before = int(ends[start] - sizes[start])
        fits = int(np.searchsorted(ends, before + most_bytes, side="right"))
        end = min(max(fits, start + 1), start + most)
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
    names = documents.names.strings_at(indices)
    locations, sizes = documents.locations, documents.sizes[indices]
    if locations is not None and len(indices):
        files = check_files(locations, indices)
        kind = locations.kinds[files[0]]
        if kind == Kind.IDS:
            return _read_lines(documents, indices, names)
        if kind != Kind.FILE:
            return _read_records(documents, indices, Kind(int(kind)), buffer or Buffer())
    refuse_if(b"\0" in b"".join(names), "a path with NUL in it")
    paths = names if not documents.home else [os.path.join(documents.home, name) for name in names]  # noqa: PTH118 (bytes path)
    contents = read_files(paths, sizes, buffer, documents.max_bytes)
    if not contents.failed:
        return TextBatch(
            indices,
            names,
            contents.text,
            contents.starts,
            contents.lengths,
            max_bytes=documents.max_bytes,
        )
    skipped = [
        (int(indices[i]), find_reason(error), describe_error(error))
        for i, error in contents.failed.items()
    ]
    good = np.delete(np.arange(len(indices)), list(contents.failed))
    names = [names[i] for i in good.tolist()]
    starts, lengths = contents.starts[good], contents.lengths[good]
    return TextBatch(
        indices[good], names, contents.text, starts, lengths, skipped, max_bytes=documents.max_bytes
    )


def _read_lines(
    documents: DocumentList, indices: NDArray[np.int64], names: list[bytes]
) -> TextBatch:
    """Read documents that are lines of id lists."""
    assert documents.locations is not None
    locations = documents.locations.take(indices)
    read: list[int] = []
    texts: list[bytes] = []
    skipped: list[tuple[int, Reason, str]] = []
    for position, (index, start, length) in enumerate(
        zip(indices.tolist(), locations.starts.tolist(), locations.lengths.tolist(), strict=True)
    ):
        try:
            with open(documents.path(index), "rb") as file:  # noqa: PTH123 (bytes path)
                file.seek(start)
                text = file.read(length)
        except OSError as error:
            skipped.append((index, find_reason(error), describe_error(error)))
            continue
        if len(text) < length:
            skipped.append((index, Reason.CHANGED, "its list has become shorter"))
            continue
        texts.append(text)
        read.append(position)
    batch = TextBatch.of(indices[read].tolist(), texts, [names[position] for position in read])
    return replace(batch, skipped=skipped)


def _read_records(
    documents: DocumentList, indices: NDArray[np.int64], kind: Kind, buffer: Buffer
) -> TextBatch:
    """Read documents that are records, of one file or of several."""
    assert documents.locations is not None
    locations = documents.locations.take(indices)
    refuse_if(locations.starts.min() < 0, "rows before the first")
    cuts = np.flatnonzero(np.diff(locations.file)) + 1
    made, skipped = [], []
    for run in np.split(np.arange(len(indices)), cuts):
        path = documents.path(int(indices[run[0]]))
        try:
            text, starts, lengths, failed = documents.record_files.texts(
                path,
                kind,
                locations.starts[run],
                locations.lengths[run],
                Buffer() if len(cuts) else buffer,
            )
        except OSError as error:
            skipped += [
                (index, find_reason(error), describe_error(error))
                for index in indices[run].tolist()
            ]
            continue
        except RecordError as error:
            skipped += _explain_records(documents, indices[run], [error] * len(run))
            continue
        if failed:
            skipped += _explain_records(
                documents, indices[run[list(failed)]], list(failed.values())
            )
            good = np.delete(np.arange(len(run)), list(failed))
            run, starts, lengths = run[good], starts[good], lengths[good]
        made.append(TextBatch(indices[run], [b""] * len(run), text, starts, lengths, is_text=True))
    if not made:
        return replace(TextBatch.of([], []), skipped=skipped, is_text=True)
    if len(made) == 1:
        return replace(made[0], skipped=skipped)
    before = np.cumsum([0, *(len(each.text) for each in made)])
    return TextBatch(
        np.concatenate([each.indices for each in made]),
        [b""] * sum(len(each.indices) for each in made),
        np.concatenate([each.text for each in made]),
        np.concatenate(
            [each.starts + start for each, start in zip(made, before[:-1], strict=True)]
        ),
        np.concatenate([each.lengths for each in made]),
        skipped,
        is_text=True,
    )


def _explain_records(
    documents: DocumentList, indices: NDArray[np.int64], errors: list[RecordError]
) -> list[tuple[int, Reason, str]]:
    """Return why records of one file give no document: an error, or that the file has changed."""
    if len(documents.changed(indices[:1])):
        return [
            (index, Reason.CHANGED, "its file is not what was listed") for index in indices.tolist()
        ]
    return [
        (index, error.reason, error.detail)
        for index, error in zip(indices.tolist(), errors, strict=True)
    ]
