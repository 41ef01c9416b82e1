"""The page of a report: what it knows, that nothing in it acts, and, in Chromium, that it can be
used.
"""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lshdup.matching.pairs import Pairs
from lshdup.report import html
from lshdup.utils.messages import chance, decimal
from tests.browser import browser

HOSTILE = [
    b"</script><script>document.title='owned'</script>",
    b"<!--<script>",
    b'"><img src=x onerror=document.title="owned">',
    b"a\xe2\x80\xaegpj.exe",
    b"\x1b[31mred",
    b"line\nbreak\ttab",
    b"\xff\xfe not utf-8",
    b"javascript:alert(1)",
    b"x" * 250,
    "Größe 漢字 ไทย".encode(),
]


def page_of(
    names, triples, passages=None, duplicate_of=None, threshold=0.5, most=10_000, preference=None
):
    """A page of these names, with pairs (left, right, similarity) of first copies."""
    n = len(names)
    left, right, similarity = (
        (np.array(column) for column in zip(*triples, strict=True))
        if triples
        else (np.zeros(0, int),) * 3
    )
    duplicate_of = np.arange(n) if duplicate_of is None else np.array(duplicate_of)
    pairs = Pairs.of(left, right, similarity.astype(float))
    selection = html.select_pairs(pairs, duplicate_of, html.Promise(threshold, 20, 5), most)
    order = np.arange(n) if preference is None else np.array(preference)
    facts = html.Facts("what was compared", n, "1 May 2020", {"binary": 2}, [("tokens", "word")])
    known = html.collect_data(
        selection,
        duplicate_of,
        np.full(n, 10),
        order,
        lambda some: [names[i] for i in some.tolist()],
        passages or {},
        facts,
    )
    return known, html.render_page(known)


