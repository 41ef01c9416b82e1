"""Bytes -> UTF-8 text: encodings, byte-order marks, HTML, office documents; and which bytes are no text at all. Called by shingles.py."""

import codecs
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import text as kernels
from lshdup.params import DEFAULT_FORMATS, DEFAULT_MAX_BYTES, FormatLimits
from lshdup.skipped import Reason
from lshdup.text import encodings, file_types
from lshdup.text.html import _HTML_CHARSET, _HTML_ENDINGS, _is_html, _too_much_markup, _visible_text
from lshdup.utils import compression

if TYPE_CHECKING:
    pass

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_FORMATS = file_types.MAGICS
_MAGICS = (*(bom for bom, _ in _BOMS), *_FORMATS, compression.GZIP, compression.ZSTD)
_BEGINS_MAGIC = np.zeros(256, bool)
_BEGINS_MAGIC[[magic[0] for magic in _MAGICS]] = True


@dataclass(frozen=True)
class Text:
    """What became of one document's bytes: UTF-8, or why not; `encoding` is named if it had to be guessed, with what does not fit it.

    codec : what it was decoded from. page : whether it is the visible text of an HTML page. office : the kind of office document that a
    reader took it from. packed : what unpacked it: gzip or zstd.
    """

    utf8: bytes = b""
    reason: Reason | None = None
    detail: str = ""
    encoding: str = ""
    codec: str = "utf-8"
    page: bool = False
    office: str = ""
    packed: str = ""


def heads(text: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The first eight bytes of each document as little-endian uint64 of shape (n,)."""
    window = np.lib.stride_tricks.sliding_window_view(text, 8)
    return np.ascontiguousarray(window[starts]).view("<u8").ravel()


def needs_patience(
    names: list[bytes],
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    flags: NDArray[np.uint8],
) -> NDArray[np.bool_]:
    """Which documents may be something other than plain UTF-8: bool array of shape (n,). Those go through `to_text`."""
    patient: NDArray[np.bool_] = (flags & (kernels.HAS_NUL | kernels.STARTS_MARKUP)) != 0
    perhaps = np.flatnonzero(_BEGINS_MAGIC[text[starts]])
    if len(perhaps):
        first = heads(text, starts[perhaps])
        for magic in _MAGICS:
            mask = np.uint64((1 << 8 * len(magic)) - 1)
            patient[perhaps] |= (first & mask == np.uint64(int.from_bytes(magic, "little"))) & (
                lengths[perhaps] >= len(magic)
            )
    all_names = b"\0".join(names).lower()  # one look at all of them instead of one at each
    if b"htm" in all_names or file_types.MAIL_ENDING in all_names:
        patient |= [
            name.lower().endswith((*_HTML_ENDINGS, file_types.MAIL_ENDING)) for name in names
        ]
    return patient


def to_text(
    data: bytes,
    name: bytes,
    encoding: str = "",
    max_bytes: int = DEFAULT_MAX_BYTES,
    limits: FormatLimits = DEFAULT_FORMATS,
) -> Text:
    """One document's bytes as UTF-8 text: DESIGN 4, *Text*.

    encoding : forced on every document that is text; empty means by byte-order mark, UTF-8, what an HTML page declares, or detected.
    max_bytes : what gzip or zstd packed is unpacked up to so many bytes, and is then what it would be without them. limits : for office
    documents, which have an encoding of their own.
    """
    if compression.is_packed(data):
        inner = _unpacked(data, max_bytes)
        if isinstance(inner, Text):
            return inner
        return replace(
            to_text(inner, compression.bare_name(name), encoding, max_bytes, limits),
            packed=compression.name_of(data),
        )
    if kind := file_types.recognize_file_type(data, name):
        return _office(data, kind, limits)
    if encoding:
        return _decoded(data, name, encoding)
    for bom, codec in _BOMS:
        if data.startswith(bom):
            text = _decoded(data, name, codec)
            mendable = (
                bom == codecs.BOM_UTF8
                and text.reason == Reason.UNDECODABLE
                and encodings.count_invalid_utf8(data)
            )
            return _mended(data, name, mendable) if mendable else text
    for magic in _FORMATS:
        if data.startswith(magic):
            return Text(
                reason=Reason.FORMAT,
                detail=file_types.UNKNOWN_CONTAINERS.get(
                    magic, magic.decode("ascii", "backslashreplace")
                ),
            )
    if b"\0" in data[: kernels.BINARY_WINDOW]:
        return Text(reason=Reason.BINARY)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _guessed(data, name)
    return _page(data) if _is_html(data, name) else Text(data)


def row_text(data: bytes) -> Text:
    """The same for what was a text where it comes from, in a row: UTF-8, in no other format, but perhaps a page."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Text(
            reason=Reason.UNDECODABLE, detail=f"not utf-8: {error.reason} at byte {error.start}"
        )
    return _page(data) if _is_html(data, b"") else Text(data)


