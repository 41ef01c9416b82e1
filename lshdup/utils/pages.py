"""HTML pages, recognised by name or content."""

import re

#: Endings of the names of HTML pages.
ENDINGS = (b".html", b".htm", b".xhtml")

#: Behind the name of what is declared to be no page: no file has it in its name.
_PLAIN = b"\0"

# Possessive (`+` after a quantifier) and atomic (`?>`), because a row of comments could end in as
# many ways as it has subsets.
_START = re.compile(
    rb"(?is)(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>\s*+|(?><!--.*?-->)\s*+)*+"
    rb"<(?:!doctype\s+html|html[\s>])"
)


def is_html(data: bytes, name: bytes) -> bool:
    """Return whether a document is an HTML page by its name or its beginning."""
    if name.endswith(_PLAIN):
        return False
    return name.lower().endswith(ENDINGS) or _START.match(data[:4096]) is not None


def declared(name: bytes, is_page: bool) -> bytes:
    """Return the name of a document whose source says whether it is a page, for `is_html`."""
    return name + (ENDINGS[0] if is_page else _PLAIN)
