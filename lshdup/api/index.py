"""An index of documents that programs ask, add to, and keep in a store."""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, Self, Unpack

import numpy as np

from lshdup.api.kept import Kept, as_named, stamps_of
from lshdup.api.options import (
    Documents,
    Options,
    collect_documents,
    given_of,
    in_keywords,
    params_of,
    path_of,
    run_of,
)
from lshdup.api.rows import Groups, Rows
from lshdup.base.params import (
    STORED_SCHEMES,
    BandParams,
    ClusterParams,
    DocumentParams,
    PairParams,
    Params,
    SketchParams,
)
from lshdup.base.run import Run
from lshdup.collection.collection import Collection
from lshdup.collection.from_texts import Texts, check_text, name_texts
from lshdup.collection.keep_rules import preference
from lshdup.compare.clusters import list_clusters
from lshdup.errors import ArtifactError, InputError, LshdupError, ParameterError
from lshdup.lsh.band_plan import plan_bands
from lshdup.lsh.candidates import unknown_name
from lshdup.pipeline import build_index, find_clusters, find_near_duplicates
from lshdup.shingling.shingler import shingle_hash
from lshdup.sources.document_list import summarize_docs, typed_name
from lshdup.store.results_io import save_index
from lshdup.store.store import Store
from lshdup.workspace.comparing import drop_changed
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.layers import SAME, VERIFIED, Layer, find_in_layers
from lshdup.workspace.loading import load_signatures
from lshdup.workspace.request import Request
from lshdup.workspace.workspace import Workspace

#: Texts that are looked up together, and bytes of one that is not kept waiting.
_TOGETHER, _LARGE = 1 << 15, 1 << 26

_FILES = DocumentParams()


class Match(NamedTuple):
    """A near-duplicate of a text.

    name : of the document.
    similarity : Jaccard similarity of the shingle sets, from the threshold to 1.
    same : "bytes" if the two are equal, "text" if they have the same words in a row, or "".
    verified : "exact"; or "estimate" if the text of the document is gone, and its signature was
        compared.
    """

    name: str
    similarity: float
    same: str
    verified: str


class Pair(NamedTuple):
    """Two near-duplicates: their names, and the rest as of `Match`."""

    a: str
    b: str
    similarity: float
    same: str
    verified: str


