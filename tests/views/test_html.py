"""The page of a report: what it knows, that nothing in it acts, and its use in Chromium."""

import base64
import json
import random
import re
import shlex
import shutil
import zlib
from collections import Counter, defaultdict
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from lshdup.base.wording import chance, decimal
from lshdup.compare import clusters
from lshdup.compare.expand_duplicates import expand_copies
from lshdup.compare.scored_pairs import Pairs
from lshdup.evaluation.histogram import list_thresholds
from lshdup.views import html
from lshdup.views.pair_view import Differences, escape
from lshdup.views.selection import select
from tests.compare.test_pairs import collections, found_pairs, rows
from tests.conftest import RUN, WHOLE, many, part, write_files
from tests.documents import zip_of

HOSTILE = [
    b"</script><script>document.title='owned'</script>", b"<!--<script>",
    b'"><img src=x onerror=document.title="owned">', b"a\xe2\x80\xaegpj.exe",
    b"\x1b[31mred", b"line\nbreak\ttab", b"\xff\xfe not utf-8", b"javascript:alert(1)",
    b"x" * 250, "Größe 漢字 ไทย".encode(),
]  # fmt: skip


def page_of(
    names, triples, passages=None, duplicate_of=None, *,
    same=None, threshold=0.5, most=0, preference=None,
):  # fmt: skip
    """A page of these names, with pairs (left, right, similarity) of first copies.

    same : how much each document is the same as the first of its copies.
    """
    n = len(names)
    left, right, similarity = np.array(triples, float).reshape(-1, 3).T.copy()
    pairs = Pairs.of(RUN, left.astype(int), right.astype(int), similarity)
    duplicate_of = np.array(range(n) if duplicate_of is None else duplicate_of)
    order = np.array(range(n) if preference is None else preference)
    selection = select(
        RUN, pairs, expand_copies(RUN, pairs, duplicate_of), duplicate_of, order,
        np.array([*map(len, names)]), list_thresholds(threshold, 0.005), most,
    )  # fmt: skip
    said = {"newest": "1 May 2020", "skipped": {"binary": 2}, "parameters": [("tokens", "word")]}
    known = html.collect_data(
        RUN, selection, duplicate_of, np.full(n, 10), order,
        lambda some: [names[i] for i in some.tolist()],
        html.Facts("what was compared", n, 20, 5, **said),
        lambda left, _: np.array(same or [2] * n)[left],
    )  # fmt: skip
    passages = passages or Differences(without={None: "none"})
    html.add_differences(known, passages, selection, duplicate_of)
    html.add_lists(known, selection, names, np.zeros(n, bool), {"binary": [("x", ""), ("y", "")]})
    return known, html.render_page(known)


def full_names(known):
    folders, folder, name = (known["documents"][each] for each in ("folders", "folder", "name"))
    return [folders[at] + each for at, each in zip(folder, name, strict=True)]


def lists_of(known):
    return json.loads(zlib.decompress(base64.b64decode(known["lists"])))


def dropped_at(known, step):
    """The names that the page saves as those to drop at a step, however many groups it lists."""
    lists = lists_of(known)
    times = Counter(line for each in lists["changes"][: step + 1] for line in accumulate(each))
    return {lists["names"][line].encode("latin-1") for line, n in times.items() if n % 2}


def elements(page):
    return [*LexborHTMLParser(page.decode()).root.traverse()]


def known_of(page):
    """The data of a page, which its first script has."""
    return json.loads(next(node.text() for node in elements(page) if node.tag == "script"))


