"""Collections from the store, as the last run with DOCS left them; stale artifacts are rebuilt.

The newest collection in the store is the one that a command without DOCS continues with. If that is
shingles.npz, signatures are made by explicit and default parameters, and signatures.npz is a cache.
"""

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np

from lshdup.base.messages import count_of
from lshdup.base.ragged import RaggedSets
from lshdup.base.scratch import Spool
from lshdup.base.skipped import Reason, Skipped
from lshdup.collection.collect import collect, sketch_collection
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import FilterRequest, build_filter, filter_collection
from lshdup.collection.set_source import set_source
from lshdup.errors import RERUN, ArtifactError, InputError
from lshdup.params import DEFAULT_STORE, FilterParams, SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.store.store import Store
from lshdup.workspace.context import RunContext
from lshdup.workspace.filter_request import read_filter_request
from lshdup.workspace.request import Request, check_conflict, merge_params

_SIGN_AGAIN = f"run `lshdup signatures` with these options, or {RERUN}"


def load_shingles(run: RunContext, request: Request) -> Collection:
    """Load shingles.npz. Raise ArtifactError if it is missing or was made with other options."""
    shingles = run.store.load_collection("shingles") if run.store is not None else None
    if shingles is None:
        _refuse_nothing(run, "shingles", request)
    check_conflict("shingles.npz", shingles.shingle, request.given, RERUN)
    return shingles


def load_or_sketch_signatures(
    run: RunContext, request: Request, *, verify: bool, save: bool
) -> Collection:
    """Load signatures.npz; or sketch shingles.npz, if that is newer.

    Parameters
    ----------
    run : state of the run.
    request : explicit parameters must be those of the artifact.
    verify : check every byte of signatures.npz, or only the bytes that are read.
    save : whether new signatures are those that later commands continue with; it is an error then
        if they cannot be saved.

    """
    if run.store is None:
        _refuse_nothing(run, "signatures", request)
    signatures = run.store.load_collection("signatures", verify=verify)
    if run.store.current() == "signatures":
        if signatures is None:
            _refuse_nothing(run, "signatures", request)
        wanted = read_filter_request(run, request, signatures.shingle, signatures)
        _check_signatures(signatures, request, wanted)
        return signatures
    shingles = load_shingles(run, request)
    sketch = merge_params(SketchParams, request.given)
    wanted = read_filter_request(run, request, shingles.shingle)
    if signatures is not None and is_made_from(signatures, shingles, wanted, sketch):
        now = {name: getattr(shingles, name) for name in ("documents", "skipped", "notes")}
        return replace(signatures, **now)
    run.say(f"signatures.npz is made from shingles.npz{', which is newer' if signatures else ''}")
    return sketch_shingles(run, shingles, sketch, wanted, save=save)


def is_made_from(
    signatures: Collection,
    unfiltered: Collection,
    wanted: FilterRequest | None,
    sketch: SketchParams,
) -> bool:
    """Return whether signatures were made from these sets with this filter."""
    made = signatures.shingle_filter.params if signatures.shingle_filter is not None else None
    same = made == (wanted.params if wanted is not None else None) and signatures.sketch == sketch
    same = same and signatures.shingle == unfiltered.shingle
    return same and signatures.unfiltered_identity == unfiltered.identity


def sketch_shingles(
    run: RunContext,
    shingles: Collection,
    sketch: SketchParams,
    wanted: FilterRequest | None,
    *,
    save: bool,
) -> Collection:
    """Filter and sketch the sets of shingles.npz, and save signatures.npz.

    save : whether later commands continue with them, or with shingles.npz.
    """
    if wanted is None:
        collection = sketch_collection(run, shingles, sketch)
    else:
        shingle_filter = build_filter(run, shingles, wanted)
        collection = filter_collection(run, shingles, shingle_filter, sketch)

    def keep(store: Store) -> None:
        stored = store.load_collection("shingles", verify=False)
        # Another run may have replaced shingles.npz in between.
        if stored is not None and stored.identity == shingles.identity:
            store.save_collection("signatures", collection)

    if save:
        assert run.store is not None
        run.store.save_collection("signatures", collection)
        run.store.make_current("signatures", collection)
    else:
        run.keep("signatures.npz", keep)
    return collection