def _unpacked(data: bytes, max_bytes: int) -> bytes | Text:
    if not compression.can_unpack(data):
        return Text(reason=Reason.FORMAT, detail=compression.lacking())
    try:
        inner = compression.unpacked(data, max_bytes)
    except compression.TooLongError:
        return Text(
            reason=Reason.TOO_LARGE,
            detail=f"more than {max_bytes} bytes when unpacked, --max-bytes is {max_bytes}",
        )
    except compression.PackedError as error:
        return Text(reason=Reason.DAMAGED, detail=str(error))
    return (
        Text(reason=Reason.FORMAT, detail="packed twice") if compression.is_packed(inner) else inner
    )


def _office(data: bytes, kind: str, limits: FormatLimits) -> Text:
    if kind == file_types.ENCRYPTED:
        return Text(reason=Reason.ENCRYPTED)
    from lshdup.text.office import extract

    done = extract(data, kind, limits)
    if done.reason is not None:
        return Text(reason=done.reason, detail=done.detail or kind)
    return replace(_page(done.utf8) if done.is_page else Text(done.utf8), office=kind)


def _decoded(data: bytes, name: bytes, codec: str, guessed: str = "") -> Text:
    try:
        # Lone surrogates in UTF-16 and UTF-32 fail here too: they are no text.
        utf8 = data.decode(codec).removeprefix("\ufeff").encode("utf-8")
    except UnicodeDecodeError as error:
        return Text(
            reason=Reason.UNDECODABLE, detail=f"not {codec}: {error.reason} at byte {error.start}"
        )
    except (UnicodeError, LookupError):
        return Text(reason=Reason.UNDECODABLE, detail=f"not {codec}")
    return (
        _page(utf8, guessed, codec)
        if _is_html(utf8, name)
        else Text(utf8, encoding=guessed, codec=codec)
    )


def _guessed(data: bytes, name: bytes) -> Text:
    if _is_html(data, name) and (declared := _HTML_CHARSET.search(data[:2048])):
        codec = encodings.look_up_codec(declared.group(1).decode("ascii"))
        for each in (
            (codec, "latin-1") if codec == encodings.WESTERN else (codec,) if codec else ()
        ):  # five bytes have no character in Python's
            text = _decoded(data, name, each)
            if text.reason is None:
                return text
    if bad := encodings.count_invalid_utf8(data):
        return _mended(data, name, bad)
    encoding = encodings.detect_codec(data)
    if not encoding:
        return Text(reason=Reason.UNDECODABLE, detail="no encoding fits; name one with --encoding")
    return _decoded(data, name, encoding, guessed=encoding)


def _mended(data: bytes, name: bytes, bad: int) -> Text:
    """UTF-8 with U+FFFD for those bytes of it that are not."""
    utf8 = data.decode("utf-8", "replace").removeprefix("\ufeff").encode("utf-8")
    guessed = f"utf-8, {bad:,} bytes are not UTF-8" if bad > 1 else "utf-8, 1 byte is not UTF-8"
    return _page(utf8, guessed) if _is_html(utf8, name) else Text(utf8, encoding=guessed)


def _page(page: bytes, encoding: str = "", codec: str = "utf-8") -> Text:
    trouble = _too_much_markup(page)
    return (
        Text(reason=Reason.MARKUP, detail=trouble)
        if trouble
        else Text(_visible_text(page), encoding=encoding, codec=codec, page=True)
    )
