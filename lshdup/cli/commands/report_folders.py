"""The folders in the page of `report`: pairs of them, and what is in one only. No command."""

from typing import TYPE_CHECKING, Any

from lshdup.base.messages import printable
from lshdup.cli.session import Session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.cli.find_pairs import PairsListed

#: Pairs of folders in the page; the first of them, whose documents are listed if there are no more
#: than so many; and names in each list.
_PAIRS, _LISTED, _DOCUMENTS, _NAMES = 100, 20, 2_000, 100

#: Smallest containment, the default of `lshdup folders`.
_LEAST = 0.8


def collect_folders(
    session: Session, answer: "PairsListed", order: "NDArray[np.int64]"
) -> dict[str, Any]:
    """Return what the page shows of folders: how many pairs there are, and the largest of them.

    order : documents in the order in which one of a group is kept.
    """
    import numpy as np

    from lshdup.compare.clusters import cluster_pairs, expand_clusters, rank_documents
    from lshdup.lsh.candidates import documents_to_compare
    from lshdup.workspace.folders import compare_contents, compare_folders, group_documents

    collection, duplicate_of = answer.collection, answer.duplicate_of
    members = documents_to_compare(session.workspace, duplicate_of, collection.sizes)
    ordered = rank_documents(session.workspace, members, duplicate_of, order)
    groups = cluster_pairs(
        session.workspace, answer.distinct_pairs, ordered, len(duplicate_of), answer.threshold
    )
    clusters = expand_clusters(groups, duplicate_of, order)
    folders, pairs = compare_folders(session.workspace, collection, clusters, _LEAST)
    kinds = group_documents(session.workspace, collection, clusters)
    source = session.workspace.set_source(collection)
    top = slice(0, _PAIRS)
    rows = []
    for at, (inside, holder) in enumerate(
        zip(pairs.inside[top].tolist(), pairs.holder[top].tolist(), strict=True)
    ):
        names = folders.typed_names(collection.documents, np.array([inside, holder]))
        row: dict[str, Any] = {
            "a": printable(names[0]),
            "b": printable(names[1]),
            "similarity": float(pairs.similarity[at]),
            "containment": float(pairs.containment[at]),
            "documents": [int(pairs.inside_documents[at]), int(pairs.holder_documents[at])],
            "shared": int(pairs.shared_documents[at]),
            "bytes": int(pairs.shared_bytes[at]),
            "lists": None,
        }
        if at < _LISTED and sum(row["documents"]) <= _DOCUMENTS:
            a, b = (folders.content(collection.documents, each) for each in (inside, holder))
            lists: dict[str, Any] = {}
            for each in compare_contents(session.workspace, collection, kinds, a, b, source):
                name, other = (
                    printable(content.paths[int(content.documents.searchsorted(document))])
                    if document >= 0
                    else ""
                    for content, document in ((a, each.a), (b, each.b))
                )
                found = lists.setdefault(each.kind, [0, []])
                found[0] += 1
                if each.kind != "same" and found[0] <= _NAMES:
                    found[1].append((name, other, each.similarity))
            row["lists"] = lists
        rows.append(row)
    return {"count": len(pairs), "least": _LEAST, "pairs": rows}
