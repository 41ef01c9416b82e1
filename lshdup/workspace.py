"""The steps: what each makes from documents, and how it continues from the artifacts of the last run.

A step that is given documents runs the steps before it and reads only what is new or changed. A step that is given none continues from
the store: what is stale there is made anew, and said. Called by the commands in `cli/`; the files themselves are store.py's.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup import bands, pipeline
from lshdup.artifacts import Spool, room_on_disk
from lshdup.candidates import Buckets
from lshdup.collection import (
    Checkpoint,
    Collection,
    LeftOutFile,
    Previous,
    Progress,
    collect,
    in_memory,
    no_progress,
    set_source,
    sketched,
)
from lshdup.documents import DocumentList, LeftOut, Reason, find_documents
from lshdup.errors import ArtifactError, InputError, ParameterError
from lshdup.journal import Journal, joined
from lshdup.params import BandParams, DocumentParams, PairParams, ShingleParams, SketchParams
from lshdup.pipeline import Banded, Found
from lshdup.ragged import RaggedSets
from lshdup.similarity import SET_BYTES, SetSource
from lshdup.store import Store, corpus_id

P = TypeVar("P", ShingleParams, SketchParams, BandParams)

#: Signatures of more bytes than this are kept in a file while the run goes on, if there is a store.
MOST_IN_MEMORY = 256 << 20

#: Left out because of what is in the file: no need to read it again while it is unchanged.
_LASTING = {Reason.BINARY, Reason.FORMAT, Reason.UNDECODABLE, Reason.NOT_IDS, Reason.MARKUP}

#: A bucket with more pairs than this takes minutes and gigabytes: that is said before.
_MANY_PAIRS = 1 << 28

#: Options that are not called like their parameter.
_OPTIONS = {"k": "-k", "keep_case": "--keep-case", "normalize": "normalization"}


@dataclass(frozen=True)
class Request:
    """What a command was asked.

    documents : folders and files; empty: continue from the store. given : parameters that were set explicitly, by field name.
    check_content : read documents even if nothing about their files has changed.
    """

    documents: tuple[bytes, ...]
    files: DocumentParams
    given: Mapping[str, Any]
    jobs: int
    check_content: bool = False


@dataclass(frozen=True)
class Indexed:
    """A collection with its band table, the parameters of the bands, and the shingle sets that an artifact holds for it, if any."""

    collection: Collection
    made: Banded
    params: BandParams
    kept: RaggedSets | None


class Workspace:
    """The steps over one store folder, or over none.

    say : told what a person should know (something was made anew). left_out : told each file that is not compared.
    """

    def __init__(
        self,
        folder: Path | None,
        say: Callable[[str], None] = lambda _: None,
        left_out: Callable[[LeftOut], None] = lambda _: None,
        progress: Progress = no_progress,
    ) -> None:
        self._store = Store(folder) if folder is not None else None
        self._say = say
        self._left_out = left_out
        self._progress = progress

    # --- the steps ------------------------------------------------------------------------------------------------------

    def shingled(self, request: Request) -> Collection:
        """`lshdup shingle`: sets of all documents, saved as shingles.npz."""
        if not request.documents:
            message = "no documents were named"
            raise InputError(message, "name folders or files: lshdup shingle DOCS")
        params = _merged(ShingleParams, request.given)
        with self._writing() as store, Spool(store.folder) as spool:
            documents = self._find(request, params)
            previous = self._previous(request, documents, params, None, need_sets=True)
            collection = self._collect(request, documents, params, None, previous, spool)
            store.save_collection("shingles", collection)
            return replace(collection, sets=None)  # they go with the spool

    def signed(self, request: Request) -> Collection:
        """`lshdup signatures`: from documents or from shingles.npz, saved as signatures.npz."""
        if request.documents:
            with self._writing():
                return self._signed_documents(request)
        with self._continuing():
            shingles = self._stored_shingles(request)
            return self._sketched(shingles, _merged(SketchParams, request.given), request.jobs, save=True)

    def indexed(self, request: Request, *, save: bool = True, verify: bool = True) -> Indexed:
        """`lshdup index`, and what `pairs` and `query` begin with: the collection and its band table.

        save : whether a table that was made anew from stored signatures is saved (`index`) or only used (`pairs`, `query`). verify :
        whether every byte of the artifacts is checked, or only what is touched.
        """
        if request.documents:
            return self._indexed_documents(request)
        with self._continuing() if save else nullcontext():
            return self._indexed_again(request, save=save, verify=verify)

    def _indexed_again(self, request: Request, *, save: bool, verify: bool) -> Indexed:
        collection = self._current_signatures(request, verify=verify, save=save)
        assert self._store is not None
        kept = self._sets_of(collection)
        stored = self._store.load_bands(collection, verify)
        if stored is None:
            wanted = _merged(BandParams, request.given)
        else:
            made, params = stored
            wanted = _merged(BandParams, _band_options(request.given), params)
            # Bands planned for t serve every threshold above it too.
            serves = not save and wanted.threshold >= params.threshold and replace(wanted, threshold=params.threshold) == params
            if serves or wanted == params:
                return Indexed(collection, made, wanted, kept)
        made = self._banded(collection, wanted, request.jobs)
        if save:
            self._store.save_bands(collection, made, wanted)
        elif stored is not None:
            self._say(f"bands made anew from signatures.npz; the stored ones were planned for {stored[1].threshold:g}")
        return Indexed(collection, made, wanted, kept)

    def verified(self, indexed: Indexed, asked: PairParams, jobs: int) -> Found:
        """`lshdup pairs`: the verified pairs of first copies; those of the last run, where nothing has changed since."""
        collection, made, params = indexed.collection, indexed.made, indexed.params
        if self._store is not None and (known := self._store.load_pairs(collection, made, params, asked)) is not None:
            return known
        missing: list[LeftOut] = []
        source = set_source(collection, jobs, missing.append, indexed.kept)
        found = pipeline.near_duplicates(
            collection, made, source, params.threshold, asked, jobs=jobs, progress=self._progress, on_buckets=self._say_if_hot
        )
        for each in missing:
            self._left_out(each)
        if self._store is not None and not missing:
            self._keep("pairs.npz", lambda store: store.save_pairs(collection, made, params, asked, found))
        return found

    def _keep(self, what: str, save: Callable[[Store], None]) -> None:
        """Save what the next run would otherwise have to make again, if that can be done now; the answer does not depend on it."""
        try:
            with self._writing() as store:
                save(store)
        except ArtifactError as error:
            self._say(f"{what} is not kept: {error.message}")

    def _say_if_hot(self, buckets: Buckets) -> None:
        pairs = buckets.largest * (buckets.largest - 1) // 2
        if not buckets.left_out and pairs >= _MANY_PAIRS:
            what = f"a bucket has {buckets.largest:,} documents: their {pairs:,} pairs are compared, and those found are held in memory"
            self._say(f"{what}, 16 bytes each; --max-bucket N leaves such buckets out")

    def source(self, indexed: Indexed, jobs: int) -> SetSource:
        """Where the shingle sets of an indexed collection come from."""
        return set_source(indexed.collection, jobs, self._left_out, indexed.kept)

    @contextmanager
    def every_set(self, request: Request) -> Iterator[tuple[Collection, RaggedSets]]:
        """A collection and all its shingle sets, for the exact join and the experiments. Saves nothing."""
        if request.documents:
            params = _merged(ShingleParams, request.given)
            documents = self._find(request, params)
            previous = self._previous(request, documents, params, None, need_sets=True)
            collection = self._collect(request, documents, params, None, previous, 1 << 62)
        else:
            collection = self._stored_shingles(request)
            self._refuse_older(collection)
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

    def _banded(self, collection: Collection, params: BandParams, jobs: int) -> Banded:
        self._progress("bands", 0, 0)
        return pipeline.banded(collection, params, jobs)

    # --- from documents -------------------------------------------------------------------------------------------------

    def _find(self, request: Request, params: ShingleParams) -> DocumentList:
        self._progress("documents", 0, 0)
        documents = find_documents(
            request.documents,
            request.files,
            id_lists=params.tokens == "ids",
            jobs=request.jobs,
            store=os.fsencode(self._store.folder) if self._store is not None else None,
            on_left_out=self._left_out,
        )
        self._progress("documents", 0, len(documents))
        return documents

    def _collect(
        self,
        request: Request,
        documents: DocumentList,
        params: ShingleParams,
        sketch: SketchParams | None,
        previous: Previous | None,
        keep: Spool | int,
        checkpoint: Checkpoint | None = None,
    ) -> Collection:
        collection = collect(
            documents, params, sketch, jobs=request.jobs, previous=previous, keep=keep, room=self._room, progress=self._progress,
            checkpoint=checkpoint,
        )  # fmt: skip
        for each in collection.left_out:
            self._left_out(each.left_out)
        return collection

    def _room(self, shape: tuple[int, int]) -> NDArray[np.uint32]:
        """For signatures: in the store, if they are many."""
        if self._store is None or 4 * shape[0] * shape[1] <= MOST_IN_MEMORY:
            return in_memory(shape)
        return room_on_disk(self._store.folder, shape)

    def _signed_documents(self, request: Request) -> Collection:
        params, sketch = _merged(ShingleParams, request.given), _merged(SketchParams, request.given)
        documents = self._find(request, params)
        linear = sketch.scheme == "linear"
        # The linear scheme makes signatures of all sets together: there is nothing to resume.
        journal = Journal(self._store, params, sketch, self._say) if self._store is not None and not linear else None
        previous = self._previous(request, documents, params, sketch, need_sets=linear, journal=journal)
        # A token is seven bytes or so and makes a shingle of eight: of more text than this, the sets would not be kept in the end.
        keep = SET_BYTES // 2 if documents.spans.sum() <= SET_BYTES else 0
        try:
            collection = self._collect(request, documents, params, sketch, previous, keep, journal)
        finally:
            if journal is not None:
                journal.close()
        if self._store is not None:
            collection = replace(collection, corpus=corpus_id(collection))
            try:
                self._save(self._store, collection)
            except ArtifactError:
                # The journal has nearly the size of what it is for: without it there is room.
                if journal is None or not journal.remove():
                    raise
                self._save(self._store, collection)
        if journal is not None:
            journal.remove()
        return collection

    @staticmethod
    def _save(store: Store, collection: Collection) -> None:
        if collection.sets is not None:  # a collection this small: the next run need not read it to verify
            store.save_collection("shingles", collection)
        store.save_collection("signatures", collection)

    def _indexed_documents(self, request: Request) -> Indexed:
        params = _merged(BandParams, request.given)
        bands.plan_bands(_merged(SketchParams, request.given).perms, params)  # whether the promise can be kept, before the work
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
        journal: Journal | None = None,
    ) -> Previous | None:
        """What the store knows about these documents, and the journal of an interrupted run, if made with the same parameters."""
        if request.check_content:
            return None
        old = self._stored(documents, params, sketch, need_sets=need_sets)
        finished = journal.finished() if journal is not None else None
        if finished is not None:
            if old is not None and sketch is not None and old.signatures is None:
                old = sketched(old, sketch, request.jobs)
            old = finished if old is None else joined([old, finished])
        if old is None:
            return None
        rows = _unchanged(old.documents, documents)
        if finished is not None:
            resumed = np.count_nonzero(rows >= len(old.documents) - len(finished.documents))
            if resumed:
                what = "1 document of an interrupted run is" if resumed == 1 else f"{resumed:,} documents of an interrupted run are"
                self._say(f"resumed: {what} not read again")
        known = {each.left_out.name: each for each in old.left_out if each.left_out.reason in _LASTING}
        return Previous(old, rows, _still_left_out(known, documents))

    def _stored(self, documents: DocumentList, params: ShingleParams, sketch: SketchParams | None, *, need_sets: bool) -> Collection | None:
        """The stored collection with these parameters, with its sets if they are there too."""
        shingles = self._load_for_reuse("shingles")
        old = None if need_sets else self._load_for_reuse("signatures")
        if old is not None and (old.shingle != params or old.sketch != sketch):
            old = None
        if shingles is not None and shingles.shingle == params:
            if old is None:
                old = shingles
            elif corpus_id(old) == corpus_id(shingles):
                old = replace(old, sets=shingles.sets)
            elif _known(shingles, documents) >= _known(old, documents):  # the last run ended between the two
                old = shingles
        return old

    def _load_for_reuse(self, kind: str) -> Collection | None:
        if self._store is None:
            return None
        try:
            return self._store.load_collection(kind, here=True)
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
            self._nothing_there("shingles")
        _check_conflict("shingles.npz", shingles.shingle, request.given, "run `lshdup shingle DOCS` with these options")
        return shingles

    def _current_signatures(self, request: Request, *, verify: bool, save: bool) -> Collection:
        """signatures.npz, unless shingles.npz is newer and of other documents: then signatures of those, made now."""
        if self._store is None:
            self._nothing_there("signatures")
        signatures = self._store.load_collection("signatures", verify=verify)
        shingles = self._store.load_collection("shingles", verify=False)
        if signatures is not None and signatures.sketch is not None:
            stale = shingles is not None and corpus_id(shingles) != corpus_id(signatures) and self._shingles_are_newer()
            if not stale:
                _check_conflict("signatures.npz", signatures.shingle, request.given, "name the documents again")
                remedy = "run `lshdup signatures` with these options, or name the documents again"
                _check_conflict("signatures.npz", signatures.sketch, request.given, remedy)
                return signatures
        if shingles is None:
            self._nothing_there("signatures")
        shingles = self._stored_shingles(request)
        base = signatures.sketch if signatures is not None else None
        self._say(f"signatures.npz is made from shingles.npz{', which is newer' if base else ''}")
        return self._sketched(shingles, _merged(SketchParams, request.given, base), request.jobs, save=save)

    def _refuse_older(self, shingles: Collection) -> None:
        """Raise if signatures.npz is newer than shingles.npz and of another collection: that was the last run, and kept no sets."""
        assert self._store is not None
        signatures = self._store.load_collection("signatures", verify=False)
        if signatures is not None and corpus_id(signatures) != corpus_id(shingles) and not self._shingles_are_newer():
            message = f"shingles.npz in {self._store.folder} is not of the last run"
            raise ArtifactError(message, "name DOCS, or run `lshdup shingle DOCS` first")

    def _shingles_are_newer(self) -> bool:
        assert self._store is not None
        return self._store.modified("shingles") > self._store.modified("signatures")

    def last_threshold(self) -> float:
        """What the last band table was planned for; the default without one."""
        known = self._store.stored_threshold() if self._store is not None else None
        return BandParams().threshold if known is None else known

    def _sketched(self, shingles: Collection, sketch: SketchParams, jobs: int, *, save: bool) -> Collection:
        """The stored sets with signatures. save : they are what was asked for, so that it is an error if they cannot be saved."""
        assert self._store is not None
        collection = sketched(shingles, sketch, jobs, self._room)

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
        """The sets of shingles.npz, if they are this collection's."""
        if collection.sets is not None or self._store is None:
            return collection.sets
        try:
            shingles = self._store.load_collection("shingles", verify=False)
        except ArtifactError:
            return None
        return shingles.sets if shingles is not None and corpus_id(shingles) == corpus_id(collection) else None

    def _nothing_there(self, kind: str) -> NoReturn:
        if self._store is None:
            message = "no documents were named, and --no-store leaves nothing to continue from"
            raise ArtifactError(message, "name DOCS")
        message = f"there is no {kind}.npz in {self._store.folder}"
        raise ArtifactError(message, f"run `lshdup {'shingle' if kind == 'shingles' else 'index'} DOCS`")


