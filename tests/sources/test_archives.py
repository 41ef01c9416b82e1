"""Documents in tar and zip archives: their names, their bytes, what is skipped, what is reused."""

import gzip
import io
import os
import subprocess
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from lshdup.base.run import Run
from lshdup.base.skipped import Reason
from lshdup.params import DocumentParams
from lshdup.sources.finding import find_documents
from lshdup.sources.reading import batches, read_batch
from lshdup.sources.records import distinct_names, inner_path

#: Endings of tar archives, and how `tarfile` writes them.
TARS = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz", ".tar.xz": "w:xz", ".tar.bz2": "w:bz2"}


def write_tar(path, members, mode="w"):
    """Write an archive of members: pairs of a name and bytes, or a TarInfo alone."""
    with tarfile.open(path, mode, errors="surrogateescape") as archive:
        for name, content in members:
            member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            if member.isreg():
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def write_zip(path, members, **options):
    """Write an archive of members: pairs of a name or a ZipInfo, and bytes."""
    options = {"compression": zipfile.ZIP_DEFLATED} | options
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in members:
            archive.writestr(name, content)


def write_archive(path, members):
    """Write an archive as the ending of its path says."""
    mode = next((mode for ending, mode in TARS.items() if path.name.endswith(ending)), None)
    write_zip(path, members) if mode is None else write_tar(path, members, mode)


def listed(path, **params):
    """Return the documents that a name leads to, by name, and what is skipped, with reasons."""
    skipped = []
    params = DocumentParams(**params)
    documents = find_documents(
        replace(Run.quiet(), skipped=skipped.append), [os.fsencode(path)], params
    )
    found = {}
    for indices in batches(Run.quiet(), documents, np.arange(len(documents))):
        batch = read_batch(documents, indices)
        skipped += [
            (documents.names[index], reason, detail) for index, reason, detail in batch.skipped
        ]
        names = documents.names.strings_at(batch.indices)
        for name, start, size in zip(names, batch.starts, batch.lengths, strict=True):
            found[name] = batch.text[start : start + size].tobytes()
    return found, skipped


def reasons(skipped):
    """Return the reasons by which things are skipped, by name."""
    return {each.name: each.reason for each in skipped}


def test_what_is_no_file_in_a_zip_archive(tmp_path):
    modes = {"link": 0o120777, "pipe": 0o010644, "file": 0o100644, "of no system": 0}
    members = []
    for name, mode in modes.items():
        members.append((zipfile.ZipInfo(name), b"one two"))
        members[-1][0].external_attr = mode << 16
    write_zip(tmp_path / "x.zip", members)
    found, skipped = listed(tmp_path / "x.zip")
    assert {os.path.basename(name) for name in found} == {b"file", b"of no system"}
    prefix = os.fsencode(tmp_path / "x.zip/")
    assert reasons(skipped) == {prefix + b"/link": Reason.LINK, prefix + b"/pipe": Reason.SPECIAL}


def test_a_zip_archive_with_numbers_of_64_bits(tmp_path, monkeypatch):
    """As an archive of more than 4 GB or 65,535 members has them, behind a beginning or not."""
    write_zip(tmp_path / "small.zip", MEMBERS)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name, content in MEMBERS:
            archive.writestr(name, content)
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 0)  # of what the end says
    large = (tmp_path / "x.zip").read_bytes()
    assert b"PK\x06\x06" in large
    assert b"PK\x06\x07" in large
    (tmp_path / "shifted.zip").write_bytes(b"#!/bin/sh\n" + large)
    texts = [
        {os.path.basename(path): text for path, text in listed(tmp_path / name)[0].items()}
        for name in ("small.zip", "x.zip", "shifted.zip")
    ]
    assert len(texts[0]) == len(MEMBERS)
    assert texts[0] == texts[1] == texts[2]


def test_a_name_in_a_zip_archive_that_is_not_utf_8_though_it_says_so(tmp_path):
    write_zip(tmp_path / "x.zip", [("gröb.txt", b"one two")])
    data = (tmp_path / "x.zip").read_bytes()
    (tmp_path / "x.zip").write_bytes(data.replace("ö".encode(), b"\xff\xfe"))
    assert list(listed(tmp_path / "x.zip")[0]) == [
        os.fsencode(tmp_path) + b"/x.zip/gr\xff\xfeb.txt"
    ]


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


MEMBERS = [("a.txt", b"one two"), ("sub/b.txt", b"three"), ("sub/c", b""), ("d.html", b"<p>x")]


