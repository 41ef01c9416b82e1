"""Collections as the arrays and headers of artifacts, and back."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lshdup.base.forms import Form
from lshdup.base.params import FilterParams, ShingleParams, SketchParams
from lshdup.base.ragged import RaggedSets, StringTable
from lshdup.base.skipped import Reason, RecordLocation, Skipped, SkippedFile
from lshdup.collection.collection import COLUMNS, WHOLE, Collection, ReadingNotes
from lshdup.shingling.shingle_filter import ShingleFilter, fingerprint
from lshdup.sources.document_list import DocumentList, Locations
from lshdup.sources.readers import RecordFiles
from lshdup.sources.records import Kind, RecordFields
from lshdup.store.npz import (
    Array,
    Artifact,
    Member,
    check_arrays,
    declare_columns,
    declare_sets,
    declare_strings,
    refuse_if,
    string_arrays,
    table_of,
)

# What the use of the arrays needs. Arrays that are there together are declared together.

_DOCUMENTS = declare_strings("names", "documents")
_DOCUMENTS |= declare_columns("documents", file_sizes=np.int64, file_mtimes=np.int64)
_COLUMNS = declare_columns("documents", **COLUMNS)
_COLUMNS["forms"] = Member(np.uint8, ("documents",), below=len(Form))
_SIGNATURES = {"signatures": Member(np.uint32, ("documents", "perms"))}
_LOCATIONS = declare_strings("paths", "files")
_LOCATIONS["path_kinds"] = Member(np.uint8, ("files",), below=max(Kind) + 1)
_LOCATIONS["path_of"] = Member(np.int64, ("documents",), below="files")
_LOCATIONS |= declare_columns("documents", starts=np.int64, lengths=np.int64, numbers=np.int64)
#: The arrays of `Locations`, and its names for them.
_PLACES = {"path_kinds": "kinds", "path_of": "file"}
_PLACES |= {name: name for name in ("starts", "lengths", "numbers")}
_SKIPPED = declare_strings("left_names", "skipped") | declare_strings("left_details", "skipped")
_SKIPPED |= declare_columns("skipped", left_sizes=np.int64, left_mtimes=np.int64)
_SKIPPED["left_reasons"] = Member(np.uint8, ("skipped",), below=len(Reason))
_SKIPPED_RECORDS = declare_strings("left_paths", "records")
_SKIPPED_RECORDS["left_records"] = Member(np.int64, ("records", 4))
_TEMPLATE = Member(np.uint64, ("shingles of the template",), is_ascending=True)
_FILTER = {"template": _TEMPLATE, "common": replace(_TEMPLATE, shape=("common shingles",))}
_READER = declare_columns("bytes of the reader", reader=np.uint8)
_GUESSES = declare_strings("guesses", "guesses")
_GUESSES["guessed"] = Member(np.int64, ("guesses",), below="documents", is_ascending=True)

# --- collection -> arrays -----------------------------------------------------------------------


def collection_arrays(collection: Collection, kind: str) -> dict[str, Array]:
    """Return the arrays of a collection for an artifact.

    kind : "shingles" for the documents and their unfiltered sets; "signatures" for the documents,
        their signatures and the filter; "segment" for everything.
    """
    documents, locations = collection.documents, collection.documents.parts
    # The list that a part is of knows what was skipped there.
    skipped = collection.skipped + (documents.skipped if kind != "segment" else ())
    arrays: dict[str, Array] = string_arrays("names", documents.names)
    arrays |= {"file_sizes": documents.sizes, "file_mtimes": documents.mtimes}
    if locations is not None:
        arrays |= string_arrays("paths", locations.paths)
        arrays |= {name: getattr(locations, of) for name, of in _PLACES.items()}
    arrays |= _skipped_arrays(skipped)
    notes, removed, sets = collection.notes, collection.shingle_filter, collection.sets
    if notes.reader:
        arrays["reader"] = np.frombuffer(notes.reader.encode(), np.uint8)
    if len(notes.guess_documents):
        arrays["guessed"] = notes.guess_documents
        arrays |= string_arrays("guesses", notes.guesses)
    arrays |= collection.columns
    if kind != "shingles" and collection.signatures is not None:
        arrays["signatures"] = collection.signatures
    if kind != "shingles" and removed is not None:
        arrays |= {"template": removed.template, "common": removed.common}
    if kind != "signatures" and sets is not None:
        arrays |= {"values": sets.values, "offsets": sets.offsets}
    return arrays


def _skipped_arrays(skipped: tuple[SkippedFile, ...]) -> dict[str, Array]:
    reasons = list(Reason)
    names = StringTable.from_strings(each.skipped.name for each in skipped)
    details = StringTable.from_strings(
        each.skipped.detail.encode("utf-8", "surrogateescape") for each in skipped
    )
    numbers = [reasons.index(each.skipped.reason) for each in skipped]
    arrays: dict[str, Array] = {
        "left_reasons": np.array(numbers, np.uint8),
        "left_sizes": np.array([each.size for each in skipped], np.int64),
        "left_mtimes": np.array([each.mtime for each in skipped], np.int64),
    }
    arrays |= string_arrays("left_names", names) | string_arrays("left_details", details)
    records = [(row, each.record) for row, each in enumerate(skipped) if each.record is not None]
    if records:
        paths = StringTable.from_strings(record.path for _, record in records)
        arrays |= string_arrays("left_paths", paths)
        columns = np.array([(row, *record[1:]) for row, record in records], np.int64)
        arrays["left_records"] = columns
    return arrays


# --- arrays -> collection -----------------------------------------------------------------------


def read_collection(
    artifact: Artifact, home: bytes, *, verify: bool, folder: Path | None
) -> Collection:
    """Return the collection that an artifact holds.

    Errors: one of `DAMAGED` if the arrays do not fit each other.

    home : the folder that names start from; empty: the current one.
    verify : whether every size is looked at; a query touches a few pages of the arrays only.
    folder : where files are unpacked to be read.
    """
    header, arrays = artifact.header, artifact.arrays
    skipped = _read_skipped(artifact)
    of_list = tuple(each for each in skipped if each.is_of_list)
    documents = _read_documents(artifact, home, folder, of_list)
    sizes = {"documents": len(documents)}
    declared = _COLUMNS
    if "common" not in header:
        declared = {name: each for name, each in _COLUMNS.items() if name not in WHOLE.values()}
    columns = check_arrays(artifact, declared, sizes)
    shingle_filter = sets = sketch = signatures = None
    if "common" in header:
        refuse_if(header["kind"] == "shingles", "its sets are not whole")
        shingle_filter = _read_filter(artifact, verify=verify)
        grown = verify and (columns["whole_sizes"] < columns["set_sizes"]).any()
        refuse_if(grown, "its sets have grown")
    missing = {"shingles": "values" not in arrays, "signatures": "sketch" not in header}
    refuse_if(missing.get(header["kind"]), "what it is for is missing")
    if "sketch" in header:
        sketch = SketchParams.from_json(header["sketch"])
        sizes["perms"] = sketch.perms
        signatures = check_arrays(artifact, _SIGNATURES, sizes)["signatures"]
    if "values" in arrays:
        sets = RaggedSets(**check_arrays(artifact, declare_sets("documents"), sizes))
        said = columns.get("whole_sizes", columns["set_sizes"])
        same_sizes = not verify or np.array_equal(sets.sizes, said)
        refuse_if(not same_sizes, "its sets have other sizes than it says")
    shingle = ShingleParams.from_json(header["shingle"])
    of_documents = tuple(each for each in skipped if not each.is_of_list)
    return Collection(
        documents, shingle, columns, of_documents, sets, sketch, signatures,
        shingle_filter=shingle_filter, notes=_read_notes(artifact, sizes),
        saved_identity=header["corpus"], saved_whole_identity=header.get("whole", ""),
    )  # fmt: skip


def _read_documents(
    artifact: Artifact, home: bytes, folder: Path | None, skipped: tuple[SkippedFile, ...]
) -> DocumentList:
    header, sizes, locations = artifact.header, dict[str, int](), None
    arrays = check_arrays(artifact, _DOCUMENTS, sizes)
    docs = header.get("docs", [])  # A part has none.
    fits = type(docs) is list and all(type(name) is str and "\0" not in name for name in docs)
    refuse_if(not fits, "its DOCS are no names")
    if "starts" in artifact.arrays:  # Whether a file is there is seen when it is read.
        refuse_if("path_kinds" not in artifact.arrays, "where its documents are is missing")
        where = check_arrays(artifact, _LOCATIONS, sizes)
        columns = {of: where[name] for name, of in _PLACES.items()}
        locations = Locations(table_of(where, "paths"), **columns)
    documents = DocumentList(
        table_of(arrays, "names"),
        arrays["file_sizes"],
        arrays["file_mtimes"],
        locations,
        home,
        record_files=RecordFiles(folder, _record_fields(header)),
        skipped=skipped,
        docs=tuple(map(os.fsencode, docs)),
        has_links=header.get("links") is not False,
    )
    fits = ("rows" in header) == (documents.record_fields is not None)
    refuse_if(not fits, "it has rows without fields, or fields without rows")
    return documents


def _record_fields(header: Mapping[str, Any]) -> RecordFields:
    fields = header.get("rows", {})  # only where records are
    kinds = {each.name: type(each.default) for each in dataclasses.fields(RecordFields)}
    fits = type(fields) is dict and all(
        type(value) is kinds.get(name) for name, value in fields.items()
    )
    refuse_if(not fits, "its fields of rows are none")
    return RecordFields(**fields)


def _read_skipped(artifact: Artifact) -> tuple[SkippedFile, ...]:
    arrays, reasons = check_arrays(artifact, _SKIPPED, {}), list(Reason)
    numbers, sizes, mtimes = (
        arrays[f"left_{name}"].tolist() for name in ("reasons", "sizes", "mtimes")
    )
    names = table_of(arrays, "left_names")
    details = [
        detail.decode("utf-8", "surrogateescape") for detail in table_of(arrays, "left_details")
    ]
    records = {}  # where the skipped records are, by their index among the skipped files
    if "left_records" in artifact.arrays:
        where = check_arrays(artifact, _SKIPPED_RECORDS, {})
        rows = zip(table_of(where, "left_paths"), where["left_records"].tolist(), strict=True)
        records = {row: RecordLocation(path, *rest) for path, (row, *rest) in rows}
    files = zip(names, numbers, details, sizes, mtimes, strict=True)
    return tuple(
        SkippedFile(Skipped(name, reasons[number], detail), size, mtime, records.get(row))
        for row, (name, number, detail, size, mtime) in enumerate(files)
    )


def _read_filter(artifact: Artifact, *, verify: bool) -> ShingleFilter:
    params = dict(artifact.header["common"])
    common_fingerprint = params.pop("common")
    removed = check_arrays(artifact, _FILTER, {})
    shingle_filter = ShingleFilter(FilterParams.from_json(params), **removed)
    if verify:
        saved = shingle_filter.params.template, common_fingerprint
        same = saved == tuple(map(fingerprint, removed.values()))
        refuse_if(not same, "the shingles that were removed are others than it says")
    return shingle_filter


def _read_notes(artifact: Artifact, sizes: dict[str, int]) -> ReadingNotes:
    notes: dict[str, Any] = {}
    if "reader" in artifact.arrays:
        notes["reader"] = check_arrays(artifact, _READER, sizes)["reader"].tobytes().decode()
    if "guessed" in artifact.arrays:
        arrays = check_arrays(artifact, _GUESSES, sizes)
        notes |= {"guess_documents": arrays["guessed"], "guesses": table_of(arrays, "guesses")}
    return ReadingNotes(**notes)


# --- comparison ---------------------------------------------------------------------------------


def have_equal_lists(old: Collection, new: Collection, kind: str) -> bool:
    """Return whether the artifacts of two collections with equal headers have equal arrays.

    Names, sets and signatures are told apart by the identity, which the header has.
    """
    bare = (
        replace(each, columns={}, signatures=None, shingle_filter=None, sets=None)
        for each in (old, new)
    )
    olds, news = (collection_arrays(each, kind) for each in bare)
    return olds.keys() == news.keys() and all(
        name.startswith("names_") or np.array_equal(olds[name], news[name]) for name in olds
    )
