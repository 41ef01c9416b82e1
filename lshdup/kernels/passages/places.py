"""Sequences -> all their places, every token compared.

Reference: `obvious_passages` in tests/passages/test_finding.py.
"""

import numpy as np

from lshdup.kernels.helpers import I64, U8, U64, inlined
from lshdup.kernels.jit import kernel
from lshdup.kernels.ordering import heap_sort, unique_values
from lshdup.kernels.passages.runs import Grouped, chain_right, document_of


@inlined
def _selected(grouped: Grouped, anchor: int, start: int) -> int:
    """Return the anchor that the window of grams from `start` on selects.

    anchor : the first anchor from this position on.
    """
    best = anchor
    while anchor < len(grouped.positions) and grouped.positions[anchor] < start + grouped.window:
        if grouped.hashes[anchor] <= grouped.hashes[best]:
            best = anchor
        anchor += 1
    return best


@inlined
def _cost(grouped: Grouped, anchor: int) -> int:
    """Return the number of anchors in the group of an anchor, with a penalty if it is common."""
    group = grouped.group_of[anchor]
    return int(grouped.sizes[group] + (0 if grouped.is_rare[group] else len(grouped.positions)))


@inlined
def _rarest_anchor(grouped: Grouped, anchor: int, start: int, length: int) -> int:
    """Return the anchor of the smallest group of those that windows within a sequence select, of a
    rare one if there is any.

    All places of the sequence have these anchors. Other anchors there may be selected by tokens
    that stand beside a place.

    anchor : any anchor within the sequence.
    """
    while anchor > 0 and grouped.positions[anchor - 1] >= start:
        anchor -= 1
    first = _selected(grouped, anchor, start)
    end = start + length - grouped.gram + 1  # of the last window
    anchor = first
    while anchor + 1 < len(grouped.positions) and grouped.positions[anchor] < end - grouped.window:
        anchor += 1
    last = _selected(grouped, anchor, end - grouped.window)
    best = first
    for each in range(first, last + 1):
        if _cost(grouped, each) < _cost(grouped, best):
            best = each
    return best


@inlined
def _candidates(grouped: Grouped, chosen: int, first: int, length: int, out: U64) -> int:
    """Write where places of a sequence may begin, in order; return how many.

    Without gaps, the members of one group tell. With gaps, a place may have any of the anchors.
    """
    n = 0
    lowest, highest = chosen, chosen
    if grouped.gap > 0:
        while lowest > 0 and grouped.positions[lowest - 1] >= first:
            lowest -= 1
        while (
            highest + 1 < len(grouped.positions)
            and grouped.positions[highest + 1] <= first + length - grouped.gram
        ):
            highest += 1
    for anchor in range(lowest, highest + 1):
        group = grouped.group_of[anchor]
        size = grouped.sizes[group]
        if grouped.gap > 0 and (not grouped.is_rare[group] or n + size > len(out)):
            continue
        before = grouped.positions[anchor] - first
        for i in range(grouped.starts[group], grouped.starts[group] + size):
            position = grouped.positions[grouped.members[i]]
            d = document_of(grouped.offsets, position)
            start = position - before
            if grouped.offsets[d] <= start and start + length <= grouped.offsets[d + 1]:
                out[n] = start
                n += 1
        if lowest < highest and n > 1:
            heap_sort(out, 0, n)
            n = unique_values(out, n)
    return n


@kernel
def list_places(
    grouped: Grouped,
    run_starts: I64,
    run_lengths: I64,
    run_anchors: I64,
    only_rare: bool,
    done: U8,
    state: I64,
    candidates: U64,
    lengths: I64,
    counts: I64,
    places: I64,
) -> int:
    """Write the places of the sequence of each run, of equal sequences once.

    run_starts, run_lengths, run_anchors : runs in the order of their starts; each contains the gram
        of its anchor.
    only_rare : leave out runs whose groups are all common: they were found by an anchor that the
        tokens beside them select.
    done : of each run, whether its sequence was written.
    state : the next run, which the call sets when the output is full.
    candidates : scratch, for more anchors than the largest group has.
    lengths, counts : of the sequences. places : their first tokens, sequence by sequence, with
        room for more places than candidates.

    Returns the number of sequences.
    """
    found = 0
    written = 0
    for run in range(state[0], len(run_starts)):
        if done[run]:
            continue
        first, length = run_starts[run], run_lengths[run]
        chosen = _rarest_anchor(grouped, run_anchors[run], first, length)
        if only_rare and not grouped.is_rare[grouped.group_of[chosen]]:
            continue
        if written + len(candidates) > len(places) or found == len(lengths):
            state[0] = run
            return found
        free = np.int64(-1)
        count = 0
        here = False
        there = False
        for i in range(_candidates(grouped, chosen, first, length, candidates)):
            start = np.int64(candidates[i])
            if chain_right(grouped, first, start, length) < length:
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
                here = here or start < grouped.split
                there = there or start >= grouped.split
        if count > 1 and (grouped.split < 0 or (here and there)):
            lengths[found] = length
            counts[found] = count
            written += count
            found += 1
    state[0] = len(run_starts)
    return found
