"""What programs have added to the collection of a store, and removed from it: segments beside it.

Segments hold in the order of their numbers, for whatever collection the store has. One that was
written together with earlier ones replaces these, which may still be there.
"""

from contextlib import suppress

from lshdup.base.atomic import Folder, explained
from lshdup.base.frozen import dataclass
from lshdup.base.ragged import StringTable
from lshdup.collection.collection import Collection
from lshdup.errors import ArtifactError
from lshdup.store import npz
from lshdup.store.npz import (
    check_arrays,
    damage_explained,
    declare_strings,
    refuse_if,
    string_arrays,
    table_of,
)
from lshdup.store.store import ADDED, SEGMENT, Store

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
    message, hint = f"{store.folder / ADDED} cannot be read", "see that it may be read"
    with explained(message, hint), suppress(FileNotFoundError):
        names = filter(SEGMENT.fullmatch, Folder(store.folder, ADDED).names())
        return sorted(f"{ADDED}/{name[:-4]}" for name in names)
    return []


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
    beside = {"added_to": segment.base, "replaces": list(segment.replaces)}
    store.save_collection(name, segment.collection, string_arrays("removed", removed) | beside)
    for each in segment.replaces:
        store.drop(each)
    return name
