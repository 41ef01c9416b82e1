"""Anchors: the positions by which equal passages are found, chosen by the tokens around them."""

from contextlib import ExitStack
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import RaggedSets
from lshdup.base.scratch import Spool, release_pages
from lshdup.kernels.winnowing import keep_marked, mark_hashes, select_anchors
from lshdup.params import PassageParams

#: With a gap, a run of so many tokens has an anchor: nine of ten words, if every tenth is changed.
SHORTEST_RUN = 9

#: Anchors that are read from a file at a time.
_AT_ONCE = 1 << 18

#: Bits for each anchor that is expected, and the fewest.
_BITS, _FEWEST_BITS = 4, 1 << 16


@dataclass(frozen=True)
class Anchors:
    """Anchors of sequences that stand one after the other, in their order.

    Those whose gram is at no other anchor may be missing.

    hashes : uint64 array of shape (a,), of the gram at each anchor.
    positions : int64 array of shape (a,), of the first token of the gram in all sequences.
    gram, window : tokens of a gram, and grams of a window.
    """

    hashes: NDArray[np.uint64]
    positions: NDArray[np.int64]
    gram: int
    window: int

    def __len__(self) -> int:
        return len(self.positions)


def plan_grams(least: int) -> tuple[int, int]:
    """Return tokens of a gram and grams of a window, so that passages of `least` have an anchor.

    A gram is no shorter than a window, so that the grams of neighbouring anchors touch.

    >>> plan_grams(50)
    (26, 25)
    """
    return least // 2 + 1, least - least // 2


def plan_anchors(params: PassageParams) -> tuple[int, int]:
    """Return tokens of a gram and grams of a window for these passages.

    Two places with the same tokens have an anchor at the same distance in both, if they have
    `params.least` tokens, or with a gap SHORTEST_RUN (`kernels.winnowing`).
    """
    return plan_grams(min(params.least, SHORTEST_RUN) if params.gap else params.least)


def select(
    sequences: RaggedSets, gram: int, window: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the hashes and the positions of the anchors of sequences of tokens.

    Cost: linear; on average 2 in window + 1 tokens are anchors, and all tokens where a text repeats
    itself all the time.
    """
    size, longest = len(sequences.values), int(sequences.sizes.max(initial=0))
    hashes, positions = np.empty(size, np.uint64), np.empty(size, np.int64)
    scratch = np.empty(longest + 1, np.uint64)
    tokens, cuts = np.ascontiguousarray(sequences.values), np.ascontiguousarray(sequences.offsets)
    found = select_anchors(tokens, cuts, 0, gram, window, scratch, hashes, positions)
    return hashes[:found].copy(), positions[:found].copy()


def find_anchors(sequences: RaggedSets, params: PassageParams) -> Anchors:
    """Return all anchors of sequences of tokens, in memory."""
    gram, window = plan_anchors(params)
    return Anchors(*select(sequences, gram, window), gram, window)


class AnchorSpool:
    """Anchors in temporary files, of which those that recur are given back.

    Which hashes recur is told by a bit of each, so that a few others are given back too.

    folder : where the files are; None: where the system has temporary files.
    expected : about how many anchors there will be.
    memory : bytes to plan for; half of them are for the bits.

    Disk: 16 bytes an anchor, and 16 for each that recurs.
    """

    def __init__(
        self, params: PassageParams, folder: Path | None, expected: int, memory: int
    ) -> None:
        self.gram, self.window = plan_anchors(params)
        self._folder, self._files = folder, ExitStack()
        self._hashes, self._positions = self._open(), self._open()
        bits = max(_BITS * expected, _FEWEST_BITS)
        while bits > max(2 * memory, _FEWEST_BITS):
            bits //= 2
        words = 1 << (bits // 64 - 1).bit_length()
        self._seen, self._again = np.zeros(words, np.uint64), np.zeros(words, np.uint64)

    def _open(self) -> Spool:
        return self._files.enter_context(Spool(self._folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def add(self, hashes: NDArray[np.uint64], positions: NDArray[np.int64]) -> None:
        """Keep anchors, whose positions are behind those of all earlier ones."""
        mark_hashes(hashes, self._seen, self._again)
        self._hashes.append(hashes)
        self._positions.append(positions.view(np.uint64))

    def recurring(self) -> Anchors:
        """Return the anchors whose hash recurs, mapped; valid until the files are closed."""
        kept = self._open(), self._open()
        room = np.empty(_AT_ONCE, np.uint64), np.empty(_AT_ONCE, np.uint64)
        columns = self._hashes.values(), self._positions.values()
        for start in range(0, len(columns[0]), _AT_ONCE):
            hashes, positions = (each[start : start + _AT_ONCE] for each in columns)
            found = keep_marked(hashes, positions, self._again, *room)
            for spool, values, column in zip(kept, room, columns, strict=True):
                spool.append(values[:found])
                release_pages(column)
        hashes, positions = (spool.values() for spool in kept)
        return Anchors(hashes, positions.view(np.int64), self.gram, self.window)
