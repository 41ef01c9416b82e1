"""Collections from documents: what the memo knows of them is not read again."""

import os
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from lshdup.base.parallel import no_progress
from lshdup.base.scratch import Spool
from lshdup.collection.collect import Previous, collect
from lshdup.collection.collection import Collection
from lshdup.collection.filtering import FilterRequest, build_filter, filter_collection
from lshdup.collection.set_keeper import expects_office_documents
from lshdup.compare.verification import SET_BYTES
from lshdup.errors import ArtifactError
from lshdup.params import ShingleParams, SketchParams
from lshdup.pipeline import EVERY_SET
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.sources.document_list import DocumentList, summarize_docs, typed_name
from lshdup.sources.expansion import KnownRecords
from lshdup.sources.finding import find_documents
from lshdup.workspace.context import RunContext
from lshdup.workspace.filter_request import read_filter_request
from lshdup.workspace.from_store import is_made_from, load_last_collection
from lshdup.workspace.request import Request, list_definition, merge_params

if TYPE_CHECKING:
    from lshdup.store.memo import Memo


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
    memo = _open_memo(run, documents, shingle, sketch, shingle_filter)
    is_slow = expects_office_documents(documents.names) or (
        run.store is not None and documents.has_packed_members
    )
    # They are there twice while they are put in order.
    most = min(SET_BYTES, run.memory // 2) // 2
    # Few rows of Parquet are not decoded again. Of many, those that share a bucket are, which is
    # as fast as keeping the sets of all.
    are_kept = is_slow or (documents.has_parquet and documents.spans.sum() <= most // 8)
    keep = max(memory, most if are_kept else 0)
    collection = _collect(run, request, documents, shingle, sketch, keep, memo, shingle_filter)
    if memo is not None:
        # Sets that were too many to be kept are missing.
        has_sets = is_slow and collection.unfiltered_sets is not None
        kinds = ("shingles", "signatures") if has_sets else ("signatures",)
        memo.save(collection, *kinds, is_checked=request.check_content)
    return collection


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
        memo = _open_memo(run, documents, shingle)
        collection = _collect(run, request, documents, shingle, None, spool or EVERY_SET, memo)
        stored = None
        if memo is not None and store is not None:
            memo.save_artifact(collection, "shingles", is_checked=request.check_content)
            with suppress(ArtifactError, IndexError):  # A damaged artifact is rebuilt.
                stored = store.load_collection("signatures", here=True)
        if stored is not None and is_made_from(stored, collection, wanted, sketch):
            collection = replace(
                stored,
                documents=collection.documents,
                skipped=collection.skipped,
                notes=collection.notes,
                read=collection.read,
            ).with_unfiltered_sets(collection.sets)
        else:
            shingle_filter = build_filter(run, collection, wanted)
            collection = filter_collection(run, collection, shingle_filter, sketch)
        if memo is None:
            return collection
        memo.save(collection, "shingles", "signatures", is_checked=request.check_content)
        # The spool ends here, and shingles.npz holds its sets now. The sets of an unchanged folder
        # are those of shingles.npz already.
        return collection.with_unfiltered_sets(None) if collection.read else collection


def make_sets(run: RunContext, request: Request, shingle: ShingleParams) -> Collection:
    """Collect and save the unfiltered sets of the documents that a request names.

    The collection has them from shingles.npz.
    """
    store, documents = run.require_store(), find_named(run, request, shingle)
    memo = _open_memo(run, documents, shingle)
    assert memo is not None
    with Spool(store.folder) as spool:
        collection = _collect(run, request, documents, shingle, None, spool, memo)
        memo.save(collection, "shingles", is_checked=request.check_content)
    return collection


def read_sets(run: RunContext, request: Request, shingle: ShingleParams) -> Collection:
    """Collect the unfiltered sets of the documents that a request names, in memory."""
    return _collect(run, request, find_named(run, request, shingle), shingle, None, EVERY_SET, None)


def _open_memo(
    run: RunContext,
    documents: DocumentList,
    shingle: ShingleParams,
    sketch: SketchParams | None = None,
    shingle_filter: ShingleFilter | None = None,
) -> "Memo | None":
    """Open the memo of a definition, if there is a store."""
    if run.store is None:
        return None
    from lshdup.store.memo import Memo  # Imported here to keep `query` fast.

    return Memo(run, run.store, shingle, sketch, shingle_filter, documents.record_fields)


def find_named(
    run: RunContext, request: Request, shingle: ShingleParams, *, replaces: bool = True
) -> DocumentList:
    """Find the documents that a request names; the store is made when they are accepted.

    replaces : whether the run makes the collection that later ones continue with.
    """
    run.progress("documents", 0, 0)
    known_records: KnownRecords = {}
    if run.store is not None and not request.check_content:
        from lshdup.store.memo import load_known_records  # Imported here to keep `query` fast.

        known_records = load_known_records(run, run.store, request.files)
    documents = find_documents(
        run.with_progress(no_progress),
        request.documents,
        request.files,
        id_lists=shingle.tokens == "ids",
        store=os.fsencode(run.apart) if run.apart is not None else None,
        known_records=known_records,
    )
    docs = summarize_docs(map(typed_name, request.documents))
    documents = replace(documents, docs=docs)
    request.accept(documents, False)
    run.begin()
    if replaces and run.store is not None and run.store.is_held:
        _say_definition(run, shingle)
    run.progress("documents", 0, len(documents))
    return documents


def _say_definition(run: RunContext, shingle: ShingleParams) -> None:
    """Say so if the last run compared its documents by another definition."""
    old = None
    with suppress(ArtifactError, IndexError):  # A damaged artifact is rebuilt, and said then.
        old = load_last_collection(run, verify=False)
    if old is not None and old.shingle != shingle:
        run.say(f"the store was made with {' '.join(list_definition(old))}; it is rebuilt")


def _collect(
    run: RunContext,
    request: Request,
    documents: DocumentList,
    shingle: ShingleParams,
    sketch: SketchParams | None,
    keep: Spool | int,
    memo: "Memo | None",
    shingle_filter: ShingleFilter | None = None,
) -> Collection:
    """Collect what no earlier run has collected, and report the files that are skipped."""
    previous: Iterator[Previous] = iter(())
    if memo is not None and not request.check_content:
        previous = memo.find(documents, with_sets=keep != 0)
    first = next(previous, None)
    if memo is not None and sketch is not None and (first is None or (first.rows < 0).any()):
        run.expect_signatures(documents, sketch.perms, memo.size())
    sampled = run.sampled
    if memo is not None and sampled is not None:
        memo.on_add = partial(sampled.keep, run, shingle)
    collection = collect(
        run, documents, shingle, sketch, shingle_filter=shingle_filter,
        previous=chain([first] if first is not None else [], previous), keep=keep,
        checkpoint=memo, on_sets=sampled.add if sampled is not None else None,
    )  # fmt: skip
    run.report_skipped(collection.skipped, request.documents)
    return collection
