"""Collections as the arrays and headers of artifacts, and back. Called by store.py and journal.py."""

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection, SkippedFile
from lshdup.documents.document_list import DocumentList
from lshdup.documents.locations import Locations
from lshdup.documents.record_files import RecordFiles
from lshdup.documents.records import Kind, RecordFields
from lshdup.params import FilterParams, ShingleParams, SketchParams
from lshdup.shingling.shingle_filter import ShingleFilter, Unfiltered, fingerprint
from lshdup.skipped import Reason, Skipped
from lshdup.store.checksums import is_lazy
from lshdup.store.npz import Array, Artifact
from lshdup.utils.ragged import RaggedSets, StringTable


def corpus_id(collection: Collection) -> str:
    """32 hexadecimal digits that say: these names, with these shingle sets, by these definitions."""
    if collection.corpus:
        return collection.corpus
    digest = hashlib.blake2b(digest_size=16)
    definitions = [collection.shingle.to_json(), unicodedata.unidata_version]
    if collection.shingle_filter is not None:
        definitions.append(collection.shingle_filter.to_json())
    digest.update(json.dumps(definitions, sort_keys=True).encode())
    for array in (
        collection.documents.names.offsets,
        collection.documents.names.blob,
        collection.fingerprints,
    ):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def unfiltered_id(collection: Collection) -> str:
    """The same of the whole sets, before shingles were removed from them: that of shingles.npz."""
    return corpus_id(collection.before)


def filter_arrays(shingle_filter: ShingleFilter) -> dict[str, Array]:
    """The shingles that are removed, as arrays of an artifact."""
    return {"template": shingle_filter.template, "common": shingle_filter.common}


def document_arrays(collection: Collection) -> dict[str, Array]:
    """What is known of the documents, and of files that are none."""
    documents = collection.documents
    left = collection.skipped
    reasons = list(Reason)
    arrays: dict[str, Array] = {
        "names_blob": documents.names.blob,
        "names_offsets": documents.names.offsets,
        "file_sizes": documents.sizes,
        "file_mtimes": documents.mtimes,
        "set_sizes": collection.sizes,
        "fingerprints": collection.fingerprints,
    }
    names = StringTable.from_strings(each.skipped.name for each in left)
    details = StringTable.from_strings(
        each.skipped.detail.encode("utf-8", "surrogateescape") for each in left
    )
    arrays |= {
        "left_names_blob": names.blob,
        "left_names_offsets": names.offsets,
        "left_details_blob": details.blob,
        "left_details_offsets": details.offsets,
        "left_reasons": np.array([reasons.index(each.skipped.reason) for each in left], np.uint8),
        "left_sizes": np.array([each.size for each in left], np.int64),
        "left_mtimes": np.array([each.mtime for each in left], np.int64),
    }
    if collection.reader:
        arrays |= {
            "extracted": collection.extracted,
            "reader": np.frombuffer(collection.reader.encode(), np.uint8),
        }
    if len(collection.guessed):
        guesses = collection.guesses
        arrays |= {
            "guessed": collection.guessed,
            "guesses_blob": guesses.blob,
            "guesses_offsets": guesses.offsets,
        }
    if documents.locations is not None:
        locations = documents.locations
        arrays |= {
            "paths_blob": locations.paths.blob,
            "paths_offsets": locations.paths.offsets,
            "path_kinds": locations.kinds,
            "path_of": locations.file,
            "starts": locations.starts,
            "lengths": locations.lengths,
        }
    return arrays


def set_arrays(collection: Collection) -> dict[str, Array]:
    """The shingle sets."""
    assert collection.sets is not None
    return {"values": collection.sets.values, "offsets": collection.sets.offsets}


def signature_arrays(collection: Collection) -> dict[str, Array]:
    """The signatures."""
    assert collection.signatures is not None
    arrays: dict[str, Array] = {"signatures": collection.signatures}
    if collection.shingle_filter is not None:
        arrays |= filter_arrays(collection.shingle_filter)
    return arrays | _unfiltered_arrays(collection)


def _unfiltered_arrays(collection: Collection) -> dict[str, Array]:
    if collection.unfiltered is None:
        return {}
    return {
        "whole_sizes": collection.unfiltered.sizes,
        "whole_fingerprints": collection.unfiltered.fingerprints,
    }


def all_arrays(collection: Collection) -> dict[str, Array]:
    """All that is known of a collection: its documents, its signatures and whole sets, if it has them; but not what was removed."""
    arrays = document_arrays(collection) | _unfiltered_arrays(collection)
    if collection.signatures is not None:
        arrays["signatures"] = collection.signatures
    if collection.unfiltered_sets is not None:
        arrays |= set_arrays(collection.before)
    return arrays


