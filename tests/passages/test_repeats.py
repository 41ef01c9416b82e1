"""Repeats of passages against what they are by definition, token by token."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.passages.finding import Passages, find_repeats

PLACES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=2, unique=True)
PASSAGES = st.lists(st.tuples(st.integers(1, 6), PLACES.map(sorted)), max_size=6)


def passages_of(drawn):
    places = [place for _, each in drawn for place in each]
    return Passages(
        np.array([tokens for tokens, _ in drawn], np.int64),
        np.cumsum([0, *(len(each) for _, each in drawn)]),
        np.array([document for document, _ in places], np.int64),
        np.array([first for _, first in places], np.int64),
    )


@settings(deadline=None)
@given(PASSAGES, st.permutations(range(4)), st.sampled_from([None, 1, 2]))
def test_repeats_are_all_places_but_one(drawn, order, split):
    expected = set()
    for tokens, places in drawn:
        kept = min(places, key=lambda place: (order.index(place[0]), place[1]))
        for document, first in places:
            if (document, first) != kept if split is None else document < split:
                expected |= {(document, token) for token in range(first, first + tokens)}
    runs = find_repeats(passages_of(drawn), np.array(order), split)
    columns = (runs.documents, runs.first, runs.sizes)
    listed = list(zip(*(each.tolist() for each in columns), strict=True))
    found = [(document, first + at) for document, first, n in listed for at in range(n)]
    assert found == sorted(expected)
    for (document, first, n), (following, begin, _) in pairwise(listed):
        assert document < following or first + n < begin, "two runs touch"


@given(PASSAGES)
def test_documents_of_a_passage_are_counted_once(drawn):
    counts = passages_of(drawn).count_documents().tolist()
    assert counts == [len({document for document, _ in places}) for _, places in drawn]
