"""A run with its store: what the steps of a command share.

The other modules of this package are the steps: each from documents, or from what the store holds.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from lshdup.base.atomic import MORE_ROOM
from lshdup.base.compression import PIP, is_lacking
from lshdup.base.memory import Arrays
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, SkippedFile
from lshdup.base.wording import count_of
from lshdup.errors import ArtifactError, ParameterError
from lshdup.sources.document_list import DocumentList, typed_name
from lshdup.sources.readers import is_archive
from lshdup.store.store import MEMO, Store

#: What is said of an archive in a folder that was taken for a document, and could not be one.
_CLOSED = "an archive; --archives takes the documents in it"
_UNREAD = (Reason.BINARY, Reason.FORMAT)

#: A run that writes fewer bytes to its store finds out on the way if there is no room.
_MUCH = 2 << 30

#: Bytes of a document in signatures.npz, beside its name and its signature.
_COLUMN_BYTES = 96


class Workspace(Run):
    """A run with its store, or with none.

    Parameters
    ----------
    run : threads, memory and what is told. The files of its arrays are in the store.
    store : None: nothing is kept. Raises ArtifactError if something else is where a file of it
        belongs.
    read_only : nothing is written.
    apart : folder in which no documents are looked for, if there is no store.
    above : store that commands without DOCS use here until this folder has one of its own.

    """

    def __init__(
        self,
        run: Run,
        store: Store | None = None,
        *,
        read_only: bool = False,
        apart: Path | None = None,
        above: Path | None = None,
    ) -> None:
        arrays = run.arrays
        if store is not None and not read_only:
            arrays = Arrays(run.memory, store.folder)
        super().__init__(arrays, run.jobs, run.progress, run.say, run.warn, run.detail, run.skipped)
        self.store = store
        if store is not None:
            store.refuse_obstacles()
        self.apart = store.folder if store is not None else apart
        self.read_only = read_only
        self._above = above
        #: What is saved beside the work that follows; closed once that is done: all is saved then,
        #: and other runs may write.
        self.saving = ExitStack()

    # The state of a run with a store changes, unlike what its stages share.
    __setattr__ = object.__setattr__

    def report_skipped(self, files: Iterable[SkippedFile], named: Iterable[bytes]) -> None:
        """Report the files that were read and are no documents. named : DOCS as typed."""
        skipped = [each.skipped for each in sorted(files, key=lambda each: each.place)]
        typed = {typed_name(argument) for argument in named} if skipped else set()
        for each in skipped:
            if each.reason in _UNREAD and is_archive(each.name):
                each = replace(each, reason=Reason.FORMAT, detail=_CLOSED)
            self.skipped(replace(each, named=each.name in typed))
        if any(each.reason == Reason.FORMAT and is_lacking(each.detail) for each in skipped):
            self.say(f"files that zstd made are not read; {PIP} reads them")

    def expect_signatures(self, documents: DocumentList, perms: int) -> None:
        """Say how many bytes a long run will write to the store; refuse it if there is no room.

        Names, columns and signatures are there twice while they are saved, and beside them in the
        memo, or a band table is.
        """
        if self.store is None or self.read_only:
            return
        each = documents.names.values.nbytes + len(documents) * (_COLUMN_BYTES + 4 * perms)
        size = 3 * each - self.store.size(MEMO)
        if size < _MUCH:
            return
        free = shutil.disk_usage(self.store.folder).free
        sizes = f"about {size / 1e9:.1f} GB for {count_of(len(documents), 'document')}"
        if size > free:
            message = f"{self.store.folder} needs {sizes}; {free / 1e9:.1f} GB are free"
            raise ArtifactError(message, f"{MORE_ROOM}, or use fewer --perms")
        self.say(f"{self.store.folder} takes {sizes} in this run, of {free / 1e9:.0f} GB free")

    def forget_store(self) -> None:
        """Go on without the store, because what is read cannot be read again."""
        if self.store is not None:
            self.say(
                "nothing of a stream, which cannot be read again, is kept in the store; "
                "`lshdup index` keeps the sets of its documents"
            )
            self.store = None

    def require_store(self) -> None:
        """Raise ParameterError if there is no store."""
        if self.store is None:
            message = "this step writes an artifact, which --no-store forbids"
            raise ParameterError(message, "leave --no-store out")

    @contextmanager
    def writing(self, *, is_needed: bool = True) -> Iterator[None]:
        """Make the store if it is missing, and lock it for this run alone.

        Readers need no lock: a step first finds what it names, and a run that fails there leaves
        nothing behind. Within such a block another one does nothing.

        is_needed : whether the step writes. Without that, or without a store, nothing is locked.
        """
        store = self.store
        if store is None or not is_needed:
            yield
            return
        is_new = not store.folder.exists()
        if is_new and self._above not in (None, store.folder):
            self.say(f"a new store, {store.folder}, for this folder; {self._above} stays as it is")
        with store.writing():
            try:
                yield
            except BaseException:
                if is_new:
                    store.remove_begun()
                raise

    def keep(self, name: str, save: Callable[[Store], None]) -> None:
        """Save an artifact that spares the next run work; say so if the store cannot be written."""
        if self.read_only or self.store is None:
            return
        try:
            with self.writing():
                save(self.store)
        except ArtifactError as error:
            self.say(f"{name} is not kept: {error.message}")
