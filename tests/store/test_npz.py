"""Artifacts: whole or not there, checked, mapped, opened by plain NumPy."""

import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from lshdup.base import scratch
from lshdup.base.memory import Arrays
from lshdup.base.ragged import RaggedSets
from lshdup.errors import ArtifactError
from lshdup.params import DocumentParams
from lshdup.store import npz
from lshdup.store.checksums import is_lazy
from lshdup.store.npz import Member, check_arrays, declare_sets
from lshdup.store.store import Store
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.loading import load_signatures
from lshdup.workspace.request import Request
from tests.conftest import ROOT, open_workspace

ARRAYS = {
    "a": np.arange(5, dtype=np.uint64),
    "empty": np.zeros((0, 3), np.uint32),
    "wide": np.arange(6, dtype=np.int64).reshape(2, 3),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.npz"
    npz.save(path, "things", {"seed": 1}, ARRAYS)
    return path


def test_round_trip_and_plain_numpy(path):
    loaded = npz.load(path, "things", "mend")
    assert loaded.header["kind"] == "things"
    assert loaded.header["seed"] == 1
    for name, array in ARRAYS.items():
        assert loaded.arrays[name].dtype == array.dtype
        assert (loaded.arrays[name] == array).all()
        assert loaded.arrays[name].shape == array.shape
    with np.load(path, allow_pickle=False) as plain:
        assert json.loads(plain["header"].tobytes())["kind"] == "things"
        assert (plain["wide"] == ARRAYS["wide"]).all()


KEYS = [
    1, -1, slice(1, 3), slice(None), slice(3, 0, -1), [0, 2], [], np.array([3, 1]),
    np.zeros(0, int), np.array([True, False, True, False]), (1, 2), (slice(None), 1),
    (slice(1, 3), 1), ([1, 3], 1), (2,),
    (2, slice(0, 2)), (), None, ..., (None, 1),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_an_array_that_is_checked_as_it_is_read_has_the_same_items(path, monkeypatch, key):
    monkeypatch.setattr(npz, "_ALWAYS_VERIFIED", 0)
    table = np.arange(12, dtype=np.int64).reshape(4, 3)
    npz.save(path, "things", {}, {"table": table})
    lazy = npz.load(path, "things", "mend", verify=False).arrays["table"]
    assert is_lazy(lazy)
    assert np.array_equal(np.asarray(lazy[key]), table[key])
    assert np.array_equal(np.asarray(lazy) + lazy[0], table + table[0])
    with pytest.raises(TypeError, match="cannot be written"):
        np.add(lazy, 1, out=lazy)


OF_ROWS = {
    "a row": lambda array, row: array[row],
    "a row from the end": lambda array, row: array[row - len(array)],
    "a slice": lambda array, row: array[row - 1 : row + 1],
    "some rows": lambda array, row: array[[0, row]],
    "rows by mask": lambda array, row: array[np.arange(len(array)) == row],
    "runs": lambda array, row: array.verified_runs(np.array([1, row]), np.array([0, 1])),
}
OF_ALL = {
    "a slice over two blocks": lambda array, row: array[row // 2 : row + 1],
    "a column": lambda array, row: array[row : row + 1, 0],
    "every second row": lambda array, row: array[row % 2 :: 2],
    "all": lambda array, _: np.asarray(array),
    "a sum": lambda array, row: array + 1,
    "a method": lambda array, row: array.max(),
}


@pytest.mark.parametrize(
    ("way", "n"),
    [(way, n) for way in OF_ROWS | OF_ALL for n in (1, 2) if (way, n) != ("a column", 1)],
)
def test_a_damaged_row_is_refused_whichever_way_it_is_read(path, monkeypatch, way, n):
    """And rows of other blocks are read: four blocks of 2,048 words."""
    monkeypatch.setattr(npz, "_ALWAYS_VERIFIED", 0)
    words = np.arange(8192, dtype=np.uint64)
    words = words.reshape(-1, n) if n > 1 else words
    npz.save(path, "things", {}, {"words": words})
    whole = path.read_bytes()
    row = 5000 // n
    at = whole.index(words[row].tobytes())
    path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])

    def lazy():
        return npz.load(path, "things", "mend", verify=False).arrays["words"]

    with pytest.raises(ArtifactError, match="damaged"):
        np.asarray((OF_ROWS | OF_ALL)[way](lazy(), row))
    if way in OF_ROWS:
        for other in (10 // n, 3000 // n, 8191 // n):
            OF_ROWS[way](lazy(), other)


VALUES = np.arange(7, dtype=np.uint64)


@pytest.mark.parametrize(
    ("member", "good", "wrong"),
    [
        (Member(np.int64, ("n",)), [[5, 5, 9]], [[1, 2], [[1, 2, 3]], [1.0, 2.0, 3.0], []]),
        (Member(np.int64, ("n", 2)), [[[1, 2]] * 3], [[[1, 2, 3]] * 3, [[1, 2]] * 2, [1, 2, 3]]),
        (Member(np.int64, ("n",), below="n"), [[2, 0, 0]], [[0, 0, 3], [0, -1, 0]]),
        (Member(np.int64, ("new",), below=9), [[8], [], [0] * 99], [[9], [-1]]),
        (Member(np.int64, ("new",), is_ascending=True), [[], [3, 5]], [[5, 3], [3, 3]]),
        (
            Member(np.int64, ("n",), offsets_of="values"),
            [[0, 2, 2, 7], [0, 0, 0, 7]],
            [[1, 2, 2, 7], [0, 5, 3, 7], [0, 2, 2, 2], [0, 7], [], [[0, 2, 2, 7]]],
        ),
        (Member(np.int64, ("m",), offsets_of="values"), [[0, 7]], [[], [7], [-7, 7], [0, 9, 7]]),
    ],
)  # fmt: skip
def test_arrays_are_what_their_use_needs(member, good, wrong):
    """Forged ones have checksums that are right, and kernels rely on what is declared."""

    def check(values):
        array = np.array(values, float if values == [1.0, 2.0, 3.0] else np.int64)
        check_arrays(npz.Artifact({}, {"x": array, "values": VALUES}), declared, {"n": 3})

    declared = {"x": member} | ({"values": Member(np.uint64, (7,))} if member.offsets_of else {})
    for values in good:
        check(values)
    for values in wrong:
        with pytest.raises(ValueError, match=r"x (do not fit|has numbers of|are not in order)"):
            check(values)


def test_sizes_of_an_artifact_are_those_of_its_first_arrays():
    sizes = {}
    sets = {"values": VALUES, "offsets": np.array([0, 7])}
    assert check_arrays(npz.Artifact({}, sets), declare_sets("sets"), sizes) == sets
    assert sizes == {"elements": 7, "sets": 1}
    with pytest.raises(KeyError, match="offsets"):
        check_arrays(npz.Artifact({}, {"values": VALUES}), declare_sets("sets"), {})


def test_members_are_aligned_and_mapped_not_written_back(path):
    loaded = npz.load(path, "things", "mend")
    assert loaded.arrays["wide"].ctypes.data % 64 == 0
    before = path.read_bytes()
    loaded.arrays["a"][0] = 99
    assert path.read_bytes() == before


def test_equal_content_equal_bytes(path, tmp_path):
    npz.save(tmp_path / "y.npz", "things", {"seed": 1}, ARRAYS)
    assert (tmp_path / "y.npz").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("change", [lambda found: found[:-1], lambda found: found.astype(float)])
def test_checksums_of_other_members_are_refused(path, monkeypatch, change):
    made = npz.block_checksums
    monkeypatch.setattr(npz, "block_checksums", lambda arrays: change(made(arrays)))
    npz.save(path, "things", {}, ARRAYS)
    with pytest.raises(ArtifactError, match="its checksums do not fit"):
        npz.load(path, "things", "mend")


def test_a_missing_file_is_none(tmp_path):
    assert npz.load(tmp_path / "none.npz", "things", "mend") is None


def test_another_kind_and_a_future_format(path, tmp_path, monkeypatch):
    with pytest.raises(ArtifactError, match="holds things, not others") as error:
        npz.load(path, "others", "lshdup mend")
    assert error.value.hint == "lshdup mend"
    monkeypatch.setattr(npz, "FORMAT_VERSION", 99)
    npz.save(path, "things", {}, {})
    monkeypatch.undo()
    with pytest.raises(ArtifactError, match="format 99"):
        npz.load(path, "things", "mend")


def test_every_truncation_is_refused(path):
    data = path.read_bytes()
    for size in [0, 1, 10, *range(20, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(ArtifactError, match="damaged"):
            npz.load(path, "things", "mend")


def test_every_flipped_byte_is_refused_or_harmless(path):
    data = path.read_bytes()
    for at in range(0, len(data), 3):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
        try:
            loaded = npz.load(path, "things", "mend")
        except ArtifactError:
            continue
        for name, array in ARRAYS.items():  # padding and zip fields that mean nothing
            if name in loaded.arrays:
                assert (loaded.arrays[name] == array).all()


def test_crafted_archives_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, header=np.array([{"kind": "things"}], dtype=object), allow_pickle=True)
    with pytest.raises(ArtifactError):
        npz.load(path, "things", "mend")
    np.savez_compressed(path, header=np.zeros(3, np.uint8))
    with pytest.raises(ArtifactError, match="compressed"):
        npz.load(path, "things", "mend")
    with zipfile.ZipFile(path, "w") as archive:
        shape = (
            b"\x93NUMPY\x01\x00v\x00{'descr': '<u8', 'fortran_order': False, 'shape': "
            b"(99999999999999,), }"
        )
        archive.writestr("header.npy", shape.ljust(127) + b"\n")
    with pytest.raises(ArtifactError, match="shape"):
        npz.load(path, "things", "mend")
    path.write_text("no zip")
    with pytest.raises(ArtifactError, match="damaged"):
        npz.load(path, "things", "mend")


def test_a_store_that_cannot_be_written(tmp_path):
    with pytest.raises(ArtifactError, match="cannot be written"):
        npz.save(tmp_path / "no-such-folder" / "x.npz", "things", {}, {})


def test_a_full_disk_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArtifactError, match="No space left"):
        npz.save(path, "things", {"seed": 2}, ARRAYS)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_killed_while_saving_leaves_the_old_file(path):
    """SIGKILL in the middle of writing: the old artifact is whole, and the next run is not
    disturbed by what is left.
    """
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
import numpy as np
from pathlib import Path
from lshdup.store import npz
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
npz.save(Path({str(path)!r}), "things", {{"seed": 2}}, {{"a": np.zeros(100_000)}})
"""
    process = subprocess.run([sys.executable, "-c", script], check=False)
    assert process.returncode == -signal.SIGKILL
    assert npz.load(path, "things", "mend").header["seed"] == 1
    npz.save(path, "things", {"seed": 3}, ARRAYS)
    assert npz.load(path, "things", "mend").header["seed"] == 3


def test_a_spool_keeps_what_is_appended(tmp_path):
    spool = scratch.Spool(Arrays(None, lambda: tmp_path))
    assert len(spool.values()) == 0
    for part in ([{0, 1, 2}], [], [set(), {3, 4}]):
        spool.append(RaggedSets.from_sets(part))
    assert [each.tolist() for each in spool.sets()] == [[0, 1, 2], [], [3, 4]]
    assert spool.in_order(np.array([2, 0, 1])).sizes.tolist() == [2, 3, 0]
    assert spool.values().tolist() == [3, 4, 0, 1, 2]
    assert os.listdir(tmp_path) == []


def test_every_byte_is_verified_where_no_less_is_asked_for(path, monkeypatch):
    monkeypatch.setattr(npz, "_ALWAYS_VERIFIED", 0)
    damaged = bytearray(path.read_bytes())
    at = bytes(damaged).find(ARRAYS["a"].tobytes())
    damaged[at + 8] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ArtifactError):
        npz.load(path, "things", "mend")
    with path.open("rb") as file, pytest.raises(ArtifactError):
        npz.read(file, path, "things", "mend")
    assert npz.load(path, "things", "mend", verify=False).header["seed"] == 1


def test_a_store_verifies_every_byte_where_no_less_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "_ALWAYS_VERIFIED", 0)
    (tmp_path / "d").mkdir()
    for number in range(3):
        (tmp_path / "d" / f"{number}").write_text(f"some words of a text {number}")
    monkeypatch.chdir(tmp_path)
    load_signatures(
        open_workspace("s"), Request((b"d",), DocumentParams(), {}), save=True, again=True
    )
    signatures = Path("s/signatures.npz")
    whole = npz.load(signatures, "signatures", "mend").arrays["signatures"].tobytes()
    damaged = bytearray(signatures.read_bytes())
    damaged[bytes(damaged).find(whole)] ^= 1
    signatures.write_bytes(damaged)
    assert len(Store(Path("s")).load_collection("signatures", verify=False).documents) == 3
    with pytest.raises(ArtifactError):
        Store(Path("s")).load_collection("signatures")
    with pytest.raises(ArtifactError):
        load_or_build_index(open_workspace("s"), Request((), DocumentParams(), {}), save=True)
