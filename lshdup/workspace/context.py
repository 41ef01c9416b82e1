"""What the steps of a run share: the store, who is told what, where large arrays are, and what is to be removed from the sets.

Called by workspace.py, fromdocuments.py and fromstore.py.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collect import in_memory
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import FilterRequest
from lshdup.errors import ArtifactError, ParameterError
from lshdup.params import DocumentParams, ShingleParams
from lshdup.skipped import Skipped
from lshdup.store.store import Store
from lshdup.utils.parallel import Progress
from lshdup.utils.scratch import room_on_disk
from lshdup.workspace.filter_request import filter_requested, template_shingles
from lshdup.workspace.request import Request

#: Signatures of more bytes than this are kept in a file while the run goes on, if there is a store.
MOST_IN_MEMORY = 256 << 20


@dataclass(frozen=True)
class RunContext:
    """What the steps of a run share; see `workspace.Workspace`, which makes it.

    apart : a folder where no documents are looked for: that of the store, if there is one.
    """

    store: Store | None
    apart: Path | None
    read_only: bool
    say: Callable[[str], None]
    warn: Callable[[str], None]
    skipped: Callable[[Skipped], None]
    progress: Progress

    @contextmanager
    def writing(self) -> Iterator[Store]:
        """The store, for this run alone."""
        if self.store is None:
            message = "this step writes an artifact, which --no-store forbids"
            raise ParameterError(message, "leave --no-store out")
        with self.store.writing():
            yield self.store

    @contextmanager
    def continuing(self) -> Iterator[None]:
        """The same, for a step that continues from what is there; if nothing is, it will say so, and no store is made."""
        if self.store is not None and self.store.folder.is_dir():
            with self.store.writing():
                yield
        else:
            yield

    def keep(self, what: str, save: Callable[[Store], None]) -> None:
        """Save what the next run would otherwise have to make again, if that can be done now; the answer does not depend on it."""
        if self.read_only:
            return
        try:
            with self.writing() as store:
                save(store)
        except ArtifactError as error:
            self.say(f"{what} is not kept: {error.message}")

    def room(self, shape: tuple[int, int]) -> NDArray[np.uint32]:
        """For signatures: in the store, if they are many."""
        if self.store is None or self.read_only or 4 * shape[0] * shape[1] <= MOST_IN_MEMORY:
            return in_memory(shape)
        return room_on_disk(self.store.folder, shape)

    def shingles_are_newer(self) -> bool:
        """Whether shingles.npz was saved after signatures.npz. There is a store."""
        assert self.store is not None
        return self.store.modified("shingles") > self.store.modified("signatures")

    def filter_requested(
        self, request: Request, params: ShingleParams, last: Collection | None = None
    ) -> FilterRequest | None:
        """What was asked to be removed, or was in the last run where nothing is said of it; None: nothing."""
        template = self.template(request, params) if request.templates else None
        return filter_requested(template, request.given.get("ignore_common"), params, last)

    def template(self, request: Request, params: ShingleParams) -> NDArray[np.uint64]:
        """The shingles of the files that --template names, ascending: uint64 array."""
        files = DocumentParams(max_bytes=request.files.max_bytes)
        return template_shingles(request.templates, files, params, request.jobs, self.skipped)
