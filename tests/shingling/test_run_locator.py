"""Runs of tokens of plain texts are located as `locate_tokens` locates those of one text."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.params import ShingleParams
from lshdup.shingling.inspection import RunLocator, locate_tokens
from lshdup.sources.reading import TextBatch
from tests.conftest import many

letters = st.sampled_from("aBz ,.\n_'ßÉé½ĳ日本กฺﬁ\u0301\u00ad\ufe0f\u3164\u2028İ😀")
texts = st.lists(st.one_of(st.text(letters, max_size=90), st.text(max_size=20)), max_size=5)
params = st.builds(
    ShingleParams,
    tokens=st.sampled_from(["word", "symbols", "char", "terms"]),
    keep_case=st.booleans(),
    normalize=st.booleans(),
)


@settings(max_examples=many(300), deadline=None)
@given(texts, params, st.booleans(), st.randoms(use_true_random=False))
def test_runs_are_where_their_tokens_are(documents, params, alone, chance):
    utf8 = [each.encode() for each in documents]
    located = [locate_tokens(each, params) for each in utf8]

    def run_of(n):
        first = chance.randrange(n + 1)
        return first, chance.randrange(1, n - first + 2)

    runs = [sorted(run_of(len(each.starts)) for _ in range(3)) for each in located]
    first, sizes = np.array([run for each in runs for run in each], np.int64).reshape(-1, 2).T
    bounds = 3 * np.arange(len(runs) + 1)
    begins, ends, is_plain = RunLocator(params).locate(
        TextBatch.of(range(len(utf8)), utf8), bounds, first.copy(), sizes.copy(), alone=alone
    )
    for d, each in enumerate(located):
        for i, (at, size) in enumerate(runs[d]):
            expected = (-1, -1)
            if is_plain[d] and at + size <= len(each.starts):
                begin, end = each.starts[at], each.ends[at + size - 1]
                if alone:
                    begin = max([begin, *each.ends[at - 1 : at]] if at else [begin])
                    end = max(begin, min([end, *each.starts[at + size : at + size + 1]]))
                expected = begin, end
            assert (begins[3 * d + i], ends[3 * d + i]) == expected
    if not any(set(each) - set("aBz ,._") for each in documents):
        assert is_plain.all()


def test_runs_behind_the_last_token_hide_none_before_it():
    """As of a document that has changed since its runs were found."""
    bounds, first, sizes = np.array([0, 3]), np.array([0, 1, 2]), np.array([4, 1, 2])
    batch = TextBatch.of(range(1), [b"one two three"])
    begins, ends, _ = RunLocator(ShingleParams()).locate(batch, bounds, first, sizes, alone=False)
    assert list(zip(begins, ends, strict=True)) == [(-1, -1), (4, 7), (-1, -1)]
