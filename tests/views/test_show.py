"""`lshdup show`: the differences themselves, where tokens stand, and what a person sees."""

import json
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lshdup.kernels.differences import align, heaviest_chain
from lshdup.params import ShingleParams, SketchParams
from lshdup.shingling.inspection import list_tokens, locate_tokens, number_repeats
from lshdup.shingling.shingler import Shingler
from lshdup.views.changes import (
    ADDED,
    ALIKE,
    MOVED_AWAY,
    MOVED_HERE,
    REMOVED,
    find_changes,
    windows,
)
from lshdup.views.comparison import compare
from lshdup.views.terminal import Layout, render
from tests import golden, office
from tests.conftest import ROOT, part
from tests.reference import is_ignorable
from tests.running import in_terminal

TEXT = st.text(st.sampled_from("aAbB ,.\n\t_1éÉ\u0301ßﬁﷺΐ中文ไท่\u200d\u00ad"), max_size=60)
TOKENS = ("word", "symbols", "char", "terms")


# --- where tokens stand ---------------------------------------------------------------------------


@settings(deadline=None)
@given(TEXT, st.sampled_from(TOKENS), st.booleans(), st.booleans())
@example(text="1 \u0301", tokens="char", keep_case=False, normalize=True)
@example(text="\u0301\n\u0301\u3000a", tokens="char", keep_case=True, normalize=True)
def test_tokens_are_where_they_are_said_to_be(text, tokens, keep_case, normalize):
    """What stands there is, in normal form, the token; a character that becomes several tokens
    stands for each of them.
    """
    params = ShingleParams(tokens=tokens, k=1, keep_case=keep_case, normalize=normalize)
    words, _ = list_tokens(text.encode(), params)
    located = locate_tokens(text.encode(), params)
    assert len(located.starts) == len(words) == len(located.tokens)
    assert (located.starts < located.ends).all()
    for start, end, word in zip(located.starts.tolist(), located.ends.tolist(), words, strict=True):
        there = located.text[start:end]
        again, _ = list_tokens(there, params)
        seen = "".join(each for each in there.decode() if not is_ignorable(each))
        assert word in again or (tokens == "char" and word == b" " and not seen.strip())
    if len(words):
        assert [a == b for a in words for b in words] == [
            a == b for a in located.tokens for b in located.tokens
        ]


def test_texts_keep_their_spelling():
    params = ShingleParams()
    assert locate_tokens("Die STRASSE, ﬁn".encode(), params).text == "Die STRASSE, ﬁn".encode()
    composed = locate_tokens("E\u0301te\u0301 UND".encode(), params)
    assert composed.text == "E\u0301te\u0301 UND".encode()
    assert (composed.starts.tolist(), composed.ends.tolist()) == ([0, 8], [7, 11])


# --- the differences ------------------------------------------------------------------------------


def valid(a, b, changes):
    """Changes cover both, in order; what is alike is alike."""
    assert [i for c in changes for i in range(c.a_start, c.a_end)] == list(range(len(a)))
    assert [i for c in changes for i in range(c.b_start, c.b_end)] == list(range(len(b)))
    for c in changes:
        assert c.tokens > 0
        if c.kind == ALIKE:
            assert a[c.a_start : c.a_end].tolist() == b[c.b_start : c.b_end].tolist()
        else:
            assert (c.a_start == c.a_end) == (c.kind in (ADDED, MOVED_HERE))
            assert (c.b_start == c.b_end) == (c.kind in (REMOVED, MOVED_AWAY))
    return Counter(
        {
            kind: sum(c.tokens for c in changes if c.kind == kind)
            for kind in (ALIKE, REMOVED, ADDED, MOVED_AWAY, MOVED_HERE)
        }
    )


def row(values):
    return np.array(values, np.uint64)


