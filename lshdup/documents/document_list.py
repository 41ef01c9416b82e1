"""An ordered list of documents, where each is, and their bytes in batches. finding.py makes the list; called by collection.py.

Inputs are read here and in finding.py only, by means of files.py and openrows.py. What a byte means is not decided here (formats.py,
shingles.py).
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.files import Buffer, read_files
from lshdup.documents.locations import Places
from lshdup.documents.row_files import OpenRows
from lshdup.documents.rows import Kind, RowError, RowFields
from lshdup.errors import ArtifactError
from lshdup.params import DEFAULT_FORMATS, DEFAULT_MAX_BYTES, FormatLimits
from lshdup.skipped import LeftOut as LeftOut
from lshdup.skipped import Reason as Reason
from lshdup.skipped import detail_of, reason_of
from lshdup.utils.ragged import PADDING, Check, StringTable, distinct, trusted

#: Batches end at whichever comes first: few enough documents to feed all threads, few enough bytes to stay in memory.
BATCH_DOCUMENTS = 512
BATCH_BYTES = 4 << 20


@dataclass(frozen=True)
class DocumentList:
    """Documents in byte order of their names.

    names : n names. sizes, mtimes : int64 arrays of shape (n,), bytes and nanoseconds of the file a document is in. places : where they
    are; None where each is a whole file and names are paths. home : the folder that names and paths start from; empty: the current one.
    max_bytes : a file that is larger when it is read is not read. opened : where rows are read from, and which of their fields.
    formats : bounds for reading office documents. check : told what of the arrays is used.
    """

    names: StringTable
    sizes: NDArray[np.int64]
    mtimes: NDArray[np.int64]
    places: Places | None = None
    home: bytes = b""
    max_bytes: int = DEFAULT_MAX_BYTES
    opened: OpenRows = field(default_factory=OpenRows, compare=False)
    formats: FormatLimits = DEFAULT_FORMATS
    check: Check = trusted

    def __len__(self) -> int:
        return len(self.names)

    def check_rows(self, indices: NDArray[np.int64], *more: NDArray[Any]) -> None:
        """Tell `check` that these documents are looked at: what files they are, where in them, and `more` columns."""
        places = () if self.places is None else (self.places.file, self.places.starts, self.places.lengths)
        for column in (self.sizes, self.mtimes, *places, *more):
            self.check(column, indices, indices + 1)

    def path(self, index: int) -> bytes:
        """Where to read a document from, as seen from the current folder."""
        return self._path(self.names[index] if self.places is None else self.places.paths[self._files_of(index)])

    def _files_of(self, indices: Any) -> Any:
        """In which of the files documents are."""
        assert self.places is not None
        self.check(self.places.file, indices, indices + 1)
        return _checked(self.places, indices)

    def file_path(self, number: int) -> bytes:
        """Where a file is that documents are parts of, as seen from the current folder."""
        assert self.places is not None
        return self._path(self.places.paths[number])

    def _path(self, name: bytes) -> bytes:
        _refuse_if(b"\0" in name, "a path with NUL in it")
        return os.path.join(self.home, name)  # noqa: PTH118 (bytes path)

    def is_file(self, index: int) -> bool:
        """Whether a document is a whole file."""
        return self.places is None or bool(self.places.kinds[self._files_of(index)] == Kind.FILE)

    def where(self, index: int) -> str:
        """Where a document is, if its name does not say so."""
        if self.places is None:
            return ""
        kind = self.places.kinds[self._files_of(index)]
        if kind == Kind.FILE or (kind != Kind.IDS and not self.opened.fields.id):
            return ""
        path = os.fsdecode(self.path(index))
        return f"row {self.places.starts[index] + 1} of {path}" if kind == Kind.PARQUET else f"in {path}"

    def changed(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of these documents have vanished, or have another size or time than when they were listed. Opens none."""
        self.check_rows(indices)
        firsts, file = indices, np.arange(len(indices))
        if self.places is not None:  # one look at each file
            files = self._files_of(indices)
            different, counts = distinct(files)
            file = np.searchsorted(different, files)
            firsts = indices[np.argsort(files, kind="stable")[np.cumsum(counts) - counts]]
        gone = np.zeros(len(firsts), bool)
        for at, index in enumerate(firsts.tolist()):
            try:
                status = os.stat(self.path(index))
                gone[at] = (status.st_size, status.st_mtime_ns) != (self.sizes[index], self.mtimes[index])
            except OSError:
                gone[at] = True
        return indices[gone[file]]

    def typed_names(self, indices: NDArray[np.int64]) -> list[bytes]:
        """Names as they would be typed from the current folder; ids are what they are."""
        try:
            names = list(self.names.take(indices))
        except IndexError:
            _refuse_if(True, "documents whose names are not there")
        if not self.home:
            return names
        are_paths = np.ones(len(names), bool)
        if self.places is not None:
            kinds = self.places.kinds[self._files_of(indices)]
            are_paths = (kinds == Kind.FILE) | ((kinds != Kind.IDS) & (not self.opened.fields.id))
        return [
            typed_name(os.path.relpath(os.path.join(self.home, name))) if is_path else name  # noqa: PTH118 (bytes path)
            for name, is_path in zip(names, are_paths.tolist(), strict=True)
        ]

    def take(self, indices: NDArray[np.int64]) -> "DocumentList":
        """The documents at `indices`, in that order."""
        self.check_rows(indices)
        places = None if self.places is None else self.places.take(indices)
        return replace(self, names=self.names.take(indices), sizes=self.sizes[indices], mtimes=self.mtimes[indices], places=places)

    def are_paths(self) -> bool:
        """Whether names begin with a path, as far as is known; lines of id lists do not."""
        return self.places is None or not (self.places.kinds == Kind.IDS).any()

    def rows_in(self, path: bytes) -> bool:
        """Whether documents of this list are rows of that file."""
        return self.places is not None and (path in list(self.places.paths.take(np.flatnonzero(self.places.kinds >= Kind.JSON))))

    @property
    def row_fields(self) -> RowFields | None:
        """Where in a row text and name are, if there are rows among the documents."""
        return self.opened.fields if self.places is not None and (self.places.kinds >= Kind.JSON).any() else None

    @property
    def spans(self) -> NDArray[np.int64]:
        """int64 array of shape (n,): bytes to read for each document."""
        return self.sizes if self.places is None else self.places.lengths


