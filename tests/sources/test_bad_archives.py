"""Archives that are damaged, lie, or mean harm are skipped with a reason, and nothing else."""

import bz2
import gzip
import lzma
import os
import random
import struct
import tarfile
import zipfile
import zlib

from tests.conftest import WHOLE, write_files
from tests.documents import listed, reasons, tar_of, wiki_dump, zip_of

WORDS = random.Random(1)
TEXT = " ".join(f"w{WORDS.randrange(900)}" for _ in range(300)).encode()
NEAR = TEXT.replace(b"w1", b"v1", 1)


def in_directory(data, at, form, value):
    """Return a zip with another value in this place of its directory, and in headers if flags."""
    data = bytearray(data)
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", at)):
        start = data.find(mark)
        while start >= 0:
            if mark == b"PK\x01\x02" or at == 8:
                struct.pack_into(form, data, start + place, value)
            start = data.find(mark, start + 4)
    return bytes(data)


TWO = [("a", TEXT), ("b", NEAR)]


def header(kind, size=0):
    """Return the header of a member of a tar archive."""
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.USTAR_FORMAT)


def changed_header(kind, at, value):
    """Return a header with other bytes in a place, and their checksum."""
    data = bytearray(header(kind))
    data[at : at + len(value)] = value
    data[148:156] = b"%06o\0 " % (sum(data[:148]) + sum(data[156:]) + 8 * 32)
    return bytes(data)


#: A header of the old form of sparse files, without the next one that it names.
SPARSE = changed_header(tarfile.GNUTYPE_SPARSE, 482, b"\1")
#: One with a size of -256, in the binary form of large numbers.
NEGATIVE = changed_header(tarfile.REGTYPE, 124, b"\xff" * 11 + b"\0")

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


LONG = bytes(8 << 20)
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
    "sparse.tar": (SPARSE, "damaged"),
    "then-sparse.tar": (tar_of(TWO)[:4096] + SPARSE, "the rest of it"),
    "negative.tar": (NEGATIVE + bytes(1024), "damaged"),
    "name.tar": (tar_with_long(b"L", b"a/" * (1 << 20)), "a name or fields of 2097152 bytes"),
    "link.tar": (tar_with_long(b"K", b"a/" * (1 << 20)), "a name or fields of 2097152 bytes"),
    "pax.tar": (tar_with_long(b"x", b"14 comment=xx\n" * 99_999), "a name or fields of"),
    "global.tar": (tar_with_long(b"g", b"14 comment=xx\n" * 99_999), "a name or fields of"),
    "solaris.tar": (tar_with_long(b"X", b"14 comment=xx\n" * 99_999), "a name or fields of"),
    "long-name.tar": (tar_of([("a/" * 50_000 + "b", TEXT), *TWO]), "a name of more than 65536"),
    "title.xml.bz2": (bz2.compress(wiki_dump([("ab " * 30_000, ["x"])])), "a name of more than"),
    "dictionary.tar.xz": (xz_of_large_dictionary(), "more than 256 MB of memory"),
    "dictionary.txt.xz": (xz_of_large_dictionary(), "more than 256 MB of memory"),
    "empty.zip": (b"", "no directory"),
    "text.zip": (b"not an archive " * 100, "no directory"),
    "cut.zip": (zip_of(TWO)[:-30], "no directory"),
    "secret.zip": (in_directory(zip_of(TWO), 8, "<H", 1), "encrypted"),
    "bzip2.zip": (zip_of(TWO, compression=zipfile.ZIP_BZIP2), "method 12"),
    "bomb.zip": (lambda: zip_of([("a", LONG)]), "when unpacked"),
    "bombs.zip": (lambda: zip_of([(f"{n}", bytes(1 << 20)) for n in range(8)]), "when unpacked"),
    "overlap.zip": (in_directory(zip_of(TWO), 42, "<I", 0), "the bytes of another member"),
    "nested.zip": (zip_of([("in.tar.gz", tar_of(TWO, "w:gz"))]), "archive in an archive"),
    "nested.tar": (tar_of([("in.zip", zip_of(TWO))]), "archive in an archive"),
    "cut.warc.gz": (gzip.compress(b"WARC/1.0\r\n\r\n"), "damaged"),
    "text.wet": (b"not a crawl", "damaged"),
}


def test_bad_archives_are_skipped_and_all_else_compared(tmp_path, run):
    docs = tmp_path / "docs"
    docs.mkdir()
    stored = zip_of(TWO, compression=zipfile.ZIP_STORED)
    wrong = {"wrong.zip": (stored.replace(TEXT[:9], NEAR[:9]), "not what the directory says")}
    for name, (content, _) in (ARCHIVES | wrong).items():
        (docs / name).write_bytes(content() if callable(content) else content)
    write_files(docs, {"one": TEXT, "two": NEAR})
    result = run("pairs docs --archives --no-store --max-bytes 1MB -v", code=2)
    assert ["docs/one", "docs/two"] in [row[:2] for row in result.rows]
    assert "docs/wrong.zip/b" in {name for row in result.rows for name in row[:2]}
    for name, (_, said) in (ARCHIVES | wrong).items():
        lines = [line for line in result.err.splitlines() if f" docs/{name}" in line]
        assert any(said in line for line in lines), (name, result.err)
    assert {path.name for path in docs.iterdir()} == {*ARCHIVES, *wrong, "one", "two"}


def test_every_cut_and_many_faults_of_an_archive_are_survived(tmp_path):
    rng = random.Random(5)
    members = [("a/b.txt", TEXT), ("é.html", b"<p>" + TEXT), ("c", b"")]
    for name, whole in (("x.tar", tar_of(members)), ("x.zip", zip_of(members))):
        path = tmp_path / name
        for _ in range(150 if WHOLE else 50):
            data = bytearray(whole)
            for _ in range(rng.randrange(4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            path.write_bytes(data[: rng.choice((len(data), rng.randrange(len(data))))])
            found, _ = listed(path)
            assert all(each.startswith(os.fsencode(path) + b"/") for each in found)
            assert all(len(text) <= 5000 for text in found.values())


def test_a_member_of_too_many_bytes_is_skipped_alone(tmp_path):
    members = [("a", TEXT), ("b", b"x" * 5000)]
    for name, pack in (("x.tar", tar_of), ("x.zip", zip_of)):
        (tmp_path / name).write_bytes(pack(members))
        found, skipped = listed(tmp_path / name, max_bytes=4000)
        assert list(found.values()) == [TEXT]
        assert [each.detail for each in skipped] == ["5000 bytes, --max-bytes is 4000"]
        assert len(reasons(skipped)) == 1
