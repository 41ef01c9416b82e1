"""The store: which artifacts exist, what they were made from, what is stale; and the steps that continue from them.

A step that is given documents runs the steps before it and reads only what is new or changed. A step that is given none continues from
the artifacts of the last run. Called by the commands in `cli/`.
"""

import hashlib
import json
import os
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup import artifacts, bands, pipeline
from lshdup.artifacts import Array, Artifact, Spool
from lshdup.bands import BandTable
from lshdup.documents import DocumentList, LeftOut, Reason, find_documents
from lshdup.errors import ArtifactError, InputError, ParameterError
from lshdup.params import BandParams, DocumentParams, ShingleParams, SketchParams
from lshdup.pipeline import Banded, Collection, LeftOutFile, Previous, Progress
from lshdup.ragged import RaggedSets, StringTable
from lshdup.similarity import SET_BYTES, SetSource

P = TypeVar("P", ShingleParams, SketchParams, BandParams)

#: Left out because of what is in the file: no need to read it again while it is unchanged.
_LASTING = {Reason.BINARY, Reason.FORMAT, Reason.UNDECODABLE, Reason.NOT_IDS}

_OPTIONS = {"k": "-k", "keep_case": "--keep-case", "max_bytes": "--max-bytes"}


@dataclass(frozen=True)
class Request:
    """What a command was asked.

    documents : folders and files; empty: continue from the store. given : parameters that were set explicitly, by field name.
    """

    documents: tuple[bytes, ...]
    files: DocumentParams
    given: Mapping[str, Any]
    jobs: int


@dataclass(frozen=True)
class Indexed:
    """A collection with its band table, the parameters of the bands, and the shingle sets that an artifact holds for it, if any."""

    collection: Collection
    made: Banded
    params: BandParams
    kept: RaggedSets | None


