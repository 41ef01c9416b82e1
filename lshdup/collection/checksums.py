"""SHA-256 of documents as they are stored, for lists that people and scripts act on."""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import Buffer
from lshdup.base.run import Run
from lshdup.collection.equal_files import digest_file
from lshdup.sources.document_list import DocumentList, split_by_list
from lshdup.sources.files import read_spans
from lshdup.sources.records import Kind, RecordError
from lshdup.sources.text_batches import batches

#: Kinds of parts whose bytes stand in their file, or in what is packed there. Of the others the
#: content is meant: of a member of an archive, or the text of a row of Parquet.
_IN_FILE = (Kind.IDS, Kind.JSON, Kind.CSV, Kind.MBOX, Kind.SPLIT)

#: Kinds whose bytes are the ones that `same` compares.
_AS_COMPARED = (Kind.FILE, Kind.TAR, Kind.ZIP)


@dataclass(frozen=True)
class Checksums:
    """Checksums of m documents.

    documents : int64 array of shape (m,), ascending.
    digests : uint8 array of shape (m, 32), SHA-256 of each.
    sizes : int64 array of shape (m,), the bytes that were read; -1 if the document has changed
        since it was listed, or cannot be read.
    as_compared : bool array of shape (m,), whether these bytes are those that `same` compares.
    """

    documents: NDArray[np.int64]
    digests: NDArray[np.uint8]
    sizes: NDArray[np.int64]
    as_compared: NDArray[np.bool_]

    def rows(self, documents: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where documents are in these arrays."""
        return np.searchsorted(self.documents, documents)

    def words(self, documents: NDArray[np.int64]) -> list[str]:
        """Return the digests of documents as hexadecimal digits."""
        digits = self.digests[self.rows(documents)].tobytes().hex()
        return [digits[start:end] for start, end in pairwise(range(0, len(digits) + 1, 64))]

    def differ(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which pairs of documents differ, of which the bytes were compared: bool array."""
        a, b = self.rows(left), self.rows(right)
        different: NDArray[np.bool_] = (self.digests[a] != self.digests[b]).any(axis=1)
        return different & self.as_compared[a] & self.as_compared[b]


def make_checksums(run: Run, sides: Sequence[DocumentList], chosen: NDArray[np.int64]) -> Checksums:
    """Return the checksums of some documents, each of which is read once.

    sides : the documents of all sides, numbered from the first list to the last.
    chosen : int64 array, ascending.

    Memory: 41 bytes a document; of a file some 100 KB at a time, of parts of files a batch.
    """
    arrays, split = run.arrays, split_by_list(sides, chosen)
    parts = [(side, first, some) for side, first, own in split for some in batches(run, side, own)]
    digests = arrays.zeros((len(chosen), 32), np.uint8)
    sizes, as_compared = arrays.full(len(chosen), -1, np.int64), arrays.zeros(len(chosen), np.bool_)
    done = 0

    def read(part: tuple[DocumentList, int, NDArray[np.int64]]) -> int:
        documents, first, indices = part
        places = np.searchsorted(chosen, indices + first)
        for place, found in zip(places.tolist(), _read(documents, indices), strict=True):
            sizes[place] = found[0]
            digests[place] = np.frombuffer(found[1], np.uint8)
        as_compared[places] = np.isin(documents.kinds_of(indices), _AS_COMPARED)
        sizes[np.searchsorted(chosen, documents.changed(indices) + first)] = -1
        return len(indices)

    with ThreadPoolExecutor(run.jobs) as pool:
        for finished in pool.map(read, parts):
            done += finished
            run.progress("checksums", done, len(chosen))
    return Checksums(chosen, digests, sizes, as_compared)


#: Of a document that cannot be read.
_NONE = -1, bytes(32)


def _read(documents: DocumentList, indices: NDArray[np.int64]) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes and the digest of each document of a batch: they are of one kind."""
    kind = Kind(int(documents.kinds_of(indices[:1])[0]))
    if kind == Kind.FILE:
        for path in map(documents.path, indices.tolist()):
            try:
                yield digest_file(path)
            except OSError:
                yield _NONE
        return
    cuts = np.flatnonzero(np.diff(documents.locations.file[indices])) + 1
    for mine in np.split(indices, cuts):
        yield from _read_parts(documents, mine, kind)


def _read_parts(
    documents: DocumentList, mine: NDArray[np.int64], kind: Kind
) -> Iterator[tuple[int, bytes]]:
    """Yield the same of parts of one file, in the order of their locations."""
    locations, files, path = documents.locations, documents.record_files, documents.path(mine[0])
    spans, buffer = (locations.starts[mine], locations.lengths[mine]), Buffer()
    try:
        if kind in _IN_FILE:
            with files.lines(path, kind) as file:
                read = read_spans(file, spans, buffer)
        else:
            read = files.texts(path, kind, spans, buffer)
    except (OSError, RecordError):
        yield from [_NONE] * len(mine)
        return
    found = zip(read.starts.tolist(), read.lengths.tolist(), strict=True)
    for at, (place, size) in enumerate(found):
        digest = hashlib.sha256(read.text[place : place + size].data).digest()
        yield _NONE if at in read.failed else (size, digest)
