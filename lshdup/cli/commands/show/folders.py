"""`lshdup show FOLDER_A FOLDER_B`: what is in one of two folders only, the same, or changed."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lshdup.base.frozen import dataclass
from lshdup.base.messages import count_of, decimal, printable
from lshdup.cli.columns import column_names
from lshdup.cli.findings import warn_of_changes
from lshdup.cli.messages import say_collection, say_last_run
from lshdup.cli.output.target import Target
from lshdup.cli.printing import print_rows
from lshdup.cli.session import Session
from lshdup.errors import InputError
from lshdup.params import ClusterParams
from lshdup.sources.document_list import typed_name

if TYPE_CHECKING:
    from lshdup.base.messages import Cell
    from lshdup.collection.collection import Collection
    from lshdup.workspace.folders import Difference, FolderContent
    from lshdup.workspace.workspace import Workspace

#: Lines of a section on a terminal, unless --max-rows says otherwise.
_MOST = 100


def are_folders(last: "Collection | None", words: Sequence[bytes]) -> bool:
    """Return whether both words are folders, here or of the last run."""
    return all(map(os.path.isdir, words)) or (b"-" not in words and _holds(last, words))


def refuse_one_folder(words: Sequence[bytes]) -> None:
    """Raise InputError if one of two words is a folder here and the other is none."""
    folders = [word for word in words if os.path.isdir(word)]
    others = [word for word in words if word not in folders]
    if folders and others:
        is_there = others[0] == b"-" or os.path.exists(others[0])  # noqa: PTH110 (bytes path)
        fate = "none" if is_there else "no folder here, nor one of the last run"
        message = f"{printable(folders[0])} is a folder, and {printable(others[0])} is {fate}"
        raise InputError(message, "name two documents, or two folders that hold some")


def _holds(last: "Collection | None", words: Sequence[bytes]) -> bool:
    """Return whether the last run had documents below all these folders."""
    from lshdup.workspace.folders import find_below

    return last is not None and all(
        len(find_below(word, last.documents).documents) for word in words
    )


def show_folders(
    session: Session, options: dict[str, Any], target: Target, last: "Collection | None"
) -> int:
    """Print what two folders have in common and what not, and return the exit code."""
    import numpy as np

    from lshdup.workspace.folders import compare_contents, find_below, group_documents, weigh

    console, words = session.console, (options["a"], options["b"])
    workspace, request = session.workspace, session.request
    held = not all(map(os.path.isdir, words))  # Folders that are here are looked at as they are.
    if not held:
        workspace, request = _without_store(session), replace(request, documents=words)
    indexed = workspace.load_or_build_index(request, save=False)
    collection = indexed.collection
    if held:
        say_last_run(console, collection)
    else:
        say_collection(session, collection, 0)
    contents = [find_below(word, collection.documents) for word in words]
    for word, content in zip(words, contents, strict=True):
        if not len(content.documents):
            message = f"there is no document below {printable(word)}"
            raise InputError(message, "name a folder that holds some")
    a, b = contents
    if len(np.intersect1d(a.documents, b.documents)):
        message = f"one of {printable(words[0])} and {printable(words[1])} is below the other"
        raise InputError(message, "name two folders beside each other")
    clusters = workspace.find_clusters(indexed, ClusterParams(), request).clusters
    groups = group_documents(session.workspace, collection, clusters)
    source = workspace.set_source(collection)
    found = compare_contents(session.workspace, collection, groups, a, b, source)
    warn_of_changes(session, collection.documents, np.concatenate([a.documents, b.documents]))
    if target.style == "table" or (not target.format and not target.nul):
        weights = np.maximum(collection.documents.spans, 0)
        view = _View(collection, words, a, b, found, weigh(groups, weights, a, b))
        most = options["max_rows"]
        limit = most if most is not None else _MOST if target.columns else 0
        target.write_lines(view.lines(limit, target))
    else:
        print_rows(console, target, column_names("show-folders"), _rows(collection, found))
    return console.exit_code


def _without_store(session: Session) -> "Workspace":
    from lshdup.workspace.workspace import Workspace

    return Workspace(session.run, None, session.request.given.get("secret", b""))


def _rows(collection: "Collection", found: "list[Difference]") -> "Iterator[tuple[Cell, ...]]":
    import numpy as np

    used = sorted({each for row in found for each in (row.a, row.b) if each >= 0})
    typed = collection.documents.typed_names(np.array(used, np.int64))
    names: dict[int, bytes | None] = dict(zip(used, typed, strict=True))
    for row in found:
        in_both = row.a >= 0 and row.b >= 0
        yield (
            row.kind, names.get(row.a), names.get(row.b), row.similarity if in_both else None,
            _same(collection, row) if in_both else None,
        )  # fmt: skip


def _same(collection: "Collection", row: "Difference") -> str | None:
    """Return how much two documents are the same; those without tokens may have equal bytes."""
    import numpy as np

    word = collection.prints.words(np.array([row.a]), np.array([row.b]))[0]
    return word if word or row.kind != "same" else "bytes"


@dataclass(frozen=True)
class _View:
    """The picture for people: each section with the documents below the folders.

    weights : bytes of A, of B, and of both.
    """

    collection: "Collection"
    words: tuple[bytes, bytes]
    a: "FolderContent"
    b: "FolderContent"
    found: "list[Difference]"
    weights: tuple[int, int, int]

    def lines(self, limit: int, target: Target) -> Iterator[str]:
        """Yield all lines. limit : most lines of a section; 0: all."""
        from lshdup.cli.output.tables import fold_cell

        def fold(line: str) -> list[str]:
            return fold_cell(line, target.columns) if target.columns else [line]

        for letter, word, content in (("A", self.words[0], self.a), ("B", self.words[1], self.b)):
            documents = self.collection.documents
            size = int(documents.spans[content.documents].sum())
            facts = f"{count_of(len(content.documents), 'document')}, {count_of(size, 'byte')}"
            yield from fold(f"{letter}  {printable(word)}: {facts}")
        of_a, of_b, shared = self.weights
        share = [shared / each if each else 0.0 for each in (of_a + of_b - shared, of_a, of_b)]
        yield (
            f"similarity {decimal(share[0])} by bytes: {decimal(share[1])} of A is in B, "
            f"{decimal(share[2])} of B in A"
        )
        for kind, title in (
            ("only a", "only in A"), ("only b", "only in B"), ("changed", "changed"),
            ("same", "the same"),
        ):  # fmt: skip
            yield ""
            rows = [row for row in self.found if row.kind == kind]
            listed = [line for row in rows if (line := self._line(row))]
            unlisted = len(rows) - len(listed)
            note = f", {unlisted:,} of them under the same path" if unlisted and listed else ""
            note = ", all under the same path" if unlisted and not listed else note
            head = f"{title}: {len(rows):,}{note}"
            yield f"\x1b[1m{head}\x1b[0m" if target.colored else head
            shown = listed[:limit] if limit else listed
            for line in shown:
                yield from fold(line)
            if len(shown) < len(listed):
                yield f"  … {len(listed) - len(shown):,} more; --max-rows 0 lists all"
        yield ""
        yield from self._skipped()

    def _skipped(self) -> Iterator[str]:
        """Yield the files below the folders that hold no text: they are in no other section."""
        for letter, word in zip("AB", self.words, strict=True):
            below = typed_name(word) + b"/"
            names = [
                f"  {printable(name.removeprefix(below))}: {each.skipped.reason}"
                for each in self.collection.skipped
                if (name := typed_name(each.skipped.name)).startswith(below)
            ]
            if names:
                yield from (f"not compared in {letter}: {len(names):,}", *names, "")

    def _line(self, row: "Difference") -> str:
        """Return the line of a document; "" if it is the same under the same path."""
        paths = [
            printable(content.paths[int(content.documents.searchsorted(document))])
            if document >= 0
            else ""
            for content, document in ((self.a, row.a), (self.b, row.b))
        ]
        if row.kind == "same" and paths[0] == paths[1]:
            return ""
        score = f"{decimal(row.similarity)}  " if row.kind == "changed" else ""
        arrow = " -> " if paths[0] and paths[1] else ""
        both = paths[0] if paths[0] == paths[1] else f"{paths[0]}{arrow}{paths[1]}"
        return f"  {score}{both}"
