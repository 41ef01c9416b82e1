"""From documents to a collection: what is new or changed is read, the rest is as the store or a journal has it, and all is saved.

Called by workspace.py.
"""

import os
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lshdup.collection.collect import Checkpoint, Previous, collect, sketched
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import FilterRequest, build_filter, filter_collection
from lshdup.documents.document_list import DocumentList, Reason, typed_name
from lshdup.documents.finding import find_documents
from lshdup.documents.locations import Listings
from lshdup.documents.rows import by_number
from lshdup.documents.whereabouts import are_elsewhere, counted_where
from lshdup.errors import ArtifactError
from lshdup.matching.similarity import SET_BYTES
from lshdup.params import ShingleParams, SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter, same_filter
from lshdup.store.collection_io import corpus_id, unfiltered_id
from lshdup.store.row_lists import load_listings, save_listings
from lshdup.utils.compression import PIP, is_lacking
from lshdup.utils.messages import counted, some_of
from lshdup.utils.scratch import Spool
from lshdup.workspace.context import RunContext
from lshdup.workspace.filter_request import has_made
from lshdup.workspace.request import Request, merged
from lshdup.workspace.unchanged import known, still_skipped, unchanged

if TYPE_CHECKING:
    from lshdup.store.journal import Journal


class FromDocuments:
    """Collections of the documents that a request names."""

    def __init__(self, context: RunContext) -> None:
        self._context, self._store, self._say = context, context.store, context.say
        self._said_reader = False

    def shingled(self, request: Request, params: ShingleParams, keep: Spool | int) -> Collection:
        """With all shingle sets, whole. keep : where they are, or how many bytes of them may be in memory."""
        documents = self._find(request, params)
        previous = self._previous(request, documents, params, None, need_sets=True)
        return self._collect(request, documents, params, None, previous, keep)

    def signed(self, request: Request) -> Collection:
        """With signatures, and sets if they are few. If there is a store, both are saved there."""
        params, sketch = merged(ShingleParams, request.given), merged(SketchParams, request.given)
        remove = self._context.filter_requested(request, params)
        linear = sketch.scheme == "linear"
        if remove is not None and (remove.ignore_common or linear):
            return self._signed_in_two_passes(request, params, sketch, remove)
        shingle_filter = build_filter(None, remove) if remove is not None else None
        documents = self._find(request, params)
        # The linear scheme makes signatures of all sets together: there is nothing to resume.
        journal = None
        if self._store is not None and not linear:
            from lshdup.store.journal import Journal  # here, because a query waits for every import

            journal = Journal(
                self._store, params, sketch, documents.row_fields, self._say, shingle_filter
            )
        previous = self._previous(
            request,
            documents,
            params,
            sketch,
            need_sets=linear,
            journal=journal,
            shingle_filter=shingle_filter,
        )
        # A token is seven bytes or so and makes a shingle of eight: of more text than this, the sets would not be kept in the end.
        keep = SET_BYTES // 2 if documents.spans.sum() <= SET_BYTES else 0
        try:
            collection = self._collect(
                request, documents, params, sketch, previous, keep, journal, shingle_filter
            )
        finally:
            if journal is not None:
                journal.close()
        if self._store is not None:
            collection = replace(collection, corpus=corpus_id(collection))
            self._save(collection, ("shingles", "signatures"), journal)
        if journal is not None:
            journal.remove()
        return collection

    def _signed_in_two_passes(
        self, request: Request, params: ShingleParams, sketch: SketchParams, remove: FilterRequest
    ) -> Collection:
        """First all sets, whole; then what is left of them when it is known what too many have."""
        with Spool(self._store.folder) if self._store is not None else nullcontext() as spool:
            documents = self._find(request, params)
            from lshdup.store.journal import Journal

            journal = (
                Journal(self._store, params, None, documents.row_fields, self._say)
                if self._store is not None
                else None
            )
            previous = self._previous(
                request, documents, params, None, need_sets=True, journal=journal
            )
            try:
                collection = self._collect(
                    request, documents, params, None, previous, spool or 1 << 62, journal
                )
            finally:
                if journal is not None:
                    journal.close()
            if self._store is None:
                return filter_collection(
                    collection, build_filter(collection, remove, request.jobs), sketch, request.jobs
                )
            collection = replace(collection, corpus=corpus_id(collection))
            self._save(collection, ("shingles",), journal)
            stored = self._load_for_reuse("signatures")
            if stored is not None and has_made(stored, collection, remove, sketch):
                stored = replace(stored, documents=collection.documents, skipped=collection.skipped)
                collection = replace(
                    stored,
                    guessed=collection.guessed,
                    guesses=collection.guesses,
                    read=collection.read,
                )
            else:
                shingle_filter = build_filter(collection, remove, request.jobs)
                collection = filter_collection(
                    collection, shingle_filter, sketch, request.jobs, self._context.room
                )
                collection = replace(collection, corpus=corpus_id(collection))
            self._save(collection, ("signatures",), journal)
            if journal is not None:
                journal.remove()
            # The spool goes, and what was in it is in shingles.npz now; of an unchanged folder, the sets are those of shingles.npz already.
            return collection.with_unfiltered_sets(None) if collection.read else collection

    def _save(
        self, collection: Collection, kinds: tuple[str, ...], journal: "Journal | None"
    ) -> None:
        """What of these there is; without the journal, if there is no room beside it, which has nearly the size of what it is for."""
        assert self._store is not None
        try:
            for kind in kinds:
                if (
                    kind != "shingles" or collection.unfiltered_sets is not None
                ):  # if so small: the next run need not read it to verify
                    self._store.save_collection(kind, collection)
        except ArtifactError:
            if journal is None or not journal.remove():
                raise
            self._save(collection, kinds, None)

    def _find(self, request: Request, params: ShingleParams) -> DocumentList:
        self._context.progress("documents", 0, 0)
        listings: Listings = {}
        if self._store is not None and not request.check_content:
            listings = load_listings(self._store, request.files)
        documents = find_documents(
            request.documents,
            request.files,
            id_lists=params.tokens == "ids",
            jobs=request.jobs,
            store=os.fsencode(self._context.apart) if self._context.apart is not None else None,
            on_skipped=self._context.skipped,
            listings=listings,
            say=self._say,
            warn=self._context.warn,
        )
        request.accept(documents, False)
        self._say_what_is_replaced(request)
        if self._store is not None and self._store.is_held and listings:
            save_listings(self._store, request.files, listings)
        self._context.progress("documents", 0, len(documents))
        return documents

    def _say_what_is_replaced(self, request: Request) -> None:
        """If the store holds documents of other DOCS, which this run drops from it."""
        if self._store is None or not self._store.is_held:
            return
        try:
            old = self._store.load_collection(
                "shingles" if self._context.shingles_are_newer() else "signatures", verify=False
            )
            if old is not None and are_elsewhere(old.documents, request.documents):
                held = counted_where(old.documents, counted(len(old.documents), "document"))
                now = some_of(map(os.fsdecode, request.documents), 3)
                self._say(
                    f"the store {self._store.folder} held {held}; from now on it holds what is in {now} (--store DIR keeps both)"
                )
        except (ArtifactError, IndexError):  # it will be made anew, and that is said then
            return

    def _collect(
        self,
        request: Request,
        documents: DocumentList,
        params: ShingleParams,
        sketch: SketchParams | None,
        previous: Previous | None,
        keep: Spool | int,
        checkpoint: Checkpoint | None = None,
        shingle_filter: ShingleFilter | None = None,
    ) -> Collection:
        collection = collect(
            documents,
            params,
            sketch,
            shingle_filter=shingle_filter,
            jobs=request.jobs,
            previous=previous,
            keep=keep,
            room=self._context.room,
            progress=self._context.progress,
            checkpoint=checkpoint,
        )
        named = (
            {typed_name(argument) for argument in request.documents}
            if collection.skipped
            else set()
        )
        for each in sorted(collection.skipped, key=lambda each: by_number(each.skipped.name)):
            self._context.skipped(replace(each.skipped, named=each.skipped.name in named))
        if any(
            each.skipped.reason == Reason.FORMAT and is_lacking(each.skipped.detail)
            for each in collection.skipped
        ):
            self._say(f"files that zstd made are not read; {PIP} reads them")
        return collection

    def _previous(
        self,
        request: Request,
        documents: DocumentList,
        params: ShingleParams,
        sketch: SketchParams | None,
        *,
        need_sets: bool,
        journal: "Journal | None" = None,
        shingle_filter: ShingleFilter | None = None,
    ) -> Previous | None:
        """What the store knows about these documents, and the journal of an interrupted run, if made with the same parameters."""
        if request.check_content:
            return None
        old = self._stored(
            documents, params, sketch, need_sets=need_sets, shingle_filter=shingle_filter
        )
        if old is not None and shingle_filter is not None and old.shingle_filter is None:
            old = filter_collection(old, shingle_filter, sketch, request.jobs, self._context.room)
        finished = journal.finished() if journal is not None else None
        if finished is not None:
            if old is not None and sketch is not None and old.signatures is None:
                old = sketched(old, sketch, request.jobs)
            from lshdup.store.journal import joined

            old = finished if old is None else joined([old, finished])
        if old is None:
            return None
        rows = unchanged(old.documents, documents)
        if finished is not None:
            resumed = np.count_nonzero(rows >= len(old.documents) - len(finished.documents))
            if resumed:
                what = counted(
                    int(resumed),
                    "document of an interrupted run is",
                    "documents of an interrupted run are",
                )
                self._say(f"resumed: {what} not read again")
        # What was no document with other fields may be one with these.
        same_fields = old.documents.row_fields in (None, documents.row_fields)
        return Previous(old, rows, still_skipped(old, documents) if same_fields else {})

    def _stored(
        self,
        documents: DocumentList,
        params: ShingleParams,
        sketch: SketchParams | None,
        *,
        need_sets: bool,
        shingle_filter: ShingleFilter | None,
    ) -> Collection | None:
        """The stored collection with these parameters, with its sets if they are there too; or else the whole sets."""
        shingles = self._load_for_reuse("shingles")
        old = None if need_sets else self._load_for_reuse("signatures")
        if old is not None and (
            old.shingle != params
            or old.sketch != sketch
            or not same_filter(old.shingle_filter, shingle_filter)
        ):
            old = None
        if shingles is not None and shingles.shingle == params:
            if old is None:
                old = shingles
            elif unfiltered_id(old) == corpus_id(shingles):
                old = old.with_unfiltered_sets(shingles.sets)
            elif known(shingles, documents) >= known(
                old, documents
            ):  # the last run ended between the two
                old = shingles
        return old

    def _load_for_reuse(self, kind: str) -> Collection | None:
        if self._store is None:
            return None
        try:
            stored = self._store.load_collection(kind, here=True)
            known = stored.without_other_readers() if stored is not None else None
            if known is not stored and not self._said_reader:
                self._said_reader = True
                self._say(
                    "the reader of office documents is another one than in the last run: they are read again"
                )
            return known
        except ArtifactError as error:
            self._say(f"{error.message}; it is made anew")
            if self._store.is_held:
                self._store.drop(kind)
            return None
