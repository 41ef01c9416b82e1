"""The state that the steps of a run share: store, notifications, and memory for signatures."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lshdup.errors import ArtifactError, ParameterError
from lshdup.lsh.signatures import in_memory
from lshdup.skipped import Skipped
from lshdup.store.store import Store
from lshdup.utils.parallel import Progress
from lshdup.utils.scratch import mapped_signatures

#: Signatures of more bytes than this are in a file during the run, if there is a store.
MOST_IN_MEMORY = 256 << 20


@dataclass(frozen=True)
class RunContext:
    """The state of one run.

    store : the store; None with --no-store.
    apart : folder in which no documents are looked for: the folder of the store.
    read_only : whether nothing is saved for the next run.
    say, warn : notified of a line for the user.
    skipped : notified of each file that is not compared.
    progress : notified (stage, steps done, steps in all).
    """

    store: Store | None
    apart: Path | None
    read_only: bool
    say: Callable[[str], None]
    warn: Callable[[str], None]
    skipped: Callable[[Skipped], None]
    progress: Progress
    _said: set[str] = field(default_factory=set)

    def say_once(self, line: str) -> None:
        """Say a line that several steps would say."""
        if line not in self._said:
            self._said.add(line)
            self.say(line)

    @contextmanager
    def writing(self) -> Iterator[Store]:
        """Lock the store for this run alone. Raises ParameterError without a store."""
        if self.store is None:
            message = "this step writes an artifact, which --no-store forbids"
            raise ParameterError(message, "leave --no-store out")
        with self.store.writing():
            yield self.store

    @contextmanager
    def continuing(self) -> Iterator[None]:
        """Lock the store if its folder exists; a step without DOCS creates no store."""
        if self.store is not None and self.store.folder.is_dir():
            with self.store.writing():
                yield
        else:
            yield

    def keep(self, name: str, save: Callable[[Store], None]) -> None:
        """Save an artifact that spares the next run work; say so if the store cannot be written."""
        if self.read_only:
            return
        try:
            with self.writing() as store:
                save(store)
        except ArtifactError as error:
            self.say(f"{name} is not kept: {error.message}")

    def room(self, shape: tuple[int, int]) -> NDArray[np.uint32]:
        """Return an array for signatures: in memory, or if they are many in a file of the store."""
        if self.store is None or self.read_only or 4 * shape[0] * shape[1] <= MOST_IN_MEMORY:
            return in_memory(shape)
        return mapped_signatures(self.store.folder, shape)

    def shingles_are_newer(self) -> bool:
        """Return whether shingles.npz was saved after signatures.npz. There must be a store."""
        assert self.store is not None
        return self.store.modified("shingles") > self.store.modified("signatures")
