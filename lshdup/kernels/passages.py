"""Groups of anchors with equal hashes -> the sequences around them that recur -> all their places.

A group is rare or common by its size. The members of a rare group are compared in pairs; those of
a common group are extended together. Reference: `obvious_passages` in
tests/passages/test_finding.py.
"""

from typing import NamedTuple

import numpy as np

from lshdup.kernels.bands import differ
from lshdup.kernels.helpers import I64, U8, U32, U64, first_from, inlined
from lshdup.kernels.jit import kernel
from lshdup.kernels.sets import heap_sort, unique_values


class Grouped(NamedTuple):
    """Sequences of tokens, their anchors, and the groups of anchors with equal hashes.

    tokens : of all documents. offsets : where document d begins, and the last one ends.
    positions, hashes : of the anchors, in order: first token and hash of the gram.
    members, starts, sizes : the anchors of group g, in order, are those at starts[g] …
        starts[g] + sizes[g] - 1 of members; the last group is none, and is empty.
    group_of : of each anchor; the last group if it has none.
    is_rare : of each group, whether its members are compared in pairs.
    gram, window : tokens of a gram, and grams of a window, as for `select_anchors`.
    least : tokens of the shortest sequence to look for.
    origins : of each document; sequences need places of two origins. Empty: any two places.
    gap : most tokens that may differ between two runs of `gram` tokens or more; 0: none may.
    """

    tokens: U64
    offsets: I64
    positions: I64
    hashes: U64
    members: I64
    starts: I64
    sizes: I64
    group_of: U32
    is_rare: U8
    gram: int
    window: int
    least: int
    origins: U32
    gap: int


@inlined
def document_of(offsets: I64, position: int) -> int:
    """Return the document that holds a position: the last one that begins there or before."""
    low = 0
    high = len(offsets) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if offsets[middle] <= position:
            low = middle
        else:
            high = middle
    return low


@inlined
def _common_right(tokens: U64, p: int, q: int, most: int) -> int:
    """Return how many tokens agree from two positions on, at most `most`."""
    n = 0
    while n < most and tokens[np.uint64(p + n)] == tokens[np.uint64(q + n)]:
        n += 1
    return n


@inlined
def chain_right(grouped: Grouped, p: int, q: int, most: int) -> int:
    """Return the tokens of a chain of runs from two positions on, at most `most`.

    The first run begins there, and has at least a gram of tokens; else there is no chain. Every
    other run has too, and begins at most `gap` tokens behind the last one.
    """
    n = _common_right(grouped.tokens, p, q, most)
    if n < grouped.gram:
        return 0
    skip = 1
    while skip <= grouped.gap and n + skip < most:
        same = _common_right(grouped.tokens, p + n + skip, q + n + skip, most - n - skip)
        if same >= grouped.gram:
            n += skip + same
            skip = 1
        else:
            skip += same + 1
    return n


@inlined
def _chain_left(grouped: Grouped, a: int, b: int, most: int) -> int:
    """Return the tokens of a chain of runs before two anchors, which are in its last run.

    Return -1 if two earlier anchors of a rare group are in the chain: they find the same one.

    most : tokens to look at.
    """
    tokens, positions = grouped.tokens, grouped.positions
    p, q = positions[a], positions[b]
    n = 0
    i, j = a - 1, b - 1
    while True:
        while n < most and tokens[np.uint64(p - n - 1)] == tokens[np.uint64(q - n - 1)]:
            n += 1
            while i >= 0 and positions[i] > p - n:
                i -= 1
            while j >= 0 and positions[j] > q - n:
                j -= 1
            if i >= 0 and j >= 0 and positions[i] == p - n and positions[j] == q - n:
                # Anchors of no group have one number of a group, though their grams differ.
                same_gram = grouped.hashes[i] == grouped.hashes[j]
                if same_gram and grouped.is_rare[grouped.group_of[i]]:
                    return -1
        skip = 1
        same = 0
        while skip <= grouped.gap and n + skip < most:
            same = 0
            while (
                n + skip + same < most
                and tokens[np.uint64(p - n - skip - same - 1)]
                == tokens[np.uint64(q - n - skip - same - 1)]
            ):
                same += 1
            if same >= grouped.gram:
                break
            skip += same + 1
        if same < grouped.gram or skip > grouped.gap or n + skip >= most:
            return n
        n += skip


