"""The listing of passages: where they stand, their text, and what is cut."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import ranges
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, SkippedFile
from lshdup.base.wording import chance, count_of
from lshdup.cli import layouts, messages, removal
from lshdup.cli.columns import columns_of
from lshdup.cli.options import PassagesOptions
from lshdup.cli.output import PIECE_ROWS, DocumentNames, Piece, Target, print_pieces
from lshdup.cli.session import Session
from lshdup.collection.keep_rules import preference
from lshdup.compare.scored_pairs import unpack_pairs
from lshdup.passages.anchors import plan_anchors
from lshdup.passages.cutting import write_cut
from lshdup.passages.finding import Passages, TokenRuns, find_repeats
from lshdup.sources.document_list import DocumentList, names_of
from lshdup.sources.text_batches import cut_by_size
from lshdup.views.places import SCOPES, Places, locate_places, measure_edges
from lshdup.workspace.passages import PassagesFound, find_sharing_documents, load_or_find_passages
from lshdup.workspace.removals import refuse_nothing

#: Places of a passage in the layout for people, and characters of its text where it is not whole.
_PLACES, _CHARACTERS = 5, 100

#: Places that are located together: first as many as a terminal shows, then by the memory.
_FIRST, _AT_ONCE = 1 << 12, 1 << 22


class PassageListing:
    """The rows of passages, located when they are needed.

    passages : the passages of `found` that are listed.
    """

    def __init__(self, run: Run, found: PassagesFound[Passages], passages: Passages) -> None:
        self._lists, self._names = _names_of(found)
        self._run = run
        self._shingle, self._passages = found.here.shingle, passages
        self._lost = 0
        #: Bytes of what opens and closes each passage; -1: not known yet.
        self._edges = np.full((2, len(passages)), -1, np.int64)

    def locate_to_cut(self, runs: TokenRuns, *, texts: bool = False) -> Places:
        """Locate runs of tokens with what opens and closes their passages; see `locate_places`.

        texts : whether to return their texts.
        """
        wanted = np.full(len(runs), texts)
        return self._locate(runs, wanted, around=self._sizes_around(runs))

    def _sizes_around(self, runs: TokenRuns) -> NDArray[np.int64]:
        """Return the bytes of what opens the passage at the beginning of each run, and of what
        closes the one at its end: int64 array of shape (2, n).
        """
        wanted = np.unique(np.append(runs.passages, runs.beginnings))
        wanted = wanted[self._edges[0, wanted] < 0]
        for part in cut_by_size(self._passages.places[wanted], len(wanted), _AT_ONCE):
            passages = self._passages.take(wanted[part])
            self._edges[:, wanted[part]] = measure_edges(
                self._run, self._lists, self._shingle, passages
            )
        return np.stack([self._edges[0, runs.beginnings], self._edges[1, runs.passages]])

    def _locate(
        self,
        runs: TokenRuns,
        texts: NDArray[np.bool_],
        *,
        whole: bool = True,
        around: NDArray[np.int64] | None = None,
    ) -> Places:
        """Locate runs of tokens; see `locate_places`. whole : their texts are not shortened."""
        most = None if whole else 4 * _CHARACTERS + 4
        return locate_places(
            self._run, self._lists, self._shingle, runs, texts, most, around=around
        )

    def note_lost(self, places: Places) -> Places:
        """Return places; note how many could not be located, for `warn_of_lost`."""
        self._lost += int((places.starts < 0).sum())
        return places

    def rows(self, *, whole: bool, most: int | None = None) -> Iterator[Piece]:
        """Yield the columns of `passages`.

        whole : whether texts are whole; else they are the first words.
        most : places of a passage that are listed; None: all.
        """
        passages, documents = self._passages, self._passages.count_documents()
        shown = passages.places if most is None else np.minimum(passages.places, most)
        rows = ranges(passages.starts[:-1], shown)
        for start, end in pairwise([0, *range(_FIRST, len(rows), _AT_ONCE), len(rows)]):
            runs = passages.runs_at(rows[start:end])
            leads = rows[start:end] == passages.starts[runs.passages]
            located = self.note_lost(self._locate(runs, leads, whole=whole))
            for some, places in _in_pieces(runs, located):
                of, texts = some.passages, places.texts.tolist()
                starts, ends, scopes = places.columns()
                texts = texts if whole else [text and _first_words(text) for text in texts]
                numbers = of + 1, some.sizes, passages.places[of], documents[of]
                tokens = some.first.tolist(), (some.first + some.sizes).tolist()
                names = self._names.of(some.documents).tolist()
                yield [*(x.tolist() for x in numbers), texts, names, starts, ends, *tokens, scopes]

    def spans(self, runs: TokenRuns) -> Iterator[Piece]:
        """Yield the columns of `passages-spans`."""
        for start in range(0, len(runs), _AT_ONCE):
            part = runs.take(slice(start, start + _AT_ONCE))
            for some, places in _in_pieces(part, self.note_lost(self.locate_to_cut(part))):
                yield [self._names.of(some.documents).tolist(), *places.columns()]

    def removed(
        self, runs: TokenRuns, uncut: set[int], uncompared: Sequence[SkippedFile]
    ) -> Iterator[Piece]:
        """Yield the columns of REMOVED_PASSAGES, in the order of the files.

        runs : of rows. uncut : documents that were not cut. uncompared : rows that were not read.
        """
        documents = self._lists[0]
        locations = documents.locations
        starts, file = locations.starts[runs.documents], locations.file[runs.documents]
        runs = runs.take(np.lexsort((runs.first, starts, file)))
        for part in cut_by_size(runs.sizes, PIECE_ROWS, _AT_ONCE):
            some = runs.take(part)
            places = self.locate_to_cut(some, texts=True)
            begins, ends, scopes = places.columns()
            cuts = zip(some.documents.tolist(), scopes, begins, strict=True)
            ids, files = documents.ids(some.documents), documents.typed_files_of(some.documents)
            why = [
                "the file changed or vanished" if start is None
                else "the text is a page" if scope != "field"
                else "the field is not where it can be cut" if document in uncut
                else None
                for document, scope, start in cuts
            ]  # fmt: skip
            yield [ids, files, begins, ends, places.texts.tolist(), why]
        more, n = documents.with_records(uncompared), len(uncompared)
        rows = np.arange(len(documents), len(documents) + n)
        again = ["the row has the id of another"] * n
        yield [more.ids(rows), more.typed_files_of(rows), *[[None] * n] * 3, again]

    def template(self) -> Iterator[bytes]:
        """Yield the text of each passage, with blank lines between."""
        leads = self._passages.starts[:-1]
        for start in range(0, len(leads), _FIRST):
            runs = self._passages.runs_at(leads[start : start + _FIRST])
            places = self.note_lost(self._locate(runs, np.ones(len(runs), bool)))
            yield from (f"{text}\n\n".encode() for text in places.texts if text is not None)

    def warn_of_lost(self) -> None:
        """Warn of places in documents that could not be read again."""
        if self._lost:
            self._run.warn(
                f"{count_of(self._lost, 'place')} could not be located: documents changed or "
                "vanished since; run the command again with DOCS"
            )


def print_passages(
    ctx: click.Context, session: Session, options: PassagesOptions, target: Target
) -> int:
    """Print passages, write rows without their repeats, and return the exit code."""
    console, request, rule = session.console, session.request, options.make_rule()
    found = load_or_find_passages(
        session.workspace, request, options.make_params(), options.against, options.across
    )
    messages.check_origins(console, found.origins)
    passages = found.passages
    if options.in_documents > 1:
        is_in_enough = passages.count_documents() >= options.in_documents
        passages = passages.take(np.flatnonzero(is_in_enough))
    split = len(found.here.documents) if found.there is not None else None
    run = session.workspace
    preferred = preference(run, found.here.documents, found.here.sizes, rule, request.documents)
    repeats = find_repeats(passages, preferred.order, split, found.origins)
    line = _describe(found, passages, repeats, options.least)
    _say(session, found, passages.documents, options.least, line)
    listing = PassageListing(run, found, passages)
    if options.write is not None:
        _write(session, found, listing, repeats, options)
    if removal.prints_listing(ctx, options):
        if options.emit == "template":
            target.write_raw(listing.template())
        elif options.emit == "spans":
            columns = columns_of("passages-spans")
            print_pieces(console, target, columns, listing.spans(repeats), len(repeats))
        else:
            layout = None if target.header else layouts.passages
            most = _PLACES if layout and target.style == "table" else None
            total = int(np.minimum(passages.places, most or len(passages.documents)).sum())
            rows = listing.rows(whole=target.style not in ("table", "tsv"), most=most)
            print_pieces(console, target, columns_of("passages"), rows, total, layout)
    listing.warn_of_lost()
    return console.exit_code(len(passages))


def print_pairs(session: Session, options: PassagesOptions, target: Target) -> int:
    """Print the pairs of documents that share passages, and return the exit code."""
    console, sides = session.console, (options.against, options.across)
    wanted = options.make_params()
    found = find_sharing_documents(
        session.workspace, session.request, wanted, options.threshold, *sides
    )
    messages.check_origins(console, found.origins)
    pairs, (_, names) = found.passages, _names_of(found)
    line = f"{count_of(len(pairs), 'pair')} with passages of {wanted.least:,} tokens or more"
    if options.threshold:
        line += f", which are {options.threshold:.12g} of one document or more"
    _say(session, found, np.concatenate(unpack_pairs(pairs.pairs)), wanted.least, line)
    if pairs.most_common and not wanted.gap:
        console.say(
            f"what stands in more than {count_of(wanted.max_documents, 'document')}, or in twice "
            "as many places, is not counted, but in longer passages: one text of "
            f"{plan_anchors(wanted)[0]:,} tokens or more has {pairs.most_common:,} places; "
            "a larger --max-documents counts more"
        )

    def rows() -> Iterator[Piece]:
        for start in range(0, len(pairs), PIECE_ROWS):
            some = slice(start, start + PIECE_ROWS)
            sides = (names.of(each) for each in unpack_pairs(pairs.pairs[some]))
            tokens = np.minimum(pairs.left_tokens[some], pairs.right_tokens[some])
            numbers = tokens, *pairs.shares(some), pairs.longest[some], pairs.passages[some]
            yield [each.tolist() for each in (*sides, *numbers)]

    print_pieces(console, target, columns_of("passages-pairs"), rows(), len(pairs))
    return console.exit_code(len(pairs))


def _names_of(found: PassagesFound[Any]) -> tuple[list[DocumentList], DocumentNames]:
    """Return the lists of the documents of both sides, and the names of these documents."""
    lists = [each.documents for each in (found.here, found.there) if each is not None]
    return lists, DocumentNames(sum(map(len, lists)), partial(names_of, lists))


def _say(
    session: Session, found: PassagesFound[Any], named: NDArray[Any], least: int, line: str
) -> None:
    """Say what was read, and what was found.

    named : integer array, the documents that are printed. line : what was found.
    """
    console = session.console
    if not session.request.documents:
        messages.say_last_run(console, found.here)
    messages.say_collection(
        session, found.here, 1, "" if found.there is None else " of DOCS", "token"
    )
    named = np.unique(named).astype(np.int64)
    if found.there is not None:
        console.say(f"against {count_of(len(found.there.documents), 'document')} of OTHER")
        messages.say_skipped(console, console.other_skipped_counts, " of OTHER")
        named = named[named < len(found.here.documents)]
        sizes = found.there.sizes
        short = int(((sizes > 0) & (sizes < least)).sum())
        if short:
            console.warn(
                f"{short:,} of {count_of(len(sizes), 'document')} of OTHER have fewer than "
                f"{least:,} tokens (--least) and cannot be found; a smaller --least finds them"
            )
    messages.warn_of_changes(session, found.here.documents, named)
    console.summarize(f"{line}{console.took('passages')}")


def _describe(
    found: PassagesFound[Passages], passages: Passages, repeats: TokenRuns, least: int
) -> str:
    """Return how many passages there are, and how much of the documents is repeated."""
    total, repeated = int(found.here.sizes.sum()), int(repeats.sizes.sum())
    line = f"{count_of(len(passages), 'passage')} of {least:,} tokens or more"
    if len(passages):
        places = count_of(len(passages.documents), "place")
        what = "repeats" if found.there is None else "in OTHER too"
        line += f", in {places}; {chance(repeated / total)} of all tokens are {what}"
    return line


def _write(
    session: Session,
    found: PassagesFound[Passages],
    listing: PassageListing,
    repeats: TokenRuns,
    options: PassagesOptions,
) -> None:
    """Write the rows without repeats, and say how much was cut."""
    console, here = session.console, found.here
    skipped = here.list_skipped_records()
    compared = int((here.sizes > 0).sum())
    refuse_nothing(compared, here)
    places = listing.note_lost(listing.locate_to_cut(repeats))
    can = (places.scopes == SCOPES.index("field")) & (places.starts >= 0)
    starts, ends = places.starts[can], places.ends[can]
    cut = here.documents, repeats.documents[can], starts, ends
    assert options.write is not None
    paths, uncut = write_cut(Run(session.run.arrays), *cut, options.write, removal.open_target)
    removal.say_written(console, paths, options.write)
    is_cut = can & ~np.isin(repeats.documents, list(uncut))
    rows = len(np.unique(repeats.documents[is_cut]))
    again = [each for each in skipped if each.skipped.reason in (Reason.REPEATED, Reason.COPY)]
    removed = listing.removed(repeats, uncut, again)
    columns = columns_of("passages-removed")
    listed = count_of(len(repeats) + len(again), "repeat")
    removal.list_removed(console, options, columns, removed, listed)
    console.say(
        f"cut: {count_of(int(repeats.sizes[is_cut].sum()), 'token')}, "
        f"{int((places.ends - places.starts)[is_cut].sum()):,} bytes, from {count_of(rows, 'row')}"
    )
    left = len(np.unique(repeats.documents[~is_cut]))
    if left:
        one = "row with repeats is not cut: its text is a page"
        more = "rows with repeats are not cut: their texts are pages"
        console.warn(f"{count_of(left, one, more)}, or not where they can be cut")
    if again:
        one, more = "row with the id of another is", "rows with the ids of others are"
        console.warn(f"{count_of(len(again), one, more)} not cut; leave --id-field out to cut all")


def _in_pieces(runs: TokenRuns, places: Places) -> Iterator[tuple[TokenRuns, Places]]:
    """Yield runs and their places, as many at a time as are printed together."""
    for first in range(0, len(runs), PIECE_ROWS):
        part = slice(first, first + PIECE_ROWS)
        yield runs.take(part), places.take(part)


def _first_words(text: str) -> str:
    """Return the beginning of a text in one line.

    >>> [len(_first_words("two " + "x" * (n - 4))) for n in (_CHARACTERS, _CHARACTERS + 1)]
    [100, 5]
    """
    line = " ".join(text.split())
    if len(line) <= _CHARACTERS:
        return line
    line = line[:_CHARACTERS]
    return f"{line.rpartition(' ')[0] or line} …"
