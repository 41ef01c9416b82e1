"""The worker process that turns office documents and mails into text, one after the other.

Started, bounded and killed by `office_processes`. Requests come on standard input and replies go to
standard output: lengths, then bytes, nothing else. The process ends when its input does. Imports
the standard library, the HTML reader and, if it is installed, kreuzberg.
"""

import contextlib
import io
import os
import posixpath
import re
import signal
import struct
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO
from urllib.parse import unquote

from lshdup.text import html
from lshdup.text.mail import MailRules, read_mail
from lshdup.text.office_types import ZIP_ERRORS

#: A request: length of the name of the type, number of documents; the length of each of them; then
#: the name and the documents.
REQUEST, LENGTH = struct.Struct("<BI"), struct.Struct("<Q")
#: A reply, of each document: status, length of the payload; then the payload, which is text as
#: UTF-8 or a detail.
REPLY = struct.Struct("<cQ")
TEXT, ENCRYPTED, DAMAGED, LARGE, MEMORY, NO_READER = b"T", b"E", b"D", b"L", b"M", b"N"
FAILED = b"F"
#: The reply before any request.
READY = REPLY.pack(TEXT, 0)

#: Media types that kreuzberg knows the file types by.
_OOXML = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."
MIME_TYPES = {
    "pdf": "application/pdf",
    "docx": _OOXML + "wordprocessingml.document",
    "pptx": _OOXML + "presentationml.presentation",
    "xlsx": _OOXML + "spreadsheetml.sheet",
    "odt": _ODF + "text",
    "ods": _ODF + "spreadsheet",
    "epub": "application/epub+zip",
    "rtf": "application/rtf",
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint",
    "msg": "application/vnd.ms-outlook",
}
#: The type of a mail; two digits that tell the rules follow it.
MAIL = "mail"
#: Frames that reading a mail takes at most: each part in a part takes one.
_DEEPEST = 250

#: Seconds after the time limit of a document, when this process ends itself if nothing else has.
_GRACE = 2.0
_LONGEST_DETAIL = 200


