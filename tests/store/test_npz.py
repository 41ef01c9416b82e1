"""Artifacts: whole or not there, checked, mapped, opened by plain NumPy; and what checks them."""

import io
import json
import os
import unicodedata
import zipfile

import numpy as np
import pytest

from lshdup.base.memory import Arrays
from lshdup.base.params import ShingleParams
from lshdup.base.ragged import StringTable
from lshdup.collection.collection import Collection, ReadingNotes
from lshdup.errors import ArtifactError
from lshdup.sources.document_list import DocumentList
from lshdup.store import npz
from lshdup.store.collection_io import have_equal_lists
from lshdup.store.npz import Member, check_arrays, declare_sets
from lshdup.store.store import Store
from tests.conftest import open_index, write_files
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


# --- checks that a small fault would remove without a trace ---------------------------------------


def collection_of(names, **changes):
    n = len(names)
    numbers = np.arange(1, n + 1)
    documents = DocumentList(StringTable.from_strings(names), numbers, numbers)
    prints = ("byte_prints", "text_prints", "fingerprints")
    columns = dict.fromkeys(prints, numbers.astype(np.uint64))
    return Collection(documents, ShingleParams(), {**columns, "set_sizes": numbers}, **changes)


def test_members_that_are_always_verified_are(tmp_path, monkeypatch):
    """However large they are, and although nothing of them has been read."""
    monkeypatch.setattr(npz, "_ALWAYS_VERIFIED", 0)
    path = tmp_path / "a.npz"
    npz.save(path, "things", {}, {"few": np.arange(10), "many": np.arange(100_000)})
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert npz.load(path, "things", "mend", verify=False) is not None
    assert npz.load(path, "things", "mend", verify=False, always=("few",)) is not None
    for options in ({"verify": False, "always": ("many",)}, {}):
        with pytest.raises(ArtifactError, match="wrong checksum"):
            npz.load(path, "things", "mend", **options)


def test_members_that_overlap_are_refused(tmp_path):
    """A member within another one: each checksum is right, and yet the file was not written so."""
    inner_file, path = io.BytesIO(), tmp_path / "a.npz"
    npz.write(inner_file, "things", {}, {"inner": np.arange(1000)})
    inner = zipfile.ZipFile(inner_file).getinfo("inner.npy")
    outer = np.frombuffer(inner_file.getvalue(), np.uint8)
    npz.save(path, "things", {}, {"outer": outer})
    with zipfile.ZipFile(path, "a") as archive:
        start = path.read_bytes().index(inner_file.getvalue())
        inner.header_offset += start
        archive.filelist.append(inner)
        archive._didModify = True
    with zipfile.ZipFile(path) as archive:
        assert len(archive.infolist()) == 3
    with pytest.raises(ArtifactError, match="its members overlap"):
        npz.load(path, "things", "mend")


def test_sets_made_with_another_unicode_version_are_made_again_or_refused(here, monkeypatch):
    """Sets depend on Python's Unicode tables."""
    write_files(here / "d", {name: f"some words of text {name}" for name in "ab"})

    with monkeypatch.context() as older:
        older.setattr(unicodedata, "unidata_version", "3.2.0")
        made = open_index("s", [b"d"])[1].collection
    present = unicodedata.unidata_version
    with pytest.raises(ArtifactError, match=rf"with Unicode 3\.2\.0; this Python has {present}"):
        open_index("s", [])
    again = open_index("s", [b"d"])[1].collection
    assert again.read == 2
    assert again.identity != made.identity
    assert open_index("s", [b"d"])[1].collection.read == 0


def test_identity_is_of_the_names_and_of_how_sets_were_made(monkeypatch):
    one = collection_of([b"ab", b"c"])
    assert one.identity == collection_of([b"ab", b"c"]).identity
    assert one.identity != collection_of([b"a", b"bc"]).identity  # the same bytes, cut elsewhere
    other = collection_of([b"ab", b"c"])
    monkeypatch.setattr(unicodedata, "unidata_version", "1.0")
    assert other.identity != one.identity


def test_an_artifact_of_another_reader_is_written_again():
    one, two = (collection_of([b"a", b"b"], notes=ReadingNotes(reader)) for reader in "12")
    assert have_equal_lists(one, one, "signatures")
    assert not have_equal_lists(one, two, "signatures")


def test_an_artifact_is_loaded_again_only_if_another_one_is_there(run, tmp_path):
    (tmp_path / "a").write_text("a few words of text")
    run("index a")
    store = Store(tmp_path / ".lshdup")
    mapped = store.load_collection("signatures", verify=False)
    verified = store.load_collection("signatures")
    assert verified is not mapped
    assert store.load_collection("signatures", verify=False) is verified
    (tmp_path / "b").write_text("other words")
    run("index a b")
    assert len(store.load_collection("signatures").documents) == 2
    store.path("signatures").write_bytes(b"junk")
    with pytest.raises(ArtifactError, match="damaged"):
        store.load_collection("signatures")


def test_signatures_are_mapped_where_the_system_cannot_allocate(tmp_path, monkeypatch):
    """macOS has no `posix_fallocate`; the room is taken all the same, before the work."""
    monkeypatch.delattr(os, "posix_fallocate")
    mapped = Arrays(0, tmp_path).empty((1000, 300), np.uint32)
    assert mapped.shape == (1000, 300)
    assert not mapped.any()
    mapped[:] = 7
    assert int(mapped.sum()) == 2_100_000