class Outline(HTMLParser):
    """Elements, and the text of each script."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.scripts, self.attributes = [], [], []
        self.feed(page.decode())

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script":
            self.scripts.append(data)


@given(
    st.lists(st.binary(min_size=1, max_size=40) | st.sampled_from(HOSTILE), min_size=2, max_size=6),
    st.text(max_size=60),
)
def test_no_name_and_no_text_becomes_markup(names, text):
    usual = Outline(page_of([b"a", b"b"], [(0, 1, 0.9)])[1])
    known, page = page_of(names, [(0, 1, 0.9)], {0: [("-", text), ("+", "</script>"), ("f", 12)]})
    outline = Outline(page)
    assert outline.tags == usual.tags
    found = json.loads(outline.scripts[0])
    assert found == json.loads(json.dumps(known))
    assert all(name.isprintable() for name in found["documents"]["name"])
    assert all(
        line.isprintable()
        for _, part in found["passages"]["0"]
        if isinstance(part, str)
        for line in part.split("\n")
    )


def test_the_page_asks_nobody_for_anything():
    page = page_of([b"a", b"b"], [(0, 1, 0.9)])[1]
    policy = re.search(rb'Content-Security-Policy" content="([^"]+)"', page).group(1)
    assert policy.startswith(b"default-src 'none';")
    outline = Outline(page)
    assert not {"img", "iframe", "object", "embed", "form", "base"} & set(outline.tags)
    links = [value for name, value in outline.attributes if name in ("src", "href")]
    assert links == ["data:,"]


def test_what_does_not_fit_is_said_and_the_threshold_is_that_of_what_does():
    names = [f"{i}".encode() for i in range(8)]
    triples = [(i, j, round(0.5 + 0.01 * (i + j), 2)) for i in range(8) for j in range(i + 1, 8)]
    known, _ = page_of(names, triples, most=9)
    assert len(known["pairs"]["left"]) <= 9
    lowest = known["plan"]["threshold"]
    assert sorted(known["pairs"]["similarity"], reverse=True) == sorted(
        (s for *_, s in triples if s >= lowest), reverse=True
    )
    assert f"{len(known['pairs']['left'])} most similar of 28" in known["omitted"]


def test_copies_are_counted_though_not_all_are_named():
    n = html.NAMED_COPIES + 300
    duplicate_of = [0] * n + [n]
    preference = [n - 1, *range(n - 1), n]
    known, _ = page_of(
        [f"{i}".encode() for i in range(n + 1)],
        [(0, n, 0.8)],
        duplicate_of=duplicate_of,
        preference=preference,
    )
    assert known["counts"] == [n, 1]
    assert len(known["kinds"][0]) == html.NAMED_COPIES
    assert known["documents"]["name"][known["kinds"][0][0]] == str(
        n - 1
    )  # the most preferred represents its kind
    assert "all are counted" in known["omitted"]


# --- in Chromium ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    driver = browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


def opened(chromium, tmp_path, page):
    (tmp_path / "report.html").write_bytes(page)
    chromium.get_log("browser")
    chromium.get((tmp_path / "report.html").as_uri())
    assert chromium.execute_script("return document.documentElement.dataset.ready") == "yes"
    return chromium


def texts(chromium, selector):
    return chromium.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)",
        selector,
    )


def click(chromium, selector, at=0):
    chromium.execute_script(
        "document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, at
    )


def set_threshold(chromium, value):
    chromium.execute_script("setThreshold(arguments[0])", value)


def test_hostile_names_and_texts_are_shown_and_do_nothing(chromium, tmp_path):
    passages = {
        0: [
            ("-", "<b>bold</b>\u202e" + "y" * 1_000_000),
            ("+", "</script><script>document.title='owned'</script>\x1b[0m"),
        ]
    }
    page = page_of(
        HOSTILE, [(0, 1, 0.9)] + [(i, i + 1, 0.6) for i in range(1, len(HOSTILE) - 1)], passages
    )[1]
    opened(chromium, tmp_path, page)
    click(chromium, "#pairs")
    for at in range(len(HOSTILE) - 1):
        click(chromium, "#list > li > button", at)
    assert "owned" not in chromium.title
    assert any("</script><script>" in text for text in texts(chromium, "#list .name"))
    assert texts(chromium, ".text ins")[1].startswith("</script><script>")
    assert not texts(chromium, ".text b, #list script, #list img")
    wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert chromium.execute_script(wide)  # no name and no line makes the page wider than the window
    assert chromium.get_log("browser") == []


def test_the_threshold_moves_counts_groups_and_list(chromium, tmp_path):
    names = [b"a", b"b", b"c", b"d", b"d.copy"]
    triples = [(0, 1, 0.9), (1, 2, 0.8), (0, 2, 0.6), (2, 3, 0.55)]
    opened(
        chromium,
        tmp_path,
        page_of(
            names,
            triples,
            {1: [("=", "same "), ("-", "old"), ("+", "new")]},
            duplicate_of=[0, 1, 2, 3, 3],
        )[1],
    )
    shown = lambda: [  # noqa: E731
        int(text) for text in texts(chromium, "#n-pairs, #n-groups, #n-members, #n-beside")
    ]
    assert shown() == [6, 2, 5, 3]  # d and its copy, and both beside c; a with b and c
    set_threshold(chromium, 0.7)
    assert shown() == [3, 2, 4, 2]
    set_threshold(chromium, 0.85)
    assert shown() == [2, 2, 4, 2]
    set_threshold(chromium, 0.95)
    assert shown() == [1, 1, 2, 1]
    set_threshold(chromium, 0.5)
    click(chromium, "#list > li > button", 0)
    assert texts(chromium, "#list > li:first-child .name") == ["a", "a", "b", "c"]
    click(chromium, "#pairs")
    set_threshold(chromium, 0.75)
    click(chromium, "#list > li > button", 2)
    assert texts(chromium, ".passages .text:last-child") == ["same oldnew"]
    chromium.execute_script(
        "const s = document.getElementById('search'); s.value = 'COPY'; "
        "s.dispatchEvent(new Event('input'))"
    )
    chromium.execute_async_script("setTimeout(arguments[0], 200)")
    assert texts(chromium, "#list .name") == ["d", "d.copy"]
    assert chromium.get_log("browser") == []


def test_numbers_look_as_elsewhere(chromium, tmp_path):
    """A similarity as in tables, a chance as on standard error."""
    opened(chromium, tmp_path, page_of([b"a", b"b"], [(0, 1, 0.9)])[1])
    for threshold in np.linspace(0.5, 1, 51).round(6).tolist():
        miss = (1 - threshold**5) ** 20
        said = chromium.execute_script("return promise(arguments[0])", threshold)
        assert f"similarity {threshold:.3f} was missed is {chance(miss)}" in said
    for similarity in (0.85779, 0.99999, 0.5, 2 / 3, 0.123456):
        assert chromium.execute_script("return shownScore(arguments[0])", similarity) == decimal(
            similarity
        )


def test_the_page_is_as_wide_as_a_phone(chromium, tmp_path):
    opened(
        chromium, tmp_path, page_of([b"folder/" + b"x" * 300, b"b" * 200], [(0, 1, 0.9)], most=1)[1]
    )
    try:
        phone = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        click(chromium, "#list > li > button")
        assert chromium.execute_script("return document.documentElement.scrollWidth") <= 360
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_keys(chromium, tmp_path):
    from selenium.webdriver import ActionChains, Keys

    opened(chromium, tmp_path, page_of([b"a", b"b", b"c", b"d"], [(0, 1, 0.9), (2, 3, 0.8)])[1])
    ActionChains(chromium).send_keys("p", "j", "j", Keys.ENTER).perform()
    assert (
        chromium.execute_script("return document.activeElement.getAttribute('aria-expanded')")
        == "true"
    )
    assert "c" in chromium.execute_script("return document.activeElement.textContent")
    ActionChains(chromium).send_keys("k", "]", "]").perform()
    assert texts(chromium, "#chosen") == ["0.510"]
    before = chromium.execute_script("return document.documentElement.dataset.theme")
    ActionChains(chromium).send_keys(
        "d", "/", "g"
    ).perform()  # the last one is searched for, not obeyed
    assert chromium.execute_script("return document.documentElement.dataset.theme") != before
    assert chromium.execute_script("return document.activeElement.id") == "search"
    assert texts(chromium, "[role=tab][aria-selected=true]") == ["Pairs"]


def test_ten_thousand_pairs_are_drawn_as_they_are_looked_at(chromium, tmp_path):
    n = 10_000
    names = [f"folder{i % 7}/document {i:05}.txt".encode() for i in range(2 * n)]
    triples = [(2 * i, 2 * i + 1, 0.5 + i / (2 * n + 1)) for i in range(n)]
    page = page_of(names, triples)[1]
    assert len(page) < 3_000_000
    opened(chromium, tmp_path, page)
    elements = lambda: chromium.execute_script("return document.getElementsByTagName('*').length")  # noqa: E731
    assert elements() < 3_000
    assert texts(chromium, "#n-groups") == ["10,000"]
    chromium.execute_script("window.scrollTo(0, document.body.scrollHeight)")
    chromium.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 300))")
    assert 60 < len(texts(chromium, "#list > li")) < 1_000
    chromium.execute_script("for (let t = 0.5; t <= 1; t += 0.005) setThreshold(t)")
    assert elements() < 3_000
    set_threshold(chromium, 1)
    assert texts(chromium, "#n-groups, #count") == ["0", "0 groups"]
    assert chromium.get_log("browser") == []


# --- the command ----------------------------------------------------------------------------------


def known_of(page):
    return json.loads(Outline(page).scripts[0])


def test_the_page_has_the_pairs_and_groups_of_the_other_commands(run, corpus, tmp_path):
    run("report", "sample_corpus", "-t", "0.5", "-o", "report.html", "--keep", "shortest")
    known = known_of((tmp_path / "report.html").read_bytes())
    assert (known["what"], re.fullmatch(r"\d+ \w+ \d{4}", known["newest"]) is not None) == (
        "sample_corpus",
        True,
    )
    names = known["documents"]["name"]
    pairs = zip(
        known["pairs"]["left"], known["pairs"]["right"], known["pairs"]["similarity"], strict=True
    )
    found = {
        (names[a], names[b], s)
        for left, right, s in pairs
        for a in known["kinds"][left]
        for b in known["kinds"][right]
    }
    found |= {
        (names[a], names[b], 1.0) for kind in known["kinds"] for a in kind for b in kind if a != b
    }
    expected = {(a, b, float(s)) for a, b, s in run("pairs", "-t", "0.5").rows}
    assert {(*sorted(pair[:2]), pair[2]) for pair in found} == expected
    representatives = {
        row[2]
        for row in run("clusters", "-t", "0.5", "--keep", "shortest").rows
        if row[1] == "keep"
    }
    best = {names[min(kind, key=known["documents"]["rank"].__getitem__)] for kind in known["kinds"]}
    assert representatives <= best
    differences = [sort for segments in known["passages"].values() for sort, _ in segments]
    assert {"=", "-", "+", "f"} <= set(differences)
    assert len(known["passages"]) == len(known["pairs"]["left"])


def test_the_page_groups_as_clusters_does(chromium, run, corpus, tmp_path):
    page = run("report", "sample_corpus", "-t", "0.5").out
    opened(chromium, tmp_path, page)
    for threshold in ("0.5", "0.6", "0.75", "0.9"):
        set_threshold(chromium, float(threshold))
        rows = run("clusters", "-t", threshold).rows
        shown = [int(text) for text in texts(chromium, "#n-pairs, #n-groups, #n-members")]
        assert shown == [
            len(run("pairs", "-t", threshold).rows),
            len({row[0] for row in rows}),
            len(rows),
        ]
        order = list(dict.fromkeys((row[0], row[2]) for row in rows if row[1] == "keep"))
        assert [name for _, name in order[:60]] == texts(chromium, "#list > li > .row .name")[:60]
    assert chromium.get_log("browser") == []
    chromium.save_screenshot(str(tmp_path / "report.png"))
    assert (tmp_path / "report.png").stat().st_size > 20_000


def test_passages_are_for_the_most_wanted_pairs_and_the_page_is_the_same_each_time(
    run, corpus, tmp_path
):
    first = run(
        "report", "sample_corpus", "-t", "0.6", "--passages", "5", "--most", "40", "--no-store"
    ).out
    assert (
        first
        == run(
            "report",
            "sample_corpus",
            "-t",
            "0.6",
            "--passages",
            "5",
            "--most",
            "40",
            "--jobs",
            "1",
            "--no-store",
        ).out
    )
    known = known_of(first)
    assert len(known["passages"]) == 5
    assert "most similar of" in known["omitted"]
    assert run("report", "sample_corpus", "--exact", "--no-store").out.count(b'"exact":true') == 1


def test_why_passages_are_not_in_the_page_is_said_and_what_takes_more(run, tmp_path):
    """Too many, too long, gone: each with its number, on standard error and in the page."""
    words = " ".join(f"word{i}" for i in range(200))
    texts = {
        "long1": f"{words} " * 800,
        "long2": f"{words} " * 800 + "another end",
        "a": words,
        "b": f"{words} more",
        "c": f"{words} or less",
    }
    (tmp_path / "d").mkdir()
    for name, text in texts.items():
        (tmp_path / "d" / name).write_text(text)
    run("index", "d", "-t", "0.8")
    pairs = len(run("pairs", "-t", "0.8").rows)
    assert pairs == 10
    done = run("report", "-t", "0.8")
    assert (
        "the passages of 3 of 10 pairs are in the page; 7 are without: a document has "
        "more than 1 MiB of text" in done.err
    )
    assert "passages of 3 of 10" in known_of(done.out)["omitted"]
    done = run("report", "-t", "0.8", "--passages", "0")
    assert (
        "the passages of 0 of 10 pairs are in the page; 10 are without: more than --passages 0"
        in done.err
    )
    assert "with the passages of all 10 pairs" not in done.err
    (tmp_path / "d/a").unlink()
    done = run("report", "-t", "0.8", "--most", "4")
    assert re.search(r"The \d most similar of 10 pairs .* --most 10 takes all", done.err)
    done = run("report", "-t", "0.8")
    assert (
        "the passages of 1 of 10 pairs are in the page; 4 are without: a document cannot "
        "be read any more; 5 are without: " in done.err
    )
    why = list(known_of(done.out)["without"].values())
    assert sum(each.startswith("a document cannot be read") for each in why) == 4


def test_ids_and_folders_of_nothing_make_a_page_too(run, tmp_path):
    (tmp_path / "ids").write_text("a 1 2 3 4 5 6\nb 1 2 3 4 5 7\n")
    known = known_of(run("report", "ids", "--tokens", "ids", "-t", "0.5", "--no-store").out)
    assert known["pairs"]["similarity"] == [5 / 7]
    assert known["passages"] == {}
    (tmp_path / "d").mkdir()
    known = known_of(run("report", "d", "--no-store").out)
    assert (known["documentCount"], known["leftOut"]) == (0, [])
    run("index", "ids", "--tokens", "ids")
    assert (
        known_of(run("report").out)["leftOut"] is None
    )  # what an earlier run left out is not known any more
