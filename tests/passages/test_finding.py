"""Passages against the obvious: every pair of places compared, every occurrence looked for."""

import itertools
import random
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.params import PassageParams
from lshdup.base.ragged import RaggedSets
from lshdup.base.run import Run
from lshdup.passages import finding
from lshdup.passages.anchors import AnchorKeeper, Anchors, Texts, plan_anchors, plan_grams, select
from lshdup.passages.finding import Passages, find_passages, find_repeats
from tests.conftest import many


def sequences_of(documents):
    values = np.array(list(itertools.chain(*documents)), np.uint64)
    return RaggedSets.from_sizes(values, np.array([len(each) for each in documents], np.int64))


def find_anchors(sequences, params):
    """All anchors, in memory, and those of no other place too."""
    gram, window = plan_anchors(params)
    return Anchors(*select(sequences, gram, window), gram, window)


def found_passages(documents, least, origins=(), *, jobs=1, memory=1 << 30, common=1000, gap=0):
    """Passages as the engine finds them: (tokens, [(document, first token), …])."""
    sequences = sequences_of(documents)
    params = PassageParams(least, common, gap)
    stages = {}
    run = Run.quiet(jobs, memory=memory)
    run = replace(run, progress=lambda stage, *shares: stages.update({stage: shares}))
    keeper = AnchorKeeper(run, params, 0)
    for d, at in enumerate(sequences.offsets[:-1].tolist()):
        hashes, positions = select(sequences.take(np.array([d])), keeper.gram, keeper.window)
        keeper.add(hashes, positions + at)
    anchors = keeper.recurring() if jobs > 1 else find_anchors(sequences, params)
    texts = Texts(sequences, anchors, np.arange(len(sequences)), np.array(origins, np.uint32))
    found = find_passages(run, texts, params)
    assert all(done == total for done, total in stages.values())
    places = list(zip(found.documents.tolist(), found.first.tolist(), strict=True))
    cuts = itertools.pairwise(found.starts.tolist())
    return [(n, places[i:j]) for n, (i, j) in zip(found.tokens.tolist(), cuts, strict=True)]


def chains(a, b, gram, gap):
    """Begin in both and tokens of what is equal but for gaps, on every diagonal of two texts."""
    for shift in range(-len(a) + 1, len(b)):
        i, j = max(-shift, 0), max(shift, 0)
        same = "".join("01"[x == y] for x, y in zip(a[i:], b[j:], strict=False))
        runs = [run.span() for run in re.finditer(f"1{{{gram},}}", same)]
        cuts = [n for n in range(1, len(runs)) if runs[n][0] - runs[n - 1][1] > gap]
        for first, end in itertools.pairwise([0, *cuts, len(runs)] if runs else []):
            yield i + runs[first][0], j + runs[first][0], runs[end - 1][1] - runs[first][0]


def obvious_places(documents, sequence):
    """All places of a sequence, from left to right, that do not overlap the place before."""
    places = []
    for d, document in enumerate(documents):
        free = 0
        for i in range(len(document) - len(sequence) + 1):
            if i >= free and tuple(document[i : i + len(sequence)]) == sequence:
                places.append((d, i))
                free = i + len(sequence)
    return places


def obvious_passages(documents, least, origins=()):
    runs = set()  # all maximal common ones that do not overlap: document, first token, tokens
    for d, e in itertools.combinations_with_replacement(range(len(documents)), 2):
        if not len(origins) or origins[d] != origins[e]:
            for i, j, n in chains(documents[d], documents[e], least, 0):
                if d != e or j - i >= n:
                    runs |= {(d, i, n), (e, j, n)}

    def is_inside(run, other):
        (d, i, n), (e, j, m) = run, other
        return run != other and e == d and j <= i and i + n <= j + m

    longest = [run for run in runs if not any(is_inside(run, other) for other in runs)]
    sequences = {tuple(documents[d][i : i + n]) for d, i, n in longest}
    passages = [(len(each), obvious_places(documents, each)) for each in sequences]
    return sorted(passages, key=lambda each: (-each[0] * (len(each[1]) - 1), each[1][0], -each[0]))


def anchors_of(document, least, hashes):
    """Positions that winnowing selects: of each window the last of the smallest hashes."""
    gram, window = plan_grams(least)
    values = [hashes[tuple(document[t : t + gram])] for t in range(len(document) - gram + 1)]
    windows = (range(t, t + window) for t in range(len(values) - window + 1))
    return sorted({min(each, key=lambda t: (values[t], -t)) for each in windows})


