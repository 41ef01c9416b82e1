"""Documents that are sections of files: headings, pages, paragraphs."""

import codecs
import gzip
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lshdup.collection.collection
from lshdup.base.forms import Form
from lshdup.base.params import DocumentParams
from lshdup.text.html import visible_text
from lshdup.text.sections import find_sections
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.request import Request
from tests import office
from tests.conftest import many, open_workspace, write_files
from tests.documents import listed

# --- Markdown by its lines ------------------------------------------------------------------------

LINES = [
    "", " ", "words", "more words  ", "# One", "## One ##", "###", "#no", "   # Three",
    "    # four", "# x#", "# y # #", "===", "---", "--- ", "  =", "----", "***", "- item",
    "1. item", "> quote", "| cell", "```", "````", "``` python", "```a`b", "~~~", "~~~ x", "  ~~~~",
    "<!-- # a", "-->",
    "<!-- b -->", "<pre>", "</pre>", "<PRE x>", "<prex", "<script>", "</script> # x", "+++", "...",
    "**bold**", "_", "* * *", "=x", "\ttab", "#\ttab", "\f", "Ünï", "a\fb", "-x", "a  b",
]  # fmt: skip
UNDERLINE, FENCE = re.compile(r" {0,3}(=+|-+)[ \t]*"), re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
NO_TITLE = re.compile(r"[-*+][ \t].*|\d+[.)][ \t].*|[-_*= \t]+|[>|#].*")
COMMENT, PREFORMATTED = re.compile(" {0,3}<!--(.*)"), re.compile(r" {0,3}<(pre|script)\b(.*)")
ENDS = re.compile("</(pre|script|style|textarea)>")


def lines_of(text):
    """Where lines begin, and what they are without their ends."""
    at = 0
    for line in text.split("\n"):
        yield at, line.removesuffix("\r")
        at += len(line.encode()) + 1


def markdown_titles(text):
    """Where headings begin, and their words, found line by line."""
    lines, row = list(lines_of(text)), 0
    first = lines[0][1].rstrip(" \t")
    if first in ("---", "+++"):
        ends = (
            at for at, (_, line) in enumerate(lines) if at and line.rstrip(" \t") in (first, "...")
        )
        row = next(ends, -1) + 1
    while row < len(lines):
        at, line = lines[row]
        following = lines[row + 1][1] if row + 1 < len(lines) else ""
        fence, low = FENCE.fullmatch(line), line.lower()
        block = COMMENT.fullmatch(low) or PREFORMATTED.fullmatch(low)
        row += 1
        if fence and not (fence[1][0] == "`" and "`" in fence[2]):
            closes = re.compile(rf" {{0,3}}{fence[1]}{fence[1][0]}*[ \t]*")
            while row < len(lines) and not closes.fullmatch(lines[row][1]):
                row += 1
            row += 1
        elif block:
            ends = re.compile("-->" if block.re is COMMENT else ENDS)
            here = block[block.lastindex]
            while not ends.search(here) and row < len(lines):
                here, row = lines[row][1].lower(), row + 1
        elif marked := re.fullmatch(r" {0,3}#{1,6}(?:[ \t](.*))?", line):
            yield at, re.sub(r"(^|[ \t])#+$", "", (marked[1] or "").strip(" \t\f"))
        elif re.match(r" {0,3}\S", line) and not NO_TITLE.fullmatch(line.lstrip(" ")):
            is_underlined = UNDERLINE.fullmatch(following) is not None
            yield from [(at, line)] * is_underlined
            row += is_underlined


def sections(text):
    """The starts and names of sections of a text in Markdown."""
    titles = (
        (at, "#" + " ".join(words.split()).replace("/", "_")) for at, words in markdown_titles(text)
    )
    found = [each for each in titles if each[1] != "#"]
    before = text.encode()[: found[0][0]] if found else b""
    return [(0, "#")] * bool(before.strip()) + found


@settings(max_examples=many(1500), deadline=None)
@given(
    st.lists(st.sampled_from(LINES), max_size=14), st.sampled_from(["\n", "\r\n"]), st.booleans()
)
def test_headings_of_markdown_are_those_found_line_by_line(lines, end, is_ended):
    text = end.join(lines) + end * is_ended
    data = text.encode()
    found = find_sections(data, b"x.md", "heading")
    assert [(start, name.decode()) for start, _, name in found] == sections(text)
    assert [stop for _, stop, _ in found[:-1]] == [start for start, _, _ in found[1:]]
    assert not found or found[-1][1] == len(data)
    marked = find_sections(codecs.BOM_UTF8 + data, b"x.md", "heading")
    assert [name for *_, name in marked] == [name for *_, name in found]


