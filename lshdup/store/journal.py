"""Parts of a long run that are written as they are finished, to resume an interrupted run from."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lshdup.base.atomic import JOURNAL, Folder, note_kept
from lshdup.base.run import Run
from lshdup.errors import ArtifactError
from lshdup.store.npz import DAMAGED, Array, Member, check_arrays, full_header, read, write
from lshdup.store.store import Store

#: Seconds after which a run is long, and what is finished by then is written.
PATIENCE = 2.0

#: By how much longer it takes until the next part is written: a run of an hour writes about fifty.
_GROWTH = 1.1

#: Parts that are mapped at a time: each needs a file descriptor.
_MAPPED_PARTS = 128


class Parts:
    """The finished parts of a stage, a numbered artifact for each, in a folder of the store.

    Parts are not synced: they survive a killed process. A torn or damaged part is ignored.

    run : notified if a part cannot be written; it goes on without.
    name : of the folder.
    kind, header : of the artifacts.
    """

    def __init__(
        self, run: Run, store: Store, name: str, kind: str, header: Mapping[str, Any]
    ) -> None:
        self._run, self._store, self._name = run, store, name
        self._kind, self._header = kind, header
        self._written_at, self._interval = time.monotonic(), PATIENCE
        self._last_number = 0  #: of a part, of this run or of an earlier one
        self._is_open = self._failed = False

    def is_due(self) -> bool:
        """Return whether enough was done to write it; and always if no part can be written: what
        waits can be let go then.
        """
        return self._failed or time.monotonic() - self._written_at >= self._interval

    def open(self) -> None:
        """Make the folder of the parts. Raises OSError."""
        with Folder(self._store.folder) as folder:
            folder.make_folder(self._name)
        self._is_open = True

    def write(self, arrays: Mapping[str, Array]) -> None:
        """Write a finished part."""
        if self._failed:
            return
        try:
            if not self._is_open:
                self.open()
            self._last_number += 1
            part = f"{self._last_number:08}.npz"
            with Folder(self._store.folder, self._name) as folder, folder.create(part) as file:
                write(file, self._kind, self._header, arrays)
            note_kept(JOURNAL)
        except OSError as error:
            self._failed = True
            self._run.say(
                f"{self._store.folder / self._name} cannot be written: {error.strerror};"
                " should this run be interrupted, it cannot be resumed"
            )
            self.remove()  # The artifacts need the room.
        self._written_at = time.monotonic()
        self._interval *= _GROWTH

    def remove(self) -> bool:
        """Remove the parts: the run is done or needs its room. Return whether there were any."""
        note_kept(JOURNAL, kept=False)
        return self._remove()

    def _remove(self) -> bool:
        with contextlib.suppress(OSError), Folder(self._store.folder) as folder:
            return folder.remove_folder(self._name)
        return False


class StageJournal(Parts):
    """What a stage behind the reading has finished: rows of arrays, in the order of the stage.

    store : of the run. While parts are written, no other run can write to it.
    stage : its name.
    header : what the stage makes, and of what: candidates come in one order for one header. The
        parts of another run are ignored, and removed when the first part is written.
    """

    def __init__(self, run: Run, store: Store, stage: str, header: Mapping[str, Any]) -> None:
        super().__init__(run, store, f".journal-{stage}", "journal", {"stage": stage, **header})
        self._lock, self._steps = contextlib.ExitStack(), 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Remove the parts if the stage is done, and let other runs write to the store."""
        with self._lock:
            if error is None:
                self.remove()

    def load_finished(
        self, columns: Mapping[str, Any], below: int
    ) -> tuple[int, list[dict[str, NDArray[Any]]]]:
        """Return how many steps an interrupted run has finished, and what it made in them.

        columns : names and types of the arrays. below : whole numbers in them are smaller.
        """
        loaded, joined, arrays = self._load(columns, below), [], self._run.arrays
        while some := list(islice(loaded, _MAPPED_PARTS)):
            joined.append(
                {name: arrays.concatenate([part[name] for part in some]) for name in columns}
            )
        return self._steps, joined

    def _load(self, columns: Mapping[str, Any], below: int) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield what the parts of an interrupted run hold, in the order in which they were written;
        of parts that follow each other.
        """
        steps = {"steps": Member(np.int64, (2,))}
        rows = {
            name: Member(kind, ("rows",), below=below if np.dtype(kind).kind == "u" else None)
            for name, kind in columns.items()
        }
        with contextlib.suppress(OSError), Folder(self._store.folder, self._name) as folder:
            paths = sorted(map(folder.path.joinpath, folder.names()))
            paths = [each for each in paths if each.suffix == ".npz" and each.stem.isdecimal()]
            for path in paths:
                with contextlib.suppress(ArtifactError, OSError, *DAMAGED):
                    with folder.open(path.name) as file:
                        part = read(file, path, "journal", "")
                    if part.header != full_header("journal", self._header):
                        continue
                    self._last_number = int(paths[-1].stem)
                    start, end = check_arrays(part, steps, {})["steps"].tolist()
                    arrays = check_arrays(part, rows, {})
                    if start == self._steps < end:
                        self._steps = end
                        yield arrays

    def stop(self) -> None:
        """Write no further part: what is made from now on must not be used by a later run."""
        self._failed = True

    def open(self) -> None:
        """Make the folder of the parts, without those of another run."""
        if not self._last_number:
            self._remove()
        super().open()

    def add(self, steps: int, arrays: dict[str, NDArray[Any]]) -> None:
        """Write what was made in the steps up to `steps`, since the last call."""
        if not self._is_open and not self._failed:
            try:
                self._lock.enter_context(self._store.writing())
            except ArtifactError:  # Another run writes to the store.
                self._failed = True
        self.write({"steps": np.array([self._steps, steps], np.int64), **arrays})
        self._steps = steps

    def remove(self) -> bool:
        """Remove the parts if this run has written or read some."""
        return self._last_number > 0 and super().remove()
