"""`lshdup pairs --baseline`, `--changed-since`: pairs that are known, or old, are skipped."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lshdup.base.messages import count_of
from lshdup.cli.commands.pairs.listing import Listing
from lshdup.errors import InputError

if TYPE_CHECKING:
    from lshdup.cli.session import Session
    from lshdup.sources.document_list import DocumentList
    from lshdup.workspace.gate.baseline import Baseline, Review
    from lshdup.workspace.gate.changes import Changes


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
        from lshdup.workspace.gate.baseline import load_baseline

        if updates:
            check_writable(path)
        if path.exists() or not updates:
            self._known = load_baseline(path, repair=updates)

    def accept(self, documents: "DocumentList", _read: bool) -> tuple[()]:
        """Raise before the work if git cannot answer."""
        if self._since is not None and len(documents):
            from lshdup.workspace.gate.changes import Changes

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
            from lshdup.workspace.gate.changes import Changes

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
            from lshdup.workspace.gate.changes import find_change_times

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
        from lshdup.workspace.gate.baseline import Baseline, Review, names_from

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
        if session.console.exit_code:
            session.console.warn(f"{path} is not written, because of the error above")
            return review, ""
        try:
            now.save(path)
        except OSError as error:
            message = f"{path} cannot be written: {error.strerror}"
            raise InputError(message, "make room, or name another file") from None
        return review, f"; {path} has all of them now{f', {lines} dropped' if gone else ''}"
