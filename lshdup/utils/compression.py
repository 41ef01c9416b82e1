"""gzip and zstd: recognised by content, unpacked within bounds, and written. Called by formats.py, rows.py and filtered.py.

What is unpacked may be a thousand times, or a million times, as large as the file: nothing here holds more of it than it is told to.
"""

import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

from lshdup.utils.scratch import new_scratch, write_scratch

GZIP, ZSTD = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"
ENDINGS = (b".gz", b".zst")

#: Bytes that are unpacked at a time.
CHUNK = 1 << 20

#: How to have what zstd needs. (Parquet's extra brings it too.)
PIP = "pip install 'lshdup[zstd]'"
_LACKING = "zstd: "

_SKIPPABLE = 0x184D2A50  # and the fifteen magic numbers behind it: frames of zstd that hold no data
_LAST_BLOCK, _RLE = 1, 1


def lacking() -> str:
    """What is said of a file that zstd made where nothing reads it."""
    return _LACKING + PIP


def is_lacking(detail: str) -> bool:
    """Whether that was said of a file, by this version or another."""
    return detail.startswith(f"{_LACKING}pip install ")


class PackedError(ValueError):
    """A compressed stream that is damaged or ends early; the message says how."""


class TooLongError(ValueError):
    """A compressed stream is longer than may be; nothing of it is kept."""


def is_packed(head: bytes) -> bool:
    """Whether a file begins like one that gzip or zstd made."""
    return head.startswith((GZIP, ZSTD))


def name_of(head: bytes) -> str:
    """What packed a file: gzip, zstd, or nothing."""
    return "gzip" if head.startswith(GZIP) else "zstd" if head.startswith(ZSTD) else ""


def bare_name(name: bytes) -> bytes:
    """The name of what is inside: ``page.html.gz`` holds ``page.html``.

    >>> bare_name(b"page.html.GZ"), bare_name(b"notes")
    (b'page.html', b'notes')
    """
    return name[: name.rindex(b".")] if name.lower().endswith(ENDINGS) else name


def can_unpack(head: bytes) -> bool:
    """Whether what it takes is installed."""
    if not head.startswith(ZSTD):
        return True
    try:
        import zstandard  # noqa: F401
    except ImportError:
        return False
    return True


def unpacked(data: bytes, most: int) -> bytes:
    """What a compressed file holds, all its members one after the other.

    Raises TooLongError if that is more than `most` bytes, and PackedError if it is damaged. Memory: `most` bytes and two chunks.
    """
    parts, size = [], 0
    for chunk in chunks(io.BytesIO(data)):
        size += len(chunk)
        if size > most:
            raise TooLongError
        parts.append(chunk)
    return b"".join(parts)


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """The stream that a compressed file holds, or what is in any other file, CHUNK bytes at a time. Raises PackedError where it is
    damaged.
    """
    head = file.read(4)
    file.seek(0)
    try:
        if not is_packed(head):
            while chunk := file.read(CHUNK):
                yield chunk
            return
        if head.startswith(GZIP):
            with gzip.GzipFile(fileobj=file) as stream:
                while chunk := stream.read(CHUNK):
                    yield chunk
            return
        _check_zstd_end(file)
        yield from _zstd_chunks(file)
    except EOFError:
        message = "it ends before its end: cut off?"
        raise PackedError(message) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise PackedError(str(error)) from None


def _zstd_chunks(file: BinaryIO) -> Iterator[bytes]:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(
            file, read_across_frames=True, closefd=False
        ) as stream:
            while chunk := stream.read(CHUNK):
                yield chunk
    except zstandard.ZstdError as error:
        raise PackedError(str(error).removeprefix("zstd decompress error: ")) from None


def _check_zstd_end(file: BinaryIO) -> None:
    """Raise EOFError if a zstd file ends within a frame, of which its library says nothing; blocks are stepped over, not unpacked."""
    import zstandard

    size = file.seek(0, os.SEEK_END)
    at = 0
    while at < size:
        file.seek(at)
        head = file.read(18)
        magic = int.from_bytes(head[:4], "little")
        if magic & ~0xF == _SKIPPABLE:
            at += 8 + int.from_bytes(head[4:8], "little")
            continue
        try:
            at += zstandard.frame_header_size(head)
            checked = zstandard.get_frame_parameters(head).has_checksum
        except zstandard.ZstdError as error:
            if len(head) < 18:
                raise EOFError from None
            raise PackedError(str(error)) from None
        last = 0
        while not last:
            file.seek(at)
            field = file.read(3)
            if len(field) < 3:
                raise EOFError
            block = int.from_bytes(field, "little")
            last = block & _LAST_BLOCK
            at += 3 + (1 if block >> 1 & 3 == _RLE else block >> 3)
        at += 4 if checked else 0
    file.seek(0)
    if at > size:
        raise EOFError


def unpack_to(path: bytes, folder: Path | None, longest_line: int) -> IO[bytes]:
    """A nameless file with what a compressed file holds, for reading at any place; gone when it is closed or the process ends, however
    it does.

    folder : where to; None: where the system keeps such files (TMPDIR). longest_line : of a line of more bytes than this, which nobody
    will read, the rest is a hole that takes no room on the disk.

    Raises PackedError if it is damaged, OSError if it cannot be read, and NoRoomError if there is no room for it.
    """
    with contextlib.ExitStack() as stack, open(path, "rb") as packed:  # noqa: PTH123 (bytes path)
        file = stack.enter_context(new_scratch(path, folder))
        line = size = 0  # bytes of the last line, and of all
        for chunk in chunks(packed):
            newline = chunk.rfind(b"\n")
            if newline >= 0 or line <= longest_line:
                write_scratch(file, memoryview(chunk), size, path, folder)
            size += len(chunk)
            line = line + len(chunk) if newline < 0 else len(chunk) - newline - 1
        file.truncate(size)
        stack.pop_all()
        return file


@contextlib.contextmanager
def packing(file: BinaryIO, name: bytes) -> Iterator[IO[bytes]]:
    """What is written goes to `file`, compressed as the ending of `name` says; equal content, equal bytes."""
    low = name.lower()
    if low.endswith(b".gz"):
        with gzip.GzipFile(
            filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0
        ) as stream:
            yield cast("IO[bytes]", stream)
    elif low.endswith(b".zst"):
        import zstandard

        with zstandard.ZstdCompressor(level=3, write_checksum=True).stream_writer(
            file, closefd=False
        ) as stream:
            yield stream
    else:
        yield file
