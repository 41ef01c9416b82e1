"""The journals of a long run: finished parts as artifacts, to resume an interrupted run from."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import Arrays
from lshdup.base.atomic import JOURNAL, Folder, note_kept
from lshdup.base.run import Run
from lshdup.collection.collection import Collection
from lshdup.collection.joining import join_collections
from lshdup.errors import ArtifactError
from lshdup.params import ShingleParams, SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.sources.records import RecordFields
from lshdup.store.collection_io import collection_arrays, filter_arrays, read_collection
from lshdup.store.members import DAMAGED, Member, check_arrays
from lshdup.store.npz import Array, Artifact, full_header, read, write
from lshdup.store.store import Store

#: Seconds after which a run is long: the batches finished by then are written, and all later ones.
PATIENCE = 10.0

#: Parts that are mapped at a time: each needs a file descriptor.
_MAPPED_PARTS = 128


class Parts:
    """The finished parts of a stage, a numbered artifact for each, in a folder of a store.

    Parts are not synced: they survive a killed process. A torn or damaged part is ignored, and so
    are the parts of another run. They are removed when the first part is written.

    store : the folder of the store.
    names : of the folder of the parts, and before it of the folders of the store that it is in.
    header : what the stage makes, and of what.
    say : notified if a part cannot be written; the run goes on without.
    """

    def __init__(
        self,
        store: Path,
        names: tuple[str, ...],
        header: Mapping[str, Any],
        say: Callable[[str], None],
    ) -> None:
        self._store, self._names = store, names
        self._header, self._say = header, say
        self._started = time.monotonic()
        self._last_number = 0  #: of a part, of this run or of the run that it resumes
        self._is_open = self._failed = False

    def load(self) -> Iterator[Artifact]:
        """Yield the parts of an interrupted run, in the order in which they were written."""
        with contextlib.suppress(OSError), Folder(self._store, *self._names) as folder:
            paths = sorted(map(folder.path.joinpath, folder.names()))
            paths = [each for each in paths if each.suffix == ".npz" and each.stem.isdecimal()]
            for path in paths:
                with contextlib.suppress(ArtifactError, OSError, *DAMAGED):
                    with folder.open(path.name) as file:
                        part = read(file, path, "journal", "")
                    if part.header == full_header("journal", self._header):
                        self._last_number = int(paths[-1].stem)
                        yield part

    def size(self) -> int:
        """Return the bytes of the parts."""
        with contextlib.suppress(OSError), Folder(self._store, *self._names) as folder:
            return folder.size()
        return 0

    def is_due(self) -> bool:
        """Return whether the stage is long; and always if no part can be kept: what waits to be
        kept can be let go then.
        """
        return self._failed or time.monotonic() - self._started >= PATIENCE

    def write(self, arrays: Mapping[str, Array]) -> None:
        """Write a finished part."""
        if self._failed:
            return
        try:
            if not self._is_open:
                if not self._last_number:
                    self._remove()
                *above, name = self._names
                with Folder(self._store, *above) as folder:
                    folder.make_folder(name)
                self._is_open = True
            self._last_number += 1
            part = f"{self._last_number:08}.npz"
            with Folder(self._store, *self._names) as folder, folder.create(part) as file:
                write(file, "journal", self._header, arrays)
            note_kept(JOURNAL)
        except OSError as error:
            self._failed = True
            self._say(
                f"{self._store.joinpath(*self._names)} cannot be written: {error.strerror};"
                " should this run be interrupted, it cannot be resumed"
            )
            self.remove()  # The artifacts need the room.

    def remove(self) -> bool:
        """Remove the parts: the run is done or needs its room. Return whether there were any."""
        note_kept(JOURNAL, kept=False)
        return self._remove()

    def _remove(self) -> bool:
        *above, name = self._names
        with contextlib.suppress(OSError), Folder(self._store, *above) as folder:
            return folder.remove_folder(name)
        return False


class Journal(Parts):
    """The `Checkpoint` of a collection in a store: the folder `.journal`, a part for each batch.

    A journal of a run with other parameters is ignored.
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
        header = {"corpus": ""} | store.describe_parameters(
            shingle, sketch, fields, shingle_filter=shingle_filter
        )
        super().__init__(store.folder, (".journal",), header, say)
        self._filter_arrays = filter_arrays(shingle_filter)
        self.on_add: Callable[[], None] = lambda: None  #: notified of each part that is written

    def load_finished(self, arrays: Arrays) -> Collection | None:
        """Return the documents that an interrupted run with the same parameters has finished.

        arrays : makes its arrays.
        """
        loaded, parts = self._load_collections(), []
        while some := list(islice(loaded, _MAPPED_PARTS)):
            parts.append(join_collections(some, arrays))
        if len(parts) == 1:
            return parts[0]
        return join_collections(parts, arrays) if parts else None

    def _load_collections(self) -> Iterator[Collection]:
        for part in self.load():
            with contextlib.suppress(ArtifactError, *DAMAGED):
                arrays = part.arrays | self._filter_arrays
                collection = read_collection(Artifact(part.header, arrays), b"", verify=True)
                yield collection.without_other_readers()

    def add(self, part: Collection) -> None:
        """Write a finished batch."""
        self.write(collection_arrays(part, "journal"))
        if not self._failed:
            self.on_add()

    def beside(self, name: str, header: Mapping[str, Any]) -> Parts:
        """Return parts of something else that is made of the same documents, and removed with
        this journal. They can be written when it has a part.
        """
        return Parts(self._store, (*self._names, name), {"stage": name, **header}, self._say)