def read_collection(
    artifact: Artifact, home: bytes, *, verify: bool, folder: Path | None = None
) -> Collection:
    """The collection of such arrays; raises one of several errors if they do not fit each other.

    verify : look at every offset and size; without it, a query touches a few pages of them only. folder : where to unpack what has to be.
    """
    arrays, header = artifact.arrays, artifact.header
    names = strings_of(artifact, "names")
    n = len(names)
    opened = RecordFiles(folder, _row_fields(header)) if "rows" in header else RecordFiles(folder)
    places = _places(artifact, n) if "starts" in arrays else None
    documents = DocumentList(
        names,
        ints_of(arrays, "file_sizes", n),
        ints_of(arrays, "file_mtimes", n),
        places,
        home,
        record_files=opened,
    )
    refuse_if(
        ("rows" in header) != (documents.record_fields is not None),
        "it has rows without fields, or fields without rows",
    )
    reasons = list(Reason)
    left_names, details = strings_of(artifact, "left_names"), strings_of(artifact, "left_details")
    skipped = tuple(
        SkippedFile(
            Skipped(name, reasons[reason], detail.decode("utf-8", "surrogateescape")), size, mtime
        )
        for name, reason, detail, size, mtime in zip(
            left_names,
            arrays["left_reasons"].tolist(),
            details,
            ints_of(arrays, "left_sizes", len(left_names)).tolist(),
            ints_of(arrays, "left_mtimes", len(left_names)).tolist(),
            strict=True,
        )
    )
    sizes = ints_of(arrays, "set_sizes", n)
    sets = signatures = sketch = unfiltered = shingle_filter = None
    if "common" in header:
        refuse_if(header["kind"] == "shingles", "its sets are not whole")
        shingle_filter = _shingle_filter(header, arrays, verify=verify)
        unfiltered = Unfiltered(
            ints_of(arrays, "whole_sizes", n),
            _prints(arrays, "whole_fingerprints", n),
            corpus=header.get("whole", ""),
        )
        refuse_if(verify and (unfiltered.sizes < sizes).any(), "its sets have grown")
    missing = {"shingles": "values" not in arrays, "signatures": "sketch" not in header}
    refuse_if(missing.get(header["kind"]), "what it is for is missing")
    if "values" in arrays:
        sets = RaggedSets(arrays["values"], arrays["offsets"])
        refuse_if(
            not _are(sets.values, np.uint64)
            or len(sets) != n
            or not _are_offsets(sets.offsets, len(sets.values)),
            "its sets do not fit",
        )
        wanted = sizes if unfiltered is None else unfiltered.sizes
        refuse_if(
            verify and not np.array_equal(sets.sizes, wanted),
            "its sets have other sizes than it says",
        )
    if "sketch" in header:
        sketch = SketchParams.from_json(header["sketch"])
        signatures = arrays["signatures"]
        refuse_if(
            signatures.dtype != np.uint32 or signatures.shape != (n, sketch.perms),
            "its signatures have another shape",
        )
    fingerprints = _prints(arrays, "fingerprints", n)
    shingle = ShingleParams.from_json(header["shingle"])
    made = Collection(
        documents,
        shingle,
        sizes,
        fingerprints,
        skipped,
        sets,
        sketch,
        signatures,
        corpus=header["corpus"],
    )
    if "reader" in arrays:
        made = replace(
            made,
            extracted=_some_of(arrays, "extracted", n),
            reader=arrays["reader"].tobytes().decode(),
        )
    if "guessed" in arrays:
        made = replace(
            made, guessed=_some_of(arrays, "guessed", n), guesses=strings_of(artifact, "guesses")
        )
        refuse_if(
            len(made.guesses) != len(made.guessed),
            "it does not say how it read some of the documents",
        )
    return (
        made
        if unfiltered is None
        else replace(
            made,
            sets=None,
            shingle_filter=shingle_filter,
            unfiltered=replace(unfiltered, sets=sets),
        )
    )


def _shingle_filter(
    header: Mapping[str, Any], arrays: Mapping[str, Array], *, verify: bool
) -> ShingleFilter:
    """The shingles that were removed from the sets of a collection."""
    asked = dict(header["common"])
    common = asked.pop("common")
    shingle_filter = ShingleFilter(
        FilterParams.from_json(asked), arrays["template"], arrays["common"]
    )
    for shingles, said in (
        (shingle_filter.template, shingle_filter.params.template),
        (shingle_filter.common, common),
    ):
        refuse_if(not _are(shingles, np.uint64), "the shingles that were removed do not fit")
        refuse_if(
            verify and fingerprint(shingles) != said,
            "the shingles that were removed are others than it says",
        )
        refuse_if(
            verify and not (shingles[1:] > shingles[:-1]).all(),
            "the shingles that were removed are not in order",
        )
    return shingle_filter


