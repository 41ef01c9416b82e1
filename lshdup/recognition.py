"""Which office format some bytes are, by what is in them; a mail also by its name. Called by formats.py."""

import re
import struct

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
_OOXML_BEGINS = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"word/", b"xl/", b"ppt/", b"customXml/")
_END_OF_ZIP = b"PK\x05\x06"

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
    """By the first member, which says what an OpenDocument or EPUB is, or by the names in the directory at the end."""
    name_size, extra_size = struct.unpack_from("<26xHH", data.ljust(30, b"\0"))
    first = data[30 : 30 + name_size]
    if first == b"mimetype":
        start = 30 + name_size + extra_size
        (size,) = struct.unpack_from("<I", data, 18)
        declared = data[start : start + (size or 64)].strip()
        known = _DECLARED.get(declared) or _DECLARED.get(declared.removesuffix(b"-template"))
        return known or next((kind for text, kind in _DECLARED.items() if not size and declared.startswith(text)), "")
    end = data.rfind(_END_OF_ZIP, max(0, len(data) - (1 << 16) - 22))
    if 0 <= end <= len(data) - 22:
        size, start = struct.unpack_from("<12xII", data, end)
        names = data[start : start + size] if start + size <= end else data[max(0, end - size) : end]
        if b"[Content_Types].xml" not in names:
            return ""
    elif first.startswith(_OOXML_BEGINS):  # it has lost its end: the reader will say so
        names = data
    else:
        return ""
    return next((kind for part, kind in _MAIN_PARTS if part in names), "")


def _kind_of_compound(data: bytes) -> str:
    """By the first entry of the directory with a name that is known; entries are at multiples of 128 bytes."""
    found = [(at, name, kind) for name, kind in _STREAMS if (at := _entry(data, name)) >= 0]
    if not found:
        return ""
    at, name, kind = min(found)
    return ENCRYPTED if any(each[2] == ENCRYPTED for each in found) or _needs_password(data, at, name) else kind


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
