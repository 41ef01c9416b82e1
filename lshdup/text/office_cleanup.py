"""What a reader of an office document sees, where kreuzberg gives more or less than that: by mending the file before, or its text after.

Works on one document at a time, in the process of its own that reads it (extractor.py). Standard library only.
"""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator

#: Of what a zip unpacks to, so much is looked at; what is beyond is left to the reader as it is.
_MOST_XML = 1 << 30

_GAP = b'<w:t xml:space="preserve"> </w:t>'
#: Parts of a package, a word that says whether there is anything to mend, and what takes its place.
_RULES: dict[str, tuple[re.Pattern[str], tuple[tuple[bytes, re.Pattern[bytes], bytes], ...]]] = {
    "docx": (
        re.compile(r"word/[a-z]+[0-9]*\.xml"),
        (
            # Hidden text, which otherwise would be read.
            (
                b"<w:vanish",
                re.compile(
                    rb"(?s)<w:r(?:\s[^>]*)?>\s*<w:rPr>(?:(?!</w:rPr>).)*?<w:vanish\s*/>(?:(?!</w:r>).)*</w:r>"
                ),
                b"",
            ),
            # Otherwise the words on both sides would be one.
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
            # A word of which a part is bold, or was spelt wrong, is one word.
            (
                b"</a:r>",
                re.compile(
                    rb"(?s)</a:t>\s*</a:r>\s*<a:r(?:\s[^>]*)?>\s*(?:<a:rPr\b[^>]*/>\s*|<a:rPr\b[^>]*(?<!/)>(?:(?!</a:r>).)*?</a:rPr>\s*)?<a:t>"
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

#: What stands for a footnote's number, which is no part of a word; and the soft hyphen, which nobody sees.
_NOTE_MARK = re.compile(r"\[\^\w+\]:?")
_SOFT_HYPHEN = "\u00ad"


def before(data: bytes, kind: str) -> bytes:
    """The document as the reader shall have it. Raises ValueError if it is damaged and the reader would not notice."""
    if kind in _RULES:
        return _package(data, *_RULES[kind])
    return _rtf(data) if kind == "rtf" else data


def after(text: str, kind: str, pages: list[str]) -> str:
    """The text as a person sees it. pages : of a PDF, each page's."""
    if kind == "pdf":
        text = "\n".join(
            _without_running_lines(
                [page.replace("\r\n", "\n").replace("\r", "\n") for page in pages] or [text]
            )
        )
        text = _unhyphenated(text)
    elif kind in ("docx", "odt", "rtf"):
        text = _NOTE_MARK.sub("", text)
    if kind == "rtf":
        text = text.replace("[TABLE_ROW]", "")
    elif kind == "msg":
        # What is before the first empty line are sender, receivers and subject: the text is the rest, as of any mail.
        head, _, body = text.partition("\n\n")
        text = (
            body
            if head.startswith(("Subject:", "From:", "To:", "CC:", "Cc:", "BCC:", "Date:"))
            else text
        )
    return text.replace(_SOFT_HYPHEN, "")


# --- zips of XML ----------------------------------------------------------------------------------------------------------


def _package(
    data: bytes, parts: re.Pattern[str], rules: tuple[tuple[bytes, re.Pattern[bytes], bytes], ...]
) -> bytes:
    """The same package with some of its XML changed; itself, if there is nothing to change, or it is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = [info for info in archive.infolist() if parts.fullmatch(info.filename)]
            if sum(info.file_size for info in infos) > _MOST_XML:
                return data
            changed = {}
            for info in infos:
                xml = old = archive.read(info)
                for sign, pattern, instead in rules:
                    if sign in xml:
                        xml = pattern.sub(instead, xml)
                if xml is not old:
                    changed[info.filename] = xml
            if not changed:
                return data
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w") as copy:
                for info in archive.infolist():
                    if (
                        info.filename in changed
                        or info.filename.endswith((".xml", ".rels", "/mimetype"))
                        or info.filename == "mimetype"
                    ):
                        copy.writestr(
                            info.filename, changed.get(info.filename) or archive.read(info)
                        )
            return out.getvalue()
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, LookupError):
        return data  # the reader will say what is wrong with it


# --- RTF ------------------------------------------------------------------------------------------------------------------

_RTF_TOKEN = re.compile(
    rb"\\'[0-9a-fA-F]{2}|\\([a-zA-Z]+)(-?[0-9]+)? ?|\\.|[{}]|[^\\{}]+", re.DOTALL
)
#: Groups that are not in the text: what is on every page, pictures, what was deleted.
_RTF_LEFT_OUT = frozenset(
    b"header headerl headerr headerf footer footerl footerr footerf pict deleted v".split()
)
_RTF_INSTEAD = {b"page": b"\\par ", b"sect": b"\\par ", b"column": b"\\par "}
_RTF_SYMBOLS = {b"\\~": b" ", b"\\_": b"-", b"\\-": b""}


def _rtf(data: bytes) -> bytes:
    """Without what is not in the text. Raises ValueError for a file that ends before its groups do."""
    return b"".join(_rtf_kept(data))


def _rtf_kept(data: bytes) -> Iterator[bytes]:
    at = depth = 0
    skipped = 0  # the depth of the group that is left out; 0: none is
    opened = False
    while at < len(data) and (token := _RTF_TOKEN.match(data, at)) is not None:
        at = token.end()
        text, word = token[0], token[1]
        if text == b"{":
            depth += 1
        elif word == b"bin" and token[2]:
            at += max(0, int(token[2]))
            continue
        elif opened and not skipped and word in _RTF_LEFT_OUT and token[2] != b"0":
            skipped = depth
            yield b"}"  # the brace that opened it is out already
        if not skipped:
            yield (
                _RTF_SYMBOLS.get(text, _RTF_INSTEAD.get(word, text))
                if word or text in _RTF_SYMBOLS
                else text
            )
        if text == b"}":
            if depth == skipped:
                skipped = 0
            depth -= 1
            if depth <= 0:
                return
        opened = text == b"{" or (opened and text == b"\\*")
    message = "it ends in the middle"
    raise ValueError(message)


# --- PDF ------------------------------------------------------------------------------------------------------------------

_DIGITS = re.compile(r"\d+")
#: A running line is looked for among so many lines at either end of a page, on documents of so many pages.
_EDGE, _FEWEST_PAGES = 2, 3


def _without_running_lines(pages: list[str]) -> list[str]:
    """Pages without their headers and footers: lines at the edge that most pages have there, but for numbers."""
    if len(pages) < _FEWEST_PAGES:
        return pages
    if not "".join(pages).strip():
        return pages
    lines = [page.strip("\n").split("\n") for page in pages]
    for first in (True, False):
        for _ in range(_EDGE):
            edges = [
                _DIGITS.sub("0", page[0 if first else -1].strip()) if page else "" for page in lines
            ]
            line, count = (
                Counter(edge for edge in edges if edge).most_common(1)[0] if any(edges) else ("", 0)
            )
            if 2 * count <= len(pages):
                break
            lines = [
                (page[1:] if first else page[:-1]) if edge == line else page
                for page, edge in zip(lines, edges, strict=True)
            ]
    kept = ["\n".join(page) for page in lines]
    return kept if "".join(kept).strip() else pages  # the same page again and again


#: What the reader gives for a hyphen at the end of a line, and for the end of the line.
_CUT = re.compile(r"([^\W\d_]+)\x02([^\W\d_]+)")
_HYPHENATED = re.compile(r"[^\W\d_]+-[^\W\d_]+")


def _unhyphenated(text: str) -> str:
    """Words that were cut at the end of a line, whole again.

    A hyphen of the word itself, "well-known", may stand at the end of a line too: it stays where the second part begins with a capital,
    and where the document has the word with its hyphen elsewhere.
    """
    if "\x02" not in text:
        return text
    known = {word.casefold() for word in _HYPHENATED.findall(text)}

    def join(found: re.Match[str]) -> str:
        left, right = found.groups()
        cut = right[0].islower() and f"{left}-{right}".casefold() not in known
        return left + right if cut else f"{left}-{right}"

    return _CUT.sub(join, text).replace("\x02", "-")