def _prints(arrays: Mapping[str, Array], name: str, n: int) -> NDArray[np.uint64]:
    array = arrays[name]
    refuse_if(
        array.dtype != np.uint64 or array.shape != (n,), "its fingerprints have another shape"
    )
    return array


def _row_fields(header: Mapping[str, Any]) -> RecordFields:
    fields = header["rows"]
    refuse_if(
        type(fields) is not dict or any(type(each) is not str for each in fields.values()),
        "its fields of rows are none",
    )
    return RecordFields(**fields)


def _places(artifact: Artifact, n: int) -> Locations:
    """Where documents are; that each is in a file that is there is looked at when it is read."""
    arrays = artifact.arrays
    refuse_if("path_kinds" not in arrays, "where its documents are is missing")
    paths, kinds = strings_of(artifact, "paths"), arrays["path_kinds"]
    refuse_if(
        kinds.dtype != np.uint8 or kinds.shape != (len(paths),) or kinds.max(initial=0) > max(Kind),
        "kinds of files do not fit",
    )
    return Locations(
        paths,
        kinds,
        ints_of(arrays, "path_of", n),
        ints_of(arrays, "starts", n),
        ints_of(arrays, "lengths", n),
    )


def _some_of(arrays: Mapping[str, Array], name: str, n: int) -> NDArray[np.int64]:
    """Numbers of some of the n documents, ascending."""
    some = arrays[name]
    refuse_if(not _are(some, np.int64), f"{name} does not fit")
    ascending = len(some) == 0 or (
        some[0] >= 0 and some[-1] < n and bool((np.diff(some) > 0).all())
    )
    refuse_if(not ascending, f"{name} has documents that are not there")
    return some


def refuse_if(wrong: object, what: str) -> None:
    """Raise ValueError; whoever loads the artifact names the file and the remedy."""
    if wrong:
        raise ValueError(what)


def strings_of(artifact: Artifact, name: str) -> StringTable:
    """A table of strings that an artifact holds; raises ValueError if it is none."""
    arrays = artifact.arrays
    table = StringTable(arrays[f"{name}_blob"], arrays[f"{name}_offsets"])
    refuse_if(
        not _are(table.blob, np.uint8) or not _are_offsets(table.offsets, len(table.blob)),
        f"{name} do not fit",
    )
    return table


def ints_of(arrays: Mapping[str, Array], name: str, n: int) -> NDArray[np.int64]:
    """The n numbers that an artifact holds by that name; raises ValueError if it does not."""
    array = arrays[name]
    refuse_if(array.dtype != np.int64 or array.shape != (n,), f"{name} do not fit")
    return array


def _are(array: Array, kind: type) -> bool:
    """Whether these are numbers of one kind in a row; kernels take nothing else for them."""
    return array.dtype == kind and array.ndim == 1


def _are_offsets(offsets: Array, total: int) -> bool:
    return bool(
        _are(offsets, np.int64)
        and len(offsets)
        and offsets[0] == 0
        and offsets[-1] == total
        # A CheckedArray is not read whole: a query reads few offsets of it.
        and (is_lazy(offsets) or (np.diff(offsets) >= 0).all())
    )


def same(old: Collection, new: Collection) -> bool:
    """Whether saving would change nothing."""
    return (
        corpus_id(old) == corpus_id(new)
        and old.sketch == new.sketch
        and old.skipped == new.skipped
        and (old.unfiltered is None or unfiltered_id(old) == unfiltered_id(new))
        and old.reader == new.reader
        and np.array_equal(old.extracted, new.extracted)
        and np.array_equal(old.guessed, new.guessed)
        and list(old.guesses) == list(new.guesses)
        and np.array_equal(old.documents.sizes, new.documents.sizes)
        and np.array_equal(old.documents.mtimes, new.documents.mtimes)
        and _place(old.documents) == _place(new.documents)
    )


def _place(documents: DocumentList) -> list[object]:
    """Where the documents are that are parts of files."""
    if documents.locations is None:
        return []
    locations = documents.locations
    columns = (
        locations.paths.offsets,
        locations.paths.blob,
        locations.kinds,
        locations.file,
        locations.starts,
        locations.lengths,
    )
    return [documents.record_fields, *(column.tobytes() for column in columns)]
