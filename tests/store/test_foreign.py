"""A store that came with a cloned or a shared folder: nothing in it leads to a file outside."""

import contextlib
import os
import shutil
from pathlib import Path

import pytest

import lshdup.sources.text_batches
import lshdup.store.memo
from lshdup.base.params import DocumentParams, PairParams
from lshdup.errors import ArtifactError
from lshdup.store.store import Store
from lshdup.workspace.comparing import load_or_find_pairs
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.loading import make_shingles
from lshdup.workspace.request import Request
from tests.conftest import open_workspace, part, write_files

#: Every file and every folder that a store can hold.
FILES = (
    *(".lock", ".gitignore", "CACHEDIR.TAG", "shingles.npz", "signatures.npz", "bands.npz"),
    *("pairs.npz", "clusters.npz", "samples.npz", "passages.npz", "memo/00000001.npz"),
)
FOLDERS = ("memo",)

COMMANDS = (
    *("pairs d", "clusters d", "passages d", "index d", "query d/0.txt", "report d", "folders d"),
    *("shingle d", "signatures d", "pairs", "show d/0.txt d/1.txt"),
)


@pytest.fixture(autouse=True)
def here(here):
    for folder in ("d", "dir"):
        Path(folder).mkdir()
        for i in range(4):
            Path(folder, f"{i}.txt").write_text(f"one two three four five six seven {i // 2}")
    write_files(".", {"dir/00000001.npz": b"mine", "thesis.txt": "a thesis"})
    Path("empty").touch()
    return here


def make_link(path, to):
    path.symlink_to(os.path.relpath(to, path.parent))


HARD = "a hard link of another file"

#: What may stand in place of a file, and what the refusal calls it.
OBSTACLES = {
    "a link": lambda path: make_link(path, "thesis.txt"),
    "a link ": lambda path: make_link(path, "none"),
    "a link  ": lambda path: make_link(path, "dir"),
    "a link   ": lambda path: make_link(path, "empty"),
    HARD: lambda path: os.link("thesis.txt", path),
    "a device, a pipe, or a socket": lambda path: os.mkfifo(path),
    "a folder": lambda path: path.mkdir(),
    "a file": lambda path: path.write_bytes(b"mine"),
}

CASES = [(name, kind) for name in FILES for kind in OBSTACLES if kind != "a file"]
CASES += [(name, kind) for name in FOLDERS for kind in OBSTACLES if kind not in ("a folder", HARD)]


def place(name, kind):
    """Put an obstacle into a store, between files of others."""
    path = Path(".lshdup", name)
    path.parent.mkdir(exist_ok=True, parents=True)
    for number in range(9):
        Path(f".lshdup/notes {number}").touch()
    if not Path(".lshdup/.gitignore").exists():
        Path(".lshdup/.gitignore").write_text("# Made by lshdup.\n*\n")
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    OBSTACLES[kind](path)


def outside():
    """Bytes, number and time of everything outside the store."""
    found = {}
    for path in sorted(Path().rglob("*")):
        if ".lshdup" not in path.parts:
            status = path.lstat()
            what = path.read_bytes() if path.is_file() else sorted(os.listdir(path))
            found[path] = what, status.st_ino, status.st_mtime_ns, status.st_nlink
    return found


def test_what_is_no_file_of_ours_is_refused_by_name_before_the_work(refused):
    """`.lock -> ../docs/b.txt` overwrote a document with the number of a process, `bands.npz`
    a thesis with an artifact, and a dangling `signatures.npz` made its target.
    """
    for number, (name, kind) in enumerate(part(CASES, 2)):
        place(name, kind)
        before = outside()
        said = refused(COMMANDS[number % len(COMMANDS)])
        assert f".lshdup/{name} is {kind.strip()}, where a" in said, (name, kind, said)
        assert "remove it, or name another store with --store DIR" in said
        assert outside() == before, (name, kind)
        shutil.rmtree(".lshdup")


@pytest.mark.parametrize(("name", "kind"), part(CASES, 8))
def test_nothing_is_followed_although_nothing_is_refused(name, kind, monkeypatch):
    """The refusal names what is there; each file is opened safely without it, too."""
    monkeypatch.setattr(Store, "refuse_obstacles", lambda _: None)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power cut will meet these artifacts
    monkeypatch.setattr(lshdup.store.memo, "PATIENCE", 0.0)
    monkeypatch.setattr(lshdup.sources.text_batches, "BATCH_DOCUMENTS", 2)
    for documents in ((b"d",), (b"d", b"dir")):
        place(name, kind)
        before = outside()
        workspace = open_workspace(".lshdup")
        request = Request(documents, DocumentParams(), {})
        with contextlib.suppress(ArtifactError, OSError):
            load_or_find_pairs(workspace, load_or_build_index(workspace, request), PairParams())
        with contextlib.suppress(ArtifactError, OSError):
            make_shingles(workspace, request)
        assert outside().keys() == before.keys()
        if kind != HARD:  # whose number of names falls when the one in the store is replaced
            assert outside() == before
        assert Path("thesis.txt").read_text() == "a thesis"