def lcs_score(a, b):
    """The slow obvious reference: two for an element, one more where the next of both is taken
    too.
    """
    n, m = len(a), len(b)
    best = [
        [[0, -1] for _ in range(m + 1)] for _ in range(n + 1)
    ]  # of what is left: any; or if this pair is taken
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            free = max(best[i + 1][j][0], best[i][j + 1][0])
            taken = -1
            if a[i] == b[j]:
                taken = 2 + max(
                    best[i + 1][j + 1][0],
                    best[i + 1][j + 1][1] + 1 if best[i + 1][j + 1][1] >= 0 else 0,
                )
            best[i][j] = [max(free, taken), taken]
    return best[0][0][0]


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), max_size=12), st.lists(st.integers(0, 4), max_size=12))
def test_align_finds_a_common_subsequence_about_as_good_as_the_best(a, b):
    matches = np.empty(2 * min(len(a), len(b)) + 2, np.int64)
    found = align(
        row(a),
        row(b),
        np.empty(len(a) * len(b) + 1, np.uint8),
        np.empty(len(b) + 1, np.int32),
        matches,
    )
    pairs = matches[: 2 * found].reshape(-1, 2).tolist()
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))
    score = 2 * found + sum(k == i + 1 and m == j + 1 for (i, j), (k, m) in pairwise(pairs))
    assert 3 * score >= 2 * lcs_score(
        a, b
    )  # the longest one has at least two thirds of the best score


def test_align_prefers_a_run_to_scattered_words():
    a, b = row([1, 2, 3]), row([1, 9, 2, 9, 3, 8, 1, 2, 3])
    matches, steps, scores = np.empty(6, np.int64), np.empty(27, np.uint8), np.empty(10, np.int32)
    assert align(a, b, steps, scores, matches) == 3
    assert matches.tolist() == [0, 6, 1, 7, 2, 8]


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=8).flatmap(
        lambda w: st.tuples(st.just(w), st.permutations(range(len(w))))
    )
)
def test_the_heaviest_chain_is_that_of_trying_all(given_):
    weight, rank = given_
    n = len(rank)
    best = max(
        sum(weight[i] for i in range(n) if bits >> i & 1)
        for bits in range(1 << n)
        if (ranks := [rank[i] for i in range(n) if bits >> i & 1]) == sorted(ranks)
    )
    chain = np.empty(n, np.int64)
    found = heaviest_chain(
        row(rank).astype(np.int64),
        row(weight).astype(np.int64),
        *(np.empty(n + 1, np.int64) for _ in range(3)),
        chain,
    )
    taken = chain[n - found :].tolist()
    assert taken == sorted(taken)
    assert [rank[i] for i in taken] == sorted(rank[i] for i in taken)
    assert sum(weight[i] for i in taken) == best


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 5), max_size=40),
    st.lists(st.integers(0, 5), max_size=40),
    st.integers(1, 4),
    st.integers(2, 6),
)
@example([*range(10)], [*range(3, 10), 0, 1, 2], 3, 3)
@example([0, 0, 0, 0, 1, 1], [0, 1, 1, 0, 0], 1, 2)
def test_any_two_rows(a, b, passage, moved):
    """Changes are true. What has moved are passages that were removed and were added, and each has
    tokens that have moved: all but those that overlap the same passage.
    """
    changes = find_changes(row(a), row(b), passage, moved)
    valid(row(a), row(b), changes)
    (away, marked_away), (here, marked_here) = (
        (
            {
                at: tuple(values[at : at + moved])
                for start, end in _changed(changes, side)
                for at in range(start, end - moved + 1)
            },
            {at for c in changes if c.kind == kind for at in range(c[side], c[side + 1])},
        )
        for values, kind, side in ((a, MOVED_AWAY, 1), (b, MOVED_HERE, 3))
    )
    both = {*away.values()} & {*here.values()}
    for passages, marked in ((away, marked_away), (here, marked_here)):
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


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), max_size=60))
def test_a_row_is_like_itself(a):
    assert find_changes(row(a), row(a), 3, 8) == ([(ALIKE, 0, len(a), 0, len(a))] if a else [])


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
    counts = valid(a, b, find_changes(a, b, 3, 8))
    assert counts == {ALIKE: 950, REMOVED: 0, ADDED: 0, MOVED_AWAY: 50, MOVED_HERE: 50}
    assert [c.kind for c in find_changes(a, b, 3, 8)] == [
        ALIKE,
        MOVED_AWAY,
        ALIKE,
        MOVED_HERE,
        ALIKE,
    ]


