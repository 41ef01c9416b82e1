"""What two documents share: the passages, and what the terminal and the page show of them."""

import json
import os
import random
import re
import shutil
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lshdup.base.wording import decimal
from lshdup.params import FilterParams, ShingleParams
from lshdup.shingling.inspection import locate_shingles
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.views.changes import ALIKE, MOVED_AWAY, MOVED_HERE
from lshdup.views.comparison import compare, count_shared, find_shared
from tests.conftest import RUN, write_files
from tests.documents import list_tokens
from tests.reference import reached, shingle_list
from tests.running import in_terminal
from tests.views.test_html import (
    HOSTILE,
    Outline,
    click,
    full_names,
    js,
    known_of,
    lists_of,
    numbers,
    opened,
    set_threshold,
    texts,
)

WORDS = st.one_of(
    st.lists(st.sampled_from(letters), max_size=40).map(" ".join)
    for letters in ("abcd", "abกかか字")
)


# --- the passages ---------------------------------------------------------------------------------


def marked(shingles, shared, k, tokens):
    """Which tokens are in a shared run of k tokens, with what they count for, tried one by one."""
    counted = reached([token.decode() for token in tokens])
    ends = [at + len(each) for at, each in enumerate(counted)]
    at = (range(i, max(ends[i : i + k])) for i, each in enumerate(shingles) if each in shared)
    places = {place for each in at for place in each}
    return [token in places for token in range(len(tokens))]


@settings(deadline=None)
@given(WORDS, WORDS, st.integers(1, 4), st.data())
@example("a b c d", "d c a b c d b a b c d", 3, None)
def test_what_is_marked_is_what_the_sets_share(one, other, k, data):
    """Every place of it in both texts; not what a filter removes. A passage is the same at both of
    its places, and passages are all that is marked of the first text.
    """
    params = ShingleParams(k=k)
    tokens, lists = zip(*(list_tokens(each.encode(), params) for each in (one, other)), strict=True)
    sets = [set(each.tolist()) for each in lists]
    removed = data.draw(st.sets(st.sampled_from(sorted(sets[0])))) if data and sets[0] else set()
    template = np.array(sorted(removed), np.uint64)
    chosen = ShingleFilter(FilterParams(), template, template[:0]) if removed else None
    found = compare(RUN, one.encode(), other.encode(), params, None, chosen, sharing=True)
    texts, shared = found.texts, sets[0] & sets[1] - removed
    a, b = (
        marked(each.tolist(), shared, k, words) for each, words in zip(lists, tokens, strict=True)
    )
    assert (texts.in_a.tolist(), texts.in_b.tolist()) == (a, b)
    covered = np.zeros(len(a), bool)
    for kind, start, end, b_start, b_end in texts.changes:
        assert kind == ALIKE
        assert tokens[0][start:end] == tokens[1][b_start:b_end] != []
        covered[start:end] = True
    assert covered.tolist() == a
    sizes = [len(each - removed) for each in sets]
    assert [found.share_a, found.share_b] == [len(shared) / max(n, 1) for n in sizes]
    assert found.containment == (len(shared) / min(sizes) if min(sizes) else 0)


@settings(deadline=None)
@given(WORDS, WORDS, st.integers(1, 3), st.integers(0, 5))
def test_hunks_have_each_passage_once_and_say_what_stands_around_it(one, other, k, context):
    params = ShingleParams(k=k)
    found = find_shared(*(locate_shingles(each.encode(), params) for each in (one, other)))
    hunks = list(found.hunks(context))
    passages = [each for hunk in hunks for each in hunk if each.kind == ALIKE]
    assert Counter(passages) == Counter(found.changes)
    assert [count_shared(hunk) for hunk in hunks] == sorted(map(count_shared, hunks), reverse=True)
    for hunk in hunks:
        for first, second in pairwise(hunk):
            assert (first.a_end, first.b_end) == (second.a_start, second.b_start)
        for kind, start, end, b_start, b_end in hunk:
            if kind != ALIKE:
                is_a = start < end
                marks = found.in_a[start:end] if is_a else found.in_b[b_start:b_end]
                assert set(marks.tolist()) == {kind in (MOVED_AWAY, MOVED_HERE)}
                assert len(marks) <= 2 * context


