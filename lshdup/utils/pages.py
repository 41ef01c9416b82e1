"""HTML pages, recognised by name or content."""

import re

#: Endings of the names of HTML pages.
ENDINGS = (b".html", b".htm", b".xhtml")

# Possessive (`+` after a quantifier) and atomic (`?>`), because a row of comments could end in as
# many ways as it has subsets.
_START = re.compile(
    rb"(?is)(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>\s*+|(?><!--.*?-->)\s*+)*+"
    rb"<(?:!doctype\s+html|html[\s>])"
)


def is_html(data: bytes, name: bytes) -> bool:
    """Return whether a document is an HTML page by its name or its beginning."""
    return name.lower().endswith(ENDINGS) or _START.match(data[:4096]) is not None
