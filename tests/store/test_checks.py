"""Checks of the store that a small fault would remove without a trace: each has its test here."""

import io
import os
import stat
import unicodedata
import zipfile

import numpy as np
import pytest

from lshdup.base import atomic
from lshdup.base.atomic import replace_file
from lshdup.base.memory import Arrays
from lshdup.base.ragged import StringTable
from lshdup.collection.collection import Collection, ReadingNotes
from lshdup.errors import ArtifactError
from lshdup.params import DocumentParams, ShingleParams
from lshdup.sources.document_list import DocumentList
from lshdup.store import npz
from lshdup.store.collection_io import would_save_the_same
from lshdup.store.store import Store
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.request import Request
from tests.conftest import open_workspace, write_files


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
    with path.open("rb") as file, pytest.raises(ArtifactError, match="wrong checksum"):
        npz.read(file, path, "things", "mend")


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

    def load(*docs):
        return load_or_build_index(open_workspace("s"), Request(docs, DocumentParams(), {}))

    with monkeypatch.context() as older:
        older.setattr(unicodedata, "unidata_version", "3.2.0")
        made = load(b"d").collection
    present = unicodedata.unidata_version
    with pytest.raises(ArtifactError, match=rf"with Unicode 3\.2\.0; this Python has {present}"):
        load()
    again = load(b"d").collection
    assert again.read == 2
    assert again.identity != made.identity
    assert load(b"d").collection.read == 0


@pytest.mark.parametrize("held", [True, False])
def test_what_killed_runs_left_is_removed_under_a_lock_only(tmp_path, monkeypatch, held):
    monkeypatch.setattr(atomic, "hold", lambda descriptor: held)
    store = Store(tmp_path / "s")
    store.make_writable()
    left = tmp_path / "s/.lshdup-01234567.tmp"
    left.write_bytes(b"of a run that may be alive")
    with store.writing():
        assert left.exists() != held


def test_identity_is_of_the_names_and_of_how_sets_were_made(monkeypatch):
    one = collection_of([b"ab", b"c"])
    assert one.identity == collection_of([b"ab", b"c"]).identity
    assert one.identity != collection_of([b"a", b"bc"]).identity  # the same bytes, cut elsewhere
    other = collection_of([b"ab", b"c"])
    monkeypatch.setattr(unicodedata, "unidata_version", "1.0")
    assert other.identity != one.identity


def test_an_artifact_of_another_reader_is_written_again():
    one, two = (collection_of([b"a", b"b"], notes=ReadingNotes(reader)) for reader in "12")
    assert would_save_the_same(one, one, "signatures")
    assert not would_save_the_same(one, two, "signatures")


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


def test_the_folder_is_synced_after_a_file_was_replaced(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def noted(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append((is_folder, (tmp_path / "a").exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    with replace_file(tmp_path / "a") as file:
        file.write(b"all of it")
    assert synced == [(False, False), (True, True)]


def test_signatures_are_mapped_where_the_system_cannot_allocate(tmp_path, monkeypatch):
    """macOS has no `posix_fallocate`; the room is taken all the same, before the work."""
    monkeypatch.delattr(os, "posix_fallocate")
    mapped = Arrays(0, tmp_path).empty((1000, 300), np.uint32)
    assert mapped.shape == (1000, 300)
    assert not mapped.any()
    mapped[:] = 7
    assert int(mapped.sum()) == 2_100_000
