"""Passages of documents: one pass over them, then the comparison of their tokens."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lshdup.base.frozen import dataclass
from lshdup.base.messages import count_of
from lshdup.base.run import Run
from lshdup.collection.collect import Previous, collect, unchanged_collection
from lshdup.collection.collection import Collection
from lshdup.collection.sequence_keeper import SequenceKeeper
from lshdup.collection.shared_documents import find_shared
from lshdup.collection.unchanged import find_still_skipped, find_unchanged
from lshdup.errors import RERUN, ArtifactError, InputError, ParameterError
from lshdup.params import PassageParams, ShingleParams
from lshdup.passages.anchors import plan_anchors
from lshdup.passages.finding import Passages, find_passages
from lshdup.sources.document_list import DocumentList
from lshdup.sources.finding import check_named
from lshdup.store.passages_io import load_passages, save_passages
from lshdup.store.store import Store
from lshdup.workspace.context import RunContext
from lshdup.workspace.from_documents import find_named
from lshdup.workspace.from_store import load_last_collection
from lshdup.workspace.request import Request, check_conflict, merge_params

#: Bytes of text that a token takes, about, and its separator.
_TOKEN_BYTES = {"word": 6, "terms": 6, "symbols": 5, "char": 1}

#: Bytes of temporary files that an anchor takes, if all of them recur.
_ANCHOR_BYTES = 40

#: Temporary files of more bytes are said before the work.
_MUCH_DISK = 1 << 30


@dataclass(frozen=True)
class PassagesFound:
    """The passages of a collection, or those that stand both in it and in another one.

    passages : documents from 0 on are those of `here`; documents of `there` are behind them.
    here, there : the collections; there is None without --against. Their sizes are in tokens.
    """

    passages: Passages
    here: Collection
    there: Collection | None = None


def load_or_find_passages(
    context: RunContext, request: Request, params: PassageParams, others: Sequence[bytes] = ()
) -> PassagesFound:
    """Find the passages of documents, or load those that the last run found in the same ones.

    context : state of the run.
    request : names documents, or continues with the documents of the store.
    params : which passages are found.
    others : --against: only passages with a place in these documents too; one store, or folders and
        files.

    Errors: ParameterError for tokens without an order; ArtifactError if the disk has no room.
    """
    hint = "name a folder or a file, or the store of an earlier run"
    check_named(others, "--against ", hint, included=True)
    with context.locking(create=bool(request.documents)):
        documents, shingle = _find_documents(context, request)
        stored = _load_stored(context, documents, shingle) if not request.check_content else None
        if stored is not None and not others and stored[1] == params:
            collection, _, passages = stored
            context.report_skipped(collection.skipped, request.documents)
            request.accept(collection.documents, True)
            return PassagesFound(passages, collection)
        sides = [(request, documents)]
        if others:
            # Only DOCS are what the command may refuse.
            of_other = replace(request, accept=lambda other, _read: request.accept_other(other))
            there = _find_others(context, of_other, others, shingle)
            sides = [(request, _leave_out_shared(context, documents, there)), (of_other, there)]
        found = _read_and_find(context, sides, shingle, params)
    if not others:
        context.keep(
            "passages.npz", lambda store: save_passages(store, found.here, params, found.passages)
        )
    return found


def _read_and_find(
    context: RunContext,
    sides: list[tuple[Request, DocumentList]],
    shingle: ShingleParams,
    params: PassageParams,
) -> PassagesFound:
    """Read documents, and those of the other side if there is one, and find their passages."""
    run = Run(context.arrays, context.jobs, context.progress)
    store = context.store
    folder = store.folder if store is not None and store.is_held else None
    expected = _plan_disk(context, folder, [each for _, each in sides], shingle, params)
    with SequenceKeeper(context, params, folder, expected) as keeper:
        collections = []
        for request, documents in sides:
            collection = collect(run, documents, shingle, keep=keeper)
            context.report_skipped(collection.skipped, request.documents)
            request.accept(collection.documents, True)
            collections.append(collection)
        sequences, anchors, numbers = keeper.results()
        split = keeper.first_of(1) if len(sides) > 1 else None
        passages = find_passages(
            context, sequences, anchors, params, documents=numbers, split=split
        )
    return PassagesFound(passages, *collections)


def _find_documents(context: RunContext, request: Request) -> tuple[DocumentList, ShingleParams]:
    """Return the documents that a request names, or those of the last run, and their definition."""
    if request.documents:
        shingle = _with_order(merge_params(ShingleParams, request.given))
        return find_named(context, request, shingle, replaces=False), shingle
    last = _load_last(context)
    if last is None:
        message = "no documents were named, and there is no collection to continue with"
        raise InputError(message, f"{RERUN} (files or folders)")
    check_conflict("the store", last.shingle, request.given, RERUN)
    request.accept(last.documents, False)
    return last.documents, _with_order(last.shingle)


def _with_order(shingle: ShingleParams) -> ShingleParams:
    """Return the definition of tokens. Raise ParameterError if they have no order."""
    if shingle.tokens == "ids":
        message = "ids have no order, so there are no passages of ids"
        raise ParameterError(message, "leave --tokens ids out")
    return replace(shingle, k=0, bag=False, min_tokens=0)  # of shingles, which there are none of


def _load_last(context: RunContext) -> Collection | None:
    """Load the collection of the last run, which may have been one for passages."""
    store = context.store
    if store is not None and store.is_of_passages():
        return store.load_collection("passages")
    return load_last_collection(context, verify=True)


def _load_stored(
    context: RunContext, documents: DocumentList, shingle: ShingleParams
) -> tuple[Collection, PassageParams, Passages] | None:
    """Load passages.npz if it is of these documents, unchanged; a damaged one is rebuilt."""
    if context.store is None:
        return None
    try:
        stored = load_passages(context.store, here=not documents.home)
    except ArtifactError as error:
        context.say(f"{error.message}; it is rebuilt")
        return None
    if stored is None or stored[0].shingle != shingle:
        return None
    old, params, passages = stored
    if old.without_other_readers() is not old:
        return None
    rows = find_unchanged(context, old.documents, documents)
    previous = Previous(old, rows, find_still_skipped(old, documents))
    collection = unchanged_collection(context, documents, None, previous, 0)
    return None if collection is None else (collection, params, passages)


def _find_others(
    context: RunContext, request: Request, others: Sequence[bytes], shingle: ShingleParams
) -> DocumentList:
    """Return the documents that --against names: those of a store, or of folders and files."""
    reader = RunContext(context, None, apart=context.apart)
    store = Path(os.fsdecode(others[0]))
    if len(others) == 1 and Store(store).is_ours():
        held = load_last_collection(RunContext(context, store, read_only=True), verify=True)
        if held is None:
            message = f"the store {store} holds no documents"
            raise InputError(message, f"run `lshdup index OTHER --store {store}`")
        request.accept(held.documents, False)
        return held.documents
    everything = replace(request.files, include=(), exclude=())
    wanted = replace(request, documents=tuple(others), files=everything)
    return find_named(reader, wanted, shingle, replaces=False)


def _leave_out_shared(
    context: RunContext, documents: DocumentList, others: DocumentList
) -> DocumentList:
    """Return the documents of DOCS that are not in OTHER too. Raise InputError if there is none."""
    shared = find_shared(documents, others)
    if not len(shared):
        return documents
    if len(shared) == len(documents):
        message = "every document of DOCS is in OTHER too"
        raise InputError(message, "name another OTHER, or leave --against out")
    context.say(f"{count_of(len(shared), 'document')} of DOCS in OTHER too: only there")
    return documents.take(context, np.delete(np.arange(len(documents)), shared))


def _plan_disk(
    context: RunContext,
    folder: Path | None,
    lists: list[DocumentList],
    shingle: ShingleParams,
    params: PassageParams,
) -> int:
    """Say how much disk the temporary files take, and return about how many anchors there are.

    Raise ArtifactError if the disk has no room.
    """
    tokens = sum(int(each.spans.sum()) for each in lists) / _TOKEN_BYTES[shingle.tokens]
    anchors = int(2 * tokens / (plan_anchors(params)[1] + 1))
    planned = int(8 * tokens + _ANCHOR_BYTES * anchors)
    place = folder or Path(tempfile.gettempdir())
    free = shutil.disk_usage(place).free
    line = f"temporary files of about {planned >> 20:,} MB in {place} ({free >> 20:,} MB are free)"
    if planned > free:
        message = f"{place} has no room for {line}"
        raise ArtifactError(message, "name a store with more room with --store DIR")
    (context.say if planned > _MUCH_DISK else context.detail)(line)
    return anchors
