"""Where runs of tokens stand in documents: token numbers -> bytes, and the text there."""

import threading
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from os.path import commonprefix
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.forms import visible_text
from lshdup.base.frozen import dataclass
from lshdup.base.memory import Buffer
from lshdup.base.params import ShingleParams
from lshdup.base.ragged import distinct, offsets_of, ranges
from lshdup.base.run import Run
from lshdup.passages.finding import Passages, TokenRuns
from lshdup.shingling.inspection import RunLocator, locate_tokens
from lshdup.shingling.shingler import decode_batch
from lshdup.sources.document_list import DocumentList, split_by_list
from lshdup.sources.records import Kind
from lshdup.sources.text_batches import batches, read_batch
from lshdup.text.decoding import Text, find_offsets
from lshdup.text.text_batch import TextBatch

I64 = NDArray[np.int64]

#: What offsets count bytes of: the text that was extracted, for instance the visible text of a
#: page, as UTF-8; the document as it is stored; the text field of a row.
SCOPES = ("text", "bytes", "field")


#: Categories of closing punctuation, and the marks of these that also open or stand alone; and of
#: opening punctuation, and marks that open as well.
_CLOSING, _NOT_CLOSING = ("Pe", "Pf", "Po"), "\"'#%&*/@\\¡¿§¶†‡"
_OPENING, _ALSO_OPENING = ("Ps", "Pi"), "¡¿"


#: Bytes of the longest character.
_MOST_BYTES = 4


@dataclass(frozen=True)
class Places:
    """Where n runs of tokens stand.

    starts, ends : int64 arrays of shape (n,), first byte, and the byte behind the last one; -1
        where the document cannot be read any more, or has fewer tokens now.
    scopes : uint8 array of shape (n,), what these are bytes of, as positions in SCOPES.
    texts : object array of shape (n,), the texts of some runs; else None.
    edges : what `opening_characters` and `closing_characters` find around runs, by position, if
        there is any.
    """

    starts: I64
    ends: I64
    scopes: NDArray[np.uint8]
    texts: NDArray[Any]
    edges: dict[int, tuple[str, str]]

    def take(self, part: slice) -> "Places":
        """Return some of the places, without edges."""
        starts, ends = self.starts[part], self.ends[part]
        return Places(starts, ends, self.scopes[part], self.texts[part], {})

    def columns(self) -> tuple[list[int | None], list[int | None], list[str]]:
        """Return starts and ends, None where they are not known, and what they are bytes of."""
        starts, ends = (
            [each if each >= 0 else None for each in column.tolist()]
            for column in (self.starts, self.ends)
        )
        return starts, ends, [SCOPES[each] for each in self.scopes.tolist()]


def locate_places(
    run: Run,
    lists: Sequence[DocumentList],
    params: ShingleParams,
    runs: TokenRuns,
    texts: NDArray[np.bool_],
    most: int | None = None,
    *,
    around: I64 | None = None,
    edges: bool = False,
) -> Places:
    """Locate runs of tokens. Every document is read once.

    Parameters
    ----------
    run : its progress is notified ("places", documents read, documents in all).
    lists : the documents, numbered from the first list to the last.
    params : how documents are cut into tokens.
    runs : n runs of tokens.
    texts : bool array of shape (n,), the runs whose texts are wanted.
    most : bytes of each text from its beginning; None: all.
    around : int64 array of shape (2, n), bytes of opening characters before each run, and of
        closing ones behind it, that belong to its place, unless a word ends before these, which
        would be joined with the next one. The runs are to be cut then: without characters that are
        also of a token beside them, as the second token of ½ is of its first one. None: they are
        not.
    edges : whether to return the opening and closing characters around the runs.

    Memory: 25 bytes a run, the texts, and about 40 bytes a token of a document on each thread.

    """
    from concurrent.futures import ThreadPoolExecutor  # Imported here to keep `query` fast.

    n = len(runs)
    starts, ends = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    found = Places(starts, ends, np.zeros(n, np.uint8), np.full(n, None, object), {})
    order = np.argsort(runs.documents, kind="stable")
    numbers, counts = distinct(runs.documents)
    cuts = offsets_of(counts)[:-1]
    own = threading.local()

    def work(documents: DocumentList, base: int, indices: I64) -> int:
        if not hasattr(own, "placer"):
            locator = RunLocator(params)
            own.placer = _Placer(found, locator, params, runs, texts, most, around, edges)
            own.buffer = Buffer()
        batch = read_batch(documents, indices, own.buffer)
        at = np.searchsorted(numbers, base + batch.indices)
        of_batch = order[ranges(cuts[at], counts[at])]
        own.placer.place(batch, of_batch, offsets_of(counts[at]), documents)
        return len(indices)

    tasks = [
        (documents, base, some)
        for documents, base, mine in split_by_list(lists, numbers)
        for some in batches(run, documents, mine)
    ]
    done = 0
    with ThreadPoolExecutor(run.jobs) as pool:
        for read in pool.map(work, *zip(*tasks, strict=True)):
            done += read
            run.progress("places", done, len(numbers))
    return found


