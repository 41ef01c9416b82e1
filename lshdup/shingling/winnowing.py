"""Anchors: the positions by which equal passages are found, chosen by the tokens around them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels.passages.anchors import select_anchors
from lshdup.matching.passages import Anchors
from lshdup.params import PassageParams
from lshdup.utils.parallel import Progress, no_progress, run_in_parts
from lshdup.utils.ragged import RaggedSets
from lshdup.utils.scratch import Spool, release_pages

#: Tokens whose anchors a thread selects at a time, or one document of more.
_TOKENS_AT_ONCE = 1 << 20

#: With a gap, a run of so many tokens has an anchor: nine of ten words, if every tenth is changed.
SHORTEST_RUN = 9

#: Hashes and positions of the anchors of some documents.
_Part = tuple[NDArray[np.uint64], NDArray[np.int64]]


def plan_grams(least: int) -> tuple[int, int]:
    """Return tokens of a gram and grams of a window, so that passages of `least` have an anchor.

    A gram is no shorter than a window, so that the grams of neighbouring anchors touch.

    >>> plan_grams(50)
    (26, 25)
    """
    return least // 2 + 1, least - least // 2


@contextmanager
def winnowed(
    sequences: RaggedSets,
    params: PassageParams,
    folder: Path | None,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> Iterator[Anchors]:
    """Select the anchors of sequences of tokens, and keep them in temporary files.

    Two places with the same tokens have an anchor at the same distance in both, if they have
    `params.least` tokens, or with a gap SHORTEST_RUN (`kernels.passages.anchors`).

    folder : where the files are; None: where the system has temporary files.

    Determinism: the same at any number of jobs. Cost: linear, 16 bytes an anchor; on average there
    are 2 in least / 2 + 1 tokens, and one a token where a text repeats itself all the time.
    """
    gram, window = plan_grams(min(params.least, SHORTEST_RUN) if params.gap else params.least)
    offsets = np.ascontiguousarray(sequences.offsets)
    with ExitStack() as stack:
        hashes, positions = (stack.enter_context(Spool(folder)) for _ in range(2))
        cuts = _cut_documents(offsets)
        for at in range(0, len(cuts) - 1, 4 * jobs):
            some = list(pairwise(cuts[at : at + 4 * jobs + 1]))
            for part_hashes, part_positions in _on_threads(
                lambda start, stop: _select(sequences, offsets[start : stop + 1], gram, window),
                some,
                jobs,
            ):
                hashes.append(part_hashes)
                positions.append(part_positions.view(np.uint64))
            release_pages(sequences.values)
            progress("anchors", some[-1][1], len(offsets) - 1)
        yield Anchors(hashes.values(), positions.values().view(np.int64), gram, window)


def _cut_documents(offsets: NDArray[np.int64]) -> list[int]:
    """Return the first documents of parts of about as many tokens, and the number of documents."""
    cuts = [0]
    while cuts[-1] < len(offsets) - 1:
        end = np.searchsorted(offsets, offsets[cuts[-1]] + _TOKENS_AT_ONCE, side="right") - 1
        cuts.append(max(int(end), cuts[-1] + 1))
    return cuts


def _on_threads(
    work: Callable[[int, int], _Part], parts: list[tuple[int, int]], jobs: int
) -> list[_Part]:
    """Return work(start, stop) of all parts, in order."""
    made: dict[int, _Part] = {}

    def run(some: slice) -> None:
        for part in range(some.start, some.stop):
            made[part] = work(*parts[part])

    run_in_parts(len(parts), jobs, run, least=1)
    return [made[part] for part in range(len(parts))]


def _select(sequences: RaggedSets, mine: NDArray[np.int64], gram: int, window: int) -> _Part:
    """Return the anchors of documents. mine : their offsets, and the end of the last one."""
    size, longest = int(mine[-1] - mine[0]), int(np.diff(mine).max(initial=0))
    hashes, positions = np.empty(size, np.uint64), np.empty(size, np.int64)
    tokens = np.ascontiguousarray(sequences.values[mine[0] : mine[-1]])
    scratch = np.empty(longest + 1, np.uint64)
    found = select_anchors(tokens, mine, int(mine[0]), gram, window, scratch, hashes, positions)
    return hashes[:found].copy(), positions[:found].copy()
