"""What differs between two texts, by words and by lines, and between those of a group: where tokens
stand, what changed, and what a person sees of `lshdup show`.
"""

import json
import re
from collections import Counter
from functools import partial
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lshdup.base.params import ShingleParams, SketchParams
from lshdup.kernels.differences import align, heaviest_chain
from lshdup.shingling.inspection import locate_tokens, number_repeats
from lshdup.shingling.shingler import Shingler
from lshdup.views import comparison
from lshdup.views.changes import ADDED, ALIKE, MOVED_AWAY, MOVED_HERE, REMOVED, find_changes
from lshdup.views.pair_view import VariantCollector, _find_segments, find_differences
from lshdup.views.terminal import Layout, render
from tests import golden
from tests.conftest import RUN, many, part, write_files
from tests.documents import list_tokens
from tests.reference import is_ignorable
from tests.running import in_terminal

#: Characters with marks that compose, are reordered, or become several characters.
PARTS = [
    "e\u0301", "a", " ", "ﬁ", "ᄒ", "ᅡ", "ᆫ", "か\u3099", "ｶﾞ", "q\u0323\u0307", "q\u0307\u0323",
    "\u0301", "½", "\ufdfa", "ΐ", "漢", "Å", ".", "\u0f71",
]  # fmt: skip
TEXT = st.lists(st.sampled_from(PARTS)).map("".join)
TEXT |= st.text(st.sampled_from("aAbB ,.\n\t_1éÉ\u0301ßﬁﷺΐ中文ไท่\u200d\u00ad"), max_size=60)
TOKENS = ("word", "symbols", "char", "terms")
WORDS = st.lists(st.sampled_from("abcdefg"), max_size=30)


@settings(max_examples=3 * many(100))
@given(TEXT, st.sampled_from(TOKENS), st.booleans(), st.booleans())
@example(text="1 \u0301", tokens="char", keep_case=False, normalize=True)
@example(text="\u0301\n\u0301\u3000a", tokens="char", keep_case=True, normalize=True)
def test_tokens_are_where_they_are_said_to_be(text, tokens, keep_case, normalize):
    """In normal form the token stands there; a character of several tokens, for each of them."""
    params = ShingleParams(tokens=tokens, k=1, keep_case=keep_case, normalize=normalize)
    words, _ = list_tokens(text.encode(), params)
    located = locate_tokens(text.encode(), params)
    assert len(located.starts) == len(words) == len(located.tokens)
    assert located.text == text.encode()
    assert (located.starts < located.ends).all()
    assert (np.diff(located.starts) >= 0).all()
    for start, end, word in zip(located.starts.tolist(), located.ends.tolist(), words, strict=True):
        there = located.text[start:end]
        again, _ = list_tokens(there, params)
        seen = "".join(each for each in there.decode() if not is_ignorable(each))
        assert word in again or (tokens == "char" and word == b" " and not seen.strip())
    if len(words):
        tokens = located.tokens
        assert [a == b for a in words for b in words] == [a == b for a in tokens for b in tokens]


def test_texts_keep_their_spelling():
    for text, spans in {
        "Die STRASSE, ﬁn": [(0, 3), (4, 11), (13, 17)], "E\u0301te\u0301 UND": [(0, 7), (8, 11)],
    }.items():  # fmt: skip
        located = locate_tokens(text.encode(), ShingleParams())
        assert located.text == text.encode()
        assert [*zip(located.starts.tolist(), located.ends.tolist(), strict=True)] == spans


def valid(a, b, changes):
    """Changes cover both, in order; what is alike is alike. Returns how many tokens are what."""
    assert [i for c in changes for i in range(c.a_start, c.a_end)] == list(range(len(a)))
    assert [i for c in changes for i in range(c.b_start, c.b_end)] == list(range(len(b)))
    counts = Counter(dict.fromkeys((ALIKE, REMOVED, ADDED, MOVED_AWAY, MOVED_HERE), 0))
    for c in changes:
        assert c.tokens > 0
        counts[c.kind] += c.tokens
        if c.kind == ALIKE:
            assert a[c.a_start : c.a_end].tolist() == b[c.b_start : c.b_end].tolist()
        else:
            assert (c.a_start == c.a_end) == (c.kind in (ADDED, MOVED_HERE))
            assert (c.b_start == c.b_end) == (c.kind in (REMOVED, MOVED_AWAY))
    return counts


def row(values):
    return np.array(values, np.uint64)


