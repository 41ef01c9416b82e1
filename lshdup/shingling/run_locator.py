"""Where runs of tokens stand in documents that are plain UTF-8 text."""

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.passages.locating import locate_runs
from lshdup.kernels.text import DONE
from lshdup.params import ShingleParams
from lshdup.shingling.plain_texts import TOKEN_RULES, are_in_blocks, find_table, inspect_texts
from lshdup.shingling.scratch_arrays import ScratchArrays
from lshdup.sources.files import LARGE
from lshdup.sources.reading import TextBatch

I64 = NDArray[np.int64]


class RunLocator:
    """Locate runs of tokens of batches of documents, for one thread: it holds the scratch arrays.

    Memory: for the longest document, about 45 bytes for each of its bytes.
    """

    def __init__(self, params: ShingleParams) -> None:
        self._params = params
        self._allocate(1 << 16)

    def _allocate(self, room: int) -> None:
        self._scratch = ScratchArrays(room)
        self._origins = np.empty(2 * len(self._scratch.folded), np.int32)

    def locate(
        self, batch: TextBatch, bounds: I64, first: I64, sizes: I64, *, alone: bool
    ) -> tuple[I64, I64, NDArray[np.bool_]]:
        """Return the first byte of each run, the byte behind its last one, and which documents are
        plain text, of which alone runs are located.

        bounds : int64 array of shape (m + 1,); the runs of document d of the batch are bounds[d] …
            bounds[d + 1] - 1.
        first, sizes : int64 arrays of shape (n,), number of the first token, and tokens.
        alone : whether to leave out characters that are also of a token beside the run.

        Returns int64 arrays of shape (n,), -1 for runs that are not located or behind the last
        token, and a bool array of shape (m,).
        """
        params = self._params
        flags, special, _ = inspect_texts(batch, params)
        table = find_table(params, flags)
        lengths = np.where(special, 0, batch.lengths)
        longest = int(lengths.max(initial=0))
        if longest > self._scratch.room:
            self._allocate(longest)
        begins, ends = np.full(len(first), -1, np.int64), np.full(len(first), -1, np.int64)
        outcomes = np.empty(len(lengths), np.uint8)
        locate_runs(
            batch.text, batch.starts, lengths, table.entries, table.classes,
            are_in_blocks(params), params.keep_case, TOKEN_RULES[params.tokens],
            bounds, first, sizes, alone,
            self._scratch.folded, self._scratch.edges, self._origins, begins, ends, outcomes,
        )  # fmt: skip
        if longest > LARGE:  # A thread does not hold what it seldom needs.
            self._allocate(1 << 16)
        return begins, ends, ~special & (outcomes == DONE)