@pytest.mark.parametrize("ending", [*TARS, ".zip", ".ZIP"])
def test_members_are_documents_in_a_named_archive(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    write_archive(path, MEMBERS)
    found, skipped = listed(path)
    prefix = os.fsencode(path) + b"/"
    assert found == {prefix + name.encode(): content for name, content in MEMBERS}
    assert not skipped


def test_archives_in_folders_are_opened_on_request(tmp_path):
    write_tar(tmp_path / "x.tar.gz", MEMBERS, "w:gz")
    write_zip(tmp_path / "y.zip", MEMBERS)
    assert len(listed(tmp_path)[0]) == 2
    assert len(listed(tmp_path, archives=True)[0]) == 8


def test_names_are_safe_and_each_once(tmp_path):
    odd = "caf\udce9.txt"  # a byte that is not UTF-8
    names = ["../../etc/passwd", "/abs/x", "./y", "a//b", "..", odd, "x\n y", "y"]
    members = [(name, name.encode("utf-8", "surrogateescape")) for name in names]
    write_tar(tmp_path / "x.tar", members)
    found, _ = listed(tmp_path / "x.tar")
    below = {name[len(os.fsencode(tmp_path / "x.tar")) + 1 :]: text for name, text in found.items()}
    assert below == {
        b"etc/passwd": b"../../etc/passwd", b"abs/x": b"/abs/x", b"y": b"./y", b"a/b": b"a//b",
        b"5": b"..", b"caf\xe9.txt": b"caf\xe9.txt", b"x\n y": b"x\n y", b"y:2": b"y",
    }  # fmt: skip


def test_ten_thousand_members_of_one_name(tmp_path):
    members = [("same.txt", b"%d" % n) for n in range(10_000)]
    with pytest.warns(UserWarning, match="Duplicate"):
        write_zip(tmp_path / "x.zip", members)
    write_tar(tmp_path / "x.tar", members)
    for name in ("x.zip", "x.tar"):
        found, skipped = listed(tmp_path / name)
        assert len(found) == 10_000
        assert found[os.fsencode(tmp_path / name) + b"/same.txt:10000"] == b"9999"
        assert not skipped


def test_links_devices_and_folders_are_no_documents(tmp_path):
    def member(name, kind, target=""):
        made = tarfile.TarInfo(name)
        made.type, made.linkname = kind, target
        return made, b""

    kinds = {
        "s": tarfile.SYMTYPE, "h": tarfile.LNKTYPE, "d": tarfile.CHRTYPE, "f": tarfile.FIFOTYPE,
    }  # fmt: skip
    members = [member(name, kind, "a") for name, kind in kinds.items()]
    write_tar(tmp_path / "x.tar", [("a", b"a"), member("folder", tarfile.DIRTYPE), *members])
    found, skipped = listed(tmp_path / "x.tar")
    prefix = os.fsencode(tmp_path / "x.tar") + b"/"
    assert found == {prefix + b"a": b"a"}
    special = Reason.SPECIAL
    expected = {b"s": Reason.LINK, b"h": Reason.HARD_LINK, b"d": special, b"f": special}
    assert reasons(skipped) == {prefix + name: reason for name, reason in expected.items()}


def test_hidden_members_are_skipped_as_in_folders(tmp_path):
    write_zip(tmp_path / "x.zip", [("a", b"a"), (".git/b", b"b"), ("c/.d", b"d")])
    assert len(listed(tmp_path / "x.zip")[0]) == 1
    assert len(listed(tmp_path / "x.zip", hidden=True)[0]) == 3


def test_inner_path_never_leaves_the_archive():
    for name in (b"..", b"/", b"a/../../b", b"../..", b"./../x/.", b"\0..", b".\0./a"):
        parts = inner_path(name).split(b"/")
        assert not {b".", b".."} & {*parts}
        assert not inner_path(name).startswith(b"/")


def test_distinct_names_keep_first_names():
    names = [b"a", b"a", b"a:2", b"a", b"", b"4"]
    assert distinct_names(names) == [b"a", b"a:3", b"a:2", b"a:4", b"5", b"4"]


def test_a_packed_member_is_read_as_a_packed_file(tmp_path):
    write_zip(tmp_path / "x.zip", [("a.txt.gz", gzip.compress(b"packed text"))])
    found, _ = listed(tmp_path / "x.zip")
    assert [gzip.decompress(data) for data in found.values()] == [b"packed text"]