def places(one, other, **params):
    """(place in one, place in other, tokens) of each passage."""
    params = ShingleParams(**params)
    found = find_shared(*(locate_shingles(each.encode(), params) for each in (one, other)))
    return [(each.a_start, each.b_start, each.tokens) for each in found.changes]


def words(first, last):
    return " ".join(f"w{i}" for i in range(first, last))


def test_a_passage_is_found_wherever_it_stands_and_whole():
    assert places(f"{words(0, 9)} {words(20, 30)}", f"{words(20, 30)} x {words(0, 9)}") == [
        (0, 11, 9), (9, 0, 10)
    ]  # fmt: skip
    # A phrase within it that stands before it too does not cut it.
    phrase = "each of us has"
    block = f"{words(0, 5)} {phrase} {words(5, 9)} {phrase} {words(9, 12)}"
    assert places(f"q {block}", f"{phrase} a {phrase} b {block} c {block}") == [(1, 10, 20)]
    # A word that was changed, added, or left out is between two passages.
    changed = f"{words(0, 9)} other {words(10, 19)} more {words(19, 25)} {words(26, 30)}"
    assert places(changed, words(0, 30)) == [(0, 0, 9), (10, 10, 9), (20, 19, 6), (26, 26, 4)]
    assert places("one two", "One, two!") == [(0, 0, 2)]
    assert places("one two", "one two three") == []


# --- short answers, partly copied -----------------------------------------------------------------


@pytest.fixture
def answers(tmp_path):
    """Answers of 200 words: copied whole, in another order, with changed words, reworded, none."""
    rng = random.Random(3)
    vocabulary = [
        f"{a}{b}" for a in "ba de fi go lu ma ne pi ro su".split() for b in "ran lek mo".split()
    ]
    prose = lambda n: [rng.choice(vocabulary) + rng.choice(["", "s", "ed"]) for _ in range(n)]  # noqa: E731
    question = "What is inheritance, and why do programs need it? Answer in your own words."
    source, other = prose(900), prose(700)
    taken = source[100:250]
    light = [f"new{i}" if i % 11 == 5 else word for i, word in enumerate(taken)]
    heavy = [f"new{i}" if i % 3 == 1 else word for i, word in enumerate(taken)]
    made = {
        "copied": prose(30) + taken + prose(20), "moved": taken[75:] + prose(50) + taken[:75],
        "light": prose(50) + light, "heavy": prose(50) + heavy,
        "two": source[400:480] + prose(30) + other[300:390], "own": prose(200),
    }  # fmt: skip
    cased = {
        name: f"{question}\n{'. '.join(' '.join(w) for w in [text[:90], text[90:]])}.\n"
        for name, text in made.items()
    }
    cased["copied"] = cased["copied"].upper()
    write_files(tmp_path / "answers", {f"{name}.txt": text for name, text in cased.items()})
    write_files(
        tmp_path / "sources", {"a.txt": f"{question}\n{' '.join(source)}", "b.txt": " ".join(other)}
    )
    (tmp_path / "question.txt").write_text(question)


ASKED = "answers --against sources --measure containment -t 0.2 --template question.txt --no-store"


def rows_of(known):
    """The pairs of a page: names, measure, and the number of shingles of both."""
    names, sizes, pairs = full_names(known), known["documents"]["shingles"], known["pairs"]
    values = np.repeat(pairs["values"], pairs["counts"]).tolist()
    kinds = [kind[0] for kind in known["kinds"]]
    assert all(len(kind) == 1 for kind in known["kinds"])
    return [
        (names[kinds[a]], names[kinds[b]], value, sizes[kinds[a]], sizes[kinds[b]])
        for a, b, value in zip(pairs["left"], pairs["right"], values, strict=True)
    ]


