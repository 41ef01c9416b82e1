"""DOCS in the header of an artifact: how they are said."""

import os

from lshdup.sources.document_list import describe_docs, summarize_docs


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
