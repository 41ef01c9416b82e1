"""The order in which documents of a cluster are preferred to be kept."""

import os
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.document_list import DocumentList, typed_name
from lshdup.documents.locations import Locations
from lshdup.documents.patterns import Patterns
from lshdup.documents.records import ARCHIVES, Kind
from lshdup.errors import ParameterError
from lshdup.frozen import dataclass
from lshdup.params import ClusterParams
from lshdup.utils.ragged import StringTable, offsets_of

#: Last names that a backup has in place of the original's ending, or behind it.
BACKUP = r"(?i)(\.(bak|old|orig|sav|save|tmp|backup|copy)[0-9]*|~[0-9]*~?)$"
_BACKUP = re.compile(BACKUP.encode())

#: The last letters of all backups.
_LAST = np.frombuffer(b"kdgveypKDGVEYP~0123456789", np.uint8)

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
) -> Preference:
    """Return the order of documents by `--prefer`, then whole files before parts of files (but
    where "first" goes by the order of DOCS), then `--keep`, then their place in the list.

    The rule "central" orders as the default rule does; `matching.centres` chooses after it.

    documents : n documents.
    sizes : int64 array of shape (n,), shingles of each.
    arguments : folders and files as named; empty if the documents come from a store.

    Raises ParameterError if the rule needs the order of arguments, and the store has not kept it.
    """
    level, unused = _levels(documents, params.prefer)
    default = default_keep(documents)
    keep = params.keep or default
    if keep != "first" and documents.locations is not None:
        level = 2 * level + _are_parts(documents.locations)
    keys = _keys(documents, sizes, default if keep == "central" else keep, arguments)
    # A stable sort: equal documents stay in the order of the list.
    order = np.lexsort((*reversed(keys), level))
    return Preference(order, level if keep == "central" else level[:0].copy(), keep, unused)


def default_keep(documents: DocumentList) -> str:
    """Return "first" if all documents are rows or lines of files; otherwise "shortest-path"."""
    locations = documents.locations
    if locations is None or not len(documents):
        return "shortest-path"
    have_paths = np.isin(locations.kinds, (Kind.FILE, *ARCHIVES))[locations.file]
    return "shortest-path" if have_paths.any() else "first"


def _keys(
    documents: DocumentList, sizes: NDArray[np.int64], keep: str, arguments: Sequence[bytes]
) -> list[NDArray[np.int64]]:
    """Return numbers by which smaller means preferred, the strongest first."""
    if keep == "first":
        return _as_named(documents, arguments)
    if keep == "shortest-path":
        if documents.locations is None:
            return rank_paths(documents.names)
        locations = documents.locations
        keys = [key[locations.file] for key in rank_paths(locations.paths)]
        inside = np.isin(locations.kinds, ARCHIVES)[locations.file]
        if inside.any():
            members = np.flatnonzero(inside)
            for key, of_member in zip(keys, rank_paths(documents.names.take(members)), strict=True):
                key[members] = of_member
        return [*keys, *_in_files(documents)]
    if keep == "path-order":
        return []
    times = documents.mtimes
    by = {"longest": sizes, "shortest": sizes, "newest": times, "oldest": times}[keep]
    return [-by if keep in ("longest", "newest") else by]


def rank_paths(names: StringTable) -> list[NDArray[np.int64]]:
    """Return components of n paths; 1 if a path ends as backups do, else 0; characters of its last
    component: int64 arrays of shape (n,). What is smaller in the first of them is preferred.

    >>> table = StringTable.from_strings([b"a/report.doc", b"report.bak", b"report (1).doc"])
    >>> [key.tolist() for key in rank_paths(table)]
    [[2, 1, 1], [0, 1, 0], [10, 10, 14]]
    """
    keys = np.zeros((3, len(names)), np.int64)
    for start in range(0, len(names), _PIECE):
        piece = names.take(np.arange(start, min(start + _PIECE, len(names))))
        blob, starts, ends = piece.blob, piece.offsets[:-1], piece.offsets[1:]
        is_slash = np.append(blob == ord("/"), True)
        is_first = np.zeros(len(blob) + 1, bool)
        is_first[starts] = True
        begins = np.flatnonzero(~is_slash & (is_first | np.roll(is_slash, 1)))
        until = np.searchsorted(begins, ends)
        components = np.diff(until, prepend=0)
        last = np.maximum(np.append(begins, 0)[until - 1], starts)
        characters = offsets_of((blob & 0xC0 != 0x80).astype(np.int64))
        out = keys[:, start : start + len(piece)]
        out[0] = components - (
            (ends - starts > 1) & (blob[starts] == ord(".")) & is_slash[starts + 1]
        )
        out[2] = characters[ends] - characters[last]
        for at in np.flatnonzero(np.isin(blob[ends - 1], _LAST)).tolist():
            out[1, at] = _BACKUP.search(blob[last[at] : ends[at]].tobytes()) is not None
    return list(keys)


def _are_parts(locations: Locations) -> NDArray[np.int64]:
    """Return 0 for a whole file, 1 for a part of one, which no `rm` removes."""
    parts: NDArray[np.bool_] = locations.kinds != Kind.FILE
    return parts.astype(np.int64)[locations.file]


def _in_files(documents: DocumentList) -> list[NDArray[np.int64]]:
    """Return the place of the file of each document in byte order, and of the document in it."""
    assert documents.locations is not None
    paths = list(documents.locations.paths)
    place = {path: number for number, path in enumerate(sorted(set(paths)))}
    in_order = np.fromiter((place[path] for path in paths), np.int64, len(paths))
    return [in_order[documents.locations.file], documents.locations.starts]


def _as_named(documents: DocumentList, arguments: Sequence[bytes]) -> list[NDArray[np.int64]]:
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
    if documents.locations is None:
        return [numbers]
    # Of one argument the whole files, then the others in byte order of their names, and the rows
    # of each.
    of_argument = numbers[documents.locations.file]
    return [of_argument, _are_parts(documents.locations), *_in_files(documents)]


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


def _levels(documents: DocumentList, prefer: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Return for each document the number of the first pattern that matches it, or their number;
    and lines.
    """
    levels = np.full(len(documents), len(prefer), np.int64)
    if not prefer:
        return levels, []
    names = documents.typed_names(np.arange(len(documents)))
    paths = [os.fsdecode(name).removeprefix("./").lstrip("/") for name in names]
    unused: list[str] = []
    for number, text in reversed(list(enumerate(prefer))):
        here = typed_name(os.fsencode(text)) == b"."
        pattern = Patterns("--prefer", ["/**" if here else text])
        for at, path in enumerate(paths):
            if not (here and names[at].startswith((b"/", b"../"))) and pattern.match(path):
                levels[at] = number
        unused = pattern.warnings("no document", lambda: names) + unused
    return levels, unused