def _check_signatures(
    signatures: Collection, request: Request, wanted: FilterRequest | None
) -> None:
    """Raise ArtifactError if signatures.npz was made with another filter or parameters."""
    made = FilterParams() if signatures.shingle_filter is None else signatures.shingle_filter.params
    params = FilterParams() if wanted is None else wanted.params
    if params.ignore_common != made.ignore_common:
        limit = f"--ignore-common {made.ignore_common:g}"
        was = f"with {limit}" if made.ignore_common else "without --ignore-common"
        message = f"signatures.npz was made {was}, not with {params.ignore_common:g}"
        raise ArtifactError(message, _SIGN_AGAIN)
    if params.template != made.template:
        was = "with another --template" if made.template else "without --template"
        message = f"signatures.npz was made {was}"
        raise ArtifactError(message, _SIGN_AGAIN)
    assert signatures.sketch is not None
    check_conflict("signatures.npz", signatures.shingle, request.given, RERUN)
    check_conflict("signatures.npz", signatures.sketch, request.given, _SIGN_AGAIN)
    if params.least_shingles != made.least_shingles:
        message = (
            f"signatures.npz has no documents with fewer than {made.least_shingles} shingles left; "
            f"this --min-tokens asks for {params.least_shingles}"
        )
        raise ArtifactError(message, _SIGN_AGAIN)


def load_last_collection(run: RunContext, *, verify: bool) -> Collection | None:
    """Load the newest collection of the store, to look names up in; None if there is none."""
    if run.store is None:
        return None
    current = run.store.current()
    other = "shingles" if current == "signatures" else "signatures"
    return run.store.load_collection(current, verify=verify) or run.store.load_collection(
        other, verify=verify
    )


def sign_again(run: RunContext, request: Request) -> Collection:
    """Make and save the signatures of the documents of the last run.

    They are made of its sets, or of its documents, read again. Raise InputError, and leave the
    store as it is, if a document changed or cannot be read.
    """
    collection, _ = _load_unfiltered(run, request)
    wanted = read_filter_request(run, request, collection.shingle)
    sketch = merge_params(SketchParams, request.given)
    if collection.sets is not None:
        return sketch_shingles(run, collection, sketch, wanted, save=True)
    assert run.store is not None
    if wanted is not None and wanted.ignore_common:  # All sets are counted before one is filtered.
        with Spool(run.store.folder) as spool:
            unfiltered = _collect_again(run, collection, None, None, spool)
            return sketch_shingles(run, unfiltered, sketch, wanted, save=True)
    shingle_filter = build_filter(run, None, wanted) if wanted is not None else None
    signatures = _collect_again(run, collection, sketch, shingle_filter, 0)
    run.store.save_collection("signatures", signatures)
    run.store.make_current("signatures", signatures)
    return signatures


def _collect_again(
    run: RunContext,
    collection: Collection,
    sketch: SketchParams | None,
    shingle_filter: ShingleFilter | None,
    keep: Spool | int,
) -> Collection:
    """Collect the documents of a collection again. Raise InputError if one is not what it was."""
    _say_read_again(run, collection)
    again = collect(
        run, collection.documents, collection.shingle, sketch, shingle_filter=shingle_filter,
        keep=keep,
    )  # fmt: skip
    lost = _find_lost(collection, again)
    if lost:
        for each in lost:
            run.skipped(each)
        message = f"{count_of(len(lost), 'document')} of the last run cannot be read as before"
        raise InputError(message, "the store stays as it is; `lshdup signatures DOCS` renews it")
    return replace(again, skipped=collection.skipped, notes=collection.notes, read=None)