# --- what is unchanged, what was asked --------------------------------------------------------------------------------------


def _unchanged(old: DocumentList, new: DocumentList) -> NDArray[np.int64]:
    """For each new document the row of the old one with the same name, size, time and place, or -1: int64 array."""
    if np.array_equal(old.names.offsets, new.names.offsets) and np.array_equal(old.names.blob, new.names.blob):
        rows = np.arange(len(new))
    else:
        places = {name: row for row, name in enumerate(old.names)}
        rows = np.fromiter((places.get(name, -1) for name in new.names), np.int64, len(new))
    if not len(old) or (old.starts is None) != (new.starts is None):
        return np.full(len(new), -1, np.int64)
    same = (rows >= 0) & (old.sizes[rows] == new.sizes) & (old.mtimes[rows] == new.mtimes)
    if old.starts is not None and old.lengths is not None and new.starts is not None and new.lengths is not None:
        same &= (old.starts[rows] == new.starts) & (old.lengths[rows] == new.lengths)
        if old.paths is not None and new.paths is not None:
            old_paths, new_paths = list(old.paths), list(new.paths)
            same &= np.fromiter((old_paths[row] == path for row, path in zip(rows, new_paths, strict=True)), bool, len(new))
    return np.where(same, rows, -1)


def _known(collection: Collection, documents: DocumentList) -> int:
    """How many of the documents are unchanged since."""
    return int(np.count_nonzero(_unchanged(collection.documents, documents) >= 0))


