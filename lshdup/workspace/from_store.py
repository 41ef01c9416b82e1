"""Collections from the store, as the last run left them; stale artifacts are rebuilt."""

from pathlib import Path
from typing import NoReturn

from lshdup.collection.collect import sketch_collection
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import FilterRequest, build_filter, filter_collection
from lshdup.errors import RERUN, ArtifactError
from lshdup.params import DEFAULT_STORE, BandParams, FilterParams, SketchParams
from lshdup.store import results_io
from lshdup.store.store import Store
from lshdup.utils.ragged import RaggedSets
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
    """Load signatures.npz; or sketch shingles.npz, if that is newer and of other documents.

    Parameters
    ----------
    run : state of the run.
    request : explicit parameters must be those of the artifact.
    verify : check every byte of signatures.npz, or only the bytes that are read.
    save : whether it is an error if new signatures cannot be saved.

    """
    signatures, shingles = _load_current(run, request, verify=verify)
    current = signatures if shingles is None else shingles
    assert current is not None
    wanted = read_filter_request(run, request, current.shingle, signatures)
    if shingles is None:
        _check_signatures(current, request, wanted)
        return current
    base = signatures.sketch if signatures is not None else None
    run.say(f"signatures.npz is made from shingles.npz{', which is newer' if base else ''}")
    sketch = merge_params(SketchParams, request.given, base)
    return sketch_shingles(run, shingles, sketch, wanted, request.jobs, save=save)


def _load_current(
    run: RunContext, request: Request, *, verify: bool
) -> tuple[Collection | None, Collection | None]:
    """Load signatures.npz; and shingles.npz, if signatures must be made from it."""
    if run.store is None:
        _refuse_nothing(run, "signatures", request)
    signatures = run.store.load_collection("signatures", verify=verify)
    shingles = run.store.load_collection("shingles", verify=False)
    if signatures is not None and signatures.sketch is not None:
        is_newer = shingles is not None and run.shingles_are_newer()
        is_same = shingles is not None and shingles.identity == signatures.unfiltered_identity
        if not is_newer or is_same:
            return signatures, None
    if shingles is None:
        _refuse_nothing(run, "signatures", request)
    return signatures, load_shingles(run, request)


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
        collection = sketch_collection(shingles, sketch, jobs, run.room)
    else:
        shingle_filter = build_filter(shingles, wanted, jobs)
        collection = filter_collection(shingles, shingle_filter, sketch, jobs, run.room)

    def keep(store: Store) -> None:
        stored = store.load_collection("shingles", verify=False)
        # Another run may have replaced shingles.npz in between.
        if stored is not None and stored.identity == shingles.identity:
            store.save_collection("signatures", collection)

    if save:
        assert run.store is not None
        keep(run.store)
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


def load_if_of_last_run(run: RunContext, shingles: Collection) -> Collection | None:
    """Load signatures.npz beside shingles.npz, if they are of the same collection.

    Errors: ArtifactError if signatures.npz is newer and of another collection: the last run kept no
    sets.
    """
    assert run.store is not None
    signatures = run.store.load_collection("signatures", verify=False)
    if signatures is None or signatures.unfiltered_identity == shingles.identity:
        return signatures
    if not run.shingles_are_newer():
        message = f"shingles.npz in {run.store.folder} is not of the last run"
        raise ArtifactError(message, RERUN)
    return None


def load_sets(
    run: RunContext, collection: Collection, *, verify: bool = False
) -> RaggedSets | None:
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
    sets = load_sets(run, collection)
    return collection if sets is None else collection.with_unfiltered_sets(sets)


def load_last_threshold(run: RunContext) -> float:
    """Return the threshold of the last index; the default without one."""
    known = results_io.load_threshold(run.store) if run.store is not None else None
    return BandParams().threshold if known is None else known


def choose_threshold(run: RunContext, request: Request) -> float:
    """Return the threshold: explicit, else of the last index (without DOCS), else the default."""
    default = BandParams().threshold if request.documents else load_last_threshold(run)
    wanted: float = request.given.get("threshold", default)
    return wanted


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
        named = f"a store is looked for in the current folder, {Path.cwd()}: that of an earlier run"
    hint = f"{RERUN} (files or folders); {named} is named by --store DIR"
    raise ArtifactError(message, hint)
