"""Rows of passages: where they stand, their text, and the spans that can be cut."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lshdup.base.messages import count_of
from lshdup.base.ragged import ranges
from lshdup.base.run import Run
from lshdup.cli.output.target import PIECE_ROWS
from lshdup.cli.printing import DocumentNames
from lshdup.cli.session import Session
from lshdup.passages.finding import Passages, TokenRuns
from lshdup.sources.reading import runs as cut_runs
from lshdup.views.places import Places, locate_places, measure_closings
from lshdup.workspace.passages import PassagesFound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lshdup.base.skipped import SkippedFile
    from lshdup.cli.output.target import Piece

#: Places of a passage in the layout for people, and characters of its text where it is not whole.
PLACES, _CHARACTERS = 5, 100

#: Places that are located together: first as many as a terminal shows, then by the memory.
_FIRST, _AT_ONCE = 1 << 12, 1 << 22


class PassageListing:
    """The rows of passages, located when they are needed.

    passages : the passages of `found` that are listed.
    """

    def __init__(self, session: Session, found: PassagesFound, passages: Passages) -> None:
        sides = [found.here, *([found.there] if found.there is not None else [])]
        self._lists = [each.documents for each in sides]
        self._run = Run(
            session.workspace.arrays, session.request.jobs, session.console.progress,
            warn=session.console.warn,
        )  # fmt: skip
        self._shingle, self._passages = found.here.shingle, passages
        self._names = DocumentNames(sum(map(len, self._lists)), self._typed_names)
        self._lost = 0
        self._closing = np.full(len(passages), -1, np.int64)  #: bytes; -1: not known yet

    def _typed_names(self, documents: "NDArray[np.int64]") -> list[bytes]:
        split = len(self._lists[0])
        here, there = documents[documents < split], documents[documents >= split] - split
        names = self._lists[0].typed_names(here)
        return names + (self._lists[1].typed_names(there) if len(there) else [])

    def locate_to_cut(self, runs: TokenRuns, *, texts: bool = False) -> Places:
        """Locate runs of tokens with what closes their passages; see `locate_places`.

        texts : whether to return their texts.
        """
        wanted = np.full(len(runs), texts)
        return self._locate(runs, wanted, behind=self._closing_sizes(runs))

    def _closing_sizes(self, runs: TokenRuns) -> "NDArray[np.int64]":
        """Return the bytes of what closes the passage at the end of each run: int64 array."""
        wanted = np.unique(runs.passages[self._closing[runs.passages] < 0])
        for part in cut_runs(self._passages.places[wanted], len(wanted), _AT_ONCE):
            passages = self._passages.take(wanted[part])
            self._closing[wanted[part]] = measure_closings(
                self._run, self._lists, self._shingle, passages
            )
        return self._closing[runs.passages]

    def _locate(
        self,
        runs: TokenRuns,
        texts: "NDArray[np.bool_]",
        *,
        whole: bool = True,
        behind: "NDArray[np.int64] | None" = None,
    ) -> Places:
        """Locate runs of tokens; see `locate_places`. whole : their texts are not shortened."""
        most = None if whole else 4 * _CHARACTERS + 4
        return locate_places(
            self._run, self._lists, self._shingle, runs, texts, most, behind=behind
        )

    def note_lost(self, places: Places) -> Places:
        """Return places; note how many could not be located, for `warn_of_lost`."""
        self._lost += int((places.starts < 0).sum())
        return places

    def rows(self, *, whole: bool, most: int | None = None) -> "Iterator[Piece]":
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
                yield [
                    (of + 1).tolist(),
                    some.sizes.tolist(),
                    passages.places[of].tolist(),
                    documents[of].tolist(),
                    texts if whole else [text and _first_words(text) for text in texts],
                    self._names.of(some.documents).tolist(),
                    starts,
                    ends,
                    some.first.tolist(),
                    (some.first + some.sizes).tolist(),
                    scopes,
                ]

    def spans(self, runs: TokenRuns) -> "Iterator[Piece]":
        """Yield the columns of `passages-spans`."""
        for start in range(0, len(runs), _AT_ONCE):
            part = runs.take(slice(start, start + _AT_ONCE))
            for some, places in _in_pieces(part, self.note_lost(self.locate_to_cut(part))):
                yield [self._names.of(some.documents).tolist(), *places.columns()]

    def removed(
        self, runs: TokenRuns, uncut: set[int], uncompared: "Sequence[SkippedFile]"
    ) -> "Iterator[Piece]":
        """Yield the columns of REMOVED_PASSAGES, in the order of the files.

        runs : of rows. uncut : documents that were not cut. uncompared : rows that were not read.
        """
        documents = self._lists[0]
        locations = documents.locations
        assert locations is not None
        starts, file = locations.starts[runs.documents], locations.file[runs.documents]
        runs = runs.take(np.lexsort((runs.first, starts, file)))
        for part in cut_runs(runs.sizes, PIECE_ROWS, _AT_ONCE):
            some = runs.take(part)
            places = self.locate_to_cut(some, texts=True)
            begins, ends, scopes = places.columns()
            cuts = zip(some.documents.tolist(), scopes, begins, strict=True)
            yield [
                documents.ids(some.documents),
                documents.typed_files_of(some.documents),
                begins,
                ends,
                places.texts.tolist(),
                [
                    "the file changed or vanished" if start is None
                    else "the text is a page" if scope != "field"
                    else "the field is not where it can be cut" if document in uncut
                    else None
                    for document, scope, start in cuts
                ],
            ]  # fmt: skip
        more, n = documents.with_records(uncompared), len(uncompared)
        rows = np.arange(len(documents), len(documents) + n)
        why = ["the row has the id of another"] * n
        yield [more.ids(rows), more.typed_files_of(rows), *[[None] * n] * 3, why]

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
