"""Files of rows that are open: the rows they have, and the texts of some, from wherever they can be had at any place. Called by
documents.py, on all its threads.

What gzip or zstd made cannot be read at any place: it is unpacked once in the life of a process, into a nameless file. What is known of a
Parquet file, and which of its texts are kept, outlives its being open.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.files import Buffer
from lshdup.documents.records import Kind, RecordError, RecordFields, RecordList
from lshdup.documents.text_cache import Scratch
from lshdup.errors import InputError
from lshdup.skipped import Reason
from lshdup.utils.compression import PIP, PackedError, can_unpack, is_packed, unpack_to

if TYPE_CHECKING:
    from lshdup.documents.parquet import ParquetFile

#: Parquet files that stay open when no thread reads them.
_OPEN_FILES = 2

_Stamp = tuple[int, int]  # size and time of a file: another one is another file


class RecordFiles:
    """Where rows come from. For any thread.

    folder : where to unpack; None: where the system keeps such files. fields : where text and id are in a row. longest : texts of more
    bytes are left out.
    """

    def __init__(
        self,
        folder: Path | None = None,
        fields: RecordFields = RecordFields(),
        longest: int = 1 << 31,
    ) -> None:
        self.fields = fields
        self._folder = folder
        self._longest = longest
        self._lock = threading.Lock()
        self._unpacked: dict[tuple[bytes, _Stamp], IO[bytes]] = {}
        self._scratch = Scratch(folder)
        self._parquet: dict[tuple[bytes, _Stamp], ParquetFile] = {}
        self._users: dict[
            tuple[bytes, _Stamp], int
        ] = {}  # of those that may be open: threads that read them; the last in use last

    def __reduce__(self) -> tuple[type["RecordFiles"], tuple[Path | None, RecordFields, int]]:
        """Pickled without what is open, which is opened again when it is asked for."""
        return RecordFiles, (self._folder, self.fields, self._longest)

    def __del__(self) -> None:
        for file in self._unpacked.values():
            file.close()
        self._scratch.close()

    def rows(self, path: bytes, kind: Kind) -> RecordList:
        """The rows of a file. Raises RecordError if it has none to give, OSError if it cannot be read."""
        if kind == Kind.PARQUET:
            with self._parquet_file(path) as parquet:
                return parquet.rows(self.fields.id)
        from lshdup.documents import jsonlines  # here, because a query waits for every import

        with self.lines(path) as file:
            return jsonlines.list_records(file, self.fields, self._longest)

    def texts(
        self,
        path: bytes,
        kind: Kind,
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
        buffer: Buffer,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], dict[int, RecordError]]:
        """The texts of some rows of one file, by what `rows` said of them, ascending: uint8 array with room to load past the end, int64
        starts and lengths of shape (n,) in it, and why others have none. Raises what `rows` does.
        """
        if kind == Kind.PARQUET:
            with self._parquet_file(path) as parquet:
                return parquet.texts(starts, self._longest, buffer)
        from lshdup.documents import jsonlines

        with self.lines(path) as file:
            return jsonlines.read_texts(file, starts, lengths, self.fields.text, buffer)

    @contextmanager
    def lines(self, path: bytes) -> Iterator[int]:
        """The descriptor of a file of lines, unpacked if it has to be. Raises what `rows` does."""
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (bytes path)
            head = os.pread(file.fileno(), 4, 0)
            if not is_packed(head):
                yield file.fileno()
                return
            if not can_unpack(head):
                message = f"{os.fsdecode(path)!r} is packed by zstd, which needs zstandard"
                raise InputError(message, PIP)
            with self._lock:  # whoever else wants it waits
                known = path, _stamp(file.fileno())
                if known not in self._unpacked:
                    try:
                        self._unpacked[known] = unpack_to(path, self._folder, self._longest)
                    except PackedError as error:
                        raise RecordError(Reason.DAMAGED, str(error)) from None
                unpacked = self._unpacked[known]
        yield unpacked.fileno()

    @contextmanager
    def _parquet_file(self, path: bytes) -> Iterator["ParquetFile"]:
        """A Parquet file, which nobody closes meanwhile."""
        from lshdup.documents.parquet import ParquetFile

        status = os.stat(path)
        known = path, (status.st_size, status.st_mtime_ns)
        with self._lock:
            if known not in self._parquet:
                self._parquet[known] = ParquetFile(path, self.fields.text, self._scratch)
            self._users[known] = self._users.pop(known, 0) + 1
        try:
            yield self._parquet[known]
        finally:
            with self._lock:
                self._users[known] -= 1
                idle = [each for each, users in self._users.items() if not users]
                for each in idle[: max(0, len(idle) - _OPEN_FILES)]:
                    del self._users[each]
                    self._parquet[each].close()


def _stamp(file: int) -> _Stamp:
    status = os.fstat(file)
    return status.st_size, status.st_mtime_ns
