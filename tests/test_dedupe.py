"""`lshdup.dedupe`: what the obvious loop over all texts finds, as the texts come."""

import itertools
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lshdup
from lshdup.api import streams
from lshdup.base.run import Run
from lshdup.errors import InputError, ParameterError
from tests import reference
from tests.conftest import many, require
from tests.running import clean_environment

WORDS = "one two three four five six seven eight".split()

#: By which no pair is missed.
OPTIONS = {"threshold": 0.5, "k": 1, "recall": 0.9999999}


def dedupe_by_a_loop(texts, threshold=0.5, k=1):
    kept, answers = {}, []
    for number, text in enumerate(texts):
        own = set(reference.shingle_list(text, k=k))
        near = [(-reference.jaccard(own, each), other) for other, each in kept.items() if own]
        best = min((each for each in near if -each[0] >= threshold), default=(0, None))[1]
        if best is None:
            kept[number] = own
        answers.append((number, best))
    return answers


texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=40)


@settings(max_examples=many(100))
@given(texts, st.sampled_from([1, 3, 512]), st.sampled_from([1, 20, 4 << 20]))
def test_answers_are_those_of_the_obvious_loop(texts, together, size):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(streams, "_TOGETHER", together)
        patched.setattr(streams, "_BYTES", size)
        assert list(lshdup.dedupe(iter(texts), **OPTIONS)) == dedupe_by_a_loop(texts)


def test_many_texts_give_the_same_with_little_memory(monkeypatch):
    rng = random.Random(1)
    some = [" ".join(rng.choices("abcdefgh", k=rng.randint(2, 12))) for _ in range(1500)]
    wanted = dedupe_by_a_loop(some, k=2)
    assert 300 < sum(earlier is not None for _, earlier in wanted) < 1200
    options = {**OPTIONS, "k": 2}
    assert list(lshdup.dedupe(some, **options)) == wanted
    monkeypatch.setattr("lshdup.base.memory.MOST_IN_MEMORY", 0)
    monkeypatch.setattr(streams, "run_of", lambda _: Run.quiet(2, memory=16 << 20))
    assert list(lshdup.dedupe(some, **options)) == wanted


def test_texts_are_taken_as_answers_are():
    """An endless iterable has answers; the first one when only one text was taken."""
    taken = itertools.count()
    endless = (f"text number {next(taken) % 7} of seven" for _ in itertools.repeat(0))
    answers = lshdup.dedupe(endless, threshold=0.9)
    assert next(taken) == 0
    assert next(answers) == (0, None)
    assert next(taken) == 2
    rest = list(itertools.islice(answers, 2000))
    assert all(earlier is None or earlier < number for number, earlier in rest)
    assert next(taken) < 4200


MEASURE = """
import random, re
from lshdup import dedupe
from lshdup.api import streams
from lshdup.base.run import Run
streams.run_of = lambda _: Run.quiet(1, memory=16 << 20)
rng, used = random.Random(1), []
words = [f"w{number}" for number in range(9000)]
texts = (" ".join(rng.choices(words, k=250)) for _ in range(20_000))
for number, _ in dedupe(texts, num_permutations=32):
    if number % 1000 == 999:
        status = open("/proc/self/status").read()
        used.append(int(re.search(r"RssAnon:\\s+(\\d+)", status)[1]) >> 10)
print(used[4], max(used))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much memory is used")
def test_what_is_kept_is_not_in_memory():
    """Sets of 20,000 texts take 40 MB, and their texts as much."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], env=clean_environment(), capture_output=True, check=True
    )
    early, most = map(int, done.stdout.split())
    assert most - early < 20


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (None, InputError, "the text of document '3' is null, not str"),
        (b"bytes", InputError, "is bytes, not str"),
        ("\ud800", InputError, "cannot be UTF-8"),
        (OSError("of the source"), OSError, "of the source"),
    ],
)
def test_what_is_no_text_and_an_error_come_behind_the_answers_before_them(bad, error, message):
    def some():
        yield from ("a b c d", "a b c d", "x y z")
        if error is OSError:
            raise bad
        yield from (bad, "never")

    answers = lshdup.dedupe(some())
    assert [next(answers) for _ in range(3)] == [(0, None), (1, 0), (2, None)]
    with pytest.raises(error, match=message):
        next(answers)


@pytest.mark.parametrize(
    ("texts", "options", "error", "message"),
    [
        ("a text", {}, InputError, "texts are given as str"),
        ({"name": "text"}, {}, InputError, "texts are given as dict"),
        (None, {}, InputError, "texts are given as NoneType"),
        ([], {"threshold": 0}, ParameterError, "threshold is 0"),
        ([], {"num_permutations": 0}, ParameterError, "num_permutations"),
        ([], {"ignore_common": 0.5}, ParameterError, "ignore_common counts all documents"),
        ([], {"text_field": "body"}, ParameterError, "text_field"),
        ([], {"scheme": "linear"}, ParameterError, "scheme is linear"),
        ([], {"treshold": 0.5}, ParameterError, "'treshold' is no keyword here"),
    ],
)
def test_what_cannot_work_is_refused_at_once(texts, options, error, message):
    with pytest.raises(error, match=message):
        lshdup.dedupe(texts, **options)
    assert list(lshdup.dedupe([])) == []


def test_a_column_has_its_cells_looked_at():
    texts = ["a b c d", "x y z", "A b c d"]
    answers = list(lshdup.dedupe(texts))
    assert answers == [(0, None), (1, None), (2, 0)]
    for package, extra, make in (
        ("pyarrow", "parquet", "chunked_array"), ("pandas", "pandas", "Series"),
        ("polars", "polars", "Series"), ("numpy", "", "array"),
    ):  # fmt: skip
        column = getattr(require(extra, package), make)
        made = column([texts]) if make == "chunked_array" else column(texts)
        assert list(lshdup.dedupe(made)) == answers, package


def test_a_template_is_filtered():
    form = "this is a form that all of the letters here begin with and no one reads"
    letters = [f"{form} {end}" for end in ("alpha beta gamma delta", "epsilon zeta eta theta")]
    assert list(lshdup.dedupe(letters, 0.5)) == [(0, None), (1, 0)]
    options = {"templates": [form], "min_tokens": 1}
    answers = list(lshdup.dedupe([*letters, letters[0]], 0.5, **options))
    assert answers == [(0, None), (1, None), (2, 0)]
