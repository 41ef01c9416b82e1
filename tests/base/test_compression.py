"""Files of gzip or zstd: what they hold is the document; bombs cost what is allowed."""

import contextlib
import gzip
import io
import lzma
import os
import random
import subprocess
import sys
import tarfile
import zlib
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lshdup.base.compression import NoRoomError, PackedError, TooLongError, unpack_to, unpacked
from lshdup.base.params import ShingleParams
from lshdup.base.skipped import Reason
from lshdup.text.decoding import decode
from tests.conftest import ROOT, ZSTD, failing, many, require, write_files

zstd = require("parquet", ZSTD)

TEXT = "a text of some words, Größe and 日本語\n".encode() * 50


def zstd_packed(data, **how):
    options = {getattr(zstd.CompressionParameter, name): value for name, value in how.items()}
    return zstd.compress(data, options=options)


PACKERS = [gzip.compress, zstd_packed, partial(zstd_packed, checksum_flag=1)]
PACKERS.append(partial(zstd_packed, content_size_flag=0))
some_bytes = st.binary(max_size=200) | st.integers(0, 400_000).map(bytes)
parts = st.lists(some_bytes, min_size=1, max_size=3)


@settings(deadline=None, max_examples=many(60))
@given(parts, st.sampled_from(PACKERS))
def test_members_one_after_the_other(made, packer):
    data = b"".join(made)
    packed = b"".join(map(packer, made))
    assert unpacked(packed, len(data)) == data
    if data:
        with pytest.raises(TooLongError):
            unpacked(packed, len(data) - 1)


def test_streams_of_xz_one_after_the_other_with_zeros_between():
    large = random.Random(1).randbytes(1_200_000) + bytes(1_200_000)
    made = [TEXT, b"", large, TEXT]
    packed = b"".join(lzma.compress(part) + bytes(4 * n) for n, part in enumerate(made))
    assert unpacked(packed, 10_000_000) == b"".join(made)
    assert unpacked(packed + b"what xz does not know", 10_000_000) == b"".join(made)
    with pytest.raises(PackedError, match="cut off"):
        unpacked(packed[:-20], 10_000_000)


@settings(deadline=None, max_examples=many(60))
@given(parts, st.sampled_from(PACKERS), st.data())
def test_what_is_cut_off_is_never_taken_for_whole(made, packer, data):
    """At an edge between members nothing can be seen; everywhere else it is."""
    packed = list(map(packer, made))
    cut = data.draw(st.integers(5, len(b"".join(packed)) - 1))
    edges = [len(b"".join(packed[:n])) for n in range(len(packed))]
    if cut not in edges and not any(edge < cut < edge + 2 for edge in edges):
        with pytest.raises(PackedError):
            unpacked(b"".join(packed)[:cut], 1 << 30)


@settings(deadline=None, max_examples=many(150))
@given(st.sampled_from(PACKERS), st.integers(0, 10**9), st.integers(0, 7))
def test_flipped_bits(packer, place, bit):
    data = bytearray(packer(TEXT))
    data[4 + place % (len(data) - 4)] ^= 1 << bit
    with contextlib.suppress(PackedError, TooLongError):
        found = unpacked(bytes(data), 1 << 20)
        # Without a checksum it may be another text.
        assert found == TEXT or packer in (PACKERS[1], PACKERS[3])


@pytest.mark.parametrize("packer", PACKERS)
def test_a_packed_document_is_what_is_in_it(packer):
    page = b"<p>one<script>no</script>two &amp; three</p>"
    assert decode(packer(TEXT), b"notes.txt.gz").utf8 == TEXT
    assert decode(packer(page), b"page.html.gz").utf8 == decode(page, b"page.html").utf8
    assert decode(packer(page), b"page.gz").utf8 == page
    assert decode(packer("Größe".encode("utf-16")), b"x").utf8 == "Größe".encode()
    latin = ShingleParams(encoding="latin-1")
    assert decode(packer("Größe".encode("latin-1")), b"x.gz", latin).utf8 == "Größe".encode()
    assert decode(packer(b"\0binary"), b"x.gz").reason == Reason.BINARY
    assert decode(packer(packer(TEXT)), b"x.gz.gz").reason == Reason.FORMAT
    assert decode(packer(TEXT), b"x.gz", max_bytes=len(TEXT) - 1).reason == Reason.TOO_LARGE
    assert decode(packer(TEXT)[:-6], b"x.gz").reason == Reason.DAMAGED
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(__file__, "a")
    assert decode(packer(archive.getvalue()), b"a.tar.gz").reason == Reason.BINARY


