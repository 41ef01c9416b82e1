"""What two documents share: the passages, and what the terminal and the page show of them."""

import json
import random
import re
import shutil
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lshdup.base.params import FilterParams, ShingleParams
from lshdup.base.wording import decimal
from lshdup.shingling.inspection import locate_shingles
from lshdup.shingling.shingle_filter import ShingleFilter
from lshdup.views.changes import ALIKE, MOVED_AWAY, MOVED_HERE
from lshdup.views.comparison import compare, count_tokens, find_shared
from tests.conftest import RUN, write_files
from tests.documents import list_tokens
from tests.reference import reached, shingle_list
from tests.running import in_terminal
from tests.views.test_html import HOSTILE, elements, full_names, known_of, lists_of

WORDS = st.one_of(
    st.lists(st.sampled_from(letters), max_size=40).map(" ".join)
    for letters in ("abcd", "abกかか字")
)


def marked(shingles, shared, k, tokens):
    """Which tokens are in a shared run of k tokens, with what they count for, tried one by one."""
    counted = reached([token.decode() for token in tokens])
    ends = [at + len(each) for at, each in enumerate(counted)]
    at = (range(i, max(ends[i : i + k])) for i, each in enumerate(shingles) if each in shared)
    places = {place for each in at for place in each}
    return [token in places for token in range(len(tokens))]


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
    a, b = (marked([*each], shared, k, words) for each, words in zip(lists, tokens, strict=True))
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


@given(WORDS, WORDS, st.integers(1, 3), st.integers(0, 5))
def test_hunks_have_each_passage_once_and_say_what_stands_around_it(one, other, k, context):
    found = shared_of(one, other, k=k)
    hunks = list(found.hunks(context))
    passages = [each for hunk in hunks for each in hunk if each.kind == ALIKE]
    assert Counter(passages) == Counter(found.changes)
    assert [count_tokens(hunk) for hunk in hunks] == sorted(map(count_tokens, hunks), reverse=True)
    for hunk in hunks:
        for first, second in pairwise(hunk):
            assert (first.a_end, first.b_end) == (second.a_start, second.b_start)
        for kind, start, end, b_start, b_end in hunk:
            if kind != ALIKE:
                marks = found.in_a[start:end] if start < end else found.in_b[b_start:b_end]
                assert set(marks.tolist()) == {kind in (MOVED_AWAY, MOVED_HERE)}
                assert len(marks) <= 2 * context


def shared_of(one, other, **params):
    located = (locate_shingles(each.encode(), ShingleParams(**params)) for each in (one, other))
    return find_shared(*located)


def places(one, other):
    """(place in one, place in other, tokens) of each passage."""
    return [(each.a_start, each.b_start, each.tokens) for each in shared_of(one, other).changes]


def words(first, last):
    return " ".join(f"w{i}" for i in range(first, last))


def test_a_passage_is_found_wherever_it_stands_and_whole():
    moved = places(f"{words(0, 9)} {words(20, 30)}", f"{words(20, 30)} x {words(0, 9)}")
    assert moved == [(0, 11, 9), (9, 0, 10)]
    # A phrase within it that stands before it too does not cut it.
    phrase = "each of us has"
    block = f"{words(0, 5)} {phrase} {words(5, 9)} {phrase} {words(9, 12)}"
    assert places(f"q {block}", f"{phrase} a {phrase} b {block} c {block}") == [(1, 10, 20)]
    # A word that was changed, added, or left out is between two passages.
    changed = f"{words(0, 9)} other {words(10, 19)} more {words(19, 25)} {words(26, 30)}"
    assert places(changed, words(0, 30)) == [(0, 0, 9), (10, 10, 9), (20, 19, 6), (26, 26, 4)]
    assert places("one two", "One, two!") == [(0, 0, 2)]
    assert places("one two", "one two three") == []