def main(seconds: float, memory: int, of_mails: bool) -> None:
    """Serve requests until the input ends.

    seconds, memory : bounds for one document, in seconds and bytes.
    of_mails : whether the documents will be mails.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The program that started this process decides.
    _limit_resources(memory)
    # Libraries that print write to stderr, so the pipe carries replies only.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    # Imported here so that no document is charged for the time. A document says if it is missing.
    with contextlib.suppress(ImportError):
        if not of_mails:
            import kreuzberg  # noqa: F401
    try:
        replies.write(READY)
        replies.flush()
        while len(head := requests.read(REQUEST.size)) == REQUEST.size:
            name_size, count = REQUEST.unpack(head)
            sizes = [size for (size,) in LENGTH.iter_unpack(requests.read(count * LENGTH.size))]
            file_type = requests.read(name_size).decode("ascii")
            documents = [requests.read(size) for size in sizes]
            if sum(map(len, documents)) < sum(sizes):
                return
            for data in documents:
                # The default action of this signal ends the process even while compiled code
                # runs. Nothing else would if the program has been killed.
                signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE)
                _reply(replies, *_extract(data, file_type))
                signal.setitimer(signal.ITIMER_REAL, 0)
    except (BrokenPipeError, MemoryError):
        os._exit(1)


def _limit_resources(memory: int) -> None:
    import resource

    for kind, limit in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 64 << 20),
    ):
        _, most = resource.getrlimit(kind)
        allowed = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(kind, (allowed, most))


def _reply(replies: BinaryIO, status: bytes, payload: bytes) -> None:
    replies.write(REPLY.pack(status, len(payload)))
    replies.write(payload)
    replies.flush()


def _extract(data: bytes, file_type: str) -> tuple[bytes, bytes]:
    """Return the status and the payload of the reply."""
    try:
        if file_type.startswith(MAIL):
            sys.setrecursionlimit(_DEEPEST)
            headers, quotes = (digit == "1" for digit in file_type[-2:])
            return TEXT, read_mail(data, MailRules(headers, quotes))
        return TEXT, _extract_office(data, file_type).encode("utf-8", "replace")
    except ImportError as error:
        return NO_READER, _detail(error)
    except MemoryError:
        return MEMORY, b""
    except Exception as error:  # kreuzberg has its own errors for each format.
        detail = _detail(error)
        message = detail.lower()
        if b"security limit" in message:
            return LARGE, detail
        if b"password" in message or b"encrypted" in message:
            return ENCRYPTED, detail
        return _extract_otherwise(data, file_type, DAMAGED, detail)
    except BaseException as error:  # A panic of kreuzberg's Rust code.
        return _extract_otherwise(data, file_type, FAILED, _detail(error))


def _extract_otherwise(
    data: bytes, file_type: str, status: bytes, detail: bytes
) -> tuple[bytes, bytes]:
    """Return the reply for a document on which the reader has failed: its text all the same, that
    its package is damaged, or `status` and `detail`.

    A reader that fails on a package that is whole has failed itself: the document may be good.
    """
    if file_type not in PACKAGES:
        return status, detail
    try:
        text = read_package(data, file_type)
    except MemoryError:
        return MEMORY, b""
    except Exception as error:  # Whatever `zipfile` says of a damaged package.
        return DAMAGED, _detail(error) or detail
    return (TEXT, text) if text else (FAILED, detail)


def _detail(error: BaseException) -> bytes:
    line = str(error).split("\n")[0].removeprefix(f"{type(error).__name__}: ")
    kind, _, what = line.partition(": ")
    line = what if kind == what else line
    return line[:_LONGEST_DETAIL].encode("utf-8", "replace")


def _extract_office(data: bytes, file_type: str) -> str:
    import kreuzberg

    prepared = prepare(data, file_type)
    result: Any = kreuzberg.extract_bytes_sync(prepared, MIME_TYPES[file_type], _config())
    pages = [str(page["content"]) for page in result.pages or ()] if file_type == "pdf" else []
    return clean(result.content, file_type, pages)


def _config() -> Any:
    """Return a configuration for plain text that does not depend on the machine."""
    import kreuzberg

    return kreuzberg.ExtractionConfig(
        use_cache=False,
        enable_quality_processing=False,
        disable_ocr=True,
        output_format="plain",
        result_format="unified",
        pages=kreuzberg.PageConfig(extract_pages=True, insert_page_markers=False),
        pdf_options=kreuzberg.PdfConfig(
            extract_images=False, extract_metadata=False, extract_annotations=False
        ),
        concurrency=kreuzberg.ConcurrencyConfig(max_threads=1),
    )


# --- corrections --------------------------------------------------------------------------------
# Of what kreuzberg gives of an office document: of the file before, of the text after. The aim is
# the text that a person reads in the document.

#: A package whose XML unpacks to more bytes is given to kreuzberg as it is.
_MOST_XML = 1 << 30

_GAP = b'<w:t xml:space="preserve"> </w:t>'
#: A corrected element: bytes that tell whether the XML has it, its pattern, and its replacement.
_Rule = tuple[bytes, re.Pattern[bytes], bytes]
#: For each file type the names of the members that are corrected, and the rules.
_RULES: dict[str, tuple[re.Pattern[str], tuple[_Rule, ...]]] = {
    "docx": (re.compile(r"word/[a-z]+[0-9]*\.xml"), (
        # kreuzberg reads hidden text.
        (b"<w:vanish", re.compile(
            rb"(?s)<w:r(?:\s[^>]*)?>\s*<w:rPr>(?:(?!</w:rPr>).)*?<w:vanish\s*/>"
            rb"(?:(?!</w:r>).)*</w:r>"), b""),
        # kreuzberg joins the words on both sides of a gap.
        (b"<w:tab/>", re.compile(rb"<w:tab/>"), _GAP),
        (b"<w:ptab", re.compile(rb"<w:ptab\b[^>]*/>"), _GAP),
        (b"<w:cr", re.compile(rb"<w:cr\s*/>"), _GAP),
        (b"<w:br", re.compile(rb"<w:br\b[^>]*/>"), _GAP),
        (b"<w:sym", re.compile(rb"<w:sym\b[^>]*/>"), _GAP),
        (b"<w:noBreakHyphen", re.compile(rb"<w:noBreakHyphen\s*/>"), b"<w:t>-</w:t>"),
    )),
    "pptx": (re.compile(r"ppt/(?:slides|notesSlides)/[^/]+\.xml"), (
        # kreuzberg splits a word of which a part is bold, or was marked as misspelt.
        (b"</a:r>", re.compile(
            rb"(?s)</a:t>\s*</a:r>\s*<a:r(?:\s[^>]*)?>\s*(?:<a:rPr\b[^>]*/>\s*|"
            rb"<a:rPr\b[^>]*(?<!/)>(?:(?!</a:r>).)*?</a:rPr>\s*)?<a:t>"), b""),
    )),
    "odt": (re.compile(r"content\.xml"),
            ((b"<text:s", re.compile(rb"<text:s(?:\s[^>]*)?/>"), b" "),)),
}  # fmt: skip

#: The number of a footnote, which is no part of the word before; and the invisible soft hyphen.
_NOTE_MARK = re.compile(r"\[\^\w+\]:?")
_SOFT_HYPHEN = "\u00ad"


def prepare(data: bytes, file_type: str) -> bytes:
    """Return the document as kreuzberg shall read it.

    Raise ValueError if it is damaged and kreuzberg would not notice.
    """
    if file_type in _RULES:
        return _correct_package(data, *_RULES[file_type])
    return b"".join(_visible_rtf(data)) if file_type == "rtf" else data


def clean(text: str, file_type: str, pages: list[str]) -> str:
    """Return the text of a document as a person sees it.

    text : as kreuzberg gives it.
    pages : the text of each page of a PDF.
    """
    if file_type == "pdf":
        pages = [_LINE_END.sub("\n", page) for page in pages] or [text]
        text = _join_hyphenated("\n\f".join(_remove_running_lines(pages)))
    elif file_type in ("docx", "odt", "rtf"):
        text = _NOTE_MARK.sub("", text)
    if file_type == "rtf":
        text = text.replace("[TABLE_ROW]", "")
    elif file_type == "msg":
        # The lines before the first empty one are headers, which no mail has in its text.
        head, _, body = text.partition("\n\n")
        if head.startswith(("Subject:", "From:", "To:", "CC:", "Cc:", "BCC:", "Date:")):
            text = body
    return text.replace(_SOFT_HYPHEN, "")


# --- zips of XML -------------------------------------------------------------------------------


def _correct_package(data: bytes, members: re.Pattern[str], rules: tuple[_Rule, ...]) -> bytes:
    """Return a package with its XML corrected; the same bytes if nothing has to be corrected."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = [info for info in archive.infolist() if members.fullmatch(info.filename)]
            if sum(info.file_size for info in infos) > _MOST_XML:
                return data
            changed = {}
            for info in infos:
                xml = original = archive.read(info)
                for sign, pattern, replacement in rules:
                    if sign in xml:
                        xml = pattern.sub(replacement, xml)
                if xml is not original:
                    changed[info.filename] = xml
            return _copy_package(archive, changed) if changed else data
    except ZIP_ERRORS:
        return data  # kreuzberg will say what is wrong with it.


