"""The order in which documents of a cluster are preferred to be kept."""

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lshdup.base.arrays import IN_MEMORY, Arrays, Key, rows_of
from lshdup.base.frozen import dataclass
from lshdup.base.ragged import StringTable, offsets_of
from lshdup.errors import ParameterError
from lshdup.params import ClusterParams
from lshdup.sources.document_list import DocumentList, typed_name
from lshdup.sources.locations import Locations
from lshdup.sources.patterns import Patterns
from lshdup.sources.records import ARCHIVES, Kind

#: Names that are looked at together.
_PIECE = 1 << 16


@dataclass(frozen=True)
class Preference:
    """The order in which documents are preferred to be kept.

    order : int64 array of shape (n,), all documents, the most preferred first.
    level : int64 array of shape (n,); smaller comes before the rule: the first pattern of
        `--prefer` that matches, then whole files before parts of files. Empty but for "central".
    keep : the rule of `ClusterParams.keep` that was applied.
    unused : a line for each pattern that matches no document.
    """

    order: NDArray[np.int64]
    level: NDArray[np.int64]
    keep: str
    unused: list[str]


def preference(
    documents: DocumentList,
    sizes: NDArray[np.int64],
    params: ClusterParams,
    arguments: Sequence[bytes] = (),
    arrays: Arrays = IN_MEMORY,
) -> Preference:
    """Return the order of documents by `--prefer`, then whole files before parts of files (but
    where "first" goes by the order of DOCS), then `--keep`, then their place in the list.

    The rule "central" orders as the default rule does; `compare.centres` chooses after it.

    documents : n documents.
    sizes : int64 array of shape (n,), shingles of each.
    arguments : folders and files as named; empty if the documents come from a store.
    arrays : makes the arrays of documents.

    Raises ParameterError if the rule needs the order of arguments, and the store has not kept it.
    """
    n, levels = len(documents), list[Key]()
    by_pattern, unused = _levels(documents, params.prefer, arrays)
    if params.prefer:
        levels.append(by_pattern.__getitem__)
    default = default_keep(documents)
    keep = params.keep or default
    if keep != "first" and documents.locations is not None:
        levels.append(_are_parts(documents.locations))
    keys = _keys(documents, sizes, default if keep == "central" else keep, arguments, arrays)
    order = arrays.order(n, [*levels, *keys])
    if keep != "central":
        return Preference(order, order[:0].copy(), keep, unused)

    def level_of(some: slice) -> NDArray[np.int64]:
        level = np.zeros(some.stop - some.start, np.int64)
        for key in levels:
            level = 2 * level + key(rows_of(some))
        return level

    return Preference(order, arrays.compute(n, np.int64, level_of), keep, unused)


def default_keep(documents: DocumentList) -> str:
    """Return "first" if all documents are rows or lines of files; otherwise "shortest-path"."""
    locations = documents.locations
    if locations is None or not len(documents):
        return "shortest-path"
    have_paths = np.isin(locations.kinds, (Kind.FILE, *ARCHIVES))[locations.file]
    return "shortest-path" if have_paths.any() else "first"


def _keys(
    documents: DocumentList,
    sizes: NDArray[np.int64],
    keep: str,
    arguments: Sequence[bytes],
    arrays: Arrays,
) -> list[Key]:
    """Return numbers by which smaller means preferred, the strongest first."""
    if keep == "first":
        return _as_named(documents, arguments)
    if keep == "shortest-path":
        locations = documents.locations
        if locations is None:
            return [key.__getitem__ for key in rank_paths(documents.names, arrays)]
        keys = [_of_files(key, locations) for key in rank_paths(locations.paths)]
        inside = arrays.find(np.isin(locations.kinds, ARCHIVES)[locations.file])
        if len(inside):
            ranks = rank_paths(documents.names.take(inside, arrays), arrays)
            for at, of_member in enumerate(ranks):
                key = _listed(keys[at], len(documents), arrays)
                key[inside] = of_member
                keys[at] = key.__getitem__
        return [*keys, *_in_files(documents)]
    if keep == "path-order":
        return []
    times = documents.mtimes
    by = {"longest": sizes, "shortest": sizes, "newest": times, "oldest": times}[keep]
    return [(lambda rows: -by[rows]) if keep in ("longest", "newest") else by.__getitem__]


def _listed(key: Key, n: int, arrays: Arrays) -> NDArray[np.int64]:
    """Return a key of all n documents: int64 array."""
    return arrays.compute(n, np.int64, lambda some: key(rows_of(some)))


def _of_files(of_file: NDArray[np.int64], locations: Locations) -> Key:
    """Return the key of documents that is one of their files, of shape (files,)."""
    return lambda rows: of_file[locations.file[rows]]


