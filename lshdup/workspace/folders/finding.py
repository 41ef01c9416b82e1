"""The folders that documents are in, and the pairs of folders that hold nearly the same."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.collection.collection import Collection
from lshdup.compare.clusters import Clusters
from lshdup.compare.folders.contents import FolderPairs
from lshdup.compare.folders.pairs import find_folder_pairs
from lshdup.compare.folders.tree import FolderTree
from lshdup.lsh.candidates import find_exact_duplicates
from lshdup.sources.document_list import DocumentList

#: A step of a path that is no name: from .. to the current folder. No name has a slash.
_DOWN = b"/"


@dataclass(frozen=True)
class FolderContent:
    """The documents below a folder.

    documents : ascending int64 array.
    paths : their names below the folder.
    """

    documents: NDArray[np.int64]
    paths: list[bytes]

    def path(self, document: int) -> bytes:
        """Return the name of a document below the folder; b"" for -1, which is none."""
        return b"" if document < 0 else self.paths[int(self.documents.searchsorted(document))]


@dataclass(frozen=True)
class Folders:
    """The m folders above some documents, each before those below it.

    A folder is what stands before a slash in names, so archives hold folders too. A folder that
    holds nothing but one other folder is skipped: it would be the same folder twice. The first one
    holds all documents and has no name.

    tree : the folders.
    of_documents : int64 array of shape (n,), the folder that each document is directly in.
    examples, cuts : for each folder a document below it, and the bytes of its name that name the
        folder, with the slash.
    """

    tree: FolderTree
    of_documents: NDArray[np.int64]
    examples: Sequence[int]
    cuts: Sequence[int]

    def typed_names(self, documents: DocumentList, folders: NDArray[np.int64]) -> list[bytes]:
        """Return folders as they would be typed from the current folder."""
        names = []
        for folder in folders.tolist():
            example, cut = self.examples[folder], self.cuts[folder]
            rest = len(documents.names[example]) - cut
            typed = documents.typed_names(np.array([example]))[0]
            head = typed[: len(typed) - rest]
            names.append(head[:-1] or head or b".")
        return names

    def content(self, documents: DocumentList, folder: int) -> FolderContent:
        """Return the documents below a folder."""
        ends = self.tree.ends
        found = np.flatnonzero((self.of_documents >= folder) & (self.of_documents < ends[folder]))
        head = documents.names[self.examples[folder]][: self.cuts[folder]]
        names = documents.names.strings_at(found)
        return FolderContent(found, [name.removeprefix(head) for name in names])


def find_folders(documents: DocumentList) -> Folders:
    """Return the folders above the documents. Cost: a step for each document."""
    known: dict[bytes, int] = {}
    firsts: list[int] = []
    numbers = []
    last, number = None, 0
    for document, name in enumerate(documents.names):
        head = name[: name.rfind(b"/") + 1]
        if head != last:
            last = head
            number = known.setdefault(head, len(known))
            if number == len(firsts):
                firsts.append(document)
        numbers.append(number)
    heads = list(known)
    most_up = max(map(_count_up, heads), default=0)
    steps = [_steps(head, most_up) for head in heads]
    direct = set(steps)
    above: dict[tuple[bytes, ...], int] = {(): 0}  # folders directly below
    for each in direct:
        while each not in above:
            above[each] = 0
            each = each[:-1]
    for each in above:
        if each:
            above[each[:-1]] += 1
    kept = sorted(each for each, n in above.items() if not each or each in direct or n != 1)
    position = {each: at for at, each in enumerate(kept)}
    parents = [-1]
    for each in kept[1:]:
        each = each[:-1]
        while each not in position:
            each = each[:-1]
        parents.append(position[each])
    examples, cuts = [0] * len(kept), [0] * len(kept)
    for first, head, each in zip(firsts, heads, steps, strict=True):
        cut = len(head)
        while each and each[-1] != _DOWN:
            if (at := position.get(each)) is not None:
                examples[at], cuts[at] = first, cut
            cut -= len(each[-1]) + 1
            each = each[:-1]
        if each and (at := position.get(each)) is not None and not cuts[at]:
            examples[at], cuts[at] = first, cut
    place = np.array([position[each] for each in steps], np.int64)
    of_documents = place[np.array(numbers, np.int64)] if numbers else np.zeros(0, np.int64)
    return Folders(FolderTree.of(np.array(parents, np.int64)), of_documents, examples, cuts)


def _count_up(head: bytes) -> int:
    """Return how many folders up a path begins."""
    up = 0
    while head.startswith(b"../", 3 * up):
        up += 1
    return up


def _steps(head: bytes, most_up: int) -> tuple[bytes, ...]:
    """Return the steps to a folder from the one that is `most_up` folders up, or from the root.

    head : the folder with its slash.

    >>> _steps(b"../a/b/", 2), _steps(b"", 1), _steps(b"/a/", 1)
    ((b'.', b'/', b'a', b'b'), (b'.', b'/'), (b'/', b'a'))
    """
    if head.startswith(b"/"):
        return (b"/", *head[1:].split(b"/")[:-1])
    up = _count_up(head)
    steps = head[3 * up :].removeprefix(b"./").split(b"/")
    return (b".", *[_DOWN] * (most_up - up), *steps[:-1])


def group_documents(collection: Collection, clusters: Clusters) -> NDArray[np.int64]:
    """Return a document that stands for the group of each document: int64 array of shape (n,).

    That is the representative of its cluster. Documents in no cluster, as those without tokens,
    are a group if their bytes are equal.
    """
    groups = clusters.representative.copy()
    rest = np.flatnonzero(groups < 0)
    prints = np.asarray(collection.prints.byte_prints)[rest]
    groups[rest] = rest[find_exact_duplicates(prints)]
    return groups


def compare_folders(
    collection: Collection, clusters: Clusters, threshold: float
) -> tuple[Folders, FolderPairs]:
    """Return the folders above the documents, and the pairs that `lshdup folders` lists.

    clusters : of all documents.
    threshold : smallest containment of two folders.
    """
    folders = find_folders(collection.documents)
    groups = group_documents(collection, clusters)
    weights = np.maximum(collection.documents.spans, 0)
    return folders, find_folder_pairs(
        folders.tree, folders.of_documents, groups, weights, threshold
    )
