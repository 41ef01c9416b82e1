"""Documents in tar and zip archives: their names, their bytes, what is skipped, what is reused."""

import gzip
import os
import subprocess
import tarfile
import zipfile

import pytest

from lshdup.base.skipped import Reason
from lshdup.sources.records import distinct_names, inner_path
from tests.documents import by_inner_names, listed, reasons, tar_of, zip_of

#: Endings of tar archives, and how `tarfile` writes them.
TARS = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz", ".tar.xz": "w:xz", ".tar.bz2": "w:bz2"}

MEMBERS = [("a.txt", b"one two"), ("sub/b.txt", b"three"), ("sub/c", b""), ("d.html", b"<p>x")]


def below(path, members, **params):
    """Return texts by names below an archive, named by its ending, and what is skipped."""
    mode = next((mode for ending, mode in TARS.items() if path.name.endswith(ending)), None)
    path.write_bytes(zip_of(members) if mode is None else tar_of(members, mode))
    found, skipped = listed(path, **params)
    return by_inner_names(path, found), by_inner_names(path, reasons(skipped))


def test_what_is_no_file_in_a_zip_archive(tmp_path):
    modes = {"link": 0o120777, "pipe": 0o010644, "file": 0o100644, "of no system": 0}
    members = [(zipfile.ZipInfo(name), b"one two") for name in modes]
    for member, _ in members:
        member.external_attr = modes[member.filename] << 16
    found, skipped = below(tmp_path / "x.zip", members)
    assert {*found} == {b"file", b"of no system"}
    assert skipped == {b"link": Reason.LINK, b"pipe": Reason.SPECIAL}


def test_a_zip_archive_with_numbers_of_64_bits(tmp_path, monkeypatch):
    """As an archive of more than 4 GB or 65,535 members has them, behind a beginning or not."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in MEMBERS:
            with archive.open(name, "w", force_zip64=True) as member:
                member.write(content)
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 0)  # of what the end says
    large = (tmp_path / "x.zip").read_bytes()
    assert b"PK\x06\x06" in large
    assert b"PK\x06\x07" in large
    (tmp_path / "shifted.zip").write_bytes(b"#!/bin/sh\n" + large)
    for name in ("x.zip", "shifted.zip"):
        assert [*listed(tmp_path / name)[0].values()] == [text for _, text in MEMBERS]


def test_names_in_a_zip_archive_that_are_not_utf_8(tmp_path):
    data = zip_of([("x1", b"one two")]).replace(b"x1", b"\x82.")  # é in code page 437
    (tmp_path / "x.zip").write_bytes(data)
    assert list(listed(tmp_path / "x.zip")[0]) == [os.fsencode(tmp_path / "x.zip/é.")]
    # Though it says so:
    data = zip_of([("gröb.txt", b"one two")])
    (tmp_path / "x.zip").write_bytes(data.replace("ö".encode(), b"\xff\xfe"))
    named = os.fsencode(tmp_path) + b"/x.zip/gr\xff\xfeb.txt"
    assert list(listed(tmp_path / "x.zip")[0]) == [named]


def test_a_sparse_file_in_an_archive_is_skipped(tmp_path):
    with open(tmp_path / "sparse", "wb") as file:
        file.seek(1 << 20)
        file.write(b"end")
    (tmp_path / "plain").write_bytes(b"one two")
    command = ["tar", "--sparse", "--format=gnu", "-cf", "x.tar", "sparse", "plain"]
    subprocess.run(command, cwd=tmp_path, check=True)
    found, skipped = listed(tmp_path / "x.tar")
    assert list(found.values()) == [b"one two"]
    assert [each.reason for each in skipped] == [Reason.FORMAT]


@pytest.mark.parametrize("ending", [*TARS, ".zip", ".ZIP"])
def test_members_are_documents_in_a_named_archive(tmp_path, ending):
    found, skipped = below(tmp_path / f"x{ending}", MEMBERS)
    assert found == {name.encode(): content for name, content in MEMBERS}
    assert not skipped


def test_names_are_safe_and_each_once(tmp_path):
    odd = "caf\udce9.txt"
    names = ["../../etc/passwd", "/abs/x", "./y", "a//b", "..", odd, "x\n y", "y"]
    members = [(name, name.encode("utf-8", "surrogateescape")) for name in names]
    found, _ = below(tmp_path / "x.tar", members)
    assert found == {
        b"etc/passwd": b"../../etc/passwd", b"abs/x": b"/abs/x", b"y": b"./y", b"a/b": b"a//b",
        b"5": b"..", b"caf\xe9.txt": b"caf\xe9.txt", b"x\n y": b"x\n y", b"y:2": b"y",
    }  # fmt: skip


def test_links_devices_and_folders_are_no_documents(tmp_path):
    kinds = {
        "folder": tarfile.DIRTYPE, "s": tarfile.SYMTYPE, "h": tarfile.LNKTYPE,
        "d": tarfile.CHRTYPE, "f": tarfile.FIFOTYPE,
    }  # fmt: skip
    members = [("a", b"a")]
    for name, kind in kinds.items():
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "" if name == "folder" else "a"
        members.append((member, b""))
    found, skipped = below(tmp_path / "x.tar", members)
    assert found == {b"a": b"a"}
    special = Reason.SPECIAL
    assert skipped == {b"s": Reason.LINK, b"h": Reason.HARD_LINK, b"d": special, b"f": special}


def test_hidden_members_are_skipped_as_in_folders(tmp_path):
    members = [("a", b"a"), (".git/b", b"b"), ("c/.d", b"d")]
    for hidden, count in ((False, 1), (True, 3)):
        found, _ = below(tmp_path / "x.zip", members, hidden=hidden)
        assert len(found) == count


def test_inner_path_never_leaves_the_archive():
    for name in (b"..", b"/", b"a/../../b", b"../..", b"./../x/.", b"\0..", b".\0./a"):
        parts = inner_path(name).split(b"/")
        assert not {b".", b".."} & {*parts}
        assert not inner_path(name).startswith(b"/")


def test_distinct_names_keep_first_names():
    names = [b"a", b"a", b"a:2", b"a", b"", b"4"]
    assert distinct_names(names) == [b"a", b"a:3", b"a:2", b"a:4", b"5", b"4"]
    assert distinct_names([b"same"] * 100_000)[-1] == b"same:100000"  # soon


def test_a_packed_member_is_read_as_a_packed_file(tmp_path):
    found, _ = below(tmp_path / "x.zip", [("a.txt.gz", gzip.compress(b"packed text"))])
    assert [gzip.decompress(data) for data in found.values()] == [b"packed text"]
