"""Rows of passages: where they stand, their text, and the spans that can be cut."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lshdup.base.messages import count_of
from lshdup.base.ragged import ranges
from lshdup.cli.output.target import PIECE_ROWS
from lshdup.cli.printing import DocumentNames
from lshdup.cli.session import Session
from lshdup.compare.passages import Passages
from lshdup.sources.reading import runs as cut_runs
from lshdup.views.places import SCOPES, Places, locate_places, measure_closings
from lshdup.views.repeats import TokenRuns, count_documents
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
        self._session, self._shingle, self._passages = session, found.here.shingle, passages
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
            passages, session = self._passages.take(wanted[part]), self._session
            self._closing[wanted[part]] = measure_closings(
                self._lists, self._shingle, passages, session.run.jobs, session.console.progress
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
        session = self._session
        return locate_places(
            self._lists,
            self._shingle,
            runs.documents,
            runs.first,
            runs.sizes,
            texts,
            None if whole else 4 * _CHARACTERS + 4,
            session.run.jobs,
            session.console.progress,
            behind=behind,
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
        passages = self._passages
        shown = passages.places if most is None else np.minimum(passages.places, most)
        rows, numbers = ranges(passages.starts[:-1], shown), np.repeat(np.arange(len(shown)), shown)
        documents = count_documents(passages)
        cuts = [0, *range(_FIRST, len(rows), _AT_ONCE), len(rows)]
        for start, end in pairwise(cuts):
            some, of = rows[start:end], numbers[start:end]
            runs = TokenRuns(
                passages.documents[some], passages.first[some], passages.tokens[of], of
            )
            leads = some == passages.starts[of]
            places = self.note_lost(self._locate(runs, leads, whole=whole))
            if not whole:
                places.texts.update((at, _first_words(each)) for at, each in places.texts.items())
            for first in range(0, len(some), PIECE_ROWS):
                part = slice(first, first + PIECE_ROWS)
                yield [
                    (of[part] + 1).tolist(),
                    runs.sizes[part].tolist(),
                    passages.places[of[part]].tolist(),
                    documents[of[part]].tolist(),
                    [places.texts.get(at) for at in range(first, first + len(some[part]))],
                    self._names.of(runs.documents[part]).tolist(),
                    *_offsets(places, part),
                    runs.first[part].tolist(),
                    (runs.first + runs.sizes)[part].tolist(),
                    [SCOPES[each] for each in places.scopes[part].tolist()],
                ]

    def spans(self, runs: TokenRuns) -> "Iterator[Piece]":
        """Yield the columns of `passages-spans`."""
        for start in range(0, len(runs), _AT_ONCE):
            some = runs.take(slice(start, start + _AT_ONCE))
            places = self.note_lost(self.locate_to_cut(some))
            for first in range(0, len(some), PIECE_ROWS):
                part = slice(first, first + PIECE_ROWS)
                yield [
                    self._names.of(some.documents[part]).tolist(),
                    *_offsets(places, part),
                    [SCOPES[each] for each in places.scopes[part].tolist()],
                ]

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
            cuts = zip(some.documents.tolist(), places.scopes, places.starts, strict=True)
            yield [
                documents.ids(some.documents),
                documents.typed_files_of(some.documents),
                *_offsets(places, slice(None)),
                [places.texts.get(at) for at in range(len(some))],
                [
                    "the file changed or vanished" if start < 0
                    else "the text is a page" if SCOPES[scope] != "field"
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
        passages = self._passages
        for start in range(0, len(passages), _FIRST):
            part = slice(start, start + _FIRST)
            some = passages.take(np.arange(len(passages))[part])
            leads = some.starts[:-1]
            runs = TokenRuns(some.documents[leads], some.first[leads], some.tokens, leads)
            texts = self.note_lost(self._locate(runs, np.ones(len(leads), bool))).texts
            for at in range(len(leads)):
                if at in texts:
                    yield f"{texts[at]}\n\n".encode()

    def warn_of_lost(self) -> None:
        """Warn of places in documents that could not be read again."""
        if self._lost:
            self._session.console.warn(
                f"{count_of(self._lost, 'place')} could not be located: documents changed or "
                "vanished since; run the command again with DOCS"
            )


def _offsets(places: Places, part: slice) -> "Iterator[list[int | None]]":
    for column in (places.starts, places.ends):
        yield [each if each >= 0 else None for each in column[part].tolist()]


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
