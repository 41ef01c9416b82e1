"""Sections of a text, which `--split` makes documents of: where each begins, and its name."""

import codecs
import re
from collections.abc import Iterator

from lshdup.base import compression
from lshdup.base.forms import Form, looks_like_html, page_form
from lshdup.params import DEFAULT_SHINGLE, FormatLimits, ShingleParams
from lshdup.text import html, office_types
from lshdup.text.decoding import decode
from lshdup.text.mail import mail_form

#: The first bytes of a file by which `is_plain` knows it.
PLAIN_HEAD = 8192

_MAGICS = (
    *office_types.MAGICS, *compression.MAGICS, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE,
)  # fmt: skip
_KEEP = ShingleParams(markup="keep")

#: A name has at most so many characters of a heading. White space and control characters in it
#: become a blank.
_LONGEST_NAME = 100
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")

#: Endings of the names of files in Markdown, and in reStructuredText.
_MARKDOWN_ENDINGS, _REST_ENDINGS = (b".md", b".markdown", b".mdx"), (b".rst", b".rest")

#: Of Markdown, a heading with hash marks, a heading that is underlined, or what has no heading:
#: front matter, code between fences, a comment, or preformatted text, perhaps without an end.
_MARKDOWN = re.compile(
    rb"""(?xm)
    \A(?:\xef\xbb\xbf)? (-{3}|\+{3}) [ \t]*\r?\n (?s:.*?) ^(?:\1|\.{3}) [ \t]*\r?$
    | ^(?:\xef\xbb\xbf)? [ ]{0,3} (?:
        (`{3,}) [^`\n]*\n (?s:.*?) (?: ^[ ]{0,3} \2`* [ \t]*\r?$ | \Z )
        | (~{3,}) .*\n (?s:.*?) (?: ^[ ]{0,3} \3~* [ \t]*\r?$ | \Z )
        | <!-- (?s:.*?) (?: --> | \Z )
        | <(?i:pre|script|style|textarea)\b (?s:.*?) (?: </(?i:pre|script|style|textarea)> | \Z )
        | \#{1,6} (?P<marked> [ \t].* )? \r?$
        | (?! [-*+][ \t] | \d+[.)][ \t] | [-_*=\s]+$ ) (?P<underlined> [^\s>|\#].* ) \n
          [ ]{0,3} (?: =+ | -+ ) [ \t]*\r?$
    )"""
)

#: A title of reStructuredText behind an empty line, perhaps between two lines of marks.
_REST = re.compile(
    rb"""(?xm)
    (?: \A(?:\xef\xbb\xbf)? | ^[ \t]*\r?\n )
    (?P<all> (?: (?P<over> [!-/:-@[-`{-~] ) (?P=over)+ [ \t]*\r?\n [ \t]* | (?!\.\.[ ]) )
    (?P<title> \S.* ) \n (?P<under> (?(over)(?P=over)|[!-/:-@[-`{-~]) )
    (?P<more> (?P=under)* ) [ \t]*\r?$ )"""
)

#: In the extracted text of a page, a heading begins and ends with these.
_HEADING = re.compile(rb"\f([^\f\v]*)\v")
_PARAGRAPH = re.compile(rb"(?m)(?:^[^\S\n]*\S.*\n?)+")


def is_plain(head: bytes, path: bytes) -> bool:
    """Return whether a file is text of which sections are cut as it stands.

    head : its first PLAIN_HEAD bytes.
    """
    return not (
        b"\0" in head
        or head.startswith(_MAGICS)
        or looks_like_html(head, compression.bare_name(path))
        or mail_form(head, path, DEFAULT_SHINGLE) == Form.MAIL
    )


def text_with_sections(data: bytes, path: bytes, by: str, most: int, limits: FormatLimits) -> bytes:
    """Return the text of a file that is not plain, as UTF-8, in which `find_sections` finds its
    sections; b"" if it has none.

    data : bytes of the file. by : one of `params.SPLITS`. most, limits : as of `decode`.
    """
    if data.startswith(office_types.MAGICS) and (by != "page" or data[:5] != office_types.PDF):
        return b""
    text, name = decode(data, path, _KEEP, most, limits), compression.bare_name(path)
    if text.reason is not None or text.office:
        return text.utf8 + b"\f" if text.office == "pdf" and by == "page" else b""
    if page_form(text.utf8, name, _KEEP.markup) == Form.TEXT:
        return text.utf8
    if page_form(text.utf8, name, DEFAULT_SHINGLE.markup) == Form.MARKUP or by == "page":
        return b""
    if _titles_of(b"", name) is not None or html.find_obstacle(text.utf8):
        return b""
    return html.visible_text(text.utf8, quotes=True, marks=True)


def find_sections(text: bytes, path: bytes, by: str) -> list[tuple[int, bytes]]:
    r"""Return where each section of a text begins, and what its name has behind the file's: b"" for
    a number. Text before the first heading is a section too.

    path : the file. by : one of `params.SPLITS`.

    >>> find_sections(b"Hi\n# A b #\nx\nB\n==\n", b"a.md", "heading")
    [(0, b'#'), (3, b'#A b'), (13, b'#B')]
    """
    if by == "paragraph":
        return [(found.start(), b"") for found in _PARAGRAPH.finditer(text)]
    if by == "page":
        pages = text.rstrip(b"\f\r\n\t ")
        ends = [found.end() for found in re.finditer(b"\f", text)] if pages else []
        begins = [0, *(end for end in ends if end < len(pages))] if ends else []
        return [(start, b":p%d" % number) for number, start in enumerate(begins, 1)]
    titles = _titles_of(text, compression.bare_name(path))
    if titles is None:
        titles = ((found.start(), found[1]) for found in _HEADING.finditer(text))
    named = ((start, _name(title)) for start, title in titles)
    found = [(start, b"#" + name) for start, name in named if name]
    if found and text[: found[0][0]].removeprefix(codecs.BOM_UTF8).strip():
        found.insert(0, (0, b"#"))
    return found


def _titles_of(text: bytes, name: bytes) -> Iterator[tuple[int, bytes]] | None:
    """Return where headings are, and what stands there; None if the name of the file does not say
    how they are written.
    """
    if name.lower().endswith(_MARKDOWN_ENDINGS):
        return _markdown_titles(text)
    return _rest_titles(text) if name.lower().endswith(_REST_ENDINGS) else None


def _markdown_titles(text: bytes) -> Iterator[tuple[int, bytes]]:
    for found in _MARKDOWN.finditer(text):
        title = (found["marked"] or b"").strip()
        bare = title.rstrip(b"#")
        ends = not bare or bare[-1:] in b" \t"
        yield found.start(), found["underlined"] or (bare if ends else title)


def _rest_titles(text: bytes) -> Iterator[tuple[int, bytes]]:
    for found in _REST.finditer(text):
        title = found["title"].strip()
        if 1 + len(found["more"]) >= min(4, len(title)):
            yield found.start("all"), title


def _name(title: bytes) -> bytes:
    words = _BLANKS.sub(" ", title.decode("utf-8", "surrogateescape")).strip()
    return words[:_LONGEST_NAME].rstrip().encode("utf-8", "surrogateescape")
