"""The listings of `lshdup pairs`: pairs, the histogram, what of DOCS is in no pair with OTHER, and
annotations of files; and which pairs a gate lets through, by --baseline and --changed-since.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from lshdup.base.atomic import check_writable
from lshdup.base.frozen import dataclass
from lshdup.base.params import ClusterParams
from lshdup.base.ragged import distinct
from lshdup.base.wording import Cell, count_of
from lshdup.cli import removal
from lshdup.cli.columns import TEXT, Columns, columns_of
from lshdup.cli.find_pairs import (
    find_matches,
    find_pairs,
    leave_out_accepted,
    open_comparison,
    open_removal,
    say_estimates,
    warn_of_changed,
)
from lshdup.cli.messages import describe_likeness, warn_of_changes
from lshdup.cli.options import FindOptions, PairsOptions
from lshdup.cli.output import (
    ANNOTATIONS,
    PIECE_MAILS,
    PIECE_ROWS,
    DocumentNames,
    Piece,
    Target,
    print_pieces,
    print_rows,
)
from lshdup.cli.session import Session
from lshdup.collection.keep_rules import preference
from lshdup.collection.name_lists import name_documents
from lshdup.compare.expand_duplicates import ExpandedPairs
from lshdup.compare.results import ClustersFound
from lshdup.compare.scored_pairs import Scores
from lshdup.compare.verification import relations
from lshdup.errors import ParameterError
from lshdup.sources.document_list import DocumentList, find_in_lists, names_of
from lshdup.sources.patterns import find_repository
from lshdup.views.mails import Mails
from lshdup.workspace.accepted import (
    Accepted,
    Review,
    definition_of,
    find_prints,
    folder_of,
    load_accepted,
)
from lshdup.workspace.against import find_holders
from lshdup.workspace.comparing import Comparison
from lshdup.workspace.gate import Changes, find_change_times

if TYPE_CHECKING:
    from lshdup.evaluation.histogram import Step
    from lshdup.views.annotations import Annotation

#: From so many pairs on, a listing takes a minute: its size is said before.
_MANY_PAIRS = 10_000_000

#: Bytes of a row besides its names.
_ROW_BYTES = 12


@dataclass(frozen=True)
class Listing:
    """The pairs that a command lists.

    opened : what was compared.
    pairs : all pairs.
    total : number of the pairs that are listed.
    documents : int64 array, ascending, the documents that are in any.
    pieces : yields the pairs in order, each time it is called: arrays left, right, scores.
    times : returns an integer array of shape (n,): of a pair, the document with the larger one is
        new or has changed, as far as a gate knows; None without a gate.
    """

    opened: Comparison
    pairs: ExpandedPairs
    total: int
    documents: NDArray[np.int64]
    pieces: Callable[[], Iterator[tuple[Any, ...]]]
    times: Callable[[], NDArray[np.int64]] | None = None


def list_pairs(
    ctx: click.Context, session: Session, options: PairsOptions, target: Target, gate: "Gate | None"
) -> int:
    """Print the pairs that a gate lets through, and return their number. With --write, write the
    files without the rows that hold one of OTHER.
    """
    both, shared = None, np.zeros(0, np.int64)
    if options.write is not None:
        both, shared = open_removal(session, options)
    relation = options.relation or ("holds" if both is not None else None)
    opened, distinct_pairs, pairs = find_pairs(session, options, both, relation)
    listing = Listing(opened, pairs, len(pairs), pairs.documents(), pairs.pieces)
    if gate is not None:
        listing = gate.select(session, listing)
    warn_of_changed(session, opened, listing.documents)
    if both is not None:
        _write(session, options, opened, *find_holders(opened, distinct_pairs, shared))
    if not removal.prints_listing(ctx, options):
        return listing.total
    if listing.total >= _MANY_PAIRS:
        session.console.say(describe_size(opened.lists, listing.total))
    name = f"pairs{'-against' * (opened.there is not None)}"
    name = "pairs-containment" if options.measure == "containment" else name
    mails = opened.mails if target.style == "table" else None
    more = dict.fromkeys(("a_subject", "a_date", "b_subject", "b_date") if mails else (), TEXT)
    columns = columns_of(name, more, optional=opened.there is not None)
    if target.style not in ANNOTATIONS:
        print_pieces(session.console, target, columns, list_rows(listing, mails), listing.total)
        return listing.total
    from lshdup.views.annotations import github_lines, sarif_parts

    write = github_lines if target.style == "github" else sarif_parts
    level = "error" if session.console.is_check else "warning"
    target.write_raw(write(_find(listing, columns), level))
    return listing.total


def _write(
    session: Session,
    options: PairsOptions,
    opened: Comparison,
    found: ClustersFound,
    share: NDArray[np.float64],
) -> None:
    """Write files without the rows that go. found, share : of `find_holders`."""
    sizes = opened.sides.sizes

    def describe(rows: NDArray[np.int64], kept: NDArray[np.int64]) -> list[list[Any]]:
        return [share[rows].tolist(), relations(sizes[rows], sizes[kept])]

    removal.write(session, options, found.clusters, opened, [describe], copies_go=False)


def list_rows(listing: Listing, mails: Mails | None = None) -> Iterator[Piece]:
    """Yield the pairs with names instead of numbers of documents.

    mails : also subjects and dates of these.
    """
    opened, size = listing.opened, PIECE_MAILS if mails else PIECE_ROWS
    names = DocumentNames(len(opened.sides.sizes), opened.names)
    for left, right, scores, *_ in listing.pieces():
        a, b = names.of(left), names.of(right)
        for start in range(0, len(a), size):
            part = slice(start, start + size)
            named = a[part].tolist(), b[part].tolist()
            sides = (left[part], right[part]) if mails else ()
            told = [column for side in sides for column in opened.mails.show(side)]
            yield [*named, *_describe(listing, left[part], right[part], scores[part]), *told]


def _describe(
    listing: Listing, left: NDArray[np.uint32], right: NDArray[np.uint32], scores: Scores
) -> list[list[Any]]:
    """Return the columns behind the names of pairs: scores, and how much they are the same."""
    opened, sizes = listing.opened, listing.opened.sides.sizes
    same = opened.sides.prints.words(left, right)
    if opened.method.measure == "containment":
        a, b = sizes[left], sizes[right]
        columns = [each.tolist() for each in (scores.real, scores.imag, a, b)]
        return [*columns, same, *([list(relations(a, b))] if opened.there is not None else [])]
    if opened.there is None:
        return [scores.tolist(), same]
    estimated = listing.pairs.is_estimate(left, right).tolist()
    return [scores.tolist(), ["estimate" if each else "exact" for each in estimated], same]


def describe_size(lists: Sequence[DocumentList], total: int) -> str:
    """Return how large a long listing is, and what lists less.

    lists : the documents. total : number of pairs.
    """
    names = sum(each.names.values.nbytes for each in lists)
    row = 2 * names / max(sum(map(len, lists)), 1) + _ROW_BYTES
    return (
        f"{total:,} pairs are listed, about {total * row / 1e9:.1f} GB:"
        " --max-bucket N skips what thousands share, --collapse-copies lists exact copies once,"
        " `lshdup clusters` lists groups"
    )


def _find(listing: Listing, columns: Columns) -> "Iterator[Annotation]":
    """Yield the pairs with the longest passage of each."""
    from lshdup.views.annotations import Annotation, PassageFinder, Place, describe_likeness

    lists, texts = listing.opened.lists, listing.opened.sides.prints.text_prints
    finder = PassageFinder(lists, listing.opened.here.shingle)
    of_bytes = listing.opened.here.shingle.of_bytes
    times = None if listing.times is None else listing.times()
    pairs = (pair for piece in listing.pieces() for pair in zip(*map(list, piece[:2]), strict=True))
    rows = (row for piece in list_rows(listing) for row in zip(*piece, strict=True))
    for pair, row in zip(pairs, rows, strict=True):
        numbers = dict(zip(columns, row, strict=True))
        named = [(int(number), numbers.pop(side)) for number, side in zip(pair, "ab", strict=True)]
        # The annotated document is the newer one; of two that may be, the second one.
        if times is None or times[pair[1]] >= times[pair[0]]:
            named.reverse()
        (here, here_name), (other, other_name) = named
        found = None if of_bytes else finder.find(here, other)
        lines = (None, None) if found is None else (found.a, found.b)
        yield Annotation(
            Place(here_name, _path(lists, here), lines[0]),
            Place(other_name, _path(lists, other), lines[1]),
            numbers,
            describe_likeness(numbers),
            "" if found is None else found.text,
            0 if found is None else found.tokens,
            "-".join(sorted(f"{int(texts[each]):016x}" for each in pair)),
        )


def _path(lists: Sequence[DocumentList], document: int) -> bytes:
    """Return the file of a document from the top folder of its repository.

    In no repository, the path is as typed from the current folder.
    """
    documents, number = find_in_lists(lists, document)
    path = documents.typed_files_of(np.array([number]))[0]
    folder, name = os.path.split(path)
    folder = os.path.realpath(folder or b".")
    # A repository within the one of the current folder is a part of that one.
    for start in (os.path.realpath(b"."), folder):
        top = find_repository(start)
        if top is not None and os.path.commonpath([top, folder]) == top:
            return os.path.relpath(os.path.join(folder, name), top)  # noqa: PTH118 (bytes path)
    return path


class Gate:
    """What the options of a gate let through.

    path : the baseline. since : of --changed-since. updates : whether the baseline is written.

    Errors: ParameterError for a file that is no baseline; InputError for a baseline that cannot be
    read, or not be written.
    """

    def __init__(self, path: Path | None, since: str | None, *, updates: bool) -> None:
        self._path, self._updates = path, updates
        self._since, self._changes = since, Changes(since) if since is not None else None
        self._known: Accepted | None = None
        if path is not None and updates:
            check_writable(path)
        if path is not None and (path.exists() or not updates):
            self._known = load_accepted(path, "--baseline", repair=updates)

    def accept(self, documents: DocumentList, _read: bool) -> tuple[()]:
        """Raise before the work if git cannot answer."""
        if self._changes is not None and len(documents):
            folder = os.path.dirname(os.path.realpath(documents.path(0)))  # noqa: PTH120 (bytes path)
            self._changes.in_repository(folder)
        return ()

    def select(self, session: Session, listing: Listing) -> Listing:
        """Return the pairs that are let through, and say how many there are.

        With --update-baseline, the baseline is written.
        """
        tests: list[Callable[[Any, Any], Any]] = []
        lists, n, about, after = listing.opened.lists, len(listing.opened.sides.sizes), "", ""
        changed, is_unknown, named = np.zeros((3, n), bool)
        if self._changes is not None:
            changed[: len(lists[0])] = self._changes.find(lists[0])
            tests.append(lambda left, right: changed[left] | changed[right])
            count = count_of(int(changed.sum()), "document")
            about = f"; {count} changed since {self._since}"
        if self._path is not None:
            review, after = self._hold_against(session, self._path, listing)
            tests.append(review.is_new)
            is_unknown = ~review.is_known

        def pieces() -> Iterator[tuple[Any, ...]]:
            for piece in listing.pieces():
                keep = np.logical_and.reduce([test(*piece[:2]) for test in tests])
                if keep.any():
                    yield tuple(column[keep] for column in piece)

        def find_times() -> Any:
            if self._changes is not None:
                return 2 * changed + is_unknown
            ends = np.cumsum([0, *map(len, lists)])
            parts = zip(lists, np.split(is_unknown & named, ends[1:-1]), strict=True)
            return np.concatenate([find_change_times(*part) for part in parts])

        total = 0
        for left, right, *_ in pieces():
            total += len(left)
            named[left] = named[right] = True
        session.console.summarize(
            f"{total:,} of {count_of(listing.total, 'pair')} new{about}{after}"
        )
        return replace(
            listing, total=total, documents=np.flatnonzero(named), pieces=pieces, times=find_times
        )

    def _hold_against(self, session: Session, path: Path, listing: Listing) -> tuple[Review, str]:
        """Hold the pairs against the baseline, and write it if that was requested.

        Returns also what is to be said about it.
        """
        known, shingle = self._known, listing.opened.here.shingle
        if known is None or (self._updates and known.texts != definition_of(shingle)):
            known = Accepted(definition_of(shingle))
        lists, texts = listing.opened.lists, listing.opened.sides.prints.text_prints
        names = names_of(lists, listing.documents, folder_of(path))
        texts = find_prints(session.run, known, path, lists, shingle, texts)
        review = Review(known, texts, listing.documents, names)
        now = review.summarize(listing.pieces())
        gone = known.count_gone(now)
        lines = count_of(gone, "line")
        if not self._updates:
            drop = f"; {lines} of {path} for pairs that are gone: --update-baseline drops them"
            return review, drop if gone else ""
        if session.console.exit_code():
            session.console.warn(f"{path} is not written, because of the error above")
            return review, ""
        now.save(path)
        return review, f"; {path} has all of them now{f', {lines} dropped' if gone else ''}"


# --- other listings of the same comparison ---


def list_unmatched(session: Session, options: FindOptions, target: Target) -> int:
    """Print the documents of DOCS that are near no document of OTHER, and return their number."""
    opened = leave_out_accepted(session, options, open_comparison(session, options))
    console, here = session.console, opened.here
    matches = find_matches(session, opened)
    alone = np.flatnonzero(matches.right < 0)
    if matches.by_estimate:
        matched = f"{count_of(int(matches.estimated.sum()), 'document')} of DOCS near OTHER"
        say_estimates(session, opened, matched, matches.by_estimate)
    likeness = describe_likeness(opened.params.threshold, options.same, options.measure)
    bare = int((here.sizes[alone] == 0).sum())
    console.summarize(
        f"{len(alone):,} of {count_of(len(here.documents), 'document')} of DOCS with no document "
        f"{likeness} in OTHER{f', {bare:,} of them not compared' if bare else ''}"
        f"{', none missed' if matches.is_exact and not console.compared_nothing else ''}"
        f"{console.took('candidates')}"
    )
    there = distinct(matches.right[matches.right >= 0])[0] + len(here.documents)
    warn_of_changed(session, opened, np.concatenate([alone, there]))
    names = ([part] for part in name_documents(here.documents, alone))
    print_pieces(console, target, columns_of("pairs-unmatched"), names, len(alone))
    return len(alone)


def list_histogram(
    session: Session, options: FindOptions, target: Target, plot: Path | None
) -> int:
    """Print the histogram, and draw it with --plot. Return the number of pairs."""
    from lshdup.evaluation.histogram import list_thresholds, make_histogram

    opened, distinct_pairs, pairs = find_pairs(session, options)
    documents, sizes = opened.here.documents, opened.here.sizes
    try:
        order = preference(session.run, documents, sizes, ClusterParams()).order
    except ParameterError:  # The store has not kept the order of many DOCS.
        order = np.arange(len(documents))
    levels, duplicate_of = list_thresholds(opened.params.threshold), opened.sides.duplicate_of
    steps = make_histogram(opened.run, sizes, order, distinct_pairs, duplicate_of, pairs, levels)
    named = [each for step in steps if step.example is not None for each in step.example[:2]]
    warn_of_changes(session, documents, np.unique(np.array(named, np.int64)))
    rows = _steps(steps, documents)
    print_rows(session.console, target, columns_of("pairs-histogram"), rows)
    if plot is not None:
        from lshdup.evaluation.plots import draw_histogram

        draw_histogram(plot, steps)
    return len(pairs)


def _steps(steps: "Sequence[Step]", documents: DocumentList) -> Iterator[tuple[Cell, ...]]:
    for step in steps:
        example: tuple[Cell, ...] = (None, None, None)
        if step.example is not None:
            a, b, similarity = step.example
            example = (similarity, *documents.typed_names(np.array([a, b])))
        yield (step.threshold, step.pairs, step.documents, step.groups, *example)
