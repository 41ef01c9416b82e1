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
from lshdup.collection.collect import Previous, collect, unchanged_collection
from lshdup.collection.collection import Collection
from lshdup.collection.sequence_keeper import SequenceKeeper
from lshdup.collection.unchanged import find_still_skipped, find_unchanged
from lshdup.compare.passages import Passages, find_passages
from lshdup.errors import RERUN, ArtifactError, InputError, ParameterError
from lshdup.lsh.winnowing import plan_anchors
from lshdup.params import PassageParams, ShingleParams
from lshdup.sources.document_list import DocumentList
from lshdup.sources.missing import check_named
from lshdup.store.passages_io import load_passages, save_passages
from lshdup.store.store import Store
from lshdup.workspace.against.shared import find_shared
from lshdup.workspace.context import RunContext
from lshdup.workspace.from_documents import find_named
from lshdup.workspace.from_store import leave_out_changed, load_last_collection
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
    run: RunContext,
    request: Request,
    params: PassageParams,
    others: Sequence[bytes] = (),
    memory: int = 0,
) -> PassagesFound:
    """Find the passages of documents, or load those that the last run found in the same ones.

    Parameters
    ----------
    run : state of the run.
    request : names documents, or continues with the documents of the store.
    params : which passages are found.
    others : --against: only passages with a place in these documents too; one store, or folders and
        files.
    memory : bytes to plan for, beside what every run takes; 0: a share of the machine's.

    Errors: ParameterError for tokens without an order; ArtifactError if the disk has no room.

    """
    hint = "name a folder or a file, or the store of an earlier run"
    check_named(others, "--against ", hint, included=True)
    with run.locking(create=bool(request.documents)):
        documents, shingle = _find_documents(run, request)
        stored = _load_stored(run, documents, shingle) if not request.check_content else None
        if stored is not None and not others and stored[1] == params:
            run.report_skipped(stored[0].skipped, request.documents)
            request.accept(stored[0].documents, True)
            return PassagesFound(stored[2], stored[0])
        there = _find_others(run, request, others, shingle) if others else None
        if there is not None:
            documents = _leave_out_shared(run, documents, there)
        found = _read_and_find(
            run, request, params, documents, there, shingle, memory or run.memory
        )
    if there is None:
        run.keep(
            "passages.npz", lambda store: save_passages(store, found.here, params, found.passages)
        )
    return found


def _read_and_find(
    run: RunContext,
    request: Request,
    params: PassageParams,
    documents: DocumentList,
    others: DocumentList | None,
    shingle: ShingleParams,
    memory: int,
) -> PassagesFound:
    """Read documents and those of the other side, and find their passages."""
    folder = _folder(run)
    lists = [documents, *([others] if others is not None else [])]
    expected = _plan_disk(run, folder, lists, shingle, params)
    with SequenceKeeper(params, folder, expected, memory) as keeper:
        # Only DOCS are what the command may refuse.
        of_other = replace(request, accept=lambda other, _read: request.accept_other(other))
        sides = zip((request, of_other), lists, strict=False)
        here, *there = (_collect(run, *side, shingle, keeper) for side in sides)
        sequences, anchors, numbers = keeper.results()
        passages = find_passages(
            sequences, anchors, params, folder,
            documents=numbers, split=keeper.first_of(1) if there else None,
            jobs=run.jobs, memory=memory, progress=run.progress,
        )  # fmt: skip
    return PassagesFound(passages, here, *there)


def _find_documents(run: RunContext, request: Request) -> tuple[DocumentList, ShingleParams]:
    """Return the documents that a request names, or those of the last run, and their definition."""
    if request.documents:
        shingle = _with_order(merge_params(ShingleParams, request.given))
        return find_named(run, request, shingle, replaces=False), shingle
    last = _load_last(run)
    if last is None:
        message = "no documents were named, and there is no collection to continue with"
        raise InputError(message, f"{RERUN} (files or folders)")
    check_conflict("the store", last.shingle, request.given, RERUN)
    last = leave_out_changed(run, last, request)
    request.accept(last.documents, False)
    return last.documents, _with_order(last.shingle)


def _with_order(shingle: ShingleParams) -> ShingleParams:
    """Return the definition of tokens. Raise ParameterError if they have no order."""
    if shingle.tokens == "ids":
        message = "ids have no order, so there are no passages of ids"
        raise ParameterError(message, "leave --tokens ids out")
    return replace(shingle, k=0, bag=False, min_tokens=0)  # of shingles, which there are none of


def _load_last(run: RunContext) -> Collection | None:
    """Load the collection of the last run, which may have been one for passages."""
    store = run.store
    if store is not None and store.is_of_passages():
        return store.load_collection("passages")
    return load_last_collection(run, verify=True)


def _load_stored(
    run: RunContext, documents: DocumentList, shingle: ShingleParams
) -> tuple[Collection, PassageParams, Passages] | None:
    """Load passages.npz if it is of these documents, unchanged; a damaged one is rebuilt."""
    if run.store is None:
        return None
    try:
        stored = load_passages(run.store, here=not documents.home)
    except ArtifactError as error:
        run.say(f"{error.message}; it is rebuilt")
        return None
    if stored is None or stored[0].shingle != shingle:
        return None
    old, params, passages = stored
    if old.without_other_readers() is not old:
        return None
    rows = find_unchanged(run, old.documents, documents)
    previous = Previous(old, rows, find_still_skipped(old, documents))
    collection = unchanged_collection(run, documents, None, previous, 0)
    return None if collection is None else (collection, params, passages)


def _find_others(
    run: RunContext, request: Request, others: Sequence[bytes], shingle: ShingleParams
) -> DocumentList:
    """Return the documents that --against names: those of a store, or of folders and files."""
    reader = RunContext(run, None, apart=run.apart)
    store = Path(os.fsdecode(others[0]))
    if len(others) == 1 and Store(store).is_ours():
        held = load_last_collection(RunContext(run, store, read_only=True), verify=True)
        if held is None:
            message = f"the store {store} holds no documents"
            raise InputError(message, f"run `lshdup index OTHER --store {store}`")
        request.accept_other(held.documents)
        return held.documents
    files = replace(request.files, include=(), exclude=())
    wanted = replace(
        request,
        documents=tuple(others),
        files=files,
        accept=lambda documents, _read: request.accept_other(documents),
    )
    return find_named(reader, wanted, shingle, replaces=False)


def _leave_out_shared(
    run: RunContext, documents: DocumentList, others: DocumentList
) -> DocumentList:
    """Return the documents of DOCS that are not in OTHER too. Raise InputError if there is none."""
    shared = find_shared(documents, others)
    if not len(shared):
        return documents
    if len(shared) == len(documents):
        message = "every document of DOCS is in OTHER too"
        raise InputError(message, "name another OTHER, or leave --against out")
    run.say(f"{count_of(len(shared), 'document')} of DOCS in OTHER too: only there")
    return documents.take(np.delete(np.arange(len(documents)), shared))


def _folder(run: RunContext) -> Path | None:
    """Return the folder for temporary files; None: the system's."""
    return run.store.folder if run.store is not None and run.store.is_held else None


def _plan_disk(
    run: RunContext,
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
    (run.say if planned > _MUCH_DISK else run.detail)(line)
    return anchors


def _collect(
    run: RunContext,
    request: Request,
    documents: DocumentList,
    shingle: ShingleParams,
    keeper: SequenceKeeper,
) -> Collection:
    """Read documents; the sizes of the collection are in tokens."""
    collection = collect(run, documents, shingle, keep=keeper)
    run.report_skipped(collection.skipped, request.documents)
    request.accept(collection.documents, True)
    return collection