@dataclass(frozen=True)
class TextBatch:
    """The bytes of some documents, one after the other, in a buffer with room to load past the end.

    indices : int64 array of shape (m,), which documents of the list these are. names : theirs. text : uint8 array. starts, lengths :
    int64 arrays of shape (m,). left_out : (document, reason, detail) for those that could not be read. is_text : they are UTF-8, or meant
    to be, because they were texts where they come from, and not files. max_bytes : what may be made of one that has to be unpacked.
    """

    indices: NDArray[np.int64]
    names: list[bytes]
    text: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    left_out: list[tuple[int, Reason, str]] = field(default_factory=list)
    is_text: bool = False
    max_bytes: int = DEFAULT_MAX_BYTES

    @classmethod
    def of(cls, indices: Iterable[int], texts: list[bytes], names: list[bytes] | None = None) -> "TextBatch":
        """A batch of texts that are in memory already; without names, none of them is named like HTML."""
        buffer = bytearray().join([*texts, bytes(PADDING)])
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        starts = np.cumsum(lengths) - lengths
        return cls(np.array(list(indices), np.int64), names or [b""] * len(texts), np.frombuffer(buffer, np.uint8), starts, lengths)


def typed_name(path: bytes) -> bytes:
    """A path as it would be typed from the current folder: no ``./`` in front unless the name begins with ``-``.

    ``..`` stays: behind a symbolic link it means another folder than the text suggests.

    >>> typed_name(b"./docs//a.txt"), typed_name(b"-x"), typed_name(b"../y/"), typed_name(b"./")
    (b'docs/a.txt', b'./-x', b'../y', b'.')
    """
    name = b"/".join(part for part in path.split(b"/") if part not in (b"", b"."))
    if path.startswith(b"/"):
        return b"/" + name
    return b"./" + name if name.startswith(b"-") else name or b"."


