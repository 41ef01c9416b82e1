"""The journal of a long run: finished batches as artifacts, to resume an interrupted run from."""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from lshdup.collection.collection import Collection
from lshdup.collection.joining import join_collections
from lshdup.documents.records import RecordFields
from lshdup.errors import ArtifactError
from lshdup.params import ShingleParams, SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.store.collection_io import collection_arrays, filter_arrays, read_collection
from lshdup.store.members import DAMAGED
from lshdup.store.npz import Artifact, full_header, load, write
from lshdup.store.store import Store
from lshdup.utils.arrays import Arrays
from lshdup.utils.atomic import JOURNAL, note_kept

#: Seconds after which a run is long: the batches finished by then are written, and all later ones.
PATIENCE = 10.0

#: Parts that are mapped at a time: each needs a file descriptor.
_MAPPED_PARTS = 128


class Journal:
    """The `Checkpoint` of a collection in a store: the folder `.journal`, a part for each batch.

    Parts are not synced: they survive a killed process. A torn or damaged part is ignored.

    A journal of a run with other parameters is ignored.

    say : notified if the journal cannot be written; the run goes on without.
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
        self._folder = store.folder / ".journal"
        self._say = say
        self._header = {"corpus": ""} | store.describe_parameters(
            shingle, sketch, fields, shingle_filter=shingle_filter
        )
        self._filter_arrays = filter_arrays(shingle_filter)
        self._started = time.monotonic()
        self._last_number = 0  #: of a part, of this run or of the run that it resumes
        self._is_open = self._failed = False

    def load_finished(self, arrays: Arrays) -> Collection | None:
        """Return the documents that an interrupted run with the same parameters has finished.

        arrays : makes its arrays.
        """
        loaded, parts = self._load_parts(), []
        while some := list(islice(loaded, _MAPPED_PARTS)):
            parts.append(join_collections(some, arrays))
        if len(parts) == 1:
            return parts[0]
        return join_collections(parts, arrays) if parts else None

    def _load_parts(self) -> Iterator[Collection]:
        paths = sorted(each for each in self._folder.glob("*.npz") if each.stem.isdecimal())
        for path in paths:
            try:
                part = load(path, "journal", "")
                if part is None or part.header != full_header("journal", self._header):
                    continue
                self._last_number = int(paths[-1].stem)
                arrays = part.arrays | self._filter_arrays
                collection = read_collection(Artifact(part.header, arrays), b"", verify=True)
                yield collection.without_other_readers()
            except (ArtifactError, *DAMAGED):
                continue

    def is_due(self) -> bool:
        """Return whether the run is long."""
        return not self._failed and time.monotonic() - self._started >= PATIENCE

    def add(self, part: Collection) -> None:
        """Write a finished batch."""
        if self._failed:
            return
        try:
            if not self._is_open:
                if not self._last_number:
                    _remove(self._folder)
                self._folder.mkdir(exist_ok=True)
                self._is_open = True
            self._last_number += 1
            with (self._folder / f"{self._last_number:08}.npz").open("wb") as file:
                write(file, "journal", self._header, collection_arrays(part, "journal"))
            note_kept(JOURNAL)
        except OSError as error:
            self._failed = True
            self._say(
                f"{self._folder} cannot be written: {error.strerror};"
                " should this run be interrupted, it cannot be resumed"
            )
            self.remove()  # The artifacts need the room.

    def remove(self) -> bool:
        """Remove the journal: the run is done or needs its room. Return whether there was one."""
        note_kept(JOURNAL, kept=False)
        return _remove(self._folder)


def _remove(folder: Path) -> bool:
    if not folder.exists():
        return False
    if folder.is_dir():
        shutil.rmtree(folder, ignore_errors=True)
    else:  # Before format 4 the journal was a file.
        with contextlib.suppress(OSError):
            folder.unlink()
    return True
