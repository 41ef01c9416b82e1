"""What is in one of two folders only, what is the same in both, and what has changed."""

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import SetSource, distinct
from lshdup.collection.collection import Collection
from lshdup.compare import similarity
from lshdup.compare.pairs import pack_pairs
from lshdup.lsh.candidates import PairArrays
from lshdup.sources.document_list import DocumentList, typed_name
from lshdup.workspace.folders.finding import FolderContent

_I64 = NDArray[np.int64]

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
        found = np.flatnonzero([name.startswith(head) for name in names])
        paths = [name[len(head) :] for name in names.strings_at(found)]
        if not head:  # names that lead out of the current folder
            inside = [not path.startswith((b"/", b"../")) for path in paths]
            found = found[np.array(inside, bool)]
            paths = [path for path, good in zip(paths, inside, strict=True) if good]
        if len(found):
            return FolderContent(found, paths)
    return FolderContent(np.zeros(0, np.int64), [])


def compare_contents(
    collection: Collection,
    groups: _I64,
    a: FolderContent,
    b: FolderContent,
    source: SetSource,
    jobs: int,
) -> list[Difference]:
    """Return what is only in one of two folders, what has changed, and what is the same.

    A document has a partner in the other folder if a document of its group is there: the one of the
    same path below the folder, else an equal one, else the most similar one. Documents that have
    none are partners if their paths are the same, however similar they are.

    groups : int64 array of shape (n,), of `group_documents`.
    source : gives shingle sets.
    jobs : threads.

    Returns each document of a folder once or more: if it is a partner of several, in several rows.
    """
    pairs = _Partners(collection, groups, source, jobs)
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

    def __init__(self, collection: Collection, groups: _I64, source: SetSource, jobs: int) -> None:
        self._collection, self._groups = collection, groups
        self._source, self._jobs = source, jobs
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

        def pieces() -> Iterator[PairArrays]:
            yield (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)

        scores = np.zeros(len(pairs))
        sizes = np.asarray(self._collection.sizes)
        for a, b, score in similarity.verify(pieces(), sizes, self._source, 0.0, self._jobs):
            keys = pack_pairs(np.minimum(a, b), np.maximum(a, b))
            scores[np.searchsorted(pairs, keys)] = score
        found: NDArray[np.float64] = scores[np.searchsorted(pairs, pack_pairs(low, high))]
        return found

    def describe(self, left: _I64, right: _I64) -> Iterator[Difference]:
        """Yield a row for each pair; one of the two may be -1."""
        both = (left >= 0) & (right >= 0)
        a, b = left[both], right[both]
        bytes_, _, sets = self._prints
        is_same = (self._collection.prints.compare(a, b) > 0) | (bytes_[a] == bytes_[b])
        score = (is_same | ((sets[a] == sets[b]) & (sets[a] != 0))).astype(np.float64)
        rest = score == 0
        score[rest] = self._similarity(a[rest], b[rest])
        kinds = np.where(right < 0, KINDS.index(ONLY_A), KINDS.index(ONLY_B))
        kinds[both] = np.where(is_same, KINDS.index(SAME), KINDS.index(CHANGED))
        scores = np.zeros(len(left))
        scores[both] = score
        columns = kinds.tolist(), left.tolist(), right.tolist(), scores.tolist()
        for kind, one, other, each in zip(*columns, strict=True):
            yield Difference(KINDS[kind], one, other, each)


def weigh(groups: _I64, weights: _I64, a: FolderContent, b: FolderContent) -> tuple[int, int, int]:
    """Return the bytes of the groups of both folders, and of those that both hold."""
    of_a, of_b = (distinct(groups[each.documents])[0] for each in (a, b))
    shared = of_a[np.isin(of_a, of_b)]
    return int(weights[of_a].sum()), int(weights[of_b].sum()), int(weights[shared].sum())
