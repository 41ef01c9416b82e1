"""Sequences -> all their places, every token compared.

Reference: `obvious_passages` in tests/matching/test_passages.py.
"""

import numpy as np

from lshdup.kernels.helpers import I64, U8, U32, U64, inlined
from lshdup.kernels.jit import kernel
from lshdup.kernels.passages.runs import document_of


@inlined
def _first_anchor(hashes: U64, positions: I64, anchor: int, start: int, window: int) -> int:
    """Return the anchor that the first window of a sequence selects, at all of its places.

    Another anchor of a place may be selected by tokens that stand beside the place.

    anchor : any anchor between this position and the end of the sequence.
    """
    while anchor > 0 and positions[anchor - 1] >= start:
        anchor -= 1
    best = anchor
    while anchor < len(positions) and positions[anchor] < start + window:
        if hashes[anchor] <= hashes[best]:
            best = anchor
        anchor += 1
    return best


@kernel
def list_places(
    tokens: U64,
    offsets: I64,
    positions: I64,
    hashes: U64,
    window: int,
    members: I64,
    starts: I64,
    sizes: I64,
    group_of: U32,
    run_starts: I64,
    run_lengths: I64,
    run_anchors: I64,
    split: int,
    done: U8,
    state: I64,
    lengths: I64,
    counts: I64,
    places: I64,
) -> int:
    """Write the places of the sequence of each run, of equal sequences once.

    hashes, window : of the anchors, and grams of a window, as for `select_anchors`.
    run_starts, run_lengths, run_anchors : runs in the order of their starts; each contains the gram
        of its anchor.
    split : only sequences with places below and from here on; -1: all.
    done : of each run, whether its sequence was written.
    state : the next run, which the call sets when the output is full.
    lengths, counts : of the sequences. places : their first tokens, sequence by sequence, with
        room for more places than the largest group.
    The other arrays : as for `compare_in_pairs`.

    Returns the number of sequences.
    """
    found = 0
    written = 0
    for run in range(state[0], len(run_starts)):
        if done[run]:
            continue
        first, length = run_starts[run], run_lengths[run]
        chosen = _first_anchor(hashes, positions, run_anchors[run], first, window)
        group = group_of[chosen]
        if written + sizes[group] > len(places) or found == len(lengths):
            state[0] = run
            return found
        before = positions[chosen] - first
        free = np.int64(-1)
        count = 0
        here = False
        there = False
        for i in range(starts[group], starts[group] + sizes[group]):
            anchor = positions[members[i]]
            start = anchor - before
            d = document_of(offsets, anchor)
            if start < offsets[d] or start + length > offsets[d + 1]:
                continue
            n = 0
            while n < length and tokens[np.uint64(start + n)] == tokens[np.uint64(first + n)]:
                n += 1
            if n < length:
                continue
            low, high = 0, len(run_starts)
            while low < high:
                middle = (low + high) // 2
                if run_starts[middle] < start:
                    low = middle + 1
                else:
                    high = middle
            while low < len(run_starts) and run_starts[low] == start:
                if run_lengths[low] == length:
                    done[low] = 1
                low += 1
            if start >= free:
                places[written + count] = start
                count += 1
                free = start + length
                here = here or start < split
                there = there or start >= split
        if count > 1 and (split < 0 or (here and there)):
            lengths[found] = length
            counts[found] = count
            written += count
            found += 1
    state[0] = len(run_starts)
    return found
