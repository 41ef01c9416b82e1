"""Pairs as `lshdup pairs` prints them: as a listing, or as annotations of files; and which of them
a gate lets through, by --baseline and --changed-since.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lshdup.base.frozen import dataclass
from lshdup.base.wording import count_of
from lshdup.cli.columns import column_names
from lshdup.cli.output import (
    ANNOTATIONS,
    Cells,
    DocumentNames,
    name_pairs,
    print_pieces,
    similarities,
)
from lshdup.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.cli.output import Piece, Target
    from lshdup.cli.session import Session
    from lshdup.compare.sides import Fingerprints
    from lshdup.params import ShingleParams
    from lshdup.sources.document_list import DocumentList
    from lshdup.views.annotations import Annotation
    from lshdup.workspace.gate import Baseline, Changes, Review

#: From so many pairs on, a listing takes a minute: its size is said before.
_MANY_PAIRS = 10_000_000

#: Bytes of a row besides its names.
_ROW_BYTES = 12


@dataclass(frozen=True)
class Listing:
    """The pairs that a command lists.

    total : their number.
    documents : int64 array, ascending, the documents that are in any.
    pieces : yields the pairs in order, each time it is called: arrays left, right, scores, and
        perhaps more.
    lists : the documents, numbered from the first list to the last.
    names : returns the names of an ascending int64 array of documents.
    prints : fingerprints of the documents.
    shingle : how they are cut into tokens.
    times : returns an integer array of shape (n,): of a pair, the document with the larger one is
        new or has changed, as far as a gate knows; None without a gate.
    """

    total: int
    documents: "NDArray[np.int64]"
    pieces: "Callable[[], Iterator[tuple[Any, ...]]]"
    lists: "Sequence[DocumentList]"
    names: "Callable[[NDArray[np.int64]], list[bytes]]"
    prints: "Fingerprints"
    shingle: "ShingleParams"
    times: "Callable[[], NDArray[np.int64]] | None" = None


def print_listing(
    session: "Session",
    target: "Target",
    listing: Listing,
    name: str,
    cells: Cells = similarities,
    last: Cells = lambda *_: [],
    *,
    optional: bool = False,
) -> None:
    """Print pairs.

    name, optional : of the listing and its columns.
    cells, last : as of `name_pairs`.
    """
    if listing.total >= _MANY_PAIRS:
        session.console.say(describe_size(listing))
    columns = column_names(name, optional=optional)
    names = DocumentNames(sum(map(len, listing.lists)), listing.names)
    pieces = name_pairs(listing.pieces(), names, listing.prints, cells, last)
    if target.style not in ANNOTATIONS:
        print_pieces(session.console, target, columns, pieces, listing.total)
        return
    from lshdup.views.annotations import github_lines, sarif_parts

    write = github_lines if target.style == "github" else sarif_parts
    level = "error" if session.console.is_check else "warning"
    target.write_raw(write(_find(listing, columns, pieces), level))


def describe_size(listing: Listing) -> str:
    """Return how large a long listing is, and what lists less."""
    names = sum(each.names.values.nbytes for each in listing.lists)
    row = 2 * names / max(sum(map(len, listing.lists)), 1) + _ROW_BYTES
    return (
        f"{listing.total:,} pairs are listed, about {listing.total * row / 1e9:.1f} GB:"
        " --max-bucket N skips what thousands share, --collapse-copies lists exact copies once,"
        " `lshdup clusters` lists groups"
    )


def _find(
    listing: Listing, columns: Sequence[str], pieces: "Iterator[Piece]"
) -> "Iterator[Annotation]":
    """Yield pairs with the longest passage of each. pieces : the same pairs with names."""
    from lshdup.views.annotations import Annotation, PassageFinder, Place, describe_likeness

    finder = PassageFinder(listing.lists, listing.shingle)
    times = None if listing.times is None else listing.times()
    texts = listing.prints.text_prints
    pairs = (pair for piece in listing.pieces() for pair in zip(*map(list, piece[:2]), strict=True))
    rows = (row for piece in pieces for row in zip(*piece, strict=True))
    for pair, row in zip(pairs, rows, strict=True):
        numbers = dict(zip(columns, row, strict=True))
        named = [(int(number), numbers.pop(side)) for number, side in zip(pair, "ab", strict=True)]
        # The annotated document is the newer one; of two that may be, the second one.
        if times is None or times[pair[1]] >= times[pair[0]]:
            named.reverse()
        (here, here_name), (other, other_name) = named
        found = finder.find(here, other)
        lines = (None, None) if found is None else (found.a, found.b)
        yield Annotation(
            Place(here_name, _path(listing.lists, here), lines[0]),
            Place(other_name, _path(listing.lists, other), lines[1]),
            numbers,
            describe_likeness(numbers),
            "" if found is None else found.text,
            0 if found is None else found.tokens,
            "-".join(sorted(f"{int(texts[each]):016x}" for each in pair)),
        )


def _path(lists: "Sequence[DocumentList]", document: int) -> bytes:
    """Return the file of a document from the top folder of its repository.

    In no repository, the path is as typed from the current folder.
    """
    from lshdup.sources.document_list import find_in_lists, typed_name
    from lshdup.workspace.gate import find_repository

    documents, number = find_in_lists(lists, document)
    path = documents.path(number)
    folder, name = os.path.split(path)
    folder = os.path.realpath(folder or b".")
    # A repository within the one of the current folder is a part of that one.
    for start in (os.path.realpath(b"."), folder):
        top = find_repository(start)
        if top is not None and os.path.commonpath([top, folder]) == top:
            return os.path.relpath(os.path.join(folder, name), top)  # noqa: PTH118 (bytes path)
    return typed_name(os.path.relpath(path) if documents.home else path)


class Gate:
    """What the options of a gate let through: all pairs, if none was typed.

    path : the baseline. since : of --changed-since. updates : whether the baseline is written.

    Errors: ParameterError for a file that is no baseline; InputError for a baseline that cannot be
    read, or not be written.
    """

    def __init__(self, path: Path | None, since: str | None, *, updates: bool) -> None:
        self._path, self._since, self.updates = path, since, updates
        self._changes: Changes | None = None
        self._known: Baseline | None = None
        if path is None:
            return
        from lshdup.base.atomic import check_writable
        from lshdup.workspace.gate import load_baseline

        if updates:
            check_writable(path)
        if path.exists() or not updates:
            self._known = load_baseline(path, repair=updates)

    def accept(self, documents: "DocumentList", _read: bool) -> tuple[()]:
        """Raise before the work if git cannot answer."""
        if self._since is not None and len(documents):
            from lshdup.workspace.gate import Changes

            self._changes = self._changes or Changes(self._since)
            folder = os.path.dirname(os.path.realpath(documents.path(0)))  # noqa: PTH120 (bytes path)
            self._changes.in_repository(folder)
        return ()

    def select(self, session: "Session", listing: Listing) -> Listing:
        """Return the pairs that are let through, and say how many there are.

        With --update-baseline, the baseline is written.
        """
        import numpy as np

        tests: list[Callable[[Any, Any], Any]] = []
        n, about, after = len(listing.prints.text_prints), "", ""
        changed, is_unknown = np.zeros(n, bool), np.zeros(n, bool)
        if self._since is not None:
            from lshdup.workspace.gate import Changes

            here = listing.lists[0]
            changed[: len(here)] = (self._changes or Changes(self._since)).find(here)
            tests.append(lambda left, right: changed[left] | changed[right])
            count = count_of(int(changed.sum()), "document")
            about = f"; {count} changed since {self._since}"
        if self._path is not None:
            review, after = self._hold_against(session, self._path, listing)
            tests.append(review.is_new)
            is_unknown = ~review.is_known
        if not tests:
            return listing

        def pieces() -> "Iterator[tuple[Any, ...]]":
            for piece in listing.pieces():
                keep = np.logical_and.reduce([test(*piece[:2]) for test in tests])
                if keep.any():
                    yield tuple(column[keep] for column in piece)

        def find_times() -> Any:
            if self._since is not None:
                return 2 * changed + is_unknown
            from lshdup.workspace.gate import find_change_times

            ends = np.cumsum([0, *map(len, listing.lists)])
            parts = zip(listing.lists, np.split(is_unknown & named, ends[1:-1]), strict=True)
            return np.concatenate([find_change_times(*part) for part in parts])

        total, named = 0, np.zeros(n, bool)
        for left, right, *_ in pieces():
            total += len(left)
            named[left] = named[right] = True
        session.console.summarize(
            f"{total:,} of {count_of(listing.total, 'pair')} new{about}{after}"
        )
        return replace(
            listing, total=total, documents=np.flatnonzero(named), pieces=pieces, times=find_times
        )

    def _hold_against(
        self, session: "Session", path: Path, listing: Listing
    ) -> "tuple[Review, str]":
        """Hold the pairs against the baseline, and write it if that was requested.

        Returns also what is to be said about it.
        """
        from lshdup.workspace.gate import Baseline, Review, names_from

        known = self._known
        if known is None or (self.updates and known.shingle != listing.shingle):
            known = Baseline(listing.shingle)
        known.check(path, listing.shingle)
        names = names_from(path.parent, listing.names(listing.documents))
        review = Review(known, listing.prints.text_prints, listing.documents, names)
        now = review.summarize(listing.pieces())
        gone = known.count_gone(now)
        lines = count_of(gone, "line")
        if not self.updates:
            drop = f"; {lines} of {path} for pairs that are gone: --update-baseline drops them"
            return review, drop if gone else ""
        if session.console.exit_code():
            session.console.warn(f"{path} is not written, because of the error above")
            return review, ""
        try:
            now.save(path)
        except OSError as error:
            message = f"{path} cannot be written: {error.strerror}"
            raise InputError(message, "make room, or name another file") from None
        return review, f"; {path} has all of them now{f', {lines} dropped' if gone else ''}"
