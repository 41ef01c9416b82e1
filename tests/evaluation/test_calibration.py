"""`pairs --histogram`, `query --top`: how to choose a threshold, and how to see little of much."""

import itertools
import json

import numpy as np
import pytest

from lshdup.evaluation import histogram
from tests.conftest import part


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
