"""Bytes -> UTF-8 text: encodings, byte-order marks, HTML; and which bytes are no text at all. Called by shingles.py."""

import codecs
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lshdup.documents import Reason
from lshdup.kernels import text as kernels

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_FORMATS = (b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"{\\rtf", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd")
_MAGICS = (*(bom for bom, _ in _BOMS), *_FORMATS)
_BEGINS_MAGIC = np.zeros(256, bool)
_BEGINS_MAGIC[[magic[0] for magic in _MAGICS]] = True
_HTML_ENDINGS = (b".html", b".htm", b".xhtml")
# Nothing is tried twice (`+` after a quantifier, `?>`): a row of comments could end in as many ways as there are subsets of it.
_HTML_START = re.compile(rb"(?is)(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>\s*+|(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html[\s>])")
_HTML_CHARSET = re.compile(rb"(?i)<meta[^>]+charset\s*=\s*[\"']?\s*([-\w.:]+)")
#: What browsers take undeclared text for; lshdup does where it is about as plausible as the detector's first choice.
_WESTERN = "cp1252"
_MESSIER = 0.1

_HTML_SKIPPED = "head, script, style, template, noscript, [hidden]"
_HTML_BLOCKS = (
    "address, article, aside, blockquote, br, caption, center, dd, details, dialog, dir, div, dl, dt, fieldset, figcaption, "
    "figure, footer, form, h1, h2, h3, h4, h5, h6, header, hgroup, hr, li, main, menu, nav, ol, option, p, pre, search, "
    "section, summary, table, tbody, td, tfoot, th, thead, tr, ul"
)


@dataclass(frozen=True)
class Text:
    """What became of one document's bytes: UTF-8, or why not; `encoding` is named if it had to be guessed."""

    utf8: bytes = b""
    reason: Reason | None = None
    detail: str = ""
    encoding: str = ""


def heads(text: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The first eight bytes of each document as little-endian uint64 of shape (n,)."""
    window = np.lib.stride_tricks.sliding_window_view(text, 8)
    return np.ascontiguousarray(window[starts]).view("<u8").ravel()


def needs_patience(
    names: list[bytes], text: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], flags: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Which documents may be something other than plain UTF-8: bool array of shape (n,). Those go through `to_text`."""
    patient: NDArray[np.bool_] = (flags & (kernels.HAS_NUL | kernels.STARTS_MARKUP)) != 0
    perhaps = np.flatnonzero(_BEGINS_MAGIC[text[starts]])
    if len(perhaps):
        first = heads(text, starts[perhaps])
        for magic in _MAGICS:
            mask = np.uint64((1 << 8 * len(magic)) - 1)
            patient[perhaps] |= (first & mask == np.uint64(int.from_bytes(magic, "little"))) & (lengths[perhaps] >= len(magic))
    if b"htm" in b"\0".join(names).lower():  # one look at all names instead of one at each
        patient |= [name.lower().endswith(_HTML_ENDINGS) for name in names]
    return patient


def to_text(data: bytes, name: bytes, encoding: str = "") -> Text:
    """One document's bytes as UTF-8 text: DESIGN 4, *Text*.

    encoding : forced on every document; empty means by byte-order mark, UTF-8, what an HTML page declares, or detected.
    """
    if encoding:
        return _decoded(data, name, encoding)
    for bom, codec in _BOMS:
        if data.startswith(bom):
            return _decoded(data, name, codec)
    for magic in _FORMATS:
        if data.startswith(magic):
            return Text(reason=Reason.FORMAT, detail=magic[:4].decode("ascii", "backslashreplace"))
    if b"\0" in data[: kernels.BINARY_WINDOW]:
        return Text(reason=Reason.BINARY)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _guessed(data, name)
    return Text(_visible_text(data) if _is_html(data, name) else data)


def _decoded(data: bytes, name: bytes, codec: str, guessed: str = "") -> Text:
    try:
        # Lone surrogates in UTF-16 and UTF-32 fail here too: they are no text.
        utf8 = data.decode(codec).removeprefix("\ufeff").encode("utf-8")
    except (UnicodeError, LookupError):
        return Text(reason=Reason.UNDECODABLE, detail=f"not {codec}")
    return Text(_visible_text(utf8) if _is_html(utf8, name) else utf8, encoding=guessed)


def _guessed(data: bytes, name: bytes) -> Text:
    if _is_html(data, name) and (declared := _HTML_CHARSET.search(data[:2048])):
        text = _decoded(data, name, declared.group(1).decode("ascii"))
        if text.reason is None:
            return text
    import charset_normalizer

    matches = list(charset_normalizer.from_bytes(data))
    if not matches:
        return Text(reason=Reason.UNDECODABLE, detail="no encoding fits; name one with --encoding")
    encoding = matches[0].encoding
    # Its relatives for other Latin alphabets often look a little tidier to the detector, and another one for each near-copy of a text.
    western = [match for match in matches if _WESTERN in (match.encoding, *match.could_be_from_charset)]
    if western and western[0].chaos <= matches[0].chaos + _MESSIER:
        encoding = _WESTERN
    return _decoded(data, name, encoding, guessed=encoding)


def _is_html(data: bytes, name: bytes) -> bool:
    return name.lower().endswith(_HTML_ENDINGS) or _HTML_START.match(data[:4096]) is not None


def _visible_text(page: bytes) -> bytes:
    """What a reader of the page sees: no scripts and styles, blocks apart, inline elements not."""
    from selectolax.lexbor import LexborHTMLParser

    # The bytes are UTF-8 by now, whatever the page's own <meta> says.
    tree = LexborHTMLParser(page.decode("utf-8"))
    for node in reversed(tree.css(_HTML_SKIPPED)):  # what is inside first: its memory goes with that of what it is in
        if node.tag != "html":  # the root cannot be taken away
            node.decompose()
    for node in tree.css(_HTML_BLOCKS):
        node.insert_before("\n")
        node.insert_after("\n")
    body = tree.body
    return body.text(separator="").encode("utf-8") if body is not None else b""
