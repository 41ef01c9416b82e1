"""The folders that documents are in, the pairs of folders that hold nearly the same, and what is in
one of two folders only, the same in both, or changed.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import SetSource, distinct
from lshdup.base.run import Run
from lshdup.base.wording import printable
from lshdup.collection.collection import Collection
from lshdup.compare.clusters import Clusters
from lshdup.compare.folders import FolderPairs, FolderTree, find_folder_pairs
from lshdup.compare.scored_pairs import pack_pairs, unpack_pairs
from lshdup.compare.verification import verify_jaccard
from lshdup.lsh.candidates import find_exact_duplicates
from lshdup.sources.document_list import DocumentList, typed_name

_I64 = NDArray[np.int64]

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
    firsts = list[int]()
    numbers = list[int]()
    for document, name in enumerate(documents.names):
        number = known.setdefault(name[: name.rfind(b"/") + 1], len(known))
        if number == len(firsts):
            firsts.append(document)
        numbers.append(number)
    heads = list(known)
    most_up = max(map(_count_up, heads), default=0)
    steps = [_steps(head, most_up) for head in heads]
    direct, every = set(steps), {each[:n] for each in steps for n in range(1, len(each) + 1)}
    below = Counter(each[:-1] for each in every)  # folders directly below
    kept = [(), *sorted(each for each in every if each in direct or below[each] != 1)]
    position = {each: at for at, each in enumerate(kept)}
    parents = [
        next(position[each[:n]] for n in reversed(range(len(each))) if each[:n] in position)
        for each in kept[1:]
    ]
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
    tree = FolderTree.of(np.array([-1, *parents], np.int64))
    return Folders(tree, place[np.array(numbers, np.int64)], examples, cuts)


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


def group_documents(run: Run, collection: Collection, clusters: Clusters) -> NDArray[np.int64]:
    """Return a document that stands for the group of each document: int64 array of shape (n,).

    That is the representative of its cluster. Documents in no cluster, as those without tokens,
    are a group if their bytes are equal.
    """
    groups = clusters.representative.copy()
    rest = np.flatnonzero(groups < 0)
    prints = np.asarray(collection.prints.byte_prints)[rest]
    groups[rest] = rest[find_exact_duplicates(run, prints)]
    return groups


def compare_folders(
    run: Run, collection: Collection, clusters: Clusters, threshold: float
) -> tuple[Folders, FolderPairs]:
    """Return the folders above the documents, and the pairs that `lshdup folders` lists.

    clusters : of all documents.
    threshold : smallest containment of two folders.
    """
    folders = find_folders(collection.documents)
    groups = group_documents(run, collection, clusters)
    weights = np.maximum(collection.documents.spans, 0)
    return folders, find_folder_pairs(
        folders.tree, folders.of_documents, groups, weights, threshold
    )


# --- two folders side by side ---

#: Different documents of a group among which the most similar one is looked for.
_MOST_PARTNERS = 100

#: The kinds of rows, in output order.
KINDS = ONLY_A, ONLY_B, CHANGED, SAME = "only a", "only b", "changed", "same"


@dataclass(frozen=True)
class Difference:
    """A document of one of two folders, or of both.

    kind : ONLY_A, ONLY_B, CHANGED or SAME.
    a, b : documents; -1 if it is in the other folder only.
    similarity : exact.
    """

    kind: str
    a: int
    b: int
    similarity: float


def find_below(word: bytes, documents: DocumentList) -> FolderContent:
    """Return the documents below the folder that a word means; none if it means no folder.

    The folder may be one of an archive.
    """
    names = documents.names
    start = os.path.realpath(documents.home or b".")
    real = os.path.realpath(word)
    spellings = [typed_name(word)] if not documents.home else []
    for folder in (*spellings, typed_name(os.path.relpath(real, start)), real):
        head = b"" if folder == b"." else folder.rstrip(b"/") + b"/"
        outside = () if head else (b"/", b"../")  # names that lead out of the current folder
        below = [name.startswith(head) and not name.startswith(outside) for name in names]
        found = np.flatnonzero(below)
        if len(found):
            return FolderContent(found, [name[len(head) :] for name in names.strings_at(found)])
    return FolderContent(np.zeros(0, np.int64), [])


def compare_contents(
    run: Run,
    collection: Collection,
    groups: _I64,
    a: FolderContent,
    b: FolderContent,
    source: SetSource,
) -> list[Difference]:
    """Return what is only in one of two folders, what has changed, and what is the same.

    A document has a partner in the other folder if a document of its group is there: the one of the
    same path below the folder, else an equal one, else the most similar one. Documents that have
    none are partners if their paths are the same, however similar they are.

    groups : int64 array of shape (n,), of `group_documents`.
    source : gives shingle sets.

    Returns each document of a folder once or more: if it is a partner of several, in several rows.
    """
    pairs = _Partners(run, collection, groups, source)
    of_a, of_b = pairs.choose(a, b), pairs.choose(b, a)
    path_of_b = {path: at for at, path in enumerate(b.paths)}
    for at, path in enumerate(a.paths):
        other = path_of_b.get(path, -1)
        if other >= 0 and of_a[at] < 0 and of_b[other] < 0:
            of_a[at] = other
    met = set(of_a.tolist())
    rows = [(at, int(other)) for at, other in enumerate(of_a.tolist())]
    rows += [(int(other), at) for at, other in enumerate(of_b.tolist()) if at not in met]
    left = np.array([a.documents[at] if at >= 0 else -1 for at, _ in rows], np.int64)
    right = np.array([b.documents[at] if at >= 0 else -1 for _, at in rows], np.int64)
    return sorted(pairs.describe(left, right), key=_place)


def _place(row: Difference) -> tuple[int, float, int, int]:
    return KINDS.index(row.kind), -row.similarity, row.a, row.b


class _Partners:
    """Which documents of two folders belong together, and how similar they are."""

    def __init__(self, run: Run, collection: Collection, groups: _I64, source: SetSource) -> None:
        self._collection, self._groups = collection, groups
        self._run, self._source = run, source
        prints = collection.prints
        self._prints = [
            np.asarray(each)
            for each in (prints.byte_prints, prints.text_prints, collection.fingerprints)
        ]

    def choose(self, here: FolderContent, there: FolderContent) -> _I64:
        """Return for each document the row of its partner in the other folder, or -1."""
        by_path = {path: row for row, path in enumerate(there.paths)}
        groups = self._groups[there.documents].tolist()
        equal: dict[tuple[int, int, int], int] = {}
        different: dict[int, dict[int, int]] = {}
        keys = [each[there.documents].tolist() for each in self._prints]
        for row in reversed(range(len(groups))):  # the first one stays
            for kind, print_of in enumerate(keys):
                equal[groups[row], kind, print_of[row]] = row
        for row, group in enumerate(groups):
            sets = different.setdefault(group, {})
            if len(sets) < _MOST_PARTNERS:
                sets.setdefault(keys[2][row], row)
        chosen = np.full(len(here.documents), -1, np.int64)
        wanted: list[tuple[int, int]] = []
        own = [each[here.documents].tolist() for each in self._prints]
        for row, group in enumerate(self._groups[here.documents].tolist()):
            if group not in different:
                continue
            same_path = by_path.get(here.paths[row], -1)
            if same_path >= 0 and groups[same_path] == group:
                chosen[row] = same_path
                continue
            alike = (
                equal.get((group, kind, own[kind][row])) for kind in range(3) if own[kind][row]
            )
            chosen[row] = next((each for each in alike if each is not None), -1)
            if chosen[row] < 0:
                wanted += [(row, other) for other in different[group].values()]
        if wanted:
            rows, others = np.array(wanted, np.int64).T
            score = self._similarity(here.documents[rows], there.documents[others])
            order = np.lexsort((-others, score))  # of equal ones the first is written last
            chosen[rows[order]] = others[order]
        return chosen

    def _similarity(self, left: _I64, right: _I64) -> NDArray[np.float64]:
        """Return the exact similarity of pairs of different documents."""
        low, high = np.minimum(left, right), np.maximum(left, right)
        pairs = distinct(pack_pairs(low, high))[0]

        scores = np.zeros(len(pairs))
        sizes = self._collection.sizes
        for a, b, score in verify_jaccard(
            self._run, [unpack_pairs(pairs)], sizes, self._source, 0.0
        ):
            keys = pack_pairs(np.minimum(a, b), np.maximum(a, b))
            scores[np.searchsorted(pairs, keys)] = score
        found: NDArray[np.float64] = scores[np.searchsorted(pairs, pack_pairs(low, high))]
        return found

    def describe(self, left: _I64, right: _I64) -> Iterator[Difference]:
        """Return a row for each pair; one of the two may be -1."""
        both = (left >= 0) & (right >= 0)
        a, b = left[both], right[both]
        bytes_, _, sets = self._prints
        is_same = (self._collection.prints.compare(a, b) > 0) | (bytes_[a] == bytes_[b])
        score = (is_same | ((sets[a] == sets[b]) & (sets[a] != 0))).astype(np.float64)
        rest = score == 0
        score[rest] = self._similarity(a[rest], b[rest])
        kinds = np.where(right < 0, ONLY_A, ONLY_B).astype(object)
        kinds[both] = np.where(is_same, SAME, CHANGED)
        scores = np.zeros(len(left))
        scores[both] = score
        return map(Difference, kinds.tolist(), left.tolist(), right.tolist(), scores.tolist())


def weigh(groups: _I64, weights: _I64, a: FolderContent, b: FolderContent) -> tuple[int, int, int]:
    """Return the bytes of the groups of both folders, and of those that both hold."""
    of_a, of_b = (distinct(groups[each.documents])[0] for each in (a, b))
    shared = of_a[np.isin(of_a, of_b)]
    return int(weights[of_a].sum()), int(weights[of_b].sum()), int(weights[shared].sum())


# --- the folders in the page of `report` ---


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
    folders, pairs = compare_folders(run, collection, clusters, _LEAST)
    groups = group_documents(run, collection, clusters)
    rows = []
    for at in range(min(_PAIRS, len(pairs))):
        both = np.array([pairs.inside[at], pairs.holder[at]])
        counts = [int(pairs.inside_documents[at]), int(pairs.holder_documents[at])]
        lists = None
        if at < _LISTED and sum(counts) <= _DOCUMENTS:
            a, b = (folders.content(documents, each) for each in both.tolist())
            found = compare_contents(run, collection, groups, a, b, source)
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