def _still_left_out(known: Mapping[bytes, LeftOutFile], documents: DocumentList) -> dict[bytes, LeftOutFile]:
    still = {}
    for name, each in known.items():
        index = documents.names.find(name)
        if index is not None and documents.sizes[index] == each.size and documents.mtimes[index] == each.mtime:
            still[name] = each
    return still


def _merged(kind: type[P], given: Mapping[str, Any], base: P | None = None) -> P:
    """The parameters of one stage: those given, over those of `base`, over the defaults."""
    known = {field.name for field in fields(kind)}
    values = base.to_json() if base is not None else {}
    return kind(**(values | {name: value for name, value in given.items() if name in known}))


def _band_options(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Bands or rows that are given replace both of the stored ones."""
    return {"bands": 0, "rows": 0, **given} if "bands" in given or "rows" in given else given


def _check_conflict(name: str, stored: ShingleParams | SketchParams, given: Mapping[str, Any], remedy: str) -> None:
    """Raise if an artifact was made with another value than the one given."""
    for field in fields(stored):
        actual = getattr(stored, field.name)
        if field.name in given and given[field.name] != actual:
            option = _OPTIONS.get(field.name, f"--{field.name}")
            message = f"{name} was made with {option} {actual}, not {given[field.name]}"
            raise ArtifactError(message, remedy)
