"""DOCS in the header of an artifact: how they are said, and whether other DOCS cover them."""

import os

import pytest

from lshdup.sources.document_list import describe_docs, list_outside, summarize_docs

DOCS = [b"a/1", b"a/b/1", b"a-b", b"/r/x", b"../y"]


@pytest.mark.parametrize(
    ("arguments", "below"),
    [
        ([b"a", b"a-b", b"/r", b"../y"], True),
        ([b".", b"/", b".."], True),
        ([b"a", b"a/b", b"a/1", b"a-b", b"../y"], False),
        ([b".", b"/r"], False),
        ([b"a/b", b"/", b"..", b"a-b"], False),
    ],
)
def test_what_is_outside(arguments, below):
    more = [*arguments, *(b"none/%d" % n for n in range(200))]
    assert list(list_outside(DOCS, arguments)) == list(list_outside(DOCS, more))
    assert (not list(list_outside(DOCS, arguments))) == below
    assert not list(list_outside([], arguments))


def test_docs_are_said():
    assert describe_docs([]) == ""
    assert describe_docs([b"a", b"b/c"]) == " in a, b/c"
    assert describe_docs([b"%d" % n for n in range(9)]) == " in 0, 1, 2, …"


def test_many_docs_are_summarized():
    many = [b"d/%d/%d" % (n % 3, n) for n in range(1000)]
    assert summarize_docs([*many, b"/r/x", b"/r/y"]) == (b"/r/", b"d/")
    assert summarize_docs([*many, b"e"]) == (b"./",)
    assert summarize_docs([b"\xff", b"b", b"b"]) == (b"\xff", b"b")


def test_the_store_keeps_docs(run, tmp_path):
    """From another folder they are said as they would be typed there."""
    odd = os.fsdecode(b"d\xff")
    for name in ("docs", odd):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("some words that are the same")
    run("index docs", odd)
    assert "the last run: 2 documents in docs, d\\xff (--tokens word -k 3)\n" in run("pairs").err
    (tmp_path / "sub").mkdir()
    err = run("pairs --store ../.lshdup", cwd=tmp_path / "sub").err
    assert "in ../docs, ../d\\xff (" in err
