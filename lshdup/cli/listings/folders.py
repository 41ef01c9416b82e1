"""`lshdup show FOLDER_A FOLDER_B`: what is in one of two folders only, the same, or changed."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from lshdup.base.params import ClusterParams
from lshdup.base.wording import Cell, count_of, decimal, printable
from lshdup.cli.columns import columns_of
from lshdup.cli.layouts import fold_cell
from lshdup.cli.messages import say_collection, say_last_run, warn_of_changes
from lshdup.cli.options import ShowOptions
from lshdup.cli.output import Target, print_rows
from lshdup.cli.session import Session
from lshdup.collection.collection import Collection
from lshdup.collection.set_source import set_source
from lshdup.errors import InputError
from lshdup.sources.document_list import typed_name
from lshdup.workspace.comparing import load_or_find_clusters
from lshdup.workspace.folders import (
    CHANGED,
    ONLY_A,
    ONLY_B,
    SAME,
    Difference,
    FolderContent,
    compare_contents,
    find_below,
    group_documents,
    weigh,
)
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.workspace import Workspace

#: Lines of a section on a terminal, unless --max-rows says otherwise.
_MOST = 100

#: The sections, and what stands above each.
_TITLES = {ONLY_A: "only in A", ONLY_B: "only in B", CHANGED: "changed", SAME: "the same"}


def are_folders(last: Collection | None, words: Sequence[bytes]) -> bool:
    """Return whether both words are folders, here or of the last run.

    Raise InputError if one of them is a folder here and the other is none.
    """
    folders = [word for word in words if os.path.isdir(word)]
    others = [word for word in words if word not in folders]
    if not others:
        return True
    if b"-" not in words and last is not None:
        below = [find_below(word, last.documents).documents for word in words]
        if all(map(len, below)):
            return True
    if folders:
        is_there = others[0] == b"-" or os.path.exists(others[0])  # noqa: PTH110 (bytes path)
        fate = "none" if is_there else "no folder here, nor one of the last run"
        message = f"{printable(folders[0])} is a folder, and {printable(others[0])} is {fate}"
        raise InputError(message, "name two documents, or two folders that hold some")
    return False


def show_folders(session: Session, options: ShowOptions, target: Target) -> int:
    """Print what two folders have in common and what not, and return the exit code."""
    console, words = session.console, options.both
    workspace, request = session.workspace, session.request
    held = not all(map(os.path.isdir, words))  # Folders that are here are looked at as they are.
    if not held:
        workspace, request = Workspace(session.run), replace(request, documents=words)
    indexed = load_or_build_index(workspace, request)
    collection = indexed.collection
    if held:
        say_last_run(console, collection)
    else:
        say_collection(session, collection, 0)
    a, b = (find_below(word, collection.documents) for word in words)
    for word, content in zip(words, (a, b), strict=True):
        if not len(content.documents):
            message = f"there is no document below {printable(word)}"
            raise InputError(message, "name a folder that holds some")
    if len(np.intersect1d(a.documents, b.documents)):
        a_name, b_name = map(printable, words)
        message = f"{a_name} and {b_name} are one, or one is below the other"
        raise InputError(message, "name two folders beside each other")
    clusters = load_or_find_clusters(workspace, indexed, ClusterParams(), request).clusters
    groups = group_documents(session.workspace, collection, clusters)
    source = set_source(workspace, collection)
    found = compare_contents(session.workspace, collection, groups, a, b, source)
    warn_of_changes(session, collection.documents, np.concatenate([a.documents, b.documents]))
    if not target.is_for_people:
        print_rows(console, target, columns_of("show-folders"), _rows(collection, found))
        return console.exit_code()
    weights = weigh(groups, np.maximum(collection.documents.spans, 0), a, b)
    most = options.max_rows
    limit = most if most is not None else _MOST if target.columns else 0
    sections = [_section(kind, found, a, b, limit, target) for kind in _TITLES]
    heads = _heads(collection, words, (a, b), weights, target)
    target.write_lines(chain(heads, *sections, _skipped(collection, words)))
    return console.exit_code()


def _rows(collection: Collection, found: list[Difference]) -> Iterator[tuple[Cell, ...]]:
    used = sorted({each for row in found for each in (row.a, row.b) if each >= 0})
    typed = collection.documents.typed_names(np.array(used, np.int64))
    names: dict[int, bytes | None] = dict(zip(used, typed, strict=True))
    for row in found:
        in_both = row.a >= 0 and row.b >= 0
        yield (
            row.kind, names.get(row.a), names.get(row.b), row.similarity if in_both else None,
            _same(collection, row) if in_both else None,
        )  # fmt: skip


def _same(collection: Collection, row: Difference) -> str | None:
    """Return how much two documents are the same; those without tokens may have equal bytes."""
    word = collection.prints.words(np.array([row.a]), np.array([row.b]))[0]
    return word if word or row.kind != SAME else "bytes"


def _heads(
    collection: Collection,
    words: Sequence[bytes],
    contents: Sequence[FolderContent],
    weights: tuple[int, int, int],
    target: Target,
) -> Iterator[str]:
    """Yield what both folders hold, and how much of it both do.

    weights : bytes of A, of B, and of both.
    """
    for letter, word, content in zip("AB", words, contents, strict=True):
        size = int(collection.documents.spans[content.documents].sum())
        facts = f"{count_of(len(content.documents), 'document')}, {count_of(size, 'byte')}"
        yield from fold_cell(f"{letter}  {printable(word)}: {facts}", target.columns)
    of_a, of_b, shared = weights
    share = [shared / each if each else 0.0 for each in (of_a + of_b - shared, of_a, of_b)]
    yield (
        f"similarity {decimal(share[0])} by bytes: {decimal(share[1])} of A is in B, "
        f"{decimal(share[2])} of B in A"
    )


def _section(
    kind: str,
    found: Sequence[Difference],
    a: FolderContent,
    b: FolderContent,
    limit: int,
    target: Target,
) -> Iterator[str]:
    """Yield the lines of one kind. limit : most documents that are listed; 0: all."""
    rows = [row for row in found if row.kind == kind]
    listed = []
    for row in rows:
        of_a, of_b = printable(a.path(row.a)), printable(b.path(row.b))
        if kind != SAME or of_a != of_b:
            score = f"{decimal(row.similarity)}  " if kind == CHANGED else ""
            names = dict.fromkeys(name for name in (of_a, of_b) if name)
            listed.append(f"  {score}{' -> '.join(names)}")
    unlisted = len(rows) - len(listed)
    note = f", {unlisted:,} of them under the same path" if unlisted and listed else ""
    note = ", all under the same path" if unlisted and not listed else note
    head = f"{_TITLES[kind]}: {len(rows):,}{note}"
    yield ""
    yield f"\x1b[1m{head}\x1b[0m" if target.colored else head
    shown = listed[:limit] if limit else listed
    for line in shown:
        yield from fold_cell(line, target.columns)
    if len(shown) < len(listed):
        yield f"  … {len(listed) - len(shown):,} more; --max-rows 0 lists all"


def _skipped(collection: Collection, words: Sequence[bytes]) -> Iterator[str]:
    """Yield the files below the folders that hold no text: they are in no section."""
    yield ""
    for letter, word in zip("AB", words, strict=True):
        below = typed_name(word) + b"/"
        names = [
            f"  {printable(name.removeprefix(below))}: {each.skipped.reason}"
            for each in collection.skipped
            if (name := typed_name(each.skipped.name)).startswith(below)
        ]
        if names:
            yield from (f"not compared in {letter}: {len(names):,}", *names, "")
