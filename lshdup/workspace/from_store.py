"""Collections from the store: what the last run kept; what is stale there is rebuilt."""

from pathlib import Path
from typing import NoReturn

from lshdup.collection.collect import sketched
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import FilterRequest, build_filter, filter_collection
from lshdup.errors import ArtifactError
from lshdup.params import DEFAULT_STORE, BandParams, FilterParams, SketchParams
from lshdup.store.collection_io import corpus_id, unfiltered_id
from lshdup.store.store import Store
from lshdup.utils.ragged import RaggedSets
from lshdup.workspace.context import RunContext
from lshdup.workspace.filter_request import read_filter_request
from lshdup.workspace.request import Request, check_conflict, merge_params

_NAME_AGAIN = "name the documents again"
_SIGN_AGAIN = "run `lshdup signatures` with these options, or name the documents again"


def load_shingles(run: RunContext, request: Request) -> Collection:
    """Load shingles.npz. Raise ArtifactError if it is missing or was made with other options."""
    shingles = run.store.load_collection("shingles") if run.store is not None else None
    if shingles is None:
        _refuse_nothing(run, "shingles", request)
    remedy = "run `lshdup shingle DOCS` with these options"
    check_conflict("shingles.npz", shingles.shingle, request.given, remedy)
    return shingles


def load_or_sketch_signatures(
    run: RunContext, request: Request, *, verify: bool, save: bool
) -> Collection:
    """Load signatures.npz; or sketch shingles.npz, if that is newer and of other documents.

    Parameters
    ----------
    run : state of the run.
    request : what is set explicitly must be as it was.
    verify : check every byte of signatures.npz, or only what is read.
    save : whether it is an error if new signatures cannot be saved.

    """
    if run.store is None:
        _refuse_nothing(run, "signatures", request)
    signatures = run.store.load_collection("signatures", verify=verify)
    shingles = run.store.load_collection("shingles", verify=False)
    if signatures is not None and signatures.sketch is not None:
        is_stale = (
            shingles is not None
            and corpus_id(shingles) != unfiltered_id(signatures)
            and run.shingles_are_newer()
        )
        if not is_stale:
            _check_filter(run, signatures, request)
            check_conflict("signatures.npz", signatures.shingle, request.given, _NAME_AGAIN)
            check_conflict("signatures.npz", signatures.sketch, request.given, _SIGN_AGAIN)
            return signatures
    if shingles is None:
        _refuse_nothing(run, "signatures", request)
    shingles = load_shingles(run, request)
    base = signatures.sketch if signatures is not None else None
    run.say(f"signatures.npz is made from shingles.npz{', which is newer' if base else ''}")
    wanted = read_filter_request(run, request, shingles.shingle, signatures)
    sketch = merge_params(SketchParams, request.given, base)
    return sketch_shingles(run, shingles, sketch, wanted, request.jobs, save=save)


def sketch_shingles(
    run: RunContext,
    shingles: Collection,
    sketch: SketchParams,
    wanted: FilterRequest | None,
    jobs: int,
    *,
    save: bool,
) -> Collection:
    """Filter and sketch the sets of shingles.npz, and save signatures.npz.

    save : whether it is an error if they cannot be saved.
    """
    if wanted is None:
        collection = sketched(shingles, sketch, jobs, run.room)
    else:
        shingle_filter = build_filter(shingles, wanted, jobs)
        collection = filter_collection(shingles, shingle_filter, sketch, jobs, run.room)

    def keep(store: Store) -> None:
        stored = store.load_collection("shingles", verify=False)
        # Another run may have replaced shingles.npz in between.
        if stored is not None and corpus_id(stored) == corpus_id(shingles):
            store.save_collection("signatures", collection)

    if save:
        assert run.store is not None
        keep(run.store)
    else:
        run.keep("signatures.npz", keep)
    return collection


def _check_filter(run: RunContext, signatures: Collection, request: Request) -> None:
    """Raise ArtifactError if signatures.npz was made with another filter than the requested one."""
    made = FilterParams() if signatures.shingle_filter is None else signatures.shingle_filter.params
    request_ = read_filter_request(run, request, signatures.shingle, signatures)
    wanted = FilterParams() if request_ is None else request_.params
    if wanted.ignore_common != made.ignore_common:
        limit = f"--ignore-common {made.ignore_common:g}"
        was = f"with {limit}" if made.ignore_common else "without --ignore-common"
        message = f"signatures.npz was made {was}, not with {wanted.ignore_common:g}"
        raise ArtifactError(message, _SIGN_AGAIN)
    if wanted.template != made.template:
        was = "with another --template" if made.template else "without --template"
        message = f"signatures.npz was made {was}"
        raise ArtifactError(message, _SIGN_AGAIN)


def load_if_of_last_run(run: RunContext, shingles: Collection) -> Collection | None:
    """Load signatures.npz beside shingles.npz, if they are of the same collection.

    Errors: ArtifactError if signatures.npz is newer and of another collection: the last run kept no
    sets.
    """
    assert run.store is not None
    signatures = run.store.load_collection("signatures", verify=False)
    if signatures is None or unfiltered_id(signatures) == corpus_id(shingles):
        return signatures
    if not run.shingles_are_newer():
        message = f"shingles.npz in {run.store.folder} is not of the last run"
        raise ArtifactError(message, "name DOCS, or run `lshdup shingle DOCS` first")
    return None


def load_sets(
    run: RunContext, collection: Collection, *, verify: bool = False
) -> RaggedSets | None:
    """Return the unfiltered sets of a collection: its own, or those of shingles.npz; None if
    nothing holds them.
    """
    if collection.unfiltered_sets is not None or run.store is None:
        return collection.unfiltered_sets
    try:
        shingles = run.store.load_collection("shingles", verify=verify)
    except ArtifactError:
        return None
    is_same = shingles is not None and corpus_id(shingles) == unfiltered_id(collection)
    return shingles.sets if shingles is not None and is_same else None


def attach_sets(run: RunContext, collection: Collection) -> Collection:
    """Return the collection with the unfiltered sets of shingles.npz, if they are of this
    collection.
    """
    sets = load_sets(run, collection)
    return collection if sets is None else collection.with_unfiltered_sets(sets)


def load_last_threshold(run: RunContext) -> float:
    """Return the threshold of the last index; the default without one."""
    known = run.store.stored_threshold() if run.store is not None else None
    return BandParams().threshold if known is None else known


def choose_threshold(run: RunContext, request: Request) -> float:
    """Return the threshold: explicit, else of the last index (without DOCS), else the default."""
    default = BandParams().threshold if request.documents else load_last_threshold(run)
    wanted: float = request.given.get("threshold", default)
    return wanted


def _refuse_nothing(run: RunContext, kind: str, request: Request) -> NoReturn:
    if run.store is None:
        message = "no documents were named, and --no-store leaves nothing to continue from"
        raise ArtifactError(message, f"name files or folders: `lshdup {request.command} DOCS`")
    store = run.store.folder
    message = f"there is no {kind}.npz in {store}"
    if not request.command:
        raise ArtifactError(message, f"run `lshdup index DOCS --store {store}`")
    named = "a store elsewhere"
    if store == Path(DEFAULT_STORE):
        named = f"a store is looked for in the current folder, {Path.cwd()}: that of an earlier run"
    raise ArtifactError(
        message,
        f"run `lshdup {request.command} DOCS` (files or folders); {named} is named by --store DIR",
    )
