"""Stages behind the reading, interrupted and resumed: the same bytes, and no work done twice."""

import os
import resource
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import lshdup.lsh.candidates
import lshdup.store.journal
from lshdup.base.run import Run
from lshdup.compare import leaders, verification
from lshdup.params import ClusterParams, DocumentParams, PairParams
from lshdup.store import npz
from lshdup.store.journal import StageJournal
from lshdup.store.store import Store
from lshdup.workspace.clustering import load_or_find_clusters
from lshdup.workspace.index import load_or_build_index, load_or_find_pairs
from lshdup.workspace.request import Request
from tests.conftest import open_workspace
from tests.store.disturbed import at_most

#: Documents of the folder: ten groups of ten, and ten alone.
N = 110


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of near-copies, and stages of very small steps."""
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    rng = np.random.default_rng(3)
    for number in range(N):
        words = np.random.default_rng(number // 10 if number < 100 else number).integers(0, 999, 80)
        words[rng.integers(0, 80)] = 1000 + number
        Path(f"d/{number:03}").write_text(" ".join(map(str, words.tolist())))
    monkeypatch.setattr(lshdup.store.journal, "PATIENCE", 0.0)
    monkeypatch.setattr(lshdup.lsh.candidates, "PIECE", 40)
    monkeypatch.setattr(verification, "BLOCK_BYTES", 20 * 8 * 80)
    monkeypatch.setattr(leaders, "BLOCK_BYTES", 20 * 8 * 80)


@pytest.fixture
def fetched(monkeypatch):
    """The documents whose sets are fetched, in the order in which they are."""
    numbers = []
    for name in ("clustering", "index"):
        module = __import__(f"lshdup.workspace.{name}", fromlist=["set_source"])
        made = module.set_source

        def watched(*args, _made=made, **options):
            source = _made(*args, **options)
            return lambda wanted: numbers.extend(wanted.tolist()) or source(wanted)

        monkeypatch.setattr(module, "set_source", watched)
    return numbers


def answer(command, threshold=0.8):
    """What `pairs` or `clusters` finds."""
    request = Request((b"d",), DocumentParams(), {"threshold": threshold})
    run = open_workspace(".lshdup")
    indexed = load_or_build_index(run, request)
    if command == "pairs":
        found = load_or_find_pairs(run, indexed, PairParams())
        return found.candidates, found.pairs.keys.tolist(), found.pairs.similarity.tolist()
    groups = load_or_find_clusters(run, indexed, ClusterParams(), request).clusters
    return groups.representative.tolist(), groups.similarity.tolist()


def interrupted(monkeypatch, parts, command):
    """Whether a command is interrupted when it has written so many parts."""
    add, left = StageJournal.add, [parts]

    def count(self, steps, arrays):
        add(self, steps, arrays)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StageJournal, "add", count)
        try:
            answer(command)
        except KeyboardInterrupt:
            return True
    return False


@pytest.mark.parametrize("command", ["pairs", "clusters"])
def test_a_stage_goes_on_where_it_was_interrupted(folder, monkeypatch, fetched, command):
    load_or_build_index(open_workspace(".lshdup"), Request((b"d",), DocumentParams(), {}))
    shutil.copytree(".lshdup", "indexed")
    expected = answer(command)
    artifact = Path(".lshdup", f"{command}.npz").read_bytes()
    assert sorted(fetched) == list(range(100))
    assert not list(Path(".lshdup").glob(".journal-*"))
    for parts in range(1, 20):
        shutil.rmtree(".lshdup")
        shutil.copytree("indexed", ".lshdup")
        if not interrupted(monkeypatch, parts, command):
            break
        assert Path(".lshdup", f".journal-{command}").is_dir()
        fetched.clear()
        assert answer(command) == expected
        assert Path(".lshdup", f"{command}.npz").read_bytes() == artifact
        assert len(fetched) <= 100 - 8 * (parts - 1)
        assert not Path(".lshdup", f".journal-{command}").exists()
    assert parts > 3


def forge(path, command):
    """Let a part be of documents that are none."""
    part = npz.load(path, "journal", "")
    arrays = {key: np.array(array) for key, array in part.arrays.items()}
    arrays["leader" if command == "clusters" else "left"][:] = N + 7
    added = ("kind", "format", "lshdup")
    header = {key: value for key, value in part.header.items() if key not in added}
    path.unlink()  # It is mapped.
    with path.open("wb") as file:
        npz.write(file, "journal", header, arrays)


@pytest.mark.parametrize("command", ["pairs", "clusters"])
def test_parts_that_do_not_fit_are_not_used(folder, monkeypatch, command):
    expected = answer(command)
    other = answer(command, 0.7)
    for damage in ("torn", "other documents", "other command", "gap"):
        shutil.rmtree(".lshdup")
        assert interrupted(monkeypatch, 3, command)
        first = min(Path(".lshdup", f".journal-{command}").iterdir())
        if damage == "torn":
            first.write_bytes(first.read_bytes()[:-100])
        elif damage == "gap":
            first.unlink()
        elif damage == "other command":
            assert answer(command, 0.7) == other
        else:
            forge(first, command)
        assert answer(command) == expected, damage


def test_what_is_lost_is_not_kept(folder):
    """A pair that is missing because a document cannot be read is found when it can."""
    load_or_build_index(open_workspace(".lshdup"), Request((b"d",), DocumentParams(), {}))
    expected = answer("pairs")
    Path(".lshdup/pairs.npz").unlink()
    text, status = Path("d/000").read_bytes(), Path("d/000").stat()
    for content in (b"\0" * len(text), text):
        Path("d/000").write_bytes(content)
        os.utime("d/000", ns=(status.st_atime_ns, status.st_mtime_ns))
        assert (answer("pairs") == expected) == (content == text)
        assert not list(Path(".lshdup").glob(".journal-*"))


def test_more_parts_than_open_files_are_used(tmp_path, monkeypatch):
    """Each part is mapped, and a mapped file takes a descriptor."""
    monkeypatch.setattr(lshdup.store.journal, "_MAPPED_PARTS", 8)
    store = Store(tmp_path / "s")
    with store.writing():
        pass
    written = StageJournal(Run.quiet(), store, "pairs", {})
    with suppress(KeyboardInterrupt), written:
        for part in range(100):
            left = np.full(3, part, np.uint32)
            written.add(3 * part + 3, {"left": left, "similarity": np.ones(3)})
        raise KeyboardInterrupt
    with Path(os.devnull).open() as lowest:
        most = lowest.fileno() + 40
    columns = {"left": np.uint32, "similarity": np.float64}
    with at_most(most, resource.RLIMIT_NOFILE):
        steps, parts = StageJournal(Run.quiet(), store, "pairs", {}).load_finished(columns, 100)
    assert steps == 300
    assert (np.concatenate([each["left"] for each in parts]) == np.arange(300) // 3).all()
