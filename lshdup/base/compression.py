"""gzip, zstd, xz and bzip2: recognised by content, unpacked within bounds; two are written.

The content may be a million times as large as the file: no more of it than allowed is in memory.
"""

import contextlib
import io
import re
import sys
import zlib
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, BinaryIO, cast

from lshdup.base.atomic import MORE_ROOM, explained, temporary_file, temporary_place, usable_folder
from lshdup.base.system import pwrite
from lshdup.base.wording import quoted
from lshdup.errors import InputError

GZIP, ZSTD, XZ, BZIP2 = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh"
MAGICS = (GZIP, ZSTD, XZ, BZIP2)
ENDINGS = (b".gz", b".zst", b".xz", b".bz2")

#: Bytes at the beginning of a file that tell how it is packed. Behind "BZh" are a digit and the
#: mark of the first block, or of the end: text may begin with these letters.
HEAD = 10
_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")


class NoRoomError(InputError):
    """The disk has no room for an unpacked document."""


#: Bytes that are unpacked at a time.
CHUNK = 1 << 20

#: Bytes of memory that a compressed file may ask for: `xz -9` takes 65 MB.
_MOST_MEMORY = 256 << 20
#: Bytes of an xz file that are read at a time; for each of its streams so many are copied.
_XZ_BYTES = 1 << 14

#: How to install the package for zstd. The extra for Parquet has it too.
PIP = "pip install 'lshdup[zstd]'"
#: The detail for a zstd file without the package that reads it.
LACKING = f"zstd: {PIP}"


def is_lacking(detail: str) -> bool:
    """Return whether a detail is LACKING, of this version or another."""
    return detail.startswith("zstd: pip install ")


class PackedError(ValueError):
    """A compressed stream that is damaged or ends early; the message says how."""


class TooLongError(ValueError):
    """A compressed stream is longer than may be; nothing of it is kept."""


def name_of(head: bytes) -> str:
    """Return the program that packed a file: gzip, zstd, xz, bzip2, or "". head : HEAD bytes."""
    for magic, name in ((GZIP, "gzip"), (ZSTD, "zstd"), (XZ, "xz")):
        if head.startswith(magic):
            return name
    return "bzip2" if _BZIP2.match(head) else ""


def bare_name(name: bytes) -> bytes:
    """Return the name of the content: ``page.html.gz`` holds ``page.html``.

    >>> bare_name(b"page.html.GZ"), bare_name(b"notes")
    (b'page.html', b'notes')
    """
    return name[: name.rindex(b".")] if name.lower().endswith(ENDINGS) else name