class StageJournal(Parts):
    """What a stage behind the reading has finished: rows of arrays, in the order of the stage.

    store : of the run. While parts are written, no other run can write to it.
    stage : its name.
    header : what the stage makes, and of what: candidates come in one order for one header.
    """

    def __init__(self, run: Run, store: Store, stage: str, header: Mapping[str, Any]) -> None:
        names = (f".journal-{stage}",)
        super().__init__(store.folder, names, {"stage": stage, **header}, run.say)
        self._writing = store.writing
        self._lock, self._arrays = contextlib.ExitStack(), run.arrays
        self._steps = 0

    def load_finished(
        self, columns: Mapping[str, Any], below: int
    ) -> tuple[int, list[dict[str, NDArray[Any]]]]:
        """Return how many steps an interrupted run has finished, and what it made in them.

        columns : names and types of the arrays. below : whole numbers in them are smaller.
        """
        loaded, joined = self._load_columns(columns, below), []
        while some := list(islice(loaded, _MAPPED_PARTS)):
            joined.append(
                {name: self._arrays.concatenate([part[name] for part in some]) for name in columns}
            )
        return self._steps, joined

    def _load_columns(
        self, columns: Mapping[str, Any], below: int
    ) -> Iterator[dict[str, NDArray[Any]]]:
        steps = {"steps": Member(np.int64, (2,))}
        rows = {
            name: Member(kind, ("rows",), below=below if np.dtype(kind).kind == "u" else None)
            for name, kind in columns.items()
        }
        for part in self.load():
            with contextlib.suppress(ArtifactError, *DAMAGED):
                start, end = check_arrays(part, steps, {})["steps"].tolist()
                arrays = check_arrays(part, rows, {})
                if start == self._steps < end:
                    self._steps = end
                    yield arrays

    def stop(self) -> None:
        """Write no further part: what is made from now on must not be used by a later run."""
        self._failed = True

    def add(self, steps: int, arrays: dict[str, NDArray[Any]]) -> None:
        """Write what was made in the steps up to `steps`, since the last call."""
        if not self._is_open and not self._failed:
            try:
                self._lock.enter_context(self._writing())
            except ArtifactError:  # Another run writes to the store.
                self._failed = True
        self.write({"steps": np.array([self._steps, steps], np.int64), **arrays})
        self._steps, self._started = steps, time.monotonic()

    def close(self) -> None:
        """Let other runs write to the store."""
        self._lock.close()

    def remove(self) -> bool:
        """Remove the parts if this run has written or read some."""
        return self._last_number > 0 and super().remove()