def lcs_score(a, b):
    """The slow reference: two for an element, one more where the next of both is taken too."""
    n, m = len(a), len(b)
    # Of what is left: any; or if this pair is taken.
    best = [[(0, -1)] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            after, next_taken = best[i + 1][j + 1]
            taken = 2 + max(after, next_taken + (next_taken >= 0)) if a[i] == b[j] else -1
            best[i][j] = (max(best[i + 1][j][0], best[i][j + 1][0], taken), taken)
    return best[0][0][0]


def aligned(a, b):
    """Pairs of places that `align` takes."""
    steps, scores = np.empty(len(a) * len(b) + 1, np.uint8), np.empty(len(b) + 1, np.int32)
    matches = np.empty(2 * min(len(a), len(b)) + 2, np.int64)
    found = align(row(a), row(b), steps, scores, matches)
    return matches[: 2 * found].reshape(-1, 2).tolist()


@given(st.lists(st.integers(0, 4), max_size=12), st.lists(st.integers(0, 4), max_size=12))
def test_align_finds_a_common_subsequence_about_as_good_as_the_best(a, b):
    pairs = aligned(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))
    score = 2 * len(pairs) + sum(k == i + 1 and m == j + 1 for (i, j), (k, m) in pairwise(pairs))
    assert 3 * score >= 2 * lcs_score(a, b)  # the longest has two thirds of the best or more


def test_align_prefers_a_run_to_scattered_words():
    assert aligned([1, 2, 3], [1, 9, 2, 9, 3, 8, 1, 2, 3]) == [[0, 6], [1, 7], [2, 8]]


def is_rising(values):
    return all(a < b for a, b in pairwise(values))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.data())
def test_the_heaviest_chain_is_that_of_trying_all(weight, data):
    n = len(weight)
    rank = data.draw(st.permutations(range(n)))
    chains = (list(each) for size in range(n + 1) for each in combinations(range(n), size))
    best = max(sum(weight[i] for i in each) for each in chains if is_rising(rank[i] for i in each))
    chain, spare = np.empty(n, np.int64), [np.empty(n + 1, np.int64) for _ in range(3)]
    found = heaviest_chain(np.array(rank), np.array(weight), *spare, chain)
    taken = chain[n - found :].tolist()
    assert is_rising(taken)
    assert is_rising(rank[i] for i in taken)
    assert sum(weight[i] for i in taken) == best


ROWS = st.lists(st.integers(0, 5), max_size=40)


@given(ROWS, ROWS, st.integers(1, 4), st.integers(2, 6))
@example([*range(10)], [*range(3, 10), 0, 1, 2], 3, 3)
@example([0, 0, 0, 0, 1, 1], [0, 1, 1, 0, 0], 1, 2)
def test_any_two_rows(a, b, passage, moved):
    """Changes are true. What has moved are passages that were removed and were added, and each has
    tokens that have moved: all but those that overlap the same passage.
    """
    alike = [(ALIKE, 0, len(a), 0, len(a))] if a else []
    assert find_changes(row(a), row(a), passage, moved) == alike
    changes = find_changes(row(a), row(b), passage, moved)
    valid(row(a), row(b), changes)

    def passages_and_marks(values, kind, side):
        stretches = _changed(changes, side)
        places = [at for start, end in stretches for at in range(start, end - moved + 1)]
        marked = {at for c in changes if c.kind == kind for at in range(c[side], c[side + 1])}
        return {at: tuple(values[at : at + moved]) for at in places}, marked

    sides = passages_and_marks(a, MOVED_AWAY, 1), passages_and_marks(b, MOVED_HERE, 3)
    both = set.intersection(*({*passages.values()} for passages, _ in sides))
    for passages, marked in sides:
        common = [set(range(at, at + moved)) for at, each in passages.items() if each in both]
        assert marked <= set().union(*common)
        assert all(marked & each for each in common)


def _changed(changes, side):
    """Start and end of the stretches of a text between those that are alike."""
    cuts = [0]
    for change in changes:
        if change.kind == ALIKE:
            cuts += change[side : side + 2]
    end = max((change[side + 1] for change in changes), default=0)
    return list(zip(cuts[::2], [*cuts[1::2], end], strict=True))


def test_single_words_in_a_long_text():
    rng = np.random.default_rng(3)
    a = rng.integers(0, 5000, 20_000).astype(np.uint64)
    b = np.delete(a, [100, 7000])
    b[15_000] = 10**9
    b = np.insert(b, 19_000, 10**9 + 1)
    counts = valid(a, b, find_changes(a, b, 3, 8))
    assert (counts[REMOVED], counts[ADDED], counts[MOVED_HERE]) == (3, 2, 0)