class Workspace:
    """One store folder, or none.

    say : told what a person should know (something was made anew). left_out : told each file that is not compared.
    """

    def __init__(
        self,
        store: Path | None,
        say: Callable[[str], None] = lambda _: None,
        left_out: Callable[[LeftOut], None] = lambda _: None,
        progress: Progress = pipeline.no_progress,
    ) -> None:
        self.store = store
        self._say = say
        self._left_out = left_out
        self._progress = progress

    # --- the steps ------------------------------------------------------------------------------------------------------

    def shingled(self, request: Request) -> Collection:
        """`lshdup shingle`: sets of all documents, saved as shingles.npz."""
        if not request.documents:
            message = "no documents were named"
            raise InputError(message, "name folders or files: lshdup shingle DOCS")
        self._make_writable()
        assert self.store is not None
        params = _merged(ShingleParams, request.given)
        with Spool(self.store) as spool:
            documents = self._find(request, params)
            previous = self._previous(documents, params, None, need_sets=True)
            collection = self._collect(request, documents, params, None, previous, spool)
            self._save_collection("shingles", collection)
            # The spool's file goes with this block; later steps of this process map the artifact.
            return replace(collection, sets=None)

    def signed(self, request: Request) -> Collection:
        """`lshdup signatures`: from documents or from shingles.npz, saved as signatures.npz."""
        if request.documents:
            self._make_writable()
            return self._signed_documents(request)
        shingles = self._load_collection("shingles")
        if shingles is None:
            raise self._nothing("shingles.npz", "signatures")
        self._check_conflict("shingles.npz", shingles.shingle, request.given, "lshdup shingle DOCS")
        return self._sketch_and_save(shingles, _merged(SketchParams, request.given), request.jobs)

    def indexed(self, request: Request, *, save: bool = True, verify: bool = True) -> Indexed:
        """`lshdup index`, and what `pairs` and `query` begin with: the collection and its band table.

        save : whether a table that was made anew from stored signatures is saved (`index`) or only used (`pairs`, `query`). verify :
        whether every byte of the artifacts is checked, or only what is touched.
        """
        if request.documents:
            params = _merged(BandParams, request.given)
            bands.plan_bands(_merged(SketchParams, request.given).perms, params)  # whether it can be kept, before the work
            if self.store is not None:
                self._make_writable()
            collection = self._signed_documents(request)
            if self.store is None:
                return Indexed(collection, pipeline.banded(collection, params), params, None)
            try:
                stored = self._load_bands(collection)
            except ArtifactError as error:
                self._say(f"{error.message}; it is made anew")
                stored = None
            if stored is not None and stored[1] == params:
                return Indexed(collection, stored[0], params, self._sets_of(collection))
            made = pipeline.banded(collection, params)
            self._save_bands(collection, made, params)
            return Indexed(collection, made, params, self._sets_of(collection))
        collection = self._current_signatures(request, verify)
        stored = self._load_bands(collection, verify)
        kept = self._sets_of(collection)
        if stored is not None:
            made, params = stored
            wanted = _merged(BandParams, _band_options(request.given, params), params)
            if wanted == params or (_same_but_threshold(wanted, params) and wanted.threshold >= params.threshold and not save):
                return Indexed(collection, made, wanted, kept)
        else:
            wanted = _merged(BandParams, request.given)
        made = pipeline.banded(collection, wanted)
        if save:
            self._save_bands(collection, made, wanted)
        elif stored is not None:
            self._say(f"bands made anew from signatures.npz for threshold {wanted.threshold:g}; the stored ones are for {stored[1].threshold:g}")
        return Indexed(collection, made, wanted, kept)

    def known_names(self) -> Collection | None:
        """The collection of the last run, for looking names up in; None without one."""
        try:
            return self._load_collection("signatures", verify=False) or self._load_collection("shingles", verify=False)
        except ArtifactError as error:
            self._say(error.message)
            return None

    def source(self, indexed: Indexed, jobs: int) -> SetSource:
        """Where the shingle sets of an indexed collection come from."""
        return pipeline.set_source(indexed.collection, jobs, self._left_out, indexed.kept)

    @contextmanager
    def every_set(self, request: Request) -> Iterator[tuple[Collection, RaggedSets]]:
        """A collection and all its shingle sets, for the exact join and the experiments."""
        if request.documents:
            params = _merged(ShingleParams, request.given)
            documents = self._find(request, params)
            previous = self._previous(documents, params, None, need_sets=True)
            collection = self._collect(request, documents, params, None, previous, 1 << 62)
            assert collection.sets is not None
            yield collection, collection.sets
            return
        shingles = self._load_collection("shingles")
        if shingles is None or shingles.sets is None:
            raise self._nothing("shingles.npz", "this")
        self._check_conflict("shingles.npz", shingles.shingle, request.given, "lshdup shingle DOCS")
        yield shingles, shingles.sets

    # --- from documents ---------------------------------------------------------------------------------------------------

    def _find(self, request: Request, params: ShingleParams) -> DocumentList:
        store = os.fsencode(self.store) if self.store is not None else None
        documents = find_documents(
            request.documents,
            request.files,
            id_lists=params.tokens == "ids",
            store=store,
            on_left_out=self._left_out,
        )
        self._progress("documents", 0, len(documents))
        return documents

    def _collect(
        self,
        request: Request,
        documents: DocumentList,
        params: ShingleParams,
        sketch: SketchParams | None,
        previous: Previous | None,
        keep: Spool | int,
    ) -> Collection:
        collection = pipeline.collect(
            documents, params, sketch, jobs=request.jobs, previous=previous, keep=keep, progress=self._progress
        )
        for each in collection.left_out:
            self._left_out(each.left_out)
        return collection

    def _signed_documents(self, request: Request) -> Collection:
        params, sketch = _merged(ShingleParams, request.given), _merged(SketchParams, request.given)
        documents = self._find(request, params)
        previous = self._previous(documents, params, sketch, need_sets=sketch.scheme == "linear")
        collection = self._collect(request, documents, params, sketch, previous, SET_BYTES // 2)
        if self.store is not None:
            if collection.sets is not None:  # a collection this small: the next run need not read it to verify
                self._save_collection("shingles", collection)
            self._save_collection("signatures", collection)
        return collection

    def _previous(
        self, documents: DocumentList, params: ShingleParams, sketch: SketchParams | None, *, need_sets: bool
    ) -> Previous | None:
        """What the store knows about these documents, if it was made with the same parameters."""
        if self.store is None:
            return None
        shingles = self._load_for_reuse("shingles")
        old = None if need_sets else self._load_for_reuse("signatures")
        if old is not None and (old.shingle != params or old.sketch != sketch):
            old = None
        if shingles is not None and shingles.shingle == params:
            if old is None:
                old = shingles
            elif corpus_id(old) == corpus_id(shingles):
                old = replace(old, sets=shingles.sets)
        if old is None:
            return None
        known = {each.left_out.name: each for each in old.left_out if each.left_out.reason in _LASTING}
        return Previous(old, _unchanged(old.documents, documents), _still_left_out(known, documents) if known else {})

    def _load_for_reuse(self, kind: str) -> Collection | None:
        try:
            return self._load_collection(kind, here=True)
        except ArtifactError as error:
            self._say(f"{error.message}; it is made anew")
            return None

    # --- from the store -----------------------------------------------------------------------------------------------------

    def _current_signatures(self, request: Request, verify: bool = True) -> Collection:
        """signatures.npz, unless shingles.npz is newer and of other documents: then signatures of those, made now."""
        signatures = self._load_collection("signatures", verify=verify)
        shingles = self._load_collection("shingles", verify=False)
        if signatures is not None:
            stale = (
                shingles is not None
                and corpus_id(shingles) != corpus_id(signatures)
                and self._path("shingles").stat().st_mtime_ns > self._path("signatures").stat().st_mtime_ns
            )
            if not stale:
                self._check_conflict("signatures.npz", signatures.shingle, request.given, "name the documents again")
                assert signatures.sketch is not None
                remedy = "run `lshdup signatures` with these options, or name the documents again"
                self._check_conflict("signatures.npz", signatures.sketch, request.given, remedy)
                return signatures
        if shingles is None:
            raise self._nothing("signatures.npz", "index")
        self._check_conflict("shingles.npz", shingles.shingle, request.given, "lshdup shingle DOCS")
        base = signatures.sketch if signatures is not None else None
        self._say("signatures.npz is made from shingles.npz, which is newer" if base else "signatures.npz is made from shingles.npz")
        return self._sketch_and_save(shingles, _merged(SketchParams, request.given, base), request.jobs)

    def _sketch_and_save(self, shingles: Collection, sketch: SketchParams, jobs: int) -> Collection:
        collection = pipeline.sketched(shingles, sketch, jobs)
        self._save_collection("signatures", collection)
        return collection

    def _sets_of(self, collection: Collection) -> RaggedSets | None:
        """The sets of shingles.npz, if they are this collection's."""
        if collection.sets is not None:
            return collection.sets
        try:
            shingles = self._load_collection("shingles", verify=False)
        except ArtifactError:
            return None
        return shingles.sets if shingles is not None and corpus_id(shingles) == corpus_id(collection) else None

    def _nothing(self, name: str, step: str) -> ArtifactError:
        if self.store is None:
            return ArtifactError("no documents were named, and --no-store leaves nothing to continue from", "name DOCS")
        return ArtifactError(f"there is no {name} in {self.store}", f"run `lshdup {step} DOCS`" if step != "this" else "name DOCS, or run `lshdup shingle DOCS` first")

    def _check_conflict(self, name: str, stored: ShingleParams | SketchParams, given: Mapping[str, Any], remedy: str) -> None:
        for field in fields(stored):
            wanted = given.get(field.name)
            actual = getattr(stored, field.name)
            if field.name in given and wanted != actual and not (field.name == "k" and wanted == 0):
                option = _OPTIONS.get(field.name, f"--{field.name}")
                message = f"{name} was made with {option} {actual}, not {wanted}"
                raise ArtifactError(message, remedy)

    # --- reading and writing artifacts --------------------------------------------------------------------------------------

    def _path(self, kind: str) -> Path:
        assert self.store is not None
        return self.store / f"{kind}.npz"

    def _make_writable(self) -> None:
        """Prove before the work that its result can be written."""
        if self.store is None:
            raise ParameterError("this step writes an artifact, which --no-store forbids", "leave --no-store out")
        try:
            self.store.mkdir(parents=True, exist_ok=True)
            ignore = self.store / ".gitignore"
            if not ignore.exists():
                ignore.write_text("# Made by lshdup.\n*\n")
            if not os.access(self.store, os.W_OK | os.X_OK):
                raise PermissionError(13, "permission denied")
        except OSError as error:
            message = f"the store {self.store} cannot be written: {error.strerror}"
            raise ArtifactError(message, "name another with --store DIR, or use --no-store") from None

    def _save_collection(self, kind: str, collection: Collection) -> None:
        assert self.store is not None
        old = self._load_quietly(kind)
        if old is not None and _same(old, collection):
            return
        arrays = _document_arrays(collection)
        if kind == "shingles":
            assert collection.sets is not None
            arrays |= {"values": collection.sets.values, "offsets": collection.sets.offsets}
        else:
            assert collection.signatures is not None
            arrays |= {"signatures": collection.signatures}
        artifacts.save(self._path(kind), kind, self._header(collection, with_sketch=kind == "signatures"), arrays)

    def _load_quietly(self, kind: str) -> Collection | None:
        try:
            return self._load_collection(kind, here=True, verify=False)
        except ArtifactError:
            return None

    def _header(self, collection: Collection, *, with_sketch: bool) -> dict[str, Any]:
        assert self.store is not None
        header: dict[str, Any] = {
            "shingle": collection.shingle.to_json(),
            "unicode": unicodedata.unidata_version,
            "corpus": corpus_id(collection),
            "base": os.path.relpath(Path.cwd(), self.store.resolve()),
        }
        if with_sketch and collection.sketch is not None:
            header["sketch"] = collection.sketch.to_json()
        return header

    def _load_collection(self, kind: str, *, here: bool = False, verify: bool = True) -> Collection | None:
        """shingles.npz or signatures.npz. here : only if its names are meant from the current folder."""
        if self.store is None:
            return None
        remedy = f"run `lshdup {'shingle' if kind == 'shingles' else kind} DOCS`"
        path = self._path(kind)
        artifact = artifacts.load(path, kind, remedy, verify=verify)
        if artifact is None:
            return None
        try:
            if artifact.header["unicode"] != unicodedata.unidata_version:
                message = f"{path} was made with Unicode {artifact.header['unicode']}; this Python has {unicodedata.unidata_version}"
                raise ArtifactError(message, remedy)
            home = Path(os.path.normpath(self.store.resolve() / artifact.header["base"]))
            at_home = home == Path.cwd()
            if here and not at_home:
                return None
            return _read_collection(artifact, None if at_home else os.fsencode(home))
        except (KeyError, TypeError, ValueError, IndexError, ParameterError) as error:
            message = f"{path} is damaged ({error})"
            raise ArtifactError(message, remedy) from None

    def _save_bands(self, collection: Collection, made: Banded, params: BandParams) -> None:
        header = self._header(collection, with_sketch=True) | {"bands": params.to_json()}
        arrays = _document_arrays(collection) | {"keys": made.table.keys, "order": made.table.order, "firsts": made.firsts}
        artifacts.save(self._path("bands"), "bands", header, arrays)

    def _load_bands(self, collection: Collection, verify: bool = True) -> tuple[Banded, BandParams] | None:
        """bands.npz, if it was made from this collection."""
        path = self._path("bands")
        remedy = "run `lshdup index`"
        try:
            artifact = artifacts.load(path, "bands", remedy, verify=verify)
            if artifact is None:
                return None
            assert collection.sketch is not None
            if (
                artifact.header["corpus"] != corpus_id(collection)
                or artifact.header["sketch"] != collection.sketch.to_json()
            ):
                return None
            params = BandParams.from_json(artifact.header["bands"])
            plan = bands.plan_bands(collection.sketch.perms, params)
            keys, order, firsts = artifact.arrays["keys"], artifact.arrays["order"], artifact.arrays["firsts"]
            n = len(collection.documents)
            if keys.shape != (plan.bands, n) or firsts.shape != (n,) or len(order) != plan.bands or order.shape[1] > n:
                raise ValueError("shapes do not fit")
            if (keys.dtype, order.dtype, firsts.dtype) != (np.uint64, np.uint32, np.int64):
                raise ValueError("types do not fit")
            if verify and n and (order.max(initial=0) >= n or firsts.min() < 0 or firsts.max() >= n):
                raise ValueError("it names documents that are not there")
            return Banded(plan, BandTable(keys, order), firsts), params
        except (KeyError, TypeError, ValueError, IndexError, ParameterError) as error:
            message = f"{path} is damaged ({error})"
            raise ArtifactError(message, remedy) from None


# --- collections as arrays ------------------------------------------------------------------------------------------------------


def corpus_id(collection: Collection) -> str:
    """32 hexadecimal digits that say: these names, with these shingle sets, by these definitions."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([collection.shingle.to_json(), unicodedata.unidata_version], sort_keys=True).encode())
    for array in (collection.documents.names.offsets, collection.documents.names.blob, collection.fingerprints):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def _document_arrays(collection: Collection) -> dict[str, Array]:
    documents = collection.documents
    left = collection.left_out
    reasons = list(Reason)
    arrays: dict[str, Array] = {
        "names_blob": documents.names.blob,
        "names_offsets": documents.names.offsets,
        "file_sizes": documents.sizes,
        "file_mtimes": documents.mtimes,
        "set_sizes": collection.sizes,
        "fingerprints": collection.fingerprints,
    }
    names = StringTable.from_strings(each.left_out.name for each in left)
    details = StringTable.from_strings(each.left_out.detail.encode("utf-8", "surrogateescape") for each in left)
    arrays |= {
        "left_names_blob": names.blob,
        "left_names_offsets": names.offsets,
        "left_details_blob": details.blob,
        "left_details_offsets": details.offsets,
        "left_reasons": np.array([reasons.index(each.left_out.reason) for each in left], np.uint8),
        "left_sizes": np.array([each.size for each in left], np.int64),
        "left_mtimes": np.array([each.mtime for each in left], np.int64),
    }
    if documents.starts is not None and documents.lengths is not None and documents.paths is not None:
        arrays |= {
            "paths_blob": documents.paths.blob,
            "paths_offsets": documents.paths.offsets,
            "starts": documents.starts,
            "lengths": documents.lengths,
        }
    return arrays


def _read_collection(artifact: Artifact, home: bytes | None) -> Collection:
    arrays, header = artifact.arrays, artifact.header
    names = _strings(arrays, "names")
    n = len(names)
    paths = starts = lengths = None
    if "starts" in arrays:
        paths, starts, lengths = _strings(arrays, "paths"), _ints(arrays, "starts", n), _ints(arrays, "lengths", n)
    if home is not None:
        paths = StringTable.from_strings(os.path.join(home, path) for path in (names if paths is None else paths))  # noqa: PTH118
    documents = DocumentList(names, _ints(arrays, "file_sizes", n), _ints(arrays, "file_mtimes", n), paths, starts, lengths)
    reasons = list(Reason)
    left_names, details = _strings(arrays, "left_names"), _strings(arrays, "left_details")
    left_out = tuple(
        LeftOutFile(LeftOut(name, reasons[reason], detail.decode("utf-8", "surrogateescape")), size, mtime)
        for name, reason, detail, size, mtime in zip(
            left_names,
            arrays["left_reasons"].tolist(),
            details,
            arrays["left_sizes"].tolist(),
            arrays["left_mtimes"].tolist(),
            strict=True,
        )
    )
    sizes = _ints(arrays, "set_sizes", n)
    sets = signatures = sketch = None
    if "values" in arrays:
        sets = RaggedSets(arrays["values"], arrays["offsets"])
        if sets.values.dtype != np.uint64 or len(sets) != n or not _are_offsets(sets.offsets, len(sets.values)):
            raise ValueError("its sets do not fit")
        if not np.array_equal(sets.sizes, sizes):
            raise ValueError("its sets have other sizes than it says")
    if "sketch" in header:
        sketch = SketchParams.from_json(header["sketch"])
        signatures = arrays["signatures"]
        if signatures.dtype != np.uint32 or signatures.shape != (n, sketch.perms):
            raise ValueError("its signatures have another shape")
    fingerprints = arrays["fingerprints"]
    if fingerprints.dtype != np.uint64 or fingerprints.shape != (n,):
        raise ValueError("its fingerprints have another shape")
    shingle = ShingleParams.from_json(header["shingle"])
    return Collection(documents, shingle, sizes, fingerprints, left_out, sets, sketch, signatures)


def _strings(arrays: Mapping[str, Array], name: str) -> StringTable:
    table = StringTable(arrays[f"{name}_blob"], arrays[f"{name}_offsets"])
    if table.blob.dtype != np.uint8 or not _are_offsets(table.offsets, len(table.blob)):
        message = f"{name} do not fit"
        raise ValueError(message)
    return table


def _ints(arrays: Mapping[str, Array], name: str, n: int) -> NDArray[np.int64]:
    array = arrays[name]
    if array.dtype != np.int64 or array.shape != (n,):
        message = f"{name} do not fit"
        raise ValueError(message)
    return array


def _are_offsets(offsets: Array, total: int) -> bool:
    return bool(
        offsets.dtype == np.int64
        and offsets.ndim == 1
        and len(offsets)
        and offsets[0] == 0
        and offsets[-1] == total
        and (np.diff(offsets) >= 0).all()
    )


def _same(old: Collection, new: Collection) -> bool:
    """Whether saving would change nothing."""
    return (
        corpus_id(old) == corpus_id(new)
        and old.sketch == new.sketch
        and old.left_out == new.left_out
        and np.array_equal(old.documents.sizes, new.documents.sizes)
        and np.array_equal(old.documents.mtimes, new.documents.mtimes)
    )


def _unchanged(old: DocumentList, new: DocumentList) -> NDArray[np.int64]:
    """For each new document the row of the old one with the same name, size, time and place, or -1: int64 array."""
    if (
        np.array_equal(old.names.offsets, new.names.offsets)
        and np.array_equal(old.names.blob, new.names.blob)
    ):
        rows = np.arange(len(new))
    else:
        places = {name: row for row, name in enumerate(old.names)}
        rows = np.fromiter((places.get(name, -1) for name in new.names), np.int64, len(new))
    if not len(old):
        return rows
    same = (rows >= 0) & (old.sizes[rows] == new.sizes) & (old.mtimes[rows] == new.mtimes)
    if (old.starts is None) != (new.starts is None):
        return np.full(len(new), -1, np.int64)
    if old.starts is not None and old.lengths is not None and new.starts is not None and new.lengths is not None:
        same &= (old.starts[rows] == new.starts) & (old.lengths[rows] == new.lengths)
    return np.where(same, rows, -1)


def _still_left_out(known: Mapping[bytes, LeftOutFile], documents: DocumentList) -> dict[bytes, LeftOutFile]:
    still = {}
    for name, each in known.items():
        index = documents.names.find(name)
        if index is not None and documents.sizes[index] == each.size and documents.mtimes[index] == each.mtime:
            still[name] = each
    return still


def _merged(kind: type[P], given: Mapping[str, Any], base: P | None = None) -> P:
    """The parameters of one stage: those given, over those of `base`, over the defaults."""
    known = {field.name for field in fields(kind)}
    values = base.to_json() if base is not None else {}
    return kind(**(values | {name: value for name, value in given.items() if name in known}))


def _band_options(given: Mapping[str, Any], stored: BandParams) -> Mapping[str, Any]:
    """Bands or rows that are given replace both of the stored ones."""
    if "bands" in given or "rows" in given:
        return {"bands": 0, "rows": 0, **given}
    return given


def _same_but_threshold(a: BandParams, b: BandParams) -> bool:
    return replace(a, threshold=b.threshold) == b