@inlined
def chain_around(grouped: Grouped, a: int, b: int, own: int, other: int) -> tuple[int, int]:
    """Return the tokens of the chain around two anchors: those before them, and those from them on.

    Return 0 and 0 if it has fewer than `least`, or if two earlier anchors of a rare group find it.

    own, other : the documents of the anchors.
    """
    p, q = grouped.positions[a], grouped.positions[b]
    most = min(grouped.offsets[own + 1] - p, grouped.offsets[other + 1] - q)
    before = after = 0
    # The left side first: a run is extended to its right once, not at each anchor.
    if chain_right(grouped, p, q, min(most, grouped.gram)):
        room = min(p - grouped.offsets[own], q - grouped.offsets[other])
        before = _chain_left(grouped, a, b, room)
        if before >= 0:
            after = chain_right(grouped, p, q, most)
    if before < 0 or before + after < grouped.least:
        before = after = 0
    return before, after


@kernel
def compare_in_pairs(
    grouped: Grouped,
    groups: I64,
    holders: I64,
    left: I64,
    right: I64,
    state: I64,
    out_start: I64,
    out_length: I64,
    out_anchor: I64,
) -> int:
    """Write the maximal common runs of the members of rare groups, a run for each of its places.

    With a gap, they are chains of runs (`chain_right`). A run that lies within another one, at the
    same place and found by the same group, is left out. Two places of one document that overlap are
    none.

    groups : groups to look at, from number state[0] on, which the call sets.
    holders, left, right : scratch, for the members of the largest of these groups, the last two for
        their square.
    out_start, out_length, out_anchor : with room for more than that square.

    Returns the number of runs.
    """
    found = 0
    for at in range(state[0], len(groups)):
        group = groups[at]
        n = grouped.sizes[group]
        if found + n * n > len(out_start):
            state[0] = at
            return found
        start = grouped.starts[group]
        for i in range(n):
            position = grouped.positions[grouped.members[start + i]]
            holders[i] = document_of(grouped.offsets, position)
        for i in range(n):
            a = grouped.members[start + i]
            p = grouped.positions[a]
            own = holders[i]
            left[i * n + i] = right[i * n + i] = 0
            for j in range(i + 1, n):
                b = grouped.members[start + j]
                q = grouped.positions[b]
                other = holders[j]
                before = after = 0
                if differ(grouped.origins, own, other):
                    before, after = chain_around(grouped, a, b, own, other)
                    if own == other and before + after > q - p:
                        before = after = 0
                left[i * n + j] = left[j * n + i] = before
                right[i * n + j] = right[j * n + i] = after
        for i in range(n):
            a = grouped.members[start + i]
            reach = 0
            while True:
                best = -1
                for j in range(n):
                    e = i * n + j
                    if right[e] > reach and (
                        best < 0
                        or left[e] > left[best]
                        or (left[e] == left[best] and right[e] > right[best])
                    ):
                        best = e
                if best < 0:
                    break
                reach = right[best]
                out_start[found] = grouped.positions[a] - left[best]
                out_length[found] = left[best] + right[best]
                out_anchor[found] = a
                found += 1
    state[0] = len(groups)
    return found


@inlined
def _is_carried(grouped: Grouped, start: int, n: int) -> bool:
    """Return whether the anchors before the members of a group are a group of the same size.

    They are at the same distance then, and both groups are extended to the same sequence.
    """
    positions, members, group_of = grouped.positions, grouped.members, grouped.group_of
    first = members[start]
    if first == 0 or grouped.sizes[group_of[first - 1]] != n:
        return False
    distance = positions[first] - positions[first - 1]
    if distance > grouped.gram:  # There may be other tokens between them.
        return False
    for i in range(n):
        a = members[start + i]
        if (
            group_of[a - 1] != group_of[first - 1]
            or positions[a] - positions[a - 1] != distance
            or positions[a - 1] < grouped.offsets[document_of(grouped.offsets, positions[a])]
        ):
            return False
    return True


class ActivePlaces(NamedTuple):
    """Places that are extended together.

    at : position of each place in its group's anchor. begins, ends : of the documents around them.
    """

    at: I64
    begins: I64
    ends: I64


@inlined
def _has(active: ActivePlaces, i: int, at: int) -> bool:
    """Return whether a position lies in the document of active place i."""
    return bool(active.begins[i] <= at < active.ends[i])


@inlined
def _majority(tokens: U64, active: ActivePlaces, n: int, shift: int) -> np.uint64:
    """Return the token at this distance from most of the active places, if there is one.

    Boyer and Moore's vote: if more than half agree, it is their token; else it is any token.
    """
    token = np.uint64(0)
    votes = 0
    for i in range(n):
        at = active.at[i] + shift
        if _has(active, i, at):
            if votes == 0:
                token = tokens[np.uint64(at)]
            votes += 1 if tokens[np.uint64(at)] == token else -1
    return token


@inlined
def _count_agreeing(
    tokens: U64, active: ActivePlaces, n: int, shift: int, token: np.uint64, length: int
) -> tuple[int, int]:
    """Return how many places have this token, and how many of these, of this length, are apart."""
    agree = 0
    apart = 0
    free = np.int64(-1)
    for i in range(n):
        at = active.at[i] + shift
        if _has(active, i, at) and tokens[np.uint64(at)] == token:
            agree += 1
            if active.at[i] >= free:
                apart += 1
                free = active.at[i] + length
    return agree, apart


