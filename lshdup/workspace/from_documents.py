"""Collections from documents: what has not changed comes from the store or a journal."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lshdup.base.messages import count_of
from lshdup.base.parallel import no_progress
from lshdup.base.scratch import Spool
from lshdup.collection.collect import Previous, collect, sketch_collection
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import FilterRequest, build_filter, filter_collection
from lshdup.collection.joining import join_collections
from lshdup.collection.set_keeper import expects_office_documents
from lshdup.compare.verification import SET_BYTES
from lshdup.errors import ArtifactError, InputError
from lshdup.params import ShingleParams, SketchParams
from lshdup.pipeline import EVERY_SET
from lshdup.shingling.shingle_filter import ShingleFilter, are_same_filters
from lshdup.sources.document_list import (
    DocumentList,
    describe_docs,
    list_outside,
    summarize_docs,
    typed_name,
)
from lshdup.sources.expansion import KnownRecords
from lshdup.sources.finding import find_documents
from lshdup.workspace.context import RunContext
from lshdup.workspace.filter_request import read_filter_request
from lshdup.workspace.from_store import is_made_from
from lshdup.workspace.request import Request, list_definition, merge_params
from lshdup.workspace.unchanged import (
    count_known,
    find_known_records,
    find_still_skipped,
    find_unchanged,
)

if TYPE_CHECKING:
    from lshdup.store.journal import Journal


def collect_sets(
    run: RunContext,
    request: Request,
    documents: DocumentList,
    shingle: ShingleParams,
    keep: Spool | int,
) -> Collection:
    """Collect the unfiltered sets of the documents that a request names.

    Parameters
    ----------
    run : state of the run.
    request : names the documents.
    documents : as `find_named` returns them.
    shingle : parameters of the sets.
    keep : where the sets are: in a spool, or in memory as far as they fit into so many bytes.

    """
    return _collect(run, request, documents, shingle, None, keep)


def collect_signatures(run: RunContext, request: Request, memory: int) -> Collection:
    """Collect and save the signatures of the documents that a request names.

    Sets are kept if they fit into `memory` bytes, and for verification where reading a document
    again is slow; they are saved only if a reader of office formats made many of them, or archives
    would be unpacked again. Without a store nothing is saved.
    """
    shingle = merge_params(ShingleParams, request.given)
    wanted = read_filter_request(run, request, shingle)
    sketch = merge_params(SketchParams, request.given)
    if wanted is not None and wanted.ignore_common:
        return _collect_in_two_passes(run, request, shingle, sketch, wanted)
    shingle_filter = build_filter(run, None, wanted) if wanted is not None else None
    documents = find_named(run, request, shingle)
    journal = _open_journal(run, documents, shingle, sketch, shingle_filter)
    is_slow = expects_office_documents(documents.names) or (
        run.store is not None and documents.has_packed_members
    )
    # They are there twice while they are put in order.
    most = min(SET_BYTES, run.memory // 2) // 2
    # Few rows of Parquet are not decoded again. Of many, those that share a bucket are, which is
    # as fast as keeping the sets of all.
    are_kept = is_slow or (documents.has_parquet and documents.spans.sum() <= most // 8)
    keep = max(memory, most if are_kept else 0)
    collection = _collect(run, request, documents, shingle, sketch, keep, shingle_filter, journal)
    if run.store is not None:
        kinds = ("shingles", "signatures") if is_slow else ("signatures",)
        _save(run, collection, kinds, journal)
        _drop_useless_sets(run, collection, request.check_content)
    if journal is not None:
        journal.remove()
    return collection


def _drop_useless_sets(run: RunContext, collection: Collection, is_checked: bool) -> None:
    """Drop stored sets that spare no later run the reading of a document.

    is_checked : whether the content of the collection was checked. By size and time, other sets
        would count as those of documents that were changed behind their back.
    """
    assert run.store is not None
    with suppress(ArtifactError, IndexError):  # A damaged artifact is rebuilt, and said then.
        stored = run.store.load_collection("shingles", here=True, verify=False)
        if stored is None or stored.identity == collection.unfiltered_identity:
            return
        serves = stored.shingle == collection.shingle and not is_checked
        if not serves or not count_known(run, stored, collection.documents):
            run.store.drop("shingles")


def _collect_in_two_passes(
    run: RunContext,
    request: Request,
    shingle: ShingleParams,
    sketch: SketchParams,
    wanted: FilterRequest,
) -> Collection:
    """Collect all unfiltered sets, then count the common shingles, filter and sketch."""
    store = run.store
    documents = find_named(run, request, shingle)
    with Spool(store.folder) if store is not None else nullcontext() as spool:
        journal = _open_journal(run, documents, shingle)
        keep = spool or EVERY_SET
        collection = _collect(run, request, documents, shingle, None, keep, None, journal)
        if store is None:
            shingle_filter = build_filter(run, collection, wanted)
            return filter_collection(run, collection, shingle_filter, sketch)
        _save(run, collection, ("shingles",), journal)
        stored = _load_for_reuse(run, "signatures")
        if stored is not None and is_made_from(stored, collection, wanted, sketch):
            collection = replace(
                stored,
                documents=collection.documents,
                skipped=collection.skipped,
                notes=collection.notes,
                read=collection.read,
            )
        else:
            shingle_filter = build_filter(run, collection, wanted)
            collection = filter_collection(run, collection, shingle_filter, sketch)
        _save(run, collection, ("signatures",), journal)
        if journal is not None:
            journal.remove()
        # The spool ends here, and shingles.npz holds its sets now. The sets of an unchanged folder
        # are those of shingles.npz already.
        return collection.with_unfiltered_sets(None) if collection.read else collection


def _open_journal(
    run: RunContext,
    documents: DocumentList,
    shingle: ShingleParams,
    sketch: SketchParams | None = None,
    shingle_filter: ShingleFilter | None = None,
) -> "Journal | None":
    """Open the journal from which an interrupted run is resumed, if there is a store."""
    if run.store is None:
        return None
    from lshdup.store.journal import Journal  # Imported here to keep `query` fast.

    fields = documents.record_fields
    journal = Journal(run.store, shingle, sketch, fields, run.say, shingle_filter)
    run.on_journal(journal, shingle)
    return journal


def _save(
    run: RunContext, collection: Collection, kinds: tuple[str, ...], journal: "Journal | None"
) -> None:
    """Save artifacts; remove the journal, which is nearly as large, if the disk is full."""
    assert run.store is not None
    try:
        for kind in kinds:
            # Sets that were too many to be kept are missing.
            if kind != "shingles" or collection.unfiltered_sets is not None:
                run.store.save_collection(kind, collection)
    except ArtifactError:
        if journal is None or not journal.remove():
            raise
        _save(run, collection, kinds, None)


def find_named(
    run: RunContext, request: Request, shingle: ShingleParams, *, replaces: bool = True
) -> DocumentList:
    """Find the documents that a request names; the store is made when they are accepted.

    replaces : whether the run replaces the collection of the store, which must be the same one.
    """
    run.progress("documents", 0, 0)
    documents = find_documents(
        run.with_progress(no_progress),
        request.documents,
        request.files,
        id_lists=shingle.tokens == "ids",
        store=os.fsencode(run.apart) if run.apart is not None else None,
        known_records={} if request.check_content else _load_known_records(run, request),
    )
    docs = summarize_docs(map(typed_name, request.documents))
    documents = replace(documents, docs=docs)
    request.accept(documents, False)
    run.begin()
    if replaces:
        _check_store(run, request, shingle)
    run.progress("documents", 0, len(documents))
    return documents


def _load_known_records(run: RunContext, request: Request) -> KnownRecords:
    """Load where the records of files were in the last run."""
    if run.store is None:
        return {}
    try:
        old = run.store.load_collection(run.store.newest(), here=True)
        return {} if old is None else find_known_records(run, old, request.files)
    except (ArtifactError, IndexError):  # A damaged artifact is rebuilt, and that is said then.
        return {}


def describe_other_collection(run: RunContext, documents: Sequence[bytes]) -> str:
    """Return what the store holds, if it holds documents that a run with these DOCS drops; else "".

    Files that were deleted since do not count.
    """
    wanted = _locate(documents)
    for old in _load_held(run):
        with suppress(ArtifactError, IndexError):  # The other artifact may tell.
            docs = old.documents.typed_docs()
            if any(list_outside(_locate(docs), wanted)):
                lost = list_outside(_locate(old.documents.typed_files()), wanted)
                if any(map(os.path.lexists, lost)):
                    return count_of(len(old.documents), "document") + describe_docs(docs)
            return ""
    return ""


def _load_held(run: RunContext) -> Iterator[Collection]:
    """Yield what the artifacts of the store hold, of the last run first.

    A damaged artifact is passed over: it is rebuilt, and that is said then.
    """
    if run.store is not None:
        for kind in sorted(("signatures", "shingles"), key=run.store.newest().__ne__):
            held = None
            with suppress(ArtifactError, IndexError):
                held = run.store.load_collection(kind, verify=False)
            if held is not None:
                yield held


def _locate(paths: Iterable[bytes]) -> list[bytes]:
    return [os.path.abspath(path) for path in paths]  # noqa: PTH100 (bytes path)


def _check_store(run: RunContext, request: Request, shingle: ShingleParams) -> None:
    """Raise InputError if the store holds another collection, which this run would replace.

    Say so if it holds the same one, made with other parameters.
    """
    if run.store is None or not run.store.is_held:
        return
    held = "" if request.replace_store else describe_other_collection(run, request.documents)
    if held:
        message = f"the store {run.store.folder} holds another collection: {held}"
        raise InputError(
            message,
            "keep these documents in a store of their own with --store DIR, or keep nothing with"
            " --no-store; LSHDUP_REPLACE_STORE=1 replaces what the store holds",
        )
    old = next(_load_held(run), None)
    if old is not None and old.shingle != shingle:
        run.say(f"the store was made with {' '.join(list_definition(old))}; it is rebuilt")


def _collect(
    run: RunContext,
    request: Request,
    documents: DocumentList,
    shingle: ShingleParams,
    sketch: SketchParams | None,
    keep: Spool | int,
    shingle_filter: ShingleFilter | None = None,
    journal: "Journal | None" = None,
) -> Collection:
    """Collect what no earlier run has collected, and report the files that are skipped."""
    previous = None
    if not request.check_content:
        previous = _load_previous(run, documents, shingle, sketch, shingle_filter, journal)
    if sketch is not None and (previous is None or (previous.rows < 0).any()):
        run.expect_signatures(documents, sketch.perms, journal.size() if journal else 0)
    collection = collect(
        run, documents, shingle, sketch, shingle_filter=shingle_filter, previous=previous,
        keep=keep, checkpoint=journal, on_sets=run.on_sets,
    )  # fmt: skip
    run.report_skipped(collection.skipped, request.documents)
    return collection


def _load_previous(
    run: RunContext,
    documents: DocumentList,
    shingle: ShingleParams,
    sketch: SketchParams | None,
    shingle_filter: ShingleFilter | None,
    journal: "Journal | None",
) -> Previous | None:
    """Load the results of earlier runs, from the store and from the journal."""
    old = _load_stored(run, documents, shingle, sketch, shingle_filter)
    if old is not None and shingle_filter is not None and old.shingle_filter is None:
        old = filter_collection(run, old, shingle_filter, sketch)
    finished = journal.load_finished(run.arrays) if journal is not None else None
    if finished is not None:
        if old is not None and sketch is not None and old.signatures is None:
            old = sketch_collection(run, old, sketch)
        old = finished if old is None else join_collections([old, finished], run.arrays)
    if old is None:
        return None
    rows = find_unchanged(run, old.documents, documents)
    if finished is not None:
        resumed = np.count_nonzero(rows >= len(old.documents) - len(finished.documents))
        if resumed:
            what = ("document of an interrupted run is", "documents of an interrupted run are")
            run.say(f"resumed: {count_of(int(resumed), *what)} not read again")
    # A record that other fields make no document may be one with these fields.
    same_fields = old.documents.record_fields in (None, documents.record_fields)
    return Previous(old, rows, find_still_skipped(old, documents) if same_fields else {})


def _load_stored(
    run: RunContext,
    documents: DocumentList,
    shingle: ShingleParams,
    sketch: SketchParams | None,
    shingle_filter: ShingleFilter | None,
) -> Collection | None:
    """Load the stored collection with these parameters; else the unfiltered sets."""
    old = _load_for_reuse(run, "signatures") if sketch is not None else None
    if old is not None and (
        old.shingle != shingle
        or old.sketch != sketch
        or not are_same_filters(old.shingle_filter, shingle_filter)
    ):
        old = None
    if old is not None:
        known = count_known(run, old, documents)
        if known == len(documents) or _are_older_sets(run, old, known, documents):
            return old
    shingles = _load_for_reuse(run, "shingles", "removed" if sketch is not None else "rebuilt")
    if shingles is None or shingles.shingle != shingle:
        return old
    if old is None:
        return shingles
    if old.unfiltered_identity == shingles.identity:
        return old.with_unfiltered_sets(shingles.sets)
    # If the last run ended between saving shingles and signatures, shingles.npz knows more.
    more = count_known(run, shingles, documents) >= known
    return shingles if more else old


def _are_older_sets(
    run: RunContext, signatures: Collection, known: int, documents: DocumentList
) -> bool:
    """Return whether shingles.npz is of an earlier run and knows no more documents; only its
    header and its documents are looked at.
    """
    with suppress(ArtifactError, IndexError):  # Damage is said when all of it is verified.
        kept = run.store.load_collection("shingles", here=True, verify=False) if run.store else None
        is_other = kept is not None and kept.identity != signatures.unfiltered_identity
        return kept is not None and is_other and count_known(run, kept, documents) <= known
    return False


def _load_for_reuse(run: RunContext, kind: str, fate: str = "rebuilt") -> Collection | None:
    """Load an artifact; drop it and return None if it is damaged. fate : what is said of it."""
    if run.store is None:
        return None
    try:
        stored = run.store.load_collection(kind, here=True)
        usable = stored.without_other_readers() if stored is not None else None
        if usable is not stored:
            run.say_once(
                "the reader of office documents is another one than in the last run: they are read"
                " again"
            )
        return usable
    except ArtifactError as error:
        run.say(f"{error.message}; it is {fate}")
        if run.store.is_held:
            run.store.drop(kind)
        return None