def test_a_moved_passage_is_said_to_have_moved():
    a = np.arange(1000, dtype=np.uint64)
    b = np.concatenate([a[:100], a[150:800], a[100:150], a[800:]])
    changes = find_changes(a, b, 3, 8)
    valid(a, b, changes)
    runs = [(ALIKE, 100), (MOVED_AWAY, 50), (ALIKE, 650), (MOVED_HERE, 50), (ALIKE, 200)]
    assert [(each.kind, each.tokens) for each in changes] == runs


def test_two_unlike_texts_are_not_held_together_by_the_words_of_every_text():
    a = " ".join(f"a{i} the" for i in range(100)).encode()
    b = " ".join(f"b{i} b the" for i in range(100)).encode()
    changes = comparison.compare(RUN, a, b, ShingleParams()).texts.changes
    assert comparison.count_tokens(changes) <= 2


@pytest.mark.parametrize("n", [0, 2, 9])
def test_a_word_before_a_short_end_is_no_coincidence(n):
    """A run counts as one between long changes on both sides only, and the end is no change."""
    a, b = row([1, 2, 3, 50, *range(100, 100 + n)]), row([*range(10, 20), 50, *range(200, 200 + n)])
    alike = [change for change in find_changes(a, b, 3, 8) if change.kind == ALIKE]
    assert len(alike) == (n < 2)


