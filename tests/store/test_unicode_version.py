"""Sets depend on Python's Unicode tables: a store made with another version is not continued."""

import unicodedata

import pytest

from lshdup.errors import ArtifactError
from lshdup.params import DocumentParams
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.request import Request
from tests.conftest import open_workspace

DOCS = Request((b"d",), DocumentParams(), {})


@pytest.fixture
def made(tmp_path, monkeypatch):
    """An index made with an older Python, and what it knows of its collection."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    for name in "ab":
        (tmp_path / "d" / name).write_text(f"some words of text {name}")
    with monkeypatch.context() as older:
        older.setattr(unicodedata, "unidata_version", "3.2.0")
        return load_or_build_index(workspace(), DOCS, save=True).collection


def workspace():
    return open_workspace("s", skipped=lambda _: None)


@pytest.mark.usefixtures("made")
def test_commands_without_documents_refuse_it():
    present = unicodedata.unidata_version
    with pytest.raises(ArtifactError, match=rf"with Unicode 3\.2\.0; this Python has {present}"):
        load_or_build_index(workspace(), Request((), DocumentParams(), {}), save=False)


def test_commands_with_documents_read_them_all_again(made):
    again = load_or_build_index(workspace(), DOCS, save=True).collection
    assert again.read == 2
    assert again.identity != made.identity
    assert load_or_build_index(workspace(), DOCS, save=True).collection.read == 0
