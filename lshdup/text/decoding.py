"""Decoding of documents: bytes -> UTF-8 text, or the reason why the bytes are no text.

Knows byte-order marks, compressed files, HTML and office documents.
"""

import codecs
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.kernels import text as kernels
from lshdup.params import DEFAULT_FORMATS, DEFAULT_MAX_BYTES, FormatLimits
from lshdup.skipped import Reason
from lshdup.text import encodings, file_types, html
from lshdup.text.mail import DEFAULT_RULES, HEADER_WINDOW, MailRules, is_mail
from lshdup.utils import compression, pages
from lshdup.utils.frozen import dataclass
from lshdup.utils.parts import BLANK_LINE, PART

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_MAGICS = (*(bom for bom, _ in _BOMS), *file_types.MAGICS, *compression.MAGICS)
#: Whether two bytes, as a little-endian number, begin one of them.
_BEGINS_MAGIC = np.zeros(1 << 16, bool)
_BEGINS_MAGIC[[int.from_bytes(magic[:2], "little") for magic in _MAGICS]] = True

#: The `Text.office` of a mail.
MAIL = "eml"


@dataclass(frozen=True)
class Text:
    """The text of a document as UTF-8, perhaps in parts (`utils.parts`), or why there is none.

    reason, detail : why the bytes are no text; None and "" if they are.
    encoding : the encoding if it was detected, and how many bytes do not fit it.
    codec : Python's name of the encoding that the bytes were decoded from.
    page : whether this is the visible text of an HTML page.
    office : the type of the office document that the text was extracted from; eml for a mail.
    packed : the compression of the file: gzip, zstd, xz or bzip2.
    """

    utf8: bytes = b""
    reason: Reason | None = None
    detail: str = ""
    encoding: str = ""
    codec: str = "utf-8"
    page: bool = False
    office: str = ""
    packed: str = ""


def may_need_decoding(
    names: list[bytes],
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    flags: NDArray[np.uint8],
) -> NDArray[np.bool_]:
    """Return which documents may be something other than plain UTF-8 text, and need `decode`.

    text : uint8 array, the bytes of all documents.
    starts, lengths : int64 arrays of shape (n,), in bytes of text.
    flags : uint8 array of shape (n,), from `kernels.text.inspect`.
    Returns a bool array of shape (n,).
    """
    special: NDArray[np.bool_] = (flags & (kernels.HAS_NUL | kernels.STARTS_MARKUP)) != 0
    first_two = text[starts] | text[starts + 1].astype(np.uint16) << 8
    for i in np.flatnonzero(_BEGINS_MAGIC[first_two]).tolist():
        head = text[starts[i] : starts[i] + min(8, lengths[i])].tobytes()
        special[i] |= head.startswith(_MAGICS)
    # One look at all names together is much faster than one look at each.
    if b"htm" in b"\0".join(names).lower():
        special |= [name.lower().endswith(pages.ENDINGS) for name in names]
    return special


def find_mails(
    names: list[bytes],
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    flags: NDArray[np.uint8],
) -> NDArray[np.bool_]:
    """Return which documents are mails: bool array of shape (n,). Parameters as of
    `may_need_decoding`.
    """
    mails: NDArray[np.bool_] = (flags & kernels.STARTS_HEADER) != 0
    for i in np.flatnonzero(mails).tolist():
        window = min(HEADER_WINDOW, int(lengths[i]))
        mails[i] = is_mail(text[starts[i] : starts[i] + window].tobytes(), names[i])
    return mails


def decode(
    data: bytes,
    name: bytes,
    encoding: str = "",
    max_bytes: int = DEFAULT_MAX_BYTES,
    limits: FormatLimits = DEFAULT_FORMATS,
    rules: MailRules = DEFAULT_RULES,
) -> Text:
    """Decode the bytes of one document (docs/reference/definitions.md, "Text").

    name : tells HTML pages by its ending.
    encoding : forced on every document but office documents and mails; "": by byte-order mark,
        UTF-8, the declaration of an HTML page, or detected.
    max_bytes : the most bytes that a compressed file is decompressed to.
    limits : bounds for reading one office document or mail.
    rules : what the text of a mail has.
    """
    if compression.is_packed(data):
        inner = _decompress(data, max_bytes)
        if isinstance(inner, Text):
            return inner
        text = decode(inner, compression.bare_name(name), encoding, max_bytes, limits, rules)
        return replace(text, packed=compression.name_of(data))
    if file_type := file_types.recognize_file_type(data):
        return _read_office(data, file_type, limits)
    if is_mail(data, name):
        return decode_mails([data], limits, rules)[0]
    if encoding:
        return _decode_as(data, name, encoding)
    for bom, codec in _BOMS:
        if data.startswith(bom):
            text = _decode_as(data, name, codec)
            if bom == codecs.BOM_UTF8 and text.reason == Reason.UNDECODABLE:
                invalid = encodings.count_invalid_utf8(data)
                return _repair(data, name, invalid) if invalid else text
            return text
    for magic in file_types.MAGICS:
        if data.startswith(magic):
            unknown = magic.decode("ascii", "backslashreplace")
            detail = file_types.UNKNOWN_CONTAINERS.get(magic, unknown)
            return Text(reason=Reason.FORMAT, detail=detail)
    if b"\0" in data[: kernels.BINARY_WINDOW]:
        return Text(reason=Reason.BINARY)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_undeclared(data, name)
    return _text_or_page(data, name)