def test_without_zstd(run, tmp_path):
    """Counted, the pip command once; and read as soon as it is there."""
    write_files(tmp_path / "d", {name: zstd_packed(TEXT) for name in ("a.zst", "b.zst")})
    write_files(tmp_path, {"d/c": TEXT, "r.jsonl.zst": zstd_packed(b'{"text":"a"}\n')})
    write_files(tmp_path / "no", {"sitecustomize.py": f"import sys; sys.modules[{ZSTD!r}] = None"})
    without = {"PYTHONPATH": f"{tmp_path}/no{os.pathsep}{ROOT}"}
    made = run("pairs d", env=without)
    assert made.rows == []
    assert "skipped: 2 format not supported" in made.err
    assert made.err.count("pip install 'lshdup[zstd]'") == 1
    refused = run("pairs r.jsonl.zst --no-store", code=2, env=without)
    assert "needs backports.zstd" in refused.err
    assert "pip install 'lshdup[zstd]'" in refused.err
    assert len(run("pairs d").rows) == 3


def gzip_stream(file):
    return gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1)


def bomb(path, size, packer):
    with open(path, "wb") as file, packer(file) as stream:
        for _ in range(size >> 20):
            stream.write(b"a" * (1 << 20))


@pytest.mark.long
@pytest.mark.parametrize(
    ("ending", "packer"), [(".gz", gzip_stream), (".zst", partial(zstd.ZstdFile, mode="wb"))]
)
def test_bombs_cost_no_more_than_is_allowed(tmp_path, ending, packer):
    """300 MB in some KB, a document or a line: said, exit code 2, and no memory grows with it."""
    names = [f"a.txt{ending}", f"b.jsonl{ending}", f"c{ending}", "d"]
    for name in names[:2]:
        bomb(tmp_path / name, 300 << 20, packer)
        assert os.stat(tmp_path / name).st_size < 3 << 20
    write_files(tmp_path, {f"c{ending}": gzip.compress(TEXT), "d": TEXT})
    peaks, pipe, environment = [], subprocess.PIPE, {**os.environ, "PYTHONPATH": str(ROOT)}
    for documents, code in ((names[2:], 0), (names, 2)):
        command = [sys.executable, "-m", "lshdup", "pairs", *documents, "--max-bytes", str(3 << 20)]
        options = {"cwd": tmp_path, "env": environment, "stdout": pipe, "stderr": pipe}
        with subprocess.Popen(command, **options) as process:
            out, err = process.stdout.read(), process.stderr.read().decode()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        peaks.append(usage.ru_maxrss)
        assert out == f"c{ending}\td\t1.0\ttext\n".encode(), err
        assert process.returncode == code, err
    assert "2 too large" in err
    assert peaks[1] - peaks[0] < 60 << 10, peaks  # KB


def test_a_line_that_nobody_will_read_takes_no_room(tmp_path):
    bomb(tmp_path / "a.gz", 64 << 20, gzip_stream)
    with open(tmp_path / "a.gz", "ab") as file:
        file.write(gzip.compress(b"\nend\n"))
    with unpack_to(os.fsencode(tmp_path / "a.gz"), tmp_path, 1 << 20) as file:
        status = os.fstat(file.fileno())
        assert status.st_size == (64 << 20) + 5
        assert status.st_blocks * 512 <= 8 << 20
        assert os.pread(file.fileno(), 10, 64 << 20) == b"\nend\n"


def test_no_room_to_unpack(tmp_path, monkeypatch):
    (tmp_path / "a.gz").write_bytes(gzip.compress(TEXT))
    monkeypatch.setattr(os, "pwrite", failing(OSError(28, "No space left on device")))
    with pytest.raises(NoRoomError, match="No space left on device"):
        unpack_to(os.fsencode(tmp_path / "a.gz"), tmp_path, 1 << 20)
    assert [path.name for path in tmp_path.iterdir()] == ["a.gz"]


def test_random_bytes_behind_a_magic():
    rng = random.Random(1)
    for magic in (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"):
        for _ in range(2000):
            with contextlib.suppress(PackedError, TooLongError):
                unpacked(magic + rng.randbytes(rng.randrange(40)), 1 << 20)
    deflated = zlib.compressobj(9, zlib.DEFLATED, 31)
    with pytest.raises(PackedError):
        unpacked(deflated.compress(TEXT) + deflated.flush() + b"trailing", 1 << 20)