@settings(max_examples=many(100) // 2)
@given(
    st.lists(st.binary(min_size=1, max_size=40) | st.sampled_from(HOSTILE), min_size=2, max_size=6),
    st.text(max_size=60),
)
def test_no_name_and_no_text_becomes_markup(names, text):
    _, usual = page_of([b"a", b"b"], [(0, 1, 0.9)])
    segments = [("-", escape(text)), ("+", "</script>"), ("f", 12)]
    variants = {0: [("before", "<b>", "after", escape(text), [1])]}
    passages = Differences({(0, 1): segments}, variants, {None: "none"})
    known, page = page_of(names, [(0, 1, 0.9)], passages)
    assert [node.tag for node in elements(page)] == [node.tag for node in elements(usual)]
    found = known_of(page)
    assert found == json.loads(json.dumps(known))
    assert all(name.isprintable() for name in full_names(found))
    assert [name.encode("latin-1") for name in lists_of(found)["names"]] == names
    assert found["documents"]["line"] == [0, 1]
    shown = [part for _, part in found["passages"]["0,1"] if isinstance(part, str)]
    assert all(line.isprintable() for part in shown for line in part.split("\n"))


def test_the_page_asks_nobody_for_anything():
    page = page_of([b"a", b"b"], [(0, 1, 0.9)])[1]
    policy = re.search(rb'Content-Security-Policy" content="([^"]+)"', page).group(1)
    assert policy.startswith(b"default-src 'none';")
    acting = {"img", "iframe", "object", "embed", "form", "base"}
    assert not acting & {node.tag for node in elements(page)}
    attributes = [each for node in elements(page) for each in node.attributes.items()]
    assert [value for name, value in attributes if name in ("src", "href")] == ["data:,"]


@given(collections(), st.sampled_from([0.3, 0.4, 0.5, 0.9, 1.0]), st.integers(0, 12))
@settings(max_examples=many(150))
def test_all_is_counted_and_the_groups_that_are_listed_are_whole(collection, threshold, most):
    """Against a run at each threshold of its own; groups and pairs are cut at `most`."""
    kinds, similar = collection
    pairs, duplicate_of = found_pairs(kinds, similar)
    pairs = pairs.at_least(threshold)
    n, order = len(kinds), np.arange(len(kinds))[::-1]
    options = {"threshold": threshold, "most": most, "preference": order}
    triples = np.column_stack([pairs.left, pairs.right, pairs.similarity])
    known, _ = page_of([b"%d" % i for i in range(n)], triples, None, duplicate_of, **options)
    steps, rows_of, grouped = known["steps"], known["pairs"], known["kinds"][: known["grouped"]]
    every = [row for each in expand_copies(RUN, pairs, duplicate_of).pieces() for row in rows(each)]
    ranked = clusters.rank_documents(RUN, np.unique(duplicate_of), duplicate_of, order)
    named = {int(name): at for at, name in enumerate(full_names(known))}
    assert sum(map(len, grouped)) <= (most or n)
    last = len(steps["threshold"]) - 1
    for step in {0, min(1, last), (last + 1) // 2, last}:
        level = steps["threshold"][step]
        found = clusters.cluster_pairs(RUN, pairs, ranked, n, level)
        found = clusters.expand_clusters(found, duplicate_of, order)
        truth = defaultdict(set)
        for document, leader in enumerate(found.representative.tolist()):
            truth[leader].add(document)
        truth = {leader: group for leader, group in truth.items() if len(group) > 1}
        lost = {b"%d" % each for leader, group in truth.items() for each in group - {leader}}
        assert dropped_at(known, step) == lost
        assert steps["pairs"][step] == sum(s >= level for _, _, s in every)
        assert steps["groups"][step] == len(truth)
        assert steps["members"][step] == sum(map(len, truth.values()))
        listed = groups_of(known, step)
        assert listed == {
            named[leader]: {named[member] for member in group}
            for leader, group in truth.items()
            if group <= set(named) and any(named[leader] in kind for kind in grouped)
        }
        if not most:
            assert len(listed) == len(truth)
            counted = zip(rows_of["values"], rows_of["counts"], strict=True)
            pairs_of = sum(len(kind) > 1 for kind in known["kinds"])
            pairs_of += sum(count for value, count in counted if value >= level)
            assert steps["rows"][step] == pairs_of


def groups_of(known, step):
    """The groups that the page lists at a step: members by the one that is kept."""
    moves, kinds = known["moves"], known["kinds"]
    groups, at = defaultdict(set), 0
    for kind in range(known["grouped"]):
        leader = kind
        for move in range(at, at + moves["count"][kind]):
            if moves["step"][move] <= step:
                leader = moves["to"][move]
        at += moves["count"][kind]
        groups[kinds[leader][0]] |= set(kinds[kind])
    return {first: group for first, group in groups.items() if len(group) > 1}


def test_a_page_of_any_number_of_pairs_is_below_8_megabytes():
    """Of 300,000 documents in groups of six, and all their pairs, and of long names."""
    rng = np.random.default_rng(4)
    n, size = 300_000 if WHOLE else 60_000, 6
    left, right = np.triu_indices(size, 1)
    starts, times = np.repeat(np.arange(0, n, size), len(left)), n // size
    similarity = 0.5 + rng.integers(0, 50_000, len(starts)) / 100_001
    sides = (np.tile(side, times) + starts for side in (left, right))
    triples = np.column_stack([*sides, similarity])
    for length in part((200, 20), 2):
        names = [b"%0*d" % (length, i) for i in range(n)]
        known, page = page_of(names, triples)
        assert len(page) - len(known["lists"]) < 8_000_000
        assert len(known["lists"]) < 7 * n
        assert known["steps"]["pairs"][0] == len(triples)
        assert known["steps"]["groups"][0] > times - 1
        assert len(known["documents"]["name"]) > 10_000
        assert len(known["pairs"]["left"]) > 3_000


# --- in Chromium ----------------------------------------------------------------------------------


def test_hostile_names_and_texts_are_shown_and_do_nothing(chromium):
    evil = "</script><script>document.title='owned'</script>\x1b[0m"
    segments = [("-", "<b>bold</b>\u202e" + "y" * 1_000_000), ("+", evil)]
    variants = {0: [("<i>", "<b>", "<u>", evil, [1, 2])]}
    triples = [(0, 1, 0.9), (0, 2, 0.8)] + [(i, i + 1, 0.6) for i in range(1, len(HOSTILE) - 1)]
    differences = Differences({(0, 1): segments}, variants, {None: "<s>"})
    chromium.open(page_of(HOSTILE, triples, differences)[1])
    chromium.click("#list .toggle", "#list .inside .toggle", ".variants .toggle")
    assert chromium.texts(".variants ins") == [evil]
    chromium.click("#pairs")
    for at in range(len(HOSTILE)):
        chromium.click("#list > li > .row > .toggle", at=at)
    assert "owned" not in chromium.driver.title
    assert any("</script><script>" in text for text in chromium.texts("#list .name"))
    assert chromium.texts(".text ins")[1].startswith("</script><script>")
    assert not chromium.texts("#list b, #list i, #list u, #list s, #list script, #list img")
    assert chromium.fits()
    phone = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    chromium.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    assert chromium.js("document.documentElement.scrollWidth") <= 360


def test_the_threshold_moves_counts_groups_and_list(chromium):
    names = [b"a", b"b", b"c", b"d", b"d.copy"]
    triples = [(0, 1, 0.9), (1, 2, 0.8), (0, 2, 0.6), (2, 3, 0.55)]
    segments = {(1, 2): [("=", "same "), ("-", "old"), ("+", "new")]}
    differences = Differences(segments, {}, {None: "none"})
    chromium.open(page_of(names, triples, differences, [0, 1, 2, 3, 3])[1])
    counts, row = "#n-pairs, #n-groups, #n-members, #n-beside", "#list > li > .row > .toggle"
    text = ".passages .text:last-child"
    chromium.play(
        # d and its copy, and both beside c; a with b and c
        *((counts, [*"6253"]), (0.7, counts, [*"3242"]), (0.85, counts, [*"2242"])),
        *((0.95, counts, [*"1121"]), (0.5, counts, [*"6253"])),
        (row, "#list > li:first-child .name", ["a", "a", "b", "c"]),
        ("#pairs", 0.75, "#list > li:nth-child(3) > .row > .toggle", text, ["same oldnew"]),
        (f"{text} del", ["old"]),
    )
    chromium.enter("search", "COPY", "input")
    chromium.driver.execute_async_script("setTimeout(arguments[0], 200)")
    assert chromium.texts("#list .name") == ["d", "d.copy"]


def test_numbers_look_as_elsewhere(chromium):
    """A similarity as in tables, a chance as on standard error."""
    chromium.open(page_of([b"a", b"b"], [(0, 1, 0.9)])[1])
    for threshold in np.linspace(0.5, 1, 51).round(6).tolist():
        miss = (1 - threshold**5) ** 20
        said = chromium.js("promise(arguments[0])", threshold)
        assert f"similarity {threshold:.3f} was missed is {chance(miss)}" in said
    for similarity in (0.85779, 0.99999, 0.5, 2 / 3, 0.123456):
        assert chromium.js("scoreText(arguments[0])", similarity) == decimal(similarity)


def test_keys(chromium):
    from selenium.webdriver import ActionChains, Keys

    chromium.open(page_of([b"a", b"b", b"c", b"d"], [(0, 1, 0.9), (2, 3, 0.8)])[1])
    ActionChains(chromium.driver).send_keys("p", "j", "j", Keys.ENTER).perform()
    assert chromium.js("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert "c" in chromium.js("document.activeElement.closest('.row').textContent")
    ActionChains(chromium.driver).send_keys("k", "]", "]").perform()
    assert chromium.texts("#chosen") == ["0.510"]
    theme = "document.documentElement.dataset.theme"
    before = chromium.js(theme)
    # The last one is searched for, not obeyed.
    ActionChains(chromium.driver).send_keys("d", "/", "g").perform()
    assert chromium.js(theme) != before
    assert chromium.js("document.activeElement.id") == "search"
    assert chromium.texts("[role=tab][aria-selected=true]") == ["Pairs"]


def test_a_name_is_selected_without_opening_its_row_and_copied_byte_for_byte(chromium):
    from selenium.webdriver import ActionChains

    chromium.open(page_of([b"a\tb.txt", b"plain.txt"], [(0, 1, 0.9)])[1])
    chromium.js("navigator.clipboard.writeText = async (text) => window.copied = text")
    chromium.click("#list .copy")
    assert chromium.js("copied") == "a\tb.txt"
    name = chromium.driver.find_element("css selector", "#list .name")
    drag = ActionChains(chromium.driver).move_to_element_with_offset(name, -15, 0).click_and_hold()
    drag.move_by_offset(25, 0).release().perform()
    assert chromium.js("getSelection().toString()") in r"a\tb.txt"
    assert chromium.js("getSelection().isCollapsed") is False
    assert not chromium.texts(".inside")
    chromium.js("getSelection().removeAllRanges()")
    ActionChains(chromium.driver).click(name).perform()
    assert chromium.texts(".inside")


def test_names_are_saved_byte_for_byte(chromium):
    names = [b"a\xff", b"b c", b"d\te", "é".encode(), b"line\nbreak", b"x", b"y"]
    triples = [(i, i + 1, 0.9 if i < 4 else 0.6) for i in range(6)]
    chromium.open(page_of(names, triples + [(0, i, 0.9) for i in (2, 3, 4)])[1])
    chromium.set_threshold(0.8)
    drop, keep = chromium.download("#save-drop", "#save-keep")
    assert drop == b"b c\nd\te\n\xc3\xa9\nline\nbreak\n"
    assert keep == b"a\xff\nx\ny\n"
    said = "some names hold tabs or newlines: lines are ambiguous; use -0"
    command = "lshdup clusters -t 0.8 --emit keep{} > keep.txt"
    chromium.play(
        ("#warning, #command", [said, command.format("")]),
        ("#nul", "#warning, #command", ["", command.format(" -0")]),
        ("#save-drop, #save-keep", ["Save names to keep (3)", "Save names to drop (4)"]),
    )
    (drop,) = chromium.download("#save-drop")
    assert drop == b"b c\0d\te\0\xc3\xa9\0line\nbreak\0"


def test_pairs_of_no_duplicates_are_saved_as_lines_of_pairs(chromium):
    chromium.open(page_of([b"a\xff", b"b\tc", "é".encode()], [(0, 1, 0.9), (0, 2, 0.8)])[1])
    hidden, said = "document.getElementById('accepted').hidden", ["Save 1 pair of no duplicates"]
    assert chromium.js(hidden)
    chromium.play(("#list .toggle", "#list .inside .toggle", ".accept", "#save-accepted", said))
    chromium.click("#pairs", "#list .toggle")
    assert chromium.js("document.querySelector('.accept').getAttribute('aria-pressed')") == "true"
    chromium.click("#list > li:last-child .toggle", "#list > li:last-child .accept")
    (saved,) = chromium.download("#save-accepted")
    assert saved == b'{"a":"a\xff","b":"b\\tc"}\n{"a":"a\xff","b":"\xc3\xa9"}\n'
    chromium.click(".accept", "#list > li:last-child .accept")
    assert chromium.js(hidden)


def test_what_is_the_same_is_said(chromium):
    names = [b"a", b"a.copy", b"b", b"b.HTML", b"c", b"c.sorted", b"c.copy"]
    duplicate_of, same = [0, 0, 2, 2, 4, 4, 4], [2, 2, 2, 1, 2, 0, 2]
    chromium.open(page_of(names, [(0, 2, 0.9)], duplicate_of=duplicate_of, same=same)[1])
    shingles, toggle, badges = "the same shingles, another text", "#list .toggle", ".inside .badge"
    of_b = ["same bytes", "10 shingles", "same text as the one above"]
    chromium.play(
        (1, "#list > li > .row > .badge", [shingles, "same bytes", "same text"]),
        (toggle, badges, ["kept, 10 shingles", shingles, "same bytes"]),
        (0.5, toggle, ".inside .score", ["", "1", "0.9000", "0.9000"]),  # to the kept one
        (badges, ["kept, 10 shingles", *of_b]),
    )
    chromium.set_threshold(1)
    chromium.enter("which", "bytes", "change")
    chromium.play(("#list .name", ["a"]), ("#pairs", "#list .name", ["a", "a.copy"]))


def test_a_cut_list_says_so_and_its_files_are_whole(chromium):
    names = [f"{i:02}".encode() for i in range(20)]
    triples = [(i, i + 1, 0.9) for i in range(0, 20, 2)]
    chromium.open(page_of(names, triples, most=6)[1])
    cut = "Listed here: 3 of 10 groups, the largest first."
    assert re.match(f"{cut}.*--most 20 lists all", chromium.texts("#cut")[0])
    (saved,) = chromium.download("#save-drop")
    assert saved.splitlines() == [b"%02d" % i for i in range(1, 20, 2)]
    chromium.play(
        ("#n-pairs, #n-groups, #n-beside, #count", ["10", "10", "10", "3 of 10 groups"]),
        ("#pairs", "#count", ["6 of 10 rows"]),
    )
    assert chromium.js("document.getElementById('cut').hidden") is False


def test_labels_stand_beside_the_bars(chromium):
    """No label of the vertical axis lies on a bar, and each is as high as its rule."""
    triples = [(i, i + 1, 0.5 + 0.01 * (i % 40)) for i in range(0, 100, 2)]
    chromium.open(page_of([b"%02d" % i for i in range(101)], triples)[1])
    every = "[...document.querySelectorAll(arguments[0])]"
    boxes = f"{every}.map((each) => each.getBoundingClientRect().toJSON())"
    selectors = ("#scale span", ".rule", "#histogram")
    marks, rules, (bars,) = (chromium.js(boxes, each) for each in selectors)
    assert len(marks) == len(rules) > 1
    for mark, rule in zip(marks, rules, strict=True):
        assert mark["right"] <= bars["left"]
        assert abs((mark["top"] + mark["bottom"]) / 2 - rule["top"]) < 2


def test_variants_are_those_of_the_members_at_the_threshold(chromium):
    names = [b"kept", b"one", b"two", b"three"]
    triples = [(0, 1, 0.9), (0, 2, 0.8), (0, 3, 0.7)]
    variants = {0: [("it costs ", "10", " euro", "12", [1, 2]), ("in ", "May", ".", "June", [3])]}
    same = {(0, member): [("=", "text")] for member in (1, 2, 3)}
    chromium.open(page_of(names, triples, Differences(same, variants, {None: ""}))[1])
    toggles = ("#list .toggle", "#list .inside .toggle", ".variants .toggle")
    chromium.play(
        (*toggles, ["2 ×", "1 ×"]),
        (".variants .text", ["it costs 1012 euro", "in MayJune."]),
        (".variants .toggle", ".variants .name", ["one", "two"]),
        (0.8, *toggles, ["2 ×"]),
    )


def test_thousands_of_pairs_are_drawn_as_they_are_looked_at(chromium):
    n = 4_000
    names = [f"folder{i % 7}/document {i:05}.txt".encode() for i in range(2 * n)]
    triples = [(2 * i, 2 * i + 1, 0.5 + i / (2 * n + 1)) for i in range(n)]
    page = page_of(names, triples)[1]
    assert len(page) < 1_200_000
    chromium.open(page)
    count = "document.getElementsByTagName('*').length"
    assert chromium.js(count) < 3_000
    assert chromium.texts("#n-groups") == ["4,000"]
    chromium.js("window.scrollTo(0, document.body.scrollHeight)")
    wait = "requestAnimationFrame(() => setTimeout(arguments[0], 300))"
    chromium.driver.execute_async_script(wait)
    assert 60 < len(chromium.texts("#list > li")) < 1_000
    for threshold in np.arange(0.5, 1, 0.02).tolist():
        chromium.set_threshold(threshold)
    assert chromium.js(count) < 3_000
    chromium.play((1, "#n-groups, #count", ["0", "0 groups"]))


# --- the command ----------------------------------------------------------------------------------


def test_the_page_has_the_pairs_and_groups_of_the_other_commands(chromium, run, corpus):
    page = run("report sample_corpus -t 0.5 --keep shortest").out
    known = known_of(page)
    assert known["what"] == "sample_corpus"
    assert re.fullmatch(r"\d+ \w+ \d{4}", known["newest"])
    names, pairs = full_names(known), known["pairs"]
    similarity = np.repeat(pairs["values"], pairs["counts"]).tolist()
    kinds = [[names[each] for each in kind] for kind in known["kinds"]]
    found = {(a, b, 1.0) for kind in kinds for a in kind for b in kind if a != b}
    for left, right, s in zip(pairs["left"], pairs["right"], similarity, strict=True):
        found |= {(a, b, s) for a in kinds[left] for b in kinds[right]}
    expected = {(a, b, float(s)) for a, b, s, _ in run("pairs -t 0.5").rows}
    assert {(*sorted(pair[:2]), pair[2]) for pair in found} == expected
    differences = [sort for segments in known["passages"].values() for sort, _ in segments]
    assert {"=", "-", "+", "f"} <= set(differences)
    assert len(known["passages"]) == len(known["pairs"]["left"])
    chromium.open(page)
    for threshold in (0.5, 0.75):
        chromium.set_threshold(threshold)
        rows = run("clusters --keep shortest -t", str(threshold)).rows
        order = list(dict.fromkeys((row[0], row[2]) for row in rows if row[1] == "keep"))
        counts = [sum(s >= threshold for _, _, s in expected), len(order), len(rows)]
        assert chromium.texts("#n-pairs, #n-groups, #n-members") == [*map(str, counts)]
        assert [name for _, name in order[:60]] == chromium.texts("#list > li > .row .name")[:60]
        if threshold == 0.5:
            assert {names[first] for first in groups_of(known, 0)} == {name for _, name in order}


def test_passages_of_the_corpus_stand_in_the_page(chromium, run, tmp_path):
    passage = " ".join(f"</script><b>word{i}</b>" for i in range(60))
    for name in HOSTILE[:8]:
        text = f"{len(name)} words of its own: {passage}; and {len(name) + 1} more"
        write_files(tmp_path / "d", {name.replace(b"/", b"-"): text})
    arguments = ["report", "d", "-t", "0.9", "-q"]
    assert b'"recurring":' not in run(*arguments).out
    page = run(*arguments, "--passages-of-corpus").out
    chromium.open(page)
    assert chromium.texts("#recurring-list > li")[0].startswith("8 ×")
    chromium.click("#recurring-list .toggle")
    assert passage.removeprefix("</")[:200] in chromium.texts("#recurring-list .passages")[0]
    assert len(chromium.texts("#recurring-list .inside .name")) == 8
    assert not chromium.texts("#recurring-list b, #recurring-list script, #recurring-list img")
    assert "owned" not in chromium.driver.title


@pytest.fixture
def mixed(tmp_path):
    """A folder of copies, rows, members of an archive, odd names, and files that are skipped."""
    rng = random.Random(1)
    words = [f"word{i}" for i in range(60)]
    text, near = " ".join(words), " ".join([*words[:-4], "other"])
    files = {b"a": text, b"b\xff": text, b"c\nline": text, b"near": near, b"near.copy": near}
    files |= {b"%d" % i: " ".join(rng.choices(words, k=40)) for i in range(5)}
    files |= {b"dots": "...", b"empty": "", b"binary": "\0\1\2", b".hidden": "x"}
    rows = ({"text": text}, {"text": near}, {"id": 7, "text": None})
    files |= {b"rows.jsonl": "\n".join(map(json.dumps, rows)), b"z.zip": zip_of([("in/a", text)])}
    write_files(tmp_path / "d", files)
    (tmp_path / "d/link").symlink_to("a")


@pytest.mark.parametrize("arguments", ["d --most 1 --prefer near*", ""])
def test_the_lists_that_are_saved_are_those_of_clusters(chromium, run, mixed, tmp_path, arguments):
    """Byte for byte, with warnings and rule, at any threshold, also if the page lists no group."""
    options = ["--archives", "--text-field", "text", "--exclude", "4"]
    if not arguments:  # of the last run; nothing is dropped for the sake of a file that is gone
        run("index d -t 0.5", *options)
        (tmp_path / "d/near").unlink()
        (tmp_path / "d/1").write_text("changed since it was read")
        options = []
    chromium.open(run(f"report -t 0.5 -q {arguments}", *options).out)
    sizes = set()
    for threshold, nul in ((0.5, False), (0.97, True)):
        chromium.set_threshold(threshold)
        if nul:
            chromium.click("#nul")
        (line,) = chromium.texts("#command")
        *words, _, file = shlex.split(line)
        words, env = typed_of(words)
        assert ("-0" in words, file) == (nul, "keep.txt")
        lists = ["keep", "drop", "drop-files"]
        saved = chromium.download(*(f"#save-{what}" for what in lists))
        for what, found in zip(lists, saved, strict=True):
            words[words.index("--emit") + 1] = what
            done = run(*words, code=0 if arguments else 2, env=env)
            assert found == done.out
            assert not nul or chromium.texts(f"#save-{what}")[0].endswith(f"({found.count(0)})")
            if what == "drop":
                warnings = chromium.texts("#warning")[0].splitlines()
                if not arguments:
                    assert warnings.pop().startswith("1 document changed or vanished since")
                assert all(f"lshdup: warning: {warning}" in done.err for warning in warnings)
                assert ("do not give them to `rm`" in done.err) == bool(warnings)
            rule = re.search("kept: (.*)", done.err)[1]
            said = f"Of each group one document is kept: {rule}. "
            assert chromium.texts("#rule")[0].startswith(said)
        sizes.add(len(saved[0]))
    assert len(sizes) > 1


def test_what_was_not_compared_is_named_with_its_reason(chromium, run, mixed, tmp_path):
    options = ["--archives", "--text-field", "text", "--exclude", "4", "--min-tokens", "41"]
    page = run("report d -q", *options).out
    named = {why: [name for name, _ in rows] for why, rows in lists_of(known_of(page))["skipped"]}
    assert named == {
        "binary": ["d/binary"], "fewer than 41 tokens": [f"d/{i}" for i in (0, 1, 2, 3)],
        "hidden": ["d/.hidden"], "no tokens": ["d/dots", "d/empty"],
        "row whose text is null": ["d/rows.jsonl:3"], "symbolic link": ["d/link"],
    }  # fmt: skip
    counts = {why: len(names) for why, names in named.items()}
    assert dict(known_of(page)["skipped"]) == counts | {"excluded by --exclude": 1}
    chromium.open(page)
    names = ("#skipped .toggle", "#skipped .inside .name", ["d/binary"])
    chromium.play(("#n-skipped", ["11"]), names)
    again = lists_of(known_of(run("report -q").out))["skipped"]
    assert dict(again).keys() == named.keys() - {"hidden", "symbolic link"}


def typed_of(words):
    """The words of a command line in a page behind lshdup, and its variables."""
    at = words.index("lshdup")
    return words[at + 1 :], dict(word.split("=", 1) for word in words[:at])


def test_the_command_line_in_the_page_makes_its_groups(run, corpus):
    """With the options that were typed, but for the threshold, and without a secret."""
    typed = ["--tokens", "char", "-k", "7", "--keep-case", "--prefer", "BSD", "--prefer", "x y"]
    more = ["--keep", "shortest", "--jobs", "1", "--hash-key", "hush-2026", "--exclude", "*.html"]
    page = run("report sample_corpus/licences -t 0.5", *typed, *more, "--no-store").out
    known = known_of(page)
    assert "hush-2026" not in page.decode()
    assert known["command"] == (
        "LSHDUP_KEEP_CASE=1 LSHDUP_BANDS=42 LSHDUP_ROWS=3 lshdup clusters sample_corpus/licences "
        "--exclude '*.html' --tokens char --shingle-size 7 --keep shortest --prefer BSD "
        "--prefer 'x y' --no-store"
    )
    step = known["steps"]["threshold"].index(0.7)
    words, env = typed_of(shlex.split(known["command"]))
    kept = {row[2] for row in run(*words, "-t", "0.7", env=env).rows if row[1] == "keep"}
    assert {full_names(known)[first] for first in groups_of(known, step)} == kept
    assert len(kept) == known["steps"]["groups"][step] > 5


def test_folders_are_those_of_the_command_and_open(chromium, run, tmp_path):
    """Pairs as `lshdup folders` prints them, and what `show` says of each; names do nothing."""
    one, two = tmp_path / "t/<b>one", tmp_path / "t/two/deep"
    for number in range(12):
        words = [f"{word}of{number}" for word in range(60)]
        write_files(one / f"in {number % 3}", {f"{number}.txt": " ".join(words)})
    shutil.copytree(one, two)
    (one / "in 0/0.txt").unlink()
    longer = (two / "in 1/4.txt").read_text() + " and more"
    write_files(two, {"in 1/1.txt": "all is new in this one", "in 1/4.txt": longer})
    (two / "in 2/2.txt").rename(two / "<i>moved")
    run("report t -t 0.5 -o report.html")
    page = (tmp_path / "report.html").read_bytes()
    (pair,) = known_of(page)["folders"]["pairs"]
    ((a, b, *numbers),) = run("folders t -t 0.5").rows
    assert [pair["a"], pair["b"]] == [a, b]
    measured = [pair["similarity"], pair["containment"]]
    assert numbers == list(map(str, [*measured, *pair["documents"], pair["shared"], pair["bytes"]]))
    shown = run("show", a, b, "-t", "0.5", "--format", "jsonl").lines
    kinds = [json.loads(line)["kind"] for line in shown]
    assert {kind: n for kind, (n, _) in pair["lists"].items()} == Counter(kinds)
    chromium.open(page)
    pair = "#folders li summary"
    chromium.play(("#folders > summary", pair, f"{pair} .name", [f"A {a}", f"B {b}"]))
    assert len(chromium.texts("#folders li li .name")) == sum(kind != "same" for kind in kinds)
