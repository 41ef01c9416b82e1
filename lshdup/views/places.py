"""Where runs of tokens stand in documents: token numbers -> bytes, and the text there."""

import threading
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from os.path import commonprefix
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.parallel import Progress, no_progress
from lshdup.base.ragged import distinct, offsets_of, ranges
from lshdup.params import ShingleParams
from lshdup.passages.finding import Passages
from lshdup.shingling.inspection import locate_tokens
from lshdup.shingling.plain_texts import decode_batch
from lshdup.shingling.run_locator import RunLocator
from lshdup.sources.document_list import DocumentList
from lshdup.sources.files import Buffer
from lshdup.sources.reading import TextBatch, batches, read_batch
from lshdup.text.decoding import Text
from lshdup.text.offsets import find_offsets

I64 = NDArray[np.int64]

#: What offsets count bytes of: the text that was extracted, for instance the visible text of a
#: page, as UTF-8; the document as it is stored; the text field of a row.
SCOPES = ("text", "bytes", "field")


#: Categories of closing punctuation, and the marks of these that also open or stand alone.
_CLOSING, _NOT_CLOSING = ("Pe", "Pf", "Po"), "\"'#%&*/@\\¡¿§¶†‡"


#: Bytes of the longest character.
_MOST_BYTES = 4


@dataclass(frozen=True)
class Places:
    """Where n runs of tokens stand.

    starts, ends : int64 arrays of shape (n,), first byte, and the byte behind the last one; -1
        where the document cannot be read any more, or has fewer tokens now.
    scopes : uint8 array of shape (n,), what these are bytes of, as positions in SCOPES.
    texts : texts of some runs, by position.
    closings : what `closing_characters` finds behind runs, by position, if it is not empty.
    """

    starts: I64
    ends: I64
    scopes: NDArray[np.uint8]
    texts: dict[int, str]
    closings: dict[int, str]


class _Runs(NamedTuple):
    """Runs of tokens of documents: their numbers, and columns as of `locate_places`."""

    numbers: I64
    first: I64
    sizes: I64
    texts: NDArray[np.bool_]
    behind: I64

    def take(self, some: slice | I64) -> "_Runs":
        """Return some of the runs."""
        columns: tuple[Any, ...] = self
        return _Runs(*(column[some] for column in columns))


def locate_places(
    lists: Sequence[DocumentList],
    params: ShingleParams,
    documents: I64,
    first: I64,
    sizes: I64,
    texts: NDArray[np.bool_],
    most: int | None = None,
    jobs: int = 1,
    progress: Progress = no_progress,
    *,
    behind: I64 | None = None,
    closings: bool = False,
) -> Places:
    """Locate runs of tokens. Every document is read once.

    Parameters
    ----------
    lists : the documents, numbered from the first list to the last.
    params : how documents are cut into tokens.
    documents, first, sizes : int64 arrays of shape (n,), document, number of the first token, and
        number of tokens.
    texts : bool array of shape (n,), the runs whose texts are wanted.
    most : bytes of each text from its beginning; None: all.
    jobs : threads.
    progress : notified ("places", documents read, documents in all).
    behind : int64 array of shape (n,), bytes of closing characters behind each run that belong to
        its place, unless a word ends where the run begins, which would be joined with the next one.
        The runs are to be cut then: without characters that are also of a token beside them, as
        the second token of ½ is of its first one. None: they are not.
    closings : whether to return the closing characters behind the runs.

    Memory: 17 bytes a run, the texts, and about 40 bytes a token of a document on each thread.

    """
    from concurrent.futures import ThreadPoolExecutor  # Imported here to keep `query` fast.

    found = Places(
        np.full(len(documents), -1, np.int64),
        np.full(len(documents), -1, np.int64),
        np.zeros(len(documents), np.uint8),
        {},
        {},
    )
    extents = np.zeros(len(documents), np.int64) if behind is None else behind
    every = _Runs(np.arange(len(documents)), first, sizes, texts, extents)
    order = np.argsort(documents, kind="stable")
    numbers, counts = distinct(documents)
    cuts = offsets_of(counts)[:-1]
    bases = offsets_of(np.array([len(each) for each in lists], np.int64))
    own = threading.local()

    def work(task: tuple[int, I64]) -> int:
        side, indices = task
        if not hasattr(own, "locator"):
            own.locator, own.buffer = RunLocator(params), Buffer()
        batch = read_batch(lists[side], indices, own.buffer)
        at = np.searchsorted(numbers, bases[side] + batch.indices)
        mine, bounds = order[ranges(cuts[at], counts[at])], offsets_of(counts[at])
        runs, to_cut = every.take(mine), behind is not None
        is_plain = _place_plain(found, own.locator, batch, runs, bounds, most, to_cut, closings)
        scope = SCOPES.index("field" if batch.is_text else "bytes")
        others = np.flatnonzero(~is_plain).tolist()
        for each, text in decode_batch(batch, others, params, lists[side].formats):
            some = runs.take(slice(bounds[each], bounds[each + 1]))
            content = batch.content(each)
            _place(found, some, most, content, text, scope, params, to_cut, closings)
        return len(indices)

    tasks = [
        (side, indices)
        for side, each in enumerate(lists)
        for indices in batches(each, _of_side(numbers, bases, side), jobs)
    ]
    done = 0
    with ThreadPoolExecutor(jobs) as pool:
        for read in pool.map(work, tasks):
            done += read
            progress("places", done, len(numbers))
    return found