def test_the_shares_are_those_of_pairs_to_the_last_digit(chromium, run, answers, tmp_path):
    """On the page, in `show` as data, and in `show` for people; and those of the definition."""
    listed = [
        (a, b, float(c), float(s), int(m), int(n))
        for a, b, c, s, m, n, *_ in run("pairs", *ASKED.split()).rows
    ]
    found = {name.rpartition("/")[2]: share for name, _, share, *_ in listed}
    assert found["copied.txt"] > found["light.txt"] > 0.2
    assert not {"own.txt", "heavy.txt"} & {*found}
    page = run("report", *ASKED.split(), "-q").out
    known = known_of(page)
    assert rows_of(known) == [(a, b, c, m, n) for a, b, c, _, m, n in listed]
    removed = set(shingle_list((tmp_path / "question.txt").read_text()))
    opened(chromium, page)
    for at, (a, b, containment, similarity, _, _) in enumerate(listed):
        sets = [set(shingle_list((tmp_path / each).read_text())) - removed for each in (a, b)]
        shared = len(sets[0] & sets[1])
        shares = [shared / len(each) for each in sets]
        shown = json.loads(
            run("show", a, b, "--shared", "--format", "json", "--template", "question.txt").out
        )
        assert [shown["share_a"], shown["share_b"]] == shares
        assert (shown["containment"], shown["similarity"]) == (containment, similarity)
        assert max(shares) == containment
        row = f"{json.dumps([a, b])}.map((name) => names.indexOf(name))"
        pair = f"{{first, second, similarity: {containment!r}}}"
        assert js(chromium, f"(([first, second]) => sharesOf({pair}))({row})") == [
            *shares,
            similarity,
        ]
        said = run("show", a, b, "--shared", "--template", "question.txt").out.decode()
        share_a, share_b = map(decimal, shares)
        assert (
            f"containment {share_a} of A, {share_b} of B, similarity {decimal(similarity)}" in said
        )
        labels = texts(chromium, f"#list > li:nth-child({at + 1}) .share")
        assert [label.split()[0] for label in labels] == [share_a, share_b]


