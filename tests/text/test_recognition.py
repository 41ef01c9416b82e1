"""What documents are read as, and that it is said: mail, HTML, and texts that only look like it."""

import json

import pytest

from lshdup.api import NearDuplicates
from lshdup.base.forms import Form, page_form
from tests.conftest import write_files

MEMO = "TO: {}\nFROM: {}\nDATE: {}\n\nthe same sentence stands in both of these memos"
MEMOS = [MEMO.format(*each) for each in (("All staff", "HR", 2019), ("Directors", "CEO", 2022))]
PAGES = [f"<html><script>{word}</script><p>the same body of a page" for word in ("one", "two")]


def test_the_same_texts_give_the_same_answer(run, here):
    """From files, rows and Python, where no rule of names or beginnings tells them apart."""
    texts = [*PAGES, *MEMOS, "<!-- x -->" + PAGES[0], "the same body of a page", "plain words here"]
    named = {f"d/{n}": text for n, text in enumerate(texts)}
    rows = (json.dumps({"id": name, "text": text}) for name, text in named.items())
    write_files(here, named | {"r.jsonl": "\n".join(rows)})
    keep, visible, mail = {"markup": "keep"}, {"markup": "visible"}, {"mail": True}
    for options in (keep, visible, visible | mail, keep | mail | {"tokens": "symbols"}):
        typed = ["-t", "0.1", "--id-field", "id", "--no-store", "--exact"]
        typed += (
            f"--{key}" if value is True else f"--{key}={value}" for key, value in options.items()
        )
        answers = (run("pairs", where, *typed).rows for where in ("d", "r.jsonl"))
        files, records = (sorted(row[:3] for row in rows) for rows in answers)
        found = NearDuplicates(named, threshold=0.1, **options).pairs()
        found = sorted([*sorted(names), repr(score)] for *names, score in found)
        assert files == records == found != []


HTML = b"<p>x"


@pytest.mark.parametrize(
    ("text", "name", "forms"),
    [
        (HTML, b"a.txt", "TTT"), (HTML, b"a.HTM", "NNM"), (HTML, b"a.xhtml", "NNM"),
        (b"<!DOCTYPE html>" + HTML, b"a", "PPM"),
        (b"\xef\xbb\xbf \r\n<!doctype\nHTML>" + HTML, b"a.txt", "PPM"),
        (b"\t<HTML>" + HTML, b"a", "PPM"), (b"<html lang=de>" + HTML, b"a", "PPM"),
        (b"<htmlx>" + HTML, b"a", "TTT"), (b"<!doctype xml>" + HTML, b"a", "TTT"),
        (b"<?xml version='1.0'?><html>" + HTML, b"a", "MPM"),
        (b"<!-- x --><html>" + HTML, b"a", "MPM"), (b"x <html>" + HTML, b"a", "TTT"),
        (b"<html>" + HTML, None, "MPM"), (HTML, None, "TTT"),
    ],
)  # fmt: skip
def test_pages(text, name, forms):
    letters = {"T": Form.TEXT, "N": Form.NAMED_PAGE, "P": Form.PAGE, "M": Form.MARKUP}
    found = [page_form(text, name, markup) for markup in ("auto", "visible", "keep")]
    assert found == [letters[each] for each in forms]