@given(st.text(st.sampled_from("ab \t\n\r\f")))
def test_paragraphs_and_pages_are_what_stands_between(text):
    data = text.encode()
    found = [data[slice(*span)] for *span, _ in find_sections(data, b"x", "paragraph")]
    runs = re.split(r"(?:^|\n)(?:[ \t\r\f]*(?:\n|$))+", text)
    assert [each.decode().strip("\n") for each in found] == [run for run in runs if run.strip()]
    found = [data[slice(*span)].decode() for *span, _ in find_sections(data, b"x", "page")]
    pages = text.split("\f")
    while pages and not pages[-1].strip():
        del pages[-1]
    assert found == (pages if "\f" in text else [])


REST = [
    ("A\n=\n", ["A"]),
    ("Long title\n====\n", ["Long title"]),  # docutils warns that the line is short
    ("Long title\n===\n", []),
    ("==\nAb\n==\nx\n\nC d\n---\n", ["Ab", "C d"]),
    ("x\nB\n===\n", []),  # no title but the first line of its paragraph
    ("====\n  Over\n====\n", ["Over"]),
    ("====\nA\n----\n", []),
    (".. note\n=======\n", []),
    ("=== ===\na   b\n=== ===\n", []),
    ("x\n\n----\n\ny\n", []),
    ("x::\n\n  A\n  =\n", []),
    ("x\r\n\r\nA b\r\n~~~\r\n", ["A b"]),
    ("x\n \nA b\n^^^^\n", ["A b"]),
]


@pytest.mark.parametrize(("text", "names"), REST)
def test_titles_of_restructured_text(text, names):
    found = find_sections(text.encode(), b"x.rst", "heading")
    assert [name.decode() for *_, name in found if name != b"#"] == [f"#{name}" for name in names]


def test_names_are_one_line_each_once(tmp_path):
    long = "word " * 50
    text = f"# a/b\n# A\x01\tb\u2028\x85c\n# A\n# A\n#  {long}\n# A:2\n## \u00a0\n# \udcff\n"
    (tmp_path / "x.md").write_bytes(text.encode("utf-8", "surrogateescape"))
    (tmp_path / "x.md#A").write_text("a file of that name comes first")
    found, skipped = listed(tmp_path, split="heading")
    prefix = os.fsencode(tmp_path) + b"/x.md#"
    names = [name.removeprefix(prefix) for name in found]
    last = long[:100].strip().encode()
    assert names == [b"A", b"a_b", b"A b c", b"A:3", last, b"A:2", b"\xff"]
    assert found[prefix + b"A"] == b"a file of that name comes first"
    assert [each.reason for each in skipped] == ["repeated name"]


TAGS = "<h1> </h1> <h2> </h2> <p> <div> </div> <br> <i> </i> a b \f &#12; <div\thidden> <li>".split(
    " "
)


@given(st.lists(st.sampled_from([*TAGS, " ", "\n"])).map("".join))
def test_sections_of_a_page_have_all_its_words(page):
    text = visible_text(page.encode(), quotes=True, marks=True)
    assert text.split() == visible_text(page.encode(), quotes=True).split()
    parts = [
        text[slice(*span)] for *span, _ in find_sections(text, b"", "heading", is_extracted=True)
    ]
    assert b" ".join(parts).split() == (text.split() if b"\f" in text else [])
    assert not any(b"\f" in part for part in parts)


PAGE = """<html><head><meta charset=latin-1><title>no</title></head><body>before
<script><h1>no</h1></script>
<h1 class="a">
 The &amp; <i>fi</i>rst</h1>\f<div><p>some words &eacute; <!-- <h2>no</h2> --> é
<h2>Two<br>lines</h2>more words <h3></h3> of it <div hidden><h3>no</h3></div><H6>Last"""


