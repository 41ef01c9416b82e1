"""The layers of an index that a store keeps: its collection, and what programs have added."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from lshdup.base.ragged import StringTable
from lshdup.base.run import Run
from lshdup.collection.collection import Collection
from lshdup.errors import ArtifactError
from lshdup.shingling.shingle_filter import are_same_filters
from lshdup.store.added import Segment, list_segments, load_segment, save_segment
from lshdup.store.store import Store
from lshdup.workspace.layers import SMALL, Layer
from lshdup.workspace.request import list_definition


class Kept:
    """The layers of a store, which other processes may change.

    store : that of the index.
    base : its collection.
    stamps : of `stamps_of`, before the collection was loaded.
    layers : the collection and what was added to it, as far as it is known here.
    """

    def __init__(self, run: Run, store: Store, base: Layer, stamps: object) -> None:
        self._run, self._store, self._stamps = run, store, stamps
        self.layers: tuple[Layer, ...] = (base,)
        self._listed: list[str] = []
        self._loaded: dict[str, tuple[Segment, Layer]] = {}
        self._held, self._is_writer = ExitStack(), False
        self.look()

    def look(self) -> bool:
        """Load what other processes have added and removed; return whether there is anything.

        Raise ArtifactError if the collection of the store is another one now, or if what was added
        is of another definition.
        """
        if self._is_writer:
            return False
        if stamps_of(self._store) != self._stamps:
            message = f"another process has replaced what the store {self._store.folder} holds"
            raise ArtifactError(message, "open it again with Index.open")
        has_changed = False
        while (names := list_segments(self._store)) != self._listed:
            has_changed = True
            for name in names:
                if name not in self._loaded and (segment := load_segment(self._store, name)):
                    self._check(name, segment)
                    self._loaded[name] = segment, Layer(self._run, as_named(segment.collection))
            if self._loaded.keys() >= {*names}:  # None was replaced in between.
                self._listed = names
                self._apply()
        return has_changed

    def _check(self, name: str, segment: Segment) -> None:
        mine, base = segment.collection, self.layers[0].collection
        same_filters = are_same_filters(mine.shingle_filter, base.shingle_filter)
        if (mine.shingle, mine.sketch) != (base.shingle, base.sketch) or not same_filters:
            made, there = (" ".join(list_definition(each)) for each in (mine, base))
            message = f"{self._store.path(name)} was added with {made}; the store has {there}"
            raise ArtifactError(message, "run `lshdup index DOCS` with the options it had")

    def _apply(self) -> None:
        """Make the layers anew: other threads may ask those that there were."""
        replaced = {each for segment, _ in self._loaded.values() for each in segment.replaces}
        layers = [self.layers[0].whole()]
        loaded = {}
        for name in self._listed:
            if name not in replaced:
                segment, layer = self._loaded[name][0], self._loaded[name][1].whole()
                for each in layers:
                    each.remove(segment.removed)
                if segment.base != layers[0].collection.identity:  # What was indexed is newer.
                    layer.removed[layers[0].find_names(layer.table, stored=True) >= 0] = True
                layers.append(layer)
                loaded[name] = segment, layer
        self._loaded, self.layers = loaded, tuple(layers)

    def hold(self) -> None:
        """Be the only process that adds, until `close`, and load what others had added before.

        Raise ArtifactError if another process writes to the store.
        """
        if not self._is_writer:
            with ExitStack() as held:
                held.enter_context(self._store.writing())
                self.look()
                self._held = held.pop_all()
            self._is_writer = True

    def flush(self, new: Sequence[Layer], removed: Sequence[bytes]) -> None:
        """Write layers and the names of documents that were removed before; `hold` comes first.

        Small segments before are written again with them. Raise ArtifactError if that fails; the
        store is then as it was.
        """
        (base, *kept), names = self.layers, list(self._loaded)
        parts, gone, replaced = [*new], [*removed], [*(set(self._listed) - self._loaded.keys())]
        while kept and len(kept[-1]) <= max(sum(map(len, parts)), SMALL):
            parts.insert(0, kept.pop())
            replaced.append(names.pop())
            gone += self._loaded[replaced[-1]][0].removed
        table = StringTable.from_strings(dict.fromkeys(gone))
        known = [each.collection.documents.names.match(table) >= 0 for each in (base, *kept)]
        gone = table.strings_at(np.flatnonzero(np.any(known, axis=0)))
        filled = [part for part in parts if len(part)]
        nothing = Layer(self._run, base.collection.take(self._run, np.zeros(0, np.int64)))
        made = Layer.join(self._run, filled or [nothing]).whole()
        segment = Segment(made.collection, tuple(gone), base.collection.identity, tuple(replaced))
        name = save_segment(self._store, segment)
        self._loaded = {each: self._loaded[each] for each in names} | {name: (segment, made)}
        self._listed, self.layers = list_segments(self._store), (base, *kept, made)

    def close(self) -> None:
        """Let other processes add."""
        self._held.close()


def stamps_of(store: Store) -> list[tuple[int, ...]]:
    """Return what differs once the collection of a store is replaced."""
    return [store.stamp(store.path(kind)) for kind in ("signatures", "shingles")]


def as_named(collection: Collection) -> Collection:
    """Return a collection of texts, whose names are no paths, wherever the store is."""
    return replace(collection, documents=replace(collection.documents, home=b""))
