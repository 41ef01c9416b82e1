"""Anchors: the positions by which equal passages are found, chosen by the tokens around them."""

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.memory import GrowingArray, slices_of
from lshdup.base.params import PassageParams
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.kernels.winnowing import keep_marked, mark_hashes, select_anchors

#: With a gap, a run of so many tokens has an anchor: nine of ten words, if every tenth is changed.
SHORTEST_RUN = 9

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


@dataclass(frozen=True)
class Texts:
    """Sequences of tokens in which passages are looked for.

    sequences : the tokens of each text, in order and with repeats.
    anchors : of the sequences, so many that a passage has one.
    documents : int64 array, below 2^32, the document of each sequence.
    origins : uint32 array, of each sequence; a passage has places of two. Empty: of any.
    """

    sequences: RaggedSets
    anchors: Anchors
    documents: NDArray[np.int64]
    origins: NDArray[np.uint32]


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


class AnchorKeeper:
    """Keeps anchors batch by batch, of which those that recur are returned.

    A bit of each hash tells whether it recurs, so that a few others are returned too.

    run : makes the arrays; half of the memory that it plans for is for the bits.
    expected : about how many anchors there will be.

    Disk, beyond memory: 16 bytes an anchor, and 16 for each that recurs.
    """

    def __init__(self, run: Run, params: PassageParams, expected: int) -> None:
        self.gram, self.window = plan_anchors(params)
        self._run = run
        self._hashes, self._positions = (GrowingArray(np.uint64, run.arrays) for _ in range(2))
        bits = max(_BITS * expected, _FEWEST_BITS)
        while bits > max(2 * run.memory, _FEWEST_BITS):
            bits //= 2
        words = 1 << (bits // 64 - 1).bit_length()
        self._seen, self._again = np.zeros(words, np.uint64), np.zeros(words, np.uint64)

    def add(self, hashes: NDArray[np.uint64], positions: NDArray[np.int64]) -> None:
        """Keep anchors, whose positions are behind those of all earlier ones."""
        mark_hashes(hashes, self._seen, self._again)
        self._hashes.append(hashes)
        self._positions.append(positions.view(np.uint64))

    def recurring(self) -> Anchors:
        """Return the anchors whose hash recurs."""
        columns = self._hashes.whole(), self._positions.whole()
        kept = [GrowingArray(np.uint64, self._run.arrays) for _ in columns]
        for some in slices_of(len(columns[0])):
            room = [np.empty(some.stop - some.start, np.uint64) for _ in columns]
            hashes, positions = (column[some] for column in columns)
            found = keep_marked(hashes, positions, self._again, room[0], room[1])
            for column, values in zip(kept, room, strict=True):
                column.append(values[:found].copy())
        hashes, positions = (column.whole() for column in kept)
        return Anchors(hashes, positions.view(np.int64), self.gram, self.window)
