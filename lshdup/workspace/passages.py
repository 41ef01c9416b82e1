"""Passages of documents: one pass over them, then the comparison of their tokens."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup.base.atomic import temporary_place
from lshdup.base.frozen import dataclass
from lshdup.base.memory import GrowingArray, rows_of, slices_of
from lshdup.base.params import AcrossParams, PassageParams, ShingleParams
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.base.wording import count_of
from lshdup.collection.collect import EVERY_SET, Previous, SetKeeper, collect, unchanged_collection
from lshdup.collection.collection import Collection
from lshdup.collection.origins import find_origins
from lshdup.collection.shared_documents import find_shared
from lshdup.collection.unchanged import find_still_skipped, find_unchanged
from lshdup.errors import RERUN, ArtifactError, InputError, ParameterError
from lshdup.lsh.candidates import NO_ORIGINS
from lshdup.passages.anchors import AnchorKeeper, Anchors, Texts, plan_anchors, select
from lshdup.passages.finding import Passages, find_passages
from lshdup.passages.sharing import SharingPairs, find_sharing_pairs
from lshdup.shingling.shingler import ShingleBatch, Shingler
from lshdup.sources.document_list import DocumentList
from lshdup.store.results_io import load_passages, save_passages
from lshdup.store.store import Store
from lshdup.workspace.against import select_store
from lshdup.workspace.loading import find_named, load_last_collection
from lshdup.workspace.lookup import NamedDocument
from lshdup.workspace.request import Request, check_conflict, merge_params
from lshdup.workspace.workspace import Workspace

_I64 = NDArray[np.int64]
T = TypeVar("T")

#: Bytes of text that a token takes, about, and its separator.
_TOKEN_BYTES = {"word": 6, "terms": 6, "symbols": 5, "char": 1}

#: Bytes of temporary files that an anchor takes, if all of them recur.
_ANCHOR_BYTES = 40

#: Temporary files of more bytes are said before the work.
_MUCH_DISK = 1 << 30


@dataclass(frozen=True)
class PassagesFound(Generic[T]):
    """The passages of a collection, or those that stand both in it and in another one.

    passages : passages, the pairs that share them, or the cover of a text; documents from 0 on are
        those of `here`, documents of `there` are behind them.
    origins : of `find_passages`, of each document of `here`, with --across.
    here, there : the collections; there is None without --against. Their sizes are in tokens.
    """

    passages: T
    origins: NDArray[np.uint32]
    here: Collection
    there: Collection | None = None


def load_or_find_passages(
    run: Workspace,
    request: Request,
    params: PassageParams,
    others: tuple[bytes, ...] = (),
    across: AcrossParams | None = None,
) -> PassagesFound[Passages]:
    """Find the passages of documents, or load those that the last run found in the same ones.

    run : state of the run.
    request : names documents, or continues with the documents of the store.
    params : which passages are found.
    others : --against: only passages with a place in these documents too; one store, or folders and
        files.
    across : only passages with places in documents of two origins; they are not kept.

    Errors: ParameterError for tokens without an order; ArtifactError if the disk has no room.
    """
    other = select_store(others)
    documents, shingle = _find_documents(run, request)
    with run.writing(is_needed=bool(request.documents)):
        stored = _load_stored(run, documents, shingle) if not request.check_content else None
        if stored is not None and not others and across is None and stored[1] == params:
            collection, _, passages = stored
            run.report_skipped(collection.skipped, request.documents)
            request.accept(collection.documents, True)
            return PassagesFound(passages, NO_ORIGINS, collection)
        sides = _find_sides(run, request, documents, others, other, shingle)
        found = _read_and_find(run, sides, shingle, params, across, find_passages)
    if not others and across is None:
        run.keep(
            "passages.npz", lambda store: save_passages(store, found.here, params, found.passages)
        )
    return found


def find_sharing_documents(
    run: Workspace,
    request: Request,
    params: PassageParams,
    threshold: float,
    others: tuple[bytes, ...] = (),
    across: AcrossParams | None = None,
) -> PassagesFound[SharingPairs]:
    """Find the pairs of documents that share passages, which are not kept.

    threshold : of `find_sharing_pairs`. All else is as of `load_or_find_passages`.
    """
    other = select_store(others)
    documents, shingle = _find_documents(run, request)
    with run.writing(is_needed=bool(request.documents)):
        sides = _find_sides(run, request, documents, others, other, shingle)
        find = partial(find_sharing_pairs, threshold=threshold)
        return _read_and_find(run, sides, shingle, params, across, find)


def find_with_document(
    run: Workspace,
    request: Request,
    last: Collection,
    document: NamedDocument,
    params: PassageParams,
    find: Callable[..., T],
) -> tuple[PassagesFound[T], int]:
    """Find what a document has in common with the other documents of the last run, which are read
    again, and return it and the number of its tokens.

    find : `find_cover`, or `find_passages`; the document is number 0 of the answer.
    """
    shingle, documents = _with_order(last.shingle), last.documents
    text = Shingler(shingle, in_order=True).shingle_decoded([document.utf8(shingle)])[0]
    if document.index >= 0:
        rows = np.delete(np.arange(len(documents)), document.index)
        documents = documents.take(run, rows)
    found = _read_and_find(run, [(request, documents)], shingle, params, None, find, text)
    return found, len(text.values)


def _find_sides(
    run: Workspace,
    request: Request,
    documents: DocumentList,
    others: tuple[bytes, ...],
    other: Path | None,
    shingle: ShingleParams,
) -> list[tuple[Request, DocumentList]]:
    """Return the documents of DOCS, and those that --against names if there are any, with what
    names them.
    """
    if not others:
        return [(request, documents)]
    # Only DOCS are what the command may refuse.
    of_other = replace(
        request, accept=lambda other, _read: request.accept_source(other, "--against")
    )
    if other is None:
        everything = replace(request.files, include=(), exclude=())
        wanted = replace(of_other, documents=others, files=everything)
        there = find_named(Workspace(run, apart=run.apart), wanted, shingle)
    else:
        held = load_last_collection(Workspace(run, Store(other), read_only=True), verify=True)
        if held is None:
            message = f"the store {other} holds no documents"
            raise InputError(message, f"run `lshdup index OTHER --store {other}`")
        there = held.documents
        of_other.accept(there, False)
    return [(request, _leave_out_shared(run, documents, there)), (of_other, there)]


def _read_and_find(
    run: Workspace,
    sides: list[tuple[Request, DocumentList]],
    shingle: ShingleParams,
    params: PassageParams,
    across: AcrossParams | None,
    find: Callable[..., T],
    text: RaggedSets | None = None,
) -> PassagesFound[T]:
    """Read documents, and those of the other side if there is one, and find their passages.

    find : `find_passages`, or a function with the same parameters.
    text : the sequence of a text, which is a side by itself, before the others.
    """
    expected = _plan_disk(run, [each for _, each in sides], shingle, params)
    keeper, collections = SequenceKeeper(run, params, expected), []
    if text is not None:
        made = ShingleBatch(np.zeros(1, np.int64), text)
        keeper.add(made.indices, keeper.keep_copy(made))
        keeper.finish()
    for request, documents in sides:
        collection = collect(run, documents, shingle, keep=keeper)
        run.report_skipped(collection.skipped, request.documents)
        request.accept(collection.documents, True)
        collections.append(collection)
    sequences, anchors, numbers, first = keeper.results()
    origins = of_sequences = NO_ORIGINS
    if len(sides) > 1 or text is not None:
        of_sequences = run.arrays.compute(
            len(numbers), np.uint32, lambda some: rows_of(some) >= first
        )
    elif across is not None:
        origins = find_origins(run, collections[0].documents, across, sides[0][0].documents)
        of_sequences = run.arrays.take(np.append(origins, np.uint32(0)), numbers)
    texts = Texts(sequences, anchors, numbers, of_sequences)
    return PassagesFound(find(run, texts, params), origins, *collections)


def _find_documents(run: Workspace, request: Request) -> tuple[DocumentList, ShingleParams]:
    """Return the documents that a request names, or those of the last run, which may have been one
    for passages, and their definition.
    """
    if request.documents:
        shingle = _with_order(merge_params(ShingleParams, request.given))
        return find_named(run, request, shingle), shingle
    last = load_last(run, request)
    return last.documents, _with_order(last.shingle)


def load_last(run: Workspace, request: Request) -> Collection:
    """Load the collection of the last run, which may have been one for passages."""
    store = run.store
    if store is not None and store.is_last("passages"):
        last = store.load_collection("passages")
    else:
        last = load_last_collection(run, verify=True)
    if last is None:
        message = "no documents were named, and there is no collection to continue with"
        raise InputError(message, f"{RERUN} (files or folders)")
    check_conflict("the store", last.shingle, request.given, RERUN)
    request.accept(last.documents, False)
    return last


def _with_order(shingle: ShingleParams) -> ShingleParams:
    """Return the definition of tokens. Raise ParameterError if they have no order."""
    if shingle.tokens == "ids":
        message = "ids have no order, so there are no passages of ids"
        raise ParameterError(message, "leave --tokens ids out")
    return replace(shingle, k=0, bag=False, min_tokens=0)  # of shingles, which there are none of


def _load_stored(
    run: Workspace, documents: DocumentList, shingle: ShingleParams
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


def _leave_out_shared(
    run: Workspace, documents: DocumentList, others: DocumentList
) -> DocumentList:
    """Return the documents of DOCS that are not in OTHER too. Raise InputError if there is none."""
    shared = find_shared(documents, others)
    if not len(shared):
        return documents
    if len(shared) == len(documents):
        message = "every document of DOCS is in OTHER too"
        raise InputError(message, "name another OTHER, or leave --against out")
    run.say(f"{count_of(len(shared), 'document')} of DOCS in OTHER too: only there")
    return documents.take(run, np.delete(np.arange(len(documents)), shared))


def _plan_disk(
    run: Workspace, lists: list[DocumentList], shingle: ShingleParams, params: PassageParams
) -> int:
    """Say how much disk the temporary files take, and return about how many anchors there are.

    Raise ArtifactError if the disk has no room.
    """
    tokens = sum(int(each.spans.sum()) for each in lists) / _TOKEN_BYTES[shingle.tokens]
    anchors = int(2 * tokens / (plan_anchors(params)[1] + 1))
    planned = int(8 * tokens + _ANCHOR_BYTES * anchors)
    place = temporary_place(run.arrays.folder)
    free = shutil.disk_usage(place).free
    line = f"temporary files of about {planned >> 20:,} MB in {place} ({free >> 20:,} MB are free)"
    if planned > free:
        message = f"{place} has no room for {line}"
        raise ArtifactError(message, "name a store with more room with --store DIR")
    (run.say if planned > _MUCH_DISK else run.detail)(line)
    return anchors


class SequenceKeeper(SetKeeper):
    """Sequences of tokens of one collection or of several, with their anchors.

    Sequences stay in the order in which documents are read; a collection has no sets then.

    expected : as for `AnchorKeeper`.
    """

    in_order = True

    def __init__(self, run: Run, params: PassageParams, expected: int) -> None:
        super().__init__(run, EVERY_SET)
        self._anchors = AnchorKeeper(run, params, expected)
        self._selected: dict[int, tuple[NDArray[np.uint64], _I64]] = {}
        self._sides: list[_I64] = []  #: of each collection the documents of its sequences, or -1

    def keep_copy(self, made: ShingleBatch, *_: object) -> RaggedSets:
        """Return a copy of the sequences of a batch, whose anchors are kept. For any thread."""
        copy = made.sets.copy()
        if len(made.indices):
            anchors = select(copy, self._anchors.gram, self._anchors.window)
            self._selected[int(made.indices[0])] = anchors
        return copy

    def add(self, indices: _I64, sets: RaggedSets) -> None:
        """Keep the sequences of some documents, for which `keep_copy` was called."""
        if len(indices):
            hashes, positions = self._selected.pop(int(indices[0]))
            self._anchors.add(hashes, positions + self._values.size)
            super().add(indices, sets)

    def finish(self) -> None:
        """Number the documents of a collection, and begin with the next one."""
        arrays, indices = self._arrays, self._indices.whole()
        self._indices = GrowingArray(np.int64, arrays)
        numbered = arrays.copy(indices)
        numbered.sort()
        without = int(np.searchsorted(numbered, 0))

        def document_of(some: slice) -> _I64:
            place = np.searchsorted(numbered, indices[some]) - without
            return np.where(indices[some] < 0, -1, place)

        self._sides.append(arrays.compute(len(indices), np.int64, document_of))

    def reuse(self, _sets: object, known: NDArray[np.bool_], rows: _I64) -> None:
        """Go on with the last collection: some of its documents are among those of a new list.

        known : bool array over all documents of the list. rows : int64 array, the document of each.
        """
        documents, arrays = self._sides.pop(), self._arrays
        # The last one is no document.
        index_of: _I64 = arrays.full(len(documents) + 1, -1, np.int64)
        for some in slices_of(len(rows)):
            indices = np.flatnonzero(known[some]) + some.start
            index_of[rows[indices]] = indices
        self._indices.append(arrays.take(index_of, documents))

    def results(self) -> tuple[RaggedSets, Anchors, _I64, int]:
        """Return all sequences, their anchors that recur, the document of each, and the
        number of sequences of the first collection.

        Documents of a collection are behind those of the one before it. Sequences without anchors
        may be of no document; their number is that of all documents.
        """
        arrays, sides = self._arrays, self._sides
        ends = np.cumsum([0, *(int((side >= 0).sum()) for side in sides)])
        numbered = []
        for side, first in zip(sides, ends[:-1], strict=True):
            documents = arrays.copy(side)
            documents += first
            documents[side < 0] = ends[-1]
            numbered.append(documents)
        documents = arrays.concatenate(numbered)
        sequences = RaggedSets.from_sizes(self._values.whole(), self._sizes.whole(), arrays)
        anchors = self._anchors.recurring()
        if (documents == ends[-1]).any():
            held = np.searchsorted(sequences.offsets, anchors.positions, side="right") - 1
            mine = documents[held] < ends[-1]
            hashes, positions = anchors.hashes[mine], anchors.positions[mine]
            anchors = replace(anchors, hashes=hashes, positions=positions)
        return sequences, anchors, documents, len(sides[0])
