"""The folders in the page of `report`: pairs of them, and what is in one only."""

from typing import Any

import numpy as np

from lshdup.base.messages import printable
from lshdup.base.ragged import SetSource
from lshdup.base.run import Run
from lshdup.collection.collection import Collection
from lshdup.compare.clusters import Clusters
from lshdup.workspace.folders.comparing import SAME, Difference, compare_contents
from lshdup.workspace.folders.finding import FolderContent, compare_folders, group_documents

#: Pairs of folders in the page; the first of them, whose documents are listed if there are no more
#: than so many; and names in each list.
_PAIRS, _LISTED, _DOCUMENTS, _NAMES = 100, 20, 2_000, 100

#: Smallest containment, the default of `lshdup folders`.
_LEAST = 0.8


def describe_folders(
    run: Run, collection: Collection, clusters: Clusters, source: SetSource
) -> dict[str, Any]:
    """Return what the page shows of folders: how many pairs there are, and the largest of them.

    clusters : of all documents. source : gives shingle sets.
    """
    documents = collection.documents
    folders, pairs = compare_folders(collection, clusters, _LEAST)
    groups = group_documents(collection, clusters)
    rows = []
    for at in range(min(_PAIRS, len(pairs))):
        both = np.array([pairs.inside[at], pairs.holder[at]])
        counts = [int(pairs.inside_documents[at]), int(pairs.holder_documents[at])]
        lists = None
        if at < _LISTED and sum(counts) <= _DOCUMENTS:
            a, b = (folders.content(documents, each) for each in both.tolist())
            found = compare_contents(collection, groups, a, b, source, run.jobs)
            lists = _list_documents(a, b, found)
        row = {
            "similarity": float(pairs.similarity[at]),
            "containment": float(pairs.containment[at]),
            "documents": counts,
            "shared": int(pairs.shared_documents[at]),
            "bytes": int(pairs.shared_bytes[at]),
            "lists": lists,
        }
        names = map(printable, folders.typed_names(documents, both))
        rows.append(dict(zip("ab", names, strict=True)) | row)
    return {"count": len(pairs), "least": _LEAST, "pairs": rows}


def _list_documents(a: FolderContent, b: FolderContent, found: list[Difference]) -> dict[str, Any]:
    """Return for each kind how many documents there are, and the names of the first of them."""
    lists: dict[str, Any] = {}
    for each in found:
        of_kind = lists.setdefault(each.kind, [0, []])
        of_kind[0] += 1
        if each.kind != SAME and of_kind[0] <= _NAMES:
            names = printable(a.path(each.a)), printable(b.path(each.b))
            of_kind[1].append((*names, each.similarity))
    return lists
