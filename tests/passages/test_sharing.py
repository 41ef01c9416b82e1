"""Pairs of documents that share passages, against every diagonal of every pair."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.params import PassageParams
from lshdup.base.run import Run
from lshdup.passages import sharing
from lshdup.passages.anchors import Texts
from lshdup.passages.sharing import find_cover, find_sharing_pairs
from tests.conftest import many
from tests.passages.test_finding import chains, find_anchors, quotations, sequences_of, texts


def sharing_pairs(documents, params, origins=(), order=None, threshold=0.0, jobs=1, memory=1 << 30):
    """Rows (left, right, tokens of both, longest, passages) as the engine finds them.

    order : the documents in the order in which they are read.
    """
    order = range(len(documents)) if order is None else order
    sequences = sequences_of([documents[each] for each in order])
    of = np.array([origins[each] for each in order] if origins else (), np.uint32)
    read = Texts(sequences, find_anchors(sequences, params), np.array(order), of)
    found = find_sharing_pairs(Run.quiet(jobs, memory=memory), read, params, threshold=threshold)
    columns = found.left_tokens, found.right_tokens, found.longest, found.passages
    columns = [found.pairs >> 32, found.pairs % 2**32, *columns]
    return list(zip(*(each.tolist() for each in columns), strict=True))


def rare_anchors(documents, params):
    """The hashes of the anchors of each document that are not common, by their positions."""
    sequences = sequences_of(documents)
    anchors = find_anchors(sequences, params)
    holders = np.searchsorted(sequences.offsets, anchors.positions, side="right") - 1
    firsts = anchors.positions - sequences.offsets[holders]
    by_hash = {}
    for place in zip(anchors.hashes.tolist(), holders.tolist(), firsts.tolist(), strict=True):
        by_hash.setdefault(place[0], []).append(place[1:])
    most, rare = params.max_documents, [{} for _ in documents]
    for value, places in by_hash.items():
        if len({d for d, _ in places}) <= most and len(places) <= 2 * most:
            for d, first in places:
                rare[d][first] = value
    return rare


def common_runs(documents, params, *, all_rare=False):
    """Runs of two documents: begin in both, and tokens. all_rare : also those without anchors."""
    gram = find_anchors(sequences_of(documents), params).gram if params.gap else params.least
    rare = rare_anchors(documents, params)

    def runs_of(d, e):
        return [
            (i, j, n)
            for i, j, n in chains(documents[d], documents[e], gram, params.gap)
            if n >= params.least
            and (all_rare or any(rare[d].get(i + t, -1) == rare[e].get(j + t) for t in range(n)))
        ]

    return runs_of


def obvious_sharing(documents, params, origins=(), threshold=0.0, *, all_rare=False):
    """Rows as of `sharing_pairs`. all_rare : as of `common_runs`."""
    runs_of, rows = common_runs(documents, params, all_rare=all_rare), []
    for d, e in itertools.combinations(range(len(documents)), 2):
        runs = runs_of(d, e) if not origins or origins[d] != origins[e] else []
        covered = [len({run[side] + t for run in runs for t in range(run[2])}) for side in (0, 1)]
        share = max(n / max(len(documents[at]), 1) for n, at in zip(covered, (d, e), strict=True))
        if runs and share >= threshold:
            places = min(len({run[side] for run in runs}) for side in (0, 1))
            rows.append((-share, (d, e, *covered, max(n for _, _, n in runs), places)))
    return [row for _, row in sorted(rows)]


@settings(max_examples=many(200))
@given(texts(), st.integers(2, 14), st.sampled_from([0, 0, 1, 3]), st.sampled_from([1, 2, 99]),
       st.sampled_from([0.0, 0.3, 1.0]), st.data())  # fmt: skip
def test_pairs_are_those_of_all_common_runs(documents, least, gap, common, threshold, data):
    n, kinds = len(documents), data.draw(st.sampled_from([0, 1, 2]))
    origins = data.draw(st.lists(st.integers(0, kinds), min_size=n, max_size=n)) if kinds else ()
    params, order = PassageParams(least, common, gap), data.draw(st.permutations(range(n)))
    expected = obvious_sharing(documents, params, origins, threshold)
    if not gap and common == 99:
        assert expected == obvious_sharing(documents, params, origins, threshold, all_rare=True)
    for jobs, memory in ((1, 1 << 30), (4, 2000)):
        found = sharing_pairs(documents, params, origins, order, threshold, jobs, memory)
        assert found == expected


def test_a_chain_is_found_past_anchors_that_recur_nowhere():
    """Before its only common anchor, both documents have one that no other document has."""
    left = [*range(100, 111), 0, *range(102, 107), 0]
    right = [*range(105, 111), 1, *range(102, 107), 0]
    assert sharing_pairs([left, right], PassageParams(8, 2, 1)) == [(0, 1, 13, 13, 13, 1)]


def test_runs_are_found_with_room_for_one_member_at_a_time(monkeypatch):
    monkeypatch.setattr(sharing, "AT_ONCE", 1)
    monkeypatch.setattr(sharing, "GROUPS_AT_ONCE", 1 << 20)
    expected = obvious_sharing(quotations(), PassageParams(6), all_rare=True)
    assert sharing_pairs(quotations(), PassageParams(6)) == expected
    assert len(expected) == 105


def test_a_pair_is_found_though_each_of_both_shares_more_with_its_copy():
    """No passage of the listing has a place in both: theirs is a part of longer ones."""
    text = list(range(1000, 1100))
    documents = [[*text, 1, *range(60)], [*text, 2, *range(60)]]
    documents += [[7, *text[20:90], 8, *range(200, 300)]] * 2
    params = PassageParams(50)
    rows = sharing_pairs(documents, params)
    assert rows == obvious_sharing(documents, params, all_rare=True)
    assert [row[:2] for row in rows][2:] == [(0, 2), (0, 3), (1, 2), (1, 3)]
    assert {row[2:] for row in rows[2:]} == {(70, 70, 70, 1)}


@pytest.mark.parametrize("common", [2, 3])
def test_what_more_documents_have_makes_no_pair(common):
    documents = [[*range(100, 200), n, *range(n * 1000, n * 1000 + 99)] for n in range(1, 4)]
    assert len(sharing_pairs(documents, PassageParams(50, common))) == (0 if common < 3 else 3)


def obvious_cover(documents, params):
    """The documents that cover the first one, by sets of its tokens."""
    runs_of = common_runs(documents, replace(params, max_documents=1000))
    shared = {
        d: {i + t for i, _, n in runs_of(0, d) for t in range(n)} for d in range(1, len(documents))
    }
    covered, rows = set(), []
    while True:
        new, d = max(((len(shared[d] - covered), -d) for d in shared), default=(0, 0))
        if new < params.least:
            return rows
        rows.append((-d, new, len(shared[-d])))
        covered |= shared[-d]


def covering(documents, params, jobs):
    """What `find_cover` finds of the first document in the others."""
    sequences, numbers = sequences_of(documents), np.arange(len(documents))
    read = Texts(sequences, find_anchors(sequences, params), numbers, (numbers > 0).astype("u4"))
    return find_cover(Run.quiet(jobs), read, params)


@given(texts(), st.integers(2, 14), st.sampled_from([0, 0, 1, 3]), st.sampled_from([1, 3]))
def test_documents_that_cover_a_text(documents, least, gap, jobs):
    params = PassageParams(least, gap=gap)
    assert covering(documents, params, jobs)[0] == obvious_cover(documents, params)


def test_a_text_is_covered_by_what_thousands_have():
    """What is common in the collection counts; what the text itself repeats a lot does not."""
    documents = [[*range(100), *[5] * 2000], *[[*range(99), n + 1000] for n in range(1500)]]
    documents += [list(range(100)), [5] * 2000]
    cover, most_common = covering(documents, PassageParams(50), 2)
    assert cover == [(1501, 100, 100)]
    assert most_common > 2000
