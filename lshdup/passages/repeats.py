"""What is cut so that each passage stays once: the tokens that are repeats."""

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import ranges
from lshdup.passages.finding import Passages


@dataclass(frozen=True)
class TokenRuns:
    """Runs of tokens of documents, ascending; no two of them touch.

    documents, first, sizes : int64 arrays of shape (n,), document, first token, and tokens.
    passages : int64 array of shape (n,), the longest passage that ends where the run ends.
    """

    documents: NDArray[np.int64]
    first: NDArray[np.int64]
    sizes: NDArray[np.int64]
    passages: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.documents)

    def take(self, rows: slice | NDArray[np.int64]) -> "TokenRuns":
        """Return some of the runs."""
        columns = (self.documents, self.first, self.sizes, self.passages)
        return TokenRuns(*(column[rows] for column in columns))


def find_repeats(passages: Passages, preference: NDArray[np.int64], split: int | None) -> TokenRuns:
    """Return the tokens of all places but one of each passage.

    The place that is none is in the most preferred document, the first there. Every token of a
    repeat stands, as part of the same passage, in a place that comes before it in this order.

    preference : int64 array, all documents, the most preferred first.
    split : number of the first document of the other side, which nothing is cut from; all places
        before it are repeats then. None: there is one side.

    >>> passages = Passages(*map(np.array, ([9, 5], [0, 2, 5], [0, 1, 0, 1, 2], [4, 0, 8, 4, 7])))
    >>> runs = find_repeats(passages, np.arange(3), None)
    >>> runs.documents.tolist(), runs.first.tolist(), runs.sizes.tolist(), runs.passages.tolist()
    ([1, 2], [0, 7], [9, 5], [0, 1])
    """
    places = passages.places
    number = np.repeat(np.arange(len(passages)), places)
    if split is None:
        rank = np.empty(len(preference), np.int64)
        rank[preference] = np.arange(len(preference))
        rows = np.lexsort((passages.first, rank[passages.documents], number))
        rows = rows[ranges(passages.starts[:-1] + 1, places - 1)]
    else:
        rows = np.flatnonzero(passages.documents < split)
    rows = rows[np.lexsort((passages.first[rows], passages.documents[rows]))]
    documents, first, number = passages.documents[rows], passages.first[rows], number[rows]
    last = first + passages.tokens[number]
    if not len(rows):
        return TokenRuns(documents, first, last, number)
    # On one line, with room between documents, overlapping runs are those that begin too early.
    rank = np.cumsum(np.diff(documents, prepend=documents[0]) != 0) * (int(last.max()) + 1)
    reached = np.maximum.accumulate(last + rank)
    begins = np.flatnonzero(np.append(True, (first + rank)[1:] > reached[:-1]))
    ends = reached[np.append(begins[1:], len(rows)) - 1] - rank[begins]
    of = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(rows)))
    at_end = np.flatnonzero(last == ends[of])
    longest = at_end[np.unique(of[at_end], return_index=True)[1]]
    return TokenRuns(documents[begins], first[begins], ends - first[begins], number[longest])
