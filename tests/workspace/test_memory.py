"""A run with little memory gives the same bytes; one without room on the disk is refused."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import lshdup.store.store
import lshdup.workspace.workspace
from lshdup.base.params import PairParams
from lshdup.errors import ArtifactError
from lshdup.lsh.band_table import SignedBandTable
from lshdup.workspace.comparing import load_or_find_pairs
from tests.base.test_arrays import is_mapped
from tests.conftest import open_index, write_files

KINDS = ("signatures", "bands", "pairs")


def write_rows(path, n):
    """Write n rows of Zipf words; every tenth is nearly the one before it."""
    rng = np.random.default_rng(1)
    numbers = np.minimum(rng.zipf(1.15, (n, 40)), 50_000)
    numbers[9::10] = numbers[8::10]
    numbers[9::10, 20] = rng.integers(0, 50_000, n // 10)
    rows = (" ".join(f"w{number:x}" for number in row) for row in numbers.tolist())
    path.write_text("".join(f'{{"text": "{row}"}}\n' for row in rows))


def index(name, store, said=None, memory=0):
    """Index documents and verify their pairs, as `lshdup pairs` does; return what was saved."""
    say = said.append if said is not None else lambda _: None
    workspace, indexed, _ = open_index(store, [name], say, memory=memory)
    found = load_or_find_pairs(workspace, indexed, PairParams())
    saved = [Path(store, f"{kind}.npz").read_bytes() for kind in KINDS] if store else []
    return found.pairs.keys.tolist(), *saved


def test_little_memory_gives_the_same_bytes(here, monkeypatch):
    """All arrays of documents are in files, and sorted in many ranges."""
    write_rows(here / "rows.jsonl", 3000)
    natural = index(b"rows.jsonl", "much", memory=1 << 40)
    assert len(natural[0]) > 250
    monkeypatch.setattr("lshdup.base.memory.MOST_IN_MEMORY", 0)
    for name in ("MOST_SCRATCH", "LEAST_SCRATCH"):
        monkeypatch.setattr(f"lshdup.lsh.band_table.{name}", 10_000)
    for _ in range(2):  # from the documents, then from the store
        assert index(b"rows.jsonl", "little", memory=1 << 24) == natural


def test_the_keys_of_a_stored_table_are_in_a_file(here, monkeypatch):
    write_rows(here / "rows.jsonl", 300)
    index(b"rows.jsonl", "s")
    monkeypatch.setattr("lshdup.base.memory.MOST_IN_MEMORY", 0)
    table = open_index("s", (), save=False)[1].index.table
    assert type(table) is SignedBandTable
    assert is_mapped(table.keys)


def test_a_disk_without_room_is_refused_before_the_work(here, monkeypatch):
    write_files("d", dict.fromkeys("ab", "one two three four five"))
    monkeypatch.setattr(lshdup.workspace.workspace, "_MUCH", 1)
    usage = shutil.disk_usage(here)

    def set_free(size):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=size))

    set_free(100)
    with pytest.raises(ArtifactError, match="GB for 2 documents; ") as raised:
        index(b"d", "s")
    assert "--store DIR" in raised.value.hint
    assert not Path("s").exists()
    set_free(8 * 10**9)
    said = []
    first = index(b"d", "s", said)
    assert "s takes about 0.0 GB for 2 documents in this run, of 8 GB free" in said
    set_free(100)
    assert index(b"d", "s") == first  # nothing has changed, and nothing is written
    # What an interrupted run has left has its room already.
    monkeypatch.setattr(lshdup.store.store.Store, "size", lambda *_: 10**5)
    index(b"d", "t")
    index(b"d", None)
