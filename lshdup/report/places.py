"""Where runs of tokens stand in documents: token numbers -> bytes, and the text there."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lshdup.documents.document_list import DocumentList
from lshdup.documents.reading import TextBatch, batches, read_batch
from lshdup.errors import InputError
from lshdup.frozen import dataclass
from lshdup.params import FormatLimits, ShingleParams
from lshdup.shingling.inspection import locate_tokens
from lshdup.text.decoding import Text, decode, decode_mails, decode_record
from lshdup.text.mail import MailRules, is_mail
from lshdup.text.offsets import find_offsets
from lshdup.utils.parallel import Progress, no_progress
from lshdup.utils.ragged import distinct, offsets_of

I64 = NDArray[np.int64]

#: What offsets count bytes of: the text that was extracted, for instance the visible text of a
#: page, as UTF-8; the document as it is stored; the text field of a row.
SCOPES = ("text", "bytes", "field")


@dataclass(frozen=True)
class Places:
    """Where n runs of tokens stand.

    starts, ends : int64 arrays of shape (n,), first byte, and the byte behind the last one; -1
        where the document cannot be read any more, or has fewer tokens now.
    scopes : uint8 array of shape (n,), what these are bytes of, as positions in SCOPES.
    texts : texts of some runs, by position.
    """

    starts: I64
    ends: I64
    scopes: NDArray[np.uint8]
    texts: dict[int, str]


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
    to_cut: bool = False,
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
    to_cut : whether the runs are to be cut: without characters that are also of a token beside
        them, as the second token of ½ is of its first one.

    Memory: 17 bytes a run, the texts, and about 40 bytes a token of a document on each thread.

    """
    from concurrent.futures import ThreadPoolExecutor  # Imported here to keep `query` fast.

    found = Places(
        np.full(len(documents), -1, np.int64),
        np.full(len(documents), -1, np.int64),
        np.zeros(len(documents), np.uint8),
        {},
    )
    order = np.argsort(documents, kind="stable")
    numbers, counts = distinct(documents)
    ends = offsets_of(counts)
    bases = offsets_of(np.array([len(each) for each in lists], np.int64))

    def work(task: tuple[int, I64]) -> int:
        side, indices = task
        batch = read_batch(lists[side], indices)
        scope = SCOPES.index("field" if batch.is_text else "bytes")
        for at, raw, text in _decode_batch(batch, params, lists[side].formats):
            number = np.searchsorted(numbers, bases[side] + batch.indices[at])
            mine = order[ends[number] : ends[number + 1]]
            runs = mine, first[mine], sizes[mine]
            _place(found, *runs, texts[mine], most, raw, text, scope, params, to_cut)
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


def _of_side(numbers: I64, bases: I64, side: int) -> I64:
    """Return the documents of a list, by their own numbers."""
    start, end = bases[side : side + 2].tolist()
    mine: I64 = numbers[(numbers >= start) & (numbers < end)] - start
    return mine


def _decode_batch(
    batch: TextBatch, params: ShingleParams, limits: FormatLimits
) -> Iterator[tuple[int, bytes, Text]]:
    """Yield position, bytes and text of the documents of a batch."""
    mails: dict[int, bytes] = {}
    rules = MailRules.of(params)
    for at, (start, length) in enumerate(
        zip(batch.starts.tolist(), batch.lengths.tolist(), strict=True)
    ):
        raw, name = batch.text[start : start + length].tobytes(), batch.names[at]
        if batch.is_text:
            yield at, raw, decode_record(raw, params.encoding)
        elif is_mail(raw, name):
            mails[at] = raw
        else:
            yield at, raw, decode(raw, name, params.encoding, batch.max_bytes, limits, rules)
    for (at, raw), text in zip(
        mails.items(), decode_mails(list(mails.values()), limits, rules), strict=True
    ):
        yield at, raw, text


def _place(
    found: Places,
    mine: I64,
    first: I64,
    sizes: I64,
    texts: NDArray[np.bool_],
    most: int | None,
    raw: bytes,
    text: Text,
    scope: int,
    params: ShingleParams,
    to_cut: bool,
) -> None:
    """Locate the runs of one document. raw : its bytes, of which `scope` says what they are."""
    try:
        located = locate_tokens(text.utf8, params)
    except InputError:  # It has grown beyond the longest text.
        return
    there = first + sizes <= len(located.starts)
    mine, first, last = mine[there], first[there], (first + sizes)[there] - 1
    starts, ends = located.starts[first], located.ends[last]
    if to_cut:
        starts = np.maximum(starts, np.append(0, located.ends)[first])
        ends = np.minimum(ends, np.append(located.starts, len(located.text))[last + 1])
        ends = np.maximum(starts, ends)
    for at in np.flatnonzero(texts[there]).tolist():
        end = ends[at] if most is None else min(ends[at], starts[at] + most)
        found.texts[int(mine[at])] = located.text[starts[at] : end].decode("utf-8", "ignore")
    offsets = find_offsets(raw, text, np.concatenate([starts, ends]))
    if offsets is not None:
        starts, ends = np.split(offsets, 2)
        found.scopes[mine] = scope
    found.starts[mine], found.ends[mine] = starts, ends