def _find_lost(before: Collection, again: Collection) -> list[Skipped]:
    """Return the documents that were not read again, or not as what they were."""
    now = again.before_filter.columns
    if again.documents is before.documents:
        same = [column == before.columns[name] for name, column in now.items()]
        changed = before.documents.names.strings_at(np.flatnonzero(~np.all(same, axis=0)))
        return [Skipped(name, Reason.CHANGED, "it is not what was indexed") for name in changed]
    there = set(again.documents.names)
    why = {each.skipped.name: each.skipped for each in again.skipped}
    return [
        why.get(name, Skipped(name, Reason.CHANGED, "it is not what was indexed"))
        for name in before.documents.names
        if name not in there
    ]


def _say_read_again(run: RunContext, collection: Collection) -> None:
    """Say that all documents are read, which takes as long as a first run."""
    what = ("document of the last run is", "documents of the last run are")
    run.say(f"the {count_of(len(collection.documents), *what)} read again")
    run.progress("documents", 0, len(collection.documents))


def load_or_read_sets(run: RunContext, request: Request) -> tuple[Collection, Collection | None]:
    """Load the unfiltered sets of the last run; or read its documents again, if it kept none.

    Documents that changed or cannot be read again are reported and skipped, and nothing that
    follows from the others is kept in the store.

    Returns the collection with its sets, and that of signatures.npz if the last run made it.
    """
    collection, signatures = _load_unfiltered(run, request)
    if collection.sets is None:
        _say_read_again(run, collection)
        wanted = np.arange(len(collection.documents))
        sets = set_source(run, collection, stage="documents")(wanted)
        readable = np.flatnonzero(sets.sizes == collection.sizes)
        if len(readable) < len(wanted):
            run.read_only = True
            lost = np.setdiff1d(wanted, readable)
            collection, sets = collection.leave_out_changed(run, lost), sets.take(readable)
        collection = collection.with_unfiltered_sets(sets)
    return collection, signatures


def _load_unfiltered(run: RunContext, request: Request) -> tuple[Collection, Collection | None]:
    """Load the last run's collection before any filter, with its sets if they were kept.

    Returns signatures.npz too, if the last run made it.
    """
    store = run.store
    signatures = store.load_collection("signatures") if store is not None else None
    if store is None or signatures is None or store.current() == "shingles":
        return load_shingles(run, request), None
    check_conflict("signatures.npz", signatures.shingle, request.given, RERUN)
    sets = load_sets(run, signatures, verify=True)
    return signatures.before_filter.with_unfiltered_sets(sets), signatures


def load_sets(run: RunContext, collection: Collection, *, verify: bool) -> RaggedSets | None:
    """Return the unfiltered sets of a collection, its own or from shingles.npz; else None."""
    if collection.unfiltered_sets is not None or run.store is None:
        return collection.unfiltered_sets
    try:
        shingles = run.store.load_collection("shingles", verify=verify)
    except ArtifactError:
        return None
    is_same = shingles is not None and shingles.identity == collection.unfiltered_identity
    return shingles.sets if shingles is not None and is_same else None


def attach_sets(run: RunContext, collection: Collection) -> Collection:
    """Return the collection with the sets of shingles.npz, if they are its own."""
    sets = load_sets(run, collection, verify=False)
    return collection if sets is None else collection.with_unfiltered_sets(sets)


def _refuse_nothing(run: RunContext, kind: str, request: Request) -> NoReturn:
    if run.store is None:
        message = "no documents were named, and --no-store leaves nothing to continue from"
        raise ArtifactError(message, f"{RERUN} (files or folders)")
    store = run.store.folder
    message = f"there is no {kind}.npz in {store}"
    if request.is_other:
        raise ArtifactError(message, f"run `lshdup index DOCS --store {store}`")
    named = "a store elsewhere"
    if store == Path(DEFAULT_STORE):
        named = f"a store is looked for in {Path.cwd()} and above: that of an earlier run"
    hint = f"{RERUN} (files or folders); {named} is named by --store DIR"
    raise ArtifactError(message, hint)
