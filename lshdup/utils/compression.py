"""gzip and zstd: recognised by content, unpacked within bounds, and written. Called by formats.py, rows.py and filtered.py.

What is unpacked may be a thousand times, or a million times, as large as the file: nothing here holds more of it than it is told to.
"""

import contextlib
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, BinaryIO, cast

from lshdup.utils.scratch import new_scratch, write_scratch

GZIP, ZSTD = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"
ENDINGS = (b".gz", b".zst")

#: Bytes that are unpacked at a time.
CHUNK = 1 << 20

#: How to have what zstd needs. (Parquet's extra brings it too.)
PIP = "pip install 'lshdup[zstd]'"
_LACKING = "zstd: "


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
        _import_zstd()
    except ImportError:
        return False
    return True


def _import_zstd() -> ModuleType:
    """Return the module for zstd: the standard library's, or before Python 3.14 its backport."""
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


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
    errors: tuple[type[Exception], ...] = (gzip.BadGzipFile, zlib.error)
    with contextlib.ExitStack() as stack:
        stream = file
        if head.startswith(GZIP):
            stream = stack.enter_context(cast("BinaryIO", gzip.GzipFile(fileobj=file)))
        elif head.startswith(ZSTD):
            zstd = _import_zstd()
            errors = (zstd.ZstdError,)
            stream = stack.enter_context(zstd.ZstdFile(file))
        try:
            while chunk := stream.read(CHUNK):
                yield chunk
        except EOFError:
            message = "it ends before its end: cut off?"
            raise PackedError(message) from None
        except errors as error:
            message = str(error).removeprefix("Unable to decompress Zstandard data: ")
            raise PackedError(message) from None


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
        zstd = _import_zstd()
        options = (
            zstd.CompressionParameter.compression_level,
            zstd.CompressionParameter.checksum_flag,
        )
        with zstd.ZstdFile(file, "wb", options=dict(zip(options, (3, 1), strict=True))) as stream:
            stream.write(b"")  # or empty content would have no frame
            yield stream
    else:
        yield file