@inlined
def _keep(tokens: U64, active: ActivePlaces, n: int, shift: int, token: np.uint64) -> int:
    """Drop the active places that have another token at this distance; return how many are left."""
    kept = 0
    for i in range(n):
        at = active.at[i] + shift
        if _has(active, i, at) and tokens[np.uint64(at)] == token:
            active.at[kept] = active.at[i]
            active.begins[kept] = active.begins[i]
            active.ends[kept] = active.ends[i]
            kept += 1
    return kept


@kernel
def extend_together(
    grouped: Grouped,
    groups: I64,
    active: ActivePlaces,
    out_start: I64,
    out_length: I64,
    out_anchor: I64,
) -> int:
    """Write the sequence that each common group is extended to, by the place of one member.

    A group begins with the places of its gram. It grows by a token on its right, or if it cannot on
    its left, as long as half of them, counted without overlaps, still agree.

    active : scratch, for the largest group.
    out_start, out_length, out_anchor : with room for a sequence a group.

    Returns the number of sequences.
    """
    found = 0
    # With a gap, grams are much shorter than passages: places that are apart as grams only would
    # ask for more places of passages than a text that repeats itself has.
    shortest = grouped.least if grouped.gap > 0 else grouped.gram
    for at in range(len(groups)):
        start, n = grouped.starts[groups[at]], grouped.sizes[groups[at]]
        if _is_carried(grouped, start, n):
            continue
        all_apart = 0
        free = np.int64(-1)
        for i in range(n):
            p = grouped.positions[grouped.members[start + i]]
            d = document_of(grouped.offsets, p)
            active.at[i] = p
            active.begins[i] = grouped.offsets[d]
            active.ends[i] = grouped.offsets[d + 1]
            if p >= free:
                all_apart += 1
                free = p + shortest
        needed = max(2, (all_apart + 1) // 2)
        before = after = 0
        is_right = True
        while True:
            shift = after if is_right else -before - 1
            token = np.uint64(0)
            agree, apart = 0, 0
            if _has(active, 0, active.at[0] + shift):
                token = grouped.tokens[np.uint64(active.at[0] + shift)]
                agree, apart = _count_agreeing(
                    grouped.tokens, active, n, shift, token, before + after + 1
                )
            if 2 * agree <= n:
                token = _majority(grouped.tokens, active, n, shift)
                agree, apart = _count_agreeing(
                    grouped.tokens, active, n, shift, token, before + after + 1
                )
            if apart < needed:
                if not is_right:
                    break
                is_right = False
                continue
            if is_right:
                after += 1
            else:
                before += 1
            if agree < n:
                n = _keep(grouped.tokens, active, n, shift, token)
                is_right = True  # Fewer places may agree on their right again.
        if before + after >= grouped.least:
            out_start[found] = active.at[0] - before
            out_length[found] = before + after
            # Its anchor: the member at this place.
            low, high = start, start + grouped.sizes[groups[at]]
            while high - low > 1:
                middle = (low + high) // 2
                if grouped.positions[grouped.members[middle]] <= active.at[0]:
                    low = middle
                else:
                    high = middle
            out_anchor[found] = grouped.members[low]
            found += 1
    return found


# --- places ---


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
    for number in range(state[0], len(run_starts)):
        if done[number]:
            continue
        first, length = run_starts[number], run_lengths[number]
        chosen = _rarest_anchor(grouped, run_anchors[number], first, length)
        if only_rare and not grouped.is_rare[grouped.group_of[chosen]]:
            continue
        if written + len(candidates) > len(places) or found == len(lengths):
            state[0] = number
            return found
        free = np.int64(-1)
        count = 0
        first_holder = np.int64(-1)
        are_several = len(grouped.origins) == 0
        for i in range(_candidates(grouped, chosen, first, length, candidates)):
            start = np.int64(candidates[i])
            if chain_right(grouped, first, start, length) < length:
                continue
            same = first_from(run_starts, start, number)
            while same < len(run_starts) and run_starts[same] == start:
                if run_lengths[same] == length:
                    done[same] = 1
                same += 1
            if start >= free:
                places[written + count] = start
                count += 1
                free = start + length
                if not are_several:
                    holder = document_of(grouped.offsets, start)
                    if first_holder < 0:
                        first_holder = np.int64(holder)
                    are_several = differ(grouped.origins, first_holder, holder)
        if count > 1 and are_several:
            lengths[found] = length
            counts[found] = count
            written += count
            found += 1
    state[0] = len(run_starts)
    return found
