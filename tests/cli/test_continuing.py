"""From which folders above the current one a command takes a store."""

import os
from pathlib import Path

import pytest

from lshdup.store.store import nearest_store


@pytest.fixture
def docs(run, here, monkeypatch):
    """The current folder, with a store in the one above."""
    (here / "docs").mkdir()
    (here / "docs/a").write_text("some words of one text")
    run("pairs docs -q")
    monkeypatch.chdir("docs")
    assert nearest_store() == Path("../.lshdup")
    return here / "docs"


def test_a_store_on_another_file_system_is_not_taken_from_above(docs, monkeypatch):
    monkeypatch.setattr(Path, "is_mount", lambda folder: folder == docs)
    assert nearest_store() == Path(".lshdup")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_store_of_another_user_is_not_taken_from_above(docs, monkeypatch):
    monkeypatch.setattr("os.getuid", lambda: 12345)
    assert nearest_store() == Path(".lshdup")
    monkeypatch.chdir("..")
    assert nearest_store() == Path(".lshdup")