class Index:
    """Documents that can be asked for near-duplicates of a text, and added and removed.

    `Index.open` makes one, in memory or of a store: the folder that `lshdup index` makes, or
    ``Index.open(documents, store=DIR)``. The answers are those of the command line over the same
    documents, and do not depend on when these were added. Documents are in the order in which they
    were given; of a folder, in byte order of their names.

    Any number of threads may use one index. Of a store, one process may add at a time: it holds the
    store from the first `add` or `remove` until `close`. Others read meanwhile, and see at their
    next question what was flushed. Additions are kept beside the collection of the store, in its
    folder `added`: a later `lshdup index` leaves them; of a name that it indexes, its document
    holds. The commands of the command line do not have them.

    Errors are those of `lshdup.errors`, and KeyError for a name that no document has. ArtifactError
    says that the index is closed, that another process adds, or that it has replaced the collection
    of the store.

    >>> index = Index.open({"m1": "one two three four five six"}, threshold=0.5)
    >>> index.add("m2", "one two three four five six seven")
    >>> for match in index.query("one two three four five"):
    ...     print(match)
    Match(name='m1', similarity=0.75, same='', verified='exact')
    Match(name='m2', similarity=0.6, same='', verified='exact')
    >>> index.remove("m1")
    >>> list(index), len(index), "m1" in index
    (['m2'], 1, False)

    """

    def __init__(self, run: Run, params: Params, base: Layer, kept: Kept | None = None) -> None:
        self._run, self._params = run, params
        sketch = base.collection.sketch
        assert sketch is not None
        is_banded = params.pairs.measure == "jaccard"
        #: bands of the tables; None for containment.
        self.plan = plan_bands(sketch.perms, params.bands) if is_banded else None
        self._base, self._kept = base, kept
        self._new: tuple[Layer, ...] = ()  #: layers that are not in the store
        self._gone: list[bytes] = []  #: names of what was removed, and is in the store
        self._waiting: dict[str, bytes] = {}  #: texts that are in no layer yet
        self._is_closed = False
        self._lock = threading.RLock()
        self._whole: Layer | None = None
        self._pairs: tuple[Layer, Rows[Pair]] | None = None  #: and the documents that they are of

    @classmethod
    def open(
        cls,
        documents: Documents,
        num_permutations: int | None = None,
        num_bands: int | None = None,
        threshold: float = 0.8,
        *,
        recall: float = 0.99,
        measure: str = PairParams().measure,
        store: str | os.PathLike[str] | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Open the store at a path, or make an index of documents.

        Parameters
        ----------
        documents : path of a store; or documents as for `MinHash`, which are read now, and whose
            sets stay in memory or in temporary files.
        num_permutations : K, rows of a signature; None: 128, or those of the store.
        num_bands : bands of the table; None: as few as keep the promised recall.
        threshold : smallest Jaccard similarity of near-duplicates, above 0, at most 1.
        recall : smallest chance to find a near-duplicate of exactly the threshold.
        measure : "jaccard", or "containment" as of `NearDuplicates`: a question then looks at all
            documents.
        store : a new folder in which the documents are kept; None: they are kept in memory.
        options : see `Options`. Of a store, those that are given must be those it was made with.

        Errors: InputError for what are no documents, ParameterError for a keyword, ArtifactError
        for a store that is damaged or was made with other options.

        Cost: of a store, 0.3 s for 10^6 documents; of documents, that of `lshdup index`.

        """
        others = ("num_bands", "threshold", "recall", "measure", "store")
        with in_keywords():
            perms = SketchParams().perms if num_permutations is None else num_permutations
            params = params_of(perms, options, *others)
            bands = BandParams(threshold, recall, bands=num_bands or 0)
            params = replace(params, bands=bands, pairs=PairParams(measure=measure))
            run, is_banded = run_of(options), measure == "jaccard"
            path = path_of(documents) if isinstance(documents, str | os.PathLike) else None
            if path is not None and Store(path).is_ours():
                if store is not None:
                    message = f"{path} is a store, and store is given too"
                    raise ParameterError(message, "leave store out: what is added stays there")
                kept = Store(path, params.shingle.secret)
                return cls._of_store(run, params, kept, given_of(num_permutations, options))
            if is_banded:  # A promise that cannot be kept is refused before the work.
                plan_bands(params.sketch.perms, bands)
            if store is None:
                layer = Layer(run, collect_documents(run, documents, params, options))
                return cls(run, params, layer)
            made = Store(path_of(store), params.shingle.secret)
            _make_store(run, made, documents, params, options)
            return cls._of_store(run, params, made, {})

    @classmethod
    def _of_store(cls, run: Run, params: Params, store: Store, given: dict[str, Any]) -> Self:
        given = given | vars(params.bands)
        workspace, request = Workspace(run, store, read_only=True), Request((), _FILES, given)
        stamps, index = stamps_of(store), None
        if params.pairs.by_bands:
            indexed = load_or_build_index(workspace, request, verify=False)
            collection, index = indexed.collection, indexed.index
        else:
            collection = load_signatures(workspace, request)
        shingle_hash(collection.shingle)  # It needs its key.
        if not collection.documents.docs:
            collection = as_named(collection)
        base = Layer(run, collection, index)
        return cls(run, params, base, Kept(run, store, base, stamps))

    # --- what is asked ----------------------------------------------------------------------------

    def query(self, text: str, threshold: float | None = None) -> Rows[Match]:
        """Return the documents that are near a text: the most similar first, then in order.

        It is what `lshdup query -` prints. text : read as a record is. threshold : None: that of
        the index. For another one, the table is made when it is first asked for.

        Raise InputError for what is no str.

        Cost: about a millisecond, and the sets of the candidates: those of a store are read again
        from its documents, unless it has kept them (`lshdup shingle`, or a store of texts).
        """
        return self.query_many([text], threshold)[0]

    def query_many(self, texts: Texts, threshold: float | None = None) -> Groups[Match]:
        """Return the documents that are near each of some texts, as `query`: as many groups.

        texts : as for `open`; names do not matter. Cost: far less a text than that of `query`.
        """
        params, layers = self._at(threshold), self._settle()
        definition, every = self._base.collection.shingle, zip(*name_texts(texts), strict=True)
        checked = (check_text(*each, definition) for each in every)
        found = []
        while some := list(islice(checked, _TOGETHER)):
            made = layers[0].sign(dict(zip(map(str, range(len(some))), some, strict=True)))
            found.append(find_in_layers(layers, made.side, params))
        none = np.zeros(0, np.int64), np.zeros(0, object), np.zeros(0), *[np.zeros(0, object)] * 2
        columns = list(map(np.concatenate, zip(none, *found, strict=True)))
        return Groups(Rows(Match, columns[1:]), np.append(0, np.cumsum(columns[0])))

    def of(self, name: str | int, threshold: float | None = None) -> Rows[Match]:
        """Return the documents that are near a document of the index, without itself, as `query`.

        Raise KeyError for an unknown name.
        """
        params, layers = self._at(threshold), self._settle()
        number, row = self._place(layers, name)
        one = layers[number].collection.take(self._run, np.array([row]))
        return Rows(
            Match, find_in_layers(layers, Layer(self._run, one).side, params, (number, row))[1:]
        )

    def pairs(self) -> Rows[Pair]:
        """Return all pairs at or above the threshold, in the order of `lshdup pairs`.

        The answer is kept until something is added or removed. Of containment, a is inside b.
        """
        whole, run, known = self._join(), self._run, self._pairs
        if known is None or known[0] is not whole:  # Another thread may have added since.
            index = whole.index(self._params.bands) if self.plan is not None else None
            answer = find_near_duplicates(
                run, whole.collection, self._params, side=whole.side, index=index
            ).pairs
            none = np.zeros(0, np.uint32)
            parts = (none, none, np.zeros(0)), *answer.pieces()
            left, right, scores = map(np.concatenate, zip(*parts, strict=True))
            rows, at = np.unique(np.append(left, right), return_inverse=True)
            names = np.array(whole.names(rows), object)[at]
            same = SAME[whole.collection.prints.compare(left, right)]
            verified = VERIFIED[answer.is_estimate(left, right).astype(np.int64)]
            columns = names[: len(left)], names[len(left) :], scores.real, same, verified
            self._pairs = known = whole, Rows(Pair, columns)
        return known[1]

    def clusters(self) -> Groups[tuple[str, float]]:
        """Return the clusters of two or more, the largest first, as `lshdup clusters` does.

        Each is a sequence of (name, exact similarity to the first), which is kept: of files the one
        with the shortest path, of texts and records the first. A file that has changed since it was
        indexed is in none. Raise ParameterError for containment.
        """
        if self.plan is None:
            message = "containment makes no clusters: all pages that hold one template would chain"
            raise ParameterError(message, 'make them with measure="jaccard"')
        run, bands = self._run, self._params.bands
        with self._lock:
            whole, base = self._join(), self._layers[0]
            collection, documents = whole.collection, base.collection.documents
            if base.removed.any():
                documents = documents.take(run, np.flatnonzero(~base.removed))
        is_first = len(collection.documents) == len(documents)
        by_name = bool(documents.docs) and (is_first or documents.parts is None)
        rule = ClusterParams(keep="" if by_name else "path-order")
        order = preference(run, collection.documents, collection.sizes, rule, documents.docs)
        found = find_clusters(
            run, collection, whole.index(bands), whole.side, bands.threshold, rule, order
        )
        if documents.docs:
            found = drop_changed(found, documents)
        groups = found.clusters
        listed = list_clusters(groups)
        offsets = np.searchsorted(listed.numbers, np.arange(1, groups.count + 2))
        names = np.array(whole.names(listed.documents), object)
        similarity = groups.similarity[listed.documents]
        return Groups(Rows(("name", "similarity"), (names, similarity)), offsets)

    # --- the documents ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return sum(map(len, self._settle()))

    def __iter__(self) -> Iterator[str]:
        for layer in self._settle():
            yield from layer.list_names()

    def __contains__(self, name: object) -> bool:
        with suppress(UnicodeEncodeError):  # No document has such a name.
            return isinstance(name, str) and name in self._known([name])
        return False

    @property
    def collection(self) -> Collection:
        """The documents with their sets and signatures, without those that were removed."""
        return self._join().collection

    def add(self, name: str, text: str) -> None:
        """Add a text under a new name. The next question finds it.

        Raise InputError for a name that is there, or what is no str; ArtifactError if another
        process adds to the store. Cost: microseconds; the text is shingled with others that wait.
        """
        self.add_many({name: text})

    def add_many(self, documents: Texts, *, text_field: str = "", id_field: str = "") -> None:
        """Add texts under new names: all, or none if one is refused.

        text_field, id_field : columns of a table with the texts and their names.
        """
        fields = DocumentParams(text_field=text_field, id_field=id_field)
        names, texts = name_texts(documents, fields)
        definition = self._base.collection.shingle
        pairs = zip(names, texts, strict=True)
        checked = {name: check_text(name, text, definition) for name, text in pairs}
        with self._changing():
            for name in self._known(checked):
                message = f"there is a document called {name!r} already"
                raise InputError(message, "remove it first, or give the text another name")
            self._waiting |= checked
            if max(map(len, checked.values()), default=0) > _LARGE:
                try:
                    self._settle()  # It may be refused.
                except LshdupError:
                    self._waiting = {
                        name: text for name, text in self._waiting.items() if name not in checked
                    }
                    raise

    def remove(self, name: str | int) -> None:
        """Remove a document. Raise KeyError for an unknown name."""
        with self._changing():
            if self._waiting.pop(str(name), None) is None:
                layers = self._settle()
                number, row = self._place(layers, name)
                layers[number].removed[row] = True
                if number < len(layers) - len(self._new):
                    self._gone.append(layers[number].collection.documents.names[row])

    # --- the store --------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what was added and removed to the store, synced: it survives a kill, and other
        processes see it. Raise ParameterError without a store.
        """
        with self._lock:
            self._settle()
            if self._kept is None:
                message = "this index is in memory: it has no store"
                raise ParameterError(message, "make it with Index.open(documents, store=DIR)")
            if any(map(len, self._new)) or self._gone:
                self._kept.flush(self._new, self._gone)
                self._new, self._gone = (), []

    def close(self) -> None:
        """Flush an index of a store, and let other processes add; further calls do nothing.

        If that fails, the index stays open, and keeps what was added.
        """
        with self._lock:
            if self._kept is not None and not self._is_closed:
                self.flush()
                self._kept.close()
            self._is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self._kept is not None:
            message = "an index of a store cannot be pickled; open the store again instead"
            raise TypeError(message)
        return vars(self) | {"_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    # --- layers -----------------------------------------------------------------------------------

    def _at(self, threshold: float | None) -> Params:
        """Return the parameters of a query."""
        if threshold is None:
            return self._params
        with in_keywords():
            params = replace(self._params, bands=replace(self._params.bands, threshold=threshold))
            if self.plan is not None:  # A promise that cannot be kept is refused.
                self._base.index(params.bands)
            return params

    def _look(self) -> None:
        """Take over what other processes have added. Raise ArtifactError if that cannot be."""
        if self._is_closed:
            message = "the index is closed"
            raise ArtifactError(message, "open it again with Index.open")
        if self._kept is not None and self._kept.look():
            self._whole = self._pairs = None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the index, and its store, while documents are added or removed."""
        with self._lock:
            self._look()
            if self._kept is not None:
                with in_keywords():
                    self._kept.hold()
            self._whole = self._pairs = None
            yield

    def _settle(self) -> tuple[Layer, ...]:
        """Return the layers; what waits has become one, or part of one."""
        with self._lock:
            self._look()
            if self._waiting:
                new = self._base.sign(self._waiting)
                self._new = Layer.push(self._run, self._new, new, first=0)
                self._waiting = {}
            return self._layers

    @property
    def _layers(self) -> tuple[Layer, ...]:
        return *((self._base,) if self._kept is None else self._kept.layers), *self._new

    def _join(self) -> Layer:
        """Return all documents as one layer."""
        with self._lock:
            layers = self._settle()
            if self._whole is None:
                self._whole = Layer.join(self._run, layers)
            return self._whole

    def _known(self, names: Iterable[str]) -> list[str]:
        """Return which of some names documents have."""
        with self._lock:
            self._look()
            names = list(names)
            is_known = np.array([name in self._waiting for name in names], bool)
            for _, layer, stored in _list_names(self._layers):
                is_known |= layer.find_names(map(os.fsencode, names), stored=stored) >= 0
            return [names[at] for at in np.flatnonzero(is_known).tolist()]

    def _place(self, layers: tuple[Layer, ...], name: str | int) -> tuple[int, int]:
        """Return the layer of a document, and its number there. Raise KeyError for none."""
        with suppress(UnicodeEncodeError):
            names = [os.fsencode(str(name))]
            for number, layer, stored in _list_names(layers):
                if (row := int(layer.find_names(names, stored=stored)[0])) >= 0:
                    return number, row
        raise unknown_name(name, self)


def _list_names(layers: tuple[Layer, ...]) -> list[tuple[int, Layer, bool]]:
    """Return where a name is looked up: the number of a layer, the layer, and whether names of the
    store are meant, which only files have, in the first layer.
    """
    printed = [(number, layer, False) for number, layer in enumerate(layers)]
    return [*printed, (0, layers[0], True)] if layers[0].collection.documents.home else printed


def _make_store(
    run: Run, store: Store, documents: Documents, params: Params, options: Options
) -> None:
    """Write documents to a new store. Raise ParameterError if it holds something."""
    if any(stamps_of(store)):
        message = f"the store {store.folder} holds documents already"
        raise ParameterError(message, "open it with Index.open(store), or name a new folder")
    if params.sketch.scheme not in STORED_SCHEMES:
        message = f"the scheme {params.sketch.scheme} is none for a store"
        raise ParameterError(message, f"use {' or '.join(STORED_SCHEMES)}")
    with store.writing():
        collection = collect_documents(run, documents, params, options)
        if isinstance(documents, str | os.PathLike):
            docs = summarize_docs([typed_name(os.fsencode(documents))])
            lists = replace(collection.documents, docs=docs)
            collection = replace(collection, documents=lists)
        store.save_collection("shingles", collection)
        store.save_collection("signatures", collection)
        if params.pairs.by_bands:
            index = build_index(run, collection, params.bands)
            save_index(store, collection, index, params.bands)
        store.make_current("signatures", collection)
