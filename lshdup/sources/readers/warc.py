"""WARC files, and WET files with their texts: the responses, resources and converted texts.

The records of a crawl that hold no document (requests, descriptions, repeats) are passed over. Of a
response the body counts, as a browser would get it.
"""

import os
import re
import zlib

from lshdup.base.forms import declare_page
from lshdup.base.skipped import Reason
from lshdup.base.system import pread
from lshdup.sources.readers.members import Members
from lshdup.sources.records import RecordError, RecordFields, RecordList

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


def list_records(file: int, fields: RecordFields, longest: int) -> RecordList:
    """Return the documents of an open file. Raises RecordError if it is no WARC file.

    Parameters
    ----------
    file : descriptor of the file, unpacked.
    fields : not used; every target is taken.
    longest : records of more bytes are skipped.

    """
    del fields
    members = Members(longest)
    at, number, size = 0, 0, os.fstat(file).st_size
    while at < size:
        head = pread(file, _LONGEST_HEADER, at)
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


def read_member(record: bytes, longest: int) -> bytes:
    """Return the content of a record: of a response its body. Raises RecordError.

    longest : a body that is longer when it is unpacked is an error.
    """
    _, content = _split(record)
    if not content.startswith(b"HTTP/"):
        return content
    header, body = _split(content)
    found = _fields(header)
    if b"chunked" in found.get(b"transfer-encoding", b"").lower():
        body = _joined_chunks(body)
    encoding = found.get(b"content-encoding", b"").lower()
    if encoding == b"deflate":
        return _inflated(body, longest)
    if encoding == b"br" and not _is_utf8(body):  # Many crawlers unpack the body, keep the field.
        raise RecordError(Reason.FORMAT, "a response packed by brotli")
    return body  # gzip and zstd are unpacked like a packed file


def declare(file: int, start: int, name: bytes) -> bytes:
    """Return the name of a record of an open file as `forms.page_form` takes it: the media type of
    the response or the record says what is a page, and what is none.
    """
    header, content = _split(pread(file, _LONGEST_HEADER, start))
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


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


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