def can_unpack(head: bytes) -> bool:
    """Return whether the package that unpacks a file is installed."""
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
    """Return the content of a compressed file, all its members one after the other.

    Raises TooLongError beyond `most` bytes, PackedError for damage. Memory: `most` bytes, two
    chunks.
    """
    parts, size = [], 0
    for chunk in chunks(io.BytesIO(data)):
        size += len(chunk)
        if size > most:
            raise TooLongError
        parts.append(chunk)
    return b"".join(parts)


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a file, unpacked, CHUNK bytes at a time.

    Raises PackedError for damage.
    """
    import gzip  # Imported here to keep the start of every command fast.

    packed_by = name_of(file.read(HEAD))
    file.seek(0)
    errors: tuple[type[Exception], ...] = (gzip.BadGzipFile, zlib.error)
    with contextlib.ExitStack() as stack:
        stream = file
        if packed_by == "gzip":
            stream = stack.enter_context(cast("BinaryIO", gzip.GzipFile(fileobj=file)))
        elif packed_by == "zstd":
            zstd = _import_zstd()
            errors = (zstd.ZstdError,)
            stream = stack.enter_context(zstd.ZstdFile(file))
        elif packed_by == "xz":
            lzma = import_module("lzma")
            errors = (lzma.LZMAError,)
            stream = cast("BinaryIO", _XzReader(file, lzma))
        elif packed_by == "bzip2":
            errors = (OSError,)
            stream = stack.enter_context(import_module("bz2").BZ2File(file))
        try:
            while chunk := stream.read(CHUNK):
                yield chunk
        except EOFError:
            message = "it ends before its end: cut off?"
            raise PackedError(message) from None
        except errors as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            message = str(error).removeprefix("Unable to decompress Zstandard data: ")
            if "limit exceeded" in message:
                message = f"to unpack it takes more than {_MOST_MEMORY >> 20} MB of memory"
            raise PackedError(message) from None


class _XzReader:
    """The content of an xz file, all its streams, within bounds, which `lzma` has not."""

    def __init__(self, file: BinaryIO, lzma: ModuleType) -> None:
        self._file = file
        self._new = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, _MOST_MEMORY)
        self._stream = self._new()

    def read(self, most: int) -> bytes:
        """Return at most so many bytes, none at the end. Raises EOFError, LZMAError."""
        while True:
            data = b""
            if self._stream.eof:  # Streams may stand one after the other, with zeros between.
                data = self._stream.unused_data + self._file.read(_XZ_BYTES)
                data = data.lstrip(b"\0")
                if not data.startswith(XZ):
                    return b""
                self._stream = self._new()
            elif self._stream.needs_input and not (data := self._file.read(_XZ_BYTES)):
                raise EOFError
            chunk: bytes = self._stream.decompress(data, most)
            if chunk:
                return chunk


def unpack_to(
    path: bytes,
    folder: Path | None,
    longest_line: int = sys.maxsize,
    most: int = sys.maxsize,
    text: bytes | None = None,
) -> IO[bytes]:
    """Return a temporary file with the content of a compressed file, for reading anywhere in it.

    Raises PackedError for damage, TooLongError beyond `most` bytes, OSError if the file cannot be
    read, and NoRoomError.

    path : the file.
    folder : where to unpack; None: where the system has temporary files.
    longest_line : the rest of a longer line is a hole that takes no room on the disk.
    text : written in the place of the content.
    """
    unpacking = partial(
        explained,
        f"{quoted(path)} cannot be unpacked in {temporary_place(folder)}",
        MORE_ROOM,
        NoRoomError,
    )
    with contextlib.ExitStack() as stack, open(path, "rb") as packed:  # noqa: PTH123 (bytes path)
        with unpacking():
            file = stack.enter_context(temporary_file(usable_folder(folder), buffering=0))
        line = size = 0  # bytes of the last line, and of all
        for chunk in chunks(packed) if text is None else [text]:
            if size + len(chunk) > most:
                raise TooLongError
            newline = chunk.rfind(b"\n")
            if newline >= 0 or line <= longest_line:
                data, at = memoryview(chunk), size
                with unpacking():
                    while len(data):
                        written = pwrite(file.fileno(), data, at)
                        data, at = data[written:], at + written
            size += len(chunk)
            line = line + len(chunk) if newline < 0 else len(chunk) - newline - 1
        file.truncate(size)
        stack.pop_all()
        return file


@contextlib.contextmanager
def packing(file: BinaryIO, name: bytes) -> Iterator[IO[bytes]]:
    """Yield a stream that compresses to `file` as the ending of `name` says; deterministic."""
    low = name.lower()
    if low.endswith(b".gz"):
        import gzip  # Imported here to keep the start of every command fast.

        with gzip.GzipFile(
            filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0
        ) as stream:
            yield cast("IO[bytes]", stream)
    elif low.endswith(b".zst"):
        zstd = _import_zstd()
        known = zstd.CompressionParameter
        options = {known.compression_level: 3, known.checksum_flag: 1}
        with zstd.ZstdFile(file, "wb", options=options) as stream:
            stream.write(b"")  # or empty content would have no frame
            yield stream
    else:
        yield file
