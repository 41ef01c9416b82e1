"""Variants of a group: each once, with those who have it."""

import itertools
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from lshdup.base.run import Run
from lshdup.params import ShingleParams
from lshdup.shingling.inspection import locate_tokens
from lshdup.views.comparison import align_tokens, extract_passage
from lshdup.views.pair_view import VariantCollector, _find_segments, find_differences

WORDS = st.lists(st.sampled_from("a b c d e f g".split()), max_size=30)


def located(text, **options):
    return locate_tokens(text.encode(), ShingleParams(**options))


def variants_of(kept, *members, **options):
    """Variants of the members of a group, each with the words that are in its place."""
    kept, collector = located(kept, **options), VariantCollector()
    for at, each in enumerate(members):
        member = located(each, **options)
        collector.add(at, align_tokens(kept, member, ShingleParams(**options)))
    return [(v, extract_passage(kept, v.start, v.end).strip()) for v in collector.variants()]


def listed(kept, *members, **options):
    found = variants_of(kept, *members, **options)
    return [(passage, v.text.strip(), v.members) for v, passage in found]


@given(WORDS, st.lists(WORDS, max_size=5))
def test_the_variants_of_a_member_make_its_text_of_the_kept_one(kept, members):
    variants = [v for v, _ in variants_of(" ".join(kept), *map(" ".join, members))]
    for number, member in enumerate(members):
        made = list(kept)
        for each in reversed([v for v in variants if number in v.members]):
            made[each.start : each.end] = each.text.split()
        assert made == member
    keys = [(v.start, v.end, tuple(v.text.split())) for v in variants]
    assert len(set(keys)) == len(keys)
    assert all(v.start <= v.end <= len(kept) for v in variants)


def test_what_is_the_same_is_shown_as_the_first_text_has_it():
    one, other = located("One Two three four"), located("ONE, TWO; five four!")
    segments = _find_segments(align_tokens(one, other, ShingleParams()), 9, "word")
    found = [(kind, text.strip()) for kind, text in segments]
    assert found == [("=", "One Two"), ("-", "three"), ("+", "five"), ("=", "four")]


def test_each_variant_is_listed_once_with_those_who_have_it():
    text = "The price is 10 euro. Delivery takes three days, and returns are free for a month."
    dear, late = text.replace("10", "12"), text.replace("three", "five")
    both = dear.replace("three", "five")
    found = listed(text, dear, text, late, both.upper(), dear, text + " Thank you.")
    assert found == [("10", "12", (0, 3, 4)), ("three", "five", (2, 3)), ("", "Thank you.", (5,))]
    assert listed(text, text, text.upper()) == []
    assert listed(text, text.upper(), keep_case=True) != []


def test_a_repeated_word_is_added_or_removed_in_one_place():
    """Whatever else is changed before and behind it."""
    words = [f"w{i}" for i in range(40)]
    words[20:20] = ["x"] * 3
    kept = " ".join(words)
    found = set()
    for before, behind in itertools.product((None, 3, 17, 19), (None, 24, 30)):
        made = ["other" if at in (before, behind) else word for at, word in enumerate(words)]
        for xs in ([], ["x", "x"]):
            text = " ".join(made[:22] + xs + made[23:])
            found |= {v[:2] for v in listed(kept, text) if "other" not in v[1]}
    assert found == {("x", ""), ("", "x")}
    [(variant, _)] = variants_of(kept, " ".join(words[:20] + words[21:]))
    assert (variant.start, variant.end) == (22, 23)


def test_terms_characters_and_nothing():
    assert listed("", "new text", "") == [("", "new text", (0,))]
    assert listed("old text", "") == [("old text", "", (0,))]
    assert listed("abcdef", "abXdef", tokens="char", k=3) == [("c", "X", (0,))]


def test_a_member_that_cannot_be_read_costs_no_other():
    """The next ones are compared; so are those behind a kept document that cannot be read."""
    texts = {0: "one two three four", 2: "one two three five", 3: "one two three six"}

    def read(document):
        return located(texts[document]) if document in texts else f"{document} is gone"

    groups, params = [(0, [1, 2, 3]), (4, [2, 3]), (2, [1]), (2, [3])], ShingleParams()
    ways = read, partial(align_tokens, params=params), params
    found = find_differences(Run.quiet(), groups, *ways, 9, 10_000)
    assert [*found.segments] == [(0, 2), (0, 3), (2, 3)]
    gone = {(0, 1): "1 is gone", (4, 2): "4 is gone", (4, 3): "4 is gone", (2, 1): "1 is gone"}
    assert found.without == {None: "more than --differences 9", **gone}
    few = find_differences(Run.quiet(), groups, *ways, 2, 10_000)
    assert [*few.segments] == [(0, 2)]
    full = find_differences(Run.quiet(), [(0, [2, 1]), (4, [2])], *ways, 9, 10)
    assert not full.segments
    assert full.without == {None: "the page would be too large; --differences N takes N"}
