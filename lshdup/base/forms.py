"""Forms of documents: what each is read as, and HTML pages, known by their names or beginnings.

A text may have several parts, such as the subject and the body of a mail: no shingle has tokens of
two. Between two parts stands a border, two bytes that UTF-8 never has: a text from outside contains
none once it is decoded. Behind a seal stands what counts for sameness only, such as the digest of
attachments. Kernels know the borders as `kernels.text.find_border`.
"""

import enum
import re


class Form(enum.IntEnum):
    """What a document is read as; artifacts hold these numbers."""

    TEXT = 0
    MAIL = 1
    HEADERS = 2  # a text that begins with the header of a mail
    PAGE = 3  # HTML, of which the visible text is read
    NAMED_PAGE = 4  # the same, in a file named so
    MARKUP = 5  # a text that looks like HTML
    OFFICE = 6


#: Endings of the names of HTML pages, and of mails.
PAGE_ENDINGS = (b".html", b".htm", b".xhtml")
MAIL_ENDINGS = (b".eml", b".emlx")

#: Behind the name of what is declared to be no page: no file has it in its name.
_PLAIN = b"\0"

_PAGE = rb"<(?:!doctype\s+html|html[\s>])"
_START = re.compile(rb"(?i)(?:\xef\xbb\xbf)?\s*+" + _PAGE)
# Possessive (`+` after a quantifier) and atomic (`?>`), because a row of comments could end in as
# many ways as it has subsets.
_LOOK = re.compile(rb"(?is)(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>\s*+|(?><!--.*?-->)\s*+)*+" + _PAGE)


def looks_like_html(data: bytes, name: bytes) -> bool:
    """Return whether a document is named like an HTML page, or begins like one, perhaps after
    comments.
    """
    is_named = name.lower().endswith(PAGE_ENDINGS)
    return is_named or (not name.endswith(_PLAIN) and _LOOK.match(data[:4096]) is not None)


def page_form(utf8: bytes, name: bytes | None, markup: str) -> Form:
    """Return whether a text is read as a page.

    name : the name of the document; None for a record, which is a text unless `markup` is visible.
    markup : auto, visible or keep (`ShingleParams.markup`).
    """
    if not looks_like_html(utf8, name or b""):
        return Form.TEXT
    is_named = name is not None and name.lower().endswith(PAGE_ENDINGS)
    is_page = is_named or (name is not None and _START.match(utf8[:4096]) is not None)
    if markup == "keep" or (markup == "auto" and not is_page):
        return Form.MARKUP
    return Form.NAMED_PAGE if is_named else Form.PAGE


def declare_page(name: bytes, is_page: bool) -> bytes:
    """Return the name of a document whose source says whether it is a page."""
    return name + (PAGE_ENDINGS[0] if is_page else _PLAIN)


def declare_mail(name: bytes) -> bytes:
    """Return the name of a document whose source says that it is a mail."""
    return name + MAIL_ENDINGS[0]


# --- texts of several parts ---

#: The border between two parts, and the border before what is sealed.
PART, SEAL = b"\xff\x00", b"\xff\x01"
#: What people see for a border between two parts.
BLANK_LINE = b"\n\n"

#: Behind a page of a text that has pages, as of a PDF.
PAGE_END = b"\f"

#: Splits a text into parts and borders in turn, beginning with a part.
BORDER = re.compile(b"(\xff[\x00\x01])")


def split_parts(text: bytes) -> list[bytes]:
    """Return the parts of a text, at least one, without what is sealed.

    >>> split_parts(b"subject" + PART + b"body" + SEAL + b"0f"), split_parts(b"text")
    ([b'subject', b'body'], [b'text'])
    """
    return text.partition(SEAL)[0].split(PART)


def visible_text(text: bytes) -> bytes:
    """Return the text as a person reads it: with blank lines between its parts.

    >>> visible_text(b"subject" + PART + b"body" + SEAL + b"0f").split(BLANK_LINE)
    [b'subject', b'body']
    """
    return BLANK_LINE.join(split_parts(text))
