"""Archives: zip and tar, WARC files and MediaWiki dumps: their members, and what is in them."""

import os
import re
import stat
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import lru_cache
from typing import Any, BinaryIO, Self
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from lshdup.base.compression import CHUNK
from lshdup.base.forms import declare_page
from lshdup.base.frozen import dataclass
from lshdup.base.memory import Buffer
from lshdup.base.ragged import StringTable
from lshdup.base.skipped import Reason
from lshdup.base.system import pread
from lshdup.sources.files import Contents, read_spans
from lshdup.sources.readers import ContentReader, Reader, is_archive, join_contents
from lshdup.sources.records import (
    LONGEST_NAME,
    Members,
    RecordError,
    RecordFields,
    RecordList,
    Spans,
    inner_path,
    most_unpacked,
    too_large_unpacked,
)
from lshdup.text.encodings import fits

# --- zip ------------------------------------------------------------------------------------------

#: Records of the format (APPNOTE.TXT 4.3): the end of the directory, what leads to the larger end
#: of an archive with more members or bytes, this end, a directory's entry, and a member's header.
_END, _LOCATOR = struct.Struct("<4s4H2LH"), struct.Struct("<4sLQL")
_END_64, _ENTRY = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4s6H3L5H2L")
_HEADER = struct.Struct("<4s5H3L2H")

#: Behind the last record is a comment of at most so many bytes, like names and extra fields.
_LONGEST_FIELD = (1 << 16) - 1

_STORED, _DEFLATED = 0, 8
_IS_ENCRYPTED, _IS_UTF8 = 1, 1 << 11
_IN_EXTRA = (1 << 32) - 1  # a number that is in the extra field for 64 bits
_UNIX = 3


@dataclass(frozen=True)
class _Directory:
    """The n members of an archive, in the order of their bytes.

    names : n names.
    starts : int64 array of shape (n + 1,), first byte of each header, and of the directory.
    order : int64 array of shape (n,), place of each in the directory.
    sizes, packed, methods, checksums, flags, modes : int64 arrays of shape (n,); modes are those
        of Unix, or 0.
    """

    names: StringTable
    starts: NDArray[np.int64]
    order: NDArray[np.int64]
    sizes: NDArray[np.int64]
    packed: NDArray[np.int64]
    methods: NDArray[np.int64]
    checksums: NDArray[np.int64]
    flags: NDArray[np.int64]
    modes: NDArray[np.int64]


class ZipFile(Reader):
    """A zip archive: the directory at the end, and the members, stored or deflated.

    The directory is read here and not by `zipfile`, which decodes names, refuses the whole archive
    for one wrong name, and takes ten times the time and memory a member.
    """

    def list_records(self) -> RecordList:
        """Return the members. Raises RecordError if the archive is damaged, or a bomb."""
        found = _directory_of(self.file)
        most = most_unpacked(os.fstat(self.file).st_size, self.longest)
        if found.sizes.sum(dtype=np.float64) > most:  # integers could overflow
            raise too_large_unpacked(most, self.longest)
        members = Members(self.longest)
        paths = list(found.names)
        for row in np.argsort(found.order).tolist():
            if paths[row].endswith(b"/"):
                continue
            number, name = int(found.order[row]) + 1, inner_path(paths[row])
            if refused := _refuse_of_zip(found, row, name, self.fields):
                members.skip(number, name, *refused)
            else:
                members.add(number, int(found.starts[row]), int(found.sizes[row]), name)
        return members.listed()

    def texts(self, spans: Spans, buffer: Buffer) -> Contents:
        """Return the bytes of members. spans : they begin at the headers."""
        starts, found = spans[0], _directory_of(self.file)
        rows = np.searchsorted(found.starts, starts, side="right") - 1
        if not np.array_equal(found.starts[rows], starts) or rows.max() >= len(found.order):
            raise RecordError(Reason.CHANGED, "its archive is another one now")
        # No member reads the bytes of the next one: overlapping members make the worst bombs.
        most = _HEADER.size + 2 * _LONGEST_FIELD + found.packed[rows]
        sizes = np.minimum(found.starts[rows + 1] - starts, most)
        read = read_spans(self.file, (starts, sizes), buffer)
        view = read.text.data
        each = zip(rows.tolist(), read.starts.tolist(), sizes.tolist(), strict=True)
        return join_contents(
            ((row, view[place : place + span]) for row, place, span in each),
            lambda member: _content(found, *member),
        )


