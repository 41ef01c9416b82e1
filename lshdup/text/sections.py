"""Sections of a text, which `--split` makes documents of: where each begins, and its name."""

import codecs
import re
from collections.abc import Iterator
from itertools import pairwise

from lshdup.base import compression
from lshdup.base.forms import PAGE_END, Form, looks_like_html, page_form
from lshdup.base.params import DEFAULT_SHINGLE, FormatLimits, ShingleParams
from lshdup.text import html, office_types
from lshdup.text.decoding import decode
from lshdup.text.mail import mail_form
from lshdup.text.office_processes import extract

#: The first bytes of a file by which `is_plain` knows it.
PLAIN_HEAD = 8192

_MAGICS = (
    *office_types.MAGICS, *compression.MAGICS, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE,
)  # fmt: skip
_KEEP = ShingleParams(markup="keep")

#: A name has at most so many characters of a heading. White space and control characters in it
#: become a blank, slashes an underscore: no section is in a folder that its heading names.
_LONGEST_NAME = 100
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")

#: Endings of the names of files in Markdown, and in reStructuredText.
_MARKDOWN_ENDINGS, _REST_ENDINGS = (b".md", b".markdown", b".mdx"), (b".rst", b".rest")

#: Of Markdown, a heading with hash marks, a heading that is underlined, or what has no heading:
#: front matter, code between fences, a comment, or preformatted text, perhaps without an end. Each
#: begins behind the end of a line, which is found fast.
_MARKDOWN = re.compile(
    rb"""(?xm) \n (?:
    (?<!(?s:.)\n) (-{3}|\+{3}) [ \t]*\r?\n (?s:.*?) ^(?:\1|\.{3}) [ \t]*\r?$
    | [ ]{0,3} (?:
        (`{3,}+) [^`\n]*\n (?s:.*?) (?: ^[ ]{0,3} \2`* [ \t]*\r?$ | \Z )
        | (~{3,}+) .*\n (?s:.*?) (?: ^[ ]{0,3} \3~* [ \t]*\r?$ | \Z )
        | <!-- (?s:.*?) (?: --> | \Z )
        | <(?i:pre|script|style|textarea)\b (?s:.*?) (?: </(?i:pre|script|style|textarea)> | \Z )
        | \#{1,6} (?P<marked> [ \t].* )? \r?$
        | (?! [-*+][ \t] | \d+[.)][ \t] | [-_*=\ \t\r]+$ ) (?P<underlined> [^\s>|\#].* ) \n
          [ ]{0,3} (?: =+ | -+ ) [ \t]*\r?$
    ) )"""
)

#: A title of reStructuredText behind an empty line, perhaps between two lines of marks.
_REST = re.compile(
    rb"""(?xm)
    (?: \A | ^[ \t]*\r?\n )
    (?P<all> (?: (?P<over> [!-/:-@[-`{-~] ) (?P=over)+ [ \t]*\r?\n [ \t]* | (?!\.\.[ ]) )
    (?P<title> \S.* ) \n (?P<under> (?(over)(?P=over)|[!-/:-@[-`{-~]) )
    (?P<more> (?P=under)* ) [ \t]*\r?$ )"""
)

#: A heading in the visible text of a page (`html.visible_text`).
_HEADING = re.compile(rb"\f(.*)")
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
    if by == "page" and data.startswith(office_types.PDF):
        return extract(data, "pdf", limits).utf8 + PAGE_END
    if data.startswith(office_types.MAGICS):
        return b""
    text, name = decode(data, path, _KEEP, most, limits), compression.bare_name(path)
    if text.reason is not None or text.office:
        return b""
    if page_form(text.utf8, name, _KEEP.markup) == Form.TEXT:
        return text.utf8
    if page_form(text.utf8, name, DEFAULT_SHINGLE.markup) == Form.MARKUP or by == "page":
        return b""
    if name.lower().endswith((*_MARKDOWN_ENDINGS, *_REST_ENDINGS)) or html.find_obstacle(text.utf8):
        return b""
    return html.visible_text(text.utf8, quotes=True, marks=True)


def find_sections(
    text: bytes, path: bytes, by: str, *, is_extracted: bool = False
) -> list[tuple[int, int, bytes]]:
    r"""Return where each section of a text begins and ends, and what its name has behind that of
    its file; b"" for a number. Text before the first heading is a section too.

    path : the file. by : one of `params.SPLITS`.
    is_extracted : whether the text is of `text_with_sections`.

    >>> find_sections(b"Hi\n# A b #\nx\nB\n==\n", b"a.md", "heading")
    [(0, 3, b'#'), (3, 13, b'#A b'), (13, 18, b'#B')]
    """
    if skip := len(codecs.BOM_UTF8) * text.startswith(codecs.BOM_UTF8):
        found = find_sections(text[skip:], path, by, is_extracted=is_extracted)
        return [(start + skip, end + skip, name) for start, end, name in found]
    if by == "paragraph":
        return [(*found.span(), b"") for found in _PARAGRAPH.finditer(text)]
    if by == "page":
        bounds = [-1, *(found.start() for found in re.finditer(PAGE_END, text)), len(text)]
        pages = [(start + 1, end) for start, end in pairwise(bounds)] if text.strip() else []
        while pages and not text[slice(*pages[-1])].strip():
            del pages[-1]  # behind the end of the last one
        pages = pages if len(bounds) > 2 else []
        return [(*page, b":p%d" % number) for number, page in enumerate(pages, 1)]
    name = compression.bare_name(path).lower()
    if name.endswith(_MARKDOWN_ENDINGS):
        titles = _markdown_titles(text)
    elif name.endswith(_REST_ENDINGS):
        titles = _rest_titles(text)
    else:
        titles = ((line.start(1), line[1]) for line in _HEADING.finditer(text) if is_extracted)
    named = ((start, _name(title)) for start, title in titles)
    titled = [(start, b"#" + name) for start, name in named if name]
    if titled and text[: titled[0][0]].strip():
        titled.insert(0, (0, b"#"))
    starts = [start for start, _ in titled]
    ends = [
        end - (is_extracted and text[end - 1 : end] == PAGE_END) for end in (*starts[1:], len(text))
    ]
    return [(start, end, name) for (start, name), end in zip(titled, ends, strict=False)]


def _markdown_titles(text: bytes) -> Iterator[tuple[int, bytes]]:
    for found in _MARKDOWN.finditer(b"\n" + text):
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
    words = _BLANKS.sub(" ", title.decode("utf-8", "surrogateescape")).strip().replace("/", "_")
    return words[:_LONGEST_NAME].rstrip().encode("utf-8", "surrogateescape")
