"""The DOCS of a run: the folders and files that were named, as an artifact's header keeps them."""

import os
from collections.abc import Iterable, Iterator, Sequence

from lshdup.base.messages import join_names

#: Of more DOCS, only the folders that hold them all are kept.
_MOST = 100


def summarize_docs(arguments: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return DOCS in their order, each once. Of more than a hundred, return the folders above all,
    with a slash at the end: their order is not known then.

    arguments : folders and files, as `typed_name` writes them.

    >>> summarize_docs([b"b", b"a", b"b"]), summarize_docs([b"docs/%d.txt" % n for n in range(500)])
    ((b'b', b'a'), (b'docs/',))
    """
    docs = list(dict.fromkeys(arguments))
    if len(docs) <= _MOST:
        return tuple(docs)
    sides = ([d for d in docs if d.startswith(b"/")], [d for d in docs if not d.startswith(b"/")])
    return tuple((os.path.commonpath(side) or b".").rstrip(b"/") + b"/" for side in sides if side)


def describe_docs(docs: Sequence[bytes]) -> str:
    """Return where documents are, for a sentence: " in docs, rows.jsonl"; "" if nobody knows."""
    return f" in {join_names(map(os.fsdecode, docs), 3)}" if docs else ""


def list_outside(names: Iterable[bytes], arguments: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the paths that are neither one of the arguments nor below one of them, by name.

    names, arguments : paths as `typed_name` writes them.

    >>> list(list_outside([b"a/b", b"c"], [b"a", b"c"])), list(list_outside([b"../y"], [b"."]))
    ([], [b'../y'])
    """
    folders = set(arguments)
    return (name for name in names if folders.isdisjoint(_folders_of(name)))


def _folders_of(name: bytes) -> list[bytes]:
    """Return a path and every folder above it."""
    parts = name.split(b"/")
    above = [b"/".join(parts[:end]) or b"/" for end in range(1, len(parts) + 1)]
    outside = name.startswith((b"/", b"../")) or name == b".."
    return above if outside else [*above, b"."]