def test_two_unlike_texts_are_not_held_together_by_the_words_of_every_text():
    a = " ".join(f"a{i} the" for i in range(100)).encode()
    b = " ".join(f"b{i} b the" for i in range(100)).encode()
    assert compare(a, b, ShingleParams()).texts.count(ALIKE) <= 2


@pytest.mark.parametrize("n", [0, 2, 9])
def test_a_word_before_a_short_end_is_no_coincidence(n):
    """A run counts as one between long changes on both sides only, and the end is no change."""
    a, b = row([1, 2, 3, 50, *range(100, 100 + n)]), row([*range(10, 20), 50, *range(200, 200 + n)])
    alike = [change for change in find_changes(a, b, 3, 8) if change.kind == ALIKE]
    assert len(alike) == (n < 2)


@pytest.mark.parametrize(
    "kind", part(["shuffled blocks", "equal", "few values", "unrelated", "gaps"], 5)
)
def test_long_rows_take_time_in_proportion(kind):
    """300,000 tokens, whatever they are: a comparison of each with each would hang for hours."""
    rng = np.random.default_rng(1)
    n = 300_000
    a = (rng.zipf(1.3, n) % 5000).astype(np.uint64)
    b = (rng.zipf(1.3, n) % 5000).astype(np.uint64)
    if kind == "equal":
        a, b = np.zeros(n, np.uint64), np.zeros(n // 2, np.uint64)
    elif kind == "few values":
        a, b = (a % 3).astype(np.uint64), (b % 3).astype(np.uint64)
    elif kind == "shuffled blocks":
        a = np.arange(n, dtype=np.uint64)
        b = rng.permutation(a.reshape(-1, 100)).ravel()
    elif kind == "gaps":
        a, b = (a % 5).astype(np.uint64), (b % 5).astype(np.uint64)
        for at in range(0, n, 1000):
            a[at : at + 3] = b[at : at + 3] = [10**7 + at, 10**7 + at + 1, 10**7 + at + 2]
    counts = valid(a, b, find_changes(a, b, 3, 8))
    if kind == "shuffled blocks":
        assert counts[MOVED_AWAY] == counts[MOVED_HERE] == n - counts[ALIKE]
        assert counts[ALIKE] >= 3000


def test_windows():
    assert windows(row([1, 2, 1, 2]), 2).tolist()[0] == windows(row([1, 2, 1, 2]), 2).tolist()[2]
    assert windows(row([1, 2]), 3).tolist() == []
    assert windows(row([1, 2]), 1 << 40).tolist() == []


# --- the comparison -------------------------------------------------------------------------------


@settings(deadline=None)
@given(TEXT, TEXT, st.sampled_from(TOKENS), st.integers(1, 3), st.booleans())
def test_any_two_texts_are_compared_and_shown(one, other, tokens, k, bag):
    params = ShingleParams(tokens=tokens, k=k, bag=bag)
    found = compare(one.encode(), other.encode(), params, SketchParams())
    valid(found.texts.a.tokens, found.texts.b.tokens, found.texts.changes)
    total = found.shared + found.only_a + found.only_b
    assert found.similarity == (found.shared / total if total else 0)
    assert (found.estimate is None) == (
        not found.shared + found.only_a or not found.shared + found.only_b
    )
    for side in (False, True):
        for width in (None, 30):
            for color in (False, True):
                for line in render(found.texts, Layout(side, width, color, 2)):
                    plain = re.sub(r"\x1b\[\d+m", "", line)
                    assert plain.isprintable()
                    assert color or line == plain


def test_marks_take_nothing_but_what_changed():
    lines = render(
        compare(
            b"The red, old (fox) jumps", "The blue «old» fox jumps high".encode(), ShingleParams()
        ).texts,
        Layout(),
    )
    assert list(lines) == ["The [-red,-] {+blue+} old (fox) jumps {+high+}"]


def test_ids_are_sets(run, tmp_path):
    (tmp_path / "a").write_text("x 5 6 7 8")
    result = run("show", "a", "-", "--tokens", "ids", stdin=b"y 9 8 6 5 5").lines
    assert result[2:4] == [
        "similarity 0.6000, exact: 3 shingles shared, 1 only in A, 1 only in B",
        "3 ids alike, 1 removed, 1 added",
    ]
    assert result[-2:] == ["5 6 [-7-] 8 {+9+}", ""]


# --- the command ----------------------------------------------------------------------------------


def moved_paragraph(path):
    paragraphs = (ROOT / "sample_corpus/licences/Apache-1.1.txt").read_text().split("\n\n")
    paragraphs.insert(6, paragraphs.pop(3))
    path.write_text("\n\n".join(paragraphs))


@pytest.fixture
def three(corpus, tmp_path):
    """Three pairs of different kind: a word changed, a paragraph moved, another format."""
    moved_paragraph(tmp_path / "moved.txt")
    text = (corpus / "udhr/eng.txt").read_text()
    (tmp_path / "word.txt").write_text(
        text.replace("detention or exile", "imprisonment or exile", 1)
    )
    return {
        "word": ("sample_corpus/udhr/eng.txt", "word.txt"),
        "moved": ("sample_corpus/licences/Apache-1.1.txt", "moved.txt"),
        "format": ("sample_corpus/udhr/deu_1901.html", "sample_corpus/udhr/deu_1996.html"),
        "same": ("sample_corpus/udhr/eng.html", "sample_corpus/udhr/eng.txt"),
    }


def test_three_kinds_as_they_are_seen(run, three, tmp_path):
    for kind, names in three.items():
        for columns in (80, 160):
            for color in ((), ("--no-color",)) if kind != "same" else ():
                code, out, err = in_terminal(["show", *names, *color], columns, tmp_path)
                assert code == 0, err
                assert err == ""
                golden.check(f"show/{kind}-{columns}{'-plain' if color else ''}.txt", out)
                assert (b"\x1b" in out) == (not color)
        golden.check(f"show/{kind}-pipe.txt", run("show", *names).out)


def test_layout_options(run, three):
    inline = run("show", *three["word"], "--inline", "--context", "1").lines
    assert any("[-detention-] {+imprisonment+} or" in line for line in inline)
    assert (
        run("show", *three["word"], "--context", "0").lines[6] == "[-detention-] {+imprisonment+}"
    )
    beside = run("show", *three["word"], "--side-by-side", "--context", "1").lines
    (line,) = [line for line in beside if "│" in line]
    assert [part.strip() for part in line.split("│")] == [
        "arrest, [-detention-] or",
        "arrest, {+imprisonment+} or",
    ]
    whole = run("show", *three["word"], "--context", "100000").out.decode()
    assert "alike …" not in whole


def test_as_data(run, three, tmp_path):
    run("index", "sample_corpus")
    result = json.loads(run("show", "eng.txt", "word.txt", "--format", "json").out)
    assert result["a"]["name"] == "sample_corpus/udhr/eng.txt"
    assert result["similarity"] == result["shared"] / (
        result["shared"] + result["only_a"] + result["only_b"]
    )
    assert abs(result["estimate"] - result["similarity"]) < 5 * result["standard_error"] + 0.01
    rows = [
        json.loads(line) for line in run("show", "eng.txt", "word.txt", "--format", "jsonl").lines
    ]
    assert rows == result["differences"]
    assert [row["kind"] for row in rows] == [ALIKE, REMOVED, ADDED, ALIKE]
    assert (rows[1]["a"], rows[2]["b"]) == ("detention", "imprisonment")
    assert run("show", "eng.txt", "word.txt", "--format", "tsv").rows[1][:2] == ["removed", "1"]
    page = json.loads(run("show", "eng.html", "odd/latin-1.txt", "--format", "json").out)
    assert (page["a"]["html"], page["b"]["html"], page["b"]["detected"]) == (True, False, True)


def test_shingles_are_listed(run, tmp_path):
    (tmp_path / "a").write_text("one two three four")
    (tmp_path / "b").write_text("zero two three four")
    assert [(where, text) for where, _, text in run("show", "a", "b", "--shingles").rows] == [
        ("both", "two three four"),
        ("a", "one two three"),
        ("b", "zero two three"),
    ]
    (tmp_path / "a").write_text("x x x")
    (tmp_path / "b").write_text("x x")
    counted = run("show", "a", "b", "--shingles", "-k", "1", "--bag").rows
    assert [where for where, _, _ in counted] == ["both", "both", "a"]
    assert "0.6667, exact: 2 shingles shared" in run("show", "a", "b", "-k", "1", "--bag").lines[2]


@given(
    st.lists(st.sampled_from("abc"), max_size=12),
    st.sampled_from(["word", "ids"]),
    st.booleans(),
    st.sampled_from([b"", b"secret"]),
)
def test_elements_are_those_of_the_set(words, tokens, bag, secret):
    params = ShingleParams(tokens=tokens, k=1, bag=bag, secret=secret)
    text = " ".join(str("abc".index(each)) if tokens == "ids" else each for each in words).encode()
    _, shingles = list_tokens(text, params)
    assert (
        sorted(set(number_repeats(shingles, params).tolist()))
        == Shingler(params).shingle_texts([text])[0].tolist()
    )


FORM = (
    "dear sir or madam we are pleased to let you know that your order number {} of {} "
    "was sent today"
)


def test_what_is_removed_is_not_compared(run, tmp_path):
    """The similarity is the one that `pairs` prints, by the options of the last run or by those
    that are given.
    """
    (tmp_path / "d").mkdir()
    (tmp_path / "form").write_text(FORM.format("", ""))
    for name, what in (
        ("a", "two red shoes and one green hat"),
        ("b", "two red shoes and one green coat"),
        ("c", "nothing like it"),
    ):
        (tmp_path / "d" / name).write_text(FORM.format("7", what))
    ((_, _, alike, _),) = run(
        "pairs", "d", "--template", "form", "-t", "0.5", "--min-tokens", "0"
    ).rows  # fmt: skip
    for options in ([], ["--template", "form"]):
        shown = run("show", "a", "b", *options)
        assert shown.err.splitlines() == [  # no document has changed
            "lshdup: the last run: 3 documents in d (--tokens word -k 3 --template …)",
            "lshdup: a: d/a, of the store",
            "lshdup: b: d/b, of the store",
        ]
        assert f"similarity {float(alike):.4f}, exact: " in shown.lines[2]
        assert re.fullmatch(
            r"removed before: \d+ shingles of A, \d+ of B, by --template or --ignore-common",
            shown.lines[3],
        )
        data = json.loads(run("show", "a", "b", *options, "--format", "json").out)
        assert data["similarity"] == float(alike)
        assert data["a"]["shingles"] == data["shared"] + data["only_a"] + data["removed_a"]
        assert abs(data["estimate"] - data["similarity"]) < 6 * data["standard_error"] + 0.01
        rows = run("show", "a", "b", *options, "--shingles").rows
        kept = [where for where, _, _, removed in rows if not removed]
        assert {removed for *_, removed in rows} == {"", "template"}
        assert (kept.count("both"), kept.count("a"), kept.count("b")) == (
            data["shared"],
            data["only_a"],
            data["only_b"],
        )
    (tmp_path / "d/a").write_text(FORM.format("7", "something else now"))
    assert "has changed since it was indexed" in run("show", "a", "b").err


def test_rows_and_mails(run, tmp_path):
    """A row is text already, whatever it looks like, unless --markup says more; a mail is read as
    one.
    """
    rows = ["<html> one <i>two</i> three four five", "one two three four six"]
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps({"text": each}) + "\n" for each in rows)
    )
    run("index", "rows.jsonl")
    assert ": 37 bytes, UTF-8, 8 words" in run("show", "rows.jsonl:1", "rows.jsonl:2").lines[0]
    run("index", "rows.jsonl", "--markup", "visible")
    shown = run("show", "rows.jsonl:1", "rows.jsonl:2")
    assert "HTML UTF-8, 5 words" in shown.lines[0]
    assert "UTF-8, 5 words" in shown.lines[1]
    assert shown.lines[-2] == "one two three four [-five-] {+six+}"
    (tmp_path / "a.eml").write_bytes(office.eml(rows[1], subject=""))
    (tmp_path / "b").write_text(rows[1])
    data = json.loads(run("show", "a.eml", "b", "--format", "json").out)
    assert (data["a"]["extracted"], data["b"]["extracted"], data["similarity"]) == (
        True,
        False,
        1.0,
    )
    assert "mail, 5 words" in run("show", "a.eml", "b").lines[0]