def _copy_package(archive: zipfile.ZipFile, changed: dict[str, bytes]) -> bytes:
    """Return a package of the members that matter for the text, with some of them changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as copy:
        for info in archive.infolist():
            name = info.filename
            if (
                name in changed
                or name == "mimetype"
                or name.endswith((".xml", ".rels", "/mimetype"))
            ):
                copy.writestr(name, changed.get(name) or archive.read(info))
    return out.getvalue()


# --- RTF ---------------------------------------------------------------------------------------

_RTF_TOKEN = re.compile(
    rb"\\'[0-9a-fA-F]{2}|\\([a-zA-Z]+)(-?[0-9]+)? ?|\\.|[{}]|[^\\{}]+", re.DOTALL
)
#: Groups that are no part of the text: running lines, pictures, deleted and hidden text.
_RTF_INVISIBLE = frozenset(
    b"header headerl headerr headerf footer footerl footerr footerf pict deleted v".split()
)
_RTF_REPLACED = {b"page": b"\\par ", b"sect": b"\\par ", b"column": b"\\par "}
_RTF_SYMBOLS = {b"\\~": b" ", b"\\_": b"-", b"\\-": b""}


def _visible_rtf(data: bytes) -> Iterator[bytes]:
    """Yield the parts of an RTF file without invisible groups. Raise ValueError if it was cut."""
    at = depth = 0
    invisible = 0  # The depth of the invisible group that is open; 0: none is.
    opened = False
    while at < len(data) and (token := _RTF_TOKEN.match(data, at)) is not None:
        at = token.end()
        text, word = token[0], token[1]
        if text == b"{":
            depth += 1
        elif word == b"bin" and token[2]:
            at += max(0, int(token[2]))
            continue
        elif opened and not invisible and word in _RTF_INVISIBLE and token[2] != b"0":
            invisible = depth
            yield b"}"  # Closes the group, whose opening brace has been yielded already.
        if not invisible:
            default = _RTF_REPLACED.get(word, text) if word else text
            yield _RTF_SYMBOLS.get(text, default)
        if text == b"}":
            if depth == invisible:
                invisible = 0
            depth -= 1
            if depth <= 0:
                return
        opened = text == b"{" or (opened and text == b"\\*")
    message = "it ends in the middle"
    raise ValueError(message)


# --- PDF ---------------------------------------------------------------------------------------

_LINE_END = re.compile(r"\r\n|\r|\f")
_DIGITS = re.compile(r"\d+")
#: Running lines are looked for among the first and last _EDGE lines, from _FEWEST_PAGES pages on.
_EDGE, _FEWEST_PAGES = 2, 3


def _remove_running_lines(pages: list[str]) -> list[str]:
    """Return pages without the lines that most pages begin or end with, but for numbers."""
    if len(pages) < _FEWEST_PAGES or not "".join(pages).strip():
        return pages
    lines = [page.strip("\n").split("\n") for page in pages]
    for end in (0, -1):
        for _ in range(_EDGE):
            edges = [_DIGITS.sub("0", page[end].strip()) if page else "" for page in lines]
            line, count = Counter(filter(None, edges)).most_common(1)[0] if any(edges) else ("", 0)
            if 2 * count <= len(pages):
                break
            for page, edge in zip(lines, edges, strict=True):
                if edge == line:
                    del page[end]
    remaining = ["\n".join(page) for page in lines]
    return remaining if "".join(remaining).strip() else pages  # All pages may be the same page.


#: The character that kreuzberg gives for a hyphen at the end of a line and for the end of the line.
#: At the end of a page it gives both.
_CUT = re.compile(r"(?<![^\W\d_])([^\W\d_]++)(?:\x02|[-\x02](\n+\f))([^\W\d_]+)")
_HYPHENATED = re.compile(r"(?<![^\W\d_])[^\W\d_]++-[^\W\d_]+")


def _join_hyphenated(text: str) -> str:
    """Return the text with the words joined that were cut at the end of a line or page.

    Behind such a word the page ends. A hyphen that belongs to the word, as in "well-known", may
    stand at the end of a line too. It stays if the second part begins with a capital, or if the
    document has the word with its hyphen elsewhere.
    """
    known = {word.casefold() for word in _HYPHENATED.findall(text)}

    def join(found: re.Match[str]) -> str:
        left, end, right = found.groups("")
        is_cut = right[0].islower() and f"{left}-{right}".casefold() not in known
        return f"{left}{right}{end}" if is_cut else f"{left}-{end}{right}"

    return _CUT.sub(join, text).replace("\x02", "-")


# --- without the reader -------------------------------------------------------------------------
# The text of EPUB, ODT and DOCX, on which the reader fails though they are whole. They are zips of
# XHTML or XML: the HTML reader reads them. Headings, paragraphs and breaks are kept apart.

#: Members of more bytes in all are not unpacked.
_MOST_BYTES = 256 << 20
_PAGE_ENDINGS = (".xhtml", ".html", ".htm")
_ITEM, _REFERENCE = (
    re.compile(r"(?s)<(?:\w+:)?item\b[^>]*>"),
    re.compile(r"(?s)<(?:\w+:)?itemref\b[^>]*\bidref\s*=\s*[\"']([^\"']*)"),
)
_ATTRIBUTE = re.compile(r"(?s)\b(id|href)\s*=\s*[\"']([^\"']*)")

#: The members of ODT and DOCX with text, in their order.
_TEXT_MEMBERS = {
    "odt": re.compile(r"content\.xml"),
    "docx": re.compile(r"word/(?:document|footnotes|endnotes)\.xml"),
}
#: The types of documents that can be read this way.
PACKAGES = ("epub", *_TEXT_MEMBERS)
#: What no person reads: hidden and deleted text, notes of reviewers, properties.
_INVISIBLE = re.compile(
    rb"(?s)<(w:del|w:instrText|w:rPr|office:annotation|text:tracked-changes)\b[^>]*(?<!/)>.*?</\1>"
)
_PARAGRAPH = re.compile(rb"<(/?)(?:w:p|text:p|text:h)(?=[\s>/])[^>]*>")
_BLANKS = re.compile(rb"<(?:w:tab|w:br|w:cr|text:tab|text:s|text:line-break)(?=[\s>/])[^>]*>")
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
            names = [name for name in names if _TEXT_MEMBERS[file_type].fullmatch(name)]
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
    pages = [name for name in names if name.lower().endswith(_PAGE_ENDINGS)]
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
    paragraphs = _PARAGRAPH.sub(_paragraph, _BLANKS.sub(b" ", _INVISIBLE.sub(b"", xml)))
    return b"<html><body>" + _OTHER.sub(b"", paragraphs)


def _paragraph(tag: re.Match[bytes]) -> bytes:
    return b"</p>" if tag[1] else b"<p>"
