"""From the store to a collection: what the last run kept, if it is what is asked for; what is stale there is made anew.

Called by workspace.py.
"""

from pathlib import Path
from typing import NoReturn

from lshdup.collection.collect import sketched
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import FilterRequest, build_filter, filter_collection
from lshdup.errors import ArtifactError
from lshdup.params import DEFAULT_STORE, FilterParams, SketchParams
from lshdup.shingling.shingle_filter import fingerprint
from lshdup.store.collection_io import corpus_id, unfiltered_id
from lshdup.store.store import Store
from lshdup.utils.ragged import RaggedSets
from lshdup.workspace.context import RunContext
from lshdup.workspace.request import Request, check_conflict, merged


class FromStore:
    """Collections of the last run."""

    def __init__(self, context: RunContext) -> None:
        self._context, self._store, self._say = context, context.store, context.say

    def shingles(self, request: Request) -> Collection:
        """shingles.npz. Raises ArtifactError without one, or if it was made with other options than are given."""
        shingles = self._store.load_collection("shingles") if self._store is not None else None
        if shingles is None:
            self._nothing_there("shingles", request)
        check_conflict(
            "shingles.npz",
            shingles.shingle,
            request.given,
            "run `lshdup shingle DOCS` with these options",
        )
        return shingles

    def signatures(self, request: Request, *, verify: bool, save: bool) -> Collection:
        """signatures.npz, unless shingles.npz is newer and of other documents: then signatures of those, made now."""
        if self._store is None:
            self._nothing_there("signatures", request)
        signatures = self._store.load_collection("signatures", verify=verify)
        shingles = self._store.load_collection("shingles", verify=False)
        if signatures is not None and signatures.sketch is not None:
            stale = (
                shingles is not None
                and corpus_id(shingles) != unfiltered_id(signatures)
                and self._context.shingles_are_newer()
            )
            if not stale:
                self._check_filter(signatures, request)
                check_conflict(
                    "signatures.npz", signatures.shingle, request.given, "name the documents again"
                )
                remedy = "run `lshdup signatures` with these options, or name the documents again"
                check_conflict("signatures.npz", signatures.sketch, request.given, remedy)
                return signatures
        if shingles is None:
            self._nothing_there("signatures", request)
        shingles = self.shingles(request)
        base = signatures.sketch if signatures is not None else None
        self._say(f"signatures.npz is made from shingles.npz{', which is newer' if base else ''}")
        remove = self._context.filter_requested(request, shingles.shingle, signatures)
        return self.sketched(
            shingles, merged(SketchParams, request.given, base), remove, request.jobs, save=save
        )

    def _check_filter(self, signatures: Collection, request: Request) -> None:
        """Raise if signatures.npz is of sets from which other shingles were removed than those that are given."""
        made = (
            signatures.shingle_filter.params
            if signatures.shingle_filter is not None
            else FilterParams()
        )
        remedy = "run `lshdup signatures` with these options, or name the documents again"
        limit = request.given.get("ignore_common", made.ignore_common)
        if limit != made.ignore_common:
            was = (
                f"with --ignore-common {made.ignore_common:g}"
                if made.ignore_common
                else "without --ignore-common"
            )
            message = f"signatures.npz was made {was}, not with {limit:g}"
            raise ArtifactError(message, remedy)
        if (
            request.templates
            and fingerprint(self._context.template(request, signatures.shingle)) != made.template
        ):
            message = f"signatures.npz was made {'with another --template' if made.template else 'without --template'}"
            raise ArtifactError(message, remedy)

    def refuse_older(self, shingles: Collection) -> Collection | None:
        """Raise if signatures.npz is newer than shingles.npz and of another collection: that was the last run, and kept no sets.

        Returns what signatures.npz holds.
        """
        assert self._store is not None
        signatures = self._store.load_collection("signatures", verify=False)
        if (
            signatures is not None
            and unfiltered_id(signatures) != corpus_id(shingles)
            and not self._context.shingles_are_newer()
        ):
            message = f"shingles.npz in {self._store.folder} is not of the last run"
            raise ArtifactError(message, "name DOCS, or run `lshdup shingle DOCS` first")
        return signatures

    def sketched(
        self,
        shingles: Collection,
        sketch: SketchParams,
        remove: FilterRequest | None,
        jobs: int,
        *,
        save: bool,
    ) -> Collection:
        """The stored sets with signatures. save : they are what was asked for, so that it is an error if they cannot be saved."""
        assert self._store is not None
        if remove is None:
            collection = sketched(shingles, sketch, jobs, self._context.room)
        else:
            collection = filter_collection(
                shingles, build_filter(shingles, remove, jobs), sketch, jobs, self._context.room
            )

        def keep(store: Store) -> None:
            stored = store.load_collection("shingles", verify=False)
            if stored is not None and corpus_id(stored) == corpus_id(
                shingles
            ):  # else another run has come in between
                store.save_collection("signatures", collection)

        if save:
            keep(self._store)
        else:
            self._context.keep("signatures.npz", keep)
        return collection

    def with_sets(self, collection: Collection) -> Collection:
        """Return the collection with the sets of shingles.npz, if they are of this collection."""
        sets = self.sets_of(collection)
        return collection if sets is None else collection.with_unfiltered_sets(sets)

    def sets_of(self, collection: Collection, *, verify: bool = False) -> RaggedSets | None:
        """The whole sets of shingles.npz, if they are this collection's."""
        if collection.unfiltered_sets is not None or self._store is None:
            return collection.unfiltered_sets
        try:
            shingles = self._store.load_collection("shingles", verify=verify)
        except ArtifactError:
            return None
        return (
            shingles.sets
            if shingles is not None and corpus_id(shingles) == unfiltered_id(collection)
            else None
        )

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
            named = (
                f"a store is looked for in the current folder, {Path.cwd()}: that of an earlier run"
            )
        raise ArtifactError(
            message,
            f"run `lshdup {request.command} DOCS` (files or folders); {named} is named by --store DIR",
        )
