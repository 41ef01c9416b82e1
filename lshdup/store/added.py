"""What programs have added to the collection of a store, and removed from it: segments beside it.

Segments hold in the order of their numbers, for whatever collection the store has. One that was
written together with earlier ones replaces these, which may still be there.
"""

import re

from lshdup.base.atomic import Folder
from lshdup.base.frozen import dataclass
from lshdup.base.ragged import StringTable
from lshdup.collection.collection import Collection
from lshdup.errors import ArtifactError
from lshdup.store import npz
from lshdup.store.npz import check_arrays, damage_explained, declare_strings, refuse_if, table_of
from lshdup.store.store import ADDED, Store

_NAME = re.compile(r"[0-9]{8}\.npz")

_AGAIN = "remove it, and add what was in it again"


@dataclass(frozen=True)
class Segment:
    """Documents that were added.

    collection : the documents with their signatures, and their sets if there are any documents.
    removed : names of documents of the collection or of earlier segments, removed before.
    base : identity of the collection that the store had then.
    replaces : names of the segments that do not count any more.
    """

    collection: Collection
    removed: tuple[bytes, ...]
    base: str
    replaces: tuple[str, ...]


def list_segments(store: Store) -> list[str]:
    """Return the names of the segments, the oldest first. Raise ArtifactError if that fails."""
    try:
        names = Folder(store.folder, ADDED).names()
    except FileNotFoundError:
        return []
    except OSError as error:
        message = f"{store.folder / ADDED} cannot be read: {error.strerror}"
        raise ArtifactError(message, "see that it may be read") from None
    return sorted(f"{ADDED}/{name[:-4]}" for name in names if _NAME.fullmatch(name))


def load_segment(store: Store, name: str) -> Segment | None:
    """Load a segment; None if it is not there any more. Raise ArtifactError if it is damaged."""
    path = store.path(name)
    try:
        collection = store.load_collection(name)
        artifact = npz.load(path, "segment", _AGAIN, verify=False)
        if collection is None or artifact is None:
            return None
        with damage_explained(path, _AGAIN):
            removed = check_arrays(artifact, declare_strings("removed", "removed"), {})
            base, replaces = (artifact.header[key] for key in ("added_to", "replaces"))
            fits = type(base) is str and type(replaces) is list
            refuse_if(not fits or set(map(type, replaces)) - {str}, "what it belongs to is unknown")
            names = tuple(table_of(removed, "removed"))
            return Segment(collection, names, base, tuple(replaces))
    except ArtifactError as error:
        raise ArtifactError(error.message, _AGAIN) from None


def save_segment(store: Store, segment: Segment) -> str:
    """Save a segment, synced, and remove those that it replaces; return its name."""
    last = ["/0", *list_segments(store)][-1].rpartition("/")[2]
    name, removed = f"{ADDED}/{int(last) + 1:08}", StringTable.from_strings(segment.removed)
    beside = {
        "removed_blob": removed.values, "removed_offsets": removed.offsets,
        "added_to": segment.base, "replaces": list(segment.replaces),
    }  # fmt: skip
    store.save_collection(name, segment.collection, beside)
    for each in segment.replaces:
        store.drop(each)
    return name