def _content(found: _Directory, row: int, span: memoryview) -> bytes:
    """Return the content of a member, from the bytes of its header on. Raises RecordError."""
    size, content = int(found.sizes[row]), None
    try:
        signature, *_, name, extra = _HEADER.unpack_from(span)
        start = _HEADER.size + name + extra
        packed = span[start : start + int(found.packed[row])]
        if signature == b"PK\x03\x04" and len(packed) == found.packed[row]:
            content = (
                packed.tobytes()
                if found.methods[row] == _STORED
                else zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1)
            )
    except (zlib.error, struct.error) as error:
        raise RecordError(Reason.DAMAGED, str(error)) from None
    if content is None:
        detail = "its header is not where the directory says, or it overlaps the next member"
        raise RecordError(Reason.DAMAGED, detail)
    if len(content) != size or zlib.crc32(content) != found.checksums[row]:
        raise RecordError(Reason.DAMAGED, "its content is not what the directory says")
    return content


def _refuse_of_zip(
    found: _Directory, row: int, name: bytes, fields: RecordFields
) -> tuple[Reason, str] | None:
    mode, method = int(found.modes[row]), int(found.methods[row])
    if stat.S_ISLNK(mode):
        return Reason.LINK, ""
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return Reason.SPECIAL, ""
    if refused := _refused_name(name, hidden=fields.hidden):
        return refused
    if found.flags[row] & _IS_ENCRYPTED:
        return Reason.ENCRYPTED, ""
    if method not in (_STORED, _DEFLATED):
        return Reason.FORMAT, f"compressed by method {method} in a zip archive"
    if found.starts[row] == found.starts[row + 1]:
        return Reason.DAMAGED, "it has the bytes of another member"
    return None


def _directory_of(file: int) -> _Directory:
    """Return the directory of an open archive, which is read once while it does not change."""
    status = os.fstat(file)
    key = status.st_dev, status.st_ino, status.st_mtime_ns
    return _read_directory(_Opened(file, status.st_size, key))


@dataclass(frozen=True)
class _Opened:
    """An open archive that is equal to another one if both are the same file, unchanged."""

    file: int = field(compare=False)
    size: int
    key: tuple[int, ...]


@lru_cache(8)
def _read_directory(archive: _Opened) -> _Directory:
    """Read the directory of an archive. Raises RecordError if it is damaged."""
    try:
        start, size, shift = _find_directory(archive)
        return _parse_directory(pread(archive.file, size, start), start, shift)
    except (struct.error, ValueError, OverflowError) as error:
        raise RecordError(Reason.DAMAGED, f"its directory is damaged: {error}") from None


def _find_directory(archive: _Opened) -> tuple[int, int, int]:
    """Return where the directory begins, its bytes, and what stands before the archive."""
    behind = min(archive.size, _END.size + _LONGEST_FIELD)
    tail = pread(archive.file, behind, archive.size - behind)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0:
        raise RecordError(Reason.DAMAGED, "no directory at its end: cut off?")
    end = archive.size - behind + at
    *_, size, offset, _ = _END.unpack_from(tail, at)
    locator = pread(archive.file, _LOCATOR.size, max(end - _LOCATOR.size, 0))
    if locator.startswith(b"PK\x06\x07"):
        _, _, there, _ = _LOCATOR.unpack(locator)
        for place in (there, end - _LOCATOR.size - _END_64.size):  # the second: shifted
            larger = pread(archive.file, _END_64.size, place) if 0 <= place < end else b""
            if larger.startswith(b"PK\x06\x06"):
                *_, size, offset = _END_64.unpack(larger)
                end = place
    start = end - size
    if start < offset:
        message = f"it begins at byte {start}, not at {offset}"
        raise ValueError(message)
    return start, size, start - offset


