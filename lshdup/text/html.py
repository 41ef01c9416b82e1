"""HTML -> its visible text."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode


_HTML_ENDINGS = (b".html", b".htm", b".xhtml")
# Nothing is tried twice (`+` after a quantifier, `?>`): a row of comments could end in as many ways as there are subsets of it.
_HTML_START = re.compile(
    rb"(?is)(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>\s*+|(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html[\s>])"
)
_HTML_CHARSET = re.compile(rb"(?i)<meta[^>]+charset\s*=\s*[\"']?\s*([-\w.:]+)")
#: Elements whose text a reader does not see, and those at whose beginning and end a line ends.
_SKIPPED = frozenset(("head", "script", "style", "template", "noscript"))
_BLOCKS = frozenset(
    "address article aside blockquote br caption center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 "
    "h5 h6 header hgroup hr li main menu nav ol option p pre search section summary table tbody td tfoot th thead tr ul".split()
)
_MAY_HIDE = re.compile(rb"(?i)hidden")
#: The parser takes a step for each element that is open when a tag comes, and one for each pair of attributes of a tag: some ns each. Pages
#: of so many tags are parsed whatever they are; others if fewer are open on average; none of more tags, which take 200 bytes each.
_FEW_TAGS, _MEAN_DEPTH, _MOST_TAGS = 20_000, 500, 5_000_000
_MOST_ATTRIBUTES = 20_000
#: Elements without an end tag, or whose end tag is left out as a rule.
_UNCLOSED = frozenset(
    b"area base br col dd dt embed hr img input li link meta optgroup option p param rp rt source tbody td tfoot th thead tr track "
    b"wbr".split()
)
_TAG = re.compile(
    rb"(?is)<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1|\Z)|<(/?)([a-z][^\s/>]*)([^>]*)"
)
_LONG_TAG = 2 * _MOST_ATTRIBUTES


def _is_html(data: bytes, name: bytes) -> bool:
    return name.lower().endswith(_HTML_ENDINGS) or _HTML_START.match(data[:4096]) is not None


def _too_much_markup(page: bytes) -> str:
    """Why a page would take the parser minutes; empty if it would not. No page that people read is such.

    An estimate, from what looks like a tag: who knows it can still write a page that is parsed slowly.
    """
    if page.count(b"<") <= _FEW_TAGS and len(page) <= _LONG_TAG:
        return ""
    tags = depth = steps = 0
    for tag in _TAG.finditer(page):
        _, closes, name, rest = tag.groups(b"")
        if not name:  # a comment or a script, in which a comparison looks like a tag
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


def _visible_text(page: bytes) -> bytes:
    """What a reader of the page sees: no scripts and styles, blocks apart, inline elements not.

    Cost: one walk over the parsed page, whatever its nesting; about a microsecond a tag.
    """
    from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

    # The bytes are UTF-8 by now, whatever the page's own <meta> says. With events, time grows with the square of the options of a list.
    body = LexborHTMLParser(page.decode("utf-8"), options=LexborDocumentOptions.WO_EVENTS).body
    if body is None:
        return b""
    may_hide = _MAY_HIDE.search(page) is not None
    if may_hide and any(
        each is not None and "hidden" in each.attributes for each in (body, body.parent)
    ):
        return b""
    parts: list[str] = []
    inside: list[
        LexborNode
    ] = []  # the elements that are open, for the way back: a recursion would end at a depth of some hundreds
    node = body.first_child
    while node is not None or inside:
        if node is None:
            node = inside.pop()
            if node.tag in _BLOCKS:
                parts.append("\n")
            node = node.next
            continue
        tag = node.tag
        if tag == "-text":
            parts.append(node.text_content or "")
        elif (
            tag
            and tag[0] != "-"
            and tag not in _SKIPPED
            and not (may_hide and "hidden" in node.attributes)
        ):
            if tag in _BLOCKS:
                parts.append("\n")
            inside.append(node)
            node = node.first_child
            continue
        node = node.next
    return "".join(parts).encode("utf-8")
