"""Where the records of files are, as rows.npz: unchanged files are not searched for them again."""

from dataclasses import asdict
from itertools import pairwise

import numpy as np

from lshdup.documents.locations import KnownRecords
from lshdup.documents.records import RecordList
from lshdup.errors import ArtifactError
from lshdup.params import DocumentParams
from lshdup.skipped import Reason
from lshdup.store import npz
from lshdup.store.members import read_numbers, read_strings, refuse_if
from lshdup.store.npz import Array, Artifact
from lshdup.store.store import Store
from lshdup.utils.ragged import StringTable, offsets_of

_COLUMNS = ("numbers", "starts", "lengths")


def save_record_lists(store: Store, params: DocumentParams, known: KnownRecords) -> None:
    """Save the records of files as rows.npz. Determinism: equal records give equal bytes."""
    keys = sorted(known)
    lists = [known[key] for key in keys]
    skipped = [each for records in lists for each in records.skipped]
    reasons = list(Reason)
    paths = StringTable.from_strings(path for path, _, _ in keys)
    details = StringTable.from_strings(
        detail.encode("utf-8", "surrogateescape") for _, _, detail in skipped
    )
    arrays: dict[str, Array] = {
        "paths_blob": paths.blob,
        "paths_offsets": paths.offsets,
        "file_sizes": np.array([size for _, size, _ in keys], np.int64),
        "file_mtimes": np.array([mtime for _, _, mtime in keys], np.int64),
        "counts": np.array([len(each.numbers) for each in lists], np.int64),
        "left_counts": np.array([len(each.skipped) for each in lists], np.int64),
        "left_numbers": np.array([number for number, _, _ in skipped], np.int64),
        "left_reasons": np.array([reasons.index(reason) for _, reason, _ in skipped], np.uint8),
        "left_details_blob": details.blob,
        "left_details_offsets": details.offsets,
    }
    arrays |= {name: np.concatenate([getattr(each, name) for each in lists]) for name in _COLUMNS}
    if params.id_field:
        ids = [each.ids for each in lists if each.ids is not None]
        arrays["ids_blob"] = np.concatenate([each.blob for each in ids])
        arrays["ids_offsets"] = offsets_of(np.concatenate([np.diff(each.offsets) for each in ids]))
    npz.save(store.path("rows"), "rows", _header(store, params), arrays)


def load_record_lists(store: Store, params: DocumentParams) -> KnownRecords:
    """Load rows.npz. Return {} if it is missing, damaged, or of other parameters or folders."""
    try:
        artifact = npz.load(store.path("rows"), "rows", "run the command again")
        header = _header(store, params).items()
        if artifact is None or any(artifact.header.get(name) != value for name, value in header):
            return {}
        return _read(artifact, with_ids=bool(params.id_field))
    except (ArtifactError, KeyError, TypeError, ValueError, IndexError):
        return {}


def _header(store: Store, params: DocumentParams) -> dict[str, object]:
    fields = asdict(params)
    return {
        "rows": {name: fields[name] for name in ("text_field", "id_field", "max_bytes")},
        "base": store.base(),
    }


def _read(artifact: Artifact, *, with_ids: bool) -> KnownRecords:
    paths = read_strings(artifact, "paths")
    n = len(paths)
    parts, skipped_parts = _runs(artifact, "counts", n), _runs(artifact, "left_counts", n)
    total = parts[-1].stop if n else 0
    numbers, starts, lengths = columns = [read_numbers(artifact, name, total) for name in _COLUMNS]
    refuse_if(any(each.min(initial=0) < 0 for each in columns), "rows before the first")
    ids = read_strings(artifact, "ids") if with_ids else None
    refuse_if(ids is not None and len(ids) != total, "ids do not fit")
    skipped = _read_skipped(artifact, skipped_parts[-1].stop if n else 0)
    sizes, mtimes = (
        read_numbers(artifact, name, n).tolist() for name in ("file_sizes", "file_mtimes")
    )
    known: KnownRecords = {}
    for at, (path, part) in enumerate(zip(paths, parts, strict=True)):
        known[path, sizes[at], mtimes[at]] = RecordList(
            numbers[part],
            starts[part],
            lengths[part],
            None if ids is None else ids.take(np.arange(part.start, part.stop)),
            skipped[skipped_parts[at]],
        )
    return known


def _runs(artifact: Artifact, name: str, n: int) -> list[slice]:
    """Return the places of the records of each of n files, from their counts."""
    counts = read_numbers(artifact, name, n)
    refuse_if((counts < 0).any(), "counts are none")
    return [slice(start, stop) for start, stop in pairwise(offsets_of(counts).tolist())]


def _read_skipped(artifact: Artifact, n: int) -> list[tuple[int, Reason, str]]:
    reasons = list(Reason)
    columns = zip(
        read_numbers(artifact, "left_numbers", n).tolist(),
        artifact.arrays["left_reasons"].tolist(),
        read_strings(artifact, "left_details"),
        strict=True,
    )
    return [
        (number, reasons[reason], detail.decode("utf-8", "surrogateescape"))
        for number, reason, detail in columns
    ]
