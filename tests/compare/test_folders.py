"""Pairs of folders: against the definition, written out over sets, and against planted trees."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.compare import folders
from lshdup.compare.folders import FolderTree, find_folder_pairs
from tests.conftest import many


def by_definition(parents, folder_of, group_of, weights, threshold):
    """The pairs of `find_folder_pairs`, by comparing all folders: a set of tuples."""
    m = len(parents)

    def above(i):
        chain = [i]
        while parents[chain[-1]] >= 0:
            chain.append(parents[chain[-1]])
        return chain

    chains = [above(i) for i in range(m)]
    members = [[] for _ in range(m)]
    for folder, group in zip(folder_of, group_of, strict=True):
        for each in chains[folder]:
            members[each].append(group)
    sets = [frozenset(each) for each in members]
    weigh = {each: sum(weights[g] for g in each) for each in set(sets)}
    total = [weigh[each] for each in sets]
    first = lambda i: (j for j in range(i) if sets[j] == sets[i] and j not in chains[i])  # noqa: E731
    equal = [next(first(i), -1) for i in range(m)]
    apart = itertools.permutations(range(m), 2)
    apart = ((a, b) for a, b in apart if a not in chains[b] and b not in chains[a])
    shared = {(a, b): sum(weights[g] for g in sets[a] & sets[b]) for a, b in apart}

    def similarity(a, b):
        return shared[a, b] / (total[a] + total[b] - shared[a, b])

    def holds(a, b):
        return total[a] > 0 and shared[a, b] / total[a] >= threshold

    def counts(a, b):
        if equal[a] >= 0 or (total[a], a) >= (total[b], b) or not holds(a, b):
            return False
        inside = (c for c in range(m) if b in chains[c] and c != b and holds(a, c))
        nearer = any(similarity(a, c) > similarity(a, b) for c in inside)
        return sets[a] != sets[b] and not nearer

    pairs = {(a, b) for a, b in shared if counts(a, b)}
    pairs |= {(equal[b], b) for b in range(m) if total[b] and equal[b] >= 0}

    def below(p, q):
        return p != q and any(q[i] in chains[p[0]] and q[1 - i] in chains[p[1]] for i in range(2))

    return {
        (
            a, b, similarity(a, b), shared[a, b] / min(total[a], total[b]), len(members[a]),
            len(members[b]), sum(g in sets[b] for g in members[a]), shared[a, b],
        )
        for a, b in pairs
        if (equal[b] < 0 or sets[a] == sets[b]) and not any(below((a, b), q) for q in pairs)
    }  # fmt: skip


def listed(found):
    names = (name for name in found.__dataclass_fields__ if name != "common")
    columns = (getattr(found, name).tolist() for name in names)
    return list(zip(*columns, strict=True))


def check(parents, folder_of, group_of, weights, threshold):
    tree = FolderTree.of(np.array(parents, np.int64))
    arrays = (np.array(each, np.int64) for each in (folder_of, group_of, weights))
    rows = listed(find_folder_pairs(tree, *arrays, threshold))
    assert rows == sorted(rows, key=lambda row: (-row[7], -row[2], -row[3], row[:2]))
    assert set(rows) == by_definition(parents, folder_of, group_of, weights, threshold)
    assert len(set(rows)) == len(rows)
    return rows


@st.composite
def trees(draw):
    """Parents in the order of a walk."""
    parents, stack = [-1], [0]
    for up in draw(st.lists(st.integers(0, 3), max_size=14)):
        del stack[max(1, len(stack) - up) :]
        parents.append(stack[-1])
        stack.append(len(parents) - 1)
    return parents


def documents_of(groups):
    """Draw numbers of folders and of groups."""
    return st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, groups - 1)), max_size=40)


WEIGHTS = st.lists(st.integers(0, 9), min_size=8, max_size=8)
THRESHOLDS = st.sampled_from([0.01, 1 / 3, 0.5, 0.6, 0.75, 0.8, 0.9, 1.0])


@settings(max_examples=many(400))
@given(trees(), documents_of(8), WEIGHTS, THRESHOLDS, st.sampled_from([1, 7, 1 << 22]))
def test_as_defined(parents, documents, weights, threshold, at_once):
    folder_of = [number % len(parents) for number, _ in documents]
    group_of = [group for _, group in documents]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(folders, "_AT_ONCE", at_once)
        patched.setattr(folders, "_PAIRS_AT_ONCE", at_once)
        check(parents, folder_of, group_of, weights, threshold)


def test_memory_for_folders_with_one_large_document_in_common():
    """Each of m folders is inside each other one: memory is in proportion to the answer."""
    m = 700
    given = hold_one_in_common([[number] for number in range(1, m + 1)])
    given[-1][1:] = range(100, 100 + m)
    tracemalloc.start()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(folders, "COMMON", m + 1)
        patched.setattr(folders, "_PAIRS_AT_ONCE", 1 << 12)
        found = find_folder_pairs(*given, 0.8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) == m * (m - 1) // 2
    assert peak < 300 * len(found)


@given(trees(), st.randoms(use_true_random=False), st.sampled_from([0.5, 0.8, 1.0]))
def test_copies_of_trees_as_defined(shape, random, threshold):
    """The same tree twice or three times below one folder, with some of it changed."""
    copies = random.randint(2, 3)
    parents, folder_of, group_of = [-1], [], []
    documents = [(random.randrange(len(shape)), g) for g in range(random.randint(1, 25))]
    for copy in range(copies):
        start = len(parents)
        parents += [parent + start if parent >= 0 else 0 for parent in shape]
        for folder, group in documents:
            if random.random() < 0.9:
                folder_of.append(start + folder)
                group_of.append(group if random.random() < 0.95 else 25 + 25 * copy + group)
    weights = [random.randint(1, 50) for _ in range(150)]
    check(parents, folder_of, group_of, weights, threshold)


def hold_one_in_common(own, large=10_000):
    """The arrays of `find_folder_pairs` for folders with one large document in common."""
    m = len(own)
    groups = [0] * m + [group for each in own for group in each]
    folder_of = [*range(1, m + 1), *(1 + i for i, each in enumerate(own) for _ in each)]
    weights = np.full(max(groups) + 1, 10)
    weights[0] = large
    tree = FolderTree.of(np.array([-1] + [0] * m, np.int64))
    return tree, np.array(folder_of), np.array(groups), weights


def test_many_folders_with_one_large_document_are_each_inside_the_next():
    """Not 50 million pairs. Pairs with a rarer document in common, and copies, are as ever."""
    m = 10_000
    own = [list(range(1 + 20 * i, 1 + 20 * i + i % 17)) for i in range(m)]
    own[700] += own[33]
    found = find_folder_pairs(*hold_one_in_common(own), 0.8)
    pairs = list(zip(found.inside.tolist(), found.holder.tolist(), strict=True))
    sizes = [0, *map(len, own)]
    copies = [each for each in range(1, m + 1) if not sizes[each]]
    assert [b for a, b in pairs if not sizes[b]] == copies[1:]
    assert {a for a, b in pairs if not sizes[b]} == {copies[0]}
    assert [b for a, b in pairs if a == 34] == [701]
    larger = [(a, b) for a, b in pairs if sizes[b]]
    assert all((sizes[a], a) < (sizes[b], b) for a, b in larger)
    # One folder is the largest, and inside none.
    assert len({a for a, _ in larger}) == len(larger) == m - len(copies)
    assert found.common == 1
    # With no more than 100 of them, every pair is listed.
    few = [each or [5000 + i] for i, each in enumerate(own[:100])]
    few = find_folder_pairs(*hold_one_in_common(few), 0.8)
    assert (len(few), few.common) == (100 * 99 // 2, 0)


@settings(max_examples=many(200))
@given(trees(), documents_of(5), WEIGHTS, st.sampled_from([0.5, 0.8, 1.0]))
def test_folders_have_a_holder_where_documents_are_common(parents, documents, weights, threshold):
    """And each pair is one of folders of which one is inside the other."""
    arrays = [number % len(parents) for number, _ in documents], [group for _, group in documents]
    given = (*(np.array(each, np.int64) for each in (*arrays, weights)), threshold)
    tree = FolderTree.of(np.array(parents, np.int64))
    every = find_folder_pairs(tree, *given)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(folders, "COMMON", 1)
        found = find_folder_pairs(tree, *given)
    assert every.common == 0
    assert (found.containment >= threshold).all()
    assert len(found) <= len(every) or found.common

    def covered(pairs, folder):
        """Whether a folder, or one above it, is inside another one or holds the same."""
        return any(
            tree.holds(np.array([side]), np.array([folder]))[0]
            for side in (*pairs.inside.tolist(), *pairs.holder.tolist())
        )

    for folder in every.inside.tolist():
        assert covered(found, folder)
