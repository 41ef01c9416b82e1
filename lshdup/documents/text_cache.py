"""Texts that were decoded, and are kept in nameless files because they may be wanted again, here and there. Called by parquet.py.

A table of texts is decoded from its beginning on, for whichever of them; in such a file each is found at once, however many tables there
are and whichever of them are open.
"""

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.files import Buffer, read_spans
from lshdup.utils.arrow import Texts
from lshdup.utils.ragged import offsets_of
from lshdup.utils.scratch import NoRoomError, new_scratch, write_scratch


@dataclass(frozen=True)
class KeptTexts:
    """n texts in a nameless file: int64 offsets of shape (n + 1,) in it, and which are null."""

    file: IO[bytes]
    offsets: NDArray[np.int64]
    null: NDArray[np.bool_]

    def spans(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where some are, and how long: int64 arrays."""
        starts = self.offsets[rows]
        return starts, self.offsets[rows + 1] - starts

    def read(
        self, starts: NDArray[np.int64], lengths: NDArray[np.int64], buffer: Buffer
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """What is there, as `read_spans` gives it."""
        return read_spans(self.file.fileno(), starts, lengths, buffer)


class Scratch:
    """Nameless files that grow, as many as threads write at once: each has one to itself meanwhile. For any thread.

    folder : where they are; None: where the system keeps such files. full : there was no room once; nothing is kept any more.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.full = False
        self._folder = folder
        self._lock = threading.Lock()
        self._files: list[IO[bytes]] = []
        self._free: list[IO[bytes]] = []

    def close(self) -> None:
        """Nothing of it can be read any more."""
        for file in self._files:
            file.close()

    def keep(self, path: bytes, pieces: Iterable[Texts]) -> KeptTexts | None:
        """Texts that `path` holds, piece by piece, for as long as this is open; None if there is no room. Whatever `pieces` raises takes no
        room either. Memory: one piece, and 9 bytes a text.
        """
        if self.full:
            return None
        sizes, null = [np.zeros(0, np.int64)], [np.zeros(0, bool)]
        try:
            with self._file(path) as file:
                start = at = os.fstat(file.fileno()).st_size
                try:
                    for data, offsets, missing in pieces:
                        write_scratch(
                            file, data[offsets[0] : offsets[-1]].data, at, path, self._folder
                        )
                        at += int(offsets[-1] - offsets[0])
                        sizes.append(np.diff(offsets))
                        null.append(missing)
                except BaseException:
                    file.truncate(start)
                    raise
        except NoRoomError:
            self.full = True
            return None
        return KeptTexts(file, offsets_of(np.concatenate(sizes)) + start, np.concatenate(null))

    @contextlib.contextmanager
    def _file(self, path: bytes) -> Iterator[IO[bytes]]:
        """One that nobody else writes to. Raises NoRoomError."""
        with self._lock:
            file = self._free.pop() if self._free else None
        if file is None:
            file = new_scratch(path, self._folder)
            with self._lock:
                self._files.append(file)
        try:
            yield file
        finally:
            with self._lock:
                self._free.append(file)
