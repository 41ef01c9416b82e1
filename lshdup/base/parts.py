"""Texts of several parts, such as the subject and the body of a mail: no shingle has tokens of two.

Between two parts stands a border, two bytes that UTF-8 never has: a text from outside contains none
once it is decoded. Behind a seal stands what counts for sameness only, such as the digest of
attachments. Kernels know the borders as `kernels.text.find_border`.
"""

import re

#: The border between two parts, and the border before what is sealed.
PART, SEAL = b"\xff\x00", b"\xff\x01"
#: What people see for a border between two parts.
BLANK_LINE = b"\n\n"

_BORDER = re.compile(b"(\xff[\x00\x01])")


def split_parts(text: bytes) -> list[bytes]:
    """Return the parts of a text, at least one, without what is sealed.

    >>> split_parts(b"subject" + PART + b"body" + SEAL + b"0f"), split_parts(b"text")
    ([b'subject', b'body'], [b'text'])
    """
    return text.partition(SEAL)[0].split(PART)


def split_borders(text: bytes) -> list[bytes]:
    """Return parts and borders in turn, beginning with a part."""
    return _BORDER.split(text)


def visible_text(text: bytes) -> bytes:
    """Return the text as a person reads it: with blank lines between its parts.

    >>> visible_text(b"subject" + PART + b"body" + SEAL + b"0f").split(BLANK_LINE)
    [b'subject', b'body']
    """
    return BLANK_LINE.join(split_parts(text))
