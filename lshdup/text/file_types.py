"""Which office format some bytes are, by what is in them; a mail also by its name. Called by formats.py."""

import re
import struct
import zlib

#: What documents begin with that need a reader; shorter than eight bytes or cut there.
PDF, ZIP, OLE, RTF = b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"{\\rtf"
MAGICS = (PDF, ZIP, OLE, RTF)
MAIL_ENDING = b".eml"
#: Recognised, but not to be read without a password.
ENCRYPTED = "encrypted"

_DECLARED = {
    b"application/epub+zip": "epub",
    b"application/vnd.oasis.opendocument.text": "odt",
    b"application/vnd.oasis.opendocument.spreadsheet": "ods",
}
_MAIN_PARTS = ((b"word/document", "docx"), (b"xl/workbook", "xlsx"), (b"ppt/presentation", "pptx"))
_OOXML_BEGINS = (
    b"[Content_Types].xml",
    b"_rels/",
    b"docProps/",
    b"word/",
    b"xl/",
    b"ppt/",
    b"customXml/",
)
_CONTAINER = b"META-INF/container.xml"  # of EPUB, whose first member should be the declaration, and often is not
_END_OF_ZIP, _ENTRY_OF_ZIP = b"PK\x05\x06", b"PK\x01\x02"
#: Bytes of a declaration, packed or not, that are looked at.
_LONGEST_DECLARED = 128

#: What is said of containers of a kind that nobody here reads.
UNKNOWN = {ZIP: "a zip archive of unknown kind", OLE: "a compound file of unknown kind"}

#: Streams of compound files, by which they are known.
_STREAMS = (
    ("EncryptedPackage", ENCRYPTED),
    ("WordDocument", "doc"),
    ("Workbook", "xls"),
    ("Book", "xls"),
    ("PowerPoint Document", "ppt"),
    ("__properties_version1.0", "msg"),
)

_HEADER = re.compile(rb"[!-9;-~]+:[^\r\n]*(?:\r?\n[ \t]+[^\r\n]*)*\r?\n")
_MIME_HEADER = re.compile(rb"(?im)^(?:mime-version|content-type|content-transfer-encoding)[ \t]*:")


def kind_of(data: bytes, name: bytes) -> str:
    """The kind of an office document or a mail (a key of `extractor.TYPES`, or "eml"), ENCRYPTED, or "" for anything else."""
    if data.startswith(PDF):
        return "pdf"
    if data.startswith(RTF):
        return "rtf"
    if data.startswith(ZIP):
        return _kind_of_zip(data)
    if data.startswith(OLE):
        return _kind_of_compound(data)
    return "eml" if name.lower().endswith(MAIL_ENDING) and _is_mail(data) else ""


def _kind_of_zip(data: bytes) -> str:
    """By what a member called mimetype declares, which should be the first one, or else by the names in the directory at the end."""
    (name_size,) = struct.unpack_from("<26xH", data[:30].ljust(30, b"\0"))
    first = data[30 : 30 + name_size]
    if first == b"mimetype":
        (size,) = struct.unpack_from("<I", data, 18)
        return _declared(data, 0, size)
    end = data.rfind(_END_OF_ZIP, max(0, len(data) - (1 << 16) - 22))
    if 0 <= end <= len(data) - 22:
        size, start = struct.unpack_from("<12xII", data, end)
        begin = max(0, end - size)
        if start + size <= end and not data.startswith(
            _ENTRY_OF_ZIP, begin
        ):  # there is something between the directory and its end
            begin = start
        names = data[begin : begin + size]
        if b"[Content_Types].xml" not in names:
            return _by_directory(data, names, begin - start) or (
                "epub" if _CONTAINER in names else ""
            )
    elif first.startswith(_OOXML_BEGINS):  # it has lost its end: the reader will say so
        names = data
    else:
        return ""
    return next((kind for part, kind in _MAIN_PARTS if part in names), "")


def _by_directory(data: bytes, directory: bytes, shift: int) -> str:
    """By the member called mimetype, wherever it is. shift : bytes before the archive, which its directory does not count."""
    at = directory.find(b"mimetype")
    while at >= 0:
        entry = at - 46
        if (
            entry >= 0
            and directory.startswith(_ENTRY_OF_ZIP, entry)
            and directory[entry + 28 : entry + 30] == b"\x08\0"
        ):
            (size,) = struct.unpack_from("<I", directory, entry + 20)
            (start,) = struct.unpack_from("<I", directory, entry + 42)
            return _declared(data, start + shift, size)
        at = directory.find(b"mimetype", at + 1)
    return ""


def _declared(data: bytes, member: int, size: int) -> str:
    """The kind that the member at this place declares. size : of what is packed; 0 if that is not known there."""
    if not data.startswith(ZIP, member):
        return ""
    method, name_size, extra_size = struct.unpack_from(
        "<8xH16xHH", data[member : member + 30].ljust(30, b"\0")
    )
    start = member + 30 + name_size + extra_size
    declared = data[start : start + min(size or 64, _LONGEST_DECLARED)]
    if method == zlib.DEFLATED:
        try:
            declared = zlib.decompressobj(-zlib.MAX_WBITS).decompress(declared, _LONGEST_DECLARED)
        except zlib.error:
            return ""
    declared = declared.strip()
    known = _DECLARED.get(declared) or _DECLARED.get(declared.removesuffix(b"-template"))
    return known or next(
        (kind for text, kind in _DECLARED.items() if not size and declared.startswith(text)), ""
    )


def _kind_of_compound(data: bytes) -> str:
    """By the first entry of the directory with a name that is known; entries are at multiples of 128 bytes."""
    found = [(at, name, kind) for name, kind in _STREAMS if (at := _entry(data, name)) >= 0]
    if not found:
        return ""
    at, name, kind = min(found)
    return (
        ENCRYPTED
        if any(each[2] == ENCRYPTED for each in found) or _needs_password(data, at, name)
        else kind
    )


def _entry(data: bytes, name: str) -> int:
    text = (name + "\0").encode("utf-16-le")
    at = data.find(text)
    while at >= 0 and at % 128:
        at = data.find(text, at + 1)
    return at


def _needs_password(data: bytes, entry: int, name: str) -> bool:
    """Whether a Word or Excel file of the old formats says that it is encrypted (in the header of its text; in an early record)."""
    (shift,) = struct.unpack_from("<30xH", data.ljust(32, b"\0"))
    if len(data) < entry + 128 or not 7 <= shift <= 12:
        return False
    (sector,) = struct.unpack_from("<I", data, entry + 116)
    start = (sector + 1) << shift
    if name == "WordDocument" and start + 12 <= len(data):
        return bool(struct.unpack_from("<H", data, start + 10)[0] & 0x0100)
    if name in ("Workbook", "Book"):
        for _ in range(8):
            if start + 4 > len(data):
                break
            record, size = struct.unpack_from("<HH", data, start)
            if record == 0x2F:
                return True
            start += 4 + size
    return False


def _is_mail(data: bytes) -> bool:
    """Whether it begins with header lines, some of them MIME's, and then an empty line or the end."""
    head = data[: 1 << 16]
    at, lines = 0, 0
    while (line := _HEADER.match(head, at)) is not None:
        at, lines = line.end(), lines + 1
    ends = at == len(head) or head[at : at + 1] == b"\n" or head[at : at + 2] == b"\r\n"
    return lines > 1 and ends and _MIME_HEADER.search(head[:at]) is not None