pieces = st.lists(st.tuples(st.integers(0, 24), st.integers(1, 25), st.integers(0, 9)), max_size=4)


@st.composite
def texts(draw):
    """Documents of few tokens, or that quote one text."""
    if draw(st.booleans()):
        few = st.integers(0, draw(st.integers(0, 3)))
        return draw(st.lists(st.lists(few, max_size=35), min_size=1, max_size=4))
    quoted = [100 + i % 23 for i in range(50)]
    return [
        [token for start, size, own in each for token in (*quoted[start : start + size], own)]
        for each in draw(st.lists(pieces, min_size=1, max_size=5))
    ]


@settings(max_examples=many(150))
@given(texts(), st.integers(2, 14), st.sampled_from([1, 2, 4]), st.data())
def test_passages_are_those_of_all_pairs(documents, least, jobs, data):
    """Of any documents, or of several origins: each has a place in two of them."""
    n, kinds = len(documents), data.draw(st.sampled_from([0, 1, 2, 5]))
    origins = data.draw(st.lists(st.integers(0, kinds), min_size=n, max_size=n)) if kinds else ()
    expected = obvious_passages(documents, least, origins)
    assert found_passages(documents, least, origins, jobs=jobs) == expected
    assert found_passages(documents, least, origins, memory=2000) == expected
    for _, places in expected if origins else ():
        assert len({origins[document] for document, _ in places}) > 1


@pytest.mark.parametrize("times", [2.5, 3, 4])
def test_what_one_document_says_again_and_again(times):
    """A run is no longer than from one of its places to the next in the same document."""
    once = list(range(12))
    document = [7, *once * int(times), *once[: int(times % 1 * 12)], 8]
    for documents in ([document], [document, [9, *once]]):
        expected = obvious_passages(documents, 5)
        assert found_passages(documents, 5) == expected
    assert len(expected[0][1]) == int(times) + 1


@pytest.mark.parametrize("seed", range(8))
def test_quotations_that_begin_and_end_anywhere(seed):
    """Pieces of one long text, each in more documents than those around it, or in fewer."""
    chance = random.Random(seed)
    text = [chance.randrange(10**6) for _ in range(120)]
    documents = [[] for _ in range(12)]
    for document in documents:
        for _ in range(chance.randrange(1, 4)):
            start = chance.randrange(100)
            document += [chance.randrange(10**6), *text[start : start + chance.randrange(5, 90)]]
    least = chance.choice([4, 8, 12])
    assert found_passages(documents, least) == obvious_passages(documents, least)


def quotations():
    """Fifteen documents of four pieces of one text, each with a token of its own behind it."""
    chance = random.Random(5)
    text = [chance.randrange(10**6) for _ in range(200)]
    starts = [[chance.randrange(160) for _ in range(4)] for _ in range(15)]
    return [[t for at in each for t in (*text[at : at + 40], at)] for each in starts]


def test_passages_are_found_with_room_for_one_group_at_a_time(monkeypatch):
    expected = obvious_passages(quotations(), 6)
    assert len(expected) > 50
    monkeypatch.setattr(finding, "AT_ONCE", 1)
    monkeypatch.setattr(finding, "GROUPS_AT_ONCE", 1 << 20)
    assert found_passages(quotations(), 6) == expected


@given(texts(), st.integers(2, 14), st.sampled_from([1, 2, 3, 7]))
def test_places_are_true_and_complete_whatever_is_common(documents, least, common):
    passages = found_passages(documents, least, common=common)
    assert len(passages) == len({(*places, size) for size, places in passages})
    for size, places in passages:
        assert size >= least
        assert len(places) > 1
        d, i = places[0]
        assert places == obvious_places(documents, tuple(documents[d][i : i + size]))


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(2, 20))
def test_anchors_are_the_smallest_of_windows(document, least):
    sequences = sequences_of([[7], document])
    gram, _ = plan_grams(least)
    anchors = find_anchors(sequences, PassageParams(least))
    positions, hashes = anchors.positions.tolist(), anchors.hashes.tolist()
    chosen = [tuple(document[p - 1 : p - 1 + gram]) for p in positions]
    known = dict(zip(chosen, hashes, strict=True))
    grams = {tuple(document[t : t + gram]) for t in range(max(len(document) - gram + 1, 0))}
    # A gram that no window selects is larger than those that are.
    expected = anchors_of(document, least, {each: known.get(each, 1 << 64) for each in grams})
    assert [position - 1 for position in positions] == expected


