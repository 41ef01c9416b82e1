"""An ordered list of documents, where each is, and their bytes in batches. finding.py makes the list; called by collection.py.

Inputs are read here and in finding.py only, by means of files.py and openrows.py. What a byte means is not decided here (formats.py,
shingles.py).
"""

import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.locations import Locations
from lshdup.documents.record_files import RecordFiles
from lshdup.documents.records import Kind, RecordFields
from lshdup.errors import ArtifactError
from lshdup.params import DEFAULT_FORMATS, DEFAULT_MAX_BYTES, FormatLimits
from lshdup.utils.ragged import StringTable, distinct


@dataclass(frozen=True)
class DocumentList:
    """Documents in byte order of their names.

    names : n names. sizes, mtimes : int64 arrays of shape (n,), bytes and nanoseconds of the file a document is in. locations : where they
    are; None where each is a whole file and names are paths. home : the folder that names and paths start from; empty: the current one.
    max_bytes : a file that is larger when it is read is not read. record_files : where records are read from, and which of their fields.
    formats : bounds for reading office documents.
    """

    names: StringTable
    sizes: NDArray[np.int64]
    mtimes: NDArray[np.int64]
    locations: Locations | None = None
    home: bytes = b""
    max_bytes: int = DEFAULT_MAX_BYTES
    record_files: RecordFiles = field(default_factory=RecordFiles, compare=False)
    formats: FormatLimits = DEFAULT_FORMATS

    def __len__(self) -> int:
        return len(self.names)

    def path(self, index: int) -> bytes:
        """Where to read a document from, as seen from the current folder."""
        return self._path(
            self.names[index]
            if self.locations is None
            else self.locations.paths[self._files_of(index)]
        )

    def _files_of(self, indices: Any) -> Any:
        """In which of the files documents are."""
        assert self.locations is not None
        return _checked(self.locations, indices)

    def file_path(self, number: int) -> bytes:
        """Where a file is that documents are parts of, as seen from the current folder."""
        assert self.locations is not None
        return self._path(self.locations.paths[number])

    def _path(self, name: bytes) -> bytes:
        _refuse_if(b"\0" in name, "a path with NUL in it")
        return os.path.join(self.home, name)  # noqa: PTH118 (bytes path)

    def is_file(self, index: int) -> bool:
        """Whether a document is a whole file."""
        return self.locations is None or bool(
            self.locations.kinds[self._files_of(index)] == Kind.FILE
        )

    def where(self, index: int) -> str:
        """Where a document is, if its name does not say so."""
        if self.locations is None:
            return ""
        kind = self.locations.kinds[self._files_of(index)]
        if kind == Kind.FILE or (kind != Kind.IDS and not self.record_files.fields.id):
            return ""
        path = os.fsdecode(self.path(index))
        return (
            f"row {self.locations.starts[index] + 1} of {path}"
            if kind == Kind.PARQUET
            else f"in {path}"
        )

    def changed(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of these documents have vanished, or have another size or time than when they were listed. Opens none."""
        firsts, file = indices, np.arange(len(indices))
        if self.locations is not None:  # one look at each file
            files = self._files_of(indices)
            different, counts = distinct(files)
            file = np.searchsorted(different, files)
            firsts = indices[np.argsort(files, kind="stable")[np.cumsum(counts) - counts]]
        gone = np.zeros(len(firsts), bool)
        for at, index in enumerate(firsts.tolist()):
            try:
                status = os.stat(self.path(index))
                gone[at] = (status.st_size, status.st_mtime_ns) != (
                    self.sizes[index],
                    self.mtimes[index],
                )
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
        if self.locations is not None:
            kinds = self.locations.kinds[self._files_of(indices)]
            are_paths = (kinds == Kind.FILE) | (
                (kinds != Kind.IDS) & (not self.record_files.fields.id)
            )
        return [
            typed_name(os.path.relpath(os.path.join(self.home, name))) if is_path else name  # noqa: PTH118 (bytes path)
            for name, is_path in zip(names, are_paths.tolist(), strict=True)
        ]

    def take(self, indices: NDArray[np.int64]) -> "DocumentList":
        """The documents at `indices`, in that order."""
        locations = None if self.locations is None else self.locations.take(indices)
        return replace(
            self,
            names=self.names.take(indices),
            sizes=self.sizes[indices],
            mtimes=self.mtimes[indices],
            locations=locations,
        )

    def are_paths(self) -> bool:
        """Whether names begin with a path, as far as is known; lines of id lists do not."""
        return self.locations is None or not (self.locations.kinds == Kind.IDS).any()

    def has_records_of(self, path: bytes) -> bool:
        """Whether documents of this list are rows of that file."""
        return self.locations is not None and (
            path
            in list(self.locations.paths.take(np.flatnonzero(self.locations.kinds >= Kind.JSON)))
        )

    @property
    def has_parquet(self) -> bool:
        """Whether reading a document again may mean decoding many others."""
        return self.locations is not None and bool((self.locations.kinds == Kind.PARQUET).any())

    @property
    def record_fields(self) -> RecordFields | None:
        """Where in a row text and name are, if there are rows among the documents."""
        return (
            self.record_files.fields
            if self.locations is not None and (self.locations.kinds >= Kind.JSON).any()
            else None
        )

    @property
    def spans(self) -> NDArray[np.int64]:
        """int64 array of shape (n,): bytes to read for each document."""
        return self.sizes if self.locations is None else self.locations.lengths


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


def _checked(locations: Locations, indices: Any) -> Any:
    """The files of some documents, which an artifact may have wrong."""
    try:
        file = locations.file[indices]
        _refuse_if(
            np.size(file) and (np.min(file) < 0 or np.max(file) >= len(locations.paths)),
            "files that are not there",
        )
    except IndexError:
        _refuse_if(True, "documents that are not there")
    return file


def _refuse_if(wrong: object, what: str) -> None:
    """Of an artifact that is only looked into, not every number has been checked; where one would lead astray, this is called."""
    if wrong:
        message = f"the store names {what}: it is damaged"
        raise ArtifactError(message, "run the command with DOCS")
