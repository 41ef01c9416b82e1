"""File types of office documents, recognised by content."""

import io
import re
import struct
import zipfile
import zlib

#: The first bytes of documents that need a reader: at most eight.
PDF, ZIP, OLE, RTF = b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"{\\rtf"
MAGICS = (PDF, ZIP, OLE, RTF)
#: The last four bytes of the names of such documents.
OFFICE_ENDINGS = (
    b".pdf", b".doc", b"docx", b".ppt", b"pptx", b".xls", b"xlsx", b".odt", b".ods", b"epub",
    b".rtf", b".msg",
)  # fmt: skip
#: The type of a document that nobody can read without its password.
ENCRYPTED = "encrypted"

#: The errors that `zipfile` raises for a damaged archive.
ZIP_ERRORS = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, LookupError,
    ValueError, struct.error, zlib.error,
)  # fmt: skip
#: An archive of more members is no office document; `zipfile` takes 10 µs and 600 bytes a member.
_MOST_MEMBERS = 100_000
_MEMBER_ENTRY = b"PK\x01\x02"
#: Bytes of the member `mimetype` that are unpacked: longer content is no declaration.
_LONGEST_DECLARATION = 128

_OPEN_DOCUMENT = b"application/vnd.oasis.opendocument."
_DECLARED = {
    b"application/epub+zip": "epub",
    _OPEN_DOCUMENT + b"text": "odt",
    _OPEN_DOCUMENT + b"spreadsheet": "ods",
}
#: A first member that declares the type, not compressed, and the beginning of the second member.
_FIRST_DECLARATION = re.compile(rb"(?s)PK\x03\x04.{26}mimetype([!-~]{,127}?)\s*PK")
#: Names in Office Open XML: of the main part, and of members that stand first.
_MAIN_PARTS = (("word/document", "docx"), ("xl/workbook", "xlsx"), ("ppt/presentation", "pptx"))
_CONTENT_TYPES = "[Content_Types].xml"
_OOXML_FIRST = re.compile(
    rb"(?s)PK\x03\x04.{26}(?:\[Content_Types\]\.xml|_rels/|docProps/|word/|xl/|ppt/|customXml/)"
)
#: The member by which an EPUB without a declaration is known.
_EPUB_CONTAINER = "META-INF/container.xml"

#: Descriptions of containers that are none of the types.
UNKNOWN_CONTAINERS = {ZIP: "a zip archive of unknown kind", OLE: "a compound file of unknown kind"}

#: Names of streams in compound files, and the type that each tells.
_STREAMS = (
    ("EncryptedPackage", ENCRYPTED),
    ("WordDocument", "doc"),
    ("Workbook", "xls"),
    ("Book", "xls"),
    ("PowerPoint Document", "ppt"),
    ("__properties_version1.0", "msg"),
)


def recognize_file_type(data: bytes) -> str:
    """Return the type of an office document; "" for any other file.

    A type is a key of `office_worker.MIME_TYPES`, or `ENCRYPTED`.
    """
    if data.startswith(PDF):
        return "pdf"
    if data.startswith(RTF):
        return "rtf"
    if data.startswith(ZIP):
        return _type_of_zip(data)
    if data.startswith(OLE):
        return _type_of_compound_file(data)
    return ""


def _type_of_zip(data: bytes) -> str:
    """Return the type by the names of the members, or by the declaration in member `mimetype`."""
    if data.count(_MEMBER_ENTRY) > _MOST_MEMBERS:
        return ""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.namelist()
            names = "\n".join(members)
            if _CONTENT_TYPES in names:
                return _ooxml_type(names)
            if "mimetype" in members:
                return _declared_type(_declaration(archive))
            return "epub" if _EPUB_CONTAINER in names else ""
    except ZIP_ERRORS:
        return _type_of_damaged_zip(data)


def _type_of_damaged_zip(data: bytes) -> str:
    """Return the type of an archive without a directory by its first member: it was cut."""
    if found := _FIRST_DECLARATION.match(data):
        return _declared_type(found[1])
    return _ooxml_type(data.decode("latin-1")) if _OOXML_FIRST.match(data) else ""


def _ooxml_type(names: str) -> str:
    return next((file_type for part, file_type in _MAIN_PARTS if part in names), "")


def _declaration(archive: zipfile.ZipFile) -> bytes:
    # Other methods of compression would unpack more than is requested.
    if archive.getinfo("mimetype").compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return b""
    with archive.open("mimetype") as member:
        return member.read(_LONGEST_DECLARATION)


def _declared_type(declaration: bytes) -> str:
    return _DECLARED.get(declaration.strip().removesuffix(b"-template"), "")


def _type_of_compound_file(data: bytes) -> str:
    """Return the type by the first entry of the directory that has a known name."""
    found = [
        (at, name, file_type)
        for name, file_type in _STREAMS
        if (at := _find_entry(data, name)) >= 0
    ]
    if not found:
        return ""
    at, name, file_type = min(found)
    is_encrypted = any(each[2] == ENCRYPTED for each in found) or _needs_password(data, at, name)
    return ENCRYPTED if is_encrypted else file_type


def _find_entry(data: bytes, name: str) -> int:
    """Return the position of a stream's entry; -1 if there is none. Entries have 128 bytes."""
    text = (name + "\0").encode("utf-16-le")
    at = data.find(text)
    while at >= 0 and at % 128:
        at = data.find(text, at + 1)
    return at


def _needs_password(data: bytes, entry: int, name: str) -> bool:
    """Return whether an old Word file (in its header) or Excel file (in a record) is encrypted."""
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
