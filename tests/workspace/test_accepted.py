"""Accepted pairs: in no answer, against brute force, for any of them and by every method."""

import os
import shutil
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lshdup.base.params import (
    ACCEPTED_FILE,
    ClusterParams,
    DocumentParams,
    PairParams,
    ShingleParams,
)
from lshdup.collection.keep_rules import preference
from lshdup.sources.finding import find_documents
from lshdup.workspace.accepted import Accepted, definition_of, find_accepted, make_line, read_prints
from lshdup.workspace.against import find_clusters_against
from tests import reference
from tests.compare.test_clusters import as_dict, obvious_groups
from tests.conftest import many, open_comparison, open_workspace, write_files

THRESHOLD = 0.4
WORDS = definition_of(ShingleParams())
GIVEN = {"threshold": THRESHOLD, "bands": 64, "rows": 1, "k": 1}
#: Copies in bytes and in text, near ones, a chain, and one that is alone.
TEXTS = {
    "a": "a b c d e f g h", "a copy": "a b c d e f g h", "a third": "a b c d e f g h",
    "a upper": "A B, C D E F G H", "b": "a b c d e f g i", "b copy": "a b c d e f g i",
    "c": "c d e f g h i j", "d": "e f g h i j k l", "e": "g h i j k l m n", "z": "v w x y z",
}  # fmt: skip
NAMES = sorted(TEXTS)
SETS = [set(text.lower().replace(",", "").split()) for text in map(TEXTS.get, NAMES)]
NEAR = {
    (a, b): reference.jaccard(SETS[a], SETS[b])
    for a, b in combinations(range(len(NAMES)), 2)
    if reference.jaccard(SETS[a], SETS[b]) >= THRESHOLD
}
APART = st.sets(st.sampled_from(list(combinations(range(len(NAMES)), 2))), max_size=20)


def order_of(opened, rule):
    """The documents of DOCS, the most preferred first."""
    here, named = opened.here, opened.request.documents
    return preference(opened.run, here.documents, here.sizes, rule, named).order.tolist()


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    write_files(folder, TEXTS)
    return os.fsencode(folder)


def without(opened, pairs):
    keys = np.array(sorted((a << 32) + b for a, b in pairs), np.uint64)
    return replace(opened, sides=opened.sides.leave_out(opened.run, keys))


def pairs_of(opened, collapse=False):
    found = opened.expand_copies(opened.find_pairs(), collapse=collapse)
    rows = [row for piece in found.pieces() for row in zip(*piece, strict=True)]
    assert len(rows) == len(found)
    return {tuple(sorted((int(a), int(b)))): float(score.real) for a, b, score in rows}


