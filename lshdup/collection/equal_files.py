"""Documents that are compared by their bytes alone: which of them have to be read, and their
fingerprints.

A file is read only if another document has its size. Its fingerprint is the first half of its
SHA-256: what is equal by it may be deleted, also where somebody made the files for that.
"""

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lshdup.base.memory import Buffer
from lshdup.base.ragged import distinct
from lshdup.base.skipped import Reason, describe_error, find_reason
from lshdup.base.system import READ
from lshdup.collection.collection import Collection
from lshdup.compare.scored_pairs import contains
from lshdup.shingling.shingler import NO_SETS, ShingleBatch, Skips
from lshdup.sources.document_list import DocumentList
from lshdup.sources.records import Kind
from lshdup.sources.text_batches import BATCH_BYTES, read_batch

_I64 = NDArray[np.int64]
_U64 = NDArray[np.uint64]

#: Files, and parts of files whose bytes are counted before they are read.
_COUNTED = {
    Kind.FILE, Kind.TAR, Kind.ZIP, Kind.MBOX, Kind.SPLIT, Kind.SECTION, Kind.HTML_SECTION,
    Kind.PDF_PAGE,
}  # fmt: skip

_CHANGED = Reason.CHANGED, "its size is not what was listed"


def find_shared_sizes(lists: Sequence[DocumentList], least: int) -> list[NDArray[np.bool_]]:
    """Return for each list which of its documents may have the bytes of another of any list: bool
    arrays.

    These are the documents of a size that occurs twice. If there are parts of files whose bytes are
    not counted before they are read, as texts of rows, every document is read.

    least : bytes from which on documents are compared.
    """
    if not all(each.kinds <= _COUNTED for each in lists):
        return [np.ones(len(each), bool) for each in lists]
    every = np.concatenate([each.spans for each in lists])
    sizes, counts = distinct(every)
    shared = sizes[(counts > 1) & (sizes >= max(least, 1))]
    return [contains(shared, np.asarray(each.spans)) for each in lists]


def digest_documents(documents: DocumentList, indices: _I64, buffer: Buffer) -> ShingleBatch:
    """Return documents of one kind with their fingerprints in the place of sets: of the first 128
    bits of SHA-256, byte_prints, never 0, and text_prints. A file of another size than when it was
    listed is skipped.

    A large file is read in pieces. indices : int64 array. buffer : memory to read into.
    """
    expected = np.asarray(documents.spans[indices])
    if len(indices) == 1 and expected[0] > BATCH_BYTES and documents.is_file(int(indices[0])):
        index = int(indices[0])
        try:
            size, digest = digest_file(documents.path(index))
        except OSError as error:
            return _batch_of([], [], [], [(index, find_reason(error), describe_error(error))])
        if size != expected[0]:
            return _batch_of([], [], [], [(index, *_CHANGED)])
        return _batch_of(indices, expected, [digest], [])
    batch = read_batch(documents, indices, buffer)
    good, lost = np.ones(len(batch.indices), bool), list(batch.skipped)
    if batch.are_files:
        good = batch.lengths == documents.sizes[batch.indices]
        lost += [(index, *_CHANGED) for index in batch.indices[~good].tolist()]
    starts, sizes, view = batch.starts[good], batch.lengths[good], batch.text.data
    each = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
    digests = [_sha256(view[start:end]) for start, end in each]
    return _batch_of(batch.indices[good], sizes, digests, lost)


def digest_file(path: bytes) -> tuple[int, bytes]:
    """Return the size and the SHA-256 of a file, which is read in pieces. Raises OSError."""
    from hashlib import file_digest  # Imported here to keep the start of every command fast.

    with os.fdopen(os.open(path, READ), "rb", buffering=0) as file:
        digest = file_digest(file, "sha256").digest()
        return file.tell(), digest


def _sha256(data: bytes | memoryview) -> bytes:
    from hashlib import sha256  # Imported here to keep the start of every command fast.

    return sha256(data).digest()


def _batch_of(
    indices: ArrayLike, sizes: ArrayLike, digests: list[bytes], skipped: Skips
) -> ShingleBatch:
    first, second = np.ascontiguousarray(_prints_of(digests).T)
    counts = np.asarray(sizes, np.int64)
    columns = {"set_sizes": counts, "byte_prints": first, "text_prints": second}
    return ShingleBatch(np.asarray(indices, np.int64), NO_SETS, columns, skipped)


def _prints_of(digests: list[bytes]) -> _U64:
    prints = np.frombuffer(b"".join(digests), "<u8").reshape(-1, 4)[:, :2].astype(np.uint64)
    return np.maximum(prints, np.uint64(1))


def complete(collection: Collection, first: int) -> Collection:
    """Return a collection with fingerprints of the documents that were not read, of which each is
    another one than any other: 0, and a number of its own; empty ones have that of no bytes.

    first : the first of these numbers: documents of two sides have different ones.
    """
    columns = {name: np.array(column) for name, column in collection.columns.items()}
    spans = np.asarray(collection.documents.spans)
    unread = np.flatnonzero(columns["byte_prints"] == 0)
    columns["set_sizes"][unread] = spans[unread]
    columns["text_prints"][unread] = first + unread + 1
    empty, prints = unread[spans[unread] == 0], _prints_of([_sha256(b"")])
    columns["byte_prints"][empty], columns["text_prints"][empty] = prints[0]
    columns["fingerprints"] = columns["byte_prints"]
    return replace(collection, columns=columns, saved_identity="")


def forget_unread(collection: Collection) -> Collection:
    """Return a collection in which no later run finds the documents that were not read: their files
    have a time that none can have.
    """
    documents, is_unread = collection.documents, collection.columns["byte_prints"] == 0
    mtimes = np.where(is_unread, np.iinfo(np.int64).min, documents.mtimes)
    return replace(collection, documents=replace(documents, mtimes=mtimes))


def leave_out_small(collection: Collection, least: int) -> Collection:
    """Return a collection in which documents of fewer bytes are not compared: they have no shingle.

    Nor are documents that were not read because an earlier run compared larger ones only.
    """
    sizes, (shared,) = collection.sizes, find_shared_sizes([collection.documents], least)
    is_known = (collection.columns["byte_prints"] != 0) | ~shared
    compared = np.where((sizes >= least) & is_known, np.maximum(sizes, 1), 0)
    return replace(collection, columns={**collection.columns, "set_sizes": compared})
