"""Where the records of files are, as rows.npz: unchanged files are not searched for them again."""

from dataclasses import asdict

import numpy as np

from lshdup.documents.locations import KnownRecords
from lshdup.documents.records import RecordList
from lshdup.errors import ArtifactError
from lshdup.params import DocumentParams
from lshdup.skipped import Reason
from lshdup.store import npz
from lshdup.store.members import read_numbers, read_strings
from lshdup.store.npz import Array, Artifact
from lshdup.store.store import Store
from lshdup.utils.ragged import StringTable, offsets_of

_COLUMNS = ("numbers", "starts", "lengths")


def save_listings(store: Store, params: DocumentParams, listings: KnownRecords) -> None:
    """Save `listings` as rows.npz. Determinism: equal listings give equal bytes."""
    keys = sorted(listings)
    lists = [listings[key] for key in keys]
    left = [each for listing in lists for each in listing.skipped]
    reasons = list(Reason)
    paths = StringTable.from_strings(path for path, _, _ in keys)
    details = StringTable.from_strings(
        detail.encode("utf-8", "surrogateescape") for _, _, detail in left
    )
    arrays: dict[str, Array] = {
        "paths_blob": paths.blob,
        "paths_offsets": paths.offsets,
        "file_sizes": np.array([size for _, size, _ in keys], np.int64),
        "file_mtimes": np.array([mtime for _, _, mtime in keys], np.int64),
        "counts": np.array([len(each.numbers) for each in lists], np.int64),
        "left_counts": np.array([len(each.skipped) for each in lists], np.int64),
        "left_numbers": np.array([number for number, _, _ in left], np.int64),
        "left_reasons": np.array([reasons.index(reason) for _, reason, _ in left], np.uint8),
        "left_details_blob": details.blob,
        "left_details_offsets": details.offsets,
    }
    arrays |= {name: np.concatenate([getattr(each, name) for each in lists]) for name in _COLUMNS}
    if params.id_field:
        ids = [each.ids for each in lists if each.ids is not None]
        arrays["ids_blob"] = np.concatenate([each.blob for each in ids])
        arrays["ids_offsets"] = offsets_of(np.concatenate([np.diff(each.offsets) for each in ids]))
    npz.save(store.path("rows"), "rows", _header(store, params), arrays)


def load_listings(store: Store, params: DocumentParams) -> KnownRecords:
    """Load rows.npz. Return {} if it is missing, damaged, or of other parameters or folders."""
    try:
        artifact = npz.load(store.path("rows"), "rows", "run the command again")
        if artifact is None or any(
            artifact.header.get(name) != value for name, value in _header(store, params).items()
        ):
            return {}
        return _listings(artifact, with_ids=bool(params.id_field))
    except (ArtifactError, KeyError, TypeError, ValueError, IndexError):
        return {}


def _header(store: Store, params: DocumentParams) -> dict[str, object]:
    return {
        "rows": {name: asdict(params)[name] for name in ("text_field", "id_field", "max_bytes")},
        "base": store.base(),
    }


def _listings(artifact: Artifact, *, with_ids: bool) -> KnownRecords:
    arrays = artifact.arrays
    paths, details = read_strings(artifact, "paths"), read_strings(artifact, "left_details")
    n = len(paths)
    sizes, mtimes = (
        read_numbers(artifact, "file_sizes", n).tolist(),
        read_numbers(artifact, "file_mtimes", n).tolist(),
    )
    ends, left_ends = (
        offsets_of(read_numbers(artifact, name, n)) for name in ("counts", "left_counts")
    )
    if (np.diff(ends) < 0).any() or (np.diff(left_ends) < 0).any():
        message = "counts are none"
        raise ValueError(message)
    numbers, starts, lengths = columns = [
        read_numbers(artifact, name, int(ends[-1])) for name in _COLUMNS
    ]
    if any(column.min(initial=0) < 0 for column in columns):
        message = "rows before the first"
        raise ValueError(message)
    ids = read_strings(artifact, "ids") if with_ids else None
    if ids is not None and len(ids) != ends[-1]:
        message = "ids do not fit"
        raise ValueError(message)
    reasons = list(Reason)
    left_numbers = read_numbers(artifact, "left_numbers", int(left_ends[-1])).tolist()
    left = [
        (number, reasons[reason], detail.decode("utf-8", "surrogateescape"))
        for number, reason, detail in zip(
            left_numbers, arrays["left_reasons"].tolist(), details, strict=True
        )
    ]
    made: KnownRecords = {}
    for at, path in enumerate(paths):
        part = slice(int(ends[at]), int(ends[at + 1]))
        own = None if ids is None else ids.take(np.arange(part.start, part.stop))
        others = left[left_ends[at] : left_ends[at + 1]]
        made[path, sizes[at], mtimes[at]] = RecordList(
            numbers[part], starts[part], lengths[part], own, others
        )
    return made
