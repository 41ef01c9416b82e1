"""The longest passage that two documents share, and its lines in both."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lshdup.base.frozen import dataclass
from lshdup.params import ShingleParams
from lshdup.shingling.inspection import LocatedText, locate_tokens
from lshdup.shingling.shingler import decode_batch
from lshdup.sources.document_list import DocumentList, find_in_lists
from lshdup.sources.reading import read_batch
from lshdup.text.decoding import find_offsets
from lshdup.views.changes import ALIKE
from lshdup.views.comparison import align_tokens

#: Documents whose tokens are kept: one is often in several pairs in a row.
_KEPT = 16


@dataclass(frozen=True)
class Lines:
    """A region of a text file. Lines and columns are numbers from 1; columns count characters.

    end_column is behind the last character.
    """

    start: int
    start_column: int
    end: int
    end_column: int


@dataclass(frozen=True)
class SharedPassage:
    """The longest run of tokens that two documents have in common.

    tokens : its length.
    text : as it stands in the first document.
    a, b : where it stands; None where a text has no lines of its own: in pages, mails, office
        documents, packed files, and parts of files.
    """

    tokens: int
    text: str
    a: Lines | None
    b: Lines | None


class PassageFinder:
    """The longest passages of pairs of documents, which are read when a pair needs them.

    lists : the documents, numbered from the first list to the last.
    params : how documents are cut into tokens.
    """

    def __init__(self, lists: Sequence[DocumentList], params: ShingleParams) -> None:
        self._lists, self._params = lists, params
        self._read_once = lru_cache(_KEPT)(self._read)

    def find(self, a: int, b: int) -> SharedPassage | None:
        """Find the longest passage of two documents; None if one cannot be read any more."""
        left, right = self._read_once(a), self._read_once(b)
        if left is None or right is None:
            return None
        (of_a, has_lines_a), (of_b, has_lines_b) = left, right
        changes = align_tokens(of_a, of_b, self._params).changes
        alike = [change for change in changes if change.kind == ALIKE]
        if not alike:
            return None
        longest = max(alike, key=lambda change: change.tokens)
        start, end = _span(of_a, longest.a_start, longest.a_end)
        return SharedPassage(
            longest.tokens,
            of_a.text[start:end].decode("utf-8", "replace"),
            _lines(of_a.text, start, end) if has_lines_a else None,
            _lines(of_b.text, *_span(of_b, longest.b_start, longest.b_end))
            if has_lines_b
            else None,
        )

    def _read(self, document: int) -> tuple[LocatedText, bool] | None:
        """Return the tokens of a document, and whether its text has lines."""
        documents, number = find_in_lists(self._lists, document)
        if self._params.tokens == "ids":
            return None
        batch = read_batch(documents, np.array([number]))
        every = list(range(len(batch.indices)))
        for at, text in decode_batch(batch, every, self._params, documents.formats):
            located = locate_tokens(text.utf8, self._params)
            is_plain = find_offsets(batch.content(at), text, np.zeros(1, np.int64)) is not None
            return located, is_plain and documents.is_file(number)
        return None


def _span(located: LocatedText, first: int, end: int) -> tuple[int, int]:
    """Return the first byte of a run of tokens, and the byte behind the last one."""
    return int(located.starts[first]), int(located.ends[end - 1])


def _lines(text: bytes, start: int, end: int) -> Lines:
    """Return where bytes from start to end - 1 of a text are."""
    return Lines(*_place(text, start), *_place(text, end))


def _place(text: bytes, at: int) -> tuple[int, int]:
    """Return the line and the column of a byte."""
    begins = text.rfind(b"\n", 0, at) + 1
    return text.count(b"\n", 0, at) + 1, len(text[begins:at].decode("utf-8", "replace")) + 1