METHODS = {
    "bands": PairParams(), "exact": PairParams(exact=True),
    "containment": PairParams(measure="containment"), "text": PairParams(same="text"),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_pairs_are_all_but_the_accepted_ones(docs, method):
    opened = open_comparison("", [docs], METHODS[method], **GIVEN)
    every = pairs_of(opened)
    if method in ("bands", "exact"):
        assert every == NEAR
    assert len(every) >= 7

    @settings(max_examples=many(200), deadline=None)
    @given(APART)
    @example(set(combinations(range(len(NAMES)), 2)))
    def check(apart):
        left = pairs_of(without(opened, apart))
        assert left == {pair: score for pair, score in every.items() if pair not in apart}

    check()


def expected_groups(apart, order, same="", linkage="representative"):
    """The obvious loop over the documents in an order; what chains connect is alone then."""
    texts = {"bytes": lambda d: {TEXTS[NAMES[d]]}, "text": lambda d: {frozenset(SETS[d])}}
    sets = [texts.get(same, SETS.__getitem__)(d) if d in order else set() for d in range(len(SETS))]

    def is_candidate(a, b):
        return (min(a, b), max(a, b)) not in apart

    groups = obvious_groups(sets, is_candidate, order, THRESHOLD, linkage)
    barred = apart | {(b, a) for a, b in apart}
    return {d: (d, 1.0) if (d, led[0]) in barred else led for d, led in groups.items()}


@pytest.mark.parametrize(
    ("method", "linkage"),
    [("bands", "representative"), ("bands", "single"), ("exact", "representative"),
     ("exact", "single"), ("known", "representative"), ("bytes", ""), ("text", "")],
)  # fmt: skip
def test_groups_are_those_without_accepted_edges(docs, tmp_path_factory, method, linkage):
    params = METHODS.get(method, PairParams(same=method if not linkage else ""))
    store = tmp_path_factory.mktemp("store") / "s" if method == "known" else ""
    if store:  # The pairs of another run answer.
        open_comparison(store, [docs], params, **GIVEN).find_pairs()
    opened = open_comparison(store, [docs], params, clustering=True, **GIVEN)

    @settings(max_examples=many(150), deadline=None)
    @given(APART, st.sampled_from(["", "longest", "path-order"]))
    @example(set(combinations(range(len(NAMES)), 2)), "")
    @example({(0, 1)}, "")
    def check(apart, keep):
        rule = ClusterParams(linkage or "representative", keep)
        order = order_of(opened, rule)
        found = without(opened, apart).find_clusters(rule)
        assert as_dict(found.clusters) == expected_groups(apart, order, params.same, linkage)
        assert not any(found.clusters.representative[a] == b for a, b in apart)
        for one in np.flatnonzero(found.copies).tolist():
            assert SETS[one] == SETS[found.clusters.representative[one]]

    check()


@settings(max_examples=many(100), deadline=None)
@given(apart=APART)
def test_the_most_central_one_is_never_an_accepted_partner(docs, apart):
    opened = open_comparison("", [docs], PairParams(), clustering=True, **GIVEN)
    for linkage in ("representative", "single"):
        rule = ClusterParams(linkage, "central")
        own = without(opened, apart).find_clusters(rule).clusters
        assert not any(b == own.representative[a] or a == own.representative[b] for a, b in apart)
        if linkage == "representative":
            for d in own.dropped.tolist():
                assert (min(d, own.representative[d]), max(d, own.representative[d])) in NEAR


@pytest.mark.parametrize("method", ["bands", "exact", "text", "bytes"])
def test_against_others(docs, tmp_path_factory, method):
    """Pairs, what is in none, and groups: numbers of OTHER are behind those of DOCS."""
    other = tmp_path_factory.mktemp("other")
    for name in NAMES[::2]:
        shutil.copy(Path(os.fsdecode(docs)) / name, other / f"{name} there")
    same, n = "" if method in METHODS and method != "text" else method, len(NAMES)
    params = PairParams(exact=method == "exact", same=same)
    both = open_comparison("", [docs], params, [os.fsencode(other)], **GIVEN)
    every = pairs_of(both)
    assert len(every) >= 6
    across = sorted((a, b) for a in range(n) for b in range(n, n + len(NAMES[::2])))
    rule = ClusterParams()

    @settings(max_examples=many(100), deadline=None)
    @given(st.sets(st.sampled_from([*across, *combinations(range(n), 2)]), max_size=30))
    @example(set(across))
    def check(apart):
        opened = without(both, apart)
        pairs = pairs_of(opened)
        assert pairs == {pair: score for pair, score in every.items() if pair not in apart}
        matches = opened.find_best_matches()
        is_met = {a for a, _ in pairs}
        assert set(np.flatnonzero(matches.right >= 0).tolist()) == is_met
        assert all(pairs[a, n + int(matches.right[a])] == matches.similarity[a] for a in is_met)
        own = find_clusters_against(opened, matches, np.zeros(0, np.int64), rule).clusters
        led = own.representative.tolist()
        assert not any(led[a] == b or led[b] == a for a, b in apart)
        assert {a for a in range(n) if led[a] >= n} == is_met
        rest = [d for d in range(n) if d not in is_met]
        order = order_of(opened, rule)
        expected = expected_groups(apart, [d for d in order if d in rest], same)
        assert {d: led[d] for d in rest} == {d: kept for d, (kept, _) in expected.items()}

    check()


FATES = st.sampled_from(["same", "layout", "time", "changed", "renamed", "gone"])
DEFINITIONS = {"words": {}, "k": {"k": 2}, "char": {"tokens": "char"}, "bytes": {}}


@pytest.mark.parametrize("definition", DEFINITIONS)
@settings(max_examples=many(40), deadline=None)
@given(st.data())
def test_a_line_holds_until_a_text_changes(tmp_path_factory, definition, data):
    """Whatever the definition of the run is, against what became of each document."""
    folder = tmp_path_factory.mktemp("docs")
    texts = data.draw(st.lists(st.sampled_from(["a b c", "a b d", "a b c d", "a b c e", "f"]),
                               min_size=3, max_size=7))  # fmt: skip
    names = [f"n{number}" for number in range(len(texts))]
    write_files(folder, dict(zip(names, texts, strict=True)))
    write_files(folder / "pictures", dict.fromkeys(("p", "q"), b"\0picture"))
    names, texts = [*names, "pictures/p", "pictures/q"], [*texts, "picture", "picture"]
    lines = data.draw(st.sets(st.sampled_from(list(combinations(range(len(names)), 2)))))
    listed = find_documents(open_workspace(""), [os.fsencode(folder)], DocumentParams())
    prints = read_prints(open_workspace(""), listed, np.arange(len(names)), WORDS).tolist()
    rows = [make_line(os.fsencode(names[a]), prints[a], os.fsencode(names[b]), prints[b])
            for a, b in lines]  # fmt: skip
    Accepted(WORDS).add(rows, "").save(folder / ACCEPTED_FILE)
    now, holds = dict(enumerate(names)), set(range(len(names)))
    for number, text in enumerate(texts):
        fate = data.draw(FATES) if texts.count(text) == 1 else "same"
        path = folder / names[number]
        if fate == "layout":
            path.write_text(f"  {text.upper()}!\n")
        elif fate == "time":
            os.utime(path, ns=(5, 5))
        elif fate == "changed":
            path.write_text(f"{text} {number}")
            holds.discard(number)
        elif fate == "renamed":
            now[number] = f"other {names[number]}"
            path.rename(folder / now[number])
            if definition in ("char", "bytes"):
                holds.discard(number)
        elif fate == "gone":
            path.unlink()
            del now[number]
    method = PairParams(same="bytes" if definition == "bytes" else "")
    given_ = GIVEN | DEFINITIONS[definition]
    opened = open_comparison("", [os.fsencode(folder)], method, **given_)
    sides, run = opened.sides, opened.run
    found = opened.names(np.arange(len(sides.sizes)))
    at = {
        os.fsdecode(os.path.relpath(name, os.fsencode(folder))): i for i, name in enumerate(found)
    }
    expected = {
        tuple(sorted((at[now[a]], at[now[b]])))
        for a, b in lines
        if {a, b} <= holds and {a, b} <= now.keys() and {now[a], now[b]} <= at.keys()
    }
    keys = find_accepted(run, None, opened.lists, opened.here.shingle, sides.prints.text_prints)
    assert {(int(key) >> 32, int(key) & 0xFFFFFFFF) for key in keys} == expected
    every = pairs_of(opened)
    left = pairs_of(replace(opened, sides=sides.leave_out(run, keys)) if len(keys) else opened)
    assert left == {pair: score for pair, score in every.items() if pair not in expected}