def rank_paths(names: StringTable, arrays: Arrays = IN_MEMORY) -> list[NDArray[np.int64]]:
    """Return for n paths how many components are named as a copy is, or a place to park files
    (`count_marks`); components; and characters: int64 arrays of shape (n,). What is smaller in the
    first of them is preferred.

    arrays : makes the result.

    >>> table = StringTable.from_strings([b"a/report.doc", b"report.bak", b"report.txt"])
    >>> [key.tolist() for key in rank_paths(table)]
    [[0, 1, 0], [2, 1, 1], [12, 10, 10]]
    """
    from lshdup.sources.copy_names import marks_of  # Imported here to keep `query` fast.

    keys: NDArray[np.int64] = arrays.zeros((3, len(names)), np.int64)
    keys[0] = marks_of(names)
    for start in range(0, len(names), _PIECE):
        piece = names.take(np.arange(start, min(start + _PIECE, len(names))))
        blob, starts, ends = piece.blob, piece.offsets[:-1], piece.offsets[1:]
        is_slash = np.append(blob == ord("/"), True)
        is_first = np.zeros(len(blob) + 1, bool)
        is_first[starts] = True
        begins = np.flatnonzero(~is_slash & (is_first | np.roll(is_slash, 1)))
        until = np.searchsorted(begins, ends)
        components = np.diff(until, prepend=0)
        characters = offsets_of((blob & 0xC0 != 0x80).astype(np.int64))
        out = keys[:, start : start + len(piece)]
        has_dot = (ends - starts > 1) & (blob[starts] == ord(".")) & is_slash[starts + 1]
        out[1] = components - has_dot  # `./` before `-` is no folder
        out[2] = characters[ends] - characters[starts] - 2 * has_dot
    return list(keys)


def _are_parts(locations: Locations) -> Key:
    """Return 0 for a whole file, 1 for a part of one, which no `rm` removes."""
    return _of_files((locations.kinds != Kind.FILE).astype(np.int64), locations)


def _in_files(documents: DocumentList) -> list[Key]:
    """Return the place of the file of each document in byte order, and of the document in it."""
    assert documents.locations is not None
    paths = list(documents.locations.paths)
    place = {path: number for number, path in enumerate(sorted(set(paths)))}
    in_order = np.fromiter((place[path] for path in paths), np.int64, len(paths))
    return [_of_files(in_order, documents.locations), documents.locations.starts.__getitem__]


def _as_named(documents: DocumentList, arguments: Sequence[bytes]) -> list[Key]:
    """Return the number of the argument that names a document; records go by location in their
    file.
    """
    named = list(map(typed_name, arguments)) or list(documents.docs)
    # Of many DOCS the store keeps the folder above all, with a slash behind it.
    if not named or any(name.endswith(b"/") for name in named if name != b"/"):
        message = "--keep first needs DOCS here: the store has not kept the order they were named"
        raise ParameterError(message, "name DOCS, or choose another --keep")
    rank: dict[bytes, int] = {}
    for number, name in enumerate(named):
        rank.setdefault(name, number)
    files = list(documents.names if documents.locations is None else documents.locations.paths)
    of_folder: dict[bytes, int] = {b"": len(named)}
    numbers = np.fromiter((_number(name, rank, of_folder) for name in files), np.int64, len(files))
    locations = documents.locations
    if locations is None:
        return [numbers.__getitem__]
    # Of one argument the whole files, then the others in byte order of their names, and the rows
    # of each.
    return [_of_files(numbers, locations), _are_parts(locations), *_in_files(documents)]


def _number(name: bytes, rank: dict[bytes, int], of_folder: dict[bytes, int]) -> int:
    """Return the smallest rank of a name and the folders above it.

    of_folder : known ranks of folders.
    """
    unknown = []
    folder = _above(name)
    while folder not in of_folder:
        unknown.append(folder)
        folder = _above(folder)
    known = of_folder[folder]
    for folder in reversed(unknown):
        known = of_folder[folder] = min(rank.get(folder, known), known)
    return min(rank.get(name, known), known)


def _above(name: bytes) -> bytes:
    """Return the folder a name is in; nothing is above the current folder, one above that, and the
    root.

    >>> _above(b"a/b"), _above(b"a"), _above(b"./-a"), _above(b"."), _above(b"/a"), _above(b"../..")
    (b'a', b'.', b'.', b'', b'/', b'')
    """
    folder, base = os.path.split(name)
    return b"" if name in (b".", b"/") or base == b".." else folder or b"."


def _levels(
    documents: DocumentList, prefer: Sequence[str], arrays: Arrays
) -> tuple[NDArray[np.int64], list[str]]:
    """Return for each document the number of the first pattern that matches it, or their number
    (nothing without patterns); and lines.
    """
    if not prefer:
        return np.zeros(0, np.int64), []
    n = len(documents)
    are_here = [typed_name(os.fsencode(text)) == b"." for text in prefer]
    patterns = [
        Patterns("--prefer", ["/**" if here else text])
        for text, here in zip(prefer, are_here, strict=True)
    ]

    def level_of(name: bytes) -> int:
        path = os.fsdecode(name).removeprefix("./").lstrip("/")
        matching = [
            number
            for number, (pattern, here) in enumerate(zip(patterns, are_here, strict=True))
            if not (here and name.startswith((b"/", b"../"))) and pattern.match(path)
        ]
        return min(matching, default=len(patterns))

    levels: NDArray[np.int64] = arrays.empty(n, np.int64)
    for start in range(0, n, _PIECE):
        some = np.arange(start, min(start + _PIECE, n))
        levels[some] = [level_of(name) for name in documents.typed_names(some)]

    def names() -> list[bytes]:
        return documents.typed_names(np.arange(min(n, _PIECE)))

    return levels, [line for each in patterns for line in each.warnings("no document", names)]