def decode_mails(mails: list[bytes], limits: FormatLimits, rules: MailRules) -> list[Text]:
    """Decode mails together, which is much faster than one by one. For any thread."""
    from lshdup.text.office_processes import extract_all, mail_type

    found = extract_all(mails, mail_type(rules), limits)
    return [Text(each.utf8, each.reason, each.detail, office=MAIL) for each in found]


def decode_record(data: bytes, encoding: str = "") -> Text:
    """Decode a text that is the field of a record, or several of them, perhaps an HTML page.

    encoding : of texts that are not UTF-8, as in CSV; "": as a page declares, or detected.
    """
    fields = data.removeprefix(codecs.BOM_UTF8).split(PART)
    text = _decode_field(BLANK_LINE.join(fields), encoding)
    if len(fields) == 1 or text.reason is not None:
        return text
    fields = [field.decode(text.codec, "replace").encode("utf-8") for field in fields]
    return replace(text, utf8=PART.join(map(html.visible_text, fields) if text.page else fields))


def _decode_field(data: bytes, encoding: str) -> Text:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_as(data, b"", encoding) if encoding else _decode_undeclared(data, b"")
    return _text_or_page(data, b"")


def _undecodable(codec: str, error: Exception) -> Text:
    where = (
        f": {error.reason} at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
    )
    return Text(reason=Reason.UNDECODABLE, detail=f"not {codec}{where}")


def _decompress(data: bytes, max_bytes: int) -> bytes | Text:
    if not compression.can_unpack(data):
        return Text(reason=Reason.FORMAT, detail=compression.lacking())
    try:
        inner = compression.unpacked(data, max_bytes)
    except compression.TooLongError:
        detail = f"more than {max_bytes} bytes when unpacked, --max-bytes is {max_bytes}"
        return Text(reason=Reason.TOO_LARGE, detail=detail)
    except compression.PackedError as error:
        return Text(reason=Reason.DAMAGED, detail=str(error))
    if compression.is_packed(inner):
        return Text(reason=Reason.FORMAT, detail="packed twice")
    return inner


def _read_office(data: bytes, file_type: str, limits: FormatLimits) -> Text:
    if file_type == file_types.ENCRYPTED:
        return Text(reason=Reason.ENCRYPTED)
    from lshdup.text.office_processes import extract

    result = extract(data, file_type, limits)
    if result.reason is not None:
        return Text(reason=result.reason, detail=result.detail or file_type)
    return Text(result.utf8, office=file_type)


def _decode_as(data: bytes, name: bytes, codec: str, detected: str = "") -> Text:
    try:
        # Lone surrogates in UTF-16 and UTF-32 fail here too: they are no text.
        utf8 = data.decode(codec).removeprefix("\ufeff").encode("utf-8")
    except (UnicodeError, LookupError) as error:
        return _undecodable(codec, error)
    return _text_or_page(utf8, name, detected, codec)


def _decode_undeclared(data: bytes, name: bytes) -> Text:
    """Decode bytes that are not UTF-8: as an HTML page declares, or as detected."""
    if pages.is_html(data, name) and (declared := html.CHARSET.search(data[:2048])):
        codec = encodings.look_up_codec(declared.group(1).decode("ascii"))
        # Five bytes have no character in Python's windows-1252, but have one in browsers.
        for candidate in (codec, "latin-1" if codec == encodings.WESTERN else ""):
            if candidate and (text := _decode_as(data, name, candidate)).reason is None:
                return text
    if invalid := encodings.count_invalid_utf8(data):
        return _repair(data, name, invalid)
    if codec := encodings.detect_codec(data):
        return _decode_as(data, name, codec, detected=codec)
    return Text(reason=Reason.UNDECODABLE, detail="no encoding fits; name one with --encoding")


def _repair(data: bytes, name: bytes, invalid: int) -> Text:
    """Decode UTF-8 with U+FFFD for the bytes that are invalid."""
    utf8 = data.decode("utf-8", "replace").removeprefix("\ufeff").encode("utf-8")
    count = f"{invalid:,} bytes are" if invalid > 1 else "1 byte is"
    return _text_or_page(utf8, name, f"utf-8, {count} not UTF-8")


def _text_or_page(utf8: bytes, name: bytes, detected: str = "", codec: str = "utf-8") -> Text:
    if not pages.is_html(utf8, name):
        return Text(utf8, encoding=detected, codec=codec)
    if obstacle := html.find_obstacle(utf8):
        return Text(reason=Reason.MARKUP, detail=obstacle)
    return Text(html.visible_text(utf8), encoding=detected, codec=codec, page=True)
