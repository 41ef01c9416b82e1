"""HTML pages and their visible text."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

#: The encoding that a page declares.
CHARSET = re.compile(rb"(?i)<meta[^>]+charset\s*=\s*[\"']?\s*([-\w.:]+)")
#: Elements without visible text.
_INVISIBLE = frozenset(("head", "script", "style", "template", "noscript"))
#: Elements that begin and end a line.
_BLOCKS = frozenset(
    "address article aside blockquote br caption center dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol option p "
    "pre search section summary table tbody td tfoot th thead tr ul".split()
)
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
_MAY_HIDE = re.compile(rb"(?i)hidden")

#: The parser takes a step of some ns for each element that is open at a tag. Pages of up to
#: _FEW_TAGS tags are always parsed; pages of up to _MOST_TAGS tags (200 bytes of memory each) if at
#: most _MEAN_DEPTH elements are open on average.
_FEW_TAGS, _MEAN_DEPTH, _MOST_TAGS = 20_000, 500, 5_000_000
#: The parser takes a step for each pair of attributes of a tag.
_MOST_ATTRIBUTES = 20_000
_LONG_TAG = 2 * _MOST_ATTRIBUTES
#: Elements without an end tag, or whose end tag is usually omitted.
_UNCLOSED = frozenset(
    b"area base br col dd dt embed hr img input li link meta optgroup option p param rp rt source "
    b"tbody td tfoot th thead tr track wbr".split()
)
_TAG = re.compile(
    rb"(?is)<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1|\Z)|<(/?)([a-z][^\s/>]*)([^>]*)"
)


def find_obstacle(page: bytes) -> str:
    """Return why the parser would take minutes for a page; "" if it would not.

    No page that people read has such an obstacle. This is an estimate from what looks like a tag:
    a page that is parsed slowly can still be written on purpose.
    """
    if page.count(b"<") <= _FEW_TAGS and len(page) <= _LONG_TAG:
        return ""
    tags = depth = steps = 0
    for tag in _TAG.finditer(page):
        _, closes, name, rest = tag.groups(b"")
        if not name:  # A comparison in a script looks like a tag.
            continue
        if len(rest) > _LONG_TAG and len(rest.split(None, _MOST_ATTRIBUTES)) > _MOST_ATTRIBUTES:
            return f"a tag of more than {_MOST_ATTRIBUTES:,} attributes"
        if name.lower() not in _UNCLOSED:
            depth = max(0, depth - 1) if closes else depth + 1
        tags += 1
        steps += depth
    if tags > _MOST_TAGS:
        return f"{tags:,} tags"
    if tags > _FEW_TAGS and steps > _MEAN_DEPTH * tags:
        return f"{tags:,} tags, with {steps // tags:,} elements open at each on average"
    return ""


def visible_text(page: bytes, *, quotes: bool, marks: bool = False) -> bytes:
    """Return the text that a reader of a page sees, as UTF-8: without scripts and hidden elements.

    Block elements begin and end a line; inline elements do not.

    page : UTF-8.
    quotes : whether the text has block quotations.
    marks : whether each heading is one line, which begins with a form feed; nothing else has one.
    Cost: one walk over the parsed page at any nesting; about a microsecond a tag.
    """
    from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

    # Text instead of bytes: the page's own <meta> may name another encoding than UTF-8. Without
    # events, because with them time grows with the square of the options of a list.
    body = LexborHTMLParser(page.decode("utf-8"), options=LexborDocumentOptions.WO_EVENTS).body
    if body is None:
        return b""
    invisible = _INVISIBLE if quotes else _INVISIBLE | {"blockquote"}
    may_hide = _MAY_HIDE.search(page) is not None
    if may_hide and any(
        node is not None and "hidden" in node.attributes for node in (body, body.parent)
    ):
        return b""
    parts: list[str] = []
    opened = 0  # the number of parts before a heading
    # The open elements, for the way back: a recursion would end at a depth of some hundreds.
    stack: list[LexborNode] = []
    node = body.first_child
    while node is not None or stack:
        if node is None:
            node = stack.pop()
            if node.tag in _BLOCKS:
                if marks and node.tag in _HEADINGS:
                    words = " ".join("".join(parts[opened:]).split())
                    parts[opened:] = ["\f", words] if words else []
                parts.append("\n")
            node = node.next
            continue
        tag = node.tag
        if tag == "-text":
            text = node.text_content or ""
            parts.append(text.replace("\f", " ") if marks else text)
        elif (
            tag
            and tag[0] != "-"
            and tag not in invisible
            and not (may_hide and "hidden" in node.attributes)
        ):
            if tag in _BLOCKS:
                parts.append("\n")
                opened = len(parts) if tag in _HEADINGS else opened
            stack.append(node)
            node = node.first_child
            continue
        node = node.next
    return "".join(parts).encode("utf-8")
