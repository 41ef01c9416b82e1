"""Where the documents of a store are, in few words, and whether they are below other DOCS."""

import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import takewhile

import numpy as np

from lshdup.documents.document_list import DocumentList, typed_name

#: With more arguments, all names become objects first.
_MANY = 100


def counted_where(documents: DocumentList, said: str) -> str:
    """Return how many documents there are (`said`), and below which folder or of which file.

    Cost: two names are read, or the names of files.
    """
    files = _files(documents)
    if not len(files):
        return said
    first, last = (
        os.fsdecode(each) for each in _typed(documents, [files[0], files[len(files) - 1]])
    )
    if first == last:
        return f"{said}, {first}" if documents.locations is None else f"{said} of {first}"
    # Names are in order: what the first and the last have in common, all have.
    alike = takewhile(
        lambda pair: pair[0] == pair[1],
        zip(first.split("/")[:-1], last.split("/")[:-1], strict=False),
    )
    folder = "/".join(part for part, _ in alike)
    return f"{said} below {folder}" if folder else f"{said}, {first} … {last}"


def are_elsewhere(documents: DocumentList, arguments: Iterable[bytes]) -> bool:
    """Return whether documents are in none of the arguments, whether they still exist or not.

    Cost: log(n) names for each argument, if names start from the current folder.
    """
    files = _files(documents)
    wanted = sorted(
        {typed_name(argument) for argument in arguments}, key=lambda name: name.split(b"/")
    )  # a folder, then what is in it
    if documents.home or len(wanted) > _MANY:
        files = sorted(_typed(documents, list(files)))
    inside, last = 0, b""
    if b"." in wanted:  # all relative names but those above
        inside = len(files) - _below(files, b"..") - _below(files, b"")
        wanted = [name for name in wanted if name.startswith((b"/", b"../")) or name == b".."]
    for name in wanted:
        if last and (name == last or name.startswith(last.rstrip(b"/") + b"/")):
            continue
        last = name
        at = bisect_left(files, name)
        inside += int(at < len(files) and files[at] == name) + _below(files, name.rstrip(b"/"))
    return inside < len(files)


def _below(files: Sequence[bytes], folder: bytes) -> int:
    return bisect_left(files, folder + b"0") - bisect_left(
        files, folder + b"/"
    )  # "0" is what comes after "/"


def _files(documents: DocumentList) -> Sequence[bytes]:
    """Return the names of the files of documents, in byte order, from the folder of the store."""
    if documents.locations is not None:
        used = np.zeros(len(documents.locations.paths), bool)
        used[documents.locations.file] = True
        return sorted(documents.locations.paths.strings_at(np.flatnonzero(used)))
    return documents.names  # type: ignore[return-value]  # a sequence in all that is used here


def _typed(documents: DocumentList, files: list[bytes]) -> list[bytes]:
    """Return names as they would be typed from the current folder."""
    if not documents.home:
        return files
    return [typed_name(os.path.relpath(os.path.join(documents.home, name))) for name in files]  # noqa: PTH118 (bytes path)
