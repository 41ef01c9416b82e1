"""The journal of a long run: finished batches, appended as they come, so that the run can be resumed. Called by fromdocuments.py.

A file of records, each with its length and a checksum: what a run that was killed wrote last may be torn, and is not read. The first
record says with what parameters the run was made. It lasts until the next run saves its signatures.
"""

import contextlib
import json
import mmap
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import numpy as np

from lshdup.collection.collection import Collection
from lshdup.collection.joining import join_collections
from lshdup.documents.records import RecordFields
from lshdup.errors import ParameterError
from lshdup.params import ShingleParams, SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.store.collection_io import collection_arrays, filter_arrays, read_collection
from lshdup.store.npz import FORMAT_VERSION, Array, Artifact
from lshdup.store.store import Store
from lshdup.utils.atomic import JOURNAL, note_kept
from lshdup.version import __version__

#: Seconds after which a run is long: what is finished by then is written, and all that comes after.
PATIENCE = 10.0

#: Magic, CRC-32 of what follows, bytes that follow: a length, a table of contents of so many bytes, and the arrays.
_RECORD = struct.Struct("<4sIQ")
_CONTENTS = struct.Struct("<I")
_MAGIC = b"LSHJ"


class Journal:
    """A collection's `Checkpoint` in a store.

    say : told if the journal cannot be written; the run goes on without.
    """

    def __init__(
        self,
        store: Store,
        shingle: ShingleParams,
        sketch: SketchParams | None,
        fields: RecordFields | None,
        say: Callable[[str], None],
        shingle_filter: ShingleFilter | None = None,
    ) -> None:
        self._path = store.folder / ".journal"
        self._say = say
        made = {"kind": "journal", "format": FORMAT_VERSION, "lshdup": __version__}
        self._header = made | store.parameters(
            shingle, sketch, fields, shingle_filter=shingle_filter
        )
        self._removed = filter_arrays(shingle_filter) if shingle_filter is not None else {}
        self._started = time.monotonic()
        self._file: IO[bytes] | None = None
        self._failed = False
        self._end = 0  # of what was read and is good

    def finished(self) -> Collection | None:
        """What an interrupted run with the same parameters has finished, in no order; a torn or damaged end is ignored."""
        try:
            with self._path.open("rb") as file:
                view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError):  # no journal, or an empty one
            return None
        parts = list(self._parts(view))
        return join_collections(parts) if parts else None

    def _parts(self, view: memoryview) -> Iterator[Collection]:
        for number, (end, arrays) in enumerate(_records(view)):
            try:
                if number == 0:
                    if json.loads(arrays["header"].tobytes()) != self._header:
                        return
                else:
                    artifact = Artifact(self._header | {"corpus": ""}, arrays | self._removed)
                    yield read_collection(artifact, b"", verify=True).without_other_readers()
            except (KeyError, TypeError, ValueError, IndexError, ParameterError):
                return
            self._end = end

    def is_due(self) -> bool:
        return not self._failed and time.monotonic() - self._started >= PATIENCE

    def add(self, part: Collection) -> None:
        if self._failed:
            return
        try:
            if self._file is None:
                self._file = self._path.open("r+b" if self._end else "wb")
                self._file.truncate(self._end)
                self._file.seek(self._end)
                if not self._end:
                    text = json.dumps(self._header, sort_keys=True).encode("ascii")
                    self._file.write(_record({"header": np.frombuffer(text, np.uint8)}))
            self._file.write(_record(collection_arrays(part, "journal")))
            self._file.flush()
            note_kept(JOURNAL)
        except OSError as error:
            self._failed = True
            self._say(
                f"{self._path} cannot be written: {error.strerror}; should this run be interrupted, it cannot be resumed"
            )
            self.remove()  # what room there is, the artifacts need

    def close(self) -> None:
        """Leave the journal to the next run."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def remove(self) -> bool:
        """Its work is done, or its room is needed. Returns whether there was one."""
        self.close()
        note_kept(JOURNAL, kept=False)
        try:
            self._path.unlink()
        except OSError:
            return False
        return True


def _record(arrays: Mapping[str, Array]) -> bytes:
    contents = json.dumps(
        {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    ).encode("ascii")
    parts = [
        _CONTENTS.pack(len(contents)),
        contents,
        *(array.tobytes() for array in arrays.values()),
    ]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join([_RECORD.pack(_MAGIC, checksum, sum(map(len, parts))), *parts])


def _records(view: memoryview) -> Iterator[tuple[int, dict[str, Array]]]:
    """The arrays of each record and where it ends, up to the first that is not whole."""
    at = 0
    while at + _RECORD.size <= len(view):
        magic, checksum, size = _RECORD.unpack_from(view, at)
        start, end = at + _RECORD.size, at + _RECORD.size + size
        if magic != _MAGIC or end > len(view) or zlib.crc32(view[start:end]) != checksum:
            return
        try:
            yield end, _arrays(view[start:end])
        except (ValueError, TypeError, AttributeError, OverflowError, struct.error):
            return
        at = end


def _arrays(view: memoryview) -> dict[str, Array]:
    (size,) = _CONTENTS.unpack_from(view)
    at = _CONTENTS.size + size
    arrays = {}
    for name, (kind, shape) in json.loads(bytes(view[_CONTENTS.size : at])).items():
        dtype: np.dtype[Any] = np.dtype(kind)
        if dtype.kind not in "iu":
            message = f"{name} holds no integers"
            raise ValueError(message)
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = (
            np.frombuffer(view, dtype, count, at).reshape(shape)
            if count
            else np.zeros(shape, dtype)
        )
        at += count * dtype.itemsize
    return arrays