@pytest.fixture
def answers(tmp_path):
    """Answers of 200 words: copied whole, in another order, with changed words, reworded, none."""
    rng = random.Random(3)
    syllables = product("ba de fi go lu ma ne pi ro su".split(), "ran lek mo".split())
    vocabulary = [a + b + c for (a, b), c in product(syllables, ("", "s", "ed"))]
    question = "What is inheritance, and why do programs need it? Answer in your own words."
    own, source, other = (rng.choices(vocabulary, k=n) for n in (300, 900, 700))
    taken = source[100:250]
    light = [f"new{i}" if i % 11 == 5 else word for i, word in enumerate(taken)]
    heavy = [f"new{i}" if i % 3 == 1 else word for i, word in enumerate(taken)]
    made = {
        "copied": own[:30] + taken + own[30:50], "moved": taken[75:] + own[50:100] + taken[:75],
        "light": own[100:150] + light, "heavy": own[150:200] + heavy, "own": own[:200],
        "two": source[400:480] + own[200:230] + other[300:390],
    }  # fmt: skip
    files = {
        f"answers/{name}.txt": f"{question}\n{' '.join(text[:90])}. {' '.join(text[90:])}.\n"
        for name, text in made.items()
    }
    files["answers/copied.txt"] = files["answers/copied.txt"].upper()
    files |= {"sources/a.txt": f"{question}\n{' '.join(source)}", "sources/b.txt": " ".join(other)}
    write_files(tmp_path, files | {"question.txt": question})


ASKED = "answers --against sources --measure containment -t 0.2 --template question.txt --no-store"


def rows_of(known):
    """The pairs of a page: names, measure, and the number of shingles of both."""
    names, sizes, pairs = full_names(known), known["documents"]["shingles"], known["pairs"]
    values = np.repeat(pairs["values"], pairs["counts"]).tolist()
    sides = ([known["kinds"][each] for each in pairs[side]] for side in ("left", "right"))
    return [
        (names[a], names[b], value, sizes[a], sizes[b])
        for [a], [b], value in zip(*sides, values, strict=True)
    ]


def test_the_shares_are_those_of_pairs_to_the_last_digit(chromium, run, answers, tmp_path):
    """On the page, in `show` as data, and in `show` for people; and those of the definition."""
    rows = run("pairs", *ASKED.split()).rows
    listed = [(a, b, float(c), float(s), int(m), int(n)) for a, b, c, s, m, n, *_ in rows]
    found = {name.rpartition("/")[2]: share for name, _, share, *_ in listed}
    assert found["copied.txt"] > found["light.txt"] > 0.2
    assert not {"own.txt", "heavy.txt"} & {*found}
    page = run("report", *ASKED.split(), "-q").out
    assert rows_of(known_of(page)) == [(a, b, c, m, n) for a, b, c, _, m, n in listed]
    removed = set(shingle_list((tmp_path / "question.txt").read_text()))
    chromium.open(page)
    for at, (a, b, containment, similarity, _, _) in enumerate(listed):
        sets = [set(shingle_list((tmp_path / each).read_text())) - removed for each in (a, b)]
        shares = [len(sets[0] & sets[1]) / len(each) for each in sets]
        assert max(shares) == containment
        show = ["show", a, b, "--shared", "--template", "question.txt"]
        shown = json.loads(run(*show, "--format", "json").out)
        assert [shown["share_a"], shown["share_b"]] == shares
        assert (shown["containment"], shown["similarity"]) == (containment, similarity)
        pair = "{first: names.indexOf(arguments[0]), second: names.indexOf(arguments[1]), "
        pair += "similarity: arguments[2]}"
        of_page = chromium.js(f"sharesOf({pair})", a, b, containment)
        assert of_page == [*shares, similarity]
        a, b, score = map(decimal, (*shares, similarity))
        said = f"containment {a} of A, {b} of B, similarity {score}"
        assert said in run(*show).out.decode()
        labels = chromium.texts(f"#list > li:nth-child({at + 1}) .share")
        assert [label.split()[0] for label in labels] == [a, b]


