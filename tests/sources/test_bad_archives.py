"""Archives that are damaged, lie, or mean harm: each is skipped with a reason, the exit code is 2,
and everything else is compared.
"""

import bz2
import gzip
import lzma
import os
import random
import struct
import tarfile
import zipfile
import zlib

import pytest

from lshdup.sources.archives import TarFile, ZipFile
from lshdup.sources.records import RecordError, RecordFields
from tests.documents import listed, reasons, tar_of, wiki_dump, zip_of

WORDS = random.Random(1)
TEXT = " ".join(f"w{WORDS.randrange(900)}" for _ in range(300)).encode()
NEAR = TEXT.replace(b"w1", b"v1", 1)


def encrypted(data):
    """Return an archive whose members are said to be encrypted."""
    data = bytearray(data)
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.find(mark)
        while place >= 0:
            data[place + at] |= 1
            place = data.find(mark, place + 4)
    return bytes(data)


def overlapping():
    """Return an archive whose members all lie about one and the same bytes."""
    data = bytearray(zip_of([("a", TEXT), ("b", TEXT), ("c", TEXT)]))
    place, first = data.find(b"PK\x01\x02"), None
    while place >= 0:
        start = struct.unpack_from("<I", data, place + 42)[0]
        first = start if first is None else first
        struct.pack_into("<I", data, place + 42, first)
        place = data.find(b"PK\x01\x02", place + 4)
    return bytes(data)


TWO = [("a", TEXT), ("b", NEAR)]


def write_docs(folder, name, content):
    """Write an archive, and two near-copies beside it."""
    (folder / "docs").mkdir()
    for each, data in ((name, content), ("one", TEXT), ("two", NEAR)):
        (folder / "docs" / each).write_bytes(data)


def header(kind, size=0):
    """Return the header of a member of a tar archive."""
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.USTAR_FORMAT)


def cut_sparse_header():
    """Return a header of the old form of sparse files, without the next one that it names."""
    data = bytearray(header(tarfile.GNUTYPE_SPARSE))
    data[482] = 1
    data[148:156] = b"%06o\0 " % (sum(data[:148]) + sum(data[156:]) + 8 * 32)
    return bytes(data)


LONG_NAMES = 3000 * (header(tarfile.GNUTYPE_LONGNAME, 5) + b"abcd".ljust(512, b"\0"))


