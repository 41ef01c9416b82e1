"""The collection of a request: of DOCS, or of the last run; what the memo knows is not read again.

`load_signatures` answers nearly every command. A command without DOCS continues with the collection
that the manifest names. If that is shingles.npz, signatures are made of it by explicit and default
parameters, and signatures.npz is a cache.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lshdup.base.params import (
    DEFAULT_STORE,
    FEW_TOKENS,
    WHOLE_DOCUMENTS,
    FilterParams,
    PairParams,
    ShingleParams,
    SketchParams,
)
from lshdup.base.ragged import RaggedSets, gather_sets
from lshdup.base.run import beside, no_progress
from lshdup.base.wording import count_of
from lshdup.collection.collect import (
    EVERY_SET,
    Previous,
    collect,
    expects_office_documents,
    sketch_collection,
)
from lshdup.collection.collection import Collection
from lshdup.collection.equal_files import (
    complete,
    find_shared_sizes,
    forget_unread,
    leave_out_small,
)
from lshdup.collection.filtering import build_filter, filter_collection, read_template
from lshdup.collection.set_source import set_source
from lshdup.compare.verification import SET_BYTES
from lshdup.errors import RERUN, ArtifactError, InputError, ParameterError
from lshdup.shingling.shingle_filter import NO_SHINGLES, ShingleFilter, find_first_sets
from lshdup.sources.document_list import DocumentList, summarize_docs, typed_name
from lshdup.sources.expansion import KnownRecords
from lshdup.sources.finding import find_documents
from lshdup.store.added import list_segments
from lshdup.store.memo import Memo, load_known_records
from lshdup.store.store import Store
from lshdup.workspace.request import Request, check_conflict, merge_params
from lshdup.workspace.workspace import Workspace

_SIGN_AGAIN = f"run `lshdup signatures` with these options, or {RERUN}"


# --- what commands load ---------------------------------------------------------------------------


def load_signatures(run: Workspace, request: Request, *, memory: int = 0) -> Collection:
    """Return the collection of a request with signatures, and with its sets if these are kept.

    memory : bytes of sets of documents that are read now that may be kept.
    """
    with signing(run, request, memory=memory) as (collection, _):
        return collection


@contextmanager
def signing(
    run: Workspace,
    request: Request,
    *,
    memory: int = 0,
    save: bool = False,
    verify: bool = True,
    again: bool = False,
) -> Iterator[tuple[Collection, Callable[[Callable[[], None]], None]]]:
    """Yield the collection of a request with signatures, and with its sets if these are kept; and a
    function that has what follows from it saved, once it is saved itself.

    A store that is written stays locked within the block, at the end of which all is saved.

    Parameters
    ----------
    run : state of the run.
    request : names documents, or continues with those of the last run: explicit parameters must
        then be those of the artifact.
    memory : as of `load_signatures`.
    save : whether the command is a step: signatures that are made without DOCS are those that later
        commands continue with, and it is an error if they cannot be saved.
    verify : check every byte of stored signatures, or only the bytes that are read.
    again : whether the signatures of the last run are made again, of its sets or its documents.

    """
    is_named, store = bool(request.documents), run.store
    is_written = is_named or (save and store is not None and store.folder.is_dir())
    save_it = None
    if is_named:
        shingle = merge_params(ShingleParams, request.given)
        wanted = read_filter_request(run, request, shingle)
        documents = find_named(run, request, shingle, is_step=save)
    with run.writing(is_needed=is_written):
        if is_named:
            collection, save_it = _sign_documents(run, request, documents, shingle, wanted, memory)
        else:
            collection = _sign_last(run, request, save=save, verify=verify, again=again)
            if store is not None and list_segments(store):
                where = f"in {store.folder} are also documents that were added by programs"
                run.say(f"{where}; lshdup.Index of Python has them, a command does not")
        collection = replace(collection, sets=load_sets(run, collection, verify=False))
        request.accept(collection.documents, True)
        with beside(run.jobs, save_it) as follow:
            yield collection, follow


def load_all_sets(run: Workspace, request: Request) -> Collection:
    """Return a collection with all its sets, filtered as requested. Nothing is saved.

    Without DOCS, documents that changed or cannot be read again are reported and skipped, and
    nothing that follows from the others is kept in the store.
    """
    if request.documents:
        shingle = merge_params(ShingleParams, request.given)
        wanted = read_filter_request(run, request, shingle)
        documents = find_named(run, request, shingle)
        collection, _ = _collect(run, request, documents, shingle, EVERY_SET, is_saved=False)
    else:
        collection, last = _load_or_read_sets(run, request)
        wanted = read_filter_request(run, request, collection.shingle, last)
    request.accept(collection.documents, True)
    if wanted is not None:
        collection = filter_collection(run, collection, build_filter(run, collection, wanted))
    return collection


def make_shingles(run: Workspace, request: Request) -> Collection:
    """`lshdup shingle`: save the sets of all documents, and return the collection as filtered."""
    if not request.documents:
        message = "no documents were named"
        raise InputError(message, f"{RERUN} (files or folders)")
    run.require_store()
    shingle = merge_params(ShingleParams, request.given)
    wanted = read_filter_request(run, request, shingle)
    documents = find_named(run, request, shingle, is_step=True)
    with run.writing():
        collection, memo = _collect(run, request, documents, shingle, EVERY_SET)
        assert memo is not None
        memo.save(collection, "shingles")
        if wanted is not None:
            shingle_filter = build_filter(run, collection, wanted)
            collection = filter_collection(run, collection, shingle_filter)
        return replace(collection, sets=None)


def load_last_collection(run: Workspace, *, verify: bool = False) -> Collection | None:
    """Load the collection of the last run, to look names up in; None if there is none."""
    if run.store is None:
        return None
    current = run.store.current()
    other = "shingles" if current == "signatures" else "signatures"
    return run.store.load_collection(current, verify=verify) or run.store.load_collection(
        other, verify=verify
    )


def load_sets(run: Workspace, collection: Collection, *, verify: bool) -> RaggedSets | None:
    """Return the unfiltered sets of a collection, its own or from shingles.npz; else None."""
    if collection.sets is not None or run.store is None:
        return collection.sets
    with suppress(ArtifactError):
        shingles = run.store.load_collection("shingles", verify=verify)
        if shingles is not None and shingles.identity == collection.unfiltered_identity:
            return shingles.sets
    return None


def load_or_build_filter(
    run: Workspace, request: Request, shingle: ShingleParams, stored: Collection | None
) -> ShingleFilter | None:
    """Return the filter of sets with these parameters: as requested, else of the last run.

    stored : what `load_last_collection` returns.
    """
    last = stored if stored is not None and stored.shingle == shingle else None
    wanted = read_filter_request(run, request, shingle, last)
    if wanted is None:
        return None
    made = last.shingle_filter if last is not None else None
    if made is not None and made.params == wanted.params:
        return made
    if not wanted.params.ignore_common:
        return wanted
    shingles, _ = _load_or_read_sets(run, request)
    if shingles.shingle != shingle:
        message = "the store was made with other options than are shown"
        raise ArtifactError(message, RERUN)
    return build_filter(run, shingles, wanted)


def most_common_shingles(
    run: Workspace, collection: Collection, most: int
) -> list[tuple[int, int, int]]:
    """Return the most common filtered shingles: (shingle, documents with it, one of them).

    Only for shingles that this run has counted and that shingles.npz holds; else nothing.
    """
    shingle_filter = collection.shingle_filter
    sets = load_sets(run, collection, verify=True)
    if shingle_filter is None or shingle_filter.counts is None or sets is None:
        return []
    top = np.argsort(-shingle_filter.counts.astype(np.int64), kind="stable")[:most]
    shingles, counts = shingle_filter.common[top], shingle_filter.counts[top]
    columns = shingles.tolist(), counts.tolist(), find_first_sets(sets, shingles).tolist()
    return list(zip(*columns, strict=True))


# --- equal files ----------------------------------------------------------------------------------


def compares_files(
    run: Workspace, request: Request, method: PairParams, *, other: bool = False
) -> bool:
    """Return whether documents are compared by their bytes alone, so that files need no text.

    Without DOCS they are if the last run was such a one; else documents with a text are compared.

    other : whether they are compared with those of a store, which have a text.
    """
    is_last = run.store is not None and run.store.is_last("bytes")
    are_files = method.same == "bytes" and not other and (bool(request.documents) or is_last)
    if not are_files and "min_bytes" in request.given:
        message = "--min-bytes has no effect on the documents of a store, which have a text"
        raise ParameterError(message, "leave it out, or name folders")
    if method.same == "bytes" and not are_files:
        run.say("files without text, such as pictures, are not compared: name DOCS, and no store")
    return are_files


def load_whole_documents(*sides: tuple[Workspace, Request]) -> list[Collection]:
    """Return the documents of each side to be compared by their bytes. Files of a size that no
    other has are not read.
    """
    least, made = sides[0][1].given.get("min_bytes", 1), list[Collection]()
    if not sides[0][1].documents:
        run, request = sides[0]
        last = _load_artifact(run, request, "bytes")
        request.accept(last.documents, True)
        return [leave_out_small(last, least)]
    requests = []
    for run, request in sides:
        most = request.given.get("max_bytes", sys.maxsize)
        requests.append((run, replace(request, files=replace(request.files, whole=most))))
    lists = [find_named(run, request, WHOLE_DOCUMENTS) for run, request in requests]
    shared, first = find_shared_sizes(lists, least), 0
    for (run, request), documents, only in zip(requests, lists, shared, strict=True):
        with run.writing():
            found, memo = _collect(run, request, documents, WHOLE_DOCUMENTS, 0, only=only)
            found = complete(found, first)
            if memo is not None:
                memo.save(forget_unread(found), "bytes")
        request.accept(found.documents, True)
        made.append(leave_out_small(found, least))
        first += len(documents)
    return made


# --- the filter that a command requests -----------------------------------------------------------


def read_filter_request(
    run: Workspace, request: Request, shingle: ShingleParams, last: Collection | None = None
) -> ShingleFilter | None:
    """Read the template files of a request and return its filter; None for no filter.

    shingle : parameters of the sets to be filtered.
    last : collection with sets of these parameters, whose filter is the default; None: the default
        is no filter.

    Errors: InputError if no template holds text.
    """
    made = last.shingle_filter if last is not None else None
    limit = request.given.get("ignore_common", made.params.ignore_common if made else 0.0)
    template = made.template.copy() if made is not None else NO_SHINGLES
    if request.templates:
        template = read_template(
            run,
            request.templates,
            request.files.max_bytes,
            shingle,
            lambda documents: request.accept_source(documents, "--template"),
        )
    if not len(template) and not limit:
        return None
    tokens = request.given.get("min_tokens", shingle.min_tokens or FEW_TOKENS)
    least = shingle.count_shingles(tokens)
    if made is not None and "min_tokens" not in request.given:
        least = made.params.least_shingles
    # The other side's, if it says so.
    return ShingleFilter.requested(template, limit, request.given.get("least_shingles", least))


# --- documents that are named ---------------------------------------------------------------------


def find_named(
    run: Workspace, request: Request, shingle: ShingleParams, *, is_step: bool = False
) -> DocumentList:
    """Find the documents that a request names. Unless this is a step, which keeps the sets of all
    documents, a run that reads a stream goes on without its store.
    """
    run.progress("documents", 0, 0)
    known_records: KnownRecords = {}
    if run.store is not None and not request.check_content:
        known_records = load_known_records(run, run.store, request.files)
    documents = find_documents(
        run.but(progress=no_progress),
        request.documents,
        request.files,
        id_lists=shingle.tokens == "ids",
        store=os.fsencode(run.apart) if run.apart is not None else None,
        known_records=known_records,
    )
    streams = documents.record_files.streams
    if streams and not is_step:
        run.forget_store()
    docs = summarize_docs(
        name if name in streams else typed_name(name) for name in request.documents
    )
    documents = replace(documents, docs=docs)
    request.accept(documents, False)
    run.progress("documents", 0, len(documents))
    return documents


def _sign_documents(
    run: Workspace,
    request: Request,
    documents: DocumentList,
    shingle: ShingleParams,
    wanted: ShingleFilter | None,
    memory: int,
) -> tuple[Collection, Callable[[], None] | None]:
    """Collect the signatures of documents; return them, and what saves them, if they are not yet.

    Sets are kept if they fit into `memory` bytes, and for verification where reading a document
    again is slow, or impossible; they are saved only if a reader of office formats made many of
    them, archives would be unpacked again, or a stream had them. Common shingles are counted in all
    unfiltered sets, which are collected first and saved. Without a store nothing is saved.
    """
    sketch, store = merge_params(SketchParams, request.given), run.store
    if wanted is not None and wanted.params.ignore_common:
        whole, memo = _collect(run, request, documents, shingle, EVERY_SET)
        stored = None
        if memo is not None and store is not None:
            memo.save_artifact(whole, "shingles")
            with suppress(ArtifactError, IndexError):  # A damaged artifact is rebuilt.
                stored = store.load_collection("signatures", here=True)
        collection = _sign_sets(run, whole, sketch, wanted, stored)
        if memo is not None:
            memo.save(collection, "shingles", "signatures")
        # shingles.npz holds the sets now; those of an unchanged folder are its own already.
        is_stored = store is not None and whole.read != 0
        return (replace(collection, sets=None) if is_stored else collection), None
    is_slow = expects_office_documents(documents.names) or (
        store is not None and documents.has_packed_members
    )
    is_stream = store is not None and bool(documents.record_files.streams)
    # They are there twice while they are put in order.
    most = min(SET_BYTES, run.memory // 2) // 2
    # Few rows of Parquet are not decoded again. Of many, those that share a bucket are, which is
    # as fast as keeping the sets of all.
    are_kept = is_slow or (documents.has_parquet and documents.spans.sum() <= most // 8)
    keep = EVERY_SET if is_stream else max(memory, most if are_kept else 0)
    collection, memo = _collect(run, request, documents, shingle, keep, sketch, wanted)
    if memo is None:
        return collection, None
    # Sets that were too many to be kept are missing.
    with_sets = (is_slow or is_stream) and collection.sets is not None
    kinds = ("shingles", "signatures") if with_sets else ("signatures",)
    # Where memory is little, what is written and what is made next would push each other out.
    fits = collection.signatures is not None and collection.signatures.nbytes <= run.memory // 4
    if collection.read and not with_sets and fits:
        return collection, partial(memo.save, collection, *kinds)
    memo.save(collection, *kinds)
    return collection, None


def _collect(
    run: Workspace,
    request: Request,
    documents: DocumentList,
    shingle: ShingleParams,
    keep: int,
    sketch: SketchParams | None = None,
    shingle_filter: ShingleFilter | None = None,
    *,
    is_saved: bool = True,
    only: NDArray[np.bool_] | None = None,
) -> tuple[Collection, Memo | None]:
    """Collect what no earlier run has collected, and report the files that are skipped. Return the
    collection, and the memo that saves it, if there is a store.

    is_saved : whether the memo is asked, and written.
    only : bool array over the documents, those that are read if no earlier run has.
    """
    previous: Iterable[Previous] = ()
    memo, store = None, run.store
    if store is not None and is_saved:
        fields, is_checked = documents.record_fields, request.check_content
        memo = Memo(run, store, fields, is_checked, shingle, sketch, shingle_filter)
        found = memo.find(documents, with_sets=keep != 0)
        first = next(found, None)
        previous = chain([first] if first is not None else [], found)
        if sketch is not None and (first is None or (first.rows < 0).any()):
            run.expect_signatures(documents, sketch.perms)
    collection = collect(
        run, documents, shingle, sketch, shingle_filter=shingle_filter, previous=previous,
        keep=keep, checkpoint=memo, wanted=only,
    )  # fmt: skip
    run.report_skipped(collection.skipped, request.documents)
    return collection, memo


def _sign_sets(
    run: Workspace,
    whole: Collection,
    sketch: SketchParams,
    wanted: ShingleFilter | None,
    stored: Collection | None,
) -> Collection:
    """Filter and sketch the sets of a collection, or take the signatures that were made of them.

    stored : what signatures.npz holds.
    """
    if stored is not None and stored.unfiltered_identity == whole.identity:
        made = stored.shingle_filter.params if stored.shingle_filter is not None else None
        same = made == (wanted.params if wanted is not None else None)
        if same and stored.sketch == sketch and stored.shingle == whole.shingle:
            now = ("documents", "skipped", "notes", "read", "sets")
            return replace(stored, **{name: getattr(whole, name) for name in now})
    if wanted is None:
        return sketch_collection(run, whole, sketch)
    return filter_collection(run, whole, build_filter(run, whole, wanted), sketch)


# --- documents of the last run --------------------------------------------------------------------


def _sign_last(
    run: Workspace, request: Request, *, save: bool, verify: bool, again: bool
) -> Collection:
    """Load signatures.npz; or make signatures of the sets or the documents of the last run.

    save, verify, again : as of `load_signatures`.
    """
    store = run.store
    if store is None or (store.current() == "signatures" and not again):
        last = _load_artifact(run, request, "signatures", verify=verify)
        wanted = read_filter_request(run, request, last.shingle, last)
        _check_signatures(last, request, wanted)
        return last
    signatures = store.load_collection("signatures", verify=verify)
    whole, _ = _load_or_read_sets(run, request, refuse_lost=save)
    sketch = merge_params(SketchParams, request.given)
    wanted = read_filter_request(run, request, whole.shingle)
    collection = _sign_sets(run, whole, sketch, wanted, None if again else signatures)
    if signatures is not None and collection.signatures is signatures.signatures:
        return collection
    if not again:
        newer = ", which is newer" if signatures else ""
        run.say(f"signatures.npz is made from shingles.npz{newer}")

    def keep(store: Store) -> None:
        stored = store.load_collection("shingles", verify=False)
        # Another run may have replaced shingles.npz in between.
        if stored is not None and stored.identity == whole.identity:
            store.save_collection("signatures", collection)

    if save:
        store.save_collection("signatures", collection)
        store.make_current("signatures", collection)
    else:
        run.keep("signatures.npz", keep)
    return collection


def _check_signatures(
    signatures: Collection, request: Request, wanted: ShingleFilter | None
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


def _load_unfiltered(run: Workspace, request: Request) -> tuple[Collection, Collection | None]:
    """Load the last run's collection before any filter, with its sets if they were kept.

    Returns signatures.npz too, if the last run made it. Raise ArtifactError if there is nothing, or
    if it was made with other options.
    """
    store = run.store
    signatures = store.load_collection("signatures") if store is not None else None
    if store is not None and signatures is not None and store.current() != "shingles":
        check_conflict("signatures.npz", signatures.shingle, request.given, RERUN)
        sets = load_sets(run, signatures, verify=True)
        return replace(signatures.before_filter, sets=sets), signatures
    shingles = _load_artifact(run, request, "shingles")
    check_conflict("shingles.npz", shingles.shingle, request.given, RERUN)
    return shingles, None


def _load_or_read_sets(
    run: Workspace, request: Request, *, refuse_lost: bool = False
) -> tuple[Collection, Collection | None]:
    """Load the unfiltered sets of the last run; or read its documents again, if it kept none.

    Returns the collection with its sets, and that of signatures.npz if the last run made it.

    refuse_lost : raise InputError if a document cannot be read as before, for what is saved.
    """
    collection, signatures = _load_unfiltered(run, request)
    if collection.sets is None:
        what = ("document of the last run is", "documents of the last run are")
        run.say(f"the {count_of(len(collection.documents), *what)} read again")
        run.progress("documents", 0, len(collection.documents))
        wanted = np.arange(len(collection.documents))
        source = set_source(run, collection, stage="documents")
        sets = gather_sets(source, wanted, collection.sizes, run.arrays)
        readable = np.flatnonzero(sets.sizes == collection.sizes)
        if len(readable) < len(wanted):
            lost = np.setdiff1d(wanted, readable)
            if refuse_lost:
                message = (
                    f"{count_of(len(lost), 'document')} of the last run cannot be read as before"
                )
                hint = "the store stays as it is; `lshdup signatures DOCS` renews it"
                raise InputError(message, hint)
            run.read_only = True
            collection = collection.leave_out_changed(run, lost)
            sets = gather_sets(sets.take, readable, sets.sizes, run.arrays)
        collection = replace(collection, sets=sets)
    return collection, signatures


def _load_artifact(
    run: Workspace, request: Request, kind: str, *, verify: bool = True
) -> Collection:
    """Load an artifact of a collection. Raise ArtifactError if there is none, or if it is damaged.

    verify : whether every byte is verified.
    """
    if run.store is None:
        message = "no documents were named, and --no-store leaves nothing to continue from"
        raise ArtifactError(message, f"{RERUN} (files or folders)")
    if (collection := run.store.load_collection(kind, verify=verify)) is not None:
        return collection
    store = run.store.folder
    message = f"there is no {kind}.npz in {store}"
    if request.is_other:
        raise ArtifactError(message, f"run `lshdup index DOCS --store {store}`")
    named = "a store elsewhere"
    if store == Path(DEFAULT_STORE):
        named = f"a store is looked for in {Path.cwd()} and above: that of an earlier run"
    hint = f"{RERUN} (files or folders); {named} is named by --store DIR"
    raise ArtifactError(message, hint)
