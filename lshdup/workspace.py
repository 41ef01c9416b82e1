"""The steps: what each makes from documents, and how it continues from the artifacts of the last run.

A step that is given documents runs the steps before it and reads only what is new or changed. A step that is given none continues from
the store: what is stale there is made anew, and said. Called by the commands in `cli/`; the files themselves are store.py's.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from lshdup import bands, pipeline
from lshdup.artifacts import Spool, room_on_disk
from lshdup.asked import Request, band_options, check_conflict, merged
from lshdup.candidates import Buckets, first_copies
from lshdup.collection import (
    Checkpoint,
    Collection,
    Previous,
    Progress,
    collect,
    in_memory,
    left_of,
    no_progress,
    sketched,
)
from lshdup.common import Removal, fingerprint, first_with, same_removal
from lshdup.compression import PIP, is_lacking
from lshdup.copies import Listing
from lshdup.documents import DocumentList, LeftOut, Reason, typed_name
from lshdup.errors import ArtifactError, InputError, ParameterError
from lshdup.finding import find_documents
from lshdup.listings import load_listings, save_listings
from lshdup.params import DEFAULT_STORE, BandParams, ClusterParams, CommonParams, DocumentParams, PairParams, ShingleParams, SketchParams
from lshdup.pipeline import Banded, Found, Grouped, Verified
from lshdup.places import Listings
from lshdup.ragged import RaggedSets
from lshdup.removing import ToRemove, template_shingles, to_remove
from lshdup.rows import by_number
from lshdup.similarity import SET_BYTES, SetSource
from lshdup.sources import set_source
from lshdup.store import Store
from lshdup.stored import corpus_id, whole_id
from lshdup.unchanged import known, still_left_out, unchanged
from lshdup.whereabouts import are_elsewhere, counted_where
from lshdup.wording import counted, some_of

if TYPE_CHECKING:
    from lshdup.journal import Journal

#: Signatures of more bytes than this are kept in a file while the run goes on, if there is a store.
MOST_IN_MEMORY = 256 << 20

#: A bucket of more documents, or with more pairs, is said before its pairs are looked at: they may take minutes and gigabytes.
_MANY_DOCUMENTS, _MANY_PAIRS = 1000, 1 << 28


@dataclass(frozen=True)
class Indexed:
    """A collection with its band table, the parameters of the bands, and the shingle sets that an artifact holds for it, if any.

    named : its documents were named: artifacts are to be those of a run from nothing. last : how the last `clusters` grouped them, if
    that is continued.
    """

    collection: Collection
    made: Banded
    params: BandParams
    kept: RaggedSets | None
    named: bool = True
    last: ClusterParams | None = None


class Workspace:
    """The steps over one store folder, or over none.

    say : told what a person should know (something was made anew). left_out : told each file that is not compared. secret : the hash key,
    for stores that were made with it; it is a parameter of requests too. read_only : nothing is written, whatever could be kept for the
    next run. apart : a folder where no documents are looked for, if no store is named.
    warn : told what is probably not what was meant; without it, `say` is.
    """

    def __init__(
        self,
        folder: Path | None,
        say: Callable[[str], None] = lambda _: None,
        left_out: Callable[[LeftOut], None] = lambda _: None,
        progress: Progress = no_progress,
        secret: bytes = b"",
        *,
        read_only: bool = False,
        apart: Path | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self._store = Store(folder, secret) if folder is not None else None
        self._read_only = read_only
        self._apart = folder or apart
        self._say = say
        self._warn = warn or say
        self._left_out = left_out
        self._progress = progress
        self._said_reader = False

    # --- the steps ------------------------------------------------------------------------------------------------------

    def shingled(self, request: Request) -> Collection:
        """`lshdup shingle`: sets of all documents, saved whole as shingles.npz; and what would be left of them, if shingles are to go."""
        if not request.documents:
            message = "no documents were named"
            raise InputError(message, "name folders or files: `lshdup shingle DOCS`")
        params = merged(ShingleParams, request.given)
        with self._writing() as store, Spool(store.folder) as spool:
            remove = self._to_remove(request, params)
            documents = self._find(request, params)
            previous = self._previous(request, documents, params, None, need_sets=True)
            collection = self._collect(request, documents, params, None, previous, spool)
            store.save_collection("shingles", collection)
            if remove is not None:
                collection = left_of(collection, remove.from_whole(collection, request.jobs), jobs=request.jobs)
            return collection.with_whole_sets(None)  # they go with the spool

    def signed(self, request: Request) -> Collection:
        """`lshdup signatures`: from documents or from shingles.npz, saved as signatures.npz."""
        if request.documents:
            with self._writing():
                return self._signed_documents(request)
        with self._continuing():
            shingles = self._stored_shingles(request)
            remove = self._to_remove(request, shingles.shingle)
            return self._sketched(shingles, merged(SketchParams, request.given), remove, request.jobs, save=True)

    def compared(self, request: Request) -> tuple[Collection, SetSource]:
        """What `pairs --against` holds against others: the collection with signatures, and where its shingle sets come from."""
        if request.documents:
            with self._writing() if self._store is not None else nullcontext():
                collection = self._signed_documents(request)
                kept = self._sets_of(collection)
        else:
            collection = self._current_signatures(request, verify=True, save=False)
            kept = self._sets_of(collection)
        return collection, set_source(collection, request.jobs, self._left_out, kept)

    def indexed(self, request: Request, *, save: bool = True, verify: bool = True, grouping: bool = False) -> Indexed:
        """`lshdup index`, and what `pairs` and `query` begin with: the collection and its band table.

        save : whether a table that was made anew from stored signatures is saved (`index`) or only used (`pairs`, `query`). verify :
        whether every byte of the artifacts is checked, or only what is touched. grouping : for `clusters`: what is not given is as in the
        last run of that, if it was of the table that is there.
        """
        if request.documents:
            indexed = self._indexed_documents(request)
        else:
            with self._continuing() if save else nullcontext():
                indexed = self._indexed_again(request, save=save, verify=verify, grouping=grouping)
        request.accept(indexed.collection.documents, True)
        return indexed

    def _indexed_again(self, request: Request, *, save: bool, verify: bool, grouping: bool) -> Indexed:
        collection = self._current_signatures(request, verify=verify, save=save)
        assert self._store is not None
        kept = self._sets_of(collection)
        stored = self._store.load_bands(collection, verify)
        last = self._store.last_grouping(collection) if grouping else None
        grouped_as = last[1] if last is not None else None
        base = last[0] if last is not None else stored[1] if stored is not None else None
        wanted = merged(BandParams, request.given if base is None else band_options(request.given), base)
        if stored is not None:
            made, params = stored
            # Bands planned for t serve every threshold above it too.
            serves = not save and wanted.threshold >= params.threshold and replace(wanted, threshold=params.threshold) == params
            if serves or wanted == params:
                return Indexed(collection, made, wanted, kept, named=False, last=grouped_as)
        collection.check_signatures()
        made = self._banded(collection, wanted, request.jobs)
        if save:
            self._store.save_bands(collection, made, wanted)
        elif stored is not None:
            self._say(f"bands made anew from signatures.npz; the stored ones were planned for {stored[1].threshold:g}")
        return Indexed(collection, made, wanted, kept, named=False, last=grouped_as)

    def verified(self, indexed: Indexed, asked: PairParams, jobs: int) -> Found:
        """`lshdup pairs`: the verified pairs of first copies; those of the last run, where nothing has changed since."""
        collection, made, params = indexed.collection, indexed.made, indexed.params
        earlier = self._store.load_pairs(collection) if self._store is not None else None
        if earlier is not None and earlier.answers(made.plan, params, asked):
            found = earlier.at_least(params.threshold)
            self.say_if_hot(indexed, found.buckets)
            if earlier.params.threshold < params.threshold:
                self._say(f"the pairs that were found at {earlier.params.threshold:g} answer this: no document is read")
                if indexed.named:
                    self._keep("pairs.npz", lambda store: store.save_pairs(collection, made, params, asked, found))
            return found
        missing: list[LeftOut] = []
        source = set_source(collection, jobs, missing.append, indexed.kept)
        found = pipeline.near_duplicates(
            collection, made, source, params.threshold, asked,
            jobs=jobs, progress=self._progress, on_buckets=lambda buckets: self.say_if_hot(indexed, buckets), earlier=earlier,
        )  # fmt: skip
        for each in missing:
            self._left_out(each)
        if self._store is not None and not missing:
            self._keep("pairs.npz", lambda store: store.save_pairs(collection, made, params, asked, found))
        return found

    def grouped(self, indexed: Indexed, asked: ClusterParams, request: Request) -> Grouped:
        """`lshdup clusters`: groups of all documents; those of the last run, or made of its pairs, where nothing has changed since.

        Documents that could not be read again are in no group, and neither are those of a group that are not what was indexed. Who is
        represented by one of them is alone, and so is not dropped.
        """
        collection, made, params, store = indexed.collection, indexed.made, indexed.params, self._store
        from lshdup.preference import preference  # here, because a query waits for every import

        if asked.keep == "first" and not request.documents and store is not None:
            # In which order they were named nobody knows any more, but what became of it is known.
            found = store.load_groups(collection, made, params, asked, None)
            if found is not None:
                return self._without_changed(found, collection.documents)
        order, unused = preference(_as_stored(collection.documents, indexed.last, asked), collection.sizes, asked, request.documents)
        self._say_unused(unused)
        found = store.load_groups(collection, made, params, asked, order) if store is not None else None
        if found is not None and store is not None and not self._read_only:
            store.touch("clusters")
        if found is None:
            earlier = store.load_pairs(collection) if store is not None else None
            usable = earlier is not None and earlier.answers(made.plan, params, PairParams(max_bucket=asked.max_bucket))
            known = earlier.at_least(params.threshold) if earlier is not None and usable else None
            found = pipeline.grouped(
                collection, made, self.source(indexed, request.jobs), params.threshold, asked, order, known=known, jobs=request.jobs,
                progress=self._progress, on_buckets=lambda buckets: self.say_if_hot(indexed, buckets, grouping=True),
            )  # fmt: skip
            whole = found
            if store is not None and not len(found.lost):
                self._keep("clusters.npz", lambda store: store.save_groups(collection, made, params, asked, order, whole))
        return self._without_changed(found, collection.documents)

    def grouped_exactly(
        self, request: Request, how: Callable[[ClusterParams | None], ClusterParams]
    ) -> tuple[Collection, Grouped, float, ClusterParams | None]:
        """The same from all pairs, none missed. Saves nothing.

        how : told how the last `clusters` grouped these documents, if that is continued, says how it is to be done now. Returns that and
        the threshold too.
        """
        from lshdup.preference import preference

        with self.every_set(request) as (collection, sets):
            known = self._store.last_grouping(collection) if self._store is not None else None
            last = known[1] if known is not None and not request.documents else None
            asked = how(last)
            default = known[0].threshold if known is not None and last is not None else self.threshold(request)
            threshold: float = request.given.get("threshold", default)
            if known is not None and self._store is not None and (known[0].threshold, known[1]) != (threshold, asked):
                self._store.touch("clusters", 0)  # how this run groups is not kept; but what is, is not of the last one any more
            order, unused = preference(_as_stored(collection.documents, last, asked), collection.sizes, asked, request.documents)
            self._say_unused(unused)
            found = pipeline.exactly_grouped(collection, sets, threshold, asked, order, request.jobs, self._progress)
        return collection, self._without_changed(found, collection.documents), threshold, last

    def _without_changed(self, found: Grouped, documents: DocumentList) -> Grouped:
        """Groups without what has changed or vanished since it was listed: somebody may act on them. Opens no file."""
        together = np.flatnonzero(found.groups.sizes > 1)
        is_leader = np.zeros(len(documents), bool)
        is_leader[together] = True
        own = found.groups.representative
        gone = documents.changed(np.flatnonzero((own >= 0) & is_leader[own]))
        for index in gone.tolist():
            self._left_out(LeftOut(documents.names[index], Reason.CHANGED, "or gone since it was looked at; run it again with DOCS"))
        return replace(found, groups=found.groups.without(gone), lost=np.concatenate([found.lost, gone]))

    def _say_unused(self, lines: list[str]) -> None:
        for line in lines:
            self._warn(line)

    def _keep(self, what: str, save: Callable[[Store], None]) -> None:
        """Save what the next run would otherwise have to make again, if that can be done now; the answer does not depend on it."""
        if self._read_only:
            return
        try:
            with self._writing() as store:
                save(store)
        except ArtifactError as error:
            self._say(f"{what} is not kept: {error.message}")

    def say_if_hot(self, indexed: Indexed, buckets: Buckets, *, grouping: bool = False) -> None:
        """Say what the largest bucket means, if it has many documents. grouping : for `clusters`, else for `pairs`."""
        size, pairs = buckets.largest, buckets.largest * (buckets.largest - 1) // 2
        if buckets.left_out or (size <= _MANY_DOCUMENTS and pairs < _MANY_PAIRS):
            return
        name = os.fsdecode(indexed.collection.documents.names[buckets.example])
        means = (
            f"quick to group if they are alike; if not, up to {pairs:,} pairs are compared"
            if grouping
            else f"their {pairs:,} pairs are candidates, 16 bytes each if they are found"
        )
        helps = "--ignore-common X or --template FILE compares without what they share, --max-bucket N leaves such buckets out"
        self._say(f"a bucket has {size:,} documents: {means}; one is {name}; {helps}")

    def source(self, indexed: Indexed, jobs: int) -> SetSource:
        """Where the shingle sets of an indexed collection come from."""
        return set_source(indexed.collection, jobs, self._left_out, indexed.kept)

    @contextmanager
    def every_set(self, request: Request) -> Iterator[tuple[Collection, RaggedSets]]:
        """A collection and all its shingle sets, for the exact join and the experiments. Saves nothing."""
        if request.documents:
            params = merged(ShingleParams, request.given)
            remove = self._to_remove(request, params)
            documents = self._find(request, params)
            previous = self._previous(request, documents, params, None, need_sets=True)
            collection = self._collect(request, documents, params, None, previous, 1 << 62)
        else:
            collection = self._stored_shingles(request)
            signatures = self._refuse_older(collection)
            last = signatures is not None and whole_id(signatures) == corpus_id(collection)
            remove = self._to_remove(request, collection.shingle, signatures if last else None)
        request.accept(collection.documents, True)
        if remove is not None:
            collection = left_of(collection, remove.from_whole(collection, request.jobs), jobs=request.jobs, keep=True)
        assert collection.sets is not None
        yield collection, collection.sets

    def last_collection(self) -> Collection | None:
        """The collection of the last run, for looking names up in; None without one."""
        if self._store is None:
            return None
        try:
            return self._store.load_collection("signatures", verify=False) or self._store.load_collection("shingles", verify=False)
        except ArtifactError as error:
            self._say(error.message)
            return None

    def last_pairs(self) -> tuple[Collection, Verified, Listing]:
        """The collection of the last run, what `pairs` has found there, and the pairs of all its documents."""
        collection = self._current_signatures(Request((), DocumentParams(), {}, 1, command="pairs"), verify=False, save=False)
        assert self._store is not None
        found = self._store.load_pairs(collection)
        if found is None:
            message = f"there are no pairs of the last run in {self._store.folder}"
            raise ArtifactError(message, "run `lshdup pairs DOCS`, at the lowest threshold of interest")
        return collection, found, pipeline.with_copies(found.found.pairs, first_copies(collection.fingerprints))

    # --- what is removed from the sets ------------------------------------------------------------------------------------

    def _to_remove(self, request: Request, params: ShingleParams, last: Collection | None = None) -> ToRemove | None:
        """What was asked to be removed, or was in the last run where nothing is said of it; None: nothing."""
        template = self._template(request, params) if request.templates else None
        return to_remove(template, request.given.get("ignore_common"), params, last)

    def _template(self, request: Request, params: ShingleParams) -> NDArray[np.uint64]:
        files = DocumentParams(max_bytes=request.files.max_bytes)
        return template_shingles(request.templates, files, params, request.jobs, self._left_out)

    def removal_to_show(self, request: Request, params: ShingleParams, stored: Collection | None) -> Removal | None:
        """What is removed from the sets of these parameters, by what was asked or else in the last run; None: nothing.

        stored : `last_collection`.
        """
        last = stored if stored is not None and stored.shingle == params else None
        remove = self._to_remove(request, params, last)
        if remove is None:
            return None
        if last is not None and last.removal is not None and last.removal.params == remove.params:
            return last.removal
        if not remove.ignore_common:
            return remove.known()
        shingles = self._stored_shingles(request)
        if shingles.shingle != params:
            message = "shingles.npz was made with other options than are shown"
            raise ArtifactError(message, "run `lshdup shingle DOCS` with these options")
        return remove.from_whole(shingles, request.jobs)

    def most_common(self, collection: Collection, wanted: int) -> list[tuple[int, int, int]]:
        """(shingle, number of different documents that have it, one of them) of those shingles that were removed because most have them.

        Of what was counted in this run, and is in shingles.npz; else none.
        """
        removal, sets = collection.removal, self._sets_of(collection)
        if removal is None or removal.counts is None or sets is None:
            return []
        most = np.argsort(-removal.counts.astype(np.int64), kind="stable")[:wanted]
        shingles = removal.common[most]
        return list(zip(shingles.tolist(), removal.counts[most].tolist(), first_with(sets, shingles).tolist(), strict=True))

    def _banded(self, collection: Collection, params: BandParams, jobs: int) -> Banded:
        self._progress("bands", 0, 0)
        return pipeline.banded(collection, params, jobs)

    # --- from documents -------------------------------------------------------------------------------------------------

    def _find(self, request: Request, params: ShingleParams) -> DocumentList:
        self._progress("documents", 0, 0)
        listings: Listings = {}
        if self._store is not None and not request.check_content:
            listings = load_listings(self._store, request.files)
        documents = find_documents(
            request.documents,
            request.files,
            id_lists=params.tokens == "ids",
            jobs=request.jobs,
            store=os.fsencode(self._apart) if self._apart is not None else None,
            on_left_out=self._left_out,
            listings=listings,
            say=self._say,
            warn=self._warn,
        )
        request.accept(documents, False)
        self._say_what_is_replaced(request)
        if self._store is not None and self._store.is_held and listings:
            save_listings(self._store, request.files, listings)
        self._progress("documents", 0, len(documents))
        return documents

    def _say_what_is_replaced(self, request: Request) -> None:
        """If the store holds documents of other DOCS, which this run drops from it."""
        if self._store is None or not self._store.is_held:
            return
        try:
            old = self._store.load_collection("shingles" if self._shingles_are_newer() else "signatures", verify=False)
            if old is not None and are_elsewhere(old.documents, request.documents):
                held = counted_where(old.documents, counted(len(old.documents), "document"))
                now = some_of(map(os.fsdecode, request.documents), 3)
                self._say(f"the store {self._store.folder} held {held}; from now on it holds what is in {now} (--store DIR keeps both)")
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
        removal: Removal | None = None,
    ) -> Collection:
        collection = collect(
            documents, params, sketch, removal=removal, jobs=request.jobs, previous=previous, keep=keep, room=self._room,
            progress=self._progress, checkpoint=checkpoint,
        )  # fmt: skip
        named = {typed_name(argument) for argument in request.documents} if collection.left_out else set()
        for each in sorted(collection.left_out, key=lambda each: by_number(each.left_out.name)):
            self._left_out(replace(each.left_out, named=each.left_out.name in named))
        if any(each.left_out.reason == Reason.FORMAT and is_lacking(each.left_out.detail) for each in collection.left_out):
            self._say(f"files that zstd made are not read; {PIP} reads them")
        return collection

    def _room(self, shape: tuple[int, int]) -> NDArray[np.uint32]:
        """For signatures: in the store, if they are many."""
        if self._store is None or self._read_only or 4 * shape[0] * shape[1] <= MOST_IN_MEMORY:
            return in_memory(shape)
        return room_on_disk(self._store.folder, shape)

    def _signed_documents(self, request: Request) -> Collection:
        params, sketch = merged(ShingleParams, request.given), merged(SketchParams, request.given)
        remove = self._to_remove(request, params)
        linear = sketch.scheme == "linear"
        if remove is not None and (remove.ignore_common or linear):
            return self._signed_in_two_passes(request, params, sketch, remove)
        removal = remove.known() if remove is not None else None
        documents = self._find(request, params)
        # The linear scheme makes signatures of all sets together: there is nothing to resume.
        journal = None
        if self._store is not None and not linear:
            from lshdup.journal import Journal  # here, because a query waits for every import

            journal = Journal(self._store, params, sketch, documents.row_fields, self._say, removal)
        previous = self._previous(request, documents, params, sketch, need_sets=linear, journal=journal, removal=removal)
        # A token is seven bytes or so and makes a shingle of eight: of more text than this, the sets would not be kept in the end.
        keep = SET_BYTES // 2 if documents.spans.sum() <= SET_BYTES else 0
        try:
            collection = self._collect(request, documents, params, sketch, previous, keep, journal, removal)
        finally:
            if journal is not None:
                journal.close()
        if self._store is not None:
            collection = replace(collection, corpus=corpus_id(collection))
            self._save(collection, ("shingles", "signatures"), journal)
        if journal is not None:
            journal.remove()
        return collection

    def _signed_in_two_passes(self, request: Request, params: ShingleParams, sketch: SketchParams, remove: ToRemove) -> Collection:
        """First all sets, whole; then what is left of them when it is known what too many have."""
        with Spool(self._store.folder) if self._store is not None else nullcontext() as spool:
            documents = self._find(request, params)
            from lshdup.journal import Journal

            journal = Journal(self._store, params, None, documents.row_fields, self._say) if self._store is not None else None
            previous = self._previous(request, documents, params, None, need_sets=True, journal=journal)
            try:
                collection = self._collect(request, documents, params, None, previous, spool or 1 << 62, journal)
            finally:
                if journal is not None:
                    journal.close()
            if self._store is None:
                return left_of(collection, remove.from_whole(collection, request.jobs), sketch, request.jobs)
            collection = replace(collection, corpus=corpus_id(collection))
            self._save(collection, ("shingles",), journal)
            stored = self._load_for_reuse("signatures")
            if stored is not None and remove.has_made(stored, collection, sketch):
                stored = replace(stored, documents=collection.documents, left_out=collection.left_out)
                collection = replace(stored, guessed=collection.guessed, guesses=collection.guesses, read=collection.read)
            else:
                removal = remove.from_whole(collection, request.jobs)
                collection = left_of(collection, removal, sketch, request.jobs, self._room)
                collection = replace(collection, corpus=corpus_id(collection))
            self._save(collection, ("signatures",), journal)
            if journal is not None:
                journal.remove()
            # The spool goes, and what was in it is in shingles.npz now; of an unchanged folder, the sets are those of shingles.npz already.
            return collection.with_whole_sets(None) if collection.read else collection

    def _save(self, collection: Collection, kinds: tuple[str, ...], journal: "Journal | None") -> None:
        """What of these there is; without the journal, if there is no room beside it, which has nearly the size of what it is for."""
        assert self._store is not None
        try:
            for kind in kinds:
                if kind != "shingles" or collection.whole_sets is not None:  # if so small: the next run need not read it to verify
                    self._store.save_collection(kind, collection)
        except ArtifactError:
            if journal is None or not journal.remove():
                raise
            self._save(collection, kinds, None)

    def _indexed_documents(self, request: Request) -> Indexed:
        params = merged(BandParams, request.given)
        bands.plan_bands(merged(SketchParams, request.given).perms, params)  # whether the promise can be kept, before the work
        if self._store is None:
            collection = self._signed_documents(request)
            return Indexed(collection, self._banded(collection, params, request.jobs), params, None)
        with self._writing() as store:
            collection = self._signed_documents(request)
            kept = self._sets_of(collection)
            try:
                stored = store.load_bands(collection)
            except ArtifactError as error:
                self._say(f"{error.message}; it is made anew")
                stored = None
            if stored is not None and stored[1] == params:
                return Indexed(collection, stored[0], params, kept)
            made = self._banded(collection, params, request.jobs)
            store.save_bands(collection, made, params)
            return Indexed(collection, made, params, kept)

    def _previous(
        self,
        request: Request,
        documents: DocumentList,
        params: ShingleParams,
        sketch: SketchParams | None,
        *,
        need_sets: bool,
        journal: "Journal | None" = None,
        removal: Removal | None = None,
    ) -> Previous | None:
        """What the store knows about these documents, and the journal of an interrupted run, if made with the same parameters."""
        if request.check_content:
            return None
        old = self._stored(documents, params, sketch, need_sets=need_sets, removal=removal)
        if old is not None and removal is not None and old.removal is None:
            old = left_of(old, removal, sketch, request.jobs, self._room)
        finished = journal.finished() if journal is not None else None
        if finished is not None:
            if old is not None and sketch is not None and old.signatures is None:
                old = sketched(old, sketch, request.jobs)
            from lshdup.journal import joined

            old = finished if old is None else joined([old, finished])
        if old is None:
            return None
        rows = unchanged(old.documents, documents)
        if finished is not None:
            resumed = np.count_nonzero(rows >= len(old.documents) - len(finished.documents))
            if resumed:
                what = counted(int(resumed), "document of an interrupted run is", "documents of an interrupted run are")
                self._say(f"resumed: {what} not read again")
        # What was no document with other fields may be one with these.
        same_fields = old.documents.row_fields in (None, documents.row_fields)
        return Previous(old, rows, still_left_out(old, documents) if same_fields else {})

    def _stored(
        self, documents: DocumentList, params: ShingleParams, sketch: SketchParams | None, *, need_sets: bool, removal: Removal | None
    ) -> Collection | None:
        """The stored collection with these parameters, with its sets if they are there too; or else the whole sets."""
        shingles = self._load_for_reuse("shingles")
        old = None if need_sets else self._load_for_reuse("signatures")
        if old is not None and (old.shingle != params or old.sketch != sketch or not same_removal(old.removal, removal)):
            old = None
        if shingles is not None and shingles.shingle == params:
            if old is None:
                old = shingles
            elif whole_id(old) == corpus_id(shingles):
                old = old.with_whole_sets(shingles.sets)
            elif known(shingles, documents) >= known(old, documents):  # the last run ended between the two
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
                self._say("the reader of office documents is another one than in the last run: they are read again")
            return known
        except ArtifactError as error:
            self._say(f"{error.message}; it is made anew")
            if self._store.is_held:
                self._store.drop(kind)
            return None

    @contextmanager
    def _writing(self) -> Iterator[Store]:
        """The store, for this run alone."""
        if self._store is None:
            message = "this step writes an artifact, which --no-store forbids"
            raise ParameterError(message, "leave --no-store out")
        with self._store.writing():
            yield self._store

    @contextmanager
    def _continuing(self) -> Iterator[None]:
        """The same, for a step that continues from what is there; if nothing is, it will say so, and no store is made."""
        if self._store is not None and self._store.folder.is_dir():
            with self._store.writing():
                yield
        else:
            yield

    # --- from the store -------------------------------------------------------------------------------------------------

    def _stored_shingles(self, request: Request) -> Collection:
        shingles = self._store.load_collection("shingles") if self._store is not None else None
        if shingles is None:
            self._nothing_there("shingles", request)
        check_conflict("shingles.npz", shingles.shingle, request.given, "run `lshdup shingle DOCS` with these options")
        return shingles

    def _current_signatures(self, request: Request, *, verify: bool, save: bool) -> Collection:
        """signatures.npz, unless shingles.npz is newer and of other documents: then signatures of those, made now."""
        if self._store is None:
            self._nothing_there("signatures", request)
        signatures = self._store.load_collection("signatures", verify=verify)
        shingles = self._store.load_collection("shingles", verify=False)
        if signatures is not None and signatures.sketch is not None:
            stale = shingles is not None and corpus_id(shingles) != whole_id(signatures) and self._shingles_are_newer()
            if not stale:
                self._check_removal(signatures, request)
                check_conflict("signatures.npz", signatures.shingle, request.given, "name the documents again")
                remedy = "run `lshdup signatures` with these options, or name the documents again"
                check_conflict("signatures.npz", signatures.sketch, request.given, remedy)
                return signatures
        if shingles is None:
            self._nothing_there("signatures", request)
        shingles = self._stored_shingles(request)
        base = signatures.sketch if signatures is not None else None
        self._say(f"signatures.npz is made from shingles.npz{', which is newer' if base else ''}")
        remove = self._to_remove(request, shingles.shingle, signatures)
        return self._sketched(shingles, merged(SketchParams, request.given, base), remove, request.jobs, save=save)

    def _check_removal(self, signatures: Collection, request: Request) -> None:
        """Raise if signatures.npz is of sets from which other shingles were removed than those that are given."""
        made = signatures.removal.params if signatures.removal is not None else CommonParams()
        remedy = "run `lshdup signatures` with these options, or name the documents again"
        limit = request.given.get("ignore_common", made.ignore_common)
        if limit != made.ignore_common:
            was = f"with --ignore-common {made.ignore_common:g}" if made.ignore_common else "without --ignore-common"
            message = f"signatures.npz was made {was}, not with {limit:g}"
            raise ArtifactError(message, remedy)
        if request.templates and fingerprint(self._template(request, signatures.shingle)) != made.template:
            message = f"signatures.npz was made {'with another --template' if made.template else 'without --template'}"
            raise ArtifactError(message, remedy)

    def _refuse_older(self, shingles: Collection) -> Collection | None:
        """Raise if signatures.npz is newer than shingles.npz and of another collection: that was the last run, and kept no sets.

        Returns what signatures.npz holds.
        """
        assert self._store is not None
        signatures = self._store.load_collection("signatures", verify=False)
        if signatures is not None and whole_id(signatures) != corpus_id(shingles) and not self._shingles_are_newer():
            message = f"shingles.npz in {self._store.folder} is not of the last run"
            raise ArtifactError(message, "name DOCS, or run `lshdup shingle DOCS` first")
        return signatures

    def _shingles_are_newer(self) -> bool:
        assert self._store is not None
        return self._store.modified("shingles") > self._store.modified("signatures")

    def threshold(self, request: Request) -> float:
        """What was asked for; of documents that are named the default else, without them what the last band table was planned for."""
        default = BandParams().threshold if request.documents else self.last_threshold()
        wanted: float = request.given.get("threshold", default)
        return wanted

    def last_threshold(self) -> float:
        """What the last band table was planned for; the default without one."""
        known = self._store.stored_threshold() if self._store is not None else None
        return BandParams().threshold if known is None else known

    def _sketched(self, shingles: Collection, sketch: SketchParams, remove: ToRemove | None, jobs: int, *, save: bool) -> Collection:
        """The stored sets with signatures. save : they are what was asked for, so that it is an error if they cannot be saved."""
        assert self._store is not None
        if remove is None:
            collection = sketched(shingles, sketch, jobs, self._room)
        else:
            collection = left_of(shingles, remove.from_whole(shingles, jobs), sketch, jobs, self._room)

        def keep(store: Store) -> None:
            stored = store.load_collection("shingles", verify=False)
            if stored is not None and corpus_id(stored) == corpus_id(shingles):  # else another run has come in between
                store.save_collection("signatures", collection)

        if save:
            keep(self._store)
        else:
            self._keep("signatures.npz", keep)
        return collection

    def _sets_of(self, collection: Collection) -> RaggedSets | None:
        """The whole sets of shingles.npz, if they are this collection's."""
        if collection.whole_sets is not None or self._store is None:
            return collection.whole_sets
        try:
            shingles = self._store.load_collection("shingles", verify=False)
        except ArtifactError:
            return None
        return shingles.sets if shingles is not None and corpus_id(shingles) == whole_id(collection) else None

    def _nothing_there(self, kind: str, request: Request) -> NoReturn:
        if self._store is None:
            message = "no documents were named, and --no-store leaves nothing to continue from"
            raise ArtifactError(message, f"name files or folders: `lshdup {request.command} DOCS`")
        store = self._store.folder
        message = f"there is no {kind}.npz in {store}"
        if not request.command:
            raise ArtifactError(message, f"run `lshdup index DOCS --store {store}`")
        named = "a store elsewhere"
        if store == Path(DEFAULT_STORE):
            named = f"a store is looked for in the current folder, {Path.cwd()}: that of an earlier run"
        raise ArtifactError(message, f"run `lshdup {request.command} DOCS` (files or folders); {named} is named by --store DIR")


def _as_stored(documents: DocumentList, last: ClusterParams | None, asked: ClusterParams) -> DocumentList:
    """Documents with the names that --prefer is meant for: if it is that of the last run, as they were typed then."""
    return replace(documents, home=b"") if last is not None and asked.prefer == last.prefer else documents
