"""Decoding of documents: bytes -> UTF-8 text, or the reason why the bytes are no text.

Knows byte-order marks, compressed files, HTML and office documents. Also where a text stands in the
bytes it was decoded from: offsets in UTF-8 -> offsets in the bytes.
"""

import codecs
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lshdup.base import compression
from lshdup.base.forms import BLANK_LINE, PAGE_END, PART, Form, looks_like_html, page_form
from lshdup.base.frozen import dataclass
from lshdup.base.params import (
    DEFAULT_FORMATS,
    DEFAULT_MAX_BYTES,
    DEFAULT_SHINGLE,
    FormatLimits,
    ShingleParams,
)
from lshdup.base.ragged import offsets_of
from lshdup.base.skipped import Reason
from lshdup.kernels import flags as kernels
from lshdup.text import encodings, html, office_types
from lshdup.text.mail import bare_mail_file, mail_form

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
#: What stands first in bytes that are no plain UTF-8 text.
MAGICS = (*(bom for bom, _ in _BOMS), *office_types.MAGICS, *compression.MAGICS)

#: The `Text.office` of a mail.
MAIL = "eml"


@dataclass(frozen=True)
class Text:
    """The text of a document as UTF-8, perhaps in parts (`base.forms`), or why there is none.

    reason, detail : why the bytes are no text; None and "" if they are.
    encoding : the encoding if it was detected, and how many bytes do not fit it.
    codec : Python's name of the encoding that the bytes were decoded from.
    form : what the document was read as.
    office : the type of the office document that the text was extracted from; eml for a mail.
    packed : the compression of the file: gzip, zstd, xz or bzip2.
    """

    utf8: bytes = b""
    reason: Reason | None = None
    detail: str = ""
    encoding: str = ""
    codec: str = "utf-8"
    form: Form = Form.TEXT
    office: str = ""
    packed: str = ""

    @property
    def page(self) -> bool:
        """Whether this is the visible text of an HTML page."""
        return self.form in (Form.PAGE, Form.NAMED_PAGE)


def decode(
    data: bytes,
    path: bytes,
    params: ShingleParams = DEFAULT_SHINGLE,
    max_bytes: int = DEFAULT_MAX_BYTES,
    limits: FormatLimits = DEFAULT_FORMATS,
    form: Form | None = None,
) -> Text:
    """Decode the bytes of one document (docs/reference/definitions.md, "Text").

    path : the file; tells pages and mails by its ending.
    params : with the encoding that is forced on every document but office documents and mails; "":
        by byte-order mark, UTF-8, the declaration of an HTML page, or detected.
    max_bytes : the most bytes that a compressed file is decompressed to.
    limits : bounds for reading one office document or mail.
    form : as of `mail_form`, if that was asked.
    """
    if compression.name_of(data):
        inner = _decompress(data, max_bytes)
        if isinstance(inner, Text):
            return inner
        text = decode(inner, compression.bare_name(path), params, max_bytes, limits)
        return replace(text, packed=compression.name_of(data))
    if file_type := office_types.recognize_file_type(data):
        return _read_office(data, file_type, limits)
    form = mail_form(data, path, params) if form is None else form
    if form == Form.MAIL:
        return decode_mails([bare_mail_file(data, path)], params, limits)[0]
    text = _decode_text(data, path, params)
    return replace(text, form=form) if text.form == Form.TEXT else text


def _decode_text(data: bytes, path: bytes, params: ShingleParams) -> Text:
    """Decode a document that is no mail, or say why it is no text."""
    if params.encoding:
        return _decode_as(data, path, params, params.encoding)
    for bom, codec in _BOMS:
        if data.startswith(bom):
            text = _decode_as(data, path, params, codec)
            if bom == codecs.BOM_UTF8 and text.reason == Reason.UNDECODABLE:
                invalid = encodings.count_invalid_utf8(data)
                return _repair(data, path, params, invalid) if invalid else text
            return text
    for magic in office_types.MAGICS:
        if data.startswith(magic):
            unknown = magic.decode("ascii", "backslashreplace")
            detail = office_types.UNKNOWN_CONTAINERS.get(magic, unknown)
            return Text(reason=Reason.FORMAT, detail=detail)
    if b"\0" in data[: kernels.BINARY_WINDOW]:
        return Text(reason=Reason.BINARY)
    return _decode_unmarked(data, path, params)