def measure_closings(
    lists: Sequence[DocumentList],
    params: ShingleParams,
    passages: Passages,
    jobs: int,
    progress: Progress,
) -> I64:
    """Return the bytes of what closes each passage: int64 array of shape (p,).

    These are the closing characters that follow it in all its places alike, up to the next token
    or the end of the text, as UTF-8. Parameters : as of `locate_places`.
    """
    tokens = np.repeat(passages.tokens, passages.places)
    columns = passages.documents, passages.first, tokens, np.zeros(len(tokens), bool)
    found = locate_places(lists, params, *columns, None, jobs, progress, closings=True).closings
    sizes = np.zeros(len(passages), np.int64)
    for at, (start, end) in enumerate(pairwise(passages.starts.tolist())):
        texts = [found.get(place, "") for place in range(start, end)]
        sizes[at] = len(commonprefix(texts).encode())  # noqa: RUF071 (texts, not paths)
    return sizes


def _of_side(numbers: I64, bases: I64, side: int) -> I64:
    """Return the documents of a list, by their own numbers."""
    start, end = bases[side : side + 2].tolist()
    mine: I64 = numbers[(numbers >= start) & (numbers < end)] - start
    return mine


def _place_plain(
    found: Places,
    locator: RunLocator,
    batch: TextBatch,
    runs: _Runs,
    bounds: I64,
    most: int | None,
    to_cut: bool,
    closings: bool,
) -> NDArray[np.bool_]:
    """Locate the runs of the documents of a batch that are plain text; return which ones are.

    bounds : the runs of document d are bounds[d] … bounds[d + 1] - 1.
    """
    mine = runs.numbers
    starts, ends, is_plain = locator.locate(batch, bounds, runs.first, runs.sizes, alone=to_cut)
    of = np.repeat(np.arange(len(batch.starts)), np.diff(bounds))
    for at in np.flatnonzero((runs.behind > 0) & (starts >= 0)).tolist():
        base, start = batch.starts[of[at]], starts[at]
        if not _ends_in_word(
            batch.text[base + max(start - _MOST_BYTES, 0) : base + start].tobytes()
        ):
            ends[at] += runs.behind[at]
    found.starts[mine], found.ends[mine] = starts, ends
    found.scopes[mine[starts >= 0]] = SCOPES.index("field" if batch.is_text else "bytes")
    wanted = np.flatnonzero(runs.texts & (starts >= 0))
    if most is not None:
        ends = np.minimum(ends, starts + most)
    base = batch.starts[np.searchsorted(bounds, wanted, side="right") - 1]
    spans = zip(mine[wanted], base + starts[wanted], base + ends[wanted], strict=True)
    for at, start, end in spans:
        found.texts[int(at)] = batch.text[start:end].tobytes().decode("utf-8", "ignore")
    if closings:
        after = runs.first + runs.sizes
        nexts = locator.locate(batch, bounds, after, np.ones_like(after), alone=False)[0]
        nexts = np.where(nexts < 0, batch.lengths[of], nexts)
        rows = np.flatnonzero(starts >= 0)
        base = batch.starts[of[rows]]
        for at, start, end in zip(mine[rows], base + ends[rows], base + nexts[rows], strict=True):
            _note_closing(found, int(at), batch.text[start:end].tobytes())
    return is_plain


def _place(
    found: Places,
    runs: _Runs,
    most: int | None,
    raw: bytes,
    text: Text,
    scope: int,
    params: ShingleParams,
    to_cut: bool,
    closings: bool,
) -> None:
    """Locate the runs of one document. raw : its bytes, of which `scope` says what they are."""
    located = locate_tokens(text.utf8, params)
    there = runs.first + runs.sizes <= len(located.starts)
    runs = runs.take(np.flatnonzero(there))
    mine, first, last = runs.numbers, runs.first, runs.first + runs.sizes - 1
    starts, ends = located.starts[first], located.ends[last]
    nexts = np.append(located.starts, len(located.text))[last + 1]
    if to_cut:
        starts = np.maximum(starts, np.append(0, located.ends)[first])
        before = [text.utf8[max(start - _MOST_BYTES, 0) : start] for start in starts.tolist()]
        alone = ~np.array(list(map(_ends_in_word, before)), bool)
        ends = np.maximum(starts, np.minimum(ends, nexts)) + alone * runs.behind
    for at, end, after in zip(mine.tolist(), ends, nexts, strict=True) if closings else ():
        _note_closing(found, at, text.utf8[end:after])
    for at in np.flatnonzero(runs.texts).tolist():
        end = ends[at] if most is None else min(ends[at], starts[at] + most)
        found.texts[int(mine[at])] = located.text[starts[at] : end].decode("utf-8", "ignore")
    offsets = find_offsets(raw, text, np.concatenate([starts, ends]))
    if offsets is not None:
        starts, ends = np.split(offsets, 2)
        found.scopes[mine] = scope
    found.starts[mine], found.ends[mine] = starts, ends


def _ends_in_word(text: bytes) -> bool:
    """Return whether the last character of a text, cut off in front, is of a word."""
    last = text.decode("utf-8", "ignore")[-1:]
    return last.isalnum() or last == "_" or (last > "" and unicodedata.category(last)[0] == "M")


def _note_closing(found: Places, at: int, text: bytes) -> None:
    """Keep the closing characters behind a run. text : from there to the next token."""
    closing = closing_characters(text.decode("utf-8", "replace"))
    if closing:
        found.closings[at] = closing


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
