"""Corrections to what kreuzberg gives of an office document: of the file before, of the text after.

The aim is the text that a person reads in the document. Standard library only, because this runs in
the worker process (`office_worker`).
"""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator

from lshdup.text.file_types import ZIP_ERRORS

#: A package whose XML unpacks to more bytes is given to kreuzberg as it is.
_MOST_XML = 1 << 30

_GAP = b'<w:t xml:space="preserve"> </w:t>'
#: A corrected element: bytes that tell whether the XML has it, its pattern, and its replacement.
_Rule = tuple[bytes, re.Pattern[bytes], bytes]
#: For each file type the names of the members that are corrected, and the rules.
_RULES: dict[str, tuple[re.Pattern[str], tuple[_Rule, ...]]] = {
    "docx": (
        re.compile(r"word/[a-z]+[0-9]*\.xml"),
        (
            # kreuzberg reads hidden text.
            (
                b"<w:vanish",
                re.compile(
                    rb"(?s)<w:r(?:\s[^>]*)?>\s*<w:rPr>(?:(?!</w:rPr>).)*?<w:vanish\s*/>"
                    rb"(?:(?!</w:r>).)*</w:r>"
                ),
                b"",
            ),
            # kreuzberg joins the words on both sides of a gap.
            (b"<w:tab/>", re.compile(rb"<w:tab/>"), _GAP),
            (b"<w:ptab", re.compile(rb"<w:ptab\b[^>]*/>"), _GAP),
            (b"<w:cr", re.compile(rb"<w:cr\s*/>"), _GAP),
            (b"<w:br", re.compile(rb"<w:br\b[^>]*/>"), _GAP),
            (b"<w:sym", re.compile(rb"<w:sym\b[^>]*/>"), _GAP),
            (b"<w:noBreakHyphen", re.compile(rb"<w:noBreakHyphen\s*/>"), b"<w:t>-</w:t>"),
        ),
    ),
    "pptx": (
        re.compile(r"ppt/(?:slides|notesSlides)/[^/]+\.xml"),
        (
            # kreuzberg splits a word of which a part is bold, or was marked as misspelt.
            (
                b"</a:r>",
                re.compile(
                    rb"(?s)</a:t>\s*</a:r>\s*<a:r(?:\s[^>]*)?>\s*(?:<a:rPr\b[^>]*/>\s*|"
                    rb"<a:rPr\b[^>]*(?<!/)>(?:(?!</a:r>).)*?</a:rPr>\s*)?<a:t>"
                ),
                b"",
            ),
        ),
    ),
    "odt": (
        re.compile(r"content\.xml"),
        ((b"<text:s", re.compile(rb"<text:s(?:\s[^>]*)?/>"), b" "),),
    ),
}

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
        pages = [page.replace("\r\n", "\n").replace("\r", "\n") for page in pages] or [text]
        text = _join_hyphenated("\n".join(_remove_running_lines(pages)))
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
_CUT = re.compile(r"([^\W\d_]+)\x02([^\W\d_]+)")
_HYPHENATED = re.compile(r"[^\W\d_]+-[^\W\d_]+")


def _join_hyphenated(text: str) -> str:
    """Return the text with the words joined that were cut at the end of a line.

    A hyphen that belongs to the word, as in "well-known", may stand at the end of a line too. It
    stays if the second part begins with a capital, or if the document has the word with its hyphen
    elsewhere.
    """
    if "\x02" not in text:
        return text
    known = {word.casefold() for word in _HYPHENATED.findall(text)}

    def join(found: re.Match[str]) -> str:
        left, right = found.groups()
        is_cut = right[0].islower() and f"{left}-{right}".casefold() not in known
        return left + right if is_cut else f"{left}-{right}"

    return _CUT.sub(join, text).replace("\x02", "-")