def _parse_directory(data: bytes, end: int, shift: int) -> _Directory:
    rows: list[tuple[int, ...]] = []
    names: list[bytes] = []
    at = 0
    while at < len(data):
        (
            signature, version, _, flags, method, _, _, checksum, packed, size, name_size,
            extra_size, comment_size, _, _, attributes, start,
        ) = _ENTRY.unpack_from(data, at)  # fmt: skip
        if signature != b"PK\x01\x02":
            message = f"no entry at byte {at} of it"
            raise ValueError(message)
        at += _ENTRY.size
        name, extra = data[at : at + name_size], data[at + name_size : at + name_size + extra_size]
        at += name_size + extra_size + comment_size
        if _IN_EXTRA in (size, packed, start):
            size, packed, start = _large_numbers(extra, size, packed, start)
        mode = attributes >> 16 if version >> 8 == _UNIX else 0
        if start + shift >= end:
            message = f"a member begins at byte {start}"
            raise ValueError(message)
        rows.append((start + shift, size, min(packed, end), method, checksum, flags, mode))
        names.append(_decoded(name, flags))
    table = np.array(rows, np.int64).reshape(-1, 7)
    order = np.argsort(table[:, 0], kind="stable")
    starts, *columns = np.ascontiguousarray(table[order].T)
    members = StringTable.from_strings(names).take(order)
    return _Directory(members, np.append(starts, end), order, *columns)


def _large_numbers(extra: bytes, *numbers: int) -> tuple[int, ...]:
    """Return numbers of which some are in the extra field for 64 bits, in this order."""
    at = 0
    while at + 4 <= len(extra):
        tag, size = struct.unpack_from("<HH", extra, at)
        if tag == 1:
            values = iter(struct.unpack_from(f"<{size // 8}Q", extra, at + 4))
            return tuple(next(values, each) if each == _IN_EXTRA else each for each in numbers)
        at += 4 + size
    return numbers


def _decoded(name: bytes, flags: int) -> bytes:
    """Return a name as UTF-8 if it is that, or was written by the rule; else its bytes."""
    if flags & _IS_UTF8 or name.isascii():
        return name
    try:
        name.decode()
    except UnicodeDecodeError:
        return name.decode("cp437").encode()
    return name


# --- tar -----------------------------------------------------------------------------------------

_TAR_END = bytes(tarfile.BLOCKSIZE)

#: Headers whose content is a name or fields of the next member, which the library keeps in memory,
#: and the most bytes of such content.
_EXTENSIONS = frozenset(
    (
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
    )
)
_LONGEST_EXTENSION = 1 << 20