def test_what_has_sections_and_what_has_none(tmp_path, kreuzberg):
    """What has none is compared as without the option."""
    text = "\n".join(f"{chr(97 + n % 26)}{chr(97 + n // 26)} of the text" for n in range(70))
    files = {
        "a.md": b"no heading", "b.txt": b"# x\n\fy\n\nz\f", "c.html": PAGE.encode("latin-1"),
        "d.PDF": office.pdf(text, lines_a_page=30), "e.docx": office.docx("# x\n\ny"),
        "f.csv": b"text\n# x\n\n# y\n", "g.eml": office.eml("# x\n\ny"), "h.md": b"# x\n\0",
        "i.md.gz": gzip.compress(b"# x\ny\n\n# z"), "j": PAGE.encode("latin-1"), "l.pdf": b"%PDF-",
        "k.md": "\ufeff# \u00e9\n\u00e9\n".encode("utf-16-le"), "m.html": b"<p>one\n\ntwo<p>three",
        "n.md": b"<!DOCTYPE html><h1>x</h1>", "o.txt": b"<!-- # --> <html># x\n\ny\n\f",
        "q.gz": gzip.compress(office.docx("# x\n\ny")), "r.html": b"<h1>x</h1>" + b"<i>" * 30_000,
    }  # fmt: skip
    write_files(tmp_path, files)
    whole = listed(tmp_path)[0]
    first = ["#", "#The & first", "#Two lines", "#Last"]
    named = {"c.html": first, "i.md.gz": ["#x", "#z"], "j": first, "k.md": ["#\u00e9"]}
    numbered = {
        "a.md": 1, "b.txt": 2, "c.html": 5, "i.md.gz": 2, "j": 5, "k.md": 1, "f.csv": 2,
        "m.html": 3,
    }  # fmt: skip
    expected = {
        "heading": named,
        "page": {"b.txt": [":p1", ":p2"], "d.PDF": [":p1", ":p2", ":p3"]},
        "paragraph": {name: [f":{n + 1}" for n in range(size)] for name, size in numbered.items()},
    }
    for by, parts in expected.items():
        found, _ = listed(tmp_path, split=by)
        names = [each + part for each in files for part in parts.get(each, [""])]
        assert {*found} == {os.fsencode(tmp_path / name) for name in names}, by
        for name in files.keys() - parts.keys():
            path = os.fsencode(tmp_path / name)
            assert found[path] == whole[path]
    found = {
        os.path.basename(name): each for name, each in listed(tmp_path, split="heading")[0].items()
    }
    assert found[b"c.html#Two lines"].split() == b"Two lines more words of it".split()
    assert (
        found[b"j#The & first"].split() == "The & first some words \u00e9 \u00e9".encode().split()
    )
    assert found["k.md#\u00e9".encode()] == "# \u00e9\n\u00e9\n".encode()
    pages = listed(tmp_path / "d.PDF", split="page")[0].values()
    assert [page.split() for page in pages] == [
        " ".join(text.splitlines()[at : at + 30]).encode().split() for at in (0, 30, 60)
    ]


@pytest.mark.parametrize("path", [b"x.md", b"x.rst"])
@pytest.mark.parametrize(
    "text", [b"~", b"`", b"-\n", b"# ", b"\n ", b"=\n\n", b"~~~x~\n", b"<!--\n"]
)
def test_no_text_takes_time_that_grows_with_its_square(path, text):
    """A step for each pair of a million bytes would outlast the limit of a test."""
    assert len(find_sections(text * 2**20, path, "heading")) <= 1


def test_pages_are_of_their_reader(here, kreuzberg, monkeypatch):
    """Where they are in the text that another one extracts is not known."""
    (here / "a.pdf").write_bytes(office.pdf("some words\n" * 9, lines_a_page=5))
    (here / "b.html").write_text("<h1>A</h1>some words<h2>B</h2>more words")
    read = []
    for by in ("page", "page", "page", "heading"):
        request = Request((b"a.pdf", b"b.html"), DocumentParams(split=by), {})
        found = load_or_build_index(open_workspace("store"), request).collection
        read.append((found.read, {form: n for form, n in found.count_forms().items() if n}))
        if len(read) == 2:
            monkeypatch.setattr(lshdup.collection.collection, "current_reader", lambda: "other")
    pages, sections = {Form.OFFICE: 2, Form.NAMED_PAGE: 1}, {Form.OFFICE: 1, Form.PAGE: 2}
    assert read == [(3, pages), (0, pages), (2, pages), (3, sections)]