def decode_mails(mails: list[bytes], params: ShingleParams, limits: FormatLimits) -> list[Text]:
    """Decode mails together, which is much faster than one by one. For any thread."""
    if not mails:
        return []
    from lshdup.text.office_processes import extract_all, mail_type

    found = extract_all(mails, mail_type(params), limits)
    return [
        Text(each.utf8, each.reason, each.detail, form=Form.MAIL, office=MAIL) for each in found
    ]


def decode_record(
    data: bytes,
    params: ShingleParams,
    limits: FormatLimits = DEFAULT_FORMATS,
    form: Form | None = None,
) -> Text:
    """Decode a text that is the field of a record, or several of them.

    params : with the encoding of texts that are not UTF-8, as in CSV; "": as a page declares, or
        detected.
    form : as of `decode`.
    """
    form = mail_form(data, None, params) if form is None else form
    if form == Form.MAIL:
        return decode_mails([bare_mail_file(data, None)], params, limits)[0]
    fields = data.removeprefix(codecs.BOM_UTF8).split(PART)
    text = _decode_unmarked(BLANK_LINE.join(fields), None, params)
    if text.form == Form.TEXT:
        text = replace(text, form=form)
    if len(fields) == 1 or text.reason is not None:
        return text
    fields = [field.decode(text.codec, "replace").encode("utf-8") for field in fields]
    if text.page:
        fields = [html.visible_text(field, quotes=True) for field in fields]
    return replace(text, utf8=PART.join(fields))


def _decompress(data: bytes, max_bytes: int) -> bytes | Text:
    if not compression.can_unpack(data):
        return Text(reason=Reason.FORMAT, detail=compression.LACKING)
    try:
        inner = compression.unpacked(data, max_bytes)
    except compression.TooLongError:
        detail = f"more than {max_bytes} bytes when unpacked, --max-bytes is {max_bytes}"
        return Text(reason=Reason.TOO_LARGE, detail=detail)
    except compression.PackedError as error:
        return Text(reason=Reason.DAMAGED, detail=str(error))
    if compression.name_of(inner):
        return Text(reason=Reason.FORMAT, detail="packed twice")
    return inner


def _read_office(data: bytes, file_type: str, limits: FormatLimits) -> Text:
    if file_type == office_types.ENCRYPTED:
        return Text(reason=Reason.ENCRYPTED)
    from lshdup.text.office_processes import extract

    result = extract(data, file_type, limits)
    if result.reason is not None:
        return Text(reason=result.reason, detail=result.detail or file_type)
    text = result.utf8.replace(PAGE_END, b"") if file_type == "pdf" else result.utf8
    return Text(text, form=Form.OFFICE, office=file_type)


def _decode_as(
    data: bytes, path: bytes | None, params: ShingleParams, codec: str, detected: str = ""
) -> Text:
    try:
        # Lone surrogates in UTF-16 and UTF-32 fail here too: they are no text.
        utf8 = data.decode(codec).removeprefix("\ufeff").encode("utf-8")
    except UnicodeDecodeError as error:
        where = f": {error.reason} at byte {error.start}"
        return Text(reason=Reason.UNDECODABLE, detail=f"not {codec}{where}")
    except (UnicodeError, LookupError):
        return Text(reason=Reason.UNDECODABLE, detail=f"not {codec}")
    return _text_or_page(utf8, path, params, detected, codec)


def _decode_unmarked(data: bytes, path: bytes | None, params: ShingleParams) -> Text:
    """Decode a text without a byte-order mark: as UTF-8; else as the parameters say, as an HTML
    page declares, or as detected.
    """
    if encodings.fits(data, "utf-8"):
        return _text_or_page(data, path, params)
    if params.encoding:
        return _decode_as(data, path, params, params.encoding)
    if looks_like_html(data, path or b"") and (declared := html.CHARSET.search(data[:2048])):
        codec = encodings.look_up_codec(declared.group(1).decode("ascii"))
        # Five bytes have no character in Python's windows-1252, but have one in browsers.
        for candidate in (codec, "latin-1" if codec == encodings.WESTERN else ""):
            if candidate and (text := _decode_as(data, path, params, candidate)).reason is None:
                return text
    if invalid := encodings.count_invalid_utf8(data):
        return _repair(data, path, params, invalid)
    if codec := encodings.detect_codec(data):
        return _decode_as(data, path, params, codec, detected=codec)
    return Text(reason=Reason.UNDECODABLE, detail="no encoding fits; name one with --encoding")