@pytest.mark.parametrize("kind", part(["blocks", "equal", "few values", "unrelated", "gaps"], 5))
def test_long_rows_take_time_in_proportion(kind):
    """100,000 tokens, whatever they are: a comparison of each with each would hang for hours."""
    rng, n = np.random.default_rng(1), 100_000
    a, b = ((rng.zipf(1.3, n) % 5000).astype(np.uint64) for _ in range(2))
    if kind == "equal":
        a, b = row([0] * n), row([0] * (n // 2))
    elif kind == "few values":
        a, b = a % 3, b % 3
    elif kind == "blocks":
        a = np.arange(n, dtype=np.uint64)
        b = rng.permutation(a.reshape(-1, 100)).ravel()
    elif kind == "gaps":
        a, b = a % 5, b % 5
        for at in range(0, n, 1000):
            a[at : at + 3] = b[at : at + 3] = 10**7 + at + np.arange(3)
    counts = valid(a, b, find_changes(a, b, 3, 8))
    if kind == "blocks":
        assert counts[MOVED_AWAY] == counts[MOVED_HERE] == n - counts[ALIKE]
        assert counts[ALIKE] >= 1000


@given(TEXT, TEXT, st.sampled_from(TOKENS), st.integers(1, 3), st.booleans())
def test_any_two_texts_are_compared_and_shown(one, other, tokens, k, bag):
    params = ShingleParams(tokens=tokens, k=k, bag=bag)
    found = comparison.compare(RUN, one.encode(), other.encode(), params, SketchParams())
    valid(found.texts.a.tokens, found.texts.b.tokens, found.texts.changes)
    total = found.shared + found.only_a + found.only_b
    assert found.similarity == (found.shared / total if total else 0)
    assert (found.estimate is None) == (found.shared + min(found.only_a, found.only_b) == 0)
    for side, width, color in product((False, True), (None, 30), (False, True)):
        for line in render(found.texts, Layout(side, width, color, 2)):
            plain = re.sub(r"\x1b\[\d+m", "", line)
            assert plain.isprintable()
            assert color or line == plain


@given(WORDS, st.sampled_from(["word", "ids"]), st.booleans(), st.sampled_from([b"", b"secret"]))
def test_elements_are_those_of_the_set(words, tokens, bag, secret):
    params = ShingleParams(tokens=tokens, k=1, bag=bag, secret=secret)
    text = " ".join(
        str("abcdefg".index(each)) if tokens == "ids" else each for each in words
    ).encode()
    _, shingles = list_tokens(text, params)
    listed = sorted(set(number_repeats(shingles, params).tolist()))
    assert listed == Shingler(params).shingle_texts([text])[0].tolist()


def test_hostile_texts_do_nothing_to_a_terminal(run, tmp_path):
    from rich.cells import cell_len

    begin = "plain \x1b[31mred\x1b]0;title\x07 gpj.\u202eexe \x9b2J "
    long = {"a": begin + "m" * 300_000 + " end", "b\x1b[2J": f"plain {'n' * 300_000} end"}
    write_files(tmp_path, long)
    for width, options in product((80, 160), ("", "--side-by-side", "--shingles", "--format json")):
        line = ["show", *long, "--no-color", *options.split()]
        code, out, err = in_terminal(line, width, tmp_path)
        assert code == 0, err
        text = out.decode()
        assert all(c.isprintable() or c == "\n" for c in text)
        if options in ("", "--side-by-side"):
            assert len(text) < 20_000
            assert all(said in text for said in ("characters)…", r"\x1b", r"\u202e"))
        if not options:
            assert max(cell_len(line) for line in text.splitlines()[5:]) <= width


def test_long_documents(run, tmp_path):
    """Of 1.5 MB, with changed words, or the phrases of any text only: seconds, not minutes."""
    rng = np.random.default_rng(5)
    a, c = ([f"word{i}" for i in (rng.zipf(1.3, 200_000) % 20_000).tolist()] for _ in range(2))
    b = ["other" if at % 1000 == 0 else word for at, word in enumerate(a)]
    for name, words in (("a", a), ("b", b), ("c", c)):
        lines = (" ".join(words[at : at + 12]) for at in range(0, len(words), 12))
        write_files(tmp_path, {name: "\n".join(lines)})
    differences = run("show a b --words").lines[3]
    assert re.search(r"(200|199) removed, (200|199) added", differences)
    rows = run("show a c --shared --format jsonl --no-store").lines
    assert len(rows) > 50_000
    last = json.loads(rows[-1])
    assert last["a_line"] == last["a_start"] // 12 + 1


CODE = '''import os
import sys


def compare(a, b):
    """Compare two numbers."""
    if (a < b): return -1
    return 0


def double(x):
    return x * 2


class Thing:
    def __init__(self, name, size=3.5):
        self.name = name
        self.size = size

    def show(self):
        print(self.name, self.size)
        for i in range(10):
            print(i)
        return None

    def close(self):
        os.remove(self.name)
'''
CHANGED = CODE
for old, new in {
    "(a < b): return -1": "(a > b): return +1",
    "def double(x):\n    return x * 2\n\n\n": "",
    "3.5": "3,5",
    "range(10)": "range(12)  # a remark that makes the line longer than a narrow screen has",
    "return None\n": "return None\n\n    def open(self):\n\treturn open(self.name)\x1b[31m\n",
}.items():
    CHANGED = CHANGED.replace(old, new)
TABLE = "name;price;stock\n" + "".join(f"thing {i};{i}.50;{i * 7}\n" for i in range(40))
PRICES = TABLE.replace("7.50", "7,50").replace("thing 20;20.50;140\n", "")
PROSE = " ".join(f"word{i} and the {i}th thing." for i in range(60))


def wrapped(text, width):
    return "\n".join(re.findall(rf".{{1,{width}}}(?:\s|$)", text)) + "\n"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (CODE, CHANGED, True), (CODE, CODE.replace("<", ">"), True), (TABLE, PRICES, True),
        (TABLE, TABLE.replace("0;", "1;"), True),
        (wrapped(PROSE, 70), wrapped(PROSE.replace("word7 ", "word "), 70), True),
        (wrapped(PROSE, 70), wrapped(PROSE, 50), False), (wrapped(PROSE, 70), PROSE, False),
        (PROSE, PROSE.replace("word7", "word"), False),
        (f"{PROSE}\n\n{PROSE}\n", f"{PROSE}\n\n{PROSE} more\n", False),
        ("one\ntwo", "three\nfour", True), ("one", "two", False), ("", "", False),
        ("", CODE, False),
    ],
)  # fmt: skip
def test_texts_are_compared_by_lines_if_both_have_the_same(a, b, expected):
    found = comparison.compare(RUN, a.encode(), b.encode(), ShingleParams())
    assert comparison.have_same_lines(found.texts) is expected


LINES = st.lists(st.text("ab .<>=\t漢é", max_size=8), max_size=8)


@given(LINES, LINES)
def test_what_is_not_marked_is_in_both(a, b):
    for lines, others, spans in zip((a, b), (b, a), comparison.mark_pieces(a, b), strict=True):
        assert len(lines or [""]) == len(spans)
        for line, each in zip(lines, spans, strict=False):
            assert all(0 <= start < end <= len(line) for start, end in each)
            assert all(x[1] < y[0] for x, y in pairwise(each))
            if each:  # the rest, one character after the other, in this order
                there = iter("".join(others))
                rest = (c for i, c in enumerate(line) if not any(s <= i < e for s, e in each))
                assert all(c in there for c in rest)


@given(LINES, LINES)
def test_equal_lines_and_no_others_are_alike(a, b):
    texts = ("".join(f"{line}\n" for line in each).encode() for each in (a, b))
    counts = valid(np.array(a, object), np.array(b, object), comparison.align_lines(*texts).changes)
    assert a != b or counts[ALIKE] == len(a)