def batches(documents: DocumentList, indices: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Cut `indices` into runs of at most BATCH_DOCUMENTS documents and about BATCH_BYTES bytes.

    Parts of files come in the order of their places, so that a file is read from front to back, and each run is of one `Kind`.
    """
    places = documents.places
    if places is not None:
        _checked(places, indices)
    for run in [indices] if places is None else places.reading_order(indices):
        for some in runs(documents.spans[run], BATCH_DOCUMENTS, BATCH_BYTES):
            yield run[some]


def runs(sizes: NDArray[np.integer], most: int, most_bytes: int) -> Iterator[slice]:
    """Runs of at most so many things and so many bytes; or of one thing that is larger.

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


def read_batch(documents: DocumentList, indices: NDArray[np.int64], buffer: Buffer | None = None) -> TextBatch:
    """The bytes of some documents of one kind; those that cannot be read are in `left_out` and not in `indices`.

    buffer : memory for them, which the next batch may use again.
    Cost: one open, read and close a file, without the GIL. A file that grew or shrank since it was listed is read as it is now.
    Raises ArtifactError for a list that no folder can have given: it comes from an artifact that says what is not so.
    """
    documents.check_rows(indices)
    spans = documents.spans[indices]
    _refuse_if(len(indices) and (spans.min() < 0 or spans.max() >= 1 << 31), "documents of a size that none can have")
    names = documents.names.some(indices)
    places, sizes = documents.places, documents.sizes[indices]
    if places is not None and len(indices):
        files = _checked(places, indices)
        kind = places.kinds[files[0]]
        if kind == Kind.IDS:
            return _read_lines(documents, indices, names)
        if kind != Kind.FILE:
            return _read_rows(documents, indices, Kind(int(kind)), buffer or Buffer())
    _refuse_if(b"\0" in b"".join(names), "a path with NUL in it")
    paths = names if not documents.home else [os.path.join(documents.home, name) for name in names]  # noqa: PTH118 (bytes path)
    contents = read_files(paths, sizes, buffer, documents.max_bytes)
    if not contents.failed:
        return TextBatch(indices, names, contents.text, contents.starts, contents.lengths, max_bytes=documents.max_bytes)
    left_out = [(int(indices[i]), reason_of(error), detail_of(error)) for i, error in contents.failed.items()]
    good = np.delete(np.arange(len(indices)), list(contents.failed))
    names = [names[i] for i in good.tolist()]
    starts, lengths = contents.starts[good], contents.lengths[good]
    return TextBatch(indices[good], names, contents.text, starts, lengths, left_out, max_bytes=documents.max_bytes)


def _checked(places: Places, indices: Any) -> Any:
    """The files of some documents, which an artifact may have wrong."""
    try:
        file = places.file[indices]
        _refuse_if(np.size(file) and (np.min(file) < 0 or np.max(file) >= len(places.paths)), "files that are not there")
    except IndexError:
        _refuse_if(True, "documents that are not there")
    return file


def _refuse_if(wrong: object, what: str) -> None:
    """Of an artifact that is only looked into, not every number has been checked; where one would lead astray, this is called."""
    if wrong:
        message = f"the store names {what}: it is damaged"
        raise ArtifactError(message, "run the command with DOCS")


def _read_lines(documents: DocumentList, indices: NDArray[np.int64], names: list[bytes]) -> TextBatch:
    """Documents that are lines of id lists."""
    assert documents.places is not None
    places = documents.places.take(indices)
    read: list[int] = []
    texts: list[bytes] = []
    left_out: list[tuple[int, Reason, str]] = []
    for position, (index, start, length) in enumerate(zip(indices.tolist(), places.starts.tolist(), places.lengths.tolist(), strict=True)):
        try:
            with open(documents.path(index), "rb") as file:  # noqa: PTH123 (bytes path)
                file.seek(start)
                text = file.read(length)
        except OSError as error:
            left_out.append((index, reason_of(error), detail_of(error)))
            continue
        if len(text) < length:
            left_out.append((index, Reason.CHANGED, "its list has become shorter"))
            continue
        texts.append(text)
        read.append(position)
    batch = TextBatch.of(indices[read].tolist(), texts, [names[position] for position in read])
    return replace(batch, left_out=left_out)


def _read_rows(documents: DocumentList, indices: NDArray[np.int64], kind: Kind, buffer: Buffer) -> TextBatch:
    """Documents that are rows; they have no names that could tell HTML. Those of several files are put together."""
    assert documents.places is not None
    places = documents.places.take(indices)
    _refuse_if(places.starts.min() < 0, "rows before the first")
    cuts = np.flatnonzero(np.diff(places.file)) + 1
    made, left_out = [], []
    for run in np.split(np.arange(len(indices)), cuts):
        path = documents.path(int(indices[run[0]]))
        try:
            text, starts, lengths, failed = documents.opened.texts(
                path, kind, places.starts[run], places.lengths[run], Buffer() if len(cuts) else buffer
            )
        except OSError as error:
            left_out += [(index, reason_of(error), detail_of(error)) for index in indices[run].tolist()]
            continue
        except RowError as error:
            left_out += _of_rows(documents, indices[run], [error] * len(run))
            continue
        if failed:
            left_out += _of_rows(documents, indices[run[list(failed)]], list(failed.values()))
            good = np.delete(np.arange(len(run)), list(failed))
            run, starts, lengths = run[good], starts[good], lengths[good]
        made.append(TextBatch(indices[run], [b""] * len(run), text, starts, lengths, is_text=True))
    if not made:
        return replace(TextBatch.of([], []), left_out=left_out, is_text=True)
    if len(made) == 1:
        return replace(made[0], left_out=left_out)
    before = np.cumsum([0, *(len(each.text) for each in made)])
    return TextBatch(
        np.concatenate([each.indices for each in made]),
        [b""] * sum(len(each.indices) for each in made),
        np.concatenate([each.text for each in made]),
        np.concatenate([each.starts + start for each, start in zip(made, before[:-1], strict=True)]),
        np.concatenate([each.lengths for each in made]),
        left_out,
        is_text=True,
    )


def _of_rows(documents: DocumentList, indices: NDArray[np.int64], errors: list[RowError]) -> list[tuple[int, Reason, str]]:
    """Why rows of one file give no document: what is wrong with them, or that their file is another one now."""
    if len(documents.changed(indices[:1])):
        return [(index, Reason.CHANGED, "its file is not what was listed") for index in indices.tolist()]
    return [(index, error.reason, error.detail) for index, error in zip(indices.tolist(), errors, strict=True)]
