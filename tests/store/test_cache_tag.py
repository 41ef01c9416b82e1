"""A store is marked as a cache where lshdup made its folder, and says when it is large."""

import os
from pathlib import Path

import pytest

SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path("d").mkdir(exist_ok=True)
        Path("d", name).write_text("some words that are the same")
    return tmp_path


def test_a_store_is_marked_as_a_cache(run, here):
    run("pairs d")
    run("pairs d --store deep/er")
    for store in (".lshdup", "deep/er"):
        assert Path(store, "CACHEDIR.TAG").read_bytes().startswith(SIGNATURE + b"\n")
    assert not Path("deep/CACHEDIR.TAG").exists()
    Path(".lshdup/CACHEDIR.TAG").unlink()
    run("pairs d")
    assert not Path(".lshdup/CACHEDIR.TAG").exists()


def test_no_other_folder_is_marked(run, here):
    Path("mine").mkdir()
    Path("full").mkdir()
    Path("full/x").write_text("mine")
    run("pairs d --store mine")
    run("pairs d --store full", code=2)
    run("pairs d --no-store")
    assert Path("mine/signatures.npz").exists()
    assert not list(here.rglob("CACHEDIR.TAG"))


def test_the_size_of_a_large_store_is_said(run, here):
    assert " MB" not in run("pairs d").err
    with Path(".lshdup/large").open("wb") as file:
        os.truncate(file.fileno(), 345 << 20)
    said = run("pairs d").err
    assert "the store .lshdup has 345 MB; deleted, it is made again by the next run" in said
    assert "345 MB" not in run("pairs").err
    assert "345 MB" not in run("pairs d --no-store").err