def test_what_is_shared_stands_beside_each_other_in_the_page(chromium, run, answers, tmp_path):
    """Marked on both sides in the words of each; and no list says what to keep or to drop."""
    opened(chromium, run("report", *ASKED.split(), "-q").out)
    rows = [text.split(" ")[0] for text in texts(chromium, "#list .name")]
    assert texts(chromium, "#title") == ["What documents share"]
    assert numbers(chromium, "#n-documents, #n-pairs") == [8, len(rows) // 2]
    for gone in ("#act", "#groups", "#which"):
        assert js(chromium, "document.querySelector(arguments[0]).offsetParent", gone) is None
    assert not texts(chromium, "#n-groups, #n-beside")
    at = rows.index("answers/copied.txt") // 2
    click(chromium, "#list > li > .row > .toggle", at=at)
    left, right = texts(chromium, ".beside .text mark:not(.moved)")
    source = (tmp_path / "sources/a.txt").read_text()
    assert left.strip().isupper()
    assert re.sub(r"[^\w\s]", "", left).lower().split() == right.split()
    assert right.strip() in source
    marks = "[...document.querySelectorAll('.beside .text mark')]"
    first, second = js(chromium, f"{marks}.map((each) => each.getBoundingClientRect().left)")[:2]
    assert first < second
    colour = "getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
    assert js(chromium, colour, ".beside mark") != js(chromium, colour, ".beside .rest")
    assert "What is inheritance" not in "".join(texts(chromium, ".beside mark"))
    click(chromium, "#list > li > .row > .toggle", at=at)
    at = rows.index("answers/moved.txt") // 2
    click(chromium, "#list > li > .row > .toggle", at=at)
    both = texts(chromium, f"#list > li:nth-child({at + 1}) .beside mark:not(.moved)")
    assert len(both) == 4
    assert [len(each.split()) for each in both] == [75] * 4
    set_threshold(chromium, 1)
    assert texts(chromium, "#count") == ["0 rows"]


def test_a_page_of_shared_texts_does_nothing_with_names_and_texts(chromium, run, tmp_path):
    evil = "</script><script>document.title='owned'</script> <b>bold</b> \u202e \x1b[31m "
    evil += words(0, 30)
    latin = ["--encoding", "latin-1"]
    for at, name in enumerate(HOSTILE):
        name = os.fsdecode(name.replace(b"/", b"-"))
        bad = b" \xff\xfe\x80 " if at % 2 else b""
        write_files(tmp_path / "d", {name: evil.encode() + bad + f"{name!r} own{at}".encode()})
    shutil.copytree(tmp_path / "d", tmp_path / "e")
    for command in (
        "d --measure containment",
        "d --against e",
        "d --against e --measure containment",
    ):
        page = run("report", *command.split(), "-t", "0.3", "-q", "--no-store", *latin).out
        known = known_of(page)
        assert all(name.isprintable() for name in full_names(known))
        opened(chromium, page)
        for at in range(12):
            click(chromium, "#list > li > .row > .toggle", at=at)
        assert "owned" not in chromium.title
        assert not texts(chromium, "#list b, #list script, #list img")
        marks = texts(chromium, ".beside mark")
        assert any("</script><script>" in each for each in marks)
        assert all(line.isprintable() for each in marks for line in each.split("\n"))
        root = "document.documentElement"
        assert js(chromium, f"{root}.scrollWidth <= {root}.clientWidth")
        assert {"img", "iframe", "link"} & set(Outline(page).tags) == {"link"}
        saved = {name.encode("latin-1") for name in lists_of(known)["names"]}
        assert {name.rpartition(b"/")[2] for name in saved} == {
            name.replace(b"/", b"-") for name in HOSTILE
        }


@pytest.mark.parametrize(
    "command",
    [
        "d --measure containment", "d --measure containment --exact", "d --against d",
        "d --against e", "d --against kept", "d --against e --measure containment",
    ],
)  # fmt: skip
def test_the_pairs_of_the_page_are_those_of_pairs_in_their_order(run, tmp_path, command):
    """Copies one by one; no file beside itself. The counts are of all, the list of the first."""
    rng = random.Random(8)
    text = [f"w{i}" for i in range(120)]
    for folder in "de":
        made = {"a": text, "a.copy": text, "part": text[20:70], "own": rng.choices(text, k=60)}
        made |= {f"{folder}{n}": text[: 30 + 10 * n] + rng.choices(text, k=20) for n in range(4)}
        write_files(tmp_path / folder, {name: " ".join(each) for name, each in made.items()})
    run("index e --store kept")
    asked = [*command.split(), "-t", "0.3", "--no-store", "-q"]
    rows = run("pairs", *asked).rows
    known = known_of(run("report", *asked).out)
    listed = [(a, b, repr(value)) for a, b, value, *_ in rows_of(known)]
    assert listed == [tuple(row[:3]) for row in rows]
    assert len(rows) > 10
    assert known["pairs"]["same"].count(2) == sum("bytes" in row for row in rows)
    assert known["passages"].keys() == {
        f"{a},{b}" for a, b in zip(known["pairs"]["left"], known["pairs"]["right"], strict=True)
    }
    for threshold, count in zip(known["steps"]["threshold"], known["steps"]["pairs"], strict=True):
        assert count == sum(float(row[2]) >= threshold for row in rows)
    done = run("report", *asked[:-1], "--most", "3", "--differences", "1")
    cut = known_of(done.out)
    assert [*cut["steps"]["pairs"]] == [*known["steps"]["pairs"]]
    assert rows_of(cut) == rows_of(known)[:3]
    assert len(cut["passages"]) == 1
    assert (
        f"3 of {len(rows)} pairs of different documents; --most {len(rows)} lists all" in done.err
    )
    assert f"the shared passages of 1 of {len(rows)} pairs are in the page" in done.err


def test_what_is_gone_is_said_and_shows_nothing(chromium, run, tmp_path):
    """Of a stored OTHER whose documents are gone, signatures estimate."""
    texts_of = {name: f"{words(0, 60)} {words(at, at + 9)}" for at, name in enumerate("abc", 70)}
    write_files(tmp_path / "d", texts_of)
    write_files(tmp_path / "e", texts_of)
    run("index e --store kept")
    (tmp_path / "e/a").unlink()
    (tmp_path / "e/b").write_text(words(0, 70))
    done = run("report d --against kept -t 0.5 --no-store")
    assert "2 documents of OTHER in this answer changed or vanished" in done.err
    opened(chromium, done.out)
    assert "2 documents changed or vanished" in texts(chromium, "#what")[0]
    badges = texts(chromium, "#list > li > .row > .badge")
    assert any("by estimate" in each for each in badges)
    for at in range(9):
        click(chromium, "#list > li > .row > .toggle", at=at)
    notes = texts(chromium, ".passages > p.note")
    assert len(notes) == 6
    assert all("changed or vanished since it was compared" in note for note in notes)
    assert len(texts(chromium, ".beside")) == 3


def test_a_page_of_shared_texts_is_below_8_megabytes(run, tmp_path):
    """Of answers that all took three long passages, in all pairs, in two spellings."""
    blocks = [words(700 * at, 700 * (at + 1)) for at in range(3)]
    for i in range(40):
        text = f" own{i} ".join(["", *blocks, ""])
        write_files(tmp_path / "d", {f"{i}": text.upper() if i % 2 else text})
    done = run("report d --measure containment -t 0.5 --no-store")
    assert 4_000_000 < len(done.out) < 8_000_000
    known = known_of(done.out)
    assert known["steps"]["pairs"][0] == 40 * 39 // 2
    assert "are without: the page would be too large; --differences N takes N" in done.err


def test_the_terminal_has_colours_and_both_texts_if_it_is_wide(run, answers, tmp_path):
    asked = ["show", "answers/light.txt", "sources/a.txt", "--shared", "--no-store"]
    wide, narrow = (in_terminal(asked, width, tmp_path)[1].decode() for width in (160, 80))
    for shown in (wide, narrow):
        assert "\x1b[32m" in shown
        assert "[=" not in shown
    assert "│" in wide
    assert "│" not in narrow
    plain = run(*asked).out.decode()
    first = plain.split("\n\n")[1]
    assert re.match(r"line \d of A, line \d of B: \d+ words shared\n", first)
    assert first.count("[=") == first.count("=]") > 10
    alone = run(*asked, "--context", "0").out.decode()
    assert "new5" not in alone
    assert "new5" in plain


def test_long_documents_of_many_short_passages(run, tmp_path):
    """Two documents of 1.3 MB that share the phrases of any text: seconds, not minutes."""
    rng = np.random.default_rng(5)
    for name in "ab":
        drawn = [f"word{i}" for i in (rng.zipf(1.3, 200_000) % 20_000).tolist()]
        text = "".join(f"{word}\n" if at % 12 == 0 else f"{word} " for at, word in enumerate(drawn))
        write_files(tmp_path, {name: text})
    rows = run("show a b --shared --format jsonl --no-store").lines
    assert len(rows) > 50_000
    last = json.loads(rows[-1])
    assert last["a_line"] == last["a_start"] // 12 + 1 + (last["a_start"] % 12 > 0)
