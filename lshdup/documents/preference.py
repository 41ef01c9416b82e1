"""The order in which documents of a cluster are preferred to be kept."""

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.document_list import DocumentList, typed_name
from lshdup.documents.patterns import Patterns
from lshdup.errors import ParameterError
from lshdup.params import ClusterParams


def preference(
    documents: DocumentList,
    sizes: NDArray[np.int64],
    params: ClusterParams,
    arguments: Sequence[bytes],
) -> tuple[NDArray[np.int64], list[str]]:
    """Return all documents, the most preferred first, and a line for each pattern that matches
    none.

    Raises ParameterError if `keep` needs the order of arguments and there are none.

    Parameters
    ----------
    documents : n documents.
    sizes : int64 array of shape (n,), shingles of each.
    params : keep and prefer.
    arguments : folders and files as named; empty if the documents come from a store.

    Returns
    -------
    int64 array of shape (n,), and lines.

    """
    levels, unused = _levels(documents, params.prefer)
    keys = _keys(documents, sizes, params.keep, arguments)
    order = np.lexsort((np.arange(len(documents)), *reversed(keys), levels))
    return order, unused


def _keys(
    documents: DocumentList, sizes: NDArray[np.int64], keep: str, arguments: Sequence[bytes]
) -> list[NDArray[np.int64]]:
    """Return numbers by which smaller means preferred, the strongest first."""
    if keep == "first":
        return _as_named(documents, arguments)
    if keep == "path-order":
        return []
    by = sizes if keep in ("longest", "shortest") else documents.mtimes
    return [-by if keep in ("longest", "newest") else by]


def _as_named(documents: DocumentList, arguments: Sequence[bytes]) -> list[NDArray[np.int64]]:
    """Return the number of the argument that names a document; records go by location in their
    file.
    """
    if not arguments:
        message = (
            "--keep first has no meaning without DOCS: "
            "the store does not know in which order they were named"
        )
        raise ParameterError(message, "name DOCS, or choose another --keep")
    rank: dict[bytes, int] = {}
    for number, argument in enumerate(arguments):
        rank.setdefault(typed_name(argument), number)
    files = list(documents.names if documents.locations is None else documents.locations.paths)
    of_folder: dict[bytes, int] = {b"": len(arguments)}
    numbers = np.fromiter((_number(name, rank, of_folder) for name in files), np.int64, len(files))
    if documents.locations is None:
        return [numbers]
    # Files of one argument in byte order of their names, and then the rows of each.
    place = {path: number for number, path in enumerate(sorted(set(files)))}
    in_order = np.fromiter((place[path] for path in files), np.int64, len(files))
    return [
        numbers[documents.locations.file],
        in_order[documents.locations.file],
        documents.locations.starts,
    ]


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