class _Member(tarfile.TarInfo):
    """A header whose sizes are no traps: the library would go back in the file, and never end."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.size < 0:
            message = "negative size"
            raise tarfile.HeaderError(message)
        if member.type in _EXTENSIONS and member.size > _LONGEST_EXTENSION:
            message = f"a name or fields of {member.size} bytes, at most {_LONGEST_EXTENSION}"
            raise tarfile.HeaderError(message)
        return member


class TarFile(Reader):
    """A tar archive. The standard library reads the headers; a member is a part of the file."""

    def list_records(self) -> RecordList:
        """Return the members. Raises RecordError if the file is no archive."""
        members, number = Members(self.longest), 0
        size = os.fstat(self.file).st_size
        try:
            with open(os.dup(self.file), "rb", buffering=1 << 16) as archive:  # noqa: PTH123 (a descriptor)
                for number, member in enumerate(_members_of_tar(archive), 1):
                    if member.isdir():
                        continue
                    name = inner_path(os.fsencode(member.name))
                    if refused := _refuse_of_tar(member, name, self.fields, size):
                        members.skip(number, name, *refused)
                    else:
                        members.add(number, member.offset_data, member.size, name)
        except RecursionError:  # The library calls itself for a header in front of a header.
            members.damaged(number + 1, "too many headers in a row for one member")
        except (tarfile.TarError, ValueError, ArithmeticError, LookupError) as error:
            members.damaged(number + 1, str(error))
        return members.listed()


def _members_of_tar(archive: BinaryIO) -> Iterator[tarfile.TarInfo]:
    """Yield the headers of an archive. Raises TarError if it ends without the mark of the end."""
    archive.seek(0)
    tar: Any = tarfile.TarFile(
        fileobj=archive, tarinfo=_Member, encoding="utf-8", errors="surrogateescape"
    )
    while (member := tar.next()) is not None:
        tar.members.clear()  # or the archive would remember all of them
        yield member
    archive.seek(tar.offset)
    if archive.read(tarfile.BLOCKSIZE) != _TAR_END:
        message = f"no header of a member at byte {tar.offset}"
        raise tarfile.ReadError(message)


def _refuse_of_tar(
    member: tarfile.TarInfo, name: bytes, fields: RecordFields, size: int
) -> tuple[Reason, str] | None:
    if member.issym():
        return Reason.LINK, ""
    if member.islnk():
        return Reason.HARD_LINK, f"its content is that of {member.linkname}"
    if member.issparse():
        return Reason.FORMAT, "a sparse file in an archive"
    if not member.isreg():
        return Reason.SPECIAL, ""
    if member.offset_data + member.size > size:
        return Reason.DAMAGED, "the archive ends before its end: cut off?"
    return _refused_name(name, hidden=fields.hidden)


def _refused_name(path: bytes, *, hidden: bool) -> tuple[Reason, str] | None:
    """Return why a member with this path is skipped, or None.

    hidden : whether names that begin with a dot are taken.
    """
    if not hidden and (b"/" + path).find(b"/.") >= 0:
        return Reason.HIDDEN, ""
    if is_archive(path):
        return Reason.NESTED, "unpack the archive around it to compare what is in it"
    return None


# --- WARC ----------------------------------------------------------------------------------------

#: A record's header has at most so many bytes.
_LONGEST_HEADER = 1 << 16

#: Media types of pages, and of what is plain text even if it looks like a page.
_PAGES, _PLAIN = {b"text/html", b"application/xhtml+xml"}, {b"text/plain"}

_DOCUMENTS = {b"response", b"resource", b"conversion"}
_HEXADECIMAL = re.compile(rb"[0-9A-Fa-f]{1,15}")
_HEADER_END = re.compile(rb"\r?\n\r?\n")
_FIELD = re.compile(
    rb"(?im)^(warc-type|warc-target-uri|content-length|content-type|content-encoding|"
    rb"transfer-encoding)"
    rb"[ \t]*:(.*)$"
)


class WarcFile(ContentReader):
    """A WARC file, or a WET file with its texts: the responses, resources and converted texts.

    The records of a crawl that hold no document (requests, descriptions, repeats) are passed over.
    Of a response the body counts, as a browser would get it.
    """

    def list_records(self) -> RecordList:
        """Return the documents. Raises RecordError if the file is no WARC file."""
        members = Members(self.longest)
        at, number, size = 0, 0, os.fstat(self.file).st_size
        while at < size:
            head = pread(self.file, _LONGEST_HEADER, at)
            blank = len(head) - len(head.lstrip(b"\r\n"))
            if blank == len(head):
                at += blank
                continue
            number += 1
            end = _HEADER_END.search(head, blank)
            found = _fields(head[blank : end.start()]) if end else {}
            length = found.get(b"content-length", b"")
            if not end or not head.startswith(b"WARC/", blank) or not length.isdigit():
                members.damaged(number, f"no record begins at byte {at}")
                break
            start, at = at + blank, at + end.end() + int(length[:19])
            name = found.get(b"warc-target-uri", b"").strip(b"<>")
            if at > size:
                members.damaged(number, "its last record is cut off")
            elif found.get(b"warc-type") in _DOCUMENTS:
                members.add(number, start, at - start, name)
        return members.listed()

    def content(self, part: memoryview) -> bytes:
        """Return the content of a record: of a response its body. Raises RecordError."""
        _, content = _split(part.tobytes())
        if not content.startswith(b"HTTP/"):
            return content
        header, body = _split(content)
        found = _fields(header)
        if b"chunked" in found.get(b"transfer-encoding", b"").lower():
            body = _joined_chunks(body)
        encoding = found.get(b"content-encoding", b"").lower()
        if encoding == b"deflate":
            return _inflated(body, self.longest)
        # Many crawlers unpack the body, and keep the field.
        if encoding == b"br" and not fits(body, "utf-8"):
            raise RecordError(Reason.FORMAT, "a response packed by brotli")
        return body  # gzip and zstd are unpacked like a packed file

    def declare(self, start: int, name: bytes) -> bytes:
        """Return the name of a record: the media type of the response or of the record says what is
        a page, and what is none.
        """
        header, content = _split(pread(self.file, _LONGEST_HEADER, start))
        if content.startswith(b"HTTP/"):
            header, _ = _split(content)
        media = _fields(header).get(b"content-type", b"").partition(b";")[0].strip().lower()
        return declare_page(name, media in _PAGES) if media in _PAGES | _PLAIN else name


def _fields(header: bytes) -> dict[bytes, bytes]:
    """Return the fields of a header that matter here, by name in small letters."""
    return {name.lower(): value.strip() for name, value in _FIELD.findall(header)}


def _split(data: bytes) -> tuple[bytes, bytes]:
    """Return a header, and what follows the empty line."""
    end = _HEADER_END.search(data, 0, _LONGEST_HEADER)
    return (data[: end.start()], data[end.end() :]) if end else (data, b"")


def _joined_chunks(body: bytes) -> bytes:
    """Return the content of a body in chunks (RFC 9112, 7.1), or the body if it has none."""
    parts, at = [], 0
    while at < len(body):
        line = body.find(b"\r\n", at)
        digits = body[at : max(line, at)].partition(b";")[0].strip()
        if not _HEXADECIMAL.fullmatch(digits):
            return body
        size = int(digits, 16)
        if not size:
            break
        parts.append(body[line + 2 : line + 2 + size])
        at = line + 2 + size + 2
    return b"".join(parts)


def _inflated(body: bytes, longest: int) -> bytes:
    """Return a body that was deflated, with the header of zlib or without; else the body."""
    for bits in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        try:
            content = zlib.decompressobj(bits).decompress(body, longest + 1)
        except zlib.error:
            continue
        if len(content) > longest:
            detail = f"more than {longest} bytes when unpacked, --max-bytes is {longest}"
            raise RecordError(Reason.TOO_LARGE, detail)
        return content
    return body


# --- MediaWiki -----------------------------------------------------------------------------------


class WikiDump(ContentReader):
    """A MediaWiki dump: the pages, and the text of the last revision that each has.

    Expat finds the pages without building a tree: a dump of any size costs one pass and little
    memory. A page is then read and parsed alone. Declarations of entities are refused.
    """

    def list_records(self) -> RecordList:
        """Return the pages; all revisions and markup count for the limit of their bytes.

        Raises RecordError if the dump has none because of damage.
        """
        members = Members(self.longest)
        title: list[str] = []
        start = number = letters = 0

        def begin(name: str, _: dict[str, str]) -> None:
            nonlocal start, number, letters
            if name == "page":
                start, number = parser.CurrentByteIndex, number + 1
                title.clear()
                letters = 0
            elif name == "title":
                parser.CharacterDataHandler = collect

        def collect(text: str) -> None:
            nonlocal letters
            if letters <= LONGEST_NAME:  # one that is longer is no name, and may fill the memory
                title.append(text)
                letters += len(text)

        def end(name: str) -> None:
            if name == "title":
                parser.CharacterDataHandler = None
            elif name == "page":
                last = parser.CurrentByteIndex
                stop = last + pread(self.file, 64, last).find(b">") + 1
                members.add(number, start, stop - start, "".join(title).encode())

        parser = _parser(begin, end)
        at = 0
        try:
            while chunk := pread(self.file, CHUNK, at):
                parser.Parse(chunk)
                at += len(chunk)
            parser.Parse(b"", True)
        except (expat.ExpatError, ValueError) as error:
            members.damaged(number + 1, f"its XML is damaged: {error}")
        return members.listed()

    def content(self, part: memoryview) -> bytes:
        """Return the text of the last revision of a page. Raises RecordError."""
        parts: list[str] = []

        def begin(name: str, _: dict[str, str]) -> None:
            if name == "text":
                parts.clear()
                parser.CharacterDataHandler = parts.append

        def end(name: str) -> None:
            if name == "text":
                parser.CharacterDataHandler = None

        parser = _parser(begin, end)
        try:
            parser.Parse(part.tobytes(), True)
        except (expat.ExpatError, ValueError) as error:
            raise RecordError(Reason.DAMAGED, f"its XML is damaged: {error}") from None
        return "".join(parts).encode()


def _parser(
    begin: Callable[[str, dict[str, str]], None], end: Callable[[str], None]
) -> expat.XMLParserType:
    """Return a parser of UTF-8 that raises ValueError for a declaration of an entity."""

    def refuse(*_: object) -> None:
        message = "entities are declared, which no dump does"
        raise ValueError(message)

    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.EntityDeclHandler = refuse
    return parser