@dataclass(frozen=True)
class _Placer:
    """Locates the runs of batches of documents on one thread. Parameters : as of `locate_places`.

    found : where the places are noted.
    """

    found: Places
    locator: RunLocator
    params: ShingleParams
    runs: TokenRuns
    texts: NDArray[np.bool_]
    most: int | None
    around: I64 | None
    edges: bool

    def place(self, batch: TextBatch, some: I64, bounds: I64, documents: DocumentList) -> None:
        """Locate some of the runs, those of a batch.

        bounds : the runs of document d are bounds[d] … bounds[d + 1] - 1.
        documents : the list that the batch is of.
        """
        is_section = (documents.kinds_of(batch.indices[:1]) >= Kind.SECTION).any()
        scope = SCOPES.index("field" if batch.is_text and not is_section else "bytes")
        is_plain = self._place_plain(batch, some, bounds, scope)
        others = np.flatnonzero(~is_plain).tolist()
        for at, text in decode_batch(batch, others, self.params, documents.formats):
            of_text = some[bounds[at] : bounds[at + 1]]
            self._place_decoded(batch.content(at), text, of_text, scope)

    def _place_plain(
        self, batch: TextBatch, some: I64, bounds: I64, scope: int
    ) -> NDArray[np.bool_]:
        """Locate the runs of documents that are plain text, and return which ones are."""
        first, sizes, to_cut = self.runs.first[some], self.runs.sizes[some], self.around is not None
        starts, ends, is_plain = self.locator.locate(batch, bounds, first, sizes, alone=to_cut)
        of = np.repeat(np.arange(len(batch.starts)), np.diff(bounds))
        nexts, lasts = np.full((2, len(starts)), -1, np.int64)
        if self.edges:
            beside = first + sizes, np.maximum(first - 1, 0)
            one = np.ones_like(first)
            nexts = self.locator.locate(batch, bounds, beside[0], one, alone=False)[0]
            lasts = self.locator.locate(batch, bounds, beside[1], one, alone=False)[1]
        nexts = np.where(nexts < 0, batch.lengths[of], nexts)
        lasts = np.where(first == 0, 0, np.maximum(lasts, 0))
        there = np.flatnonzero(starts >= 0)
        bases, some = batch.starts[of[there]], some[there]
        starts, ends = bases + starts[there], bases + ends[there]
        beside = bases + lasts[there], bases + nexts[there]
        starts, ends = self._note(some, batch.text, bases, starts, ends, *beside)
        self._keep(some, starts - bases, ends - bases, scope)
        return is_plain

    def _place_decoded(self, raw: bytes, text: Text, some: I64, scope: int) -> None:
        """Locate the runs of one document. raw : its bytes, of which `scope` says what they are."""
        located = locate_tokens(text.utf8, self.params)
        some = some[self.runs.first[some] + self.runs.sizes[some] <= len(located.starts)]
        first, last = self.runs.first[some], self.runs.first[some] + self.runs.sizes[some] - 1
        starts, ends = located.starts[first], located.ends[last]
        nexts, lasts = np.append(located.starts, len(located.text)), np.append(0, located.ends)
        nexts, lasts = nexts[last + 1], lasts[first]
        if self.around is not None:
            starts = np.maximum(starts, lasts)
            ends = np.maximum(starts, np.minimum(ends, nexts))
        shown = np.frombuffer(text.utf8, np.uint8)
        starts, ends = self._note(some, shown, np.zeros_like(starts), starts, ends, lasts, nexts)
        offsets = find_offsets(raw, text, np.concatenate([starts, ends]))
        if offsets is not None:
            starts, ends = np.split(offsets, 2)
        self._keep(some, starts, ends, SCOPES.index("text") if offsets is None else scope)

    def _note(
        self,
        some: I64,
        text: NDArray[np.uint8],
        bases: I64,
        starts: I64,
        ends: I64,
        lasts: I64,
        nexts: I64,
    ) -> tuple[I64, I64]:
        """Note the texts and edges of runs; return their starts and ends with what is cut too.

        bases, starts, ends, lasts, nexts : int64 arrays of shape (n,), where the document of each
            run, the run, what is behind it, what is behind the token before it, and the next token
            begin in `text`.
        """
        for at in range(len(ends)) if self.edges else ():
            opening = opening_characters(_decode(text[lasts[at] : starts[at]], "replace"))
            closing = closing_characters(_decode(text[ends[at] : nexts[at]], "replace"))
            if opening or closing:
                self.found.edges[int(some[at])] = opening, closing
        starts, ends = starts.copy(), ends.copy()
        if self.around is not None:
            befores, behinds = self.around[:, some]
            for at in np.flatnonzero((behinds > 0) | (befores > 0)).tolist():
                start = starts[at] - befores[at]
                before = text[max(start - _MOST_BYTES, bases[at]) : start]
                if not _ends_in_word(_decode(before, "ignore")):
                    starts[at], ends[at] = start, ends[at] + behinds[at]
        for at in np.flatnonzero(self.texts[some]).tolist():
            end = ends[at] if self.most is None else min(ends[at], starts[at] + self.most)
            words = visible_text(text[starts[at] : end].tobytes())
            self.found.texts[some[at]] = words.decode("utf-8", "ignore")
        return starts, ends

    def _keep(self, some: I64, starts: I64, ends: I64, scope: int) -> None:
        """Keep the places of runs."""
        self.found.starts[some], self.found.ends[some] = starts, ends
        self.found.scopes[some] = scope