FORM, TEXT = list(range(1000, 1200)), [list(range(100 * n, 100 * n + 60)) for n in range(25, 31)]
LETTERS = [[*FORM[:100], *range(10 * n, 10 * n + 9), *FORM[100:]] for n in range(2000, 2030)]
LETTERS[7] = LETTERS[3]
CHANGED = [token if i % 10 != 9 else 10_000 + i for i, token in enumerate(range(1000, 1300))]
QUOTING = [[1, 2, *range(1000, 1300), 3], [4, *CHANGED, 5], [6, 7, 8, *range(1050, 1150), 9]]
NUMBERED = [[*FORM[:30], 10 * n, *FORM[30:90], 10 * n + 1, 10 * n + 2] for n in range(2000)]
REPEATED = [
    [*TEXT[0], 7, 8, 9, *TEXT[1], *TEXT[2], *TEXT[1]],
    [*TEXT[3], 7, 8, 9, *TEXT[1], *TEXT[4], *TEXT[1]],
    [*TEXT[5], *TEXT[1]],
]
OF_REPEATED = (60, [(0, 63), (0, 183), (1, 63), (1, 183), (2, 60)]), (63, [(0, 60), (1, 60)])

#: Documents, options of the search, and passages of at least 50 tokens.
KNOWN = {
    "one template is one passage": (NUMBERED, {}, [(60, [(n, 31) for n in range(2000)])]),
    "also by two jobs": (NUMBERED, {"jobs": 2}, [(60, [(n, 31) for n in range(2000)])]),
    # Two letters of a form, filled alike: the form and their filling are one passage of theirs.
    "a rare run in a common one is found with it": (
        LETTERS, {"common": 5},
        [*((100, [(n, at) for n in range(30)]) for at in (0, 109)), (209, [(3, 0), (7, 0)])],
    ),
    # Other tokens stand between them, which are as many and have no anchor that recurs.
    "common passages at one distance are two": (
        [[*FORM[:60], *range(10**6 + 100 * n, 10**6 + 100 * n + 80), *TEXT[0]] for n in range(3)],
        {"jobs": 2, "common": 1}, [(60, [(n, at) for n in range(3)]) for at in (0, 140)],
    ),
    # At two of five places the three tokens before it are the same, and no anchor of theirs.
    "what few documents repeat is not common": (REPEATED, {"common": 3}, [*OF_REPEATED]),
    "nor is what stands behind it": (
        [[*REPEATED[0], *FORM[:70]], [*REPEATED[1], 1, *FORM[:70]], REPEATED[2]],
        {"common": 3}, [OF_REPEATED[0], (70, [(0, 243), (1, 244)]), OF_REPEATED[1]],
    ),
    "equal documents are one passage": (
        [list(range(300))] * 1500, {}, [(300, [(n, 0) for n in range(1500)])]),
    "every tenth token is changed": (QUOTING, {}, [(100, [(0, 52), (2, 3)])]),
    "with a gap": (QUOTING, {"gap": 1}, [(299, [(0, 2), (1, 1)]), (100, [(0, 52), (2, 3)])]),
}  # fmt: skip


@pytest.mark.parametrize("case", KNOWN)
def test_known_passages(case):
    documents, options, expected = KNOWN[case]
    assert found_passages(documents, 50, **options) == expected


