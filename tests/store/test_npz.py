"""Artifacts: whole or not there, checked, mapped, opened by plain NumPy."""

import json
import os
import zipfile

import numpy as np
import pytest

from lshdup.errors import ArtifactError
from lshdup.store import npz
from lshdup.store.npz import Member, check_arrays, declare_sets
from tests.fuzz.artifacts import archive_of, npy

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


def test_a_member_that_nothing_asks_for_is_harmless(path):
    """Such as the checksums of blocks that a file had once."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    path.write_bytes(archive_of([*members.items(), ("checks.npy", npy(np.arange(3, dtype="u4")))]))
    loaded = npz.load(path, "things", "mend")
    assert all((loaded.arrays[name] == array).all() for name, array in ARRAYS.items())


def test_what_is_not_verified_is_named(path, monkeypatch):
    monkeypatch.setattr(npz, "_ALWAYS_VERIFIED", 0)
    assert npz.load(path, "things", "mend").unverified == frozenset()
    loaded = npz.load(path, "things", "mend", verify=False, always=("a",))
    assert loaded.unverified == {"empty", "wide"}


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


def test_another_kind_a_future_format_and_no_file(path, tmp_path, monkeypatch):
    assert npz.load(tmp_path / "none.npz", "things", "mend") is None
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


def test_a_full_disk_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArtifactError, match="No space left"):
        npz.save(path, "things", {"seed": 2}, ARRAYS)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    with pytest.raises(ArtifactError, match="cannot be written"):
        npz.save(path.parent / "no-such-folder" / "x.npz", "things", {}, {})