def test_what_is_shared_stands_beside_each_other_in_the_page(chromium, run, answers, tmp_path):
    """Marked on both sides in the words of each; and no list says what to keep or to drop."""
    chromium.open(run("report", *ASKED.split(), "-q").out)
    rows = [text.split(" ")[0] for text in chromium.texts("#list .name")]
    assert chromium.texts("#title") == ["What documents share"]
    assert chromium.texts("#n-documents, #n-pairs") == ["8", str(len(rows) // 2)]
    for gone in ("#act", "#groups", "#which"):
        assert chromium.js("document.querySelector(arguments[0]).offsetParent", gone) is None
    assert not chromium.texts("#n-groups, #n-beside")
    at = rows.index("answers/copied.txt") // 2
    chromium.click("#list > li > .row > .toggle", at=at)
    left, right = chromium.texts(".beside .text mark:not(.moved)")
    assert left.strip().isupper()
    assert re.sub(r"[^\w\s]", "", left).lower().split() == right.split()
    assert right.strip() in (tmp_path / "sources/a.txt").read_text()
    marks = "[...document.querySelectorAll('.beside .text mark')]"
    first, second = chromium.js(f"{marks}.map((each) => each.getBoundingClientRect().left)")[:2]
    assert first < second
    colour = "getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
    assert chromium.js(colour, ".beside mark") != chromium.js(colour, ".beside .rest")
    assert "What is inheritance" not in "".join(chromium.texts(".beside mark"))
    at = rows.index("answers/moved.txt") // 2
    chromium.click("#list > li > .row > .toggle", at=at)
    both = chromium.texts(f"#list > li:nth-child({at + 1}) .beside mark:not(.moved)")
    assert [len(each.split()) for each in both] == [75] * 4
    chromium.set_threshold(1)
    assert chromium.texts("#count") == ["0 rows"]


def test_a_page_of_shared_texts_does_nothing_with_names_and_texts(chromium, run, tmp_path):
    evil = "</script><script>document.title='owned'</script> <b>bold</b> \u202e \x1b[31m "
    evil = f"{evil}{words(0, 30)}".encode()
    names = [name.replace(b"/", b"-") for name in HOSTILE]
    for at, name in enumerate(names):
        own = f"{name!r} own{at}".encode()
        write_files(tmp_path / "d", {name: evil + b" \xff\xfe\x80 " * (at % 2) + own})
    shutil.copytree(tmp_path / "d", tmp_path / "e")
    contained = ["--measure", "containment"]
    for command in (
        ["d", *contained],
        ["d", "--against", "e"],
        ["d", "--against", "e", *contained],
    ):
        page = run("report -t 0.3 -q --no-store --encoding latin-1", *command).out
        known = known_of(page)
        assert all(name.isprintable() for name in full_names(known))
        chromium.open(page)
        for at in range(12):
            chromium.click("#list > li > .row > .toggle", at=at)
        assert "owned" not in chromium.driver.title
        assert not chromium.texts("#list b, #list script, #list img")
        marks = chromium.texts(".beside mark")
        assert any("</script><script>" in each for each in marks)
        assert all(line.isprintable() for each in marks for line in each.split("\n"))
        assert chromium.fits()
        assert {"img", "iframe", "link"} & {node.tag for node in elements(page)} == {"link"}
        saved = {name.encode("latin-1").rpartition(b"/")[2] for name in lists_of(known)["names"]}
        assert saved == {*names}


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
    asked = [*command.split(), "-t", "0.3", "--no-store"]
    rows = run("pairs", *asked, "-q").rows
    known = known_of(run("report", *asked, "-q").out)
    pairs, steps, number = known["pairs"], known["steps"], len(rows)
    assert [(a, b, repr(value)) for a, b, value, *_ in rows_of(known)] == [
        (*row[:3],) for row in rows
    ]
    assert number > 10
    assert pairs["same"].count(2) == sum("bytes" in row for row in rows)
    sides = zip(pairs["left"], pairs["right"], strict=True)
    assert known["passages"].keys() == {f"{a},{b}" for a, b in sides}
    for threshold, count in zip(steps["threshold"], steps["pairs"], strict=True):
        assert count == sum(float(row[2]) >= threshold for row in rows)
    done = run("report", *asked, "--most", "3", "--differences", "1")
    cut = known_of(done.out)
    assert cut["steps"]["pairs"] == steps["pairs"]
    assert rows_of(cut) == rows_of(known)[:3]
    assert len(cut["passages"]) == 1
    assert f"3 of {number} pairs of different documents; --most {number} lists all" in done.err
    assert f"the shared passages of 1 of {number} pairs are in the page" in done.err


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
    chromium.open(done.out)
    assert "2 documents changed or vanished" in chromium.texts("#what")[0]
    badges = chromium.texts("#list > li > .row > .badge")
    assert any("by estimate" in each for each in badges)
    for at in range(9):
        chromium.click("#list > li > .row > .toggle", at=at)
    notes = chromium.texts(".passages > p.note")
    assert len(notes) == 6
    assert all("changed or vanished since it was compared" in note for note in notes)
    assert len(chromium.texts(".beside")) == 3


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


@pytest.mark.parametrize("columns", [160, 80])
def test_the_terminal_has_colours_and_both_texts_if_it_is_wide(answers, tmp_path, columns):
    line = "show answers/light.txt sources/a.txt --shared --no-store"
    _, shown, _ = in_terminal(line, columns, tmp_path)
    assert b"\x1b[32m" in shown
    assert b"[=" not in shown
    assert ("│" in shown.decode()) == (columns == 160)