def test_a_word_repeated_is_one_passage():
    [(size, places)] = found_passages([[5] * 100_000], 50)
    assert 50 <= size < 53  # Places of two grams of 26, without overlaps, are half of those of one.
    assert places == [(0, size * i) for i in range(100_000 // size)]


@pytest.mark.parametrize(
    ("period", "gap", "most", "least"),
    [(1, 8, 120, 29_000), (3, 8, 120, 29_000), (7, 8, 120, 29_000), (30, 0, 60, 24_950)],
)
def test_a_text_that_repeats_itself_is_few_passages_of_many_places(period, gap, most, least):
    found = found_passages([list(range(period)) * (30_000 // period)], 50, common=100, gap=gap)
    assert 0 < len(found) < 5
    assert all(50 <= size <= most and size * len(places) >= least for size, places in found)


def test_a_long_text_and_its_copy_are_compared_once(monkeypatch):
    """The passage is extended from one of its anchors, not from each to the end of the text."""
    found, compare = [], finding.compare_in_pairs

    def counted(*arguments):
        found.append(compare(*arguments))
        return found[-1]

    monkeypatch.setattr(finding, "compare_in_pairs", counted)
    text = np.random.default_rng(3).integers(0, 1 << 63, 50_000, dtype=np.uint64).tolist()
    assert found_passages([[1, *text], [2, *text]], 50) == [(50_000, [(0, 1), (1, 1)])]
    assert sum(found) == 2  # a run at each of its places


def test_near_copies_have_few_passages_though_each_differs():
    """Of 3,000 copies of a text with a word changed, most of the rest is in a passage."""
    copies, every = np.tile(np.arange(1000, 1400), (3000, 1)), np.arange(3000)
    copies[every, np.random.default_rng(5).integers(400, size=3000)] = 10_000 + every
    found = found_passages(copies.tolist(), 50, common=100)
    assert len(found) < 100
    covered = np.zeros((3000, 400), bool)
    for size, places in found:
        for d, i in places:
            covered[d, i : i + size] = True
    assert covered.mean() > 0.6


@given(st.data(), st.integers(1, 9))
def test_places_of_a_passage_with_gaps_differ_in_gaps_only(data, gap):
    chance = data.draw(st.randoms(use_true_random=False))
    text = [chance.randrange(9) for _ in range(120)]
    documents = []
    for n in range(4):
        start = chance.randrange(60)
        copy = text[start : start + chance.randrange(20, 60)]
        documents.append([token if chance.random() > 0.1 else 100 + n for token in copy])
    found = found_passages(documents, 20, gap=gap)
    for size, places in found:
        assert size >= 20
        sequences = [tuple(documents[d][i : i + size]) for d, i in places]
        # The passage is that of one of its places.
        assert any(all((0, 0, size) in chains(a, b, 5, gap) for b in sequences) for a in sequences)
    with_gaps = [(d, i, size) for size, places in found for d, i in places]
    for size, places in found_passages(documents, 20):
        for d, i in places:
            assert any(d == e and j <= i and i + size <= j + m for e, j, m in with_gaps)


PLACES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=2, unique=True)
PASSAGES = st.lists(st.tuples(st.integers(1, 6), PLACES.map(sorted)), max_size=6)


def passages_of(drawn):
    places = [place for _, each in drawn for place in each]
    documents, first = np.array(places, np.int64).reshape(-1, 2).T.copy()
    starts = np.cumsum([0, *(len(each) for _, each in drawn)])
    return Passages(np.array([n for n, _ in drawn], np.int64), starts, documents, first)


@given(
    PASSAGES, st.permutations(range(4)), st.sampled_from([None, 1, 2]),
    st.sampled_from([[], [0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 1, 2]]),
)  # fmt: skip
def test_repeats_are_all_places_but_one(drawn, order, split, origins):
    """But those of the origin of the one, which are not compared with it."""
    expected, origins = set(), origins if split is None else []
    for tokens, places in drawn:
        kept = min(places, key=lambda place: (order.index(place[0]), place[1]))
        for document, first in places:
            is_apart = bool(origins) and origins[document] == origins[kept[0]]
            is_repeat = (document, first) != kept if split is None else document < split
            if is_repeat and not is_apart:
                expected |= {(document, token) for token in range(first, first + tokens)}
    of = np.array(origins, np.uint32)
    runs = find_repeats(passages_of(drawn), np.array(order), split, of)
    columns = (runs.documents, runs.first, runs.sizes)
    listed = list(zip(*(each.tolist() for each in columns), strict=True))
    assert sorted(expected) == [(d, first + at) for d, first, n in listed for at in range(n)]
    for (document, first, n), (following, begin, _) in itertools.pairwise(listed):
        assert document < following or first + n < begin, "two runs touch"


@given(PASSAGES)
def test_documents_of_a_passage_are_counted_once(drawn):
    counts = passages_of(drawn).count_documents().tolist()
    assert counts == [len({document for document, _ in places}) for _, places in drawn]
