"""Where documents are that are parts of files."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import IN_MEMORY, Arrays, slices_of
from lshdup.base.frozen import dataclass
from lshdup.base.ragged import StringTable
from lshdup.errors import RERUN, ArtifactError
from lshdup.sources.records import ROWS, Kind


@dataclass(frozen=True)
class Locations:
    """Where n documents are, if not every one is a file of its own.

    paths : m files.
    kinds : uint8 array of shape (m,), the `Kind` of the documents in each file.
    file : int64 array of shape (n,), number of the file of each document.
    starts, lengths : int64 arrays of shape (n,), first byte and number of bytes; of Parquet, the
        number of rows before the record and the bytes of an average text.
    numbers : int64 array of shape (n,), number of each record in its file, from 1; else 0.
    """

    paths: StringTable
    kinds: NDArray[np.uint8]
    file: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    numbers: NDArray[np.int64]

    @classmethod
    def of_files(cls, paths: StringTable, sizes: NDArray[np.int64]) -> "Locations":
        """Return the locations of documents that are whole files.

        paths : n files. sizes : int64 array of shape (n,), bytes.
        """
        none = np.zeros(len(paths), np.int64)
        file = np.arange(len(paths))
        return cls(paths, none.astype(np.uint8), file, none, sizes, none)

    def files_of(self, indices: Any) -> Any:
        """Return the numbers of the files of documents. Raises ArtifactError for wrong numbers."""
        try:
            file = self.file[indices]
            refuse_if(
                np.size(file) and (np.min(file) < 0 or np.max(file) >= len(self.paths)),
                "files that are not there",
            )
        except IndexError:
            refuse_if(True, "documents that are not there")
        return file

    def take(self, indices: NDArray[np.int64], arrays: Arrays = IN_MEMORY) -> "Locations":
        """Return the locations of the documents at `indices`, in that order.

        arrays : makes the result.
        """
        columns = (self.file, self.starts, self.lengths, self.numbers)
        return Locations(self.paths, self.kinds, *(arrays.take(each, indices) for each in columns))

    def _files(self) -> Iterable[tuple[bytes, int]]:
        return zip(self.paths, self.kinds.tolist(), strict=True)

    def are_records(self) -> NDArray[np.bool_]:
        """Return which documents are records: bool array of shape (n,)."""
        rows: NDArray[np.bool_] = (self.kinds >= Kind.JSON)[self.file]
        return rows

    def are_rows(self) -> NDArray[np.bool_]:
        """Return which documents are rows of files: bool array of shape (n,)."""
        rows: NDArray[np.bool_] = np.isin(self.kinds, ROWS)[self.file]
        return rows

    def same_as(
        self, other: "Locations"
    ) -> Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]:
        """Return the function that tells whether documents are where documents of another list are:
        it takes their numbers here and there, int64 arrays of shape (m,), and returns a bool array.
        """
        numbers = {each: number for number, each in enumerate(other._files())}
        there = np.array([numbers.get(each, -1) for each in self._files()], np.int64)

        def compare(mine: NDArray[np.int64], theirs: NDArray[np.int64]) -> NDArray[np.bool_]:
            same: NDArray[np.bool_] = there[self.file[mine]] == other.file[theirs]
            same &= self.starts[mine] == other.starts[theirs]
            same &= self.lengths[mine] == other.lengths[theirs]
            return same

        return compare

    def reading_order(self, indices: NDArray[np.int64], arrays: Arrays) -> list[NDArray[np.int64]]:
        """Return indices in runs of one kind, in the order of files and of locations in them.

        So every file is read from front to back. arrays : makes the result.
        """
        order = arrays.order(
            len(indices),
            [
                lambda at: self.kinds[self.file[indices[at]]],
                lambda at: self.file[indices[at]],
                lambda at: self.starts[indices[at]],
            ],
        )
        counts = np.zeros(256, np.int64)
        for some in slices_of(len(indices)):
            counts += np.bincount(self.kinds[self.file[indices[some]]], minlength=256)
        return np.split(arrays.take(indices, order), np.cumsum(counts[counts > 0])[:-1])


def refuse_if(wrong: object, what: str) -> None:
    """Raise ArtifactError if a number of an artifact is wrong: not all are checked when it is
    opened.
    """
    if wrong:
        message = f"the store names {what}: it is damaged"
        raise ArtifactError(message, RERUN)