def measure_edges(
    run: Run, lists: Sequence[DocumentList], params: ShingleParams, passages: Passages
) -> I64:
    """Return the bytes of what opens and of what closes each passage: int64 array of shape (2, p).

    These are the opening characters that stand before it in all its places alike, and the closing
    ones behind it, up to the next token or the end of the text, as UTF-8. Parameters : as of
    `locate_places`.
    """
    runs = passages.runs_at(np.arange(len(passages.documents)))
    wanted = np.zeros(len(runs), bool)
    found = locate_places(run, lists, params, runs, wanted, edges=True).edges
    sizes = np.zeros((2, len(passages)), np.int64)
    for at, (start, end) in enumerate(pairwise(passages.starts.tolist())):
        texts = [found.get(place, ("", "")) for place in range(start, end)]
        opening = commonprefix([each[::-1] for each, _ in texts])[::-1].lstrip()  # noqa: RUF071 (texts, not paths)
        closing = commonprefix([each for _, each in texts])  # noqa: RUF071 (texts, not paths)
        sizes[:, at] = len(opening.encode()), len(closing.encode())
    return sizes


def _decode(text: NDArray[np.uint8], errors: str) -> str:
    return text.tobytes().decode("utf-8", errors)


def _ends_in_word(text: str) -> bool:
    """Return whether the last character of a text is of a word."""
    last = text[-1:]
    return last.isalnum() or last == "_" or (last > "" and unicodedata.category(last)[0] == "M")


def opening_characters(text: str) -> str:
    r"""Return the opening punctuation that a text ends with, and white space within and behind it.

    Opening is the punctuation of Unicode's categories Ps and Pi, and ¡ and ¿.

    >>> opening_characters('see: („ '), opening_characters(') ¿'), opening_characters('a ')
    ('(„ ', '¿', '')
    """
    start = len(text)
    for at in range(len(text) - 1, -1, -1):
        if unicodedata.category(text[at]) in _OPENING or text[at] in _ALSO_OPENING:
            start = at
        elif not text[at].isspace():
            break
    return text[start:]


def closing_characters(text: str) -> str:
    r"""Return the white space and closing punctuation that a text begins with.

    Closing are the punctuation of Unicode's categories Pe, Pf and Po, but for marks that also open
    or stand alone.

    >>> closing_characters('.”\n(see'), closing_characters('?! "Yes"'), closing_characters('*')
    ('.”\n', '?! ', '')
    """
    for at, character in enumerate(text):
        if not character.isspace() and (
            unicodedata.category(character) not in _CLOSING or character in _NOT_CLOSING
        ):
            return text[:at]
    return text