def tar_with_long(kind, content):
    """Return an archive in which a header for the next member has long content."""
    begin = header(kind, len(content)) + content.ljust(-(-len(content) // 512) * 512, b"\0")
    return begin + tar_of(TWO)


def xz_of_large_dictionary():
    """Return an xz file that says it needs a dictionary of 4 GB."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0}]
    data = bytearray(lzma.compress(TEXT, check=lzma.CHECK_CRC32, filters=filters))
    data[data.index(b"\x21\x01", 12) + 2] = 40
    end = 12 + (data[12] + 1) * 4
    data[end - 4 : end] = struct.pack("<I", zlib.crc32(data[12 : end - 4]))
    return bytes(data)


LONG = bytes(40 << 20)
#: name -> bytes of an archive, or what makes many of them, and what is said about it.
ARCHIVES = {
    "empty.tar": (b"", "damaged"),
    "text.tar": (b"not an archive " * 100, "damaged"),
    "cut.tar": (tar_of([*TWO, ("c", TEXT)])[:-6000], "the rest of it"),
    "no-end.tar": (tar_of(TWO)[:4096], "the rest of it"),
    "cut.tar.gz": (tar_of(TWO, "w:gz")[:-50], "cut off"),
    "cut.tar.xz": (tar_of(TWO, "w:xz")[:-50], "cut off"),
    "cut.tar.bz2": (tar_of(TWO, "w:bz2")[:-50], "cut off"),
    "wrong.tar.gz": (gzip.compress(b"x" * 5000), "damaged"),
    "bomb.tar.gz": (lambda: gzip.compress(tar_of([("a", LONG)])), "when unpacked"),
    "bomb.tar.xz": (lambda: lzma.compress(tar_of([("a", LONG)])), "when unpacked"),
    "bomb.tar.bz2": (lambda: bz2.compress(tar_of([("a", LONG)])), "when unpacked"),
    "large.tar": (tar_of([("a", bytes(2 << 20)), ("b", b"x")]), "--max-bytes is"),
    "chain.tar": (LONG_NAMES + bytes(1024), "damaged"),
    "then-chain.tar": (tar_of(TWO)[:4096] + LONG_NAMES + bytes(1024), "the rest of it"),
    "sparse.tar": (cut_sparse_header(), "damaged"),
    "then-sparse.tar": (tar_of(TWO)[:4096] + cut_sparse_header(), "the rest of it"),
    "name.tar": (tar_with_long(b"L", b"a/" * (1 << 20)), "a name or fields of 2097152 bytes"),
    "link.tar": (tar_with_long(b"K", b"a/" * (1 << 20)), "a name or fields of 2097152 bytes"),
    "pax.tar": (tar_with_long(b"x", b"14 comment=xx\n" * 99_999), "a name or fields of"),
    "global.tar": (tar_with_long(b"g", b"14 comment=xx\n" * 99_999), "a name or fields of"),
    "solaris.tar": (tar_with_long(b"X", b"14 comment=xx\n" * 99_999), "a name or fields of"),
    "long-name.tar": (tar_of([("a/" * 50_000 + "b", TEXT), *TWO]), "a name of more than 65536"),
    "title.xml.bz2": (
        bz2.compress(wiki_dump([("ab " * 100_000, ["x"])])),
        "a name of more than 65536",
    ),
    "dictionary.tar.xz": (xz_of_large_dictionary(), "more than 256 MB of memory"),
    "dictionary.txt.xz": (xz_of_large_dictionary(), "more than 256 MB of memory"),
    "empty.zip": (b"", "no directory"),
    "text.zip": (b"not an archive " * 100, "no directory"),
    "cut.zip": (zip_of(TWO)[:-30], "no directory"),
    "secret.zip": (encrypted(zip_of(TWO)), "encrypted"),
    "bomb.zip": (lambda: zip_of([("a", LONG)]), "when unpacked"),
    "bombs.zip": (lambda: zip_of([(f"{n}", bytes(1 << 20)) for n in range(40)]), "when unpacked"),
    "overlap.zip": (overlapping(), "the bytes of another member"),
    "nested.zip": (zip_of([("in.tar.gz", tar_of(TWO, "w:gz"))]), "archive in an archive"),
    "nested.tar": (tar_of([("in.zip", zip_of(TWO))]), "archive in an archive"),
    "cut.warc.gz": (gzip.compress(b"WARC/1.0\r\n\r\n"), "damaged"),
    "text.wet": (b"not a crawl", "damaged"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_bad_archive_is_skipped_and_all_else_compared(tmp_path, run, name):
    content, said = ARCHIVES[name]
    write_docs(tmp_path, name, content() if callable(content) else content)
    result = run("pairs docs --archives --no-store --max-bytes 1MB", code=2)
    assert ["docs/one", "docs/two"] in [row[:2] for row in result.rows]
    assert name in result.err
    assert said in result.err
    assert {path.name for path in (tmp_path / "docs").iterdir()} == {name, "one", "two"}


def test_every_cut_and_many_faults_of_an_archive_are_survived(tmp_path):
    rng = random.Random(5)
    members = [("a/b.txt", TEXT), ("é.html", b"<p>" + TEXT), ("c", b"")]
    for name, whole in (("x.tar", tar_of(members)), ("x.zip", zip_of(members))):
        path = tmp_path / name
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(rng.randrange(4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            path.write_bytes(data[: rng.choice((len(data), rng.randrange(len(data))))])
            found, _ = listed(path)
            assert all(each.startswith(os.fsencode(path) + b"/") for each in found)
            assert all(len(text) <= 5000 for text in found.values())


@pytest.mark.parametrize("reader", [TarFile, ZipFile])
def test_noise_is_no_archive(tmp_path, reader):
    rng = random.Random(7)
    path = tmp_path / "noise"
    for size in (0, 1, 22, 511, 512, 4000):
        path.write_bytes(rng.randbytes(size) + b"PK\x05\x06" + b"\7" * 18 * (size % 2))
        with path.open("rb") as file, pytest.raises(RecordError):
            reader(file.fileno(), RecordFields(), 1 << 20).list_records()


def test_sizes_below_zero_do_not_hang(tmp_path):
    data = bytearray(tar_of([("a", TEXT)]))
    data[124:136] = b"\xff" * 11 + b"\x00"  # -256, in the binary form of large numbers
    data[148:156] = b"%06o\0 " % (sum(data[:148]) + sum(data[156:512]) + 8 * 32)
    (tmp_path / "x.tar").write_bytes(data)
    found, skipped = listed(tmp_path / "x.tar")
    assert not found
    assert len(skipped) == 1


def test_large_numbers_of_a_zip_are_read(tmp_path):
    path = tmp_path / "x.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a", "w", force_zip64=True) as member,
    ):
        member.write(TEXT)
    # An archive that unpacks itself begins with a program.
    path.write_bytes(b"#!/bin/sh\n" + path.read_bytes())
    found, skipped = listed(path)
    assert list(found.values()) == [TEXT]
    assert not skipped


def test_a_wrong_checksum_is_damage(tmp_path, run):
    data = zip_of([("a", TEXT), ("b", NEAR)], compression=zipfile.ZIP_STORED)
    (tmp_path / "x.zip").write_bytes(data.replace(TEXT[:30], TEXT[:29] + b"!", 1))
    (tmp_path / "c").write_bytes(TEXT)
    result = run("pairs x.zip c --no-store", code=2)
    assert [row[:2] for row in result.rows] == [["c", "x.zip/b"]]
    assert "not what the directory says" in result.err


def test_a_member_of_too_many_bytes_is_skipped_alone(tmp_path):
    members = [("a", TEXT), ("b", b"x" * 5000)]
    for name, pack in (("x.tar", tar_of), ("x.zip", zip_of)):
        (tmp_path / name).write_bytes(pack(members))
        found, skipped = listed(tmp_path / name, max_bytes=4000)
        assert list(found.values()) == [TEXT]
        assert [each.detail for each in skipped] == ["5000 bytes, --max-bytes is 4000"]
        assert len(reasons(skipped)) == 1


def test_a_zip_that_is_packed_by_another_method_says_so(tmp_path):
    (tmp_path / "x.zip").write_bytes(zip_of([("a", TEXT)], compression=zipfile.ZIP_BZIP2))
    _, skipped = listed(tmp_path / "x.zip")
    assert "method 12" in skipped[0].detail


def test_names_that_are_not_utf8_are_kept_or_decoded_by_the_rule(tmp_path):
    data = zip_of([("x1", TEXT), ("x2", TEXT)])
    data = data.replace(b"x1", b"\x82.")  # é in code page 437
    (tmp_path / "x.zip").write_bytes(data)
    found, _ = listed(tmp_path / "x.zip")
    prefix = os.fsencode(tmp_path / "x.zip") + b"/"
    assert sorted(found) == [prefix + b"x2", prefix + "é.".encode()]


@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
def test_a_store_does_not_save_an_archive_from_a_smaller_bound(tmp_path, run, ending):
    members = [(f"{n}", TEXT + bytes([97 + n]) + b" " * (2 << 20)) for n in range(5)]
    content = tar_of(members, "w:gz") if ending == ".tar.gz" else zip_of(members)
    write_docs(tmp_path, f"x{ending}", content)
    assert len(run("pairs docs --archives --store s").rows) > 1
    smaller = ("pairs", "docs", "--archives", "--max-bytes", "3MB")
    again = run(*smaller, "--store", "s", code=2)
    assert again.rows == run(*smaller, "--no-store", code=2).rows
    assert "when unpacked" in again.err
