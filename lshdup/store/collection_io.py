"""Collections as the arrays and headers of artifacts, and back."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lshdup.collection.collection import COLUMNS, WHOLE, Collection, ReadingNotes, Unfiltered
from lshdup.documents.document_list import DocumentList
from lshdup.documents.locations import Locations
from lshdup.documents.record_files import RecordFiles
from lshdup.documents.records import Kind, RecordFields
from lshdup.params import FilterParams, ShingleParams, SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter, fingerprint
from lshdup.skipped import Reason, RecordLocation, Skipped, SkippedFile
from lshdup.store.members import (
    are_offsets,
    is_column,
    read_column,
    read_indices,
    read_strings,
    refuse_if,
)
from lshdup.store.npz import Array, Artifact
from lshdup.utils.ragged import RaggedSets, StringTable

# --- collection -> arrays -----------------------------------------------------------------------


def collection_arrays(collection: Collection, kind: str) -> dict[str, Array]:
    """Return the arrays of a collection for an artifact.

    kind : "shingles" for the documents and their unfiltered sets; "signatures" for the documents,
        their signatures and the filter; "journal" for everything but the filter.
    """
    # Parts of a journal are joined with a list of documents that knows what was skipped.
    skipped = collection.skipped
    skipped += collection.documents.skipped if kind != "journal" else ()
    arrays = _document_arrays(collection.documents) | _skipped_arrays(skipped)
    arrays |= _notes_arrays(collection.notes) | collection.columns
    unfiltered = collection.unfiltered
    if kind != "shingles" and collection.signatures is not None:
        arrays["signatures"] = collection.signatures
    if kind == "signatures" and unfiltered is not None:
        arrays |= filter_arrays(unfiltered.shingle_filter)
    sets = collection.unfiltered_sets
    if kind != "signatures" and sets is not None:
        arrays |= {"values": sets.values, "offsets": sets.offsets}
    return arrays


def filter_arrays(shingle_filter: ShingleFilter | None) -> dict[str, Array]:
    """Return the shingles of a filter as arrays of an artifact."""
    if shingle_filter is None:
        return {}
    return {"template": shingle_filter.template, "common": shingle_filter.common}


def _document_arrays(documents: DocumentList) -> dict[str, Array]:
    arrays: dict[str, Array] = _string_arrays("names", documents.names)
    arrays |= {"file_sizes": documents.sizes, "file_mtimes": documents.mtimes}
    if documents.locations is not None:
        locations = documents.locations
        arrays |= _string_arrays("paths", locations.paths)
        arrays |= {
            "path_kinds": locations.kinds,
            "path_of": locations.file,
            "starts": locations.starts,
            "lengths": locations.lengths,
            "numbers": locations.numbers,
        }
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
    arrays |= _string_arrays("left_names", names) | _string_arrays("left_details", details)
    records = [(row, each.record) for row, each in enumerate(skipped) if each.record is not None]
    if records:
        paths = StringTable.from_strings(record.path for _, record in records)
        arrays |= _string_arrays("left_paths", paths)
        columns = np.array([(row, *record[1:]) for row, record in records], np.int64)
        arrays["left_records"] = columns
    return arrays


def _notes_arrays(notes: ReadingNotes) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    if notes.reader:
        arrays["reader"] = np.frombuffer(notes.reader.encode(), np.uint8)
    if len(notes.guess_documents):
        arrays["guessed"] = notes.guess_documents
        arrays |= _string_arrays("guesses", notes.guesses)
    return arrays


def _string_arrays(name: str, table: StringTable) -> dict[str, Array]:
    return {f"{name}_blob": table.blob, f"{name}_offsets": table.offsets}


# --- arrays -> collection -----------------------------------------------------------------------


def read_collection(
    artifact: Artifact, home: bytes, *, verify: bool, folder: Path | None = None
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
    n = len(documents)
    columns = {
        name: read_column(artifact, name, dtype, n)
        for name, dtype in COLUMNS.items()
        if "common" in header or name not in WHOLE.values()
    }
    unfiltered = None
    if "common" in header:
        refuse_if(header["kind"] == "shingles", "its sets are not whole")
        shingle_filter = _read_filter(artifact, verify=verify)
        unfiltered = Unfiltered(shingle_filter, saved_identity=header.get("whole", ""))
        grown = verify and (columns["whole_sizes"] < columns["set_sizes"]).any()
        refuse_if(grown, "its sets have grown")
    missing = {"shingles": "values" not in arrays, "signatures": "sketch" not in header}
    refuse_if(missing.get(header["kind"]), "what it is for is missing")
    sketch = signatures = None
    if "sketch" in header:
        sketch, signatures = SketchParams.from_json(header["sketch"]), arrays["signatures"]
        fits = signatures.dtype == np.uint32 and signatures.shape == (n, sketch.perms)
        refuse_if(not fits, "its signatures have another shape")
    collection = Collection(
        documents,
        ShingleParams.from_json(header["shingle"]),
        columns,
        tuple(each for each in skipped if not each.is_of_list),
        sketch=sketch,
        signatures=signatures,
        unfiltered=unfiltered,
        notes=_read_notes(artifact, n),
        saved_identity=header["corpus"],
    )
    if "values" not in arrays:
        return collection
    sets = RaggedSets(arrays["values"], arrays["offsets"])
    fits = is_column(sets.values, np.uint64) and len(sets) == n
    refuse_if(not fits or not are_offsets(sets.offsets, len(sets.values)), "its sets do not fit")
    same_sizes = not verify or np.array_equal(sets.sizes, collection.unfiltered_sizes)
    refuse_if(not same_sizes, "its sets have other sizes than it says")
    return collection.with_unfiltered_sets(sets)


def _read_documents(
    artifact: Artifact, home: bytes, folder: Path | None, skipped: tuple[SkippedFile, ...]
) -> DocumentList:
    header = artifact.header
    names = read_strings(artifact, "names")
    n = len(names)
    documents = DocumentList(
        names,
        read_column(artifact, "file_sizes", np.int64, n),
        read_column(artifact, "file_mtimes", np.int64, n),
        _read_locations(artifact, n) if "starts" in artifact.arrays else None,
        home,
        record_files=RecordFiles(folder, _record_fields(header)),
        skipped=skipped,
        docs=_read_docs(header),
        has_links=header.get("links") is not False,
    )
    fits = ("rows" in header) == (documents.record_fields is not None)
    refuse_if(not fits, "it has rows without fields, or fields without rows")
    return documents


def _read_docs(header: Mapping[str, Any]) -> tuple[bytes, ...]:
    docs = header.get("docs", [])  # the journal has none
    fits = type(docs) is list and all(type(name) is str and "\0" not in name for name in docs)
    refuse_if(not fits, "its DOCS are no names")
    return tuple(map(os.fsencode, docs))


def _read_locations(artifact: Artifact, n: int) -> Locations:
    """Return the locations of documents. Whether a file is there is seen when it is read."""
    refuse_if("path_kinds" not in artifact.arrays, "where its documents are is missing")
    paths = read_strings(artifact, "paths")
    kinds = read_column(artifact, "path_kinds", np.uint8, len(paths))
    refuse_if(kinds.max(initial=0) > max(Kind), "kinds of files do not fit")
    path_of = read_column(artifact, "path_of", np.int64, n, below=len(paths))
    names = "starts", "lengths", "numbers"
    places = (read_column(artifact, name, np.int64, n) for name in names)
    return Locations(paths, kinds, path_of, *places)


def _record_fields(header: Mapping[str, Any]) -> RecordFields:
    fields = header.get("rows", {})  # only where records are
    kinds = {each.name: type(each.default) for each in dataclasses.fields(RecordFields)}
    fits = type(fields) is dict and all(
        type(value) is kinds.get(name) for name, value in fields.items()
    )
    refuse_if(not fits, "its fields of rows are none")
    return RecordFields(**fields)


def _read_skipped(artifact: Artifact) -> tuple[SkippedFile, ...]:
    names, reasons = read_strings(artifact, "left_names"), list(Reason)
    numbers, sizes, mtimes = (
        read_column(artifact, f"left_{name}", dtype, len(names)).tolist()
        for name, dtype in (("reasons", np.uint8), ("sizes", np.int64), ("mtimes", np.int64))
    )
    details = [
        detail.decode("utf-8", "surrogateescape")
        for detail in read_strings(artifact, "left_details")
    ]
    records = _read_skipped_records(artifact)
    files = zip(names, numbers, details, sizes, mtimes, strict=True)
    return tuple(
        SkippedFile(Skipped(name, reasons[number], detail), size, mtime, records.get(row))
        for row, (name, number, detail, size, mtime) in enumerate(files)
    )


def _read_skipped_records(artifact: Artifact) -> dict[int, RecordLocation]:
    """Return where the skipped records are, by their index among the skipped files."""
    if "left_records" not in artifact.arrays:
        return {}
    columns, paths = artifact.arrays["left_records"], read_strings(artifact, "left_paths")
    fits = columns.dtype == np.int64 and columns.shape == (len(paths), 4)
    refuse_if(not fits, "its skipped rows do not fit")
    return {
        row: RecordLocation(path, *rest)
        for path, (row, *rest) in zip(paths, columns.tolist(), strict=True)
    }


def _read_filter(artifact: Artifact, *, verify: bool) -> ShingleFilter:
    params = dict(artifact.header["common"])
    common_fingerprint = params.pop("common")
    shingle_filter = ShingleFilter(
        FilterParams.from_json(params), artifact.arrays["template"], artifact.arrays["common"]
    )
    for shingles, saved in (
        (shingle_filter.template, shingle_filter.params.template),
        (shingle_filter.common, common_fingerprint),
    ):
        refuse_if(not is_column(shingles, np.uint64), "the shingles that were removed do not fit")
        if verify:
            same = fingerprint(shingles) == saved
            refuse_if(not same, "the shingles that were removed are others than it says")
            ascending = (shingles[1:] > shingles[:-1]).all()
            refuse_if(not ascending, "the shingles that were removed are not in order")
    return shingle_filter


def _read_notes(artifact: Artifact, n: int) -> ReadingNotes:
    notes: dict[str, Any] = {}
    if "reader" in artifact.arrays:
        notes["reader"] = artifact.arrays["reader"].tobytes().decode()
    if "guessed" in artifact.arrays:
        notes["guess_documents"] = read_indices(artifact, "guessed", n)
        notes["guesses"] = read_strings(artifact, "guesses")
        fits = len(notes["guesses"]) == len(notes["guess_documents"])
        refuse_if(not fits, "it does not say how it read some of the documents")
    return ReadingNotes(**notes)


# --- comparison ---------------------------------------------------------------------------------


def would_save_the_same(old: Collection, new: Collection, kind: str) -> bool:
    """Return whether the artifact of one collection would say the same as that of the other."""
    if (
        old.identity != new.identity
        or old.documents.docs != new.documents.docs
        or old.documents.has_links != new.documents.has_links
        or old.documents.record_fields != new.documents.record_fields
        or (kind == "signatures" and old.sketch != new.sketch)
        or (old.unfiltered is not None and old.unfiltered_identity != new.unfiltered_identity)
    ):
        return False
    # Names, sets and signatures are told apart by the identity.
    bare = (
        replace(each, columns={}, signatures=None, unfiltered=None, sets=None)
        for each in (old, new)
    )
    olds, news = (collection_arrays(each, kind) for each in bare)
    return olds.keys() == news.keys() and all(
        name.startswith("names_") or np.array_equal(olds[name], news[name]) for name in olds
    )
