"""Several collections as one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.collection.collection import Collection, ReadingNotes, Unfiltered
from lshdup.documents.locations import Locations
from lshdup.utils.ragged import RaggedSets, StringTable, offsets_of


def join_collections(parts: list[Collection]) -> Collection:
    """Return collections with the same parameters, reader and filter as one, in memory of its own.

    Of a name that several parts have, the last one counts. The result has sets, or signatures, if
    all parts have.
    """
    first = parts[0]
    column = _Columns(parts)
    documents = replace(
        first.documents,
        names=_join_strings([part.documents.names for part in parts]),
        sizes=column(lambda part: part.documents.sizes),
        mtimes=column(lambda part: part.documents.mtimes),
        locations=None,
    )
    locations = [part.documents.locations for part in parts if part.documents.locations is not None]
    if len(locations) == len(parts):
        documents = replace(documents, locations=Locations.joined(locations))
    sets = [part.unfiltered_sets for part in parts if part.unfiltered_sets is not None]
    signatures = None
    if all(part.signatures is not None and part.sketch == first.sketch for part in parts):
        signatures = column(lambda part: part.signatures)
    unfiltered = None
    if first.unfiltered is not None:
        unfiltered = Unfiltered(
            first.unfiltered.shingle_filter,
            column(lambda part: part.unfiltered and part.unfiltered.sizes),
            column(lambda part: part.unfiltered and part.unfiltered.fingerprints),
        )
    joined = Collection(
        documents,
        first.shingle,
        column(lambda part: part.sizes),
        column(lambda part: part.fingerprints),
        tuple(each for part in parts for each in part.skipped),
        sketch=first.sketch if signatures is not None else None,
        signatures=signatures,
        unfiltered=unfiltered,
        notes=ReadingNotes(
            column.indices(lambda part: part.notes.office_documents),
            next((part.notes.reader for part in parts if part.notes.reader), ""),
            column.indices(lambda part: part.notes.guess_documents),
            _join_strings([part.notes.guesses for part in parts]),
        ),
    )
    all_sets = RaggedSets.concatenate(sets) if len(sets) == len(parts) else None
    return joined.with_unfiltered_sets(all_sets)


class _Columns:
    """Columns of all parts, one after the other."""

    def __init__(self, parts: list[Collection]) -> None:
        self._parts = parts
        self._starts = np.cumsum([0, *(len(part.documents) for part in parts)]).tolist()

    def __call__(self, column: Callable[[Collection], Any]) -> NDArray[Any]:
        return np.concatenate([column(part) for part in self._parts])

    def indices(self, column: Callable[[Collection], NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return indices of documents, counted from the first document of all parts."""
        pairs = zip(self._parts, self._starts, strict=False)
        return np.concatenate([column(part) + start for part, start in pairs])


def _join_strings(tables: list[StringTable]) -> StringTable:
    blob = np.concatenate([table.blob for table in tables])
    sizes = np.concatenate([np.diff(table.offsets) for table in tables])
    return StringTable(blob, offsets_of(sizes))