def _repair(data: bytes, path: bytes | None, params: ShingleParams, invalid: int) -> Text:
    """Decode UTF-8 with U+FFFD for the bytes that are invalid."""
    utf8 = data.decode("utf-8", "replace").removeprefix("\ufeff").encode("utf-8")
    count = f"{invalid:,} bytes are" if invalid > 1 else "1 byte is"
    return _text_or_page(utf8, path, params, f"utf-8, {count} not UTF-8")


def _text_or_page(
    utf8: bytes, path: bytes | None, params: ShingleParams, detected: str = "", codec: str = "utf-8"
) -> Text:
    text = Text(utf8, encoding=detected, codec=codec, form=page_form(utf8, path, params.markup))
    if not text.page:
        return text
    if obstacle := html.find_obstacle(utf8):
        return Text(reason=Reason.MARKUP, detail=obstacle)
    return replace(text, utf8=html.visible_text(utf8, quotes=True))


# --- where a text stands in its bytes -------------------------------------------------------------

#: Python's error handler for `_size_of_invalid`, and code points that no text in UTF-8 has: each
#: stands for so many invalid bytes more than the first one.
_SIZES_OF_INVALID, _INVALID = "lshdup-sizes-of-invalid", 0xDC80


def find_offsets(data: bytes, text: Text, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return where places of a decoded text are in the bytes; None if it does not stand there.

    Only a text that is nothing but decoded does: no page, mail or office document, and no text of
    several fields.

    data : the bytes that `text` was decoded from.
    places : int64 array, bytes of `text.utf8` at which characters begin, or its length.
    Returns an int64 array of the same shape.
    Cost: a step of Python for each byte in an encoding of several bytes a character, as Shift_JIS.
    """
    if text.page or text.office or text.packed:
        return None
    codec = codecs.lookup(text.codec)
    is_utf8 = codec.name.startswith("utf-8")
    if data.endswith(text.utf8) and (is_utf8 or len(data) == len(text.utf8)):
        return places + (len(data) - len(text.utf8))  # behind a byte-order mark
    if PART in text.utf8:  # Fields of a row, which are decoded one by one.
        return None
    points = code_points(text.utf8.decode("utf-8"))
    end = len(data)
    if is_utf8:
        repaired = code_points(data.decode("utf-8", _SIZES_OF_INVALID))
        sizes = utf8_sizes(repaired)
        invalid = (repaired > _INVALID) & (repaired < _INVALID + 8)
        sizes[invalid] = repaired[invalid] - _INVALID
    elif codec.name.startswith(("utf-16", "utf-32")):
        sizes = np.where((points < 0x10000) & (codec.name[4:6] == "16"), 2, 4)
    elif len(data) == len(points):
        sizes = np.ones(len(points), np.int64)
    else:
        ends = _decode_bytewise(data, codec)
        sizes, end = np.diff(ends, prepend=0), int(ends[-1])
    sizes = sizes[len(sizes) - len(points) :]  # A byte-order mark may be before the text.
    offsets = offsets_of(sizes) + (end - int(sizes.sum()))
    return offsets[np.searchsorted(offsets_of(utf8_sizes(points)), places)]


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of a text, surrogates included: uint32 array."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def utf8_sizes(points: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the bytes of each code point in UTF-8: int64 array. points : uint32 array."""
    return np.searchsorted([0x80, 0x800, 0x10000], points, side="right") + 1


def _decode_bytewise(data: bytes, codec: codecs.CodecInfo) -> NDArray[np.int64]:
    """Return where each character ends: int64 array."""
    assert codec.incrementaldecoder is not None
    decoder, ends = codec.incrementaldecoder(), []
    for at in range(len(data)):
        ends += [at + 1] * len(decoder.decode(data[at : at + 1]))
    return np.array(ends, np.int64)


def _size_of_invalid(error: UnicodeError) -> tuple[str, int]:
    """Decode invalid bytes, of which "replace" makes one U+FFFD, to one code point with their
    number.
    """
    assert isinstance(error, UnicodeDecodeError)
    return chr(_INVALID + error.end - error.start), error.end


codecs.register_error(_SIZES_OF_INVALID, _size_of_invalid)
