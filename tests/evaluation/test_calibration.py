"""`pairs --histogram`, `query --top`: how to choose a threshold, and how to see little of much."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.compare import expand_duplicates
from lshdup.compare.expand_duplicates import expand_copies
from lshdup.evaluation import histogram
from tests.compare.test_pairs import collections, found_pairs, rows
from tests.conftest import RUN, many, part

LEVELS = [0.3, 1 / 3, 0.4, 0.5, 0.6, 0.9, 0.95, 1.0]


@settings(max_examples=many(200), deadline=None)
@given(collections(), st.sampled_from([1, 3, 1 << 18]), st.booleans())
def test_counts_are_those_of_all_pairs_made(collection, piece, collapse):
    kinds, similar = collection
    pairs, duplicate_of = found_pairs(kinds, similar)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(expand_duplicates, "PIECE", piece)
        made = expand_copies(RUN, pairs, duplicate_of, collapse=collapse)
        every = [row for part in made.pieces() for row in rows(part)]
        totals, best = made.totals(np.array(LEVELS)), made.best(len(kinds))
    assert totals == [sum(s >= t for _, _, s in every) for t in LEVELS]
    for d in range(len(kinds)):
        assert best[d] == max([s for a, b, s in every if d in (a, b)], default=0.0)
    for low, high in zip(LEVELS, [*LEVELS[1:], np.inf], strict=True):
        there = [row for row in every if low <= row[2] < high]
        example = made.example(low, high)
        assert (example in there) if there else example is None
        assert example is None or example[2] == min(s for *_, s in there)


@pytest.mark.parametrize(
    ("lowest", "step", "expected"),
    [
        (0.8, 0.05, [0.8, 0.85, 0.9, 0.95, 1.0]), (1.0, 0.05, [1.0]), (0.5, 1.0, [0.5, 1.0]),
        (0.5, 0.3, [0.5, 0.6, 0.9, 1.0]),
    ],
)  # fmt: skip
def test_thresholds(lowest, step, expected):
    assert histogram.list_thresholds(lowest, step) == expected


def test_the_histogram_is_what_runs_of_their_own_say(run, corpus):
    low, sure = ("pairs", "-t", "0.5", "--recall", "0.9999"), ("--recall", "0.9999")
    result = run(*low, "sample_corpus", "--perms", "256", "--histogram")
    by_threshold = {float(t): row for t, *row in result.rows}
    assert list(by_threshold) == [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0]
    everything = run(*low).rows
    levels, grouped = [*by_threshold, np.inf], part([*by_threshold][:-1], 3)
    for t, above in itertools.pairwise(levels):
        own = [(float(s), a, b) for a, b, s, _ in everything if float(s) >= t]
        is_asked = t in grouped  # a run for each
        groups = {row[0] for row in run("clusters -t", str(t), *sure).rows} if is_asked else None
        pairs, documents, count, s, a, b = by_threshold[t]
        assert int(pairs) == len(own)
        assert int(documents) == len({name for _, *names in own for name in names})
        assert groups is None or int(count) == len(groups)
        assert float(s) < above
        assert (float(s), a, b) in own
        assert float(s) == min(own)[0]
    exact = run("pairs -t 0.5 --histogram --format json --exact")
    parsed = json.loads(exact.out)
    assert [[row["pairs"], row["documents"], row["groups"]] for row in parsed] == [
        [int(x) for x in row[:3]] for row in by_threshold.values()
    ]
    assert parsed[0].keys() == {"threshold", "pairs", "documents", "groups", "similarity", "a", "b"}
    run("pairs --histogram --check", code=1)