def test_marks_of_a_changed_line():
    for before, after, marked, there in (
        ("if (a < b) return -1;", "if (a > b) return +1;", *[[(6, 7), (18, 19)]] * 2),
        ("nothing alike", "other words", [], []),  # all of it differs
        ("  x = 1", "    x = 1", [(0, 2)], [(0, 4)]),
        ("漢字を読む", "漢字を書く", [(3, 5)], [(3, 5)]),
    ):
        assert comparison.mark_pieces([before], [after]) == ([marked], [there])


def test_lines_are_without_their_ends():
    for text, lines in {
        "": [], "a\n\nb": ["a", "", "b"], "a\n": ["a"], "a\r\n": ["a"],
        "a\r\n\r\nä": ["a", "", "ä"], "\n": [""],
    }.items():  # fmt: skip
        located = comparison.align_lines(text.encode(), b"").a
        assert [comparison.extract_line(located, at) for at in range(len(located.tokens))] == lines


def test_differences_as_they_are_seen(run, corpus, tmp_path):
    """A word changed, a paragraph moved, another format, and no difference; and by lines, program
    text and a table.
    """
    udhr, licence = "sample_corpus/udhr", "sample_corpus/licences/Apache-1.1.txt"
    paragraphs = (tmp_path / licence).read_text().split("\n\n")
    paragraphs.insert(6, paragraphs.pop(3))
    word = (corpus / "udhr/eng.txt").read_text().replace("detention or", "imprisonment or", 1)
    write_files(tmp_path, {"a.py": CODE, "b.py": CHANGED, "a.csv": TABLE, "b.csv": PRICES})
    write_files(tmp_path, {"moved.txt": "\n\n".join(paragraphs), "word.txt": word})
    layouts = {"": "", "-plain": "--no-color", "-beside": "--side-by-side --context 1"}
    plain, by_lines = [(80, ""), (160, ""), (80, "-plain")], [*product((80,), layouts)]
    for kind, *names, seen in (
        ("word", f"{udhr}/eng.txt", "word.txt", plain), ("moved", licence, "moved.txt", plain),
        ("format", f"{udhr}/deu_1901.html", f"{udhr}/deu_1996.html", plain),
        ("same", f"{udhr}/eng.html", f"{udhr}/eng.txt", []), ("table", "a.csv", "b.csv", by_lines),
        ("code", "a.py", "b.py", [*by_lines, *product((50, 160), ("", "-beside"))]),
    ):  # fmt: skip
        for columns, name in seen:
            line = ["show", *names, *layouts[name].split()]
            code, out, err = in_terminal(line, columns, tmp_path)
            assert (code, err) == (0, "")
            golden.check(f"show/{kind}-{columns}{name}.txt", out)
            assert (b"\x1b" in out) == (name != "-plain")
            lines = re.sub(rb"\x1b\[[\d;]*m", b"", out).decode().splitlines()
            assert name == "-plain" or max(map(len, lines[lines.index("") :])) <= columns
            assert all(line.isprintable() for line in lines)
        golden.check(f"show/{kind}-pipe.txt", run("show", *names).out)


def located(text, **options):
    return locate_tokens(text.encode(), ShingleParams(**options))


def variants_of(kept, *members, **options):
    """Variants of the members of a group, each with the words that are in its place."""
    kept, collector = located(kept, **options), VariantCollector()
    for at, each in enumerate(members):
        member = located(each, **options)
        collector.add(at, comparison.align_tokens(kept, member, ShingleParams(**options)))
    return [
        (v, comparison.extract_passage(kept, v.start, v.end).strip()) for v in collector.variants()
    ]


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
    segments = _find_segments(comparison.align_tokens(one, other, ShingleParams()), 9, "word")
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
    for before, behind in product((None, 3, 17, 19), (None, 24, 30)):
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
    ways = read, partial(comparison.align_tokens, params=params), params
    found = find_differences(RUN, groups, *ways, 9, 10_000)
    assert [*found.segments] == [(0, 2), (0, 3), (2, 3)]
    gone = {(0, 1): "1 is gone", (4, 2): "4 is gone", (4, 3): "4 is gone", (2, 1): "1 is gone"}
    assert found.without == {None: "more than --differences 9", **gone}
    few = find_differences(RUN, groups, *ways, 2, 10_000)
    assert [*few.segments] == [(0, 2)]
    full = find_differences(RUN, [(0, [2, 1]), (4, [2])], *ways, 9, 10)
    assert not full.segments
    assert full.without == {None: "the page would be too large; --differences N takes N"}
