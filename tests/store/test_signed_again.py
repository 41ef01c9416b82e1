"""`signatures` without DOCS reads the documents of the last run again, all of them or none."""

import pytest

from tests.store.disturbed import artifacts

TEXT = "one of several texts that are nearly the same but for a number at the end"


@pytest.fixture
def docs(tmp_path):
    """Eighty near-duplicates below docs."""
    (tmp_path / "docs").mkdir()
    for i in range(80):
        (tmp_path / f"docs/{i}").write_text(f"{TEXT} {i}")
    return tmp_path / "docs"


@pytest.mark.parametrize("options", [(), ("--template", "form"), ("--ignore-common", "0.5")])
def test_a_disk_that_is_not_there_empties_no_store(run, docs, tmp_path, options):
    (tmp_path / "form").write_text(TEXT)
    first = run("pairs docs").rows
    before = artifacts(tmp_path / ".lshdup")
    docs.rename(tmp_path / "gone")
    docs.mkdir()
    failed = run("signatures --perms 256", *options, code=2)
    assert "docs/0: vanished" in failed.err
    assert "80 documents of the last run cannot be read as before" in failed.err
    assert "`lshdup signatures DOCS`" in failed.err
    assert artifacts(tmp_path / ".lshdup") == before
    assert "skipped: 80 vanished" in run("pairs --exact", code=2).err
    assert artifacts(tmp_path / ".lshdup") == before
    docs.rmdir()
    (tmp_path / "gone").rename(docs)
    assert run("pairs").rows == first


def test_one_changed_document_leaves_the_signatures_as_they_are(run, docs, tmp_path):
    run("pairs docs")
    before = artifacts(tmp_path / ".lshdup")
    (docs / "7").write_text(f"{TEXT} 8")
    (docs / "9").touch()
    failed = run("signatures --seed 2", code=2)
    assert "docs/7: changed while in use" in failed.err
    assert "1 document of the last run cannot be read as before" in failed.err
    assert artifacts(tmp_path / ".lshdup") == before
    (docs / "7").write_text(f"{TEXT} 7")
    run("signatures --seed 2")
    assert artifacts(tmp_path / ".lshdup") != before


@pytest.mark.parametrize(
    "options",
    [("--seed", "2"), ("--scheme", "classic"), ("--template", "form"), ("--ignore-common", "0.5")],
)
def test_signatures_of_documents_read_again_are_those_of_a_run_with_docs(
    run, docs, tmp_path, options
):
    (tmp_path / "form").write_text(TEXT)
    (docs / "binary").write_bytes(b"\0\1\2")
    run("index docs", *options, "--store", "new")
    run("pairs docs -q")
    again = run("signatures", *options)
    assert "the 80 documents of the last run are read again\n" in again.err
    name = "signatures.npz"
    assert artifacts(tmp_path / ".lshdup")[name] == artifacts(tmp_path / "new")[name]
    assert sorted(path.name for path in (tmp_path / ".lshdup").iterdir()) == [
        *(".gitignore", ".lock", "CACHEDIR.TAG", "bands.npz", "manifest.json", "pairs.npz"),
        name,
    ]
    run("shingle docs")
    assert "read again" not in run("signatures", *options).err  # from shingles.npz
    assert artifacts(tmp_path / ".lshdup")[name] == artifacts(tmp_path / "new")[name]


def test_signatures_are_those_that_are_asked_for(run, docs):
    """Those that are stored are of the same sets."""
    run("index docs")
    run("shingle docs")
    assert "--perms 32)" in run("pairs --perms 32").err