def test_as_the_store_has_it(run, corpus, tmp_path):
    run(
        "index",
        "sample_corpus",
        "--tokens",
        "char",
        "-k",
        "5",
        "--scheme",
        "classic",
        "--perms",
        "64",
    )
    out = run("show", "MIT.txt", "ISC.txt")
    assert "characters" in out.lines[0]
    assert "(--tokens char -k 5 --scheme classic --perms 64)" in out.err
    assert any(
        line.startswith("estimate 0.") and line.endswith("by signatures: classic, K = 64")
        for line in out.lines
    )
    assert "words" in run("show", "MIT.txt", "ISC.txt", "--tokens", "word").lines[0]
    (corpus / "licences/ISC.txt").write_text("something else now")
    assert "has changed since it was indexed" in run("show", "MIT.txt", "licences/ISC.txt").err
    assert "is the end of 5 names" in run("show", "copy1", "MIT.txt", code=2).err
    assert "both standard input" in run("show", "-", "-", code=2).err
    assert (
        "cannot be combined with --shingles"
        in run("show", "MIT.txt", "ISC.txt", "--shingles", "--inline", code=2).err
    )


def test_documents_without_tokens(run, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "dots").write_bytes(b"...")
    (tmp_path / "some").write_bytes(b"one text")
    assert run("show", "empty", "dots").lines[2:4] == [
        "similarity 0.0000, exact: 0 shingles shared, 0 only in A, 0 only in B",
        "0 words alike",
    ]
    assert run("show", "empty", "some").lines[-2] == "{+one text+}"


