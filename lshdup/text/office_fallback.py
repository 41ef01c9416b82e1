"""The text of EPUB, ODT and DOCX without the reader, which fails on some files that are whole.

These are zips of XHTML or XML: the HTML reader reads them. Headings, paragraphs and breaks are kept
apart; everything else is the text as it stands. Standard library and the HTML reader only, because
this runs in the worker process (`office_worker`).
"""

import io
import posixpath
import re
import zipfile
from urllib.parse import unquote

from lshdup.text import html

#: Members of more bytes in all are not unpacked.
_MOST_BYTES = 256 << 20
_PAGES = (".xhtml", ".html", ".htm")
_ITEM, _REFERENCE = (
    re.compile(r"(?s)<(?:\w+:)?item\b[^>]*>"),
    re.compile(r"(?s)<(?:\w+:)?itemref\b[^>]*\bidref\s*=\s*[\"']([^\"']*)"),
)
_ATTRIBUTE = re.compile(r"(?s)\b(id|href)\s*=\s*[\"']([^\"']*)")

#: The members of ODT and DOCX with text, in their order.
_PARTS = {
    "odt": re.compile(r"content\.xml"),
    "docx": re.compile(r"word/(?:document|footnotes|endnotes)\.xml"),
}
#: The types of documents that can be read this way.
PACKAGES = ("epub", *_PARTS)
#: What no person reads: hidden and deleted text, notes of reviewers, properties.
_INVISIBLE = re.compile(
    rb"(?s)<(w:del|w:instrText|w:rPr|office:annotation|text:tracked-changes)\b[^>]*(?<!/)>.*?</\1>"
)
_PARAGRAPH = re.compile(rb"<(/?)(?:w:p|text:p|text:h)(?=[\s>/])[^>]*>")
_GAP = re.compile(rb"<(?:w:tab|w:br|w:cr|text:tab|text:s|text:line-break)(?=[\s>/])[^>]*>")
_OTHER = re.compile(rb"<(?!/?p>)[^>]*>")


def read_package(data: bytes, file_type: str) -> bytes:
    """Return the text of a document as UTF-8; b"" if there is none to be had this way.

    Raises zipfile.BadZipFile, or another error of `zipfile`, if the package is damaged.

    file_type : one of PACKAGES.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if file_type == "epub":
            names = _pages_in_order(archive, names)
        else:
            names = [name for name in names if _PARTS[file_type].fullmatch(name)]
        if sum(archive.getinfo(name).file_size for name in names) > _MOST_BYTES:
            return b""
        pages = (archive.read(name) for name in names)
        if file_type != "epub":
            pages = (_page_of(xml) for xml in pages)
        texts = [
            html.visible_text(page, quotes=True)
            for page in (each.decode("utf-8-sig", "replace").encode("utf-8") for each in pages)
            if not html.find_obstacle(page)
        ]
    return b"\n".join(texts).strip()


def _pages_in_order(archive: zipfile.ZipFile, names: list[str]) -> list[str]:
    """Return the pages of an EPUB in reading order; in the order of the zip if it says none."""
    pages = [name for name in names if name.lower().endswith(_PAGES)]
    package = next((name for name in names if name.lower().endswith(".opf")), None)
    if package is None or archive.getinfo(package).file_size > _MOST_BYTES:
        return pages
    opf = archive.read(package).decode("utf-8-sig", "replace")
    places = {}
    for item in _ITEM.findall(opf):
        found = dict(_ATTRIBUTE.findall(item))
        path = posixpath.join(posixpath.dirname(package), unquote(found.get("href", "")))
        places[found.get("id", "")] = posixpath.normpath(path)
    known = set(names)
    order = [places.get(reference, "") for reference in _REFERENCE.findall(opf)]
    return [name for name in dict.fromkeys(order) if name in known] or pages


def _page_of(xml: bytes) -> bytes:
    """Return the XML of a text document as a page of paragraphs."""
    paragraphs = _PARAGRAPH.sub(_paragraph, _GAP.sub(b" ", _INVISIBLE.sub(b"", xml)))
    return b"<html><body>" + _OTHER.sub(b"", paragraphs)


def _paragraph(tag: re.Match[bytes]) -> bytes:
    return b"</p>" if tag[1] else b"<p>"
