"""Several collections as one."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import Arrays
from lshdup.base.ragged import RaggedSets, StringTable
from lshdup.base.run import Run
from lshdup.collection.collection import Collection, ReadingNotes, Unfiltered
from lshdup.sources.document_list import Locations


def join_collections(parts: list[Collection], arrays: Arrays) -> Collection:
    """Return collections with the same parameters, reader and filter as one, with its own arrays.

    Of a name that several parts have, the last one counts. The result has sets, or signatures, if
    all parts have. arrays : makes its arrays, but for the sets.
    """
    first = parts[0]
    lists = [part.documents for part in parts]
    notes = [part.notes for part in parts]
    starts = np.cumsum([0, *map(len, lists)])[:-1]

    def shifted(indices: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return indices of documents, counted from the first document of all parts."""
        return np.concatenate([part + start for part, start in zip(indices, starts, strict=True)])

    locations = [each.locations for each in lists if each.locations is not None]
    documents = replace(
        first.documents,
        names=StringTable.concatenate((each.names for each in lists), arrays),
        sizes=arrays.concatenate([each.sizes for each in lists]),
        mtimes=arrays.concatenate([each.mtimes for each in lists]),
        locations=Locations.joined(Run(arrays), locations)
        if len(locations) == len(parts)
        else None,
    )
    sets = [part.unfiltered_sets for part in parts if part.unfiltered_sets is not None]
    signatures = [
        part.signatures
        for part in parts
        if part.signatures is not None and part.sketch == first.sketch
    ]
    has_signatures = len(signatures) == len(parts)
    joined = Collection(
        documents,
        first.shingle,
        {
            name: arrays.concatenate([part.columns[name] for part in parts])
            for name in first.columns
        },
        tuple(each for part in parts for each in part.skipped),
        sketch=first.sketch if has_signatures else None,
        signatures=arrays.concatenate(signatures) if has_signatures else None,
        unfiltered=first.unfiltered and Unfiltered(first.unfiltered.shingle_filter),
        notes=ReadingNotes(
            next((each.reader for each in notes if each.reader), ""),
            shifted([each.guess_documents for each in notes]),
            StringTable.concatenate(each.guesses for each in notes),
        ),
    )
    all_sets = RaggedSets.concatenate(sets) if len(sets) == len(parts) else None
    return joined.with_unfiltered_sets(all_sets)