def test_hostile_texts_do_nothing_to_a_terminal(run, tmp_path):
    (tmp_path / "a").write_bytes(
        "plain \x1b[31mred\x1b]0;title\x07 gpj.\u202eexe \x9b2J ".encode()
        + b"m" * 1_000_000
        + b" end"
    )
    (tmp_path / "b\x1b[2J").write_bytes(b"plain " + b"n" * 1_000_000 + b" end")
    for options in ((), ("--side-by-side",), ("--shingles",), ("--format", "json")):
        code, out, err = in_terminal(
            ["show", "a", "b\x1b[2J", "--no-color", *options], 80, tmp_path
        )
        assert code == 0, err
        text = out.decode()
        assert all(c.isprintable() or c == "\n" for c in text)
        if not options or options == ("--side-by-side",):
            assert len(text) < 20_000
            assert "characters)…" in text
            assert r"\x1b" in text
            assert r"\u202e" in text
    for width in (80, 160):
        _, out, _ = in_terminal(["show", "a", "b\x1b[2J", "--no-color"], width, tmp_path)
        from rich.cells import cell_len

        assert max(cell_len(line) for line in out.decode().splitlines()[5:]) <= width


def test_long_documents(run, tmp_path):
    """Two documents of 3 MB: seconds, not minutes."""
    rng = np.random.default_rng(5)
    words = [f"word{i}" for i in (rng.zipf(1.3, 400_000) % 20_000).tolist()]
    (tmp_path / "a").write_text(" ".join(words))
    for at in range(0, len(words), 1000):
        words[at] = "other"
    (tmp_path / "b").write_text(" ".join(words))
    result = run("show", "a", "b")
    assert re.search(r"(400|399) removed, (400|399) added", result.lines[3])
